use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{ClientOptions, CredentialProvider, ObjectStore, RetryConfig};

use super::address::{ObjectAddress, ObjectScheme};
use super::connection::Connector;
use super::error::{ObjectError, ObjectFault};

/// The longest wait for credentials, such as those of the machine.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(20);

/// Opens object stores with the credentials of the environment.
#[derive(Clone, Debug)]
pub struct ObjectStores(Connector);

/// A store, and an object or a prefix in it.
#[derive(Clone, Debug)]
pub struct ObjectPlace {
    pub(super) address: ObjectAddress,
    pub(super) store: Arc<dyn ObjectStore>,
    /// Signs links, where the store has any.
    pub(super) signer: Option<Arc<dyn Signer>>,
    pub(super) path: Path,
}

/// A store, and what signs its links.
type OpenedStore = (Arc<dyn ObjectStore>, Option<Arc<dyn Signer>>);

fn signing<T: ObjectStore + Signer>(store: T) -> OpenedStore {
    let store = Arc::new(store);
    (Arc::<T>::clone(&store), Some(store))
}

impl ObjectStores {
    /// Prepares connections.
    ///
    /// # Errors
    /// When TLS cannot be configured.
    pub fn new() -> std::io::Result<Self> {
        Connector::new().map(Self)
    }

    /// Opens the store of an address, after a check that there are credentials for it.
    ///
    /// # Errors
    /// `Unconfigured` or `NoCredentials`
    pub async fn open(&self, address: &ObjectAddress) -> Result<ObjectPlace, ObjectError> {
        let opened = match address.scheme() {
            ObjectScheme::S3 => self.s3(address).await,
            ObjectScheme::Gs => self.gs(address).await,
            ObjectScheme::Az => self.az(address).await,
            ObjectScheme::Https | ObjectScheme::Http => self.web(address),
            ObjectScheme::File => Err(ObjectFault::Unconfigured),
        };
        let (store, signer) = opened.map_err(|fault| ObjectError::new(address, fault))?;
        let path = Path::parse(address.segments().join("/"));
        let path = path.map_err(|_| ObjectError::new(address, ObjectFault::NotFound))?;
        Ok(ObjectPlace { address: address.clone(), store, signer, path })
    }

    async fn s3(&self, address: &ObjectAddress) -> Result<OpenedStore, ObjectFault> {
        let builder = AmazonS3Builder::from_env()
            .with_bucket_name(address.authority())
            // not all stores that speak the protocol have it
            .with_disable_bulk_delete(true)
            .with_retry(retries())
            .with_http_connector(self.0.clone());
        let is_set = |key| builder.get_config_value(&key).is_some_and(|value| !value.is_empty());
        let [key, secret] = [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::SecretAccessKey].map(is_set);
        if key != secret {
            return Err(ObjectFault::NoCredentials);
        }
        let others = [AmazonS3ConfigKey::WebIdentityTokenFile, AmazonS3ConfigKey::ContainerCredentialsRelativeUri];
        let others = others.into_iter().any(is_set) || is_set(AmazonS3ConfigKey::ContainerCredentialsFullUri);
        let is_public = is_true(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
        if !key && !others && !is_public && is_true(std::env::var("AWS_EC2_METADATA_DISABLED").ok()) {
            return Err(ObjectFault::NoCredentials);
        }
        let store = builder.build().map_err(|_| ObjectFault::Unconfigured)?;
        check_credentials(store.credentials().as_ref(), is_public).await?;
        Ok(signing(store))
    }

    async fn gs(&self, address: &ObjectAddress) -> Result<OpenedStore, ObjectFault> {
        let builder = GoogleCloudStorageBuilder::from_env()
            .with_bucket_name(address.authority())
            .with_retry(retries())
            .with_http_connector(self.0.clone());
        let is_public = is_true(builder.get_config_value(&GoogleConfigKey::SkipSignature));
        let store = builder.build().map_err(|_| ObjectFault::Unconfigured)?;
        check_credentials(store.credentials().as_ref(), is_public).await?;
        Ok(signing(store))
    }

    async fn az(&self, address: &ObjectAddress) -> Result<OpenedStore, ObjectFault> {
        let builder = MicrosoftAzureBuilder::from_env()
            .with_container_name(address.authority())
            .with_retry(retries())
            .with_http_connector(self.0.clone());
        let is_public = is_true(builder.get_config_value(&AzureConfigKey::SkipSignature));
        let store = builder.build().map_err(|_| ObjectFault::Unconfigured)?;
        check_credentials(store.credentials().as_ref(), is_public).await?;
        Ok(signing(store))
    }

    /// The host alone: what lies below it is the path, and no credentials are sent.
    fn web(&self, address: &ObjectAddress) -> Result<OpenedStore, ObjectFault> {
        let scheme = address.scheme();
        let store = HttpBuilder::new()
            .with_url(format!("{}://{}", scheme.as_str(), address.authority()))
            .with_retry(retries())
            .with_client_options(ClientOptions::new().with_allow_http(scheme == ObjectScheme::Http))
            .with_http_connector(self.0.clone())
            .build();
        Ok((Arc::new(store.map_err(|_| ObjectFault::Unconfigured)?), None))
    }
}

fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

/// A store that fails is asked again for half a minute.
fn retries() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(30), ..RetryConfig::default() }
}

async fn check_credentials<C>(
    credentials: &dyn CredentialProvider<Credential = C>,
    is_public: bool,
) -> Result<(), ObjectFault> {
    if is_public {
        return Ok(());
    }
    match tokio::time::timeout(CREDENTIALS_TIMEOUT, credentials.get_credential()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(ObjectFault::NoCredentials),
    }
}

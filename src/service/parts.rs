//! The object store of parts, where the operator names one.

use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use super::error::StartError;
use crate::config::PartOptions;
use crate::objects::{ObjectAddress, ObjectError, ObjectFault, ObjectFolder, ObjectScheme, ObjectStores};
use crate::ports::{PartObjects, StoreError};
use crate::store::OpenStore;

/// The object with the id of the store whose parts are below the prefix.
const OWNER: &str = "guardian-store";

/// The prefix of parts, as the store sees it.
struct PartFolder(ObjectFolder);

#[async_trait]
impl PartObjects for PartFolder {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.0.put(key, bytes).await.map_err(store_error)
    }

    async fn get(&self, key: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
        self.0.get(key, limit).await.map_err(store_error)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.0.delete(key).await.map_err(store_error)
    }
}

/// What is wrong with a store or its credentials can be mended: the job waits for it.
fn store_error(error: ObjectError) -> StoreError {
    match error.fault {
        ObjectFault::NotFound => StoreError::NotFound,
        ObjectFault::Occupied => StoreError::Conflict,
        ObjectFault::TooLarge(_) => StoreError::corrupt(error),
        _ => StoreError::Unavailable(Box::new(error)),
    }
}

/// Reads the address of parts.
///
/// # Errors
/// A message for the operator, without the address: it may hold credentials.
pub(super) fn part_address(options: &PartOptions) -> Result<Option<ObjectAddress>, StartError> {
    let wrong = |text: &str| StartError::Config(format!("--parts: {text}"));
    let Some(text) = options.parts.as_deref() else { return Ok(None) };
    let prefix = "write an address such as s3://bucket/prefix; gs:// and az:// work too";
    let address = ObjectAddress::parse(text).ok_or_else(|| wrong(prefix))?;
    let address = address.map_err(|error| wrong(&error.to_string()))?;
    match address.scheme() {
        ObjectScheme::S3 | ObjectScheme::Gs | ObjectScheme::Az => Ok(Some(address)),
        ObjectScheme::Https | ObjectScheme::Http | ObjectScheme::File => Err(wrong(prefix)),
    }
}

/// Lets the store keep parts at an address, after a check of what is there; none where the operator names none, and no part is
/// in an object store.
///
/// # Errors
/// When objects cannot be written, read and deleted there, or those of earlier parts are not there.
pub(super) async fn keep_parts(
    store: &OpenStore,
    address: Option<&ObjectAddress>,
) -> Result<Option<ObjectFolder>, StartError> {
    let wrong = |text: String| StartError::Config(format!("--parts: {text}"));
    let earlier = store.shared().any_part_object().await?;
    let Some(address) = address else {
        return match earlier {
            Some(_) => {
                Err(wrong("parts of this store are in an object store; name it as its other processes do".into()))
            }
            None => Ok(None),
        };
    };
    let stores = ObjectStores::new().map_err(|error| wrong(error.to_string()))?;
    let probe = format!("guardian-probe-{}", Uuid::now_v7());
    let opened = ObjectFolder::open(&stores, address, &probe).await;
    let folder = opened.map_err(|error| wrong(error.to_string()))?;
    if folder.keeps_versions() {
        tracing::warn!(
            address = %address,
            "the bucket keeps versions: parts of rejected and withdrawn releases stay there until its rules delete them"
        );
    }
    if let Some(object) = earlier {
        match folder.get(&object.key, object.bytes).await {
            Ok(_) => {}
            Err(ObjectError { fault: ObjectFault::NotFound, .. }) => {
                let detail = "the parts of this store are not below this address; name the one that has them, or copy them there";
                return Err(wrong(detail.to_owned()));
            }
            Err(error) => return Err(wrong(error.to_string())),
        }
    }
    let id = store.id().await?.to_string();
    let owner = folder.owner(OWNER, &id).await.map_err(|error| wrong(error.to_string()))?;
    if owner != id {
        let detail = format!(
            "the objects below this address belong to another store, as `{OWNER}` there says; choose another prefix, or delete \
             that object if its store is gone"
        );
        return Err(wrong(detail));
    }
    store.keep_parts_in(Arc::new(PartFolder(folder.clone())));
    Ok(Some(folder))
}

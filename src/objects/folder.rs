//! Small objects that are written once, below a prefix of the operator.

use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::signer::Method;
use object_store::{GetOptions, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use super::address::ObjectAddress;
use super::error::{ObjectError, ObjectFault};
use super::store::{ObjectPlace, ObjectStores};

/// The most bytes of the name of an owner.
const MAX_OWNER_BYTES: u64 = 256;

/// A prefix that one service keeps objects below.
#[derive(Clone, Debug)]
pub struct ObjectFolder {
    place: ObjectPlace,
    keeps_versions: bool,
}

impl ObjectFolder {
    /// Opens a prefix, writes an object below it, reads it and deletes it.
    ///
    /// # Errors
    /// Why the store does not take, give or delete the object.
    pub async fn open(stores: &ObjectStores, address: &ObjectAddress, probe: &str) -> Result<Self, ObjectError> {
        let mut folder = Self { place: stores.open(address).await?, keeps_versions: false };
        folder.keeps_versions = folder.create(probe, Bytes::from_static(b"probe")).await?;
        let read = folder.get(probe, 64).await;
        folder.delete(probe).await?;
        read?;
        Ok(folder)
    }

    /// Writes the name of an owner under `key`, unless one stands there, and says which does.
    ///
    /// # Errors
    /// Why the store does not take or give the object.
    pub async fn owner(&self, key: &str, owner: &str) -> Result<String, ObjectError> {
        match self.create(key, Bytes::copy_from_slice(owner.as_bytes())).await {
            Err(ObjectError { fault: ObjectFault::Occupied, .. }) => {
                let found = self.get(key, MAX_OWNER_BYTES).await?;
                Ok(String::from_utf8_lossy(&found).trim().to_owned())
            }
            answer => answer.map(|_| owner.to_owned()),
        }
    }

    /// Whether the store keeps what is deleted.
    #[must_use]
    pub const fn keeps_versions(&self) -> bool {
        self.keeps_versions
    }

    /// Writes an object. One with the same bytes is taken for it: the answer of the store may have been lost.
    ///
    /// # Errors
    /// `Occupied` by other bytes, or why the store does not take it.
    pub async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), ObjectError> {
        let bytes = Bytes::from(bytes);
        match self.create(key, bytes.clone()).await {
            Err(ObjectError { fault: ObjectFault::Occupied, address }) => match self.get(key, bytes.len() as u64).await
            {
                Ok(found) if found == bytes => Ok(()),
                Ok(_) | Err(ObjectError { fault: ObjectFault::TooLarge(_), .. }) => {
                    Err(ObjectError { fault: ObjectFault::Occupied, address })
                }
                Err(error) => Err(error),
            },
            answer => answer.map(drop),
        }
    }

    /// The bytes of an object of at most `limit` bytes.
    ///
    /// # Errors
    /// Why the store does not give it.
    pub async fn get(&self, key: &str, limit: u64) -> Result<Vec<u8>, ObjectError> {
        let place = self.at(key);
        let answer = place.ask(place.store.get_opts(&place.path, GetOptions::default())).await?;
        if answer.meta.size > limit {
            return Err(place.failed(ObjectFault::TooLarge(limit)));
        }
        Ok(place.ask(answer.bytes()).await?.into())
    }

    /// Deletes an object, which need not exist.
    ///
    /// # Errors
    /// Why the store does not delete it.
    pub async fn delete(&self, key: &str) -> Result<(), ObjectError> {
        let place = self.at(key);
        match place.ask(place.store.delete(&place.path)).await {
            Err(ObjectError { fault: ObjectFault::NotFound, .. }) => Ok(()),
            answer => answer,
        }
    }

    /// A link that reads an object without credentials until `lifetime` is over.
    ///
    /// # Errors
    /// Why the credentials of the environment sign none.
    pub async fn sign(&self, key: &str, lifetime: Duration) -> Result<String, ObjectError> {
        let place = self.at(key);
        let signer = place.signer.as_ref().ok_or_else(|| place.failed(ObjectFault::Unconfigured))?;
        Ok(place.ask(signer.signed_url(Method::GET, &place.path, lifetime)).await?.to_string())
    }

    /// Writes an object that must not be there, and says whether the store keeps versions.
    async fn create(&self, key: &str, bytes: Bytes) -> Result<bool, ObjectError> {
        let place = self.at(key);
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = place.ask(place.store.put_opts(&place.path, PutPayload::from_bytes(bytes), options)).await?;
        Ok(put.version.is_some_and(|version| version != "null"))
    }

    fn at(&self, key: &str) -> ObjectPlace {
        let ObjectPlace { address, path, .. } = &self.place;
        let path = path.parts().chain(Path::from_iter(key.split('/')).parts()).collect();
        ObjectPlace { address: address.join(key), path, ..self.place.clone() }
    }
}

//! A release in an object store: parts first, the manifest last. Without its manifest nothing is a release.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, PutMode, PutOptions, PutPayload};

use super::address::{ObjectAddress, ObjectScheme};
use super::error::{ObjectError, ObjectFault};
use super::store::{ObjectPlace, ObjectStores};

/// The bytes of a part of a large object. A store permits 10,000 parts: 80 GiB.
const BLOCK_BYTES: u64 = 8 << 20;
/// The name of what keeps others away while a release is written.
const CLAIM: &str = "guardian-publication";
/// The name of what makes the objects a release.
const MANIFEST: &str = "manifest.json";
/// The most objects that are looked at to find that a prefix is not empty.
const LISTED_OBJECTS: usize = 2;

/// A release that is being written below a prefix, which was empty.
pub struct ReleaseUpload {
    place: ObjectPlace,
    /// What was written, which goes if the release is not completed.
    written: Vec<Path>,
}

impl ReleaseUpload {
    /// Claims a prefix without objects.
    ///
    /// # Errors
    /// `Occupied`, `Claimed`, `NotWritable`, or why the store does not take the claim.
    pub async fn begin(stores: &ObjectStores, address: &ObjectAddress) -> Result<Self, ObjectError> {
        if !matches!(address.scheme(), ObjectScheme::S3 | ObjectScheme::Gs | ObjectScheme::Az) {
            return Err(ObjectError::new(address, ObjectFault::NotWritable));
        }
        let place = stores.open(address).await?;
        let mut upload = Self { place, written: Vec::new() };
        let claim = "a release is being written here; without manifest.json it was interrupted\n";
        upload.create(CLAIM, Bytes::from_static(claim.as_bytes())).await.map_err(|error| match error.fault {
            ObjectFault::Occupied => upload.place.failed(ObjectFault::Claimed),
            _ => error,
        })?;
        match upload.is_alone().await {
            Ok(true) => Ok(upload),
            Ok(false) => {
                let occupied = upload.place.failed(ObjectFault::Occupied);
                upload.abandon().await;
                Err(occupied)
            }
            Err(error) => {
                upload.abandon().await;
                Err(error)
            }
        }
    }

    /// Whether nothing but the claim has the prefix.
    async fn is_alone(&self) -> Result<bool, ObjectError> {
        let ObjectPlace { store, path, .. } = &self.place;
        let mut listed = store.list(Some(path));
        let claim = path.clone().join(CLAIM);
        for _ in 0..LISTED_OBJECTS {
            match self.place.ask(listed.try_next()).await? {
                Some(object) if object.location != claim => return Ok(false),
                Some(_) => {}
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Writes a file under its name, in blocks; overwrites nothing. `proceed` is asked before each block.
    ///
    /// # Errors
    /// Why the store does not take it; an upload of blocks is then aborted.
    pub async fn put<P>(&mut self, name: &str, file: &mut File, proceed: &P) -> Result<(), UploadError>
    where
        P: Fn(u64) -> std::io::Result<()> + Sync,
    {
        let first = block(file)?;
        proceed(first.len() as u64)?;
        if (first.len() as u64) < BLOCK_BYTES {
            return Ok(self.create(name, first).await?);
        }
        let path = below(&self.place.path, name);
        let store = Arc::clone(&self.place.store);
        let mut upload = self.place.ask(store.put_multipart_opts(&path, Default::default())).await?;
        let sent = self.send(upload.as_mut(), first, file, proceed).await;
        if sent.is_err() {
            // where this fails too, the rules of the bucket end the upload
            let _ = self.place.ask(upload.abort()).await;
            return sent;
        }
        self.written.push(path);
        Ok(())
    }

    async fn send<P>(
        &self,
        upload: &mut dyn MultipartUpload,
        first: Bytes,
        file: &mut File,
        proceed: &P,
    ) -> Result<(), UploadError>
    where
        P: Fn(u64) -> std::io::Result<()> + Sync,
    {
        let mut next = first;
        while !next.is_empty() {
            self.place.ask(upload.put_part(PutPayload::from_bytes(next))).await?;
            next = block(file)?;
            proceed(next.len() as u64)?;
        }
        self.place.ask(upload.complete()).await?;
        Ok(())
    }

    /// Writes the manifest, which makes the objects a release, and lifts the claim.
    ///
    /// # Errors
    /// Why the store does not take it. Unless it is `ManifestUnknown`, the objects are removed.
    pub async fn complete(mut self, manifest: Vec<u8>) -> Result<(), ObjectError> {
        let manifest = Bytes::from(manifest);
        if let Err(error) = self.create(MANIFEST, manifest.clone()).await {
            let address = self.place.address.join(MANIFEST);
            let path = self.place.path.clone().join(MANIFEST);
            let there = ObjectPlace { address, path, ..self.place.clone() };
            // the store may have taken it, and its answer was lost
            match there.read_whole(manifest.len() as u64).await {
                Ok(found) if found == manifest => {}
                Err(ObjectError { fault: ObjectFault::NotFound, .. }) => {
                    self.abandon().await;
                    return Err(error);
                }
                Ok(_) => return Err(error),
                Err(_) => return Err(self.place.failed(ObjectFault::ManifestUnknown)),
            }
        }
        let claim = self.place.path.clone().join(CLAIM);
        if let Err(error) = self.place.ask(delete(self.place.store.as_ref(), &claim)).await {
            tracing::warn!(%error, "the release is complete; {CLAIM} next to it could not be deleted");
        }
        Ok(())
    }

    /// Removes what was written.
    pub async fn abandon(self) {
        for path in self.written.iter().rev() {
            if let Err(error) = self.place.ask(delete(self.place.store.as_ref(), path)).await {
                tracing::warn!(%error, "objects of a release that was not completed could not be deleted");
                return;
            }
        }
    }

    /// Writes a small object that must not be there.
    async fn create(&mut self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        let path = below(&self.place.path, name);
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.place.ask(self.place.store.put_opts(&path, PutPayload::from_bytes(bytes), options)).await?;
        self.written.push(path);
        Ok(())
    }
}

/// The path of a file of a release, which may be in the folder of its part.
fn below(prefix: &Path, name: &str) -> Path {
    name.split('/').fold(prefix.clone(), Path::join)
}

async fn delete(store: &dyn ObjectStore, path: &Path) -> object_store::Result<()> {
    let one = futures_util::stream::iter([Ok(path.clone())]);
    store.delete_stream(Box::pin(one)).try_collect::<Vec<_>>().await.map(drop)
}

/// The next block of a file; empty at its end.
fn block(file: &mut File) -> std::io::Result<Bytes> {
    let mut block = Vec::new();
    file.by_ref().take(BLOCK_BYTES).read_to_end(&mut block)?;
    Ok(block.into())
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The store does not take it.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// It cannot be read, or the caller stopped.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_part_are_in_its_folder() {
        let prefix = Path::from("night/7");
        assert_eq!(below(&prefix, "t1.qi/00000.parquet").as_ref(), "night/7/t1.qi/00000.parquet");
        assert_eq!(below(&prefix, "t1.qi.csv").as_ref(), "night/7/t1.qi.csv");
    }
}

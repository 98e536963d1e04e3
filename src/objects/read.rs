use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::{Attribute, GetOptions, ObjectMeta};

use super::error::{ObjectError, ObjectFault};
use super::store::ObjectPlace;

/// The longest wait for an answer, with all repetitions.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(150);
/// The longest wait for more bytes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// An object whose reading has begun.
pub struct OpenedObject {
    place: ObjectPlace,
    meta: ObjectMeta,
    bytes: BoxStream<'static, object_store::Result<Bytes>>,
    read: u64,
    /// The media type that is kept with the object.
    pub content_type: Option<String>,
    /// The compression that is kept with the object.
    pub content_encoding: Option<String>,
}

impl ObjectPlace {
    /// Begins to read an object of at most `limit` bytes.
    ///
    /// # Errors
    /// Why the store does not give it.
    pub async fn read(&self, limit: u64) -> Result<OpenedObject, ObjectError> {
        let answer = self.ask(self.store.get_opts(&self.path, GetOptions::default())).await?;
        if answer.meta.size > limit {
            return Err(self.failed(ObjectFault::TooLarge(limit)));
        }
        let attribute = |of: Attribute| answer.attributes.get(&of).map(|value| value.as_ref().to_owned());
        Ok(OpenedObject {
            place: self.clone(),
            content_type: attribute(Attribute::ContentType),
            content_encoding: attribute(Attribute::ContentEncoding),
            meta: answer.meta.clone(),
            bytes: answer.into_stream(),
            read: 0,
        })
    }

    /// Reads a small object whole.
    ///
    /// # Errors
    /// Why the store does not give it.
    pub async fn read_whole(&self, limit: u64) -> Result<Vec<u8>, ObjectError> {
        let mut object = self.read(limit).await?;
        let mut whole = Vec::new();
        while let Some(bytes) = object.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }

    pub(super) async fn ask<T>(&self, answer: impl Future<Output = object_store::Result<T>>) -> Result<T, ObjectError> {
        match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(answer) => answer.map_err(|error| ObjectError::of_store(&self.address, &error)),
            Err(_elapsed) => Err(self.failed(ObjectFault::TooSlow)),
        }
    }

    /// A web server gives a file as it is written: bytes of two versions could have come.
    async fn check_unchanged(&self, meta: &ObjectMeta) -> Result<(), ObjectError> {
        let if_match = meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
        let options = GetOptions { head: true, if_match, ..GetOptions::default() };
        let now = self.ask(self.store.get_opts(&self.path, options)).await;
        let now = now.map_err(|error| match error.fault {
            ObjectFault::NotFound => self.failed(ObjectFault::Changed),
            _ => error,
        })?;
        let identity = |meta: &ObjectMeta| (meta.size, meta.e_tag.clone(), meta.last_modified, meta.version.clone());
        let is_same = identity(&now.meta) == identity(meta);
        if is_same { Ok(()) } else { Err(self.failed(ObjectFault::Changed)) }
    }

    pub(super) fn failed(&self, fault: ObjectFault) -> ObjectError {
        ObjectError::new(&self.address, fault)
    }
}

impl OpenedObject {
    /// The size of the object, in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.meta.size
    }

    /// The next bytes; none at the end, where the object is the one that the reading began with.
    ///
    /// # Errors
    /// `Changed` for another object; otherwise why the store does not give the bytes.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ObjectError> {
        let next = tokio::time::timeout(IDLE_TIMEOUT, self.bytes.next()).await;
        let next = next.map_err(|_elapsed| self.place.failed(ObjectFault::TooSlow))?;
        match next {
            Some(Ok(bytes)) => {
                self.read += bytes.len() as u64;
                if self.read > self.meta.size {
                    return Err(self.place.failed(ObjectFault::Failed));
                }
                Ok(Some(bytes))
            }
            Some(Err(error)) => {
                // a reading goes on after an interruption only if the object is the same
                self.place.check_unchanged(&self.meta).await?;
                let error = ObjectError::of_store(&self.place.address, &error);
                // a store that cannot go on in the middle of an object
                let is_cut = error.fault == ObjectFault::Failed;
                Err(if is_cut { self.place.failed(ObjectFault::Unreachable) } else { error })
            }
            None => {
                self.place.check_unchanged(&self.meta).await?;
                let is_whole = self.read == self.meta.size;
                if is_whole { Ok(None) } else { Err(self.place.failed(ObjectFault::Unreachable)) }
            }
        }
    }
}

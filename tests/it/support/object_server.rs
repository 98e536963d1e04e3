//! An S3 server in memory: the protocol, signatures included, is that of s3s; what it keeps, and where it fails, is ours.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::SystemTime;

use axum::Router;
use axum::error_handling::HandleError;
use axum::http::StatusCode;
use futures_util::{StreamExt, stream};
use s3s::auth::SimpleAuth;
use s3s::dto::*;
use s3s::service::S3ServiceBuilder;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::harness::guardian;

pub(crate) const ACCESS_KEY: &str = "AKIAOFTHETEST";
pub(crate) const SECRET_KEY: &str = "hidden-key-of-the-store";

/// An object, with its tag.
#[derive(Clone)]
struct StoredObject {
    bytes: Vec<u8>,
    tag: String,
    modified: SystemTime,
}

impl StoredObject {
    fn new(bytes: Vec<u8>) -> Self {
        let tag = hex::encode(Sha256::digest(&bytes));
        Self { bytes, tag, modified: SystemTime::now() }
    }
}

#[derive(Default)]
struct Contents {
    /// By bucket and key, with a slash between them.
    objects: BTreeMap<String, StoredObject>,
    uploads: BTreeMap<String, BTreeMap<i32, Vec<u8>>>,
    /// What was asked, such as `PUT bucket/key`.
    asked: Vec<String>,
    /// What is answered with an error.
    failing: Vec<String>,
    /// Takes the place of the object of this name as soon as its reading has begun.
    next: Option<(String, Vec<u8>)>,
}

impl Contents {
    fn ask(&mut self, asked: String) -> S3Result<()> {
        let fails = self.failing.iter().any(|denied| match denied.strip_suffix('*') {
            Some(beginning) => asked.starts_with(beginning),
            None => *denied == asked,
        });
        self.asked.push(asked);
        if fails { Err(s3_error!(AccessDenied, "the test says so")) } else { Ok(()) }
    }
}

/// The server, which ends when it is dropped.
pub(crate) struct ObjectServer {
    contents: Arc<Mutex<Contents>>,
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl ObjectServer {
    pub(crate) fn start() -> Self {
        let contents: Arc<Mutex<Contents>> = Arc::default();
        let mut builder = S3ServiceBuilder::new(MemoryStore(Arc::clone(&contents)));
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = HandleError::new(builder.build(), |_| async { StatusCode::INTERNAL_SERVER_ERROR });
        let (stop, stopped) = oneshot::channel();
        let (sender, address) = mpsc::channel();
        // of its own: tests with and without a runtime start it
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    served = axum::serve(listener, Router::new().fallback_service(service)) => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { contents, address: address.recv().unwrap(), _stop: stop }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap()
    }

    /// The command with credentials of the server.
    pub(crate) fn guardian(&self) -> Command {
        let mut command = guardian();
        self.known_to(&mut command);
        command
    }

    /// Gives a command the credentials of the server, and no others.
    pub(crate) fn known_to(&self, command: &mut Command) {
        let foreign = |name: &str| ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(foreign)) {
            command.env_remove(name);
        }
        command
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.address))
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    }

    pub(crate) fn put(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.contents().objects.insert(name.to_owned(), StoredObject::new(bytes.into()));
    }

    /// The bytes of an object.
    pub(crate) fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.contents().objects.get(name).map(|object| object.bytes.clone())
    }

    pub(crate) fn remove(&self, name: &str) {
        self.contents().objects.remove(name);
    }

    /// The names of all objects.
    pub(crate) fn names(&self) -> Vec<String> {
        self.contents().objects.keys().cloned().collect()
    }

    /// What was asked so far, such as `PUT bucket/key`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.contents().asked.clone()
    }

    /// The number of uploads that neither ended nor were aborted.
    pub(crate) fn open_uploads(&self) -> usize {
        self.contents().uploads.len()
    }

    /// Denies what is asked in these words from now on, or in words that begin so where they end in `*`.
    pub(crate) fn deny(&self, asked: &str) {
        self.contents().failing.push(asked.to_owned());
    }

    /// Denies nothing any more.
    pub(crate) fn permit(&self) {
        self.contents().failing.clear();
    }

    /// Puts other bytes in the place of an object once its reading has begun.
    pub(crate) fn change_while_read(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.contents().next = Some((name.to_owned(), bytes.into()));
    }
}

struct MemoryStore(Arc<Mutex<Contents>>);

async fn whole(body: Option<StreamingBlob>) -> Vec<u8> {
    let mut whole = Vec::new();
    let Some(mut body) = body else { return whole };
    while let Some(piece) = body.next().await {
        whole.extend_from_slice(&piece.unwrap());
    }
    whole
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap()
    }

    /// An object that has the wanted tag.
    fn find(&self, name: &str, if_match: Option<&IfMatch>) -> S3Result<StoredObject> {
        let found = self.lock().objects.get(name).cloned().ok_or_else(|| s3_error!(NoSuchKey))?;
        match if_match {
            Some(IfMatch::ETag(tag)) if *tag != ETag::Strong(found.tag.clone()) => Err(s3_error!(PreconditionFailed)),
            _ => Ok(found),
        }
    }
}

#[async_trait::async_trait]
impl S3 for MemoryStore {
    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let GetObjectInput { bucket, key, if_match, range, .. } = request.input;
        let name = format!("{bucket}/{key}");
        self.lock().ask(format!("GET {name}"))?;
        let found = self.find(&name, if_match.as_ref())?;
        assert!(range.is_none(), "nothing is interrupted here");
        let changed = self.lock().next.take_if(|(of, _)| *of == name);
        if let Some((_, bytes)) = changed {
            self.lock().objects.insert(name, StoredObject::new(bytes));
        }
        let pieces: Vec<_> =
            found.bytes.chunks(1 << 16).map(|piece| Ok::<_, std::io::Error>(piece.to_vec().into())).collect();
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(found.bytes.len() as i64),
            body: Some(StreamingBlob::wrap(stream::iter::<Vec<Result<bytes::Bytes, _>>>(pieces))),
            e_tag: Some(ETag::Strong(found.tag)),
            last_modified: Some(found.modified.into()),
            ..Default::default()
        }))
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let HeadObjectInput { bucket, key, if_match, .. } = request.input;
        let name = format!("{bucket}/{key}");
        self.lock().ask(format!("HEAD {name}"))?;
        let found = self.find(&name, if_match.as_ref())?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(found.bytes.len() as i64),
            e_tag: Some(ETag::Strong(found.tag)),
            last_modified: Some(found.modified.into()),
            ..Default::default()
        }))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let PutObjectInput { bucket, key, if_none_match, body, .. } = request.input;
        let (name, bytes) = (format!("{bucket}/{key}"), whole(body).await);
        let mut contents = self.lock();
        contents.ask(format!("PUT {name}"))?;
        assert!(matches!(if_none_match, Some(IfNoneMatch::Any)), "{name} could be overwritten");
        if contents.objects.contains_key(&name) {
            return Err(s3_error!(PreconditionFailed));
        }
        let stored = StoredObject::new(bytes);
        let tag = stored.tag.clone();
        contents.objects.insert(name, stored);
        Ok(S3Response::new(PutObjectOutput { e_tag: Some(ETag::Strong(tag)), ..Default::default() }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let CreateMultipartUploadInput { bucket, key, .. } = request.input;
        let name = format!("{bucket}/{key}");
        let mut contents = self.lock();
        contents.ask(format!("BEGIN {name}"))?;
        contents.uploads.insert(name.clone(), BTreeMap::new());
        let upload_id = Some(name.clone());
        Ok(S3Response::new(CreateMultipartUploadOutput { upload_id, ..Default::default() }))
    }

    async fn upload_part(&self, request: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
        let UploadPartInput { upload_id, part_number, body, .. } = request.input;
        let bytes = whole(body).await;
        let mut contents = self.lock();
        contents.ask(format!("PART {part_number} {upload_id}"))?;
        let tag = hex::encode(Sha256::digest(&bytes));
        let upload = contents.uploads.get_mut(&upload_id).ok_or_else(|| s3_error!(NoSuchUpload))?;
        upload.insert(part_number, bytes);
        Ok(S3Response::new(UploadPartOutput { e_tag: Some(ETag::Strong(tag)), ..Default::default() }))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let CompleteMultipartUploadInput { upload_id, .. } = request.input;
        let mut contents = self.lock();
        contents.ask(format!("END {upload_id}"))?;
        let parts = contents.uploads.remove(&upload_id).ok_or_else(|| s3_error!(NoSuchUpload))?;
        let stored = StoredObject::new(parts.into_values().flatten().collect());
        let e_tag = Some(ETag::Strong(stored.tag.clone()));
        contents.objects.insert(upload_id, stored);
        Ok(S3Response::new(CompleteMultipartUploadOutput { e_tag, ..Default::default() }))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.lock().uploads.remove(&request.input.upload_id).ok_or_else(|| s3_error!(NoSuchUpload))?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        let DeleteObjectInput { bucket, key, .. } = request.input;
        let name = format!("{bucket}/{key}");
        let mut contents = self.lock();
        contents.ask(format!("DELETE {name}"))?;
        contents.objects.remove(&name);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let ListObjectsV2Input { bucket, prefix, .. } = request.input;
        let mut kept = self.lock();
        let prefix = prefix.unwrap_or_default();
        kept.ask(format!("LIST {bucket}/{prefix}"))?;
        let listed = kept.objects.iter().filter_map(|(name, object)| {
            let key = name.strip_prefix(&format!("{bucket}/"))?.to_owned();
            key.starts_with(&prefix).then(|| Object {
                key: Some(key),
                size: Some(object.bytes.len() as i64),
                e_tag: Some(ETag::Strong(object.tag.clone())),
                last_modified: Some(object.modified.into()),
                ..Default::default()
            })
        });
        let contents: Vec<Object> = listed.collect();
        let key_count = Some(contents.len() as i32);
        let contents = Some(contents);
        Ok(S3Response::new(ListObjectsV2Output {
            key_count,
            contents,
            is_truncated: Some(false),
            ..Default::default()
        }))
    }
}

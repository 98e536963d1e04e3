//! Connections to object stores: HTTP/1.1, over TLS by rustls with the certificates of the system. They follow no redirect, so that
//! no host answers for another one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait for the head of an answer. A body of 8 MiB is sent before it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// The most bytes that are read of an answer without success.
const MAX_ERROR_BYTES: usize = 64 << 10;

type TlsClient = Client<HttpsConnector<TcpConnector>, HttpRequestBody>;

/// The connections of a process.
#[derive(Clone, Debug)]
pub(super) struct Connector(TlsClient);

impl Connector {
    /// Reads the certificates of the system.
    ///
    /// # Errors
    /// When TLS cannot be configured.
    pub(super) fn new() -> std::io::Result<Self> {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        let mut roots = rustls::RootCertStore::empty();
        // a machine without certificates can still speak to a store without TLS
        let found = rustls_native_certs::load_native_certs();
        let (known, _) = roots.add_parsable_certificates(found.certs);
        if known == 0 {
            tracing::warn!(
                "the system has no certificates, by which stores could be recognized; install ca-certificates"
            );
        }
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(std::io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let https = https.wrap_connector(tcp);
        Ok(Self(Client::builder(TokioExecutor::new()).build(https)))
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        Ok(HttpClient::new(StoreConnection { client: self.0.clone(), allows_http }))
    }
}

/// The connections to one store.
#[derive(Debug)]
struct StoreConnection {
    client: TlsClient,
    /// Whether the store may be spoken to without TLS.
    allows_http: bool,
}

#[async_trait]
impl HttpService for StoreConnection {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if !self.allows_http && request.uri().scheme_str() != Some("https") {
            return Err(HttpError::new(HttpErrorKind::Unknown, std::io::Error::other(PLAIN_HTTP)));
        }
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.client.request(request)).await;
        let answer = answer.map_err(|elapsed| HttpError::new(HttpErrorKind::Timeout, elapsed))?;
        let (head, body) = answer.map_err(failed)?.into_parts();
        let left = if head.status.is_success() { None } else { Some(MAX_ERROR_BYTES) };
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(StoreBody { body, left })))
    }
}

/// Why a request was not made.
pub(super) const PLAIN_HTTP: &str = "the store is to be spoken to without TLS";

fn failed(error: hyper_util::client::legacy::Error) -> HttpError {
    let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
    HttpError::new(kind, error)
}

/// The body of an answer, cut where it is a mere reason.
struct StoreBody<B> {
    body: B,
    /// The bytes that are still read; all, where it says nothing.
    left: Option<usize>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for StoreBody<B>
where
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let Self { body, left } = self.get_mut();
        if *left == Some(0) {
            return Poll::Ready(None);
        }
        Pin::new(body).poll_frame(cx).map(|frame| {
            let frame = frame?.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
            let (Some(left), Ok(frame)) = (left, &frame) else { return Some(frame) };
            let bytes = frame.data_ref().cloned().unwrap_or_default();
            let bytes = bytes.slice(..bytes.len().min(*left));
            *left -= bytes.len();
            Some(Ok(Frame::data(bytes)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0) || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.left.is_some() { SizeHint::default() } else { self.body.size_hint() }
    }
}

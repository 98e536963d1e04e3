//! Accepts connections up to a limit, with a timeout for the head of a request.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// The longest time for the head of a request on a free connection.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause after a failed accept, such as without free file descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Serves connections until `stopping`, then finishes the open ones.
pub(super) async fn serve(listener: TcpListener, router: Router, most: u32, stopping: CancellationToken) {
    // HTTP/1 only: version detection has no timeout for silent clients
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_HEAD_TIMEOUT);
    let places = Arc::new(Semaphore::new(most as usize));
    let open_connections = GracefulShutdown::new();
    let next = async || {
        // the semaphore is never closed; new connections wait in the queue of the system
        let place = Arc::clone(&places).acquire_owned().await.ok();
        (place, accept(&listener).await)
    };
    while let Some((place, (stream, from))) = stopping.run_until_cancelled(next()).await {
        tracing::trace!("connection accepted");
        // answers are short and must not wait
        let _ = stream.set_nodelay(true);
        let service = router.clone().map_request(move |mut request: Request<_>| {
            request.extensions_mut().insert(ConnectInfo(from));
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = open_connections.watch(connection);
        tokio::spawn(async move {
            // a disconnecting client is no error of the service
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    open_connections.shutdown().await;
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => {
                tracing::error!(error = %error, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
}

fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

//! Connections: so many at a time, and none that sends nothing for ever.

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

/// The head of a request must have come so long after its connection was free for it.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// When connections cannot be accepted, as when files have run out, the next try waits so long.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Serves connections until `stopping`, then those under way to their ends.
pub(super) async fn serve(listener: TcpListener, router: Router, most: u32, stopping: CancellationToken) {
    // told outright: looking for the version first would have no end for who sends nothing
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_HEAD_TIMEOUT);
    let places = Arc::new(Semaphore::new(most as usize));
    let under_way = GracefulShutdown::new();
    let next = async || {
        // never closed; who waits here waits in the system's queue
        let place = Arc::clone(&places).acquire_owned().await.ok();
        (place, accept(&listener).await)
    };
    while let Some((place, (stream, from))) = stopping.run_until_cancelled(next()).await {
        tracing::trace!("connection accepted");
        // answers are short and wait for nothing
        let _ = stream.set_nodelay(true);
        let service = router.clone().map_request(move |mut request: Request<_>| {
            request.extensions_mut().insert(ConnectInfo(from));
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = under_way.watch(connection);
        tokio::spawn(async move {
            // a client that breaks off is none of our faults
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    under_way.shutdown().await;
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => {
                tracing::error!(error = %error, "no connection can be accepted");
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
}

fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

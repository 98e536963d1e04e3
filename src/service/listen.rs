//! Accepts connections so that no client can keep others out.
//!
//! A silent client loses its connection when another one needs the place, and one that hardly reads its answer loses it after a
//! while. An address has at most its share of the places.

use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::activity::ConnectionActivity;
use super::client_stream::{ClientStream, RefusedRequests};
use crate::api;

/// The longest time for the head of a request on a free connection.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause after a failed accept, such as without free file descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The pause between two looks for a connection that can be closed, while all are busy.
const EVICTION_INTERVAL: Duration = Duration::from_millis(50);
/// The least time for a new connection to send the head of a request, and for the last bytes of an answer to leave.
const MIN_REST: Duration = Duration::from_secs(1);

/// The limits of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    /// Connections at a time.
    pub(super) connections: u32,
    /// Connections of one address at a time.
    pub(super) per_address: u32,
    /// The longest wait for a client to take the next `min_bytes` of an answer.
    pub(super) unread: Duration,
    /// The bytes of an answer that a client must take within `unread`.
    pub(super) min_bytes: u64,
}

/// Serves connections until `stopping`, then finishes the open ones.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stopping: CancellationToken,
) {
    // HTTP/1 only: version detection has no timeout for silent clients
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_HEAD_TIMEOUT);
    let places = Places::new(limits);
    let open_connections = GracefulShutdown::new();
    while let Some((stream, from)) = stopping.run_until_cancelled(accept(&listener)).await {
        tracing::trace!("connection accepted");
        let Some(place) = stopping.run_until_cancelled(places.take(from.ip())).await else { break };
        // an address with more than its share is cut off without a word: an answer would need a place
        let Some(place) = place else { continue };
        // answers are short and must not wait
        let _ = stream.set_nodelay(true);
        let (activity, evicted) = (place.activity(), place.evicted());
        let refused = RefusedRequests { router: router.clone(), from };
        let stream = ClientStream::new(stream, limits, activity.clone(), refused);
        let service = router.clone().map_request(move |mut request: Request<_>| {
            request.extensions_mut().insert(ConnectInfo(from));
            request
        });
        let service = tower::service_fn(move |request: Request<_>| {
            let busy = activity.begin();
            let answered = service.clone().oneshot(request);
            async move { answered.await.map(|response| api::hold_until_sent(response, busy)) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = open_connections.watch(connection.into_owned());
        tokio::spawn(async move {
            let connection = pin!(connection);
            // a disconnecting client is no error of the service
            let _ = evicted.run_until_cancelled(connection).await;
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

/// The places of connections.
#[derive(Clone)]
struct Places {
    limits: ConnectionLimits,
    free: Arc<Semaphore>,
    open: Arc<Mutex<OpenConnections>>,
    /// The number of the next connection.
    next: Arc<AtomicU64>,
    started: Instant,
}

#[derive(Default)]
struct OpenConnections {
    by_address: AHashMap<IpAddr, u32>,
    by_number: AHashMap<u64, OpenConnection>,
}

struct OpenConnection {
    activity: ConnectionActivity,
    evicted: CancellationToken,
}

impl Places {
    fn new(limits: ConnectionLimits) -> Self {
        let free = Arc::new(Semaphore::new(limits.connections as usize));
        Self { limits, free, open: Arc::default(), next: Arc::default(), started: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection, as soon as one is free or can be freed; `None` if its address has its share.
    async fn take(&self, address: IpAddr) -> Option<ConnectionPlace> {
        {
            let mut open = self.lock();
            let taken = open.by_address.entry(address).or_default();
            if *taken >= self.limits.per_address {
                return None;
            }
            *taken += 1;
        }
        let shared = AddressShare { places: self.clone(), address };
        loop {
            let turn = tokio::time::timeout(EVICTION_INTERVAL, Arc::clone(&self.free).acquire_owned());
            // the first look is without a wait
            let place = match Arc::clone(&self.free).try_acquire_owned() {
                Ok(place) => Some(place),
                Err(_none_free) => {
                    self.evict();
                    // the semaphore is never closed
                    turn.await.ok().and_then(Result::ok)
                }
            };
            let Some(place) = place else { continue };
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let activity = ConnectionActivity::new(self.started);
            let connection = OpenConnection { activity, evicted: CancellationToken::new() };
            let place = ConnectionPlace {
                activity: connection.activity.clone(),
                evicted: connection.evicted.clone(),
                number,
                _place: place,
                share: shared,
            };
            self.lock().by_number.insert(number, connection);
            return Some(place);
        }
    }

    /// Closes the connection that has rested longest. Those with a request are left alone, and so are new ones.
    fn evict(&self) {
        let open = self.lock();
        let waiting = open.by_number.values().filter(|of| !of.evicted.is_cancelled());
        let resting = waiting.map(|of| (of.activity.rest(), of)).filter(|(rest, _)| *rest >= MIN_REST);
        if let Some((_, connection)) = resting.max_by_key(|(rest, _)| *rest) {
            connection.evicted.cancel();
        }
    }
}

/// A connection in the count of its address.
struct AddressShare {
    places: Places,
    address: IpAddr,
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        if let Entry::Occupied(mut taken) = self.places.lock().by_address.entry(self.address) {
            *taken.get_mut() -= 1;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }
}

/// The place of a connection, until it is dropped.
struct ConnectionPlace {
    activity: ConnectionActivity,
    evicted: CancellationToken,
    number: u64,
    _place: OwnedSemaphorePermit,
    share: AddressShare,
}

impl ConnectionPlace {
    fn activity(&self) -> ConnectionActivity {
        self.activity.clone()
    }

    fn evicted(&self) -> CancellationToken {
        self.evicted.clone()
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.share.places.lock().by_number.remove(&self.number);
    }
}

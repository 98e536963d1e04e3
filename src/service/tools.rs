//! The separate address of metrics and health.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::error::StartError;
use crate::api::{self, Readiness};
use crate::clock::Clock;
use crate::telemetry::Recorder;

/// The pause between two aggregations of histograms.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(20);

/// The listener of metrics and health.
pub(super) struct AdminListener {
    listener: TcpListener,
    address: SocketAddr,
    recorder: Recorder,
}

impl AdminListener {
    /// Binds the address and starts the recorder.
    pub(super) async fn bind(address: SocketAddr) -> Result<Self, StartError> {
        let refused = |error: io::Error| StartError::Listen(address, error);
        let recorder = Recorder::install().map_err(|error| StartError::Config(error.to_string()))?;
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address, recorder })
    }

    /// The bound address.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stopping`.
    pub(super) fn serve(self, readiness: Readiness, clock: Clock, stopping: CancellationToken) {
        let Self { listener, recorder, .. } = self;
        let routes = api::admin_router(readiness, clock, recorder.clone());
        let served = axum::serve(listener, routes).with_graceful_shutdown(stopping.clone().cancelled_owned());
        tokio::spawn(served.into_future());
        tokio::spawn(async move {
            while tokio::time::timeout(UPKEEP_INTERVAL, stopping.cancelled()).await.is_err() {
                recorder.tidy();
            }
        });
    }
}

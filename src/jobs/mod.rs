//! The durable queue and its workers: leases, progress, cancellation.

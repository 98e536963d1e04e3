//! Workers: leases, progress, cancellation, and the publisher that runs one job.
//!
//! A job moves `queued -> running -> succeeded | refused | failed | cancelled`. Running means that a worker holds a lease: a
//! random token with an end. Every write of a worker carries the token, or its attempt, and is refused once the lease is lost, so
//! that of two workers that believe they have a job only one can end it. An expired lease puts the job back into the queue, a
//! bounded number of times and each time for longer. A job's wrapped key exists exactly until the job ends.

mod publish_run;
mod publisher;
mod runner;
mod turn;
mod worker;

pub use publisher::Publisher;
pub use runner::{JobAssignment, JobReservation, JobRunner, RunCompletion, RunError, WorkerConfig};
pub use worker::{Workers, WorkersHandle};

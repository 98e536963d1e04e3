//! What callers can do, below HTTP: uploads, jobs, plans, series, named documents, the life of releases.

mod encrypt_datasets;
mod idempotency;
mod lifecycle;
mod originals;
mod policies;
mod profiles;
mod series;
mod service;
mod statements;
mod taxonomies;
pub(crate) mod upload;

pub use encrypt_datasets::encrypt_datasets;
pub use idempotency::{IDEMPOTENCY_KEY_LIFETIME, IdempotencyClaim, IdempotencyOutcome};
pub use profiles::ValueCount;
pub use service::{AppService, ReleaseKeySource, unauthenticated};
pub use upload::{UploadRequest, upload};

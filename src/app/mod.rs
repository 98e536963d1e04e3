//! What callers can do, below HTTP: uploads, jobs, plans, series, named documents, the life of releases.

mod blocking;
mod encrypt_datasets;
mod evidence;
mod former_series;
mod idempotency;
mod lifecycle;
mod named_documents;
mod originals;
mod people;
mod plans;
mod populations;
mod profiles;
mod record_key;
mod relate;
mod remedies;
mod republication;
mod reuse;
mod series;
mod service;
mod statements;
mod suggestions;
mod unknown_names;
pub(crate) mod upload;

pub(crate) use blocking::{engine_problem, run_blocking, run_engine};
pub use encrypt_datasets::encrypt_datasets;
pub use evidence::{collect_missing_evidence, evidence_of};
pub use former_series::adopt_series;
pub use idempotency::{IDEMPOTENCY_KEY_LIFETIME, IdempotencyClaim, IdempotencyOutcome};
pub use lifecycle::ReleaseHistory;
pub use people::{CommonPersonCount, EarlierPublication, identity_warning};
pub use populations::{PopulationPage, RecordedStatements};
pub use profiles::{ValueCount, ValuePage};
pub use relate::{RelateError, RelatedPlaces, populations_of, relate_published};
pub(crate) use remedies::read_request;
pub use service::{AppService, ReleaseKeySource, unauthenticated};
pub use upload::{KeptContributions, Upload, UploadRequest};

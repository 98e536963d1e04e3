use std::sync::Arc;

use super::api_keys::ApiKeyStore;
use super::chains::ChainStore;
use super::datasets::DatasetStore;
use super::disclosures::DisclosureStore;
use super::former_series::FormerSeriesStore;
use super::idempotency::IdempotencyStore;
use super::lifecycle::LifecycleStore;
use super::named_documents::NamedDocumentStore;
use super::parts::PartChunkStore;
use super::people::PeopleStore;
use super::portable::LedgerTransferStore;
use super::queue::JobQueue;
use super::queue_stats::QueueStatsStore;
use super::releases::ReleaseStore;
use super::store_metadata::MetadataStore;
use super::tenants::TenantStore;

/// Declares a trait that everything with these parts has.
macro_rules! whole {
    ($(#[$doc:meta])* $name:ident: $($part:ident),*) => {
        $(#[$doc])*
        pub trait $name: $($part +)* {}

        impl<T: $($part +)*> $name for T {}
    };
}

whole! {
    /// Everything that the service keeps. One backend implements all of it, because a commit spans jobs, releases and the ledger.
    Store: DatasetStore, JobQueue, PartChunkStore, ReleaseStore, DisclosureStore, LedgerTransferStore, ApiKeyStore,
    IdempotencyStore, LifecycleStore, FormerSeriesStore, NamedDocumentStore, PeopleStore, ChainStore, TenantStore, QueueStatsStore,
    MetadataStore
}

/// A store as it is shared.
pub type SharedStore = Arc<dyn Store>;

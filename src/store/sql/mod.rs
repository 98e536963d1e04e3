//! The statements, in text that SQLite and Postgres both take: numbered binds, times bound from the service's clock, CAST
//! where a type must be said. Each begins with its name, which shows in the server's own lists.

pub(super) mod chains;
pub(super) mod datasets;
pub(super) mod disclosures;
pub(super) mod former_series;
pub(super) mod keys;
pub(super) mod life;
pub(super) mod parts;
pub(super) mod people;
pub(super) mod pins;
pub(super) mod policies;
pub(super) mod portable;
pub(super) mod pulse;
pub(super) mod queue;
pub(super) mod releases;
pub(super) mod repeats;
pub(super) mod series;
pub(super) mod taxonomies;
pub(super) mod tenants;

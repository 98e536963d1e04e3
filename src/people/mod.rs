//! Who the rows of a table speak of: key systems and folds, the evidence that remains of rows, and its comparison.
//!
//! Absence of evidence proves nothing: two tables speak of different people only if person keys of one key system were
//! compared, or an authorized person declares it. One common person is an overlap.

mod attributes;
mod blocks;
mod cells;
mod collect;
mod contributions;
mod counter;
mod coverage;
mod evidence;
mod fold;
mod hash;
mod judge;
mod keys;
mod look;
mod order_ties;
mod population;
mod refusal;
mod selection;
mod signatures;
mod sorter;
mod statement;
mod surprise;
#[cfg(test)]
mod tests;

pub use attributes::{UnknownAttributesError, attribute_names, columns_of_names};
pub use blocks::Block;
pub use collect::{EvidenceCollector, EvidenceError, KeyLayout};
pub use contributions::{BoundedTable, ContributionBound, ContributionCounts, ContributionError, ContributionSpool};
pub use coverage::{Coverage, CoverageGroup, CoverageId, LiveCoverage};
pub use evidence::{Evidence, Resemblance, SystemEvidence};
pub use fold::Fold;
#[cfg(test)]
pub(crate) use hash::labelled;
pub use hash::{KeyedHash, KeyedHasher};
pub use judge::{Admission, Basis, JudgedRows, PeopleClaim, PeopleRefusal, Relation, UnrelatedPolicy, judge, relate};
pub use keys::{SystemColumns, person_hashes};
pub use look::{LedgerView, Look, look};
pub use population::{
    KeySystem, NamedColumns, PersonColumns, Population, PopulationError, PopulationKey, PopulationRegistry,
    UploadPersonError,
};
pub use refusal::{PersonCounts, RefusalDocument, RefusedJob, Remedy};
pub use signatures::{MIN_FOUND_TWINS, Signature, SignatureSample};
pub(crate) use sorter::ExternalSorter;
pub use statement::{Place, PlaceError, Separation, SeparationStatement};
pub use surprise::UNITS_PER_BIT;

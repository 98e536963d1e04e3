//! What is published, as data: the one shape that every method returns. No functions of methods.
//!
//! A [`Publication`] describes the tables and their parts; the cells stand in [`Contents`] until they are written. So the
//! same description serves the method that makes a release, the audit that re-reads it, and a manifest read back.

mod contents;
mod guarantee;
mod ratio;
mod rule;
mod sequence;
mod table;
mod thresholds;
mod unit;
mod witness;

pub use contents::{BucketColumn, Contents, PartContents, PublishedBytes};
pub use guarantee::{Divergence, Ground, Guarantee, Prior, RhoMode};
pub use ratio::{NotARatio, Ratio};
pub use rule::{Because, HeldBy, Origin, RuleStanding, StatedTaxonomy, StatedThresholds, SubmittedRule, Uninformative};
pub use sequence::{
    Beside, Conditions, EarlierColumn, EarlierRelease, Exclusion, KEY as ROW_KEY, OnJoin, Records, Reference,
    Requirement, RowsOf, SensitiveValue, Sequence, Subsets, Told, XyMeasure, reference_parts, reference_text,
};
pub use table::{
    BreachKind, Cells, Decomposition, Part, Particulars, Protected, PublishedColumn, PublishedTable, RowMeaning, Seal,
    SlicedDiversity, Standing, TableName, Tellable, kind_of_sealed,
};
pub use thresholds::{NamedThresholds, Thresholds, ThresholdsName};
pub use unit::{Promised, Unit};
pub use witness::{TableWitness, Witness};

/// The outcome of a method: the published tables and how each rule stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The published tables, in the order of their names.
    pub tables: Vec<PublishedTable>,
    /// How each rule stands, the submitted ones in their order.
    pub rules: Vec<RuleStanding>,
    /// What only some methods have to say.
    pub particulars: Particulars,
    /// Rows that appear in no table. Internal: never in a manifest.
    pub suppressed: u64,
}

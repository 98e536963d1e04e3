use crate::microdata::{AttributeType, ColumnProfile};
use crate::publication::Unit;

/// Where a document comes from.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum DocumentSource {
    /// A request: the document names its dataset.
    #[default]
    Http,
    /// A dry run: as a request, and tables may be proposed.
    Plan,
    /// A file for a local table: its member `dataset` has no effect.
    CommandLine,
    /// As the command line, for a release whose key the caller chooses.
    Reproduction,
    /// A dry run of the command line: as the command line, and tables may be proposed.
    LocalPlan,
    /// A policy: its tables are not known yet.
    Policy,
}

impl DocumentSource {
    /// Whether the document is for a local table, without a service.
    pub(in crate::spec) const fn is_local(self) -> bool {
        matches!(self, Self::CommandLine | Self::Reproduction | Self::LocalPlan)
    }

    /// Whether the document is for a dry run.
    pub(in crate::spec) const fn is_plan(self) -> bool {
        matches!(self, Self::Plan | Self::LocalPlan)
    }
}

/// The facts of a dataset that a document is checked against.
#[derive(Clone, Copy, Debug)]
pub struct DatasetSchema<'a> {
    /// The columns, in the dataset's order.
    pub columns: &'a [ColumnFacts],
    /// The columns that identify records or persons. Each is an identifier.
    pub keys: &'a [String],
    /// The unit of protection. The column that identifies subjects is an identifier.
    pub unit: &'a Unit,
}

/// The facts of a column that a document is checked against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnFacts {
    /// The name, unique in the dataset.
    pub name: String,
    /// The type of its values.
    pub kind: AttributeType,
    /// Whether it was detected as an identifier.
    pub identifier: bool,
    /// Whether more than half of its values are distinct.
    pub mostly_distinct: bool,
    /// Whether it has more distinct values than a job can load.
    pub overflow: bool,
    /// How many distinct values it has, a missing one counted as one, where that is known.
    pub distinct: Option<u64>,
    /// The largest feasible l, where it is known: rows divided by the count of the most frequent value, rounded down.
    pub largest_l: Option<u64>,
    /// Whether rows of persons were chosen by it, or by a column that says what it holds.
    pub chose_rows: bool,
}

impl ColumnFacts {
    /// A column of which only the name is known.
    #[must_use]
    pub fn unseen(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: AttributeType::Text,
            identifier: false,
            mostly_distinct: false,
            overflow: false,
            distinct: None,
            largest_l: None,
            chose_rows: false,
        }
    }

    /// The facts in the profile of a column, in a table with this number of rows.
    #[must_use]
    pub fn new(profile: &ColumnProfile, rows: u64) -> Self {
        Self { largest_l: rows.checked_div(profile.top), ..profile.into() }
    }
}

impl From<&ColumnProfile> for ColumnFacts {
    fn from(profile: &ColumnProfile) -> Self {
        Self {
            name: profile.name.clone(),
            kind: profile.kind,
            identifier: profile.identifier,
            mostly_distinct: profile.mostly_distinct,
            overflow: profile.overflow(),
            distinct: profile.codes(),
            largest_l: None,
            chose_rows: profile.chose_rows,
        }
    }
}

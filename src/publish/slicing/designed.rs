//! Sliced tables of a design, and the proof that a table cannot be sliced.

use super::plan::SlicingPlan;
use super::sliced::{SlicedTable, SlicingError};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Table};
use crate::problem::{Fault, Kind};
use crate::publication::TableGuard;
use crate::publish::assign::BucketAssignment;
use crate::publish::error::PlanError;
use crate::publish::generalize::CountedRows;

/// A sliced table whose columns are decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlicedDesign {
    /// Request that the columns were decided from.
    pub plan: SlicingPlan,
    /// Attributes of each column, those with the sensitive attribute last.
    pub columns: Vec<AttrSet>,
    /// Guards that every bucket keeps; empty if the table as a whole keeps the guarantee.
    pub guards: Vec<TableGuard>,
}

impl SlicedDesign {
    /// Decides the bucket of each row of `table`, and the boxes of generalized columns.
    ///
    /// # Errors
    /// [`SlicingError`] if the whole table violates the guarantee, which the plan has ruled out, or on cancellation.
    pub(in crate::publish) fn draw(&self, table: &Table, control: &Control) -> Result<SlicedTable, SlicingError> {
        self.plan.slice_columns(table, self.columns.clone(), table, control)
    }

    /// Decides the bucket of each row of a table whose rows stand for several. The columns are exact and share no attribute, splits
    /// are strict, and every bucket keeps the guarantee. There are no buckets, but a proof, if the whole table violates it.
    ///
    /// # Errors
    /// [`PlanError`] on cancellation.
    pub fn counted_buckets(
        &self,
        rows: CountedRows<'_>,
        control: &Control,
    ) -> Result<Result<BucketAssignment, WholeTableViolation>, PlanError> {
        match self.plan.counted_buckets(rows, &self.columns, control) {
            Ok(made) => Ok(Ok(made)),
            Err(error) => Ok(Err(WholeTableViolation::from_error(error, &self.columns, self.plan.sensitive)?)),
        }
    }
}

/// Rows of the whole table among which one sensitive value is too frequent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WholeTableViolation {
    /// Attributes in which the rows are equal.
    pub known: AttrSet,
    /// The sensitive attribute.
    pub sensitive: Attr,
    /// Number of rows with the most frequent value, where its share is largest.
    pub most: u64,
    /// Number of all these rows.
    pub of: u64,
    /// Whether the share follows from the join of several columns. The numbers are then weights of combinations, not rows.
    pub joined: bool,
}

impl WholeTableViolation {
    /// The proof in these columns, the one with the sensitive attribute last.
    ///
    /// # Errors
    /// Any other error, as it is.
    pub(super) fn from_error(error: SlicingError, columns: &[AttrSet], sensitive: Attr) -> Result<Self, SlicingError> {
        match error {
            SlicingError::NotDiverse { most, of } => {
                let known = columns.last().copied().unwrap_or_default().without(sensitive);
                Ok(Self { known, sensitive, most, of, joined: false })
            }
            SlicingError::NotDiverseTogether { known, most, of } => {
                Ok(Self { known, sensitive, most, of, joined: true })
            }
            other => Err(other),
        }
    }

    /// The largest l that is left, without excluded values.
    pub(in crate::publish) const fn largest_l(&self) -> u64 {
        self.of / if self.most == 0 { 1 } else { self.most }
    }

    /// The fault with the proof. `names` are the dataset names of the attributes.
    pub(in crate::publish) fn fault(&self, names: &[String]) -> Fault {
        let Self { known, sensitive, most, of, joined } = *self;
        let sensitive = names[sensitive.index()].as_str();
        let known: Vec<&str> = known.iter().map(|attr| names[attr.index()].as_str()).collect();
        let among = if known.is_empty() { String::new() } else { format!(" that are alike in {}", known.join(", ")) };
        let largest = self.largest_l();
        let found = match joined {
            false => format!("of {of} rows{among} {most} have one value of {sensitive}"),
            true => format!(
                "an adversary who knows {} and joins the columns infers one value of {sensitive} with the probability {most}/{of}",
                known.join(", ")
            ),
        };
        let apart = match joined || known.is_empty() {
            true => String::new(),
            false => format!(
                "; with {sensitive} in a column of its own, as \"sensitive_width\": 1 puts it, its values alone decide"
            ),
        };
        let detail =
            format!("not even the whole table as one bucket holds: {found}, so that l is at most {largest}{apart}");
        let proof = serde_json::json!({
            "quasi_identifiers": known, "sensitive": [sensitive], "posterior": {"count": most, "of": of}, "largest_l": largest,
        });
        Fault::new("/method/guarantee", Kind::InfeasibleRoot, detail).with("proof", proof)
    }
}

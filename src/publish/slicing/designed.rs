//! Sliced tables in a design, and why there is none.

use super::SlicingPlan;
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publication::{TableKind, kind_of_guarding};
use crate::publish::DesignedTable;
use crate::publish::decompose::DecompositionRole;

/// Rows of the whole table among which a sensitive value is too frequent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WholeTableViolation {
    /// The attributes in which the rows are alike.
    pub beside: AttrSet,
    /// The sensitive attribute.
    pub sensitive: Attr,
    /// Rows with its most frequent value, where its share is largest.
    pub most: u64,
    /// The rows among which they are.
    pub of: u64,
    /// Whether that is what is concluded from several columns together: weights of combinations then, and no rows.
    pub together: bool,
}

impl WholeTableViolation {
    /// Why nothing can be sliced, with the proof; `names` are those of the attributes.
    pub(in crate::publish) fn fault(&self, names: &[String]) -> Fault {
        let Self { beside, sensitive, most, of, together } = *self;
        let sensitive = names[sensitive.index()].as_str();
        let beside: Vec<&str> = beside.iter().map(|attr| names[attr.index()].as_str()).collect();
        let among = if beside.is_empty() { String::new() } else { format!(" that are alike in {}", beside.join(", ")) };
        let largest = of / most.max(1);
        let found = match together {
            false => format!("of {of} rows{among} {most} have one value of {sensitive}"),
            true => format!(
                "whoever knows {} and puts the columns together finds one value of {sensitive} with the probability {most}/{of}",
                beside.join(", ")
            ),
        };
        let detail = format!("not even the whole table as one bucket holds: {found}, so that l is at most {largest}");
        let proof = serde_json::json!({
            "quasi_identifiers": beside, "sensitive": [sensitive], "posterior": {"count": most, "of": of}, "largest_l": largest,
        });
        Fault::new("/method/guarantee", Kind::InfeasibleRoot, detail).with("proof", proof)
    }
}

impl DesignedTable {
    /// How it is sliced, if it is.
    #[must_use]
    pub fn sliced(&self) -> Option<&SlicingPlan> {
        self.bucketized.as_ref().and_then(|bucketized| bucketized.sliced.as_ref())
    }

    /// Kind of the published table.
    #[must_use]
    pub fn kind(&self) -> TableKind {
        if let Some(decomposed) = &self.decomposed {
            return match decomposed.role {
                DecompositionRole::Buckets => TableKind::Decomposed,
                DecompositionRole::Joint => TableKind::Sensitive,
            };
        }
        match (&self.bucketized, self.sliced()) {
            (None, _) if self.generalized.is_some() || self.cut.as_ref().is_some_and(|cut| cut.is_generalized()) => {
                TableKind::Generalized
            }
            (None, _) => TableKind::Marginal,
            (Some(_), None) => TableKind::Bucketized,
            (Some(bucketized), Some(_)) if bucketized.guards.is_empty() => TableKind::Sliced,
            (Some(bucketized), Some(slicing)) => {
                kind_of_guarding(slicing.decided().iter().copied(), &bucketized.guards)
            }
        }
    }

    /// The attributes that stand apart from what is known.
    #[must_use]
    pub fn sensitive(&self) -> Option<AttrSet> {
        if let Some(decomposed) = &self.decomposed {
            return (decomposed.role == DecompositionRole::Buckets).then(|| decomposed.sensitive());
        }
        let Some(bucketized) = &self.bucketized else {
            return self.generalized.as_ref().map(|generalized| self.attributes.minus(generalized.quasi_identifiers));
        };
        Some(self.sliced().map_or(bucketized.sensitive(), |slicing| AttrSet::one(slicing.sensitive)))
    }

    /// How often each row is looked at when it is made.
    #[must_use]
    pub fn passes(&self) -> u64 {
        if let Some(decomposed) =
            self.decomposed.as_ref().filter(|decomposed| decomposed.role == DecompositionRole::Buckets)
        {
            return 1 + decomposed.l.len() as u64;
        }
        match (&self.bucketized, self.sliced()) {
            (None, _) => 1 + u64::from(self.generalized.is_some()),
            // rows are assigned, and then each part is made
            (Some(bucketized), None) => 2 + bucketized.parts.len() as u64,
            (Some(_), Some(slicing)) => 1 + slicing.decided().len() as u64,
        }
    }
}

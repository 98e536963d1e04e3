use std::collections::BTreeSet;

use crate::publication::Guarantee;
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::guarantee::{ThresholdsByDigest, guarantee_of_rule};
use crate::spec::grammar::known_and_sensitive::KnownAndSensitive;
use crate::spec::grammar::reader::{FaultList, ObjectReader};

/// Anatomy; what could not be read is `None`.
pub(in crate::spec) struct DraftAnatomy {
    pub(in crate::spec) known: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    pub(in crate::spec) sensitive: Option<usize>,
    pub(in crate::spec) guarantee: Option<Guarantee>,
    /// The thresholds that the guarantee names, where it does.
    pub(in crate::spec) thresholds: ThresholdsByDigest,
}

pub(in crate::spec) fn anatomy(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftAnatomy {
    let KnownAndSensitive { known, guessed, sensitive } =
        KnownAndSensitive::read(&mut members, columns, stated, faults);
    let mut thresholds = ThresholdsByDigest::new();
    let guarantee = match members.take("guarantee") {
        Some(value) => guarantee_of_rule(value, &members.at("guarantee"), &mut thresholds, faults),
        None => {
            faults.range(members.at("guarantee"), "a guarantee such as {\"type\": \"l_diversity\", \"l\": 2}");
            None
        }
    };
    members.finish(faults);
    DraftAnatomy { known, guessed, sensitive, guarantee, thresholds }
}

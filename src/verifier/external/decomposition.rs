//! Two external tables that form a decomposition [docs/spec/decompose.md#guarantee].
//!
//! One table has buckets with lists of sensitive values, the other the joint sensitive values of all rows. Evaluated
//! separately, the joint values would lead around the buckets. Together they limit the possible values of each
//! bucket.
//!
//! Within a bucket nothing links a row to a sensitive tuple. So an adversary who knows all attributes but the
//! sensitive ones gives the same probabilities to all rows of a bucket. For the primary attribute these are its
//! shares of the bucket. For another attribute, the share of the rows that can have a value bounds its probability.

use std::collections::BTreeSet;

use super::decomposition_view::DecompositionView;
use super::submission::{ClassMeasures, Submission, ViolatingClass, ViolatingClasses};
use super::table::{CellText, ExternalPart, ExternalTable};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, NoticeKind, RowMeaning};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::definition::feasible_worlds::{ExclusionLimits, InferenceError, PossibleValues};
use crate::verifier::definition::observed_decomposition::ObservedDecomposition;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::read::interner::ValueInterner;

/// Maximal number of reported buckets.
const MAX_REPORTED_BUCKETS: usize = 10;

/// Fewer possible values than this count as an inference.
const MIN_LISTED_JOINT_VALUES: usize = 2;

/// Two tables that are evaluated together.
pub(in crate::verifier) struct JointDecomposition<'a> {
    /// The index of the table of buckets.
    pub(in crate::verifier) buckets: usize,
    /// The index of the table of joint values.
    pub(in crate::verifier) joint: usize,
    /// The primary attribute, by which the buckets are made.
    pub(in crate::verifier) primary: Attr,
    /// The listed attributes.
    others: Vec<Attr>,
    /// The known attributes of the buckets.
    known: AttrSet,
    observed: ObservedDecomposition,
    /// The possible values; `None` where the computation exceeds its limits.
    possible: Option<PossibleValues>,
    table: &'a ExternalTable,
}

/// The two tables by index, with the primary and the listed attributes, if they have this shape.
fn shape(submission: &Submission<'_>) -> Option<(usize, usize, Attr, Vec<Attr>)> {
    let [first, second] = submission.tables else { return None };
    let bucketed = |table: &ExternalTable| table.parts.iter().all(|part| part.bucket.is_some());
    let (buckets, joint) = match (bucketed(first), bucketed(second)) {
        (true, false) => (0, 1),
        (false, true) => (1, 0),
        _ => return None,
    };
    let (table, [of_joint]) = (&submission.tables[buckets], &submission.tables[joint].parts[..]) else { return None };
    if table.overlaps() {
        return None;
    }
    let exact = |part: &ExternalPart| part.cells.is_empty();
    if of_joint.meaning != RowMeaning::Tuples || !exact(of_joint) || !table.parts.iter().all(exact) {
        return None;
    }
    let sensitive = of_joint.attributes();
    let (mut primary, mut others) = (None, Vec::new());
    for part in &table.parts {
        let attributes = part.attributes();
        let alone = attributes.iter().next().filter(|_| attributes.len() == 1 && attributes.is_subset(sensitive));
        match (part.meaning, alone) {
            (RowMeaning::Values, Some(attr)) => others.push(attr),
            (RowMeaning::Tuples, Some(attr)) if primary.is_none() => primary = Some(attr),
            (RowMeaning::Tuples, None) if !attributes.meets(sensitive) => {}
            _ => return None,
        }
    }
    let primary = primary?;
    let listed: AttrSet = others.iter().copied().chain([primary]).collect();
    (listed == sensitive && !others.is_empty()).then_some((buckets, joint, primary, others))
}

impl<'a> JointDecomposition<'a> {
    /// The tables, if they form a decomposition.
    ///
    /// `None` also where a dependency leads from known to sensitive attributes.
    pub(in crate::verifier) fn new(
        submission: &Submission<'a>,
        log: &mut CheckLog,
        remarks: &mut Vec<(NoticeKind, String)>,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let Some((buckets, joint, primary, others)) = shape(submission) else { return Ok(None) };
        let (table, other) = (&submission.tables[buckets], &submission.tables[joint]);
        let sensitive: AttrSet = others.iter().copied().chain([primary]).collect();
        let known = table.attributes().minus(sensitive);
        // the buckets alone do not bound such a dependency
        let mixed = |(from, to): &(AttrSet, AttrSet)| from.meets(known) && to.meets(sensitive);
        if submission.dependencies.iter().any(mixed) {
            return Ok(None);
        }
        let listed: Vec<(Attr, u64)> = others.iter().map(|attr| (*attr, 1)).collect();
        let noisy = sensitive.minus(submission.exact);
        let given =
            DecompositionView { buckets: table, joint: other, primary, others: &listed, asked: sensitive, noisy };
        let Some(observed) = given.observe(&mut ValueInterner::default()) else { return Ok(None) };
        let possible = match observed.possible(control) {
            Ok(possible) => Some(possible),
            Err(InferenceError::Cancelled) => return Err(Cancelled),
            Err(InferenceError::TooMany { .. }) => None,
            Err(InferenceError::Contradiction) => {
                let detail = format!("tables {} and {} are not of the same rows", table.name, other.name);
                log.fail(CheckName::Columns, detail);
                return Ok(None);
            }
        };
        let decomposition = Self { buckets, joint, primary, others, known, observed, possible, table };
        decomposition.remark(submission, remarks, control)?;
        Ok(Some(decomposition))
    }

    /// Whether possible values were computed; then the tables hold the same rows.
    pub(in crate::verifier) const fn is_computed(&self) -> bool {
        self.possible.is_some()
    }

    /// Adds remarks about the inferences from the buckets.
    fn remark(
        &self,
        submission: &Submission<'_>,
        remarks: &mut Vec<(NoticeKind, String)>,
        control: &Control,
    ) -> Result<(), Cancelled> {
        remarks.push((NoticeKind::JudgedTogether, self.judged_together(submission)));
        let Some(possible) = &self.possible else {
            let detail = "there are too many pairs of buckets and joint values for what follows from them to be found";
            remarks.push((NoticeKind::ConclusionsNotComputed, detail.to_owned()));
            return Ok(());
        };
        let chains = possible.chains(self.others.len(), MIN_LISTED_JOINT_VALUES);
        let (attributes, fewest) = (self.others.len(), MIN_LISTED_JOINT_VALUES);
        let limits = ExclusionLimits { attributes, fewest, excluded: 1, work: u64::MAX };
        let exclusions = possible.exclusions(limits, control)?.unwrap_or_default();
        for (adversary, inferences) in [("knows", chains), ("can exclude a value of", exclusions)] {
            if inferences.is_empty() {
                continue;
            }
            let attributes: AttrSet = inferences.iter().map(|inference| self.others[inference.attribute]).collect();
            let attributes = submission.list(attributes);
            let detail = format!(
                "in {} places an adversary who {adversary} {} infers {attributes}",
                inferences.len(),
                submission.list(AttrSet::one(self.primary))
            );
            remarks.push((NoticeKind::Concluded, detail));
        }
        let excludable = self.observed.excludable(possible).len();
        if excludable > 0 {
            remarks.push((
                NoticeKind::ExcludableValues,
                format!("{excludable} listed values are excluded by the joint values"),
            ));
        }
        Ok(())
    }

    /// The remark that both tables are evaluated together.
    fn judged_together(&self, submission: &Submission<'_>) -> String {
        let (buckets, joint) = (&self.table.name, &submission.tables[self.joint].name);
        let (by, listed) = (AttrSet::one(self.primary), self.others.iter().copied().collect::<AttrSet>());
        let mut detail = format!(
            "tables {buckets} and {joint} are judged together, as buckets by {} with joint values",
            submission.list(by)
        );
        let declared = listed.intersection(submission.exact);
        if !declared.is_empty() {
            detail +=
                &format!("; every listed value of {} belongs to some row, as declared", submission.list(declared));
        }
        detail
    }

    /// Whether the decomposition decides a rule.
    ///
    /// The rule protects one sensitive attribute, and its known attributes are not sensitive.
    pub(in crate::verifier) fn covers(&self, known: AttrSet, target: AttrSet) -> bool {
        let sensitive: AttrSet = self.others.iter().copied().chain([self.primary]).collect();
        target.len() == 1 && target.is_subset(sensitive) && !known.meets(sensitive)
    }

    /// The known attributes that the buckets have.
    pub(in crate::verifier) const fn entry(&self, known: AttrSet) -> AttrSet {
        known.intersection(self.known)
    }

    /// The buckets that violate the guarantee of a listed attribute, with measures.
    ///
    /// Or the reason why they are unknown.
    pub(in crate::verifier) fn evaluate(
        &self,
        attr: Attr,
        guarantee: Guarantee,
        name: &str,
    ) -> Result<(ViolatingClasses, ClassMeasures), String> {
        let at = self.others.iter().position(|other| *other == attr);
        let (Some(at), Some(possible)) = (at, &self.possible) else {
            return Err(format!("there is too much to be looked at to find what rows can have which {name}"));
        };
        let satisfies = |alike: u64, values: u64, rows: u64| match guarantee {
            Guarantee::LDiversity { l } => Some(u128::from(alike) * u128::from(l) <= u128::from(rows)),
            Guarantee::DistinctLDiversity { l } => Some(values >= l),
            Guarantee::AlphaK { alpha, k } => Some(
                rows >= k
                    && u128::from(alike) * u128::from(alpha.denominator())
                        <= u128::from(alpha.numerator()) * u128::from(rows),
            ),
            _ => None,
        };
        let (mut breaks, mut measures) =
            (Vec::new(), ClassMeasures { distinct_l: u64::MAX, ..ClassMeasures::default() });
        for (bucket, places) in self.observed.primary.iter().enumerate().filter(|(_, places)| !places.is_empty()) {
            let rows = places.len() as u64;
            // without other information all rows may have the value
            let alike = self.observed.alike(possible, bucket, at).min(rows);
            let values = possible.values(bucket, at).len() as u64;
            let satisfied = satisfies(alike, values, rows).ok_or_else(|| {
                format!(
                    "of {name} only values without their numbers are published, from which {} cannot be read",
                    guarantee.as_str()
                )
            })?;
            if !satisfied {
                breaks.push((alike, rows, bucket));
            }
            measures.classes += 1;
            measures.k = Some(measures.k.map_or(rows, |k| k.min(rows)));
            measures.distinct_l = measures.distinct_l.min(values);
            let here = ShareOfRows::new(alike, rows);
            measures.worst = Some(measures.worst.map_or(here, |worst| worst.worse(here)));
        }
        let total = breaks.len() as u64;
        // the largest shares first
        breaks.sort_by(|a, b| (b.0 * a.1).cmp(&(a.0 * b.1)).then(a.2.cmp(&b.2)));
        let first = breaks.iter().take(MAX_REPORTED_BUCKETS).map(|&(_, _, bucket)| ViolatingClass {
            table: self.buckets,
            bucket: self.label(bucket),
            class: Vec::new(),
        });
        Ok((ViolatingClasses { total, first: first.collect() }, measures))
    }

    /// The label of a bucket in the files.
    fn label(&self, bucket: usize) -> Option<CellText> {
        let column = self.table.parts.first()?.bucket.as_ref()?;
        let value = (bucket + 1).to_string().into_bytes();
        Some(CellText { kind: column.domain.kind(), value: Some(value) })
    }
}

impl PossibleValues {
    /// The values of an attribute that some row of a bucket can have.
    fn values(&self, bucket: usize, attribute: usize) -> BTreeSet<u32> {
        self.of_bucket(bucket).flat_map(|values| &values[attribute]).copied().collect()
    }
}

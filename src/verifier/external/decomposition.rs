//! Two tables that anybody published and that belong together as those of a decomposition: buckets of rows with lists of what their
//! sensitive values are, and the joint sensitive values of all rows. Judged apart the joint values lead around the buckets; judged
//! together they tell what can stand in which bucket, and no more.
//!
//! Within a bucket nothing ties a row to a sensitive tuple, so that who knows everything but sensitive values gives each row of a bucket
//! the same chances. Of the attribute that buckets are made by these are its shares of the bucket, whatever the other parts say; of
//! another one no value is likelier than the share of the rows that can have it.

use std::collections::BTreeSet;

use super::decomposition_view;
use super::decomposition_view::DecompositionView;
use super::submission::{ClassMeasures, Submission, ViolatingClass, ViolatingClasses};
use super::table::{CellText, ExternalPart, ExternalTable};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{BreachKind, Guarantee, NoticeKind, RowMeaning};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::definition::feasible_worlds::{InferenceError, ObservedDecomposition, PossibleValues};

/// So many buckets that break a guarantee are shown.
const MAX_REPORTED_BUCKETS: usize = 10;

/// Of fewer values than this one is taken to be concluded.
const MIN_LISTED_JOINT_VALUES: usize = 2;

/// Tables that belong together.
pub(in crate::verifier) struct JointDecomposition<'a> {
    /// The table of buckets, by its index.
    pub(in crate::verifier) buckets: usize,
    /// The table of joint values, by its index.
    pub(in crate::verifier) joint: usize,
    /// The attribute that buckets are made by.
    pub(in crate::verifier) primary: Attr,
    /// The attributes that are listed.
    others: Vec<Attr>,
    /// What rows are told apart by.
    known: AttrSet,
    shown: ObservedDecomposition,
    /// Nothing where there is too much to be looked at.
    possible: Option<PossibleValues>,
    table: &'a ExternalTable,
}

/// The two tables, by their indices, the primary attribute and the listed ones, where the tables have that shape.
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
    let told: AttrSet = others.iter().copied().chain([primary]).collect();
    (told == sensitive && !others.is_empty()).then_some((buckets, joint, primary, others))
}

impl<'a> JointDecomposition<'a> {
    /// The tables, where they have the shape of a decomposition and nothing that is known goes through it.
    pub(in crate::verifier) fn new(
        submission: &Submission<'a>,
        findings: &mut CheckLog,
        remarks: &mut Vec<(NoticeKind, String)>,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let Some((buckets, joint, primary, others)) = shape(submission) else { return Ok(None) };
        let (table, other) = (&submission.tables[buckets], &submission.tables[joint]);
        let sensitive: AttrSet = others.iter().copied().chain([primary]).collect();
        let known = table.attributes().minus(sensitive);
        // what both sides together tell is no question of buckets alone
        let mixed = |(from, to): &(AttrSet, AttrSet)| from.meets(known) && to.meets(sensitive);
        if submission.dependencies.iter().any(mixed) {
            return Ok(None);
        }
        let listed: Vec<(Attr, u64)> = others.iter().map(|attr| (*attr, 1)).collect();
        let noisy = sensitive.minus(submission.exact);
        let given =
            DecompositionView { buckets: table, joint: other, primary, others: &listed, asked: sensitive, noisy };
        let Some(shown) = decomposition_view::observe(&given) else { return Ok(None) };
        let possible = match shown.possible(control) {
            Ok(possible) => Some(possible),
            Err(InferenceError::Cancelled) => return Err(Cancelled),
            Err(InferenceError::TooMany { .. }) => None,
            Err(InferenceError::Contradiction) => {
                let detail = format!("tables {} and {} are not of the same rows", table.name, other.name);
                findings.fail(CheckName::Columns, detail);
                return Ok(None);
            }
        };
        let together = Self { buckets, joint, primary, others, known, shown, possible, table };
        together.remark(submission, remarks, control)?;
        Ok(Some(together))
    }

    /// Whether it was looked what can stand where, and so that the tables are of the same rows.
    pub(in crate::verifier) const fn is_computed(&self) -> bool {
        self.possible.is_some()
    }

    /// What can be concluded of who is in which bucket.
    fn remark(
        &self,
        submission: &Submission<'_>,
        remarks: &mut Vec<(NoticeKind, String)>,
        control: &Control,
    ) -> Result<(), Cancelled> {
        let (buckets, joint) = (&self.table.name, &submission.tables[self.joint].name);
        let (by, listed) = (AttrSet::one(self.primary), self.others.iter().copied().collect::<AttrSet>());
        let mut detail = format!(
            "tables {buckets} and {joint} are judged together, as buckets by {} beside joint values",
            submission.list(by)
        );
        let stated = listed.intersection(submission.exact);
        if !stated.is_empty() {
            detail +=
                &format!("; that every listed value of {} is some row's is taken as stated", submission.list(stated));
        }
        remarks.push((NoticeKind::JudgedTogether, detail));
        let Some(possible) = &self.possible else {
            let detail = "there are too many pairs of buckets and joint values for what follows from them to be found";
            remarks.push((NoticeKind::ConclusionsNotComputed, detail.to_owned()));
            return Ok(());
        };
        let chains = possible.chains(self.others.len(), MIN_LISTED_JOINT_VALUES);
        let exclusions = possible
            .exclusions((self.others.len(), MIN_LISTED_JOINT_VALUES), 1, u64::MAX, control)?
            .unwrap_or_default();
        for (kind, told) in [(BreachKind::Chain, chains), (BreachKind::Exclusion, exclusions)] {
            if told.is_empty() {
                continue;
            }
            let attributes: AttrSet = told.iter().map(|told| self.others[told.attribute]).collect();
            let attributes = submission.list(attributes);
            let who = match kind {
                BreachKind::Chain => "knows",
                BreachKind::Exclusion | BreachKind::Forced => "can rule out a value of",
            };
            let detail = format!(
                "in {} places who {who} {} concludes {attributes}",
                told.len(),
                submission.list(AttrSet::one(self.primary))
            );
            remarks.push((NoticeKind::Concluded, detail));
        }
        let excludable = self.shown.excludable(possible).len();
        if excludable > 0 {
            remarks.push((
                NoticeKind::ExcludableValues,
                format!("{excludable} listed values are ruled out by the joint values"),
            ));
        }
        Ok(())
    }

    /// Whether the tables together bear on a rule: of one sensitive attribute, for whoever knows of no other.
    pub(in crate::verifier) fn bear_on(&self, known: AttrSet, target: AttrSet) -> bool {
        let sensitive: AttrSet = self.others.iter().copied().chain([self.primary]).collect();
        target.len() == 1 && target.is_subset(sensitive) && !known.meets(sensitive)
    }

    /// What of what is known the buckets have.
    pub(in crate::verifier) const fn entered(&self, known: AttrSet) -> AttrSet {
        known.intersection(self.known)
    }

    /// The buckets that do not keep a guarantee of a listed attribute, and what the worst shows; or why that cannot be read.
    pub(in crate::verifier) fn kept(
        &self,
        attr: Attr,
        g: Guarantee,
        name: &str,
    ) -> Result<(ViolatingClasses, ClassMeasures), String> {
        let at = self.others.iter().position(|other| *other == attr);
        let (Some(at), Some(possible)) = (at, &self.possible) else {
            return Err(format!("there is too much to be looked at to find what rows can have which {name}"));
        };
        let keeps = |alike: u64, values: u64, rows: u64| match g {
            Guarantee::LDiversity { l } => Some(u128::from(alike) * u128::from(l) <= u128::from(rows)),
            Guarantee::DistinctLDiversity { l } => Some(values >= l),
            Guarantee::AlphaK { alpha, k } => Some(
                rows >= k
                    && u128::from(alike) * u128::from(alpha.denominator())
                        <= u128::from(alpha.numerator()) * u128::from(rows),
            ),
            _ => None,
        };
        let (mut breaks, mut measured) =
            (Vec::new(), ClassMeasures { distinct_l: u64::MAX, ..ClassMeasures::default() });
        for (bucket, places) in self.shown.primary.iter().enumerate().filter(|(_, places)| !places.is_empty()) {
            let rows = places.len() as u64;
            // where it cannot be told that fewer have it, all of its rows may
            let alike = self.shown.alike(possible, bucket, at).min(rows);
            let values = possible.values(bucket, at).len() as u64;
            let kept = keeps(alike, values, rows).ok_or_else(|| {
                format!(
                    "of {name} only values without their numbers are published, from which {} cannot be read",
                    g.as_str()
                )
            })?;
            if !kept {
                breaks.push((alike, rows, bucket));
            }
            measured.classes += 1;
            measured.k = Some(measured.k.map_or(rows, |k| k.min(rows)));
            measured.distinct_l = measured.distinct_l.min(values);
            let larger = |&(count, of): &(u64, u64)| {
                let (new, old) = (u128::from(alike) * u128::from(of), u128::from(count) * u128::from(rows));
                new > old || new == old && rows < of
            };
            if measured.worst.as_ref().is_none_or(larger) {
                measured.worst = Some((alike, rows));
            }
        }
        let total = breaks.len() as u64;
        // the largest shares first
        breaks.sort_by(|a, b| (b.0 * a.1).cmp(&(a.0 * b.1)).then(a.2.cmp(&b.2)));
        let first = breaks.iter().take(MAX_REPORTED_BUCKETS).map(|&(_, _, bucket)| ViolatingClass {
            table: self.buckets,
            bucket: self.label(bucket),
            class: Vec::new(),
        });
        Ok((ViolatingClasses { total, first: first.collect() }, measured))
    }

    /// The label of a bucket as it stands in the files.
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

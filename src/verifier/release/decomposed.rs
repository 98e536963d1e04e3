//! Decomposed tables: what they claim to be, and whether the two tables hold it together (Decompose, section 8).
//!
//! Within a bucket nothing ties a row to its sensitive values, so that no primary value is likelier than its share, whatever readers
//! conclude of the rest. Of another attribute that is so where no two rows of a bucket can have the same value.

use std::collections::{BTreeMap, BTreeSet};

use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    BreachKind, DecompositionDetails, EnforcedBy, Guarantee, InferableBucket, Part, Protected, TableWitness,
};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::DecompositionClaim;
use crate::verifier::contract::evidence::{Evidence, VerifierError};
use crate::verifier::definition::feasible_worlds::{
    InferableValue, InferenceError, ObservedDecomposition, PossibleValues,
};
use crate::verifier::read::part::{ParsedColumn, ParsedPart};

/// Of fewer values than this one is taken to be concluded, where nothing else is said.
const MIN_LISTED_VALUES: usize = 2;

/// Checks what a publication claims of its tables.
pub(in crate::verifier) fn claims(evidence: &Evidence<'_>, findings: &mut CheckLog) {
    let Some(claim) = DecompositionClaim::from_evidence(evidence) else {
        findings.fail(CheckName::Columns, "the tables are not those of a decomposition");
        return findings.fail(CheckName::Guards, "the tables of a decomposition do not have its shape");
    };
    let mut listed = BTreeSet::new();
    for rule in &evidence.publication.rules {
        let (Protected::Attribute(attr), Guarantee::LDiversity { l }) = (rule.protects, rule.guarantee) else {
            findings.fail(CheckName::Guards, "a rule of a decomposition asks for something else than l-diversity");
            continue;
        };
        let same =
            claim.said.l.get(&attr) == Some(&l) && rule.enforced_by == EnforcedBy::Table(claim.buckets.name.clone());
        if !same || !listed.insert(attr) {
            let name = evidence.name(attr);
            findings.fail(CheckName::Guards, format!("what is stated of {name} is not what its rule asks for"));
        }
    }
    if listed.len() != claim.said.l.len() {
        findings.fail(CheckName::Guards, "a sensitive attribute has no rule");
    }
    let sensitive: AttrSet = claim.said.l.keys().copied().collect();
    for (determinant, dependent) in evidence.dependencies {
        if dependent.meets(sensitive) && determinant.meets(sensitive) && determinant.meets(claim.known) {
            let (from, to) = (evidence.list(*determinant), evidence.list(*dependent));
            findings.fail(CheckName::Gnf, format!("{from} tell {to}, and are not all sensitive"));
        }
    }
}

/// Holds a part that lists values of each bucket, or joint values of some rows alone, against the original.
pub(in crate::verifier) fn content(
    evidence: &Evidence<'_>,
    claim: &DecompositionClaim<'_>,
    part: &ParsedPart,
    claimed: &Part,
    place: &str,
    findings: &mut CheckLog,
) {
    let Some(original) = evidence.original else { return };
    let mut fail = |detail: &str| findings.fail(CheckName::Content, format!("{place}: {detail}"));
    if claim.is_joint(claimed) {
        let codes = |row: usize| -> Vec<u32> {
            part.columns.iter().map(|column| original.column(column.attribute).codes.get(row)).collect()
        };
        let shown = |row: usize| -> Vec<u32> { part.columns.iter().map(|column| column.codes.get(row)).collect() };
        let Some(primary) = part.columns.iter().position(|column| column.attribute == claim.said.primary) else {
            return fail("there is no primary value");
        };
        let mut found: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        (0..part.rows).for_each(|row| *found.entry(shown(row)).or_default() += 1);
        let kept: BTreeSet<u32> = found.keys().map(|row| row[primary]).collect();
        let mut expected: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        for row in (0..original.rows()).map(codes).filter(|row| kept.contains(&row[primary])) {
            *expected.entry(row).or_default() += 1;
        }
        if found != expected {
            fail("its rows are not those of the original that have their primary values");
        }
        return;
    }
    let ([column], Some(labels)) = (&part.columns[..], &part.labels) else {
        return fail("values of buckets stand in a part of one column");
    };
    // which rows are in a bucket is told by the assignment alone
    let Some(witness) = evidence.witness else { return };
    let assigned = match witness.tables.first() {
        Some(TableWitness::Buckets(assigned)) if assigned.len() == original.rows() => assigned,
        _ => return fail("the assignment is of other rows"),
    };
    let truth = assigned.iter().copied().zip(original.column(column.attribute).codes.iter());
    let truth: BTreeSet<(u32, u32)> = truth.collect();
    let shown: BTreeSet<(u32, u32)> = labels.iter().copied().zip(column.codes.iter()).collect();
    if !truth.is_subset(&shown) {
        fail("a bucket lacks a value of a row that was put into it");
    } else if truth != shown && !claim.said.noisy.contains(column.attribute) {
        fail("a bucket lists a value that none of its rows has, and no noise is told of");
    }
}

/// The parts of both tables as they were read.
#[derive(Default)]
pub(in crate::verifier) struct BothTables(pub(in crate::verifier) Vec<ParsedPart>);

/// Numbers for values that are the same in all parts, in the order in which they come.
#[derive(Default)]
struct SharedInterner(BTreeMap<(Attr, Option<Vec<u8>>), u32>);

impl SharedInterner {
    /// The number of each code of a column.
    fn codes(&mut self, column: &ParsedColumn) -> Vec<u32> {
        let texts = column.cells.iter().flatten();
        let number = |text: &Option<Vec<u8>>| {
            let next = self.0.len() as u32;
            *self.0.entry((column.attribute, text.clone())).or_insert(next)
        };
        texts.map(number).collect()
    }
}

/// What both tables show; `None` when they could not be read whole.
fn shown(claim: &DecompositionClaim<'_>, both: &BothTables) -> Option<ObservedDecomposition> {
    let mut numbers = SharedInterner::default();
    let mut numbered = |column: &ParsedColumn| -> Vec<u32> {
        let of = numbers.codes(column);
        column.codes.iter().map(|code| of.get(code as usize).copied().unwrap_or(u32::MAX)).collect()
    };
    let [_, primary, values @ .., joint] = &both.0[..] else { return None };
    let buckets = primary.labels.as_ref()?.iter().max().map_or(0, |label| *label as usize);
    let mut shown = ObservedDecomposition {
        primary: vec![Vec::new(); buckets],
        sets: vec![Vec::new(); buckets],
        joint: Vec::new(),
        exact: claim.others().map(|attr| !claim.said.noisy.contains(attr)).collect(),
    };
    let bucket = |label: u32| (label as usize).checked_sub(1).filter(|at| *at < buckets);
    for (&label, value) in primary.labels.as_ref()?.iter().zip(numbered(primary.columns.first()?)) {
        shown.primary[bucket(label)?].push(value);
    }
    for (at, part) in values.iter().enumerate() {
        shown.sets.iter_mut().for_each(|sets| sets.push(BTreeSet::new()));
        for (&label, value) in part.labels.as_ref()?.iter().zip(numbered(part.columns.first()?)) {
            // a value that stands there twice would be told of more than once
            if !shown.sets[bucket(label)?][at].insert(value) {
                return None;
            }
        }
    }
    let column = |attr: Attr| joint.columns.iter().find(|column| column.attribute == attr);
    let of_primary = numbered(column(claim.said.primary)?);
    let others = claim.others().map(|attr| Some(numbered(column(attr)?)));
    let others: Vec<Vec<u32>> = others.collect::<Option<_>>()?;
    let row = |(row, value): (usize, &u32)| (*value, others.iter().map(|of| of[row]).collect());
    shown.joint = of_primary.iter().enumerate().map(row).collect();
    Some(shown)
}

/// Checks both tables together: how much each bucket lists, that nothing listed is ruled out by the joint table, and that what is said
/// of conclusions is what the parts show.
pub(in crate::verifier) fn check(
    evidence: &Evidence<'_>,
    claim: &DecompositionClaim<'_>,
    both: &BothTables,
    control: &Control,
    findings: &mut CheckLog,
) -> Result<(), VerifierError> {
    let name = &claim.buckets.name;
    let parts = claim.buckets.parts.len() + 1;
    let Some(shown) = Some(both).filter(|both| both.0.len() == parts).and_then(|both| shown(claim, both)) else {
        findings
            .fail(CheckName::Buckets, format!("table {name}: its buckets could not be read, or list a value twice"));
        findings.fail(CheckName::Guarantee, format!("table {name}: its buckets could not be read"));
        return Ok(());
    };
    let others: Vec<Attr> = claim.others().collect();
    let l: Vec<u64> = others.iter().map(|attr| claim.said.l[attr]).collect();
    for (at, attr) in others.iter().enumerate() {
        let few = shown.sets.iter().filter(|sets| (sets[at].len() as u64) < l[at]).count();
        if few > 0 {
            let detail =
                format!("table {name}: {few} buckets list fewer than {} values of {}", l[at], evidence.name(*attr));
            findings.fail(CheckName::Guarantee, detail);
        }
        // a bucket has no more values than rows where all are theirs
        let many = |(rows, sets): (&Vec<u32>, &Vec<BTreeSet<u32>>)| sets[at].len() > rows.len();
        if shown.exact[at] && shown.primary.iter().zip(&shown.sets).any(many) {
            let detail =
                format!("table {name}: there are buckets with more values of {} than rows", evidence.name(*attr));
            findings.fail(CheckName::Guarantee, detail);
        }
    }
    let possible = match shown.possible(control) {
        Ok(possible) => possible,
        Err(InferenceError::Cancelled) => return Err(crate::control::Cancelled.into()),
        Err(InferenceError::Contradiction) => {
            findings.fail(CheckName::Guarantee, "the buckets and the joint values are not of the same rows");
            return Ok(());
        }
        Err(InferenceError::TooMany { found, .. }) => {
            findings.fail(CheckName::Guarantee, format!("{found} pairs of buckets and joint values are too many"));
            return Ok(());
        }
    };
    let excludable = shown.excludable(&possible).len();
    if excludable > 0 {
        let detail = format!("table {name}: {excludable} listed values are ruled out by the joint values");
        findings.fail(CheckName::Guarantee, detail);
    }
    let found = figures(claim, &shown, &possible, (&others, &l), control)?;
    if found.bounded != claim.said.bounded {
        let wrong = claim.said.bounded.minus(found.bounded).union(found.bounded.minus(claim.said.bounded));
        let detail = format!("table {name}: whether {} is bounded is not as the buckets show", evidence.list(wrong));
        findings.fail(CheckName::Guarantee, detail);
    }
    if found != *claim.said {
        findings.fail(
            CheckName::Guarantee,
            format!("table {name}: what is said of conclusions is not what the parts show"),
        );
    }
    Ok(())
}

/// What is to be said of the tables.
fn figures(
    claim: &DecompositionClaim<'_>,
    shown: &ObservedDecomposition,
    possible: &PossibleValues,
    (others, l): (&[Attr], &[u64]),
    control: &Control,
) -> Result<DecompositionDetails, VerifierError> {
    let exclusions = possible.exclusions((others.len(), MIN_LISTED_VALUES), 1, u64::MAX, control)?.unwrap_or_default();
    let told = [possible.chains(others.len(), MIN_LISTED_VALUES), exclusions, possible.forced(l)];
    let listed = |told: &InferableValue| InferableBucket {
        bucket: told.bucket as u32 + 1,
        attribute: others[told.attribute],
        kind: told.kind,
    };
    let all: BTreeSet<InferableBucket> = told.iter().flatten().map(listed).collect();
    let mut found = DecompositionDetails {
        primary: claim.said.primary,
        l: claim.said.l.clone(),
        noisy: claim.said.noisy,
        bounded: AttrSet::one(claim.said.primary),
        repeat_free: BTreeMap::new(),
        breach_counts: BreachKind::ALL.into_iter().map(|kind| (kind, 0)).collect(),
        first: all.iter().take(DecompositionDetails::LISTED).copied().collect(),
    };
    for told in &all {
        *found.breach_counts.entry(told.kind).or_default() += 1;
    }
    let buckets = shown.primary.len();
    for (at, &attr) in others.iter().enumerate() {
        control.check()?;
        let most = |bucket: usize| shown.alike(possible, bucket, at);
        let free = (0..buckets).filter(|&bucket| most(bucket) <= 1).count() as u64;
        found.repeat_free.insert(attr, (free, buckets as u64));
        let held = |bucket: usize| u128::from(most(bucket)) * u128::from(l[at]) <= shown.primary[bucket].len() as u128;
        if (0..buckets).all(held) {
            found.bounded = found.bounded.with(attr);
        }
    }
    Ok(found)
}

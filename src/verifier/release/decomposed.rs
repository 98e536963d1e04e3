//! Checks of a decomposition [docs/spec/decompose.md#verification].
//!
//! Within a bucket nothing links a row to its sensitive values. So the posterior of a primary value is its share of
//! the bucket, whatever readers infer about other attributes. The same bound holds for another attribute where no two
//! rows of a bucket can have the same value.

use std::collections::{BTreeMap, BTreeSet};

use super::content::PartPlace;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    BreachKind, DecompositionDetails, EnforcedBy, Guarantee, InferableBucket, Protected, TableWitness,
};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::DecompositionClaim;
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::definition::feasible_worlds::{ExclusionLimits, InferableValue, InferenceError, PossibleValues};
use crate::verifier::definition::observed_decomposition::{LabelledValues, ObservedDecomposition};
use crate::verifier::read::interner::ValueInterner;
use crate::verifier::read::part::{ParsedColumn, ParsedPart};

/// Fewer possible values than this count as an inference.
const MIN_LISTED_VALUES: usize = 2;

/// Checks the claims of a decomposition.
pub(in crate::verifier) fn claims(input: &VerifierInput<'_>, log: &mut CheckLog) {
    let Some(claim) = DecompositionClaim::from_input(input) else {
        log.fail(CheckName::Columns, "the tables are not those of a decomposition");
        return log.fail(CheckName::Guards, "the tables of a decomposition do not have its shape");
    };
    let mut listed = BTreeSet::new();
    for rule in &input.publication.rules {
        let (Protected::Attribute(attr), Guarantee::LDiversity { l }) = (rule.protects, rule.guarantee) else {
            log.fail(CheckName::Guards, "a rule of a decomposition asks for something else than l-diversity");
            continue;
        };
        let same =
            claim.details.l.get(&attr) == Some(&l) && rule.enforced_by == EnforcedBy::Table(claim.buckets.name.clone());
        if !same || !listed.insert(attr) {
            let name = input.name(attr);
            log.fail(CheckName::Guards, format!("the declared l of {name} is not that of its rule"));
        }
    }
    if listed.len() != claim.details.l.len() {
        log.fail(CheckName::Guards, "a sensitive attribute has no rule");
    }
    let sensitive: AttrSet = claim.details.l.keys().copied().collect();
    for (determinant, dependent) in input.dependencies {
        if dependent.meets(sensitive) && determinant.meets(sensitive) && determinant.meets(claim.known) {
            let (from, to) = (input.list(*determinant), input.list(*dependent));
            log.fail(CheckName::Gnf, format!("{from} determine {to}, and are not all sensitive"));
        }
    }
}

/// Compares a list of values of buckets, or the joint table, with the original.
pub(in crate::verifier) fn content(
    input: &VerifierInput<'_>,
    claim: &DecompositionClaim<'_>,
    place: &PartPlace<'_>,
    part: &ParsedPart,
    log: &mut CheckLog,
) {
    let Some(original) = input.original else { return };
    let mut fail = |detail: &str| log.fail(CheckName::Content, format!("{}: {detail}", place.name));
    if claim.is_joint(place.claimed(input)) {
        let codes = |row: usize| -> Vec<u32> {
            part.columns.iter().map(|column| original.column(column.attribute).codes.get(row)).collect()
        };
        let published = |row: usize| -> Vec<u32> { part.columns.iter().map(|column| column.codes.get(row)).collect() };
        let Some(primary) = part.columns.iter().position(|column| column.attribute == claim.details.primary) else {
            return fail("there is no primary value");
        };
        let mut found: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        (0..part.rows).for_each(|row| *found.entry(published(row)).or_default() += 1);
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
    // the assignment alone says which rows are in a bucket
    let Some(witness) = input.witness else { return };
    let assigned = match witness.tables.first() {
        Some(TableWitness::Buckets(assigned)) if assigned.len() == original.rows() => assigned,
        _ => return fail("the assignment is of other rows"),
    };
    let truth = assigned.iter().copied().zip(original.column(column.attribute).codes.iter());
    let truth: BTreeSet<(u32, u32)> = truth.collect();
    let published: BTreeSet<(u32, u32)> = labels.iter().copied().zip(column.codes.iter()).collect();
    if !truth.is_subset(&published) {
        fail("a bucket lacks a value of a row that was put into it");
    } else if truth != published && !claim.details.noisy.contains(column.attribute) {
        fail("a bucket lists a value that none of its rows has, and no noise is declared");
    }
}

/// The parts of both tables.
#[derive(Default)]
pub(in crate::verifier) struct BothTables(pub(in crate::verifier) Vec<ParsedPart>);

/// Both tables with numbered values; `None` when a part is missing or lists a value twice.
fn observed(claim: &DecompositionClaim<'_>, both: &BothTables) -> Option<ObservedDecomposition> {
    let mut numbers = ValueInterner::default();
    let [_, primary, lists @ .., joint] = &both.0[..] else { return None };
    let mut labelled = |part: &ParsedPart| {
        let values = numbered(part.columns.first()?, &mut numbers);
        Some(LabelledValues { labels: part.labels.as_deref()?.clone(), values })
    };
    let primary = labelled(primary)?;
    let lists: Vec<LabelledValues> = lists.iter().map(labelled).collect::<Option<_>>()?;
    if lists.iter().any(LabelledValues::has_repeats) {
        return None;
    }
    let mut column = |attr: Attr| {
        let column = joint.columns.iter().find(|column| column.attribute == attr)?;
        Some(numbered(column, &mut numbers))
    };
    let joint: Vec<Vec<u32>> =
        [claim.details.primary].into_iter().chain(claim.others()).map(&mut column).collect::<Option<_>>()?;
    let exact = claim.others().map(|attr| !claim.details.noisy.contains(attr)).collect();
    ObservedDecomposition::new(&primary, &lists, &joint, exact)
}

/// The number of the value of each row; a row whose cell was not kept has none.
fn numbered(column: &ParsedColumn, numbers: &mut ValueInterner) -> Vec<u32> {
    let texts = column.cells.iter().flatten();
    let of: Vec<u32> = texts.map(|text| numbers.code(column.attribute, text.as_deref())).collect();
    column.codes.iter().map(|code| of.get(code as usize).copied().unwrap_or(u32::MAX)).collect()
}

/// Checks both tables together.
///
/// The checks cover the listed values, values excluded by the joint table, and the declared inferences.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    claim: &DecompositionClaim<'_>,
    both: &BothTables,
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let name = &claim.buckets.name;
    let parts = claim.buckets.parts.len() + 1;
    let Some(observed) = Some(both).filter(|both| both.0.len() == parts).and_then(|both| observed(claim, both)) else {
        log.fail(CheckName::Buckets, format!("table {name}: its buckets could not be read, or list a value twice"));
        log.fail(CheckName::Guarantee, format!("table {name}: its buckets could not be read"));
        return Ok(());
    };
    check_lists(input, claim, &observed, log);
    let possible = match observed.possible(control) {
        Ok(possible) => possible,
        Err(InferenceError::Cancelled) => return Err(crate::control::Cancelled.into()),
        Err(InferenceError::Contradiction) => {
            log.fail(CheckName::Guarantee, "the buckets and the joint values are not of the same rows");
            return Ok(());
        }
        Err(InferenceError::TooMany { found, .. }) => {
            log.fail(CheckName::Guarantee, format!("{found} pairs of buckets and joint values are too many"));
            return Ok(());
        }
    };
    let excludable = observed.excludable(&possible).len();
    if excludable > 0 {
        let detail = format!("table {name}: {excludable} listed values are excluded by the joint values");
        log.fail(CheckName::Guarantee, detail);
    }
    let found = figures(claim, &observed, &possible, control)?;
    if found.bounded != claim.details.bounded {
        let wrong = claim.details.bounded.minus(found.bounded).union(found.bounded.minus(claim.details.bounded));
        let detail = format!("table {name}: whether {} is bounded is not as the buckets show", input.list(wrong));
        log.fail(CheckName::Guarantee, detail);
    }
    if found != *claim.details {
        log.fail(
            CheckName::Guarantee,
            format!("table {name}: the declared inferences are not those that the parts allow"),
        );
    }
    Ok(())
}

/// Checks the number of listed values of each bucket.
fn check_lists(
    input: &VerifierInput<'_>,
    claim: &DecompositionClaim<'_>,
    observed: &ObservedDecomposition,
    log: &mut CheckLog,
) {
    let name = &claim.buckets.name;
    for (at, attr) in claim.others().enumerate() {
        let l = claim.details.l[&attr];
        let few = observed.sets.iter().filter(|sets| (sets[at].len() as u64) < l).count();
        if few > 0 {
            let detail = format!("table {name}: {few} buckets list fewer than {l} values of {}", input.name(attr));
            log.fail(CheckName::Guarantee, detail);
        }
        // without noise, a bucket has at most as many values as rows
        let many = |(rows, sets): (&Vec<u32>, &Vec<Vec<u32>>)| sets[at].len() > rows.len();
        if observed.exact[at] && observed.primary.iter().zip(&observed.sets).any(many) {
            let detail = format!("table {name}: there are buckets with more values of {} than rows", input.name(attr));
            log.fail(CheckName::Guarantee, detail);
        }
    }
}

/// The details that the tables justify.
fn figures(
    claim: &DecompositionClaim<'_>,
    observed: &ObservedDecomposition,
    possible: &PossibleValues,
    control: &Control,
) -> Result<DecompositionDetails, VerifierError> {
    let others: Vec<Attr> = claim.others().collect();
    let l: Vec<u64> = others.iter().map(|attr| claim.details.l[attr]).collect();
    let exclusions = possible
        .exclusions(
            ExclusionLimits { attributes: others.len(), fewest: MIN_LISTED_VALUES, excluded: 1, work: u64::MAX },
            control,
        )?
        .unwrap_or_default();
    let inferences = [possible.chains(others.len(), MIN_LISTED_VALUES), exclusions, possible.forced(&l)];
    let listed = |inferred: &InferableValue| InferableBucket {
        bucket: inferred.bucket as u32 + 1,
        attribute: others[inferred.attribute],
        kind: inferred.kind,
    };
    let all: BTreeSet<InferableBucket> = inferences.iter().flatten().map(listed).collect();
    let mut found = DecompositionDetails {
        primary: claim.details.primary,
        l: claim.details.l.clone(),
        noisy: claim.details.noisy,
        bounded: AttrSet::one(claim.details.primary),
        repeat_free: BTreeMap::new(),
        breach_counts: BreachKind::ALL.into_iter().map(|kind| (kind, 0)).collect(),
        first: all.iter().take(DecompositionDetails::LISTED).copied().collect(),
    };
    for inferred in &all {
        *found.breach_counts.entry(inferred.kind).or_default() += 1;
    }
    let buckets = observed.primary.len();
    for (at, &attr) in others.iter().enumerate() {
        control.check()?;
        let most = |bucket: usize| observed.alike(possible, bucket, at);
        let free = (0..buckets).filter(|&bucket| most(bucket) <= 1).count() as u64;
        found.repeat_free.insert(attr, (free, buckets as u64));
        let is_bounded =
            |bucket: usize| u128::from(most(bucket)) * u128::from(l[at]) <= observed.primary[bucket].len() as u128;
        if (0..buckets).all(is_bounded) {
            found.bounded = found.bounded.with(attr);
        }
    }
    Ok(found)
}

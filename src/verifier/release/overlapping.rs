//! Columns that share attributes, a cover in place of a partition (slicing, section 8), literally, from what the parts show.
//!
//! Of a bucket all combinations of one row per column are made that agree on what columns share; of those that agree in all attributes but
//! the sensitive one, no value may have more than 1/l. Where several columns have the sensitive attribute, the same is asked of the rows that
//! are expected when each row of a column is put beside one row of the others, at random: of the rows that agree on what is shared,
//! each is as likely, so that a combination counts the less the more of them there are. And all of it for every choice of the columns
//! with the sensitive attribute, as whoever looks may leave others aside.
//!
//! Over all buckets together it is asked of the rows of the original, each bucket weighed by how many combinations it has.

use ahash::{AHashMap, AHashSet};

use super::posteriors::posteriors;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Table};
use crate::publication::SlicedDiversity;
use crate::verifier::contract::checks::{CheckLog, CheckName, TableFigures};
use crate::verifier::contract::claim::SlicingClaim;
use crate::verifier::contract::evidence::{Evidence, VerifierError};
use crate::verifier::read::overlapping_columns::weights;
use crate::verifier::read::overlapping_columns::{
    ExactWeight, LabelInterner, MAX_SENSITIVE_COLUMNS, OverlappingColumns, set,
};
use crate::verifier::read::part::ParsedPart;

/// Checks what a table of columns that share attributes claims, from all its parts.
pub(in crate::verifier) fn check(
    evidence: &Evidence<'_>,
    claim: &SlicingClaim,
    read: &[ParsedPart],
    control: &Control,
    figures: &mut TableFigures,
    findings: &mut CheckLog,
) -> Result<(), VerifierError> {
    let mut numbers = LabelInterner::default();
    let whole = evidence.publication.tables.first().is_some_and(|table| table.parts.len() == read.len());
    let covered = OverlappingColumns::new(read, claim.sensitive, &mut numbers).filter(|_| whole);
    let Some(covered) = covered else {
        findings.fail(CheckName::Guarantee, "a sliced table could not be read whole");
        return Ok(());
    };
    if !covered.buckets.values().all(|bucket| covered.agree(bucket)) {
        findings.fail(CheckName::Buckets, "columns do not agree on the attributes that they share");
    }
    let (with, without) = covered.sides();
    let ordered = |chosen: &Vec<usize>| covered.order(&[&without[..], chosen].concat());
    let trees: Option<Vec<_>> = covered.choices().iter().map(ordered).collect();
    let needed = match claim.diversity {
        SlicedDiversity::Bucket => with.len() > 1,
        SlicedDiversity::Mixture => false,
        SlicedDiversity::MixtureWeighted => true,
    };
    if with.len() > MAX_SENSITIVE_COLUMNS || (needed && trees.is_none()) {
        findings.fail(CheckName::Guarantee, "what the columns say together is not known");
        return Ok(());
    }
    alone(&covered, claim, control, figures, findings)?;
    if let (Some(original), true) = (evidence.original, claim.diversity != SlicedDiversity::Bucket) {
        let trees = trees.filter(|_| needed);
        mixed(&covered, claim, original, &mut numbers, trees.as_deref(), control, findings)?;
    }
    Ok(())
}

/// What every bucket shows, and whether it keeps what is claimed of it.
fn alone(
    covered: &OverlappingColumns,
    claim: &SlicingClaim,
    control: &Control,
    figures: &mut TableFigures,
    findings: &mut CheckLog,
) -> Result<(), VerifierError> {
    let (mut tallies, mut broken, mut smallest) = (AHashMap::new(), 0_u64, u64::MAX);
    let choices = covered.choices();
    for bucket in covered.buckets.values() {
        smallest = smallest.min(bucket.rows);
        let mut kept = true;
        for chosen in &choices {
            // where there is no order, combinations alone are looked at
            let order = covered.order(chosen);
            let divided = order.is_some() && chosen.len() > 1;
            let order = order.unwrap_or_else(|| covered.as_they_stand(chosen));
            let all = chosen.iter().fold(AttrSet::EMPTY, |all, of| all.union(set(&covered.columns[*of])));
            let Some((_, known)) = covered.known(bucket, &order, all) else {
                findings.fail(CheckName::Guarantee, "a bucket has too many combinations of rows to be looked at");
                return Ok(());
            };
            for (looked, weighed) in known.values().enumerate() {
                if looked % 256 == 0 {
                    control.check()?;
                }
                for way in if divided { &[false, true][..] } else { &[false] } {
                    let weights = weights(weighed, *way);
                    *tallies.entry(covered.largest(&weights)).or_default() += 1;
                    kept &= covered.keeps(claim.l, &weights);
                }
            }
        }
        broken += u64::from(!kept);
    }
    if broken > 0 && claim.diversity == SlicedDiversity::Bucket {
        let detail = format!("{broken} buckets do not keep l for whoever puts columns together");
        findings.fail(CheckName::Guarantee, detail);
    }
    if let Some(found) = posteriors(tallies, smallest) {
        figures.posteriors.insert(claim.sensitive, found);
    }
    Ok(())
}

/// Holds the claim against the rows of the original, over all buckets that they may stand in.
fn mixed(
    covered: &OverlappingColumns,
    claim: &SlicingClaim,
    original: &Table,
    numbers: &mut LabelInterner,
    trees: Option<&[Vec<(usize, AttrSet)>]>,
    control: &Control,
    findings: &mut CheckLog,
) -> Result<(), VerifierError> {
    let (_, without) = covered.sides();
    let attrs: Vec<Attr> = claim.attributes().without(claim.sensitive).iter().collect();
    let domains: Vec<Vec<u32>> = attrs
        .iter()
        .map(|&attr| original.column(attr).domain.iter().map(|value| numbers.code(attr, value)).collect())
        .collect();
    // the buckets of each tuple of a column, the sensitive attribute apart
    let mut places: Vec<AHashMap<Vec<u32>, Vec<u32>>> = covered.columns.iter().map(|_| AHashMap::new()).collect();
    for (&label, bucket) in &covered.buckets {
        for ((column, tuples), places) in covered.columns.iter().zip(&bucket.columns).zip(&mut places) {
            let width = column.len() - usize::from(column.contains(&covered.sensitive));
            for tuple in tuples.keys() {
                let labels = places.entry(tuple[..width].to_vec()).or_default();
                if labels.last() != Some(&label) {
                    labels.push(label);
                }
            }
        }
    }
    let (mut seen, mut broken) = (AHashSet::new(), 0_u64);
    for row in 0..original.rows() {
        if row % 256 == 0 {
            control.check()?;
        }
        let codes =
            attrs.iter().zip(&domains).map(|(&attr, domain)| domain[original.column(attr).codes.get(row) as usize]);
        let identity: Vec<u32> = codes.collect();
        let known: AHashMap<Attr, u32> = attrs.iter().copied().zip(identity.iter().copied()).collect();
        if !seen.insert(identity) {
            continue;
        }
        let mut kept = true;
        for (number, chosen) in covered.choices().into_iter().enumerate() {
            let columns = [&without[..], &chosen].concat();
            let buckets = |column: usize| {
                let tuple: Vec<u32> =
                    covered.columns[column].iter().filter_map(|attr| known.get(attr).copied()).collect();
                places[column].get(&tuple).map_or(&[][..], |labels| &labels[..])
            };
            let fewest =
                columns.iter().map(|&column| buckets(column)).min_by_key(|labels| labels.len()).unwrap_or_default();
            // combinations as shares of their bucket, and expected rows
            for tree in std::iter::once(None).chain(trees.map(|trees| Some(&trees[number][..]))) {
                let mut weights: Vec<ExactWeight> = Vec::new();
                for bucket in fewest.iter().filter_map(|label| covered.buckets.get(label)) {
                    covered.weigh(&known, bucket, &columns, tree, &mut weights);
                }
                kept &= covered.keeps(claim.l, &weights);
            }
        }
        broken += u64::from(!kept);
    }
    if broken > 0 {
        let detail = format!("{broken} kinds of rows do not keep l over the buckets that they may stand in");
        findings.fail(CheckName::Guarantee, detail);
    }
    Ok(())
}

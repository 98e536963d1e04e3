//! Each published table, part by part: do its buckets agree, and does every bucket keep what the guards promise?

use std::collections::{BTreeMap, BTreeSet};

use ahash::AHashMap;

use super::decomposed::BothTables;
use super::posteriors::{PosteriorTally, count, posterior, posteriors};
use super::{content, decomposed, generalized, overlapping, slicing};
use crate::control::Control;
use crate::microdata::{AttrSet, MAX_ATTRIBUTES};
use crate::publication::{
    EnforcedBy, Guarantee, Part, Protected, PublishedTable, RowMeaning, TableGuard, TableProtection,
};
use crate::verifier::contract::checks::{CheckLog, CheckName, TableFigures};
use crate::verifier::contract::claim;
use crate::verifier::contract::claim::{DecompositionClaim, ValueCounts};
use crate::verifier::contract::evidence::{Evidence, VerifierError};
use crate::verifier::definition::guarantee::BucketShares;
use crate::verifier::definition::measure::BucketMeasure;
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::definition::thresholds;
use crate::verifier::read::bucket_classes::{BucketClasses, JointColumn};
use crate::verifier::read::part;
use crate::verifier::read::part::ParsedPart;
use crate::verifier::read::row_keys::BucketOffsets;

/// What the tables show together.
pub(in crate::verifier) struct TablesReport {
    pub(in crate::verifier) figures: Vec<TableFigures>,
    /// Per attribute, of the part where its most frequent value is most frequent; only without an original.
    pub(in crate::verifier) counts: Vec<Option<ValueCounts>>,
    /// Per attribute, what is stated of the values behind these counts.
    pub(in crate::verifier) stated: Vec<DeclaredValues>,
    /// The same per combination that a rule or guard speaks of and that stands in one part.
    pub(in crate::verifier) combined: BTreeMap<AttrSet, ValueCounts>,
}

/// Reads and checks every table.
pub(in crate::verifier) fn check(
    evidence: &Evidence<'_>,
    control: &Control,
    findings: &mut CheckLog,
) -> Result<TablesReport, VerifierError> {
    let mut tables = TablesReport {
        figures: Vec::new(),
        counts: vec![None; MAX_ATTRIBUTES],
        stated: vec![DeclaredValues::default(); MAX_ATTRIBUTES],
        combined: BTreeMap::new(),
    };
    let mut both = BothTables::default();
    for index in 0..evidence.publication.tables.len() {
        let figures = table(evidence, control, index, (&mut tables, &mut both), findings)?;
        tables.figures.push(figures);
    }
    if let Some(claim) = DecompositionClaim::from_evidence(evidence) {
        decomposed::check(evidence, &claim, &both, control, findings)?;
    }
    lengths(evidence, &tables, findings);
    Ok(tables)
}

impl TablesReport {
    /// Counts what a part shows.
    fn note(&mut self, evidence: &Evidence<'_>, part: &ParsedPart) {
        let more = |known: &ValueCounts, shown: &ValueCounts| known.iter().max() < shown.iter().max();
        for column in &part.columns {
            let shown = count(column);
            let known = &mut self.counts[column.attribute.index()];
            if known.as_ref().is_none_or(|known| more(known, &shown)) {
                *known = Some(shown);
                self.stated[column.attribute.index()].clone_from(&column.stated);
            }
        }
        for attrs in claim::combinations(evidence) {
            let Some(shown) = JointColumn::new(part, attrs).map(|joint| joint.counts()) else { continue };
            if self.combined.get(&attrs).is_none_or(|known| more(known, &shown)) {
                self.combined.insert(attrs, shown);
            }
        }
    }
}

/// Every table holds every row that is not suppressed.
fn lengths(evidence: &Evidence<'_>, tables: &TablesReport, findings: &mut CheckLog) {
    let rows = match evidence.original {
        Some(original) => (original.rows() as u64).saturating_sub(evidence.publication.suppressed),
        None => tables.figures.first().map_or(0, |figures| figures.rows),
    };
    let claim = DecompositionClaim::from_evidence(evidence);
    for (table, figures) in evidence.publication.tables.iter().zip(&tables.figures) {
        // parts that list values, or joint values of some rows, are held against the others
        let other = |part: &Part| part.rows == RowMeaning::Values || claim.is_some_and(|claim| claim.is_joint(part));
        if table.parts.iter().all(other) {
            if figures.rows > rows {
                findings.fail(CheckName::Columns, format!("table {} has more than {rows} rows", table.name));
            }
            continue;
        }
        let with_counterfeits = |rows_of| rows + thresholds::counterfeits(rows_of) * figures.buckets;
        if figures.rows != rows
            || table.parts.iter().any(|part| !other(part) && part.len != with_counterfeits(part.rows))
        {
            findings.fail(CheckName::Columns, format!("table {} does not have {rows} rows", table.name));
            if table.parts.iter().any(|part| part.bucketed) {
                findings
                    .fail(CheckName::Buckets, format!("the buckets of table {} do not hold {rows} rows", table.name));
            }
        }
    }
}

fn table(
    evidence: &Evidence<'_>,
    control: &Control,
    index: usize,
    (shown, both): (&mut TablesReport, &mut BothTables),
    findings: &mut CheckLog,
) -> Result<TableFigures, VerifierError> {
    let table = &evidence.publication.tables[index];
    let mut figures = TableFigures::default();
    let mut kept = BTreeSet::new();
    let mut first: Option<BucketOffsets> = None;
    let boxed = claim::is_boxed(table);
    let generalized = table.is_generalized() && !boxed;
    let claim = claim::SlicingClaim::from_evidence(evidence);
    let decomposition = DecompositionClaim::from_evidence(evidence);
    let promised = match &table.protection {
        _ if generalized => claim::promised(evidence, table),
        TableProtection::Guarding(guards) => guards.clone(),
        TableProtection::Exclusive if let Some(claim) = &decomposition => claim.promised(table),
        TableProtection::Exclusive => claim.iter().map(claim::SlicingClaim::looked_at).collect(),
        TableProtection::Plain => Vec::new(),
    };
    let mut whole: Vec<ParsedPart> = Vec::new();
    for (position, claimed) in table.parts.iter().enumerate() {
        let Some((mut part, keys)) = part::read(evidence, control, table, claimed, findings)? else { continue };
        // with an original, what is eligible is asked of the original
        let joint = decomposition.is_some_and(|claim| claim.is_joint(claimed));
        let listed = claimed.rows == RowMeaning::Values;
        let lacking = joint && decomposition.is_some_and(|claim| claim.leaves_out());
        let counted = !(listed || lacking);
        if evidence.original.is_none() && counted {
            shown.note(evidence, &part);
        }
        if position == 0 {
            figures.rows = part.rows as u64;
        }
        let place = format!("table {}, part {}", table.name, claimed.name);
        let sequential = super::sequential::details::sequential_details(evidence).is_some();
        if generalized && !sequential {
            generalized::label(table, &mut part);
        }
        match (&part.labels, &part.buckets) {
            (None, _) => {}
            (Some(_), None) => {
                for check in [CheckName::Buckets, CheckName::Guarantee] {
                    findings.fail(check, format!("{place}: there are labels above the number of rows"));
                }
            }
            (Some(_), Some(buckets)) => {
                control.check()?;
                let (table, part) = ((table, &promised[..]), (claimed, &part));
                promises(evidence, table, part, buckets, (&mut figures, &mut kept), findings, control)?;
                if generalized {
                    generalized::anonymity(evidence, table.0, buckets, findings);
                }
            }
        }
        if boxed {
            slicing::frequent(evidence, &part, &place, findings);
        }
        if evidence.original.is_some() || generalized {
            control.check()?;
            match (generalized || (boxed && evidence.witness.is_none()), &decomposition) {
                // its rows are held against its cuts
                _ if sequential => {}
                (true, _) => generalized::content(evidence, index, &part, claimed, &place, findings),
                (false, Some(claim)) if listed || joint => {
                    decomposed::content(evidence, claim, &part, claimed, &place, findings);
                }
                (false, _) => content::check(evidence, (index, position), &part, keys, &place, findings),
            }
        }
        if let Some(buckets) = part.buckets.take() {
            match &first {
                None => first = Some(buckets),
                Some(first) if listed => {
                    // values are as many as they are; that each bucket has some
                    if first.len() != buckets.len() || buckets.ranges().any(|range| range.is_empty()) {
                        let detail = format!("the parts of table {} have other buckets", table.name);
                        findings.fail(CheckName::Buckets, detail);
                    }
                }
                Some(first) if first.and_more(thresholds::counterfeits(claimed.rows), &buckets) => {}
                Some(_) => {
                    findings.fail(CheckName::Buckets, format!("the parts of table {} have other buckets", table.name));
                }
            }
        }
        match (claim.is_some(), decomposition.is_some()) {
            (true, _) => whole.push(part),
            (false, true) => both.0.push(part),
            (false, false) => {}
        }
    }
    match claim {
        Some(claim) if claim.shared => overlapping::check(evidence, &claim, &whole, control, &mut figures, findings)?,
        Some(claim) => slicing::check(evidence, &claim, &whole, control, findings)?,
        None => {}
    }
    if kept.len() < promised.len() {
        findings.fail(CheckName::Guarantee, format!("table {}: a guard could not be checked", table.name));
    }
    if let Some(buckets) = first {
        for size in buckets.ranges().map(|range| range.len() as u64).filter(|&size| size > 0) {
            figures.buckets += 1;
            *figures.sizes.entry(size).or_default() += 1;
        }
    }
    Ok(figures)
}

/// The guards whose protected attributes stand in this part: every bucket keeps each guarantee (versatile publishing, section 2),
/// also for whoever knows what the guard takes as known and the part shows beside them; and what the rules that lean on this
/// table ask for is measured.
fn promises(
    evidence: &Evidence<'_>,
    (table, guards): (&PublishedTable, &[TableGuard]),
    (claimed, part): (&Part, &ParsedPart),
    buckets: &BucketOffsets,
    (figures, kept): (&mut TableFigures, &mut BTreeSet<usize>),
    findings: &mut CheckLog,
    control: &Control,
) -> Result<(), VerifierError> {
    for (number, guard) in guards.iter().enumerate() {
        // a combination of one is no claim that is understood
        if matches!(guard.protects, Protected::Joint(attrs) if attrs.len() < 2) {
            continue;
        }
        let Some(classes) = BucketClasses::new(part, buckets, guard) else { continue };
        let leaning = |enforced_by: &EnforcedBy| matches!(enforced_by, EnforcedBy::Guardian { table: t, .. } | EnforcedBy::Table(t) if *t == table.name);
        let rules = evidence.publication.rules.iter().enumerate();
        let sensitive = guard.protects.attributes();
        let rules =
            rules.filter(|(_, rule)| leaning(&rule.enforced_by) && sensitive.is_subset(rule.protects.attributes()));
        let measured: Vec<(usize, Guarantee)> =
            rules.map(|(index, rule)| (index, rule.guarantee)).filter(|(_, g)| BucketMeasure::is_of(*g)).collect();
        kept.insert(number);
        // it is stated of single attributes
        let column = part.columns.iter().find(|column| guard.protects == Protected::Attribute(column.attribute));
        let nothing = DeclaredValues::default();
        let stated = column.map_or(&nothing, |column| &column.stated);
        let kept_by = BucketRequirements { stated, counterfeits: thresholds::counterfeits(claimed.rows) };
        let seen = ObservedBuckets::read(&classes, &kept_by, &guard.guarantees, &measured, control)?;
        for (guarantee, broken) in guard.guarantees.iter().zip(&seen.broken).filter(|(_, broken)| **broken > 0) {
            let (names, word) = (evidence.list(sensitive), guarantee.as_str());
            let detail = format!("table {}: {broken} buckets do not keep {word} of {names}", table.name);
            findings.fail(CheckName::Guarantee, detail);
        }
        figures.measures.extend(seen.measures);
        let smallest = buckets.ranges().map(|range| range.len() as u64).filter(|&rows| rows > 0).min().unwrap_or(0);
        let smallest = smallest.saturating_sub(kept_by.counterfeits);
        let Some(posteriors) = posteriors(seen.tallies, smallest) else { continue };
        match guard.protects {
            Protected::Attribute(attr) => figures.posteriors.insert(attr, posteriors),
            Protected::Joint(attrs) => figures.combined.insert(attrs, posteriors),
            Protected::Rows => None,
        };
    }
    Ok(())
}

/// What buckets are held against beside guarantees.
struct BucketRequirements<'a> {
    /// What is stated of the values.
    stated: &'a DeclaredValues,
    /// So many rows of each bucket are of nobody.
    counterfeits: u64,
}

impl BucketRequirements<'_> {
    /// The largest share that whoever knows how many counterfeits there are can be sure of: a value that occurs more often than once
    /// is real, and one that occurs once may not be.
    fn posterior(&self, most: u64, size: u64) -> (u64, u64) {
        if most > 1 { (most, size.saturating_sub(self.counterfeits)) } else { (most, size) }
    }
}

/// What the buckets of a part show of its sensitive attribute.
struct ObservedBuckets {
    tallies: PosteriorTally,
    /// Per guarantee, how many buckets break it.
    broken: Vec<u64>,
    /// Per rule, its worst bucket.
    measures: Vec<(usize, BucketMeasure)>,
}

impl ObservedBuckets {
    fn read(
        classes: &BucketClasses<'_>,
        kept_by: &BucketRequirements<'_>,
        guarantees: &[Guarantee],
        measured: &[(usize, Guarantee)],
        control: &Control,
    ) -> Result<Self, VerifierError> {
        let BucketRequirements { stated, counterfeits } = *kept_by;
        let overall = classes.protected.counts();
        let mut seen = Self { tallies: PosteriorTally::new(), broken: vec![0; guarantees.len()], measures: Vec::new() };
        let mut worst: Vec<Option<BucketMeasure>> = vec![None; measured.len()];
        // l-diversity needs the most frequent value alone; other guarantees compare all values, once per kind of bucket
        let plain =
            |guarantee: &Guarantee| matches!(guarantee, Guarantee::LDiversity { .. }) && stated.excluded.is_empty();
        let compared = !measured.is_empty() || !guarantees.iter().all(plain);
        let mut kinds: AHashMap<Vec<(u32, u64)>, u64> = AHashMap::new();
        let mut shown = PosteriorTally::new();
        classes.each(|class| {
            let runs = class.chunk_by(|a, b| a == b);
            *shown.entry(posterior(class, &stated.excluded)).or_default() += 1;
            if compared {
                *kinds.entry(runs.map(|run| (run[0], run.len() as u64)).collect()).or_default() += 1;
            }
        });
        for (broken, guarantee) in seen.broken.iter_mut().zip(guarantees) {
            if let Guarantee::LDiversity { l } = *guarantee
                && plain(guarantee)
            {
                // counterfeits protect, but they are no part of what is promised
                let breaks = |(count, size): (u64, u64)| {
                    u128::from(count) * u128::from(l) > u128::from(size.saturating_sub(counterfeits))
                };
                *broken = shown.iter().filter(|(kind, _)| breaks(**kind)).map(|(_, buckets)| buckets).sum();
            }
        }
        for (first, (kind, number)) in kinds.into_iter().enumerate().map(|(index, kind)| (index == 0, kind)) {
            control.check()?;
            let shares = BucketShares::new(&kind, &overall, stated);
            for (broken, guarantee) in seen.broken.iter_mut().zip(guarantees).filter(|(_, g)| !plain(g)) {
                *broken += if shares.keep(*guarantee) { 0 } else { number };
            }
            for (worst, (_, guarantee)) in worst.iter_mut().zip(measured) {
                let here = BucketMeasure::new(*guarantee, &shares);
                *worst = if first { here } else { BucketMeasure::worse(*worst, here) };
            }
        }
        for ((most, size), buckets) in shown {
            *seen.tallies.entry(kept_by.posterior(most, size)).or_default() += buckets;
        }
        seen.measures = measured.iter().zip(worst).filter_map(|((rule, _), worst)| Some((*rule, worst?))).collect();
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::contract::checks::PosteriorSummary;

    #[test]
    fn what_can_be_ruled_out_is_counted_aside() {
        assert_eq!(posterior(&[0, 1, 1, 2], &[]), (2, 4));
        // two of three that are left, against one of four
        assert_eq!(posterior(&[0, 1, 1, 2], &[0]), (2, 3));
        assert_eq!(posterior(&[0, 0, 1, 2], &[0]), (1, 2));
        assert_eq!(posterior(&[0, 0, 0, 1, 2], &[0]), (3, 5));
        assert_eq!(posterior(&[0, 0], &[0]), (2, 2));
    }

    #[test]
    fn posteriors_are_ordered_by_share_then_by_size() {
        let tallies = |list: &[((u64, u64), u64)]| posteriors(list.iter().copied().collect(), 2);
        let all = tallies(&[((1, 3), 2), ((2, 4), 1), ((1, 2), 1)]);
        assert_eq!(all, Some(PosteriorSummary { worst: (1, 2), median: (2, 4), smallest_bucket: 2 }));
        let odd = tallies(&[((1, 3), 2), ((1, 2), 1)]);
        assert_eq!(odd, Some(PosteriorSummary { worst: (1, 2), median: (1, 3), smallest_bucket: 2 }));
        assert_eq!(tallies(&[]), None);
    }
}

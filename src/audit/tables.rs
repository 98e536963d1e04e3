//! Each published table, part by part: do its buckets agree, and does every bucket keep what the seals promise?

use ahash::AHashMap;

use super::keys::Buckets;
use super::part::{self, ReadColumn, ReadPart};
use super::rules::Largest;
use super::{AuditStopped, CheckName, Evidence, Findings, Posteriors, TableFigures, content};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Codes, MAX_ATTRIBUTES};
use crate::publication::{Guarantee, Protected, PublishedTable, Standing};
use crate::with_codes;

/// What the tables show together.
pub(super) struct Tables {
    pub(super) figures: Vec<TableFigures>,
    /// Per attribute, of the part where its most frequent value is most frequent; only without an original.
    pub(super) largest: Vec<Option<Largest>>,
}

/// Reads and checks every table.
pub(super) fn check(
    evidence: &Evidence<'_>,
    control: &Control,
    findings: &mut Findings,
) -> Result<Tables, AuditStopped> {
    let mut tables = Tables { figures: Vec::new(), largest: vec![None; MAX_ATTRIBUTES] };
    for index in 0..evidence.publication.tables.len() {
        let figures = table(evidence, control, index, &mut tables.largest, findings)?;
        tables.figures.push(figures);
    }
    lengths(evidence, &tables, findings);
    Ok(tables)
}

/// Every table holds every row.
fn lengths(evidence: &Evidence<'_>, tables: &Tables, findings: &mut Findings) {
    let rows = match evidence.original {
        Some(original) => original.rows() as u64,
        None => tables.figures.first().map_or(0, |figures| figures.rows),
    };
    for (table, figures) in evidence.publication.tables.iter().zip(&tables.figures) {
        if figures.rows != rows || table.parts.iter().any(|part| part.len != rows) {
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
    largest: &mut [Option<Largest>],
    findings: &mut Findings,
) -> Result<TableFigures, AuditStopped> {
    let table = &evidence.publication.tables[index];
    let mut figures = TableFigures::default();
    let mut kept = AttrSet::EMPTY;
    let mut first: Option<Buckets> = None;
    for (position, claimed) in table.parts.iter().enumerate() {
        let Some((mut part, keys)) = part::read(evidence, control, table, claimed, findings)? else { continue };
        // with an original, what is eligible is asked of the original
        for column in part.columns.iter().filter(|_| evidence.original.is_none()) {
            let count = count_largest(column);
            let known = &mut largest[column.attribute.index()];
            *known = (*known).max(Some((count, part.rows as u64)));
        }
        if position == 0 {
            figures.rows = part.rows as u64;
        }
        let place = format!("table {}, part {}", table.name, claimed.name);
        match (&part.labels, &part.buckets) {
            (None, _) => {}
            (Some(_), None) => {
                for check in [CheckName::Buckets, CheckName::Guarantee] {
                    findings.fail(check, format!("{place}: there are labels above the number of rows"));
                }
            }
            (Some(_), Some(buckets)) => {
                control.check()?;
                promises(evidence, table, &part, buckets, (&mut figures, &mut kept), findings);
            }
        }
        if evidence.original.is_some() {
            control.check()?;
            content::check(evidence, index, &part, keys, &place, findings);
        }
        if let Some(buckets) = part.buckets.take() {
            match &first {
                None => first = Some(buckets),
                Some(first) if *first == buckets => {}
                Some(_) => {
                    findings.fail(CheckName::Buckets, format!("the parts of table {} have other buckets", table.name));
                }
            }
        }
    }
    if let Standing::Sealed(seals) = &table.standing
        && !seals.iter().all(|seal| seal.protects.attributes().is_subset(kept))
    {
        findings.fail(CheckName::Guarantee, format!("table {}: a seal could not be checked", table.name));
    }
    if let Some(buckets) = first {
        for size in buckets.ranges().map(|range| range.len() as u64).filter(|&size| size > 0) {
            figures.buckets += 1;
            *figures.sizes.entry(size).or_default() += 1;
        }
    }
    Ok(figures)
}

fn count_largest(column: &ReadColumn) -> u64 {
    let mut counts = vec![0_u64; column.size];
    with_codes!(&column.codes, codes => for &code in codes {
        counts[code as usize] += 1;
    });
    counts.into_iter().max().unwrap_or(0)
}

/// The seals whose protected attribute stands in this part: every bucket keeps each guarantee (versatile publishing,
/// section 2: no value takes more than 1/l of a bucket).
fn promises(
    evidence: &Evidence<'_>,
    table: &PublishedTable,
    part: &ReadPart,
    buckets: &Buckets,
    (figures, kept): (&mut TableFigures, &mut AttrSet),
    findings: &mut Findings,
) {
    let Standing::Sealed(seals) = &table.standing else { return };
    for seal in seals {
        let Protected::Attribute(sensitive) = seal.protects else {
            findings.fail(CheckName::Guarantee, format!("table {}: a combination cannot be checked", table.name));
            continue;
        };
        let Some(tallies) = tallies(part, sensitive, buckets) else { continue };
        *kept = kept.with(sensitive);
        for guarantee in &seal.guarantees {
            let Guarantee::LDiversity { l } = *guarantee;
            let breaks =
                tallies.iter().filter(|((count, size), _)| u128::from(*count) * u128::from(l) > u128::from(*size));
            let buckets: u64 = breaks.map(|(_, buckets)| buckets).sum();
            if buckets > 0 {
                let name = evidence.name(sensitive);
                let detail = format!("table {}: {buckets} buckets are less than {l}-diverse in {name}", table.name);
                findings.fail(CheckName::Guarantee, detail);
            }
        }
        if let Some(posteriors) = posteriors(tallies) {
            figures.posteriors.insert(sensitive, posteriors);
        }
    }
}

/// Per (count of the most frequent value, size): how many buckets are so.
type Tallies = AHashMap<(u64, u64), u64>;

fn tallies(part: &ReadPart, sensitive: Attr, buckets: &Buckets) -> Option<Tallies> {
    let column = part.columns.iter().find(|column| column.attribute == sensitive)?;
    let labels = part.labels.as_ref()?;
    let scattered;
    let codes = if labels.is_sorted() {
        &column.codes
    } else {
        let mut codes: Vec<u32> = vec![0; part.rows];
        let mut next: Vec<usize> = buckets.ranges().map(|range| range.start).collect();
        for (&label, code) in labels.iter().zip(column.codes.iter()) {
            let place = &mut next[label as usize - 1];
            codes[*place] = code;
            *place += 1;
        }
        scattered = Codes::U32(codes);
        &scattered
    };
    let mut tallies = Tallies::new();
    let mut bucket: Vec<u32> = Vec::new();
    for range in buckets.ranges().filter(|range| !range.is_empty()) {
        bucket.clear();
        bucket.extend(range.map(|row| codes.get(row)));
        bucket.sort_unstable();
        let count = bucket.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0);
        *tallies.entry((count as u64, bucket.len() as u64)).or_default() += 1;
    }
    Some(tallies)
}

fn posteriors(tallies: Tallies) -> Option<Posteriors> {
    let mut rising: Vec<((u64, u64), u64)> = tallies.into_iter().collect();
    // by share; of equal shares the smaller bucket is the worse
    rising.sort_unstable_by(|&((a, of_a), _), &((b, of_b), _)| {
        let (left, right) = (u128::from(a) * u128::from(of_b), u128::from(b) * u128::from(of_a));
        left.cmp(&right).then(of_b.cmp(&of_a))
    });
    let buckets: u64 = rising.iter().map(|(_, buckets)| buckets).sum();
    let mut before = 0;
    let median = rising.iter().find(|(_, buckets_here)| {
        before += buckets_here;
        before > buckets / 2
    })?;
    let smallest_bucket = rising.iter().map(|&((_, size), _)| size).min()?;
    Some(Posteriors { worst: rising.last()?.0, median: median.0, smallest_bucket })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posteriors_are_ordered_by_share_then_by_size() {
        let tallies = |list: &[((u64, u64), u64)]| posteriors(list.iter().copied().collect());
        let all = tallies(&[((1, 3), 2), ((2, 4), 1), ((1, 2), 1)]);
        assert_eq!(all, Some(Posteriors { worst: (1, 2), median: (2, 4), smallest_bucket: 2 }));
        let odd = tallies(&[((1, 3), 2), ((1, 2), 1)]);
        assert_eq!(odd, Some(Posteriors { worst: (1, 2), median: (1, 3), smallest_bucket: 2 }));
        assert_eq!(tallies(&[]), None);
    }
}

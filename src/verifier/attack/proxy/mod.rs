//! Whoever knows how often values of two attributes go together, from people like those of the table: an attribute that no rule
//! names is published about the target, and tells of the sensitive one.
//!
//! One half of the original's rows stands for what the adversary knows already: how often each value of the attribute occurs with
//! each sensitive value. The other half are the targets. Of each the adversary finds, in the tables, what sensitive value and what
//! value of the attribute the known attributes leave possible, and holds the pairs against the counts. What is measured is the
//! mean probability given to the true value: were the rule's bound true of what the adversary can conclude, no way of weighing
//! could reach more than the bound on average.

pub(in crate::verifier) mod agreeing;

use agreeing::{AgreeingParts, UNTRANSLATED_VALUE, translated};
use ahash::AHashMap;

use super::error::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::publication::{Guarantee, Protected};
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{ExternalPart, ExternalTable};
use crate::with_codes;

/// So many targets are looked at.
const MAX_TARGETS: usize = 20_000;

/// The most pairs of values that are weighed.
const MAX_WEIGHED_PAIRS: u64 = 1 << 28;

/// With more possible sensitive values than this only those are weighed that go with a possible value of the attribute.
const MAX_DENSE_VALUES: usize = 256;

/// Added to what is counted and to what chance would make of it: pairs that are rare either way tell little.
const SMOOTHING: f64 = 0.01;

/// So many standard deviations of counts above the bound are no coincidence.
const MIN_DEVIATIONS: f64 = 4.0;

/// How far an attribute gives a sensitive one away.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProxyFinding {
    /// The rule, by its index.
    pub rule: usize,
    /// The attribute that tells.
    pub attribute: Attr,
    /// The table that shows it, by its index.
    pub table: usize,
    /// The sum, over all targets, of the probability that is given to the true value.
    pub sum: f64,
    /// How many targets there are.
    pub targets: u64,
    /// Whether that is more than the rule allows.
    pub breach: bool,
}

/// Plays the attack for every rule that protects one attribute and every published attribute beside it. `hash` is secret and says
/// of each row of the original which half it is in.
///
/// # Errors
/// [`AttackError`]; `NotExact` also without an original.
pub fn infer_by_proxy(
    submission: &Submission<'_>,
    hash: &dyn Fn(usize) -> u64,
    control: &Control,
) -> Result<Vec<ProxyFinding>, AttackError> {
    let Some(original) = submission.original else { return Err(AttackError::NotExact) };
    let mut hashes: Vec<u64> = Vec::with_capacity(original.rows);
    for row in 0..original.rows {
        if row % Control::STRIDE == 0 {
            control.check()?;
        }
        hashes.push(hash(row));
    }
    let mut targets: Vec<usize> = (0..original.rows).filter(|&row| hashes[row] & 1 == 1).collect();
    // some of them, whatever the order of the rows
    targets.sort_unstable_by_key(|&row| (hashes[row], row));
    targets.truncate(MAX_TARGETS);
    targets.sort_unstable();
    let mut steps = 0;
    let mut found = Vec::new();
    for (rule, asked) in submission.rules.iter().enumerate() {
        let Protected::Attribute(sensitive) = asked.protects else { continue };
        let Some(true_values) = original.column(sensitive) else { continue };
        let holds = |attr: Attr| move |table: &&ExternalTable| exact(table).contains(attr);
        let shows = |attr: Attr| {
            // the table in which most of what is known locates the target
            let tables = submission.tables.iter().enumerate().filter(move |(_, table)| holds(attr)(table));
            let located = move |table: &ExternalTable| exact(table).intersection(asked.known).without(attr).len();
            tables.map(|(at, table)| (located(table), at)).max_by_key(|&(known, at)| (known, usize::MAX - at))
        };
        let Some((_, table)) = shows(sensitive) else { continue };
        let of_sensitive =
            RemainingDistribution::new(&submission.tables[table], sensitive, asked.known, original, control)?;
        let published = submission.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(exact(table)));
        for attribute in published.minus(asked.known).without(sensitive).iter() {
            let (Some(column), Some((known, table))) = (original.column(attribute), shows(attribute)) else { continue };
            if known == 0 {
                // of whom nothing is known in the table, the table tells nothing
                continue;
            }
            let of_attribute =
                RemainingDistribution::new(&submission.tables[table], attribute, asked.known, original, control)?;
            let together = CoOccurrence::new(true_values, column, &hashes, control)?;
            let (mut sum, mut alone) = (0.0, 0.0);
            for (looked, &target) in targets.iter().enumerate() {
                if looked % 64 == 0 {
                    control.check()?;
                }
                let sensitive = of_sensitive.of_row(target);
                let beside = of_attribute.of_row(target);
                let (given, work) = together.weigh(&sensitive, &beside, true_values.codes.get(target));
                sum += given;
                alone += sensitive.iter().map(|&(_, share)| share).fold(0.0, f64::max);
                steps += work;
                if steps > MAX_WEIGHED_PAIRS {
                    return Err(AttackError::TooMany {
                        what: "pairs of values",
                        limit: MAX_WEIGHED_PAIRS,
                        found: steps,
                    });
                }
            }
            let count = targets.len() as f64;
            let allowed = match asked.guarantee {
                Guarantee::LDiversity { l } => count / l.max(1) as f64,
                Guarantee::AlphaK { alpha, .. } => count * alpha.to_f64(),
                // of what is no bound on each value, what the table by itself shows
                _ => alone,
            };
            let breach = sum > MIN_DEVIATIONS.mul_add(allowed.sqrt(), allowed);
            found.push(ProxyFinding { rule, attribute, table, sum, targets: targets.len() as u64, breach });
        }
    }
    Ok(found)
}

/// The attributes whose cells are values.
fn exact(table: &ExternalTable) -> AttrSet {
    table.parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(part.attributes().minus(part.opaque())))
}

/// How often values go together in the half that is known.
struct CoOccurrence {
    /// Per value of the attribute: the sensitive values that occur with it, rising, each with how often.
    beside: Vec<Vec<(u32, u32)>>,
    sensitive: Vec<f64>,
    attribute: Vec<f64>,
    rows: f64,
}

impl CoOccurrence {
    fn new(sensitive: &Column, attribute: &Column, hashes: &[u64], control: &Control) -> Result<Self, AttackError> {
        let (mut of_sensitive, mut of_attribute) =
            (vec![0.0; sensitive.domain.len()], vec![0.0; attribute.domain.len()]);
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (row, _) in hashes.iter().enumerate().filter(|(_, hash)| **hash & 1 == 0) {
            let (s, a) = (sensitive.codes.get(row), attribute.codes.get(row));
            of_sensitive[s as usize] += 1.0;
            of_attribute[a as usize] += 1.0;
            pairs.push((a, s));
        }
        control.check()?;
        pairs.sort_unstable();
        let mut beside: Vec<Vec<(u32, u32)>> = vec![Vec::new(); attribute.domain.len()];
        for run in pairs.chunk_by(|a, b| a == b) {
            beside[run[0].0 as usize].push((run[0].1, run.len() as u32));
        }
        Ok(Self { beside, sensitive: of_sensitive, attribute: of_attribute, rows: pairs.len() as f64 })
    }

    /// How much more often two values go together than chance has it.
    fn lift(&self, sensitive: u32, attribute: u32, count: f64) -> f64 {
        let of = |counts: &[f64], code: u32| counts.get(code as usize).copied().unwrap_or(0.0);
        let chance = of(&self.sensitive, sensitive) * of(&self.attribute, attribute) / self.rows.max(1.0);
        (count + SMOOTHING) / (chance + SMOOTHING)
    }

    fn count(&self, sensitive: u32, attribute: u32) -> f64 {
        let beside = self.beside.get(attribute as usize).map_or(&[][..], |beside| &beside[..]);
        let found = beside.binary_search_by_key(&sensitive, |&(of, _)| of);
        found.map_or(0.0, |at| f64::from(beside[at].1))
    }

    /// The probability given to the true value, and how many pairs were weighed.
    fn weigh(&self, sensitive: &[(u32, f64)], attribute: &[(u32, f64)], truth: u32) -> (f64, u64) {
        let (mut all, mut of_truth, mut work) = (0.0, 0.0, 0);
        let mut weigh = |value: u32, weight: f64| {
            all += weight;
            if value == truth {
                of_truth += weight;
            }
        };
        if sensitive.len() <= MAX_DENSE_VALUES {
            work += (sensitive.len() * attribute.len()) as u64;
            for &(value, share) in sensitive {
                let lifts =
                    attribute.iter().map(|&(beside, of)| of * self.lift(value, beside, self.count(value, beside)));
                weigh(value, share * lifts.sum::<f64>());
            }
        } else {
            for &(beside, of) in attribute {
                let together = self.beside.get(beside as usize).map_or(&[][..], |beside| &beside[..]);
                work += together.len() as u64 + 1;
                for &(value, count) in together {
                    let at = sensitive.binary_search_by_key(&value, |&(value, _)| value);
                    let share = at.map_or(0.0, |at| sensitive[at].1);
                    weigh(value, share * of * self.lift(value, beside, f64::from(count)));
                }
            }
        }
        if all > 0.0 {
            return (of_truth / all, work);
        }
        // the counts contradict the tables: nothing but the tables is left
        let shares = sensitive.iter().filter(|(value, _)| *value == truth).map(|(_, share)| share);
        (shares.sum(), work)
    }
}

/// What a table leaves possible of an attribute.
enum RemainingDistribution<'a> {
    /// Its parts are independent within a bucket.
    Apart(RowDistributions),
    /// They share attributes.
    Agreeing(AgreeingParts<'a>),
}

impl<'a> RemainingDistribution<'a> {
    fn new(
        table: &ExternalTable,
        attribute: Attr,
        known: AttrSet,
        original: &'a ExternalPart,
        control: &Control,
    ) -> Result<Self, AttackError> {
        match table.overlaps() {
            true => AgreeingParts::new(table, attribute, known, original, control).map(Self::Agreeing),
            false => RowDistributions::new(table, attribute, known, original, control).map(Self::Apart),
        }
    }

    fn of_row(&self, row: usize) -> Vec<(u32, f64)> {
        match self {
            Self::Apart(distributions) => distributions.of_row(row),
            Self::Agreeing(agreeing) => agreeing.of_row(row),
        }
    }
}

/// Of each tuple the buckets, rising, each with how many of its rows have the tuple.
type TupleBucketCounts = AHashMap<u32, Vec<(u32, u32)>>;

/// What a table leaves possible of an attribute, for each row of the original.
struct RowDistributions {
    /// Per part that shows something known, but for the attribute's own: for each row of the original its tuple, and of each
    /// tuple the buckets, with how many rows of each have it.
    located: Vec<(Vec<u32>, TupleBucketCounts)>,
    /// For each row of the original its tuple in the attribute's own part.
    own: Vec<u32>,
    /// Per bucket and tuple: the values, as the original numbers them, with how often they occur. Where no other part locates
    /// anybody, all buckets are one.
    values: AHashMap<(u32, u32), Vec<(u32, u32)>>,
    sizes: Vec<f64>,
}

impl RowDistributions {
    fn new(
        table: &ExternalTable,
        attribute: Attr,
        known: AttrSet,
        original: &ExternalPart,
        control: &Control,
    ) -> Result<Self, AttackError> {
        let known = known.without(attribute).intersection(original.attributes());
        let mut labels: AHashMap<Option<Vec<u8>>, u32> = AHashMap::new();
        let mut sizes: Vec<f64> = Vec::new();
        let mut located: Vec<(Vec<u32>, TupleBucketCounts)> = Vec::new();
        let mut own = None;
        for (index, part) in table.parts.iter().enumerate() {
            control.check()?;
            let mut buckets = vec![0_u32; part.rows];
            if let Some(bucket) = &part.bucket {
                let of_code: Vec<u32> = bucket
                    .domain
                    .iter()
                    .map(|label| {
                        let next = labels.len() as u32;
                        *labels.entry(label.map(<[u8]>::to_vec)).or_insert(next)
                    })
                    .collect();
                buckets = bucket.codes.iter().map(|code| of_code[code as usize]).collect();
            }
            sizes.resize(sizes.len().max(labels.len()).max(1), 0.0);
            if index == 0 {
                buckets.iter().for_each(|&bucket| sizes[bucket as usize] += 1.0);
            }
            let shown = part.attributes().minus(part.opaque()).intersection(known);
            let holds = part.column(attribute).filter(|_| !part.opaque().contains(attribute));
            if holds.is_none() && shown.is_empty() {
                continue;
            }
            let (of_rows, of_original) = tuples(part, shown, original);
            match holds {
                Some(column) => own = Some((of_rows, of_original, column, buckets)),
                None => {
                    let mut places: Vec<(u32, u32)> = of_rows.into_iter().zip(buckets).collect();
                    places.sort_unstable();
                    let mut of_tuple = TupleBucketCounts::new();
                    for run in places.chunk_by(|a, b| a == b) {
                        of_tuple.entry(run[0].0).or_default().push((run[0].1, run.len() as u32));
                    }
                    located.push((of_original, of_tuple));
                }
            }
        }
        let Some((of_rows, own, column, buckets)) = own else { return Err(AttackError::NotExact) };
        let codes = translated(column, original.column(attribute));
        let mut places: Vec<(u32, u32, u32)> = Vec::with_capacity(buckets.len());
        for (row, (tuple, bucket)) in of_rows.into_iter().zip(buckets).enumerate() {
            let bucket = if located.is_empty() { 0 } else { bucket };
            places.push((bucket, tuple, codes[column.codes.get(row) as usize]));
        }
        control.check()?;
        places.sort_unstable();
        let mut values: AHashMap<(u32, u32), Vec<(u32, u32)>> = AHashMap::new();
        for run in places.chunk_by(|a, b| a == b) {
            let (bucket, tuple, value) = run[0];
            values.entry((bucket, tuple)).or_default().push((value, run.len() as u32));
        }
        Ok(Self { located, own, values, sizes })
    }

    /// The values that a row of the original may have, rising, and the share of each; none where the table has no such row.
    fn of_row(&self, row: usize) -> Vec<(u32, f64)> {
        let mut shares: Vec<(u32, f64)> = Vec::new();
        let mut add = |bucket: u32, weight: f64| {
            for &(value, count) in self.values.get(&(bucket, self.own[row])).into_iter().flatten() {
                shares.push((value, weight * f64::from(count)));
            }
        };
        match self.located.split_first() {
            None => add(0, 1.0),
            Some(((tuples, first), others)) => {
                for &(bucket, count) in first.get(&tuples[row]).into_iter().flatten() {
                    let size = self.sizes[bucket as usize].max(1.0);
                    let beside = others.iter().map(|(tuples, of_tuple)| {
                        let buckets = of_tuple.get(&tuples[row]).map_or(&[][..], |buckets| &buckets[..]);
                        let at = buckets.binary_search_by_key(&bucket, |&(of, _)| of);
                        at.map_or(0.0, |at| f64::from(buckets[at].1)) / size
                    });
                    add(bucket, f64::from(count) * beside.product::<f64>() / size);
                }
            }
        }
        // the order among equal values is that of the buckets, so that sums are always the same
        shares.sort_by_key(|&(value, _)| value);
        let all: f64 = shares.iter().map(|&(_, share)| share).sum();
        let runs = shares.chunk_by(|a, b| a.0 == b.0);
        runs.map(|run| (run[0].0, run.iter().map(|&(_, share)| share).sum::<f64>() / all)).collect()
    }
}

/// The rows of a part and those of the original by their values of some attributes: equal numbers for equal values.
fn tuples(part: &ExternalPart, attributes: AttrSet, original: &ExternalPart) -> (Vec<u32>, Vec<u32>) {
    let (mut of_rows, mut of_original) = (vec![0_u32; part.rows], vec![0_u32; original.rows]);
    for attr in attributes.iter() {
        let (Some(column), Some(known)) = (part.column(attr), original.column(attr)) else { continue };
        let codes = translated(column, Some(known));
        let mut pairs: AHashMap<(u32, u32), u32> = AHashMap::new();
        for (tuple, code) in of_rows.iter_mut().zip(column.codes.iter()) {
            let next = pairs.len() as u32;
            *tuple = *pairs.entry((*tuple, codes[code as usize])).or_insert(next);
        }
        with_codes!(&known.codes, codes => for (tuple, &code) in of_original.iter_mut().zip(codes) {
            *tuple = pairs.get(&(*tuple, wide(code))).copied().unwrap_or(UNTRANSLATED_VALUE);
        });
    }
    (of_rows, of_original)
}

/// A code of whatever width.
fn wide(code: impl Into<u32>) -> u32 {
    code.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::ColumnBuilder;
    use crate::microdata::formats::IngestLimits;
    use crate::microdata::formats::csv::{CsvOptions, CsvReader};
    use crate::publication::{RowMeaning, SubmittedRule};

    /// A part of the attributes a, b, s and p, from its CSV.
    fn part(csv: &str) -> ExternalPart {
        let limits = IngestLimits::default();
        let mut reader = CsvReader::open(csv.as_bytes(), CsvOptions::default(), &limits).unwrap();
        let names = reader.names().to_vec();
        let mut builders: Vec<ColumnBuilder> = names.iter().map(|_| ColumnBuilder::new(&limits)).collect();
        while let Some(chunk) = reader.next_chunk().unwrap() {
            builders.iter_mut().zip(&chunk.columns).for_each(|(builder, column)| builder.push(column).unwrap());
        }
        let kinds = reader.kinds().to_vec();
        let (mut bucket, mut columns) = (None, Vec::new());
        for (name, (builder, kind)) in names.iter().zip(builders.into_iter().zip(kinds)) {
            let column = builder.finish(kind);
            match "absp".find(name.as_str()) {
                Some(at) => columns.push((Attr(at as u8), column)),
                None => bucket = Some(column),
            }
        }
        let rows = csv.lines().count() - 1;
        ExternalPart {
            name: "p".into(),
            meaning: RowMeaning::Tuples,
            rows,
            bucket,
            columns,
            cells: std::collections::BTreeMap::new(),
        }
    }

    fn table(parts: &[&str]) -> ExternalTable {
        ExternalTable { name: "t".into(), parts: parts.iter().map(|csv| part(csv)).collect() }
    }

    fn set(attrs: &[u8]) -> AttrSet {
        attrs.iter().map(|&attr| Attr(attr)).collect()
    }

    #[test]
    fn what_a_table_leaves_possible_is_what_its_buckets_hold() {
        let original = part("a,b,s,p\n1,x,u,0\n1,y,v,0\n2,x,w,0\n2,y,u,0\n");
        // a=1 stands twice in the first bucket of three and once in the second of two
        let tied = table(&["bucket,a\n7,1\n7,1\n7,2\n8,1\n8,2\n", "bucket,s\n7,u\n7,v\n7,v\n8,u\n8,w\n"]);
        let of = |table: &ExternalTable, known: &[u8], row: usize| {
            let found = RowDistributions::new(table, Attr(2), set(known), &original, &Control::default()).unwrap();
            found.of_row(row).iter().map(|&(code, share)| (code, (share * 30.0).round() as u32)).collect::<Vec<_>>()
        };
        // u: 2/3 * 1/3 + 1/3 * 1/2; v: 2/3 * 2/3; w: 1/3 * 1/2
        assert_eq!(of(&tied, &[0], 0), [(0, 12), (1, 13), (2, 5)]);
        // of nothing known all rows are possible
        assert_eq!(of(&tied, &[1], 0), [(0, 12), (1, 12), (2, 6)]);
        let plain = table(&["a,s\n1,u\n1,v\n2,w\n"]);
        assert_eq!((of(&plain, &[0, 1], 1), of(&plain, &[0], 3)), (vec![(0, 15), (1, 15)], vec![(2, 30)]));
        // three parts, and what is known beside the sensitive attribute itself
        let three = table(&[
            "bucket,a\n1,1\n1,2\n2,1\n2,1\n",
            "bucket,b,s\n1,x,u\n1,y,v\n2,x,v\n2,x,w\n",
            "bucket,p\n1,0\n1,0\n2,0\n2,0\n",
        ]);
        // a=1: a row of the first bucket, two of the second; b=x: one and two of them
        assert_eq!(of(&three, &[0, 1], 0), [(0, 6), (1, 12), (2, 12)]);
        assert!(of(&table(&["a,s\n3,u\n"]), &[0], 0).is_empty());
    }

    /// People who differ in a, two to a bucket; p goes with s, or has nothing to do with it.
    fn attacked(tells: bool, l: u64) -> Vec<ProxyFinding> {
        let mut original = "a,b,s,p\n".to_owned();
        let (mut qi, mut sa, mut others) = ("bucket,a\n".to_owned(), "bucket,s\n".to_owned(), "bucket,p\n".to_owned());
        let mut second = "bucket,a\n".to_owned();
        for at in 0..400_u32 {
            let s = at % 8;
            let p = if tells { s } else { (at / 8) % 8 };
            original += &format!("{at},x,s{s},p{p}\n");
            qi += &format!("{},{at}\n", at / 2);
            sa += &format!("{},s{s}\n", at / 2);
            // other people are together in the other table
            let bucket = if tells { at / 8 * 4 + at % 4 } else { at % 200 };
            second += &format!("{bucket},{at}\n");
            others += &format!("{bucket},p{p}\n");
        }
        let tables = [table(&[&qi, &sa]), table(&[&second, &others])];
        let names: Vec<String> = ["a", "b", "s", "p"].map(str::to_owned).to_vec();
        let rule = SubmittedRule {
            pointer: "/rules/0".to_owned(),
            known: set(&[0, 1]),
            protects: Protected::Attribute(Attr(2)),
            guarantee: Guarantee::LDiversity { l },
        };
        let original = part(&original);
        let submission = Submission {
            tables: &tables,
            names: &names,
            rules: std::slice::from_ref(&rule),
            dependencies: &[],
            original: Some(&original),
            taxonomies: &[],
            thresholds: &[],
            exact: AttrSet::EMPTY,
        };
        let hash = |row: usize| (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        infer_by_proxy(&submission, &hash, &Control::default()).unwrap()
    }

    #[test]
    fn an_attribute_that_goes_with_the_sensitive_one_gives_it_away() {
        let found = attacked(true, 2);
        assert_eq!(found.len(), 1);
        let ProxyFinding { rule, attribute, table, sum, targets, breach } = found[0];
        assert_eq!((rule, attribute, table, breach), (0, Attr(3), 1, true));
        // of two candidates the other table's bucket has one
        assert!(sum > 0.95 * targets as f64 && (150..250).contains(&targets), "{sum} of {targets}");
        let found = attacked(false, 2);
        assert!(!found[0].breach && (found[0].sum / targets as f64 - 0.5).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn without_the_original_nothing_is_known_to_go_together() {
        let submission = Submission {
            tables: &[],
            names: &[],
            rules: &[],
            dependencies: &[],
            original: None,
            taxonomies: &[],
            thresholds: &[],
            exact: AttrSet::EMPTY,
        };
        assert!(matches!(infer_by_proxy(&submission, &|_| 0, &Control::default()), Err(AttackError::NotExact)));
    }
}

//! Figures of tables from the contents of their buckets or classes, as another engine counted them in the written parts.

use std::collections::BTreeMap;

use super::covered::CoveredColumn;
use super::generalized;
use super::posteriors::{PosteriorTally, posteriors, prior};
use super::tables_report::TablesReport;
use crate::microdata::Attr;
use crate::publication::{EnforcedBy, Guarantee, Protected, PublishedTable};
use crate::verifier::contract::checks::{CheckLog, CheckName, TableFigures};
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::definition::guarantee::BucketShares;
use crate::verifier::definition::measure::BucketMeasure;
use crate::verifier::definition::taxonomy::DeclaredValues;

/// What another engine counted.
#[derive(Clone, Copy, Debug)]
pub struct CountedTables<'a> {
    /// The contents of the buckets of each table, in the written parts.
    pub contents: &'a [TableContents],
    /// The values of the attributes that rules protect, in the original.
    pub protected: &'a [OriginalValues],
    /// The values behind the cells of each table; `None` before anything is written.
    pub covered: Option<&'a [Vec<CoveredColumn>]>,
}

/// The values of an attribute that a rule protects, in the original.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginalValues {
    /// The attribute.
    pub attribute: Attr,
    /// Its values in canonical order, of which contents hold the positions.
    pub values: Vec<Option<String>>,
    /// The rows of each value.
    pub rows: Vec<u64>,
}

/// The contents of the buckets or classes of a table with at most one protected attribute, counted in the part that holds it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableContents {
    /// How many buckets have each content: the rows of each value, values rising.
    pub buckets: BTreeMap<Vec<(u32, u64)>, u64>,
    /// How many buckets have how many rows, where contents are of the rows of a bucket that agree in what else their part shows.
    pub sizes: Option<BTreeMap<u64, u64>>,
    /// The number of values of the attribute, a missing one counted as one. Where there is none, rows count as rows of one value.
    pub values: usize,
}

impl TableContents {
    /// Contents of whole buckets or classes.
    #[must_use]
    pub const fn of_buckets(buckets: BTreeMap<Vec<(u32, u64)>, u64>, values: usize) -> Self {
        Self { buckets, sizes: None, values }
    }

    /// How many buckets have how many rows.
    fn sizes(&self) -> BTreeMap<u64, u64> {
        if let Some(sizes) = &self.sizes {
            return sizes.clone();
        }
        let mut sizes = BTreeMap::new();
        for (content, buckets) in &self.buckets {
            *sizes.entry(content.iter().map(|(_, rows)| rows).sum()).or_default() += buckets;
        }
        sizes
    }

    /// The rows of each value.
    fn overall(&self) -> Vec<u64> {
        let mut overall = vec![0; self.values];
        for (content, buckets) in &self.buckets {
            for (value, rows) in content {
                overall[*value as usize] += rows * buckets;
            }
        }
        overall
    }
}

/// Checks every guard on the contents of the buckets of its table. Contents are those of the tables in their order.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    CountedTables { contents, protected, covered }: CountedTables<'_>,
    log: &mut CheckLog,
) -> TablesReport {
    let tables = &input.publication.tables;
    let mut report = TablesReport::of_tables(tables.len());
    let declared = |of: &OriginalValues| {
        let values = of.values.iter().map(|value| value.as_deref().map(str::as_bytes));
        (of.attribute, input.declared(of.attribute, values))
    };
    let declared: BTreeMap<Attr, DeclaredValues> = protected.iter().map(declared).collect();
    let declared_of = |attr: Attr| declared.get(&attr).cloned().unwrap_or_default();
    for OriginalValues { attribute, rows, .. } in protected {
        report.add_known_counts(*attribute, rows.clone(), declared_of(*attribute));
    }
    if contents.len() != tables.len() {
        log.fail(CheckName::Buckets, "the contents are not those of the tables");
    }
    for (at, (table, contents)) in tables.iter().zip(contents).enumerate() {
        if table.is_generalized() {
            let sizes = contents.buckets.keys().map(|content| content.iter().map(|(_, rows)| rows).sum());
            generalized::anonymity_of(input, table, sizes, log);
            if let Some(covered) = covered {
                super::covered::check(input, table, covered.get(at).map_or(&[], Vec::as_slice), log);
            }
        }
        let values = contents.buckets.keys().flatten().map(|(value, _)| *value as usize + 1).max();
        let is_empty = |content: &Vec<(u32, u64)>| content.iter().all(|(_, rows)| *rows == 0);
        if contents.buckets.keys().any(is_empty) || values.unwrap_or(0) > contents.values {
            log.fail(CheckName::Buckets, format!("table {}: the contents are no buckets", table.name));
            continue;
        }
        let guarded = table.protection.guards().iter().filter_map(|guard| match guard.protects {
            Protected::Attribute(attr) => Some(attr),
            Protected::Joint(_) | Protected::Rows => None,
        });
        let guarded: Vec<Attr> = guarded.collect();
        let (overall, declared) = (contents.overall(), guarded.first().copied().map(declared_of).unwrap_or_default());
        for &attr in &guarded {
            report.add_known_counts(attr, overall.clone(), declared_of(attr));
        }
        let figures = TableOfContents { input, table, contents, overall, declared }.figures(log);
        report.figures.push(figures);
    }
    report
}

struct TableOfContents<'a> {
    input: &'a VerifierInput<'a>,
    table: &'a PublishedTable,
    contents: &'a TableContents,
    overall: Vec<u64>,
    /// What the caller declares about the protected values.
    declared: DeclaredValues,
}

impl TableOfContents<'_> {
    fn figures(&self, log: &mut CheckLog) -> TableFigures {
        let sizes = self.contents.sizes();
        let (rows, buckets) = (self.overall.iter().sum(), sizes.values().sum());
        if sizes.contains_key(&0) || sizes.iter().map(|(size, buckets)| size * buckets).sum::<u64>() != rows {
            log.fail(CheckName::Buckets, format!("table {}: its buckets do not hold its rows", self.table.name));
        }
        let mut figures = TableFigures { rows, buckets, sizes, ..TableFigures::default() };
        let smallest = figures.sizes.keys().next().copied().unwrap_or(0);
        for guard in self.table.protection.guards() {
            let Protected::Attribute(attr) = guard.protects else {
                log.fail(CheckName::Guarantee, format!("table {}: a guard could not be checked", self.table.name));
                continue;
            };
            for guarantee in &guard.guarantees {
                let broken = self.broken(*guarantee);
                if broken > 0 {
                    let (name, word) = (self.input.name(attr), guarantee.as_str());
                    let detail = format!("table {}: {broken} buckets do not keep {word} of {name}", self.table.name);
                    log.fail(CheckName::Guarantee, detail);
                }
            }
            figures.measures.extend(self.measures(attr));
            let prior = Some(prior(&self.overall, &[]));
            figures.posteriors.extend(posteriors(self.tally(), smallest, prior).map(|found| (attr, found)));
        }
        figures
    }

    fn shares(&self) -> impl Iterator<Item = (BucketShares, u64)> {
        let shares = move |content: &[(u32, u64)]| BucketShares::new(content, &self.overall, &self.declared);
        self.contents.buckets.iter().map(move |(content, buckets)| (shares(content), *buckets))
    }

    /// The number of buckets that break a guarantee.
    fn broken(&self, guarantee: Guarantee) -> u64 {
        self.shares().filter(|(shares, _)| !shares.satisfies(guarantee)).map(|(_, buckets)| buckets).sum()
    }

    fn tally(&self) -> PosteriorTally {
        let mut tally = PosteriorTally::default();
        self.shares().for_each(|(shares, buckets)| *tally.entry(shares.posterior()).or_default() += buckets);
        tally
    }

    /// The measures of the rules on an attribute that this table enforces.
    fn measures(&self, attr: Attr) -> BTreeMap<usize, BucketMeasure> {
        let is_enforced = |by: &EnforcedBy| match by {
            EnforcedBy::Guardian { table, .. } | EnforcedBy::Table(table) => *table == self.table.name,
            EnforcedBy::Unreachable => false,
        };
        let rules = self.input.publication.rules.iter().enumerate();
        let measured = rules.filter(|(_, rule)| {
            rule.protects == Protected::Attribute(attr)
                && is_enforced(&rule.enforced_by)
                && BucketMeasure::is_of(rule.guarantee)
        });
        let worst = |guarantee: Guarantee| {
            self.shares().map(|(shares, _)| BucketMeasure::new(guarantee, &shares)).reduce(BucketMeasure::worse)
        };
        measured.filter_map(|(index, rule)| Some((index, worst(rule.guarantee).flatten()?))).collect()
    }
}

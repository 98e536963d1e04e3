//! Figures of bucketized tables from the contents of their buckets, as another engine counted them in the written parts.

use std::collections::BTreeMap;

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
    /// The rows of each value of the attributes that rules protect, in the original.
    pub counts: &'a [(Attr, Vec<u64>)],
}

/// The contents of the buckets of a table with one sensitive attribute, counted in its sensitive part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableContents {
    /// How many buckets have each content: the rows of each value, values rising.
    pub buckets: BTreeMap<Vec<(u32, u64)>, u64>,
    /// The number of values of the attribute, a missing one counted as one.
    pub values: usize,
}

impl TableContents {
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
    CountedTables { contents, counts }: CountedTables<'_>,
    log: &mut CheckLog,
) -> TablesReport {
    let tables = &input.publication.tables;
    let mut report = TablesReport::of_tables(tables.len());
    for (attr, counts) in counts {
        report.add_known_counts(*attr, counts.clone());
    }
    if contents.len() != tables.len() {
        log.fail(CheckName::Buckets, "the contents are not those of the tables");
    }
    for (table, contents) in tables.iter().zip(contents) {
        let values = contents.buckets.keys().flatten().map(|(value, _)| *value as usize + 1).max();
        let is_empty = |content: &Vec<(u32, u64)>| content.iter().all(|(_, rows)| *rows == 0);
        if contents.buckets.keys().any(is_empty) || values.unwrap_or(0) > contents.values {
            log.fail(CheckName::Buckets, format!("table {}: the contents are no buckets", table.name));
            continue;
        }
        let figures = TableOfContents { input, table, contents, overall: contents.overall() }.figures(log);
        for guard in table.protection.guards() {
            if let Protected::Attribute(attr) = guard.protects {
                report.add_known_counts(attr, contents.overall());
            }
        }
        report.figures.push(figures);
    }
    report
}

struct TableOfContents<'a> {
    input: &'a VerifierInput<'a>,
    table: &'a PublishedTable,
    contents: &'a TableContents,
    overall: Vec<u64>,
}

impl TableOfContents<'_> {
    fn figures(&self, log: &mut CheckLog) -> TableFigures {
        let mut figures = TableFigures { rows: self.overall.iter().sum(), ..TableFigures::default() };
        for (content, buckets) in &self.contents.buckets {
            figures.buckets += buckets;
            *figures.sizes.entry(content.iter().map(|(_, rows)| rows).sum()).or_default() += buckets;
        }
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
        let declared = DeclaredValues::default();
        let shares = move |content: &[(u32, u64)]| BucketShares::new(content, &self.overall, &declared);
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

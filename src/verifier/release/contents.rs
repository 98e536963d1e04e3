//! Figures of tables from the contents of their buckets or classes, as another engine counted them in the written parts.

use std::collections::BTreeMap;

use super::covered::CoveredColumn;
use super::generalized;
use super::posteriors::{PosteriorTally, posteriors, prior};
use super::tables_report::TablesReport;
use crate::microdata::Attr;
use crate::publication::{EnforcedBy, Guarantee, Protected, PublishedTable, TableGuard};
use crate::verifier::contract::checks::{CheckLog, CheckName, TableFigures};
use crate::verifier::contract::claim;
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

/// The contents of the buckets or classes of a table, counted in the parts that hold its protected attributes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableContents {
    /// What they hold of each protected attribute; of nothing, where classes only have to be large; none of a plain table.
    pub attributes: Vec<AttributeContents>,
    /// How many buckets have how many rows, where contents are of the rows of a bucket that agree in what else their part shows.
    pub sizes: Option<BTreeMap<u64, u64>>,
}

/// What the buckets or classes of a table hold of a protected attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeContents {
    /// The attribute; of nothing, rows count as rows of one value.
    pub attribute: Option<Attr>,
    /// How many buckets have each content: the rows of each value, values rising.
    pub buckets: BTreeMap<Vec<(u32, u64)>, u64>,
    /// The number of values of the attribute, a missing one counted as one.
    pub values: usize,
}

impl AttributeContents {
    /// How many contents have how many rows.
    fn sizes(&self) -> BTreeMap<u64, u64> {
        let mut sizes = BTreeMap::new();
        for (content, buckets) in &self.buckets {
            *sizes.entry(content.iter().map(|(_, rows)| rows).sum()).or_default() += buckets;
        }
        sizes
    }

    /// The rows of each value; `None` if there is a content without rows, or a value that the attribute does not have.
    fn overall(&self) -> Option<Vec<u64>> {
        let mut overall = vec![0; self.values];
        for (content, buckets) in &self.buckets {
            for (value, rows) in content {
                *overall.get_mut(*value as usize)? += rows * buckets;
            }
            content.iter().any(|(_, rows)| *rows > 0).then_some(())?;
        }
        Some(overall)
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
    for OriginalValues { attribute, rows, .. } in protected {
        report.add_known_counts(*attribute, rows.clone(), declared[attribute].clone());
    }
    if contents.len() != tables.len() {
        log.fail(CheckName::Buckets, "the contents are not those of the tables");
    }
    for (at, (table, contents)) in tables.iter().zip(contents).enumerate() {
        let found = TableOfContents { input, table, contents, protected, declared: &declared };
        let figures = found.figures(log);
        if table.is_generalized() {
            generalized::anonymity_of(input, table, figures.sizes.keys().copied(), log);
            if let Some(covered) = covered {
                super::covered::check(input, table, covered.get(at).map_or(&[], Vec::as_slice), log);
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
    protected: &'a [OriginalValues],
    /// What the caller declares about protected values.
    declared: &'a BTreeMap<Attr, DeclaredValues>,
}

/// What the buckets of a table hold of an attribute, with its values in the whole table.
struct JudgedContents<'a> {
    of: &'a AttributeContents,
    overall: Vec<u64>,
    declared: &'a DeclaredValues,
}

impl TableOfContents<'_> {
    fn figures(&self, log: &mut CheckLog) -> TableFigures {
        let name = &self.table.name;
        let found = &self.contents.attributes;
        let sizes = self.contents.sizes.clone().or_else(|| found.first().map(AttributeContents::sizes));
        let sizes = sizes.unwrap_or_default();
        let rows = sizes.iter().map(|(size, buckets)| size * buckets).sum();
        let expected = if found.is_empty() { 0 } else { self.table.parts.first().map_or(0, |part| part.len) };
        let are_others = |of: &AttributeContents| self.contents.sizes.is_none() && of.sizes() != sizes;
        if rows != expected || sizes.contains_key(&0) || found.iter().any(are_others) {
            log.fail(CheckName::Buckets, format!("table {name}: its buckets do not hold its rows"));
        }
        let smallest = sizes.keys().next().copied().unwrap_or(0);
        let mut figures = TableFigures { rows, buckets: sizes.values().sum(), sizes, ..TableFigures::default() };
        if !found.iter().all(|of| self.is_of_original(of)) {
            log.fail(CheckName::Buckets, format!("table {name}: the contents are not those of the original"));
        }
        for guard in self.guards() {
            let judged = match guard.protects {
                Protected::Attribute(attr) => self.judged(attr).map(|judged| (attr, judged)),
                Protected::Joint(_) | Protected::Rows => None,
            };
            let Some((attr, judged)) = judged else {
                log.fail(CheckName::Guarantee, format!("table {name}: a guard could not be checked"));
                continue;
            };
            for guarantee in &guard.guarantees {
                let broken = judged.broken(*guarantee);
                if broken > 0 {
                    let (of, word) = (self.input.name(attr), guarantee.as_str());
                    let detail = format!("table {name}: {broken} buckets do not keep {word} of {of}");
                    log.fail(CheckName::Guarantee, detail);
                }
            }
            figures.measures.extend(self.measures(attr, &judged));
            let prior = Some(prior(&judged.overall, &[]));
            figures.posteriors.extend(posteriors(judged.tally(), smallest, prior).map(|found| (attr, found)));
        }
        figures
    }

    /// The guards that every bucket must keep.
    fn guards(&self) -> Vec<TableGuard> {
        match self.table.is_generalized() {
            true => claim::promised(self.input, self.table),
            false => self.table.protection.guards().to_vec(),
        }
    }

    /// Whether the values of an attribute are those of the original.
    fn is_of_original(&self, of: &AttributeContents) -> bool {
        let Some(overall) = of.overall() else { return false };
        of.attribute.is_none_or(|attr| {
            self.protected.iter().any(|original| original.attribute == attr && original.rows == overall)
        })
    }

    fn judged(&self, attr: Attr) -> Option<JudgedContents<'_>> {
        let of = self.contents.attributes.iter().find(|of| of.attribute == Some(attr))?;
        Some(JudgedContents { of, overall: of.overall()?, declared: self.declared.get(&attr)? })
    }

    /// The measures of the rules on an attribute that this table enforces.
    fn measures(&self, attr: Attr, judged: &JudgedContents<'_>) -> BTreeMap<usize, BucketMeasure> {
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
        measured.filter_map(|(index, rule)| Some((index, judged.worst(rule.guarantee)?))).collect()
    }
}

impl JudgedContents<'_> {
    fn shares(&self) -> impl Iterator<Item = (BucketShares, u64)> {
        let shares = move |content: &[(u32, u64)]| BucketShares::new(content, &self.overall, self.declared);
        self.of.buckets.iter().map(move |(content, buckets)| (shares(content), *buckets))
    }

    /// The number of buckets that break a guarantee.
    fn broken(&self, guarantee: Guarantee) -> u64 {
        self.shares().filter(|(shares, _)| !shares.satisfies(guarantee)).map(|(_, buckets)| buckets).sum()
    }

    fn worst(&self, guarantee: Guarantee) -> Option<BucketMeasure> {
        self.shares().map(|(shares, _)| BucketMeasure::new(guarantee, &shares)).reduce(BucketMeasure::worse)?
    }

    fn tally(&self) -> PosteriorTally {
        let mut tally = PosteriorTally::default();
        self.shares().for_each(|(shares, buckets)| *tally.entry(shares.posterior()).or_default() += buckets);
        tally
    }
}

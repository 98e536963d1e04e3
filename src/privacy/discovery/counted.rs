//! Judgement of dependencies from counts, where the rows are elsewhere: the same evidence as the search in rows has.

use super::logarithm::FactorialLogarithms;
use super::search::DiscoveredDependency;
use super::significance::{CountFrequency, Savings, threshold};
use crate::privacy::Dependency;
use crate::publication::Ratio;

/// How many values of a column occur how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueFrequency {
    /// The rows of each value.
    pub rows: u64,
    /// The number of values, a missing one counted as one.
    pub values: u64,
}

/// What the counts say of a dependency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountedEvidence {
    /// An adversary is assumed to know it.
    Known(DiscoveredDependency),
    /// It is within the tolerance, and may be an accident.
    Accident(DiscoveredDependency),
    /// It does not hold, or saves nothing.
    Absent,
}

/// A judge of dependencies among columns of known counts.
pub struct CountedColumns {
    factorials: FactorialLogarithms,
    columns: Vec<CountedColumn>,
    threshold: i64,
}

struct CountedColumn {
    counts: Vec<CountFrequency>,
    values: u64,
    most_errors: u64,
    most_groups: u64,
    most_saving_groups: u64,
}

impl CountedColumns {
    /// The columns of a table with this number of rows; `counts` has the frequencies of each column, the largest first.
    #[must_use]
    pub fn new(rows: u64, counts: &[Vec<ValueFrequency>], tolerance: Ratio) -> Self {
        let factorials = FactorialLogarithms::new(rows as usize);
        let varying = counts.iter().filter(|of| of.iter().map(|of| of.values).sum::<u64>() > 1).count() as u64;
        let threshold = threshold(varying);
        let column = |of: &Vec<ValueFrequency>| {
            let frequency = |of: &ValueFrequency| CountFrequency { rows: of.rows as usize, values: of.values as usize };
            let counts: Vec<CountFrequency> = of.iter().map(frequency).collect();
            let values = of.iter().map(|of| of.values).sum();
            let others = rows - of.first().map_or(0, |of| of.rows);
            let tolerated = u128::from(rows) * u128::from(tolerance.numerator()) / u128::from(tolerance.denominator());
            let savings = Savings::new(&factorials, &counts);
            let (most_groups, most_saving_groups) = (savings.most_groups(threshold), savings.most_groups(1));
            CountedColumn {
                values,
                most_errors: tolerated.min(u128::from(others / 2)) as u64,
                most_groups: most_groups as u64,
                most_saving_groups: most_saving_groups as u64,
                counts,
            }
        };
        let columns = counts.iter().map(column).collect();
        Self { factorials, columns, threshold }
    }

    /// Whether one column can determine another one, for all that their counts say.
    #[must_use]
    pub fn may_determine(&self, determinant: usize, dependent: usize) -> bool {
        let (from, to) = (&self.columns[determinant], &self.columns[dependent]);
        determinant != dependent && from.values > 1 && to.values > 1 && from.values <= to.most_saving_groups
    }

    /// Whether two columns together can determine another one: a pair has at least as many values as each of its members.
    #[must_use]
    pub fn may_determine_together(&self, pair: [usize; 2], dependent: usize) -> bool {
        let to = &self.columns[dependent];
        let fits = |&member: &usize| {
            let values = self.columns[member].values;
            member != dependent && values > 1 && values <= to.most_groups
        };
        to.values > 1 && pair.iter().all(fits)
    }

    /// The evidence of a dependency on the column `dependent`, of which `groups` groups of rows have `errors` exceptions.
    ///
    /// Of a pair of determinants this is all that the pair saves; the search in rows asks that it saves as much inside each member, so
    /// that here more is known, and never less.
    #[must_use]
    pub fn judge(&self, dependency: Dependency, dependent: usize, groups: u64, errors: u64) -> CountedEvidence {
        let column = &self.columns[dependent];
        if errors > column.most_errors || groups > column.most_saving_groups {
            return CountedEvidence::Absent;
        }
        let (groups, errors) = (groups as usize, errors as usize);
        let saved = Savings::new(&self.factorials, &column.counts).saved(groups, errors);
        let found = DiscoveredDependency { dependency, groups, errors, saved };
        match saved {
            _ if saved >= self.threshold => CountedEvidence::Known(found),
            1.. => CountedEvidence::Accident(found),
            _ => CountedEvidence::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::column;
    use super::*;
    use crate::control::Control;
    use crate::microdata::{Attr, AttrSet, Table};
    use crate::privacy::{DiscoveryOptions, discover_dependencies, measure_dependency};

    proptest! {
        #[test]
        fn counts_judge_as_rows_do(
            rows in prop::collection::vec((0u32..40, 0u32..3, 0u32..6, 0u32..100), 200..400), share in 0u32..4,
        ) {
            // the second column follows from the first but for some rows, the fourth from first and third
            let of = |pick: fn(&(u32, u32, u32, u32)) -> u32| rows.iter().map(pick).collect::<Vec<u32>>();
            let first = of(|row| row.0);
            let second: Vec<u32> = rows.iter().map(|row| if row.3 < share { row.1 } else { row.0 % 7 }).collect();
            let fourth: Vec<u32> = rows.iter().map(|row| (row.0 * 3 + row.2 * 5) % 11).collect();
            let columns = vec![column(&first), column(&second), column(&of(|row| row.2)), column(&fourth)];
            let names = (0..4).map(|at| format!("c{at}")).collect();
            let table = Table::new(names, columns);
            let options = DiscoveryOptions::default();
            let found = discover_dependencies(&table, &options, &Control::default()).unwrap();
            let frequencies = |attr: Attr| {
                let counts = CountFrequency::collect(table.column(attr).counts().into_iter());
                counts.iter().map(|of| ValueFrequency { rows: of.rows as u64, values: of.values as u64 }).collect()
            };
            let counts: Vec<Vec<ValueFrequency>> = table.attributes().iter().map(frequencies).collect();
            let judge = CountedColumns::new(table.rows() as u64, &counts, options.tolerance);
            let judged = |determinant: AttrSet, dependent: usize| {
                let dependency = Dependency { determinant, dependent: Attr::from(dependent) };
                let measured = measure_dependency(&table, dependency).unwrap();
                judge.judge(dependency, dependent, measured.groups as u64, measured.errors as u64)
            };
            for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(from, to)| from != to) {
                let by_rows = found.found.iter().find(|of| {
                    of.dependency == Dependency { determinant: AttrSet::one(Attr::from(from)), dependent: Attr::from(to) }
                });
                let by_counts = judged(AttrSet::one(Attr::from(from)), to);
                match by_rows {
                    Some(known) => prop_assert_eq!(by_counts, CountedEvidence::Known(*known)),
                    None => prop_assert!(!matches!(by_counts, CountedEvidence::Known(_))),
                }
                prop_assert!(judge.may_determine(from, to) || by_counts == CountedEvidence::Absent);
            }
            for pair in found.found.iter().filter(|of| of.dependency.determinant.len() == 2) {
                let Dependency { determinant, dependent } = pair.dependency;
                prop_assert!(matches!(judged(determinant, dependent.index()), CountedEvidence::Known(_)));
                let members: Vec<usize> = determinant.iter().map(Attr::index).collect();
                prop_assert!(judge.may_determine_together([members[0], members[1]], dependent.index()));
            }
        }
    }
}

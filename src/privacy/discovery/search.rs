//! Search for dependencies: single determinants, then pairs.

use rayon::prelude::*;

use super::super::dependencies::Dependency;
use super::logarithm::FactorialLogarithms;
use super::pairs::{PairGroups, is_refuted_by_rare_values, saved_inside};
use super::rows::{CodeNumbers, GroupedRows, RowVisits};
use super::significance::{CountFrequency, Savings, threshold};
use super::singles;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Column, Table};
use crate::publication::Ratio;
use crate::with_codes;

/// Maximal number of visited rows before the remaining pairs are left out.
const MAX_VISITED_ROWS: u64 = 1 << 33;

/// Numbers of rows on which a pair is tried before all rows; the first refute nearly all pairs of independent columns.
const TRIED_ROWS: [usize; 3] = [1 << 11, 1 << 14, 1 << 17];

/// Inverse of the share of the rows by which single determinants are tried first.
const FIRST_ROWS_FRACTION: usize = 16;

/// Number of pairs that are tried in parallel.
///
/// It does not depend on the machine, since the work limit applies between such groups of pairs.
const PARALLEL_PAIRS: usize = 32;

/// Inverse of the share of rows that counts as few.
const RARE_ROW_FRACTION: usize = 32;

/// The default tolerance.
const DEFAULT_TOLERANCE: Ratio = match Ratio::new(1, 100) {
    Ok(tolerance) => tolerance,
    Err(_) => panic!("a ratio"),
};

/// Which dependencies a search is to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DiscoveryScope {
    /// One or two determinants.
    #[default]
    SinglesAndPairs,
    /// One determinant.
    Singles,
    /// No dependency.
    None,
}

/// Which candidates a search has examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchedScope {
    /// All candidates with one or two determinants.
    SinglesAndPairs,
    /// All candidates with one determinant; of those with two as many as the work limit allows.
    SinglesAndSomePairs,
    /// All candidates with one determinant.
    Singles,
    /// No candidate.
    None,
}

/// Options of a search for dependencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscoveryOptions {
    /// Which dependencies are to be found.
    pub scope: DiscoveryScope,
    /// Maximal share of rows that an approximate dependency with one determinant may not hold for.
    pub tolerance: Ratio,
}

impl Default for DiscoveryOptions {
    fn default() -> Self {
        Self { scope: DiscoveryScope::default(), tolerance: DEFAULT_TOLERANCE }
    }
}

/// A dependency with its evidence in the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscoveredDependency {
    /// The dependency.
    pub dependency: Dependency,
    /// Number of distinct values of the determinant.
    pub groups: usize,
    /// Fewest rows without which the dependency is exact: the g3 error [Kivinen and Mannila 1995].
    pub errors: usize,
    /// Bits that the dependency saves of the description of the dependent column, in units of 2^-20 bit.
    pub saved: i64,
}

/// The result of a search for dependencies, each list with single determinants first, then by column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Discovery {
    /// The dependencies that the adversary is assumed to know.
    pub found: Vec<DiscoveredDependency>,
    /// Dependencies with one determinant that hold within the tolerance, but may be accidents.
    ///
    /// Those that save nothing, such as those of a key, are left out.
    pub rejected: Vec<DiscoveredDependency>,
    /// Which candidates were examined.
    pub searched: SearchedScope,
}

/// Finds the dependencies in `table` that are no accidents.
///
/// One determinant: exact, or with errors in few rows that are at most half of what the most frequent value gets
/// wrong. Two determinants: exact, and neither of them determines the dependent by itself. Random data show any accident
/// with a probability below 2^-20.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
///
/// # Citations
/// [Kivinen and Mannila 1995]; [Goodman and Kruskal 1954]; [Rissanen 1978]
pub fn discover_dependencies(
    table: &Table,
    options: &DiscoveryOptions,
    control: &Control,
) -> Result<Discovery, Cancelled> {
    discover_within(MAX_VISITED_ROWS, table, options, control)
}

/// Finds the dependencies in `table` that some attribute takes part in that is not among `own`.
///
/// Those among `own` attributes were searched for before; the exact ones of one determinant are `known`.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
pub fn discover_dependencies_across(
    table: &Table,
    own: AttrSet,
    known: &[Dependency],
    options: &DiscoveryOptions,
    control: &Control,
) -> Result<Vec<DiscoveredDependency>, Cancelled> {
    let candidates = Candidates { own, known };
    Ok(search_within(MAX_VISITED_ROWS, table, candidates, options, control)?.found)
}

/// Leaves out the remaining pairs after `most` visited rows.
pub(super) fn discover_within(
    most: u64,
    table: &Table,
    options: &DiscoveryOptions,
    control: &Control,
) -> Result<Discovery, Cancelled> {
    search_within(most, table, Candidates { own: AttrSet::EMPTY, known: &[] }, options, control)
}

/// The dependencies that are searched for: those with an attribute that is not among `own`.
#[derive(Clone, Copy)]
struct Candidates<'a> {
    own: AttrSet,
    /// Exact dependencies of one determinant among `own`.
    known: &'a [Dependency],
}

impl Candidates<'_> {
    fn contain(&self, attributes: AttrSet) -> bool {
        !attributes.is_subset(self.own)
    }
}

fn search_within(
    most: u64,
    table: &Table,
    candidates: Candidates<'_>,
    options: &DiscoveryOptions,
    control: &Control,
) -> Result<Discovery, Cancelled> {
    if options.scope == DiscoveryScope::None {
        return Ok(Discovery { found: Vec::new(), rejected: Vec::new(), searched: SearchedScope::None });
    }
    let factorials = FactorialLogarithms::new(table.rows());
    let mut search = Search::new(table, candidates, &factorials, options.tolerance, RowVisits::new(control))?;
    search.singles()?;
    let searched = match options.scope {
        DiscoveryScope::SinglesAndPairs if search.pairs(most)? => SearchedScope::SinglesAndPairs,
        DiscoveryScope::SinglesAndPairs => SearchedScope::SinglesAndSomePairs,
        DiscoveryScope::Singles | DiscoveryScope::None => SearchedScope::Singles,
    };
    let Search { mut found, rejected, .. } = search;
    found.sort_by_cached_key(|found| {
        let Dependency { determinant, dependent } = found.dependency;
        (determinant.len(), determinant.iter().collect::<Vec<_>>(), dependent)
    });
    Ok(Discovery { found, rejected, searched })
}

/// A column that is not constant, and what it takes to be determined.
pub(super) struct SearchedColumn<'a> {
    pub(super) attr: Attr,
    pub(super) column: &'a Column,
    pub(super) counts: Vec<CountFrequency>,
    /// The number of distinct values.
    pub(super) values: usize,
    /// Maximal number of errors of one determinant.
    pub(super) most_errors: usize,
    /// Maximal number of groups of a known dependency.
    pub(super) most_groups: usize,
    /// Maximal number of groups of a dependency that saves anything.
    most_saving_groups: usize,
    /// The number of rows of each code.
    pub(super) of_codes: Vec<u64>,
    /// The rows without the most frequent value, where they are few.
    pub(super) rare_rows: Option<Vec<u32>>,
}

impl<'a> SearchedColumn<'a> {
    /// `None` for a constant column.
    pub(super) fn new(
        attr: Attr,
        column: &'a Column,
        tolerance: Ratio,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        control.check()?;
        let of_codes = column.counts();
        let counts = CountFrequency::collect(of_codes.iter().copied());
        let values: usize = counts.iter().map(|count| count.values).sum();
        if values < 2 {
            return Ok(None);
        }
        let (rows, top) = (column.codes.len(), counts[0].rows);
        let others = rows - top;
        let tolerated = rows as u128 * u128::from(tolerance.numerator()) / u128::from(tolerance.denominator());
        let rare_rows = (others <= rows / RARE_ROW_FRACTION).then(|| {
            with_codes!(&column.codes, codes => {
                let is_rare = |row: &u32| of_codes[codes[*row as usize] as usize] < top as u64;
                (0..rows as u32).filter(is_rare).collect()
            })
        });
        Ok(Some(Self {
            attr,
            column,
            counts,
            values,
            most_errors: tolerated.min(others as u128 / 2) as usize,
            most_groups: 0,
            most_saving_groups: 0,
            of_codes,
            rare_rows,
        }))
    }
}

struct Search<'a> {
    columns: Vec<SearchedColumn<'a>>,
    candidates: Candidates<'a>,
    /// For each attribute of the table, those that it determines exactly.
    determined: Vec<AttrSet>,
    factorials: &'a FactorialLogarithms,
    threshold: i64,
    visits: RowVisits<'a>,
    found: Vec<DiscoveredDependency>,
    rejected: Vec<DiscoveredDependency>,
}

impl<'a> Search<'a> {
    fn new(
        table: &'a Table,
        candidates: Candidates<'a>,
        factorials: &'a FactorialLogarithms,
        tolerance: Ratio,
        visits: RowVisits<'a>,
    ) -> Result<Self, Cancelled> {
        let control = visits.control();
        let attributes: Vec<Attr> = table.attributes().iter().collect();
        let columns: Vec<Option<SearchedColumn<'_>>> = attributes
            .par_iter()
            .map(|&attr| SearchedColumn::new(attr, table.column(attr), tolerance, control))
            .collect::<Result<_, _>>()?;
        let mut columns: Vec<SearchedColumn<'_>> = columns.into_iter().flatten().collect();
        let threshold = threshold(columns.len() as u64);
        for column in &mut columns {
            let savings = Savings::new(factorials, &column.counts);
            column.most_groups = savings.most_groups(threshold);
            column.most_saving_groups = savings.most_groups(1);
        }
        let mut determined = vec![AttrSet::EMPTY; attributes.len()];
        for Dependency { determinant, dependent } in candidates.known {
            if let (Some(from), 1) = (determinant.iter().next(), determinant.len()) {
                determined[from.index()] = determined[from.index()].with(*dependent);
            }
        }
        let (found, rejected) = (Vec::new(), Vec::new());
        Ok(Self { columns, candidates, determined, factorials, threshold, visits, found, rejected })
    }

    /// Finds all dependencies with one determinant.
    fn singles(&mut self) -> Result<(), Cancelled> {
        for determinant in 0..self.columns.len() {
            let determinant = &self.columns[determinant];
            let is_candidate = |dependent: &&SearchedColumn<'_>| {
                dependent.attr != determinant.attr
                    && determinant.values <= dependent.most_saving_groups
                    && self.candidates.contain(AttrSet::one(determinant.attr).with(dependent.attr))
            };
            let dependents: Vec<&SearchedColumn<'_>> = self.columns.iter().filter(is_candidate).collect();
            if dependents.is_empty() {
                continue;
            }
            let errors = errors_of(determinant, &dependents, &self.visits)?;
            let (from, groups) = (determinant.attr, determinant.values);
            for (dependent, errors) in dependents.iter().zip(errors) {
                let Some(errors) = errors else { continue };
                let dependency = Dependency { determinant: AttrSet::one(from), dependent: dependent.attr };
                let saved = Savings::new(self.factorials, &dependent.counts).saved(groups, errors);
                let judged = DiscoveredDependency { dependency, groups, errors, saved };
                if saved >= self.threshold {
                    self.found.push(judged);
                } else if saved > 0 {
                    self.rejected.push(judged);
                }
                if errors == 0 {
                    let determined = &mut self.determined[from.index()];
                    *determined = determined.with(dependent.attr);
                }
            }
        }
        Ok(())
    }

    /// Finds dependencies with two determinants; false when the remaining pairs are left out after `most` visited rows.
    fn pairs(&mut self, most: u64) -> Result<bool, Cancelled> {
        for finer in 0..self.columns.len() {
            let values = |at: usize| self.columns[at].values;
            let is_coarser = |&at: &usize| values(at) < values(finer) || (values(at) == values(finer) && at > finer);
            let coarser: Vec<usize> = (0..self.columns.len())
                .filter(is_coarser)
                .filter(|&coarser| self.dependents(finer, coarser).next().is_some())
                .collect();
            if coarser.is_empty() {
                continue;
            }
            let rows = grouped(&self.columns[finer], self.columns[finer].column.codes.len(), &self.visits)?;
            for some in coarser.chunks(PARALLEL_PAIRS) {
                if self.visits.rows() >= most {
                    return Ok(false);
                }
                let remaining: Vec<Vec<usize>> = some
                    .par_iter()
                    .map_init(CodeNumbers::default, |numbers, &coarser| self.tried(&rows, finer, coarser, numbers))
                    .collect::<Result<_, _>>()?;
                for (&coarser, dependents) in some.iter().zip(remaining).filter(|(_, found)| !found.is_empty()) {
                    let found = self.judged(&rows, finer, coarser, &dependents)?;
                    self.found.extend(found);
                }
            }
        }
        Ok(true)
    }

    /// The columns that a pair may determine, though neither of its members does.
    fn dependents(&self, finer: usize, coarser: usize) -> impl Iterator<Item = usize> {
        let (one, other) = (&self.columns[finer], &self.columns[coarser]);
        let determined = |column: &SearchedColumn<'_>| self.determined[column.attr.index()].with(column.attr);
        let known = determined(one).union(determined(other));
        let pair = AttrSet::one(one.attr).with(other.attr);
        self.columns
            .iter()
            .enumerate()
            // a pair has at least as many values as each of its members
            .filter(move |(_, column)| one.values <= column.most_groups && !known.contains(column.attr))
            .filter(move |(_, column)| self.candidates.contain(pair.with(column.attr)))
            .map(|(at, _)| at)
    }

    /// The columns that a pair determines as far as its first rows show.
    fn tried(
        &self,
        rows: &GroupedRows,
        finer: usize,
        coarser: usize,
        numbers: &mut CodeNumbers,
    ) -> Result<Vec<usize>, Cancelled> {
        let (one, other) = (self.columns[finer].column, self.columns[coarser].column);
        let mut remaining = Vec::new();
        for dependent in self.dependents(finer, coarser) {
            let column = &self.columns[dependent];
            if !is_refuted_by_rare_values(rows, &one.codes, &other.codes, column, &self.visits)? {
                remaining.push(dependent);
            }
        }
        let all = one.codes.len();
        for tried in TRIED_ROWS {
            if remaining.is_empty() {
                break;
            }
            let pair = PairGroups::new(rows, other, tried.min(all), numbers, &self.visits)?;
            // every other group of the finer member is at least one of the pair
            let fewest = pair.groups + rows.len() - pair.groups_of_one;
            let mut determined = Vec::new();
            for dependent in remaining {
                let column = &self.columns[dependent];
                if fewest <= column.most_groups && pair.determine(&column.column.codes, &self.visits)? {
                    determined.push(dependent);
                }
            }
            remaining = determined;
            if tried >= all {
                break;
            }
        }
        Ok(remaining)
    }

    /// The dependencies of a pair that hold in all rows and are no accidents.
    fn judged(
        &self,
        rows: &GroupedRows,
        finer: usize,
        coarser: usize,
        dependents: &[usize],
    ) -> Result<Vec<DiscoveredDependency>, Cancelled> {
        let (one, other) = (&self.columns[finer], &self.columns[coarser]);
        let all = one.column.codes.len();
        let pair = PairGroups::new(rows, other.column, all, &mut CodeNumbers::default(), &self.visits)?;
        let is_determined = |dependent: &usize| {
            let column = &self.columns[*dependent];
            let holds = pair.groups <= column.most_groups && pair.determine(&column.column.codes, &self.visits)?;
            Ok(holds.then_some(column))
        };
        let exact: Vec<Option<&SearchedColumn<'_>>> =
            dependents.par_iter().map(is_determined).collect::<Result<_, _>>()?;
        let exact: Vec<&SearchedColumn<'_>> = exact.into_iter().flatten().collect();
        let groups = pair.groups;
        drop(pair);
        if exact.is_empty() {
            return Ok(Vec::new());
        }
        let rows_of_other = grouped(other, all, &self.visits)?;
        let judged = |dependent: &&SearchedColumn<'_>| {
            let inside = |member, of: &SearchedColumn<'_>| {
                saved_inside(member, of.column, dependent.column, self.factorials, &self.visits)
            };
            let saved = Savings::new(self.factorials, &dependent.counts).saved(groups, 0);
            let saved = saved.min(inside(rows, other)?).min(inside(&rows_of_other, one)?);
            let determinant = AttrSet::one(one.attr).with(other.attr);
            let dependency = Dependency { determinant, dependent: dependent.attr };
            let found = DiscoveredDependency { dependency, groups, errors: 0, saved };
            Ok((saved >= self.threshold).then_some(found))
        };
        let found: Vec<Option<DiscoveredDependency>> = exact.par_iter().map(judged).collect::<Result<_, _>>()?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// The first `rows` rows of a column.
fn grouped(column: &SearchedColumn<'_>, rows: usize, visits: &RowVisits<'_>) -> Result<GroupedRows, Cancelled> {
    visits.add(rows)?;
    GroupedRows::new(column.column, rows, visits.control())
}

/// The errors of one determinant in each of `dependents`; `None` above what the dependent allows.
pub(super) fn errors_of(
    determinant: &SearchedColumn<'_>,
    dependents: &[&SearchedColumn<'_>],
    visits: &RowVisits<'_>,
) -> Result<Vec<Option<usize>>, Cancelled> {
    let all = determinant.column.codes.len();
    let by_group = |rows: &GroupedRows, some: Vec<usize>| -> Result<Vec<(usize, usize)>, Cancelled> {
        let errors = some.into_par_iter().map_init(CodeNumbers::default, |numbers, at| {
            let errors = singles::errors_by_group(rows, dependents[at], numbers, visits)?;
            Ok(errors.map(|errors| (at, errors)))
        });
        Ok(errors.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    };
    let mut errors = vec![None; dependents.len()];
    for (errors, dependent) in errors.iter_mut().zip(dependents) {
        if let Some(rare) = &dependent.rare_rows {
            visits.add(rare.len())?;
            *errors = singles::errors_of_rare_values(determinant, dependent, rare);
        }
    }
    let mut remaining: Vec<usize> = (0..dependents.len()).filter(|&at| dependents[at].rare_rows.is_none()).collect();
    // some rows have no more errors than all rows, and the first of them refute most dependencies
    for rows in [all / FIRST_ROWS_FRACTION, all] {
        if remaining.is_empty() {
            break;
        }
        let found = by_group(&grouped(determinant, rows, visits)?, remaining)?;
        remaining = found.iter().map(|(at, _)| *at).collect();
        if rows == all {
            found.into_iter().for_each(|(at, found)| errors[at] = Some(found));
        }
    }
    Ok(errors)
}

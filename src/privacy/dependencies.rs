//! Functional dependencies that hold exactly in the data; the adversary is assumed to know them.
//!
//! # Citations
//! [Jin et al. 2010, Theorem 3.2]; docs/security/threat-model.md#dependencies

use std::collections::HashMap;

use ahash::RandomState;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Codes, Table};
use crate::with_codes;

/// Minimal number of rows for each determinant value, on average.
///
/// Below it a dependency counts as coincidence.
const MIN_ROWS_PER_DETERMINANT: usize = 20;

/// Number of sampled rows on which a candidate is tried first.
const SAMPLED_ROWS: usize = 1 << 11;

/// Maximal number of combinations of codes that are grouped by an array; above it, by hashing.
const MAX_DENSE_GROUPS: u64 = 1 << 12;

/// Inverse of the share of rows that counts as few.
const RARE_ROW_FRACTION: u64 = 16;

/// A functional dependency: `determinant` determines `dependent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependency {
    /// The determining attributes; one or two where the dependency was discovered.
    pub determinant: AttrSet,
    /// The determined attribute.
    pub dependent: Attr,
}

/// Finds the minimal dependencies with one or two determinants that hold exactly in `table`.
///
/// A determinant value has at least 20 rows on average, and neither side is constant.
///
/// A candidate that fails on a sample of the whole table is dropped, since all pairs of attributes are too many for
/// all rows. Most of the others depend on few rows, see [`WholeTableGroups`].
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
pub fn discover(table: &Table, control: &Control) -> Result<Vec<Dependency>, Cancelled> {
    discover_by(SAMPLED_ROWS, table, control)
}

fn discover_by(sample: usize, table: &Table, control: &Control) -> Result<Vec<Dependency>, Cancelled> {
    let rows = table.rows();
    let most = rows / MIN_ROWS_PER_DETERMINANT;
    let values = |attr: Attr| table.column(attr).domain.len();
    let varied: Vec<Attr> = table.attributes().iter().filter(|&attr| values(attr) > 1).collect();
    // a pair has at least as many values as each of its attributes
    let frequent: Vec<Attr> = varied.iter().copied().filter(|&attr| values(attr) <= most).collect();
    let singles = frequent.iter().map(|&a| AttrSet::one(a));
    let pairs =
        frequent.iter().enumerate().flat_map(|(i, &a)| frequent[i + 1..].iter().map(move |&b| AttrSet::one(a).with(b)));

    let sampled = rows.min(sample);
    let spread: Vec<u32> = (0..sampled).map(|i| (i * rows / sampled) as u32).collect();
    let sample = table.reordered(&spread);
    let mut grouped = DeterminantGroups::default();
    let mut whole = WholeTableGroups::new(table);
    let mut found: Vec<Dependency> = Vec::new();
    for determinant in singles.chain(pairs) {
        control.check()?;
        if !grouped.group(&sample, determinant, most, control)? {
            continue;
        }
        let known = found.iter().filter(|known| known.determinant.is_subset(determinant));
        let known: AttrSet = known.map(|known| known.dependent).chain(determinant.iter()).collect();
        let candidates = varied.iter().filter(|&&dependent| !known.contains(dependent));
        let surviving: Vec<Attr> =
            candidates.copied().filter(|&dependent| grouped.determine(&sample.column(dependent).codes)).collect();
        if surviving.is_empty() || !whole.groups.group(table, determinant, most, control)? {
            continue;
        }
        for dependent in surviving {
            control.check()?;
            if whole.determines(dependent) {
                found.push(Dependency { determinant, dependent });
            }
        }
    }
    Ok(found)
}

/// Rows grouped by their values of a determinant.
#[derive(Default)]
struct DeterminantGroups {
    /// The group of each row.
    of_row: Vec<u32>,
    /// The first row and the number of rows of each group.
    first: Vec<u32>,
    size: Vec<u32>,
    /// The group of each combination of codes, plus 1; all 0 between uses.
    dense: Vec<u32>,
    sparse: HashMap<u64, u32, RandomState>,
}

impl DeterminantGroups {
    /// Groups the rows of `table`; false when there are more than `most` groups.
    fn group(
        &mut self,
        table: &Table,
        determinant: AttrSet,
        most: usize,
        control: &Control,
    ) -> Result<bool, Cancelled> {
        let columns: Vec<_> = determinant.iter().map(|attr| table.column(attr)).collect();
        let width = columns.get(1).map_or(1, |column| column.domain.len() as u64);
        let combinations = columns[0].domain.len() as u64 * width;
        let is_dense = combinations <= MAX_DENSE_GROUPS;
        self.of_row.clear();
        self.first.clear();
        self.size.clear();
        self.sparse.clear();
        self.dense.clear();
        self.dense.resize(if is_dense { combinations as usize } else { 0 }, 0);
        for row in 0..table.rows() {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let code = u64::from(columns[0].codes.get(row)) * width;
            let code = code + columns.get(1).map_or(0, |column| u64::from(column.codes.get(row)));
            let slot = if is_dense { &mut self.dense[code as usize] } else { self.sparse.entry(code).or_default() };
            if *slot == 0 {
                if self.first.len() == most {
                    return Ok(false);
                }
                self.first.push(row as u32);
                self.size.push(0);
                *slot = self.first.len() as u32;
            }
            self.of_row.push(*slot - 1);
            self.size[*slot as usize - 1] += 1;
        }
        Ok(true)
    }

    /// Whether the rows of each group have one code.
    ///
    /// Stops at the first counterexample.
    fn determine(&self, codes: &Codes) -> bool {
        with_codes!(codes, codes => {
            self.of_row.iter().zip(codes).all(|(&group, &code)| codes[self.first[group as usize] as usize] == code)
        })
    }
}

/// Groups of the whole table, with a fast check for attributes that are nearly constant.
///
/// Where nearly all rows have the same value, a sample finds no counterexample. The few other rows decide: their
/// groups must hold no second value.
struct WholeTableGroups<'a> {
    table: &'a Table,
    groups: DeterminantGroups,
    /// For each examined attribute, the rows without its most frequent value.
    ///
    /// `None` when they are too many.
    others: Vec<Option<Option<Vec<u32>>>>,
    /// Number of examined rows of each group; all 0 between uses.
    seen: Vec<u32>,
}

impl<'a> WholeTableGroups<'a> {
    fn new(table: &'a Table) -> Self {
        Self {
            table,
            groups: DeterminantGroups::default(),
            others: vec![None; table.attributes().len()],
            seen: Vec::new(),
        }
    }

    /// Whether the rows of each group have one value of `dependent`.
    fn determines(&mut self, dependent: Attr) -> bool {
        let column = self.table.column(dependent);
        let others = self.others[dependent.index()].get_or_insert_with(|| {
            let counts = column.counts();
            let (top, count) = (0..).zip(&counts).max_by_key(|&(_, count)| count)?;
            let few = counts.iter().sum::<u64>() - count <= self.table.rows() as u64 / RARE_ROW_FRACTION;
            few.then(|| (0..self.table.rows() as u32).filter(|&row| column.codes.get(row as usize) != top).collect())
        });
        let Some(others) = others else { return self.groups.determine(&column.codes) };
        let DeterminantGroups { of_row, first, size, .. } = &self.groups;
        self.seen.resize(first.len().max(self.seen.len()), 0);
        let group = |&row: &u32| of_row[row as usize] as usize;
        let code = |row: u32| column.codes.get(row as usize);
        others.iter().for_each(|row| self.seen[group(row)] += 1);
        let alike = |row| self.seen[group(row)] == size[group(row)] && code(first[group(row)]) == code(*row);
        let determined = others.iter().all(alike);
        others.iter().for_each(|row| self.seen[group(row)] = 0);
        determined
    }
}

/// The closure of `known` under dependencies [Armstrong 1974].
pub(super) fn closure(known: AttrSet, dependencies: &[Dependency]) -> AttrSet {
    let mut determined = known;
    loop {
        let wider = dependencies
            .iter()
            .filter(|dependency| dependency.determinant.is_subset(determined))
            .fold(determined, |all, dependency| all.with(dependency.dependent));
        if wider == determined {
            return determined;
        }
        determined = wider;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::microdata::{Arena, AttributeType, Codes, Column, Domain};

    fn table(columns: &[&dyn Fn(u32) -> u32]) -> Table {
        let column = |f: &&dyn Fn(u32) -> u32| {
            let codes: Vec<u32> = (0..200).map(f).collect();
            let mut arena = Arena::default();
            let len = codes.iter().max().unwrap() + 1;
            (0..len).for_each(|value| arena.push(format!("{value:05}").as_bytes()));
            let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
            Column { domain, codes: Codes::collect(len as usize, codes.into_iter()) }
        };
        Table::new((0..columns.len()).map(|i| i.to_string()).collect(), columns.iter().map(column).collect())
    }

    fn dependency(determinant: &[u8], dependent: u8) -> Dependency {
        Dependency { determinant: determinant.iter().map(|&a| Attr(a)).collect(), dependent: Attr(dependent) }
    }

    #[test]
    fn discover_finds_exact_frequent_minimal_dependencies() {
        // 0: ten values; 1: a function of 0; 2: a key; 3: constant; 4: a function of 0 and 5 together
        let table =
            table(&[&|i| i % 10, &|i| i % 10 % 3, &|i| i, &|_| 0, &|i| (i % 10 + i / 10 % 2 * 7) % 4, &|i| i / 10 % 2]);
        let found = discover(&table, &Control::default()).unwrap();
        assert!(found.contains(&dependency(&[0], 1)));
        assert!(!found.iter().any(|d| d.determinant.contains(Attr(2)) || d.dependent == Attr(3)), "{found:?}");
        assert!(!found.contains(&dependency(&[0], 4)));
        assert!(!found.contains(&dependency(&[0, 5], 1)), "not minimal");
        // twenty combinations of 0 and 5 over 200 rows are ten rows each: too few
        assert!(!found.contains(&dependency(&[0, 5], 4)));
    }

    /// By definition, on all rows.
    fn holds(table: &Table, determinant: AttrSet, dependent: Attr) -> bool {
        let mut image = HashMap::new();
        let key = |row| determinant.iter().map(|attr| table.column(attr).codes.get(row)).collect::<Vec<_>>();
        let code = |row| table.column(dependent).codes.get(row);
        let alike = (0..table.rows()).all(|row| *image.entry(key(row)).or_insert(code(row)) == code(row));
        alike && image.len() <= table.rows() / MIN_ROWS_PER_DETERMINANT
    }

    #[test]
    fn discover_random_tables_matches_the_definition() {
        // sorted, sparse and rare columns; counterexamples in a single row
        let functions: [&dyn Fn(u32) -> u32; 12] = [
            &|i| i / 20,
            &|i| i / 40,
            &|i| u32::from(i == 150),
            &|i| u32::from(i > 150),
            &|i| i / 100,
            &|i| (i / 100) ^ u32::from(i == 150),
            &|i| i % 3,
            &|i| (i % 3 + i / 100) % 3,
            &|i| u32::from((140..160).contains(&i)),
            &|i| u32::from((140..160).contains(&i)) * (1 + u32::from(i >= 150)),
            &|i| u32::from(i % 3 == 0 && i < 100),
            &|_| 0,
        ];
        let table = table(&functions);
        let attrs: Vec<Attr> = table.attributes().iter().collect();
        let determines = |set: AttrSet, b: Attr| {
            let constant = |attr| table.column(attr).domain.len() < 2;
            !set.contains(b) && !constant(b) && !set.iter().any(constant) && holds(&table, set, b)
        };
        let mut expected = Vec::new();
        for &b in &attrs {
            for (i, &x) in attrs.iter().enumerate() {
                let single = |x| determines(AttrSet::one(x), b);
                if single(x) {
                    expected.push((AttrSet::one(x), b));
                }
                let pairs = attrs[..i].iter().filter(|&&y| !single(x) && !single(y));
                let pairs = pairs.map(|&y| AttrSet::one(x).with(y)).filter(|&pair| determines(pair, b));
                expected.extend(pairs.map(|pair| (pair, b)));
            }
        }
        let order = |&(set, b): &(AttrSet, Attr)| (set.iter().map(|a| a.0).collect::<Vec<_>>(), b.0);
        expected.sort_by_key(order);
        assert!(expected.len() > 10, "{}", expected.len());
        // from small samples to all rows
        for sample in [1, 16, 500] {
            let found = discover_by(sample, &table, &Control::default()).unwrap();
            let mut found: Vec<_> = found.into_iter().map(|d| (d.determinant, d.dependent)).collect();
            found.sort_by_key(order);
            assert_eq!(found, expected, "{sample}");
        }
    }
}

//! Enumeration of all possible worlds of tables: the posteriors of an adversary who counts them all.
//!
//! A world assigns to each person one row of every table; in a table of several parts, one row of each part, all from
//! one bucket. No row is assigned twice, and tables that share an attribute agree on it. All worlds are equally
//! probable: the adversary takes all orders of rows as equally likely, and the tables as made at random. Equal rows
//! are handled once, with their multiplicity. Dependencies that the adversary knows hold in every world; those that no
//! world keeps are a wrong belief, and worlds count without them.
//!
//! # Citations
//! docs/spec/guardian-normal-form.md#what-is-proved-and-what-is-not

use std::collections::BTreeMap;

use ahash::AHashMap;

use super::error::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::publication::{Guarantee, RowMeaning};
use crate::verifier::definition::fraction::{is_above, scaled};
use crate::verifier::definition::guarantee::BucketShares;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{CellText, ExternalPart, ExternalTable};

/// Maximal number of rows of a table.
const MAX_WORLD_ROWS: usize = 16;

/// Maximal number of rows of all parts together.
const MAX_TOTAL_PART_ROWS: u64 = 512;

/// Maximal number of steps of the search.
const MAX_SEARCH_STEPS: u64 = 20_000_000;

/// Maximal number of reported findings.
const MAX_REPORTED_POSTERIORS: usize = 10;

/// Posteriors over all possible worlds.
#[derive(Debug, Default)]
pub struct PossibleWorldsReport {
    /// Whether any world exists; without one the tables do not hold the same rows.
    pub possible: bool,
    /// The largest posterior of a sensitive value, as a fraction in lowest terms.
    pub worst: Option<ShareOfRows>,
    /// Number of posteriors that exceed their rules.
    pub total: u64,
    /// At most ten findings, the largest posterior first.
    pub first: Vec<PosteriorFinding>,
}

/// A posterior that exceeds its rule.
#[derive(Clone, Debug)]
pub struct PosteriorFinding {
    /// The index of the rule.
    pub rule: usize,
    /// The known values.
    pub known: Vec<(Attr, CellText)>,
    /// The inferred sensitive values.
    pub sensitive: Vec<(Attr, CellText)>,
    /// The probability of the sensitive values, in lowest terms.
    pub posterior: ShareOfRows,
}

/// Values by attribute; `UNASSIGNED` where no row gives a value yet.
type PersonValues = Vec<u32>;

const UNASSIGNED: u32 = u32::MAX;

/// Equal rows of one bucket.
struct RowKind {
    bucket: u32,
    values: Vec<(usize, u32)>,
    left: u64,
}

/// A part whose rows are assigned to persons.
struct PartSlot {
    /// Whether it is the first part of its table.
    first: bool,
    kinds: Vec<RowKind>,
}

/// For each rule and known values, the multiplicities of the sensitive values over all worlds.
type WorldCounts = Vec<BTreeMap<Vec<u32>, ValueMultiplicities>>;

/// Number of worlds and rows with each sensitive value.
type ValueMultiplicities = BTreeMap<Vec<u32>, u128>;

/// A dependency between published attributes, and what determines what in the people of a world so far.
struct KnownFunction {
    from: Vec<usize>,
    to: usize,
    /// For each determining tuple: the determined value, and the number of people with both.
    known: AHashMap<Vec<u32>, (u32, usize)>,
}

impl KnownFunction {
    fn determinant(&self, person: &[u32]) -> Vec<u32> {
        self.from.iter().map(|&attr| person[attr]).collect()
    }

    fn admits(&self, person: &[u32]) -> bool {
        self.known.get(&self.determinant(person)).is_none_or(|(value, _)| *value == person[self.to])
    }

    fn add(&mut self, person: &[u32]) {
        let from = self.determinant(person);
        self.known.entry(from).or_insert((person[self.to], 0)).1 += 1;
    }

    fn remove(&mut self, person: &[u32]) {
        let from = self.determinant(person);
        let left = self.known.get_mut(&from).map(|(_, people)| {
            *people -= 1;
            *people
        });
        if left == Some(0) {
            self.known.remove(&from);
        }
    }
}

struct WorldSearch<'a> {
    slots: Vec<PartSlot>,
    people: Vec<PersonValues>,
    rows: usize,
    /// For each rule, its published known and sensitive attributes.
    rules: Vec<Option<(Vec<usize>, Vec<usize>)>>,
    /// The dependencies that every world keeps.
    functions: Vec<KnownFunction>,
    posteriors: WorldCounts,
    steps: u64,
    overflowed: bool,
    control: &'a Control,
}

/// Enumerates the possible worlds of the submitted tables and compares the posteriors with the rules.
///
/// # Errors
/// [`AttackError`].
pub fn count_worlds(submission: &Submission<'_>, control: &Control) -> Result<PossibleWorldsReport, AttackError> {
    let tables = submission.tables;
    let parts = || tables.iter().flat_map(|table| &table.parts);
    if parts().any(|part| part.meaning != RowMeaning::Tuples || !part.cells.is_empty()) {
        return Err(AttackError::NotExact);
    }
    let rows = parts().map(|part| part.rows).max().unwrap_or(0);
    if rows > MAX_WORLD_ROWS {
        return Err(AttackError::TooMany { what: "rows", limit: MAX_WORLD_ROWS as u64, found: rows as u64 });
    }
    // the search recurses once for each row of each part
    let depth = (rows * parts().count()) as u64;
    if depth > MAX_TOTAL_PART_ROWS {
        return Err(AttackError::TooMany { what: "rows of all parts", limit: MAX_TOTAL_PART_ROWS, found: depth });
    }
    if parts().any(|part| part.rows != rows) {
        return Ok(PossibleWorldsReport::default());
    }
    let mut values: Vec<ValueIndex> = submission.names.iter().map(|_| ValueIndex::default()).collect();
    let slots: Vec<PartSlot> = tables.iter().flat_map(|table| slots(table, &mut values)).collect();
    let published = tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes()));
    let list = |set: AttrSet| -> Vec<usize> { set.intersection(published).iter().map(Attr::index).collect() };
    let rules = submission.rules.iter().map(|rule| {
        let sensitive = rule.protects.attributes();
        sensitive.is_subset(published).then(|| (list(rule.known), list(sensitive)))
    });
    let rules: Vec<_> = rules.collect();
    let functions = functions(submission, published);
    let is_linked = !functions.is_empty();
    let posteriors = vec![BTreeMap::new(); rules.len()];
    let people = Vec::with_capacity(rows);
    let mut search =
        WorldSearch { slots, people, rows, rules, functions, posteriors, steps: 0, overflowed: false, control };
    let open = vec![UNASSIGNED; submission.names.len()];
    search.place(0, &open, 0, 1)?;
    if is_linked && search.posteriors.iter().all(BTreeMap::is_empty) {
        search.functions.clear();
        search.place(0, &open, 0, 1)?;
    }
    if search.overflowed {
        return Err(AttackError::TooMany { what: "worlds", limit: u64::MAX, found: u64::MAX });
    }
    Ok(check_worlds(submission, &search, &values))
}

/// The dependencies between published attributes; with an original, those that hold in it.
fn functions(submission: &Submission<'_>, published: AttrSet) -> Vec<KnownFunction> {
    let mut functions: Vec<KnownFunction> = Vec::new();
    for (determinant, dependent) in submission.dependencies.iter().filter(|(from, _)| from.is_subset(published)) {
        for to in dependent.intersection(published).minus(*determinant).iter() {
            if submission.original.is_none_or(|original| holds(original, *determinant, to)) {
                let from = determinant.iter().map(Attr::index).collect();
                functions.push(KnownFunction { from, to: to.index(), known: AHashMap::new() });
            }
        }
    }
    functions
}

/// Whether a dependency holds in every row of an original; one of attributes that it lacks is not refuted.
fn holds(original: &ExternalPart, determinant: AttrSet, dependent: Attr) -> bool {
    let from: Option<Vec<&Column>> = determinant.iter().map(|attr| original.column(attr)).collect();
    let (Some(from), Some(to)) = (from, original.column(dependent)) else { return true };
    let mut known: AHashMap<Vec<u32>, u32> = AHashMap::new();
    (0..original.rows).all(|row| {
        let value = to.codes.get(row);
        *known.entry(from.iter().map(|column| column.codes.get(row)).collect()).or_insert(value) == value
    })
}

/// Values of an attribute, over all parts.
#[derive(Default)]
struct ValueIndex {
    known: AHashMap<Option<Vec<u8>>, u32>,
    cells: Vec<CellText>,
}

impl ValueIndex {
    fn code(&mut self, cell: CellText) -> u32 {
        let next = self.cells.len() as u32;
        let code = *self.known.entry(cell.value.clone()).or_insert(next);
        if code == next {
            self.cells.push(cell);
        }
        code
    }
}

fn slots(table: &ExternalTable, values: &mut [ValueIndex]) -> Vec<PartSlot> {
    let mut labels: AHashMap<Option<Vec<u8>>, u32> = AHashMap::new();
    let mut slots = Vec::new();
    for (index, part) in table.parts.iter().enumerate() {
        let mut kinds: Vec<RowKind> = Vec::new();
        for row in 0..part.rows {
            let next = labels.len() as u32 + 1;
            let bucket = match &part.bucket {
                None => 0,
                Some(bucket) => *labels.entry(bucket.value(row).map(<[u8]>::to_vec)).or_insert(next),
            };
            let cells = part.columns.iter().map(|(attr, column)| (attr.index(), ExternalPart::cell(column, row)));
            let cells: Vec<(usize, u32)> = cells.map(|(at, cell)| (at, values[at].code(cell))).collect();
            match kinds.iter_mut().find(|kind| kind.bucket == bucket && kind.values == cells) {
                Some(kind) => kind.left += 1,
                None => kinds.push(RowKind { bucket, values: cells, left: 1 }),
            }
        }
        slots.push(PartSlot { first: index == 0, kinds });
    }
    slots
}

impl WorldSearch<'_> {
    /// Assigns rows of the parts from `slot` on to the next person, in every order.
    ///
    /// `multiplicity` counts the assignments of equal rows so far.
    fn place(
        &mut self,
        slot: usize,
        person: &PersonValues,
        bucket: u32,
        multiplicity: u128,
    ) -> Result<(), AttackError> {
        self.steps += 1;
        if self.steps > MAX_SEARCH_STEPS {
            return Err(AttackError::TooMany { what: "steps", limit: MAX_SEARCH_STEPS, found: self.steps });
        }
        if self.steps.is_multiple_of(1 << 12) {
            self.control.check()?;
        }
        if slot == self.slots.len() {
            return self.complete(person, multiplicity);
        }
        for at in 0..self.slots[slot].kinds.len() {
            let first = self.slots[slot].first;
            let kind = &self.slots[slot].kinds[at];
            if kind.left == 0 || !first && kind.bucket != bucket {
                continue;
            }
            let contradicts =
                kind.values.iter().any(|&(attr, value)| person[attr] != UNASSIGNED && person[attr] != value);
            if contradicts {
                continue;
            }
            let mut known = person.clone();
            kind.values.iter().for_each(|&(attr, value)| known[attr] = value);
            let (here, left) = (kind.bucket, kind.left);
            // a person is identified by the row of the first part, so the order of equal rows does not matter
            let multiplicity = match multiplicity.checked_mul(if slot == 0 { 1 } else { u128::from(left) }) {
                Some(multiplicity) => multiplicity,
                None => {
                    self.overflowed = true;
                    return Ok(());
                }
            };
            self.slots[slot].kinds[at].left -= 1;
            let placed = self.place(slot + 1, &known, here, multiplicity);
            self.slots[slot].kinds[at].left += 1;
            placed?;
            if slot == 0 {
                // the next person takes the next row
                break;
            }
        }
        Ok(())
    }

    /// Adds a person of whom all parts have a row, unless a known dependency forbids it, and goes on to the next.
    fn complete(&mut self, person: &PersonValues, multiplicity: u128) -> Result<(), AttackError> {
        if !self.functions.iter().all(|function| function.admits(person)) {
            return Ok(());
        }
        self.functions.iter_mut().for_each(|function| function.add(person));
        self.people.push(person.clone());
        let placed = if self.people.len() == self.rows {
            self.count(multiplicity);
            Ok(())
        } else {
            self.place(0, &vec![UNASSIGNED; person.len()], 0, multiplicity)
        };
        self.people.pop();
        self.functions.iter_mut().for_each(|function| function.remove(person));
        placed
    }

    fn count(&mut self, multiplicity: u128) {
        for (rule, posterior) in self.rules.iter().zip(&mut self.posteriors) {
            let Some((known, sensitive)) = rule else { continue };
            for person in &self.people {
                let of = |attrs: &[usize]| attrs.iter().map(|&attr| person[attr]).collect::<Vec<u32>>();
                let seen = posterior.entry(of(known)).or_default().entry(of(sensitive)).or_default();
                match seen.checked_add(multiplicity) {
                    Some(sum) => *seen = sum,
                    None => self.overflowed = true,
                }
            }
        }
    }
}

/// What the caller declares about a protected attribute, for its values in possible worlds.
fn declared_values(
    submission: &Submission<'_>,
    sensitive: &[usize],
    overall: &[(Vec<u32>, u128)],
    values: &[ValueIndex],
) -> DeclaredValues {
    let [attr] = *sensitive else { return DeclaredValues::default() };
    let cells = overall.iter().filter_map(|(value, _)| values[attr].cells.get(*value.first()? as usize));
    let kind = cells.clone().map(|cell| cell.kind).next();
    submission.declared(Attr::from(attr), kind, cells.map(|cell| cell.value.as_deref()))
}

fn check_worlds(submission: &Submission<'_>, search: &WorldSearch<'_>, values: &[ValueIndex]) -> PossibleWorldsReport {
    let mut report = PossibleWorldsReport {
        possible: search.posteriors.iter().any(|posteriors| !posteriors.is_empty()),
        ..PossibleWorldsReport::default()
    };
    let mut all: Vec<PosteriorFinding> = Vec::new();
    for (index, (rule, posteriors)) in submission.rules.iter().zip(&search.posteriors).enumerate() {
        let Some((known, sensitive)) = &search.rules[index] else { continue };
        let overall = overall_values(posteriors, sensitive, values);
        let declared = declared_values(submission, sensitive, &overall, values);
        for (known_values, counts) in posteriors {
            let total: u128 = counts.values().fold(0, |sum, count| sum.saturating_add(*count));
            let Some((_, &most)) = counts.iter().max_by_key(|(_, count)| **count) else { continue };
            let largest = ShareOfRows::lowest(most, total);
            if report.worst.is_none_or(|worst| largest.exceeds(worst)) {
                report.worst = Some(largest);
            }
            for (value, count) in exceeding_values(rule.guarantee, counts, &overall, &declared) {
                all.push(PosteriorFinding {
                    rule: index,
                    known: cells(values, known, known_values),
                    sensitive: cells(values, sensitive, value),
                    posterior: ShareOfRows::lowest(count, total),
                });
            }
        }
    }
    report.total = all.len() as u64;
    all.sort_by(|a, b| b.posterior.compare(a.posterior));
    all.truncate(MAX_REPORTED_POSTERIORS);
    report.first = all;
    report
}

/// The cells of attributes by their codes.
fn cells(values: &[ValueIndex], attrs: &[usize], codes: &[u32]) -> Vec<(Attr, CellText)> {
    let cell = |(&attr, &code): (&usize, &u32)| (Attr::from(attr), values[attr].cells[code as usize].clone());
    attrs.iter().zip(codes).map(cell).collect()
}

/// The sensitive values of a rule with their counts, in the order of values.
///
/// Ordered distances need this order.
fn overall_values(
    posteriors: &BTreeMap<Vec<u32>, ValueMultiplicities>,
    sensitive: &[usize],
    values: &[ValueIndex],
) -> Vec<(Vec<u32>, u128)> {
    let mut sums: BTreeMap<&Vec<u32>, u128> = BTreeMap::new();
    for (value, count) in posteriors.values().flatten() {
        let sum = sums.entry(value).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut overall: Vec<(Vec<u32>, u128)> = sums.into_iter().map(|(value, sum)| (value.clone(), sum)).collect();
    overall.sort_by(|(a, _), (b, _)| {
        let compare = |(attr, (a, b)): (&usize, (&u32, &u32))| {
            let (a, b) = (&values[*attr].cells[*a as usize], &values[*attr].cells[*b as usize]);
            a.kind.compare(a.value.as_deref(), b.value.as_deref())
        };
        let each = sensitive.iter().zip(a.iter().zip(b)).map(compare);
        each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    overall
}

/// The sensitive values whose posteriors exceed a guarantee, with their counts.
fn exceeding_values<'v>(
    guarantee: Guarantee,
    counts: &'v ValueMultiplicities,
    overall: &'v [(Vec<u32>, u128)],
    declared: &DeclaredValues,
) -> Vec<(&'v Vec<u32>, u128)> {
    let total: u128 = counts.values().fold(0, |sum, count| sum.saturating_add(*count));
    let above = |numerator: u64, denominator: u64| {
        let above = counts.iter().filter(|(_, count)| is_above(**count, total, numerator, denominator));
        above.map(|(value, count)| (value, *count)).collect()
    };
    match guarantee {
        Guarantee::LDiversity { l } => above(1, l),
        Guarantee::AlphaK { alpha, .. } => above(alpha.numerator(), alpha.denominator()),
        other => {
            let rows = overall.iter().fold(0_u128, |sum, (_, count)| sum.saturating_add(*count));
            let in_class = overall
                .iter()
                .zip(0..)
                .filter_map(|((value, _), code)| Some((code, scaled(*counts.get(value)?, total))));
            let in_class: Vec<(u32, u64)> = in_class.collect();
            let prior: Vec<u64> = overall.iter().map(|(_, count)| scaled(*count, rows)).collect();
            let shares = BucketShares::new(&in_class, &prior, declared);
            if let Guarantee::Thresholds { digest, .. } = other {
                let value = |code: u32| overall.get(code as usize).map(|(value, _)| (value, counts[value]));
                return shares.above_thresholds(digest).into_iter().filter_map(value).collect();
            }
            let most = counts.iter().map(|(value, count)| (value, *count)).max_by_key(|(_, count)| *count);
            most.filter(|_| !shares.satisfies(other)).into_iter().collect()
        }
    }
}

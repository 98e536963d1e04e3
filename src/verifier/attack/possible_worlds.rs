//! Every world that tables allow, one by one: what an adversary who can count them all knows of each person.
//!
//! A world gives each person one row in every table, and in a table of several parts one row of each part, all of one bucket, no
//! row twice, so that tables which share an attribute agree on it. All worlds are equally probable: Bayes' rule for somebody who
//! takes all orders of rows for equally likely, and the tables for made at random. Rows that are equal are taken together, and
//! counted as often as there are of them.

use std::collections::BTreeMap;

use ahash::AHashMap;

use super::error::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, RowMeaning};
use crate::verifier::definition::fraction::beyond;
use crate::verifier::definition::fraction::{exceeds, lowest, scaled};
use crate::verifier::definition::guarantee::BucketShares;
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{CellText, ExternalPart, ExternalTable};

/// The most rows of tables whose worlds are counted.
const MAX_WORLD_ROWS: usize = 16;

/// The most rows of all parts together.
const MAX_TOTAL_PART_ROWS: u64 = 512;

/// The most steps of the search.
const MAX_SEARCH_STEPS: u64 = 20_000_000;

/// So many findings are shown.
const MAX_REPORTED_POSTERIORS: usize = 10;

/// What the worlds tell.
#[derive(Debug, Default)]
pub struct PossibleWorldsReport {
    /// Whether there is any world: else the tables are not of the same rows.
    pub possible: bool,
    /// The largest posterior of any sensitive value, as a fraction in lowest terms.
    pub worst: Option<(u64, u64)>,
    /// How many posteriors exceed what their rules allow.
    pub total: u64,
    /// Some of them, the largest first.
    pub first: Vec<PosteriorFinding>,
}

/// A posterior that exceeds what a rule allows.
#[derive(Clone, Debug)]
pub struct PosteriorFinding {
    /// The rule, by its index.
    pub rule: usize,
    /// What is known.
    pub known: Vec<(Attr, CellText)>,
    /// What is told by it.
    pub sensitive: Vec<(Attr, CellText)>,
    /// How probable it is, in lowest terms.
    pub posterior: (u64, u64),
}

/// Values by attribute; `NONE` where nothing is known yet.
type PersonValues = Vec<u32>;

const UNASSIGNED: u32 = u32::MAX;

/// Rows of one bucket and one content.
struct RowKind {
    bucket: u32,
    values: Vec<(usize, u32)>,
    left: u64,
}

/// A part, whose rows are given out to people.
struct PartSlot {
    /// Whether it begins a table.
    first: bool,
    kinds: Vec<RowKind>,
}

/// Per rule: of what is known, how often each sensitive value is seen, over all worlds and people.
type WorldCounts = Vec<BTreeMap<Vec<u32>, BTreeMap<Vec<u32>, u128>>>;

struct WorldSearch<'a> {
    slots: Vec<PartSlot>,
    people: Vec<PersonValues>,
    rows: usize,
    /// Per rule the attributes that are published.
    rules: Vec<Option<(Vec<usize>, Vec<usize>)>>,
    posteriors: WorldCounts,
    steps: u64,
    overflowed: bool,
    control: &'a Control,
}

/// Counts the worlds of the submitted tables, and holds what they tell of each person against the rules.
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
    // each step of the search is a call inside of the one before
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
    let posteriors = vec![BTreeMap::new(); rules.len()];
    let people = Vec::with_capacity(rows);
    let mut search = WorldSearch { slots, people, rows, rules, posteriors, steps: 0, overflowed: false, control };
    search.place(0, &vec![UNASSIGNED; submission.names.len()], 0, 1)?;
    if search.overflowed {
        return Err(AttackError::TooMany { what: "worlds", limit: u64::MAX, found: u64::MAX });
    }
    Ok(check_worlds(submission, &search, &values))
}

/// The values of an attribute, over all parts.
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
    /// Gives the next person rows of the parts from `slot` on, in every way; `ways` counts how often what was given so far can
    /// be given.
    fn place(&mut self, slot: usize, person: &PersonValues, bucket: u32, ways: u128) -> Result<(), AttackError> {
        self.steps += 1;
        if self.steps > MAX_SEARCH_STEPS {
            return Err(AttackError::TooMany { what: "steps", limit: MAX_SEARCH_STEPS, found: self.steps });
        }
        if self.steps.is_multiple_of(1 << 12) {
            self.control.check()?;
        }
        if slot == self.slots.len() {
            self.people.push(person.clone());
            if self.people.len() == self.rows {
                self.look(ways);
            } else {
                self.place(0, &vec![UNASSIGNED; person.len()], 0, ways)?;
            }
            self.people.pop();
            return Ok(());
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
            // people are named by their rows of the first part: of equal rows the order tells nothing
            let ways = match ways.checked_mul(if slot == 0 { 1 } else { u128::from(left) }) {
                Some(ways) => ways,
                None => {
                    self.overflowed = true;
                    return Ok(());
                }
            };
            self.slots[slot].kinds[at].left -= 1;
            let placed = self.place(slot + 1, &known, here, ways);
            self.slots[slot].kinds[at].left += 1;
            placed?;
            if slot == 0 {
                // the next person is that of the next row
                break;
            }
        }
        Ok(())
    }

    fn look(&mut self, ways: u128) {
        for (rule, posterior) in self.rules.iter().zip(&mut self.posteriors) {
            let Some((known, sensitive)) = rule else { continue };
            for person in &self.people {
                let of = |attrs: &[usize]| attrs.iter().map(|&attr| person[attr]).collect::<Vec<u32>>();
                let seen = posterior.entry(of(known)).or_default().entry(of(sensitive)).or_default();
                match seen.checked_add(ways) {
                    Some(sum) => *seen = sum,
                    None => self.overflowed = true,
                }
            }
        }
    }
}

/// What is stated of what a rule protects, over the values that worlds have.
fn stated(
    submission: &Submission<'_>,
    sensitive: &[usize],
    overall: &[(Vec<u32>, u128)],
    values: &[ValueIndex],
) -> DeclaredValues {
    let [attr] = *sensitive else { return DeclaredValues::default() };
    let cells = overall.iter().filter_map(|(value, _)| values[attr].cells.get(*value.first()? as usize));
    let kind = cells.clone().map(|cell| cell.kind).next();
    submission.stated(Attr::from(attr), kind, cells.map(|cell| cell.value.as_deref()))
}

fn check_worlds(submission: &Submission<'_>, search: &WorldSearch<'_>, values: &[ValueIndex]) -> PossibleWorldsReport {
    let mut exposed = PossibleWorldsReport {
        possible: search.posteriors.iter().any(|of| !of.is_empty()),
        ..PossibleWorldsReport::default()
    };
    let mut all: Vec<PosteriorFinding> = Vec::new();
    for (index, (rule, posterior)) in submission.rules.iter().zip(&search.posteriors).enumerate() {
        let Some((known, sensitive)) = &search.rules[index] else { continue };
        let cells = |attrs: &[usize], codes: &[u32]| -> Vec<(Attr, CellText)> {
            let cell = |(&attr, &code): (&usize, &u32)| (Attr::from(attr), values[attr].cells[code as usize].clone());
            attrs.iter().zip(codes).map(cell).collect()
        };
        // in the order of values, as distances over it need them
        let mut overall: Vec<(Vec<u32>, u128)> = posterior
            .values()
            .flatten()
            .fold(BTreeMap::<Vec<u32>, u128>::new(), |mut sum, (value, ways)| {
                let seen = sum.entry(value.clone()).or_default();
                *seen = seen.saturating_add(*ways);
                sum
            })
            .into_iter()
            .collect();
        overall.sort_by(|(a, _), (b, _)| {
            let compare = |(attr, (a, b)): (&usize, (&u32, &u32))| {
                let cells = &values[*attr].cells;
                let (a, b) = (&cells[*a as usize], &cells[*b as usize]);
                a.kind.compare(a.value.as_deref(), b.value.as_deref())
            };
            let each = sensitive.iter().zip(a.iter().zip(b)).map(compare);
            each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        let stated = stated(submission, sensitive, &overall, values);
        for (q, seen) in posterior {
            let total: u128 = seen.values().fold(0, |sum, ways| sum.saturating_add(*ways));
            let mut exceeding: Vec<(&Vec<u32>, u128)> = Vec::new();
            let likeliest = seen.iter().map(|(value, ways)| (value, *ways)).max_by_key(|(_, ways)| *ways);
            let Some(likeliest) = likeliest else { continue };
            let here = lowest(likeliest.1, total);
            if exposed.worst.is_none_or(|worst| exceeds(here, worst)) {
                exposed.worst = Some(here);
            }
            match rule.guarantee {
                Guarantee::LDiversity { l } => {
                    exceeding.extend(seen.iter().filter(|(_, ways)| beyond(**ways, total, 1, l)).map(|(v, w)| (v, *w)));
                }
                Guarantee::AlphaK { alpha, .. } => {
                    let (n, d) = (alpha.numerator(), alpha.denominator());
                    exceeding.extend(seen.iter().filter(|(_, ways)| beyond(**ways, total, n, d)).map(|(v, w)| (v, *w)));
                }
                other => {
                    let most = overall.iter().fold(0_u128, |sum, (_, ways)| sum.saturating_add(*ways));
                    let counts = overall
                        .iter()
                        .enumerate()
                        .filter_map(|(code, (value, _))| Some((code as u32, scaled(*seen.get(value)?, total))));
                    let counts: Vec<(u32, u64)> = counts.collect();
                    let prior: Vec<u64> = overall.iter().map(|(_, ways)| scaled(*ways, most)).collect();
                    let shares = BucketShares::new(&counts, &prior, &stated);
                    if let Guarantee::Thresholds { stated, .. } = other {
                        let beyond: Vec<u32> = shares.beyond(stated);
                        let of = |code: &u32| overall.get(*code as usize).map(|(value, _)| (value, seen[value]));
                        exceeding.extend(beyond.iter().filter_map(of));
                    } else if !shares.keep(other) {
                        exceeding.push(likeliest);
                    }
                }
            }
            for (value, ways) in exceeding {
                all.push(PosteriorFinding {
                    rule: index,
                    known: cells(known, q),
                    sensitive: cells(sensitive, value),
                    posterior: lowest(ways, total),
                });
            }
        }
    }
    exposed.total = all.len() as u64;
    all.sort_by(|a, b| {
        if exceeds(a.posterior, b.posterior) {
            std::cmp::Ordering::Less
        } else if exceeds(b.posterior, a.posterior) {
            std::cmp::Ordering::Greater
        } else {
            std::cmp::Ordering::Equal
        }
    });
    all.truncate(MAX_REPORTED_POSTERIORS);
    exposed.first = all;
    exposed
}

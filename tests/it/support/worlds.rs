//! Possible worlds of published parts, one by one. Literal on purpose: nothing here is taken from the library.
//!
//! A world gives each person one row in every published table and, in a bucketized one, one row of each of its other parts in the
//! same bucket, no row twice, so that tables which share an attribute agree on it (row-labelled worlds, all equally probable).
//! The adversary's posterior is a share of worlds. Equal rows are placed once: each part has one row for each person, so that all
//! worlds are in equally many orders of equal rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use guardian::report::Manifest;

use super::library::{Memory, parts};

/// A part of a published table as a reader has it.
pub(crate) struct Part {
    /// The attributes of a row.
    pub(crate) attributes: Vec<String>,
    /// The rows, each with its bucket; 0 where there are none.
    pub(crate) rows: Vec<(Vec<String>, u32)>,
}

/// A published table: its parts, tied by bucket where there are several.
pub(crate) type Published = Vec<Part>;

/// The tables of a release, from its files.
pub(crate) fn published(manifest: &Manifest, files: &Memory) -> Vec<Published> {
    let part = |part: super::library::ReadPart| {
        let buckets = part.buckets.unwrap_or_else(|| vec![0; part.rows.len()]);
        Part { attributes: part.attributes, rows: part.rows.into_iter().zip(buckets).collect() }
    };
    parts(manifest, files).into_iter().map(|parts| parts.into_iter().map(part).collect()).collect()
}

/// What a person is in a world: the code of a value for each attribute.
pub(crate) type Person = Vec<u16>;

/// No row says yet what value a person has.
pub(crate) const OPEN: u16 = u16::MAX;

/// Equal rows of a bucket. One without values stands for a person that the part leaves out.
struct Kind {
    bucket: u32,
    cells: Vec<(usize, u16)>,
    rows: usize,
}

/// A part whose rows are given to people.
struct Slot {
    /// Whether it begins a table.
    begins: bool,
    kinds: Vec<Kind>,
}

/// The possible worlds of some tables.
pub(crate) struct Worlds {
    names: Vec<String>,
    /// The values of each attribute, by code.
    values: Vec<Vec<String>>,
    slots: Vec<Slot>,
}

impl Worlds {
    pub(crate) fn new<'p>(tables: impl IntoIterator<Item = &'p Published>) -> Self {
        let mut worlds = Self { names: Vec::new(), values: Vec::new(), slots: Vec::new() };
        for table in tables {
            for (at, part) in table.iter().enumerate() {
                let slot = worlds.slot(at == 0, part);
                worlds.slots.push(slot);
            }
        }
        worlds
    }

    fn slot(&mut self, begins: bool, part: &Part) -> Slot {
        let attributes: Vec<usize> = part.attributes.iter().map(|name| self.number(name)).collect();
        let mut kinds: Vec<Kind> = Vec::new();
        for (row, bucket) in &part.rows {
            let cells: Vec<(usize, u16)> = attributes
                .iter()
                .zip(row)
                .map(|(&attribute, value)| (attribute, self.code(attribute, value)))
                .collect();
            match kinds.iter_mut().find(|kind| kind.bucket == *bucket && kind.cells == cells) {
                Some(kind) => kind.rows += 1,
                None => kinds.push(Kind { bucket: *bucket, cells, rows: 1 }),
            }
        }
        Slot { begins, kinds }
    }

    fn number(&mut self, name: &str) -> usize {
        self.attribute(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.values.push(Vec::new());
            self.names.len() - 1
        })
    }

    fn code(&mut self, attribute: usize, value: &str) -> u16 {
        self.find(attribute, value).unwrap_or_else(|| {
            self.values[attribute].push(value.to_owned());
            (self.values[attribute].len() - 1) as u16
        })
    }

    /// The code of a value, where some table shows it.
    pub(crate) fn find(&self, attribute: usize, value: &str) -> Option<u16> {
        self.values[attribute].iter().position(|other| other == value).map(|at| at as u16)
    }

    /// The number of an attribute, where some table shows it.
    pub(crate) fn attribute(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name)
    }

    /// The value behind a code.
    pub(crate) fn value(&self, attribute: usize, code: u16) -> &str {
        &self.values[attribute][code as usize]
    }

    /// Visits every world in which each person `fits`.
    ///
    /// `fits` may be asked while values are [`OPEN`]. False when there are more worlds than `budget` allows.
    pub(crate) fn visit(&self, budget: u64, fits: &dyn Fn(&[u16]) -> bool, see: &mut dyn FnMut(&[Person])) -> bool {
        let all = |slot: &Slot| slot.kinds.iter().map(|kind| kind.rows).sum::<usize>();
        assert!(self.slots.iter().all(|slot| all(slot) == all(&self.slots[0])), "a part lacks rows");
        let left = self.slots.iter().map(|slot| slot.kinds.iter().map(|kind| kind.rows).collect()).collect();
        let mut search = Search { slots: &self.slots, left, people: Vec::new(), budget, fits, see };
        let open = vec![OPEN; self.names.len()];
        search.place(0, &open, 0)
    }
}

struct Search<'a> {
    slots: &'a [Slot],
    /// How many rows of each kind are not given yet.
    left: Vec<Vec<usize>>,
    people: Vec<Person>,
    /// How many steps are left.
    budget: u64,
    fits: &'a dyn Fn(&[u16]) -> bool,
    see: &'a mut dyn FnMut(&[Person]),
}

impl Search<'_> {
    /// Gives the next person rows of the parts from `at` on, those of a table of one bucket.
    fn place(&mut self, at: usize, person: &[u16], bucket: u32) -> bool {
        let Some(budget) = self.budget.checked_sub(1) else { return false };
        self.budget = budget;
        if at == self.slots.len() {
            self.people.push(person.to_vec());
            let within = if self.left[0].iter().all(|rows| *rows == 0) {
                (self.see)(&self.people);
                true
            } else {
                self.place(0, &vec![OPEN; person.len()], 0)
            };
            self.people.pop();
            return within;
        }
        let Slot { begins, kinds } = &self.slots[at];
        for (number, kind) in kinds.iter().enumerate() {
            let is_open = |&(attribute, value): &(usize, u16)| [OPEN, value].contains(&person[attribute]);
            if self.left[at][number] == 0 || !begins && kind.bucket != bucket || !kind.cells.iter().all(is_open) {
                continue;
            }
            let mut known = person.to_vec();
            kind.cells.iter().for_each(|&(attribute, value)| known[attribute] = value);
            if !(self.fits)(&known) {
                // the first part names the people: one that does not fit leaves no world
                if at == 0 {
                    return true;
                }
                continue;
            }
            self.left[at][number] -= 1;
            let within = self.place(at + 1, &known, kind.bucket);
            self.left[at][number] += 1;
            if !within {
                return false;
            }
            if at == 0 {
                return true;
            }
        }
        true
    }
}

/// Of the people with each combination of known values, the weight of those with each combination of sensitive ones, over worlds.
pub(crate) struct Posterior {
    known: Vec<usize>,
    sensitive: Vec<usize>,
    shares: BTreeMap<Person, BTreeMap<Person, u128>>,
}

impl Posterior {
    /// Of known attributes those count that some table shows.
    pub(crate) fn new<S: AsRef<str>>(worlds: &Worlds, known: &[S], sensitive: &[S]) -> Self {
        let numbers = |names: &[S]| names.iter().filter_map(|name| worlds.attribute(name.as_ref())).collect();
        Self { known: numbers(known), sensitive: numbers(sensitive), shares: BTreeMap::new() }
    }

    pub(crate) fn see(&mut self, people: &[Person], weight: u128) {
        let of = |person: &[u16], attributes: &[usize]| attributes.iter().map(|&at| person[at]).collect::<Person>();
        for person in people {
            let shares = self.shares.entry(of(person, &self.known)).or_default();
            *shares.entry(of(person, &self.sensitive)).or_insert(0) += weight;
        }
    }

    /// For each combination of known values, the weights of sensitive ones.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (&Person, &BTreeMap<Person, u128>)> {
        self.shares.iter()
    }

    /// Whether some value has a posterior above 1/l, or else of 1/l.
    pub(crate) fn against(&self, l: u128) -> Ordering {
        let shares = self.shares.values().flat_map(|values| {
            let total: u128 = values.values().sum();
            // who is in no part has no value
            let known = values.iter().filter(|(value, _)| !value.contains(&OPEN));
            known.map(move |(_, count)| (count * l).cmp(&total))
        });
        shares.max().unwrap_or(Ordering::Less)
    }
}

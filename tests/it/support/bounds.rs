//! Bounds of rules, and what posteriors over possible worlds come to against them. Literal on purpose: nothing here is taken from the
//! library.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::planted::Planted;
use super::worlds::{OPEN, Person, Posterior, Worlds};

/// A fraction of whole numbers.
pub(crate) type Share = (u128, u128);

/// What a posterior of a rule may be. Values are named by their column and a number.
#[derive(Clone, Debug)]
pub(crate) enum Bound {
    /// At most 1/l for each value.
    Share(u128),
    /// At most this total variation from the whole table.
    Variation(Share),
    /// At most this distance from the whole table, along a tree over the values 0 and 1, and 2 and 3.
    Tree(Share),
    /// At most the first share for the value 0, and the second for others.
    Thresholds(Share, Share),
}

fn text((count, of): Share) -> String {
    format!("{count}/{of}")
}

impl Bound {
    /// The guarantee as a document asks for it of the column `name`.
    pub(crate) fn guarantee(&self, name: &str) -> Value {
        match self {
            Self::Share(l) => json!({"type": "l_diversity", "l": *l as u64}),
            Self::Variation(t) => json!({"type": "t_closeness", "t": text(*t), "distance": "equal"}),
            Self::Tree(t) => json!({"type": "t_closeness", "t": text(*t), "distance": "hierarchical"}),
            Self::Thresholds(first, others) => {
                json!({"type": "thresholds", "explicit": {format!("{name}0"): text(*first)}, "otherwise": text(*others)})
            }
        }
    }

    /// The greatest posterior of `sensitive` against the bound.
    pub(crate) fn against(&self, data: &Planted, worlds: &Worlds, posterior: &Posterior, sensitive: &str) -> Ordering {
        if let Self::Share(l) = self {
            return posterior.against(*l);
        }
        let attribute = worlds.attribute(sensitive);
        let value = |code: u16| (code != OPEN).then(|| attribute.map(|at| worlds.value(at, code).to_owned())).flatten();
        let of_group = |shares: &BTreeMap<Person, u128>| {
            let mut own: BTreeMap<Option<String>, u128> = BTreeMap::new();
            for (code, weight) in shares {
                *own.entry(value(code[0])).or_default() += weight;
            }
            self.of_distribution(data, sensitive, &own)
        };
        posterior.shares().map(|(_, shares)| of_group(shares)).max().unwrap_or(Ordering::Less)
    }

    /// A distribution of weights against the bound; who is in no part has no value.
    fn of_distribution(&self, data: &Planted, name: &str, own: &BTreeMap<Option<String>, u128>) -> Ordering {
        let column = data.names.iter().position(|other| *other == name).unwrap();
        let (all, rows) = (own.values().sum::<u128>(), data.rows.len() as u128);
        let weight = |value: &str| own.get(&Some(value.to_owned())).copied().unwrap_or_default();
        // shares of the group less those of the table, times both sums
        let excess = |value: &str| -> i128 {
            let whole = data.rows.iter().filter(|row| row[column] == value).count() as u128;
            (weight(value) * rows) as i128 - (whole * all) as i128
        };
        let mut values: Vec<&String> = data.rows.iter().map(|row| &row[column]).collect();
        values.sort_unstable();
        values.dedup();
        match self {
            Self::Share(l) => values.iter().map(|value| (weight(value) * l).cmp(&all)).max().unwrap_or(Ordering::Less),
            Self::Variation((count, of)) => {
                let sum = values.iter().map(|value| excess(value).unsigned_abs()).sum::<u128>();
                (sum * of).cmp(&(2 * count * all * rows))
            }
            Self::Tree((count, of)) => {
                let leaf = |value: usize| excess(&format!("{name}{value}"));
                let leaves = (0..4).map(|value| leaf(value).unsigned_abs()).sum::<u128>();
                // each edge is as long as a quarter, and what passes it is the difference of the shares below
                let nodes = (leaf(0) + leaf(1)).unsigned_abs() + (leaf(2) + leaf(3)).unsigned_abs();
                (of * (leaves + nodes)).cmp(&(4 * count * all * rows))
            }
            Self::Thresholds(first, others) => {
                let exceeds = |value: &&String| {
                    let (count, of) = if ***value == format!("{name}0") { first } else { others };
                    (weight(value) * of).cmp(&(count * all))
                };
                values.iter().map(exceeds).max().unwrap_or(Ordering::Less)
            }
        }
    }
}

//! Tables of people, drawn from what the vectors say of them; also for the tests over HTTP.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The columns of people: name, number of values, prefix, first value.
const DOMAINS: [(&str, u64, &str, u64); 7] = [
    ("age", 50, "", 18),
    ("ward", 7, "w", 0),
    ("sex", 2, "s", 0),
    ("zip", 40, "z", 0),
    ("dx", 12, "d", 0),
    ("job", 30, "j", 0),
    ("income", 90, "", 10),
];

/// What a table is made of.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TableSpec {
    pub(super) people: Vec<[u64; 2]>,
    pub(super) visits: Option<u64>,
    pub(super) keys: BTreeMap<String, String>,
    pub(super) draw: u64,
    pub(super) columns: Option<Vec<String>>,
    pub(super) grid: BTreeMap<String, [usize; 2]>,
    pub(super) set: BTreeMap<String, String>,
    pub(super) cells: Vec<(u64, String, String)>,
    pub(super) around: BTreeMap<String, [String; 2]>,
    pub(super) rename: BTreeMap<String, String>,
    pub(super) twice: bool,
    pub(super) reverse: bool,
}

/// A table, and the person of each row.
#[derive(Clone, Default)]
pub(super) struct PeopleTable {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) truth: Vec<u64>,
}

/// SplitMix64.
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

fn value(person: u64, column: &str) -> String {
    let place = DOMAINS.iter().position(|(name, ..)| *name == column).unwrap();
    let (_, values, prefix, first) = DOMAINS[place];
    let salt = (place as u64 + 1) * 0x0100_0193;
    format!("{prefix}{}", mixed(mixed(person) ^ salt) % values + first)
}

impl TableSpec {
    pub(super) fn table(&self) -> PeopleTable {
        let default = ["age", "ward", "sex", "zip", "dx"].map(str::to_owned).to_vec();
        let columns = self.columns.as_ref().unwrap_or(&default);
        let mut names: Vec<&String> = Vec::new();
        for name in self.keys.keys().chain(columns).chain(self.grid.keys()).chain(self.set.keys()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut table = PeopleTable::default();
        for visit in 0..self.visits.unwrap_or(1) {
            for person in self.people.iter().flat_map(|[first, end]| *first..*end) {
                let row = table.rows.len();
                table.rows.push(names.iter().map(|name| self.cell(name, person, visit, row)).collect());
                table.truth.push(person);
            }
        }
        let renamed = |name: &&String| self.rename.get(*name).unwrap_or(name).clone();
        table.names = names.iter().map(renamed).collect();
        if self.twice {
            table.rows.extend_from_within(..);
            table.truth.extend_from_within(..);
        }
        if self.reverse {
            table.rows.reverse();
            table.truth.reverse();
        }
        table
    }

    fn cell(&self, name: &str, person: u64, visit: u64, row: usize) -> String {
        let drawn = || mixed(person + self.draw * 1_000_000_000) % 1_000_000_000_000;
        let key = |pattern: &String| {
            let text = pattern.replace("{p}", &person.to_string()).replace("{x}", &drawn().to_string());
            text.replace("{v}", &visit.to_string()).replace("{r}", &(row + 1).to_string())
        };
        let grid = |[divisor, modulus]: &[usize; 2]| (row / divisor % modulus).to_string();
        let changed = self.cells.iter().find(|(of, column, _)| *of == person && column == name);
        let text = match (changed, self.set.get(name), self.grid.get(name), self.keys.get(name)) {
            (Some((.., text)), ..) | (None, Some(text), ..) => text.clone(),
            (None, None, Some(steps), _) => grid(steps),
            (None, None, None, Some(pattern)) => key(pattern),
            (None, None, None, None) => value(person, name),
        };
        self.around.get(name).map_or(text.clone(), |[before, after]| format!("{before}{text}{after}"))
    }
}

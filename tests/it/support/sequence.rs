//! Random sequences of releases of one small table, of which the last ones are checked on their joins.

use std::collections::BTreeMap;

use guardian::engine::{EngineError, earlier_of, read_published};
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::{AttributeType, CellShape};
use guardian::problem::Fault;
use guardian::publication::{EarlierColumn, EarlierRelease, RowCorrespondence};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::report::Manifest;
use guardian::spec::read_levels;
use serde_json::{Value, json};
use uuid::Uuid;

use super::library::{Memory, Original, Random, parts, release, table, verified};
use super::planted::{Dependency, Planted};

/// The column of numbers.
const AGE: &str = "age";

/// A column as readers of a release see it.
#[derive(Debug)]
pub(crate) struct ShownColumn {
    pub(crate) name: String,
    pub(crate) shape: CellShape,
    pub(crate) labels: Vec<String>,
}

/// A release as its readers see it.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) id: String,
    pub(crate) columns: Vec<ShownColumn>,
}

/// Releases of one table so far.
pub(crate) struct Sequence {
    pub(crate) data: Planted,
    /// Which columns have a taxonomy.
    trees: Vec<bool>,
    /// The dependencies that documents declare.
    pub(crate) declared: Value,
    pub(crate) shown: Vec<Shown>,
    earlier: EarlierDisclosures,
}

/// A table of 3 to 8 people: four free columns, some of them equal in many rows, and up to three that dependencies tie to these.
fn planted(random: &mut Random) -> Planted {
    let count = 3 + random.below(6);
    let mut names = vec![AGE, "job", "city", "s"];
    let sizes = [3, 2 + random.below(3), 2, 2 + random.below(3)];
    let mut rows: Vec<Vec<usize>> =
        (0..count).map(|_| sizes.iter().map(|&size| random.below(size)).collect()).collect();
    let mut dependencies = Vec::new();
    for _ in 0..random.below(4) {
        let derived: [(&'static str, &[usize]); 8] = [
            ("desk", &[1]),
            ("hall", &[1]),
            ("task", &[1]),
            ("ward", &[3]),
            ("drug", &[3]),
            ("band", &[0]),
            ("pair", &[1, 2]),
            ("dirty", &[1]),
        ];
        let (name, from) = derived[random.below(derived.len())];
        if names.contains(&name) {
            continue;
        }
        let to = names.len();
        for row in &mut rows {
            let sum: usize = from.iter().map(|&at| row[at]).sum();
            row.push(match name {
                "desk" => sum * 5 % 7,
                "task" | "drug" => sum * 2 + random.below(2),
                "pair" => sum,
                _ => sum / 2,
            });
        }
        if name == "dirty" {
            rows[0][to] = 1 - rows[0][to].min(1);
        }
        names.push(name);
        let (down, up) = (Dependency::new(from, to), Dependency::new(&[to], from[0]));
        dependencies.extend(match name {
            "desk" => vec![down, up],
            "task" | "drug" => vec![up],
            _ => vec![down],
        });
    }
    let mut data = Planted::new(names, &rows, dependencies);
    data.rows.iter_mut().for_each(|row| row[0] = row[0].trim_start_matches(AGE).to_owned());
    data
}

/// A taxonomy of the values of a column, by levels from the leaf.
const LEVELS: [[&str; 3]; 8] = [
    ["0", "a", "low"],
    ["1", "a", "low"],
    ["2", "b", "low"],
    ["3", "b", "low"],
    ["4", "c", "high"],
    ["5", "c", "high"],
    ["6", "d", "high"],
    ["7", "d", "high"],
];

/// The labels above a value of a taxonomy, and the value itself.
pub(crate) fn above(name: &str, value: &str) -> Vec<String> {
    let levels = LEVELS.iter().find(|levels| format!("{name}{}", levels[0]) == value).unwrap();
    let label = |level: &&str| format!("{name}{level}");
    levels.iter().map(label).chain(["any".to_owned()]).collect()
}

fn taxonomy(name: &str) -> Value {
    let nodes = |at: [usize; 2]| {
        let leaves = at.map(|at| format!("{name}{}", LEVELS[at][0]));
        (format!("{name}{}", LEVELS[at[0]][1]), json!(leaves))
    };
    let half = |at: usize| Value::Object([nodes([at, at + 1]), nodes([at + 2, at + 3])].into_iter().collect());
    json!({"any": {format!("{name}low"): half(0), format!("{name}high"): half(4)}})
}

impl Sequence {
    /// A random table.
    pub(crate) fn new(random: &mut Random) -> Self {
        let data = planted(random);
        let trees = data.names.iter().map(|name| *name != AGE && random.below(3) > 0).collect();
        Self { trees, ..Self::of(data) }
    }

    /// A table without taxonomies.
    pub(crate) fn of(data: Planted) -> Self {
        let (trees, declared) = (vec![false; data.names.len()], data.declared());
        Self { data, trees, declared, shown: Vec::new(), earlier: EarlierDisclosures::default() }
    }

    fn next_id(&self) -> Uuid {
        Uuid::from_u128(0x018f_0000_0000_7000_8000_0000_0000_0000 + self.shown.len() as u128)
    }

    fn pick(&self, random: &mut Random, most: usize) -> Vec<usize> {
        let count = 1 + random.below(most.min(self.data.names.len()));
        let mut columns = random.pick(count, self.data.names.len());
        columns.sort_unstable();
        columns
    }

    /// What a document says of the columns that it publishes.
    fn attributes(&self, columns: &[usize], publish: bool) -> Value {
        let options = |&at: &usize| {
            let mut options = json!({"identifier": false});
            if publish {
                options["publish"] = true.into();
            }
            if self.trees[at] {
                options["taxonomy"] = taxonomy(self.data.names[at]);
            }
            (self.data.names[at].to_owned(), options)
        };
        Value::Object(columns.iter().map(options).collect())
    }

    /// All rows with exact values.
    pub(crate) fn exact(&self, random: &mut Random) -> Value {
        let columns = self.pick(random, 4);
        json!({"unlisted": "drop", "attributes": self.attributes(&columns, true), "no_rules_reason": "public",
            "method": {"type": "versatile", "rules": [], "functional_dependencies": self.declared}})
    }

    /// A table that is checked on its joins with all others.
    pub(crate) fn joined(&self, random: &mut Random) -> Value {
        let columns = self.pick(random, 4);
        let names: Vec<&str> = columns.iter().map(|&at| self.data.names[at]).collect();
        let of_new: Vec<String> = names.iter().map(|name| format!("new.{name}")).collect();
        let of_earlier = self.shown.iter().flat_map(|shown| {
            shown.columns.iter().map(|column| format!("{}.{}", shown.id, column.name)).collect::<Vec<_>>()
        });
        let all: Vec<String> = of_new.iter().cloned().chain(of_earlier).collect();
        let mut requirements = Vec::new();
        for _ in 0..1 + random.below(2) {
            let own = of_new[random.below(of_new.len())].clone();
            let attribute = |name: &str| name.split_once('.').map(|(_, attribute)| attribute.to_owned());
            let mut y = all[random.below(all.len())].clone();
            if random.below(3) == 0 || attribute(&y) == attribute(&own) {
                y = "new.#key".to_owned();
            }
            let others = all.iter().filter(|name| attribute(name) != attribute(&y) && **name != own);
            let mut x: Vec<String> = others.filter(|_| random.below(4) == 0).cloned().collect();
            x.push(own);
            let measure = match random.below(3) {
                0 => json!({"type": "xy_anonymity", "k": 2}),
                _ => {
                    let h = ["1/2", "2/3", "3/4"][random.below(3)];
                    json!({"type": "xy_linkability", "h": h})
                }
            };
            requirements.push(json!({"x": x, "y": [y], "measure": measure}));
        }
        let against: Vec<&str> = self.shown.iter().map(|shown| shown.id.as_str()).collect();
        json!({"unlisted": "drop", "attributes": self.attributes(&columns, false), "method": {"type": "sequential",
            "publish": names, "against": against, "requirements": requirements,
            "functional_dependencies": self.declared}})
    }

    /// Publishes a document, or gives the faults.
    pub(crate) fn publish(&mut self, document: &Value, random: &mut Random) -> Result<Manifest, Vec<Fault>> {
        let original = Original::new(table(self.data.csv().as_bytes()));
        let job = original.job(document)?;
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(random.key()));
        let (released, files) = match release(&job, &self.earlier, &streams) {
            Ok(done) => done,
            Err(EngineError::Refused(problem)) if problem.errors.is_empty() => {
                return Err(vec![Fault::new("", problem.kind, problem.detail)]);
            }
            Err(EngineError::Refused(problem)) => return Err(problem.errors),
            Err(error) => panic!("{error:?}\n{document}\n{}", self.data.csv()),
        };
        verified(&job, &released.manifest, &files, true);
        let id = self.next_id();
        let read = self.read(id, &released.manifest, &files);
        self.earlier.releases.releases.push(read);
        self.earlier.disclosures.extend(released.disclosures.into_iter().map(|disclosure| (id, disclosure)));
        self.earlier.rules.extend(released.rules.into_iter().map(|rule| (id, rule)));
        Ok(released.manifest)
    }

    /// A release as later ones read it back.
    fn read(&mut self, id: Uuid, manifest: &Manifest, files: &Memory) -> EarlierRelease {
        let [part] = &parts(manifest, files)[0][..] else { panic!("one part") };
        let of = &manifest.tables[0].parts[0];
        let column = |(at, name): (usize, &String)| ShownColumn {
            name: name.clone(),
            shape: of.cell_shape(name),
            labels: part.rows.iter().map(|row| row[at].clone()).collect(),
        };
        let columns = part.attributes.iter().enumerate().map(column).collect();
        self.shown.push(Shown { id: id.to_string(), columns });
        let file = read_published(of, &files.0[&of.csv()][..], &mut |_| Ok(())).unwrap();
        let names = manifest.tables[0].attributes.clone();
        EarlierRelease { release: id.to_string(), ..earlier_of(manifest, &names, file).unwrap() }
    }

    /// Adds a table with labels of its own for each cell, such as one that was published elsewhere.
    pub(crate) fn add_labelled(&mut self, random: &mut Random) {
        let order = random.pick(self.data.rows.len(), self.data.rows.len());
        let mut columns = Vec::new();
        for at in self.pick(random, 3) {
            let values: Vec<&str> = order.iter().map(|&row| self.data.rows[row][at].as_str()).collect();
            let name = self.data.names[at];
            let (shape, labels) = labelled(random, name, self.trees[at], &values);
            columns.push(ShownColumn { name: name.to_owned(), shape, labels });
        }
        self.add(columns);
    }

    /// Adds a table of these columns that was published elsewhere.
    pub(crate) fn add(&mut self, columns: Vec<ShownColumn>) {
        let shown = Shown { id: self.next_id().to_string(), columns };
        let column = |of: &ShownColumn| {
            let mut csv = csv::Writer::from_writer(Vec::new());
            csv.write_record(["cells", "point"]).unwrap();
            // a column beside it, so that an empty line is none
            of.labels.iter().for_each(|label| csv.write_record([label.as_str(), "."]).unwrap());
            let is_of_numbers = of.name == AGE && of.shape != CellShape::Suppressed;
            EarlierColumn {
                name: of.name.clone(),
                published: of.name.clone(),
                shape: of.shape,
                nodes: of.shape == CellShape::Node,
                kind: if is_of_numbers { AttributeType::Integer } else { AttributeType::Text },
                cells: table(&csv.into_inner().unwrap()[..]).column(0_usize.into()).clone(),
            }
        };
        let levels = |(name, has): (&&str, &bool)| {
            let rows = LEVELS.map(|levels| levels.map(|level| format!("{name}{level}")).join(",") + ",any\n");
            let tree = || read_levels(("value,pair,half,root\n".to_owned() + &rows.concat()).as_bytes()).unwrap();
            has.then(|| ((*name).to_owned(), tree()))
        };
        let taxonomies: BTreeMap<_, _> = self.data.names.iter().zip(&self.trees).filter_map(levels).collect();
        self.earlier.releases.releases.push(EarlierRelease {
            release: shown.id.clone(),
            columns: shown.columns.iter().map(column).collect(),
            rows: self.data.rows.len(),
            sequence: None,
            alone: false,
            taxonomies,
            external: false,
            rows_of: RowCorrespondence::Content,
        });
        self.shown.push(shown);
    }
}

/// What a release shows of a column: labels that each cover the value, not of one cut.
fn labelled(random: &mut Random, name: &str, has_tree: bool, values: &[&str]) -> (CellShape, Vec<String>) {
    let json = |text: &str| if name == AGE { text.parse::<i64>().unwrap().into() } else { Value::from(text) };
    match random.below(5) {
        0 => {
            let mut set = |own: &&str| {
                let mut all = vec![*own, values[random.below(values.len())]];
                all.sort_unstable();
                all.dedup();
                Value::from(all.into_iter().map(json).collect::<Vec<_>>()).to_string()
            };
            (CellShape::Set, values.iter().map(&mut set).collect())
        }
        1 if has_tree => {
            let mut node = |own: &&str| above(name, own).swap_remove(random.below(4));
            (CellShape::Node, values.iter().map(&mut node).collect())
        }
        1 if name == AGE => {
            let interval = |own: &&str| if *own < "2" { "0..1" } else { "2..2" };
            (CellShape::Interval, values.iter().map(|own| interval(own).to_owned()).collect())
        }
        2 if random.below(2) == 0 => (CellShape::Suppressed, vec!["*".to_owned(); values.len()]),
        _ => (CellShape::Exact, values.iter().map(|value| (*value).to_owned()).collect()),
    }
}

//! Sequential releases: `cargo bench --bench sequential`. Adult's two tables of the slides, the first published beside the second; with
//! `LARGE=1` in the environment on up to a million rows made of it. Prints what comes out; times are those of the machine.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures")]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use guardian::control::Control;
use guardian::microdata::{
    Arena, Attr, AttributeType, BoundTaxonomy, CellShape, Codes, Column, Domain, Table, Taxonomy, write_span,
};
use guardian::publication::{self as declared, EarlierColumn, EarlierRelease, RowCorrespondence, XyMeasure};
use guardian::publish::sequential::{
    ColumnScale, EarlierReleaseTable, GroupMeasure, JoinScope, MAX_LINKS, NewTable, NewTableColumn as NewColumn,
    NodeRange, NodeSet, PublishedLabels, ResolvedAttribute, ResolvedRequirement, ResolvedYElement, SequentialProblem,
    SequentialSolution, SpecializationGain, SpecializationScore,
};
use guardian::spec::read_levels;
use guardian::verifier::{ObservedRelease, ReleaseJoin};

mod support;

use support::{adult, replicas};

/// Two tables; the class is the last attribute of the first, which is made beside the second.
#[derive(Clone, Copy)]
struct Tables {
    first: &'static [&'static str],
    second: &'static [&'static str],
    /// Whether the first is generalized along taxonomies, or in intervals.
    trees: bool,
}

/// Those of the slides.
const SLIDES: Tables = Tables {
    first: &["education", "occupation", "workclass", "marital-status", "relationship", "sex", "income"],
    second: &["marital-status", "relationship", "sex", "native-country", "race"],
    trees: true,
};
/// Numbers of 74, 96 and 26,741 values: hardly two rows are alike.
const NUMBERS: Tables = Tables {
    first: &["age", "hours-per-week", "fnlwgt", "income"],
    second: &["age", "hours-per-week", "race", "education"],
    trees: false,
};

impl Tables {
    /// The attributes that are generalized.
    fn grown(self) -> &'static [&'static str] {
        &self.first[..self.first.len() - 1]
    }

    /// Attributes by numbers that are the same in both tables.
    fn number(self, name: &str) -> u32 {
        self.first.iter().chain(self.second).position(|other| *other == name).unwrap() as u32
    }
}

/// A table and the taxonomies of its attributes.
struct Fixture {
    tables: Tables,
    table: Table,
    trees: BTreeMap<&'static str, BoundTaxonomy>,
}

impl Fixture {
    fn new(tables: Tables, table: Table) -> Self {
        let tree = |name: &&'static str| {
            let path = format!("{}/tests/data/taxonomies/{name}.csv", env!("CARGO_MANIFEST_DIR"));
            let tree: Arc<Taxonomy> = read_levels(&fs::read(path).unwrap()).unwrap();
            (*name, tree.bind(&table.column(attr(&table, name)).domain).unwrap())
        };
        let grown = if tables.trees { tables.grown() } else { &[] };
        Self { tables, trees: grown.iter().map(tree).collect(), table }
    }

    fn column(&self, name: &str) -> &Column {
        self.table.column(attr(&self.table, name))
    }

    fn spans(&self, name: &str) -> Vec<NodeRange> {
        let codes = 0..self.column(name).domain.len() as u32;
        codes.map(|code| NodeRange::point(self.trees.get(name).map_or(code, |tree| tree.leaf(code)))).collect()
    }

    /// The first table beside the second.
    fn sequence(&self, setting: &Setting) -> SequentialProblem<'_> {
        let new = |name: &&'static str| {
            let scale = match self.trees.get(name) {
                _ if !setting.x.contains(&(0, name)) => ColumnScale::Raw(self.spans(name)),
                Some(tree) => ColumnScale::Tree(tree),
                None => ColumnScale::Numbers(self.spans(name).iter().map(|span| span.first).collect()),
            };
            NewColumn { attribute: self.tables.number(name), codes: &self.column(name).codes, scale }
        };
        let old = |name: &&'static str| PublishedLabels {
            attribute: self.tables.number(name),
            codes: &self.column(name).codes,
            places: self.spans(name).into_iter().map(NodeSet::Range).collect(),
        };
        let reference =
            |&(release, name): &(usize, &str)| ResolvedAttribute { release, attribute: self.tables.number(name) };
        let revealed = |&(release, name): &(usize, &str)| match name {
            declared::ROW_KEY => ResolvedYElement::Key(release),
            _ => ResolvedYElement::Attribute(reference(&(release, name))),
        };
        SequentialProblem {
            new: NewTable {
                rows: self.table.rows(),
                columns: self.tables.first.iter().map(new).collect(),
                class: Some(&self.column("income").codes),
            },
            earlier: vec![EarlierReleaseTable {
                rows: self.table.rows(),
                columns: self.tables.second.iter().map(old).collect(),
            }],
            same_rows: true,
            requirements: vec![ResolvedRequirement {
                exact: Vec::new(),
                also: Vec::new(),
                x: setting.x.iter().map(reference).collect(),
                y: setting.y.iter().map(revealed).collect(),
                measure: match &setting.measure {
                    XyMeasure::Anonymity { k } => GroupMeasure::Anonymity { k: *k },
                    XyMeasure::Linkability { h, .. } => GroupMeasure::Linkability { h: *h, sensitive: None },
                },
            }],
            exclusions: Vec::new(),
            joins: JoinScope::Extended,
            gain: SpecializationGain::Information,
            score: SpecializationScore::PlusOne,
            stop_at_zero_gain: false,
            allow_violating_prefix: false,
            most_links: MAX_LINKS,
        }
    }

    fn release(&self, setting: &Setting) -> SequentialSolution {
        self.sequence(setting).release(&Control::default()).unwrap()
    }

    /// The two tables as they were published, to be joined by their readers.
    fn published(
        &self,
        solution: &SequentialSolution,
    ) -> (EarlierRelease, EarlierRelease, BTreeMap<String, Arc<Taxonomy>>) {
        let exact = |name: &&str| EarlierColumn {
            name: (*name).to_owned(),
            published: (*name).to_owned(),
            shape: CellShape::Exact,
            nodes: false,
            kind: self.column(name).domain.kind(),
            cells: self.column(name).clone(),
        };
        let mut new: Vec<EarlierColumn> = self.tables.first.iter().map(exact).collect();
        for cut in &solution.cuts {
            let column = &mut new[cut.column];
            let tree = self.trees.get(self.tables.first[cut.column]).map(BoundTaxonomy::tree);
            let mut labels = Arena::with_capacity(cut.labels.len(), 0);
            for (at, label) in (0..).zip(&cut.labels) {
                match tree {
                    Some(tree) => labels.push(tree.label(label.node.unwrap()).unwrap().as_bytes()),
                    None => {
                        let within = (0..).zip(&cut.of_code).filter(|(_, of)| **of == at).map(|(code, _)| code);
                        let (first, last) = (within.clone().next().unwrap(), within.last().unwrap());
                        let domain = &column.cells.domain;
                        let mut text = Vec::new();
                        write_span(domain.value(first), domain.value(last).unwrap(), &mut text);
                        labels.push(&text);
                    }
                }
            }
            let (domain, rank) = Domain::sort(AttributeType::Text, false, &labels);
            let codes = column.cells.codes.iter().map(|code| rank[cut.of_code[code as usize] as usize]);
            let codes = Codes::collect(domain.len(), codes.collect::<Vec<u32>>().into_iter());
            let shape = if tree.is_some() { CellShape::Node } else { CellShape::Interval };
            (column.nodes, column.shape) = (tree.is_some(), shape);
            column.cells = Column { domain, codes };
        }
        let trees: BTreeMap<String, Arc<Taxonomy>> =
            self.trees.iter().map(|(name, tree)| ((*name).to_owned(), Arc::new(tree.tree().clone()))).collect();
        let release = |id: &str, columns| EarlierRelease {
            release: id.to_owned(),
            columns,
            rows: self.table.rows(),
            sequence: None,
            alone: false,
            taxonomies: BTreeMap::new(),
            external: false,
            rows_of: RowCorrespondence::Content,
        };
        (release("new", new), release("earlier", self.tables.second.iter().map(exact).collect()), trees)
    }

    /// How many pairs of rows agree in what both tables have.
    fn pairs(&self) -> u128 {
        let shared = self.tables.second.iter().filter(|name| self.tables.first.contains(name));
        let columns: Vec<&Codes> = shared.map(|name| &self.column(name).codes).collect();
        let mut alike: HashMap<Vec<u32>, u128> = HashMap::new();
        for row in 0..self.table.rows() {
            *alike.entry(columns.iter().map(|codes| codes.get(row)).collect()).or_default() += 1;
        }
        alike.values().map(|rows| rows * rows).sum()
    }
}

fn attr(table: &Table, name: &str) -> Attr {
    Attr::from(table.names().iter().position(|other| other == name).unwrap())
}

/// What is required.
struct Setting {
    name: &'static str,
    tables: Tables,
    x: Vec<(usize, &'static str)>,
    y: Vec<(usize, &'static str)>,
    measure: XyMeasure,
}

fn settings() -> Vec<Setting> {
    const KEY: &str = declared::ROW_KEY;
    let first = |names: &[&'static str]| names.iter().map(|&name| (0, name)).collect::<Vec<_>>();
    let second = |names: &[&'static str]| names.iter().map(|&name| (1, name)).collect::<Vec<_>>();
    let all = |tables: Tables| [first(tables.grown()), second(tables.second)].concat();
    let anonymity = || XyMeasure::Anonymity { k: 40 };
    let linkability = || XyMeasure::Linkability { h: "0.9".parse().unwrap(), sensitive: None };
    let setting =
        |name, tables, x, y: &[(usize, &'static str)], measure| Setting { name, tables, x, y: y.to_vec(), measure };
    let some = || [first(&SLIDES.first[..4]), second(&SLIDES.second[3..])].concat();
    let (rows, pairs) = ([(0, KEY)], [(0, KEY), (1, KEY)]);
    vec![
        setting("rows of the first, k = 40, by one table alone", SLIDES, all(SLIDES), &rows, anonymity()),
        setting("rows of the first, k = 40, on the join", SLIDES, some(), &rows, anonymity()),
        setting("pairs of rows, k = 40", SLIDES, all(SLIDES), &pairs, anonymity()),
        setting("race, h = 0.9", SLIDES, first(SLIDES.grown()), &[(1, "race")], linkability()),
        setting("numbers, rows of the first, k = 40, by one table alone", NUMBERS, all(NUMBERS), &rows, anonymity()),
        setting("numbers, pairs of rows, k = 40", NUMBERS, all(NUMBERS), &pairs, anonymity()),
    ]
}

/// What a requirement comes to by the verifier, which joins what was published.
fn verified(fixture: &Fixture, setting: &Setting, solution: &SequentialSolution) -> Duration {
    let (new, earlier, trees) = fixture.published(solution);
    let reference = |&(release, name): &(usize, &str)| declared::JoinAttribute { release, attribute: name.to_owned() };
    let revealed = |&(release, name): &(usize, &str)| match name {
        declared::ROW_KEY => declared::YElement::Key(release),
        _ => declared::YElement::Attribute(reference(&(release, name))),
    };
    let requirement = declared::XyRequirement {
        known_exactly: Vec::new(),
        pointer: "/method/requirements/0".to_owned(),
        of: 0,
        x: setting.x.iter().map(reference).collect(),
        y: setting.y.iter().map(revealed).collect(),
        measure: setting.measure.clone(),
    };
    let began = Instant::now();
    let shown = ObservedRelease::from_earlier(&new);
    let earlier = [(&earlier, ObservedRelease::from_earlier(&earlier))];
    let join = ReleaseJoin::new(&shown, &trees, &earlier, &[]);
    let found = join.measure(&requirement, &[0, 1], &Control::default());
    match found {
        Ok(found) => {
            let declared = solution.achieved[0].measure;
            assert_eq!(found.achieved.0 * declared.of, declared.count * found.achieved.1);
        }
        Err(why) => println!("  the audit gives up: {why:?}"),
    }
    began.elapsed()
}

fn said(setting: &Setting, solution: &SequentialSolution) -> String {
    let labels: usize = solution.cuts.iter().map(|cut| cut.labels.len()).sum();
    let share = solution.achieved[0].measure;
    format!("{}: {} steps, {labels} labels, {}/{}", setting.name, solution.steps.len(), share.count, share.of)
}

fn core(criterion: &mut Criterion) {
    let adult = adult();
    for setting in settings() {
        let fixture = Fixture::new(setting.tables, adult.clone());
        println!("{} pairs of rows agree", fixture.pairs());
        let solution = fixture.release(&setting);
        println!("{}; audit {:.3} s", said(&setting, &solution), verified(&fixture, &setting, &solution).as_secs_f64());
        criterion
            .bench_function(setting.name, |bencher| bencher.iter(|| black_box(fixture.release(&setting).steps.len())));
    }
}

/// `LARGE=1` in the environment: tables of up to a million rows. The fastest of three runs each, and what a hundred times the rows
/// take: `n^exponent`.
fn large(_: &mut Criterion) {
    if std::env::var_os("LARGE").is_none() {
        return;
    }
    let adult = adult();
    let tables = [10_000, 100_000, 1_000_000].map(|rows| replicas(&adult, rows));
    for setting in settings() {
        let fixtures = tables.each_ref().map(|table| Fixture::new(setting.tables, table.clone()));
        println!("{} pairs of a million rows agree", fixtures[2].pairs());
        let mut solution = None;
        let seconds = fixtures.each_ref().map(|fixture| {
            let times = (0..3).map(|_| {
                let began = Instant::now();
                solution = Some(fixture.release(&setting));
                began.elapsed().as_secs_f64()
            });
            times.fold(f64::INFINITY, f64::min)
        });
        let solution = solution.unwrap();
        let audit = verified(&fixtures[2], &setting, &solution).as_secs_f64();
        let exponent = (seconds[2] / seconds[0]).log(100.0);
        println!(
            "{}; {:.3}, {:.3}, {:.3} s at 10k, 100k, 1M rows: n^{exponent:.2}; audit {audit:.2} s",
            said(&setting, &solution),
            seconds[0],
            seconds[1],
            seconds[2]
        );
    }
}

fn configured() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! { name = benches; config = configured(); targets = core, large }
criterion_main!(benches);

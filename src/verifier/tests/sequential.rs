//! The slides' release beside an earlier one, and one fault after the other planted in it: each is caught by the check that is about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fixture::{Cell, Grid, World, failed, protection, rule, table};
use crate::control::Control;
use crate::microdata::taxonomy::TaxonomyBuilder;
use crate::microdata::{Attr, AttributeType, CellShape, Taxonomy};
use crate::publication::{
    CellContent, Conditions, DeclaredTaxonomy, EarlierColumn, EarlierRelease, EarlierReleases, EnforcedBy, Exclusion,
    JoinAttribute, JoinResult, JoinSelection, MethodDetails, Part, PublishedTable, RecordMatches, RowCorrespondence,
    RowMeaning, SequentialDetails, TableName, TableProtection, TableWitness, Witness, XyMeasure, XyRequirement,
    YElement,
};
use crate::verifier::contract::checks::CheckName::{Columns, Content, Dictionary, Gnf, Guards, Order, Requirements};
use crate::verifier::contract::checks::{CheckName, VerifierReport};
use crate::verifier::contract::evidence::Evidence;
use crate::verifier::release::sequential::premise::by_itself;
use crate::verifier::verify::verify;

const FILE: &str = "t1.rows.csv";

/// Name, job and class of all, and the disease that the earlier release publishes with the job.
const ROWS: [[&str; 4]; 5] = [
    ["Alice", "Banker", "c1", "Cancer"],
    ["Alice", "Banker", "c1", "Cancer"],
    ["Bob", "Clerk", "c2", "HIV"],
    ["Bob", "Driver", "c3", "Cancer"],
    ["Cathy", "Engineer", "c4", "HIV"],
];

/// What is published of them, and where each of them stands.
const CELLS: [[&str; 3]; 5] = [
    ["Alice", "Office", "c1"],
    ["Alice", "Office", "c1"],
    ["Bob", "Field", "c3"],
    ["Bob", "Office", "c2"],
    ["Cathy", "Field", "c4"],
];

const PLACES: [u32; 5] = [0, 1, 3, 2, 4];

struct Case {
    world: World,
    /// The names of the original.
    dataset: Vec<String>,
    sequence: SequentialDetails,
    beside: EarlierReleases,
    places: Vec<u32>,
}

fn texts(row: &[&str]) -> Vec<Cell> {
    row.iter().map(|cell| Some((*cell).to_owned())).collect()
}

fn tree(nodes: &[(&str, &str)]) -> Arc<Taxonomy> {
    let mut growing = TaxonomyBuilder::from_root("ANY_Job");
    for (label, above) in nodes {
        let above = growing.find(Some(above)).expect("a node");
        growing.add(above, Some(label)).expect("a new one");
    }
    Arc::new(growing.finish().expect("a tree"))
}

fn jobs() -> Arc<Taxonomy> {
    tree(&[
        ("Field", "ANY_Job"),
        ("Office", "ANY_Job"),
        ("Banker", "Office"),
        ("Clerk", "Office"),
        ("Driver", "Field"),
        ("Engineer", "Field"),
    ])
}

fn reference(release: usize, attribute: &str) -> JoinAttribute {
    JoinAttribute { release, attribute: attribute.to_owned() }
}

fn exclusion(name: &str, disease: &str) -> Exclusion {
    let side = |release: usize, attribute: &str, label: &str| Conditions {
        release,
        within: vec![(attribute.to_owned(), Some(label.to_owned()))],
    };
    Exclusion {
        pointer: "/method/exclusions/0".into(),
        of: 0,
        left: side(0, "name", name),
        right: side(1, "disease", disease),
    }
}

fn case() -> Case {
    let mut world = World::new(&["name", "job", "class"], ROWS.iter().map(|row| texts(&row[..3])).collect());
    let columns = (0..3).map(|attr| {
        let node = CellContent::Node { taxonomy: "job".into(), cut: None };
        let cells = if attr == 1 { node } else { CellContent::Exact };
        crate::publication::PublishedColumn { cells, ..world.published(attr) }
    });
    let part = Part {
        name: "rows".into(),
        columns: columns.collect(),
        rows: RowMeaning::Tuples,
        bucketed: false,
        len: 5,
        null: None,
    };
    let name = TableName::at(0);
    world.publication.tables = vec![PublishedTable { name, parts: vec![part], protection: TableProtection::Exclusive }];
    let rows = CELLS.iter().map(|row| (String::new(), texts(row))).collect();
    world.files.insert(FILE.into(), Grid { header: world.names.clone(), rows });
    world.taxonomies = vec![DeclaredTaxonomy { attribute: Attr(1), tree: jobs() }];
    let requirement = XyRequirement {
        pointer: "/method/requirements/0".into(),
        of: 0,
        x: vec![reference(0, "job"), reference(1, "disease")],
        y: vec![YElement::Key(0)],
        measure: XyMeasure::Anonymity { k: 2 },
    };
    let label = |label: &str| Some(label.to_owned());
    let sequence = SequentialDetails {
        against: vec!["e".into()],
        subsets: JoinSelection::Default,
        requirements: vec![(requirement, vec![JoinResult { releases: vec![0, 1], achieved: (2, 1) }])],
        exclusions: Vec::new(),
        cuts: vec![("job".into(), vec![label("Field"), label("Office")])],
        entered: Vec::new(),
        other_rows: false,
        renamed: BTreeMap::new(),
    };
    let names: Vec<String> = ["name", "job", "class", "disease"].map(str::to_owned).into();
    let all = table(&names, &ROWS.iter().map(|row| texts(row)).collect::<Vec<_>>());
    let column = |at: usize| EarlierColumn {
        name: names[at].clone(),
        published: names[at].clone(),
        shape: CellShape::Exact,
        nodes: false,
        kind: AttributeType::Text,
        cells: all.column(Attr::from(at)).clone(),
    };
    let earlier = EarlierRelease {
        release: "e".into(),
        columns: vec![column(1), column(3)],
        rows: 5,
        sequence: None,
        alone: false,
        taxonomies: BTreeMap::new(),
        entered: false,
        rows_of: RowCorrespondence::Content,
    };
    let beside = EarlierReleases { releases: vec![earlier], excluded: Some(Arc::new(all)) };
    Case { dataset: world.names.clone(), world, sequence, beside, places: PLACES.to_vec() }
}

fn renamed(attribute: &str, published: &str) -> BTreeMap<String, String> {
    [(attribute.to_owned(), published.to_owned())].into()
}

impl Case {
    fn audit(&self, original: bool, witness: bool, beside: bool) -> VerifierReport {
        let of = table(&self.dataset, &self.world.original);
        let assigned = Witness { tables: vec![TableWitness::Rows(self.places.clone())] };
        let parts = self.world.bytes();
        let mut publication = self.world.publication.clone();
        publication.method_details = MethodDetails::Sequential(Box::new(self.sequence.clone()));
        let evidence = Evidence {
            publication: &publication,
            submitted: &self.world.submitted,
            dependencies: &[],
            parts: &parts,
            original: original.then_some(&of),
            witness: witness.then_some(&assigned),
            names: &self.world.names,
            kinds: &[],
            accounted: self.world.accounted,
            excludable: &[],
            taxonomies: &self.world.taxonomies,
            thresholds: &[],
            beside: beside.then_some(&self.beside),
        };
        verify(&evidence, &Control::default()).expect("an answer")
    }

    fn set(&mut self, row: usize, column: usize, cell: &str) {
        self.world.files.get_mut(FILE).expect("the part").rows[row].1[column] = Some(cell.to_owned());
    }

    fn cut(&mut self, labels: &[&str]) {
        self.sequence.cuts[0].1 = labels.iter().map(|label| Some((*label).to_owned())).collect();
    }

    fn measure(&mut self, measure: XyMeasure) {
        self.sequence.requirements[0].0.measure = measure;
    }

    /// No job is told, and so nothing but that there are five rows.
    fn suppress(&mut self) {
        self.world.publication.tables[0].parts[0].columns[1].cells = CellContent::Suppressed;
        self.world.taxonomies.clear();
        self.cut(&["*"]);
        for (row, class) in ["c1", "c1", "c2", "c3", "c4"].into_iter().enumerate() {
            self.set(row, 1, "*");
            self.set(row, 2, class);
        }
        self.places = vec![0, 1, 2, 3, 4];
        self.sequence.requirements[0].1[0].achieved = (5, 1);
    }

    /// Both releases have jobs under other names.
    fn rename(&mut self) {
        self.world.names[1] = "work".into();
        let column = &mut self.world.publication.tables[0].parts[0].columns[1];
        (column.name, column.cells) = ("work".into(), CellContent::Node { taxonomy: "work".into(), cut: None });
        self.world.files.get_mut(FILE).expect("the part").header[1] = "work".into();
        self.beside.releases[0].columns[0].published = "occupation".into();
        self.sequence.renamed = [(0, renamed("job", "work")), (1, renamed("job", "occupation"))].into();
    }

    /// The earlier release has jobs in sets, of which a row of an office meets four, and one of the field three.
    fn sets(&mut self) {
        let sets =
            ["[\"Banker\"]", "[\"Banker\"]", "[\"Clerk\",\"Driver\"]", "[\"Clerk\",\"Driver\"]", "[\"Engineer\"]"];
        let cells = table(&["job".to_owned()], &sets.map(|set| texts(&[set])));
        let column = &mut self.beside.releases[0].columns[0];
        (column.shape, column.cells) = (CellShape::Set, cells.column(Attr(0)).clone());
        let (requirement, on) = &mut self.sequence.requirements[0];
        (requirement.x, requirement.y) = (vec![reference(0, "job")], vec![YElement::Key(1)]);
        on[0].achieved = (3, 1);
    }

    /// Jobs as they are, which everything says of them.
    fn raw(&mut self) {
        self.cut(&["Banker", "Clerk", "Driver", "Engineer"]);
        for (row, job) in ["Banker", "Banker", "Clerk", "Driver", "Engineer"].into_iter().enumerate() {
            self.set(row, 1, job);
        }
        self.set(2, 2, "c2");
        self.set(3, 2, "c3");
        self.places = vec![0, 1, 2, 3, 4];
    }
}

#[test]
fn what_is_right_passes() {
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        let audit = case().audit(original, witness, true);
        assert!(audit.verified(), "original {original}: {:?}", audit.checks);
        assert!(audit.checks.iter().any(|check| check.check == Requirements));
        // without the earlier release what holds beside it is not said
        let alone = case().audit(original, witness, false);
        assert!(alone.verified() && alone.checks.iter().all(|check| check.check != Requirements), "{:?}", alone.checks);
    }
}

type Fault = (&'static str, CheckName, fn(&mut Case));

const FAULTS: [Fault; 25] = [
    ("a row below another node", Content, |case| case.set(3, 1, "Field")),
    ("a row by a finer label", Requirements, |case| case.set(0, 1, "Banker")),
    ("a row by a coarser label", Content, |case| case.set(4, 1, "ANY_Job")),
    ("another exact value", Content, |case| case.set(4, 2, "c3")),
    ("rows that changed places", Content, |case| case.places.swap(0, 4)),
    ("two rows in one place", Content, |case| case.places[0] = 1),
    ("rows out of order", Order, |case| {
        case.world.files.get_mut(FILE).expect("the part").rows.swap(0, 4);
        case.places = vec![4, 1, 3, 2, 0];
    }),
    ("a row that is left out", Columns, |case| {
        case.world.files.get_mut(FILE).expect("the part").rows.pop();
        case.world.publication.tables[0].parts[0].len = 4;
    }),
    ("a cut that lacks a node", Requirements, |case| case.cut(&["Office"])),
    ("a cut with two nodes on one way", Requirements, |case| case.cut(&["Field", "Office", "ANY_Job"])),
    ("a cut with a stranger", Requirements, |case| case.cut(&["Field", "Office", "Elsewhere"])),
    ("a cut of what stands as it is", Requirements, |case| case.sequence.cuts.push(("name".into(), vec![None]))),
    ("an overstated measure", Requirements, |case| case.sequence.requirements[0].1[0].achieved = (3, 1)),
    ("an understated measure", Requirements, |case| case.sequence.requirements[0].1[0].achieved = (1, 1)),
    ("a requirement that does not hold", Requirements, |case| case.measure(XyMeasure::Anonymity { k: 3 })),
    ("a share above its bound", Requirements, |case| {
        case.measure(XyMeasure::Linkability { h: "0.5".parse().expect("a ratio"), sensitive: None });
        let on = &mut case.sequence.requirements[0];
        (on.0.x, on.0.y) = (vec![reference(0, "job")], vec![YElement::Attribute(reference(1, "disease"))]);
        on.1[0].achieved = (2, 3);
    }),
    ("a join that is not looked at", Requirements, |case| case.sequence.requirements[0].1.clear()),
    ("a finer cut, and all that follows", Requirements, Case::raw),
    ("an earlier release of other rows", Requirements, |case| {
        let other =
            table(&["job".to_owned()], &["Banker", "Clerk", "Clerk", "Driver", "Engineer"].map(|job| texts(&[job])));
        case.beside.releases[0].columns[0].cells = other.column(Attr(0)).clone();
    }),
    ("an earlier release with fewer rows", Requirements, |case| case.beside.releases[0].rows = 4),
    ("nobody who is somebody", Requirements, |case| case.sequence.exclusions = vec![exclusion("Alice", "Cancer")]),
    ("another taxonomy", Content, |case| {
        let other = tree(&[("Office", "ANY_Job"), ("Field", "ANY_Job"), ("Banker", "Field"), ("Clerk", "Office")]);
        case.world.taxonomies[0].tree = other;
    }),
    ("an earlier release by another taxonomy", Requirements, |case| {
        let other = tree(&[("Office", "ANY_Job"), ("Field", "ANY_Job"), ("Banker", "Field"), ("Clerk", "Office")]);
        let release = &mut case.beside.releases[0];
        (release.columns[0].nodes, release.columns[0].shape) = (true, CellShape::Node);
        release.taxonomies.insert("job".into(), other);
    }),
    ("a guarding standing", Guards, |case| {
        case.world.publication.tables[0].protection = TableProtection::Guarding(Vec::new())
    }),
    ("a rule that nothing holds", Gnf, |case| {
        let rule = rule(0, &[0], 2, 2);
        case.world.publication.rules.push(protection(&rule, EnforcedBy::Table(TableName::at(0))));
        case.world.submitted.push(rule);
    }),
];

#[test]
fn every_planted_fault_is_caught() {
    for (name, check, plant) in FAULTS {
        let mut faulty = case();
        plant(&mut faulty);
        let audit = faulty.audit(true, true, true);
        assert!(failed(&audit).contains(&check), "{name}: {:?}", audit.checks);
    }
}

type Changed = (&'static str, fn(&mut Case), Vec<Fault>);

#[test]
fn what_is_suppressed_renamed_or_in_sets_is_checked_too() {
    let unsaid: Vec<Fault> = vec![
        ("a cell that tells", Requirements, |case| case.set(4, 1, "Engineer")),
        ("a cut of values", Requirements, |case| case.cut(&["Banker", "Clerk", "Driver", "Engineer"])),
        ("no cut", Requirements, |case| case.sequence.cuts.clear()),
        ("cells that are said to be values", Requirements, |case| {
            case.world.publication.tables[0].parts[0].columns[1].cells = CellContent::Exact;
        }),
        ("fewer rows in a group than it says", Requirements, |case| {
            case.sequence.requirements[0].1[0].achieved = (2, 1);
        }),
    ];
    let named: Vec<Fault> = vec![
        ("names that are not stated", Columns, |case| {
            case.sequence.renamed.remove(&0);
        }),
        ("another attribute of that name", Columns, |case| {
            case.sequence.renamed.insert(0, renamed("class", "work"));
        }),
        ("a name that nothing has", Columns, |case| {
            case.sequence.renamed.insert(0, renamed("job", "trade"));
        }),
        ("names of the earlier release that are not stated", Requirements, |case| {
            case.sequence.renamed.remove(&1);
        }),
        ("another attribute of that release", Requirements, |case| {
            case.sequence.renamed.insert(1, renamed("disease", "occupation"));
        }),
    ];
    let among: Vec<Fault> = vec![
        ("sets that match everything", Requirements, |case| case.sequence.requirements[0].1[0].achieved = (5, 1)),
        ("sets that match nothing else", Requirements, |case| case.sequence.requirements[0].1[0].achieved = (2, 1)),
        ("cells that are no sets", Requirements, |case| {
            let cells = table(&["job".to_owned()], &["a", "b", "c", "d", "e"].map(|cell| texts(&[cell])));
            case.beside.releases[0].columns[0].cells = cells.column(Attr(0)).clone();
        }),
    ];
    let changed: [Changed; 3] =
        [("suppressed", Case::suppress, unsaid), ("renamed", Case::rename, named), ("sets", Case::sets, among)];
    for (what, change, faults) in changed {
        let right = || {
            let mut case = case();
            change(&mut case);
            case
        };
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            let audit = right().audit(original, witness, true);
            assert!(audit.verified(), "{what}, original {original}: {:?}", audit.checks);
        }
        for (name, check, plant) in faults {
            let mut faulty = right();
            plant(&mut faulty);
            let audit = faulty.audit(true, true, true);
            assert!(failed(&audit).contains(&check), "{what}, {name}: {:?}", audit.checks);
        }
    }
}

#[test]
fn what_nobody_is_takes_tuples_away() {
    // no Bob in an office has cancer: of the clerk's three matches one is left
    let mut said = case();
    said.sequence.exclusions = vec![exclusion("Bob", "Cancer")];
    let audit = said.audit(true, true, true);
    assert!(failed(&audit).contains(&Requirements), "Bob the driver has cancer");
    said.sequence.exclusions = vec![exclusion("Alice", "HIV")];
    let audit = said.audit(true, true, true);
    let detail = audit.checks.iter().find(|check| check.check == Requirements).and_then(|check| check.detail.clone());
    assert!(detail.is_some_and(|detail| detail.contains("another measure")), "{:?}", audit.checks);
    // of (Office, HIV) the clerk alone is left
    said.sequence.requirements[0].1[0].achieved = (1, 1);
    said.measure(XyMeasure::Anonymity { k: 1 });
    assert!(said.audit(true, true, true).verified());
}

#[test]
fn without_a_witness_rows_are_those_of_the_cut() {
    let mut other = case();
    other.set(3, 1, "Field");
    assert!(failed(&other.audit(true, false, true)).contains(&Content));
    let mut unknown = case();
    unknown.set(4, 2, "c9");
    assert!(failed(&unknown.audit(true, false, true)).contains(&Dictionary));
}

/// The earlier release is of other rows, of which the engineer is none: her row is in no tuple.
fn foreign() -> Case {
    let mut case = case();
    let release = &mut case.beside.releases[0];
    (release.entered, release.rows_of, release.rows) = (true, RowCorrespondence::Unknown, 4);
    for column in &mut release.columns {
        column.cells.codes = column.cells.codes.gather(&[0, 1, 2, 3]);
    }
    case.sequence.entered = vec!["e".into()];
    case.sequence.other_rows = true;
    case.sequence.requirements[0].1.push(JoinResult { releases: vec![0], achieved: (2, 1) });
    case
}

/// The earlier release is of the same rows by record keys, in another order.
fn keyed() -> Case {
    let mut case = case();
    let (release, all) = (&mut case.beside.releases[0], case.beside.excluded.as_ref().expect("all columns"));
    let values = Arc::new(table(&["job".to_owned()], &ROWS.map(|row| texts(&row[1..2]))));
    assert_eq!(all.rows(), 5);
    (release.entered, release.rows_of) =
        (true, RowCorrespondence::Records(RecordMatches { rows: vec![0, 1, 2, 3, 4], values }));
    case.sequence.entered = vec!["e".into()];
    case
}

fn told(case: &mut Case, rows: &[u32], jobs: &[&str]) {
    let jobs: Vec<Vec<Cell>> = jobs.iter().map(|job| texts(&[job])).collect();
    let values = Arc::new(table(&["job".to_owned()], &jobs));
    case.beside.releases[0].rows_of = RowCorrespondence::Records(RecordMatches { rows: rows.to_vec(), values });
}

type OfRows = (&'static str, fn() -> Case, fn(&mut Case));

const OF_ROWS: [OfRows; 11] = [
    ("nothing said of the release alone", foreign, |case| drop(case.sequence.requirements[0].1.pop())),
    ("more said of it alone than is so", foreign, |case| case.sequence.requirements[0].1[1].achieved = (3, 1)),
    ("rows of nobody knows whom said to be the same", foreign, |case| {
        case.sequence.other_rows = false;
        case.sequence.requirements[0].1.pop();
    }),
    ("a table from elsewhere that is not said to be one", foreign, |case| case.sequence.entered.clear()),
    // nobody of the field is in the join, where groups have three rows
    ("a requirement that the release alone breaks", foreign, |case| {
        let release = &mut case.beside.releases[0];
        release.rows = 3;
        release.columns.iter_mut().for_each(|column| column.cells.codes = column.cells.codes.gather(&[0, 1, 2]));
        case.measure(XyMeasure::Anonymity { k: 3 });
        case.sequence.requirements[0].1[0].achieved = (3, 1);
    }),
    ("rows of one record key with other values", keyed, |case| {
        told(case, &[0, 1, 2, 3, 4], &["Banker", "Banker", "Driver", "Clerk", "Engineer"]);
    }),
    ("a row with two record keys", keyed, |case| {
        told(case, &[0, 0, 2, 3, 4], &["Banker", "Banker", "Clerk", "Driver", "Engineer"]);
    }),
    ("a row that is not there", keyed, |case| {
        told(case, &[0, 1, 2, 3, 5], &["Banker", "Banker", "Clerk", "Driver", "Engineer"]);
    }),
    ("fewer values than rows", keyed, |case| told(case, &[0, 1, 2, 3, 4], &["Banker", "Banker", "Clerk", "Driver"])),
    ("rows that no key tells said to be the same", keyed, |case| {
        told(case, &[0, 1, 2, 3], &["Banker", "Banker", "Clerk", "Driver"]);
    }),
    ("records that the original has not", keyed, |case| {
        let other = ["Banker", "Clerk", "Clerk", "Driver", "Engineer"];
        told(case, &[0, 1, 2, 3, 4], &other);
        case.beside.releases[0].columns[0].cells =
            table(&["job".to_owned()], &other.map(|job| texts(&[job]))).column(Attr(0)).clone();
    }),
];

#[test]
fn whose_rows_a_table_from_elsewhere_has_is_found_again() {
    for base in [foreign, keyed] {
        let audit = base().audit(true, true, true);
        assert!(audit.verified(), "{:?}", audit.checks);
    }
    for (name, base, plant) in OF_ROWS {
        let mut faulty = base();
        plant(&mut faulty);
        let audit = faulty.audit(true, true, true);
        assert!(failed(&audit).contains(&Requirements), "{name}: {:?}", audit.checks);
    }
    // of some records nothing is known: what is said is less
    let mut some = foreign();
    told(&mut some, &[0, 2], &["Banker", "Clerk"]);
    assert!(some.audit(true, true, true).verified());
    told(&mut some, &[0, 2], &["Banker", "Driver"]);
    assert!(failed(&some.audit(true, true, true)).contains(&Requirements));
}

#[test]
fn requirements_are_cut_down_to_the_release_that_stands_by_itself() {
    let asked = |x: Vec<JoinAttribute>, y: Vec<YElement>, measure: XyMeasure| {
        let asked = XyRequirement { pointer: "/method/requirements/0".into(), of: 0, x, y, measure };
        by_itself(&asked).map(|cut| (cut.x, cut.y, cut.measure))
    };
    let k = XyMeasure::Anonymity { k: 2 };
    let share = |sensitive| XyMeasure::Linkability { h: "0.5".parse().expect("a ratio"), sensitive };
    let (new, old) = (reference(0, "job"), reference(1, "disease"));
    let attribute = |of: &JoinAttribute| YElement::Attribute(of.clone());
    let both = || vec![new.clone(), reference(1, "job")];
    let rows = (vec![new.clone()], vec![YElement::Key(0)], k.clone());
    assert_eq!(asked(both(), vec![YElement::Key(0)], k.clone()), Some(rows.clone()));
    // what others tell, and their rows, are counted as rows of this one
    for y in [vec![YElement::Key(1)], vec![attribute(&old)], vec![YElement::Key(0), attribute(&old)]] {
        assert_eq!(asked(both(), y, k.clone()), Some(rows.clone()));
    }
    assert_eq!(
        asked(vec![old.clone()], vec![YElement::Key(0)], k.clone()),
        Some((vec![], vec![YElement::Key(0)], k.clone()))
    );
    assert_eq!(asked(vec![reference(1, "job")], vec![attribute(&old)], k), None);
    // nobody's row stands beside what only others tell
    assert_eq!(asked(both(), vec![attribute(&old)], share(None)), None);
    let label = |text: &str| Some(text.to_owned());
    let values = |sensitive: Vec<Vec<Option<String>>>| share(Some(sensitive));
    let class = reference(0, "class");
    assert_eq!(
        asked(both(), vec![attribute(&old), attribute(&class)], values(vec![vec![label("HIV"), label("c1")]])),
        Some((vec![new.clone()], vec![attribute(&class)], values(vec![vec![label("c1")]])))
    );
}

//! Faults planted in a sequential release with an earlier one: the check about each fault catches it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fixture::{Cell, VerifierFixture, failed, protection, rule, table, verified};
use crate::microdata::taxonomy::TaxonomyBuilder;
use crate::microdata::{Attr, AttrSet, AttributeType, CellShape, Taxonomy};
use crate::publication::{
    CellContent, Conditions, DeclaredTaxonomy, EarlierColumn, EarlierRelease, EarlierReleases, EnforcedBy, Exclusion,
    JoinAttribute, JoinResult, JoinSelection, MethodDetails, RecordMatches, RowCorrespondence, SequentialDetails,
    TableName, TableProtection, TableWitness, Witness, XyMeasure, XyRequirement, YElement,
};
use crate::verifier::contract::checks::CheckName::{Columns, Content, Dictionary, Gnf, Guards, Order, Requirements};
use crate::verifier::contract::checks::{CheckName, VerifierReport};
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::release::sequential::premise::by_itself;

const FILE: &str = "t1.rows.csv";

/// Name, job and class of all, and the disease that the earlier release publishes with the job.
const ROWS: [[&str; 4]; 5] = [
    ["Alice", "Banker", "c1", "Cancer"],
    ["Alice", "Banker", "c1", "Cancer"],
    ["Bob", "Clerk", "c2", "HIV"],
    ["Bob", "Driver", "c3", "Cancer"],
    ["Cathy", "Engineer", "c4", "HIV"],
];

/// The published labels, and the position of each row.
const CELLS: [[&str; 3]; 5] = [
    ["Alice", "Office", "c1"],
    ["Alice", "Office", "c1"],
    ["Bob", "Field", "c3"],
    ["Bob", "Office", "c2"],
    ["Cathy", "Field", "c4"],
];

const PLACES: [u32; 5] = [0, 1, 3, 2, 4];

struct Case {
    fixture: VerifierFixture,
    /// The names of the original's attributes.
    dataset: Vec<String>,
    sequence: SequentialDetails,
    earlier: EarlierReleases,
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
    let mut fixture =
        VerifierFixture::new(&["name", "job", "class"], ROWS.iter().map(|row| texts(&row[..3])).collect());
    let node = CellContent::Node { taxonomy: "job".into(), cut: None };
    let cells = [CellContent::Exact, node, CellContent::Exact];
    fixture.rows_with(&cells, CELLS.iter().map(|row| texts(row)).collect());
    fixture.taxonomies = vec![DeclaredTaxonomy { attribute: Attr(1), tree: jobs() }];
    let requirement = XyRequirement {
        pointer: "/method/requirements/0".into(),
        of: 0,
        x: vec![reference(0, "job"), reference(1, "disease")],
        y: vec![YElement::Key(0)],
        known_exactly: Vec::new(),
        measure: XyMeasure::Anonymity { k: 2 },
    };
    let label = |label: &str| Some(label.to_owned());
    let sequence = SequentialDetails {
        against: vec!["e".into()],
        subsets: JoinSelection::Default,
        requirements: vec![(requirement, vec![JoinResult { releases: vec![0, 1], achieved: (2, 1) }])],
        exclusions: Vec::new(),
        cuts: vec![("job".into(), vec![label("Field"), label("Office")])],
        external: Vec::new(),
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
        external: false,
        rows_of: RowCorrespondence::Content,
    };
    let earlier = EarlierReleases { releases: vec![earlier], excluded: Some(Arc::new(all)) };
    Case { dataset: fixture.names.clone(), fixture, sequence, earlier, places: PLACES.to_vec() }
}

fn renamed(attribute: &str, published: &str) -> BTreeMap<String, String> {
    [(attribute.to_owned(), published.to_owned())].into()
}

impl Case {
    fn verify(&self, original: bool, witness: bool, earlier: bool) -> VerifierReport {
        let of = table(&self.dataset, &self.fixture.original);
        let assigned = Witness { tables: vec![TableWitness::Rows(self.places.clone())] };
        let parts = self.fixture.bytes();
        let mut publication = self.fixture.publication.clone();
        publication.method_details = MethodDetails::Sequential(Box::new(self.sequence.clone()));
        let input = VerifierInput {
            publication: &publication,
            original: original.then_some(&of),
            witness: witness.then_some(&assigned),
            earlier_releases: earlier.then_some(&self.earlier),
            ..self.fixture.input(&parts)
        };
        verified(&input)
    }

    fn set(&mut self, row: usize, column: usize, cell: &str) {
        self.fixture.files.get_mut(FILE).expect("the part").rows[row].1[column] = Some(cell.to_owned());
    }

    fn cut(&mut self, labels: &[&str]) {
        self.sequence.cuts[0].1 = labels.iter().map(|label| Some((*label).to_owned())).collect();
    }

    fn measure(&mut self, measure: XyMeasure) {
        self.sequence.requirements[0].0.measure = measure;
    }

    /// Suppresses all jobs, so that only the number of rows remains.
    fn suppress(&mut self) {
        self.fixture.publication.tables[0].parts[0].columns[1].cells = CellContent::Suppressed;
        self.fixture.taxonomies.clear();
        self.cut(&["*"]);
        for (row, class) in ["c1", "c1", "c2", "c3", "c4"].into_iter().enumerate() {
            self.set(row, 1, "*");
            self.set(row, 2, class);
        }
        self.places = vec![0, 1, 2, 3, 4];
        self.sequence.requirements[0].1[0].achieved = (5, 1);
    }

    /// Both releases publish jobs under other names.
    fn rename(&mut self) {
        self.fixture.names[1] = "work".into();
        let column = &mut self.fixture.publication.tables[0].parts[0].columns[1];
        (column.name, column.cells) = ("work".into(), CellContent::Node { taxonomy: "work".into(), cut: None });
        self.fixture.files.get_mut(FILE).expect("the part").header[1] = "work".into();
        self.earlier.releases[0].columns[0].published = "occupation".into();
        self.sequence.renamed = [(0, renamed("job", "work")), (1, renamed("job", "occupation"))].into();
    }

    /// The earlier release has jobs in sets: four rows match an office, and one the field.
    fn sets(&mut self) {
        let sets =
            ["[\"Banker\"]", "[\"Banker\"]", "[\"Clerk\",\"Driver\"]", "[\"Clerk\",\"Driver\"]", "[\"Engineer\"]"];
        let cells = table(&["job".to_owned()], &sets.map(|set| texts(&[set])));
        let column = &mut self.earlier.releases[0].columns[0];
        (column.shape, column.cells) = (CellShape::Set, cells.column(Attr(0)).clone());
        let (requirement, on) = &mut self.sequence.requirements[0];
        (requirement.x, requirement.y) = (vec![reference(0, "job")], vec![YElement::Key(1)]);
        // who knows an engineer finds one row of the earlier release
        requirement.measure = XyMeasure::Anonymity { k: 1 };
        on[0].achieved = (3, 1);
    }

    /// Publishes the jobs exactly, in all claims.
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
fn verify_sequential_release_passes() {
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        let report = case().verify(original, witness, true);
        assert!(report.verified(), "original {original}: {:?}", report.checks);
        assert!(report.checks.iter().any(|check| check.check == Requirements));
        // without the earlier release, requirements are no check
        let alone = case().verify(original, witness, false);
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
        case.fixture.files.get_mut(FILE).expect("the part").rows.swap(0, 4);
        case.places = vec![4, 1, 3, 2, 0];
    }),
    ("a row that is left out", Columns, |case| {
        case.fixture.files.get_mut(FILE).expect("the part").rows.pop();
        case.fixture.publication.tables[0].parts[0].len = 4;
    }),
    ("a cut that lacks a node", Requirements, |case| case.cut(&["Office"])),
    ("a cut with two nodes on one way", Requirements, |case| case.cut(&["Field", "Office", "ANY_Job"])),
    ("a cut with an unknown label", Requirements, |case| case.cut(&["Field", "Office", "Elsewhere"])),
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
        case.earlier.releases[0].columns[0].cells = other.column(Attr(0)).clone();
    }),
    ("an earlier release with fewer rows", Requirements, |case| case.earlier.releases[0].rows = 4),
    ("an exclusion that a row contradicts", Requirements, |case| {
        case.sequence.exclusions = vec![exclusion("Alice", "Cancer")]
    }),
    ("another taxonomy", Content, |case| {
        let other = tree(&[("Office", "ANY_Job"), ("Field", "ANY_Job"), ("Banker", "Field"), ("Clerk", "Office")]);
        case.fixture.taxonomies[0].tree = other;
    }),
    ("an earlier release by another taxonomy", Requirements, |case| {
        let other = tree(&[("Office", "ANY_Job"), ("Field", "ANY_Job"), ("Banker", "Field"), ("Clerk", "Office")]);
        let release = &mut case.earlier.releases[0];
        (release.columns[0].nodes, release.columns[0].shape) = (true, CellShape::Node);
        release.taxonomies.insert("job".into(), other);
    }),
    ("a guarding table", Guards, |case| {
        case.fixture.publication.tables[0].protection = TableProtection::Guarding(Vec::new())
    }),
    ("a rule that nothing holds", Gnf, |case| {
        let rule = rule(0, &[0], 2, 2);
        case.fixture.publication.rules.push(protection(&rule, EnforcedBy::Table(TableName::at(0))));
        case.fixture.submitted.push(rule);
    }),
];

#[test]
fn verify_faults_in_sequential_release_fails() {
    for (name, check, plant) in FAULTS {
        let mut faulty = case();
        plant(&mut faulty);
        let report = faulty.verify(true, true, true);
        assert!(failed(&report).contains(&check), "{name}: {:?}", report.checks);
    }
}

type Changed = (&'static str, fn(&mut Case), Vec<Fault>);

#[test]
fn verify_faults_in_suppressed_or_renamed_cells_fails() {
    let unsaid: Vec<Fault> = vec![
        ("a cell that reveals a job", Requirements, |case| case.set(4, 1, "Engineer")),
        ("a cut of values", Requirements, |case| case.cut(&["Banker", "Clerk", "Driver", "Engineer"])),
        ("no cut", Requirements, |case| case.sequence.cuts.clear()),
        ("cells that are said to be values", Requirements, |case| {
            case.fixture.publication.tables[0].parts[0].columns[1].cells = CellContent::Exact;
        }),
        ("fewer rows in a group than it says", Requirements, |case| {
            case.sequence.requirements[0].1[0].achieved = (2, 1);
        }),
    ];
    let named: Vec<Fault> = vec![
        ("undeclared names", Columns, |case| {
            case.sequence.renamed.remove(&0);
        }),
        ("another attribute of that name", Columns, |case| {
            case.sequence.renamed.insert(0, renamed("class", "work"));
        }),
        ("a name that nothing has", Columns, |case| {
            case.sequence.renamed.insert(0, renamed("job", "trade"));
        }),
        ("undeclared names of the earlier release", Requirements, |case| {
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
            case.earlier.releases[0].columns[0].cells = cells.column(Attr(0)).clone();
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
            let report = right().verify(original, witness, true);
            assert!(report.verified(), "{what}, original {original}: {:?}", report.checks);
        }
        for (name, check, plant) in faults {
            let mut faulty = right();
            plant(&mut faulty);
            let report = faulty.verify(true, true, true);
            assert!(failed(&report).contains(&check), "{what}, {name}: {:?}", report.checks);
        }
    }
}

#[test]
fn exclusion_removes_tuples_of_the_join() {
    // of the three matches of the clerk one remains, since Bob works in an office and has no cancer
    let mut said = case();
    said.sequence.exclusions = vec![exclusion("Bob", "Cancer")];
    let report = said.verify(true, true, true);
    assert!(failed(&report).contains(&Requirements), "Bob the driver has cancer");
    said.sequence.exclusions = vec![exclusion("Alice", "HIV")];
    let report = said.verify(true, true, true);
    let detail = report.checks.iter().find(|check| check.check == Requirements).and_then(|check| check.detail.clone());
    assert!(detail.is_some_and(|detail| detail.contains("another measure")), "{:?}", report.checks);
    // only the clerk remains with (Office, HIV)
    said.sequence.requirements[0].1[0].achieved = (1, 1);
    said.measure(XyMeasure::Anonymity { k: 1 });
    assert!(said.verify(true, true, true).verified());
}

#[test]
fn content_without_witness_compares_rows_with_the_cut() {
    let mut other = case();
    other.set(3, 1, "Field");
    assert!(failed(&other.verify(true, false, true)).contains(&Content));
    let mut unknown = case();
    unknown.set(4, 2, "c9");
    assert!(failed(&unknown.verify(true, false, true)).contains(&Dictionary));
}

/// The earlier release has other rows, without the engineer: her row is in no tuple.
fn foreign() -> Case {
    let mut case = case();
    let release = &mut case.earlier.releases[0];
    (release.external, release.rows_of, release.rows) = (true, RowCorrespondence::Unknown, 4);
    for column in &mut release.columns {
        column.cells.codes = column.cells.codes.gather(&[0, 1, 2, 3]);
    }
    case.sequence.external = vec!["e".into()];
    case.sequence.other_rows = true;
    case.sequence.requirements[0].1.push(JoinResult { releases: vec![0], achieved: (2, 1) });
    case
}

/// The earlier release has the same rows by record keys, in another order.
fn keyed() -> Case {
    let mut case = case();
    let (release, all) = (&mut case.earlier.releases[0], case.earlier.excluded.as_ref().expect("all columns"));
    let values = Arc::new(table(&["job".to_owned()], &ROWS.map(|row| texts(&row[1..2]))));
    assert_eq!(all.rows(), 5);
    (release.external, release.rows_of) =
        (true, RowCorrespondence::Records(RecordMatches { rows: vec![0, 1, 2, 3, 4], values }));
    case.sequence.external = vec!["e".into()];
    case
}

fn match_records(case: &mut Case, rows: &[u32], jobs: &[&str]) {
    let jobs: Vec<Vec<Cell>> = jobs.iter().map(|job| texts(&[job])).collect();
    let values = Arc::new(table(&["job".to_owned()], &jobs));
    case.earlier.releases[0].rows_of = RowCorrespondence::Records(RecordMatches { rows: rows.to_vec(), values });
}

type OfRows = (&'static str, fn() -> Case, fn(&mut Case));

const OF_ROWS: [OfRows; 11] = [
    ("nothing said of the release alone", foreign, |case| drop(case.sequence.requirements[0].1.pop())),
    ("more said of it alone than is so", foreign, |case| case.sequence.requirements[0].1[1].achieved = (3, 1)),
    ("rows of unknown correspondence declared to be the same", foreign, |case| {
        case.sequence.other_rows = false;
        case.sequence.requirements[0].1.pop();
    }),
    ("an undeclared external table", foreign, |case| case.sequence.external.clear()),
    // no row of the field is in the join, where groups have three rows
    ("a requirement that the release alone breaks", foreign, |case| {
        let release = &mut case.earlier.releases[0];
        release.rows = 3;
        release.columns.iter_mut().for_each(|column| column.cells.codes = column.cells.codes.gather(&[0, 1, 2]));
        case.measure(XyMeasure::Anonymity { k: 3 });
        case.sequence.requirements[0].1[0].achieved = (3, 1);
    }),
    ("rows of one record key with other values", keyed, |case| {
        match_records(case, &[0, 1, 2, 3, 4], &["Banker", "Banker", "Driver", "Clerk", "Engineer"]);
    }),
    ("a row with two record keys", keyed, |case| {
        match_records(case, &[0, 0, 2, 3, 4], &["Banker", "Banker", "Clerk", "Driver", "Engineer"]);
    }),
    ("a row that is not there", keyed, |case| {
        match_records(case, &[0, 1, 2, 3, 5], &["Banker", "Banker", "Clerk", "Driver", "Engineer"]);
    }),
    ("fewer values than rows", keyed, |case| {
        match_records(case, &[0, 1, 2, 3, 4], &["Banker", "Banker", "Clerk", "Driver"])
    }),
    ("unmatched rows declared to be the same", keyed, |case| {
        match_records(case, &[0, 1, 2, 3], &["Banker", "Banker", "Clerk", "Driver"]);
    }),
    ("records that the original has not", keyed, |case| {
        let other = ["Banker", "Clerk", "Clerk", "Driver", "Engineer"];
        match_records(case, &[0, 1, 2, 3, 4], &other);
        case.earlier.releases[0].columns[0].cells =
            table(&["job".to_owned()], &other.map(|job| texts(&[job]))).column(Attr(0)).clone();
    }),
];

#[test]
fn correspondence_of_external_table_is_checked() {
    for base in [foreign, keyed] {
        let report = base().verify(true, true, true);
        assert!(report.verified(), "{:?}", report.checks);
    }
    for (name, base, plant) in OF_ROWS {
        let mut faulty = base();
        plant(&mut faulty);
        let report = faulty.verify(true, true, true);
        assert!(failed(&report).contains(&Requirements), "{name}: {:?}", report.checks);
    }
    // of some records nothing is known, so less is claimed
    let mut some = foreign();
    match_records(&mut some, &[0, 2], &["Banker", "Clerk"]);
    assert!(some.verify(true, true, true).verified());
    match_records(&mut some, &[0, 2], &["Banker", "Driver"]);
    assert!(failed(&some.verify(true, true, true)).contains(&Requirements));
}

#[test]
fn by_itself_drops_what_other_releases_publish() {
    let asked = |x: Vec<JoinAttribute>, y: Vec<YElement>, measure: XyMeasure| {
        let asked =
            XyRequirement { pointer: "/method/requirements/0".into(), of: 0, x, y, known_exactly: Vec::new(), measure };
        by_itself(&asked).map(|cut| (cut.x, cut.y, cut.measure))
    };
    let k = XyMeasure::Anonymity { k: 2 };
    let share = |sensitive| XyMeasure::Linkability { h: "0.5".parse().expect("a ratio"), sensitive };
    let (new, old) = (reference(0, "job"), reference(1, "disease"));
    let attribute = |of: &JoinAttribute| YElement::Attribute(of.clone());
    let both = || vec![new.clone(), reference(1, "job")];
    let rows = (vec![new.clone()], vec![YElement::Key(0)], k.clone());
    assert_eq!(asked(both(), vec![YElement::Key(0)], k.clone()), Some(rows.clone()));
    // the attributes of others, and their rows, are counted as rows of this release
    for y in [vec![YElement::Key(1)], vec![attribute(&old)], vec![YElement::Key(0), attribute(&old)]] {
        assert_eq!(asked(both(), y, k.clone()), Some(rows.clone()));
    }
    assert_eq!(
        asked(vec![old.clone()], vec![YElement::Key(0)], k.clone()),
        Some((vec![], vec![YElement::Key(0)], k.clone()))
    );
    assert_eq!(asked(vec![reference(1, "job")], vec![attribute(&old)], k), None);
    // a row without a match has no value of the others' attributes
    assert_eq!(asked(both(), vec![attribute(&old)], share(None)), None);
    let label = |text: &str| Some(text.to_owned());
    let values = |sensitive: Vec<Vec<Option<String>>>| share(Some(sensitive));
    let class = reference(0, "class");
    assert_eq!(
        asked(both(), vec![attribute(&old), attribute(&class)], values(vec![vec![label("HIV"), label("c1")]])),
        Some((vec![new.clone()], vec![attribute(&class)], values(vec![vec![label("c1")]])))
    );
}

/// The case where an adversary knows these dependencies among name, job, class, disease and an attribute of no release.
fn linked(dependencies: &[(u8, u8)]) -> Case {
    let mut case = case();
    case.fixture.names.extend(["disease".to_owned(), "unseen".to_owned()]);
    let one = |at: u8| AttrSet::one(Attr(at));
    case.fixture.dependencies = dependencies.iter().map(|(of, is)| (one(*of), one(*is))).collect();
    case
}

#[test]
fn links_between_joined_releases_are_found() {
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        // within one release, or to what no release has
        for within in [&[(0, 2)][..], &[(1, 3)], &[(0, 4)], &[(0, 4), (2, 4)]] {
            let report = linked(within).verify(original, witness, true);
            assert_eq!(failed(&report), [], "{within:?}: {report:#?}");
        }
        for across in [&[(0, 3)][..], &[(3, 0)], &[(2, 3)], &[(0, 4), (3, 4)], &[(0, 4), (4, 3)]] {
            let report = linked(across).verify(original, witness, true);
            assert_eq!(failed(&report), [CheckName::Dependencies], "{across:?}: {report:#?}");
        }
    }
}

/// The share of a disease among labels of jobs, of which the earlier release shows the values.
fn shares_of_jobs(dependencies: &[(u8, u8)], h: &str) -> Case {
    let mut case = linked(dependencies);
    case.measure(XyMeasure::Linkability { h: h.parse().expect("a ratio"), sensitive: None });
    let on = &mut case.sequence.requirements[0];
    (on.0.x, on.0.y) = (vec![reference(0, "job")], vec![YElement::Attribute(reference(1, "disease"))]);
    on.1[0].achieved = (2, 3);
    case
}

#[test]
fn labels_that_say_less_than_is_known_are_found() {
    assert_eq!(failed(&shares_of_jobs(&[], "1/1").verify(true, true, true)), []);
    let report = shares_of_jobs(&[(1, 3)], "1/1").verify(true, true, true);
    assert_eq!(failed(&report), [CheckName::Dependencies], "{report:#?}");
}

#[test]
fn values_of_x_in_another_release_are_found() {
    let report = shares_of_jobs(&[], "0.9").verify(true, true, true);
    assert_eq!(failed(&report), [CheckName::Requirements], "{report:#?}");
    let report = format!("{:?}", report.checks);
    assert!(report.contains("finds the attributes of x in other releases"), "{report}");
}

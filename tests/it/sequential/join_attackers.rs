//! Attackers who join the files of two and three releases row by row, from the definition alone, and who read wards off diagnoses.

use std::collections::BTreeMap;

use guardian::engine::EngineError;
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::{AttributeType, CellShape};
use guardian::problem::Kind;
use guardian::publication::{EarlierColumn, EarlierRelease, EarlierReleases, RowCorrespondence};
use guardian::random::RandomStreams;
use serde_json::{Value, json};

use crate::support::library::{Original, Random, parts, release, seeds, table};

const NAMES: [&str; 4] = ["age", "sex", "ward", "diagnosis"];

const IDS: [&str; 2] = ["018f0000-0000-7000-8000-000000000001", "018f0000-0000-7000-8000-000000000002"];

/// Age, sex, ward and diagnosis; the diagnosis determines the ward.
type Person = [u32; 4];

/// Consecutive values that a cell may stand for.
type Range = (u32, u32);

/// A release as an attacker has it: columns by their place in [`NAMES`], and rows.
struct Shown {
    columns: Vec<usize>,
    rows: Vec<Vec<Range>>,
}

impl Shown {
    fn exact(people: &[Person], columns: &[usize]) -> Self {
        let row = |person: &Person| columns.iter().map(|&at| (person[at], person[at])).collect();
        Self { columns: columns.to_vec(), rows: people.iter().map(row).collect() }
    }

    fn cell(&self, row: usize, attribute: usize) -> Option<Range> {
        self.columns.iter().position(|&column| column == attribute).map(|at| self.rows[row][at])
    }

    /// Whether two rows may be of one person.
    fn matches(&self, row: usize, other: &Self, other_row: usize) -> bool {
        (0..NAMES.len()).all(|attribute| match (self.cell(row, attribute), other.cell(other_row, attribute)) {
            (Some((a, b)), Some((c, d))) => a <= d && c <= b,
            _ => true,
        })
    }
}

/// The largest share of a diagnosis of the first earlier release among tuples of all releases that agree in what the new one,
/// which is the first, shows of age and ward.
fn worst(releases: &[&Shown]) -> (u64, u64) {
    let mut tuples: Vec<Vec<usize>> = vec![Vec::new()];
    for (at, next) in releases.iter().enumerate() {
        let longer = |tuple: &Vec<usize>| {
            let fits = |row: &usize| {
                tuple.iter().enumerate().all(|(of, earlier)| releases[of].matches(*earlier, releases[at], *row))
            };
            (0..next.rows.len()).filter(fits).map(|row| [&tuple[..], &[row]].concat()).collect::<Vec<_>>()
        };
        tuples = tuples.iter().flat_map(longer).collect();
    }
    let mut groups: BTreeMap<[Option<Range>; 2], BTreeMap<Option<Range>, u64>> = BTreeMap::new();
    for tuple in &tuples {
        let known = [0, 2].map(|attribute| releases[0].cell(tuple[0], attribute));
        *groups.entry(known).or_default().entry(releases[1].cell(tuple[1], 3)).or_default() += 1;
    }
    let share = |of: &BTreeMap<Option<Range>, u64>| (*of.values().max().unwrap(), of.values().sum::<u64>());
    groups.values().map(share).max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))).expect("the true tuples match")
}

fn people(random: &mut Random) -> Vec<Person> {
    let kinds = 4 + random.below(3);
    let wards: Vec<u32> = (0..kinds).map(|_| 1 + random.below(2) as u32).collect();
    let rows = 8 + random.below(5);
    let person = |_| {
        let diagnosis = random.below(kinds);
        [20 + random.below(4) as u32, random.below(2) as u32, wards[diagnosis], diagnosis as u32]
    };
    (0..rows).map(person).collect()
}

fn csv(people: &[Person], columns: &[usize]) -> String {
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let row = |person: &Person| line(columns.iter().map(|&at| person[at].to_string()).collect());
    line(columns.iter().map(|&at| NAMES[at].to_owned()).collect()) + &people.iter().map(row).collect::<String>()
}

fn earlier(id: &str, people: &[Person], columns: &[usize]) -> EarlierRelease {
    let read = table(csv(people, columns).as_bytes());
    let column = |(at, &attribute): (usize, &usize)| EarlierColumn {
        name: NAMES[attribute].to_owned(),
        published: NAMES[attribute].to_owned(),
        shape: CellShape::Exact,
        nodes: false,
        kind: AttributeType::Integer,
        cells: read.column(at.into()).clone(),
    };
    EarlierRelease {
        release: id.to_owned(),
        columns: columns.iter().enumerate().map(column).collect(),
        rows: people.len(),
        sequence: None,
        alone: false,
        taxonomies: BTreeMap::new(),
        external: false,
        rows_of: RowCorrespondence::Content,
    }
}

/// A new release of age and ward, in whose join with the first of `against` no diagnosis has more than the share 2/3.
fn document(against: &[&str], is_known: bool) -> Value {
    let function = json!([{"determinant": ["diagnosis"], "dependent": ["ward"]}]);
    let requirement =
        |y: String| json!({"x": ["new.age", "new.ward"], "y": [y], "measure": {"type": "xy_linkability", "h": "2/3"}});
    json!({"unlisted": "drop", "attributes": {"age": {"identifier": false}}, "method": {"type": "sequential",
        "publish": ["age", "ward"], "against": against,
        "functional_dependencies": if is_known { function } else { json!([]) },
        "requirements": [requirement(format!("{}.diagnosis", IDS[0]))]}})
}

/// What a release comes to: the share of the join, as attacked and as the manifest lists it, and that for who knows wards.
struct Attacked {
    joined: Vec<(u64, u64)>,
    listed: Vec<(u64, u64)>,
    knowing: Vec<(u64, u64)>,
}

/// Publishes beside exact releases of `columns`, and joins; `None` where that is refused.
fn attack(people: &[Person], columns: &[&[usize]], is_known: bool) -> Option<Attacked> {
    let original = Original::new(table(csv(people, &[0, 1, 2, 3]).as_bytes()));
    let ids = &IDS[..columns.len()];
    let job = original.job(&document(ids, is_known)).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let releases = ids.iter().zip(columns).map(|(id, columns)| earlier(id, people, columns)).collect();
    let disclosures =
        EarlierDisclosures { releases: EarlierReleases { releases, excluded: None }, ..EarlierDisclosures::default() };
    let (released, files) = match release(&job, &disclosures, &RandomStreams::Identity) {
        Ok(done) => done,
        Err(EngineError::Refused(problem)) => {
            assert!(problem.errors.iter().all(|fault| fault.kind == Kind::InfeasibleRoot), "{problem:#?}");
            return None;
        }
        Err(error) => panic!("{error:?}"),
    };
    let range = |cell: &String| match cell.split_once("..") {
        Some((first, last)) => (first.parse().unwrap(), last.parse().unwrap()),
        None => (cell.parse().unwrap(), cell.parse().unwrap()),
    };
    let rows = &parts(&released.manifest, &files)[0][0].rows;
    let new = Shown { columns: vec![0, 2], rows: rows.iter().map(|row| row.iter().map(range).collect()).collect() };
    // of each person what is published of the age, and the ward itself
    let ages = |person: &Person| {
        new.rows.iter().map(|row| row[0]).find(|(first, last)| (*first..=*last).contains(&person[0])).unwrap()
    };
    let knowing = people.iter().map(|person| vec![ages(person), (person[2], person[2])]).collect();
    let knowing = Shown { columns: vec![0, 2], rows: knowing };
    let others: Vec<Shown> = columns.iter().map(|columns| Shown::exact(people, columns)).collect();
    // with the first alone, and with all
    let joins = |new: &Shown| -> Vec<(u64, u64)> {
        let with = |count: usize| [new].into_iter().chain(&others[..count]).collect::<Vec<_>>();
        (1..=others.len()).map(|count| worst(&with(count))).collect()
    };
    let manifest = serde_json::to_value(&released.manifest).unwrap();
    let subsets = manifest["method_details"]["requirements"][0]["subsets"].as_array().unwrap();
    let figure = |of: &Value| {
        let h = &of["achieved"]["h"];
        (h["count"].as_u64().unwrap(), h["of"].as_u64().unwrap())
    };
    Some(Attacked { joined: joins(&new), listed: subsets.iter().map(figure).collect(), knowing: joins(&knowing) })
}

fn exceeds((count, of): (u64, u64)) -> bool {
    count * 3 > of * 2
}

#[test]
fn joins_of_two_and_three_releases_keep_their_bound() {
    let (mut published, mut broken) = ([0, 0], 0);
    for case in 0..120 * seeds() {
        let random = &mut Random(case);
        let people = people(random);
        let first: &[usize] = [&[2, 3][..], &[0, 2, 3]][random.below(2)];
        let columns = [first, &[0, 1]];
        let columns = &columns[..1 + random.below(2)];
        if let Some(attacked) = attack(&people, columns, true) {
            published[columns.len() - 1] += 1;
            let same = |(a, b): (&(u64, u64), &(u64, u64))| a.0 * b.1 == b.0 * a.1;
            let Attacked { joined, listed, knowing } = attacked;
            assert!(
                joined.len() == listed.len() && joined.iter().zip(&listed).all(same),
                "{case}: {joined:?}, {listed:?}"
            );
            for share in joined.into_iter().chain(knowing) {
                assert!(!exceeds(share), "{case}: {share:?}\n{}", csv(&people, &[0, 1, 2, 3]));
            }
        }
        // a publisher who does not know of the function
        let unaware = attack(&people, columns, false);
        broken += usize::from(unaware.is_some_and(|attacked| attacked.knowing.into_iter().any(exceeds)));
    }
    println!("{published:?} published, {broken} broken without the function");
    assert!(published.iter().all(|count| *count > 5) && broken > 5, "{published:?}, {broken}");
}

/// A release that was made alone gives people away on the join: the attacker finds what the method has to prevent.
#[test]
fn exact_releases_give_people_away() {
    let broken = (0..40).filter(|case| {
        let people = people(&mut Random(*case));
        let (new, other) = (Shown::exact(&people, &[0, 2]), Shown::exact(&people, &[0, 2, 3]));
        exceeds(worst(&[&new, &other]))
    });
    assert!(broken.count() > 20);
}

//! The vectors of the oracle.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::*;

#[derive(Deserialize)]
struct Vector {
    releases: Vec<Rows>,
    classes: Vec<String>,
    taxonomy: BTreeMap<String, BTreeMap<String, Option<String>>>,
    #[serde(rename = "X")]
    x: Vec<(usize, String)>,
    #[serde(rename = "Y")]
    y: Vec<(usize, String)>,
    mode: String,
    k: String,
    exclusions: Vec<(usize, Conditions, usize, Conditions)>,
    root_measure: String,
    feasible: bool,
    precondition_release: Option<usize>,
    cuts: Option<BTreeMap<String, Vec<String>>>,
    trace: Option<Vec<(String, String, String, f64)>>,
    final_measure: Option<String>,
    distortion: Option<String>,
    join_tuples: Option<u128>,
}

/// Attributes, and the nodes they lie below.
type Conditions = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Rows {
    attrs: Vec<String>,
    rows: Vec<Vec<Value>>,
}

fn fraction(text: &str) -> MeasureValue {
    let (count, of) = text.split_once('/').unwrap();
    share(count.parse().unwrap(), of.parse().unwrap())
}

impl Vector {
    fn attribute(&self, name: &str) -> u32 {
        self.taxonomy.keys().position(|other| other == name).unwrap() as u32
    }

    fn fixture(&self) -> SequentialFixture {
        let kinds: Vec<Kind> = self.taxonomy.values().map(|parents| Kind::Tree(Tree::new(parents))).collect();
        let tree = |attribute: u32| match &kinds[attribute as usize] {
            Kind::Tree(tree) => tree.clone(),
            Kind::Numbers | Kind::Values => Tree::default(),
        };
        let release = |release: &Rows| {
            let column = |(at, name): (usize, &String)| {
                let (attribute, tree) = (self.attribute(name), tree(self.attribute(name)));
                // rows identify keys
                let name = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let codes: Vec<u32> = release.rows.iter().map(|row| tree.node(&name(&row[at]))).collect();
                Given::new(attribute as usize, &codes, tree.spans.clone())
            };
            release.attrs.iter().enumerate().map(column).collect()
        };
        let place = |(at, name): &(usize, String)| reference(*at, self.attribute(name));
        let y_element = |place_of: &(usize, String)| {
            if place_of.1.starts_with('K') {
                ResolvedYElement::Key(place_of.0)
            } else {
                ResolvedYElement::Attribute(place(place_of))
            }
        };
        let threshold = fraction(&self.k);
        let measure = match self.mode.as_str() {
            "anon" => GroupMeasure::Anonymity { k: threshold.count as u64 },
            _ => GroupMeasure::Linkability {
                h: Ratio::new(threshold.count as u64, threshold.of as u64).unwrap(),
                sensitive: None,
            },
        };
        let side = |release: usize, within: &Conditions| ResolvedConditions {
            release,
            within: within
                .iter()
                .map(|(name, node)| (self.attribute(name), tree(self.attribute(name)).named(node)))
                .collect(),
        };
        let exclusion = |(left, l, right, r): &(usize, Conditions, usize, Conditions)| ResolvedExclusion {
            left: side(*left, l),
            right: side(*right, r),
        };
        let classes: Vec<u32> = self.classes.iter().map(|class| u32::from(class == "q")).collect();
        SequentialFixture {
            releases: self.releases.iter().map(release).collect(),
            rows: self.releases.iter().map(|release| release.rows.len()).collect(),
            class: Codes::collect(256, classes.into_iter()),
            requirements: vec![ResolvedRequirement {
                x: self.x.iter().map(place).collect(),
                y: self.y.iter().map(y_element).collect(),
                exact: Vec::new(),
                also: Vec::new(),
                measure,
            }],
            exclusions: self.exclusions.iter().map(exclusion).collect(),
            kinds,
            ..slides()
        }
    }
}

#[test]
fn the_vectors_come_out() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../../../../tests/vectors/sequential.json")).unwrap();
    assert_eq!(vectors.len(), 120);
    let (mut feasible, mut reduced) = (0, 0);
    for (number, vector) in vectors.iter().enumerate() {
        let fixture = vector.fixture();
        let problem = fixture.problem();
        let control = Control::default();
        let tables = super::super::tables::JoinTables::from_problem(&problem, &control).unwrap();
        let all: Vec<usize> = (0..vector.releases.len()).collect();
        assert_eq!(tables.decisive(&tables.sought[0], &all), vector.precondition_release, "{number}");
        reduced += u32::from(vector.precondition_release.is_some());
        for reduce in [true, false] {
            let begun = CutSearch::begin(&problem, reduce, &control);
            let searched = begun.and_then(|mut search| {
                let solution = search.run(&control)?;
                Ok((solution, search))
            });
            if !vector.feasible {
                let error = searched.err().unwrap();
                let prior = reduce && vector.precondition_release.is_some_and(|release| release > 0);
                match error {
                    SequentialError::PriorReleaseViolates { .. } => assert!(prior, "{number}"),
                    SequentialError::InfeasibleRoot { .. } => assert!(!prior, "{number}"),
                    other => panic!("{number}: {other}"),
                }
                continue;
            }
            feasible += u32::from(reduce);
            let (solution, search) = searched.unwrap_or_else(|error| panic!("{number}: {error}"));
            assert_eq!(solution.root, [fraction(&vector.root_measure)], "{number}");
            let trace = vector.trace.as_ref().unwrap();
            assert_eq!(solution.steps.len(), trace.len(), "{number}");
            for (step, (attribute, node, measure, score)) in solution.steps.iter().zip(trace) {
                let given = &fixture.releases[0][step.column];
                assert_eq!(given.attribute as u32, vector.attribute(attribute), "{number}");
                assert_eq!(fixture.tree(given.attribute).name(step.label.node.unwrap()), node, "{number}");
                assert_eq!(step.measures, [fraction(measure)], "{number}");
                // six decimals were written
                assert!((step.score - score).abs() < 5.1e-7, "{number}: {} for {score}", step.score);
            }
            for cut in &solution.cuts {
                let attribute = fixture.releases[0][cut.column].attribute;
                let expected = &vector.cuts.as_ref().unwrap()[vector.taxonomy.keys().nth(attribute).unwrap()];
                let mut names = cut_names(&fixture, cut);
                names.sort();
                assert_eq!(&names, expected, "{number}");
            }
            assert_eq!(solution.cuts.len(), vector.cuts.as_ref().unwrap().len(), "{number}");
            let last = solution.achieved[0].measure;
            assert_eq!(Some(last), vector.final_measure.as_deref().map(fraction), "{number}");
            let distortion = share(solution.distortion.into(), problem.new.rows as u128);
            assert_eq!(Some(distortion), vector.distortion.as_deref().map(fraction), "{number}");
            if !reduce {
                assert_eq!(Some(search.planned.open[0].tuples()), vector.join_tuples, "{number}");
            }
        }
    }
    assert!(feasible > 80 && reduced > 20, "{feasible} {reduced}");
}

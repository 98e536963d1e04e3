//! The vectors, the worked runs, what specialization may repair, and the search against the definitions.

mod fixture;
mod literal;
mod random;
mod trees;
mod vectors;

use self::fixture::{Given, Kind, SequentialFixture, Tree};
use self::literal::{LiteralCut, span};
use super::search::CutSearch;
use super::*;
use crate::control::{Cancelled, Control};
use crate::microdata::Codes;
use crate::publication::Ratio;

fn reference(release: usize, attribute: u32) -> ResolvedAttribute {
    ResolvedAttribute { release, attribute }
}

fn y_element(release: usize, attribute: u32) -> ResolvedYElement {
    ResolvedYElement::Attribute(reference(release, attribute))
}

fn anonymity(x: &[(usize, u32)], y: &[ResolvedYElement], k: u64) -> ResolvedRequirement {
    let x = x.iter().map(|&(release, attribute)| reference(release, attribute)).collect();
    ResolvedRequirement {
        x,
        y: y.to_vec(),
        exact: Vec::new(),
        also: Vec::new(),
        measure: GroupMeasure::Anonymity { k },
    }
}

fn linkability(x: &[(usize, u32)], y: &[ResolvedYElement], h: (u64, u64)) -> ResolvedRequirement {
    let measure = GroupMeasure::Linkability { h: Ratio::new(h.0, h.1).unwrap(), sensitive: None };
    ResolvedRequirement { measure, ..anonymity(x, y, 1) }
}

fn share(count: u128, of: u128) -> MeasureValue {
    MeasureValue { count, of }
}

fn flat(root: &str, leaves: &str) -> Tree {
    Tree::parse(&[(root, leaves)])
}

const NAME: u32 = 0;
const JOB: u32 = 1;
const DISEASE: u32 = 2;

/// The tables of the slides: name and job; job and disease.
fn slides() -> SequentialFixture {
    let jobs = Tree::parse(&[("Any", "Field Office"), ("Office", "Banker Clerk"), ("Field", "Driver Engineer")]);
    let trees = [("name", flat("Any", "Alice Bob Cathy")), ("job", jobs), ("disease", flat("Any", "Cancer HIV"))];
    let new = ["Alice Banker", "Alice Banker", "Bob Clerk", "Bob Driver", "Cathy Engineer"];
    let earlier = ["Banker Cancer", "Banker Cancer", "Clerk HIV", "Driver Cancer", "Engineer HIV"];
    SequentialFixture::new(&trees, &[("name job", &new), ("job disease", &earlier)], &[0, 0, 1, 2, 3])
}

/// What was done, by names: the attributes' labels, measures and scores in millionths.
fn step_summaries(fixture: &SequentialFixture, solution: &SequentialSolution) -> Vec<(String, Vec<MeasureValue>, i64)> {
    let step = |step: &TakenStep| {
        let tree = fixture.tree(fixture.releases[0][step.column].attribute);
        let name = tree.name(step.label.node.unwrap()).to_owned();
        (name, step.measures.clone(), (step.score * 1e6).round() as i64)
    };
    solution.steps.iter().map(step).collect()
}

fn cut_names(fixture: &SequentialFixture, cut: &ColumnCut) -> Vec<String> {
    let tree = fixture.tree(fixture.releases[0][cut.column].attribute);
    cut.labels.iter().map(|label| tree.name(label.node.unwrap()).to_owned()).collect()
}

/// The tuples of the join of one requirement, which is made even where it need not be.
fn join_tuples(fixture: &SequentialFixture) -> u128 {
    let problem = fixture.problem();
    let mut search = CutSearch::begin(&problem, false, &Control::default()).unwrap();
    search.run(&Control::default()).unwrap();
    search.planned.open[0].tuples()
}

#[test]
fn shares_are_compared_exactly() {
    let huge = u128::MAX;
    assert_eq!(share(1, 2), share(3, 6));
    assert!(share(huge - 1, huge) < share(1, 1) && share(huge, huge) == share(1, 1));
    assert!(share(huge / 3, huge) < share(huge / 2, huge - 1));
    assert!(share(huge - 2, huge - 1) < share(huge - 1, huge), "1 - 1/n rises");
    assert!(share(5, huge) < share(5, huge - 1) && share(0, 1) == share(0, huge));
}

#[test]
fn the_worked_runs_come_out() {
    let mut fixture = slides();
    fixture.requirements = vec![anonymity(&[(0, JOB), (1, DISEASE)], &[ResolvedYElement::Key(0)], 2)];
    let solution = fixture.release().unwrap();
    assert_eq!(solution.root, [MeasureValue::number(5)]);
    assert_eq!(step_summaries(&fixture, &solution), [("Any".into(), vec![MeasureValue::number(2)], 242_738)]);
    assert_eq!(cut_names(&fixture, &solution.cuts[0]), ["Field", "Office"]);
    assert_eq!((solution.distortion, solution.changed), (5, 5), "one step per record");
    assert_eq!(join_tuples(&fixture), 13, "instead of 7");

    fixture.requirements = vec![linkability(&[(0, NAME), (0, JOB)], &[y_element(1, DISEASE)], (2, 3))];
    let solution = fixture.release().unwrap();
    assert_eq!(solution.root, [share(3, 5)]);
    let steps = step_summaries(&fixture, &solution);
    assert_eq!(steps, [("Any".into(), vec![share(3, 5)], 1_521_928), ("Any".into(), vec![share(2, 3)], 910_266)]);
    assert_eq!(solution.steps.iter().map(|step| step.column).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(solution.achieved, [AchievedMeasure { requirement: 0, joins: vec![vec![0, 1]], measure: share(2, 3) }]);
}

#[test]
fn the_slides_join_sharpens_one_and_blurs_another() {
    let mut fixture = slides();
    // down to the leaves nothing is generalized
    let raw = |fixture: &SequentialFixture| fixture.release().unwrap().achieved[0].measure;
    fixture.requirements =
        vec![anonymity(&[(0, NAME), (0, JOB), (1, DISEASE)], &[ResolvedYElement::Key(0), ResolvedYElement::Key(1)], 1)];
    assert_eq!(join_tuples(&fixture), 7, "five true pairs, two false ones");
    assert_eq!(raw(&fixture), MeasureValue::number(1));
    fixture.requirements = vec![linkability(&[(0, NAME)], &[y_element(1, DISEASE)], (1, 1))];
    assert_eq!(raw(&fixture), share(1, 1), "Alice has cancer");
}

#[test]
fn labels_meet_where_one_value_may_be_behind_both() {
    let of = |places: &[u32]| NodeSet::from_leaves(places.to_vec()).unwrap();
    assert_eq!(NodeSet::from_leaves(Vec::new()), None);
    assert_eq!(of(&[3, 1, 2, 3]), NodeSet::Range(NodeRange { first: 1, last: 3 }));
    let set = of(&[9, 1, 2, 5]);
    assert_eq!(set.spans(), [span((1, 2)), span((5, 5)), span((9, 9))]);
    for (other, meets) in
        [(&[0, 3, 4][..], false), (&[4, 6, 9], true), (&[2], true), (&[3], false), (&[6, 7, 8, 9], true)]
    {
        assert_eq!((set.meets(&of(other)), of(other).meets(&set)), (meets, meets), "{other:?}");
    }
    assert!(set.within(span((1, 9))) && !set.within(span((1, 8))) && !set.within(span((2, 9))));
}

#[test]
fn values_without_a_tree_are_published_or_not() {
    let trees = [("job", flat("Any", "Banker Clerk"))];
    let rows = ["Banker", "Banker", "Banker", "Clerk", "Clerk"];
    let mut fixture = SequentialFixture::new(&trees, &[("job", &rows)], &[0, 0, 1, 1, 1]);
    fixture.kinds = vec![Kind::Values];
    for (k, labels, distortion) in [(2, 2, 0), (3, 1, 5)] {
        fixture.requirements = vec![anonymity(&[(0, 0)], &[ResolvedYElement::Key(0)], k)];
        let solution = fixture.release().unwrap();
        assert_eq!((solution.cuts[0].labels.len(), solution.distortion), (labels, distortion));
        assert!(solution.cuts[0].labels.iter().all(|label| label.node.is_none()));
    }
}

#[test]
fn records_of_one_person_are_one_person() {
    let trees = [
        ("job", flat("Any", "Banker Clerk")),
        ("person", flat("Any", "1 2")),
        ("test", flat("Any", "HIV Diabetes Eye Heart")),
    ];
    let rows = ["Banker 1 HIV", "Banker 1 Diabetes", "Banker 1 Eye", "Clerk 2 HIV", "Clerk 2 Diabetes", "Clerk 2 Eye"];
    let mut rows = rows.to_vec();
    rows.push("Clerk 2 Heart");
    let mut fixture = SequentialFixture::new(&trees, &[("job person test", &rows)], &[0, 0, 0, 1, 1, 1, 1]);
    let achieved = |fixture: &SequentialFixture| fixture.release().map(|solution| solution.achieved[0].measure);
    for (y, measure) in [(ResolvedYElement::Key(0), 3), (y_element(0, 1), 1), (y_element(0, 2), 3)] {
        fixture.requirements = vec![anonymity(&[(0, 0)], &[y], 1)];
        assert_eq!(achieved(&fixture), Ok(MeasureValue::number(measure)));
    }
    fixture.requirements = vec![anonymity(&[(0, 0)], &[y_element(0, 1)], 2)];
    assert_eq!(achieved(&fixture), Ok(MeasureValue::number(2)), "only as one group");

    let rows =
        ["Banker 1 HIV", "Banker 1 HIV", "Banker 1 HIV", "Banker 1 Diabetes", "Clerk 2 Diabetes", "Clerk 2 Diabetes"];
    let mut fixture = SequentialFixture::new(&trees, &[("job person test", &rows)], &[0, 0, 0, 0, 1, 1]);
    fixture.requirements = vec![linkability(&[(0, 0)], &[y_element(0, 2)], (1, 1))];
    assert_eq!(achieved(&fixture), Ok(share(1, 1)));
    let hiv = fixture.tree(2).named("HIV");
    fixture.requirements[0].measure =
        GroupMeasure::Linkability { h: Ratio::new(3, 4).unwrap(), sensitive: Some(vec![vec![hiv]]) };
    assert_eq!(achieved(&fixture), Ok(share(3, 4)), "diabetes may be inferred");
    fixture.requirements[0].measure =
        GroupMeasure::Linkability { h: Ratio::new(2, 3).unwrap(), sensitive: Some(vec![vec![hiv]]) };
    let solution = fixture.release().unwrap();
    assert_eq!((solution.steps.len(), solution.achieved[0].measure), (0, share(1, 2)));
}

#[test]
fn a_step_down_may_repair_a_requirement() {
    // a violating group of false matches alone vanishes
    let trees = [("job", flat("Prof", "Banker Doctor")), ("sex", flat("Any", "F M")), ("race", flat("Any", "a b"))];
    let base: Vec<(&str, &str, &str)> =
        [("Banker", "F", "b", 2), ("Banker", "M", "b", 8), ("Doctor", "M", "a", 1), ("Doctor", "M", "b", 9)]
            .into_iter()
            .flat_map(|(job, sex, race, times)| std::iter::repeat_n((job, sex, race), times))
            .collect();
    let new: Vec<String> = base.iter().map(|(job, sex, _)| format!("{job} {sex}")).collect();
    let earlier: Vec<String> = base.iter().map(|(job, _, race)| format!("{job} {race}")).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    let earlier: Vec<&str> = earlier.iter().map(String::as_str).collect();
    let mut fixture = SequentialFixture::new(&trees, &[("job sex", &new), ("job race", &earlier)], &[0; 20]);
    let x = [(0, 0), (0, 1), (1, 0), (1, 2)];
    fixture.requirements = vec![anonymity(&x, &[ResolvedYElement::Key(0), ResolvedYElement::Key(1)], 5)];
    let at = |fixture: &SequentialFixture, jobs: &[&str]| {
        let cut = |column: usize, names: &[&str]| LiteralCut {
            column,
            labels: names.iter().map(|name| fixture.tree(column).named(name)).map(|s| (s.first, s.last)).collect(),
        };
        fixture.measure(&[cut(0, jobs), cut(1, &["F", "M"])], &[0, 1], &fixture.requirements[0])
    };
    assert_eq!(at(&fixture, &["Prof"]), Some(MeasureValue::number(2)));
    assert_eq!(at(&fixture, &["Banker", "Doctor"]), Some(MeasureValue::number(10)));
    let solution = fixture.release().unwrap();
    assert_eq!(solution.cuts[0].labels.len() + solution.cuts[1].labels.len(), 4, "job first, then sex");

    // an attribute of the join that is not in X
    let trees =
        [("e", Tree::parse(&[("ANY", "EL ER"), ("EL", "E0"), ("ER", "E1 E2")])), ("b", flat("ANY", "B0 B1 B2 B3"))];
    let new = ["E0 B3", "E0 B1", "E0 B1", "E2 B3", "E2 B0", "E0 B1"];
    let earlier = ["EL B3", "EL B1", "EL B1", "ER B3", "ER B0", "EL B1"];
    let mut fixture = SequentialFixture::new(&trees, &[("e b", &new), ("e b", &earlier)], &[0, 1, 0, 1, 0, 1]);
    fixture.requirements = vec![linkability(&[(0, 0), (1, 0)], &[ResolvedYElement::Key(1)], (3, 5))];
    let refused = Err(SequentialError::InfeasibleRoot { requirement: 0, proof: false, root: share(2, 3) });
    assert_eq!(fixture.release(), refused, "at the root it is 2/3");
    fixture.prefix = true;
    let solution = fixture.release().unwrap();
    assert_eq!((solution.root[0], solution.steps[0].measures[0]), (share(2, 3), share(1, 2)));
    assert!(solution.achieved[0].measure <= share(3, 5));
}

#[test]
fn what_earlier_releases_break_stays_broken() {
    let mut fixture = slides();
    // X has the job of the earlier release, by which alone it is matched
    fixture.requirements = vec![linkability(&[(0, NAME), (1, JOB)], &[y_element(1, DISEASE)], (1, 2))];
    assert_eq!(fixture.release(), Err(SequentialError::PriorReleaseViolates { requirement: 0 }));
    fixture.requirements = vec![
        anonymity(&[(0, NAME)], &[ResolvedYElement::Key(0)], 1),
        anonymity(&[(1, JOB)], &[ResolvedYElement::Key(1)], 2),
    ];
    assert_eq!(fixture.release(), Err(SequentialError::PriorReleaseViolates { requirement: 1 }));
    let root = MeasureValue::number(5);
    let refused = |proof| Err(SequentialError::InfeasibleRoot { requirement: 0, proof, root });
    fixture.requirements = vec![anonymity(&[(0, NAME)], &[ResolvedYElement::Key(0)], 6)];
    assert_eq!(fixture.release(), refused(true), "names decide no match");
    fixture.requirements = vec![anonymity(&[(0, NAME), (0, JOB)], &[ResolvedYElement::Key(0)], 6)];
    assert_eq!(fixture.release(), refused(true), "all that decides matches is in X");
    fixture.requirements = vec![anonymity(&[(0, JOB)], &[ResolvedYElement::Key(1)], 6)];
    assert_eq!(fixture.release(), refused(false));
}

#[test]
fn exclusions_must_not_be_true_of_anybody() {
    let trees = [
        ("id", flat("Any", "a b c d")),
        ("sex", flat("Any", "Female Male")),
        ("state", Tree::parse(&[("Any", "Pregnant Well"), ("Pregnant", "Early Late")])),
    ];
    let new = ["a Female", "b Male", "c Male", "d Female"];
    let earlier = ["Early", "Well", "Well", "Late"];
    let mut fixture = SequentialFixture::new(&trees, &[("id sex", &new), ("state", &earlier)], &[0, 1, 0, 1]);
    fixture.requirements = vec![linkability(&[(0, 0), (0, 1)], &[y_element(1, 2)], (1, 1))];
    assert_eq!(join_tuples(&fixture), 16);
    let side = |release, attribute: usize, name: &str| {
        let within = vec![(attribute as u32, fixture.tree(attribute).named(name))];
        ResolvedConditions { release, within }
    };
    let exclusion = ResolvedExclusion { left: side(1, 2, "Pregnant"), right: side(0, 1, "Male") };
    let all = |name: &str, codes: &[&str]| {
        let at = trees.iter().position(|(other, _)| *other == name).unwrap();
        let nodes: Vec<u32> = codes.iter().map(|code| trees[at].1.node(code)).collect();
        Given::new(at, &nodes, trees[at].1.spans.clone())
    };
    let table = |states: [&str; 4]| [all("sex", &["Female", "Male", "Male", "Female"]), all("state", &states)];
    let contradictions = |given: &[Given], rows| {
        let labels: Vec<PublishedLabels<'_>> = given
            .iter()
            .map(|given| PublishedLabels {
                attribute: given.attribute as u32,
                codes: &given.codes,
                places: given.places.clone(),
            })
            .collect();
        exclusion.contradicted_by(rows, &labels, &Control::default())
    };
    assert_eq!(contradictions(&table(["Early", "Well", "Well", "Late"]), 4), Ok(Some(0)));
    assert_eq!(contradictions(&table(["Early", "Well", "Late", "Early"]), 4), Ok(Some(1)));
    assert_eq!(contradictions(&table(["Early", "Well", "Late", "Early"])[1..], 4), Ok(None), "no sex");
    fixture.exclusions = vec![exclusion];
    assert_eq!(join_tuples(&fixture), 12, "two males are not two pregnant ones");
}

#[test]
fn intervals_are_cut_where_the_gain_is_largest() {
    let numbers = |values: &[u32]| Given::new(0, values, (0..10).map(NodeRange::point).collect());
    let values = [1, 2, 2, 5, 7, 9];
    let fixture = |class: &[u32], gain| SequentialFixture {
        kinds: vec![Kind::Numbers],
        releases: vec![vec![numbers(&values)]],
        rows: vec![values.len()],
        class: Codes::collect(256, class.iter().copied()),
        requirements: vec![anonymity(&[(0, 0)], &[ResolvedYElement::Key(0)], 2)],
        gain,
        ..slides()
    };
    let spans = |fixture: &SequentialFixture| {
        let solution = fixture.release().unwrap();
        let steps: Vec<NodeRange> = solution.steps.iter().map(|step| step.label.span).collect();
        (steps, solution.cuts[0].labels.iter().map(|label| label.span).collect::<Vec<_>>(), solution.changed)
    };
    let (steps, labels, changed) = spans(&fixture(&[0, 0, 0, 1, 1, 1], SpecializationGain::Information));
    assert_eq!(steps, [span((1, 9))]);
    assert_eq!((labels, changed), (vec![span((1, 4)), span((5, 9))], 6), "what is left would cut one row off");
    // most nearly equal halves
    let (_, labels, _) = spans(&fixture(&[0, 0, 0, 0, 0, 1], SpecializationGain::Distortion));
    assert_eq!(labels, [span((1, 4)), span((5, 9))]);
    // the smaller of equally good cut points
    let releases = vec![vec![numbers(&[1, 1, 3, 3, 5, 5])]];
    let (steps, ..) =
        spans(&SequentialFixture { releases, ..fixture(&[0, 0, 1, 0, 1, 0], SpecializationGain::Distortion) });
    assert_eq!(steps, [span((1, 5)), span((3, 5))]);
}

#[test]
fn nonsense_is_refused() {
    let fixture = slides();
    let refused = |change: &dyn Fn(&mut SequentialFixture)| {
        let mut fixture = fixture.clone();
        fixture.requirements = vec![anonymity(&[(0, JOB), (1, DISEASE)], &[ResolvedYElement::Key(0)], 2)];
        change(&mut fixture);
        fixture.release().unwrap_err()
    };
    let x = |x: &'static [(usize, u32)]| {
        move |fixture: &mut SequentialFixture| fixture.requirements = vec![anonymity(x, &[y_element(1, DISEASE)], 1)]
    };
    assert_eq!(refused(&x(&[(0, 7)])), SequentialError::UnknownReference { requirement: 0 });
    assert_eq!(refused(&x(&[(2, JOB)])), SequentialError::UnknownReference { requirement: 0 });
    assert_eq!(refused(&x(&[(0, JOB), (1, DISEASE)])), SequentialError::Overlap { requirement: 0 });
    assert_eq!(refused(&x(&[(1, JOB)])), SequentialError::NothingToGeneralize);
    assert_eq!(
        refused(&|fixture| fixture.requirements[0].y.clear()),
        SequentialError::UnknownReference { requirement: 0 }
    );
    assert_eq!(
        refused(&|fixture| fixture.requirements[0].measure = GroupMeasure::Anonymity { k: 0 }),
        SequentialError::Threshold { requirement: 0 }
    );
    assert_eq!(
        refused(&|fixture| fixture.requirements = vec![linkability(&[(0, JOB)], &[y_element(1, DISEASE)], (3, 2))]),
        SequentialError::Threshold { requirement: 0 }
    );
    assert_eq!(refused(&|fixture| fixture.rows[0] = 0), SequentialError::EmptyTable);
    let one_sided = ResolvedExclusion {
        left: ResolvedConditions { release: 0, within: vec![(JOB, NodeRange::point(1))] },
        right: ResolvedConditions { release: 0, within: vec![(NAME, NodeRange::point(1))] },
    };
    assert_eq!(
        refused(&|fixture| fixture.exclusions = vec![one_sided.clone()]),
        SequentialError::UnknownExclusion { exclusion: 0 }
    );
    let mut fixture = fixture;
    fixture.requirements = vec![anonymity(&[(0, JOB), (1, DISEASE)], &[ResolvedYElement::Key(0)], 2)];
    let mut problem = fixture.problem();
    problem.new.class = None;
    assert_eq!(problem.release(&Control::default()), Err(SequentialError::ClassMissing));
    let mut problem = fixture.problem();
    problem.most_links = 2;
    assert_eq!(problem.release(&Control::default()), Err(SequentialError::TooDense { requirement: 0 }));
    let mut problem = fixture.problem();
    problem.new.columns[1].scale = ColumnScale::Raw(fixture.tree(1).spans.clone());
    assert_eq!(problem.release(&Control::default()), Err(SequentialError::NoScale { attribute: JOB }));
    let control = Control::default();
    control.cancel();
    assert_eq!(fixture.problem().release(&control), Err(SequentialError::Cancelled(Cancelled)));
}

#[test]
fn rows_that_match_nothing_are_looked_at_alone() {
    let trees = [("a", flat("Any", "1 2")), ("b", flat("Any", "x y")), ("s", flat("Any", "p q"))];
    // the row of y is in no pair
    let mut fixture = SequentialFixture::new(
        &trees,
        &[("a b", &["1 x", "1 x", "2 x", "2 x", "2 y"]), ("b s", &["x p", "x q"])],
        &[0, 0, 1, 1, 1],
    );
    fixture.requirements = vec![anonymity(&[(0, 0)], &[y_element(0, 1)], 1)];
    fixture.same_rows = false;
    let solution = fixture.release().unwrap();
    let joins: Vec<_> = solution.achieved.iter().map(|achieved| achieved.joins.clone()).collect();
    assert_eq!(joins, [vec![vec![0]], vec![vec![0, 1]]]);
    assert_eq!(solution.root, [MeasureValue::number(1)], "without its only row y is not in the join");
    let nothing = SequentialFixture::new(&trees, &[("a b", &["1 x"]), ("b s", &["y p"])], &[0]);
    let nothing = SequentialFixture { requirements: fixture.requirements, same_rows: false, ..nothing };
    assert_eq!(nothing.release(), Err(SequentialError::EmptyJoin { requirement: 0 }));
}

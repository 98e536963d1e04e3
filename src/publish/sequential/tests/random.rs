//! Random releases: what the search makes of changes is what definitions make of rows.

use proptest::prelude::*;

use super::*;

/// Choices from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn some<T: Clone>(&mut self, from: &[T], most: usize) -> Vec<T> {
        let mut rest = from.to_vec();
        let count = 1 + self.below(most.min(from.len()));
        (0..count).map(|_| rest.remove(self.below(rest.len()))).collect()
    }
}

const PLACES: u32 = 6;

fn tree(dice: &mut Dice) -> Tree {
    match dice.below(5) {
        0 => flat("*", "a b"),
        1 => flat("*", "a b c"),
        2 => Tree::parse(&[("*", "l r"), ("l", "a"), ("r", "b c")]),
        3 => Tree::parse(&[("*", "l r"), ("l", "a b"), ("r", "c d")]),
        _ => Tree::parse(&[("*", "l r"), ("l", "a"), ("r", "s"), ("s", "b c")]),
    }
}

/// What rows show in sets, each with its own value.
fn sets(dice: &mut Dice, attribute: usize, kind: &Kind, values: &[u32]) -> Given {
    let all: Vec<u32> = match kind {
        Kind::Tree(tree) => tree.leaves(),
        Kind::Numbers | Kind::Values => (0..PLACES).collect(),
    };
    let others: Vec<Vec<u32>> = (0..2).map(|_| dice.some(&all, 3)).collect();
    let mut labels: Vec<NodeSet> = Vec::new();
    let code = |value: &u32| {
        let set = others[dice.below(2)].iter().copied().chain([*value]).collect();
        let label = NodeSet::from_leaves(set).unwrap();
        labels.iter().position(|other| *other == label).unwrap_or_else(|| {
            labels.push(label);
            labels.len() - 1
        }) as u32
    };
    let codes: Vec<u32> = values.iter().map(code).collect();
    Given::from_attribute(attribute, &codes, labels)
}

/// The column of an earlier release: as it is, generalized, in sets, or not there at all.
fn earlier(dice: &mut Dice, attribute: usize, kind: &Kind, values: &[u32]) -> Given {
    if dice.once_in(4) {
        return sets(dice, attribute, kind, values);
    }
    match kind {
        Kind::Values if dice.once_in(3) => {
            Given::new(attribute, &vec![0; values.len()], vec![NodeRange { first: 0, last: PLACES }])
        }
        Kind::Values => Given::new(attribute, values, (0..PLACES).map(NodeRange::point).collect()),
        Kind::Tree(tree) => {
            let mut codes = values.to_vec();
            match dice.below(6) {
                0 => codes.iter_mut().for_each(|code| *code = 0),
                1 | 2 => codes.iter_mut().for_each(|code| *code = tree.below_root(*code)),
                _ => {}
            }
            Given::new(attribute, &codes, tree.spans.clone())
        }
        Kind::Numbers => {
            let width = 1 + dice.below(3) as u32;
            let shift = dice.below(width as usize) as u32;
            let interval = |code: u32| {
                let first = (code * width).saturating_sub(shift);
                NodeRange { first, last: code * width + width - 1 - shift }
            };
            let codes: Vec<u32> = values.iter().map(|value| (value + shift) / width).collect();
            Given::new(attribute, &codes, (0..=PLACES).map(interval).collect())
        }
    }
}

fn fixture(seed: u64) -> SequentialFixture {
    let mut dice = Dice(seed);
    let dice = &mut dice;
    let kinds: Vec<Kind> = (0..5)
        .map(|_| match dice.below(6) {
            0 => Kind::Numbers,
            1 => Kind::Values,
            _ => Kind::Tree(tree(dice)),
        })
        .collect();
    let rows = 3 + dice.below(4);
    let value = |dice: &mut Dice, kind: &Kind| match kind {
        Kind::Numbers | Kind::Values => dice.below(PLACES as usize) as u32,
        Kind::Tree(tree) => {
            let leaves = tree.leaves();
            leaves[dice.below(leaves.len())]
        }
    };
    let base: Vec<Vec<u32>> = kinds.iter().map(|kind| (0..rows).map(|_| value(dice, kind)).collect()).collect();

    let attributes: Vec<usize> = (0..5).collect();
    let common = dice.some(&attributes, 2);
    let rest: Vec<usize> = attributes.into_iter().filter(|attribute| !common.contains(attribute)).collect();
    let cut = 1 + dice.below(rest.len() - 1);
    let mut having = vec![[&common[..], &rest[..cut]].concat(), [&common[..], &rest[cut..]].concat()];
    if dice.once_in(3) {
        let also = dice.some(&common, 1);
        let other = dice.some(&rest, 1);
        having.push([also, if dice.once_in(2) { other } else { Vec::new() }].concat());
    }
    let same_rows = !dice.once_in(5);
    let (mut releases, mut counts) = (Vec::new(), Vec::new());
    for (release, attributes) in having.iter().enumerate() {
        let mut of: Vec<usize> = (0..rows).collect();
        if !same_rows {
            of = dice.some(&of, rows);
        } else if release > 0 {
            of.rotate_left(dice.below(rows));
        }
        let mut columns = Vec::new();
        for &attribute in attributes {
            let values: Vec<u32> = of.iter().map(|&row| base[attribute][row]).collect();
            columns.push(match &kinds[attribute] {
                kind if release > 0 => earlier(dice, attribute, kind, &values),
                Kind::Tree(tree) => Given::new(attribute, &values, tree.spans.clone()),
                Kind::Numbers | Kind::Values => {
                    Given::new(attribute, &values, (0..PLACES).map(NodeRange::point).collect())
                }
            });
        }
        releases.push(columns);
        counts.push(of.len());
    }

    let label = |dice: &mut Dice, attribute: usize| match &kinds[attribute] {
        Kind::Tree(tree) => tree.spans[dice.below(tree.len())],
        Kind::Numbers | Kind::Values => {
            let first = dice.below(PLACES as usize) as u32;
            NodeRange { first, last: first + dice.below(3) as u32 }
        }
    };
    let mut exclusions = Vec::new();
    while dice.once_in(3) {
        let (a, b) = (dice.below(having.len()), dice.below(having.len()));
        if a == b {
            continue;
        }
        let mut side = |release: usize| {
            let attributes = dice.some(&having[release], 2);
            let within = attributes.into_iter().map(|attribute| (attribute as u32, label(dice, attribute))).collect();
            ResolvedConditions { release, within }
        };
        let (left, right) = (side(a), side(b));
        let place = |attribute: u32, row: usize| {
            let code = base[attribute as usize][row];
            match &kinds[attribute as usize] {
                Kind::Tree(tree) => tree.span(code),
                Kind::Numbers | Kind::Values => NodeRange::point(code),
            }
        };
        let conditions: Vec<(u32, NodeRange)> = left.within.iter().chain(&right.within).copied().collect();
        let is_true = |row: usize| conditions.iter().all(|&(attribute, span)| place(attribute, row).within(span));
        if !(0..rows).any(is_true) {
            exclusions.push(ResolvedExclusion { left, right });
        }
    }

    let all: Vec<ResolvedAttribute> = having
        .iter()
        .enumerate()
        .flat_map(|(release, of)| of.iter().map(move |&attribute| reference(release, attribute as u32)))
        .collect();
    let mut requirements = Vec::new();
    for at in 0..1 + usize::from(dice.once_in(4)) {
        let keys: Vec<ResolvedYElement> = (0..having.len()).map(ResolvedYElement::Key).collect();
        let mut y = match dice.below(3) {
            0 => dice.some(&keys, 2),
            1 => dice.some(&all, 2).into_iter().map(ResolvedYElement::Attribute).collect(),
            _ => vec![ResolvedYElement::Attribute(dice.some(&all, 1)[0]), dice.some(&keys, 1)[0]],
        };
        if !dice.once_in(4) {
            y.truncate(1);
        }
        let free: Vec<ResolvedAttribute> =
            all.iter().copied().filter(|r| !y.contains(&ResolvedYElement::Attribute(*r))).collect();
        let new: Vec<ResolvedAttribute> = free.iter().copied().filter(|reference| reference.release == 0).collect();
        let mut x: Vec<ResolvedAttribute> = free.into_iter().filter(|_| !dice.once_in(3)).collect();
        if at == 0 && !x.iter().any(|reference| reference.release == 0) {
            // a common attribute and another are in the new release, and at most two on Y
            match new.first() {
                Some(first) => x.push(*first),
                None => y = vec![ResolvedYElement::Key(1)],
            }
            if new.is_empty() {
                x.push(all[0]);
            }
        }
        let attributes: Vec<u32> = y
            .iter()
            .filter_map(|y_element| {
                if let ResolvedYElement::Attribute(reference) = y_element { Some(reference.attribute) } else { None }
            })
            .collect();
        let measure = if dice.once_in(2) {
            GroupMeasure::Anonymity { k: [1, 1, 2, 3][dice.below(4)] }
        } else {
            let h = [(1, 2), (2, 3), (3, 4), (1, 1)][dice.below(4)];
            let mut values = Vec::new();
            for _ in 0..1 + dice.below(2) {
                values.push(attributes.iter().map(|&attribute| label(dice, attribute as usize)).collect());
            }
            let sensitive = dice.once_in(3).then_some(values);
            GroupMeasure::Linkability { h: Ratio::new(h.0, h.1).unwrap(), sensitive }
        };
        requirements.push(ResolvedRequirement { x, y, exact: Vec::new(), also: Vec::new(), measure });
    }
    let class: Vec<u32> = (0..counts[0]).map(|_| dice.below(3) as u32).collect();
    SequentialFixture {
        class: Codes::collect(256, class.into_iter()),
        kinds,
        releases,
        rows: counts,
        same_rows,
        requirements,
        exclusions,
        joins: [JoinScope::Whole, JoinScope::Extended, JoinScope::All][dice.below(3)],
        gain: if dice.once_in(3) { SpecializationGain::Distortion } else { SpecializationGain::Information },
        score: if dice.once_in(3) { SpecializationScore::Ratio } else { SpecializationScore::PlusOne },
        prefix: dice.once_in(6),
        stop_at_zero_gain: dice.once_in(6),
    }
}

/// The cut of a solution as definitions have it.
fn literal_cuts(solution: &SequentialSolution) -> Vec<LiteralCut> {
    let labels = |cut: &ColumnCut| cut.labels.iter().map(|label| (label.span.first, label.span.last)).collect();
    solution.cuts.iter().map(|cut| LiteralCut { column: cut.column, labels: labels(cut) }).collect()
}

fn distortion(fixture: &SequentialFixture, solution: &SequentialSolution) -> u64 {
    let mut steps = 0;
    for cut in &solution.cuts {
        let given = &fixture.releases[0][cut.column];
        for code in given.codes.iter() {
            let label = cut.labels[cut.of_code[code as usize] as usize];
            assert!(given.places[code as usize].within(label.span));
            steps += match &fixture.kinds[given.attribute] {
                Kind::Tree(tree) => tree.depth(code) - tree.depth(label.node.unwrap()),
                Kind::Numbers | Kind::Values => usize::from(label.span.first < label.span.last),
            } as u64;
        }
    }
    steps
}

fn agrees(fixture: &SequentialFixture, reduce: bool) -> Result<(), TestCaseError> {
    let problem = fixture.problem();
    let control = Control::default();
    let found = CutSearch::begin(&problem, reduce, &control).and_then(|mut search| search.run(&control));
    let literally = fixture.literally();
    let solution = match found {
        Ok(solution) => solution,
        Err(SequentialError::PriorReleaseViolates { requirement }) => {
            let requirement = &fixture.requirements[requirement];
            let names = |release: usize| {
                let y_element = |y_element: &ResolvedYElement| match y_element {
                    ResolvedYElement::Attribute(reference) => reference.release == release,
                    ResolvedYElement::Key(key) => *key == release,
                };
                requirement.x.iter().any(|reference| reference.release == release)
                    || requirement.y.iter().any(y_element)
            };
            let earlier: Vec<usize> = (1..fixture.releases.len()).filter(|&release| names(release)).collect();
            if names(0) {
                prop_assert!(literally.is_none());
            } else {
                let measure = fixture.measure(&[], &earlier, requirement).unwrap();
                prop_assert!(literally.is_none() || !requirement.measure.allows(measure));
            }
            return Ok(());
        }
        Err(SequentialError::EmptyJoin { .. }) => {
            prop_assert!(!fixture.same_rows && literally.is_none());
            return Ok(());
        }
        Err(SequentialError::InfeasibleRoot { requirement, proof, .. }) => {
            prop_assert!(literally.is_none());
            let requirement = &fixture.requirements[requirement];
            let mut cuts = fixture.roots();
            loop {
                let joins = fixture.joins_of(requirement);
                let levels = joins.iter().map(|joined| fixture.measure(&cuts, joined, requirement));
                let broken = levels.flatten().any(|level| !requirement.measure.allows(level));
                prop_assert!(!proof || broken, "no cut repairs it");
                let Some((_, _, _, next)) = fixture.steps(&cuts).into_iter().next_back() else { break };
                cuts = next;
            }
            return Ok(());
        }
        Err(other) => return Err(TestCaseError::fail(format!("{other}"))),
    };
    let Some((steps, cuts)) = literally else { return Err(TestCaseError::fail("nothing keeps all")) };
    prop_assert_eq!(solution.steps.len(), steps.len());
    for (step, expected) in solution.steps.iter().zip(&steps) {
        prop_assert_eq!((step.column, step.label.span), (expected.column, expected.label.span));
        prop_assert_eq!(&step.measures, &expected.measures);
        prop_assert!((step.score - expected.score).abs() < 1e-9);
    }
    prop_assert_eq!(literal_cuts(&solution), cuts.clone());
    prop_assert_eq!(solution.distortion, distortion(fixture, &solution));
    for (at, requirement) in fixture.requirements.iter().enumerate() {
        for joined in fixture.joins_of(requirement) {
            let mut of_it = solution.achieved.iter().filter(|achieved| achieved.requirement == at);
            prop_assert!(of_it.any(|achieved| achieved.joins.contains(&joined)), "{:?}", joined);
        }
    }
    for AchievedMeasure { requirement, joins, measure } in &solution.achieved {
        for joined in joins {
            let expected = fixture.measure(&cuts, joined, &fixture.requirements[*requirement]);
            prop_assert_eq!(Some(*measure), expected, "{:?}", joined);
            prop_assert!(fixture.requirements[*requirement].measure.allows(*measure));
        }
    }
    Ok(())
}

/// How many worlds are tried.
const WORLDS: u32 = 160;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(WORLDS))]

    #[test]
    fn changes_add_up_to_the_definitions(seed in any::<u64>()) {
        let fixture = fixture(seed);
        agrees(&fixture, true)?;
        agrees(&fixture, false)?;
    }

    #[test]
    fn the_order_of_rows_does_not_matter(seed in any::<u64>(), turn in 1..6_usize) {
        let fixture = fixture(seed);
        let mut turned = fixture.clone();
        for (release, columns) in turned.releases.iter_mut().enumerate() {
            let rows = fixture.rows[release] as u32;
            let order: Vec<u32> = (0..rows).map(|row| (row + turn as u32) % rows).collect();
            columns.iter_mut().for_each(|given| given.codes = given.codes.gather(&order));
            if release == 0 {
                turned.class = fixture.class.gather(&order);
            }
        }
        prop_assert_eq!(fixture.release(), turned.release());
    }
}

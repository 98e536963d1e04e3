//! Attacks on a decomposition that somebody published, from its parts alone.

use std::collections::{BTreeMap, BTreeSet};

use super::given::{CellText, ExternalPart, ExternalTable};
use super::possible::{InferableValue, InferenceError, ObservedDecomposition, PossibleValues};
use super::worlds::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::publication::{BreachKind, RowMeaning};

/// So many conclusions are shown.
const MAX_REPORTED_INFERENCES: usize = 10;

/// So many choices of what is known not to be somebody's are looked at, each once for each value of its bucket.
const MAX_CHOICES: u64 = 1 << 24;

/// The two tables of a decomposition.
#[derive(Clone, Copy)]
pub struct DecompositionView<'a> {
    /// The table of buckets.
    pub buckets: &'a ExternalTable,
    /// The table of joint values.
    pub joint: &'a ExternalTable,
    /// The attribute that buckets are made by.
    pub primary: Attr,
    /// The other sensitive attributes, each with the l that is stated of it.
    pub others: &'a [(Attr, u64)],
    /// The attributes of which something is to be concluded.
    pub asked: AttrSet,
    /// Those of which buckets may list values that none of their rows has.
    pub noisy: AttrSet,
}

/// What is asked of a decomposition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InferenceQuestion {
    /// Which places have fewer values than `fewest`, for whoever knows their primary value.
    Chain {
        /// Of fewer values one is concluded.
        fewest: usize,
    },
    /// Which buckets have, for whoever knows of at most `excluded` primary values that they are not somebody's.
    Exclusion {
        /// Of fewer values one is concluded.
        fewest: usize,
        /// So many can be excluded.
        excluded: usize,
    },
    /// Which listed values the joint table rules out.
    Excludable,
    /// Which values more of a bucket's rows than 1/l are certain to have.
    Forced,
}

/// Something that can be concluded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InferredValue {
    /// The label of the bucket.
    pub bucket: u32,
    /// The attribute of which it is.
    pub attribute: Attr,
    /// The primary values that are known of somebody, or not to be somebody's.
    pub known: Vec<CellText>,
    /// What is left.
    pub values: Vec<CellText>,
    /// At least one of the values is so probable.
    pub posterior: (u64, u64),
}

/// What can be concluded of a decomposition.
#[derive(Debug, Default)]
pub struct InferenceReport {
    /// How many there are.
    pub total: u64,
    /// At most ten, the most certain first.
    pub first: Vec<InferredValue>,
    /// False when no table can have been made into these parts.
    pub possible: bool,
}

/// Numbers for values that are the same in all parts.
#[derive(Default)]
struct ValueInterner {
    of: BTreeMap<(Attr, Option<Vec<u8>>), u32>,
    cells: Vec<CellText>,
}

impl ValueInterner {
    fn of(&mut self, attr: Attr, column: &Column) -> Vec<u32> {
        let kind = column.domain.kind();
        let mut number = |value: Option<&[u8]>| {
            let value = value.map(<[u8]>::to_vec);
            let next = self.cells.len() as u32;
            let number = *self.of.entry((attr, value.clone())).or_insert(next);
            if number == next {
                self.cells.push(CellText { kind, value });
            }
            number
        };
        let of: Vec<u32> = (0..column.domain.len() as u32).map(|code| number(column.domain.value(code))).collect();
        column.codes.iter().map(|code| of[code as usize]).collect()
    }
}

/// The label of each row.
fn labels(part: &ExternalPart) -> Option<Vec<usize>> {
    let column = part.bucket.as_ref()?;
    let label = |code: u32| std::str::from_utf8(column.domain.value(code)?).ok()?.parse::<usize>().ok();
    let of: Vec<Option<usize>> = (0..column.domain.len() as u32).map(label).collect();
    let rows = part.rows;
    column.codes.iter().map(|code| of[code as usize].filter(|label| (1..=rows).contains(label))).collect()
}

/// What the parts show; `None` when they are not those of a decomposition.
fn observe_tables(given: &DecompositionView<'_>, numbers: &mut ValueInterner) -> Option<ObservedDecomposition> {
    let find = |table: &'_ ExternalTable, attr: Attr, listed: bool| {
        let holds =
            |part: &&ExternalPart| part.column(attr).is_some() && (part.meaning == RowMeaning::Values) == listed;
        table.parts.iter().position(|part| holds(&part))
    };
    let mut column = |table: &ExternalTable, attr: Attr, listed: bool| {
        let part = &table.parts[find(table, attr, listed)?];
        Some(numbers.of(attr, part.column(attr)?))
    };
    let primary = column(given.buckets, given.primary, false)?;
    let of_primary = labels(&given.buckets.parts[find(given.buckets, given.primary, false)?])?;
    let buckets = of_primary.iter().copied().max().unwrap_or(0);
    let mut shown = ObservedDecomposition {
        primary: vec![Vec::new(); buckets],
        sets: vec![vec![BTreeSet::new(); given.others.len()]; buckets],
        joint: Vec::new(),
        exact: given.others.iter().map(|(attr, _)| !given.noisy.contains(*attr)).collect(),
    };
    of_primary.iter().zip(&primary).for_each(|(label, value)| shown.primary[label - 1].push(*value));
    for (at, (attr, _)) in given.others.iter().enumerate() {
        let values = column(given.buckets, *attr, true)?;
        let of_values = labels(&given.buckets.parts[find(given.buckets, *attr, true)?])?;
        for (label, value) in of_values.into_iter().zip(values) {
            shown.sets.get_mut(label - 1)?[at].insert(value);
        }
    }
    let known = column(given.joint, given.primary, false)?;
    let others: Vec<Vec<u32>> =
        given.others.iter().map(|(attr, _)| column(given.joint, *attr, false)).collect::<Option<_>>()?;
    let row = |(row, value): (usize, &u32)| (*value, others.iter().map(|of| of[row]).collect());
    shown.joint = known.iter().enumerate().map(row).collect();
    Some(shown)
}

/// What the parts show, values as numbers.
pub(super) fn observe(given: &DecompositionView<'_>) -> Option<ObservedDecomposition> {
    observe_tables(given, &mut ValueInterner::default())
}

/// Concludes what can be concluded.
///
/// # Errors
/// [`AttackError`]
pub fn infer_values(
    given: &DecompositionView<'_>,
    question: InferenceQuestion,
    control: &Control,
) -> Result<InferenceReport, AttackError> {
    let mut numbers = ValueInterner::default();
    let shown = observe_tables(given, &mut numbers).ok_or(AttackError::NotExact)?;
    let possible = match shown.possible(control) {
        Ok(possible) => possible,
        Err(InferenceError::Cancelled) => return Err(AttackError::Cancelled),
        Err(InferenceError::Contradiction) => return Ok(InferenceReport::default()),
        Err(InferenceError::TooMany { limit, found }) => {
            return Err(AttackError::TooMany { what: "pairs of buckets and joint values", limit, found });
        }
    };
    let mut all = questions_answered(given, question, &shown, &possible, control)?;
    all.retain(|told| given.asked.contains(given.others[told.attribute].0));
    let posterior = |told: &InferableValue| match (told.kind, told.values.len() as u64) {
        (BreachKind::Forced, _) => told.share,
        // of so many values one has at least its share
        (_, values) => (1, values.max(1)),
    };
    let excludable = question == InferenceQuestion::Excludable;
    all.sort_by(|a, b| {
        let ((a_of, a_all), (b_of, b_all)) = (posterior(a), posterior(b));
        (u128::from(b_of) * u128::from(a_all)).cmp(&(u128::from(a_of) * u128::from(b_all))).then_with(|| a.cmp(b))
    });
    let cells = |values: &mut dyn Iterator<Item = u32>| -> Vec<CellText> {
        values.map(|value| numbers.cells[value as usize].clone()).collect()
    };
    let first = all.iter().take(MAX_REPORTED_INFERENCES).map(|told| InferredValue {
        bucket: told.bucket as u32 + 1,
        attribute: given.others[told.attribute].0,
        known: cells(&mut told.known.iter().copied()),
        values: cells(&mut told.values.iter().copied()),
        posterior: if excludable { (0, 1) } else { posterior(told) },
    });
    Ok(InferenceReport { total: all.len() as u64, first: first.collect(), possible: true })
}

fn questions_answered(
    given: &DecompositionView<'_>,
    question: InferenceQuestion,
    shown: &ObservedDecomposition,
    possible: &PossibleValues,
    control: &Control,
) -> Result<Vec<InferableValue>, AttackError> {
    let attributes = given.others.len();
    Ok(match question {
        InferenceQuestion::Chain { fewest } => possible.chains(attributes, fewest),
        InferenceQuestion::Exclusion { fewest, excluded } => {
            possible.exclusions((attributes, fewest), excluded, MAX_CHOICES, control)?.ok_or(AttackError::TooMany {
                what: "choices of values that are excluded",
                limit: MAX_CHOICES,
                found: MAX_CHOICES + 1,
            })?
        }
        InferenceQuestion::Forced => possible.forced(&given.others.iter().map(|(_, l)| *l).collect::<Vec<u64>>()),
        InferenceQuestion::Excludable => {
            let of = |(bucket, attribute, value): (usize, usize, u32)| InferableValue {
                bucket,
                attribute,
                kind: BreachKind::Exclusion,
                known: Vec::new(),
                values: BTreeSet::from([value]),
                share: (0, 1),
            };
            shown.excludable(possible).into_iter().map(of).collect()
        }
    })
}

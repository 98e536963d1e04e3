//! Attacks on a decomposition that somebody published, from its parts alone.

use std::collections::BTreeSet;

use super::error::AttackError;
use crate::control::Control;
use crate::microdata::Attr;
use crate::publication::BreachKind;
use crate::verifier::definition::feasible_worlds::{
    InferableValue, InferenceError, ObservedDecomposition, PossibleValues,
};
use crate::verifier::external::decomposition_view::{DecompositionView, ValueInterner, observe_tables};
use crate::verifier::external::table::CellText;

/// So many conclusions are shown.
const MAX_REPORTED_INFERENCES: usize = 10;

/// So many choices of what is known not to be somebody's are looked at, each once for each value of its bucket.
const MAX_CHOICES: u64 = 1 << 24;

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

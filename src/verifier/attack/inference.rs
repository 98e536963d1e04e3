//! Inference attacks on a decomposition, from its parts alone [docs/spec/decompose.md#attacks].

use std::collections::BTreeSet;

use super::error::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, AttributeType};
use crate::publication::BreachKind;
use crate::verifier::definition::feasible_worlds::{ExclusionLimits, InferableValue, InferenceError, PossibleValues};
use crate::verifier::definition::observed_decomposition::ObservedDecomposition;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::external::decomposition_view::DecompositionView;
use crate::verifier::external::table::CellText;
use crate::verifier::read::interner::ValueInterner;

/// Maximal number of reported inferences.
const MAX_REPORTED_INFERENCES: usize = 10;

/// Maximal number of examined choices of excluded values.
///
/// Each counts once for each primary value of its bucket.
const MAX_CHOICES: u64 = 1 << 24;

/// Question that an attack answers about a decomposition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InferenceQuestion {
    /// Slots with fewer than `fewest` possible values, given the primary value of the target.
    Chain {
        /// Fewer possible values than this count as an inference.
        fewest: usize,
    },
    /// Buckets with fewer than `fewest` possible values, given excluded primary values of the target.
    Exclusion {
        /// Fewer possible values than this count as an inference.
        fewest: usize,
        /// Maximal number of excluded primary values.
        excluded: usize,
    },
    /// Listed values that the joint table excludes.
    Excludable,
    /// Values that more than 1/l of the rows of a bucket have with certainty.
    Forced,
}

/// One inference from a decomposition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InferredValue {
    /// The label of the bucket.
    pub bucket: u32,
    /// The attribute of the inferred values.
    pub attribute: Attr,
    /// The primary values that the adversary knows or excludes.
    pub known: Vec<CellText>,
    /// The remaining possible values.
    pub values: Vec<CellText>,
    /// A lower bound of the posterior of one of the values.
    pub posterior: ShareOfRows,
}

/// All inferences from a decomposition.
#[derive(Debug, Default)]
pub struct InferenceReport {
    /// Number of inferences.
    pub total: u64,
    /// At most ten inferences, the most certain first.
    pub first: Vec<InferredValue>,
    /// False when no table can produce these parts.
    pub possible: bool,
}

/// Answers a question about a decomposition.
///
/// # Errors
/// [`AttackError`]
pub fn infer_values(
    given: &DecompositionView<'_>,
    question: InferenceQuestion,
    control: &Control,
) -> Result<InferenceReport, AttackError> {
    let mut numbers = ValueInterner::default();
    let shown = given.observe(&mut numbers).ok_or(AttackError::NotExact)?;
    let possible = match shown.possible(control) {
        Ok(possible) => possible,
        Err(InferenceError::Cancelled) => return Err(AttackError::Cancelled),
        Err(InferenceError::Contradiction) => return Ok(InferenceReport::default()),
        Err(InferenceError::TooMany { limit, found }) => {
            return Err(AttackError::TooMany { what: "pairs of buckets and joint values", limit, found });
        }
    };
    let mut all = questions_answered(given, question, &shown, &possible, control)?;
    all.retain(|inferred| given.asked.contains(given.others[inferred.attribute].0));
    let posterior = |inferred: &InferableValue| match (inferred.kind, inferred.values.len() as u64) {
        (BreachKind::Forced, _) => inferred.share,
        // one of n possible values has a posterior of at least 1/n
        (_, values) => ShareOfRows::new(1, values.max(1)),
    };
    let excludable = question == InferenceQuestion::Excludable;
    all.sort_by(|a, b| posterior(b).compare(posterior(a)).then_with(|| a.cmp(b)));
    let texts = numbers.values();
    let cells = |attr: Attr, values: &mut dyn Iterator<Item = u32>| -> Vec<CellText> {
        let kind = given.kind(attr).unwrap_or(AttributeType::Text);
        let text = |value: u32| texts[value as usize].map(<[u8]>::to_vec);
        values.map(|value| CellText { kind, value: text(value) }).collect()
    };
    let first = all.iter().take(MAX_REPORTED_INFERENCES).map(|inferred| InferredValue {
        bucket: inferred.bucket as u32 + 1,
        attribute: given.others[inferred.attribute].0,
        known: cells(given.primary, &mut inferred.known.iter().copied()),
        values: cells(given.others[inferred.attribute].0, &mut inferred.values.iter().copied()),
        posterior: if excludable { ShareOfRows::new(0, 1) } else { posterior(inferred) },
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
            let limits = ExclusionLimits { attributes, fewest, excluded, work: MAX_CHOICES };
            possible.exclusions(limits, control)?.ok_or(AttackError::TooMany {
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
                share: ShareOfRows::new(0, 1),
            };
            shown.excludable(possible).into_iter().map(of).collect()
        }
    })
}

//! The document of a differential inference.

use serde_json::Value;

use crate::problem::Fault;
use crate::publication::Ratio;
use crate::spec::grammar::document::{DatasetColumns, Document, Fraction, PositiveFraction, Share, document};

const POSITIVE: &str = "a number above 0, as a text such as \"1000\" or \"0.5\"";

const SHARE: &str = "a number above 0 and at most 1, as a text such as \"0.6\"";

document! {
    /// Two counts answered with Laplace noise.
    DifferentialInferenceMembers as "DifferentialInferenceDocument" {
        /// The number of rows with the known attributes; above 0.
        required x: PositiveFraction => POSITIVE,
        /// The number of these rows with the sensitive value; at most `x`.
        required y: Fraction => "a number of at least 0, as a text such as \"800\"",
        /// The scale of the noise of each answer: sensitivity divided by budget.
        required scale: PositiveFraction => POSITIVE,
        /// The largest share that an adversary may infer; above 0 and at most 1.
        required threshold: Share => SHARE,
        /// The relative error of an inference; above 0 and at most 1, by default 0.1.
        optional within: Share => SHARE,
    }
}

/// Two counts with noisy answers, and the share that must not be inferred from their ratio [Wang et al. 2012].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DifferentialInference {
    /// How many rows have what is known; above 0.
    pub x: Ratio,
    /// How many of them have the sensitive value; at most `x`.
    pub y: Ratio,
    /// The scale of the noise of each answer; above 0.
    pub scale: Ratio,
    /// The share of the sensitive value that must not be inferred.
    pub threshold: Ratio,
    /// The relative distance within which the ratio counts as inferred; 0.1 by default.
    pub within: Ratio,
}

impl DifferentialInference {
    /// Whether the share itself is above the threshold.
    #[must_use]
    pub fn exceeds(&self) -> bool {
        let product = |numbers: [u64; 3]| numbers.into_iter().map(u128::from).product::<u128>();
        // y/x > threshold; each product is below 2^90
        product([self.y.numerator(), self.x.denominator(), self.threshold.denominator()])
            > product([self.threshold.numerator(), self.x.numerator(), self.y.denominator()])
    }
}

/// Reads the document of a differential inference.
///
/// # Errors
/// Every fault of the document, with its pointer.
pub fn read_differential_inference(document: &Value) -> Result<DifferentialInference, Vec<Fault>> {
    DifferentialInferenceMembers::read_document(document, &DatasetColumns::default(), |members, faults| {
        let (x, y) = (members.x.value.map(|x| x.0), members.y.value.map(|y| y.0));
        if x.zip(y).is_some_and(|(x, y)| y > x) {
            faults.range(members.at("y"), "at most x: rows that have both have the first");
        }
        let within = members.within.value.map_or_else(|| Ratio::new(1, 10).ok(), |within| Some(within.0));
        let (scale, threshold) = (members.scale.value?.0, members.threshold.value?.0);
        Some(DifferentialInference { x: x?, y: y?, scale, threshold, within: within? })
    })
}

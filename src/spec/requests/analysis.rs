//! The document of a differential inference.

use serde_json::Value;

use crate::problem::Fault;
use crate::publication::Ratio;
use crate::spec::grammar::reader::{FaultList, ObjectReader, integer};

const POSITIVE: &str = "a number above 0, as a text such as \"1000\" or \"0.5\"";

const AT_LEAST_0: &str = "a number of at least 0, as a text such as \"800\"";

const SHARE: &str = "a number above 0 and at most 1, as a text such as \"0.6\"";

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
    let mut faults = FaultList::new();
    let read = ObjectReader::open(document, "", &mut faults).and_then(|mut members| {
        let mut number = |name: &'static str, allowed: &str, default: Option<Ratio>, accept: fn(Ratio) -> bool| {
            let Some(value) = members.take(name) else {
                if default.is_none() {
                    faults.range(members.at(name), allowed);
                }
                return default;
            };
            let read = match value {
                Value::String(text) => text.parse().ok(),
                other => integer(other).and_then(|whole| Ratio::new(u64::try_from(whole).ok()?, 1).ok()),
            };
            let read = read.filter(|ratio| accept(*ratio));
            if read.is_none() {
                faults.range(members.at(name), allowed);
            }
            read
        };
        let x = number("x", POSITIVE, None, |x| x.numerator() > 0);
        let y = number("y", AT_LEAST_0, None, |_| true);
        let scale = number("scale", POSITIVE, None, |scale| scale.numerator() > 0);
        let share = |share: Ratio| share.numerator() > 0 && share <= Ratio::ONE;
        let threshold = number("threshold", SHARE, None, share);
        let within = number("within", SHARE, Ratio::new(1, 10).ok(), share);
        members.finish(&mut faults);
        if x.zip(y).is_some_and(|(x, y)| y > x) {
            faults.range("/y", "at most x: rows that have both have the first");
        }
        Some(DifferentialInference { x: x?, y: y?, scale: scale?, threshold: threshold?, within: within? })
    });
    match read {
        Some(read) if faults.is_empty() => Ok(read),
        _ => Err(faults.into_sorted()),
    }
}

//! Calculators. They are told numbers and know of no data.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::http::access::Authenticated;
use crate::api::http::extract::JsonDocument;
use crate::model::NoisyRatio;
use crate::problem::Problem;
use crate::spec::{DifferentialInference, read_differential_inference};

/// With at least this probability an adversary counts as sure.
const CERTAINTY_THRESHOLD: f64 = 0.9;

/// Two counts that are answered with Laplace noise.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the document is read by hand, so that one answer names every fault; this describes its shape"
)]
pub(in crate::api) struct DifferentialInferenceDocument {
    /// How many rows have what is known of a person: above 0.
    #[schema(example = "1000")]
    x: String,
    /// How many of them have the sensitive value too: at most `x`.
    #[schema(example = "800")]
    y: String,
    /// The scale of the noise of each answer: its sensitivity divided by its budget.
    #[schema(example = "10")]
    scale: String,
    /// The share of the sensitive value that must not be inferred: above 0 and at most 1.
    #[schema(example = "0.6")]
    threshold: String,
    /// How near an inference is to be, as a part of the ratio: above 0 and at most 1. 0.1 when not given.
    #[schema(example = "0.1")]
    within: Option<String>,
}

/// What the ratio of the answers tells.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct InferredRatio {
    /// The share of the sensitive value, `y/x`.
    ratio: f64,
    /// By what the mean of the ratio of the answers exceeds it, to second order.
    factor: f64,
    /// The mean of the ratio of the answers, to second order.
    taylor_mean: f64,
    /// Its variance, to second order.
    taylor_variance: f64,
    /// How probable it is that the answer to `x` is not above 0.
    p_nonpositive: f64,
    /// How probable it is that the ratio of the answers is as near to the share as `within` asks.
    prob_within: f64,
    /// Whether the share is above the threshold and inferred with a probability of at least 0.9.
    breach: bool,
    /// `moments-do-not-exist`: the answer to `x` can be next to 0, so that mean and variance are formal. `budget-is-shared`: the scale
    /// must be that which both queries get out of one budget.
    caveats: Vec<&'static str>,
}

/// What two noisy counts tell of a share
///
/// Noise that hides one person in each of two counts does not hide their ratio where the counts are large: whoever divides them learns
/// the share of a sensitive value among those who have what is known. Nothing is looked at but the numbers that are sent.
#[utoipa::path(post, path = "/v1/analyses/differential-inference", tag = "analyses",
    request_body = DifferentialInferenceDocument, responses((status = 200, body = InferredRatio)))]
pub(in crate::api) async fn differential_inference(
    Authenticated(_caller): Authenticated,
    JsonDocument(document): JsonDocument,
) -> Result<Json<InferredRatio>, Problem> {
    let asked = read_differential_inference(&document).map_err(Problem::of_faults)?;
    let DifferentialInference { x, y, scale, within, .. } = asked;
    let noisy = NoisyRatio { x: x.to_f64(), y: y.to_f64(), scale: scale.to_f64() };
    let prob_within = noisy.within(within.to_f64());
    Ok(Json(InferredRatio {
        ratio: noisy.ratio(),
        factor: noisy.factor(),
        taylor_mean: noisy.ratio() * noisy.factor(),
        taylor_variance: noisy.variance(),
        p_nonpositive: noisy.nonpositive(),
        prob_within,
        breach: asked.exceeds() && prob_within >= CERTAINTY_THRESHOLD,
        caveats: vec!["moments-do-not-exist", "budget-is-shared"],
    }))
}

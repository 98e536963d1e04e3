//! Calculators on numbers of the request; they read no data.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::http::access::Authenticated;
use crate::api::http::extract::JsonDocument;
use crate::api::openapi::declared::DifferentialInferenceDocument;
use crate::app::read_request;
use crate::model::NoisyRatio;
use crate::problem::Problem;
use crate::spec::{DifferentialInference, read_differential_inference};

/// The probability from which an inference counts as certain.
const CERTAINTY_THRESHOLD: f64 = 0.9;

/// The inference from the ratio of two noisy answers.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct InferredRatio {
    /// The share of the sensitive value, `y/x`.
    ratio: f64,
    /// The bias of the ratio of the answers, to second order.
    factor: f64,
    /// The mean of the ratio of the answers, to second order.
    taylor_mean: f64,
    /// The variance of the ratio of the answers, to second order.
    taylor_variance: f64,
    /// The probability that the answer to `x` is at most 0.
    p_nonpositive: f64,
    /// The probability that the ratio of the answers is within `within` of the share.
    prob_within: f64,
    /// Whether the share exceeds the threshold and is inferred with probability at least 0.9.
    breach: bool,
    /// `moments-do-not-exist`: the answer to `x` can be close to 0, so that mean and variance are formal. `budget-is-shared`: both
    /// queries must share one budget, and the scale must reflect this.
    caveats: Vec<&'static str>,
}

/// Infers a share from two noisy counts
///
/// Noise that hides one person in each of two counts does not hide the ratio of large counts. The ratio reveals the share of a
/// sensitive value among the people with the known attributes. The calculation uses only the numbers of the request.
#[utoipa::path(post, path = "/v1/analyses/differential-inference", tag = "analyses",
    request_body = DifferentialInferenceDocument, responses((status = 200, body = InferredRatio)))]
pub(in crate::api) async fn differential_inference(
    Authenticated(_caller): Authenticated,
    JsonDocument(document): JsonDocument,
) -> Result<Json<InferredRatio>, Problem> {
    let request = read_request(&document, read_differential_inference).await?;
    let DifferentialInference { x, y, scale, within, .. } = &request;
    let noisy = NoisyRatio { x: x.to_f64(), y: y.to_f64(), scale: scale.to_f64() };
    let prob_within = noisy.within(within.to_f64());
    Ok(Json(InferredRatio {
        ratio: noisy.ratio(),
        factor: noisy.factor(),
        taylor_mean: noisy.ratio() * noisy.factor(),
        taylor_variance: noisy.variance(),
        p_nonpositive: noisy.nonpositive(),
        prob_within,
        breach: request.exceeds() && prob_within >= CERTAINTY_THRESHOLD,
        caveats: vec!["moments-do-not-exist", "budget-is-shared"],
    }))
}

//! The entropy of the model of readers, as a manifest holds it.

use std::io;

use super::model::model_problem;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::AttributeType;
use crate::model::{ModelError, ModelShape, model_entropy};
use crate::publication::{ModelKind, Publication, PublishedBytes};
use crate::report::Utility;

/// The relative difference that two computations of one entropy may have: machines round logarithms differently.
const ENTROPY_TOLERANCE: f64 = 1e-9;

/// The entropy of the model in nats, and the kind of the model.
///
/// # Errors
/// [`EngineError`] when the parts cannot be read.
pub(in crate::engine) fn of_parts(
    publication: &Publication,
    kinds: &[Option<AttributeType>],
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<(f64, ModelKind), EngineError> {
    read(publication, kinds, parts, control).map_err(model_problem)
}

/// Whether the entropy in a manifest follows from the parts; true where the manifest holds none.
///
/// # Errors
/// [`EngineError`] when the parts cannot be read. Malformed parts give false.
pub(in crate::engine) fn holds(
    utility: &Utility,
    publication: &Publication,
    kinds: &[Option<AttributeType>],
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<bool, EngineError> {
    let (nats, method) = match (utility.model_entropy_nats, utility.entropy_method) {
        (None, None) => return Ok(true),
        (Some(nats), Some(method)) => (nats, method),
        _ => return Ok(false),
    };
    match read(publication, kinds, parts, control) {
        Ok((found, how)) => Ok((nats - found).abs() <= ENTROPY_TOLERANCE * (1.0 + found.abs()) && method == how),
        Err(ModelError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
        Err(error) => Err(model_problem(error)),
    }
}

fn read(
    publication: &Publication,
    kinds: &[Option<AttributeType>],
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<(f64, ModelKind), ModelError> {
    let shape = ModelShape::from_publication(publication);
    let nats = model_entropy(&shape, publication, kinds, parts, control)?;
    Ok((nats, if shape.whole { ModelKind::ClosedForm } else { ModelKind::AcyclicSubset }))
}

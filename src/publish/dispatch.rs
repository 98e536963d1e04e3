use super::design::Design;
use super::error::PlanError;
use super::input::PlanInput;
use super::{anatomy, bucketize, decompose, generalize, sequential, slicing, versatile};
use crate::control::Control;
use crate::spec::MethodSpec;

/// Plans with the method of the specification: decides the tables and judges the rules.
///
/// Only a choice that depends on the data reads rows.
///
/// # Errors
/// [`PlanError`] with every fault that can be shown, or on cancellation.
pub fn plan(method: &MethodSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    match method {
        MethodSpec::Versatile(spec) => versatile::plan(spec, input, control),
        MethodSpec::Anatomy(spec) => Ok(anatomy::plan(spec, input, control)?),
        MethodSpec::Bucketize(spec) => bucketize::plan(spec, input, control),
        MethodSpec::Decompose(spec) => decompose::plan(spec, input, control),
        MethodSpec::Generalize(spec) => Ok(generalize::plan(spec, input, control)?),
        MethodSpec::Sequential(spec) => sequential::plan(spec, input, control),
        MethodSpec::Slicing(spec) => slicing::plan(spec, input, control),
    }
}

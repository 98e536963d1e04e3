use super::design::Design;
use super::error::PlanError;
use super::input::PlanInput;
use super::published::Published;
use super::{anatomy, bucketize, decompose, generalize, sequential, slicing, versatile};
use crate::control::{Cancelled, Control};
use crate::microdata::Table;
use crate::random::RandomStreams;
use crate::spec::MethodSpec;

/// A way to publish. Implemented by one type a method, dispatched once, by [`plan`] and [`publish`].
pub trait Method {
    /// What the caller may choose.
    type Spec;
    /// What is decided before rows are touched.
    type Plan;

    /// Decides the tables and judges the rules. Only what looks at the data reads rows.
    ///
    /// # Errors
    /// [`PlanError`] with every fault that can be shown, or when told to stop.
    fn plan(spec: &Self::Spec, input: &PlanInput<'_>, control: &Control) -> Result<Self::Plan, PlanError>;

    /// Makes the tables. `table` has its rows already permuted secretly.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    fn publish(
        plan: &Self::Plan,
        input: &PlanInput<'_>,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled>;
}

/// Plans with the method of the specification.
///
/// # Errors
/// [`PlanError`] with every fault that can be shown, or when told to stop.
pub fn plan(method: &MethodSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    match method {
        MethodSpec::Versatile(spec) => versatile::Versatile::plan(spec, input, control),
        MethodSpec::Anatomy(spec) => anatomy::Anatomy::plan(spec, input, control),
        MethodSpec::Bucketize(spec) => bucketize::Bucketize::plan(spec, input, control),
        MethodSpec::Decompose(spec) => decompose::Decompose::plan(spec, input, control),
        MethodSpec::Generalize(spec) => generalize::Generalize::plan(spec, input, control),
        MethodSpec::Sequential(spec) => sequential::Sequential::plan(spec, input, control),
        MethodSpec::Slicing(spec) => slicing::SlicingMethod::plan(spec, input, control),
    }
}

/// Publishes with the method of the specification.
///
/// # Errors
/// [`Cancelled`] when told to stop.
pub fn publish(
    method: &MethodSpec,
    plan: &Design,
    input: &PlanInput<'_>,
    table: &Table,
    streams: &RandomStreams,
    control: &Control,
) -> Result<Published, Cancelled> {
    match method {
        MethodSpec::Versatile(_) => versatile::Versatile::publish(plan, input, table, streams, control),
        MethodSpec::Anatomy(_) => anatomy::Anatomy::publish(plan, input, table, streams, control),
        MethodSpec::Bucketize(_) => bucketize::Bucketize::publish(plan, input, table, streams, control),
        MethodSpec::Decompose(_) => decompose::Decompose::publish(plan, input, table, streams, control),
        MethodSpec::Generalize(_) => generalize::Generalize::publish(plan, input, table, streams, control),
        MethodSpec::Sequential(_) => sequential::Sequential::publish(plan, input, table, streams, control),
        MethodSpec::Slicing(_) => slicing::SlicingMethod::publish(plan, input, table, streams, control),
    }
}

//! Schemas that have no type: the declarations of request documents in `spec`, or `schemas.json`, define them.

use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Makes the names of schemas usable in descriptions of routes and answers.
macro_rules! declared {
    ($($name:ident),+ $(,)?) => {$(
        #[doc = concat!("The schema `", stringify!($name), "`.")]
        pub(in crate::api) enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

declared! {
    DifferentialInferenceDocument,
    JobDocument,
    PartPage,
    PolicyDocument,
    PolicySpecification,
    PopulationDocument,
    PopulationStatementDocument,
    QueryDocument,
    VerificationForm,
    VerificationRequest,
}

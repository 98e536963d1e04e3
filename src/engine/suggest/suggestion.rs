//! The answer of a suggestion.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::Ref;

use crate::spec::ColumnRole;

/// A specification in which every column is placed, and why.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct Suggestion {
    /// The document of a job; on the command line without `dataset`.
    #[schema(schema_with = job_document)]
    pub specification: Value,
    /// Every column, in the order of the table.
    pub columns: Vec<SuggestedColumn>,
    /// What only a person can decide; the specification assumes an answer of each.
    pub questions: Vec<ColumnQuestion>,
    /// The column that identifies persons with several rows, whom the guarantees protect; null where each row is a person.
    pub subject: Option<SuggestedSubject>,
}

/// The schema of job documents, which their reader declares.
fn job_document() -> Ref {
    Ref::builder()
        .ref_location_from_schema_name("JobDocument")
        .description(Some("The document of a job; on the command line without `dataset`."))
        .build()
}

/// The place of a column in a suggestion.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SuggestedColumn {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub role: ColumnRole,
    /// Why, in one sentence. It has counts of the data, and no values.
    pub reason: String,
}

/// A question about a column; a request with the answer in `roles` settles it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ColumnQuestion {
    /// The name of the column.
    pub column: String,
    /// The question.
    pub question: String,
    /// The role that the specification assumes.
    pub assumed: ColumnRole,
    /// The roles to choose from.
    pub choices: Vec<ColumnRole>,
}

/// The persons whom the guarantees protect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SuggestedSubject {
    /// The column that identifies them.
    pub column: String,
    /// The most rows of one of them.
    pub max_rows: u64,
}

//! Which rows of a person are kept where the table had more.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// How the kept rows of a person were chosen among all of them, before anything else.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "ChoiceForm", into = "ChoiceForm")]
pub enum ContributionChoice {
    /// By a secret draw, whatever the rows hold.
    Random,
    /// Those with the smallest values of this column; a secret draw decides between equal ones.
    First(String),
}

impl ContributionChoice {
    /// The column by which rows were chosen, where one was.
    #[must_use]
    pub fn order(&self) -> Option<&str> {
        match self {
            Self::Random => None,
            Self::First(column) => Some(column),
        }
    }
}

impl fmt::Display for ContributionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("by a secret draw"),
            Self::First(column) => write!(f, "by the smallest {column}, and by a secret draw between equal ones"),
        }
    }
}

/// How the kept rows of a person were chosen among all of them, before anything else.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
enum ChoiceForm {
    Word(ChoiceTag),
    /// Those with the smallest values of a column.
    #[schema(title = "FirstContributions")]
    First {
        /// The column; a secret draw decides between equal values.
        first: String,
    },
}

/// By a secret draw, whatever the rows hold.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RandomContributions)]
enum ChoiceTag {
    Random,
}

impl From<ContributionChoice> for ChoiceForm {
    fn from(choice: ContributionChoice) -> Self {
        match choice {
            ContributionChoice::Random => Self::Word(ChoiceTag::Random),
            ContributionChoice::First(first) => Self::First { first },
        }
    }
}

impl From<ChoiceForm> for ContributionChoice {
    fn from(written: ChoiceForm) -> Self {
        match written {
            ChoiceForm::Word(ChoiceTag::Random) => Self::Random,
            ChoiceForm::First { first } => Self::First(first),
        }
    }
}

impl PartialSchema for ContributionChoice {
    fn schema() -> RefOr<Schema> {
        ChoiceForm::schema()
    }
}

impl ToSchema for ContributionChoice {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ChoiceForm::schemas(schemas);
    }
}

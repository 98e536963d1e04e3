//! Which rows of a person are kept where the table had more.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the kept rows of a person were chosen among all of them, before anything else.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
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

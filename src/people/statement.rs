//! Statements of authorized persons about whether tables speak of the same people.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// What a statement names: a population, or a table of which nothing else is known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// All persons of a population.
    Population(String),
    /// All persons of a dataset.
    Dataset(Uuid),
}

/// A text names no place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is neither population:NAME nor dataset:ID")]
pub struct PlaceError(pub String);

impl Place {
    /// Reads `population:NAME` or `dataset:ID`.
    ///
    /// # Errors
    /// If the text is neither.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let unreadable = || PlaceError(text.to_owned());
        match text.split_once(':').ok_or_else(unreadable)? {
            ("population", name) if !name.is_empty() => Ok(Self::Population(name.to_owned())),
            ("dataset", id) => id.parse().map(Self::Dataset).map_err(|_| unreadable()),
            _ => Err(unreadable()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Population(name) => write!(f, "population:{name}"),
            Self::Dataset(id) => write!(f, "dataset:{id}"),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// What is said of the people of two places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Separation {
    /// They have no person in common.
    Disjoint,
    /// Two tables are alike, and yet of other people.
    Others,
}

/// A statement about two places. It is never taken back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeparationStatement {
    /// Its id.
    pub id: Uuid,
    /// What it says.
    pub kind: Separation,
    /// Of which places, the lower one first.
    pub of: [Place; 2],
    /// Why, in the words of who made it.
    pub reason: String,
    /// Who made it, as in the audit log; none without authentication, and from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

impl SeparationStatement {
    /// Of two different places; `None` if they are one.
    #[must_use]
    pub fn new(id: Uuid, kind: Separation, places: [Place; 2], reason: String) -> Option<Self> {
        let [first, second] = places;
        let of = match first.cmp(&second) {
            std::cmp::Ordering::Less => [first, second],
            std::cmp::Ordering::Greater => [second, first],
            std::cmp::Ordering::Equal => return None,
        };
        Some(Self { id, kind, of, reason, actor: None })
    }

    /// The same, made by somebody.
    #[must_use]
    pub fn by(self, actor: Option<String>) -> Self {
        Self { actor, ..self }
    }
}

/// The first statement of a kind between a place of the one and a place of the other.
pub(super) fn find<'a>(
    statements: &'a [SeparationStatement],
    kind: Separation,
    own: &BTreeSet<Place>,
    theirs: &BTreeSet<Place>,
) -> Option<&'a SeparationStatement> {
    statements.iter().find(|statement| {
        let [a, b] = &statement.of;
        let links = own.contains(a) && theirs.contains(b) || own.contains(b) && theirs.contains(a);
        statement.kind == kind && links
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["population:clinic", "population:a:b", "dataset:018f0000-0000-7000-8000-000000000001"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
        for text in ["clinic", "population:", "dataset:7", "table:x", ""] {
            assert!(Place::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_statement_links_places_in_both_directions() {
        let place = |name: &str| Place::Population(name.to_owned());
        let statement =
            |a, b| SeparationStatement::new(Uuid::nil(), Separation::Disjoint, [place(a), place(b)], String::new());
        assert_eq!(statement("x", "x"), None);
        assert_eq!(statement("y", "x"), statement("x", "y"));
        let statements = [statement("x", "y").unwrap()];
        let found = |own: &[&str], theirs: &[&str], kind| {
            let places = |names: &[&str]| names.iter().map(|name| place(name)).collect();
            find(&statements, kind, &places(own), &places(theirs)).is_some()
        };
        assert!(found(&["x"], &["z", "y"], Separation::Disjoint) && found(&["y"], &["x"], Separation::Disjoint));
        assert!(!found(&["x"], &["y"], Separation::Others) && !found(&["x", "y"], &["z"], Separation::Disjoint));
    }
}

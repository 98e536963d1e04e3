//! Populations, key systems, and which of them an upload has.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::collect::KeyLayout;
use super::fold::Fold;
use super::keys::SystemColumns;

/// A way to identify persons. It never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeySystem {
    /// The number of its components.
    pub components: usize,
    /// How they are folded.
    pub fold: Fold,
}

/// A key system of a population, with the columns that have it unless an upload names others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PopulationKey {
    /// The name of the key system.
    pub key_system: String,
    /// A column for each component.
    pub columns: Vec<String>,
    /// How they are folded.
    #[serde(default)]
    pub fold: Fold,
}

/// A named set of persons.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// What it is.
    #[serde(default)]
    pub description: String,
    /// The key systems that identify its members; none of a keyless population.
    #[serde(default)]
    pub person: Vec<PopulationKey>,
    /// How many rows a person may have in an upload that does not say.
    #[serde(default = "one_row")]
    pub max_rows_per_person: u64,
    /// What is fixed for all of its releases, if its members are published again and again.
    #[serde(
        default,
        alias = "is_republished",
        deserialize_with = "declared_republication",
        skip_serializing_if = "Option::is_none"
    )]
    pub republication: Option<Value>,
}

/// What is declared of republication. Earlier versions wrote `false`.
fn declared_republication<'de, D: Deserializer<'de>>(declared: D) -> Result<Option<Value>, D::Error> {
    let declared = Option::<Value>::deserialize(declared)?;
    Ok(declared.filter(|declared| *declared != Value::Bool(false)))
}

const fn one_row() -> u64 {
    1
}

/// The populations and key systems of a tenant.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PopulationRegistry {
    /// By name.
    pub systems: BTreeMap<String, KeySystem>,
    /// By name.
    pub populations: BTreeMap<String, Population>,
}

/// Why a population is not as it is asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PopulationError {
    /// A key system would change.
    #[error("the key system {0:?} has other components or another fold")]
    SystemChanged(String),
    /// Something of the population is published.
    #[error("tables of the population are published: its key systems may only be extended at their end")]
    PopulationChanged,
    /// Something of the population is published under other terms of republication.
    #[error("tables of the population are published: what was declared of its republication stays")]
    RepublicationChanged,
    /// The same key system twice.
    #[error("the key system {0:?} is named twice")]
    SystemTwice(String),
    /// A key system without columns, or with one column twice.
    #[error("the key system {0:?} needs a column for each component, each once")]
    Columns(String),
    /// Of a limit of rows that no upload keeps.
    #[error("a person has at least one row")]
    NoRows,
}

/// Which columns of an upload identify persons, as the upload says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PersonColumns {
    /// Nothing: the columns of the population.
    Inherited,
    /// None.
    Keyless,
    /// The columns of some key systems; without a name, of the only one.
    Columns(Vec<NamedColumns>),
}

/// The columns of a key system, as an upload names them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedColumns {
    /// The key system; `None` is the only one of the population.
    pub system: Option<String>,
    /// A column for each component.
    pub columns: Vec<String>,
}

impl PersonColumns {
    /// Reads the parameter `person` of an upload: `none`, or per key system `columns` or `name:columns`, with `+`
    /// between columns and `,` between key systems.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text == "none" {
            return Self::Keyless;
        }
        let system = |part: &str| {
            let (system, columns) = part.split_once(':').map_or((None, part), |(name, rest)| (Some(name), rest));
            NamedColumns { system: system.map(str::to_owned), columns: columns.split('+').map(str::to_owned).collect() }
        };
        Self::Columns(text.split(',').map(system).collect())
    }
}

/// Why an upload's persons cannot be identified as it says.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UploadPersonError {
    /// Key columns without a population.
    #[error("person needs a population")]
    NoPopulation,
    /// There is no such population.
    #[error("there is no population {0:?}")]
    UnknownPopulation(String),
    /// The population has no such key system.
    #[error("the population has no key system {0:?} with these components")]
    UnknownSystem(String),
    /// A key system has columns twice.
    #[error("the key system {0:?} is named twice")]
    SystemTwice(String),
    /// The file lacks columns.
    #[error("the file has no column {0:?}")]
    MissingColumns(Vec<String>),
}

impl PopulationRegistry {
    /// Defines a population, or defines it again; `is_live` says whether releases of it are live.
    ///
    /// # Errors
    /// If it is not whole, or changes what must stay.
    pub fn define(&mut self, name: &str, population: Population, is_live: bool) -> Result<(), PopulationError> {
        if population.max_rows_per_person == 0 {
            return Err(PopulationError::NoRows);
        }
        let mut named = BTreeSet::new();
        for key in &population.person {
            let columns: BTreeSet<&String> = key.columns.iter().collect();
            if key.columns.is_empty() || columns.len() < key.columns.len() {
                return Err(PopulationError::Columns(key.key_system.clone()));
            }
            if !named.insert(&key.key_system) {
                return Err(PopulationError::SystemTwice(key.key_system.clone()));
            }
            let system = KeySystem { components: key.columns.len(), fold: key.fold };
            if self.systems.get(&key.key_system).is_some_and(|known| *known != system) {
                return Err(PopulationError::SystemChanged(key.key_system.clone()));
            }
        }
        let published = self.populations.get(name).filter(|_| is_live);
        if published.is_some_and(|published| published.republication != population.republication) {
            return Err(PopulationError::RepublicationChanged);
        }
        let earlier = published.map_or(&[][..], |published| &published.person);
        let systems = |keys: &[PopulationKey]| keys.iter().map(|key| key.key_system.clone()).collect::<Vec<_>>();
        if !systems(&population.person).starts_with(&systems(earlier)) {
            return Err(PopulationError::PopulationChanged);
        }
        for key in &population.person {
            let system = KeySystem { components: key.columns.len(), fold: key.fold };
            self.systems.insert(key.key_system.clone(), system);
        }
        self.populations.insert(name.to_owned(), population);
        Ok(())
    }

    /// The layout of an upload with these columns.
    ///
    /// # Errors
    /// If there is no such population or key system, or the file lacks its columns.
    pub fn layout(
        &self,
        population: Option<&str>,
        person: &PersonColumns,
        names: &[String],
    ) -> Result<Vec<SystemColumns>, UploadPersonError> {
        let Some(name) = population else {
            return match person {
                PersonColumns::Columns(_) => Err(UploadPersonError::NoPopulation),
                PersonColumns::Inherited | PersonColumns::Keyless => Ok(Vec::new()),
            };
        };
        let unknown = || UploadPersonError::UnknownPopulation(name.to_owned());
        let population = self.populations.get(name).ok_or_else(unknown)?;
        match person {
            PersonColumns::Keyless => Ok(Vec::new()),
            PersonColumns::Inherited => inherited(population, names),
            PersonColumns::Columns(columns) => {
                let mut found: Vec<SystemColumns> = Vec::with_capacity(columns.len());
                for columns in columns {
                    let system = named(population, columns, names)?;
                    if found.iter().any(|of| of.system == system.system) {
                        return Err(UploadPersonError::SystemTwice(system.system));
                    }
                    found.push(system);
                }
                Ok(found)
            }
        }
    }
}

/// All key systems of which all columns are in the file.
fn inherited(population: &Population, names: &[String]) -> Result<Vec<SystemColumns>, UploadPersonError> {
    let found: Vec<SystemColumns> =
        population.person.iter().filter_map(|key| columns_of(key, &key.columns, names).ok()).collect();
    if found.is_empty() && !population.person.is_empty() {
        let columns = population.person.iter().flat_map(|key| key.columns.iter().cloned());
        return Err(UploadPersonError::MissingColumns(columns.collect()));
    }
    Ok(found)
}

/// The key system that an upload names, with the upload's columns.
fn named(
    population: &Population,
    columns: &NamedColumns,
    names: &[String],
) -> Result<SystemColumns, UploadPersonError> {
    let key = match (&columns.system, &population.person[..]) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(system), keys) => keys.iter().find(|key| key.key_system == *system),
    };
    let unknown = || UploadPersonError::UnknownSystem(columns.system.clone().unwrap_or_default());
    let key = key.ok_or_else(unknown)?;
    columns_of(key, &columns.with_parts(key.columns.len()).ok_or_else(unknown)?, names)
}

impl NamedColumns {
    /// The columns, if there are as many. A plus sign that a client did not escape arrives as a space.
    fn with_parts(&self, parts: usize) -> Option<Vec<String>> {
        let spaced = || self.columns.iter().flat_map(|column| column.split(' ')).map(str::to_owned).collect::<Vec<_>>();
        let columns = if self.columns.len() == parts { self.columns.clone() } else { spaced() };
        (columns.len() == parts).then_some(columns)
    }
}

fn columns_of(key: &PopulationKey, columns: &[String], names: &[String]) -> Result<SystemColumns, UploadPersonError> {
    let place = |column: &String| names.iter().position(|name| name == column);
    let missing: Vec<String> = columns.iter().filter(|column| place(column).is_none()).cloned().collect();
    if !missing.is_empty() {
        return Err(UploadPersonError::MissingColumns(missing));
    }
    Ok(SystemColumns {
        system: key.key_system.clone(),
        fold: key.fold,
        columns: columns.iter().filter_map(place).collect(),
    })
}

impl KeyLayout {
    /// Of an undeclared table.
    #[must_use]
    pub const fn undeclared(names: Vec<String>) -> Self {
        Self { names, systems: Vec::new(), record_key: Vec::new(), max_rows_per_person: 1 }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(system: &str, columns: &[&str]) -> PopulationKey {
        PopulationKey {
            key_system: system.to_owned(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            fold: Fold::Standard,
        }
    }

    fn population(person: Vec<PopulationKey>) -> Population {
        Population { description: String::new(), person, max_rows_per_person: 1, republication: None }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_published_population_only_grows_at_its_end() {
        let mut registry = PopulationRegistry::default();
        let (old, new) = (key("old", &["o"]), key("new", &["n"]));
        registry.define("clinic", population(vec![old.clone()]), false).unwrap();
        registry.define("clinic", population(vec![new.clone()]), false).unwrap();
        let turned = population(vec![old.clone(), new.clone()]);
        assert_eq!(registry.define("clinic", turned.clone(), true), Err(PopulationError::PopulationChanged));
        registry.define("clinic", population(vec![new, old]), true).unwrap();
        let wider = population(vec![key("old", &["o", "p"])]);
        assert_eq!(registry.define("other", wider, false), Err(PopulationError::SystemChanged("old".to_owned())));
        for wrong in [vec![key("a", &[])], vec![key("a", &["x", "x"])], vec![key("a", &["x"]), key("a", &["y"])]] {
            assert!(registry.define("other", population(wrong), false).is_err());
        }
        assert!(!registry.populations.contains_key("other") && !registry.systems.contains_key("a"));
    }

    #[test]
    fn terms_of_republication_stay_once_something_is_published() {
        let mut registry = PopulationRegistry::default();
        let terms = |l: u64| Population { republication: Some(json!({"l": l})), ..population(vec![key("k", &["k"])]) };
        registry.define("clinic", terms(2), false).unwrap();
        registry.define("clinic", terms(3), false).unwrap();
        registry.define("clinic", terms(3), true).unwrap();
        let none = population(vec![key("k", &["k"])]);
        for other in [terms(4), none.clone()] {
            assert_eq!(registry.define("clinic", other, true), Err(PopulationError::RepublicationChanged));
        }
        registry.define("wards", none, false).unwrap();
        assert_eq!(registry.define("wards", terms(3), true), Err(PopulationError::RepublicationChanged));
        assert_eq!(registry.populations["clinic"], terms(3));
    }

    #[test]
    fn populations_of_earlier_versions_are_read() {
        let read = |text: Value| serde_json::from_value::<Population>(text);
        let (plain, terms) = (population(Vec::new()), json!({"l": 3}));
        assert_eq!(read(json!({"is_republished": false})).unwrap(), plain);
        assert_eq!(read(json!({"republication": null})).unwrap(), plain);
        assert_eq!(read(json!({"republication": terms})).unwrap().republication, Some(terms));
        assert!(read(json!({"republications": null})).is_err());
        let written = serde_json::to_value(&plain).unwrap();
        assert!(!written.as_object().unwrap().contains_key("republication"), "{written}");
        assert_eq!(read(written).unwrap(), plain);
    }

    #[test]
    fn uploads_name_columns_of_key_systems() {
        let mut registry = PopulationRegistry::default();
        registry.define("clinic", population(vec![key("name", &["first", "last"])]), false).unwrap();
        registry.define("staff", population(vec![key("no", &["no"]), key("name", &["first", "last"])]), false).unwrap();
        let columns = |population: &str, person: &str, file: &[&str]| {
            let person = if person.is_empty() { PersonColumns::Inherited } else { PersonColumns::parse(person) };
            let found = registry.layout(Some(population), &person, &names(file));
            found.map(|systems| systems.into_iter().map(|of| (of.system, of.columns)).collect::<Vec<_>>())
        };
        let by_name = |columns: &[usize]| Ok(vec![("name".to_owned(), columns.to_vec())]);
        assert_eq!(columns("clinic", "", &["last", "first"]), by_name(&[1, 0]));
        assert_eq!(columns("clinic", "prenom+nom", &["nom", "prenom"]), by_name(&[1, 0]));
        assert_eq!(columns("staff", "name:a+b", &["a", "b"]), by_name(&[0, 1]));
        assert_eq!(columns("staff", "", &["first", "last", "age"]), by_name(&[0, 1]));
        assert_eq!(columns("clinic", "prenom nom", &["nom", "prenom"]), by_name(&[1, 0]));
        assert_eq!(columns("clinic", "first name+nom", &["nom", "first name"]), by_name(&[1, 0]));
        assert_eq!(columns("clinic", "none", &["first"]), Ok(vec![]));
        for (place, person) in [("staff", "a+b"), ("clinic", "a"), ("clinic", "no:a")] {
            assert!(
                matches!(columns(place, person, &["a", "b"]), Err(UploadPersonError::UnknownSystem(_))),
                "{person}"
            );
        }
        assert_eq!(
            columns("clinic", "", &["first"]),
            Err(UploadPersonError::MissingColumns(names(&["first", "last"])))
        );
        assert_eq!(columns("clinic", "a+b", &["a"]), Err(UploadPersonError::MissingColumns(names(&["b"]))));
        let twice = Err(UploadPersonError::SystemTwice("no".to_owned()));
        assert_eq!(columns("staff", "no:a,no:b", &["a", "b"]), twice);
        let typo = UploadPersonError::UnknownPopulation("clinc".to_owned());
        assert_eq!(columns("clinc", "", &["first"]), Err(typo));
        let alone = registry.layout(None, &PersonColumns::parse("id"), &names(&["id"]));
        assert_eq!(alone, Err(UploadPersonError::NoPopulation));
    }
}

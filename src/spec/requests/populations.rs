//! The documents of populations, and of statements about them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::microdata::{is_composed, is_shown};
use crate::problem::{Fault, Kind};
use crate::spec::grammar::document::{
    Array, DatasetColumns, Document, Given, Id, Int, Member, MemberContext, ObjectMap, Reason, SchemaMap, choice,
    define_as, document, reference, scalar,
};
use crate::spec::grammar::reader::{FaultList, child};
use crate::spec::grammar::republish::{RepublishMembers, RepublishSpec};

/// Most places of one list, and most names of attributes.
const MAX_PLACES: usize = 1_000;

/// Most key systems of a population, and most components of one.
const MAX_KEYS: usize = 16;

/// The form of a population's name, as faults describe it.
pub const POPULATION_NAME: &str = "1 to 500 characters that are all shown, composed (NFC), not \"all\", without \
                                   white space at its ends, and not beginning with population: or dataset:";

const PLACES: &str = "\"all\", or an array of 1 to 1000 names of populations, or dataset:ID";

const COLUMNS: &str = "an array of 1 to 16 names of columns, each once";

const SYSTEMS: &str = "an array of at most 16 key systems";

const NEW: &str = "an array of at most 1000 names of attributes";

/// Whether a population can have this name; what a name begins with says what a place is.
#[must_use]
pub fn is_population_name(name: &str) -> bool {
    let is_reserved = name == "all" || name.starts_with("population:") || name.starts_with("dataset:");
    is_plain(name, 500) && is_composed(name) && name.trim() == name && !is_reserved
}

fn is_plain(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.chars().count()) && is_shown(text)
}

/// What a list of places names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NamedPlace {
    /// A population.
    Population(String),
    /// A dataset.
    Dataset(Uuid),
}

impl NamedPlace {
    fn parse(text: &str) -> Option<Self> {
        if let Some(id) = text.strip_prefix("dataset:") {
            return Id::parse(&id.into()).map(|id| Self::Dataset(id.0));
        }
        let name = text.strip_prefix("population:").unwrap_or(text);
        is_plain(name, 500).then(|| Self::Population(name.to_owned()))
    }
}

/// The places that a statement says have no person in common with a population.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DisjointPlaces {
    /// All that there are.
    All,
    /// These, in the order of the document.
    Named(Vec<NamedPlace>),
}

impl Member for DisjointPlaces {
    fn allowed() -> String {
        PLACES.to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        if value == "all" {
            return Some(Self::All);
        }
        let list = value.as_array().filter(|list| (1..=MAX_PLACES).contains(&list.len()));
        let Some(list) = list else { return context.refuse() };
        let mut places = Vec::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            let place = item.as_str().and_then(NamedPlace::parse);
            let mut item = context.item(index, "the name of a population, or dataset:ID".to_owned());
            places.push(place.or_else(|| item.refuse()));
        }
        places.into_iter().collect::<Option<_>>().map(Self::Named)
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        match self {
            Self::All => "all".into(),
            Self::Named(places) => places.iter().map(NamedPlace::to_json).collect(),
        }
    }

    fn schema() -> Value {
        reference("DisjointPlaces")
    }

    fn define(schemas: &mut SchemaMap) {
        let schema = json!({
            "description": "Places without a person in common: names of populations, or `dataset:ID` of tables. `all` is every \
                            population and every published table without a population that there is now.",
            "oneOf": [
                {"type": "string", "const": "all"},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": MAX_PLACES},
            ],
        });
        define_as("DisjointPlaces", schema, schemas);
    }
}

impl NamedPlace {
    fn to_json(&self) -> Value {
        match self {
            Self::Population(name) => format!("population:{name}").into(),
            Self::Dataset(id) => format!("dataset:{id}").into(),
        }
    }
}

choice! {
    /// How the keys of a key system are spelled alike. `standard`: the form of Unicode, invisible characters, case, white
    /// space, dates and numbers do not count. `alphanumeric`: of that, letters and digits. `digits`: of that, digits.
    /// `exact`: only the form of Unicode does not count.
    pub enum PersonFold as "PersonFold" {
        /// Spellings of one text, date or number are one.
        Standard = "standard",
        /// Only letters and digits count.
        Alphanumeric = "alphanumeric",
        /// Only digits count.
        Digits = "digits",
        /// Nearly all characters count.
        Exact = "exact",
    }
}

/// The name of a key system; uploads name it in a parameter that ends it with one of three characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::spec) struct KeySystemName(String);

scalar! {
    KeySystemName: "a name of 1 to 100 composed (NFC) characters without ':', ',', '+' and control characters, and not \"none\"",
    |value| value.as_str().filter(|name| is_key_system(name)).map(|name| Self(name.to_owned())),
    |name| name.0.as_str().into(),
    {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[^:,+\\u0000-\\u001f]+$"}
}

fn is_key_system(name: &str) -> bool {
    is_plain(name, 100) && is_composed(name) && name.trim() == name && !name.contains([':', ',', '+']) && name != "none"
}

/// A name of a column or attribute.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::spec) struct NameText(String);

scalar! {
    NameText: "a name of 1 to 500 characters",
    |value| value.as_str().filter(|name| is_name(name)).map(|name| Self(name.to_owned())),
    |name| name.0.as_str().into(),
    {"type": "string", "minLength": 1, "maxLength": 500}
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && name.chars().count() <= 500 && is_shown(name)
}

/// Words for readers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::spec) struct Words(String);

scalar! {
    Words: "a text of at most 500 characters",
    |value| value.as_str().filter(|text| text.chars().count() <= 500 && !text.contains('\0')).map(|text| Self(text.to_owned())),
    |words| words.0.as_str().into(),
    {"type": "string", "maxLength": 500}
}

document! {
    /// A key system of a population, with the columns that have it unless an upload names others.
    PersonKeyMembers as "PersonKey" {
        /// Its name, unique in the tenant. Keys of different key systems are never compared.
        required key_system: KeySystemName,
        /// A column for each component.
        required columns: Array<NameText, 1, MAX_KEYS> => COLUMNS,
        /// By default `standard`.
        optional fold: PersonFold,
    }
}

document! {
    /// What a population is to be.
    PopulationMembers as "PopulationDocument" {
        /// What it is, in at most 500 characters.
        optional description: Words,
        /// The key systems that identify its persons; none of a population without keys. Once a table of it is published,
        /// key systems are only added at the end.
        optional person: Array<PersonKeyMembers, 0, MAX_KEYS> => SYSTEMS,
        /// How many rows a person may have in an upload that does not say; by default 1.
        optional max_rows_per_person: Int<1, 1_000_000>,
        /// Where none of its persons is. Each place is a statement, which is never taken back.
        optional disjoint_from: DisjointPlaces,
        /// Why, in 1 to 500 characters; with `disjoint_from` alone.
        optional reason: Reason,
        /// The terms under which its table is published night after night; without them, each person is published once. Persons are
        /// known by one key system. Once a table of the population is published, the terms stay.
        optional republication: RepublishMembers,
    }
}

document! {
    /// Two tables that are alike, and yet of other people.
    OthersMembers as "OtherPeople" {
        /// A dataset.
        required dataset: Id => "the id of a dataset",
        /// Another dataset.
        required than: Id => "the id of a dataset",
    }
}

document! {
    /// Statements about a population with one reason. State at least one; none is ever taken back.
    StatementMembers as "PopulationStatementDocument" {
        /// Why, in 1 to 500 characters.
        required reason: Reason,
        /// Where none of its persons is.
        optional disjoint_from: DisjointPlaces,
        /// Two tables that are alike, and yet of other people.
        optional others: OthersMembers,
        /// External tables.
        optional tables: Tables,
        /// Aliases of attributes.
        optional aliases: Aliases,
        /// Computed attributes, each with the attributes that determine it.
        optional functions: Functions,
        /// New attributes, which no earlier table has under another name.
        optional new: Array<NameText, 0, MAX_PLACES> => NEW,
    }
}

/// External tables as the document has them.
#[derive(Clone, Debug)]
pub(in crate::spec) struct Tables(Value);

scalar! {
    Tables: "an array of at most 1000 tables",
    |value| value.as_array().filter(|list| list.len() <= MAX_PLACES).map(|list| Self(list.clone().into())),
    |tables| tables.0.clone(),
    {"type": "array", "items": {"$ref": "#/components/schemas/TableDocument"}, "maxItems": 1000}
}

/// Aliases as the document has them.
#[derive(Clone, Debug)]
pub(in crate::spec) struct Aliases(ObjectMap);

impl Member for Aliases {
    fn allowed() -> String {
        "an object of names, each with the attribute that it names".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let map = value.as_object().filter(|map| map.values().all(Value::is_string));
        map.cloned().map(Self).or_else(|| context.refuse())
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.clone().into()
    }

    fn schema() -> Value {
        reference("AttributeAliases")
    }

    fn define(schemas: &mut SchemaMap) {
        let schema = json!({
            "type": "object",
            "description": "Other names, each with the attribute that it names.",
            "additionalProperties": {"type": "string"},
        });
        schemas.insert("AttributeAliases".to_owned(), schema);
    }
}

/// Functions as the document has them.
#[derive(Clone, Debug)]
pub(in crate::spec) struct Functions(ObjectMap);

impl Member for Functions {
    fn allowed() -> String {
        "an object of names, each with an array of the attributes that determine it".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let map = value.as_object().filter(|map| map.values().all(is_list_of_texts));
        map.cloned().map(Self).or_else(|| context.refuse())
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.clone().into()
    }

    fn schema() -> Value {
        reference("AttributeFunctions")
    }

    fn define(schemas: &mut SchemaMap) {
        let schema = json!({
            "type": "object",
            "description": "Computed attributes, each with the attributes that determine it.",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        });
        schemas.insert("AttributeFunctions".to_owned(), schema);
    }
}

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

/// A key system as a population is asked to have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersonKeyRequest {
    /// Its name.
    pub key_system: String,
    /// A column for each component.
    pub columns: Vec<String>,
    /// How its keys are folded.
    pub fold: PersonFold,
}

/// A population as it is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PopulationRequest {
    /// What it is.
    pub description: String,
    /// Its key systems.
    pub person: Vec<PersonKeyRequest>,
    /// How many rows a person may have in an upload that does not say.
    pub max_rows_per_person: u64,
    /// Where none of its persons is.
    pub disjoint_from: Option<DisjointPlaces>,
    /// Why; empty without such places.
    pub reason: String,
    /// The terms under which its table is published night after night.
    pub republication: Option<RepublishSpec>,
}

/// Statements about a population.
#[derive(Clone, PartialEq, Debug)]
pub struct PopulationStatements {
    /// Why.
    pub reason: String,
    /// Where none of its persons is.
    pub disjoint_from: Option<DisjointPlaces>,
    /// Two datasets that are alike and of other people.
    pub others: Option<[Uuid; 2]>,
    /// What is said of attributes, as the document of a statement about a series; none if nothing is.
    pub attributes: Option<Value>,
}

/// Reads the document of a population.
///
/// # Errors
/// Every fault of the document, with its pointer.
pub fn read_population(document: &Value) -> Result<PopulationRequest, Vec<Fault>> {
    PopulationMembers::read_document(document, &DatasetColumns::default(), |members, faults| {
        let names_places = members.disjoint_from.value.is_some() || members.disjoint_from.is_faulty;
        let has_reason = members.reason.value.is_some() || members.reason.is_faulty;
        if names_places && !has_reason {
            faults.range(members.at("reason"), "a reason of 1 to 500 characters, as disjoint_from is a statement");
        } else if has_reason && !names_places {
            faults.range(members.at("reason"), "nothing, or disjoint_from too, whose reason it is");
        }
        let person = person(&members.person, faults);
        check_republication(&members, faults);
        Some(PopulationRequest {
            description: members.description.value.map(|words| words.0).unwrap_or_default(),
            person,
            max_rows_per_person: members.max_rows_per_person.value.map_or(1, |rows| rows.0),
            disjoint_from: members.disjoint_from.value,
            reason: members.reason.value.map(|reason| reason.0).unwrap_or_default(),
            republication: members.republication.value.as_ref().map(RepublishSpec::from),
        })
    })
}

/// A table that is published night after night has one row of each person, who is known by a key.
fn check_republication(members: &PopulationMembers, faults: &mut FaultList) {
    if members.republication.value.is_none() {
        return;
    }
    let systems = members.person.value.iter().flat_map(Array::values).count();
    if systems > 1 {
        let detail = "a person who has another key of one system and the same of the other would be known and new at once: name one \
                      key system";
        faults.push(Fault::new(members.at("person"), Kind::RepublishUnsupported, detail));
    }
    if systems == 0 && !members.person.is_faulty {
        let detail = "persons are known from night to night by their key: name a key system in person";
        faults.push(Fault::new(members.at("republication"), Kind::RepublishNeedsRecordKey, detail));
    }
    if members.max_rows_per_person.value.is_some_and(|rows| rows.0 > 1) {
        let detail = "a republished table has one row of each person: leave out max_rows_per_person";
        faults.push(Fault::new(members.at("max_rows_per_person"), Kind::RepublishUnsupported, detail));
    }
}

/// The key systems, each once and with columns.
fn person(given: &Given<Array<PersonKeyMembers, 0, MAX_KEYS>>, faults: &mut FaultList) -> Vec<PersonKeyRequest> {
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let mut keys = Vec::new();
    for members in given.value.iter().flat_map(Array::values) {
        let columns: Vec<&str> =
            members.columns.value.iter().flat_map(Array::values).map(|name| name.0.as_str()).collect();
        let each: BTreeSet<&&str> = columns.iter().collect();
        let is_empty = members.columns.value.as_ref().is_some_and(Array::is_empty);
        if is_empty || each.len() < columns.len() {
            faults.range(members.at("columns"), COLUMNS);
        }
        let Some(KeySystemName(name)) = &members.key_system.value else { continue };
        if !named.insert(name) {
            let detail = format!("the key system {name} is named twice: name it once, with all its columns");
            faults.push(Fault::new(members.at("key_system"), Kind::ParameterRange, detail));
        }
        keys.push(PersonKeyRequest {
            key_system: name.clone(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            fold: members.fold.value.unwrap_or(PersonFold::Standard),
        });
    }
    keys
}

/// Reads the document of statements about a population.
///
/// # Errors
/// Every fault of the document, with its pointer.
pub fn read_population_statements(document: &Value) -> Result<PopulationStatements, Vec<Fault>> {
    StatementMembers::read_document(document, &DatasetColumns::default(), |members, faults| {
        let others = members.others.value.as_ref();
        let ids = others.and_then(|others| Some([others.dataset.value?.0, others.than.value?.0]));
        if let (Some(others), Some([dataset, than])) = (others, ids)
            && dataset == than
        {
            faults.range(others.at("than"), "another dataset than the first");
        }
        let attributes = attributes(&members, faults);
        let is_empty = ids.is_none() && attributes.is_none() && members.disjoint_from.value.is_none();
        if is_empty && faults.is_empty() {
            let all = "at least one of disjoint_from, others, tables, aliases, functions and new";
            faults.range(members.pointer.as_str(), all);
        }
        let reason = members.reason.value?.0;
        Some(PopulationStatements { reason, disjoint_from: members.disjoint_from.value, others: ids, attributes })
    })
}

/// The document of a statement about attributes. A new attribute is an alias of itself.
fn attributes(members: &StatementMembers, faults: &mut FaultList) -> Option<Value> {
    let mut aliases = members.aliases.value.as_ref().map(|aliases| aliases.0.clone()).unwrap_or_default();
    for (index, name) in members.new.items().iter().enumerate() {
        let Some(NameText(name)) = &name.value else { continue };
        if aliases.get(name).is_some_and(|of| of.as_str() != Some(name)) {
            let pointer = child(&members.at("new"), &index.to_string());
            faults.range(pointer, "a name that aliases does not name");
        }
        aliases.insert(name.clone(), name.as_str().into());
    }
    let tables = members.tables.value.as_ref().map_or_else(|| json!([]), |tables| tables.0.clone());
    let functions = members.functions.value.as_ref().map(|functions| functions.0.clone()).unwrap_or_default();
    if tables == json!([]) && aliases.is_empty() && functions.is_empty() {
        return None;
    }
    let reason = members.reason.value.as_ref().map(|reason| reason.0.as_str());
    Some(json!({"reason": reason, "tables": tables, "aliases": aliases, "functions": functions}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(found: Vec<Fault>) -> Vec<String> {
        found.into_iter().map(|fault| fault.pointer).collect()
    }

    #[test]
    fn every_fault_of_a_population_is_named() {
        let faulty = json!({"description": "x".repeat(501), "max_rows_per_person": 0, "disjoint_from": ["a", "dataset:7"],
            "person": [{"key_system": "a:b", "columns": ["x", "x"]}, {"key_system": "k", "columns": []},
                {"key_system": "k", "columns": ["y"], "fold": "none", "surprise": 1}]});
        let expected = [
            "/description",
            "/disjoint_from/1",
            "/max_rows_per_person",
            "/person/0/columns",
            "/person/0/key_system",
            "/person/1/columns",
            "/person/2/fold",
            "/person/2/key_system",
            "/person/2/surprise",
            "/reason",
        ];
        assert_eq!(faults(read_population(&faulty).unwrap_err()), expected);
        let alone = json!({"reason": "x", "max_rows_per_person": 2, "republication": {"grace": -1}});
        let expected = ["/max_rows_per_person", "/reason", "/republication", "/republication/grace"];
        assert_eq!(faults(read_population(&alone).unwrap_err()), expected);
        let keyless = json!({"max_rows_per_person": 2, "republication": {}});
        assert_eq!(faults(read_population(&keyless).unwrap_err()), ["/max_rows_per_person", "/republication"]);
    }

    #[test]
    fn a_population_is_read_with_defaults() {
        let read = read_population(&json!({"person": [{"key_system": "patient", "columns": ["p"]}],
            "disjoint_from": ["births", "population:births", "dataset:018f0000-0000-7000-8000-000000000001"],
            "reason": "others"}))
        .unwrap();
        assert_eq!((read.max_rows_per_person, read.person[0].fold), (1, PersonFold::Standard));
        let births = NamedPlace::Population("births".to_owned());
        let Some(DisjointPlaces::Named(places)) = read.disjoint_from else { panic!("no places") };
        assert!(places[..2] == [births.clone(), births] && matches!(places[2], NamedPlace::Dataset(_)));
        let all = read_population(&json!({"disjoint_from": "all", "reason": "x"})).unwrap();
        assert_eq!(all.disjoint_from, Some(DisjointPlaces::All));
        assert!(read_population(&json!({})).unwrap().person.is_empty());
    }

    #[test]
    fn statements_name_at_least_one_thing() {
        let pointers = |document: Value| faults(read_population_statements(&document).unwrap_err());
        assert_eq!(pointers(json!({"reason": "x", "tables": [], "new": []})), [""]);
        assert_eq!(pointers(json!({"new": ["a"]})), ["/reason"]);
        assert_eq!(pointers(json!({"reason": "x", "new": ["a", 7], "aliases": {"a": "b"}})), ["/new/0", "/new/1"]);
        let id = "018f0000-0000-7000-8000-000000000001";
        assert_eq!(pointers(json!({"reason": "x", "others": {"dataset": id, "than": id}})), ["/others/than"]);
        let read =
            read_population_statements(&json!({"reason": "x", "new": ["dx"], "functions": {"b": ["a"]}})).unwrap();
        let attributes = json!({"reason": "x", "tables": [], "aliases": {"dx": "dx"}, "functions": {"b": ["a"]}});
        assert_eq!(read.attributes, Some(attributes));
    }

    #[test]
    fn names_of_populations_are_no_places() {
        assert!(is_population_name("clinic a:b") && is_population_name(&"x".repeat(500)));
        assert!(is_population_name("\u{e9}") && is_population_name("日付"));
        // they look like another name: an accent of its own, and the sign of the unit kelvin
        assert!(!is_population_name("e\u{301}") && !is_population_name("\u{212a}"));
        for name in ["", "all", "dataset:x", "population:x", " x", "x\0", "a\nb", &"x".repeat(501)] {
            assert!(!is_population_name(name), "{name:?}");
        }
    }
}

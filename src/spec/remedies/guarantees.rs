//! Candidates for guarantees: what the data can hold.

use serde_json::{Map, Value, json};

use super::candidate::{Candidate, parted};
use crate::problem::Fault;
use crate::spec::grammar::reader::child;
use crate::spec::grammar::shorthand;
use crate::spec::offered::{OFFERED_K, OFFERED_PERCENTS, OfferedGuarantee};

/// The weakest guarantee that protects.
pub(super) fn of_vacuous(fault: &Fault, value: Option<&Value>) -> Vec<Candidate> {
    let (pointer, number) = (&fault.pointer, value.and_then(Value::as_f64));
    let is_share = pointer.ends_with("/h");
    let share = is_share.then(|| Candidate::replace("ask for a share of at most 1/2", pointer, "1/2"));
    let is_one = !is_share && number.is_some_and(|number| number < 2.0);
    is_one.then(|| Candidate::replace("ask for 2", pointer, 2)).into_iter().chain(share).collect()
}

/// The largest l that the data can hold; where there is none, a distance from the table, or the smallest share.
pub(super) fn of_ineligible(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let Some(place) = GuaranteePlace::find(&fault.pointer, document) else { return Vec::new() };
    let largest = fault.members.get("largest_l").and_then(Value::as_u64).unwrap_or(0);
    if largest > 1 {
        return place.with_number(largest).into_iter().collect();
    }
    // another guarantee is not weakened to these
    if !place.is_diversity() {
        return Vec::new();
    }
    let closeness = OfferedGuarantee::Closeness;
    let close = place.with(closeness).map(|operation| Candidate::new("bound the distance from the table", operation));
    let share = |alpha_percent: &u64| {
        let offered = OfferedGuarantee::Share { alpha_percent: *alpha_percent, k: OFFERED_K };
        let title = format!("ask that no value takes more than {alpha_percent}% of a bucket");
        place.with(offered).map(|operations| Candidate::new(title, operations).of("share"))
    };
    close.into_iter().chain(OFFERED_PERCENTS.iter().filter_map(share)).collect()
}

/// The largest bound that the counts of one column allow. Of a sensitive attribute that shares its column of a sliced table, rows
/// say what holds.
pub(super) fn of_infeasible(fault: &Fault, document: &Value) -> Vec<Candidate> {
    if document.pointer("/method/type").is_some_and(|kind| kind == "slicing") && !is_alone(&document["method"]) {
        return Vec::new();
    }
    let largest =
        fault.members.get("proof").and_then(|proof| proof["largest_l"].as_u64()).filter(|largest| *largest > 1);
    let place = GuaranteePlace::find(&fault.pointer, document);
    place.zip(largest).and_then(|(place, largest)| place.with_number(largest)).into_iter().collect()
}

/// Whether a slicing states a column that holds its sensitive attribute alone.
fn is_alone(method: &Value) -> bool {
    let explicit = method["columns"]["explicit"].as_array().into_iter().flatten().filter_map(Value::as_array);
    let of_sensitive = |column: &&Vec<Value>| column.contains(&method["sensitive"]);
    explicit.into_iter().find(of_sensitive).is_some_and(|column| column.len() == 1)
        || method["columns"]["sensitive_width"] == 1
}

/// Where a document states the guarantee of a fault.
enum GuaranteePlace {
    /// A number by itself, or an attribute's.
    Number { pointer: String },
    /// A guarantee.
    Guarantee { pointer: String, guarantee: Map<String, Value> },
    /// A rule without a guarantee of its own.
    Rule { pointer: String, rule: Value, guarantee: Map<String, Value> },
}

impl GuaranteePlace {
    fn find(pointer: &str, document: &Value) -> Option<Self> {
        let guarantee_at = |pointer: String| {
            let guarantee = document.pointer(&pointer)?.as_object().filter(|of| of.contains_key("type"))?.clone();
            Some(Self::Guarantee { pointer, guarantee })
        };
        let value = document.pointer(pointer)?;
        if value.is_u64() {
            return Some(Self::Number { pointer: pointer.to_owned() });
        }
        if let (Some(name), Some(of_attributes)) = (value.as_str(), document.pointer("/method/l"))
            && of_attributes.get(name).is_some_and(Value::is_u64)
        {
            return Some(Self::Number { pointer: child("/method/l", name) });
        }
        if pointer == "/method" || pointer.starts_with("/method/sensitive") {
            let only = |list: &Vec<Value>| list.len() == 1;
            let listed = document.pointer("/method/guarantees").and_then(Value::as_array).is_some_and(only);
            let listed = listed.then(|| guarantee_at("/method/guarantees/0".to_owned()));
            return guarantee_at("/method/guarantee".to_owned()).or_else(|| listed.flatten());
        }
        if let Some(guarantee) = guarantee_at(child(pointer, "guarantee")) {
            return Some(guarantee);
        }
        let is_rule = parted(pointer).is_some_and(|(parent, _)| parent == "/method/rules");
        if !is_rule {
            return guarantee_at(pointer.to_owned());
        }
        let guarantee = document.pointer("/method/default_guarantee")?.as_object()?.clone();
        Some(Self::Rule { pointer: pointer.to_owned(), rule: value.clone(), guarantee })
    }

    fn is_diversity(&self) -> bool {
        match self {
            Self::Number { .. } => false,
            Self::Guarantee { guarantee, .. } | Self::Rule { guarantee, .. } => {
                guarantee["type"].as_str().is_some_and(|kind| kind.ends_with("l_diversity"))
            }
        }
    }

    /// The operations that put another guarantee there.
    fn with(&self, offered: OfferedGuarantee) -> Option<Vec<Value>> {
        let replaced = |pointer: &String, value: Value| vec![json!({"op": "replace", "path": pointer, "value": value})];
        match self {
            Self::Number { .. } => None,
            Self::Guarantee { pointer, .. } => Some(replaced(pointer, offered.to_json())),
            Self::Rule { pointer, rule: Value::Object(_), .. } => {
                Some(vec![json!({"op": "add", "path": child(pointer, "guarantee"), "value": offered.to_json()})])
            }
            Self::Rule { pointer, rule, .. } => {
                let mut object = rule_object(rule)?;
                object.insert("guarantee".to_owned(), offered.to_json());
                // what another remedy changed of it would be lost
                let unchanged = json!({"op": "test", "path": pointer, "value": rule});
                Some([unchanged].into_iter().chain(replaced(pointer, object.into())).collect())
            }
        }
    }

    /// The largest l, or rows of a class.
    fn with_number(&self, largest: u64) -> Option<Candidate> {
        let title = format!("ask for l = {largest}");
        match self {
            Self::Number { pointer, .. } => Some(Candidate::replace(title, pointer, largest)),
            Self::Guarantee { pointer, guarantee } if guarantee.contains_key("l") => {
                Some(Candidate::replace(title, &child(pointer, "l"), largest))
            }
            Self::Guarantee { pointer, guarantee } if guarantee["type"] == "k_anonymity" => {
                Some(Candidate::replace(format!("ask for k = {largest}"), &child(pointer, "k"), largest))
            }
            Self::Rule { .. } if self.is_diversity() => {
                Some(Candidate::new(title, self.with(OfferedGuarantee::Diversity { l: largest })?))
            }
            _ => None,
        }
    }
}

/// A rule as an object.
fn rule_object(rule: &Value) -> Option<Map<String, Value>> {
    let Value::String(text) = rule else { return rule.as_object().cloned() };
    let parsed = shorthand::parse(text).ok()?;
    let names = |side: &[shorthand::RuleName]| side.iter().map(|of| Value::from(of.text.as_str())).collect::<Value>();
    let protected = if parsed.combination { "sensitive_combination" } else { "sensitive" };
    Some(Map::from_iter([
        ("quasi_identifiers".to_owned(), names(&parsed.known)),
        (protected.to_owned(), names(&parsed.sensitive)),
    ]))
}

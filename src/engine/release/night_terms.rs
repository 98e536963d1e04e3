//! What the first night of a population fixes.

use serde_json::{Value, json};

use crate::problem::{Fault, FaultRemedy, Kind};
use crate::publish::DesignedRule;
use crate::spec::Specification;

/// The terms of a population: the members of an object, none of them a value of the data.
pub(in crate::engine) struct PopulationTerms(Value);

/// The terms, each with its place in a document.
const MEMBERS: [(&str, &str); 7] = [
    ("key", "/republish"),
    ("method", "/method/type"),
    ("sensitive", "/method/sensitive"),
    ("guarantee", "/method/guarantee"),
    ("changes", "/republish/changes"),
    ("merge", "/republish/merge"),
    ("grace", "/republish/grace"),
];

impl PopulationTerms {
    /// The terms of a specification whose persons are identified by `key`.
    pub(in crate::engine) fn new(specification: &Specification, rule: &DesignedRule, key: &str) -> Self {
        let republish = specification.republish;
        Self(json!({
            "key": key,
            "method": specification.method.name(),
            "sensitive": specification.names[rule.rule.sensitive.index()],
            "guarantee": rule.rule.guarantee,
            "changes": republish.map(|terms| terms.changes),
            "merge": republish.map(|terms| terms.merge),
            "grace": republish.map(|terms| terms.grace),
        }))
    }

    /// The terms as a state keeps them.
    pub(in crate::engine) fn to_bytes(&self) -> Vec<u8> {
        self.0.to_string().into_bytes()
    }

    /// Compares with the terms under which a population was begun.
    ///
    /// # Errors
    /// The fault of the first term that differs.
    pub(in crate::engine) fn compare(&self, begun: &[u8]) -> Result<(), Fault> {
        let begun: Value = serde_json::from_slice(begun).unwrap_or_default();
        let Some((member, pointer)) = MEMBERS.into_iter().find(|(member, _)| self.0[member] != begun[member]) else {
            return Ok(());
        };
        let (begun, asked) = (&begun[member], &self.0[member]);
        let is_of_bucketize = self.0["method"] == "bucketize" && member == "guarantee";
        let pointer = if is_of_bucketize { "/method/thresholds" } else { pointer };
        let detail = match member {
            "key" => "the persons of the population are identified by other columns: upload the dataset with those of the first night".to_owned(),
            _ => format!("the population was begun with another {member}: {begun}, where {asked} is asked for"),
        };
        let fault = Fault::new(pointer, Kind::RepublishSpecificationChanged, detail);
        let mut fault = fault.with("member", member).with("begun", begun.clone());
        if !is_of_bucketize && member != "key" && member != "method" {
            let patch = json!([{"op": "add", "path": pointer, "value": begun}]);
            fault.remedies.push(FaultRemedy { title: format!("keep the {member} of the population"), patch });
        }
        Err(fault)
    }
}

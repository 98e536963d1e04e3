//! Policies: job documents without a dataset, under a name and a version, that other documents stand on.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::releases_of_policies::with_any_releases;
use crate::problem::{Fault, Kind};
use crate::spec::document::{JobMembers, read};
use crate::spec::grammar::document::{
    DatasetColumns, Document, Member, MemberContext, SchemaMap, define_as, document, reference,
};
use crate::spec::grammar::reader::FaultList;
use crate::spec::grammar::schema::{ColumnFacts, DatasetSchema, DocumentSource};
use crate::spec::grammar::versioned_name::{PINNED, VersionedName};
use crate::spec::methods::draft::MethodMembers;

/// How often a document is read for the columns that it names.
const MAX_READINGS: usize = 4;

/// The policy that a document stands on, if it names one.
///
/// # Errors
/// When `policy` is no name with a version: what a name alone means would change with the next version.
pub fn policy_of(document: &Value) -> Result<Option<VersionedName>, Fault> {
    let Some(policy) = document.get("policy").filter(|policy| !policy.is_null()) else { return Ok(None) };
    policy.as_str().and_then(VersionedName::parse).map(Some).ok_or_else(|| {
        Fault::new("/policy", Kind::ParameterRange, format!("expected {PINNED}")).with("allowed", PINNED)
    })
}

/// The document written out in full: the policy's members, each replaced by the document's own of that name. A member that is null
/// is absent here too, and replaces nothing.
#[must_use]
pub fn expand_policy(policy: &Value, document: &Value) -> Value {
    let mut merged = Map::new();
    for members in [policy, document].into_iter().filter_map(Value::as_object) {
        merged.extend(
            members.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())),
        );
    }
    merged.remove("policy");
    merged.into()
}

document! {
    /// The document of a new policy version.
    PolicyMembers as "PolicyDocument" {
        /// What is kept.
        required specification: PolicySpecification => "an object: a job without dataset",
    }
}

/// A job document for any dataset, as it was submitted.
#[derive(Clone, Debug)]
pub(in crate::spec) struct PolicySpecification(Value);

impl Member for PolicySpecification {
    fn allowed() -> String {
        JobMembers::allowed()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        for mut fault in faults_on_any_table(value, DocumentSource::Policy) {
            fault.pointer.insert_str(0, &context.pointer);
            context.faults.push(fault);
        }
        Some(Self(value.clone()))
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.clone()
    }

    fn schema() -> Value {
        reference("PolicySpecification")
    }

    /// A job document without what only a job can say.
    fn define(schemas: &mut SchemaMap) {
        let mut schema = JobMembers::definition();
        if let Some(properties) = schema["properties"].as_object_mut() {
            properties.retain(|name, _| !["dataset", "policy"].contains(&name.as_str()));
            properties.insert("method".to_owned(), MethodMembers::schema());
        }
        schema["required"] = json!(["method"]);
        schema["description"] =
            "A job document for any dataset. A job that names the policy can replace its members.".into();
        define_as("PolicySpecification", schema, schemas);
    }
}

/// The specification in a document that is to become a version of a policy.
///
/// # Errors
/// Everything that is wrong with it whatever table it will meet.
pub fn read_policy(document: &Value) -> Result<Value, Vec<Fault>> {
    let specification = |members: PolicyMembers, _: &mut FaultList| Some(members.specification.value?.0);
    PolicyMembers::read_document(document, &DatasetColumns::default(), specification)
}

/// What is wrong with a job on a table that has every column which the job names.
#[must_use]
pub fn faults_on_any_table(specification: &Value, origin: DocumentSource) -> Vec<Fault> {
    let specification = &with_any_releases(specification);
    let mut names = BTreeSet::new();
    let mut readings = 0;
    loop {
        readings += 1;
        let columns: Vec<ColumnFacts> = names.iter().map(|name: &String| ColumnFacts::unseen(name)).collect();
        let faults = read(
            specification,
            &DatasetSchema { columns: &columns, keys: &[], unit: &crate::publication::Unit::Row },
            origin,
        )
        .faults;
        // the columns that it names are those that it misses
        let missed = faults.iter().filter(|fault| fault.kind == Kind::UnknownAttribute);
        let before = names.len();
        names.extend(missed.filter_map(|fault| fault.members.get("attribute")?.as_str()).map(str::to_owned));
        // a document with more names than these readings find fits no table
        if names.len() == before || readings == MAX_READINGS {
            return faults;
        }
    }
}

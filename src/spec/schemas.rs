//! The JSON schemas of all request documents.

use serde_json::json;

use super::document::{JobMembers, PlanMembers};
use super::grammar::document::{Document, Member, ObjectMap};
use super::grammar::taxonomy::TaxonomyMembers;
use super::methods::draft::MethodMembers;
use super::requests::analysis::DifferentialInferenceMembers;
use super::requests::attacks::AttackRequestMembers;
use super::requests::policy::PolicyMembers;
use super::requests::populations::{PopulationMembers, StatementMembers};
use super::requests::queries::QueryMembers;
use super::requests::suggestion::SuggestionMembers;
use super::requests::verification::{VerificationMembers, define_form};

/// The JSON schemas of documents and of their parts, by the names that `components/schemas` of OpenAPI has for them.
#[must_use]
pub fn schemas() -> ObjectMap {
    let mut schemas = ObjectMap::new();
    PlanMembers::define(&mut schemas);
    JobMembers::define(&mut schemas);
    for name in [PlanMembers::NAME, JobMembers::NAME] {
        schemas[name]["if"] = json!({"required": ["policy"], "properties": {"policy": {"type": "string"}}});
        schemas[name]["else"] = json!({"required": ["method"], "properties": {"method": MethodMembers::schema()}});
    }
    // a choice by the divergence from the original is made by the command line alone
    schemas["DecompositionScore"]["enum"] = json!(["entropy"]);
    TaxonomyMembers::define(&mut schemas);
    PolicyMembers::define(&mut schemas);
    PopulationMembers::define(&mut schemas);
    StatementMembers::define(&mut schemas);
    AttackRequestMembers::define(&mut schemas);
    QueryMembers::define(&mut schemas);
    DifferentialInferenceMembers::define(&mut schemas);
    SuggestionMembers::define(&mut schemas);
    VerificationMembers::define(&mut schemas);
    define_form(&mut schemas);
    schemas
}

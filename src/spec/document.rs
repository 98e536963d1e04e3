//! The document as a whole.

use serde_json::Value;

use super::check::resolve::{DraftDocument, resolve};
use super::check::specification::ParsedDocument;
use super::grammar::attributes::{AttributeMap, DatasetColumns};
use super::grammar::document::{Document, Reason, document};
use super::grammar::general::GeneralMembers;
use super::grammar::proposed_tables::ProposedTables;
use super::grammar::reader::{FaultList, ObjectReader};
use super::grammar::schema::{DatasetSchema, DocumentSource};
use super::methods::draft::{self, MethodMembers};

document! {
    /// What to publish and what must stay protected. A member that is null counts as absent; unknown members are refused.
    JobMembers as "JobDocument" {
        include general: GeneralMembers,
        optional attributes: AttributeMap,
        /// Why the release has no rules; only for `versatile` without rules.
        optional no_rules_reason: Reason,
        /// How the release is made. Needed here or in the policy.
        optional method: MethodMembers,
    }
}

document! {
    /// A job document, and tables to be judged if they are proposed. A job takes no such tables.
    PlanMembers as "PlanDocument" {
        include job: JobMembers,
        /// Tables to be judged in place of those that a job would make: whether the rules hold in them, and why not.
        optional schema: ProposedTables,
    }
}

/// Reads a document against the columns of its dataset, and reports every fault.
#[must_use]
pub fn read(document: &Value, schema: &DatasetSchema<'_>, origin: DocumentSource) -> ParsedDocument {
    let mut faults = FaultList::new();
    let columns = DatasetColumns { origin, ..DatasetColumns::from_schema(schema) };
    let specification = ObjectReader::open(document, "", &mut faults).and_then(|members| {
        let PlanMembers { job, schema: tables, .. } = PlanMembers::read_members(members, &columns, &mut faults);
        let JobMembers { mut general, attributes, no_rules_reason, method, .. } = job;
        general.check(origin, &mut faults);
        let attributes = attributes.value.unwrap_or_else(|| AttributeMap::absent(&columns)).0;
        let reason = no_rules_reason.value.map(|reason| reason.0);
        let method = draft::read(method, reason, &columns, &attributes, &mut faults);
        let drafts = tables.value.as_ref().map(|tables| tables.drafts.as_slice());
        let (columns, attributes) = (&columns, &attributes[..]);
        let draft = DraftDocument { document, columns, schema, general, attributes, method, tables: drafts };
        let resolved = resolve(draft, &mut faults);
        // faulty proposed tables are not replaced by others
        resolved.filter(|_| !tables.is_faulty || !origin.is_plan())
    });
    ParsedDocument { specification, faults: faults.into_sorted() }
}

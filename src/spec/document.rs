//! The document as a whole.

use serde_json::{Map, Value};

use super::check::resolve::{DraftDocument, resolve};
use super::check::specification::ParsedDocument;
use super::grammar::attributes::DatasetColumns;
use super::grammar::document::Member;
use super::grammar::general::read_general;
use super::grammar::reader::{FaultList, ObjectReader};
use super::grammar::schema::{DatasetSchema, DocumentSource};
use super::grammar::{attributes, proposed_tables};
use super::methods::anatomy::AnatomyMembers;
use super::methods::bucketize::BucketizeMembers;
use super::methods::decompose::DecomposeMembers;
use super::methods::draft;
use super::methods::generalize::GeneralizeMembers;
use super::methods::sequential::SequentialMembers;
use super::methods::slicing::SlicingMembers;
use super::methods::versatile::VersatileMembers;
use super::requests::attacks::AttackRequestMembers;

/// Reads a document against the columns of its dataset, and reports every fault.
#[must_use]
pub fn read(document: &Value, schema: &DatasetSchema<'_>, origin: DocumentSource) -> ParsedDocument {
    let mut faults = FaultList::new();
    let specification = ObjectReader::open(document, "", &mut faults).and_then(|mut members| {
        let columns = DatasetColumns::from_schema(schema);
        let general = read_general(&mut members, origin, &mut faults);
        let attributes = attributes::read(&mut members, &columns, origin, &mut faults);
        let method = draft::read(&mut members, &columns, &attributes, origin, &mut faults);
        let proposed = match origin {
            DocumentSource::Plan => proposed_tables::read(&mut members, &columns, &mut faults),
            _ => Ok(None),
        };
        members.finish(&mut faults);
        let tables = proposed.as_ref().ok().and_then(Option::as_deref);
        let document = DraftDocument { columns: &columns, schema, general, attributes: &attributes, method, tables };
        let resolved = resolve(document, &mut faults);
        // faulty proposed tables are not replaced by others
        resolved.filter(|_| proposed.is_ok())
    });
    ParsedDocument { specification, faults: faults.into_sorted() }
}

/// The JSON schemas of documents and of their parts, by the names that `components/schemas` of OpenAPI has for them.
#[must_use]
pub fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    AnatomyMembers::define(&mut schemas);
    BucketizeMembers::define(&mut schemas);
    DecomposeMembers::define(&mut schemas);
    GeneralizeMembers::define(&mut schemas);
    SequentialMembers::define(&mut schemas);
    SlicingMembers::define(&mut schemas);
    VersatileMembers::define(&mut schemas);
    AttackRequestMembers::define(&mut schemas);
    schemas
}

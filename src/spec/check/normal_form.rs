//! Normal form: equivalent documents have one spelling.

use serde_json::{Map, Value, json};

use crate::publication::Unit;
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns, TaxonomyChoice};
use crate::spec::grammar::document::{Document, Member};
use crate::spec::grammar::general::{GeneralMembers, PeopleChoice, Unlisted};
use crate::spec::grammar::utility::InternalUtility;
use crate::spec::methods::draft::DraftMethod;
use crate::spec::methods::versatile::DraftVersatile;

/// The parts of a document as they were read.
pub(in crate::spec) struct DocumentParts<'a> {
    pub(in crate::spec) unit: &'a Unit,
    pub(in crate::spec) columns: &'a DatasetColumns<'a>,
    pub(in crate::spec) general: &'a GeneralMembers,
    pub(in crate::spec) attributes: &'a [AttributeOptions],
    pub(in crate::spec) used: &'a [usize],
    pub(in crate::spec) method: &'a DraftMethod,
}

/// The normalized document, and the part of it that enters the reuse key.
pub(in crate::spec) fn normal_forms(parts: &DocumentParts<'_>) -> (Value, Value) {
    let mut reuse = Map::new();
    let general = parts.general;
    let unproven = general.unproven();
    let mode = if unproven.is_some() { "report" } else { "enforce" };
    reuse.insert("composition".into(), json!({"mode": mode}));
    if general.people == PeopleChoice::Unpublished {
        reuse.insert("people".into(), general.people.as_str().into());
    }
    if let Some(republish) = &general.republish.value {
        reuse.insert("republish".into(), republish.write(parts.columns));
    }
    let entropy = general.entropy().unwrap_or_else(|| parts.method.states_entropy());
    reuse.insert("utility".into(), if entropy { json!(["entropy"]) } else { json!([]) });
    reuse.insert("method".into(), method(parts));
    if let DraftMethod::Versatile(DraftVersatile { no_rules_reason: Some(reason), .. }) = parts.method {
        reuse.insert("no_rules_reason".into(), reason.as_str().into());
    }
    let mut attributes = Map::new();
    let mentioned = parts.method.mentioned();
    for &column in parts.used {
        let members = attribute(parts, column, mentioned.contains(&column));
        if !members.is_empty() {
            attributes.insert(parts.columns.name(column).to_owned(), members.into());
        }
    }

    let mut full = reuse.clone();
    if let Some(reason) = unproven {
        full.insert("composition".into(), json!({"mode": mode, "reason": reason}));
    }
    reuse.insert("unlisted".into(), "drop".into());
    // said of the dataset, not in the document
    if let Unit::Subject { .. } = parts.unit {
        reuse.insert("unit".into(), json!(parts.unit));
    }
    let mut sorted = attributes.clone();
    // faults point at values by position; their order has no meaning
    for values in sorted.values_mut().filter_map(|members| members.get_mut("excludable")?.as_array_mut()) {
        values.sort_by_cached_key(Value::to_string);
    }
    reuse.insert("attributes".into(), sorted.into());

    if general.unlisted == Unlisted::Refuse {
        let dropped = (0..parts.attributes.len()).filter(|column| parts.attributes[*column].drop);
        for column in dropped.filter(|column| parts.used.binary_search(column).is_err()) {
            attributes.insert(parts.columns.name(column).to_owned(), json!({"drop": true}));
        }
    }
    full.insert("attributes".into(), attributes.into());
    full.insert("internal".into(), InternalUtility::from(&general.internal).normal());
    let mut members = Map::new();
    general.write_into(&mut members, parts.columns);
    members.retain(|name, value| name != "people" || value != PeopleChoice::All.as_str());
    // members that are absent, and those that are written above
    members.retain(|name, value| !value.is_null() && !full.contains_key(name));
    full.append(&mut members);
    (full.into(), reuse.into())
}

/// The options of a published attribute, without defaults.
fn attribute(parts: &DocumentParts<'_>, column: usize, mentioned: bool) -> Map<String, Value> {
    let options = &parts.attributes[column];
    let mut members = Map::new();
    if options.overrides_identifier() {
        members.insert("identifier".into(), false.into());
    }
    if options.overrides_identifier() || (options.publish && !mentioned) {
        members.insert("publish".into(), true.into());
    }
    if let Some(rename) = options.rename().filter(|rename| *rename != parts.columns.name(column)) {
        members.insert("rename".into(), rename.into());
    }
    if let Some(width) = options.equal_width() {
        members.insert("discretize".into(), json!({"equal_width": width}));
    }
    if !options.excludable.0.is_empty() {
        members.insert("excludable".into(), json!(options.excludable.0));
    }
    if let Some(TaxonomyChoice::Tree(tree)) = &options.taxonomy.value {
        members.insert("taxonomy".into(), tree.written());
    }
    members
}

fn method(parts: &DocumentParts<'_>) -> Value {
    match parts.method {
        DraftMethod::Versatile(draft) => draft.write(parts.columns),
        DraftMethod::Bucketize(draft) => draft.members.write(parts.columns),
        DraftMethod::Decompose(draft) => draft.members.write(parts.columns),
        DraftMethod::Anatomy(draft) => draft.members.write(parts.columns),
        DraftMethod::Generalize(draft) => draft.members.write(parts.columns),
        DraftMethod::Sequential(draft) => draft.members.write(parts.columns),
        DraftMethod::Slicing(draft) => draft.members.write(parts.columns),
    }
}

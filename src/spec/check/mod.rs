//! The specification against the columns: each is accounted for, and nothing is published by oversight.

pub(super) mod normal_form;
pub(super) mod specification;
pub(super) mod unit;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use normal_form::DocumentParts;
use specification::{ProposedTable, SpecWarning, Specification};
use unit::UnitEnforcer;
use uuid::Uuid;

use super::grammar::attributes::{AttributeOptions, DatasetColumns, TaxonomyChoice};
use super::grammar::general::GeneralMembers;
use super::grammar::guarantee::ThresholdsByDigest;
use super::grammar::proposed_tables::DraftProposedTable;
use super::grammar::reader::{FaultList, child};
use super::grammar::schema::DatasetSchema;
use super::methods::decompose::DraftDecompose;
use super::methods::types::Algorithm;
use super::methods::{DraftMethod, MethodSpec, slicing};
use crate::microdata::{Attr, AttrSet, AttributeType, MAX_ATTRIBUTES};
use crate::problem::{Fault, Kind};
use crate::publication::{
    DeclaredTaxonomy, DeclaredThresholds, ExcludedValues, Guarantee, NoticeKind, Protected, SubmittedRule, Unit,
    ValueDistance,
};

/// Judges a document that was read; `None` when its rules cannot even be judged for eligibility.
pub(super) fn resolve(
    columns: &DatasetColumns<'_>,
    schema: &DatasetSchema<'_>,
    general: GeneralMembers,
    stated: &[AttributeOptions],
    method: Option<DraftMethod>,
    tables: Option<&[DraftProposedTable]>,
    faults: &mut FaultList,
) -> Option<Specification> {
    let mut mentioned = method.as_ref().map(DraftMethod::mentioned).unwrap_or_default();
    mentioned.extend(tables.into_iter().flatten().flat_map(|table| &table.attributes));
    if let Some(method) = method.as_ref().filter(|_| !general.drop_unlisted) {
        check_accounted(columns, stated, &mentioned, method.guessed(), faults);
    }
    let is_used = |column: &usize| mentioned.contains(column) || (stated[*column].publish && !stated[*column].drop);
    let used: Vec<usize> = (0..columns.facts.len()).filter(is_used).collect();
    let mut warnings = Vec::new();
    for &column in &used {
        check_attribute(columns, schema, column, &stated[column], &mut warnings, faults);
    }
    let published_names = published_names(columns, stated, &used, faults);
    if used.is_empty() && faults.is_empty() {
        faults.push(Fault::new("/attributes", Kind::BadColumns, "no attribute would be published"));
    }
    if used.len() > MAX_ATTRIBUTES {
        let detail = format!("a job publishes at most {MAX_ATTRIBUTES} attributes");
        let fault = Fault::new("/attributes", Kind::TooManyAttributes, detail);
        faults.push(fault.with("limit", MAX_ATTRIBUTES).with("found", used.len()));
        return None;
    }

    if let Some(workload) = general.internal.count_queries.filter(|workload| workload.dimensions as usize > used.len())
    {
        let detail = format!("queries of {} attributes over {} published ones", workload.dimensions, used.len());
        let fault = Fault::new("/internal/utility", Kind::ParameterRange, detail);
        faults.push(fault.with("allowed", "at most as many dimensions as published attributes"));
    }

    let method = method?;
    if let DraftMethod::Generalize(draft) = &method {
        draft.check(columns, stated, &used, &general, faults);
    }
    if let DraftMethod::Sequential(draft) = &method {
        draft.check(columns, stated, &used, &general, faults);
    }
    if matches!(method, DraftMethod::Decompose(_)) {
        DraftDecompose::check(&general, faults);
    }
    let entropy = general.entropy.unwrap_or_else(|| method.states_entropy());
    let parts = DocumentParts { unit: schema.unit, columns, general: &general, stated, used: &used, method: &method };
    let (normalized, reuse_form) = normal_form::normal_forms(&parts);
    let mut attrs: HashMap<usize, Attr> =
        used.iter().enumerate().map(|(at, &column)| (column, Attr::from(at))).collect();
    let dropped = match &method {
        DraftMethod::Versatile(draft) => draft.unpublished(&used),
        _ => Vec::new(),
    };
    if used.len() + dropped.len() > MAX_ATTRIBUTES {
        let detail = format!("a job uses at most {MAX_ATTRIBUTES} attributes, with those that dependencies name");
        let fault = Fault::new("/method/functional_dependencies", Kind::TooManyAttributes, detail);
        faults.push(fault.with("limit", MAX_ATTRIBUTES).with("found", used.len() + dropped.len()));
        return None;
    }
    attrs.extend(dropped.iter().enumerate().map(|(at, &column)| (column, Attr::from(used.len() + at))));
    let overridden = used.iter().filter(|column| stated[**column].overrides_identifier());
    let values =
        |column: &usize| ExcludedValues { attribute: attrs[column], values: stated[*column].excludable.clone() };
    let excludable: Vec<ExcludedValues> = used.iter().map(values).filter(|stated| !stated.values.is_empty()).collect();
    let mut named = match &method {
        DraftMethod::Versatile(draft) => draft.thresholds(),
        DraftMethod::Anatomy(draft) => draft.thresholds(),
        _ => ThresholdsByDigest::new(),
    };
    let mut method = match method {
        DraftMethod::Versatile(draft) => MethodSpec::Versatile(draft.resolve(columns, &attrs)),
        DraftMethod::Anatomy(draft) => MethodSpec::Anatomy(draft.resolve(columns, &attrs)?),
        DraftMethod::Bucketize(draft) => MethodSpec::Bucketize(draft.resolve(columns, &attrs)?),
        DraftMethod::Decompose(draft) => MethodSpec::Decompose(draft.resolve(columns, &attrs)?),
        DraftMethod::Generalize(draft) => MethodSpec::Generalize(draft.resolved(columns, &attrs)),
        DraftMethod::Sequential(draft) => MethodSpec::Sequential(draft.resolved(columns, &attrs)),
        DraftMethod::Slicing(draft) => {
            if general.entropy == Some(true) && !draft.has_entropy() {
                faults.unsupported(
                    "/utility/0",
                    "of sliced tables the entropy of the model is stated where they have two columns at most, which share no attribute \
                     and are not generalized; leave utility out",
                );
            }
            if general.internal.kl && draft.generalizes_columns() {
                let detail = "kl is not measured of columns that are generalized; ask for count_queries";
                faults.unsupported("/internal/utility", detail);
            }
            let spec = slicing::resolve(columns, &attrs, stated, &used, &draft, faults)?;
            if general.internal.kl && !spec.forms_tree() {
                let detail = "kl is not measured of columns that share attributes in a circle; ask for count_queries";
                faults.unsupported("/internal/utility", detail);
            }
            MethodSpec::Slicing(spec)
        }
    };
    UnitEnforcer { unit: schema.unit, faults }.on(&mut method, &mut named);
    check_excludable(columns, &used, &excludable, &method, faults);
    let along = used.iter().filter(|column| stated[**column].taxonomy.is_some()).map(|column| attrs[column]);
    check_grounds(columns, &used, along.collect(), &method, faults);
    let tree = |column: &usize| match &stated[*column].taxonomy {
        Some(TaxonomyChoice::Tree(tree)) => Some(DeclaredTaxonomy { attribute: attrs[column], tree: Arc::clone(tree) }),
        Some(TaxonomyChoice::Named) | None => None,
    };
    let taxonomies: Vec<DeclaredTaxonomy> = used.iter().filter_map(tree).collect();
    check_leaves(columns, &used, &taxonomies, general.dataset, faults);
    let thresholds = stated_thresholds(method.rules(), &named);
    Some(Specification {
        names: used.iter().map(|&column| columns.name(column).to_owned()).collect(),
        published_names,
        dropped_names: dropped.iter().map(|&column| columns.name(column).to_owned()).collect(),
        attributes: AttrSet::first(used.len()),
        overridden_identifiers: overridden.map(|column| attrs[column]).collect(),
        method,
        excludable,
        taxonomies,
        thresholds,
        unit: schema.unit.clone(),
        schema: tables.map(|tables| tables.iter().map(|table| proposed(&attrs, table)).collect()),
        used,
        priority: general.priority,
        deadline: general.deadline,
        reason: general.reason,
        unproven: general.unproven,
        entropy,
        internal: general.internal,
        warnings,
        normalized,
        reuse_form,
    })
}

fn check_accounted(
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    mentioned: &BTreeSet<usize>,
    guessed: &BTreeSet<usize>,
    faults: &mut FaultList,
) {
    let accounted = |column: usize| {
        let attribute = &stated[column];
        attribute.drop || attribute.publish || mentioned.contains(&column) || guessed.contains(&column)
    };
    let missing: Vec<&str> =
        (0..stated.len()).filter(|column| !accounted(*column)).map(|column| columns.name(column)).collect();
    if !missing.is_empty() {
        let detail = format!("state publish or drop for {}, or use them in a rule", missing.join(", "));
        let fault = Fault::new("/attributes", Kind::UnclassifiedAttributes, detail);
        faults.push(fault.with("attributes", missing));
    }
}

/// Checks an attribute that would be published.
fn check_attribute(
    columns: &DatasetColumns<'_>,
    schema: &DatasetSchema<'_>,
    column: usize,
    stated: &AttributeOptions,
    warnings: &mut Vec<SpecWarning>,
    faults: &mut FaultList,
) {
    let facts = &columns.facts[column];
    let name = &facts.name;
    let pointer = child("/attributes", name);
    if stated.drop {
        faults.range(child(&pointer, "drop"), "false, or no rule that uses the attribute");
    }
    let is_subject = matches!(schema.unit, Unit::Subject { attribute, .. } if attribute == name);
    let is_key = schema.record_key.contains(name);
    let is_identifier = stated.identifier == Some(true) || facts.identifier || is_key || is_subject;
    if is_identifier && !stated.overrides_identifier() {
        let why = match (is_key, facts.identifier) {
            _ if is_subject => "tells persons apart",
            (true, _) => "belongs to the record key",
            (_, true) => "looks like an identifier: over 90% of its values are distinct",
            _ => "is declared as an identifier",
        };
        let detail = format!("{name} {why}; drop it, or state publish true and identifier false");
        faults.push(Fault::new(pointer.as_str(), Kind::IdentifierPublished, detail).with("attribute", name.as_str()));
    }
    if facts.overflow {
        let detail = format!("{name} has too many distinct values; it can only be dropped");
        faults.push(Fault::new(pointer.as_str(), Kind::BadColumns, detail).with("attribute", name.as_str()));
    }
    if facts.mostly_distinct {
        let detail = format!("more than half of the values of {name} are distinct: it may single people out");
        warnings.push(SpecWarning { pointer: Some(pointer), type_: NoticeKind::MostlyDistinct, detail });
    }
}

/// What it means that values are ruled out is known for guarantees on single values of single attributes.
fn check_excludable(
    columns: &DatasetColumns<'_>,
    used: &[usize],
    excludable: &[ExcludedValues],
    method: &MethodSpec,
    faults: &mut FaultList,
) {
    // its buckets protect an attribute from whoever knows the other sensitive ones
    let joint = matches!(method, MethodSpec::Versatile(spec) if spec.algorithm == Algorithm::MultiSa);
    for stated @ ExcludedValues { attribute, .. } in excludable {
        let name = columns.name(used[attribute.index()]);
        let pointer = child(&child("/attributes", name), "excludable");
        let mut rules = method.rules().iter().filter(|rule| rule.protects.attributes().contains(*attribute));
        let unsaid = rules.find_map(|rule| match rule.protects {
            Protected::Joint(_) => Some("a combination".to_owned()),
            Protected::Rows => None,
            Protected::Attribute(_) if !rule.guarantee.covers_combinations() => {
                Some(rule.guarantee.as_str().to_owned())
            }
            Protected::Attribute(_) if joint => Some("multi_sa".to_owned()),
            Protected::Attribute(_) if matches!(method, MethodSpec::Bucketize(spec) if spec.unsaid(stated)) => {
                Some("bucketize".to_owned())
            }
            Protected::Attribute(_) if matches!(method, MethodSpec::Decompose(_)) => Some("decompose".to_owned()),
            Protected::Attribute(_) => None,
        });
        if let Some(what) = unsaid {
            faults.unsupported(pointer, format!("{what} says nothing of {name} once some of its values are ruled out"));
        }
    }
}

/// Distances along a taxonomy need one.
fn check_grounds(
    columns: &DatasetColumns<'_>,
    used: &[usize],
    along: AttrSet,
    method: &MethodSpec,
    faults: &mut FaultList,
) {
    for rule in method.rules() {
        if !matches!(rule.guarantee, Guarantee::TCloseness { distance: ValueDistance::Hierarchical, .. }) {
            continue;
        }
        for attr in rule.protects.attributes().minus(along).iter() {
            let name = columns.name(used[attr.index()]);
            let place = child(&child("/attributes", name), "taxonomy");
            let detail = format!("the hierarchical distance goes by a taxonomy of {name}: state one in {place}");
            let fault = Fault::new(rule.pointer.as_str(), Kind::GuaranteeUnsupported, detail);
            faults.push(fault.with("attribute", name));
        }
    }
}

/// What the numbers of values alone show: with fewer leaves than values, some are missing.
fn check_leaves(
    columns: &DatasetColumns<'_>,
    used: &[usize],
    taxonomies: &[DeclaredTaxonomy],
    dataset: Option<Uuid>,
    faults: &mut FaultList,
) {
    for DeclaredTaxonomy { attribute, tree } in taxonomies {
        let facts = &columns.facts[used[attribute.index()]];
        // one decimal may be spelled in several ways
        let distinct = facts.distinct.filter(|_| facts.kind != AttributeType::Decimal).unwrap_or(0);
        let missing = distinct.saturating_sub(tree.leaves().len() as u64);
        if missing > 0 {
            let dataset = dataset.map(|dataset| dataset.to_string());
            let detail = format!("at least {missing} values of {} are no leaves of its taxonomy", facts.name);
            faults.push(values_missing(&facts.name, missing, detail, dataset.as_deref()));
        }
    }
}

/// The thresholds that the guarantees of rules name, with the attributes whose values they are for.
pub(super) fn stated_thresholds(rules: &[SubmittedRule], named: &ThresholdsByDigest) -> Vec<DeclaredThresholds> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for rule in rules {
        let (Guarantee::Thresholds { stated, .. }, Protected::Attribute(attribute)) = (rule.guarantee, rule.protects)
        else {
            continue;
        };
        if let Some(thresholds) = named.get(&stated).filter(|_| seen.insert((attribute, stated))) {
            found.push(DeclaredThresholds { attribute, thresholds: thresholds.clone() });
        }
    }
    found
}

/// The fault of values that are no leaves of the taxonomy of their attribute.
#[must_use]
pub fn values_missing(attribute: &str, missing: u64, detail: String, dataset: Option<&str>) -> Fault {
    let pointer = child(&child("/attributes", attribute), "taxonomy");
    let fault = Fault::new(pointer, Kind::TaxonomyValueMissing, detail).with("missing", missing);
    values_pointer(fault, attribute, dataset)
}

/// The fault with where the values of its attribute are listed, for those who may see them.
#[must_use]
pub fn values_pointer(fault: Fault, attribute: &str, dataset: Option<&str>) -> Fault {
    let fault = fault.with("attribute", attribute);
    match dataset {
        Some(dataset) => fault.with("values_url", values_url(dataset, attribute)),
        None => fault,
    }
}

/// A name as a segment of a path (RFC 3986).
#[must_use]
pub fn path_segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Where the values of an attribute are listed.
fn values_url(dataset: &str, attribute: &str) -> String {
    format!("/v1/datasets/{dataset}/attributes/{}/values", path_segment(attribute))
}

/// The published names, by attribute; none is taken twice.
fn published_names(
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    used: &[usize],
    faults: &mut FaultList,
) -> Vec<String> {
    let published = |column: usize| stated[column].rename.as_deref().unwrap_or(columns.name(column));
    let mut takers: HashMap<&str, usize> = HashMap::new();
    for &column in used {
        *takers.entry(published(column)).or_default() += 1;
    }
    for &column in used {
        let (original, name) = (columns.name(column), published(column));
        let renamed = name != original;
        let pointer = child("/attributes", original);
        let pointer = if renamed { child(&pointer, "rename") } else { pointer };
        let detail = match () {
            () if name == "bucket" => "bucket is the name of the column that ties the parts of a table".to_owned(),
            // of two with one name, the one that was renamed is at fault
            () if renamed && takers[name] > 1 => format!("another attribute is published as {name}"),
            () => continue,
        };
        faults.push(Fault::new(pointer, Kind::ReservedName, detail).with("attribute", original));
    }
    used.iter().map(|&column| published(column).to_owned()).collect()
}

fn proposed(attrs: &HashMap<usize, Attr>, table: &DraftProposedTable) -> ProposedTable {
    ProposedTable {
        attributes: table.attributes.iter().map(|column| attrs[column]).collect(),
        sensitive: table.sensitive.map(|column| attrs[&column]),
    }
}

//! The specification of a document: its method and its attributes over the columns of the dataset.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::attributes::{
    check_accounted, check_attribute, check_choice_of_rows, check_distances, check_excludable, check_leaves,
    published_names,
};
use super::normal_form::{self, DocumentParts};
use super::republish::check_republication;
use super::specification::{ProposedTable, SpecWarning, Specification};
use super::unit::UnitEnforcer;
use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES};
use crate::problem::{Fault, Kind};
use crate::publication::{
    DeclaredTaxonomy, DeclaredThresholds, ExcludedValues, Guarantee, NoticeKind, Protected, SubmittedRule,
};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns, TaxonomyChoice};
use crate::spec::grammar::general::{GeneralMembers, Unlisted};
use crate::spec::grammar::guarantee::ThresholdsByDigest;
use crate::spec::grammar::proposed_tables::DraftProposedTable;
use crate::spec::grammar::reader::FaultList;
use crate::spec::grammar::republish::RepublishSpec;
use crate::spec::grammar::schema::{DatasetSchema, DocumentSource};
use crate::spec::grammar::utility::InternalUtility;
use crate::spec::methods::decompose::DraftDecompose;
use crate::spec::methods::draft::DraftMethod;
use crate::spec::methods::method::MethodSpec;
use crate::spec::methods::slicing::{DraftSlicing, SlicingSpec};

/// A document as it was read.
pub(in crate::spec) struct DraftDocument<'a, 'c> {
    /// The document itself.
    pub(in crate::spec) document: &'a Value,
    pub(in crate::spec) columns: &'a DatasetColumns<'c>,
    pub(in crate::spec) schema: &'a DatasetSchema<'c>,
    pub(in crate::spec) general: GeneralMembers,
    /// The options of each column.
    pub(in crate::spec) attributes: &'a [AttributeOptions],
    /// `None` when it cannot be read.
    pub(in crate::spec) method: Option<DraftMethod>,
    /// The tables of a plan.
    pub(in crate::spec) tables: Option<&'a [DraftProposedTable]>,
}

/// The attributes that a document publishes, and what they resolve to.
struct ResolutionScope<'a, 'c> {
    columns: &'a DatasetColumns<'c>,
    attributes: &'a [AttributeOptions],
    general: &'a GeneralMembers,
    /// The published columns, in the order of the dataset.
    used: &'a [usize],
    /// The attribute of each published column, and of each dropped one that a dependency names.
    attrs: HashMap<usize, Attr>,
}

/// Checks a document that was read; `None` when its rules cannot even be checked for eligibility.
pub(in crate::spec) fn resolve(document: DraftDocument<'_, '_>, faults: &mut FaultList) -> Option<Specification> {
    let used = used_columns(&document, faults);
    let (published_names, warnings) = resolve_names(&document, &used, faults)?;
    check_workload(&document.general, &used, faults);
    let DraftDocument { document, columns, schema, general, attributes, method, tables } = document;
    let method = method?;
    let mut scope = ResolutionScope { columns, attributes, general: &general, used: &used, attrs: HashMap::new() };
    check_measures(&method, &scope, faults);
    let entropy = general.entropy().unwrap_or_else(|| method.states_entropy());
    let parts =
        DocumentParts { unit: schema.unit, columns, general: &general, attributes, used: &used, method: &method };
    let (normalized, reuse_form) = normal_form::normal_forms(&parts);
    let dropped = dropped_columns(&method, &used, faults)?;
    scope.attrs = used.iter().chain(&dropped).enumerate().map(|(at, &column)| (column, Attr::from(at))).collect();
    let knowledge = method.common().resolve(&scope.attrs);
    let (mut method, mut named) = resolve_method(method, &scope, faults)?;
    UnitEnforcer { unit: schema.unit, faults }.on(&mut method, &mut named);
    let excludable = scope.excluded_values();
    check_excludable(columns, &used, &excludable, &method, faults);
    check_distances(columns, &used, scope.with_taxonomy(), &method, faults);
    check_choice_of_rows(columns, &used, schema.unit, &method, faults);
    let taxonomies = scope.taxonomies();
    check_leaves(columns, &used, &taxonomies, general.dataset.value.map(|id| id.0), faults);
    let names = |of: &[usize]| of.iter().map(|&column| columns.name(column).to_owned()).collect();
    let specification = Specification {
        names: names(&used),
        published_names,
        dropped_names: names(&dropped),
        attributes: AttrSet::first(used.len()),
        overridden_identifiers: scope.overridden_identifiers(),
        thresholds: declared_thresholds(method.rules(), &named),
        method,
        knowledge,
        excludable,
        taxonomies,
        unit: schema.unit.clone(),
        schema: tables.map(|tables| tables.iter().map(|table| proposed(&scope.attrs, table)).collect()),
        priority: general.priority.0,
        deadline: general.deadline.value.map(|deadline| deadline.0),
        reason: general.reason.value.as_ref().map(|reason| reason.0.clone()),
        people: general.people,
        republish: general.republish.value.as_ref().map(RepublishSpec::from),
        unproven: general.unproven().map(str::to_owned),
        entropy,
        internal: InternalUtility::from(&general.internal),
        warnings,
        document: document.clone(),
        normalized,
        reuse_form,
        used,
    };
    check_republication(&specification, schema, columns.origin, faults);
    Some(specification)
}

/// The published columns, in the order of the dataset; all columns are accounted for.
fn used_columns(document: &DraftDocument<'_, '_>, faults: &mut FaultList) -> Vec<usize> {
    let DraftDocument { columns, general, attributes, method, tables, .. } = document;
    let mut mentioned = method.as_ref().map(DraftMethod::mentioned).unwrap_or_default();
    mentioned.extend(tables.iter().copied().flatten().flat_map(|table| &table.attributes));
    if let Some(method) = method.as_ref().filter(|_| general.unlisted == Unlisted::Refuse) {
        check_accounted(columns, attributes, &mentioned, method.guessed(), faults);
    }
    let is_used =
        |column: &usize| mentioned.contains(column) || (attributes[*column].publish && !attributes[*column].drop);
    (0..columns.facts.len()).filter(is_used).collect()
}

/// Checks the published attributes and gives their published names, with warnings; `None` when there are too many.
fn resolve_names(
    document: &DraftDocument<'_, '_>,
    used: &[usize],
    faults: &mut FaultList,
) -> Option<(Vec<String>, Vec<SpecWarning>)> {
    let DraftDocument { columns, schema, attributes, general, .. } = document;
    let mut warnings: Vec<SpecWarning> = not_held(general, columns.origin).into_iter().collect();
    for &column in used {
        check_attribute(&columns.facts[column], schema, &attributes[column], &mut warnings, faults);
    }
    let names = published_names(columns, attributes, used, faults);
    if used.is_empty() && faults.is_empty() {
        faults.push(Fault::new("/attributes", Kind::BadColumns, "no attribute would be published"));
    }
    if used.len() > MAX_ATTRIBUTES {
        let detail = format!("a job publishes at most {MAX_ATTRIBUTES} attributes");
        let fault = Fault::new("/attributes", Kind::TooManyAttributes, detail);
        faults.push(fault.with("limit", MAX_ATTRIBUTES).with("found", used.len()));
        return None;
    }
    Some((names, warnings))
}

/// The warning that a release of the command line does not wait for an approval.
fn not_held(general: &GeneralMembers, origin: DocumentSource) -> Option<SpecWarning> {
    (general.hold && origin.is_local()).then(|| SpecWarning {
        pointer: Some("/hold".to_owned()),
        type_: NoticeKind::NotHeld,
        detail: "hold has no meaning on the command line: the release waits for no approval".to_owned(),
    })
}

/// Random queries have at most as many dimensions as there are published attributes.
fn check_workload(general: &GeneralMembers, used: &[usize], faults: &mut FaultList) {
    let Some(workload) = InternalUtility::from(&general.internal).count_queries else { return };
    if workload.dimensions as usize > used.len() {
        let detail = format!("queries of {} attributes over {} published ones", workload.dimensions, used.len());
        let fault = Fault::new("/internal/utility", Kind::ParameterRange, detail);
        faults.push(fault.with("allowed", "at most as many dimensions as published attributes"));
    }
}

/// Checks what some methods do not do with the published attributes, and measures that they do not define.
fn check_measures(method: &DraftMethod, scope: &ResolutionScope<'_, '_>, faults: &mut FaultList) {
    let ResolutionScope { columns, attributes, general, used, .. } = *scope;
    match method {
        DraftMethod::Generalize(draft) => draft.check(columns, attributes, used, general, faults),
        DraftMethod::Sequential(draft) => draft.check(columns, attributes, used, general, faults),
        DraftMethod::Decompose(_) => DraftDecompose::check(general, faults),
        DraftMethod::Versatile(_) | DraftMethod::Anatomy(_) | DraftMethod::Bucketize(_) | DraftMethod::Slicing(_) => {}
    }
}

/// The columns that dependencies name and that are not published; `None` when there are too many.
fn dropped_columns(method: &DraftMethod, used: &[usize], faults: &mut FaultList) -> Option<Vec<usize>> {
    let dropped = method.common().unpublished(used);
    let found = used.len() + dropped.len();
    if found > MAX_ATTRIBUTES {
        let detail = format!("a job uses at most {MAX_ATTRIBUTES} attributes, with those that dependencies name");
        let fault = Fault::new("/method/functional_dependencies", Kind::TooManyAttributes, detail);
        faults.push(fault.with("limit", MAX_ATTRIBUTES).with("found", found));
        return None;
    }
    Some(dropped)
}

/// The method over attributes, with the thresholds that its rules name; `None` after faults.
fn resolve_method(
    method: DraftMethod,
    scope: &ResolutionScope<'_, '_>,
    faults: &mut FaultList,
) -> Option<(MethodSpec, ThresholdsByDigest)> {
    let ResolutionScope { columns, attrs, .. } = scope;
    let named = match &method {
        DraftMethod::Versatile(draft) => draft.thresholds(),
        DraftMethod::Anatomy(draft) => draft.thresholds(),
        _ => ThresholdsByDigest::new(),
    };
    let method = match method {
        DraftMethod::Versatile(draft) => MethodSpec::Versatile(draft.resolve(columns, attrs)),
        DraftMethod::Anatomy(draft) => MethodSpec::Anatomy(draft.resolve(columns, attrs)?),
        DraftMethod::Bucketize(draft) => MethodSpec::Bucketize(draft.resolve(columns, attrs)?),
        DraftMethod::Decompose(draft) => MethodSpec::Decompose(draft.resolve(columns, attrs)?),
        DraftMethod::Generalize(draft) => MethodSpec::Generalize(draft.resolved(columns, attrs)),
        DraftMethod::Sequential(draft) => MethodSpec::Sequential(draft.resolved(columns, attrs)),
        DraftMethod::Slicing(draft) => MethodSpec::Slicing(resolve_slicing(&draft, scope, faults)?),
    };
    Some((method, named))
}

/// Slicing over attributes, and the measures that are not defined for its columns.
fn resolve_slicing(
    draft: &DraftSlicing,
    scope: &ResolutionScope<'_, '_>,
    faults: &mut FaultList,
) -> Option<SlicingSpec> {
    let ResolutionScope { columns, attributes, general, used, attrs } = scope;
    let measures = InternalUtility::from(&general.internal);
    if general.entropy() == Some(true) && !draft.has_entropy() {
        faults.unsupported(
            "/utility/0",
            "of sliced tables the entropy of the model is stated where they have two columns at most, which share no attribute \
             and are not generalized; leave utility out",
        );
    }
    if measures.kl && draft.generalizes_columns() {
        let detail = "kl is not measured of columns that are generalized; ask for count_queries";
        faults.unsupported("/internal/utility", detail);
    }
    let spec = draft.resolve(columns, attrs, attributes, used, faults)?;
    if measures.kl && !spec.forms_tree() {
        let detail = "kl is not measured of columns that share attributes in a circle; ask for count_queries";
        faults.unsupported("/internal/utility", detail);
    }
    Some(spec)
}

impl ResolutionScope<'_, '_> {
    /// The attributes of published identifiers for which the caller takes responsibility.
    fn overridden_identifiers(&self) -> Vec<Attr> {
        let overridden = self.used.iter().filter(|column| self.attributes[**column].overrides_identifier());
        overridden.map(|column| self.attrs[column]).collect()
    }

    fn excluded_values(&self) -> Vec<ExcludedValues> {
        let values = |column: &usize| ExcludedValues {
            attribute: self.attrs[column],
            values: self.attributes[*column].excludable.0.clone(),
        };
        self.used.iter().map(values).filter(|excluded| !excluded.values.is_empty()).collect()
    }

    /// The attributes that have a taxonomy, also one that is not written out yet.
    fn with_taxonomy(&self) -> AttrSet {
        let columns = self.used.iter().filter(|column| self.attributes[**column].taxonomy.value.is_some());
        columns.map(|column| self.attrs[column]).collect()
    }

    fn taxonomies(&self) -> Vec<DeclaredTaxonomy> {
        let tree = |column: &usize| match &self.attributes[*column].taxonomy.value {
            Some(TaxonomyChoice::Tree(tree)) => {
                Some(DeclaredTaxonomy { attribute: self.attrs[column], tree: Arc::clone(tree) })
            }
            Some(TaxonomyChoice::Named) | None => None,
        };
        self.used.iter().filter_map(tree).collect()
    }
}

/// The thresholds that the guarantees of rules name, with the attributes whose values they are for.
pub(in crate::spec) fn declared_thresholds(
    rules: &[SubmittedRule],
    named: &ThresholdsByDigest,
) -> Vec<DeclaredThresholds> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for rule in rules {
        let (Guarantee::Thresholds { digest, .. }, Protected::Attribute(attribute)) = (rule.guarantee, rule.protects)
        else {
            continue;
        };
        if let Some(thresholds) = named.get(&digest).filter(|_| seen.insert((attribute, digest))) {
            found.push(DeclaredThresholds { attribute, thresholds: thresholds.clone() });
        }
    }
    found
}

fn proposed(attrs: &HashMap<usize, Attr>, table: &DraftProposedTable) -> ProposedTable {
    ProposedTable {
        attributes: table.attributes.iter().map(|column| attrs[column]).collect(),
        sensitive: table.sensitive.map(|column| attrs[&column]),
    }
}

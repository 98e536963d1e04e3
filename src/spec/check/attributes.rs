//! Checks of single attributes.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

use super::specification::SpecWarning;
use super::values::values_missing;
use crate::microdata::AttrSet;
use crate::problem::{Fault, Kind};
use crate::publication::{
    ContributionChoice, DeclaredTaxonomy, ExcludedValues, Guarantee, JoinAttribute, NoticeKind, Protected, Unit,
    ValueDistance, XyMeasure, YElement,
};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::reader::{FaultList, child};
use crate::spec::grammar::schema::{ColumnFacts, DatasetSchema};
use crate::spec::methods::method::MethodSpec;
use crate::spec::methods::types::Algorithm;

/// Every column is published, dropped, or used in a rule.
pub(super) fn check_accounted(
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    mentioned: &BTreeSet<usize>,
    guessed: &BTreeSet<usize>,
    faults: &mut FaultList,
) {
    let accounted = |column: usize| {
        let options = &attributes[column];
        options.drop || options.publish || mentioned.contains(&column) || guessed.contains(&column)
    };
    let missing: Vec<&str> =
        (0..attributes.len()).filter(|column| !accounted(*column)).map(|column| columns.name(column)).collect();
    if !missing.is_empty() {
        let detail = format!("state publish or drop for {}, or use them in a rule", missing.join(", "));
        let fault = Fault::new("/attributes", Kind::UnclassifiedAttributes, detail);
        faults.push(fault.with("attributes", missing));
    }
}

/// Checks an attribute that would be published.
pub(super) fn check_attribute(
    facts: &ColumnFacts,
    schema: &DatasetSchema<'_>,
    options: &AttributeOptions,
    warnings: &mut Vec<SpecWarning>,
    faults: &mut FaultList,
) {
    let name = &facts.name;
    let pointer = child("/attributes", name);
    if options.drop {
        faults.range(child(&pointer, "drop"), "false, or no rule that uses the attribute");
    }
    let is_subject = matches!(schema.unit, Unit::Subject { attribute, .. } if attribute == name);
    let is_key = schema.keys.contains(name);
    let is_identifier = options.identifier.value == Some(true) || facts.identifier || is_key || is_subject;
    if is_identifier && !options.overrides_identifier() {
        let why = match (is_key, facts.identifier) {
            _ if is_subject => "tells persons apart",
            (true, _) => "belongs to a key of records or persons",
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

/// The published names, by attribute; none is taken twice.
pub(super) fn published_names(
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    used: &[usize],
    faults: &mut FaultList,
) -> Vec<String> {
    let published = |column: usize| attributes[column].rename().unwrap_or(columns.name(column));
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

/// Excluded values are defined for guarantees on single values of single attributes alone.
pub(super) fn check_excludable(
    columns: &DatasetColumns<'_>,
    used: &[usize],
    excludable: &[ExcludedValues],
    method: &MethodSpec,
    faults: &mut FaultList,
) {
    // the buckets of multi_sa protect an attribute from an adversary who knows the other sensitive ones
    let joint = matches!(method, MethodSpec::Versatile(spec) if spec.algorithm == Algorithm::MultiSa);
    for excluded @ ExcludedValues { attribute, .. } in excludable {
        let name = columns.name(used[attribute.index()]);
        let pointer = child(&child("/attributes", name), "excludable");
        let mut rules = method.rules().iter().filter(|rule| rule.protects.attributes().contains(*attribute));
        let undefined = rules.find_map(|rule| match rule.protects {
            Protected::Joint(_) => Some("a combination".to_owned()),
            Protected::Rows => None,
            Protected::Attribute(_) if !rule.guarantee.covers_combinations() => {
                Some(rule.guarantee.as_str().to_owned())
            }
            Protected::Attribute(_) if joint => Some("multi_sa".to_owned()),
            Protected::Attribute(_) if matches!(method, MethodSpec::Bucketize(spec) if spec.ignores(excluded)) => {
                Some("bucketize".to_owned())
            }
            Protected::Attribute(_) if matches!(method, MethodSpec::Decompose(_)) => Some("decompose".to_owned()),
            Protected::Attribute(_) => None,
        });
        if let Some(what) = undefined {
            faults.unsupported(pointer, format!("{what} says nothing of {name} once some of its values are ruled out"));
        }
    }
}

/// Which rows of a person are published must say nothing of a protected attribute.
pub(super) fn check_choice_of_rows(
    columns: &DatasetColumns<'_>,
    used: &[usize],
    unit: &Unit,
    method: &MethodSpec,
    faults: &mut FaultList,
) {
    let Some(ContributionChoice::First(order)) = unit.kept() else { return };
    let mut refuse = |facts: &ColumnFacts, pointer: &str| {
        let name = facts.name.as_str();
        let tie = if name == order { "it" } else { "a column that is tied to it" };
        let detail = format!(
            "{name} must not be inferred, and {tie} decided which rows of a person were kept: upload the table with keep and \
             without keep_order, so that rows are drawn, or with another keep_order"
        );
        faults.push(
            Fault::new(pointer, Kind::GuaranteeUnsupported, detail)
                .with("attribute", name)
                .with("order", order.as_str()),
        );
    };
    for rule in method.rules() {
        for attr in rule.protects.attributes().iter() {
            if let Some(facts) = used.get(attr.index()).map(|&column| &columns.facts[column]).filter(|of| of.chose_rows)
            {
                refuse(facts, &rule.pointer);
            }
        }
    }
    for requirement in method.requirements() {
        if matches!(requirement.measure, XyMeasure::Anonymity { .. }) {
            continue;
        }
        for element in &requirement.y {
            if let YElement::Attribute(JoinAttribute { attribute, release: 0 }) = element
                && let Some(facts) = columns.facts.iter().find(|facts| facts.name == *attribute && facts.chose_rows)
            {
                refuse(facts, &requirement.pointer);
            }
        }
    }
}

/// The hierarchical distance needs a taxonomy of the protected attribute.
pub(super) fn check_distances(
    columns: &DatasetColumns<'_>,
    used: &[usize],
    with_taxonomy: AttrSet,
    method: &MethodSpec,
    faults: &mut FaultList,
) {
    for rule in method.rules() {
        if !matches!(rule.guarantee, Guarantee::TCloseness { distance: ValueDistance::Hierarchical, .. }) {
            continue;
        }
        for attr in rule.protects.attributes().minus(with_taxonomy).iter() {
            let name = columns.name(used[attr.index()]);
            let place = child(&child("/attributes", name), "taxonomy");
            let detail = format!("the hierarchical distance goes by a taxonomy of {name}: state one in {place}");
            let fault = Fault::new(rule.pointer.as_str(), Kind::GuaranteeUnsupported, detail);
            faults.push(fault.with("attribute", name));
        }
    }
}

/// A taxonomy with fewer leaves than its attribute has values lacks some of them.
pub(super) fn check_leaves(
    columns: &DatasetColumns<'_>,
    used: &[usize],
    taxonomies: &[DeclaredTaxonomy],
    dataset: Option<Uuid>,
    faults: &mut FaultList,
) {
    for DeclaredTaxonomy { attribute, tree } in taxonomies {
        let facts = &columns.facts[used[attribute.index()]];
        // one decimal may have several spellings
        let distinct = facts.distinct.filter(|_| !facts.kind.has_spellings()).unwrap_or(0);
        let missing = distinct.saturating_sub(tree.leaves().len() as u64);
        if missing > 0 {
            let dataset = dataset.map(|dataset| dataset.to_string());
            let detail = format!("at least {missing} values of {} are no leaves of its taxonomy", facts.name);
            faults.push(values_missing(&facts.name, missing, detail, dataset.as_deref()));
        }
    }
}

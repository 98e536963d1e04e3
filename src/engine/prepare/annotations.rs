//! Annotations of columns: declared values, taxonomies and thresholds, bound to the values of the table.

use std::collections::BTreeMap;

use crate::microdata::{Attr, ColumnAnnotations, Table};
use crate::problem::{Fault, Kind};
use crate::publication::{DeclaredTaxonomy, DeclaredThresholds, ExcludedValues, Protected, SubmittedRule};
use crate::publish::bucketize::{ValueThreshold, shares};
use crate::spec::{Specification, child, values_missing, values_pointer};

use super::unused_thresholds::{Inspection, unused_thresholds};

/// The table with the annotations of the specification, and the faults of annotations that do not fit its values.
///
/// A fault names a declared value that does not occur, a taxonomy or thresholds that lack values, or thresholds of values that do
/// not occur.
#[must_use]
pub fn annotate(specification: &Specification, mut table: Table, inspection: Inspection) -> (Table, Vec<Fault>) {
    let dataset = specification.normalized["dataset"].as_str();
    let mut annotations: BTreeMap<Attr, ColumnAnnotations> = BTreeMap::new();
    let mut faults = unused_thresholds(specification, &table, inspection);
    for ExcludedValues { attribute, values } in &specification.excludable {
        let codes = table.column(*attribute).domain.codes_of(values);
        let name = &specification.names[attribute.index()];
        // a declared missing value need not occur
        let unknown = codes.iter().enumerate().filter(|(at, codes)| codes.is_empty() && values[*at].is_some());
        let pointer = child(&child("/attributes", name), "excludable");
        faults.extend(unknown.map(|(at, _)| {
            let fault =
                Fault::new(format!("{pointer}/{at}"), Kind::ParameterRange, format!("no row has this value of {name}"));
            values_pointer(fault.with("allowed", format!("a value of {name}, or null")), name, dataset)
        }));
        annotations.insert(*attribute, ColumnAnnotations::without(codes.into_iter().flatten().collect()));
    }
    for DeclaredTaxonomy { attribute, tree } in &specification.taxonomies {
        let name = &specification.names[attribute.index()];
        match tree.bind(&table.column(*attribute).domain) {
            Ok(bound) => {
                let column_annotations = annotations.remove(attribute).unwrap_or_default();
                annotations.insert(*attribute, column_annotations.along(bound));
            }
            Err(holes) => {
                if holes.missing > 0 {
                    let detail = format!("{} values of {name} are no leaves of its taxonomy", holes.missing);
                    faults.push(values_missing(name, holes.missing, detail, dataset));
                }
                if holes.twice > 0 {
                    let detail =
                        format!("{} leaves of the taxonomy are the same value of {name} as another", holes.twice);
                    let pointer = child(&child("/attributes", name), "taxonomy");
                    let fault = Fault::new(pointer, Kind::TaxonomyConflict, detail).with("count", holes.twice);
                    faults.push(values_pointer(fault, name, dataset));
                }
            }
        }
    }
    for declared @ DeclaredThresholds { attribute, thresholds } in &specification.thresholds {
        let name = &specification.names[attribute.index()];
        let column = table.column(*attribute);
        let counts = column.counts();
        let pointer = pointer_of(declared, specification);
        match shares(thresholds.declared(), &column.domain, &counts) {
            Ok(shares) => {
                let mut occurring = shares.iter().zip(&counts).filter(|(_, count)| **count > 0);
                if occurring.all(|(share, _)| share.is_all()) {
                    let detail = format!("every value of {name} may take all of a bucket: state a threshold below 1");
                    faults.push(Fault::new(pointer, Kind::VacuousGuarantee, detail));
                }
                let limits = shares.into_iter().map(ValueThreshold::fraction).collect();
                let column_annotations = annotations.remove(attribute).unwrap_or_default();
                annotations.insert(*attribute, column_annotations.limited(*thresholds.name().bytes(), limits));
            }
            Err(missing) => {
                let detail = format!("{missing} values of {name} have no threshold");
                let fault = Fault::new(pointer, Kind::ThresholdMissing, detail).with("missing", missing);
                faults.push(values_pointer(fault, name, dataset));
            }
        }
    }
    for (attribute, annotations) in annotations {
        table = table.on(attribute, annotations);
    }
    (table, faults)
}

/// The pointer of the first rule with these thresholds.
pub(in crate::engine) fn pointer_of<'s>(declared: &DeclaredThresholds, specification: &'s Specification) -> &'s str {
    let guarantee = declared.thresholds.guarantee();
    let of = |rule: &&SubmittedRule| {
        rule.protects == Protected::Attribute(declared.attribute) && rule.guarantee == guarantee
    };
    specification.method.rules().iter().find(of).map_or("/method", |rule| rule.pointer.as_str())
}

/// The faults of a specification with those of its annotations, which replace faults of the same kind and pointer.
#[must_use]
pub fn annotate_with_unknown(mut faults: Vec<Fault>, unknown: Vec<Fault>) -> Vec<Fault> {
    faults.retain(|known| unknown.iter().all(|fault| (&fault.pointer, fault.kind) != (&known.pointer, known.kind)));
    faults.extend(unknown);
    faults
}

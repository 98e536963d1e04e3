//! Annotations of columns: declared values, taxonomies and thresholds, bound to the values of the table.

use std::collections::BTreeMap;

use crate::control::Control;
use crate::microdata::{Attr, AttrSet, ColumnAnnotations, Table};
use crate::problem::{Fault, Kind};
use crate::publication::{DeclaredTaxonomy, DeclaredThresholds, ExcludedValues, Protected, SubmittedRule};
use crate::publish::bucketize::{ValueThreshold, shares, try_sizes};
use crate::spec::{MethodSpec, Specification, child, values_missing, values_pointer};

use super::unused_thresholds::{Inspection, unused_thresholds};

/// The table with the annotations of the specification, and the faults of annotations that do not fit its values.
///
/// A fault names a declared value that does not occur, a taxonomy or thresholds that lack values, or thresholds of values that do
/// not occur.
#[must_use]
pub fn annotate(specification: &Specification, table: Table, inspection: Inspection) -> (Table, Vec<Fault>) {
    let Annotator { annotations, faults, .. } = Annotator::new(specification, &table, inspection);
    (annotations.into_iter().fold(table, |table, (attribute, annotations)| table.on(attribute, annotations)), faults)
}

/// The table with the taxonomies of some attributes, and the faults of those that lack values.
#[must_use]
pub(crate) fn annotate_trees(specification: &Specification, table: Table, among: AttrSet) -> (Table, Vec<Fault>) {
    let mut annotator = Annotator { specification, table: &table, annotations: BTreeMap::new(), faults: Vec::new() };
    let declared = specification.taxonomies.iter().filter(|declared| among.contains(declared.attribute));
    declared.for_each(|declared| annotator.bind(declared));
    let Annotator { annotations, faults, .. } = annotator;
    (annotations.into_iter().fold(table, |table, (attribute, annotations)| table.on(attribute, annotations)), faults)
}

/// Collects the annotations of columns, and the faults of those that do not fit the values of the table.
struct Annotator<'a> {
    specification: &'a Specification,
    table: &'a Table,
    annotations: BTreeMap<Attr, ColumnAnnotations>,
    faults: Vec<Fault>,
}

/// The faults of [`annotate`], and those of the sizes of buckets that values fill. `None` where the specification is of other columns
/// than the table, where that takes too long, and on cancellation.
#[must_use]
pub fn faults_of_values(
    specification: &Specification,
    table: &Table,
    inspection: Inspection,
    control: &Control,
) -> Option<Vec<Fault>> {
    if specification.names != table.names() {
        return None;
    }
    let mut faults = Annotator::new(specification, table, inspection).faults;
    if let MethodSpec::Bucketize(spec) = &specification.method
        && let Some(sensitive) = spec.rule.protects.attributes().iter().next()
    {
        faults.extend(try_sizes(spec, table.column(sensitive), control).ok().flatten()?);
    }
    Some(faults)
}

impl<'a> Annotator<'a> {
    fn new(specification: &'a Specification, table: &'a Table, inspection: Inspection) -> Self {
        let faults = unused_thresholds(specification, table, inspection);
        let mut annotator = Self { specification, table, annotations: BTreeMap::new(), faults };
        specification.excludable.iter().for_each(|declared| annotator.exclude(declared));
        specification.taxonomies.iter().for_each(|declared| annotator.bind(declared));
        specification.thresholds.iter().for_each(|declared| annotator.limit(declared));
        annotator
    }

    fn name(&self, attribute: Attr) -> &'a str {
        &self.specification.names[attribute.index()]
    }

    /// The pointer of an option of an attribute.
    fn option(&self, attribute: Attr, option: &str) -> String {
        child(&child("/attributes", self.name(attribute)), option)
    }

    fn dataset(&self) -> Option<&'a str> {
        self.specification.normalized["dataset"].as_str()
    }

    fn annotate(&mut self, attribute: Attr, change: impl FnOnce(ColumnAnnotations) -> ColumnAnnotations) {
        let annotations = self.annotations.remove(&attribute).unwrap_or_default();
        self.annotations.insert(attribute, change(annotations));
    }

    /// Excluded values; each must occur, but for the missing one.
    fn exclude(&mut self, ExcludedValues { attribute, values }: &ExcludedValues) {
        let codes = self.table.column(*attribute).domain.codes_of(values);
        let (name, pointer, dataset) = (self.name(*attribute), self.option(*attribute, "excludable"), self.dataset());
        let unknown = codes.iter().enumerate().filter(|(at, codes)| codes.is_empty() && values[*at].is_some());
        self.faults.extend(unknown.map(|(at, _)| {
            let detail = format!("no row has this value of {name}");
            let fault = Fault::new(format!("{pointer}/{at}"), Kind::ParameterRange, detail);
            values_pointer(fault.with("allowed", format!("a value of {name}, or null")), name, dataset)
        }));
        self.annotations.insert(*attribute, ColumnAnnotations::without(codes.into_iter().flatten().collect()));
    }

    /// A taxonomy, whose leaves must be the values.
    fn bind(&mut self, DeclaredTaxonomy { attribute, tree }: &DeclaredTaxonomy) {
        let (name, dataset) = (self.name(*attribute), self.dataset());
        let holes = match tree.bind(&self.table.column(*attribute).domain) {
            Ok(bound) => return self.annotate(*attribute, |annotations| annotations.along(bound)),
            Err(holes) => holes,
        };
        if holes.missing > 0 {
            let detail = format!("{} values of {name} are no leaves of its taxonomy", holes.missing);
            self.faults.push(values_missing(name, holes.missing, detail, dataset));
        }
        if holes.twice > 0 {
            let detail = format!("{} leaves of the taxonomy are the same value of {name} as another", holes.twice);
            let fault = Fault::new(self.option(*attribute, "taxonomy"), Kind::TaxonomyConflict, detail);
            self.faults.push(values_pointer(fault.with("count", holes.twice), name, dataset));
        }
    }

    /// Thresholds, of which each value must have one, and some value one below 1.
    fn limit(&mut self, declared: &DeclaredThresholds) {
        let DeclaredThresholds { attribute, thresholds } = declared;
        let (name, pointer) = (self.name(*attribute), pointer_of(declared, self.specification));
        let column = self.table.column(*attribute);
        let counts = column.counts();
        let shares = match shares(thresholds.declared(), &column.domain, &counts) {
            Ok(shares) => shares,
            Err(missing) => {
                let detail = format!("{missing} values of {name} have no threshold");
                let fault = Fault::new(pointer, Kind::ThresholdMissing, detail).with("missing", missing);
                return self.faults.push(values_pointer(fault, name, self.dataset()));
            }
        };
        let mut occurring = shares.iter().zip(&counts).filter(|(_, count)| **count > 0);
        if occurring.all(|(share, _)| share.is_all()) {
            let detail = format!("every value of {name} may take all of a bucket: state a threshold below 1");
            self.faults.push(Fault::new(pointer, Kind::VacuousGuarantee, detail));
        }
        let limits = shares.into_iter().map(ValueThreshold::fraction).collect();
        self.annotate(*attribute, |annotations| annotations.limited(*thresholds.name().bytes(), limits));
    }
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

//! Changes that may end faults which list no repairs: bounds that the data keeps, and entries that are untrue of it.

use serde_json::{Value, json};

use super::{Repair, RepairTrials};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Ratio, XyMeasure};
use crate::spec::{Algorithm, MethodSpec, SlicedColumns, Specification};

impl RepairTrials<'_> {
    /// The changes that may end a fault; the likeliest first.
    pub(super) fn unlisted(&self, fault: &Fault) -> Vec<Repair> {
        let number = |of: &Value, name: &str| of.get(name).and_then(Value::as_u64).filter(|number| *number > 1);
        let members = Value::Object(fault.members.clone());
        let pointer = fault.pointer.as_str();
        let found = match fault.kind {
            Kind::InfeasibleRoot => vec![
                number(&members, "largest_k").and_then(|k| self.smaller_k(k, pointer)),
                members["smallest_h"].as_str().and_then(|h| self.larger_h(h.parse().ok()?, pointer)),
                self.sensitive_alone(),
            ],
            Kind::CanBeConcluded => vec![self.suppressed_chain()],
            Kind::MultiSaEmpty => vec![self.other_algorithm(Algorithm::Uad)],
            Kind::UnknownDependency => vec![self.without_entry(pointer, "assume_unknown", |specification, at| {
                specification.knowledge.assumed_unknown.remove(at);
            })],
            Kind::ExclusionContradicted => vec![self.without_entry(pointer, "exclusions", |specification, at| {
                if let MethodSpec::Sequential(spec) = &mut specification.method {
                    spec.exclusions.remove(at);
                }
            })],
            _ => Vec::new(),
        };
        found.into_iter().flatten().collect()
    }

    /// The largest k that the coarsest release keeps.
    fn smaller_k(&self, k: u64, pointer: &str) -> Option<Repair> {
        let measure = XyMeasure::Anonymity { k: k * self.specification.unit.rows() };
        self.with_measure(pointer, "lower_k", json!(k), |written| {
            written["k"] = k.into();
            Some(measure)
        })
    }

    /// The smallest share that the coarsest release keeps.
    fn larger_h(&self, h: Ratio, pointer: &str) -> Option<Repair> {
        if self.specification.unit.rows() > 1 || h >= Ratio::ONE {
            return None;
        }
        let MethodSpec::Sequential(spec) = &self.specification.method else { return None };
        let requirement = spec.requirements.iter().find(|requirement| requirement.pointer == pointer)?;
        let XyMeasure::Linkability { sensitive, .. } = requirement.measure.clone() else { return None };
        self.with_measure(pointer, "raise_h", h.to_string().into(), |written| {
            written["h"] = h.to_string().into();
            Some(XyMeasure::Linkability { h, sensitive })
        })
    }

    fn with_measure(
        &self,
        pointer: &str,
        name: &'static str,
        value: Value,
        change: impl FnOnce(&mut Value) -> Option<XyMeasure>,
    ) -> Option<Repair> {
        let at: usize = pointer.strip_prefix("/method/requirements/")?.parse().ok()?;
        let mut requirements = self.specification.normalized.pointer("/method/requirements")?.clone();
        let measure = change(requirements.get_mut(at)?.get_mut("measure")?)?;
        let mut specification = self.specification.clone();
        let MethodSpec::Sequential(spec) = &mut specification.method else { return None };
        spec.requirements.iter_mut().find(|requirement| requirement.pointer == pointer)?.measure = measure;
        let patch = json!({ "method": { "requirements": requirements } });
        Some(self.changed(name, value, patch, specification))
    }

    /// The sensitive attribute in a column of its own.
    fn sensitive_alone(&self) -> Option<Repair> {
        let mut specification = self.specification.clone();
        let MethodSpec::Slicing(spec) = &mut specification.method else { return None };
        let sensitive = spec.sensitive();
        let (columns, written) = match &spec.columns {
            SlicedColumns::Explicit(columns) => {
                let alone = [sensitive].into_iter().collect();
                // columns that overlap tie the sensitive attribute to others in any case
                if columns.contains(&alone) || columns.iter().filter(|column| column.contains(sensitive)).count() > 1 {
                    return None;
                }
                let others = columns.iter().map(|column| column.without(sensitive)).chain([alone]).collect::<Vec<_>>();
                let names = others.iter().map(|column| self.names(*column)).collect::<Vec<_>>();
                (SlicedColumns::Explicit(others), json!({ "explicit": names }))
            }
            SlicedColumns::SensitiveWidth { width: ..2, .. } => return None,
            SlicedColumns::Count(count) | SlicedColumns::SensitiveWidth { count, .. } => {
                let count = (*count).max(2);
                (SlicedColumns::SensitiveWidth { count, width: 1 }, json!({ "count": count, "sensitive_width": 1 }))
            }
        };
        spec.columns = columns;
        let patch = json!({ "method": { "columns": written } });
        Some(self.changed("sensitive_width", 1.into(), patch, specification))
    }

    /// A decomposition without the rows that lead from a primary value to another one.
    fn suppressed_chain(&self) -> Option<Repair> {
        let mut specification = self.specification.clone();
        let MethodSpec::Decompose(spec) = &mut specification.method else { return None };
        if std::mem::replace(&mut spec.suppress_chain, true) {
            return None;
        }
        let patch = json!({ "method": { "suppress_chain": true } });
        Some(self.changed("suppress_chain", true.into(), patch, specification))
    }

    /// Lists of `l` values of a sensitive attribute of a decomposition.
    pub(super) fn lists_of(&self, l: u64, pointer: &str) -> Option<Repair> {
        let mut specification = self.specification.clone();
        let MethodSpec::Decompose(spec) = &mut specification.method else { return None };
        let rule = spec.rules.iter_mut().find(|rule| rule.pointer == pointer)?;
        rule.guarantee = Guarantee::LDiversity { l: l * self.specification.unit.rows() };
        let names = self.names(rule.protects.attributes());
        let name = names.first()?;
        let patch = json!({ "method": { "l": { *name: l } } });
        Some(self.changed("lower_l", l.into(), patch, specification))
    }

    /// Another algorithm, which makes other tables.
    pub(super) fn other_algorithm(&self, algorithm: Algorithm) -> Option<Repair> {
        let mut specification = self.specification.clone();
        let MethodSpec::Versatile(spec) = &mut specification.method else { return None };
        if std::mem::replace(&mut spec.algorithm, algorithm) == algorithm {
            return None;
        }
        let patch = json!({ "method": { "algorithm": algorithm.as_str() } });
        Some(self.changed("algorithm", algorithm.as_str().into(), patch, specification))
    }

    /// The method without an entry of a list, at `pointer`.
    fn without_entry(
        &self,
        pointer: &str,
        list: &'static str,
        remove: impl FnOnce(&mut Specification, usize),
    ) -> Option<Repair> {
        let at: usize = pointer.strip_prefix("/method/")?.strip_prefix(list)?.strip_prefix('/')?.parse().ok()?;
        let mut entries = self.specification.normalized.get("method")?.get(list)?.as_array()?.clone();
        if at >= entries.len() {
            return None;
        }
        entries.remove(at);
        let mut specification = self.specification.clone();
        remove(&mut specification, at);
        let patch = json!({ "method": { list: entries } });
        Some(self.changed("leave_out", format!("entry {at} of {list}").into(), patch, specification))
    }
}

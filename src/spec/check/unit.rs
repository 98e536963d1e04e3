//! Guarantees for rows that imply the guarantees of a document for persons (`docs/security/threat-model.md`).

use std::collections::BTreeMap;

use crate::problem::{Fault, Kind};
use crate::publication::{
    DigestedThresholds, Guarantee, SubmittedRule, ThresholdsDigest, Unit, XyMeasure, XyRequirement, YElement,
};
use crate::spec::grammar::guarantee::ThresholdsByDigest;
use crate::spec::grammar::reader::{FaultList, child};
use crate::spec::methods::method::MethodSpec;

/// Replaces guarantees for persons by guarantees for rows.
pub(in crate::spec) struct UnitEnforcer<'a> {
    pub(in crate::spec) unit: &'a Unit,
    pub(in crate::spec) faults: &'a mut FaultList,
}

impl UnitEnforcer<'_> {
    /// Replaces the guarantees of a method; `named` are the thresholds that its rules name.
    pub(in crate::spec) fn on(&mut self, method: &mut MethodSpec, named: &mut ThresholdsByDigest) {
        if self.unit.rows() == 1 {
            return;
        }
        match method {
            MethodSpec::Versatile(spec) => self.rules(&mut spec.rules, named),
            MethodSpec::Anatomy(spec) => self.rules(std::slice::from_mut(&mut spec.rule), named),
            MethodSpec::Generalize(spec) => self.rules(&mut spec.rules, named),
            MethodSpec::Bucketize(spec) => {
                let declared = DigestedThresholds::from(spec.thresholds.clone());
                let mut own = ThresholdsByDigest::from([(declared.name(), declared)]);
                self.rules(std::slice::from_mut(&mut spec.rule), &mut own);
                if let Some(enforced) = own.into_values().next() {
                    spec.thresholds = enforced.declared().clone();
                }
                if spec.counterfeits.is_some() {
                    let detail = "counterfeits hide rows one by one, and a person has several";
                    self.faults.unsupported("/method/counterfeits", detail);
                }
            }
            MethodSpec::Slicing(spec) => {
                self.rules(std::slice::from_mut(&mut spec.rule), named);
                if let Some(l) = spec.l {
                    spec.l = self.unit.l_of(l);
                    if spec.l.is_none() {
                        self.too_large("/method/guarantee/l");
                    }
                }
                if let Some(k) = spec.column_k {
                    spec.column_k = self.unit.rows_of(k);
                    if spec.column_k.is_none() {
                        self.too_large("/method/column_k");
                    }
                }
            }
            MethodSpec::Sequential(spec) => self.requirements(&mut spec.requirements),
            MethodSpec::Decompose(spec) => self.rules(&mut spec.rules, named),
        }
    }

    fn rules(&mut self, rules: &mut [SubmittedRule], named: &mut ThresholdsByDigest) {
        let of = self.unit.rows();
        let declared = std::mem::take(named);
        let divided = |(name, declared): (&ThresholdsDigest, &DigestedThresholds)| {
            Some((*name, DigestedThresholds::from(declared.declared().divided(of)?)))
        };
        let divided: BTreeMap<ThresholdsDigest, DigestedThresholds> = declared.iter().filter_map(divided).collect();
        let mut reported: Vec<String> = Vec::new();
        for rule in rules {
            let enforced = match rule.guarantee {
                Guarantee::Thresholds { digest, .. } => divided.get(&digest).map(DigestedThresholds::guarantee),
                other => self.unit.enforced(other),
            };
            let Some(enforced) = enforced else {
                // a rule that protects several attributes is one of the document
                if !reported.contains(&rule.pointer) {
                    reported.push(rule.pointer.clone());
                    self.unsaid(rule);
                }
                continue;
            };
            rule.guarantee = enforced;
        }
        *named = divided.into_values().map(|enforced| (enforced.name(), enforced)).collect();
    }

    /// Divides requirements: R different rows belong to at least one person, and a value's share of rows is at most R times its share of
    /// persons. Requirements on other counts have no definition for persons.
    fn requirements(&mut self, requirements: &mut [XyRequirement]) {
        for XyRequirement { pointer, y, measure, .. } in requirements {
            let pointer = child(pointer, "measure");
            let keys = y.iter().filter(|element| matches!(element, YElement::Key(_))).count();
            match measure {
                XyMeasure::Anonymity { k } if keys == 1 && y.len() == 1 => match self.unit.rows_of(*k) {
                    Some(rows) => *k = rows,
                    None => self.too_large(&pointer),
                },
                XyMeasure::Linkability { h, .. } if keys <= 1 => match self.unit.share_of(*h) {
                    Some(share) => *h = share,
                    None => self.too_large(&pointer),
                },
                XyMeasure::Anonymity { .. } | XyMeasure::Linkability { .. } => {
                    let detail = "says nothing of persons with several rows: ask for xy_anonymity over the rows of one release, or for \
                                  xy_linkability over those of one at most";
                    self.faults.unsupported(pointer, detail);
                }
            }
        }
    }

    fn unsaid(&mut self, rule: &SubmittedRule) {
        match rule.guarantee {
            Guarantee::LDiversity { .. }
            | Guarantee::AlphaK { .. }
            | Guarantee::KAnonymity { .. }
            | Guarantee::Thresholds { .. } => self.too_large(&rule.pointer),
            other => {
                let word = other.as_str();
                let detail = format!(
                    "{word} says nothing of persons with several rows: ask for l_diversity, alpha_k or thresholds, or upload one row of each"
                );
                self.faults.unsupported(rule.pointer.as_str(), detail);
            }
        }
    }

    fn too_large(&mut self, pointer: &str) {
        let allowed = "bounds that can be kept by rows, of which a person has max_rows_per_subject";
        self.faults
            .push(Fault::new(pointer, Kind::ParameterRange, format!("expected {allowed}")).with("allowed", allowed));
    }
}

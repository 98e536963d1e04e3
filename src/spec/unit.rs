//! What rows must keep so that persons are kept what a document states.

use super::reader::{Faults, child};
use super::types::MethodSpec;
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Requirement, SubmittedRule, Thresholds, Told, Unit, XyMeasure};

/// Rows and persons.
pub(super) struct Enforce<'a> {
    pub(super) unit: &'a Unit,
    pub(super) faults: &'a mut Faults,
}

impl Enforce<'_> {
    /// Makes a method keep of rows what it states of persons; `named` are the thresholds that its rules name.
    pub(super) fn on(&mut self, method: &mut MethodSpec, named: &mut [Thresholds]) {
        if self.unit.rows() == 1 {
            return;
        }
        match method {
            MethodSpec::Versatile(spec) => self.rules(&mut spec.rules, named),
            MethodSpec::Anatomy(spec) => self.rules(std::slice::from_mut(&mut spec.rule), named),
            MethodSpec::Generalize(spec) => self.rules(&mut spec.rules, named),
            MethodSpec::Bucketize(spec) => {
                self.rules(std::slice::from_mut(&mut spec.rule), std::slice::from_mut(&mut spec.thresholds));
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

    fn rules(&mut self, rules: &mut [SubmittedRule], named: &mut [Thresholds]) {
        let of = self.unit.rows();
        let stated: Vec<Thresholds> = named.to_vec();
        let divided: Vec<Option<Thresholds>> = stated.iter().map(|thresholds| thresholds.divided(of)).collect();
        let mut told: Vec<String> = Vec::new();
        for rule in rules {
            let enforced = match rule.guarantee {
                Guarantee::Thresholds { stated: name, .. } => {
                    let at = stated.iter().position(|thresholds| thresholds.name() == name);
                    at.and_then(|at| divided[at].as_ref()).map(Thresholds::guarantee)
                }
                other => self.unit.enforced(other),
            };
            let Some(enforced) = enforced else {
                // a rule that protects several attributes is one of the document
                if !told.contains(&rule.pointer) {
                    told.push(rule.pointer.clone());
                    self.unsaid(rule);
                }
                continue;
            };
            rule.guarantee = enforced;
        }
        for (thresholds, divided) in named.iter_mut().zip(divided) {
            if let Some(divided) = divided {
                *thresholds = divided;
            }
        }
    }

    /// So many different rows are of at least so many persons, and a share of rows of at most R times that of persons; of what is
    /// counted otherwise nobody has said what that is.
    fn requirements(&mut self, requirements: &mut [Requirement]) {
        for Requirement { pointer, y, measure, .. } in requirements {
            let pointer = child(pointer, "measure");
            let keys = y.iter().filter(|told| matches!(told, Told::Key(_))).count();
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
                let word = other.word();
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

//! Repairs of rules that dependencies make impossible: each is tried, and carries the merge patch (RFC 7396) that makes it.

use serde_json::{Map, Value, json};

use super::known::JobDependencies;
use super::prepared::{PreparedRelease, feasible_design};
use crate::control::Cancelled;
use crate::microdata::{Attr, AttrSet};
use crate::privacy::Dependency;
use crate::privacy::links::{KnownDependencies, KnownDependency, Link};
use crate::problem::{Fault, Kind};
use crate::publication::Guarantee;
use crate::publish::{PlanError, PlanRefusal};
use crate::spec::{MethodSpec, Specification};

/// Maximal number of repairs that are tried for a specification; those behind are not listed.
const MAX_TRIALS: usize = 14;

/// The reason in a patch, to be replaced by the officer's own.
const REASON: &str = "the reason, which is to be given";

/// Prepares a changed specification among changed dependencies.
pub(in crate::engine) type PrepareAgain<'a> =
    &'a dyn Fn(&Specification, JobDependencies) -> Result<PreparedRelease, PlanError>;

/// Tries repairs of a refused specification.
pub(in crate::engine) struct RepairTrials<'a> {
    pub(in crate::engine) specification: &'a Specification,
    pub(in crate::engine) dependencies: &'a JobDependencies,
    pub(in crate::engine) prepare: PrepareAgain<'a>,
}

/// A change of the document, and what it changes in memory.
struct Repair {
    /// The member that names it, with its value.
    name: &'static str,
    value: Value,
    patch: Value,
    specification: Specification,
    dependencies: JobDependencies,
}

impl RepairTrials<'_> {
    /// The faults with those of their repairs that hold, each with its patch.
    pub(in crate::engine) fn tried(&self, faults: Vec<Fault>) -> Result<Vec<Fault>, Cancelled> {
        let mut trials = MAX_TRIALS;
        let mut tried = Vec::new();
        for mut fault in faults {
            let listed = fault.members.remove("repairs");
            if let Some(Value::Array(listed)) = listed {
                let mut repairs = Vec::new();
                for repair in listed.iter().filter_map(|listed| self.repair(listed, &fault.pointer)) {
                    if trials > 0 && self.holds(&repair, &fault.pointer)? {
                        repairs.push(json!({ repair.name: repair.value, "patch": repair.patch }));
                    }
                    trials = trials.saturating_sub(1);
                }
                fault = fault.with("repairs", repairs);
            }
            tried.push(fault);
        }
        Ok(tried)
    }

    /// Whether the rule at `pointer` is possible after a repair.
    fn holds(&self, repair: &Repair, pointer: &str) -> Result<bool, Cancelled> {
        let prepared = match (self.prepare)(&repair.specification, repair.dependencies.clone()) {
            Ok(prepared) => prepared,
            Err(PlanError::Refused(_)) => return Ok(false),
            Err(PlanError::Cancelled(cancelled)) => return Err(cancelled),
        };
        let Err(PlanRefusal(faults)) = feasible_design(&prepared.design, &repair.specification) else {
            return Ok(true);
        };
        let is_same = |fault: &Fault| {
            fault.pointer == pointer && matches!(fault.kind, Kind::RuleImpossible | Kind::RuleIneligible)
        };
        Ok(!faults.iter().any(is_same))
    }

    /// A listed repair as a change of the document; `None` where the document cannot say it.
    fn repair(&self, listed: &Value, pointer: &str) -> Option<Repair> {
        let (name, value) = listed.as_object()?.iter().next()?;
        match name.as_str() {
            "leave_out_of_known" => self.leave_out(self.attributes(value)?, pointer),
            "lower_l" => self.lower_l(value.as_u64()?, pointer),
            "drop" => self.drop(self.attributes(value)?),
            "assume_unknown" => self.assume_unknown(value),
            _ => None,
        }
    }

    fn attributes(&self, names: &Value) -> Option<AttrSet> {
        names.as_array()?.iter().map(|name| self.attribute(name.as_str()?)).collect()
    }

    fn attribute(&self, name: &str) -> Option<Attr> {
        let Specification { published_names, dropped_names, .. } = self.specification;
        published_names.iter().chain(dropped_names).position(|known| known == name).map(Attr::from)
    }

    /// The names of the dataset, which documents use.
    fn names(&self, set: AttrSet) -> Vec<&str> {
        let Specification { names, dropped_names, .. } = self.specification;
        let all: Vec<&str> = names.iter().chain(dropped_names).map(String::as_str).collect();
        set.iter().filter_map(|attr| all.get(attr.index()).copied()).collect()
    }

    /// The patch that changes the rule at `pointer` of a method, or the method itself.
    fn patch(&self, pointer: &str, change: impl Fn(&mut Map<String, Value>)) -> Option<Value> {
        let method = self.specification.normalized.get("method")?;
        if pointer == "/method" {
            let mut members = Map::new();
            change(&mut members);
            return Some(json!({ "method": members }));
        }
        let at: usize = pointer.strip_prefix("/method/rules/")?.parse().ok()?;
        let mut rules = method.get("rules")?.clone();
        change(rules.get_mut(at)?.as_object_mut()?);
        Some(json!({ "method": { "rules": rules } }))
    }

    fn leave_out(&self, left_out: AttrSet, pointer: &str) -> Option<Repair> {
        // the known side of a sliced table is all of it
        if matches!(self.specification.method, MethodSpec::Slicing(_) | MethodSpec::Sequential(_)) {
            return None;
        }
        let mut specification = self.specification.clone();
        let mut known = AttrSet::EMPTY;
        for rule in specification.method.rules_mut().iter_mut().filter(|rule| rule.pointer == pointer) {
            rule.known = rule.known.minus(left_out);
            known = rule.known;
        }
        if known.is_empty() && !matches!(specification.method, MethodSpec::Versatile(_)) {
            return None;
        }
        let kept = json!(self.names(known));
        let mut patch = self.patch(pointer, |members| {
            members.insert("quasi_identifiers".to_owned(), kept.clone());
        })?;
        // it is published all the same
        let published = self.names(left_out).into_iter().map(|name| (name.to_owned(), json!({"publish": true})));
        patch["attributes"] = Value::Object(published.collect());
        let value = json!(self.names(left_out));
        let dependencies = self.dependencies.clone();
        Some(Repair { name: "leave_out_of_known", value, patch, specification, dependencies })
    }

    fn lower_l(&self, largest: u64, pointer: &str) -> Option<Repair> {
        if !matches!(self.specification.method, MethodSpec::Versatile(_) | MethodSpec::Anatomy(_)) {
            return None;
        }
        let rows = self.specification.unit.rows();
        let l = largest / rows;
        if l < 2 {
            return None;
        }
        let mut specification = self.specification.clone();
        for rule in specification.method.rules_mut().iter_mut().filter(|rule| rule.pointer == pointer) {
            rule.guarantee = Guarantee::LDiversity { l: l * rows };
        }
        let patch = self.patch(pointer, |members| {
            members.insert("guarantee".to_owned(), json!({"type": "l_diversity", "l": l}));
        })?;
        let dependencies = self.dependencies.clone();
        Some(Repair { name: "lower_l", value: l.into(), patch, specification, dependencies })
    }

    /// Drops attributes that no rule mentions.
    fn drop(&self, dropped: AttrSet) -> Option<Repair> {
        let rules = self.specification.method.rules();
        let mentioned =
            rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.known).union(rule.protects.attributes()));
        if mentioned.meets(dropped) {
            return None;
        }
        let options =
            self.names(dropped).into_iter().map(|name| (name.to_owned(), json!({"publish": null, "drop": true})));
        let patch = json!({ "attributes": Value::Object(options.collect()) });
        let dependencies = self.without(|dependency| Link::from(*dependency).attributes.meets(dropped));
        let specification = self.specification.clone();
        Some(Repair { name: "drop", value: json!(self.names(dropped)), patch, specification, dependencies })
    }

    /// Withdraws a dependency and every other one that ties the same attributes.
    fn assume_unknown(&self, named: &Value) -> Option<Repair> {
        let side = |name: &str| self.attributes(named.get(name)?);
        let tied = side("determinant")?.union(side("dependent")?);
        let JobDependencies { all, declared, recorded, .. } = self.dependencies;
        let same = |dependency: &&Dependency| Link::from(**dependency).attributes == tied;
        // what is declared, or known to the series, is known
        if all[..declared + recorded].iter().any(|dependency| same(&dependency)) {
            return None;
        }
        let withdrawn = |dependency: &Dependency| {
            json!({"determinant": self.names(dependency.determinant),
                "dependent": self.names(AttrSet::one(dependency.dependent)), "reason": REASON})
        };
        let given = self.specification.normalized.pointer("/method/assume_unknown").and_then(Value::as_array);
        let mut entries = given.cloned().unwrap_or_default();
        entries.extend(all.iter().filter(same).map(withdrawn));
        let patch = json!({ "method": { "assume_unknown": entries } });
        let dependencies = self.without(|dependency| same(&dependency));
        let specification = self.specification.clone();
        Some(Repair { name: "assume_unknown", value: named.clone(), patch, specification, dependencies })
    }

    /// The known dependencies without some of the discovered ones.
    fn without(&self, is_gone: impl Fn(&Dependency) -> bool) -> JobDependencies {
        let mut kept = self.dependencies.clone();
        let stays: Vec<bool> =
            (0..kept.all.len()).map(|at| at < kept.declared + kept.recorded || !is_gone(&kept.all[at])).collect();
        let mut stay = stays.iter();
        kept.all.retain(|_| stay.next().is_some_and(|stays| *stays));
        let mut stay = stays.iter();
        kept.evidence.retain(|_| stay.next().is_some_and(|stays| *stays));
        let known: Vec<KnownDependency> = kept
            .all
            .iter()
            .zip(&kept.evidence)
            .map(|(&dependency, evidence)| KnownDependency {
                dependency,
                is_exact: evidence.is_some_and(|evidence| evidence.errors == 0),
            })
            .collect();
        kept.known = KnownDependencies::new(&known, &[]);
        kept
    }
}

//! Weaker guarantees: of each parameter the strictest value that the data keeps, found by halving what is possible.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{FaultTrial, Repair, RepairTrials};
use crate::control::Cancelled;
use crate::problem::{Fault, Kind};
use crate::publication::{DigestedThresholds, Guarantee, Ratio, Thresholds};
use crate::spec::{Algorithm, MethodSpec, Specification};

/// The most steps in which a factor is raised, by a tenth each.
const MAX_FACTORS: u64 = 10_000;

/// Weaker values of one parameter, the strictest first.
struct Ladder {
    /// The name of the repair.
    name: &'static str,
    rungs: u64,
    /// The value of a rung, and what it asks for.
    at: Box<dyn Fn(u64) -> Option<(Value, Asked)>>,
}

/// A weaker value of a parameter, under the name of its repair.
struct Rung {
    name: &'static str,
    value: Value,
    weaker: Asked,
}

/// What a document asks of an attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    Guarantee(Guarantee),
    Thresholds(Thresholds),
}

impl Ladder {
    fn new(name: &'static str, rungs: u64, at: impl Fn(u64) -> Option<(Value, Guarantee)> + 'static) -> Self {
        let at = move |rung| at(rung).map(|(value, guarantee)| (value, Asked::Guarantee(guarantee)));
        Self { name, rungs, at: Box::new(at) }
    }

    /// Integers from `largest` down to `least`.
    fn down(name: &'static str, largest: u64, least: u64, of: impl Fn(u64) -> Guarantee + 'static) -> Self {
        let rungs = (largest + 1).saturating_sub(least);
        Self::new(name, rungs, move |rung| Some(((largest - rung).into(), of(largest - rung))))
    }

    /// Hundredths above `share` and below 1.
    fn up(name: &'static str, share: Ratio, of: impl Fn(Ratio) -> Guarantee + 'static) -> Self {
        let first = hundredth_above(share);
        Self::new(name, 100_u64.saturating_sub(first), move |rung| {
            let share = Ratio::new(first + rung, 100).ok()?;
            Some((share.to_string().into(), of(share)))
        })
    }

    /// Thresholds of at least a share, which rises by hundredths.
    fn of_thresholds(least: Ratio, of: impl Fn(Ratio) -> Option<Thresholds> + 'static) -> Self {
        let first = hundredth_above(least);
        let at = move |rung| {
            let share = Ratio::new(first + rung, 100).ok()?;
            Some((share.to_string().into(), Asked::Thresholds(of(share)?)))
        };
        Self { name: "raise_thresholds", rungs: 100_u64.saturating_sub(first), at: Box::new(at) }
    }
}

fn hundredth_above(share: Ratio) -> u64 {
    share.numerator() * 100 / share.denominator() + 1
}

/// Weaker forms of a guarantee, by each of its parameters. `largest_l` is what the most frequent value allows.
fn ladders(asked: Guarantee, largest_l: Option<u64>) -> Vec<Ladder> {
    match asked {
        Guarantee::LDiversity { l } => {
            let largest = largest_l.map_or(l - 1, |largest| largest.min(l - 1));
            vec![Ladder::down("lower_l", largest, 2, |l| Guarantee::LDiversity { l })]
        }
        Guarantee::DistinctLDiversity { l } => {
            vec![Ladder::down("lower_l", l - 1, 2, |l| Guarantee::DistinctLDiversity { l })]
        }
        Guarantee::EntropyLDiversity { l } => {
            let below = (l.numerator() * 10).saturating_sub(1) / l.denominator();
            vec![Ladder::new("lower_l", below.saturating_sub(10), move |rung| {
                let l = Ratio::new(below - rung, 10).ok()?;
                Some((l.to_string().into(), Guarantee::EntropyLDiversity { l }))
            })]
        }
        Guarantee::RecursiveLDiversity { c, l } => {
            let above = c.numerator() * 10 / c.denominator() + 1;
            let raised = Ladder::new("raise_c", MAX_FACTORS, move |rung| {
                let c = Ratio::new(above + rung, 10).ok()?;
                Some((c.to_string().into(), Guarantee::RecursiveLDiversity { c, l }))
            });
            vec![Ladder::down("lower_l", l - 1, 2, move |l| Guarantee::RecursiveLDiversity { c, l }), raised]
        }
        Guarantee::AlphaK { alpha, k } => {
            let least = if alpha < Ratio::ONE { 1 } else { 2 };
            vec![
                Ladder::up("raise_alpha", alpha, move |alpha| Guarantee::AlphaK { alpha, k }),
                Ladder::down("lower_k", k.saturating_sub(1), least, move |k| Guarantee::AlphaK { alpha, k }),
            ]
        }
        Guarantee::KAnonymity { k } => {
            let largest = largest_l.map_or(k - 1, |rows| rows.min(k - 1));
            vec![Ladder::down("lower_k", largest, 2, |k| Guarantee::KAnonymity { k })]
        }
        Guarantee::TCloseness { t, distance, reference } => {
            vec![Ladder::up("raise_t", t, move |t| Guarantee::TCloseness { t, distance, reference })]
        }
        // bounds of priors and posteriors have no order in which one is the weaker
        Guarantee::Rho { .. } | Guarantee::Delta { .. } | Guarantee::Thresholds { .. } => Vec::new(),
    }
}

/// Weaker thresholds: a smaller l of all values, or shares of which none is smaller.
fn ladders_of_thresholds(asked: Thresholds) -> Vec<Ladder> {
    match asked {
        Thresholds::Uniform { l } => {
            let uniform = Ladder {
                name: "lower_l",
                rungs: l.saturating_sub(2),
                at: Box::new(move |rung| {
                    Some(((l - 1 - rung).into(), Asked::Thresholds(Thresholds::Uniform { l: l - 1 - rung })))
                }),
            };
            let half = Ratio::new(1, 2).unwrap_or(Ratio::ONE);
            let shares = |share| Some(Thresholds::Explicit { values: BTreeMap::new(), otherwise: Some(share) });
            vec![uniform, Ladder::of_thresholds(half, shares)]
        }
        Thresholds::Explicit { values, otherwise } => {
            let least = values.values().copied().chain(otherwise).min().unwrap_or(Ratio::ONE);
            let raised = move |share: Ratio| {
                let values = values.iter().map(|(value, own)| (value.clone(), (*own).max(share))).collect();
                Some(Thresholds::Explicit { values, otherwise: otherwise.map(|own| own.max(share)) })
            };
            vec![Ladder::of_thresholds(least, raised)]
        }
        Thresholds::Linear { theta, c, overrides } => {
            let raised = move |c| Some(Thresholds::Linear { theta, c, overrides: overrides.clone() });
            vec![Ladder::of_thresholds(c, raised)]
        }
    }
}

impl RepairTrials<'_> {
    /// The weaker guarantees that end a fault: of each parameter, the strictest value that does.
    pub(super) fn weakened(&self, of: FaultTrial<'_>, trials: &mut usize) -> Result<Vec<Repair>, Cancelled> {
        let mut found: Vec<Repair> = Vec::new();
        for (asked, ladder) in self.weaker(of.fault) {
            // shares of values are offered where no l holds
            let is_offered = matches!(asked, Asked::Guarantee(_)) || found.is_empty();
            if is_offered {
                found.extend(self.strictest(&asked, &ladder, of, trials)?);
            }
        }
        Ok(found)
    }

    /// What the document asks for at the place of a fault, with weaker forms of it.
    fn weaker(&self, fault: &Fault) -> Vec<(Asked, Ladder)> {
        let number = |of: &Value| of["largest_l"].as_u64();
        let members = Value::Object(fault.members.clone());
        let largest = number(&members).or_else(|| number(&members["proof"]));
        let is_kept = match fault.kind {
            Kind::RuleIneligible | Kind::InfeasibleRoot | Kind::NoNoise | Kind::MultiSaEmpty => true,
            // no guarantee ends what a dependency determines
            Kind::RuleImpossible => fault.members.contains_key("strata"),
            _ => false,
        };
        if !is_kept {
            return Vec::new();
        }
        if let MethodSpec::Bucketize(_) = &self.specification.method {
            let written = self.specification.normalized.pointer("/method/thresholds").cloned();
            let asked = written.and_then(|written| serde_json::from_value::<Thresholds>(written).ok());
            let ladders = |asked: Thresholds| {
                let all = ladders_of_thresholds(asked.clone()).into_iter();
                all.map(move |ladder| (Asked::Thresholds(asked.clone()), ladder)).collect()
            };
            return asked.map(ladders).unwrap_or_default();
        }
        let per_unit = self.asked(fault).into_iter();
        let all = per_unit.flat_map(|asked| ladders(asked, largest).into_iter().map(move |of| (asked, of)));
        all.map(|(asked, of)| (Asked::Guarantee(asked), of)).collect()
    }

    /// The guarantees, per unit, that the document states at the place of a fault.
    fn asked(&self, fault: &Fault) -> Vec<Guarantee> {
        let Specification { method, unit, .. } = self.specification;
        if let MethodSpec::Slicing(spec) = method
            && let Some(l) = spec.l
        {
            return vec![Guarantee::LDiversity { l: l.ceil() / unit.rows() }];
        }
        let is_here = |pointer: &str| match method {
            MethodSpec::Versatile(_) if fault.kind == Kind::MultiSaEmpty => true,
            MethodSpec::Versatile(_) | MethodSpec::Decompose(_) => pointer == fault.pointer,
            _ => true,
        };
        let mut all: Vec<Guarantee> = Vec::new();
        for rule in method.rules().iter().filter(|rule| is_here(&rule.pointer)) {
            let asked = unit.unit_guarantee(rule.guarantee, &BTreeMap::new());
            if !all.contains(&asked) {
                all.push(asked);
            }
        }
        all
    }

    /// The strictest value of a parameter that ends the fault. Where not every weaker value does, it is one that does.
    fn strictest(
        &self,
        asked: &Asked,
        ladder: &Ladder,
        of: FaultTrial<'_>,
        trials: &mut usize,
    ) -> Result<Option<Repair>, Cancelled> {
        let mut tried = |rung: u64| -> Result<Option<Repair>, Cancelled> {
            let repair = (ladder.at)(rung)
                .map(|(value, weaker)| Rung { name: ladder.name, value, weaker })
                .and_then(|rung| self.asking(&of.fault.pointer, asked, rung));
            let Some(repair) = repair.filter(|_| *trials > 0) else { return Ok(None) };
            *trials -= 1;
            Ok(self.holds(&repair, of)?.then_some(repair))
        };
        let Some(last) = ladder.rungs.checked_sub(1) else { return Ok(None) };
        if let Some(strictest) = tried(0)? {
            return Ok(Some(strictest));
        }
        let Some(mut best) = tried(last)?.filter(|_| last > 0) else { return Ok(None) };
        let (mut fails, mut holds) = (0, last);
        while holds - fails > 1 {
            let middle = fails + (holds - fails) / 2;
            match tried(middle)? {
                Some(stricter) => (best, holds) = (stricter, middle),
                None => fails = middle,
            }
        }
        Ok(Some(best))
    }

    /// The document that asks for something else at the place of a fault.
    fn asking(&self, pointer: &str, asked: &Asked, Rung { name, value, weaker }: Rung) -> Option<Repair> {
        let (asked, weaker) = match (asked, weaker) {
            (Asked::Guarantee(asked), Asked::Guarantee(weaker)) => (*asked, weaker),
            (_, Asked::Thresholds(weaker)) => return self.with_thresholds(&weaker, name, value),
            _ => return None,
        };
        let unit = &self.specification.unit;
        let (before, after) = (unit.enforced(asked)?, unit.enforced(weaker)?);
        let mut specification = self.specification.clone();
        let patch = match &mut specification.method {
            MethodSpec::Versatile(spec) if spec.algorithm == Algorithm::MultiSa && pointer == "/method/algorithm" => {
                spec.rules.iter_mut().filter(|rule| rule.guarantee == before).for_each(|rule| rule.guarantee = after);
                self.with_rules(asked, weaker)?
            }
            MethodSpec::Versatile(_) | MethodSpec::Anatomy(_) => {
                let rules = specification.method.rules_mut().iter_mut();
                rules.filter(|rule| rule.pointer == pointer).for_each(|rule| rule.guarantee = after);
                self.patch(pointer, |members| drop(members.insert("guarantee".to_owned(), json!(weaker))))?
            }
            MethodSpec::Slicing(spec) => {
                if let (Some(l), Guarantee::LDiversity { l: rows }) = (&mut spec.l, after) {
                    *l = Ratio::new(rows, 1).ok()?;
                }
                spec.rule.guarantee = after;
                json!({ "method": { "guarantee": weaker } })
            }
            MethodSpec::Generalize(spec) => {
                spec.rules.iter_mut().filter(|rule| rule.guarantee == before).for_each(|rule| rule.guarantee = after);
                self.with_listed(asked, weaker)?
            }
            MethodSpec::Decompose(_) => {
                let Guarantee::LDiversity { l } = weaker else { return None };
                return self.lists_of(l, pointer);
            }
            MethodSpec::Bucketize(_) | MethodSpec::Sequential(_) => return None,
        };
        Some(self.changed(name, value, patch, specification))
    }

    /// The patch that gives each rule with one guarantee another one.
    fn with_rules(&self, asked: Guarantee, weaker: Guarantee) -> Option<Value> {
        let mut rules = self.specification.normalized.pointer("/method/rules")?.clone();
        for rule in rules.as_array_mut()?.iter_mut().filter(|rule| says(&rule["guarantee"], asked)) {
            rule["guarantee"] = json!(weaker);
        }
        Some(json!({ "method": { "rules": rules } }))
    }

    /// The patch that puts one guarantee in place of another among those that the method lists.
    fn with_listed(&self, asked: Guarantee, weaker: Guarantee) -> Option<Value> {
        let mut listed = self.specification.normalized.pointer("/method/guarantees")?.clone();
        let place = listed.as_array_mut()?.iter_mut().find(|guarantee| says(guarantee, asked))?;
        *place = json!(weaker);
        Some(json!({ "method": { "guarantees": listed } }))
    }

    /// Other thresholds of a bucketization.
    fn with_thresholds(&self, weaker: &Thresholds, name: &'static str, value: Value) -> Option<Repair> {
        let mut specification = self.specification.clone();
        let MethodSpec::Bucketize(spec) = &mut specification.method else { return None };
        let enforced = weaker.divided(self.specification.unit.rows())?;
        spec.rule.guarantee = DigestedThresholds::from(enforced.clone()).guarantee();
        spec.thresholds = enforced;
        // members of the other form go
        let mut written = json!({"uniform": null, "linear": null, "explicit": null, "otherwise": null});
        json_patch::merge(&mut written, &json!(weaker));
        Some(self.changed(name, value, json!({ "method": { "thresholds": written } }), specification))
    }
}

/// Whether a written guarantee is this one.
fn says(written: &Value, guarantee: Guarantee) -> bool {
    serde_json::from_value::<Guarantee>(written.clone()).is_ok_and(|written| written == guarantee)
}

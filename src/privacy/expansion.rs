//! Rules implied by dependencies [Jin et al. 2010, Theorem 3.2].
//!
//! If X determines S, a rule that protects S must protect X too.

use std::collections::VecDeque;

use super::dependencies::{Dependency, closure};
use super::rule::RuleDemand;
use crate::microdata::AttrSet;

/// A rule that follows from another rule and a dependency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DerivedRule {
    /// The derived rule.
    pub demand: RuleDemand,
    /// The index of the submitted rule from which it follows.
    pub from: usize,
    /// The last dependency of its derivation.
    pub because: Dependency,
}

/// Effects of dependencies on rules.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleExpansion {
    /// Indexes of rules whose known side determines their protected side; no publication satisfies them.
    pub impossible: Vec<(usize, Dependency)>,
    /// Indexes of rules that a dependency affects although their guarantee has no meaning for combinations.
    pub unsupported: Vec<(usize, Dependency)>,
    /// The derived rules; some may be implied by others.
    pub derived: Vec<DerivedRule>,
    /// The dependencies of the derivations, each once.
    pub used: Vec<Dependency>,
}

/// More rules follow than the limit allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpansionError;

/// Derives all rules that follow from `dependencies`.
///
/// For every determinant X of a protected side, the result implies the rule that protects X from the same known side.
/// This condition is necessary, not sufficient.
///
/// # Errors
/// [`ExpansionError`] when more than `limit` rules follow.
pub fn expand(
    rules: &[RuleDemand],
    dependencies: &[Dependency],
    limit: usize,
) -> Result<RuleExpansion, ExpansionError> {
    let mut expansion = RuleExpansion::default();
    let mut kept: Vec<(RuleDemand, Option<(usize, Dependency)>)> = Vec::new();
    let mut todo: VecDeque<(RuleDemand, usize, Option<Dependency>)> =
        rules.iter().enumerate().map(|(index, rule)| (*rule, index, None)).collect();
    while let Some((rule, from, because)) = todo.pop_front() {
        let determined = closure(rule.known, dependencies);
        if rule.protects.is_subset(determined) {
            // a rule derived from a possible rule is possible
            let by = dependencies
                .iter()
                .find(|d| rule.protects.contains(d.dependent) && d.determinant.is_subset(determined));
            expansion.impossible.extend(by.map(|by| (from, *by)));
            continue;
        }
        let revealing = || dependencies.iter().filter(|dependency| reveals(dependency, &rule));
        if !rule.guarantee.covers_combinations() {
            // also where another rule implies it: what follows from it has no meaning of its own
            expansion.unsupported.extend(revealing().map(|dependency| (from, *dependency)));
        }
        if kept.iter().any(|(other, _)| other.implies(&rule)) {
            continue;
        }
        kept.push((rule, because.map(|because| (from, because))));
        if kept.len() > limit {
            return Err(ExpansionError);
        }
        if let Some(because) = because.filter(|because| !expansion.used.contains(because)) {
            expansion.used.push(because);
        }
        for dependency in revealing().filter(|_| rule.guarantee.covers_combinations()) {
            let protects = revealed_by(dependency, &rule);
            todo.push_back((RuleDemand { protects, ..rule }, from, Some(*dependency)));
        }
    }
    let derived = kept.into_iter().filter_map(|(demand, origin)| {
        let (from, because) = origin?;
        Some(DerivedRule { demand, from, because })
    });
    expansion.derived = derived.collect();
    Ok(expansion)
}

/// The attributes that must stay protected because a dependency leads from them to a protected one.
fn revealed_by(dependency: &Dependency, rule: &RuleDemand) -> AttrSet {
    rule.protects.without(dependency.dependent).union(dependency.determinant).minus(rule.known)
}

/// Whether a dependency leads to a protected attribute from attributes that are not protected with it.
fn reveals(dependency: &Dependency, rule: &RuleDemand) -> bool {
    let protects = revealed_by(dependency, rule);
    rule.protects.contains(dependency.dependent) && !protects.is_empty() && !rule.protects.is_subset(protects)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rule::reduce;
    use super::*;
    use crate::microdata::{Attr, AttrSet};
    use crate::publication::{DigestedThresholds, Guarantee, Ratio, Thresholds, ValueDistance};
    use std::collections::BTreeMap;

    fn set(attrs: &[u8]) -> AttrSet {
        attrs.iter().map(|&a| Attr(a)).collect()
    }

    fn demand(known: AttrSet, protects: AttrSet) -> RuleDemand {
        RuleDemand { known, protects, guarantee: Guarantee::LDiversity { l: 2 } }
    }

    /// All rules, reduced.
    fn expanded(rules: &[RuleDemand], dependencies: &[Dependency]) -> Vec<RuleDemand> {
        let expansion = expand(rules, dependencies, 10_000).unwrap();
        let possible = |index: &usize| !expansion.impossible.iter().any(|(impossible, _)| impossible == index);
        let all: Vec<RuleDemand> = (0..rules.len())
            .filter(possible)
            .map(|index| rules[index])
            .chain(expansion.derived.iter().map(|derived| derived.demand))
            .collect();
        let implied = reduce(&all);
        all.into_iter().zip(implied).filter(|(_, by)| by.is_none()).map(|(rule, _)| rule).collect()
    }

    /// The `fd` vectors: 40 rules under random dependencies.
    #[test]
    fn expand_random_rules_matches_reference_vectors() {
        #[derive(serde::Deserialize)]
        struct Rule {
            lhs: Vec<String>,
            rhs: Vec<String>,
        }
        #[derive(serde::Deserialize)]
        struct Vector {
            fds: Vec<(Vec<String>, Vec<String>)>,
            rule: Rule,
            impossible: bool,
            expanded: Vec<Rule>,
        }
        #[derive(serde::Deserialize)]
        struct Vectors {
            fd: Vec<Vector>,
        }
        let vectors: Vectors = serde_json::from_str(include_str!("../../tests/vectors/gnf.json")).unwrap();
        assert_eq!(vectors.fd.len(), 40);
        let attrs = |names: &[String]| names.iter().map(|name| Attr(name.as_bytes()[0] - b'A')).collect::<AttrSet>();
        let rule = |rule: &Rule| demand(attrs(&rule.lhs), attrs(&rule.rhs));
        for (at, vector) in vectors.fd.iter().enumerate() {
            let dependencies: Vec<Dependency> = vector
                .fds
                .iter()
                .flat_map(|(determinant, dependent)| {
                    let determinant = attrs(determinant);
                    let free = attrs(dependent).minus(determinant);
                    free.iter().map(move |dependent| Dependency { determinant, dependent }).collect::<Vec<_>>()
                })
                .collect();
            let expansion = expand(&[rule(&vector.rule)], &dependencies, 10_000).unwrap();
            assert_eq!(!expansion.impossible.is_empty(), vector.impossible, "vector {at}");
            let key =
                |rule: &RuleDemand| (rule.known.iter().collect::<Vec<_>>(), rule.protects.iter().collect::<Vec<_>>());
            let mut found: Vec<_> = expanded(&[rule(&vector.rule)], &dependencies).iter().map(key).collect();
            let mut expected: Vec<_> = vector.expanded.iter().map(|r| key(&rule(r))).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "vector {at}");
        }
    }

    #[test]
    fn expand_rule_with_distance_is_unsupported() {
        let t = Ratio::new(1, 5).unwrap();
        let close = Guarantee::TCloseness { t, distance: ValueDistance::Equal, reference: Default::default() };
        let rule = RuleDemand { known: set(&[0]), protects: set(&[1]), guarantee: close };
        let dependency = Dependency { determinant: set(&[2]), dependent: Attr(1) };
        let expansion = expand(&[rule], &[dependency], 10).unwrap();
        assert_eq!(expansion.unsupported, [(0, dependency)]);
        assert!(expansion.derived.is_empty());
    }

    /// What a stronger rule implies is checked by itself, too, and has no meaning for what follows from it.
    #[test]
    fn expand_implied_rule_with_thresholds_is_unsupported() {
        let half = Ratio::new(1, 2).unwrap();
        let thresholds =
            DigestedThresholds::from(Thresholds::Explicit { values: BTreeMap::new(), otherwise: Some(half) });
        let diverse = demand(set(&[0]), set(&[1]));
        let limited = RuleDemand { guarantee: thresholds.guarantee(), ..diverse };
        assert!(diverse.implies(&limited));
        let dependency = Dependency { determinant: set(&[2]), dependent: Attr(1) };
        let expansion = expand(&[diverse, limited], &[dependency], 10).unwrap();
        assert_eq!(expansion.unsupported, [(1, dependency)]);
    }

    #[test]
    fn expand_above_the_limit_is_an_error() {
        let dependencies: Vec<Dependency> =
            (1..20).map(|a| Dependency { determinant: set(&[a]), dependent: Attr(0) }).collect();
        let rule = demand(set(&[30]), set(&[0]));
        assert_eq!(expand(&[rule], &dependencies, 20).unwrap().derived.len(), 19);
        assert_eq!(expand(&[rule], &dependencies, 19), Err(ExpansionError));
    }

    proptest! {
        /// Every determinant of a protected side is protected from the known side.
        #[test]
        fn expand_protects_every_determinant(
            known in 0u8..64, sensitive in 0u8..6, dependencies in proptest::collection::vec((0u8..64, 0u8..6), 0..5)
        ) {
            let bits = |bits: u8| (0..6).filter(|a| bits >> a & 1 == 1).map(Attr).collect::<AttrSet>();
            let rule = demand(bits(known).without(Attr(sensitive)), set(&[sensitive]));
            let dependencies: Vec<Dependency> = dependencies
                .into_iter()
                .map(|(determinant, dependent)| (bits(determinant), Attr(dependent)))
                .filter(|(determinant, dependent)| !determinant.contains(*dependent))
                .map(|(determinant, dependent)| Dependency { determinant, dependent })
                .collect();
            let expansion = expand(&[rule], &dependencies, 10_000).unwrap();
            let impossible = closure(rule.known, &dependencies).contains(Attr(sensitive));
            prop_assert_eq!(!expansion.impossible.is_empty(), impossible);
            if !impossible {
                let all = expanded(&[rule], &dependencies);
                for determinant in (0..64).map(bits).filter(|x| closure(*x, &dependencies).contains(Attr(sensitive))) {
                    let protects = determinant.minus(rule.known);
                    prop_assert!(all.iter().any(|kept| kept.implies(&demand(rule.known, protects))));
                }
            }
        }
    }
}

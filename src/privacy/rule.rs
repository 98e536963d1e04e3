//! Privacy rules and their reduction [Jin et al. 2010, Theorem 3.1 and Definition 2].

use super::guarantee::implies;
use crate::microdata::{Attr, AttrSet};
use crate::publication::Guarantee;

/// A rule of Guardian Normal Form.
///
/// An adversary who knows `known` must not infer `sensitive` in excess of `guarantee`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrivacyRule {
    /// The quasi-identifiers; may be empty.
    pub known: AttrSet,
    /// The sensitive attribute, not among `known`.
    pub sensitive: Attr,
    /// The bound on the inference.
    pub guarantee: Guarantee,
}

/// A declared or derived rule.
///
/// An adversary who knows `known` must not infer the joint value of `protects` in excess of `guarantee`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RuleDemand {
    /// The quasi-identifiers; may be empty.
    pub known: AttrSet,
    /// The sensitive attributes, disjoint from `known`; several ones have their joint value protected.
    pub protects: AttrSet,
    /// The bound on the inference.
    pub guarantee: Guarantee,
}

impl From<PrivacyRule> for RuleDemand {
    fn from(rule: PrivacyRule) -> Self {
        Self { known: rule.known, protects: AttrSet::one(rule.sensitive), guarantee: rule.guarantee }
    }
}

impl RuleDemand {
    /// Whether every publication that satisfies `self` satisfies `other`.
    ///
    /// A larger known side is stronger. A smaller sensitive side is stronger where the guarantee bounds combinations;
    /// [Jin et al. 2010, Theorem 3.1] holds for no other guarantee.
    #[must_use]
    pub fn implies(&self, other: &Self) -> bool {
        let combines = self.guarantee.covers_combinations() && self.protects.is_subset(other.protects);
        other.known.is_subset(self.known)
            && (self.protects == other.protects || combines)
            && implies(self.guarantee, other.guarantee)
    }
}

/// For each rule, the rule that implies it; `None` for rules that are kept.
///
/// Of equal rules the first is kept. An implying rule is itself kept.
#[must_use]
pub fn reduce(rules: &[RuleDemand]) -> Vec<Option<usize>> {
    let beats = |j: usize, i: usize| j != i && rules[j].implies(&rules[i]) && (!rules[i].implies(&rules[j]) || j < i);
    let kept: Vec<bool> = (0..rules.len()).map(|i| !(0..rules.len()).any(|j| beats(j, i))).collect();
    (0..rules.len())
        .map(|i| if kept[i] { None } else { (0..rules.len()).find(|&j| kept[j] && rules[j].implies(&rules[i])) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::{Ratio, ValueDistance};

    fn rule(known: &[u8], protects: &[u8], l: u64) -> RuleDemand {
        let set = |attrs: &[u8]| attrs.iter().map(|&a| Attr(a)).collect();
        RuleDemand { known: set(known), protects: set(protects), guarantee: Guarantee::LDiversity { l } }
    }

    #[test]
    fn reduce_larger_known_side_implies_the_smaller() {
        assert_eq!(reduce(&[rule(&[1], &[3], 2), rule(&[1, 2], &[3], 2)]), [Some(1), None]);
    }

    #[test]
    fn reduce_weaker_guarantee_on_larger_side_keeps_both() {
        assert_eq!(reduce(&[rule(&[1], &[3], 3), rule(&[1, 2], &[3], 2)]), [None, None]);
        assert_eq!(reduce(&[rule(&[1], &[3], 2), rule(&[1, 2], &[3], 3)]), [Some(1), None]);
    }

    #[test]
    fn reduce_equal_rules_keeps_the_first() {
        assert_eq!(reduce(&[rule(&[1], &[3], 2), rule(&[1], &[3], 2)]), [None, Some(0)]);
        let chain = [rule(&[], &[3], 2), rule(&[1], &[3], 2), rule(&[1, 2], &[3], 2)];
        assert_eq!(reduce(&chain), [Some(2), Some(2), None]);
    }

    #[test]
    fn reduce_combination_is_implied_except_for_distances() {
        assert_eq!(reduce(&[rule(&[1], &[3, 4], 2), rule(&[1], &[3], 2)]), [Some(1), None]);
        let close = Guarantee::TCloseness {
            t: Ratio::new(1, 5).unwrap(),
            distance: ValueDistance::Equal,
            reference: Default::default(),
        };
        let of = |protects: &[u8]| RuleDemand { guarantee: close, ..rule(&[1], protects, 2) };
        assert_eq!(reduce(&[of(&[3, 4]), of(&[3])]), [None, None]);
        assert_eq!(reduce(&[of(&[3]), of(&[3])]), [None, Some(0)]);
    }
}

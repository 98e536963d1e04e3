use crate::microdata::AttrSet;
use crate::publication::SubmittedRule;

/// Maximal number of attribute sets that are followed for one rule.
const MAX_FOLLOWED: usize = 10_000;

/// The other attribute sets that must stay protected, because they reveal what a rule protects.
///
/// For each dependency these are the determinants of a protected attribute, without the known attributes
/// [docs/spec/guardian-normal-form.md#dependencies].
pub(in crate::verifier) fn follow_dependencies(
    rule: &SubmittedRule,
    dependencies: &[(AttrSet, AttrSet)],
) -> Result<Vec<AttrSet>, &'static str> {
    let mut all = vec![rule.protects.attributes()];
    let mut next = 0;
    while next < all.len() {
        let protects = all[next];
        next += 1;
        for &(determinant, dependent) in dependencies {
            for determined in protects.intersection(dependent).iter() {
                let follows = protects.without(determined).union(determinant).minus(rule.known);
                if follows.is_empty() {
                    return Err("what is known determines what it protects");
                }
                if !rule.guarantee.covers_combinations() {
                    return Err("its guarantee is undefined for combinations, which a dependency needs");
                }
                // a superset of a protected set is protected with it
                if !all.iter().any(|known| known.is_subset(follows)) {
                    all.push(follows);
                }
                if all.len() > MAX_FOLLOWED {
                    return Err("too much follows from the dependencies to be checked");
                }
            }
        }
    }
    Ok(all.split_off(1))
}

use crate::microdata::AttrSet;
use crate::publication::SubmittedRule;

/// So many combinations are looked at for one rule.
const MAX_FOLLOWED: usize = 10_000;

/// What must stay protected beside what a rule protects, because it tells it: by Theorem 3.2 every X that determines what is
/// protected, but for what is known of it.
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
            for told in protects.intersection(dependent).iter() {
                let follows = protects.without(told).union(determinant).minus(rule.known);
                if follows.is_empty() {
                    return Err("what is known determines what it protects");
                }
                if !rule.guarantee.covers_combinations() {
                    return Err("its guarantee cannot be kept beside a dependency");
                }
                // a set that holds another one of the list is protected with it
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

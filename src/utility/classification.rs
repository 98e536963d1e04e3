//! Accuracy of a class prediction from published data: a decision tree is learnt from some rows and tested on the others.
//!
//! # Citations
//! - [Quinlan 1993], C4.5.

use std::collections::BTreeMap;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::control::{Cancelled, Control};
use crate::microdata::Codes;

/// A feature: a column, with the label of each code if it is generalized.
#[derive(Clone, Copy)]
pub struct Feature<'a> {
    /// The original column.
    pub codes: &'a Codes,
    /// Label of each code; `None` for an exact column.
    pub labels: Option<&'a [u32]>,
}

impl Feature<'_> {
    fn label(&self, row: usize) -> u32 {
        let code = self.codes.get(row);
        self.labels.map_or(code, |labels| labels[code as usize])
    }
}

/// Errors of the prediction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Classified {
    /// Number of training rows.
    pub trained: u64,
    /// Number of test rows.
    pub tested: u64,
    /// Number of test rows that the tree misclassifies.
    pub wrong: u64,
    /// Number of test rows outside the most frequent class of the training rows.
    pub others: u64,
}

/// Smallest number of rows of a branch; a split needs two such branches.
const MIN_BRANCH_ROWS: u64 = 2;
/// Normal quantile of the upper quarter: the confidence of C4.5 in the errors of a leaf.
const CONFIDENCE_QUANTILE: f64 = 0.674_489_75;

/// Learns from the rows that are not `tested`, and tests on the others. All labels are equally far apart, also of numbers.
/// other, also among numbers.
///
/// # Errors
/// [`Cancelled`]
pub fn classify(
    features: &[Feature<'_>],
    class: &Codes,
    tested: &[bool],
    control: &Control,
) -> Result<Classified, Cancelled> {
    // equal rows become one
    let mut numbers: HashMap<Box<[u32]>, u64, RandomState> = HashMap::default();
    let mut labels: Vec<u32> = Vec::with_capacity(features.len() + 1);
    let mut found = Classified::default();
    for (row, tested) in tested.iter().enumerate() {
        if row % Control::STRIDE == 0 {
            control.check()?;
        }
        if !tested {
            labels.clear();
            labels.extend(features.iter().map(|feature| feature.label(row)));
            labels.push(class.get(row));
            *numbers.entry_ref(labels.as_slice()).or_default() += 1;
            found.trained += 1;
        }
    }
    let mut kinds: Vec<(Box<[u32]>, u64)> = numbers.into_iter().collect();
    kinds.sort_unstable();
    let of_tree: Vec<usize> = (0..features.len()).collect();
    let members: Vec<usize> = (0..kinds.len()).collect();
    let tree = TreeLearner { kinds: &kinds, control }.node(&members, &of_tree)?.0;
    for (row, _) in tested.iter().enumerate().filter(|(_, tested)| **tested) {
        if row % Control::STRIDE == 0 {
            control.check()?;
        }
        let of = class.get(row);
        found.tested += 1;
        found.others += u64::from(of != tree.class);
        found.wrong += u64::from(of != tree.predicted(features, row));
    }
    Ok(found)
}

/// A node of the tree: its most frequent class, and its children by the labels of a feature.
struct TreeNode {
    class: u32,
    below: Option<(usize, BTreeMap<u32, Self>)>,
}

impl TreeNode {
    fn predicted(&self, features: &[Feature<'_>], row: usize) -> u32 {
        let next = self.below.as_ref().and_then(|(by, below)| below.get(&features[*by].label(row)));
        next.map_or(self.class, |next| next.predicted(features, row))
    }
}

/// Number of rows of each class.
type Histogram = BTreeMap<u32, u64>;

struct TreeLearner<'a> {
    /// Distinct rows, the class after the features, with their counts.
    kinds: &'a [(Box<[u32]>, u64)],
    control: &'a Control,
}

impl TreeLearner<'_> {
    fn class_of(&self, member: usize) -> (u32, u64) {
        let (labels, rows) = &self.kinds[member];
        (labels[labels.len() - 1], *rows)
    }

    fn histogram(&self, members: &[usize]) -> Histogram {
        let mut histogram = Histogram::new();
        for (class, rows) in members.iter().map(|&member| self.class_of(member)) {
            *histogram.entry(class).or_default() += rows;
        }
        histogram
    }

    fn by_label(&self, members: &[usize], feature: usize) -> BTreeMap<u32, Vec<usize>> {
        let mut parts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for &member in members {
            parts.entry(self.kinds[member].0[feature]).or_default().push(member);
        }
        parts
    }

    /// The node of some rows, and its expected errors.
    fn node(&self, members: &[usize], features: &[usize]) -> Result<(TreeNode, f64), Cancelled> {
        self.control.check()?;
        let histogram = self.histogram(members);
        let rows: u64 = histogram.values().sum();
        // the smaller of equally frequent classes
        let most =
            histogram.iter().fold((0, 0), |most, (&class, &rows)| if rows > most.1 { (class, rows) } else { most });
        let leaf = TreeNode { class: most.0, below: None };
        let of_leaf = expected(rows - most.1, rows);
        if histogram.len() < 2 {
            return Ok((leaf, of_leaf));
        }
        let Some(feature) = self.best(members, &histogram, features) else { return Ok((leaf, of_leaf)) };
        let others: Vec<usize> = features.iter().copied().filter(|other| *other != feature).collect();
        let (mut below, mut of_below) = (BTreeMap::new(), 0.0);
        for (label, members) in self.by_label(members, feature) {
            let (node, errors) = self.node(&members, &others)?;
            below.insert(label, node);
            of_below += errors;
        }
        // a subtree that is no better than a leaf becomes one
        if of_leaf <= of_below + 0.1 {
            return Ok((leaf, of_leaf));
        }
        Ok((TreeNode { below: Some((feature, below)), ..leaf }, of_below))
    }

    /// The feature of the largest gain ratio among those with at least the mean gain.
    fn best(&self, members: &[usize], histogram: &Histogram, features: &[usize]) -> Option<usize> {
        let rows: u64 = histogram.values().sum();
        let whole = entropy(histogram.values().copied());
        let gain = |&feature: &usize| {
            let (mut rest, mut sizes) = (0.0, Vec::new());
            for members in self.by_label(members, feature).values() {
                let part = self.histogram(members);
                let size: u64 = part.values().sum();
                rest += size as f64 / rows as f64 * entropy(part.values().copied());
                sizes.push(size);
            }
            let splits = sizes.iter().filter(|size| **size >= MIN_BRANCH_ROWS).count() > 1;
            let gain = whole - rest;
            (splits && gain > 1e-9).then(|| (feature, gain, gain / entropy(sizes.into_iter())))
        };
        let gains: Vec<(usize, f64, f64)> = features.iter().filter_map(gain).collect();
        let mean = gains.iter().map(|of| of.1).sum::<f64>() / gains.len() as f64;
        let enough = gains.iter().filter(|of| of.1 >= mean - 1e-3);
        // the first of equally good features
        enough
            .fold(None::<&(usize, f64, f64)>, |best, of| match best {
                Some(best) if best.2 >= of.2 => Some(best),
                _ => Some(of),
            })
            .map(|of| of.0)
    }
}

/// Entropy of counts, in bits.
fn entropy(counts: impl Iterator<Item = u64> + Clone) -> f64 {
    let rows = counts.clone().sum::<u64>() as f64;
    let part = |count: u64| {
        let share = count as f64 / rows;
        -share * share.log2()
    };
    counts.filter(|count| *count > 0).map(part).sum()
}

/// Expected errors of a leaf: the upper confidence limit of its error rate.
fn expected(errors: u64, rows: u64) -> f64 {
    let (n, z) = (rows as f64, CONFIDENCE_QUANTILE);
    if errors == 0 || rows == 0 {
        return n * (1.0 - 0.25_f64.powf(1.0 / n.max(1.0)));
    }
    // a count is in the middle of what is rounded to it
    let share = (errors as f64 + 0.5) / n;
    if share >= 1.0 {
        return n;
    }
    let spread = z * (share / n - share * share / n + z * z / (4.0 * n * n)).sqrt();
    n * (share + z * z / (2.0 * n) + spread) / (1.0 + z * z / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(of: impl Iterator<Item = u32>) -> Codes {
        let all: Vec<u32> = of.collect();
        Codes::collect(64, all.into_iter())
    }

    #[test]
    fn attributes_that_predict_the_class_are_found() {
        let rows = 3000_u32;
        let mixed = |row: u32| row.wrapping_mul(2_654_435_761) >> 16;
        let (a, b, noise) = (
            codes((0..rows).map(|row| mixed(row) % 4)),
            codes((0..rows).map(|row| row % 3)),
            codes((0..rows).map(|row| mixed(row + 9) % 7)),
        );
        let class = codes((0..rows).map(|row| u32::from(mixed(row) % 4 > 1 && row % 3 > 0)));
        let tested: Vec<bool> = (0..rows).map(|row| mixed(row + 5) % 3 == 0).collect();
        let feature = |codes| Feature { codes, labels: None };
        let classify = |features: &[Feature<'_>]| classify(features, &class, &tested, &Control::default()).unwrap();
        let all = classify(&[feature(&noise), feature(&a), feature(&b)]);
        assert_eq!(all.trained + all.tested, 3000);
        assert_eq!(all.wrong, 0);
        assert!(all.others > all.tested / 4);
        // halves of the first predict as much, a single label nothing
        let halves = Feature { codes: &a, labels: Some(&[0, 0, 1, 1]) };
        assert_eq!(classify(&[halves, feature(&b)]).wrong, 0);
        let nothing = Feature { codes: &a, labels: Some(&[0; 4]) };
        let without = classify(&[nothing, feature(&noise)]);
        assert_eq!(without.wrong, without.others, "noise is pruned");
        assert!(classify(&[feature(&b)]).wrong > 0);
    }

    #[test]
    fn the_errors_of_a_leaf_are_expected_as_by_its_inventor() {
        // the figures of his book, of no error exactly, of others to the precision of the approximation
        for (errors, rows, share, within) in
            [(0, 6, 0.206, 0.0005), (0, 9, 0.143, 0.0005), (0, 1, 0.75, 0.0005), (1, 16, 0.157, 0.003)]
        {
            let found = expected(errors, rows) / rows as f64;
            assert!((found - share).abs() < within, "{errors} of {rows}: {found}");
        }
        assert!(expected(5, 100) > 5.0 && expected(5, 100) < 8.0);
        assert!(expected(0, 0) == 0.0 && expected(3, 3) == 3.0);
    }

    #[test]
    fn nothing_is_learnt_of_nothing() {
        let class = codes([0, 1, 1].into_iter());
        let found = classify(&[], &class, &[true, true, true], &Control::default()).unwrap();
        assert_eq!(found, Classified { trained: 0, tested: 3, wrong: 2, others: 2 });
        let predicted = classify(&[], &class, &[false, false, true], &Control::default()).unwrap();
        assert_eq!((predicted.trained, predicted.tested), (2, 1));
    }
}

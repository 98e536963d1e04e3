//! Chi-square tests, for tests of randomness.

use std::collections::BTreeMap;

/// How probable it is that a chi-square variable of `freedom` degrees exceeds `x`: the regularized upper incomplete gamma
/// function Q(freedom/2, x/2).
pub(crate) fn chi_square_tail(x: f64, freedom: usize) -> f64 {
    let (a, x) = (freedom as f64 / 2.0, x / 2.0);
    if freedom == 0 || x <= 0.0 {
        return if x > 0.0 { 0.0 } else { 1.0 };
    }
    let scale = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-16 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return 1.0 - scale * sum;
    }
    // continued fraction, by the method of Lentz
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    scale * fraction
}

/// The logarithm of the gamma function at whole and half numbers, which are all that degrees of freedom need.
fn ln_gamma(a: f64) -> f64 {
    let mut at = if a.fract() == 0.0 { 1.0 } else { 0.5 };
    let mut sum = if a.fract() == 0.0 { 0.0 } else { std::f64::consts::PI.sqrt().ln() };
    while at < a {
        sum += f64::ln(at);
        at += 1.0;
    }
    sum
}

/// Counts of categories.
pub(crate) fn count<K: Ord>(outcomes: impl IntoIterator<Item = K>) -> BTreeMap<K, u64> {
    let mut counts = BTreeMap::new();
    outcomes.into_iter().for_each(|outcome| *counts.entry(outcome).or_insert(0) += 1);
    counts
}

/// The p-value of counts under the probabilities `expected`. Categories that are expected fewer than five times are counted
/// together; what cannot happen at all must not.
pub(crate) fn fits<K: Ord>(observed: &BTreeMap<K, u64>, expected: &BTreeMap<K, f64>) -> f64 {
    if observed.keys().any(|category| !expected.contains_key(category)) {
        return 0.0;
    }
    let total = observed.values().sum::<u64>() as f64;
    let (mut x, mut categories, mut rare) = (0.0, 0, (0.0, 0.0));
    for (category, probability) in expected {
        let (found, wanted) = (observed.get(category).copied().unwrap_or(0) as f64, probability * total);
        if wanted < 5.0 {
            rare = (rare.0 + found, rare.1 + wanted);
        } else {
            x += (found - wanted).powi(2) / wanted;
            categories += 1;
        }
    }
    if rare.1 > 0.0 {
        x += (rare.0 - rare.1).powi(2) / rare.1;
        categories += 1;
    }
    // one category alone has nothing to vary
    if categories == 1 { 1.0 } else { chi_square_tail(x, categories - 1) }
}

/// The p-value of two samples being of one distribution, or of the rows of a contingency table being alike.
pub(crate) fn alike<K: Ord + Clone>(rows: &[BTreeMap<K, u64>]) -> f64 {
    let mut columns: BTreeMap<K, u64> = BTreeMap::new();
    for (category, found) in rows.iter().flatten() {
        *columns.entry(category.clone()).or_insert(0) += found;
    }
    let total = columns.values().sum::<u64>() as f64;
    let mut x = 0.0;
    for row in rows {
        let of_row = row.values().sum::<u64>() as f64;
        for (category, of_column) in &columns {
            let wanted = of_row * *of_column as f64 / total;
            x += (row.get(category).copied().unwrap_or(0) as f64 - wanted).powi(2) / wanted;
        }
    }
    chi_square_tail(x, (rows.len() - 1) * (columns.len() - 1))
}

/// The p-value of two outcomes of each draw being independent.
pub(crate) fn independent<A: Ord, B: Ord + Clone>(pairs: impl IntoIterator<Item = (A, B)>) -> f64 {
    let mut rows: BTreeMap<A, BTreeMap<B, u64>> = BTreeMap::new();
    for (a, b) in pairs {
        *rows.entry(a).or_default().entry(b).or_insert(0) += 1;
    }
    alike(&rows.into_values().collect::<Vec<_>>())
}

#[test]
fn tails_are_those_of_the_tables() {
    for (x, freedom, tail) in [
        (3.841_458_820_694_124, 1, 0.05),
        (18.307_038_053_275_146, 10, 0.05),
        (124.342_113_4, 100, 0.05),
        (2.0, 2, 0.367_879_441_171_442_33),
        (60.0, 2, 9.357_622_968_840_175e-14),
        (0.5, 7, 0.999446481390),
    ] {
        let found = chi_square_tail(x, freedom);
        assert!((found / tail - 1.0).abs() < 1e-6, "{x} at {freedom} degrees: {found}, not {tail}");
    }
}

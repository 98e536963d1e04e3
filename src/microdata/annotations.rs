//! Annotations of a column: excluded values, a taxonomy and thresholds.

use std::collections::HashMap;

use super::domain::Domain;
use super::taxonomy::BoundTaxonomy;
use super::taxonomy::spelling::spelling;

/// Largest share of a bucket of each code, under thresholds of this digest.
#[derive(Clone, PartialEq, Eq, Debug)]
struct CodeLimits {
    digest: [u8; 32],
    shares: Vec<ExactFraction>,
}

/// What a guarantee has to know of the values of a column.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ColumnAnnotations {
    /// The codes of values that an insider can rule out, rising.
    excludable: Vec<u32>,
    /// The tree of which all values are leaves.
    taxonomy: Option<BoundTaxonomy>,
    /// Thresholds by their digest.
    limits: Vec<CodeLimits>,
}

/// A share of a bucket. Products with counts of rows stay below 2^128.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExactFraction {
    /// The numerator.
    pub numerator: u128,
    /// The denominator, above 0.
    pub denominator: u128,
}

impl ColumnAnnotations {
    /// A column with values that an insider can rule out, by their codes.
    #[must_use]
    pub fn without(mut excludable: Vec<u32>) -> Self {
        excludable.sort_unstable();
        excludable.dedup();
        Self { excludable, ..Self::default() }
    }

    /// The same column, its values being leaves of a tree.
    #[must_use]
    pub fn along(self, taxonomy: BoundTaxonomy) -> Self {
        Self { taxonomy: Some(taxonomy), ..self }
    }

    /// The same column with the largest share of a bucket of each code, under thresholds of this digest.
    #[must_use]
    pub fn limited(mut self, digest: [u8; 32], shares: Vec<ExactFraction>) -> Self {
        self.limits.retain(|limits| limits.digest != digest);
        self.limits.push(CodeLimits { digest, shares });
        self
    }

    /// The largest share of a bucket of each code, under thresholds of this digest; `None` for unknown thresholds.
    #[must_use]
    pub fn limits(&self, digest: &[u8; 32]) -> Option<&[ExactFraction]> {
        self.limits.iter().find(|limits| limits.digest == *digest).map(|limits| &limits.shares[..])
    }

    /// The tree of which all values are leaves, if one is declared.
    #[must_use]
    pub const fn taxonomy(&self) -> Option<&BoundTaxonomy> {
        self.taxonomy.as_ref()
    }

    /// The codes of values that an insider can rule out, rising.
    #[must_use]
    pub fn excludable(&self) -> &[u32] {
        &self.excludable
    }

    /// Whether an insider can rule out the value of a code.
    #[must_use]
    pub fn is_excludable(&self, code: u32) -> bool {
        self.excludable.binary_search(&code).is_ok()
    }
}

impl Domain {
    /// The codes of each of `values`, of which `None` is the missing one: none where it does not occur, several where a decimal
    /// has several spellings.
    #[must_use]
    pub fn codes_of(&self, values: &[Option<String>]) -> Vec<Vec<u32>> {
        let spelled = |value: &[u8]| spelling(self.kind(), value).into_owned();
        let wanted: HashMap<Option<Vec<u8>>, usize> = values
            .iter()
            .enumerate()
            .map(|(at, value)| (value.as_ref().map(|text| spelled(text.as_bytes())), at))
            .collect();
        let mut codes = vec![Vec::new(); values.len()];
        if values.is_empty() {
            return codes;
        }
        for (value, code) in self.iter().zip(0..) {
            if let Some(&at) = wanted.get(&value.map(spelled)) {
                codes[at].push(code);
            }
        }
        codes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Arena;
    use crate::microdata::AttributeType;

    #[test]
    fn values_are_found_by_their_text_and_decimals_by_their_value() {
        let domain = |kind, missing, values: &[&str]| {
            let mut arena = Arena::default();
            values.iter().for_each(|value| arena.push(value.as_bytes()));
            Domain::from_sorted(kind, missing, arena)
        };
        let texts = |texts: &[Option<&str>]| texts.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>();
        let words = domain(AttributeType::Text, true, &["", "none", "x"]);
        let asked = texts(&[Some("none"), None, Some("y"), Some("")]);
        assert_eq!(words.codes_of(&asked), [vec![2], vec![0], vec![], vec![1]]);
        let numbers = domain(AttributeType::Decimal, false, &["-0", "0.00", "1.5", "1.50"]);
        let asked = texts(&[Some("1.500"), Some("0"), None, Some("10")]);
        assert_eq!(numbers.codes_of(&asked), [vec![2, 3], vec![0, 1], vec![], vec![]]);
    }
}

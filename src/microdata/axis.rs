//! The order of a column's values, and how far they are from each other: what cuts and bins go by.

use super::calendar::{parse_date, parse_local_timestamp, parse_timestamp};
use super::domain::Domain;
use super::value::AttributeType;

/// A line on which every value of a column has a place. Numbers, dates and timestamps are placed by what they are worth, other
/// values by their rank. A missing value comes first, next to the smallest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The ordinal of each code: the rank of its place. Values of equal worth share one.
    ordinals: Vec<u32>,
    /// The place of each ordinal, strictly rising.
    places: Vec<u64>,
}

impl Axis {
    /// The axis of a domain's own order.
    #[must_use]
    pub fn from_domain(domain: &Domain) -> Self {
        Self::from_places(&places(domain).unwrap_or_else(|| (0..domain.len() as u64).collect()))
    }

    /// An axis on which each code has the given place, such as its rank in a declared order.
    #[must_use]
    pub fn from_places(places: &[u64]) -> Self {
        let mut distinct = places.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let ordinals = places.iter().map(|place| distinct.partition_point(|other| other < place) as u32).collect();
        Self { ordinals, places: distinct }
    }

    /// The ordinal of a code.
    #[must_use]
    pub fn ordinal(&self, code: u32) -> u32 {
        self.ordinals[code as usize]
    }

    /// The distance of two ordinals, the lower one first.
    #[must_use]
    pub fn width(&self, low: u32, high: u32) -> u64 {
        self.places[high as usize] - self.places[low as usize]
    }
}

/// The place of each code of a domain whose values are worth something; `None` where only their order counts.
fn places(domain: &Domain) -> Option<Vec<u64>> {
    let decimals = || {
        let places = |value: &[u8]| value.iter().rev().position(|&byte| byte == b'.').unwrap_or(0);
        domain.iter().flatten().map(places).max().unwrap_or(0)
    };
    let worth: Vec<i128> = match domain.kind() {
        AttributeType::Integer | AttributeType::Decimal | AttributeType::Float => {
            let decimals = decimals();
            domain.iter().flatten().map(|value| scaled(value, decimals)).collect::<Option<_>>()?
        }
        AttributeType::Date => domain.iter().flatten().map(|v| parse_date(v).map(i128::from)).collect::<Option<_>>()?,
        AttributeType::Timestamp => {
            domain.iter().flatten().map(|v| parse_timestamp(v).map(i128::from)).collect::<Option<_>>()?
        }
        AttributeType::LocalTimestamp => {
            domain.iter().flatten().map(|v| parse_local_timestamp(v).map(i128::from)).collect::<Option<_>>()?
        }
        AttributeType::Text | AttributeType::Boolean => return None,
    };
    // values rise with their codes
    let (&low, &high) = (worth.first()?, worth.last()?);
    let span = high.checked_sub(low)?.unsigned_abs();
    let shift = (u128::BITS - span.leading_zeros()).saturating_sub(u64::BITS - 1);
    let missing = domain.has_missing().then_some(0);
    let place = |worth: i128| ((worth - low).unsigned_abs() >> shift) as u64 + u64::from(domain.has_missing());
    Some(missing.into_iter().chain(worth.into_iter().map(place)).collect())
}

/// A decimal number times ten to the power of `decimals`, which it has at most.
fn scaled(value: &[u8], decimals: usize) -> Option<i128> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: i128 = [whole, fraction].concat().parse().ok()?;
    let missing = u32::try_from(decimals.checked_sub(fraction.len())?).ok()?;
    digits.checked_mul(10i128.checked_pow(missing)?)
}

/// The bin of each code when the values of a domain are cut into `bins` bins of equal width [Li et al. 2012, section 4.2], for
/// correlations only, never for what is published. A missing value has a bin of its own. Values whose order alone counts, and
/// those of at most `bins` distinct ones, are left as they are.
pub(super) fn bins(domain: &Domain, bins: u32) -> (Vec<u32>, usize) {
    let missing = usize::from(domain.has_missing());
    let own = || ((0..domain.len() as u32).collect(), domain.len());
    if domain.len() - missing <= bins as usize {
        return own();
    }
    let Some(places) = places(domain) else { return own() };
    let low = places.get(missing).copied().unwrap_or(0);
    let span = u128::from(places.last().map_or(0, |high| high - low));
    let bin = |place: u64| {
        let bin = (u128::from(place - low) * u128::from(bins)).checked_div(span).unwrap_or(0);
        bin.min(u128::from(bins) - 1) as u32 + missing as u32
    };
    let bins_of = (0..missing as u32).chain(places[missing..].iter().map(|&place| bin(place))).collect();
    (bins_of, bins as usize + missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Arena;

    fn domain(kind: AttributeType, missing: bool, values: &[&str]) -> Domain {
        let mut arena = Arena::default();
        values.iter().for_each(|value| arena.push(value.as_bytes()));
        Domain::from_sorted(kind, missing, arena)
    }

    #[test]
    fn numbers_stand_where_they_are_worth() {
        let axis = Axis::from_domain(&domain(AttributeType::Integer, false, &["-3", "0", "7"]));
        assert_eq!((axis.width(0, 1), axis.width(1, 2)), (3, 7));
        let axis = Axis::from_domain(&domain(AttributeType::Decimal, true, &["-1.5", "0", "0.0", "0.25", "2"]));
        assert_eq!(
            (0..6).map(|code| axis.ordinal(code)).collect::<Vec<_>>(),
            [0, 1, 2, 2, 3, 4],
            "0 and 0.0 are equal"
        );
        assert_eq!((axis.width(0, 1), axis.width(1, 2), axis.width(2, 4)), (1, 150, 200));
        let axis = Axis::from_domain(&domain(AttributeType::Date, false, &["2024-02-28", "2024-03-01"]));
        assert_eq!(axis.width(0, 1), 2);
        // values too large for arithmetic keep their order
        let long = format!("1{}", "0".repeat(60));
        let axis = Axis::from_domain(&domain(AttributeType::Decimal, false, &["1", "7", &long]));
        assert_eq!(axis.width(0, 2), 2);
        let axis = Axis::from_domain(&domain(
            AttributeType::Integer,
            true,
            &["-9223372036854775808", "0", "9223372036854775807"],
        ));
        assert!(axis.width(1, 2) >= 1 << 62 && axis.width(0, 3) >= 1 << 62, "the widest span fits");
        let axis = Axis::from_domain(&domain(AttributeType::Text, false, &["a", "x", "y"]));
        assert_eq!((axis.width(0, 1), axis.width(0, 2)), (1, 2));
    }

    #[test]
    fn bins_are_equally_wide() {
        let values: Vec<String> = (0..=20).map(|number| number.to_string()).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let (of, count) = bins(&domain(AttributeType::Integer, true, &values), 4);
        assert_eq!(count, 5);
        assert_eq!(of[0], 0, "a missing value stands alone");
        // floor(4 v / 20), the last value in the last bin
        let expected: Vec<u32> = (0..=20).map(|v: u32| (v * 4 / 20).min(3) + 1).collect();
        assert_eq!(of[1..], expected);
        assert_eq!(bins(&domain(AttributeType::Text, false, &["a", "b", "c"]), 2).1, 3, "no number");
        assert_eq!(bins(&domain(AttributeType::Integer, false, &["1", "50"]), 2).0, [0, 1], "few values");
    }
}

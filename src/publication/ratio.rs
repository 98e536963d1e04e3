//! Exact fractions for thresholds, which are never rounded.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest numerator and denominator. Products with two counts of rows then stay far below 2^128.
const MAX_TERM: u64 = 1_000_000_000;

/// A non-negative fraction in lowest terms. Written as an integer where it is whole, else as a string: a decimal where one is
/// exact, else `p/q`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// The text is not a fraction, or has too many digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a fraction such as 2, \"0.02\" or \"1/3\", of at most nine digits")]
pub struct RatioError;

impl Ratio {
    /// One.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator`, in lowest terms.
    ///
    /// # Errors
    /// [`RatioError`] when the denominator is 0, or either is above 10^9 in lowest terms.
    pub const fn new(numerator: u64, denominator: u64) -> Result<Self, RatioError> {
        if denominator == 0 {
            return Err(RatioError);
        }
        let (mut a, mut b) = (numerator, denominator);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let (numerator, denominator) = (numerator / a, denominator / a);
        if numerator > MAX_TERM || denominator > MAX_TERM {
            return Err(RatioError);
        }
        Ok(Self { numerator, denominator })
    }

    /// The numerator, in lowest terms.
    #[must_use]
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// The denominator, in lowest terms.
    #[must_use]
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// The smallest integer that is not below it.
    #[must_use]
    pub const fn ceil(self) -> u64 {
        self.numerator.div_ceil(self.denominator)
    }

    /// The nearest float.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        // both products are at most 10^18
        (self.numerator * other.denominator).cmp(&(other.numerator * self.denominator))
    }
}

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Self, RatioError> {
        let digits = |text: &str| {
            let plain = !text.is_empty() && text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| text.parse::<u64>().ok()).flatten().ok_or(RatioError)
        };
        if let Some((numerator, denominator)) = text.split_once('/') {
            return Self::new(digits(numerator)?, digits(denominator)?);
        }
        let Some((whole, decimals)) = text.split_once('.') else { return Self::new(digits(text)?, 1) };
        if decimals.len() > 9 {
            return Err(RatioError);
        }
        let scale = 10u64.pow(decimals.len() as u32);
        let whole = digits(whole)?.checked_mul(scale).ok_or(RatioError)?;
        Self::new(whole.checked_add(digits(decimals)?).ok_or(RatioError)?, scale)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { numerator, denominator } = *self;
        if denominator == 1 {
            return write!(f, "{numerator}");
        }
        // a decimal is exact where some power of ten is a multiple of the denominator
        match (1..=9u32).find(|&places| 10u64.pow(places).is_multiple_of(denominator)) {
            Some(places) => {
                let scale = 10u64.pow(places);
                let rest = (numerator % denominator) * (scale / denominator);
                write!(f, "{}.{rest:0width$}", numerator / denominator, width = places as usize)
            }
            None => write!(f, "{numerator}/{denominator}"),
        }
    }
}

impl fmt::Debug for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.denominator == 1 { serializer.serialize_u64(self.numerator) } else { serializer.collect_str(self) }
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Whole(u64),
            Text(String),
        }
        let read = match Written::deserialize(deserializer)? {
            Written::Whole(number) => Self::new(number, 1),
            Written::Text(text) => text.parse(),
        };
        read.map_err(serde::de::Error::custom)
    }
}

impl utoipa::PartialSchema for Ratio {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
        let whole = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(MAX_TERM as f64));
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(r"^([0-9]{1,18}(\.[0-9]{1,9})?|[0-9]{1,18}/[0-9]{1,18})$"));
        OneOfBuilder::new()
            .item(whole)
            .item(text)
            .description(Some("A non-negative fraction, exact: an integer, a decimal of at most nine digits, or p/q"))
            .into()
    }
}

impl utoipa::ToSchema for Ratio {
    fn name() -> std::borrow::Cow<'static, str> {
        "Fraction".into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ratio_parses_every_spelling() {
        let read = |text: &str| text.parse::<Ratio>().map(|ratio| ratio.to_string());
        for (text, written) in [
            ("0.02", "0.02"),
            ("1/3", "1/3"),
            ("2/4", "0.5"),
            ("3", "3"),
            ("2.50", "2.5"),
            ("10/5", "2"),
            ("0", "0"),
            ("007.5", "7.5"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(written), "{text}");
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "1e3",
            "1/0",
            "0.1234567891",
            " 1",
            "1/",
            "٣",
            "12345678901234567890",
            "1000000001",
        ] {
            assert_eq!(read(text), Err(RatioError), "{text}");
        }
    }

    #[test]
    fn json_has_integers_and_strings_only() {
        let ratio = |text: &str| text.parse::<Ratio>().unwrap();
        assert_eq!(serde_json::to_value(ratio("3")).unwrap(), serde_json::json!(3));
        assert_eq!(serde_json::to_value(ratio("1/3")).unwrap(), serde_json::json!("1/3"));
        assert!(serde_json::from_value::<Ratio>(serde_json::json!(0.5)).is_err());
    }

    proptest! {
        #[test]
        fn text_and_order_are_those_of_the_fraction(a in 0..=MAX_TERM, b in 1..=MAX_TERM, c in 0..=MAX_TERM, d in 1..=MAX_TERM) {
            let (left, right) = (Ratio::new(a, b).unwrap(), Ratio::new(c, d).unwrap());
            prop_assert_eq!(left.to_string().parse(), Ok(left));
            let exact = (u128::from(a) * u128::from(d)).cmp(&(u128::from(c) * u128::from(b)));
            prop_assert_eq!(left.cmp(&right), exact);
            prop_assert_eq!(left.ceil(), a.div_ceil(b));
        }
    }
}

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The digest by which a guarantee names declared thresholds, so that guarantees stay small values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThresholdsDigest(pub(super) [u8; 32]);

impl ThresholdsDigest {
    /// The digest.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ThresholdsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ThresholdsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ThresholdsDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ThresholdsDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let mut name = [0; 32];
        let pairs = text.as_bytes().chunks_exact(2);
        if text.len() == 64
            && name.iter_mut().zip(pairs).all(|(byte, pair)| {
                let read = digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high << 4 | low);
                *byte = read.unwrap_or_default();
                read.is_some()
            })
        {
            return Ok(Self(name));
        }
        Err(serde::de::Error::custom("not 64 hexadecimal digits"))
    }
}

impl utoipa::PartialSchema for ThresholdsDigest {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .pattern(Some("^[0-9a-f]{64}$"))
            .description(Some("SHA-256 of declared thresholds"))
            .into()
    }
}

impl utoipa::ToSchema for ThresholdsDigest {
    fn name() -> std::borrow::Cow<'static, str> {
        "ThresholdsName".into()
    }
}

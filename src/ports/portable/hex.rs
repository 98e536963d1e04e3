//! Hashes and wrapped keys as hexadecimal text.

use serde::{Deserialize, Deserializer, Serializer, de};

pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

pub(super) fn serialize<S: Serializer>(bytes: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_hex(bytes))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    of_hex(&text).ok_or_else(|| de::Error::custom("not 64 hexadecimal digits"))
}

/// Bytes of any length.
pub(super) mod bytes {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(in crate::ports::portable) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::to_hex(bytes))
    }

    pub(in crate::ports::portable) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        of_digits(&text).ok_or_else(|| de::Error::custom("not hexadecimal digits"))
    }

    /// The bytes of hexadecimal digits.
    pub(in crate::ports::portable) fn of_digits(text: &str) -> Option<Vec<u8>> {
        let is_hex = text.len().is_multiple_of(2) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        is_hex.then(|| text.as_bytes().chunks_exact(2).map(byte).collect()).flatten()
    }
}

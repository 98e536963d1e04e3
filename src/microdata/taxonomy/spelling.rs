use std::borrow::Cow;

use crate::microdata::value::AttributeType;

/// One spelling for all of a decimal.
pub(in crate::microdata) fn spelling(kind: AttributeType, value: &[u8]) -> Cow<'_, [u8]> {
    if !kind.has_spellings() || !value.contains(&b'.') {
        return Cow::Borrowed(if kind.has_spellings() && value == b"-0" { b"0" } else { value });
    }
    let end = value.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    let value = value[..end].strip_suffix(b".").unwrap_or(&value[..end]);
    Cow::Borrowed(if value == b"-0" { b"0" } else { value })
}

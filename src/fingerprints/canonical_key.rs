//! One spelling for what record keys have in several.
//!
//! It decides which records may be the same in two datasets, and never distinguishes two records of one dataset. Where it takes
//! two subjects for one, the check assumes more knowledge and refuses more.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The value of a key without white space around it, in one form of Unicode and in small letters; of a whole number without what does
/// not change it: a plus, zeros in front, and a fraction of zeros.
pub(crate) fn canonical_key(value: &[u8]) -> Cow<'_, [u8]> {
    let Ok(text) = std::str::from_utf8(value) else { return Cow::Borrowed(value) };
    let one_form = match text.is_ascii() {
        true if !text.bytes().any(|byte| byte.is_ascii_uppercase()) => Cow::Borrowed(text.trim()),
        true => Cow::Owned(text.trim().to_ascii_lowercase()),
        // small letters of what was composed may be composed once more
        false => Cow::Owned(text.nfkc().flat_map(char::to_lowercase).nfkc().collect::<String>().trim().to_owned()),
    };
    match (whole_number(&one_form), one_form) {
        (Some(number), _) => Cow::Owned(number.into_bytes()),
        (None, Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        (None, Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
    }
}

/// The number in its shortest spelling, unless that is how it is written.
fn whole_number(text: &str) -> Option<String> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || fraction.bytes().any(|byte| byte != b'0') {
        return None;
    }
    let shortest = whole.trim_start_matches('0');
    let written = if shortest.is_empty() { "0".to_owned() } else { format!("{sign}{shortest}") };
    (written != text).then_some(written)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(value: &str) -> String {
        String::from_utf8(canonical_key(value.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn keys_that_are_written_differently_have_one_spelling() {
        for (spellings, one) in [
            (&["17", " 17", "17\t", "017", "+17", "17.0", "17.", "\u{a0}17", "\u{ff11}\u{ff17}"][..], "17"),
            (&["0", "000", "-0", "0.00"], "0"),
            (&["-7", "-007"], "-7"),
            (&["ab-1", "AB-1", " Ab-1 "], "ab-1"),
            (&["jos\u{e9}", "jose\u{301}", "JOS\u{c9}"], "jos\u{e9}"),
        ] {
            spellings.iter().for_each(|spelling| assert_eq!(text(spelling), one, "{spelling:?}"));
        }
        for other in ["17.5", "1 7", "17a", "-", "", ".0", "1e3", "0x11"] {
            assert_eq!(text(other), other);
        }
        assert_eq!(canonical_key(&[0xff, b' ']), &[0xff, b' '][..]);
    }

    proptest! {
        #[test]
        fn a_folded_key_is_as_it_would_be_folded(key in "[ +\\-0-2.aA\u{e9}\u{c9}e\u{301}\u{130}\u{1e9e}\u{ff11}]{0,6}") {
            let once = text(&key);
            prop_assert_eq!(text(&once), once);
        }
    }
}

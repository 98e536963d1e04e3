//! The one spelling of texts that mean the same, again from its definition.

use std::iter;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// How the texts of a key system are folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyFold {
    /// Form, invisible characters, case, white space, dates and numbers do not count.
    Standard,
    /// As `Standard`, and only letters and digits count.
    Alphanumeric,
    /// As `Standard`, and only the digits 0 to 9 count.
    Digits,
    /// Only the form of Unicode does not count.
    Exact,
}

/// The spelling that stands for a text.
pub(super) fn fold(text: &str, how: KeyFold) -> String {
    // ASCII is composed, and nothing of it is invisible
    let mut spaced = match text.is_ascii() {
        true if how == KeyFold::Exact => return text.to_owned(),
        true => single_spaced(text.chars().map(|c| c.to_ascii_lowercase()), text.len()),
        false => {
            let composed: String = text.nfkc().collect();
            if how == KeyFold::Exact {
                return composed;
            }
            single_spaced(caseless_and_visible(&composed).chars(), composed.len())
        }
    };
    match how {
        KeyFold::Alphanumeric => spaced.retain(is_letter_or_number),
        KeyFold::Digits => spaced.retain(|c| c.is_ascii_digit()),
        KeyFold::Standard | KeyFold::Exact => {}
    }
    full_date(&spaced).or_else(|| shortest_number(&spaced)).unwrap_or(spaced)
}

/// White space within as one space each, and none around.
fn single_spaced(letters: impl Iterator<Item = char>, bytes: usize) -> String {
    let mut spaced = String::with_capacity(bytes);
    for c in letters {
        match c {
            c if c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}') => {
                if !spaced.is_empty() && !spaced.ends_with(' ') {
                    spaced.push(' ');
                }
            }
            c => spaced.push(c),
        }
    }
    spaced.truncate(spaced.trim_end_matches(' ').len());
    spaced
}

fn is_letter_or_number(c: char) -> bool {
    let group = || c.general_category_group();
    c.is_ascii_alphanumeric()
        || !c.is_ascii() && matches!(group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

fn caseless_and_visible(composed: &str) -> String {
    let visible: String = composed.chars().filter(|c| c.general_category() != GeneralCategory::Format).collect();
    caseless::default_case_fold_str(&visible).nfkc().collect()
}

fn has_only_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A year, month and day with one separator.
fn full_date(text: &str) -> Option<String> {
    let separator = text.chars().find(|c| !c.is_ascii_digit()).filter(|c| "-/.".contains(*c))?;
    let fields: Vec<&str> = text.split(separator).collect();
    let [year, month, day] = fields[..] else { return None };
    let is_short = |field: &str| (1..=2).contains(&field.len()) && has_only_digits(field);
    (year.len() == 4 && has_only_digits(year) && is_short(month) && is_short(day))
        .then(|| format!("{year}-{month:0>2}-{day:0>2}"))
}

/// A decimal number without exponent, sign of zero, and zeros that say nothing.
fn shortest_number(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find('e') {
        Some(at) => (&unsigned[..at], small_exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = match mantissa.find('.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, ""),
    };
    if whole.is_empty() || !has_only_digits(whole) || !has_only_digits(fraction) {
        return None;
    }
    // the value is the digits times 10^-places
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let places = fraction.len() as i64 - exponent - (digits.len() - significant.len()) as i64;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let zeros = |number: i64| iter::repeat_n('0', number.max(0) as usize).collect::<String>();
    let value = match significant.len() as i64 - places {
        _ if places <= 0 => format!("{significant}{}", zeros(-places)),
        before if before > 0 => format!("{}.{}", &significant[..before as usize], &significant[before as usize..]),
        before => format!("0.{}{significant}", zeros(-before)),
    };
    Some(if text.starts_with('-') { format!("-{value}") } else { value })
}

/// An exponent of one or two digits.
fn small_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_small = (1..=2).contains(&digits.len()) && has_only_digits(digits);
    is_small.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::people::Fold;

    const FOLDS: [(KeyFold, Fold, &str); 4] = [
        (KeyFold::Standard, Fold::Standard, "standard"),
        (KeyFold::Alphanumeric, Fold::Alphanumeric, "alphanumeric"),
        (KeyFold::Digits, Fold::Digits, "digits"),
        (KeyFold::Exact, Fold::Exact, "exact"),
    ];

    #[test]
    fn audited_folds_are_those_of_the_vectors() {
        let vectors: Value =
            serde_json::from_str(include_str!("../../../tests/vectors/identity/scenarios.json")).unwrap();
        for vector in vectors["folds"].as_array().unwrap() {
            let (how, ..) = FOLDS.into_iter().find(|(.., name)| vector["how"] == *name).unwrap();
            assert_eq!(fold(vector["text"].as_str().unwrap(), how), vector["folded"].as_str().unwrap(), "{vector}");
        }
    }

    proptest! {
        #[test]
        fn both_folds_agree(
            text in "[ +\\-./0-2eE.aA\u{e9}\u{c9}\u{301}\u{130}\u{1e9e}\u{ff11}\u{200b}\u{a0}\u{1c}]{0,10}",
            number in "[+\\-]?[0-9]{0,4}\\.?[0-9]{0,3}(e[+\\-]?[0-9]{0,3})?",
            date in "[0-9]{3,5}[\\-/.][0-9]{1,3}[\\-/.][0-9]{0,2}",
        ) {
            for (audited, how, _) in FOLDS {
                for text in [&text, &number, &date] {
                    let expected = how.apply(text);
                    prop_assert_eq!(fold(text, audited), expected.as_ref());
                }
            }
        }
    }
}

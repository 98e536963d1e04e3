//! One spelling of texts that mean the same: components of person keys, and cells.
//!
//! A fold that joins two persons makes more overlaps, never fewer. Prefixes, zeros after letters, transliterations and
//! other orders of dates stay apart.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The largest number of digits that an exponent may have: longer ones are no numbers of tables.
const MAX_EXPONENT_DIGITS: usize = 2;

/// How texts of a key system are folded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    /// Form of Unicode, invisible characters, case, white space, dates and numbers do not count.
    #[default]
    Standard,
    /// As `standard`, and of the text only letters and digits count.
    Alphanumeric,
    /// As `standard`, and of the text only the digits 0 to 9 count.
    Digits,
    /// Only the form of Unicode does not count.
    Exact,
}

impl Fold {
    /// The spelling of a text that stands for all texts of the same meaning.
    #[must_use]
    pub fn apply<'a>(self, text: &'a str) -> Cow<'a, str> {
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
        if self == Self::Exact {
            return if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfkc().collect()) };
        }
        let mut folded = if is_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(visible_and_caseless(text)) };
        let is_kept: Option<fn(char) -> bool> = match self {
            Self::Alphanumeric => Some(is_letter_or_digit),
            Self::Digits => Some(|letter| letter.is_ascii_digit()),
            Self::Standard | Self::Exact => None,
        };
        if let Some(is_kept) = is_kept.filter(|is_kept| !folded.chars().all(is_kept)) {
            folded = Cow::Owned(folded.chars().filter(|letter| is_kept(*letter)).collect());
        }
        match date(&folded).or_else(|| number(&folded)) {
            Some(shorter) => Cow::Owned(shorter),
            None => folded,
        }
    }
}

/// The steps of a fold that need tables of Unicode, and white space.
fn visible_and_caseless(text: &str) -> String {
    let composed = text.nfkc().filter(|letter| letter.general_category() != GeneralCategory::Format);
    let caseless: String = caseless::default_case_fold_str(&composed.collect::<String>()).nfkc().collect();
    let words = caseless.split(is_white_space).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// White space of Unicode, and the four separators of ASCII that tables use as such.
fn is_white_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

fn is_letter_or_digit(letter: char) -> bool {
    matches!(letter.general_category_group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `yyyy-m-d` with one separator throughout, as `yyyy-mm-dd`.
fn date(text: &str) -> Option<String> {
    let separator = *text.as_bytes().get(4).filter(|byte| matches!(byte, b'-' | b'/' | b'.'))?;
    let mut parts = text.split(char::from(separator));
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let lengths = year.len() == 4 && (1..=2).contains(&month.len()) && (1..=2).contains(&day.len());
    let is_date = lengths && [year, month, day].into_iter().all(is_digits) && parts.next().is_none();
    is_date.then(|| format!("{year}-{month:0>2}-{day:0>2}"))
}

/// The shortest decimal without an exponent.
fn number(text: &str) -> Option<String> {
    let (is_negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    // most texts end here
    if !unsigned.as_bytes().first()?.is_ascii_digit() {
        return None;
    }
    let (unsigned, exponent) = unsigned.split_once('e').map_or((unsigned, None), |(of, exponent)| (of, Some(exponent)));
    let (whole, part) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if !is_digits(whole) || !(part.is_empty() || is_digits(part)) {
        return None;
    }
    let power = exponent.map_or(Some(0), power)?;
    // the point stands before the digit of this number
    let point = whole.len() as i64 + power;
    let mut digits = "0".repeat(point.min(0).unsigned_abs() as usize) + whole + part;
    let point = point.max(0) as usize;
    digits.extend(std::iter::repeat_n('0', point.saturating_sub(digits.len())));
    let (whole, part) = digits.split_at(point);
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let value = if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") };
    Some(if is_negative && value != "0" { format!("-{value}") } else { value })
}

/// The exponent of a number: `[+-]?d{1,2}`.
fn power(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !is_digits(digits) || digits.len() > MAX_EXPONENT_DIGITS {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn folds_are_those_of_the_vectors() {
        let vectors = include_str!("../../tests/vectors/identity/scenarios.json");
        let vectors: Value = serde_json::from_str(vectors).unwrap();
        let folds = vectors["folds"].as_array().unwrap();
        assert_eq!(folds.len(), 80);
        for vector in folds {
            let how: Fold = serde_json::from_value(vector["how"].clone()).unwrap();
            let text = vector["text"].as_str().unwrap();
            assert_eq!(how.apply(text), vector["folded"].as_str().unwrap(), "{how:?} of {text:?}");
        }
    }

    #[test]
    fn texts_that_are_no_numbers_or_dates_stay() {
        for text in
            ["1e400", "0x11", "12-2020-01", "2020-1-1-1", "2020-1/1", "1.2.3", "-", "+", "1e", "e1", "2020-111-1", ".5"]
        {
            assert_eq!(Fold::Standard.apply(text), text);
        }
        assert_eq!(Fold::Standard.apply("17."), "17");
        assert_eq!(Fold::Standard.apply("1.25e-3"), "0.00125");
        assert_eq!(Fold::Standard.apply("-0.00e9"), "0");
    }

    #[test]
    fn alphanumeric_keeps_letters_and_digits_alone() {
        assert_eq!(Fold::Alphanumeric.apply("P-17 / \u{e9}\u{2167}_"), "p17\u{e9}viii");
        assert_eq!(Fold::Digits.apply("P-00\u{664}17"), "17");
    }

    proptest! {
        #[test]
        fn a_folded_text_is_its_own_fold(
            text in "[ +\\-./0-2eE.aA\u{e9}\u{c9}\u{301}\u{130}\u{1e9e}\u{ff11}\u{200b}\u{a0}]{0,9}",
            how in prop::sample::select(vec![Fold::Standard, Fold::Alphanumeric, Fold::Digits, Fold::Exact]),
        ) {
            let once = how.apply(&text).into_owned();
            prop_assert_eq!(how.apply(&once), once.as_str());
        }

        #[test]
        fn texts_of_plain_letters_fold_as_all_do(text in "[ -~]{0,8}") {
            let slow = visible_and_caseless(&text);
            let slow = date(&slow).or_else(|| number(&slow)).unwrap_or(slow);
            prop_assert_eq!(Fold::Standard.apply(&text), slow);
        }
    }
}

//! Text for terminals: what several commands print alike.

use std::fmt::Display;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use textwrap::Options;

use crate::publication::Guarantee;
use crate::report::{ManifestEnforcedBy, ManifestRatio};

/// The style of a headline.
pub(super) const HEADLINE: Style = Style::new().bold();
/// The style of what holds.
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
/// The style of what is refused or needs attention.
pub(super) const BAD: Style = AnsiColor::Red.on_default().effects(anstyle::Effects::BOLD);

/// The most characters of a line.
const MAX_WIDTH: usize = 100;
/// The most characters of a JSON value in a sentence.
const MAX_VALUE_CHARS: usize = 200;

/// The text in a style; streams that are no terminal, or with NO_COLOR, drop the codes.
pub(super) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The text with its styles and line breaks, and a mark for every other control character. Names from a document or a table could
/// otherwise move the cursor, or clear what was said before.
pub(super) fn only_styles(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let of_style = rest.strip_prefix("\u{1b}[").and_then(|code| {
            let end = code.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
            code[end..].starts_with('m').then_some(end + "\u{1b}[m".len())
        });
        let length = of_style.unwrap_or(letter.len_utf8());
        match (of_style, letter) {
            (None, letter) if letter.is_control() && letter != '\n' => shown.push('\u{fffd}'),
            _ => shown.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    shown
}

/// Lines as wide as the terminal, each after `indent` spaces and all but the first after two more.
pub(super) fn wrapped(indent: usize, text: &str) -> String {
    let width = textwrap::termwidth().clamp(40, MAX_WIDTH);
    let (first, next) = (" ".repeat(indent), " ".repeat(indent + 2));
    textwrap::fill(text, Options::new(width).initial_indent(&first).subsequent_indent(&next).break_words(false)) + "\n"
}

/// Adds items under a headline, or nothing without items.
pub(super) fn section(text: &mut String, name: &str, items: impl IntoIterator<Item = String>) {
    let items: Vec<String> = items.into_iter().map(|item| wrapped(2, &item)).collect();
    if !items.is_empty() {
        *text += &format!("\n{}\n{}", styled(HEADLINE, name), items.concat());
    }
}

/// A JSON value in a sentence: a text without quotes, a list by commas, and everything else as short JSON.
pub(super) fn value_in_words(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            items.iter().map(value_in_words).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

/// A rule as a specification writes it.
pub(super) fn rule_in_words(known: &[String], sensitive: &[String], combination: bool) -> String {
    let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
    let sensitive = if sensitive.is_empty() {
        "the row".to_owned()
    } else {
        sensitive.join(if combination { " & " } else { ", " })
    };
    format!("{known} -> {sensitive}")
}

/// The name of a guarantee with its parameters.
pub(super) fn guarantee_in_words(guarantee: &Guarantee) -> String {
    let Ok(Value::Object(members)) = serde_json::to_value(guarantee) else { return guarantee.as_str().to_owned() };
    let is_parameter = |name: &str| !matches!(name, "type" | "stated");
    let parameters = members.iter().filter(|(name, value)| is_parameter(name) && !value.is_object());
    let parameters: Vec<String> = parameters.map(|(name, value)| format!("{name} {}", value_in_words(value))).collect();
    format!("{} {}", guarantee.as_str(), parameters.join(", ")).trim_end().to_owned()
}

/// Why a rule holds.
pub(super) fn reason_in_words(enforced_by: &ManifestEnforcedBy) -> String {
    match enforced_by {
        ManifestEnforcedBy::Unreachable { .. } => "no path of tables leads to the sensitive attribute".to_owned(),
        ManifestEnforcedBy::Guardian { guardian, known } if known.is_empty() => format!("table {guardian} guards it"),
        ManifestEnforcedBy::Guardian { guardian, known } => {
            format!("table {guardian} guards it against who knows {}", known.join(", "))
        }
        ManifestEnforcedBy::Table { table } => format!("table {table} enforces it"),
    }
}

/// A ratio with its percentage.
pub(super) fn share_in_words(ratio: ManifestRatio) -> String {
    format!("{} of {} rows ({})", ratio.count, ratio.of, ratio.percent())
}

/// A word of a shell.
pub(super) fn quoted(word: &Path) -> String {
    let word = word.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_are_quoted() {
        assert_eq!(quoted(Path::new("a/T.csv")), "a/T.csv");
        assert_eq!(quoted(Path::new("my table's.csv")), r"'my table'\''s.csv'");
    }

    #[test]
    fn values_are_short_and_rules_are_as_written() {
        assert_eq!(value_in_words(&serde_json::json!(["a", 1, null])), "a, 1, null");
        assert_eq!(value_in_words(&Value::String("é".repeat(300))).chars().count(), MAX_VALUE_CHARS + 4);
        assert_eq!(rule_in_words(&["a".into(), "b".into()], &["c".into(), "d".into()], true), "a, b -> c & d");
        assert_eq!(guarantee_in_words(&Guarantee::LDiversity { l: 2 }), "l_diversity l 2");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let red = styled(BAD, "a\nb");
        assert_eq!(only_styles(&red), red);
        assert_eq!(
            only_styles("x\u{1b}[2Jy\u{1b}]0;t\u{7}\r\u{9b}1A\u{1b}"),
            "x\u{fffd}[2Jy\u{fffd}]0;t\u{fffd}\u{fffd}\u{fffd}1A\u{fffd}"
        );
    }
}

//! Names that readers can distinguish: what is not shown is in none, and no two differ only in their encoding.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Whether readers see every character of a name.
///
/// Control characters and line breaks are not shown, nor are signs without width and those that turn the direction of writing:
/// two names that differ in them look alike, and a page shows their parts in another order.
#[must_use]
pub fn is_shown(name: &str) -> bool {
    name.chars().all(|letter| {
        !matches!(
            letter.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
        )
    })
}

/// Whether a name is in the composed form of Unicode (NFC). Of two names that differ only in their encoding, one is not.
#[must_use]
pub fn is_composed(name: &str) -> bool {
    name.nfc().eq(name.chars())
}

/// The names of the columns of a table, in their order.
#[derive(Default)]
pub(super) struct ColumnNames {
    /// Positions by the composed form of the name.
    positions: HashMap<String, usize>,
}

impl ColumnNames {
    /// Adds the name of the next column.
    ///
    /// # Errors
    /// Why a column cannot have it. The sentence has positions alone: in a file without a header the names are values.
    pub(super) fn add(&mut self, name: &str) -> Result<(), String> {
        let index = self.positions.len();
        if name.is_empty() {
            // data frames have row numbers there, which identify rows
            let numbers =
                if index == 0 { "; are these row numbers? leave them out when the file is written" } else { "" };
            return Err(format!("column {} has no name{numbers}", index + 1));
        }
        if !is_shown(name) {
            let what = "a line break, a control character, or one without width or of direction";
            return Err(format!("the name of column {} has a character that is not shown: {what}", index + 1));
        }
        let composed: String = name.nfc().collect();
        match self.positions.insert(composed, index) {
            None => Ok(()),
            Some(first) => Err(format!("columns {} and {} have the same name", first + 1, index + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(names: &[&str]) -> Option<String> {
        let mut known = ColumnNames::default();
        names.iter().find_map(|name| known.add(name).err())
    }

    #[test]
    fn names_that_look_alike_are_one_name() {
        assert_eq!(fault(&["straße", "Straße", "日付", "نام", "a b", "\u{e9}", "e"]), None);
        // e with an acute accent, as one character and as two
        assert_eq!(fault(&["x", "\u{e9}", "e\u{301}"]).unwrap(), "columns 2 and 3 have the same name");
        for hidden in ["a\u{200b}", "\u{202e}a", "a\u{2066}b", "a\u{feff}", "a\u{2028}b", "a\nb", "a\u{ad}b", "\u{7f}"]
        {
            let found = fault(&["a", hidden]).unwrap();
            assert!(found.starts_with("the name of column 2 has a character that is not shown"), "{hidden:?}: {found}");
        }
    }
}

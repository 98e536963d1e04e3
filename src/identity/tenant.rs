//! Names of tenants.

/// The maximum length of a tenant's name.
const MAX_TENANT_CHARS: usize = 64;

/// Whether `name` is a valid tenant: 1 to 64 letters, digits, `- _ . : @ +` or spaces, with a letter or digit at both ends.
///
/// Such names are safe in lines of logs and lists.
#[must_use]
pub fn is_tenant(name: &str) -> bool {
    let fits = |character: char| character.is_alphanumeric() || "-_.:@+ ".contains(character);
    let ends = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    name.chars().count() <= MAX_TENANT_CHARS
        && name.chars().all(fits)
        && ends(name.chars().next())
        && ends(name.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        let longest = "x".repeat(MAX_TENANT_CHARS);
        for name in ["default", "n", "Klinik Süd", "a.b-c_d:e@f+g", "018f0000-0000-7000-8000-000000000000", &longest] {
            assert!(is_tenant(name), "{name}");
        }
        let long = "x".repeat(MAX_TENANT_CHARS + 1);
        for name in [
            "",
            " ",
            ".",
            "..",
            "../a",
            "a/b",
            "a\\b",
            "a\0b",
            "a\nb",
            "a\tb",
            " a",
            "a ",
            ".a",
            "a\u{202e}b",
            "a\u{200b}b",
            "a%2fb",
            "a'b",
            "a\u{85}",
            &long,
        ] {
            assert!(!is_tenant(name), "{name:?}");
        }
    }
}

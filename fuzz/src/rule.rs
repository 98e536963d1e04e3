//! A rule is read or refused at a place in the text; what was read is written as a rule that reads as the same.

use guardian::spec::{RuleName, parse, write};

fn texts(names: &[RuleName]) -> Vec<&str> {
    names.iter().map(|name| name.text.as_str()).collect()
}

/// Judges one input.
pub fn run(text: &str) {
    let rule = match parse(text) {
        Ok(rule) => rule,
        Err(malformed) => return assert!(text.is_char_boundary(malformed.position)),
    };
    assert!(!rule.sensitive.is_empty());
    for name in rule.known.iter().chain(&rule.sensitive) {
        assert!(name.position < text.len() && text.is_char_boundary(name.position));
    }
    let written = write(&texts(&rule.known), &texts(&rule.sensitive), rule.combination);
    let again = parse(&written).expect("what was written is read");
    assert_eq!(texts(&again.known), texts(&rule.known));
    assert_eq!(texts(&again.sensitive), texts(&rule.sensitive));
    assert_eq!(again.combination, rule.combination);
}

//! Reader of JSON objects: members are taken one by one, faults are collected, and members that were not taken are unknown.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::problem::{Fault, Kind, similar_name};
use crate::publication::Ratio;

/// Whether a text can be a reason.
pub(in crate::spec) fn is_reason(text: &str) -> bool {
    // not every store keeps U+0000 in a text
    !text.trim().is_empty() && text.chars().count() <= 500 && !text.contains('\0')
}

/// The most faults that are kept of a document, which may be made of nothing else. An answer has fewer; what a policy is read
/// with are the names that it misses.
const MAX_KEPT: usize = 20_000;

/// How many faults are explained by names that resemble an unknown one: it is compared with all.
const MAX_EXPLAINED: usize = 10;

/// The faults found so far.
#[derive(Debug, Default)]
pub struct FaultList {
    kept: Vec<Fault>,
    found: usize,
}

impl FaultList {
    /// A list without faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fault at the end. Of too many the later ones are counted only.
    pub fn push(&mut self, fault: Fault) {
        self.found += 1;
        if self.kept.len() < MAX_KEPT {
            self.kept.push(fault);
        }
    }

    /// Whether names are looked for that explain the next fault.
    pub(in crate::spec) fn explains(&self) -> bool {
        self.found < MAX_EXPLAINED
    }

    /// A value that is missing, of the wrong type or out of range.
    pub fn range(&mut self, pointer: impl Into<String>, allowed: &str) {
        self.push(Fault::new(pointer, Kind::ParameterRange, format!("expected {allowed}")).with("allowed", allowed));
    }

    /// Reports a request that this version does not support.
    pub fn unsupported(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.push(Fault::new(pointer, Kind::GuaranteeUnsupported, detail));
    }

    /// The faults after the first `count` ones.
    pub(in crate::spec) fn after(&mut self, count: usize) -> impl Iterator<Item = &mut Fault> {
        self.kept.iter_mut().skip(count)
    }

    /// Number of faults so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.found
    }

    /// Whether no fault was found so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found == 0
    }

    /// The faults, ordered by pointer.
    #[must_use]
    pub fn into_sorted(mut self) -> Vec<Fault> {
        self.kept.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        self.kept
    }
}

/// The pointer of a member (RFC 6901).
#[must_use]
pub fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A whole number; integral floats such as `1e9` count.
#[must_use]
pub(crate) fn integer(value: &Value) -> Option<i128> {
    // above 2^53 a float no longer says which integer was meant
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    whole.or_else(|| {
        let real = value.as_f64()?;
        (real.fract() == 0.0 && real.abs() <= EXACT).then_some(real as i128)
    })
}

/// An exact fraction: a number such as `0.02`, or a text such as `1/3`.
#[must_use]
pub(crate) fn ratio(value: &Value) -> Option<Ratio> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => integer(other)
            .and_then(|whole| Ratio::new(u64::try_from(whole).ok()?, 1).ok())
            .or_else(|| decimal(other.as_f64()?).parse().ok()),
    }
}

/// A number as it was written: of up to 15 digits the shortest text that reads as the same number is it.
fn decimal(number: f64) -> String {
    const EXACT_DIGITS: usize = 15;
    let text = number.to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if digits <= EXACT_DIGITS { text } else { String::new() }
}

/// A value of a column as text: `Some(None)` is the missing one.
#[must_use]
pub(crate) fn column_value(value: &Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text.clone())),
        Value::Bool(truth) => Some(Some(truth.to_string())),
        other => integer(other).map(|number| Some(number.to_string())),
    }
}

/// An object whose members are taken one by one.
#[derive(Debug)]
pub(crate) struct ObjectReader<'a> {
    pointer: String,
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> ObjectReader<'a> {
    /// Opens `value`; a fault when it is not an object.
    pub(crate) fn open(value: &'a Value, pointer: impl Into<String>, faults: &mut FaultList) -> Option<Self> {
        let pointer = pointer.into();
        match value {
            Value::Object(map) => Some(Self { pointer, map, known: Vec::new() }),
            _ => {
                faults.range(pointer, "an object");
                None
            }
        }
    }

    /// Where the object stands.
    #[must_use]
    pub(crate) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The pointer of a member.
    #[must_use]
    pub(crate) fn at(&self, name: &str) -> String {
        child(&self.pointer, name)
    }

    /// Takes a member of any type; null is absent.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Reports every member that was not taken.
    pub(crate) fn finish(self, faults: &mut FaultList) {
        let mut known = self.known.clone();
        let mut each = BTreeSet::new();
        known.retain(|name| each.insert(*name));
        let known = if known.is_empty() { "none is".to_owned() } else { format!("known are {}", known.join(", ")) };
        for name in self.map.keys().filter(|name| !each.contains(name.as_str())) {
            let detail = format!("no member {name} is known here; {known}");
            let absent = each.iter().copied().filter(|known| !self.map.contains_key(*known));
            let similar = if faults.explains() { similar_name(name, absent) } else { None };
            let fault = Fault::new(self.at(name), Kind::UnknownField, detail);
            faults.push(similar.into_iter().fold(fault, |fault, similar| fault.with("nearest", similar)));
        }
    }
}

/// The words of a choice, for people.
#[must_use]
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [word] => format!("\"{word}\""),
        _ => format!("one of {}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_are_escaped() {
        assert_eq!(child("/attributes", "a/b~c"), "/attributes/a~1b~0c");
        assert_eq!(child("", ""), "/");
    }

    #[test]
    fn numbers_are_fractions_as_they_are_written() {
        let of = |text: &str| text.parse::<Ratio>().unwrap();
        for (number, text) in
            [("0.1", "1/10"), ("2.50", "5/2"), ("1e-3", "1/1000"), ("3", "3"), ("0.333333333", "0.333333333")]
        {
            assert_eq!(ratio(&serde_json::from_str(number).unwrap()), Some(of(text)), "{number}");
        }
        for not in
            [json!(1.0 / 3.0), json!(-0.1), json!(1e-10), json!(1e300), json!(123_456_789.123_456_78), json!(true)]
        {
            assert_eq!(ratio(&not), None, "{not}");
        }
    }

    #[test]
    fn whole_numbers_in_any_spelling_are_integers() {
        assert_eq!(integer(&json!(1e9)), Some(1_000_000_000));
        assert_eq!(integer(&json!(u64::MAX)), Some(i128::from(u64::MAX)));
        assert_eq!(integer(&json!(-0.0)), Some(0));
        for not in [json!(1.5), json!(1e300), json!("3"), json!(null), json!(true)] {
            assert_eq!(integer(&not), None, "{not}");
        }
    }

    #[test]
    fn members_not_taken_are_unknown() {
        let value = json!({"a": "x", "c": null, "d": [], "e/f": 1});
        let mut faults = FaultList::new();
        let mut members = ObjectReader::open(&value, "/x", &mut faults).expect("an object");
        assert_eq!(members.take("a"), Some(&json!("x")));
        assert_eq!(members.take("b"), None);
        assert_eq!(members.take("c"), None);
        // taken twice, reported once
        assert_eq!(members.take("a"), Some(&json!("x")));
        members.finish(&mut faults);
        let detail = |faults: &FaultList| faults.kept.last().map(|fault| fault.detail.clone()).unwrap_or_default();
        assert_eq!(detail(&faults), "no member e/f is known here; known are a, b, c");
        let mut none = FaultList::new();
        ObjectReader::open(&json!({"z": 1}), "", &mut none).expect("an object").finish(&mut none);
        assert_eq!(detail(&none), "no member z is known here; none is");
        let found: Vec<_> = faults.into_sorted().into_iter().map(|f| (f.pointer, f.kind)).collect();
        assert_eq!(found, ["/x/d", "/x/e~1f"].map(|pointer| (pointer.to_owned(), Kind::UnknownField)));
    }
}

//! Which values of an attribute are meant: some that are named, or all between two.

use std::cmp::Ordering;

use super::attrs::Attr;
use super::domain::Domain;
use super::value::AttributeType;

/// Values of one attribute. What stands in several members is meant by all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueSelection {
    /// The attribute.
    pub attribute: Attr,
    /// One of these; `None` among them is the missing value. Decimals are the same whatever their spelling.
    pub among: Option<Vec<Option<Vec<u8>>>>,
    /// This one or one behind it, in the order of the attribute; never the missing value.
    pub from: Option<Vec<u8>>,
    /// This one or one before it; never the missing value.
    pub to: Option<Vec<u8>>,
}

impl ValueSelection {
    /// Whether the selection has a value of an attribute of type `kind`.
    #[must_use]
    pub fn admits(&self, kind: AttributeType, value: Option<&[u8]>) -> bool {
        let named = self.among.as_ref().is_none_or(|among| {
            among.iter().any(|named| match (named.as_deref(), value) {
                (None, None) => true,
                (Some(named), Some(value)) => same(kind, named, value),
                _ => false,
            })
        });
        named && self.in_range(kind, value)
    }

    fn in_range(&self, kind: AttributeType, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return self.from.is_none() && self.to.is_none() };
        let order = |bound: &[u8]| kind.compare_by_value(value, bound);
        self.from.as_deref().is_none_or(|from| order(from) != Ordering::Less)
            && self.to.as_deref().is_none_or(|to| order(to) != Ordering::Greater)
    }

    /// Per code of a domain, whether the selection has its value.
    #[must_use]
    pub fn codes(&self, domain: &Domain) -> Vec<bool> {
        let kind = domain.kind();
        let mut admitted: Vec<bool> = domain.iter().map(|value| self.in_range(kind, value)).collect();
        let Some(among) = &self.among else { return admitted };
        // values stand in their order: each that is named is found by halving
        let mut named = vec![false; admitted.len()];
        for value in among {
            let first = match value {
                None => 0,
                Some(value) => partition(domain, |known| {
                    known.is_none_or(|known| kind.compare_by_value(known, value) == Ordering::Less)
                }),
            };
            for (code, named) in named.iter_mut().enumerate().skip(first) {
                let known = domain.value(code as u32);
                let alike = match (known, value) {
                    (None, None) => true,
                    (Some(known), Some(value)) => same(kind, known, value),
                    _ => false,
                };
                if !alike {
                    break;
                }
                *named = true;
            }
        }
        admitted.iter_mut().zip(named).for_each(|(admitted, named)| *admitted &= named);
        admitted
    }
}

/// Whether two texts are the same value. What is no value of the type is nothing but itself.
fn same(kind: AttributeType, a: &[u8], b: &[u8]) -> bool {
    a == b || (kind.is_number() && is_number(a) && is_number(b) && kind.compare_by_value(a, b).is_eq())
}

fn is_number(value: &[u8]) -> bool {
    AttributeType::Decimal.admits(value)
}

/// The first code whose value does not come before.
fn partition(domain: &Domain, before: impl Fn(Option<&[u8]>) -> bool) -> usize {
    let (mut low, mut high) = (0, domain.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if before(domain.value(middle as u32)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::microdata::Arena;

    fn domain(kind: AttributeType, missing: bool, values: &[&str]) -> Domain {
        let mut arena = Arena::default();
        values.iter().for_each(|value| arena.push(value.as_bytes()));
        let (domain, _) = Domain::sort(kind, missing, &arena);
        Domain::clone(&domain)
    }

    fn selected(domain: &Domain, among: Option<&[Option<&str>]>, from: Option<&str>, to: Option<&str>) -> Vec<String> {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let selection = ValueSelection {
            attribute: Attr(0),
            among: among.map(|among| among.iter().map(|value| value.map(bytes)).collect()),
            from: from.map(bytes),
            to: to.map(bytes),
        };
        let codes = selection.codes(domain);
        let one_by_one: Vec<bool> = domain.iter().map(|value| selection.admits(domain.kind(), value)).collect();
        assert_eq!(codes, one_by_one);
        let text = |value: Option<&[u8]>| value.map_or("-".to_owned(), |v| String::from_utf8(v.to_vec()).unwrap());
        domain.iter().zip(codes).filter(|(_, admitted)| *admitted).map(|(value, _)| text(value)).collect()
    }

    #[test]
    fn values_are_named_or_lie_between() {
        let ages = domain(AttributeType::Integer, true, &["9", "10", "100", "-3"]);
        assert_eq!(selected(&ages, None, Some("9"), Some("10")), ["9", "10"]);
        assert_eq!(selected(&ages, None, Some("9.5"), None), ["10", "100"]);
        assert_eq!(selected(&ages, None, None, Some("0")), ["-3"], "a missing value lies nowhere");
        assert_eq!(selected(&ages, Some(&[None, Some("10.0"), Some("11"), Some("nine")]), None, None), ["-", "10"]);
        assert_eq!(selected(&ages, Some(&[None, Some("10"), Some("100")]), Some("50"), None), ["100"]);
        assert_eq!(selected(&ages, Some(&[]), None, None), [""; 0]);
        assert_eq!(selected(&ages, None, None, None), ["-", "-3", "9", "10", "100"]);
        let prices = domain(AttributeType::Decimal, false, &["2", "2.0", "1.5", "10"]);
        assert_eq!(selected(&prices, Some(&[Some("2.00")]), None, None), ["2", "2.0"]);
        assert_eq!(selected(&prices, None, None, Some("2")), ["1.5", "2", "2.0"]);
        let texts = domain(AttributeType::Text, true, &["", "10", "9"]);
        assert_eq!(selected(&texts, None, Some(""), Some("5")), ["", "10"]);
        assert_eq!(selected(&texts, Some(&[Some("9.0"), Some("")]), None, None), [""]);
        assert_eq!(selected(&texts, Some(&[None]), None, None), ["-"]);
    }

    proptest! {
        #[test]
        fn codes_are_those_of_the_admitted_values(
            values in prop::collection::btree_set("-?(0|[1-9][0-9]?)(\\.[0-9]{1,2})?", 0..12), missing: bool,
            among in prop::option::of(prop::collection::vec(prop::option::of("-?(0|[1-9])(\\.[05])?|x"), 0..6)),
            from in prop::option::of("-?[1-9]"), to in prop::option::of("[1-9][0-9]"), text: bool,
        ) {
            let kind = if text { AttributeType::Text } else { AttributeType::Decimal };
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let among: Option<Vec<Option<&str>>> = among.as_ref().map(|among| among.iter().map(Option::as_deref).collect());
            // compares with one value at a time
            selected(&domain(kind, missing, &values), among.as_deref(), from.as_deref(), to.as_deref());
        }
    }
}

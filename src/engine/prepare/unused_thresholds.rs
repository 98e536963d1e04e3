//! Thresholds of values that do not occur: they protect nothing, and the value that was meant has the threshold of others.

use crate::microdata::{Attr, Domain, Table};
use crate::problem::nearest_names;
use crate::problem::{Fault, Kind};
use crate::publication::Thresholds;
use crate::publish::bucketize::unused;
use crate::spec::{MethodSpec, Specification, values_pointer};

use super::annotations::pointer_of;

/// Whether those who read a fault may see values of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inspection {
    /// They have the table, or a key with `datasets:inspect`; the fault is not stored.
    Allowed,
    /// They may have neither, or the fault is stored.
    Denied,
}

/// The number of unused values of which a fault names the nearest one that occurs.
const NAMED_VALUES: usize = 3;
/// The most unused values that a fault lists by themselves.
const LISTED_VALUES: usize = 20;
/// The longest value, in characters, that is named.
const LONGEST_NAMED: usize = 64;

/// The faults of thresholds of values that do not occur.
pub(super) fn unused_thresholds(specification: &Specification, table: &Table, inspection: Inspection) -> Vec<Fault> {
    let of_rules = specification.thresholds.iter().map(|declared| PointedThresholds {
        pointer: pointer_of(declared, specification),
        attribute: declared.attribute,
        thresholds: declared.thresholds.declared(),
    });
    let of_method = match &specification.method {
        MethodSpec::Bucketize(spec) => {
            let (pointer, thresholds) = ("/method/thresholds", &spec.thresholds);
            let attribute = spec.rule.protects.attributes().iter().next();
            attribute.map(|attribute| PointedThresholds { pointer, attribute, thresholds })
        }
        _ => None,
    };
    of_rules.chain(of_method).filter_map(|declared| fault(declared, specification, table, inspection)).collect()
}

/// Thresholds with their place in the document and the attribute whose values they are for.
#[derive(Clone, Copy)]
struct PointedThresholds<'a> {
    pointer: &'a str,
    attribute: Attr,
    thresholds: &'a Thresholds,
}

fn fault(
    PointedThresholds { pointer, attribute, thresholds }: PointedThresholds<'_>,
    specification: &Specification,
    table: &Table,
    inspection: Inspection,
) -> Option<Fault> {
    let domain = &table.column(attribute).domain;
    let unused = unused(thresholds, domain);
    if unused.is_empty() {
        return None;
    }
    let name = &specification.names[attribute.index()];
    let named = thresholds.of_values().map_or(0, |values| values.len());
    let count = unused.len();
    let more = match inspection {
        Inspection::Allowed => {
            let shown: Vec<String> =
                unused.iter().take(NAMED_VALUES).map(|value| with_nearest(value, domain)).collect();
            format!(": {}", shown.join("; "))
        }
        Inspection::Denied => {
            "; a key with datasets:inspect sees the values, and a plan names the nearest ones".to_owned()
        }
    };
    let detail = format!("{count} of {named} values with a threshold do not occur in {name}{more}");
    let mut fault = Fault::new(pointer, Kind::ThresholdUnused, detail).with("unused", count);
    if inspection == Inspection::Allowed && count <= LISTED_VALUES {
        let meant: Vec<String> = unused.iter().filter_map(|value| nearest(value, domain)).collect();
        fault = fault.with("unused_values", unused.clone()).with("nearest_values", meant);
    }
    Some(values_pointer(fault, name, specification.normalized["dataset"].as_str()))
}

/// A value that does not occur, with the nearest one that does.
fn with_nearest(value: &str, domain: &Domain) -> String {
    let shown: String = value.chars().take(LONGEST_NAMED).collect();
    match nearest(value, domain) {
        Some(nearest) => format!("{shown:?} (nearest: {nearest:?})"),
        None => format!("{shown:?}"),
    }
}

/// The occurring value with the smallest edit distance, regardless of case; the first of equals.
fn nearest(value: &str, domain: &Domain) -> Option<String> {
    let occurring = domain.iter().flatten().filter_map(|occurring| std::str::from_utf8(occurring).ok());
    nearest_names(value, occurring, 1).first().map(|&occurring| occurring.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::{Arena, AttributeType};

    #[test]
    fn the_nearest_value_ignores_case_and_skips_long_ones() {
        let mut arena = Arena::default();
        let long = "x".repeat(LONGEST_NAMED + 1);
        ["HIV", "flu", "hepatitis", long.as_str()].iter().for_each(|value| arena.push(value.as_bytes()));
        let domain = Domain::from_sorted(AttributeType::Text, true, arena);
        assert_eq!(nearest("hiv", &domain).as_deref(), Some("HIV"));
        assert_eq!(nearest("Flue", &domain).as_deref(), Some("flu"));
        assert_eq!(nearest(&long, &domain), None);
    }
}

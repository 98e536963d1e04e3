//! Faults that point at the list of values of an attribute.

use crate::problem::{Fault, Kind};
use crate::spec::grammar::reader::child;

/// The fault of values that are no leaves of the taxonomy of their attribute.
#[must_use]
pub fn values_missing(attribute: &str, missing: u64, detail: String, dataset: Option<&str>) -> Fault {
    let pointer = child(&child("/attributes", attribute), "taxonomy");
    let fault = Fault::new(pointer, Kind::TaxonomyValueMissing, detail).with("missing", missing);
    values_pointer(fault, attribute, dataset)
}

/// The fault with the address of the values of its attribute, for callers who may see them.
#[must_use]
pub fn values_pointer(fault: Fault, attribute: &str, dataset: Option<&str>) -> Fault {
    let fault = fault.with("attribute", attribute);
    match dataset {
        Some(dataset) => fault.with("values_url", values_url(dataset, attribute)),
        None => fault,
    }
}

/// A name as a segment of a path (RFC 3986).
#[must_use]
pub fn path_segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Where the values of an attribute are listed.
fn values_url(dataset: &str, attribute: &str) -> String {
    format!("/v1/datasets/{dataset}/attributes/{}/values", path_segment(attribute))
}

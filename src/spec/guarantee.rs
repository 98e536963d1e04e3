//! Guarantees as they stand in documents.

use serde_json::Value;

use super::reader::{Faults, Members};
use crate::problem::{Fault, Kind};
use crate::publication::Guarantee;

/// Guarantees of the contract that this version does not enforce.
const UNSUPPORTED: &[&str] = &[
    "distinct_l_diversity",
    "entropy_l_diversity",
    "recursive_l_diversity",
    "alpha_k",
    "k_anonymity",
    "t_closeness",
    "rho",
    "delta",
    "thresholds",
];

const DIVERSITY: &str = "an integer of at least 2";

/// Reads a guarantee; `None` after a fault.
pub fn guarantee(value: &Value, pointer: &str, faults: &mut Faults) -> Option<Guarantee> {
    let mut members = Members::open(value, pointer, faults)?;
    match members.take("type").map(Value::as_str) {
        Some(Some("l_diversity")) => {}
        Some(Some(name)) if UNSUPPORTED.contains(&name) => {
            faults.unsupported(members.at("type"), format!("{name} is not enforced by this version; use l_diversity"));
            return None;
        }
        _ => {
            faults.range(members.at("type"), "\"l_diversity\"");
            return None;
        }
    }
    let l = match members.take("l") {
        Some(_) => members.integer("l", 1..=i128::from(u64::MAX), DIVERSITY, faults),
        None => {
            faults.range(members.at("l"), DIVERSITY);
            None
        }
    };
    if l == Some(1) {
        let detail = "every table is 1-diverse: ask for l of at least 2";
        faults.push(Fault::new(members.at("l"), Kind::VacuousGuarantee, detail));
    }
    members.finish(faults);
    l.filter(|l| *l > 1).and_then(|l| u64::try_from(l).ok()).map(|l| Guarantee::LDiversity { l })
}

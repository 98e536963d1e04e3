//! Noise of a decomposition beside dependencies: a bucket lists no value that is impossible for all of its rows.
//!
//! # Citations
//! docs/spec/dependencies.md#verification

use ahash::{AHashMap, AHashSet};

use super::dependencies::links;
use crate::microdata::{AttrSet, Codes};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::DecompositionClaim;
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::read::part::{ParsedColumn, ParsedPart};

/// Checks the listed values of buckets against the linked values of their rows: the original has them together.
///
/// An adversary who knows how these go together rules out all others.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    claim: &DecompositionClaim<'_>,
    parts: &[ParsedPart],
    log: &mut CheckLog,
) {
    let (Some(original), [rows, lists @ ..]) = (input.original, parts) else { return };
    let links = links(input, input.dependencies);
    for list in lists {
        let ([listed], Some(labels)) = (&list.columns[..], &list.labels) else { continue };
        for link in links.iter().filter(|link| link.contains(listed.attribute)) {
            let known = link.intersection(claim.known);
            let of_rows: Vec<&Codes> = known.iter().map(|attr| &original.column(attr).codes).collect();
            let values = &original.column(listed.attribute).codes;
            let tuple =
                |columns: &[&Codes], row: usize| columns.iter().map(|codes| codes.get(row)).collect::<Vec<u32>>();
            let together: AHashSet<(Vec<u32>, u32)> =
                (0..original.rows()).map(|row| (tuple(&of_rows, row), values.get(row))).collect();
            let of_buckets = tuples_of_buckets(rows, known);
            let is_possible = |label: u32, value: u32| {
                let mut tuples = of_buckets.get(&label).into_iter().flatten();
                tuples.any(|tuple| together.contains(&(tuple.clone(), value)))
            };
            let impossible =
                labels.iter().zip(listed.codes.iter()).filter(|(label, value)| !is_possible(**label, *value));
            let impossible = impossible.count();
            if impossible > 0 {
                let (name, linked) = (input.name(listed.attribute), input.list(known));
                let detail =
                    format!("{impossible} listed values of {name} do not occur with {linked} of their buckets");
                log.fail(CheckName::Dependencies, detail);
            }
        }
    }
}

/// The values of some attributes in the rows of each bucket.
fn tuples_of_buckets(rows: &ParsedPart, of: AttrSet) -> AHashMap<u32, AHashSet<Vec<u32>>> {
    let columns: Vec<&ParsedColumn> = rows.columns.iter().filter(|column| of.contains(column.attribute)).collect();
    let mut tuples: AHashMap<u32, AHashSet<Vec<u32>>> = AHashMap::new();
    for (row, label) in rows.labels.as_deref().into_iter().flatten().enumerate() {
        let tuple = columns.iter().map(|column| column.codes.get(row)).collect();
        tuples.entry(*label).or_default().insert(tuple);
    }
    tuples
}

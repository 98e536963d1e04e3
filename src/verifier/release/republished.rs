//! Claims and figures of a night of a republished table, from its parts alone.

use std::collections::BTreeMap;

use ahash::AHashSet;

use crate::publication::{
    BucketFill, Guarantee, MethodDetails, PastNight, Protected, RepublishDetails, RepublishFigures, RowMeaning,
    TableGuard, TableProtection,
};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::read::part::ParsedPart;

/// The details of the night, where the publication is one.
pub(in crate::verifier) fn details<'a>(input: &VerifierInput<'a>) -> Option<&'a RepublishDetails> {
    match &input.publication.method_details {
        MethodDetails::Republish(details) => Some(details),
        _ => None,
    }
}

/// Checks the shape: one table of a known part and a part of signatures, guarded by the diversity of the only rule.
pub(in crate::verifier) fn claims(input: &VerifierInput<'_>, log: &mut CheckLog) {
    let fits = match &input.publication.tables[..] {
        [table] => {
            let meanings: Vec<RowMeaning> = table.parts.iter().map(|part| part.rows).collect();
            let guards = match &table.protection {
                TableProtection::Guarding(guards) => &guards[..],
                TableProtection::Plain | TableProtection::Exclusive => &[],
            };
            let is_of_one = |of: &TableGuard| {
                matches!(of.protects, Protected::Attribute(_))
                    && matches!(of.guarantees[..], [Guarantee::LDiversity { l }] if l >= 2)
                    && of.constant.is_empty()
                    && !of.closes
            };
            meanings == [RowMeaning::Tuples, RowMeaning::TuplesAndVaryingCounterfeits]
                && matches!(guards, [guard] if is_of_one(guard))
        }
        _ => false,
    };
    if !fits {
        log.fail(CheckName::Guards, "a republished table has one known part and one part of whole signatures");
    }
    let Some(details) = details(input) else { return };
    if details.night == 0 {
        log.fail(CheckName::Guards, "nights are numbered from 1");
    }
    let earlier = details.earlier.iter().rev().map(|past| past.night);
    if !earlier.eq((1..details.night).rev().take(details.earlier.len())) || details.earlier.len() > PastNight::KEPT {
        log.fail(CheckName::Guards, "the nights before are not the last ones");
    }
}

/// Compares the claimed figures with those of the parts.
pub(in crate::verifier) fn check(input: &VerifierInput<'_>, parts: &[ParsedPart], log: &mut CheckLog) {
    let Some(claimed) = details(input) else { return };
    let [known, slots] = parts else {
        return log.fail(CheckName::Buckets, "the parts of a republished table cannot be read");
    };
    let (Some(rows), Some(labels), [column]) = (&known.labels, &slots.labels, &slots.columns[..]) else {
        return log.fail(CheckName::Buckets, "the parts of a republished table cannot be read");
    };
    let mut members = rows.to_vec();
    members.sort_unstable();
    let mut members = members.chunk_by(PartialEq::eq).peekable();
    let mut slots: Vec<(u32, u32)> = labels.iter().copied().zip(column.codes.iter()).collect();
    // a part has the rows of a bucket next to each other: a stable sort finds nothing to do
    slots.sort_by_key(|(label, _)| *label);
    let (mut signatures, mut signature) = (AHashSet::<Vec<u32>>::new(), Vec::new());
    let mut fills: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for bucket in slots.chunk_by(|(one, _), (other, _)| one == other) {
        let size = bucket.len() as u64;
        let members = members.next_if(|members| members[0] == bucket[0].0);
        let counterfeits = members.and_then(|members| size.checked_sub(members.len() as u64));
        let Some(counterfeits) = counterfeits else {
            return log.fail(CheckName::Buckets, "a bucket has no members, or more of them than slots");
        };
        *fills.entry((size, counterfeits)).or_default() += 1;
        signature.clear();
        signature.extend(bucket.iter().map(|(_, code)| *code));
        signature.sort_unstable();
        if !signatures.contains(&signature) {
            signatures.insert(signature.clone());
        }
    }
    let found = RepublishFigures {
        rows: rows.len() as u64,
        slots: slots.len() as u64,
        signatures: signatures.len() as u64,
        buckets: fills
            .into_iter()
            .map(|((size, counterfeits), buckets)| BucketFill { size, counterfeits, buckets })
            .collect(),
    };
    if members.next().is_some() || found != claimed.figures {
        log.fail(CheckName::Buckets, "the figures of the night are not those of its parts");
    }
}

//! The union check of a long ledger: `cargo bench --bench ledger`. 20,000 disclosures of 200 distinct sets of 128 attributes under 500
//! active rules, as a nightly job leaves them in half a century.
#![expect(clippy::unwrap_used, reason = "a program that measures")]

use std::collections::HashSet;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use guardian::ledger::{ActiveRule, CandidateRelease, Disclosure, EarlierDisclosures, LedgerUnion, RecordedProtection};
use guardian::microdata::{Attr, AttrSet};
use guardian::privacy::TableSchema;
use guardian::publication::Guarantee;
use uuid::Uuid;

const ATTRIBUTES: usize = 128;
const SETS: usize = 200;
const DISCLOSURES: usize = 20_000;
const RULES: usize = 500;

/// The attributes form islands of eight, within which tables are published; rules go from one island to another.
fn ledger() -> (Vec<String>, EarlierDisclosures) {
    let names: Vec<String> = (0..ATTRIBUTES).map(|at| format!("a{at:03}")).collect();
    let set = |number: usize| -> Vec<String> {
        let (island, which) = (number % 16, number / 16);
        // some of an island's eight, in bits, three at least
        let chosen = (0_u32..256).filter(|set| set.count_ones() > 2).nth(which).unwrap();
        (0..8).filter(|at| chosen >> at & 1 == 1).map(|at| names[island * 8 + at].clone()).collect()
    };
    let distinct: HashSet<Vec<String>> = (0..SETS).map(set).collect();
    assert_eq!(distinct.len(), SETS);
    let disclosure = |number: usize| {
        let disclosure = Disclosure {
            table: format!("t{number}"),
            attributes: set(number % SETS),
            protection: RecordedProtection::Plain,
            partial: false,
            unproven: None,
            dependencies: Vec::new(),
            withdrawn: Vec::new(),
        };
        (Uuid::from_u128(number as u128), disclosure)
    };
    let rule = |number: usize| {
        let rule = ActiveRule {
            pointer: Some(format!("/method/rules/{number}")),
            quasi_identifiers: vec![names[number % 64].clone(), names[(number * 7 + 3) % 64].clone()],
            sensitive: names[64 + (number * 13 + number / 64) % 64].clone(),
            combination: Vec::new(),
            guarantee: Guarantee::LDiversity { l: 2 },
            excludable: Vec::new(),
            taxonomy: None,
            closes: false,
        };
        (Uuid::from_u128(number as u128), rule)
    };
    let earlier = EarlierDisclosures {
        disclosures: (0..DISCLOSURES).map(disclosure).collect(),
        rules: (0..RULES).map(rule).collect(),
        ..EarlierDisclosures::default()
    };
    (names, earlier)
}

fn union(c: &mut Criterion) {
    let (names, earlier) = ledger();
    let new: AttrSet = [0, 5, 7].into_iter().map(|at: usize| Attr::from(at)).collect();
    let tables = [TableSchema { attributes: new, guards: Vec::new() }];
    c.bench_function("union/20000 disclosures, 500 rules", |b| {
        b.iter(|| {
            let union = LedgerUnion::new(black_box(&names), &earlier).unwrap();
            union.check(&CandidateRelease { tables: &tables, exclusive: &[], rules: &[] }).unwrap();
        });
    });
}

criterion_group!(benches, union);
criterion_main!(benches);

use std::collections::{BTreeMap, BTreeSet};

use super::table::{CellText, ExternalPart, ExternalTable};
use crate::microdata::{Attr, AttrSet, Column};
use crate::publication::RowMeaning;
use crate::verifier::definition::feasible_worlds::ObservedDecomposition;

/// The two tables of a decomposition, as input of an inference attack.
#[derive(Clone, Copy)]
pub struct DecompositionView<'a> {
    /// The table of buckets.
    pub buckets: &'a ExternalTable,
    /// The table of joint values.
    pub joint: &'a ExternalTable,
    /// The primary attribute, by which the buckets are made.
    pub primary: Attr,
    /// The other sensitive attributes, each with its declared l.
    pub others: &'a [(Attr, u64)],
    /// The attributes whose inferences are reported.
    pub asked: AttrSet,
    /// The attributes of which buckets may list values that none of their rows has.
    pub noisy: AttrSet,
}

/// Numbers of values: equal numbers in all parts for equal values.
#[derive(Default)]
pub(in crate::verifier) struct ValueInterner {
    of: BTreeMap<(Attr, Option<Vec<u8>>), u32>,
    pub(in crate::verifier) cells: Vec<CellText>,
}

impl ValueInterner {
    fn codes(&mut self, attr: Attr, column: &Column) -> Vec<u32> {
        let kind = column.domain.kind();
        let mut number = |value: Option<&[u8]>| {
            let value = value.map(<[u8]>::to_vec);
            let next = self.cells.len() as u32;
            let number = *self.of.entry((attr, value.clone())).or_insert(next);
            if number == next {
                self.cells.push(CellText { kind, value });
            }
            number
        };
        let of: Vec<u32> = (0..column.domain.len() as u32).map(|code| number(column.domain.value(code))).collect();
        column.codes.iter().map(|code| of[code as usize]).collect()
    }
}

/// The label of each row; `None` where a label is no number of a bucket.
fn labels(part: &ExternalPart) -> Option<Vec<usize>> {
    let column = part.bucket.as_ref()?;
    let label = |code: u32| std::str::from_utf8(column.domain.value(code)?).ok()?.parse::<usize>().ok();
    let of: Vec<Option<usize>> = (0..column.domain.len() as u32).map(label).collect();
    let rows = part.rows;
    column.codes.iter().map(|code| of[code as usize].filter(|label| (1..=rows).contains(label))).collect()
}

/// The tables with numbered values; `None` when they are no decomposition.
pub(in crate::verifier) fn observe_tables(
    given: &DecompositionView<'_>,
    numbers: &mut ValueInterner,
) -> Option<ObservedDecomposition> {
    let find = |table: &'_ ExternalTable, attr: Attr, listed: bool| {
        let holds =
            |part: &&ExternalPart| part.column(attr).is_some() && (part.meaning == RowMeaning::Values) == listed;
        table.parts.iter().position(|part| holds(&part))
    };
    let mut column = |table: &ExternalTable, attr: Attr, listed: bool| {
        let part = &table.parts[find(table, attr, listed)?];
        Some(numbers.codes(attr, part.column(attr)?))
    };
    let primary = column(given.buckets, given.primary, false)?;
    let of_primary = labels(&given.buckets.parts[find(given.buckets, given.primary, false)?])?;
    let buckets = of_primary.iter().copied().max().unwrap_or(0);
    let mut observed = ObservedDecomposition {
        primary: vec![Vec::new(); buckets],
        sets: vec![vec![BTreeSet::new(); given.others.len()]; buckets],
        joint: Vec::new(),
        exact: given.others.iter().map(|(attr, _)| !given.noisy.contains(*attr)).collect(),
    };
    of_primary.iter().zip(&primary).for_each(|(label, value)| observed.primary[label - 1].push(*value));
    for (at, (attr, _)) in given.others.iter().enumerate() {
        let values = column(given.buckets, *attr, true)?;
        let of_values = labels(&given.buckets.parts[find(given.buckets, *attr, true)?])?;
        for (label, value) in of_values.into_iter().zip(values) {
            observed.sets.get_mut(label - 1)?[at].insert(value);
        }
    }
    let known = column(given.joint, given.primary, false)?;
    let others: Vec<Vec<u32>> =
        given.others.iter().map(|(attr, _)| column(given.joint, *attr, false)).collect::<Option<_>>()?;
    let row = |(row, value): (usize, &u32)| (*value, others.iter().map(|of| of[row]).collect());
    observed.joint = known.iter().enumerate().map(row).collect();
    Some(observed)
}

/// The tables with numbered values; `None` when they are no decomposition.
pub(in crate::verifier) fn observe(given: &DecompositionView<'_>) -> Option<ObservedDecomposition> {
    observe_tables(given, &mut ValueInterner::default())
}

use super::table::{ExternalPart, ExternalTable};
use crate::microdata::{Attr, AttrSet, AttributeType};
use crate::publication::RowMeaning;
use crate::verifier::definition::observed_decomposition::{LabelledValues, ObservedDecomposition};
use crate::verifier::read::interner::ValueInterner;

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

impl DecompositionView<'_> {
    /// The type of an attribute in the table of buckets.
    pub(in crate::verifier) fn kind(&self, attr: Attr) -> Option<AttributeType> {
        let part = self.buckets.parts.iter().find_map(|part| part.column(attr))?;
        Some(part.domain.kind())
    }

    /// The tables with numbered values; `None` when they are no decomposition.
    pub(in crate::verifier) fn observe(&self, numbers: &mut ValueInterner) -> Option<ObservedDecomposition> {
        let primary = labelled(holder(self.buckets, self.primary, false)?, self.primary, numbers)?;
        let lists = self.others.iter().map(|(attr, _)| labelled(holder(self.buckets, *attr, true)?, *attr, numbers));
        let lists: Vec<LabelledValues> = lists.collect::<Option<_>>()?;
        let attributes = [self.primary].into_iter().chain(self.others.iter().map(|(attr, _)| *attr));
        let joint = attributes.map(|attr| Some(numbers.codes(attr, holder(self.joint, attr, false)?.column(attr)?)));
        let joint: Vec<Vec<u32>> = joint.collect::<Option<_>>()?;
        let exact = self.others.iter().map(|(attr, _)| !self.noisy.contains(*attr)).collect();
        ObservedDecomposition::new(&primary, &lists, &joint, exact)
    }
}

/// The first part of a table that holds an attribute, as a list of values or in rows.
fn holder(table: &ExternalTable, attr: Attr, listed: bool) -> Option<&ExternalPart> {
    let holds = |part: &&ExternalPart| part.column(attr).is_some() && (part.meaning == RowMeaning::Values) == listed;
    table.parts.iter().find(holds)
}

/// The values of an attribute by bucket; `None` where a label is no number of a bucket.
fn labelled(part: &ExternalPart, attr: Attr, numbers: &mut ValueInterner) -> Option<LabelledValues> {
    let bucket = part.bucket.as_ref()?;
    let label = |text: Option<&[u8]>| std::str::from_utf8(text?).ok()?.parse::<u32>().ok();
    let of: Vec<Option<u32>> = bucket.domain.iter().map(label).collect();
    let is_bucket = |label: &u32| (1..=part.rows).contains(&(*label as usize));
    let labels = bucket.codes.iter().map(|code| of[code as usize].filter(is_bucket));
    Some(LabelledValues { labels: labels.collect::<Option<_>>()?, values: numbers.codes(attr, part.column(attr)?) })
}

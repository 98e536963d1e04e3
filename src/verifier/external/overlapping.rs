//! Disclosure by the buckets of external tables whose parts share attributes, from the parts alone.
//!
//! All joins of the rows of the parts that agree on shared attributes are equally likely. Where the parts form a join
//! tree, the rows of each part are matched independently of the others. So the expected number of rows with given
//! values is a product of counts, divided by the counts of the shared values; unknown attributes are summed out. An
//! adversary who knows all attributes of some parts may also take all combinations of their rows as equally likely,
//! as in slicing. Both weightings are examined for every choice of the parts with a protected attribute, since an
//! adversary may ignore some. Parts that add no information are omitted.
//!
//! Another table or a dependency can link rows that are independent here. Then only a single part bounds posteriors:
//! its rows with equal unprotected attributes are exchangeable, whatever the other tables hold.
//!
//! # Citations
//! docs/spec/overlapping-slicing.md#two-weightings

use std::collections::BTreeMap;

use super::submission::{ClassMeasures, Submission, ViolatingClass, ViolatingClasses};
use super::table::{CellText, ExternalPart, ExternalTable};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, AttributeType, Column};
use crate::publication::{Guarantee, Ratio, RowMeaning};
use crate::verifier::definition::join_tree::tree;
use crate::verifier::read::columns_by_bucket::{ColumnsByBucket, InternedColumns, KnownValues, weights};
use crate::verifier::read::interner::ValueInterner;

/// Maximal number of parts with protected attributes; the attack examines all choices of them.
const MAX_PROTECTED_PARTS: usize = 4;

/// Maximal number of reported classes.
const MAX_REPORTED_VIOLATIONS: usize = 10;

/// Relative difference below which shares are compared exactly.
const COMPARISON_EPSILON: f64 = 1e-9;

/// Result for one table and protected side.
pub(in crate::verifier) enum BucketDisclosure {
    /// One part bounds the disclosure as if no other part shared an attribute.
    InPart,
    /// Measures of the joined classes, and the classes that violate the guarantee.
    Joined(ClassMeasures, ViolatingClasses),
    /// The reason why the disclosure is unknown.
    Unknown(String),
}

impl ExternalTable {
    /// Whether parts share attributes.
    pub(crate) fn overlaps(&self) -> bool {
        !self.repeated().is_empty()
    }

    /// The attributes that several parts hold.
    pub(in crate::verifier) fn repeated(&self) -> AttrSet {
        let (mut once, mut more) = (AttrSet::EMPTY, AttrSet::EMPTY);
        for part in &self.parts {
            more = more.union(once.intersection(part.attributes()));
            once = once.union(part.attributes());
        }
        more
    }
}

/// Checks that the parts of a table agree on shared attributes, by bucket, and that these are exact.
pub(in crate::verifier) fn parts_agree(table: &ExternalTable) -> Result<(), String> {
    let (name, repeated) = (&table.name, table.repeated());
    let sharing = || table.parts.iter().filter(|part| part.attributes().meets(repeated));
    if sharing().any(|part| part.meaning != RowMeaning::Tuples || part.opaque().meets(repeated)) {
        return Err(format!("table {name}: attributes that its parts share have cells that cannot be compared"));
    }
    let attr = repeated.iter().next().unwrap_or(Attr(0));
    match read(table, AttrSet::one(attr), [&mut ValueInterner::default(), &mut ValueInterner::default()]) {
        Some(covered) if (0..covered.labels.len()).all(|bucket| covered.agree(bucket)) => Ok(()),
        Some(_) => Err(format!("table {name}: its parts do not agree on the attributes that they share")),
        None => Err(format!("table {name}: its parts are not tied by bucket")),
    }
}

/// The parts as columns with numbered values and labels.
///
/// The protected values count as one value of the first attribute.
pub(in crate::verifier) fn read(
    table: &ExternalTable,
    target: AttrSet,
    [numbers, labels]: [&mut ValueInterner; 2],
) -> Option<ColumnsByBucket> {
    let first = target.iter().next()?;
    let mut columns: Vec<(InternedColumns, Vec<u32>)> = Vec::new();
    for part in &table.parts {
        let bucket = part.bucket.as_ref()?;
        let mut numbered = InternedColumns::new();
        let mut protected: Vec<Vec<u32>> = Vec::new();
        for (attr, column) in &part.columns {
            let of_rows = numbers.codes(*attr, column);
            match target.contains(*attr) {
                true => protected.push(of_rows),
                false => numbered.push((*attr, of_rows)),
            }
        }
        if let Some(value) = merged_label(protected) {
            numbered.push((first, value));
        }
        columns.push((numbered, labels.codes(first, bucket)));
    }
    Some(ColumnsByBucket::from_columns(&columns, first))
}

/// Merges several values of each row into one number; keeps those of a single attribute.
fn merged_label(mut values: Vec<Vec<u32>>) -> Option<Vec<u32>> {
    if values.len() < 2 {
        return values.pop();
    }
    let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    let one = |row: usize| {
        let next = known.len() as u32;
        *known.entry(values.iter().map(|of_rows| of_rows[row]).collect()).or_insert(next)
    };
    Some((0..values[0].len()).map(one).collect())
}

/// Parts that are joined.
struct JoinedParts {
    /// The parts in the order of the join tree, with the attributes shared with earlier parts.
    order: Vec<(usize, AttrSet)>,
    /// The known attributes of the parts.
    known: AttrSet,
    /// Whether all attributes but the protected ones are known.
    is_fully_known: bool,
}

/// Question for the disclosure of one table.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct DisclosureQuery {
    /// The index of the table.
    pub(in crate::verifier) table: usize,
    /// The known attributes.
    pub(in crate::verifier) known: AttrSet,
    /// The protected attributes; several ones stand in one part.
    pub(in crate::verifier) target: AttrSet,
    pub(in crate::verifier) guarantee: Guarantee,
}

/// The disclosure by the buckets of a table whose parts agree on shared attributes.
pub(in crate::verifier) fn bucket_disclosure(
    submission: &Submission<'_>,
    query: &DisclosureQuery,
    control: &Control,
) -> Result<BucketDisclosure, Cancelled> {
    let given = &submission.tables[query.table];
    let unknown = |why: &str| Ok(BucketDisclosure::Unknown(format!("table {}: {why}", given.name)));
    let choices = match joined_parts(submission, query) {
        Ok(Some(choices)) => choices,
        Ok(None) => return Ok(BucketDisclosure::InPart),
        Err(why) => return unknown(&why),
    };
    let (mut numbers, mut labels) = (ValueInterner::default(), ValueInterner::default());
    let Some(columns) = read(given, query.target, [&mut numbers, &mut labels]) else {
        return unknown("its parts are not tied by bucket");
    };
    let (mut worst, mut broken) = (WorstClass::default(), Vec::new());
    let bound = ClassBound::new(query.guarantee);
    for (bucket, &label) in columns.labels.iter().enumerate() {
        for choice in &choices {
            let Some((attrs, classes)) = columns.known(bucket, &choice.order, choice.known) else {
                return unknown("a bucket has too many combinations of rows to be looked at");
            };
            let weightings = if choice.order.len() > 1 && choice.is_fully_known { &[true, false][..] } else { &[true] };
            let found = worst.measure(&columns, &classes, weightings, bound, control)?;
            broken.extend(found.into_iter().map(|(share, class)| WeighedBreach {
                share,
                label,
                attrs: attrs.clone(),
                class,
            }));
        }
    }
    if bound.is_none() {
        let word = query.guarantee.as_str();
        return unknown(&format!(
            "of parts that are put together the shares of values are known, from which {word} cannot be read"
        ));
    }
    // the largest shares first
    broken.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.place().cmp(&b.place())));
    broken.dedup_by(|a, b| a.place() == b.place());
    let total = broken.len() as u64;
    let first = reported(given, query.table, [&numbers, &labels], broken);
    Ok(BucketDisclosure::Joined(worst.measured, ViolatingClasses { total, first }))
}

/// A class that violates a guarantee, with the numbers of its label and values.
struct WeighedBreach {
    share: f64,
    label: u32,
    attrs: Vec<Attr>,
    class: Vec<u32>,
}

impl WeighedBreach {
    const fn place(&self) -> (u32, &Vec<Attr>, &Vec<u32>) {
        (self.label, &self.attrs, &self.class)
    }
}

/// The joins that an adversary can examine, for every choice of parts with protected attributes.
///
/// `None` when a single part decides.
///
/// # Errors
/// The reason why a join is unknown.
fn joined_parts(submission: &Submission<'_>, query: &DisclosureQuery) -> Result<Option<Vec<JoinedParts>>, String> {
    let given = &submission.tables[query.table];
    let target = query.target;
    let attributes: Vec<AttrSet> = given.parts.iter().map(ExternalPart::attributes).collect();
    let with: Vec<usize> = (0..attributes.len()).filter(|&part| attributes[part].meets(target)).collect();
    let known = query.known.minus(target);
    if with.len() > MAX_PROTECTED_PARTS {
        return Err(format!("{} parts have what is protected, and {MAX_PROTECTED_PARTS} may", with.len()));
    }
    let linked = is_linked(submission, query.table);
    let sets = |parts: &mut dyn Iterator<Item = usize>| parts.map(|part| attributes[part]).collect::<Vec<AttrSet>>();
    let mut choices: Vec<JoinedParts> = Vec::new();
    for mask in 1_u32..1 << with.len() {
        let chosen: Vec<usize> =
            with.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, part)| *part).collect();
        let used = relevant_parts(&attributes, &chosen, known, target);
        if !chosen.iter().all(|part| used.contains(part)) {
            // a smaller choice reveals as much
            continue;
        }
        let others = (0..attributes.len()).filter(|part| !with.contains(part) || chosen.contains(part));
        let independent = !linked && tree(&sets(&mut others.into_iter())).is_some();
        let order = tree(&sets(&mut used.iter().copied())).filter(|_| independent);
        choices.push(match (order, &with[..]) {
            (_, [_]) if used.len() == 1 => return Ok(None),
            (Some(order), _) => {
                let all = used.iter().fold(AttrSet::EMPTY, |all, &part| all.union(attributes[part])).minus(target);
                let order = order.into_iter().map(|(at, shared)| (used[at], shared)).collect();
                JoinedParts { order, known: known.intersection(all), is_fully_known: all.is_subset(known) }
            }
            (None, [alone]) => {
                let known = attributes[*alone].minus(target);
                JoinedParts { order: vec![(*alone, AttrSet::EMPTY)], known, is_fully_known: true }
            }
            (None, _) if linked => {
                let why =
                    "what its parts say together is not known, as another table, or a dependency, ties their rows";
                return Err(why.to_owned());
            }
            (None, _) => {
                return Err("what its parts say together is not known, as they share attributes in a circle".to_owned());
            }
        });
    }
    Ok(Some(choices))
}

/// Whether other tables or dependencies link rows of the parts, which are then not independent.
///
/// Other tables do so by shared attributes, dependencies when no single part holds their attributes.
fn is_linked(submission: &Submission<'_>, table: usize) -> bool {
    let given = &submission.tables[table];
    let (all, others) = (given.attributes(), submission.tables.iter().enumerate().filter(|(at, _)| *at != table));
    let determined = submission.dependencies.iter().fold(AttrSet::EMPTY, |all, (from, to)| all.union(*from).union(*to));
    let determined = determined.intersection(all);
    let across_parts = !given.parts.iter().any(|part| determined.is_subset(part.attributes()));
    others.map(|(_, other)| other.attributes()).any(|other| other.meets(all)) || across_parts
}

/// The parts that reveal something of the protected attributes.
///
/// These are the `chosen` parts, and those linked to them by unknown attributes.
fn relevant_parts(attributes: &[AttrSet], chosen: &[usize], known: AttrSet, target: AttrSet) -> Vec<usize> {
    let mut used = chosen.to_vec();
    let open = |used: &[usize]| {
        used.iter().fold(AttrSet::EMPTY, |all, &part| all.union(attributes[part])).minus(known).minus(target)
    };
    let next = |used: &[usize]| {
        (0..attributes.len()).find(|part| {
            !used.contains(part) && !attributes[*part].meets(target) && attributes[*part].meets(open(used))
        })
    };
    while let Some(part) = next(&used) {
        used.push(part);
    }
    without_idle_parts(attributes, used, known.union(target))
}

/// The relevant parts for inferences among the attributes `asked`, with the part `root`.
pub(in crate::verifier) fn revealing_parts(attributes: &[AttrSet], root: usize, asked: AttrSet) -> Vec<usize> {
    // of two equally relevant parts the first is kept
    let others = (0..attributes.len()).filter(|part| *part != root);
    without_idle_parts(attributes, std::iter::once(root).chain(others).collect(), asked)
}

/// Removes parts that share all their relevant attributes with one other part, the last one first.
fn without_idle_parts(attributes: &[AttrSet], mut used: Vec<usize>, asked: AttrSet) -> Vec<usize> {
    let idle = |used: &[usize], part: usize| {
        let others = || used.iter().filter(move |other| **other != part).map(|&other| attributes[other]);
        let all = others().fold(AttrSet::EMPTY, AttrSet::union);
        let shared = attributes[part].intersection(all);
        attributes[part].intersection(asked).is_subset(all) && others().any(|other| shared.is_subset(other))
    };
    while let Some(at) = (0..used.len()).rev().find(|&at| used.len() > 1 && idle(&used, used[at])) {
        used.remove(at);
    }
    used
}

/// Bound that a class must satisfy.
#[derive(Clone, Copy)]
enum ClassBound {
    /// No value has a share above 1/l.
    Share(Ratio),
    /// The class has at least this number of values.
    Values(u64),
}

impl ClassBound {
    /// The bound of a guarantee that shares and numbers of values decide.
    fn new(guarantee: Guarantee) -> Option<Self> {
        match guarantee {
            Guarantee::LDiversity { l } => Ratio::new(l, 1).ok().map(Self::Share),
            Guarantee::AlphaK { alpha, k: 0 | 1 } => {
                Ratio::new(alpha.denominator(), alpha.numerator()).ok().map(Self::Share)
            }
            Guarantee::DistinctLDiversity { l } => Some(Self::Values(l)),
            _ => None,
        }
    }
}

/// Measures of the worst class.
#[derive(Default)]
struct WorstClass {
    measured: ClassMeasures,
    about: f64,
}

impl WorstClass {
    /// Measures the classes of a bucket, and returns violating classes with their largest share.
    ///
    /// A weighting counts expected rows (`true`) or combinations (`false`).
    fn measure(
        &mut self,
        columns: &ColumnsByBucket,
        classes: &KnownValues,
        weightings: &[bool],
        bound: Option<ClassBound>,
        control: &Control,
    ) -> Result<Vec<(f64, Vec<u32>)>, Cancelled> {
        let mut broken = Vec::new();
        for (looked, (class, weighed)) in classes.iter().enumerate() {
            if looked % 256 == 0 {
                control.check()?;
            }
            let mut values = 0;
            let (mut worst, mut satisfied): (f64, bool) = (0.0, true);
            for &divided in weightings {
                let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
                for (&(value, over), &times) in weighed {
                    *sums.entry(value).or_default() += times as f64 / if divided { over as f64 } else { 1.0 };
                }
                values = sums.len() as u64;
                let all: f64 = sums.values().sum();
                let share = sums.values().fold(0.0_f64, |most, sum| most.max(sum / all));
                if share >= self.about * (1.0 - COMPARISON_EPSILON) {
                    let found = columns.largest(&weights(weighed, divided));
                    self.measured.worst = Some(self.measured.worst.map_or(found, |worst| worst.worse(found)));
                    self.about = self.about.max(share);
                }
                worst = worst.max(share);
                satisfied &= match bound {
                    // clear of the bound, or exact
                    Some(ClassBound::Share(l)) if l.to_f64() * share < 1.0 - COMPARISON_EPSILON => true,
                    Some(ClassBound::Share(l)) => columns.keeps(l, &weights(weighed, divided)),
                    Some(ClassBound::Values(l)) => values >= l,
                    None => true,
                };
            }
            let fewest = self.measured.distinct_l;
            self.measured.distinct_l = if self.measured.classes == 0 { values } else { fewest.min(values) };
            self.measured.classes += 1;
            if !satisfied {
                broken.push((worst, class.clone()));
            }
        }
        Ok(broken)
    }
}

/// The first violating classes, with their values as in the parts.
fn reported(
    given: &ExternalTable,
    table: usize,
    [numbers, labels]: [&ValueInterner; 2],
    broken: Vec<WeighedBreach>,
) -> Vec<ViolatingClass> {
    let (values, labels) = (numbers.values(), labels.values());
    let cell = |column: Option<&Column>, value: Option<&Option<&[u8]>>| CellText {
        kind: column.map_or(AttributeType::Text, |column| column.domain.kind()),
        value: value.copied().flatten().map(<[u8]>::to_vec),
    };
    let bucket = || given.parts.iter().find_map(|part| part.bucket.as_ref());
    let reported = broken.into_iter().take(MAX_REPORTED_VIOLATIONS).map(|broken| {
        let mut cells: Vec<(Attr, CellText)> = broken
            .attrs
            .into_iter()
            .zip(broken.class)
            .map(|(attr, number)| {
                let column = given.parts.iter().find_map(|part| part.column(attr));
                (attr, cell(column, values.get(number as usize)))
            })
            .collect();
        cells.sort_by_key(|(attr, _)| *attr);
        ViolatingClass { table, bucket: Some(cell(bucket(), labels.get(broken.label as usize))), class: cells }
    });
    reported.collect()
}

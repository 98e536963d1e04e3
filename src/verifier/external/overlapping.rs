//! Tables of anybody whose parts share attributes: what a bucket tells whoever knows some attributes, from the parts alone.
//!
//! All ways to put the rows of the parts side by side that agree on what parts share are equally likely. Where the parts form a tree
//! (`cover::tree`), the rows of each are matched with those that agree independently of the others, so that the persons who are expected to
//! have some values are a product of counts, divided by those of what is shared; what is not known is summed over. Who knows all
//! attributes of some parts may also take all combinations of their rows for equally likely, as slicing does (section 8). Both are looked
//! at for every choice of the parts with what is protected, as whoever looks may leave some aside. Parts that add nothing for who knows no
//! more are left out.
//!
//! Where another table, or a dependency, ties rows that are independent here, no more is taken for certain than what one part shows: its
//! rows that agree in everything beside what is protected can be exchanged, whatever else stands in the tables.

use std::collections::BTreeMap;

use super::submission::{ClassMeasures, Submission, ViolatingClass, ViolatingClasses, worse};
use super::table::{CellText, ExternalPart, ExternalTable};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, AttributeType, Column};
use crate::publication::{Guarantee, Ratio, RowMeaning};
use crate::verifier::definition::join_tree::tree;
use crate::verifier::read::overlapping_columns::{
    InternedColumns, KnownValues, LabelInterner, OverlappingColumns, weights,
};

/// So many parts may have what is protected: all choices of them are looked at.
const MAX_PROTECTED_PARTS: usize = 4;

/// So many classes that break a guarantee are shown.
const MAX_REPORTED_VIOLATIONS: usize = 10;

/// Shares that are so near to each other, relatively, are compared exactly.
const COMPARISON_EPSILON: f64 = 1e-9;

/// What was found of a table.
pub(in crate::verifier) enum BucketDisclosure {
    /// One part tells of what is protected as if no other shared an attribute.
    InPart,
    /// What its classes show, and those that break the guarantee.
    Together(ClassMeasures, ViolatingClasses),
    /// Why it cannot be judged.
    Unknown(String),
}

impl ExternalTable {
    /// Whether parts share attributes.
    pub(crate) fn overlaps(&self) -> bool {
        !self.repeated().is_empty()
    }

    /// The attributes that stand in several parts.
    fn repeated(&self) -> AttrSet {
        let (mut once, mut more) = (AttrSet::EMPTY, AttrSet::EMPTY);
        for part in &self.parts {
            more = more.union(once.intersection(part.attributes()));
            once = once.union(part.attributes());
        }
        more
    }
}

/// Whether the parts of a table have the same rows of what they share, bucket by bucket; what they share is exact. Else why not.
pub(in crate::verifier) fn parts_agree(table: &ExternalTable) -> Result<(), String> {
    let (name, repeated) = (&table.name, table.repeated());
    let sharing = || table.parts.iter().filter(|part| part.attributes().meets(repeated));
    if sharing().any(|part| part.meaning != RowMeaning::Tuples || part.opaque().meets(repeated)) {
        return Err(format!("table {name}: attributes that its parts share have cells that cannot be compared"));
    }
    let attr = repeated.iter().next().unwrap_or(Attr(0));
    match read(table, AttrSet::one(attr), [&mut LabelInterner::default(), &mut LabelInterner::default()]) {
        Some(covered) if covered.buckets.values().all(|bucket| covered.agree(bucket)) => Ok(()),
        Some(_) => Err(format!("table {name}: its parts do not agree on the attributes that they share")),
        None => Err(format!("table {name}: its parts are not tied by bucket")),
    }
}

/// The parts as columns; what is protected is one value, that of the first of its attributes. Values and labels are numbered.
pub(in crate::verifier) fn read(
    table: &ExternalTable,
    target: AttrSet,
    [numbers, labels]: [&mut LabelInterner; 2],
) -> Option<OverlappingColumns> {
    let first = target.iter().next()?;
    let mut columns: Vec<(InternedColumns, Vec<u32>)> = Vec::new();
    for part in &table.parts {
        let bucket = part.bucket.as_ref()?;
        let of_code: Vec<u32> = bucket.domain.iter().map(|label| labels.code(first, label)).collect();
        let mut numbered = InternedColumns::new();
        let mut protected: Vec<Vec<u32>> = Vec::new();
        for (attr, column) in &part.columns {
            let known: Vec<u32> = column.domain.iter().map(|value| numbers.code(*attr, value)).collect();
            let of_rows = column.codes.iter().map(|code| known[code as usize]).collect();
            match target.contains(*attr) {
                true => protected.push(of_rows),
                false => numbered.push((*attr, of_rows)),
            }
        }
        if let Some(value) = merged_label(protected) {
            numbered.push((first, value));
        }
        columns.push((numbered, bucket.codes.iter().map(|code| of_code[code as usize]).collect()));
    }
    Some(OverlappingColumns::of_columns(&columns, first))
}

/// Several values of each row as one; those of a single attribute as they are.
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

/// Parts that are put together.
struct JoinedParts {
    /// Them, each with what it shares with those before.
    order: Vec<(usize, AttrSet)>,
    /// What is known of them.
    known: AttrSet,
    /// Whether all of their attributes are.
    fully: bool,
}

/// What a table tells of `target`, of which several attributes stand in one part, by bucket, whoever knows `known`. The parts agree.
pub(in crate::verifier) fn bucket_disclosure(
    submission: &Submission<'_>,
    table: usize,
    (known, target): (AttrSet, AttrSet),
    guarantee: Guarantee,
    control: &Control,
) -> Result<BucketDisclosure, Cancelled> {
    let given = &submission.tables[table];
    let name = &given.name;
    let unknown = |why: &str| Ok(BucketDisclosure::Unknown(format!("table {name}: {why}")));
    let attributes: Vec<AttrSet> = given.parts.iter().map(ExternalPart::attributes).collect();
    let with: Vec<usize> = (0..attributes.len()).filter(|&part| attributes[part].meets(target)).collect();
    let known = known.minus(target);
    if with.len() > MAX_PROTECTED_PARTS {
        return unknown(&format!("{} parts have what is protected, and {MAX_PROTECTED_PARTS} may", with.len()));
    }
    let tied = shares_buckets(submission, table);
    let mut choices: Vec<JoinedParts> = Vec::new();
    for mask in 1_u32..1 << with.len() {
        let chosen: Vec<usize> =
            with.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, part)| *part).collect();
        let used = needed(&attributes, &chosen, known, target);
        if !chosen.iter().all(|part| used.contains(part)) {
            // it tells no more than fewer of them
            continue;
        }
        let sets =
            |parts: &mut dyn Iterator<Item = usize>| parts.map(|part| attributes[part]).collect::<Vec<AttrSet>>();
        let others = (0..attributes.len()).filter(|part| !with.contains(part) || chosen.contains(part));
        let independent = !tied && tree(&sets(&mut others.into_iter())).is_some();
        let order = tree(&sets(&mut used.iter().copied())).filter(|_| independent);
        let choice = match (order, &with[..]) {
            (_, [_]) if used.len() == 1 => return Ok(BucketDisclosure::InPart),
            (Some(order), _) => {
                let all = used.iter().fold(AttrSet::EMPTY, |all, &part| all.union(attributes[part])).minus(target);
                let order = order.into_iter().map(|(at, shared)| (used[at], shared)).collect();
                JoinedParts { order, known: known.intersection(all), fully: all.is_subset(known) }
            }
            (None, [alone]) => {
                let known = attributes[*alone].minus(target);
                JoinedParts { order: vec![(*alone, AttrSet::EMPTY)], known, fully: true }
            }
            (None, _) if tied => {
                return unknown(
                    "what its parts say together is not known, as another table, or a dependency, ties their rows",
                );
            }
            (None, _) => {
                return unknown("what its parts say together is not known, as they share attributes in a circle");
            }
        };
        choices.push(choice);
    }
    let (mut numbers, mut labels) = (LabelInterner::default(), LabelInterner::default());
    let Some(covered) = read(given, target, [&mut numbers, &mut labels]) else {
        return unknown("its parts are not tied by bucket");
    };
    let (mut seen, mut broken) = (WorstClass::default(), Vec::new());
    let bound = match guarantee {
        Guarantee::LDiversity { l } => Ratio::new(l, 1).ok().map(ClassBound::Share),
        Guarantee::AlphaK { alpha, k: 0 | 1 } => {
            Ratio::new(alpha.denominator(), alpha.numerator()).ok().map(ClassBound::Share)
        }
        Guarantee::DistinctLDiversity { l } => Some(ClassBound::Values(l)),
        _ => None,
    };
    for (&label, bucket) in &covered.buckets {
        for choice in &choices {
            let Some((attrs, classes)) = covered.known(bucket, &choice.order, choice.known) else {
                return unknown("a bucket has too many combinations of rows to be looked at");
            };
            let ways = if choice.order.len() > 1 && choice.fully { &[true, false][..] } else { &[true] };
            let found = seen.see(&covered, (&classes, ways), bound, control)?;
            broken.extend(found.into_iter().map(|(share, class)| (share, label, attrs.clone(), class)));
        }
    }
    if bound.is_none() {
        let word = guarantee.as_str();
        return unknown(&format!(
            "of parts that are put together the shares of values are known, from which {word} cannot be read"
        ));
    }
    // the largest shares first
    broken.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1, &a.2, &a.3).cmp(&(b.1, &b.2, &b.3))));
    broken.dedup_by(|a, b| (a.1, &a.2, &a.3) == (b.1, &b.2, &b.3));
    let total = broken.len() as u64;
    let shown = shown(given, table, [&numbers, &labels], broken);
    Ok(BucketDisclosure::Together(seen.measured, ViolatingClasses { total, first: shown }))
}

/// Whether other tables share attributes with a table, or known dependencies reach from one of its parts to another: rows that are
/// independent in it are then tied.
fn shares_buckets(submission: &Submission<'_>, table: usize) -> bool {
    let given = &submission.tables[table];
    let (all, others) = (given.attributes(), submission.tables.iter().enumerate().filter(|(at, _)| *at != table));
    let determined = submission.dependencies.iter().fold(AttrSet::EMPTY, |all, (from, to)| all.union(*from).union(*to));
    let determined = determined.intersection(all);
    let apart = !given.parts.iter().any(|part| determined.is_subset(part.attributes()));
    others.map(|(_, other)| other.attributes()).any(|other| other.meets(all)) || apart
}

/// The parts that tell something of what is protected, of those `chosen` that have it and all others: those which what is not known ties
/// to these, without ends that say no more than what they hang on.
fn needed(attributes: &[AttrSet], chosen: &[usize], known: AttrSet, target: AttrSet) -> Vec<usize> {
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
    without_ends(attributes, used, known.union(target))
}

/// The parts, with the `root` among them, that tell who knows `asked` something of what is among it.
pub(in crate::verifier) fn revealing_parts(attributes: &[AttrSet], root: usize, asked: AttrSet) -> Vec<usize> {
    // what goes first is left where two tell the same
    let others = (0..attributes.len()).filter(|part| *part != root);
    without_ends(attributes, std::iter::once(root).chain(others).collect(), asked)
}

/// Parts without those that hang on another one and have nothing of what is asked for that the others have not; the last goes first.
fn without_ends(attributes: &[AttrSet], mut used: Vec<usize>, asked: AttrSet) -> Vec<usize> {
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

/// What a class must keep.
#[derive(Clone, Copy)]
enum ClassBound {
    /// No value has more than 1/l.
    Share(Ratio),
    /// So many values are possible.
    Values(u64),
}

/// What classes show at worst.
#[derive(Default)]
struct WorstClass {
    measured: ClassMeasures,
    about: f64,
}

impl WorstClass {
    /// Looks at the classes of a bucket, weighed in some ways: as expected rows, or as combinations. Those that break the bound, each with
    /// the largest share.
    fn see(
        &mut self,
        covered: &OverlappingColumns,
        (classes, ways): (&KnownValues, &[bool]),
        bound: Option<ClassBound>,
        control: &Control,
    ) -> Result<Vec<(f64, Vec<u32>)>, Cancelled> {
        let mut broken = Vec::new();
        for (looked, (class, weighed)) in classes.iter().enumerate() {
            if looked % 256 == 0 {
                control.check()?;
            }
            let mut values = 0;
            let (mut worst, mut kept): (f64, bool) = (0.0, true);
            for &divided in ways {
                let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
                for (&(value, over), &times) in weighed {
                    *sums.entry(value).or_default() += times as f64 / if divided { over as f64 } else { 1.0 };
                }
                values = sums.len() as u64;
                let all: f64 = sums.values().sum();
                let share = sums.values().fold(0.0_f64, |most, sum| most.max(sum / all));
                if share >= self.about * (1.0 - COMPARISON_EPSILON) {
                    let found = covered.largest(&weights(weighed, divided));
                    self.measured.worst = Some(self.measured.worst.map_or(found, |worst| worse(worst, found)));
                    self.about = self.about.max(share);
                }
                worst = worst.max(share);
                kept &= match bound {
                    // clear by far, or exactly
                    Some(ClassBound::Share(l)) if l.to_f64() * share < 1.0 - COMPARISON_EPSILON => true,
                    Some(ClassBound::Share(l)) => covered.keeps(l, &weights(weighed, divided)),
                    Some(ClassBound::Values(l)) => values >= l,
                    None => true,
                };
            }
            let fewest = self.measured.distinct_l;
            self.measured.distinct_l = if self.measured.classes == 0 { values } else { fewest.min(values) };
            self.measured.classes += 1;
            if !kept {
                broken.push((worst, class.clone()));
            }
        }
        Ok(broken)
    }
}

/// Some of the classes that break a guarantee, with their values as they stand in the parts.
fn shown(
    given: &ExternalTable,
    table: usize,
    [numbers, labels]: [&LabelInterner; 2],
    broken: Vec<(f64, u32, Vec<Attr>, Vec<u32>)>,
) -> Vec<ViolatingClass> {
    let (values, labels) = (numbers.values(), labels.values());
    let cell = |column: Option<&Column>, value: Option<&Option<&[u8]>>| CellText {
        kind: column.map_or(AttributeType::Text, |column| column.domain.kind()),
        value: value.copied().flatten().map(<[u8]>::to_vec),
    };
    let bucket = || given.parts.iter().find_map(|part| part.bucket.as_ref());
    let shown = broken.into_iter().take(MAX_REPORTED_VIOLATIONS).map(|(_, label, attrs, class)| {
        let mut cells: Vec<(Attr, CellText)> = attrs
            .into_iter()
            .zip(class)
            .map(|(attr, number)| {
                let column = given.parts.iter().find_map(|part| part.column(attr));
                (attr, cell(column, values.get(number as usize)))
            })
            .collect();
        cells.sort_by_key(|(attr, _)| *attr);
        ViolatingClass { table, bucket: Some(cell(bucket(), labels.get(label as usize))), class: cells }
    });
    shown.collect()
}

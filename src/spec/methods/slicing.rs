//! The method `slicing`: the columns of attributes, the guarantee, and bounds of the partition of rows [Li et al. 2012].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES, branches};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Protected, Ratio, SlicedDiversity, SubmittedRule};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::document::{
    ColumnName, Document, Int, Member, MemberContext, Names, choice, document, reference,
};
use crate::spec::grammar::guarantee::guarantee;
use crate::spec::grammar::reader::{FaultList, ObjectReader, child, integer};

/// The method `slicing` over attributes; `docs/spec/slicing.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlicingSpec {
    /// All other attributes and the sensitive one, at pointer `/method`.
    pub rule: SubmittedRule,
    /// Which attributes stand together.
    pub columns: SlicedColumns,
    /// No value has a posterior above 1/l, where the guarantee bounds single values.
    pub l: Option<Ratio>,
    /// Where the guarantee holds.
    pub diversity: SlicedDiversity,
    /// The fewest rows of a bucket; `None`: as many as the guarantee needs.
    pub min_bucket: Option<u64>,
    /// Whether rows with equal values stay together where a bucket is halved.
    pub strict: bool,
    /// The number of attributes that are tried before a bucket is left as it is; `None`: all of them.
    pub max_attempts: Option<u64>,
    /// The number of rows that every box of a generalized column holds.
    pub column_k: Option<u64>,
    /// The number of bins of equal width for the association of an attribute with others.
    pub bins: BTreeMap<Attr, u32>,
}

impl SlicingSpec {
    /// The sensitive attribute.
    #[must_use]
    pub fn sensitive(&self) -> Attr {
        // a set of one attribute, by its construction
        self.rule.protects.attributes().iter().next().unwrap_or(Attr(0))
    }

    /// Whether explicit columns share attributes.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        let SlicedColumns::Explicit(columns) = &self.columns else { return false };
        let all = columns.iter().fold(AttrSet::EMPTY, |all, column| all.union(*column));
        columns.iter().map(|column| column.len()).sum::<usize>() > all.len()
    }

    /// Whether the columns form a tree; columns that share nothing do.
    pub(in crate::spec) fn forms_tree(&self) -> bool {
        match &self.columns {
            SlicedColumns::Explicit(columns) => branches(columns).is_some(),
            SlicedColumns::Count(_) | SlicedColumns::SensitiveWidth { .. } => true,
        }
    }
}

/// Which attributes stand together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SlicedColumns {
    /// A number of columns, of attributes that are associated.
    Count(u64),
    /// A number of columns, of which the sensitive one has `width` attributes.
    SensitiveWidth {
        /// All columns.
        count: u64,
        /// Attributes of the sensitive column.
        width: u64,
    },
    /// These; they may share attributes.
    Explicit(Vec<AttrSet>),
}

document! {
    /// One sensitive attribute, and one table in columns of attributes: in every bucket the rows of each column stand in an order of its
    /// own.
    SlicingMembers as "SlicingMethod" tagged "slicing" {
        /// What stays protected from an adversary who knows all other attributes.
        required sensitive: ColumnName => "the name of the sensitive attribute",
        required columns: ColumnsMember,
        optional diversity: SlicedDiversity = SlicedDiversity::default(),
        required guarantee: GuaranteeDocument,
        /// No bucket has fewer rows; when not given, the fewest rows that the guarantee needs.
        optional min_bucket: Int<1, MAX_INTEGER> => "an integer of at least 1, or null",
        /// The number of attributes that are tried before a bucket is left as it is; all of them when not given.
        optional max_attempts: Int<1, MAX_INTEGER> => "an integer of at least 1, or null",
        optional split: SlicingSplit = SlicingSplit::Relaxed,
        /// Columns are generalized: the values of each column but the sensitive one are published as intervals, which together hold at
        /// least this number of rows. With `diversity` `bucket` alone. Values are published as they are when not given.
        optional column_k: Int<2, MAX_INTEGER> => "an integer of at least 2, or null",
    }
}

choice! {
    /// Where the guarantee holds. `bucket`: among the rows of every bucket that agree outside of the sensitive attribute. `mixture`: over
    /// all buckets that a row may stand in, weighted by the share of a bucket's combinations that are the row; a small bucket may then
    /// show more, and no other table of the same people may share an attribute. `mixture_weighted`: the same, and also with buckets
    /// weighted by their size.
    existing SlicedDiversity as "SlicedDiversity" {
        Bucket = "bucket",
        MixtureWeighted = "mixture_weighted",
        Mixture = "mixture",
    }
}

choice! {
    /// How a bucket is halved at a median: `strict` leaves rows with equal values together.
    pub(in crate::spec) enum SlicingSplit as "SlicingSplit" {
        /// Both halves have equally many rows, but for one.
        Relaxed = "relaxed",
        /// Rows with equal values stay together.
        Strict = "strict",
    }
}

/// The member `guarantee`, which is read once the diversity is known.
#[derive(Clone, Debug)]
pub(in crate::spec) struct GuaranteeDocument(Value);

impl Member for GuaranteeDocument {
    fn allowed() -> String {
        "a guarantee such as {\"type\": \"l_diversity\", \"l\": 2}".to_owned()
    }

    fn read(value: &Value, _context: &mut MemberContext<'_, '_>) -> Option<Self> {
        Some(Self(value.clone()))
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.clone()
    }

    fn schema() -> Value {
        reference("SlicingGuarantee")
    }
}

/// The member `columns`.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct ColumnsMember {
    /// `None` after faults.
    choice: Option<DraftColumns>,
    /// The columns of the dataset that explicit columns name, also faulty ones.
    named: BTreeSet<usize>,
}

/// Which columns of the dataset stand together.
#[derive(Clone, Debug)]
enum DraftColumns {
    Count(u64),
    SensitiveWidth { count: u64, width: u64 },
    Explicit(Vec<BTreeSet<usize>>),
}

impl Member for ColumnsMember {
    fn allowed() -> String {
        COLUMNS.to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let members = ObjectReader::open(value, context.pointer.as_str(), context.faults)?;
        let mut named = BTreeSet::new();
        let choice = read_columns(members, context.columns, &mut named, context.faults);
        Some(Self { choice, named })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let names = |list: &BTreeSet<usize>| -> Vec<&str> { list.iter().map(|column| columns.name(*column)).collect() };
        match &self.choice {
            None => Value::Null,
            Some(DraftColumns::Count(count)) => json!({"count": count}),
            Some(DraftColumns::SensitiveWidth { count, width }) => json!({"count": count, "sensitive_width": width}),
            Some(DraftColumns::Explicit(lists)) => json!({"explicit": lists.iter().map(names).collect::<Vec<_>>()}),
        }
    }

    fn schema() -> Value {
        reference("SlicedColumns")
    }
}

/// Slicing over columns of the dataset.
pub(in crate::spec) struct DraftSlicing {
    /// The document, with its guarantee in normal form.
    pub(in crate::spec) members: SlicingMembers,
    /// Columns that may have been meant where a fault hides which.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    bound: Option<EnforcedBound>,
}

/// The guarantee as it is enforced, as it is written, and its l where it bounds single values.
struct EnforcedBound {
    guarantee: Guarantee,
    written: Value,
    l: Option<Ratio>,
}

const COLUMNS: &str = "an object with count, with count and sensitive_width, or with explicit";

/// The largest integer that a member may be.
const MAX_INTEGER: u64 = u32::MAX as u64;

const L: &str = "a number above 1: an integer, or a text such as \"5/2\"";

/// The most columns with the sensitive attribute.
const MAX_SENSITIVE_COLUMNS: usize = 4;

impl DraftSlicing {
    fn columns(&self) -> Option<&DraftColumns> {
        self.members.columns.value.as_ref()?.choice.as_ref()
    }

    fn names(&self, column: usize) -> bool {
        self.members.columns.value.as_ref().is_some_and(|columns| columns.named.contains(&column))
    }

    /// Whether explicit columns share attributes.
    pub(in crate::spec) fn overlaps(&self) -> bool {
        let Some(ColumnsMember { choice: Some(DraftColumns::Explicit(lists)), named }) = &self.members.columns.value
        else {
            return false;
        };
        lists.iter().map(BTreeSet::len).sum::<usize>() > named.len()
    }

    /// Whether the entropy of the model has a closed form: of two columns at most, of values as they are, each attribute in one.
    pub(in crate::spec) fn has_entropy(&self) -> bool {
        let few = match self.columns() {
            Some(DraftColumns::Count(count) | DraftColumns::SensitiveWidth { count, .. }) => *count <= 2,
            Some(DraftColumns::Explicit(lists)) => lists.len() <= 2,
            None => true,
        };
        few && !self.generalizes_columns() && !self.overlaps()
    }

    /// Whether values of columns are published as intervals.
    pub(in crate::spec) fn generalizes_columns(&self) -> bool {
        self.members.column_k.value.is_some()
    }

    /// The columns that occur in it.
    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
        let named = self.members.columns.value.iter().flat_map(|columns| columns.named.iter().copied());
        named.chain(self.members.sensitive.column()).collect()
    }
}

/// Reads `method` of type `slicing`.
pub(in crate::spec) fn read(
    members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) -> DraftSlicing {
    let mut members = SlicingMembers::read_members(members, columns, faults);
    let is_unread = members.columns.value.as_ref().is_none_or(|columns| columns.choice.is_none());
    let is_hidden = members.sensitive.value.is_none() || members.columns.is_faulty && is_unread;
    let guessed = if is_hidden { columns.all() } else { BTreeSet::new() };
    let diversity = members.diversity;
    let document = members.guarantee.value.take();
    let bound = document.and_then(|document| read_guarantee(&document.0, &members.at("guarantee"), diversity, faults));
    members.guarantee.value = bound.as_ref().map(|bound| GuaranteeDocument(bound.written.clone()));
    if members.column_k.value.is_some() && diversity != SlicedDiversity::Bucket {
        let detail =
            format!("{} is judged by values as they are; generalize columns with diversity bucket", diversity.as_str());
        faults.unsupported(members.at("column_k"), detail);
    }
    DraftSlicing { members, guessed, bound }
}

/// Reads one of the three forms; `check_columns` compares it with the published attributes.
fn read_columns(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    named: &mut BTreeSet<usize>,
    faults: &mut FaultList,
) -> Option<DraftColumns> {
    let number = |members: &mut ObjectReader<'_>, name: &'static str, faults: &mut FaultList| {
        let read = members.integer(name, 0..=i128::from(u32::MAX), "an integer of at least 1", faults);
        read.and_then(|number| u64::try_from(number).ok())
    };
    let before = faults.len();
    let (count, width) = (number(&mut members, "count", faults), number(&mut members, "sensitive_width", faults));
    let explicit = members.list("explicit", "an array of arrays of names of attributes", faults);
    let pointer = members.at("explicit");
    let at = members.pointer().to_owned();
    members.finish(faults);
    let sound = faults.len() == before;
    match (count, width, explicit) {
        (Some(count), None, None) if sound => Some(DraftColumns::Count(count)),
        (Some(count), Some(width), None) if sound => Some(DraftColumns::SensitiveWidth { count, width }),
        (None, None, Some(lists)) => {
            let read = read_explicit(lists, &pointer, columns, named, faults);
            Some(DraftColumns::Explicit(read)).filter(|_| sound)
        }
        _ if !sound => None,
        _ => {
            faults.range(at, COLUMNS);
            None
        }
    }
}

fn read_explicit(
    lists: &[Value],
    pointer: &str,
    columns: &DatasetColumns<'_>,
    named: &mut BTreeSet<usize>,
    faults: &mut FaultList,
) -> Vec<BTreeSet<usize>> {
    let mut read = Vec::new();
    let bad = |faults: &mut FaultList, pointer: &str, detail: String| {
        faults.push(Fault::new(pointer, Kind::BadColumns, detail));
    };
    for (index, list) in lists.iter().enumerate() {
        let pointer = child(pointer, &index.to_string());
        let mut column = BTreeSet::new();
        let Some(names) = list.as_array() else {
            faults.range(&pointer, &Names::<0>::allowed());
            read.push(column);
            continue;
        };
        if names.is_empty() {
            bad(faults, &pointer, "a column has at least one attribute".to_owned());
        }
        for (at, name) in names.iter().enumerate() {
            let pointer = child(&pointer, &at.to_string());
            let Some(name) = name.as_str() else {
                faults.range(&pointer, "the name of an attribute");
                continue;
            };
            let Some(found) = columns.resolve(name, &pointer, faults) else { continue };
            named.insert(found);
            if !column.insert(found) {
                bad(faults, &pointer, format!("the column has {name} already"));
            }
        }
        read.push(column);
    }
    if read.len() > MAX_ATTRIBUTES {
        bad(faults, pointer, format!("there are more than {MAX_ATTRIBUTES} columns"));
    }
    for (index, column) in read.iter().enumerate().filter(|(_, column)| !column.is_empty()) {
        // of equal columns the second is reported
        let within = |(other, whole): (usize, &BTreeSet<usize>)| {
            let smaller = column.len() < whole.len() || other < index;
            (other != index && smaller && column.is_subset(whole)).then_some(other)
        };
        if let Some(other) = read.iter().enumerate().find_map(within) {
            let detail = format!("all that stands in it stands in column {} too, which tells as much", other + 1);
            bad(faults, &child(pointer, &index.to_string()), detail);
        }
    }
    read
}

/// Reads the guarantee, of which l may be a fraction.
fn read_guarantee(
    value: &Value,
    pointer: &str,
    diversity: SlicedDiversity,
    faults: &mut FaultList,
) -> Option<EnforcedBound> {
    let is_l = value["type"] == "l_diversity";
    let other = ["distinct_l_diversity", "entropy_l_diversity", "recursive_l_diversity"];
    if !is_l && diversity != SlicedDiversity::Bucket && other.iter().any(|name| value["type"] == *name) {
        let detail = format!("{} bounds single values alone: use l_diversity, or diversity bucket", diversity.as_str());
        faults.unsupported(child(pointer, "type"), detail);
        return None;
    }
    if !is_l {
        let read = guarantee(value, pointer, faults)?;
        if !other.contains(&read.as_str()) {
            let detail =
                format!("{} is no guarantee of slicing; it takes l_diversity, {}", read.as_str(), other.join(", "));
            faults.unsupported(child(pointer, "type"), detail);
            return None;
        }
        return Some(EnforcedBound { written: json!(read), guarantee: read, l: None });
    }
    let mut members = ObjectReader::open(value, pointer, faults)?;
    members.take("type");
    let l = members.take("l").and_then(|value| match value {
        Value::String(text) => text.parse().ok(),
        other => integer(other).and_then(|whole| Ratio::new(u64::try_from(whole).ok()?, 1).ok()),
    });
    let pointer = members.at("l");
    members.finish(faults);
    let Some(l): Option<Ratio> = l.filter(|l: &Ratio| l.numerator() > 0) else {
        faults.range(pointer, L);
        return None;
    };
    if l <= Ratio::ONE {
        let detail = "every table is 1-diverse: ask for l above 1";
        faults.push(Fault::new(pointer, Kind::VacuousGuarantee, detail));
        return None;
    }
    let guarantee = match l.denominator() {
        1 => Guarantee::LDiversity { l: l.numerator() },
        // no value takes more than 1/l of a bucket
        _ => Guarantee::AlphaK { alpha: Ratio::new(l.denominator(), l.numerator()).ok()?, k: 1 },
    };
    Some(EnforcedBound { guarantee, written: json!({"type": "l_diversity", "l": l}), l: Some(l) })
}

/// The method over attributes; `used` are the published columns of the dataset. `None` after faults.
pub(in crate::spec) fn resolve(
    columns: &DatasetColumns<'_>,
    attrs: &HashMap<usize, Attr>,
    attributes: &[AttributeOptions],
    used: &[usize],
    draft: &DraftSlicing,
    faults: &mut FaultList,
) -> Option<SlicingSpec> {
    let sound = check_columns(columns, used, draft, faults);
    let sensitive = draft.members.sensitive.column().filter(|column| !columns.facts[*column].overflow)?;
    let bound = draft.bound.as_ref()?;
    let stands = match draft.columns().filter(|_| sound)? {
        DraftColumns::Count(count) => SlicedColumns::Count(*count),
        DraftColumns::SensitiveWidth { count, width } => SlicedColumns::SensitiveWidth { count: *count, width: *width },
        DraftColumns::Explicit(lists) => {
            let set = |list: &BTreeSet<usize>| list.iter().map(|column| attrs[column]).collect();
            let sets: Vec<AttrSet> = lists.iter().map(set).collect();
            if draft.overlaps() && !are_judged(&sets, attrs[&sensitive], draft.members.diversity) {
                let detail = format!(
                    "the columns share attributes in a circle, of which {} cannot tell what they say together: let them form a tree, in \
                     which what a column shares with those before it stands in one of these, whichever of the columns with the \
                     sensitive attribute are left out",
                    draft.members.diversity.as_str()
                );
                faults.push(Fault::new("/method/columns/explicit", Kind::BadColumns, detail));
                return None;
            }
            SlicedColumns::Explicit(sets)
        }
    };
    let bins = used.iter().filter_map(|&column| {
        let width = attributes[column].equal_width?;
        Some((attrs[&column], u32::try_from(width).unwrap_or(u32::MAX)))
    });
    Some(SlicingSpec {
        rule: SubmittedRule {
            pointer: "/method".to_owned(),
            known: used.iter().filter(|column| **column != sensitive).map(|column| attrs[column]).collect(),
            protects: Protected::Attribute(attrs[&sensitive]),
            guarantee: bound.guarantee,
        },
        columns: stands,
        l: bound.l,
        diversity: draft.members.diversity,
        min_bucket: draft.members.min_bucket.value.map(|rows| rows.0),
        strict: draft.members.split == SlicingSplit::Strict,
        max_attempts: draft.members.max_attempts.value.map(|attempts| attempts.0),
        column_k: draft.members.column_k.value.map(|k| k.0),
        bins: bins.collect(),
    })
}

/// Whether the guarantee can be computed for columns that share attributes. With one sensitive column its rows decide, and a mixture is
/// computed from combinations alone. Otherwise the columns must form a tree, also without any of the sensitive columns
/// (`docs/spec/overlapping-slicing.md#guarantee`).
fn are_judged(columns: &[AttrSet], sensitive: Attr, diversity: SlicedDiversity) -> bool {
    let (with, without): (Vec<AttrSet>, Vec<AttrSet>) = columns.iter().partition(|column| column.contains(sensitive));
    match diversity {
        SlicedDiversity::Mixture => return true,
        SlicedDiversity::Bucket if with.len() < 2 => return true,
        SlicedDiversity::Bucket | SlicedDiversity::MixtureWeighted => {}
    }
    (1_u32..1 << with.len().min(MAX_SENSITIVE_COLUMNS)).all(|chosen| {
        let chosen = with.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, column)| *column);
        branches(&without.iter().copied().chain(chosen).collect::<Vec<_>>()).is_some()
    })
}

/// Whether the columns can be made of the published attributes; a fault for all that stands in the way.
fn check_columns(columns: &DatasetColumns<'_>, used: &[usize], draft: &DraftSlicing, faults: &mut FaultList) -> bool {
    let all = used.len() as u64;
    let before = faults.len();
    let mut bad = |pointer: &str, detail: String| faults.push(Fault::new(pointer, Kind::BadColumns, detail));
    match draft.columns() {
        None => return false,
        Some(_) if all < 2 => {
            bad("/method/columns", "nothing is published beside the sensitive attribute".to_owned());
        }
        Some(DraftColumns::Count(count)) => {
            if !(1..=all).contains(count) {
                bad("/method/columns/count", format!("{count} columns cannot be made of {all} attributes"));
            }
        }
        Some(DraftColumns::SensitiveWidth { count, width }) => {
            if !(1..=all).contains(width) {
                let detail = format!("a sensitive column of {width} attributes cannot be made of {all}");
                bad("/method/columns/sensitive_width", detail);
            } else {
                let left = all - width;
                let others = count.checked_sub(1);
                let fits = if left == 0 { others == Some(0) } else { others.is_some_and(|n| (1..=left).contains(&n)) };
                if !fits {
                    let detail = format!(
                        "of {count} columns one is the sensitive one, and the others cannot be made of the {left} attributes that it leaves over"
                    );
                    bad("/method/columns/count", detail);
                }
            }
        }
        Some(DraftColumns::Explicit(lists)) => {
            let pointer = "/method/columns/explicit";
            let with = lists
                .iter()
                .filter(|list| draft.members.sensitive.column().is_some_and(|column| list.contains(&column)))
                .count();
            if with > MAX_SENSITIVE_COLUMNS {
                bad(pointer, format!("{with} columns have the sensitive attribute; {MAX_SENSITIVE_COLUMNS} may"));
            }
            let missing: Vec<&str> =
                used.iter().filter(|column| !draft.names(**column)).map(|column| columns.name(*column)).collect();
            if !missing.is_empty() {
                bad(pointer, format!("every published attribute stands in a column; none has {}", missing.join(", ")));
            }
        }
    }
    if draft.overlaps() {
        if draft.generalizes_columns() {
            let detail =
                "columns that share attributes are judged by values as they are; let each attribute stand in one";
            faults.unsupported("/method/column_k", detail);
        }
        if draft.bound.as_ref().is_some_and(|bound| bound.l.is_none()) {
            let detail = "columns that share attributes bound single values alone: use l_diversity";
            faults.unsupported("/method/guarantee/type", detail);
        }
    }
    faults.len() == before
}

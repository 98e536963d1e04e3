//! The method `slicing`: the columns of attributes, the guarantee, and bounds of the partition of rows [Li et al. 2012].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::common::CommonMembers;
use super::sliced_columns::{ColumnsMember, DraftColumns, MAX_INTEGER, bad_columns, check_width};
use crate::microdata::{Attr, AttrSet, branches};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Protected, Ratio, SlicedDiversity, SubmittedRule};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::document::{ColumnName, Document, Int, PositiveFraction, choice, document, union};
use crate::spec::grammar::guarantee::{
    DistinctLDiversityMembers, EntropyLDiversityMembers, RecursiveLDiversityMembers, check_type,
};
use crate::spec::grammar::reader::FaultList;

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
        required guarantee: SlicingGuarantee => "a guarantee such as {\"type\": \"l_diversity\", \"l\": 2}",
        /// No bucket has fewer rows; when not given, the fewest rows that the guarantee needs.
        optional min_bucket: Int<1, MAX_INTEGER> => "an integer of at least 1, or null",
        /// The number of attributes that are tried before a bucket is left as it is; all of them when not given.
        optional max_attempts: Int<1, MAX_INTEGER> => "an integer of at least 1, or null",
        optional split: SlicingSplit = SlicingSplit::Relaxed,
        /// Columns are generalized: the values of each column but the sensitive one are published as intervals, which together hold at
        /// least this number of rows. With `diversity` `bucket` alone. Values are published as they are when not given.
        optional column_k: Int<2, MAX_INTEGER> => "an integer of at least 2, or null",
        include common: CommonMembers,
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

union! {
    /// How much may be learned of a sensitive value. Forms other than `l_diversity` go with `bucket` alone.
    SlicingGuarantee as "SlicingGuarantee" checked check_type {
        Exact(ExactDiversityMembers) = "l_diversity",
        Distinct(DistinctLDiversityMembers) = "distinct_l_diversity",
        Entropy(EntropyLDiversityMembers) = "entropy_l_diversity",
        Recursive(RecursiveLDiversityMembers) = "recursive_l_diversity",
    }
}

document! {
    /// No value is likelier than 1/l.
    ExactDiversityMembers as "SlicedLDiversityGuarantee" tagged "l_diversity" {
        required l: PositiveFraction => "a number above 1: an integer, or a text such as \"5/2\"",
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

/// The guarantee as it is enforced, and its l where it bounds single values.
struct EnforcedBound {
    guarantee: Guarantee,
    l: Option<Ratio>,
}

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

/// Checks the method, whose members may be faulty.
pub(in crate::spec) fn read(
    members: SlicingMembers,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) -> DraftSlicing {
    let is_unread = members.columns.value.as_ref().is_none_or(|columns| columns.choice.is_none());
    let is_hidden = members.sensitive.value.is_none() || members.columns.is_faulty && is_unread;
    let guessed = if is_hidden { columns.all() } else { BTreeSet::new() };
    let diversity = members.diversity;
    let bound = members.guarantee.value.as_ref().and_then(|guarantee| guarantee.bound(diversity, faults));
    let bound = bound.filter(|_| !members.guarantee.is_faulty);
    if members.column_k.value.is_some() && diversity != SlicedDiversity::Bucket {
        let detail =
            format!("{} is judged by values as they are; generalize columns with diversity bucket", diversity.as_str());
        faults.unsupported(members.at("column_k"), detail);
    }
    DraftSlicing { members, guessed, bound }
}

impl SlicingGuarantee {
    /// The guarantee as it is enforced; `None` after a fault.
    fn bound(&self, diversity: SlicedDiversity, faults: &mut FaultList) -> Option<EnforcedBound> {
        let (pointer, guarantee) = match self {
            Self::Exact(members) => return members.bound(faults),
            Self::Distinct(members) => (members.at("type"), members.checked(faults)),
            Self::Entropy(members) => (members.at("type"), members.checked(faults)),
            Self::Recursive(members) => (members.at("type"), members.checked(faults)),
        };
        if diversity != SlicedDiversity::Bucket {
            let detail =
                format!("{} bounds single values alone: use l_diversity, or diversity bucket", diversity.as_str());
            faults.unsupported(pointer, detail);
            return None;
        }
        Some(EnforcedBound { guarantee: guarantee?, l: None })
    }
}

impl ExactDiversityMembers {
    fn bound(&self, faults: &mut FaultList) -> Option<EnforcedBound> {
        let PositiveFraction(l) = self.l.value?;
        if l <= Ratio::ONE {
            let detail = "every table is 1-diverse: ask for l above 1";
            faults.push(Fault::new(self.at("l"), Kind::VacuousGuarantee, detail));
            return None;
        }
        let guarantee = match l.denominator() {
            1 => Guarantee::LDiversity { l: l.numerator() },
            // no value takes more than 1/l of a bucket
            _ => Guarantee::AlphaK { alpha: Ratio::new(l.denominator(), l.numerator()).ok()?, k: 1 },
        };
        Some(EnforcedBound { guarantee, l: Some(l) })
    }
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

impl DraftSlicing {
    /// The method over attributes; `used` are the published columns of the dataset. `None` after faults.
    pub(in crate::spec) fn resolve(
        &self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
        attributes: &[AttributeOptions],
        used: &[usize],
        faults: &mut FaultList,
    ) -> Option<SlicingSpec> {
        let sound = self.check_columns(columns, used, faults);
        let sensitive = self.members.sensitive.column().filter(|column| !columns.facts[*column].overflow)?;
        let bound = self.bound.as_ref()?;
        if !sound {
            return None;
        }
        let stands = self.resolve_columns(sensitive, attrs, faults)?;
        let bins = used.iter().filter_map(|&column| {
            let width = attributes[column].equal_width()?;
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
            diversity: self.members.diversity,
            min_bucket: self.members.min_bucket.value.map(|rows| rows.0),
            strict: self.members.split == SlicingSplit::Strict,
            max_attempts: self.members.max_attempts.value.map(|attempts| attempts.0),
            column_k: self.members.column_k.value.map(|k| k.0),
            bins: bins.collect(),
        })
    }

    /// The columns over attributes; `None` after faults.
    fn resolve_columns(
        &self,
        sensitive: usize,
        attrs: &HashMap<usize, Attr>,
        faults: &mut FaultList,
    ) -> Option<SlicedColumns> {
        let lists = match self.columns()? {
            DraftColumns::Count(count) => return Some(SlicedColumns::Count(*count)),
            DraftColumns::SensitiveWidth { count, width } => {
                return Some(SlicedColumns::SensitiveWidth { count: *count, width: *width });
            }
            DraftColumns::Explicit(lists) => lists,
        };
        let set = |list: &BTreeSet<usize>| list.iter().map(|column| attrs[column]).collect();
        let sets: Vec<AttrSet> = lists.iter().map(set).collect();
        if self.overlaps() && !are_judged(&sets, attrs[&sensitive], self.members.diversity) {
            let detail = format!(
                "the columns share attributes in a circle, of which {} cannot tell what they say together: let them form a tree, in \
                 which what a column shares with those before it stands in one of these, whichever of the columns with the \
                 sensitive attribute are left out",
                self.members.diversity.as_str()
            );
            bad_columns(faults, "/method/columns/explicit", detail);
            return None;
        }
        Some(SlicedColumns::Explicit(sets))
    }

    /// Whether the columns can be made of the published attributes; a fault for all that stands in the way.
    fn check_columns(&self, columns: &DatasetColumns<'_>, used: &[usize], faults: &mut FaultList) -> bool {
        let all = used.len() as u64;
        let before = faults.len();
        match self.columns() {
            None => return false,
            Some(_) if all < 2 => {
                let detail = "nothing is published beside the sensitive attribute".to_owned();
                bad_columns(faults, "/method/columns", detail);
            }
            Some(DraftColumns::Count(count)) => {
                if !(1..=all).contains(count) {
                    let detail = format!("{count} columns cannot be made of {all} attributes");
                    bad_columns(faults, "/method/columns/count", detail);
                }
            }
            Some(DraftColumns::SensitiveWidth { count, width }) => check_width(*count, *width, all, faults),
            Some(DraftColumns::Explicit(lists)) => self.check_explicit(lists, columns, used, faults),
        }
        if self.overlaps() {
            self.check_overlaps(faults);
        }
        faults.len() == before
    }

    fn check_explicit(
        &self,
        lists: &[BTreeSet<usize>],
        columns: &DatasetColumns<'_>,
        used: &[usize],
        faults: &mut FaultList,
    ) {
        let pointer = "/method/columns/explicit";
        let sensitive = self.members.sensitive.column();
        let with = lists.iter().filter(|list| sensitive.is_some_and(|column| list.contains(&column))).count();
        if with > MAX_SENSITIVE_COLUMNS {
            let detail = format!("{with} columns have the sensitive attribute; {MAX_SENSITIVE_COLUMNS} may");
            bad_columns(faults, pointer, detail);
        }
        let missing = used.iter().filter(|column| !self.names(**column));
        let missing: Vec<&str> = missing.map(|column| columns.name(*column)).collect();
        if !missing.is_empty() {
            let detail = format!("every published attribute stands in a column; none has {}", missing.join(", "));
            bad_columns(faults, pointer, detail);
        }
    }

    /// Columns that share attributes are not generalized, and bound single values.
    fn check_overlaps(&self, faults: &mut FaultList) {
        if self.generalizes_columns() {
            let detail =
                "columns that share attributes are judged by values as they are; let each attribute stand in one";
            faults.unsupported("/method/column_k", detail);
        }
        if self.bound.as_ref().is_some_and(|bound| bound.l.is_none()) {
            let detail = "columns that share attributes bound single values alone: use l_diversity";
            faults.unsupported("/method/guarantee/type", detail);
        }
    }
}

//! The method `decompose`: several sensitive attributes, one of which buckets are made by.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Protected, SubmittedRule};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::general::GeneralMembers;
use crate::spec::grammar::reader::{FaultList, ObjectReader, child, integer};
use crate::spec::grammar::rules::{NAMES, columns_named};

/// More rows than a table can have.
const MAX_DECOMPOSED_ROWS: i128 = 1 << 32;

const L: &str = "an integer of at least 2";

const SENSITIVE: &str = "an array of names of sensitive attributes, such as [\"occupation\", \"salary\"]";

/// Decompose.
///
/// Persons with several rows: of the primary attribute each row has a value with at most its share of the bucket, whatever the other
/// parts tell, so that any of a person's R rows has it with at most R times that; buckets of l times R different values keep 1/l. What is
/// said of the other attributes is said with l times R, too: sets list so many values, a value is bounded where no more
/// rows of a bucket can have it than 1/(l R), and forced where more are certain to. Conclusions are of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecomposeSpec {
    /// One for each sensitive attribute, in the order of the document, at pointers such as `/method/sensitive/0`.
    pub rules: Vec<SubmittedRule>,
    /// The sensitive attribute that buckets are made by.
    pub primary: Attr,
    /// Whether joint rows are left out by which a primary value would tell another one.
    pub suppress_chain: bool,
}

impl DecomposeSpec {
    /// The sensitive attributes.
    #[must_use]
    pub fn sensitive(&self) -> AttrSet {
        self.rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()))
    }

    /// The diversity of each sensitive attribute, in the order of attributes.
    #[must_use]
    pub fn l(&self) -> BTreeMap<Attr, u64> {
        let of = |rule: &SubmittedRule| match (rule.protects, rule.guarantee) {
            (Protected::Attribute(attr), Guarantee::LDiversity { l }) => Some((attr, l)),
            _ => None,
        };
        self.rules.iter().filter_map(of).collect()
    }
}

/// The method over columns of the dataset.
pub(in crate::spec) struct DraftDecompose {
    known: BTreeSet<usize>,
    /// In the order of the document, each once, with its place there.
    sensitive: Vec<(usize, usize)>,
    /// Columns that may have been meant where a fault hides what was.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    primary: Option<usize>,
    l: BTreeMap<usize, u64>,
    suppress_chain: bool,
    /// Whether nothing in it is faulty.
    sound: bool,
}

/// Reads the method.
pub(in crate::spec) fn read(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftDecompose {
    let before = faults.len();
    let sensitive = read_sensitive(&mut members, columns, faults);
    let is_sensitive = |column: usize| sensitive.iter().any(|(of, _)| *of == column);
    let pointer = members.at("quasi_identifiers");
    let list = members.list("quasi_identifiers", NAMES, faults);
    let hidden = faults.len() > before;
    let guessed = if hidden { (0..columns.facts.len()).collect() } else { BTreeSet::new() };
    let known: BTreeSet<usize> = match list {
        Some(names) => columns_named(names, &pointer, columns, faults),
        None => {
            let published = stated.iter().enumerate().filter(|(_, attribute)| attribute.publish && !attribute.drop);
            published.map(|(column, _)| column).filter(|column| !is_sensitive(*column)).collect()
        }
    };
    let mut bad = |pointer: &str, detail: String| faults.push(Fault::new(pointer, Kind::BadColumns, detail));
    if known.is_empty() && !hidden {
        bad(&pointer, "there is no quasi-identifier: name some, or mark attributes with publish".to_owned());
    }
    let both: Vec<&str> =
        known.iter().filter(|column| is_sensitive(**column)).map(|column| columns.name(*column)).collect();
    if !both.is_empty() {
        bad(&pointer, format!("{} is sensitive and cannot be a quasi-identifier", both.join(", ")));
    }
    let named = members.text("primary", "the name of a sensitive attribute, or null", faults, |_| true);
    let pointer = members.at("primary");
    let primary = named.and_then(|name| columns.resolve(name, &pointer, faults));
    let unknown = primary.filter(|column| !hidden && !is_sensitive(*column));
    if let Some(column) = unknown {
        let detail =
            format!("buckets are made by a sensitive attribute, and {} is not among them", columns.name(column));
        faults.push(Fault::new(pointer, Kind::BadColumns, detail));
    }
    // the tightest one, the first of equals
    let feasible = |column: usize| columns.facts[column].largest_l.unwrap_or(2);
    // rows keep as many times what is stated of persons as these may have rows
    let largest = |column: usize| (feasible(column) / columns.per_unit.max(1)).max(2);
    let tightest = || sensitive.iter().map(|(column, _)| *column).min_by_key(|column| feasible(*column));
    let mut l: BTreeMap<usize, u64> = sensitive.iter().map(|&(column, _)| (column, largest(column))).collect();
    if let Some(asked) = members.object("l", faults) {
        read_diversities(&asked, columns, (!hidden).then_some(&is_sensitive), &mut l, faults);
    }
    let suppress_chain = members.flag("suppress_chain", faults).unwrap_or(false);
    members.finish(faults);
    let sound = faults.len() == before;
    DraftDecompose { known, primary: primary.or_else(tightest), sensitive, guessed, l, suppress_chain, sound }
}

/// The sensitive attributes, in the order of the document.
fn read_sensitive(
    members: &mut ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) -> Vec<(usize, usize)> {
    let pointer = members.at("sensitive");
    let before = faults.len();
    let list = members.list("sensitive", SENSITIVE, faults).unwrap_or_default();
    if list.is_empty() && faults.len() == before {
        faults.range(&pointer, SENSITIVE);
    }
    let mut read: Vec<(usize, usize)> = Vec::new();
    for (place, name) in list.iter().enumerate() {
        let pointer = child(&pointer, &place.to_string());
        let Some(name) = name.as_str() else {
            faults.range(pointer, "the name of an attribute");
            continue;
        };
        match columns.resolve(name, &pointer, faults) {
            Some(column) if read.iter().any(|(of, _)| *of == column) => {
                faults.push(Fault::new(pointer, Kind::BadColumns, format!("{name} is named twice")));
            }
            Some(column) => read.push((column, place)),
            None => {}
        }
    }
    read
}

/// The diversities that are asked for, in place of the largest that the data allows.
fn read_diversities(
    asked: &ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    is_sensitive: Option<&impl Fn(usize) -> bool>,
    l: &mut BTreeMap<usize, u64>,
    faults: &mut FaultList,
) {
    for (name, pointer, value) in asked.entries() {
        let column = columns.resolve(name, &pointer, faults);
        if let Some(column) = column
            && is_sensitive.is_some_and(|is_sensitive| !is_sensitive(column))
        {
            let detail = format!("{name} is not among the sensitive attributes");
            faults.push(Fault::new(pointer, Kind::BadColumns, detail));
            continue;
        }
        if value.is_null() {
            continue;
        }
        match integer(value).filter(|l| (1..=MAX_DECOMPOSED_ROWS).contains(l)) {
            None => faults.range(pointer, L),
            Some(1) => {
                let detail = "every table is 1-diverse: ask for l of at least 2";
                faults.push(Fault::new(pointer, Kind::VacuousGuarantee, detail));
            }
            Some(asked) => {
                if let (Some(column), Ok(asked)) = (column, u64::try_from(asked)) {
                    l.insert(column, asked);
                }
            }
        }
    }
}

impl DraftDecompose {
    /// The columns that occur in it.
    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
        let primary = self.primary.iter().copied();
        self.known.iter().copied().chain(self.sensitive.iter().map(|(column, _)| *column)).chain(primary).collect()
    }

    /// What the document asks for beside the method, and the tables cannot tell.
    pub(in crate::spec) fn check(general: &GeneralMembers, faults: &mut FaultList) {
        if general.entropy == Some(true) {
            let detail = "the entropy of the model is not stated of decomposed tables; leave utility out";
            faults.unsupported("/utility/0", detail);
        }
        if general.internal.kl {
            let detail = "kl is not measured of decomposed tables; ask for count_queries";
            faults.unsupported("/internal/utility", detail);
        }
    }

    /// The method as it stands in a normalized document.
    pub(in crate::spec) fn normal(&self, columns: &DatasetColumns<'_>) -> Value {
        let name = |column: usize| columns.name(column);
        let l: serde_json::Map<String, Value> =
            self.sensitive.iter().map(|(column, _)| (name(*column).to_owned(), self.l[column].into())).collect();
        json!({
            "type": "decompose",
            "quasi_identifiers": self.known.iter().map(|column| name(*column)).collect::<Vec<_>>(),
            "sensitive": self.sensitive.iter().map(|(column, _)| name(*column)).collect::<Vec<_>>(),
            "primary": self.primary.map(name),
            "l": l,
            "suppress_chain": self.suppress_chain,
        })
    }

    /// The method over attributes; `None` after faults.
    pub(in crate::spec) fn resolve(
        &self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
    ) -> Option<DecomposeSpec> {
        let sensitive = || self.sensitive.iter().filter(|(column, _)| !columns.facts[*column].overflow);
        let is_sensitive = |of: usize| sensitive().any(|(column, _)| *column == of);
        let primary = self.primary.filter(|column| self.sound && is_sensitive(*column))?;
        let known: AttrSet =
            self.known.iter().filter(|column| !is_sensitive(**column)).map(|column| attrs[column]).collect();
        let rule = |&(column, place): &(usize, usize)| SubmittedRule {
            pointer: format!("/method/sensitive/{place}"),
            known,
            protects: Protected::Attribute(attrs[&column]),
            guarantee: Guarantee::LDiversity { l: self.l[&column] },
        };
        let (rules, primary) = (sensitive().map(rule).collect(), attrs[&primary]);
        Some(DecomposeSpec { rules, primary, suppress_chain: self.suppress_chain })
    }
}

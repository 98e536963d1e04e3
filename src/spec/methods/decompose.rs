//! The method `decompose`: several sensitive attributes, and buckets by one of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::common::CommonMembers;
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Protected, SubmittedRule};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns, published_columns};
use crate::spec::grammar::document::{
    ColumnName, Document, Int, Member, MemberContext, Names, NamesInOrder, SchemaMap, choice, document, reference,
};
use crate::spec::grammar::general::GeneralMembers;
use crate::spec::grammar::reader::{FaultList, child};
use crate::spec::grammar::thresholds::MAX_TABLE_ROWS;
use crate::spec::grammar::utility::InternalUtility;

const L: &str = "an integer of at least 2";

const SENSITIVE: &str = "an array of names of sensitive attributes, such as [\"occupation\", \"salary\"]";

/// The method `decompose` over attributes.
///
/// Persons with several rows: a row has a primary value with at most its share of the bucket, whatever the other parts reveal. One of
/// the R rows of a person has it with at most R times that share, so buckets of l R different values bound it by 1/l. The other
/// attributes are bounded with l R, too: sets list l R values, and a value is bounded where at most 1/(l R) of the rows of a bucket can
/// have it, and forced where more certainly have it. Inferences are about rows.
///
/// # Citations
/// [Ye et al. 2009, section 3]; `docs/spec/decompose.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecomposeSpec {
    /// One for each sensitive attribute, in the order of the document, at pointers such as `/method/sensitive/0`.
    pub rules: Vec<SubmittedRule>,
    /// The sensitive attribute that buckets are made by.
    pub primary: Attr,
    /// Whether joint rows are left out from which a primary value would reveal another value.
    pub suppress_chain: bool,
    /// What becomes of a release from which values of other attributes can be inferred.
    pub breaches: BreachPolicy,
}

choice! {
    /// What becomes of a release of which an adversary can infer a value of a sensitive attribute other than the primary one. `refuse`
    /// (when not given): the job is refused. `report`: it is published, and its warnings and its report say in how many buckets.
    pub enum BreachPolicy as "DecomposeBreaches" {
        /// The job is refused.
        Refuse = "refuse",
        /// The release says in how many buckets.
        Report = "report",
    }
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

document! {
    /// Several sensitive attributes: buckets by one of them, of every other one a list of values for each bucket, and a table of the
    /// joint values of all.
    DecomposeMembers as "DecomposeMethod" tagged "decompose" {
        /// What stays protected.
        required sensitive: NamesInOrder => SENSITIVE,
        /// What may be known. When not given, every attribute that is marked with `publish`.
        optional quasi_identifiers: Names,
        /// The sensitive attribute that buckets are made by: no value of it takes more than 1/l of a bucket. When not given, the one
        /// whose most frequent value is most frequent.
        optional primary: ColumnName => "the name of a sensitive attribute, or null",
        optional l: DiversityByAttribute,
        /// Whether the table of joint values leaves out the rows of each primary value from which, in some bucket, another value could
        /// be inferred. `false` when not given.
        optional suppress_chain: bool = false,
        optional breaches: BreachPolicy = BreachPolicy::Refuse,
        include common: CommonMembers,
    }
}

/// The member `l`: diversities by the names of sensitive attributes.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct DiversityByAttribute {
    /// As in the document; the caller judges it once the sensitive attributes are known.
    requested: Map<String, Value>,
    /// The diversity of every sensitive column.
    chosen: BTreeMap<usize, u64>,
}

impl Member for DiversityByAttribute {
    fn allowed() -> String {
        "an object".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(requested) = value.as_object() else { return context.refuse() };
        Some(Self { requested: requested.clone(), chosen: BTreeMap::new() })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let written = self.chosen.iter().map(|(column, l)| (columns.name(*column).to_owned(), (*l).into()));
        written.collect::<Map<String, Value>>().into()
    }

    fn schema() -> Value {
        reference("DiversityByAttribute")
    }

    fn define(schemas: &mut SchemaMap) {
        let schema = json!({
            "type": "object",
            "title": "DiversityByAttribute",
            "description": "How diverse buckets are, at least 2, by sensitive attribute. When not given, as diverse as its most frequent value allows.",
            "additionalProperties": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TABLE_ROWS},
        });
        schemas.insert("DiversityByAttribute".to_owned(), schema);
    }
}

/// The method over columns of the dataset.
pub(in crate::spec) struct DraftDecompose {
    /// The document, with its defaults filled in.
    pub(in crate::spec) members: DecomposeMembers,
    /// Columns that may have been meant where a fault hides which.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    /// Whether nothing in it is faulty.
    is_sound: bool,
}

/// Checks the method, whose members may be faulty.
pub(in crate::spec) fn read(
    mut members: DecomposeMembers,
    is_faulty: bool,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftDecompose {
    let before = faults.len();
    if members.sensitive.value.as_ref().is_some_and(|names| names.is_empty) {
        members.sensitive.is_faulty = true;
        faults.range(members.at("sensitive"), SENSITIVE);
    }
    let is_hidden = members.sensitive.is_faulty || members.quasi_identifiers.is_hidden();
    check_quasi_identifiers(&mut members, is_hidden, columns, attributes, faults);
    check_primary(&mut members, is_hidden, columns, faults);
    check_diversities(&mut members, is_hidden, columns, faults);
    let guessed = if is_hidden { columns.all() } else { BTreeSet::new() };
    DraftDecompose { members, guessed, is_sound: !is_faulty && faults.len() == before }
}

impl DecomposeMembers {
    /// The sensitive columns in the order of the document, each with its position there.
    fn sensitive(&self) -> &[(usize, usize)] {
        self.sensitive.value.as_ref().map_or(&[], |names| &names.columns)
    }

    fn is_sensitive(&self, column: usize) -> bool {
        self.sensitive().iter().any(|(other, _)| *other == column)
    }
}

/// Fills in the quasi-identifiers that the document does not name.
fn check_quasi_identifiers(
    members: &mut DecomposeMembers,
    is_hidden: bool,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) {
    let known: BTreeSet<usize> = match members.quasi_identifiers.value.take() {
        Some(names) => names.columns,
        None => published_columns(attributes).filter(|column| !members.is_sensitive(*column)).collect(),
    };
    let pointer = members.at("quasi_identifiers");
    if known.is_empty() && !is_hidden {
        let detail = "there is no quasi-identifier: name some, or mark attributes with publish";
        faults.push(Fault::new(pointer.as_str(), Kind::BadColumns, detail));
    }
    let both = known.iter().filter(|column| members.is_sensitive(**column));
    let both: Vec<&str> = both.map(|column| columns.name(*column)).collect();
    if !both.is_empty() {
        let detail = format!("{} is sensitive and cannot be a quasi-identifier", both.join(", "));
        faults.push(Fault::new(pointer, Kind::BadColumns, detail));
    }
    members.quasi_identifiers = Names::from(known).into();
}

/// The largest diversity that the most frequent value of a column allows.
fn feasible_l(columns: &DatasetColumns<'_>, column: usize) -> u64 {
    columns.facts[column].largest_l.unwrap_or(2)
}

/// Fills in the primary attribute: the one with the smallest feasible diversity, the first of equals.
fn check_primary(
    members: &mut DecomposeMembers,
    is_hidden: bool,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) {
    let primary = members.primary.column();
    if let Some(column) = primary.filter(|column| !is_hidden && !members.is_sensitive(*column)) {
        let detail =
            format!("buckets are made by a sensitive attribute, and {} is not among them", columns.name(column));
        faults.push(Fault::new(members.at("primary"), Kind::BadColumns, detail));
    }
    let sensitive = members.sensitive().iter().map(|(column, _)| *column);
    let column = primary.or_else(|| sensitive.min_by_key(|column| feasible_l(columns, *column)));
    members.primary = ColumnName { column }.into();
}

/// Fills in the diversities: those that are requested, and else the largest feasible ones.
fn check_diversities(
    members: &mut DecomposeMembers,
    is_hidden: bool,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) {
    // rows keep l times the rows of a person
    let largest = |column: usize| (feasible_l(columns, column) / columns.per_unit.max(1)).max(2);
    let mut chosen: BTreeMap<usize, u64> =
        members.sensitive().iter().map(|&(column, _)| (column, largest(column))).collect();
    let requested = members.l.value.take().unwrap_or_default().requested;
    for (name, value) in &requested {
        let pointer = child(&members.at("l"), name);
        let column = columns.resolve(name, &pointer, faults);
        if column.is_some_and(|column| !is_hidden && !members.is_sensitive(column)) {
            let detail = format!("{name} is not among the sensitive attributes");
            faults.push(Fault::new(pointer, Kind::BadColumns, detail));
            continue;
        }
        if value.is_null() {
            continue;
        }
        let mut context = MemberContext { pointer: pointer.clone(), allowed: L.to_owned(), columns, faults };
        match Int::<1, MAX_TABLE_ROWS>::read(value, &mut context) {
            Some(Int(1)) => {
                let detail = "every table is 1-diverse: ask for l of at least 2";
                faults.push(Fault::new(pointer, Kind::VacuousGuarantee, detail));
            }
            Some(Int(l)) => chosen.extend(column.map(|column| (column, l))),
            None => {}
        }
    }
    members.l = DiversityByAttribute { requested, chosen }.into();
}

impl DraftDecompose {
    /// The columns that occur in it.
    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
        let known = self.members.quasi_identifiers.columns().iter().copied();
        known
            .chain(self.members.sensitive().iter().map(|(column, _)| *column))
            .chain(self.members.primary.column())
            .collect()
    }

    /// Reports measures that are not defined for decomposed tables.
    pub(in crate::spec) fn check(general: &GeneralMembers, faults: &mut FaultList) {
        if general.entropy() == Some(true) {
            let detail = "the entropy of the model is not stated of decomposed tables; leave utility out";
            faults.unsupported("/utility/0", detail);
        }
        if InternalUtility::from(&general.internal).kl {
            let detail = "kl is not measured of decomposed tables; ask for count_queries";
            faults.unsupported("/internal/utility", detail);
        }
    }

    /// The method over attributes; `None` after faults.
    pub(in crate::spec) fn resolve(
        &self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
    ) -> Option<DecomposeSpec> {
        let members = &self.members;
        let sensitive = || members.sensitive().iter().filter(|(column, _)| !columns.facts[*column].overflow);
        let is_sensitive = |of: usize| sensitive().any(|(column, _)| *column == of);
        let primary = members.primary.column().filter(|column| self.is_sound && is_sensitive(*column))?;
        let known = members.quasi_identifiers.columns().iter().filter(|column| !is_sensitive(**column));
        let known: AttrSet = known.map(|column| attrs[column]).collect();
        let chosen = &members.l.value.as_ref()?.chosen;
        let rule = |&(column, position): &(usize, usize)| SubmittedRule {
            pointer: format!("/method/sensitive/{position}"),
            known,
            protects: Protected::Attribute(attrs[&column]),
            guarantee: Guarantee::LDiversity { l: chosen[&column] },
        };
        let (rules, primary) = (sensitive().map(rule).collect(), attrs[&primary]);
        Some(DecomposeSpec { rules, primary, suppress_chain: members.suppress_chain, breaches: members.breaches })
    }
}

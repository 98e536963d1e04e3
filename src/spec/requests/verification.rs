//! Requests for verifications: submitted tables, or a release, and the rules that they must satisfy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use uuid::Uuid;

use super::attacks::{Attack, TABLE_ATTACKS, attack};
use crate::microdata::formats::InputFormat;
use crate::microdata::{Attr, AttrSet, CellShape, MAX_ATTRIBUTES};
use crate::problem::{Fault, Kind};
use crate::publication::{
    DeclaredTaxonomy, DeclaredThresholds, Guarantee, Protected, RowMeaning, SubmittedRule, Unit, ValueDistance,
};
use crate::spec::check::resolve::declared_thresholds;
use crate::spec::grammar::attributes::DatasetColumns;
use crate::spec::grammar::dependencies::Dependencies;
use crate::spec::grammar::document::{Given, Presence, read_member};
use crate::spec::grammar::guarantee::{ThresholdsByDigest, guarantee_of_rule};
use crate::spec::grammar::reader::{FaultList, ObjectReader, child, integer, one_of};
use crate::spec::grammar::rules::{DefaultGuarantee, DraftRule, RuleReader};
use crate::spec::grammar::schema::{ColumnFacts, DatasetSchema};
use crate::spec::grammar::shorthand;
use crate::spec::grammar::taxonomy::taxonomy;

/// The most tables of a request, and the most parts of a table.
const MAX_TABLES: usize = 100;

const MAX_RULES: usize = 1_000;

const NAME: &str = "a name of 1 to 200 characters";

/// A file that a request names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedFile {
    /// Its name, which is that of a part of the form.
    pub file: String,
    /// The format, where the request names it.
    pub format: Option<InputFormat>,
    /// Where the request names it.
    pub pointer: String,
}

/// A part of a submitted table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedPart {
    /// Its name in the table.
    pub name: String,
    /// Where its rows are.
    pub file: SubmittedFile,
    /// Whether a column `bucket` ties its rows to those of other parts.
    pub bucketed: bool,
    /// What a row stands for.
    pub meaning: RowMeaning,
    /// Columns whose cells are not exact, each with where that is said, and what they hold.
    pub cells: BTreeMap<String, (String, CellShape)>,
    /// Where the request states it.
    pub pointer: String,
}

/// A submitted table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedTable {
    /// Its name, unique in the request.
    pub name: String,
    /// At least one.
    pub parts: Vec<SubmittedPart>,
}

/// The tables or the release of a verification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VerificationSubject {
    /// Tables that come with the request, and what they were made from.
    Tables(Vec<SubmittedTable>, Option<SubmittedFile>),
    /// A release of this service.
    Release(Uuid),
}

impl VerificationSubject {
    /// The files that must come with the request.
    pub fn files(&self) -> impl Iterator<Item = &SubmittedFile> {
        let (tables, original) = match self {
            Self::Tables(tables, original) => (tables.as_slice(), original.as_ref()),
            Self::Release(_) => (&[][..], None),
        };
        tables.iter().flat_map(|table| &table.parts).map(|part| &part.file).chain(original)
    }
}

/// The rules of a verification, over the attributes of its tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerificationRules {
    /// The names of the attributes: those that were given, and behind them those that only dependencies name.
    pub names: Vec<String>,
    /// The rules; one that protects several attributes each gives one for each.
    pub rules: Vec<SubmittedRule>,
    /// The dependencies that the adversary knows.
    pub dependencies: Vec<(AttrSet, AttrSet)>,
    /// The attacks to be played, each once.
    pub attacks: Vec<Attack>,
    /// The taxonomies of attributes.
    pub taxonomies: Vec<DeclaredTaxonomy>,
    /// The thresholds that rules put on values.
    pub thresholds: Vec<DeclaredThresholds>,
}

/// Reads the subject of a request, before any file is read.
///
/// # Errors
/// Every fault that shows without knowing which attributes the files have.
pub fn read_verification(document: &Value) -> Result<VerificationSubject, Vec<Fault>> {
    let mut faults = FaultList::new();
    let subject = ObjectReader::open(document, "", &mut faults).and_then(|mut members| {
        let subject = read_subject(&mut members, &mut faults);
        let named = named(document);
        let open: Vec<&str> = named.iter().map(String::as_str).collect();
        // reports the faults of rules that do not depend on the attributes
        let _ = read_asked(&mut members, &open, &mut faults);
        members.finish(&mut faults);
        subject
    });
    subject.filter(|_| faults.is_empty()).ok_or_else(|| of_tables(faults))
}

/// The faults, in which attributes are those of tables and not of a dataset.
fn of_tables(faults: FaultList) -> Vec<Fault> {
    let mut faults = faults.into_sorted();
    for fault in faults.iter_mut().filter(|fault| fault.kind == Kind::UnknownAttribute) {
        let name = fault.members.get("attribute").and_then(Value::as_str).unwrap_or_default();
        fault.detail = format!("no table that is verified has an attribute {name}");
    }
    faults
}

/// Reads the rules of a request, over tables with these attributes.
///
/// # Errors
/// Every fault.
pub fn read_asked_of(document: &Value, attributes: &[String]) -> Result<VerificationRules, Vec<Fault>> {
    let mut faults = FaultList::new();
    let names: Vec<&str> = attributes.iter().map(String::as_str).collect();
    let asked = ObjectReader::open(document, "", &mut faults)
        .and_then(|mut members| read_asked(&mut members, &names, &mut faults));
    asked.filter(|_| faults.is_empty()).ok_or_else(|| of_tables(faults))
}

fn read_subject(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> Option<VerificationSubject> {
    let release = members.text("release", "the id of a release", faults, |text| id(text).is_some());
    let names_release = members.take("release").is_some();
    let tables = members.list("tables", TABLES, faults);
    let original = members.object("original", faults).and_then(|mut original| {
        let file = file(&mut original, faults);
        original.finish(faults);
        file
    });
    match (names_release, tables) {
        (true, None) => {
            if members.take("original").is_some() {
                let detail = "a release is verified from its own parts; an original goes with tables of the request";
                faults.push(Fault::new(members.at("original"), Kind::BadColumns, detail));
            }
            release.and_then(id).map(VerificationSubject::Release)
        }
        (true, Some(_)) => {
            let detail = "state tables or a release, not both";
            faults.push(Fault::new(members.at("release"), Kind::BadColumns, detail));
            None
        }
        (false, Some(tables)) if (1..=MAX_TABLES).contains(&tables.len()) => {
            let pointer = members.at("tables");
            let read =
                tables.iter().enumerate().map(|(at, value)| table(value, child(&pointer, &at.to_string()), faults));
            let read: Vec<Option<SubmittedTable>> = read.collect();
            let tables: Option<Vec<SubmittedTable>> = read.into_iter().collect();
            let subject = VerificationSubject::Tables(tables?, original);
            distinct(&subject, faults);
            Some(subject)
        }
        (false, Some(_)) => {
            faults.range(members.at("tables"), TABLES);
            None
        }
        (false, None) => {
            if members.take("tables").is_none() {
                faults.range(members.at("tables"), TABLES);
            }
            None
        }
    }
}

const TABLES: &str = "an array of 1 to 100 tables";

const PARTS: &str = "an array of 1 to 100 parts";

fn id(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|_| text.len() == 36)
}

fn is_name(text: &str) -> bool {
    (1..=200).contains(&text.chars().count())
}

/// A required name.
fn name(members: &mut ObjectReader<'_>, member: &'static str, faults: &mut FaultList) -> Option<String> {
    let name = members.text(member, NAME, faults, is_name);
    if name.is_none() && members.take(member).is_none() {
        faults.range(members.at(member), NAME);
    }
    name.map(str::to_owned)
}

fn file(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> Option<SubmittedFile> {
    let file = name(members, "file", faults);
    let types = InputFormat::ALL.map(InputFormat::media_type);
    let format = members.text("format", &one_of(&types), faults, |text| InputFormat::of_media_type(text).is_some());
    let pointer = members.at("file");
    if file.as_deref() == Some(REQUEST) {
        faults.range(pointer.as_str(), "another name than \"request\", which is that of the request itself");
    }
    Some(SubmittedFile { file: file?, format: format.and_then(InputFormat::of_media_type), pointer })
}

/// The part of a form that holds the request.
pub const REQUEST: &str = "request";

fn table(value: &Value, pointer: String, faults: &mut FaultList) -> Option<SubmittedTable> {
    let mut members = ObjectReader::open(value, pointer, faults)?;
    let name = name(&mut members, "name", faults);
    let parts = members.list("parts", PARTS, faults).unwrap_or_default();
    let at = members.at("parts");
    if !(1..=MAX_TABLES).contains(&parts.len()) {
        faults.range(at.as_str(), PARTS);
    }
    members.finish(faults);
    let lone = parts.len() == 1;
    let read = parts.iter().enumerate().map(|(index, value)| part(value, child(&at, &index.to_string()), lone, faults));
    let read: Vec<Option<SubmittedPart>> = read.collect();
    let parts: Option<Vec<SubmittedPart>> = read.into_iter().collect();
    Some(SubmittedTable { name: name?, parts: parts? })
}

fn part(value: &Value, pointer: String, lone: bool, faults: &mut FaultList) -> Option<SubmittedPart> {
    let mut members = ObjectReader::open(value, pointer.as_str(), faults)?;
    let name = match members.take("name") {
        None if lone => Some("rows".to_owned()),
        _ => name(&mut members, "name", faults),
    };
    let file = file(&mut members, faults);
    let bucketed = members.flag("bucketed", faults);
    if !lone && bucketed != Some(true) {
        let detail = "the parts of a table are tied by bucket: state bucketed true for each, or several tables";
        faults.push(Fault::new(members.at("bucketed"), Kind::BadColumns, detail));
    }
    let meanings = ["tuples", "values", "tuples_and_counterfeits"];
    let meaning = match members.choice("row_meaning", &meanings, faults) {
        Some("values") => RowMeaning::Values,
        Some("tuples_and_counterfeits") => {
            let detail = "counterfeits are not told from tuples yet; state tuples or values";
            faults.unsupported(members.at("row_meaning"), detail);
            RowMeaning::Tuples
        }
        _ => RowMeaning::Tuples,
    };
    let mut cells = BTreeMap::new();
    if let Some(cells_of) = members.object("cells", faults) {
        for (column, at, value) in cells_of.entries() {
            let shape = match value.as_str() {
                Some("exact") => continue,
                Some("interval") => CellShape::Interval,
                Some("node") => CellShape::Node,
                Some("set") => CellShape::Set,
                Some("suppressed") => CellShape::Suppressed,
                _ => {
                    faults.range(at, "one of exact, interval, node, set, suppressed");
                    continue;
                }
            };
            cells.insert(column.to_owned(), (at, shape));
        }
    }
    members.finish(faults);
    Some(SubmittedPart { name: name?, file: file?, bucketed: bucketed.unwrap_or(false), meaning, cells, pointer })
}

/// Tables, the parts of each and files have names of their own.
fn distinct(subject: &VerificationSubject, faults: &mut FaultList) {
    let mut twice = |pointer: String, what: &str, name: &str| {
        faults.push(Fault::new(pointer, Kind::BadColumns, format!("two {what} are called {name}")));
    };
    let (mut tables, mut files) = (BTreeSet::new(), BTreeSet::new());
    if let VerificationSubject::Tables(submitted, _) = subject {
        for (index, table) in submitted.iter().enumerate() {
            if !tables.insert(&table.name) {
                twice(format!("/tables/{index}/name"), "tables", &table.name);
            }
            let mut parts = BTreeSet::new();
            for part in table.parts.iter().filter(|part| !parts.insert(&part.name)) {
                twice(child(&part.pointer, "name"), "parts of a table", &part.name);
            }
        }
    }
    for file in subject.files().filter(|file| !files.insert(&file.file)) {
        twice(file.pointer.clone(), "files", &file.file);
    }
}

fn read_asked(members: &mut ObjectReader<'_>, given: &[&str], faults: &mut FaultList) -> Option<VerificationRules> {
    let taxonomies = read_taxonomies(members, given, faults);
    let mut attacks = Vec::new();
    let list = members.list("attacks", "an array of attacks", faults).unwrap_or_default();
    for (index, value) in list.iter().enumerate() {
        let pointer = child(&members.at("attacks"), &index.to_string());
        match attack(value, &pointer, &TABLE_ATTACKS, faults) {
            Some(found) if !attacks.contains(&found) => attacks.push(found),
            _ => {}
        }
    }
    // what only dependencies name is not published, and may lie between attributes that are
    let mut names: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
    for name in named_by_dependencies(members.take("functional_dependencies")) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > MAX_ATTRIBUTES {
        let detail = "the tables and the dependencies together have too many attributes";
        let fault = Fault::new("/tables", Kind::TooManyAttributes, detail);
        faults.push(fault.with("limit", MAX_ATTRIBUTES).with("found", names.len()));
        return None;
    }
    let facts: Vec<ColumnFacts> = names.iter().map(|name| ColumnFacts::unseen(name)).collect();
    let all = DatasetColumns::from_schema(&DatasetSchema { columns: &facts, record_key: &[], unit: &Unit::Row });
    let declared = ("functional_dependencies", Presence::optional, None);
    let declared: Given<Dependencies<false>> = read_member(members, declared, &all, faults);
    let dependencies = declared.value.unwrap_or_default().0;
    let published = DatasetColumns::from_schema(&DatasetSchema {
        columns: &facts[..given.len()],
        record_key: &[],
        unit: &Unit::Row,
    });

    let default =
        members.take("default_guarantee").map(|value| k_as_alpha(value, &members.at("default_guarantee"), faults));
    let mut thresholds = ThresholdsByDigest::new();
    let default = match default {
        None => DefaultGuarantee::Absent,
        Some(value) => guarantee_of_rule(&value, &members.at("default_guarantee"), &mut thresholds, faults)
            .map_or(DefaultGuarantee::Faulty, DefaultGuarantee::Given),
    };
    let pointer = members.at("rules");
    let before = faults.len();
    let rules = members.list("rules", RULES, faults).unwrap_or_default();
    if rules.is_empty() && faults.len() == before {
        let detail = "without a rule there is nothing to verify: state one, such as \"age, zip -> disease\"";
        faults.push(Fault::new(pointer.as_str(), Kind::VacuousGuarantee, detail));
    }
    if rules.len() > MAX_RULES {
        faults.range(pointer, RULES);
        return None;
    }
    let rules: Vec<Value> = rules
        .iter()
        .enumerate()
        .map(|(index, rule)| {
            let mut rule = rule.clone();
            if let Some(guarantee) = rule.get_mut("guarantee") {
                *guarantee = k_as_alpha(guarantee, &format!("{pointer}/{index}/guarantee"), faults);
            }
            rule
        })
        .collect();
    let mut reader = RuleReader {
        columns: &published,
        default,
        faults,
        mentioned: BTreeSet::new(),
        guessed: BTreeSet::new(),
        thresholds,
    };
    let rules = reader.read_all(&rules, &pointer);
    let thresholds = reader.thresholds;
    let rules: Vec<SubmittedRule> = rules.iter().flat_map(submitted).collect();
    let with_taxonomy: AttrSet = taxonomies.iter().map(|declared| declared.attribute).collect();
    for rule in &rules {
        if matches!(rule.guarantee, Guarantee::TCloseness { distance: ValueDistance::Hierarchical, .. })
            && let Some(without) = rule.protects.attributes().minus(with_taxonomy).iter().next()
        {
            let name = &names[without.index()];
            let detail = format!(
                "the hierarchical distance goes by a taxonomy of {name}: state one in {}",
                child("/taxonomies", name)
            );
            let fault = Fault::new(rule.pointer.as_str(), Kind::GuaranteeUnsupported, detail);
            faults.push(fault.with("attribute", name.as_str()));
        }
    }
    let thresholds = declared_thresholds(&rules, &thresholds);
    Some(VerificationRules {
        rules,
        thresholds,
        taxonomies,
        dependencies: dependencies
            .iter()
            .map(|declared| (set(&declared.determinant), set(&declared.dependent)))
            .collect(),
        attacks,
        names,
    })
}

/// The trees of attributes, by their names.
fn read_taxonomies(members: &mut ObjectReader<'_>, given: &[&str], faults: &mut FaultList) -> Vec<DeclaredTaxonomy> {
    let mut read = Vec::new();
    let Some(taxonomies) = members.object("taxonomies", faults) else { return read };
    for (name, pointer, value) in taxonomies.entries() {
        let attribute = given.iter().position(|known| *known == name).filter(|at| *at < MAX_ATTRIBUTES);
        if attribute.is_none() {
            let fault = Fault::new(pointer.as_str(), Kind::UnknownAttribute, "");
            faults.push(fault.with("attribute", name));
        }
        let tree = taxonomy(value, &pointer, faults);
        read.extend(attribute.zip(tree).map(|(at, tree)| DeclaredTaxonomy { attribute: Attr::from(at), tree }));
    }
    read
}

const RULES: &str = "an array of 1 to 1000 rules";

/// Rewrites k-anonymity as (alpha,k)-anonymity with alpha 1: k rows, and any share of values [Wong et al. 2006].
fn k_as_alpha(value: &Value, pointer: &str, faults: &mut FaultList) -> Value {
    if value["type"] != "k_anonymity" || !value["alpha"].is_null() {
        return value.clone();
    }
    let mut rewritten = value.clone();
    rewritten["type"] = "alpha_k".into();
    rewritten["alpha"] = 1.into();
    if integer(&value["k"]) == Some(1) {
        let detail = "every class has a row: ask for k of at least 2";
        faults.push(Fault::new(child(pointer, "k"), Kind::VacuousGuarantee, detail));
        // the fault is reported once
        rewritten["k"] = json!(2);
    }
    rewritten
}

fn set(columns: &BTreeSet<usize>) -> AttrSet {
    columns.iter().map(|&column| Attr::from(column)).collect()
}

fn submitted(rule: &DraftRule) -> Vec<SubmittedRule> {
    let one = |protects: Protected| SubmittedRule {
        pointer: rule.pointer.clone(),
        known: set(&rule.known),
        protects,
        guarantee: rule.guarantee,
    };
    if rule.joint {
        return vec![one(Protected::Joint(set(&rule.sensitive)))];
    }
    rule.sensitive.iter().map(|&column| one(Protected::Attribute(Attr::from(column)))).collect()
}

/// Every name that looks like one of an attribute in the rules.
fn named(document: &Value) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for rule in document["rules"].as_array().into_iter().flatten().take(MAX_RULES) {
        match rule {
            Value::String(text) => {
                if let Ok(rule) = shorthand::parse(text) {
                    names.extend(rule.known.into_iter().chain(rule.sensitive).map(|name| name.text));
                }
            }
            rule => {
                let sides = ["quasi_identifiers", "sensitive", "sensitive_combination"];
                let listed = sides.iter().filter_map(|side| rule[*side].as_array()).flatten();
                names.extend(listed.filter_map(Value::as_str).map(str::to_owned));
            }
        }
    }
    names.extend(document["taxonomies"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    names.sort();
    names.dedup();
    names
}

fn named_by_dependencies(dependencies: Option<&Value>) -> Vec<String> {
    let dependencies = dependencies.and_then(Value::as_array).into_iter().flatten();
    let sides = dependencies.flat_map(|dependency| [&dependency["determinant"], &dependency["dependent"]]);
    sides.filter_map(Value::as_array).flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

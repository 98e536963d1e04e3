//! Requests for verifications: submitted tables, or a release, and the rules that they must satisfy.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::attacks::{Attack, TableAttack};
use super::submitted::{MAX_TABLES, OriginalMembers, SubmittedFile, SubmittedTable, TableMembers, check_names};
use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES, Taxonomy};
use crate::problem::{Fault, Kind};
use crate::publication::{
    DeclaredTaxonomy, DeclaredThresholds, Guarantee, Protected, Ratio, SubmittedRule, ValueDistance,
};
use crate::spec::check::resolve::declared_thresholds;
use crate::spec::grammar::columns::ColumnOwner;
use crate::spec::grammar::dependencies::DependencyList;
use crate::spec::grammar::document::{
    Array, DatasetColumns, Document, Entries, EntryValue, Given, Id, Member, MemberContext, SchemaMap, define_as,
    document, reference,
};
use crate::spec::grammar::guarantee::{GuaranteeMembers, RuleGuarantee, ThresholdsByDigest};
use crate::spec::grammar::reader::{FaultList, child};
use crate::spec::grammar::rules::{DraftRule, RuleDocument, RuleReader, RuleSideMembers, rule_schema};
use crate::spec::grammar::schema::ColumnFacts;
use crate::spec::grammar::shorthand;

const MAX_RULES: usize = 1_000;

const TABLES: &str = "an array of 1 to 100 tables";

document! {
    /// What is to be verified: `tables`, whose files come with the request as a form, or a `release` of this service.
    VerificationMembers as "VerificationRequest" {
        optional tables: Array<TableMembers, 1, MAX_TABLES> => TABLES,
        /// Needs the scope `releases:read` too.
        optional release: Id => "the id of a release",
        optional original: OriginalMembers,
        /// What must hold.
        needed rules: VerificationRuleList,
        /// The guarantee of rules that state none.
        optional default_guarantee: VerificationGuarantee,
        /// What the adversary knows to determine what; also attributes that no table has.
        optional functional_dependencies: DependencyList<false>,
        optional taxonomies: Entries<Arc<Taxonomy>>,
        /// Attacks to be played on the tables.
        optional attacks: Array<TableAttack> => "an array of attacks",
    }
}

document! {
    /// A rule with its sides apart. State either `sensitive` or `sensitive_combination`.
    VerificationRuleMembers as "VerificationRuleObject" {
        include sides: RuleSideMembers,
        optional guarantee: VerificationGuarantee,
    }
}

impl EntryValue for Arc<Taxonomy> {
    const OBJECT: &'static str = "GivenTaxonomies";

    const ABOUT: &'static str =
        "Trees over the values of attributes, by their names; the hierarchical distance goes by them.";
}

impl RuleDocument for VerificationRuleMembers {
    fn into_parts(self) -> (RuleSideMembers, Given<RuleGuarantee>) {
        (self.sides, self.guarantee.map(|guarantee| guarantee.0))
    }
}

/// The rules as the document has them.
#[derive(Clone, Debug)]
pub(in crate::spec) struct VerificationRuleList(Vec<Value>);

impl Member for VerificationRuleList {
    fn allowed() -> String {
        format!("an array of 1 to {MAX_RULES} rules")
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let rules = value.as_array().filter(|rules| rules.len() <= MAX_RULES);
        rules.cloned().map(Self).or_else(|| context.refuse())
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.clone().into()
    }

    fn schema() -> Value {
        json!({"type": "array", "items": reference("VerificationRule"), "minItems": 1, "maxItems": MAX_RULES})
    }

    fn define(schemas: &mut SchemaMap) {
        VerificationRuleMembers::define(schemas);
        schemas.insert("VerificationRule".to_owned(), rule_schema::<VerificationRuleMembers>());
    }
}

/// The guarantee of a rule, or k-anonymity, which is read as (alpha,k)-anonymity with alpha 1: k rows, and any share of values
/// [Wong et al. 2006].
#[derive(Clone, Debug)]
pub(in crate::spec) struct VerificationGuarantee(RuleGuarantee);

impl Member for VerificationGuarantee {
    fn allowed() -> String {
        RuleGuarantee::allowed()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let types: Vec<&str> = GuaranteeMembers::VARIANTS.iter().map(|variant| variant.tag).collect();
        let mut thresholds = ThresholdsByDigest::new();
        let guarantee = match GuaranteeMembers::read_among(&types, value, &mut thresholds, context)? {
            Guarantee::KAnonymity { k } => Guarantee::AlphaK { alpha: Ratio::ONE, k },
            guarantee => guarantee,
        };
        Some(Self(RuleGuarantee { guarantee, thresholds }))
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        self.0.write(columns)
    }

    fn schema() -> Value {
        GuaranteeMembers::schema()
    }

    fn define(schemas: &mut SchemaMap) {
        GuaranteeMembers::define(schemas);
    }
}

/// Adds the schema of the form that has the request as its first part.
pub(in crate::spec) fn define_form(schemas: &mut SchemaMap) {
    let schema = json!({
        "type": "object",
        "description": "First the request, then each file that it names, under that name.",
        "required": ["request"],
        "properties": {"request": VerificationMembers::schema()},
        "additionalProperties": {"type": "string", "description": "The bytes of a file that the request names."},
    });
    define_as("VerificationForm", schema, schemas);
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
    read_over(document, &named(document), |members, tables, faults| {
        let subject = members.subject(faults);
        // reports the faults of rules that do not depend on the attributes
        let _ = members.rules(tables, faults);
        subject
    })
}

/// Reads the rules of a request, over tables with these attributes.
///
/// # Errors
/// Every fault.
pub fn read_verification_rules(document: &Value, attributes: &[String]) -> Result<VerificationRules, Vec<Fault>> {
    read_over(document, attributes, VerificationMembers::rules)
}

/// The attributes of tables.
struct TableAttributes<'a> {
    /// All names: those of the tables, and behind them those that only dependencies name. These are not published, and may lie between
    /// attributes that are.
    names: &'a [String],
    published: DatasetColumns<'a>,
}

/// Reads a request over tables with these attributes.
fn read_over<T>(
    document: &Value,
    attributes: &[String],
    check: impl FnOnce(&VerificationMembers, &TableAttributes<'_>, &mut FaultList) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    let mut names = attributes.to_vec();
    for name in named_by_dependencies(document) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let facts: Vec<ColumnFacts> = names.iter().map(|name| ColumnFacts::unseen(name)).collect();
    let published = DatasetColumns::new(&facts[..attributes.len()], ColumnOwner::Tables);
    let tables = TableAttributes { names: &names, published };
    VerificationMembers::read_document(
        document,
        &DatasetColumns::new(&facts, ColumnOwner::Tables),
        |members, faults| check(&members, &tables, faults),
    )
}

impl VerificationMembers {
    fn subject(&self, faults: &mut FaultList) -> Option<VerificationSubject> {
        let names_release = self.release.value.is_some() || self.release.is_faulty;
        let original = self.original.value.as_ref().and_then(|original| original.file.submitted(faults));
        match &self.tables.value {
            Some(_) if names_release => {
                let detail = "state tables or a release, not both";
                faults.push(Fault::new(self.at("release"), Kind::BadColumns, detail));
                None
            }
            Some(tables) if !tables.is_empty() => {
                let tables: Vec<Option<SubmittedTable>> =
                    tables.items.iter().map(|table| table.value.as_ref()?.submitted(faults)).collect();
                let tables: Vec<SubmittedTable> = tables.into_iter().collect::<Option<_>>()?;
                check_names(&tables, original.as_ref(), faults);
                Some(VerificationSubject::Tables(tables, original))
            }
            None if names_release => {
                if self.original.value.is_some() || self.original.is_faulty {
                    let detail =
                        "a release is verified from its own parts; an original goes with tables of the request";
                    faults.push(Fault::new(self.at("original"), Kind::BadColumns, detail));
                }
                self.release.value.map(|id| VerificationSubject::Release(id.0))
            }
            Some(_) | None => {
                if !self.tables.is_faulty {
                    faults.range(self.at("tables"), TABLES);
                }
                None
            }
        }
    }

    fn rules(&self, tables: &TableAttributes<'_>, faults: &mut FaultList) -> Option<VerificationRules> {
        let names = tables.names;
        if names.len() > MAX_ATTRIBUTES {
            let detail = "the tables and the dependencies together have too many attributes";
            let fault = Fault::new(self.at("tables"), Kind::TooManyAttributes, detail);
            faults.push(fault.with("limit", MAX_ATTRIBUTES).with("found", names.len()));
            return None;
        }
        let taxonomies = self.declared_taxonomies(&tables.published, faults);
        let documents = self.rules.value.as_ref().map_or(&[][..], |rules| &rules.0);
        if documents.is_empty() && !self.rules.is_faulty {
            let detail = "without a rule there is nothing to verify: state one, such as \"age, zip -> disease\"";
            faults.push(Fault::new(self.at("rules"), Kind::VacuousGuarantee, detail));
        }
        let default = self.default_guarantee.clone().map(|guarantee| guarantee.0);
        let mut reader = RuleReader::new(&tables.published, &default, faults);
        let rules = reader.read_all::<VerificationRuleMembers>(documents, &self.at("rules"));
        let thresholds = reader.thresholds;
        let rules: Vec<SubmittedRule> = rules.iter().flat_map(submitted).collect();
        check_distances(&rules, &taxonomies, names, faults);
        let mut attacks = Vec::new();
        for attack in self.attacks.value.iter().flat_map(Array::values).map(|attack| attack.0) {
            if !attacks.contains(&attack) {
                attacks.push(attack);
            }
        }
        let dependencies = self.functional_dependencies.value.iter().flat_map(|declared| &declared.0);
        Some(VerificationRules {
            thresholds: declared_thresholds(&rules, &thresholds),
            rules,
            taxonomies,
            dependencies: dependencies.map(|one| (set(&one.determinant), set(&one.dependent))).collect(),
            attacks,
            names: names.to_vec(),
        })
    }

    fn declared_taxonomies(&self, published: &DatasetColumns<'_>, faults: &mut FaultList) -> Vec<DeclaredTaxonomy> {
        let entries = self.taxonomies.value.iter().flat_map(|taxonomies| &taxonomies.0);
        let declared = entries.filter_map(|entry| {
            let attribute = Attr::from(published.resolve(&entry.name, &entry.pointer, faults)?);
            Some(DeclaredTaxonomy { attribute, tree: entry.value.value.clone()? })
        });
        declared.collect()
    }
}

/// Reports rules that go by a hierarchical distance of an attribute without a taxonomy.
fn check_distances(rules: &[SubmittedRule], taxonomies: &[DeclaredTaxonomy], names: &[String], faults: &mut FaultList) {
    let with_taxonomy: AttrSet = taxonomies.iter().map(|declared| declared.attribute).collect();
    for rule in rules {
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

/// Every name of an attribute in the dependencies.
fn named_by_dependencies(document: &Value) -> Vec<String> {
    let dependencies = document["functional_dependencies"].as_array().into_iter().flatten();
    let sides = dependencies.flat_map(|dependency| [&dependency["determinant"], &dependency["dependent"]]);
    sides.filter_map(Value::as_array).flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

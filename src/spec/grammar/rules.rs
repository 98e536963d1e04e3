//! Rules, in shorthand or as objects, resolved to columns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::attributes::DatasetColumns;
use super::document::{
    Array, ColumnName, Document, Given, Member, MemberContext, Names, NamesInOrder, SchemaMap, document, reference,
};
use super::guarantee::{RuleGuarantee, ThresholdsByDigest, guarantee_to_json};
use super::reader::{FaultList, child};
use super::shorthand::{self, MAX_NAMES};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, ThresholdsDigest};

/// The most rules of a document.
pub(in crate::spec) const MAX_RULES: usize = 10_000;

/// The most values with thresholds, counted for every attribute of every rule: each of them writes all thresholds.
const MAX_THRESHOLDS: usize = 100_000;

/// The most different thresholds on the values of one attribute: each is stored for all its values.
const MAX_DIFFERENT: usize = 16;

/// A rule over columns of the dataset.
#[derive(Clone, Debug)]
pub(in crate::spec) struct DraftRule {
    pub(in crate::spec) pointer: String,
    pub(in crate::spec) known: BTreeSet<usize>,
    pub(in crate::spec) sensitive: BTreeSet<usize>,
    /// Whether only the combination of `sensitive`, which are several, is protected.
    pub(in crate::spec) joint: bool,
    pub(in crate::spec) guarantee: Guarantee,
}

impl DraftRule {
    /// Its position in the document.
    fn index(&self) -> Option<usize> {
        self.pointer.rsplit_once('/')?.1.parse().ok()
    }
}

/// The member `rules`: the rules as the document has them, and as they were read once the default guarantee is known.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct RuleList {
    pub(in crate::spec) documents: Vec<Value>,
    pub(in crate::spec) rules: Vec<DraftRule>,
    /// The thresholds that guarantees name.
    pub(in crate::spec) thresholds: ThresholdsByDigest,
}

impl Member for RuleList {
    fn allowed() -> String {
        "an array of rules".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(documents) = value.as_array() else { return context.refuse() };
        Some(Self { documents: documents.clone(), ..Self::default() })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let names = |side: &BTreeSet<usize>| Names::<0>::from(side.clone()).write(columns);
        let rule = |rule: &DraftRule| {
            let protected = if rule.joint { "sensitive_combination" } else { "sensitive" };
            json!({
                "quasi_identifiers": names(&rule.known),
                protected: names(&rule.sensitive),
                "guarantee": guarantee_to_json(&rule.guarantee, &self.thresholds),
            })
        };
        let mut read = self.rules.iter().peekable();
        // one that cannot be read stays as it is: patches count on the places of the others
        let written = |(index, document): (usize, &Value)| {
            read.next_if(|next| next.index() == Some(index)).map_or_else(|| document.clone(), rule)
        };
        self.documents.iter().enumerate().map(written).collect()
    }

    fn schema() -> Value {
        json!({"type": "array", "items": reference("Rule"), "maxItems": MAX_RULES})
    }

    fn define(schemas: &mut SchemaMap) {
        RuleMembers::define(schemas);
        schemas.insert("Rule".to_owned(), rule_schema::<RuleMembers>());
    }
}

/// The schema of a rule, in shorthand or as an object.
pub(in crate::spec) fn rule_schema<D: RuleDocument>() -> Value {
    json!({
        "oneOf": [{"type": "string", "minLength": 1}, D::schema()],
        "description": "`\"a, b -> c\"`: an adversary who knows a and b of a person must not learn c; or the same as an object.",
    })
}

document! {
    /// A rule with its sides apart. State either `sensitive` or `sensitive_combination`.
    RuleMembers as "RuleObject" {
        include sides: RuleSideMembers,
        optional guarantee: RuleGuarantee,
    }
}

document! {
    /// The sides of a rule.
    RuleSideMembers as "RuleSides" {
        /// What may be known.
        required quasi_identifiers: MentionedNames,
        /// What stays protected, each by itself.
        optional sensitive: MentionedNames<1>,
        /// Attributes of which only the joint value is protected.
        optional sensitive_combination: MentionedNames<1>,
    }
}

/// A rule as an object.
pub(in crate::spec) trait RuleDocument: Document {
    fn into_parts(self) -> (RuleSideMembers, Given<RuleGuarantee>);
}

impl RuleDocument for RuleMembers {
    fn into_parts(self) -> (RuleSideMembers, Given<RuleGuarantee>) {
        (self.sides, self.guarantee)
    }
}

/// Names of attributes, which are looked up once both sides of the rule are known.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct MentionedNames<const MIN: usize = 0>(Vec<NameMention>);

impl<const MIN: usize> Member for MentionedNames<MIN> {
    fn allowed() -> String {
        NamesInOrder::allowed()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(items) = value.as_array() else { return context.refuse() };
        let mention = |(index, item): (usize, &Value)| {
            let mut item_context = context.item(index, ColumnName::allowed());
            let name = String::read(item, &mut item_context)?;
            Some(NameMention { name, pointer: item_context.pointer, position: None })
        };
        Some(Self(items.iter().enumerate().filter_map(mention).collect()))
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.iter().map(|mention| mention.name.as_str()).collect()
    }

    fn schema() -> Value {
        Array::<String, MIN>::schema()
    }
}

/// The guarantee of rules that state none.
#[derive(Clone, Copy)]
enum DefaultGuarantee {
    Absent,
    /// Given with a fault, which is reported once and not again by every rule.
    Faulty,
    Given(Guarantee),
}

/// Reads rules and collects the columns that they name.
pub(in crate::spec) struct RuleReader<'r, 'a> {
    columns: &'r DatasetColumns<'a>,
    default: DefaultGuarantee,
    faults: &'r mut FaultList,
    /// Columns that some rule names, also a faulty one: they count as accounted for, so that one fault is not reported twice.
    pub(in crate::spec) mentioned: BTreeSet<usize>,
    /// Columns that a rule which cannot be read seems to name.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    /// The thresholds that guarantees name.
    pub(in crate::spec) thresholds: ThresholdsByDigest,
}

/// A name in a rule, with what a fault needs to point at it.
#[derive(Clone, Debug)]
struct NameMention {
    name: String,
    pointer: String,
    position: Option<usize>,
}

impl<'r, 'a> RuleReader<'r, 'a> {
    /// A reader of rules, of which those without a guarantee have the default one.
    pub(in crate::spec) fn new(
        columns: &'r DatasetColumns<'a>,
        default: &Given<RuleGuarantee>,
        faults: &'r mut FaultList,
    ) -> Self {
        let (default, thresholds) = match &default.value {
            Some(RuleGuarantee { guarantee, thresholds }) => (DefaultGuarantee::Given(*guarantee), thresholds.clone()),
            None if default.is_faulty => (DefaultGuarantee::Faulty, ThresholdsByDigest::new()),
            None => (DefaultGuarantee::Absent, ThresholdsByDigest::new()),
        };
        Self { columns, default, faults, mentioned: BTreeSet::new(), guessed: BTreeSet::new(), thresholds }
    }

    /// Reads `rules`.
    pub(in crate::spec) fn read_all<D: RuleDocument>(&mut self, rules: &[Value], pointer: &str) -> Vec<DraftRule> {
        if rules.len() > MAX_RULES {
            self.faults.range(pointer, "an array of at most 10000 rules");
            self.guessed.extend(0..self.columns.facts.len());
            return Vec::new();
        }
        let read = |(index, rule): (usize, &Value)| match rule {
            Value::String(text) => self.read_shorthand(text, child(pointer, &index.to_string())),
            _ => self.read_object::<D>(rule, child(pointer, &index.to_string())),
        };
        let read = rules.iter().enumerate().filter_map(read).collect();
        self.within_volume(read)
    }

    /// The rules; none when they put too many thresholds on values.
    fn within_volume(&mut self, rules: Vec<DraftRule>) -> Vec<DraftRule> {
        let (mut values, mut different) = (0_usize, BTreeMap::<usize, BTreeSet<ThresholdsDigest>>::new());
        for rule in &rules {
            let Guarantee::Thresholds { digest, .. } = rule.guarantee else { continue };
            let of_values =
                self.thresholds.get(&digest).and_then(|named| named.declared().of_values()).map_or(0, BTreeMap::len);
            values = values.saturating_add(of_values.saturating_mul(rule.sensitive.len()));
            let most = rule.sensitive.iter().map(|column| {
                let of_column = different.entry(*column).or_default();
                of_column.insert(digest);
                of_column.len()
            });
            let allowed = if most.max().unwrap_or(0) > MAX_DIFFERENT {
                format!("at most {MAX_DIFFERENT} different thresholds for one attribute")
            } else if values > MAX_THRESHOLDS {
                format!(
                    "thresholds of at most {MAX_THRESHOLDS} values, counted for each attribute of each rule that they are put on"
                )
            } else {
                continue;
            };
            self.faults.range(rule.pointer.as_str(), &allowed);
            return Vec::new();
        }
        rules
    }

    fn read_shorthand(&mut self, text: &str, pointer: String) -> Option<DraftRule> {
        let rule = match shorthand::parse(text) {
            Ok(rule) => rule,
            Err(error) => {
                let fault = Fault::new(pointer, Kind::RuleMalformed, error.detail);
                self.faults.push(fault.with("position", error.position));
                self.note_names_in(text);
                return None;
            }
        };
        let (known, sensitive) = (written(&rule.known, &pointer), written(&rule.sensitive, &pointer));
        let sides = self.resolve(&known, &sensitive, &pointer);
        let combined = rule.combination && rule.sensitive.len() > 1;
        let guarantee = self.default_guarantee(&pointer);
        let guarantee = self.combines(guarantee, combined, &pointer);
        let RuleSides { known, sensitive } = sides?;
        Some(DraftRule { pointer, known, sensitive, joint: combined, guarantee: guarantee? })
    }

    fn read_object<D: RuleDocument>(&mut self, rule: &Value, pointer: String) -> Option<DraftRule> {
        let mut context = MemberContext {
            pointer: pointer.clone(),
            allowed: "a rule such as \"a, b -> c\", or an object".to_owned(),
            columns: self.columns,
            faults: self.faults,
        };
        if !rule.is_object() {
            return context.refuse();
        }
        let (sides, given) = D::read(rule, &mut context)?.into_parts();
        let (each, joint) = (sides.sensitive, sides.sensitive_combination);
        let unreadable = sides.quasi_identifiers.is_faulty || each.is_faulty || joint.is_faulty;
        let combined = joint.value.as_ref().is_some_and(|names| names.0.len() > 1);
        let mut sound = !unreadable;
        if each.value.is_some() && joint.value.is_some() {
            sound = false;
            let detail = "state sensitive or sensitive_combination, not both";
            self.faults.push(Fault::new(pointer.as_str(), Kind::RuleMalformed, detail));
        }
        let sensitive: Vec<NameMention> =
            [each.value, joint.value].into_iter().flatten().flat_map(|names| names.0).collect();
        if sensitive.is_empty() && !unreadable {
            sound = false;
            let detail = "the sensitive side is empty: name what must stay protected";
            self.faults.push(Fault::new(pointer.as_str(), Kind::RuleMalformed, detail));
        }
        let known = sides.quasi_identifiers.value.unwrap_or_default().0;
        let sides = self.resolve(&known, &sensitive, &pointer);
        let guarantee = match given.value {
            Some(RuleGuarantee { guarantee, thresholds }) => {
                self.thresholds.extend(thresholds);
                Some(guarantee)
            }
            None if given.is_faulty => None,
            None => self.default_guarantee(&pointer),
        };
        let guarantee = self.combines(guarantee, combined, &pointer);
        let RuleSides { known, sensitive } = sides.filter(|_| sound)?;
        Some(DraftRule { pointer, known, sensitive, joint: combined, guarantee: guarantee? })
    }

    fn default_guarantee(&mut self, pointer: &str) -> Option<Guarantee> {
        match self.default {
            DefaultGuarantee::Given(guarantee) => Some(guarantee),
            DefaultGuarantee::Faulty => None,
            DefaultGuarantee::Absent => {
                self.faults.range(pointer, "a rule with a guarantee, or a default_guarantee for all");
                None
            }
        }
    }

    /// The guarantee, unless the rule protects a combination that the guarantee does not cover.
    fn combines(&mut self, guarantee: Option<Guarantee>, combined: bool, pointer: &str) -> Option<Guarantee> {
        let guarantee = guarantee?;
        if combined && !guarantee.covers_combinations() {
            let detail = format!("{} bounds single attributes, not combinations", guarantee.as_str());
            self.faults.unsupported(pointer, detail);
            return None;
        }
        Some(guarantee)
    }

    /// The columns of both sides, when there is nothing wrong with them.
    fn resolve(&mut self, known: &[NameMention], sensitive: &[NameMention], pointer: &str) -> Option<RuleSides> {
        let mut sides = RuleSides::default();
        let mut seen: HashMap<&str, bool> = HashMap::new();
        let mut malformed = None;
        let mut sound = true;
        let both = known.iter().map(|name| (name, false)).chain(sensitive.iter().map(|name| (name, true)));
        for (mention, protected) in both {
            if let Some(other) = seen.insert(mention.name.as_str(), protected) {
                let how = if other == protected { "is named twice" } else { "stands on both sides" };
                malformed.get_or_insert((format!("{} {how}", mention.name), mention.position));
                continue;
            }
            match self.columns.resolve(&mention.name, &mention.pointer, self.faults) {
                Some(column) if protected => drop(sides.sensitive.insert(column)),
                Some(column) => drop(sides.known.insert(column)),
                None => sound = false,
            }
        }
        self.mentioned.extend(sides.known.iter().chain(&sides.sensitive));
        if let Some((detail, position)) = malformed {
            sound = false;
            let fault = Fault::new(pointer, Kind::RuleMalformed, detail);
            self.faults.push(position.into_iter().fold(fault, |fault, at| fault.with("position", at)));
        }
        sound.then_some(sides)
    }

    /// Collects what looks like an attribute in a rule that cannot be read.
    fn note_names_in(&mut self, text: &str) {
        let chunks = text.split("->").flat_map(|side| side.split([',', '&', '(', ')', '"']));
        let words = chunks.flat_map(|chunk| chunk.split_whitespace().chain([chunk.trim()]));
        let mut words = words.filter(|word| !word.is_empty());
        let named = words.by_ref().take(2 * MAX_NAMES).filter_map(|word| self.columns.find(word));
        self.guessed.extend(named);
        if words.next().is_some() {
            self.guessed.extend(0..self.columns.facts.len());
        }
    }
}

/// The columns of a rule.
#[derive(Default)]
struct RuleSides {
    known: BTreeSet<usize>,
    sensitive: BTreeSet<usize>,
}

/// The names of one side of a shorthand.
fn written(names: &[shorthand::RuleName], pointer: &str) -> Vec<NameMention> {
    let mention = |name: &shorthand::RuleName| NameMention {
        name: name.text.clone(),
        pointer: pointer.to_owned(),
        position: Some(name.position),
    };
    names.iter().map(mention).collect()
}

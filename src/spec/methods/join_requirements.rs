//! Requirements on joins of releases, and exclusions, as the method `sequential` states them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::problem::{Fault, Kind};
use crate::publication::{
    Conditions, Exclusion, JoinAttribute, NEW_RELEASE, ROW_KEY, Ratio, SensitiveValue, XyMeasure, XyRequirement,
    YElement, reference_parts, reference_text,
};
use crate::spec::grammar::attributes::DatasetColumns;
use crate::spec::grammar::document::{Array, Document, Given, Int, Member, PositiveFraction, document, scalar, union};
use crate::spec::grammar::reader::{FaultList, child, column_value};

/// The most values of a requirement.
const MAX_VALUES: usize = 1_000;

const REFERENCE: &str = "\"new.ATTRIBUTE\", or \"RELEASE.ATTRIBUTE\" with a release of against";

const Y_ELEMENT: &str = "\"new.ATTRIBUTE\", \"new.#key\", or the same of a release of against";

const SIDE: &str = "an object of attributes of one release, each with a value or a node of its taxonomy";

const VALUE: &str = "a value as text, an integer, true, false or null";

document! {
    /// What every group of tuples that agree on `x` keeps. Attributes are named `new.ATTRIBUTE` or `RELEASE.ATTRIBUTE`, by the dataset's
    /// names.
    RequirementMembers as "JoinRequirement" {
        /// What makes groups.
        required x: Array<AttributeReference, 1> => &format!("an array of {REFERENCE}"),
        /// What is counted in them; `new.#key` or `RELEASE.#key` are the rows of a release.
        required y: Array<ElementReference, 1> => &format!("an array of {Y_ELEMENT}"),
        required measure: MeasureMembers,
    }
}

union! {
    /// How groups are measured.
    MeasureMembers as "XyMeasure" {
        Anonymity(AnonymityMembers) = "xy_anonymity",
        Linkability(LinkabilityMembers) = "xy_linkability",
    }
}

document! {
    /// Every group has at least this many different values on `y`.
    AnonymityMembers as "XyAnonymity" tagged "xy_anonymity" {
        /// How many.
        required k: Int<1, { u64::MAX }, 2> => "an integer of at least 2",
    }
}

fn values_on_y() -> String {
    format!("an array of 1 to {MAX_VALUES} values, where y has attributes, or null")
}

document! {
    /// No value on `y` takes more than a share of the tuples of any group.
    LinkabilityMembers as "XyLinkability" tagged "xy_linkability" {
        required h: PositiveFraction => "a fraction above 0 and below 1, such as \"0.9\"",
        /// The values that are held to it, or nodes of taxonomies; all values when nothing is said.
        optional sensitive_values: Array<ValueOnY, 1, MAX_VALUES> => &values_on_y(),
    }
}

document! {
    /// A row of one release and a row of another that are never the same person's.
    ExclusionMembers as "JoinExclusion" {
        required left: ConditionsMember,
        required right: ConditionsMember,
    }
}

/// The name of an attribute of a release.
#[derive(Clone, Debug)]
pub(in crate::spec) struct AttributeReference(String);

scalar! {
    AttributeReference: REFERENCE, |value| value.as_str().map(|text| Self(text.to_owned())), |text| text.0.as_str().into(),
    {"type": "string"}
}

/// The name of an attribute of a release, or of its rows.
#[derive(Clone, Debug)]
pub(in crate::spec) struct ElementReference(String);

scalar! {
    ElementReference: Y_ELEMENT, |value| value.as_str().map(|text| Self(text.to_owned())), |text| text.0.as_str().into(),
    {"type": "string"}
}

/// A value on Y; `None` when it is no value. The caller, who knows Y, reports it.
#[derive(Clone, Debug)]
pub(in crate::spec) struct ValueOnY(Option<SensitiveValue>);

scalar! {
    ValueOnY as "SensitiveValue": VALUE,
    |value| Some(Self(match value {
        Value::Array(parts) => parts.iter().map(column_value).collect(),
        single => column_value(single).map(|value| vec![value]),
    })),
    |value| json!(value.0),
    {
        "description": "A value on `y`: of one attribute by itself, of several as an array in their order.",
        "anyOf": [
            {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "null"},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "null"}]}},
        ],
    }
}

/// Attributes of a release with values; the caller reads them once the releases are known.
#[derive(Clone, Debug)]
pub(in crate::spec) struct ConditionsMember(Map<String, Value>);

scalar! {
    ConditionsMember as "JoinConditions": SIDE,
    |value| value.as_object().filter(|side| !side.is_empty()).cloned().map(Self),
    |side| side.0.clone().into(),
    {
        "type": "object",
        "description": "Attributes of one release, as in `x`, each with a value or a node of its taxonomy: it applies where all that is \
            published is covered by these.",
        "minProperties": 1,
        "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "null"}]},
    }
}

/// What references to attributes of releases are resolved with.
pub(in crate::spec) struct AttributeNames<'a> {
    pub(in crate::spec) columns: &'a DatasetColumns<'a>,
    pub(in crate::spec) against: Vec<String>,
    pub(in crate::spec) published: &'a dyn Fn(usize) -> bool,
}

impl AttributeNames<'_> {
    /// An attribute of a release, which is a column of the dataset: what only an earlier release has cannot be asked of.
    fn attribute(&self, text: &str, allowed: &str, pointer: &str, faults: &mut FaultList) -> Option<JoinAttribute> {
        let Some((release, name)) = reference_parts(&self.against, text) else {
            let detail = self.unknown_release(text);
            faults.push(Fault::new(pointer, Kind::ParameterRange, detail).with("allowed", allowed));
            return None;
        };
        if name == ROW_KEY {
            let detail =
                format!("{ROW_KEY} stands for the rows of a release, which y counts; here an attribute is needed");
            faults.push(Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", name));
            return None;
        }
        let column = self.columns.resolve(name, pointer, faults)?;
        if release == 0 && !(self.published)(column) {
            let detail = format!("the new release does not publish {name}");
            faults.push(Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", name));
            return None;
        }
        Some(JoinAttribute { release, attribute: name.to_owned() })
    }

    /// What is wrong with a reference to no release of the join.
    fn unknown_release(&self, text: &str) -> String {
        let is_attribute = text == ROW_KEY || self.columns.find(text).is_some();
        match text.split_once('.').filter(|_| !is_attribute) {
            None => format!(
                "{text} names no release: write {NEW_RELEASE}.{text} for the new release, or RELEASE.{text} with an id of \
                 /method/against"
            ),
            Some((release, name)) => format!(
                "{release} is no release of /method/against: name it there, or write {NEW_RELEASE}.{name} for the new release"
            ),
        }
    }

    fn y_element(&self, text: &str, pointer: &str, faults: &mut FaultList) -> Option<YElement> {
        match reference_parts(&self.against, text) {
            Some((release, ROW_KEY)) => Some(YElement::Key(release)),
            _ => self.attribute(text, Y_ELEMENT, pointer, faults).map(YElement::Attribute),
        }
    }

    /// The conditions on a row of one release; `None` after faults.
    pub(in crate::spec) fn conditions(
        &self,
        side: Option<&ConditionsMember>,
        pointer: &str,
        faults: &mut FaultList,
    ) -> Option<Conditions> {
        let before = faults.len();
        let (mut within, mut releases) = (Vec::new(), BTreeSet::new());
        for (text, value) in &side?.0 {
            let pointer = child(pointer, text);
            let reference = self.attribute(text, REFERENCE, &pointer, faults);
            let label = column_value(value);
            if label.is_none() {
                faults.range(pointer, VALUE);
            }
            if let (Some(JoinAttribute { release, attribute }), Some(label)) = (reference, label) {
                releases.insert(release);
                within.push((attribute, label));
            }
        }
        if faults.len() == before && releases.len() > 1 {
            faults.range(pointer, SIDE);
        }
        let release = releases.into_iter().next().filter(|_| faults.len() == before)?;
        Some(Conditions { release, within })
    }

    fn write(&self, reference: &JoinAttribute) -> String {
        reference_text(&self.against, reference.release, &reference.attribute)
    }

    pub(in crate::spec) fn write_requirements(&self, requirements: &[XyRequirement]) -> Vec<Value> {
        let element = |element: &YElement| match element {
            YElement::Attribute(reference) => self.write(reference),
            YElement::Key(release) => reference_text(&self.against, *release, ROW_KEY),
        };
        let requirement = |requirement: &XyRequirement| {
            json!({
                "x": requirement.x.iter().map(|reference| self.write(reference)).collect::<Vec<_>>(),
                "y": requirement.y.iter().map(element).collect::<Vec<_>>(),
                "measure": requirement.measure,
            })
        };
        requirements.iter().map(requirement).collect()
    }

    pub(in crate::spec) fn write_exclusions(&self, exclusions: &[Exclusion]) -> Vec<Value> {
        let side = |side: &Conditions| -> Map<String, Value> {
            let condition = |(name, label): &(String, Option<String>)| {
                (reference_text(&self.against, side.release, name), json!(label))
            };
            side.within.iter().map(condition).collect()
        };
        let exclusion = |exclusion: &Exclusion| json!({"left": side(&exclusion.left), "right": side(&exclusion.right)});
        exclusions.iter().map(exclusion).collect()
    }
}

impl RequirementMembers {
    /// The requirement; `None` after faults.
    pub(in crate::spec) fn resolve(
        &self,
        references: &AttributeNames<'_>,
        faults: &mut FaultList,
    ) -> Option<XyRequirement> {
        let x = self.each("x", &self.x, faults, |reference, pointer, faults| {
            references.attribute(&reference.0, REFERENCE, pointer, faults)
        });
        let y = self.each("y", &self.y, faults, |reference, pointer, faults| {
            references.y_element(&reference.0, pointer, faults)
        });
        // who knows a value knows it in every release
        let is_counted = |reference: &&JoinAttribute| {
            y.iter().any(|of| matches!(of, YElement::Attribute(of) if of.attribute == reference.attribute))
        };
        if let Some(both) = x.iter().find(is_counted) {
            let detail = format!("{} stands in x and in y", both.attribute);
            faults.push(Fault::new(self.pointer.as_str(), Kind::RuleMalformed, detail));
        }
        let attributes = y.iter().filter(|element| matches!(element, YElement::Attribute(_))).count();
        let measure = match self.measure.value.as_ref()? {
            MeasureMembers::Anonymity(members) => members.resolve(faults)?,
            MeasureMembers::Linkability(members) => members.resolve(attributes, faults)?,
        };
        Some(XyRequirement { pointer: self.pointer.clone(), of: 0, x, y, known_exactly: Vec::new(), measure })
    }

    /// Each different element of a list of references, of which there is one at least.
    fn each<R: Member, T: PartialEq>(
        &self,
        name: &str,
        list: &Given<Array<R, 1>>,
        faults: &mut FaultList,
        read: impl Fn(&R, &str, &mut FaultList) -> Option<T>,
    ) -> Vec<T> {
        let pointer = self.at(name);
        let mut found = Vec::new();
        let Some(list) = &list.value else { return found };
        if list.items.is_empty() {
            faults.range(pointer.as_str(), &format!("an array of {}", R::allowed()));
        }
        for (at, reference) in list.items.iter().enumerate() {
            let Some(reference) = &reference.value else { continue };
            let pointer = child(&pointer, &at.to_string());
            match read(reference, &pointer, faults) {
                Some(element) if found.contains(&element) => faults.range(pointer, "what is not in the array already"),
                element => found.extend(element),
            }
        }
        found
    }
}

impl AnonymityMembers {
    fn resolve(&self, faults: &mut FaultList) -> Option<XyMeasure> {
        let k = self.k.value?.0;
        if k == 1 {
            let detail = "every group has a value: ask for k of at least 2";
            faults.push(Fault::new(self.at("k"), Kind::VacuousGuarantee, detail));
        }
        Some(XyMeasure::Anonymity { k })
    }
}

impl LinkabilityMembers {
    fn resolve(&self, attributes: usize, faults: &mut FaultList) -> Option<XyMeasure> {
        if self.h.value.is_some_and(|h| h.0 >= Ratio::ONE) {
            let detail = "no value takes more than all of a group: ask for h below 1";
            faults.push(Fault::new(self.at("h"), Kind::VacuousGuarantee, detail));
        }
        let sensitive = self.sensitive_values.value.as_ref().map(|list| self.values(list, attributes, faults));
        Some(XyMeasure::Linkability { h: self.h.value?.0, sensitive })
    }

    /// Values on Y, each once: of one attribute by themselves, of several as arrays.
    fn values(
        &self,
        list: &Array<ValueOnY, 1, MAX_VALUES>,
        attributes: usize,
        faults: &mut FaultList,
    ) -> Vec<SensitiveValue> {
        let pointer = self.at("sensitive_values");
        let mut read = Vec::new();
        if list.is_empty() || attributes == 0 {
            faults.range(pointer, &values_on_y());
            return read;
        }
        for (at, ValueOnY(value)) in list.values().enumerate() {
            match value.clone().filter(|parts| parts.len() == attributes && !read.contains(parts)) {
                Some(parts) => read.push(parts),
                None => {
                    let allowed =
                        format!("{attributes} values on the attributes of y, in their order, not in the array already");
                    faults.range(child(&pointer, &at.to_string()), &allowed);
                }
            }
        }
        read
    }
}

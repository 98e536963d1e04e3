//! The method `sequential`.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publication::{
    Conditions, Exclusion, JoinAttribute, JoinSelection, ROW_KEY, Ratio, SensitiveValue, XyMeasure, XyRequirement,
    YElement, reference_parts, reference_text,
};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::general::GeneralMembers;
use crate::spec::grammar::reader::{FaultList, ObjectReader, child, integer};
use crate::spec::grammar::rules::{NAMES, columns_named};

/// The most earlier releases, requirements, exclusions, and values of one requirement.
const MAX_AGAINST: usize = 16;

const MAX_STATED: usize = 64;

const MAX_VALUES: usize = 1_000;

const RELEASE: &str = "the id of an earlier release, each once";

const REFERENCE: &str = "\"new.ATTRIBUTE\", or \"RELEASE.ATTRIBUTE\" with a release of against";

const TOLD: &str = "\"new.ATTRIBUTE\", \"new.#key\", or the same of a release of against";

const VALUE: &str = "a value as text, an integer, true, false or null";

/// What a step down is worth.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepGain {
    /// What it tells of the class.
    Information,
    /// The rows that it makes more exact.
    Distortion,
}

/// How the worth of a step is weighed against the privacy it costs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepScore {
    /// `gain / (loss + 1)`.
    #[default]
    PlusOne,
    /// `gain / loss`.
    Ratio,
}

/// A new release beside earlier ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SequentialSpec {
    /// The earlier releases, each once.
    pub against: Vec<Uuid>,
    /// What the release should stay good for telling.
    pub class: Option<Attr>,
    /// What steps are worth.
    pub gain: StepGain,
    /// How that is weighed.
    pub score: StepScore,
    /// What must hold on the join. Attributes are named as in the dataset.
    pub requirements: Vec<XyRequirement>,
    /// What nobody is.
    pub exclusions: Vec<Exclusion>,
    /// On which joins requirements are looked at.
    pub subsets: JoinSelection,
    /// The attributes of the new release that stand in some X: they are generalized as far as requirements ask.
    pub generalized: AttrSet,
}

/// What was read; what could not be is left out.
pub(in crate::spec) struct DraftSequential {
    publish: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    against: Vec<Uuid>,
    class: Option<usize>,
    gain: StepGain,
    score: StepScore,
    requirements: Vec<XyRequirement>,
    exclusions: Vec<Exclusion>,
    subsets: JoinSelection,
}

pub(in crate::spec) fn read(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftSequential {
    let before = faults.len();
    let publish = members.list("publish", NAMES, faults).unwrap_or_default();
    let publish = columns_named(publish, &members.at("publish"), columns, faults);
    let against = against(&mut members, faults);
    let class = members.take("class").and_then(|name| match name.as_str() {
        Some(name) => columns.resolve(name, &members.at("class"), faults),
        None => {
            faults.range(members.at("class"), "the name of an attribute, or null");
            None
        }
    });
    let gain = match members.choice("gain", &["information", "distortion"], faults) {
        Some("information") => Some(StepGain::Information),
        Some(_) => Some(StepGain::Distortion),
        None => None,
    };
    let score = match members.choice("score", &["plus_one", "ratio"], faults) {
        Some("ratio") => StepScore::Ratio,
        _ => StepScore::PlusOne,
    };
    let subsets = match members.choice("subsets", &["default", "all"], faults) {
        Some("all") => JoinSelection::All,
        _ => JoinSelection::Default,
    };
    let published = |column: usize| publish.contains(&column) || (stated[column].publish && !stated[column].drop);
    let references =
        AttributeNames { columns, against: against.iter().map(Uuid::to_string).collect(), published: &published };
    let requirements = requirements(&mut members, &references, faults);
    let exclusions = exclusions(&mut members, &references, faults);
    let guessed = if faults.len() > before { (0..columns.facts.len()).collect() } else { BTreeSet::new() };
    if let Some(class) = class.filter(|class| !published(*class)) {
        let detail = format!(
            "{} is not published: what nobody sees cannot be what the release is good for",
            columns.name(class)
        );
        faults.push(Fault::new(members.at("class"), Kind::BadColumns, detail));
    }
    if gain == Some(StepGain::Information) && class.is_none() {
        faults.range(members.at("class"), "the name of an attribute, on which information is gained");
    }
    let default = if class.is_some() { StepGain::Information } else { StepGain::Distortion };
    let draft = DraftSequential {
        publish,
        guessed,
        against,
        class,
        gain: gain.unwrap_or(default),
        score,
        requirements,
        exclusions,
        subsets,
    };
    draft.check_x(columns, &members.at("requirements"), faults);
    members.finish(faults);
    draft
}

fn against(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> Vec<Uuid> {
    let pointer = members.at("against");
    let list = members.list("against", "an array of ids of earlier releases", faults).unwrap_or_default();
    if list.len() > MAX_AGAINST {
        faults.range(pointer, &format!("at most {MAX_AGAINST} releases"));
        return Vec::new();
    }
    let mut read: Vec<Uuid> = Vec::new();
    for (at, value) in list.iter().enumerate() {
        // other spellings of an id, such as braces, are not ids of this service
        let id = value.as_str().filter(|text| text.len() == 36).and_then(|text| Uuid::try_parse(text).ok());
        match id.filter(|id| !read.contains(id)) {
            Some(id) => read.push(id),
            None => faults.range(child(&pointer, &at.to_string()), RELEASE),
        }
    }
    read
}

/// What references are understood by.
struct AttributeNames<'a> {
    columns: &'a DatasetColumns<'a>,
    against: Vec<String>,
    published: &'a dyn Fn(usize) -> bool,
}

impl AttributeNames<'_> {
    /// An attribute of a release, which is a column of the dataset: what only an earlier release has cannot be asked of.
    fn attribute(&self, text: &str, allowed: &str, pointer: &str, faults: &mut FaultList) -> Option<JoinAttribute> {
        let Some((release, name)) = reference_parts(&self.against, text) else {
            faults.range(pointer, allowed);
            return None;
        };
        let column = self.columns.resolve(name, pointer, faults)?;
        if release == 0 && !(self.published)(column) {
            let detail = format!("the new release does not publish {name}");
            faults.push(Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", name));
            return None;
        }
        Some(JoinAttribute { release, attribute: name.to_owned() })
    }

    fn told(&self, text: &str, pointer: &str, faults: &mut FaultList) -> Option<YElement> {
        match reference_parts(&self.against, text) {
            Some((release, ROW_KEY)) => Some(YElement::Key(release)),
            _ => self.attribute(text, TOLD, pointer, faults).map(YElement::Attribute),
        }
    }
}

/// Each different element of a list of references.
fn each<T: PartialEq>(
    members: &mut ObjectReader<'_>,
    name: &'static str,
    allowed: &str,
    faults: &mut FaultList,
    mut read: impl FnMut(&str, &str, &mut FaultList) -> Option<T>,
) -> Vec<T> {
    let pointer = members.at(name);
    let list = members.list(name, &format!("an array of {allowed}"), faults);
    if list.is_none_or(<[Value]>::is_empty) {
        faults.range(pointer.as_str(), &format!("an array of {allowed}"));
    }
    let mut found = Vec::new();
    for (at, value) in list.unwrap_or_default().iter().enumerate() {
        let pointer = child(&pointer, &at.to_string());
        match value.as_str() {
            None => faults.range(pointer, allowed),
            Some(text) => match read(text, &pointer, faults) {
                Some(element) if found.contains(&element) => {
                    faults.range(pointer, "what is not in the array already");
                }
                element => found.extend(element),
            },
        }
    }
    found
}

fn requirements(
    members: &mut ObjectReader<'_>,
    references: &AttributeNames<'_>,
    faults: &mut FaultList,
) -> Vec<XyRequirement> {
    let pointer = members.at("requirements");
    let before = faults.len();
    let list = members.list("requirements", "an array of requirements", faults).unwrap_or_default();
    if list.is_empty() && faults.len() == before {
        let detail = "a release that keeps nothing protects nobody: ask for a requirement, such as xy_anonymity";
        faults.push(Fault::new(pointer.as_str(), Kind::VacuousGuarantee, detail));
    }
    if list.len() > MAX_STATED {
        faults.range(pointer, &format!("at most {MAX_STATED} requirements"));
        return Vec::new();
    }
    let mut read = Vec::new();
    for (at, value) in list.iter().enumerate() {
        read.extend(requirement(value, &child(&pointer, &at.to_string()), references, faults));
    }
    read
}

fn requirement(
    value: &Value,
    pointer: &str,
    references: &AttributeNames<'_>,
    faults: &mut FaultList,
) -> Option<XyRequirement> {
    let mut members = ObjectReader::open(value, pointer, faults)?;
    let before = faults.len();
    let x = each(&mut members, "x", REFERENCE, faults, |text, pointer, faults| {
        references.attribute(text, REFERENCE, pointer, faults)
    });
    let y = each(&mut members, "y", TOLD, faults, |text, pointer, faults| references.told(text, pointer, faults));
    if let Some(both) = x.iter().find(|reference| y.contains(&YElement::Attribute((*reference).clone()))) {
        let detail = format!("{} stands in x and in y", both.attribute);
        faults.push(Fault::new(pointer, Kind::RuleMalformed, detail));
    }
    let attributes = y.iter().filter(|told| matches!(told, YElement::Attribute(_))).count();
    let measure = match members.take("measure") {
        Some(value) => measure(value, &members.at("measure"), attributes, faults),
        None => {
            faults.range(members.at("measure"), "an object with a type");
            None
        }
    };
    members.finish(faults);
    let measure = measure.filter(|_| faults.len() == before)?;
    Some(XyRequirement { pointer: pointer.to_owned(), of: 0, x, y, measure })
}

fn measure(value: &Value, pointer: &str, attributes: usize, faults: &mut FaultList) -> Option<XyMeasure> {
    const K: &str = "an integer of at least 2";
    const H: &str = "a fraction above 0 and below 1, such as \"0.9\"";
    let mut members = ObjectReader::open(value, pointer, faults)?;
    let kind = members.take("type").map(Value::as_str);
    let read = match kind {
        Some(Some("xy_anonymity")) => {
            let stated = members.take("k").is_some();
            let k = members.integer("k", 1..=i128::from(u64::MAX), K, faults).and_then(|k| u64::try_from(k).ok());
            match k {
                None if !stated => faults.range(members.at("k"), K),
                Some(1) => {
                    let detail = "every group has a value: ask for k of at least 2";
                    faults.push(Fault::new(members.at("k"), Kind::VacuousGuarantee, detail));
                }
                _ => {}
            }
            k.filter(|k| *k > 1).map(|k| XyMeasure::Anonymity { k })
        }
        Some(Some("xy_linkability")) => {
            let h: Option<Ratio> = members.take("h").and_then(|value| match value {
                Value::String(text) => text.parse().ok(),
                other => integer(other).and_then(|whole| Ratio::new(u64::try_from(whole).ok()?, 1).ok()),
            });
            let h = h.filter(|h| h.numerator() > 0);
            match h {
                None => faults.range(members.at("h"), H),
                Some(h) if h >= Ratio::ONE => {
                    let detail = "no value takes more than all of a group: ask for h below 1";
                    faults.push(Fault::new(members.at("h"), Kind::VacuousGuarantee, detail));
                }
                Some(_) => {}
            }
            let before = faults.len();
            let sensitive = sensitive_values(&mut members, attributes, faults);
            h.filter(|h| *h < Ratio::ONE && faults.len() == before).map(|h| XyMeasure::Linkability { h, sensitive })
        }
        _ => {
            faults.range(members.at("type"), "one of xy_anonymity, xy_linkability");
            return None;
        }
    };
    members.finish(faults);
    read
}

/// Values on Y: of one attribute by themselves, of several as arrays.
fn sensitive_values(
    members: &mut ObjectReader<'_>,
    attributes: usize,
    faults: &mut FaultList,
) -> Option<Vec<SensitiveValue>> {
    const NAME: &str = "sensitive_values";
    let list = members.list(NAME, "an array of values on the attributes of y, or null", faults)?;
    let pointer = members.at(NAME);
    if list.is_empty() || list.len() > MAX_VALUES || attributes == 0 {
        let allowed = format!("an array of 1 to {MAX_VALUES} values, where y has attributes, or null");
        faults.range(pointer, &allowed);
        return None;
    }
    let mut read = Vec::new();
    for (at, item) in list.iter().enumerate() {
        let parts = match item {
            Value::Array(parts) => parts.iter().map(value_of).collect::<Option<SensitiveValue>>(),
            single => value_of(single).map(|value| vec![value]),
        };
        match parts.filter(|parts| parts.len() == attributes && !read.contains(parts)) {
            Some(parts) => read.push(parts),
            None => {
                let allowed =
                    format!("{attributes} values on the attributes of y, in their order, not in the array already");
                faults.range(child(&pointer, &at.to_string()), &allowed);
            }
        }
    }
    Some(read)
}

/// A value of a column: `Some(None)` is the missing one.
fn value_of(value: &Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text.clone())),
        Value::Bool(truth) => Some(Some(truth.to_string())),
        other => integer(other).map(|number| Some(number.to_string())),
    }
}

fn exclusions(
    members: &mut ObjectReader<'_>,
    references: &AttributeNames<'_>,
    faults: &mut FaultList,
) -> Vec<Exclusion> {
    let pointer = members.at("exclusions");
    let list = members.list("exclusions", "an array of exclusions", faults).unwrap_or_default();
    if list.len() > MAX_STATED {
        faults.range(pointer, &format!("at most {MAX_STATED} exclusions"));
        return Vec::new();
    }
    let mut read = Vec::new();
    for (at, value) in list.iter().enumerate() {
        let pointer = child(&pointer, &at.to_string());
        let Some(mut members) = ObjectReader::open(value, pointer.as_str(), faults) else { continue };
        let left = conditions(&mut members, "left", references, faults);
        let right = conditions(&mut members, "right", references, faults);
        members.finish(faults);
        let (Some(left), Some(right)) = (left, right) else { continue };
        if left.release == right.release {
            faults.range(pointer, "left and right of two releases");
        } else {
            read.push(Exclusion { pointer, of: 0, left, right });
        }
    }
    read
}

fn conditions(
    members: &mut ObjectReader<'_>,
    name: &'static str,
    references: &AttributeNames<'_>,
    faults: &mut FaultList,
) -> Option<Conditions> {
    const SIDE: &str = "an object of attributes of one release, each with a value or a node of its taxonomy";
    let pointer = members.at(name);
    let Some(side) = members.take(name).and_then(Value::as_object).filter(|side| !side.is_empty()) else {
        faults.range(pointer, SIDE);
        return None;
    };
    let before = faults.len();
    let (mut within, mut releases) = (Vec::new(), BTreeSet::new());
    for (text, value) in side {
        let pointer = child(&pointer, text);
        let reference = references.attribute(text, REFERENCE, &pointer, faults);
        let label = value_of(value);
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

impl DraftSequential {
    /// The columns that are named as published.
    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
        self.publish.clone()
    }

    /// The columns of the new release that stand in some X.
    fn generalized(&self, columns: &DatasetColumns<'_>) -> BTreeSet<usize> {
        let of_new = self.requirements.iter().flat_map(|requirement| &requirement.x).filter(|x| x.release == 0);
        of_new.filter_map(|reference| columns.find(&reference.attribute)).collect()
    }

    /// Something can be generalized.
    fn check_x(&self, columns: &DatasetColumns<'_>, pointer: &str, faults: &mut FaultList) {
        if self.generalized(columns).is_empty() && !self.requirements.is_empty() {
            let detail =
                "no x has an attribute of the new release: nothing could be generalized so that requirements hold";
            faults.push(Fault::new(pointer, Kind::BadColumns, detail));
        }
    }

    /// What this method does not do with the attributes that are published or with what is asked beside it.
    pub(in crate::spec) fn check(
        &self,
        columns: &DatasetColumns<'_>,
        stated: &[AttributeOptions],
        used: &[usize],
        general: &GeneralMembers,
        faults: &mut FaultList,
    ) {
        for &column in used {
            let place = child("/attributes", columns.name(column));
            if !stated[column].excludable.is_empty() {
                let detail = "(X,Y)-privacy counts the values that a group has on y, whoever could rule some of them out: leave out \
                              excludable, and hold the values that matter to a share with sensitive_values of xy_linkability";
                faults.unsupported(child(&place, "excludable"), detail);
            }
        }
        if general.entropy == Some(true) {
            faults.unsupported("/utility", "the entropy of the model is not stated of generalized tables");
        }
        if general.internal.kl {
            faults.unsupported("/internal/utility", "kl is not measured of generalized tables; ask for count_queries");
        }
    }

    pub(in crate::spec) fn resolved(
        self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
    ) -> SequentialSpec {
        let generalized = self.generalized(columns);
        SequentialSpec {
            generalized: generalized.iter().filter_map(|column| attrs.get(column)).copied().collect(),
            against: self.against,
            class: self.class.and_then(|column| attrs.get(&column)).copied(),
            gain: self.gain,
            score: self.score,
            requirements: self.requirements,
            exclusions: self.exclusions,
            subsets: self.subsets,
        }
    }

    pub(in crate::spec) fn normal(&self, columns: &DatasetColumns<'_>) -> Value {
        let publish: Vec<&str> = self.publish.iter().map(|column| columns.name(*column)).collect();
        let against: Vec<String> = self.against.iter().map(Uuid::to_string).collect();
        let reference = |reference: &JoinAttribute| reference_text(&against, reference.release, &reference.attribute);
        let told = |told: &YElement| match told {
            YElement::Attribute(of) => reference(of),
            YElement::Key(release) => reference_text(&against, *release, ROW_KEY),
        };
        let requirement = |requirement: &XyRequirement| {
            json!({
                "x": requirement.x.iter().map(reference).collect::<Vec<_>>(),
                "y": requirement.y.iter().map(told).collect::<Vec<_>>(),
                "measure": requirement.measure,
            })
        };
        let side = |side: &Conditions| -> Map<String, Value> {
            let condition =
                |(name, label): &(String, Option<String>)| (reference_text(&against, side.release, name), json!(label));
            side.within.iter().map(condition).collect()
        };
        json!({
            "type": "sequential",
            "publish": publish,
            "against": against,
            "class": self.class.map(|column| columns.name(column)),
            "gain": self.gain,
            "score": self.score,
            "requirements": self.requirements.iter().map(requirement).collect::<Vec<_>>(),
            "exclusions": self.exclusions.iter()
                .map(|exclusion| json!({"left": side(&exclusion.left), "right": side(&exclusion.right)}))
                .collect::<Vec<_>>(),
            "subsets": self.subsets.as_str(),
        })
    }
}

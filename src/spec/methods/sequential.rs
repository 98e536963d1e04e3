//! The method `sequential`.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publication::{
    Conditions, Exclusion, JoinAttribute, JoinSelection, ROW_KEY, Ratio, SensitiveValue, XyMeasure, XyRequirement,
    YElement, reference_parts, reference_text,
};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::document::{ColumnName, Document, Member, MemberContext, Names, choice, document, reference};
use crate::spec::grammar::general::GeneralMembers;
use crate::spec::grammar::reader::{FaultList, ObjectReader, child, integer};

/// The most earlier releases, requirements, exclusions, and values of one requirement.
const MAX_AGAINST: usize = 16;

const MAX_STATED: usize = 64;

const MAX_VALUES: usize = 1_000;

const RELEASE: &str = "the id of an earlier release, each once";

const REFERENCE: &str = "\"new.ATTRIBUTE\", or \"RELEASE.ATTRIBUTE\" with a release of against";

const Y_ELEMENT: &str = "\"new.ATTRIBUTE\", \"new.#key\", or the same of a release of against";

const VALUE: &str = "a value as text, an integer, true, false or null";

choice! {
    /// What a specialization step gains: information about the class, or rows that it makes more exact. `information` where a class is
    /// given, else `distortion`.
    pub enum StepGain as "StepGain" {
        /// The information about the class.
        Information = "information",
        /// The number of rows that it makes more exact.
        Distortion = "distortion",
    }
}

choice! {
    /// How the gain of a step is weighed against the privacy that it costs: `gain / (loss + 1)`, or `gain / loss`.
    pub enum StepScore as "StepScore" {
        /// `gain / (loss + 1)` [Wang and Fung 2006].
        PlusOne = "plus_one",
        /// `gain / loss`, where steps without loss come first.
        Ratio = "ratio",
    }
}

choice! {
    /// The joins on which requirements must hold: of the new release and those that a requirement names, of these with any single other,
    /// and of all; or of every set of releases that has the named ones.
    existing JoinSelection as "JoinSubsets" {
        Default = "default",
        All = "all",
    }
}

document! {
    /// One table that is joined with earlier releases of the same rows, generalized as far as the requirements on the join need. All
    /// attributes of `x` of the new release begin at the roots of their taxonomies, as one interval, or suppressed. They are specialized
    /// step by step, the step with the best score first. A text without a taxonomy is published as it is, or suppressed. No other table
    /// of the same people may share an attribute, unless it is made by this method and against this release.
    SequentialMembers as "SequentialMethod" tagged "sequential" {
        /// The attributes of the new release, in addition to those that are marked `publish`. An attribute in no `x` is published as it is.
        optional publish: Names,
        /// The published releases that it is joined with: of the same series and content, and of one table of tuples each; or external
        /// tables of the series that were recorded with the dataset that holds their rows, by the ids of their disclosures. Labels of the
        /// latter are placed by the taxonomy of the attribute in this document, or as intervals. Every one that shares an attribute with
        /// the new release, or with another of these, must be among them. What they required is required again.
        optional against: ReleaseIds,
        /// A published attribute that the release should stay useful for predicting.
        optional class: ColumnName => "the name of an attribute, or null",
        optional gain: StepGain,
        optional score: StepScore = StepScore::PlusOne,
        optional subsets: JoinSelection = JoinSelection::Default,
        /// What must hold on the join.
        needed requirements: RequirementList,
        /// Combinations of two releases that no person has, as everybody knows. Each must be true of no row.
        optional exclusions: ExclusionList,
    }
}

/// Ids of earlier releases, each once.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct ReleaseIds(Vec<Uuid>);

impl Member for ReleaseIds {
    fn allowed() -> String {
        "an array of ids of earlier releases".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(list) = value.as_array() else { return context.refuse() };
        if list.len() > MAX_AGAINST {
            context.allowed = format!("at most {MAX_AGAINST} releases");
            return context.refuse();
        }
        let mut read: Vec<Uuid> = Vec::new();
        for (index, value) in list.iter().enumerate() {
            // other spellings of an id, such as braces, are not ids of this service
            let id = value.as_str().filter(|text| text.len() == 36).and_then(|text| Uuid::try_parse(text).ok());
            match id.filter(|id| !read.contains(id)) {
                Some(id) => read.push(id),
                None => context.faults.range(child(&context.pointer, &index.to_string()), RELEASE),
            }
        }
        Some(Self(read))
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.iter().map(Uuid::to_string).collect()
    }

    fn schema() -> Value {
        json!({"type": "array", "maxItems": MAX_AGAINST, "items": {"type": "string", "format": "uuid"}})
    }
}

/// The member `requirements`: as in the document, and in normal form once the references are known.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct RequirementList(Vec<Value>);

impl Member for RequirementList {
    fn allowed() -> String {
        "an array of requirements".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        value.as_array().cloned().map(Self).or_else(|| context.refuse())
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.clone().into()
    }

    fn schema() -> Value {
        json!({"type": "array", "minItems": 1, "maxItems": MAX_STATED, "items": reference("JoinRequirement")})
    }
}

/// The member `exclusions`: as in the document, and in normal form once the references are known.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct ExclusionList(Vec<Value>);

impl Member for ExclusionList {
    fn allowed() -> String {
        "an array of exclusions".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        value.as_array().cloned().map(Self).or_else(|| context.refuse())
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.clone().into()
    }

    fn schema() -> Value {
        json!({"type": "array", "maxItems": MAX_STATED, "items": reference("JoinExclusion")})
    }
}

/// A new release that is joined with earlier ones [Wang and Fung 2006]; `docs/spec/sequential.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SequentialSpec {
    /// The earlier releases, each once.
    pub against: Vec<Uuid>,
    /// The attribute that the release should stay useful for predicting.
    pub class: Option<Attr>,
    /// What a specialization step gains.
    pub gain: StepGain,
    /// How the gain is weighed against the loss of privacy.
    pub score: StepScore,
    /// What must hold on the join. Attributes are named as in the dataset.
    pub requirements: Vec<XyRequirement>,
    /// Combinations of two releases that no person has.
    pub exclusions: Vec<Exclusion>,
    /// The joins on which requirements must hold.
    pub subsets: JoinSelection,
    /// The attributes of the new release that stand in some X: they are generalized as far as requirements ask.
    pub generalized: AttrSet,
}

/// The method over columns of the dataset.
pub(in crate::spec) struct DraftSequential {
    /// The document, with its defaults filled in.
    pub(in crate::spec) members: SequentialMembers,
    /// Columns that may have been meant where a fault hides which.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    requirements: Vec<XyRequirement>,
    exclusions: Vec<Exclusion>,
}

pub(in crate::spec) fn read(
    members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftSequential {
    let before = faults.len();
    let mut members = SequentialMembers::read_members(members, columns, faults);
    let against = members.against.value.take().unwrap_or_default();
    let publish = members.publish.columns().clone();
    let published =
        |column: usize| publish.contains(&column) || (attributes[column].publish && !attributes[column].drop);
    let references =
        AttributeNames { columns, against: against.0.iter().map(Uuid::to_string).collect(), published: &published };
    let requirements = requirements(&members, &references, faults);
    let exclusions = exclusions(&members, &references, faults);
    let guessed = if faults.len() > before { columns.all() } else { BTreeSet::new() };
    check_class(&mut members, &published, columns, faults);
    members.requirements.value = Some(references.write_requirements(&requirements));
    members.exclusions.value = Some(references.write_exclusions(&exclusions));
    members.against.value = Some(against);
    members.publish.value = Some(publish.clone().into());
    let draft = DraftSequential { members, guessed, requirements, exclusions };
    draft.check_x(columns, faults);
    draft
}

/// The class is published, and steps gain information only where there is one. Fills in the gain.
fn check_class(
    members: &mut SequentialMembers,
    published: &dyn Fn(usize) -> bool,
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) {
    let class = members.class.column();
    if let Some(class) = class.filter(|class| !published(*class)) {
        let detail = format!(
            "{} is not published: what nobody sees cannot be what the release is good for",
            columns.name(class)
        );
        faults.push(Fault::new(members.at("class"), Kind::BadColumns, detail));
    }
    if members.gain.value == Some(StepGain::Information) && class.is_none() {
        faults.range(members.at("class"), "the name of an attribute, on which information is gained");
    }
    let default = if class.is_some() { StepGain::Information } else { StepGain::Distortion };
    members.gain.value.get_or_insert(default);
}

/// What references to attributes of releases are resolved with.
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

    fn y_element(&self, text: &str, pointer: &str, faults: &mut FaultList) -> Option<YElement> {
        match reference_parts(&self.against, text) {
            Some((release, ROW_KEY)) => Some(YElement::Key(release)),
            _ => self.attribute(text, Y_ELEMENT, pointer, faults).map(YElement::Attribute),
        }
    }

    fn write(&self, reference: &JoinAttribute) -> String {
        reference_text(&self.against, reference.release, &reference.attribute)
    }

    fn write_requirements(&self, requirements: &[XyRequirement]) -> RequirementList {
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
        RequirementList(requirements.iter().map(requirement).collect())
    }

    fn write_exclusions(&self, exclusions: &[Exclusion]) -> ExclusionList {
        let side = |side: &Conditions| -> Map<String, Value> {
            let condition = |(name, label): &(String, Option<String>)| {
                (reference_text(&self.against, side.release, name), json!(label))
            };
            side.within.iter().map(condition).collect()
        };
        let exclusion = |exclusion: &Exclusion| json!({"left": side(&exclusion.left), "right": side(&exclusion.right)});
        ExclusionList(exclusions.iter().map(exclusion).collect())
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
    members: &SequentialMembers,
    references: &AttributeNames<'_>,
    faults: &mut FaultList,
) -> Vec<XyRequirement> {
    let pointer = members.at("requirements");
    let list = members.requirements.value.as_ref().map_or(&[][..], |list| &list.0);
    if list.is_empty() && !members.requirements.is_faulty {
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
    let y =
        each(&mut members, "y", Y_ELEMENT, faults, |text, pointer, faults| references.y_element(text, pointer, faults));
    if let Some(both) = x.iter().find(|reference| y.contains(&YElement::Attribute((*reference).clone()))) {
        let detail = format!("{} stands in x and in y", both.attribute);
        faults.push(Fault::new(pointer, Kind::RuleMalformed, detail));
    }
    let attributes = y.iter().filter(|element| matches!(element, YElement::Attribute(_))).count();
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
            let is_given = members.take("k").is_some();
            let k = members.integer("k", 1..=i128::from(u64::MAX), K, faults).and_then(|k| u64::try_from(k).ok());
            match k {
                None if !is_given => faults.range(members.at("k"), K),
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

fn exclusions(members: &SequentialMembers, references: &AttributeNames<'_>, faults: &mut FaultList) -> Vec<Exclusion> {
    let pointer = members.at("exclusions");
    let list = members.exclusions.value.as_ref().map_or(&[][..], |list| &list.0);
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
        self.members.publish.columns().clone()
    }

    /// The columns of the new release that stand in some X.
    fn generalized(&self, columns: &DatasetColumns<'_>) -> BTreeSet<usize> {
        let of_new = self.requirements.iter().flat_map(|requirement| &requirement.x).filter(|x| x.release == 0);
        of_new.filter_map(|reference| columns.find(&reference.attribute)).collect()
    }

    /// Something can be generalized.
    fn check_x(&self, columns: &DatasetColumns<'_>, faults: &mut FaultList) {
        if self.generalized(columns).is_empty() && !self.requirements.is_empty() {
            let detail =
                "no x has an attribute of the new release: nothing could be generalized so that requirements hold";
            faults.push(Fault::new(self.members.at("requirements"), Kind::BadColumns, detail));
        }
    }

    /// Reports excluded values and measures that this method does not support.
    pub(in crate::spec) fn check(
        &self,
        columns: &DatasetColumns<'_>,
        attributes: &[AttributeOptions],
        used: &[usize],
        general: &GeneralMembers,
        faults: &mut FaultList,
    ) {
        for &column in used {
            let place = child("/attributes", columns.name(column));
            if !attributes[column].excludable.is_empty() {
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
            class: self.members.class.column().and_then(|column| attrs.get(&column)).copied(),
            gain: self.members.gain.value.unwrap_or(StepGain::Distortion),
            against: self.members.against.value.unwrap_or_default().0,
            score: self.members.score,
            requirements: self.requirements,
            exclusions: self.exclusions,
            subsets: self.members.subsets,
        }
    }
}

//! The method `sequential`.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};
use uuid::Uuid;

use super::common::CommonMembers;
use super::join_requirements::{AttributeNames, ExclusionMembers, RequirementMembers};
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publication::{Exclusion, JoinSelection, XyRequirement};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::document::{
    Array, ColumnName, Document, Id, Member, MemberContext, Names, SchemaMap, choice, define_as, document, reference,
};
use crate::spec::grammar::general::GeneralMembers;
use crate::spec::grammar::reader::{FaultList, child};
use crate::spec::grammar::utility::InternalUtility;

/// The most earlier releases.
pub(in crate::spec) const MAX_AGAINST: usize = 16;

/// The most requirements, and exclusions.
const MAX_STATED: usize = 64;

const RELEASE: &str = "the id of an earlier release, or {\"policy\": NAME} for the latest one of a policy, each once";

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
        /// the new release, or with another of these, must be among them. What they required is required again. `{"policy": "NAME"}` is
        /// the latest published release of the same series that a job with the policy gave; references may name it `NAME.ATTRIBUTE`.
        optional against: ReleaseIds,
        /// A published attribute that the release should stay useful for predicting.
        optional class: ColumnName => "the name of an attribute, or null",
        optional gain: StepGain,
        optional score: StepScore = StepScore::PlusOne,
        optional subsets: JoinSelection = JoinSelection::Default,
        /// What must hold on the join.
        needed requirements: GivenList<RequirementMembers, 1> => &format!("an array of at most {MAX_STATED} requirements"),
        /// Combinations of two releases that no person has, as everybody knows. Each must be true of no row.
        optional exclusions: GivenList<ExclusionMembers, 0> => &format!("an array of at most {MAX_STATED} exclusions"),
        include common: CommonMembers,
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
            match Id::parse(value).filter(|id| !read.contains(&id.0)) {
                Some(id) => read.push(id.0),
                None => context.faults.range(child(&context.pointer, &index.to_string()), RELEASE),
            }
        }
        Some(Self(read))
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.iter().map(Uuid::to_string).collect()
    }

    fn schema() -> Value {
        let mut schema = Array::<Id, 0, MAX_AGAINST>::schema();
        schema["items"] = json!({ "anyOf": [Id::schema(), reference("LatestReleaseOfPolicy")] });
        schema
    }

    fn define(schemas: &mut SchemaMap) {
        let of_policy = json!({
            "type": "object",
            "description": "The latest published release of the same series that a job with this policy gave.",
            "required": ["policy"],
            "properties": {"policy": {"type": "string", "description": "The name of the policy, without a version."}},
            "additionalProperties": false,
        });
        define_as("LatestReleaseOfPolicy", of_policy, schemas);
    }
}

/// A list of requirements or exclusions: as in the document, and in normal form once the references are known.
#[derive(Clone, Debug)]
pub(in crate::spec) struct GivenList<D, const MIN: usize> {
    documents: Array<D, MIN, MAX_STATED>,
    written: Vec<Value>,
}

impl<D: Member, const MIN: usize> Member for GivenList<D, MIN> {
    fn allowed() -> String {
        Array::<D>::allowed()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        Array::read(value, context).map(|documents| Self { documents, written: Vec::new() })
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.written.clone().into()
    }

    fn schema() -> Value {
        Array::<D, MIN, MAX_STATED>::schema()
    }

    fn define(schemas: &mut SchemaMap) {
        D::define(schemas);
    }
}

impl<D, const MIN: usize> From<Vec<Value>> for GivenList<D, MIN> {
    fn from(written: Vec<Value>) -> Self {
        Self { documents: Vec::new().into(), written }
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
    /// The attributes that a repair under trial leaves out of the new release; none in a specification that was read.
    pub left_out: AttrSet,
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
    mut members: SequentialMembers,
    is_faulty: bool,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftSequential {
    let before = faults.len();
    let against = members.against.value.take().unwrap_or_default();
    let publish = members.publish.columns().clone();
    let published =
        |column: usize| publish.contains(&column) || (attributes[column].publish && !attributes[column].drop);
    let references =
        AttributeNames { columns, against: against.0.iter().map(Uuid::to_string).collect(), published: &published };
    let requirements = requirements(&members, &references, faults);
    let exclusions = exclusions(&members, &references, faults);
    let guessed = if is_faulty || faults.len() > before { columns.all() } else { BTreeSet::new() };
    check_class(&mut members, &published, columns, faults);
    members.requirements = GivenList::from(references.write_requirements(&requirements)).into();
    members.exclusions = GivenList::from(references.write_exclusions(&exclusions)).into();
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

fn requirements(
    members: &SequentialMembers,
    references: &AttributeNames<'_>,
    faults: &mut FaultList,
) -> Vec<XyRequirement> {
    if members.requirements.value.as_ref().is_none_or(|list| list.documents.is_empty())
        && !members.requirements.is_faulty
    {
        let detail = "a release that keeps nothing protects nobody: ask for a requirement, such as xy_anonymity";
        faults.push(Fault::new(members.at("requirements"), Kind::VacuousGuarantee, detail));
    }
    let mut read = Vec::new();
    for item in members.requirements.value.iter().flat_map(|list| &list.documents.items) {
        let before = faults.len();
        let requirement = item.value.as_ref().and_then(|document| document.resolve(references, faults));
        read.extend(requirement.filter(|_| !item.is_faulty && faults.len() == before));
    }
    read
}

fn exclusions(members: &SequentialMembers, references: &AttributeNames<'_>, faults: &mut FaultList) -> Vec<Exclusion> {
    let mut read = Vec::new();
    for document in members.exclusions.value.iter().flat_map(|list| list.documents.values()) {
        let left = references.conditions(document.left.value.as_ref(), &document.at("left"), faults);
        let right = references.conditions(document.right.value.as_ref(), &document.at("right"), faults);
        let (Some(left), Some(right)) = (left, right) else { continue };
        if left.release == right.release {
            faults.range(document.pointer.as_str(), "left and right of two releases");
        } else {
            read.push(Exclusion { pointer: document.pointer.clone(), of: 0, left, right });
        }
    }
    read
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
            if !attributes[column].excludable.0.is_empty() {
                let detail = "(X,Y)-privacy counts the values that a group has on y, though an adversary could rule some of them out: leave out \
                              excludable, and hold the values that matter to a share with sensitive_values of xy_linkability";
                faults.unsupported(child(&place, "excludable"), detail);
            }
        }
        if general.entropy() == Some(true) {
            faults.unsupported("/utility", "the entropy of the model is not stated of generalized tables");
        }
        if InternalUtility::from(&general.internal).kl {
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
            left_out: AttrSet::EMPTY,
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

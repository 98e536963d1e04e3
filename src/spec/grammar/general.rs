use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::attributes::DatasetColumns;
use super::document::{
    Array, Document, Given, Id, Member, MemberContext, MemberDeclaration, Presence, Reason, choice, document, scalar,
};
use super::duration;
use super::reader::{FaultList, ObjectReader, integer};
use super::republish::RepublishMembers;
use super::schema::DocumentSource;
use super::utility::{InternalMembers, PublicMeasure};
use crate::problem::Fault;

document! {
    /// The members of a job document outside of its attributes and its method.
    GeneralMembers as "GeneralMembers" {
        /// The dataset to publish, by the id that its upload answers. The answer to an unknown one has the newest as a remedy.
        needed dataset: DatasetId,
        /// Whether the release waits for an approval before it is published.
        optional hold: bool = false,
        /// -100 to 100; the higher, the earlier among the tenant's own jobs. Between tenants, turns are taken. 0 when not given.
        optional priority: Priority = Priority(0),
        /// How long the job may take, waiting included: an ISO 8601 duration of whole weeks, days, hours, minutes and seconds, from PT1S
        /// to P365D.
        optional deadline: Deadline,
        /// Why the job is submitted; kept in the audit log.
        optional reason: Reason,
        optional unlisted: Unlisted = Unlisted::Refuse,
        optional people: PeopleChoice = PeopleChoice::All,
        optional composition: CompositionMembers = CompositionMembers::absent("/composition"),
        optional republish: RepublishMembers,
        optional internal: InternalMembers = InternalMembers::absent("/internal"),
        /// `entropy`: the manifest states the entropy of the readers' model. Of `gd` and `auto` it does unless this is empty.
        optional utility: Array<PublicMeasure> => "an array of measures",
        /// A version of a policy, such as `hospital-v3`: its members hold where the document has none of the same name.
        optional policy: UnresolvedPolicy,
    }
}

choice! {
    /// What becomes of attributes that the document does not name: they are a fault (`refuse`, when not given), or dropped.
    pub(in crate::spec) enum Unlisted as "Unlisted" {
        /// They are a fault.
        Refuse = "refuse",
        /// They are dropped.
        Drop = "drop",
    }
}

choice! {
    /// Whose rows are published: those of all persons of the dataset (`all`, when not given), or only of those of whom nothing is
    /// published (`unpublished`). The others are left out by their keys alone.
    pub enum PeopleChoice as "PeopleChoice" {
        /// Of all persons.
        All = "all",
        /// Of persons of whom nothing is published.
        Unpublished = "unpublished",
    }
}

document! {
    /// How the release is judged beside earlier ones.
    CompositionMembers as "CompositionChoice" {
        optional mode: CompositionMode = CompositionMode::Enforce,
        /// Why the release is made without proof; with `report`, and only with it.
        optional reason: Reason,
    }
}

choice! {
    /// A release that would break a rule together with an earlier one is refused (`enforce`, when not given), or is made all the same,
    /// needs the scope `ledger:override` and a reason, and is marked as unproven for ever.
    pub(in crate::spec) enum CompositionMode as "CompositionChoiceMode" {
        /// It is refused.
        Enforce = "enforce",
        /// It is made without proof.
        Report = "report",
    }
}

/// The id of a dataset.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct DatasetId(pub(in crate::spec) Uuid);

impl Member for DatasetId {
    fn allowed() -> String {
        "the id of a dataset".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        if context.columns.origin == DocumentSource::Policy {
            context.faults.unsupported(context.pointer.as_str(), "a policy is for any dataset; name it in the job");
            return None;
        }
        Id::parse(value).map(|id| Self(id.0)).or_else(|| context.refuse())
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.to_string().into()
    }

    fn schema() -> Value {
        let pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
        json!({"type": "string", "format": "uuid", "pattern": pattern})
    }
}

/// The place of a job in the queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct Priority(pub(in crate::spec) i32);

scalar! {
    Priority: "an integer from -100 to 100",
    |value| i32::try_from(integer(value)?).ok().filter(|number| (-100..=100).contains(number)).map(Self),
    |priority| priority.0.into(),
    {"type": "integer", "minimum": -100, "maximum": 100}
}

/// How long a job may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct Deadline(pub(in crate::spec) Duration);

scalar! {
    Deadline: duration::DURATION_FORM,
    |value| duration::parse(value.as_str()?).map(Self),
    |deadline| duration::write(deadline.0).into(),
    {
        "type": "string",
        "pattern": "^P(?=[0-9T])([0-9]+W)?([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$",
    }
}

/// The name of a policy that the caller did not put in its place, which is a fault.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) enum UnresolvedPolicy {}

impl Member for UnresolvedPolicy {
    fn allowed() -> String {
        super::versioned_name::PINNED.to_owned()
    }

    fn read(_value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let detail =
            "a policy is named in a job or a plan of a service and nowhere else; state the specification itself";
        context.faults.unsupported(context.pointer.as_str(), detail);
        None
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        match *self {}
    }

    fn schema() -> Value {
        json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,99}-v[1-9][0-9]*$"})
    }
}

/// The dataset that a document names; the rest is checked against its columns.
///
/// # Errors
/// When the document is not an object, or names no dataset, or with a malformed id.
pub fn dataset_of(document: &Value) -> Result<Uuid, Vec<Fault>> {
    let mut faults = FaultList::new();
    let declared = MemberDeclaration { name: "dataset", presence: Presence::required, allowed: None };
    let dataset = ObjectReader::open(document, "", &mut faults).and_then(|mut members| {
        let given: Given<DatasetId> = declared.read(&mut members, &DatasetColumns::default(), &mut faults);
        given.value
    });
    dataset.map(|id| id.0).ok_or_else(|| faults.into_sorted())
}

impl GeneralMembers {
    /// Reports what does not go together, or not with the source of the document.
    pub(in crate::spec) fn check(&mut self, origin: DocumentSource, faults: &mut FaultList) {
        if !matches!(origin, DocumentSource::Http | DocumentSource::Plan) {
            self.dataset = Given::absent();
        } else if self.dataset.value.is_none() && !self.dataset.is_faulty {
            faults.range(self.at("dataset"), &DatasetId::allowed());
        }
        if self.people == PeopleChoice::Unpublished && origin.is_local() && origin != DocumentSource::Reproduction {
            let detail = "on the command line it is not known who was published before; leave out people";
            faults.unsupported(self.at("people"), detail);
        }
        let CompositionMembers { mode, reason, .. } = &self.composition;
        let pointer = self.composition.at("reason");
        match (mode, &reason.value) {
            (CompositionMode::Report, None) => faults.range(pointer, &Reason::allowed()),
            (CompositionMode::Enforce, Some(_)) => {
                faults.unsupported(pointer, "a release that is held to the earlier ones needs no reason");
            }
            (CompositionMode::Report, Some(_)) | (CompositionMode::Enforce, None) => {}
        }
    }

    /// Why the release is published without proof that it is safe with earlier ones, where it is.
    pub(in crate::spec) fn unproven(&self) -> Option<&str> {
        let CompositionMembers { mode, reason, .. } = &self.composition;
        let reason = reason.value.as_ref().filter(|_| *mode == CompositionMode::Report);
        reason.map(|reason| reason.0.as_str())
    }

    /// Whether the manifest states the entropy of the model; `None` for the default.
    pub(in crate::spec) fn entropy(&self) -> Option<bool> {
        self.utility.value.as_ref().map(|measures| !measures.is_empty())
    }
}

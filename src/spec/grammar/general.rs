use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::reader::{FaultList, ObjectReader, is_reason};
use super::schema::DocumentSource;
use super::utility::InternalUtility;
use super::{duration, utility};
use crate::problem::Fault;

const DATASET: &str = "the id of a dataset";

const REASON: &str = "a reason of 1 to 500 characters";

/// The members of a job document outside of its attributes and its method.
pub(in crate::spec) struct GeneralMembers {
    pub(in crate::spec) dataset: Option<Uuid>,
    pub(in crate::spec) hold: bool,
    pub(in crate::spec) priority: i32,
    pub(in crate::spec) deadline: Option<Duration>,
    pub(in crate::spec) reason: Option<String>,
    pub(in crate::spec) drop_unlisted: bool,
    /// Why the release is published without proof that it is safe with earlier ones, where it is.
    pub(in crate::spec) unproven: Option<String>,
    /// Whether the manifest states the entropy of the model; `None` for the default.
    pub(in crate::spec) entropy: Option<bool>,
    pub(in crate::spec) internal: InternalUtility,
}

/// The dataset that a document names; the rest is checked against its columns.
///
/// # Errors
/// When the document is not an object, or names no dataset, or with a malformed id.
pub fn dataset_of(document: &Value) -> Result<Uuid, Vec<Fault>> {
    let mut faults = FaultList::new();
    let dataset = ObjectReader::open(document, "", &mut faults)
        .and_then(|mut members| read_dataset(&mut members, DocumentSource::Http, &mut faults));
    dataset.ok_or_else(|| faults.into_sorted())
}

fn read_dataset(members: &mut ObjectReader<'_>, origin: DocumentSource, faults: &mut FaultList) -> Option<Uuid> {
    // other spellings of an id, such as braces, are not ids of this service
    let parse = |text: &str| Uuid::try_parse(text).ok().filter(|_| text.len() == 36);
    match members.take("dataset") {
        Some(_) if origin == DocumentSource::Policy => {
            faults.unsupported(members.at("dataset"), "a policy is for any dataset; name it in the job");
            None
        }
        Some(_) => members.text("dataset", DATASET, faults, |text| parse(text).is_some()).and_then(parse),
        None => {
            if matches!(origin, DocumentSource::Http | DocumentSource::Plan) {
                faults.range(members.at("dataset"), DATASET);
            }
            None
        }
    }
}

pub(in crate::spec) fn read_general(
    members: &mut ObjectReader<'_>,
    origin: DocumentSource,
    faults: &mut FaultList,
) -> GeneralMembers {
    let dataset = read_dataset(members, origin, faults);
    let hold = members.flag("hold", faults) == Some(true);
    if hold && matches!(origin, DocumentSource::CommandLine | DocumentSource::Reproduction) {
        faults.unsupported(members.at("hold"), "on the command line nobody could approve it; leave out hold");
    }
    let priority = members.integer("priority", -100..=100, "an integer from -100 to 100", faults);
    let deadline = members.text("deadline", duration::DURATION_FORM, faults, |text| duration::parse(text).is_some());
    let reason = members.text("reason", REASON, faults, is_reason);
    let unlisted = members.choice("unlisted", &["refuse", "drop"], faults);
    let unproven = read_composition(members, faults);
    let internal = utility::read_internal(members, faults);
    let entropy = utility::read_public(members, faults);
    let elsewhere = [
        (
            "policy",
            "a policy is named in a job or a plan of a service and nowhere else; state the specification itself",
        ),
        ("schema", "a proposed schema is judged by a plan, and nothing else; leave it out"),
    ];
    for (name, detail) in elsewhere.into_iter().filter(|(name, _)| origin != DocumentSource::Plan || *name != "schema")
    {
        if members.take(name).is_some() {
            faults.unsupported(members.at(name), detail);
        }
    }
    GeneralMembers {
        dataset: dataset.filter(|_| matches!(origin, DocumentSource::Http | DocumentSource::Plan)),
        hold,
        priority: priority.and_then(|number| i32::try_from(number).ok()).unwrap_or(0),
        deadline: deadline.and_then(duration::parse),
        reason: reason.map(str::to_owned),
        drop_unlisted: unlisted == Some("drop"),
        unproven,
        entropy,
        internal,
    }
}

/// Reads `composition`: the reason for a release without proof; `None` when composition is enforced.
fn read_composition(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> Option<String> {
    let mut composition = members.object("composition", faults)?;
    let mode = composition.choice("mode", &["enforce", "report"], faults);
    let reported = mode == Some("report");
    let reason = composition.text("reason", REASON, faults, is_reason).map(str::to_owned);
    let at = composition.at("reason");
    composition.finish(faults);
    match (reported, reason) {
        (true, None) => faults.range(at, REASON),
        (false, Some(_)) => faults.unsupported(at, "a release that is held to the earlier ones needs no reason"),
        (true, reason) => return reason,
        (false, None) => {}
    }
    None
}

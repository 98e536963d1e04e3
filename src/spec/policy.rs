//! Policies: job documents without a dataset, under a name and a version, that other documents stand on.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::document::read;
use super::reader::{FaultList, ObjectReader, child};
use super::types::{ColumnFacts, DatasetSchema, DocumentSource};
use crate::problem::{Fault, Kind};

/// The most characters of a name.
const NAME_CHARS: usize = 100;

/// What a name must be, for people.
pub const POLICY_NAME: &str = "1 to 100 of a-z, 0-9, '.', '_' and '-', the first a letter or a digit, and not ending in a version \
                               such as -v3";
const PINNED: &str = "the name of a policy and its version, such as \"hospital-v3\"";

/// Whether a policy can have this name. One that ends like a version could not be told from another's.
#[must_use]
pub fn is_policy_name(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let spelled = bytes.first().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || b"._-".contains(byte))
        && bytes.len() <= NAME_CHARS;
    let versioned =
        name.rsplit_once("-v").is_some_and(|(_, end)| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()));
    spelled && !versioned
}

/// One version of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionedName {
    /// The policy.
    pub name: String,
    /// Its version, from 1 on.
    pub version: u32,
}

impl fmt::Display for VersionedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-v{}", self.name, self.version)
    }
}

impl VersionedName {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, version) = text.rsplit_once("-v")?;
        // versions have one spelling
        let digits = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
        let version = version.parse().ok().filter(|_| digits)?;
        is_policy_name(name).then(|| Self { name: name.to_owned(), version })
    }
}

/// The policy that a document stands on, if it names one.
///
/// # Errors
/// When `policy` is no name with a version: what a name alone means would change with the next version.
pub fn policy_of(document: &Value) -> Result<Option<VersionedName>, Fault> {
    let Some(policy) = document.get("policy").filter(|policy| !policy.is_null()) else { return Ok(None) };
    policy.as_str().and_then(VersionedName::parse).map(Some).ok_or_else(|| {
        Fault::new("/policy", Kind::ParameterRange, format!("expected {PINNED}")).with("allowed", PINNED)
    })
}

/// The document written out in full: the policy's members, each replaced by the document's own of that name. A member that is null
/// is absent here too, and replaces nothing.
#[must_use]
pub fn expand_policy(policy: &Value, document: &Value) -> Value {
    let mut merged = Map::new();
    for members in [policy, document].into_iter().filter_map(Value::as_object) {
        merged.extend(
            members.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())),
        );
    }
    merged.remove("policy");
    merged.into()
}

/// The specification in a document that is to become a version of a policy.
///
/// # Errors
/// Everything that is wrong with it whatever table it will meet.
pub fn read_policy(document: &Value) -> Result<&Value, Vec<Fault>> {
    const SPECIFICATION: &str = "specification";
    let mut faults = FaultList::new();
    let specification = ObjectReader::open(document, "", &mut faults).and_then(|mut members| {
        let specification = members.take(SPECIFICATION);
        if specification.is_none() {
            faults.range(members.at(SPECIFICATION), "an object: a job without dataset");
        }
        members.finish(&mut faults);
        specification
    });
    for mut fault in specification.map(faults_of).unwrap_or_default() {
        fault.pointer.insert_str(0, &child("", SPECIFICATION));
        faults.push(fault);
    }
    specification.filter(|_| faults.is_empty()).ok_or_else(|| faults.into_sorted())
}

/// What is wrong with a job on a table that has every column which the job names.
fn faults_of(specification: &Value) -> Vec<Fault> {
    let mut names = BTreeSet::new();
    loop {
        let columns: Vec<ColumnFacts> = names.iter().map(|name: &String| ColumnFacts::unseen(name)).collect();
        let faults = read(
            specification,
            &DatasetSchema { columns: &columns, record_key: &[], unit: &crate::publication::Unit::Row },
            DocumentSource::Policy,
        )
        .faults;
        // the columns that it names are those that it misses
        let missed = faults.iter().filter(|fault| fault.kind == Kind::UnknownAttribute);
        let before = names.len();
        names.extend(missed.filter_map(|fault| fault.members.get("attribute")?.as_str()).map(str::to_owned));
        if names.len() == before {
            return faults;
        }
    }
}

//! Earlier releases that a sequential document names by the policy that made them.
//!
//! `{"policy": "NAME"}` in `/method/against` is the latest release of a policy. Its attributes are `NAME.ATTRIBUTE`. Both
//! are written out as an id when the job is submitted, so that equal jobs and later checks see the same release.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::publication::NEW_RELEASE;
use crate::spec::grammar::versioned_name::is_policy_name;
use crate::spec::methods::sequential::MAX_AGAINST;

/// An entry of `/method/against` that names a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyEntry {
    /// Its index in the list.
    pub index: usize,
    /// The name of the policy.
    pub policy: String,
}

/// Such an entry with its release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleaseOfPolicy {
    /// The entry.
    pub entry: PolicyEntry,
    /// The release.
    pub release: Uuid,
}

impl ReleaseOfPolicy {
    /// The entry with an id that no release has.
    #[must_use]
    pub fn unknown(entry: PolicyEntry) -> Self {
        let release = Uuid::from_u128(u128::MAX - entry.index as u128);
        Self { entry, release }
    }
}

/// The entries of a sequential document that name a policy.
///
/// Entries of another form are left to the reader of the document, who reports them.
#[must_use]
pub fn policies_joined(document: &Value) -> Vec<PolicyEntry> {
    let method = document.get("method").filter(|method| method["type"] == "sequential");
    let against = method.and_then(|method| method.get("against")?.as_array());
    let against = against.filter(|against| against.len() <= MAX_AGAINST);
    let entry = |(index, entry): (usize, &Value)| {
        let policy = entry.as_object().filter(|entry| entry.len() == 1)?.get("policy")?.as_str()?;
        (is_policy_name(policy) && policy != NEW_RELEASE).then(|| PolicyEntry { index, policy: policy.to_owned() })
    };
    against.into_iter().flatten().enumerate().filter_map(entry).collect()
}

/// The document with ids in place of these entries, and of the names of their policies in references.
#[must_use]
pub fn with_releases(document: &Value, releases: &[ReleaseOfPolicy]) -> Value {
    let mut written = document.clone();
    let Some(method) = written.get_mut("method").and_then(Value::as_object_mut) else { return written };
    for ReleaseOfPolicy { entry, release } in releases {
        if let Some(named) = method.get_mut("against").and_then(|against| against.get_mut(entry.index)) {
            *named = release.to_string().into();
        }
    }
    let requirements = method.get_mut("requirements").and_then(Value::as_array_mut);
    for requirement in requirements.into_iter().flatten().filter_map(Value::as_object_mut) {
        for side in ["x", "y"] {
            let references = requirement.get_mut(side).and_then(Value::as_array_mut);
            for reference in references.into_iter().flatten() {
                if let Some(text) = reference.as_str().and_then(|text| by_id(text, releases)) {
                    *reference = text.into();
                }
            }
        }
    }
    let exclusions = method.get_mut("exclusions").and_then(Value::as_array_mut);
    for exclusion in exclusions.into_iter().flatten().filter_map(Value::as_object_mut) {
        for side in ["left", "right"] {
            if let Some(conditions) = exclusion.get_mut(side).and_then(Value::as_object_mut) {
                *conditions = conditions_by_id(conditions, releases);
            }
        }
    }
    written
}

/// Conditions with ids in place of policies. Where both name an attribute, the reader reports the one with the policy.
fn conditions_by_id(conditions: &Map<String, Value>, releases: &[ReleaseOfPolicy]) -> Map<String, Value> {
    let by_id = |name: &String| by_id(name, releases).filter(|id| !conditions.contains_key(id));
    conditions.iter().map(|(name, value)| (by_id(name).unwrap_or_else(|| name.clone()), value.clone())).collect()
}

/// A reference with an id in place of a policy; of several policies with such a name, the longest.
fn by_id(text: &str, releases: &[ReleaseOfPolicy]) -> Option<String> {
    let named = releases.iter().filter_map(|of| {
        let attribute = text.strip_prefix(of.entry.policy.as_str())?.strip_prefix('.')?;
        Some((attribute.len(), format!("{}.{attribute}", of.release)))
    });
    named.min_by_key(|(rest, _)| *rest).map(|(_, reference)| reference)
}

/// The document of a policy as any job could write it out, with an id that no release has for each of these entries.
pub(super) fn with_any_releases(document: &Value) -> Value {
    let releases: Vec<ReleaseOfPolicy> = policies_joined(document).into_iter().map(ReleaseOfPolicy::unknown).collect();
    with_releases(document, &releases)
}

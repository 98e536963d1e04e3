//! Names in a document that nothing stored has: policies, taxonomies and releases of policies.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::identity::{Caller, Scope};
use crate::ports::{DocumentKind, DocumentVersion, Store, StoreError};
use crate::problem::{Fault, FaultRemedy, Kind, nearest_names, similar_name};

/// How many names a misspelled one is compared with: those that were written last.
const MAX_COMPARED: u32 = 100;

/// How many names are offered for an unknown one.
const NEAREST_NAMES: usize = 3;

/// The faults of such names. What they stand for stays open, and hides no other fault.
#[derive(Default)]
pub(super) struct UnknownNames {
    faults: Vec<Fault>,
    /// Whether any member may be the unknown policy's.
    lacks_policy: bool,
}

impl UnknownNames {
    pub(super) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn add_policy(&mut self, fault: Fault) {
        self.lacks_policy = true;
        self.faults.push(fault);
    }

    /// These faults and those of the rest of the document, without what follows from these.
    pub(super) fn among(self, mut others: Vec<Fault>, sent: &Value) -> Vec<Fault> {
        let Self { faults, lacks_policy } = self;
        let is_sent = |fault: &Fault| {
            let member = fault.pointer.split('/').nth(1).unwrap_or_default();
            // an attribute without a place may have one in the policy
            fault.kind != Kind::UnclassifiedAttributes && sent.get(member).is_some_and(|value| !value.is_null())
        };
        others.retain(|fault| faults.iter().all(|unknown| unknown.pointer != fault.pointer));
        others.retain(|fault| !lacks_policy || is_sent(fault));
        others.extend(faults);
        others
    }
}

/// The fault of an unknown dataset.
pub(super) fn unknown_dataset(pointer: String, id: Uuid) -> Fault {
    Fault::new(pointer, Kind::ParameterRange, format!("there is no dataset {id}: name one that was uploaded here"))
}

/// The same of a document that needs one, with the remedy to name the newest one for callers who may list them.
pub(super) async fn unknown_dataset_of(
    store: &dyn Store,
    caller: &Caller,
    pointer: &str,
    id: Uuid,
) -> Result<Fault, StoreError> {
    let mut fault = unknown_dataset(pointer.to_owned(), id);
    if ![Scope::DatasetsWrite, Scope::DatasetsInspect].into_iter().any(|scope| caller.has_scope(scope)) {
        return Ok(fault);
    }
    let listed = store.datasets(&caller.tenant, None, MAX_COMPARED).await?.items;
    let newest = listed.into_iter().find(|dataset| dataset.purged_at.is_none());
    fault.remedies.extend(newest.map(|newest| FaultRemedy {
        title: match newest.name {
            Some(name) => format!("publish {name}, the newest dataset"),
            None => "publish the newest dataset".to_owned(),
        },
        patch: json!([{"op": "replace", "path": pointer, "value": newest.id}]),
    }));
    Ok(fault)
}

/// The fault of an unknown policy or taxonomy, with the nearest names for callers who may list them, and with the remedy to
/// name a similar one.
pub(super) async fn unknown_name(
    store: &dyn Store,
    caller: &Caller,
    kind: DocumentKind,
    fault: Fault,
    name: &str,
) -> Result<Fault, StoreError> {
    if !caller.has_scope(Scope::Jobs) {
        return Ok(fault);
    }
    let known = store.documents(kind, &caller.tenant, None, MAX_COMPARED).await?.items;
    let names = || known.iter().map(|of| of.name.as_str());
    let (nearest, similar) = (nearest_names(name, names(), NEAREST_NAMES), similar_name(name, names()));
    let meant = |similar: &&str| known.iter().find(|of| of.name == *similar).map(DocumentVersion::pin);
    let remedy = similar.as_ref().and_then(meant).map(|pin| FaultRemedy {
        title: format!("name {pin}"),
        patch: json!([{"op": "replace", "path": fault.pointer, "value": pin}]),
    });
    let nearest: Vec<String> = nearest.into_iter().map(str::to_owned).collect();
    let mut fault = if nearest.is_empty() { fault } else { fault.with("nearest", nearest) };
    fault.remedies.extend(remedy);
    Ok(fault)
}

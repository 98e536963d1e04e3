//! What becomes of strata that break a guarantee by themselves.

use serde_json::{Value, json};

use super::columns::DatasetColumns;
use super::document::{Member, MemberContext, Reason, SchemaMap, document};

const REFUSE: &str = "refuse";

/// What the member may be.
const ALLOWED: &str = "\"refuse\", or an object such as {\"closed\": {\"reason\": \"why\"}}";

document! {
    /// Each stratum that breaks a guarantee by itself becomes one bucket, and its rows have no bound. Needs the scope `ledger:override`.
    ClosingMembers as "ClosedStrataOptions" {
        required closed: ClosedMembers => "an object with a reason",
    }
}

document! {
    /// Why strata without a bound may be published; the manifest has the reason.
    ClosedMembers as "ClosedStrata" {
        required reason: Reason,
    }
}

/// The member `ineligible_strata`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::spec) struct IneligibleStrata {
    /// Why such strata may be published without a bound; `None`: they are refused.
    pub(in crate::spec) closed: Option<String>,
}

impl Member for IneligibleStrata {
    fn allowed() -> String {
        ALLOWED.to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        match value {
            Value::String(word) if word == REFUSE => Some(Self::default()),
            Value::Object(_) => {
                let members = ClosingMembers::read(value, context)?;
                let reason = members.closed.value?.reason.value?;
                Some(Self { closed: Some(reason.0) })
            }
            _ => context.refuse(),
        }
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.closed.as_ref().map_or_else(|| REFUSE.into(), |reason| json!({"closed": {"reason": reason}}))
    }

    fn schema() -> Value {
        json!({"anyOf": [{"type": "string", "const": REFUSE}, ClosingMembers::schema()]})
    }

    fn define(schemas: &mut SchemaMap) {
        ClosingMembers::define(schemas);
    }
}

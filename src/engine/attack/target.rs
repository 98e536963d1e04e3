use std::collections::BTreeMap;

use serde_json::Value;

use super::report::{AttackFinding, AttackFindings, AttackReport};
use crate::engine::error::EngineError;
use crate::engine::read_back::external::VerificationMaterial;
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{AttackInput, Protected, PublishedTable, SubmittedRule, TableKind};
use crate::report::{Manifest, ManifestRatio};
use crate::spec::Attack;
use crate::verifier::AttackError;

/// A release that is attacked.
#[derive(Clone, Copy)]
pub struct AttackTarget<'a> {
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Its parts, and its original where the attack needs it.
    pub material: &'a VerificationMaterial,
    /// The rules that it is attacked against.
    pub rules: &'a [SubmittedRule],
}

impl AttackTarget<'_> {
    /// The dependencies of the manifest between attributes of the material, as determinants and dependents.
    pub(super) fn dependencies(self) -> Vec<(AttrSet, AttrSet)> {
        let side = |names: &[String]| -> Option<AttrSet> {
            let at = |name: &String| self.material.names().iter().position(|known| known == name).map(Attr::from);
            names.iter().map(at).collect()
        };
        let of_manifest = &self.manifest.dependencies;
        let declared = of_manifest.declared.iter().map(|form| (&form.determinant, &form.dependent));
        let discovered = of_manifest.discovered.iter().map(|form| (&form.determinant, &form.dependent));
        let all = declared.chain(discovered);
        all.filter_map(|(determinant, dependent)| Some((side(determinant)?, side(dependent)?))).collect()
    }
}

/// The refusal of an attack that does not apply.
pub(super) fn unsupported(pointer: &str, detail: impl Into<String>) -> EngineError {
    let fault = Fault::new(pointer, Kind::GuaranteeUnsupported, detail);
    EngineError::Refused(Problem::of_faults(vec![fault]))
}

/// The refusal of an attack with too much work.
pub(super) fn work_limit(detail: impl Into<String>, limit: impl Into<Value>, found: impl Into<Value>) -> EngineError {
    EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
}

/// An error of an attack on a release whose parts were verified: what they lack is a bug.
pub(super) fn release_problem(error: AttackError, contradiction: &str) -> EngineError {
    match error {
        AttackError::Cancelled => EngineError::Cancelled,
        AttackError::TooMany { what, limit, found } => {
            work_limit(format!("the attack would look at too many {what}"), limit, found)
        }
        AttackError::NotExact | AttackError::Circle => EngineError::bug(contradiction),
    }
}

/// Whether the buckets of a table protect these attributes.
pub(super) fn guards(table: &PublishedTable, protected: Protected) -> bool {
    let guards = table.protection.guards();
    table.kind() == TableKind::Bucketized && guards.iter().any(|guard| guard.protects == protected)
}

impl AttackReport {
    /// The report of an attack with findings; each finding is a breach.
    pub(super) fn new(
        attack: Attack,
        uses: AttackInput,
        worst: Option<ManifestRatio>,
        findings: AttackFindings,
    ) -> Self {
        Self {
            attack,
            uses,
            breach: findings.total > 0,
            worst,
            findings,
            membership: None,
            joins: None,
            intersection: None,
        }
    }
}

impl AttackFinding {
    /// A finding against the rule at a pointer, if the rule has one.
    pub(super) fn new(pointer: &str, table: Option<&str>, posterior: ManifestRatio) -> Self {
        Self {
            rule: Some(pointer.to_owned()).filter(|pointer| !pointer.is_empty()),
            table: table.map(str::to_owned),
            attribute: None,
            bucket: None,
            known: BTreeMap::new(),
            sensitive: BTreeMap::new(),
            posterior,
        }
    }
}

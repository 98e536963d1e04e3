//! Verification of a release from its manifest and its stored bytes.

use std::collections::BTreeMap;
use std::io;
use std::io::Read;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::entropy;
use super::figures::{figures, summary};
use super::hex::hex;
use super::manifest::{all_thresholds_in, taxonomies_of, thresholds_in};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::microdata::formats::csv::ScanError;
use crate::microdata::{Attr, AttrSet, AttributeType, MAX_ATTRIBUTES, Table};
use crate::publication::{
    Algorithm, CheckName, DeclaredTaxonomy, DeclaredThresholds, ExcludedValues, Linkage, MethodDetails, PublishedBytes,
    RuleOrigin, SubmittedRule, XyRequirement,
};
use crate::report::{CheckResult, Manifest, PartRows, VerificationSummary, publication_of, thresholds_of};
use crate::verifier;
use crate::verifier::Evidence;

/// The manifest of a release, and the data to verify it against.
pub struct VerificationInput<'a> {
    /// The manifest of the release.
    pub manifest: &'a Manifest,
    /// The published names of the attributes; attribute `i` is column `i` of the original.
    pub names: &'a [String],
    /// The rules of the specification; `None` for those of the manifest.
    pub rules: Option<&'a [SubmittedRule]>,
    /// The excludable values of the specification; `None` for those of the manifest.
    pub excludable: Option<&'a [ExcludedValues]>,
    /// The taxonomies of the specification; `None` for those of the manifest.
    pub taxonomies: Option<&'a [DeclaredTaxonomy]>,
    /// The requirements of the specification on joins; `None` for those of the manifest.
    pub requirements: Option<&'a [XyRequirement]>,
    /// The thresholds of the specification; `None` for those of the manifest.
    pub thresholds: Option<&'a [DeclaredThresholds]>,
    /// The original, in any order of rows.
    pub original: Option<&'a Table>,
}

/// Verifies the parts of a release without its witness.
///
/// The verifier makes every check that the parts, or the parts and the original, allow. Two checks compare the digests and the
/// figures of the manifest with the parts.
///
/// # Errors
/// [`EngineError::Cancelled`], or [`EngineError::Failed`] when a part cannot be read.
pub fn verify(
    claim: &VerificationInput<'_>,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<VerificationSummary, EngineError> {
    let mut publication = match publication_of(claim.manifest, claim.names) {
        Ok(publication) => publication,
        Err(detail) => return Ok(refuted(CheckName::Columns, detail)),
    };
    if let (MethodDetails::Sequential(sequence), Some(requirements)) = (&publication.method_details, claim.requirements)
    {
        let own = sequence.requirements.iter().map(|(requirement, _)| requirement).filter(|of| of.of == 0);
        if !own.eq(requirements) {
            let detail = "the requirements of the manifest are not those of the specification".to_owned();
            return Ok(refuted(CheckName::Requirements, detail));
        }
    }
    if let Some(original) = claim.original.filter(|_| may_lack_rows(claim.manifest)) {
        // the manifest does not hold the number of suppressed rows
        let published = publication.tables.iter().flat_map(|table| &table.parts).map(|part| part.len).max();
        publication.suppressed = (original.rows() as u64).saturating_sub(published.unwrap_or(0));
    }
    let rows = claim.manifest.tables.iter().flat_map(|table| &table.parts).map(|part| part.rows).sum();
    control.begin(Phase::Verify, rows)?;
    let submitted =
        publication.rules.iter().filter(|rule| rule.origin != RuleOrigin::FromDependency).map(|rule| SubmittedRule {
            pointer: rule.pointer.clone().unwrap_or_default(),
            known: rule.known,
            protects: rule.protects,
            guarantee: rule.guarantee,
        });
    let submitted: Vec<SubmittedRule> = submitted.collect();
    let types = |name: &String| {
        claim.manifest.tables.iter().flat_map(|table| &table.parts).find_map(|part| part.types.get(name).copied())
    };
    let kinds: Vec<Option<AttributeType>> = claim.names.iter().map(types).collect();
    let (names, dependencies) = dependencies(claim);
    let listed: Vec<ExcludedValues> = claim
        .manifest
        .excludable
        .iter()
        .filter_map(|(name, values)| {
            let attribute = names.iter().position(|known| known == name)?;
            Some(ExcludedValues { attribute: Attr::from(attribute), values: values.clone() })
        })
        .collect();
    let all_listed = claim.excludable.is_none_or(|declared| {
        let named = |of: &ExcludedValues| (claim.names[of.attribute.index()].clone(), of.values.clone());
        declared.iter().map(named).collect::<BTreeMap<_, _>>() == claim.manifest.excludable
    });
    let trees = match taxonomies_of(claim.manifest, claim.names) {
        Ok(trees) => trees,
        Err(detail) => return Ok(refuted(CheckName::Columns, detail)),
    };
    let all_trees = claim.taxonomies.is_none_or(|declared| {
        let named = |of: &DeclaredTaxonomy| (claim.names[of.attribute.index()].clone(), of.tree.written());
        let published =
            |(name, _): &(String, Value)| claim.manifest.tables.iter().any(|table| table.attributes.contains(name));
        declared.iter().map(named).filter(published).collect::<BTreeMap<_, _>>() == claim.manifest.taxonomies
    });
    let bounds = thresholds_in(claim.manifest, claim.names);
    let all_bounds =
        claim.thresholds.is_none_or(|declared| thresholds_of(declared, claim.names) == claim.manifest.thresholds);
    let all_thresholds = all_thresholds_in(claim.manifest, claim.names);
    let promised = claim.manifest.unit.promised(all_thresholds.iter().map(|declared| &declared.thresholds));
    let promised = claim.manifest.rules.iter().all(|rule| {
        claim.manifest.unit.stated(rule.of_rows(), &promised) == rule.guarantee
            && (rule.enforced.is_some() || claim.manifest.unit.rows() == 1)
    });
    let evidence = Evidence {
        publication: &publication,
        submitted: claim.rules.unwrap_or(&submitted),
        dependencies: &dependencies,
        parts,
        original: claim.original,
        witness: None,
        names: &names,
        kinds: &kinds,
        accounted: AttrSet::first(claim.names.len()),
        excludable: claim.excludable.unwrap_or(&listed),
        taxonomies: claim.taxonomies.unwrap_or(&trees),
        earlier_releases: None,
        thresholds: claim.thresholds.unwrap_or(&bounds),
    };
    let verification = verifier::verify(&evidence, control)?;
    let mut summary = summary(&verification);
    summary.checks.push(digests(claim.manifest, parts)?);
    let mistyped = mistyped(claim.manifest, parts)?;
    summary.checks.push(CheckResult {
        check: CheckName::Figures,
        passed: figures(&verification, &publication, claim.names, claim.manifest)
            && all_listed
            && all_trees
            && all_bounds
            && promised
            && mistyped.is_none()
            && entropy::holds(&claim.manifest.utility, &publication, &kinds, parts, control)?,
        detail: mistyped,
    });
    summary.verified = summary.checks.iter().all(|check| check.passed);
    Ok(summary)
}

/// Whether the method of a release may suppress rows.
fn may_lack_rows(manifest: &Manifest) -> bool {
    manifest.method.algorithm == Some(Algorithm::MultiSa)
}

/// The attribute names and dependencies of a manifest; attributes without a published column come last.
fn dependencies(claim: &VerificationInput<'_>) -> (Vec<String>, Vec<(AttrSet, AttrSet)>) {
    let mut names = claim.names.to_vec();
    let mut side = |side: &[String]| -> AttrSet {
        let attr = |name: &String| {
            let index = names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name.clone());
                names.len() - 1
            });
            // an attribute without room in a set is not published
            (index < MAX_ATTRIBUTES).then(|| Attr::from(index))
        };
        side.iter().filter_map(attr).collect()
    };
    let forms = claim.manifest.dependencies.declared.iter().chain(&claim.manifest.dependencies.discovered);
    let dependencies = forms.map(|form| (side(&form.determinant), side(&form.dependent))).collect();
    (names, dependencies)
}

/// The check that every part has the digest of the manifest.
fn digests(manifest: &Manifest, parts: &dyn PublishedBytes) -> io::Result<CheckResult> {
    let mut detail = None;
    for part in manifest.tables.iter().flat_map(|table| &table.parts) {
        let (mut source, mut hash, mut block) = (parts.open(&part.file)?, Sha256::new(), vec![0; 1 << 16]);
        loop {
            match source.read(&mut block)? {
                0 => break,
                read => hash.update(&block[..read]),
            }
        }
        if hex(&hash.finalize()) != part.sha256 {
            detail.get_or_insert_with(|| format!("{} is not the file that the manifest describes", part.file));
        }
    }
    Ok(CheckResult { check: CheckName::Digests, passed: detail.is_none(), detail })
}

/// A sentence on the first part whose cells do not have the types of the manifest.
fn mistyped(manifest: &Manifest, parts: &dyn PublishedBytes) -> io::Result<Option<String>> {
    for part in manifest.tables.iter().flat_map(|table| &table.parts) {
        let held = match PartRows::new(part).types_hold(parts.open(&part.file)?) {
            Ok(held) => held,
            Err(ScanError::Io(error)) => return Err(error),
            // other checks fail too
            Err(_) => false,
        };
        if !held {
            return Ok(Some(format!("the cells of {} do not have the types of the manifest", part.file)));
        }
    }
    Ok(None)
}

fn refuted(check: CheckName, detail: String) -> VerificationSummary {
    VerificationSummary {
        verified: false,
        linkage: Linkage::NotChecked,
        checks: vec![CheckResult { check, passed: false, detail: Some(detail) }],
    }
}

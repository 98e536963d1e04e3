//! Verification of a release from its manifest and its stored bytes.

use std::collections::BTreeMap;
use std::io;
use std::io::Read;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::exposures::PublishedTables;
use super::figures::{figures, summary};
use super::hex::hex;
use super::manifest::{all_thresholds_in, taxonomies_of, thresholds_in};
use super::{entropy, exposures};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::microdata::formats::csv::RecordError;
use crate::microdata::{Attr, AttrSet, AttributeType, MAX_ATTRIBUTES, Table, UploadedColumn};
use crate::privacy::DiscoveryOptions;
use crate::publication::{
    Algorithm, CheckName, DeclaredTaxonomy, DeclaredThresholds, ExcludedValues, Linkage, MethodDetails, Publication,
    PublishedBytes, RowMeaning, RuleOrigin, SearchedDependencies, SubmittedRule, TableProtection, XyRequirement,
};
use crate::report::{
    CheckResult, Manifest, ManifestDependencies, MethodDetailsForm, PartRows, VerificationSummary, publication_of,
    thresholds_of,
};
use crate::verifier;
use crate::verifier::{DeclaredSearch, VerifierInput};

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
    /// Whether the specification admits strata without a bound; `None` for the choice of the manifest.
    pub closes: Option<bool>,
    /// The original, in any order of rows.
    pub original: Option<&'a Table>,
    /// The other columns of the upload, rows in the order of the original.
    pub dropped: &'a [UploadedColumn<'a>],
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
    if has_other_requirements(claim, &publication) {
        return Ok(refuted(CheckName::Requirements, OTHER_REQUIREMENTS.to_owned()));
    }
    publication.suppressed = suppressed_rows(claim, &publication);
    control.begin(Phase::Verify, claim.manifest.tables.iter().flat_map(|of| &of.parts).map(|part| part.rows).sum())?;
    let submitted = submitted_rules(&publication);
    let kinds = column_types(claim);
    let (names, dependencies) = dependencies(claim);
    name_constant(&mut publication, claim.manifest, &names);
    let listed = excluded_values(claim.manifest, &names);
    let trees = match taxonomies_of(claim.manifest, claim.names) {
        Ok(trees) => trees,
        Err(detail) => return Ok(refuted(CheckName::Columns, detail)),
    };
    let bounds = thresholds_in(claim.manifest, claim.names);
    let input = VerifierInput {
        publication: &publication,
        submitted: claim.rules.unwrap_or(&submitted),
        dependencies: &dependencies.known,
        dependency_search: dependencies.search(claim.manifest),
        parts,
        original: claim.original,
        dropped: claim.dropped,
        witness: None,
        names: &names,
        kinds: &kinds,
        accounted: AttrSet::first(claim.names.len()),
        excludable: claim.excludable.unwrap_or(&listed),
        taxonomies: claim.taxonomies.unwrap_or(&trees),
        earlier_releases: None,
        thresholds: claim.thresholds.unwrap_or(&bounds),
        closes: claim.closes.unwrap_or(claim.manifest.dependencies.ineligible_strata.is_some()),
    };
    let verification = verifier::verify(&input, control)?;
    let published = PublishedTables { publication: &publication, names: claim.names, taxonomies: input.taxonomies };
    let mut summary = summary(&verification);
    summary.checks.push(digests(claim.manifest, parts)?);
    let mistyped = mistyped(claim.manifest, parts)?;
    summary.checks.push(CheckResult {
        check: CheckName::Figures,
        passed: figures(&verification, &publication, claim.names, claim.manifest)
            && states_declarations(claim)
            && states_guarantees(claim)
            && mistyped.is_none()
            && entropy::holds(&claim.manifest.utility, &publication, &kinds, parts, control)?
            && exposures::hold(claim.manifest, published, parts, control)?,
        detail: mistyped,
    });
    summary.verified = summary.checks.iter().all(|check| check.passed);
    Ok(summary)
}

const OTHER_REQUIREMENTS: &str = "the requirements of the manifest are not those of the specification";

/// Whether a manifest has other requirements on the join than the specification.
fn has_other_requirements(claim: &VerificationInput<'_>, publication: &Publication) -> bool {
    let (MethodDetails::Sequential(sequence), Some(requirements)) = (&publication.method_details, claim.requirements)
    else {
        return false;
    };
    let own = sequence.requirements.iter().map(|(requirement, _)| requirement).filter(|of| of.of == 0);
    !own.eq(requirements)
}

/// The number of suppressed rows. The manifest does not hold it, so that it follows from the original alone.
fn suppressed_rows(claim: &VerificationInput<'_>, publication: &Publication) -> u64 {
    let Some(original) = claim.original.filter(|_| may_lack_rows(claim.manifest)) else {
        return publication.suppressed;
    };
    // of a night, whose signatures are longer, the first part has the rows
    let parts = publication.tables.iter().flat_map(|table| &table.parts);
    let published = parts.filter(|part| part.rows == RowMeaning::Tuples).map(|part| part.len).max();
    (original.rows() as u64).saturating_sub(published.unwrap_or(0))
}

/// The rules of a publication that its caller submitted.
fn submitted_rules(publication: &Publication) -> Vec<SubmittedRule> {
    let submitted = publication.rules.iter().filter(|rule| rule.origin != RuleOrigin::FromDependency);
    let submitted = submitted.map(|rule| SubmittedRule {
        pointer: rule.pointer.clone().unwrap_or_default(),
        known: rule.known,
        protects: rule.protects,
        guarantee: rule.guarantee,
    });
    submitted.collect()
}

/// The values that a manifest lists as excludable.
fn excluded_values(manifest: &Manifest, names: &[String]) -> Vec<ExcludedValues> {
    let of_name = |(name, values): (&String, &Vec<Option<String>>)| {
        let attribute = names.iter().position(|known| known == name)?;
        Some(ExcludedValues { attribute: Attr::from(attribute), values: values.clone() })
    };
    manifest.excludable.iter().filter_map(of_name).collect()
}

/// Whether a manifest states what the specification declares of values, where that is given.
fn states_declarations(claim: &VerificationInput<'_>) -> bool {
    let manifest = claim.manifest;
    let all_excluded = claim.excludable.is_none_or(|declared| {
        let named = |of: &ExcludedValues| (claim.names[of.attribute.index()].clone(), of.values.clone());
        declared.iter().map(named).collect::<BTreeMap<_, _>>() == manifest.excludable
    });
    let all_trees = claim.taxonomies.is_none_or(|declared| {
        let named = |of: &DeclaredTaxonomy| (claim.names[of.attribute.index()].clone(), of.tree.written());
        let published =
            |(name, _): &(String, Value)| manifest.tables.iter().any(|table| table.attributes.contains(name));
        declared.iter().map(named).filter(published).collect::<BTreeMap<_, _>>() == manifest.taxonomies
    });
    let all_bounds =
        claim.thresholds.is_none_or(|declared| thresholds_of(declared, claim.names) == manifest.thresholds);
    all_excluded && all_trees && all_bounds
}

/// Whether the guarantees of a manifest are those that its unit of protection gives.
fn states_guarantees(claim: &VerificationInput<'_>) -> bool {
    let unit = &claim.manifest.unit;
    let thresholds = all_thresholds_in(claim.manifest, claim.names);
    let promised = unit.promised(thresholds.iter().map(|declared| &declared.thresholds));
    claim.manifest.rules.iter().all(|rule| {
        unit.unit_guarantee(rule.of_rows(), &promised) == rule.guarantee
            && (rule.enforced.is_some() || unit.rows() == 1)
    })
}

/// Whether the method of a release may suppress rows.
pub(super) fn may_lack_rows(manifest: &Manifest) -> bool {
    let is_night = matches!(manifest.method_details, Some(MethodDetailsForm::Republish(_)));
    manifest.method.algorithm == Some(Algorithm::MultiSa) || is_night
}

/// The dependencies of a manifest, as determinants and dependents.
struct DependencyClaims {
    /// The declared ones, those of the series and the discovered ones.
    known: Vec<(AttrSet, AttrSet)>,
    found: Vec<(AttrSet, AttrSet)>,
    withdrawn: Vec<(AttrSet, AttrSet)>,
}

impl DependencyClaims {
    /// The search of a release; without one, the adversary is assumed to know no dependency of the data.
    fn search(&self, manifest: &Manifest) -> Option<DeclaredSearch<'_>> {
        let tolerance = manifest.dependencies.tolerance.unwrap_or(DiscoveryOptions::default().tolerance);
        let search = DeclaredSearch { found: &self.found, withdrawn: &self.withdrawn, tolerance, lists_all: false };
        (manifest.dependencies.searched != Some(SearchedDependencies::None)).then_some(search)
    }
}

/// Adds to guards the constant attributes that are not published, and that dependencies name.
fn name_constant(publication: &mut Publication, manifest: &Manifest, names: &[String]) {
    for (table, claimed) in publication.tables.iter_mut().zip(&manifest.tables) {
        let TableProtection::Guarding(guards) = &mut table.protection else { continue };
        for (guard, claimed) in guards.iter_mut().zip(&claimed.guards) {
            let attr = |name: &String| names.iter().position(|known| known == name);
            guard.constant = claimed.constant.iter().filter_map(attr).filter_map(as_attribute).collect();
        }
    }
}

/// An attribute without room in a set is not published.
fn as_attribute(index: usize) -> Option<Attr> {
    (index < MAX_ATTRIBUTES).then(|| Attr::from(index))
}

/// The types of the columns of a release, by attribute.
fn column_types(claim: &VerificationInput<'_>) -> Vec<Option<AttributeType>> {
    let parts = || claim.manifest.tables.iter().flat_map(|table| &table.parts);
    claim.names.iter().map(|name| parts().find_map(|part| part.types.get(name).copied())).collect()
}

/// The attribute names and dependencies of a manifest; attributes without a published column come last.
fn dependencies(claim: &VerificationInput<'_>) -> (Vec<String>, DependencyClaims) {
    let mut names = claim.names.to_vec();
    let mut side = |side: &[String]| -> AttrSet {
        let attr = |name: &String| {
            let index = names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name.clone());
                names.len() - 1
            });
            as_attribute(index)
        };
        side.iter().filter_map(attr).collect()
    };
    let ManifestDependencies { declared, recorded, discovered, assumed_unknown, .. } = &claim.manifest.dependencies;
    let mut sides = |(determinant, dependent): (&Vec<String>, &Vec<String>)| (side(determinant), side(dependent));
    let recorded = recorded.iter().map(|form| (&form.determinant, &form.dependent));
    let declared = declared.iter().map(|form| (&form.determinant, &form.dependent)).chain(recorded);
    let declared: Vec<(AttrSet, AttrSet)> = declared.map(&mut sides).collect();
    let found = discovered.iter().map(|form| (&form.determinant, &form.dependent));
    let found: Vec<(AttrSet, AttrSet)> = found.map(&mut sides).collect();
    let withdrawn = assumed_unknown.iter().map(|form| (&form.determinant, &form.dependent));
    let withdrawn = withdrawn.map(&mut sides).collect();
    (names, DependencyClaims { known: [declared, found.clone()].concat(), found, withdrawn })
}

/// The check that every part has the digest of the manifest.
fn digests(manifest: &Manifest, parts: &dyn PublishedBytes) -> io::Result<CheckResult> {
    let mut detail = None;
    for part in manifest.tables.iter().flat_map(|table| &table.parts) {
        let csv = part.csv();
        let whole = part.sha256.iter().map(|digest| (csv.as_str(), digest));
        for (file, digest) in whole.chain(part.files.iter().map(|of| (of.file.as_str(), &of.sha256))) {
            let (mut source, mut hash, mut block) = (parts.open(file)?, Sha256::new(), vec![0; 1 << 16]);
            loop {
                match source.read(&mut block)? {
                    0 => break,
                    read => hash.update(&block[..read]),
                }
            }
            if hex(&hash.finalize()) != *digest {
                detail.get_or_insert_with(|| format!("{file} is not the file that the manifest describes"));
            }
        }
    }
    Ok(CheckResult { check: CheckName::Digests, passed: detail.is_none(), detail })
}

/// A sentence on the first part whose cells do not have the types of the manifest.
fn mistyped(manifest: &Manifest, parts: &dyn PublishedBytes) -> io::Result<Option<String>> {
    for part in manifest.tables.iter().flat_map(|table| &table.parts) {
        let held = match PartRows::new(part).types_hold(parts.open(&part.csv())?) {
            Ok(held) => held,
            Err(RecordError::Io(error)) => return Err(error),
            // other checks fail too
            Err(_) => false,
        };
        if !held {
            return Ok(Some(format!("the cells of {} do not have the types of the manifest", part.csv())));
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

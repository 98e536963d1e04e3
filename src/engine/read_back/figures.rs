use crate::publication::{EnforcedBy, EnforcedRule, Guarantee, Publication};
use crate::report::{
    BucketSizes, CheckResult, Manifest, ManifestAchieved, ManifestClosed, ManifestRatio, MethodDetailsForm,
    VerificationSummary,
};
use crate::verifier::{BucketMeasure, TableFigures, VerifierReport};

/// The verifier in the words of a manifest.
pub(in crate::engine) fn summary(verification: &VerifierReport) -> VerificationSummary {
    VerificationSummary {
        verified: verification.verified(),
        linkage: verification.linkage,
        checks: verification
            .checks
            .iter()
            .map(|check| CheckResult { check: check.check, passed: check.passed, detail: check.detail.clone() })
            .collect(),
    }
}

/// The figures of the table that enforces a rule.
fn guard_figures<'v>(
    verification: &'v VerifierReport,
    publication: &Publication,
    rule: &EnforcedRule,
) -> Option<&'v TableFigures> {
    let (EnforcedBy::Guardian { table: guard, .. } | EnforcedBy::Table(guard)) = &rule.enforced_by else {
        return None;
    };
    let index = publication.tables.iter().position(|published| published.name == *guard)?;
    verification.tables.get(index)
}

/// What the buckets that hold a rule achieve, from the parts as the verifier read them.
pub(in crate::engine) fn achieved(
    verification: &VerifierReport,
    publication: &Publication,
    rule: usize,
) -> Option<ManifestAchieved> {
    let protection = publication.rules.get(rule)?;
    let figures = guard_figures(verification, publication, protection)?;
    if let Guarantee::KAnonymity { .. } = protection.guarantee {
        let smallest = figures.sizes.keys().next().copied()?;
        return Some(ManifestAchieved { smallest_bucket: smallest, k: Some(smallest), ..ManifestAchieved::default() });
    }
    let sensitive = protection.protects.attributes();
    let single = sensitive.iter().find_map(|attr| figures.posteriors.get(&attr));
    let mut combined = figures.combined.iter().filter(|(attrs, _)| attrs.is_subset(sensitive));
    let posterior = single.or_else(|| combined.next().map(|(_, posteriors)| posteriors))?;
    let mut achieved = ManifestAchieved {
        prior: posterior.prior.map(ManifestRatio::from),
        worst_posterior: Some(posterior.worst.into()),
        median_posterior: Some(posterior.median.into()),
        smallest_bucket: posterior.smallest_bucket,
        ..ManifestAchieved::default()
    };
    match figures.measures.get(&rule) {
        None => {}
        Some(BucketMeasure::DistinctValues(values)) => achieved.distinct_values = Some(*values),
        Some(BucketMeasure::EntropyL(l)) => achieved.entropy_l = Some(*l),
        Some(BucketMeasure::RecursiveC(c)) => achieved.recursive_c = Some(*c),
        Some(BucketMeasure::Distance(distance)) => achieved.distance = Some(*distance),
        Some(BucketMeasure::Gain(gain)) => achieved.gain = Some(*gain),
    }
    Some(achieved)
}

/// The buckets without a bound behind a rule for which strata were closed.
pub(in crate::engine) fn closed(
    verification: &VerifierReport,
    publication: &Publication,
    rule: usize,
) -> Option<ManifestClosed> {
    let protection = publication.rules.get(rule)?;
    let figures = guard_figures(verification, publication, protection)?;
    let sensitive = protection.protects.attributes();
    let (_, closed) = figures.closed.iter().find(|(protects, _)| protects.is_subset(sensitive))?;
    let worst_posterior = closed.worst.map(ManifestRatio::from);
    Some(ManifestClosed { buckets: closed.buckets, rows: closed.rows, of: figures.rows, worst_posterior })
}

pub(in crate::engine) fn bucket_sizes(verification: &VerifierReport, publication: &Publication) -> Vec<BucketSizes> {
    let sizes = publication.tables.iter().zip(&verification.tables).flat_map(|(table, figures)| {
        figures.sizes.iter().map(|(&size, &buckets)| BucketSizes { table: table.name.0.clone(), size, buckets })
    });
    sizes.collect()
}

/// Whether every figure of a manifest is the one that the verifier read from the parts.
pub(in crate::engine) fn figures(
    verification: &VerifierReport,
    publication: &Publication,
    published_names: &[String],
    manifest: &Manifest,
) -> bool {
    manifest.utility.bucket_sizes == bucket_sizes(verification, publication)
        && manifest.method_details == MethodDetailsForm::from_details(&publication.method_details, published_names)
        && manifest.rules.iter().enumerate().all(|(index, rule)| {
            let without_bound = closed(verification, publication, index);
            let is_bounded = without_bound.is_none_or(|closed| rule.bounded == Some(closed.buckets == 0));
            let mut found = achieved(verification, publication, index);
            // manifests of older releases have no priors
            if let (Some(found), Some(ManifestAchieved { prior: None, .. })) = (&mut found, rule.achieved) {
                found.prior = None;
            }
            rule.achieved == found && rule.closed == without_bound && is_bounded
        })
}

//! The public report: the manifest in sentences, for whoever files or reads a release. A function of the manifest alone.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::manifest::{Manifest, ManifestEnforcedBy, ManifestRule};
use super::ratio::ManifestRatio;
use crate::publication::{Guarantee, RowKind, TableKind};

/// What a release promises and why, in words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PublicReport {
    /// The release, in one sentence.
    pub summary: String,
    /// Per rule: what is promised, why it holds and what was achieved.
    pub rules: Vec<String>,
    /// Per table: what it holds.
    pub tables: Vec<String>,
    /// What the verifier checked.
    pub verification: String,
    /// How to read buckets, and what must not be concluded.
    pub reading: String,
    /// With counterfeits: what whoever finds out the values of some rows of a bucket can be sure of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certainty: Vec<Certainty>,
}

/// What is certain of a bucket of different values of which some rows are known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Certainty {
    /// Rows of the bucket.
    pub size: u64,
    /// How many of them are known.
    pub known: u64,
    /// The share of the values left that are of somebody.
    pub real: ManifestRatio,
    /// How probable it is that one of the other rows has one of the values left.
    pub posterior: ManifestRatio,
}

/// The table of certainties lists so many lines for a size of bucket.
const MAX_CERTAINTY_LINES: u64 = 100;

/// Puts a manifest into words.
#[must_use]
pub fn public_report(manifest: &Manifest) -> PublicReport {
    let rows = manifest.tables.iter().flat_map(|table| &table.parts).map(|part| part.rows).max().unwrap_or(0);
    let tables = manifest.tables.iter().map(|table| {
        let attributes = table.attributes.join(", ");
        let classes: u64 =
            manifest.utility.bucket_sizes.iter().filter(|s| s.table == table.name).map(|s| s.buckets).sum();
        if table.kind == TableKind::Generalized {
            let shared: Vec<&str> =
                table.parts.iter().flat_map(|part| part.cells.keys()).map(String::as_str).collect();
            return format!(
                "{} holds {attributes}; what stands in the cells of {} is shared by the rows of a class, of which there are {classes}",
                table.name,
                shared.join(", ")
            );
        }
        if table.kind == TableKind::Decomposed {
            let of_values = table.parts.iter().filter(|part| part.row_meaning == RowKind::Values);
            let listed: Vec<&str> = of_values.flat_map(|part| &part.attributes).map(String::as_str).collect();
            let listed = if listed.is_empty() { String::new() } else { format!("; of {} each lists values", listed.join(", ")) };
            return format!("{} holds {attributes} in {classes} buckets{listed}", table.name);
        }
        if table.kind == TableKind::Sensitive {
            return format!("{} holds the joint values of {attributes}, of nobody in particular", table.name);
        }
        match table.guards.first() {
            _ if table.kind == TableKind::Sliced => format!(
                "{} holds {attributes} in {} parts, tied to each other by {} buckets",
                table.name,
                table.parts.len(),
                classes
            ),
            None => format!("{} holds the exact tuples of {attributes}", table.name),
            Some(guard) => {
                format!(
                    "{} holds {attributes}; {} stands in a part of its own, tied to the rest by {classes} buckets",
                    table.name,
                    guard.sensitive.join(", ")
                )
            }
        }
    });
    let passed = manifest.verification.checks.iter().filter(|check| check.passed).map(|check| check.check.as_str());
    PublicReport {
        summary: format!(
            "{rows} rows in {} tables under {} rules; the unit of protection is a {}",
            manifest.tables.len(),
            manifest.rules.len(),
            manifest.unit
        ),
        rules: manifest.rules.iter().map(sentence).collect(),
        tables: tables.collect(),
        verification: format!(
            "the written parts were read back and re-checked: {}; linkage {}",
            passed.collect::<Vec<_>>().join(", "),
            manifest.verification.linkage.in_words()
        ),
        reading: "in a bucket every row of one part may belong to every row of the other; rows of different tables \
                  must not be matched by their position or by bucket"
            .to_owned(),
        certainty: certainties(manifest),
    }
}

/// Of buckets with counterfeits: of s rows of which q are known, s - q values of those left are real, and with c counterfeits there are
/// s + c - q of them.
fn certainties(manifest: &Manifest) -> Vec<Certainty> {
    let mut all = Vec::new();
    for table in &manifest.tables {
        let Some(counterfeits) = table.parts.iter().find_map(|part| part.counterfeits_per_bucket) else { continue };
        for sizes in manifest.utility.bucket_sizes.iter().filter(|sizes| sizes.table == table.name) {
            let size = sizes.size;
            all.extend((0..size.min(MAX_CERTAINTY_LINES)).map(|known| {
                let (left, of) = (size - known, size - known + u64::from(counterfeits));
                let (real, posterior) = (ManifestRatio { count: left, of }, ManifestRatio { count: 1, of });
                Certainty { size, known, real, posterior }
            }));
        }
    }
    all
}

fn sentence(rule: &ManifestRule) -> String {
    let known =
        if rule.quasi_identifiers.is_empty() { "nothing".to_owned() } else { rule.quasi_identifiers.join(", ") };
    let sensitive = rule.sensitive.join(", ");
    let promise = match (rule.bounded, rule.guarantee) {
        (Some(false), Guarantee::LDiversity { l }) => {
            format!(
                "whoever knows {known} of a person sees at least {l} values of {sensitive}, with no bound on how likely each of them is"
            )
        }
        _ => format!("whoever knows {known} of a person learns {}", promised(rule.guarantee, &sensitive)),
    };
    let reason = match &rule.enforced_by {
        ManifestEnforcedBy::Unreachable { .. } => format!("no published table leads from there to {sensitive}"),
        ManifestEnforcedBy::Guardian { guardian, .. } => format!("table {guardian} stands between"),
        ManifestEnforcedBy::Table { table } => format!("table {table} holds it"),
    };
    match rule.achieved {
        None => format!("{promise}: {reason}"),
        Some(achieved) => match achieved.worst_posterior {
            Some(worst) => format!("{promise}: {reason}, and its worst bucket gives {} of {}", worst.count, worst.of),
            None => format!("{promise}: {reason}, and its smallest class has {} rows", achieved.smallest_bucket),
        },
    }
}

/// What a guarantee promises of an attribute.
fn promised(guarantee: Guarantee, sensitive: &str) -> String {
    match guarantee {
        Guarantee::KAnonymity { k } => format!("no more than that the person is one of at least {k}"),
        Guarantee::LDiversity { l } => format!("each value of {sensitive} with probability at most 1/{l}"),
        Guarantee::DistinctLDiversity { l } => format!("of {sensitive} no more than that it is one of {l} values"),
        Guarantee::EntropyLDiversity { l } => {
            format!("no more of {sensitive} than leaves the uncertainty of {l} equally likely values")
        }
        Guarantee::RecursiveLDiversity { c, l } => format!(
            "{sensitive} so that the likeliest value is less than {c} times as likely as all from the {l}th likeliest on"
        ),
        Guarantee::AlphaK { alpha, k } => {
            format!("each value of {sensitive} with probability at most {alpha}, among at least {k} rows")
        }
        Guarantee::TCloseness { t, .. } => {
            format!("a distribution of {sensitive} that is within {t} of that of the whole table")
        }
        Guarantee::Rho { rho1, rho2, .. } => {
            format!("nothing of {sensitive} with probability above {rho2} that has at most {rho1} in the whole table")
        }
        Guarantee::Thresholds { least, most, .. } if least == most => {
            format!("each value of {sensitive} with probability at most {most}")
        }
        Guarantee::Thresholds { .. } => {
            format!("each value of {sensitive} with a probability of at most the threshold that is stated for it")
        }
        Guarantee::Delta { b, distance, .. } => format!(
            "a distribution of {sensitive} that is within {b} of that of the whole table ({})",
            match distance {
                crate::publication::Divergence::TotalVariation => "total variation",
                crate::publication::Divergence::Max => "largest difference",
                crate::publication::Divergence::Kl => "nats of relative entropy",
                crate::publication::Divergence::Emd => "earth mover's distance",
                crate::publication::Divergence::LogRatio => "log ratio",
            }
        ),
    }
}

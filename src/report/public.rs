//! The public report: the manifest of a release in sentences. A function of the manifest alone.

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
    /// For each rule its promise, the reason it holds, and the worst bucket.
    pub rules: Vec<String>,
    /// The content of each table.
    pub tables: Vec<String>,
    /// What the verifier checked.
    pub verification: String,
    /// How to read buckets, and which conclusions are wrong.
    pub reading: String,
    /// With counterfeits: the posteriors of an adversary who knows the values of some rows of a bucket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certainty: Vec<Certainty>,
}

/// The posterior in a bucket of distinct values when the adversary knows some of its rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Certainty {
    /// Rows of the bucket.
    pub size: u64,
    /// Rows whose values the adversary knows.
    pub known: u64,
    /// The share of the remaining values that belong to rows.
    pub real: ManifestRatio,
    /// The probability that another row has a given one of the remaining values.
    pub posterior: ManifestRatio,
}

/// The most lines in the table of certainties for one size of buckets.
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
            let shared: Vec<&str> = table.parts.iter().flat_map(|part| part.cells.keys()).map(String::as_str).collect();
            return format!(
                "{} holds {attributes} in {classes} classes; the rows of a class share the cells of {}",
                table.name,
                shared.join(", ")
            );
        }
        if table.kind == TableKind::Decomposed {
            let of_values = table.parts.iter().filter(|part| part.row_meaning == RowKind::Values);
            let listed: Vec<&str> = of_values.flat_map(|part| &part.attributes).map(String::as_str).collect();
            let listed = if listed.is_empty() {
                String::new()
            } else {
                format!("; each bucket lists the values of {}", listed.join(", "))
            };
            return format!("{} holds {attributes} in {classes} buckets{listed}", table.name);
        }
        if table.kind == TableKind::Sensitive {
            return format!("{} holds the joint values of {attributes}, without a link to rows", table.name);
        }
        match table.guards.first() {
            _ if table.kind == TableKind::Sliced => format!(
                "{} holds {attributes} in {} parts, linked only by {} buckets",
                table.name,
                table.parts.len(),
                classes
            ),
            None => format!("{} holds the exact tuples of {attributes}", table.name),
            Some(guard) => {
                format!(
                    "{} holds {attributes}; {} is in a part of its own, linked to the rest only by {classes} buckets",
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
            "the verifier read the written parts back and checked {}; linkage {}",
            passed.collect::<Vec<_>>().join(", "),
            manifest.verification.linkage.in_words()
        ),
        reading: "within a bucket, any row of one part may belong to any row of the other; never match rows of \
                  different tables by position or by bucket label"
            .to_owned(),
        certainty: certainties(manifest),
    }
}

/// Certainties of buckets with counterfeits: the adversary who knows q of s rows is left with s - q values of rows and c
/// counterfeits.
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
                "an adversary who knows {known} of a person sees at least {l} values of {sensitive}, with no bound on the probability of each"
            )
        }
        _ => format!("an adversary who knows {known} of a person learns {}", promised(rule.guarantee, &sensitive)),
    };
    let reason = match &rule.enforced_by {
        ManifestEnforcedBy::Unreachable { .. } => format!("no path of published tables leads to {sensitive}"),
        ManifestEnforcedBy::Guardian { guardian, .. } => format!("every path passes the guarding table {guardian}"),
        ManifestEnforcedBy::Table { table } => format!("table {table} enforces it"),
    };
    match rule.achieved {
        None => format!("{promise}: {reason}"),
        Some(achieved) => match achieved.worst_posterior {
            Some(worst) => format!("{promise}: {reason}, and its worst bucket gives {} of {}", worst.count, worst.of),
            None => format!("{promise}: {reason}, and its smallest class has {} rows", achieved.smallest_bucket),
        },
    }
}

/// The promise of a guarantee for a sensitive attribute, as the object of "learns".
fn promised(guarantee: Guarantee, sensitive: &str) -> String {
    match guarantee {
        Guarantee::KAnonymity { k } => format!("no more than that the person is one of at least {k}"),
        Guarantee::LDiversity { l } => format!("each value of {sensitive} with probability at most 1/{l}"),
        Guarantee::DistinctLDiversity { l } => format!("no more of {sensitive} than that it is one of {l} values"),
        Guarantee::EntropyLDiversity { l } => {
            format!("so little of {sensitive} that the uncertainty of {l} equally likely values remains")
        }
        Guarantee::RecursiveLDiversity { c, l } => format!(
            "a distribution of {sensitive} whose likeliest value is less than {c} times as likely as all from number {l} on together"
        ),
        Guarantee::AlphaK { alpha, k } => {
            format!("each value of {sensitive} with probability at most {alpha}, among at least {k} rows")
        }
        Guarantee::TCloseness { t, .. } => {
            format!("a distribution of {sensitive} that is within {t} of that of the whole table")
        }
        Guarantee::Rho { rho1, rho2, .. } => {
            format!(
                "no fact about {sensitive} with probability above {rho2} whose probability in the whole table is at most {rho1}"
            )
        }
        Guarantee::Thresholds { least, most, .. } if least == most => {
            format!("each value of {sensitive} with probability at most {most}")
        }
        Guarantee::Thresholds { .. } => {
            format!("each value of {sensitive} with probability at most the declared threshold of the value")
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

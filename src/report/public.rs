//! The public report: the manifest of a release in sentences. A function of the manifest alone.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::dependencies::{AssumedUnknownForm, ClosedStrataForm, ClosingReasonForm, ManifestDependencies};
use super::exposures::ManifestExposures;
use super::identity::ManifestIdentity;
use super::manifest::{Manifest, ManifestClosed, ManifestEnforcedBy, ManifestRule, ManifestTable};
use super::method_details::MethodDetailsForm;
use super::ratio::ManifestRatio;
use super::republish::RepublishForm;
use super::results::ColumnFigures;
use super::rule_figures::RuleFigures;
use super::sequence::SequentialForm;
use crate::publication::{
    CompositionMode, ContributionChoice, Divergence, Guarantee, NoticeKind, Reference, RowKind, SearchedDependencies,
    SlicedDiversity, TableKind, Unit, ValueDistance,
};

/// What a release promises and why, in words.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PublicReport {
    /// The id of the release; absent when it was made without a server, and in older reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub id: Option<Uuid>,
    /// SHA-256 of `manifest.json` in hexadecimal digits: says which release it is where there is no id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub manifest_sha256: Option<String>,
    /// The release, in one sentence.
    pub summary: String,
    /// For each rule its promise, the reason it holds, and the worst bucket.
    pub rules: Vec<String>,
    /// The rules in figures: what is known before, what each rule allows, and what the worst bucket gives. Absent in older reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<RuleFigures>,
    /// For each rule what readers may know, and what the rule assumes that they do not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub premises: Vec<String>,
    /// Which other releases it was checked against. Absent in older reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub composition: String,
    /// What the release does not promise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_promised: Vec<String>,
    /// The content of each table, and the place of attributes that stand beside a sensitive one.
    pub tables: Vec<String>,
    /// What the cells of generalized and sliced tables say, column by column. Absent in older reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<String>,
    /// Of a decomposition: who may infer values of a sensitive attribute, and in how many buckets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inferences: Vec<String>,
    /// What no rule prevents: unique rows, and values that other columns reveal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exposures: Vec<String>,
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

/// Whether the guarantee of a sliced table holds over all buckets that match a row, and in no single one.
fn is_mixture(manifest: &Manifest) -> bool {
    matches!(&manifest.method_details, Some(MethodDetailsForm::Slicing(form)) if form.diversity == SlicedDiversity::Mixture)
}

/// Puts a manifest into words.
#[must_use]
pub fn public_report(manifest: &Manifest) -> PublicReport {
    let passed = manifest.verification.checks.iter().filter(|check| check.passed).map(|check| check.check.as_str());
    PublicReport {
        id: manifest.id,
        manifest_sha256: None,
        summary: summary(manifest),
        rules: manifest.rules.iter().map(sentence).chain(requirements(manifest)).collect(),
        figures: manifest.rules.iter().map(|rule| RuleFigures::new(rule, is_mixture(manifest))).collect(),
        composition: composition(manifest.composition).to_owned(),
        premises: manifest
            .rules
            .iter()
            .filter_map(|rule| premise(&manifest.dependencies, rule))
            .chain(contributions(&manifest.unit))
            .chain(manifest.identity.iter().flat_map(ManifestIdentity::premises))
            .chain(night(manifest).into_iter().flat_map(RepublishForm::premises))
            .collect(),
        not_promised: not_promised(&manifest.dependencies)
            .into_iter()
            .chain(of_several_rows(manifest))
            .chain(manifest.identity.as_ref().and_then(ManifestIdentity::not_promised))
            .chain(night(manifest).into_iter().flat_map(RepublishForm::not_promised))
            .collect(),
        tables: manifest
            .tables
            .iter()
            .map(|table| description(manifest, table))
            .chain(details_of(manifest, NoticeKind::AttributeMoved))
            .chain(details_of(manifest, NoticeKind::SpreadsheetFormulas))
            .collect(),
        cells: manifest.utility.columns.iter().map(cells).collect(),
        inferences: details_of(manifest, NoticeKind::CanBeConcluded),
        exposures: manifest.exposures.as_ref().map(ManifestExposures::in_words).unwrap_or_default(),
        verification: format!(
            "the verifier read the written parts back and checked {}; linkage {}",
            passed.collect::<Vec<_>>().join(", "),
            manifest.verification.linkage.in_words()
        ),
        reading: reading(manifest).to_owned(),
        certainty: certainties(manifest),
    }
}

impl PublicReport {
    /// The report that says by the digest of `manifest.json` which release it is, where the release has no id.
    #[must_use]
    pub fn of_file(self, manifest: &[u8]) -> Self {
        let digest = || hex::encode(Sha256::digest(manifest));
        Self { manifest_sha256: self.id.is_none().then(digest), ..self }
    }
}

/// The release, in one sentence.
fn summary(manifest: &Manifest) -> String {
    let number_of = |number: usize, thing: &str| format!("{number} {thing}{}", if number == 1 { "" } else { "s" });
    // later parts may list values without rows
    let rows = manifest.tables.iter().filter_map(|table| table.parts.first()).map(|part| part.rows).max().unwrap_or(0);
    let promises = match (manifest.rules.len(), requirements(manifest).len()) {
        (rules, 0) => number_of(rules, "rule"),
        (_, requirements) => number_of(requirements, "requirement"),
    };
    format!(
        "{} in {} under {promises}; the unit of protection is a {}",
        number_of(rows as usize, "row"),
        number_of(manifest.tables.len(), "table"),
        manifest.unit
    )
}

/// What the requirements promise, where the release is checked on its join with others.
fn requirements(manifest: &Manifest) -> Vec<String> {
    sequence(manifest).map(SequentialForm::in_words).unwrap_or_default()
}

/// How rows of parts and tables go together.
fn reading(manifest: &Manifest) -> &'static str {
    let has_buckets = manifest.tables.iter().flat_map(|table| &table.parts).any(|part| part.bucketed);
    if has_buckets {
        "within a bucket, any row of one part may belong to any row of the other; never match rows of different tables by \
         position or by bucket label"
    } else {
        "a cell may stand for several values; never match rows of different tables by position"
    }
}

/// The details of a release that is checked on its join with others.
const fn sequence(manifest: &Manifest) -> Option<&SequentialForm> {
    match &manifest.method_details {
        Some(MethodDetailsForm::Sequential(form)) => Some(form),
        _ => None,
    }
}

/// What the cells of a column say.
fn cells(of: &ColumnFigures) -> String {
    let ColumnFigures { table, part, attribute, distinct, .. } = of;
    format!("{attribute} of {table}.{part} has {distinct} different cells: {}", of.in_words())
}

/// The night, where the release is one of a republished table.
const fn night(manifest: &Manifest) -> Option<&RepublishForm> {
    match &manifest.method_details {
        Some(MethodDetailsForm::Republish(form)) => Some(form),
        _ => None,
    }
}

/// What it means which releases were compared.
fn composition(mode: CompositionMode) -> &'static str {
    match mode {
        CompositionMode::Enforced => {
            "it was checked with every release of the tenant that may be of the same persons: by their keys, or by declarations"
        }
        CompositionMode::WithinPopulation => {
            "it was checked with every release of its population; whether other populations share persons with it is unknown"
        }
        CompositionMode::SameDatasetOnly => {
            "it was checked with the releases of this table alone, as its persons have no keys: nothing is promised against readers \
             who have releases of other tables with the same persons"
        }
        CompositionMode::Unproven => "it was not checked with other releases, on a statement of the caller",
        CompositionMode::None => {
            "it was made without a ledger: nothing is promised against readers who have another release of the same persons"
        }
    }
}

/// What is not promised where rows are protected, and no audit sees that each is another person's, as that of a night does.
fn of_several_rows(manifest: &Manifest) -> Option<String> {
    (manifest.unit == Unit::Row && night(manifest).is_none())
        .then(|| "each row counts as another person: more may be learned of a person with several rows".to_owned())
}

/// What it means that a bounded number of rows of each person is kept; nothing where all rows are.
fn contributions(unit: &Unit) -> Option<String> {
    let Unit::Subject { attribute, max_rows, kept: Some(choice) } = unit else { return None };
    let assumed = match choice {
        ContributionChoice::Random => String::new(),
        ContributionChoice::First(column) => {
            format!("; it assumes that {column}, and how many rows a {attribute} had, say nothing of a sensitive value")
        }
    };
    let rows = if *max_rows == 1 { "1 row".to_owned() } else { format!("{max_rows} rows") };
    Some(format!(
        "of each {attribute} the tables hold at most {rows}, chosen {choice}; others were left out before \
         anything else, and their number is not published{assumed}"
    ))
}

/// What the warnings of one kind say.
fn details_of(manifest: &Manifest, kind: NoticeKind) -> Vec<String> {
    manifest.warnings.iter().filter(|warning| warning.r#type == kind).map(|warning| warning.detail.clone()).collect()
}

/// What readers may know for a rule to hold, and what they are assumed not to know; `None` where a rule protects no attribute.
fn premise(known: &ManifestDependencies, rule: &ManifestRule) -> Option<String> {
    let sensitive = rule.sensitive.join(", ");
    if sensitive.is_empty() || rule.knowledge.is_none() {
        return None;
    }
    let attributes = if rule.quasi_identifiers.is_empty() {
        "nothing of a person".to_owned()
    } else {
        rule.quasi_identifiers.join(", ")
    };
    let is_relevant = |side: &[String]| {
        side.iter().any(|name| {
            [&rule.quasi_identifiers, &rule.sensitive, &rule.determined, &rule.strata]
                .iter()
                .any(|of| of.contains(name))
        })
    };
    let links = known.declared.iter().chain(&known.recorded).chain(&known.discovered);
    let links = links.filter(|form| is_relevant(&form.determinant) && is_relevant(&form.dependent));
    let links: Vec<String> = links
        .map(|form| {
            let unpublished = if form.unpublished { ", which is not published," } else { "" };
            format!("{} determines {}{unpublished}", form.determinant.join(", "), form.dependent.join(", "))
        })
        .collect();
    let and_links = if links.is_empty() { String::new() } else { format!(", and that {}", links.join(" and ")) };
    let promise = match (rule.bounded, rule.closed.filter(|closed| closed.buckets > 0)) {
        (_, Some(_)) => {
            let strata = rule.strata.join(", ");
            format!("{}, unless the rows with the same {strata} alone reveal more", promised(rule, &sensitive))
        }
        (Some(false), None) => format!("several possible values of {sensitive}, of which one may be nearly certain"),
        (Some(true) | None, None) => promised(rule, &sensitive),
    };
    let strata = if rule.strata.is_empty() {
        String::new()
    } else {
        format!("this assumes nothing about how {} and {sensitive} go together; ", rule.strata.join(", "))
    };
    let bucket =
        if matches!(rule.enforced_by, ManifestEnforcedBy::Unreachable { .. }) { "" } else { ", within a bucket," };
    Some(format!(
        "an adversary who knows {attributes}{and_links} learns {promise}; {strata}it assumes that{bucket} the reader has no other knowledge of \
         which row has which {sensitive}"
    ))
}

/// The knowledge of dependencies that a release promises nothing against.
fn not_promised(known: &ManifestDependencies) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for assumed in &known.assumed_unknown {
        let AssumedUnknownForm { dependent, determinant, reason } = assumed;
        sentences.push(match determinant.is_empty() {
            true => format!("nothing is promised against readers who know a dependency that is not listed, for the data was not searched: {reason}"),
            false => format!(
                "nothing is promised against readers who know that {} determines {}, which is assumed unknown: {reason}",
                determinant.join(", "),
                dependent.join(", ")
            ),
        });
    }
    if let Some(ClosedStrataForm { closed: ClosingReasonForm { reason } }) = &known.ineligible_strata {
        sentences.push(format!(
            "no bound is promised for rows whose group breaks a guarantee by itself, as an adversary who knows the group knows \
             without the release: {reason}"
        ));
    }
    if known.searched == Some(SearchedDependencies::SinglesAndSomePairs) {
        let detail = "some pairs of attributes were not searched for dependencies; nothing is promised against readers who know one of \
                      those";
        sentences.push(detail.to_owned());
    }
    if known.searched.is_some() {
        let detail = "dependencies on three or more attributes, on pairs that determine a dropped column, and on columns that are not \
                      in the dataset are known only where they are declared";
        sentences.push(detail.to_owned());
    }
    sentences
}

/// The content of a table.
fn description(manifest: &Manifest, table: &ManifestTable) -> String {
    let (name, attributes) = (&table.name, table.attributes.join(", "));
    let of_table = manifest.utility.bucket_sizes.iter().filter(|sizes| sizes.table == table.name);
    let classes: u64 = of_table.map(|sizes| sizes.buckets).sum();
    match (table.kind, table.guards.first()) {
        (TableKind::Generalized, _) => {
            let shared: Vec<&str> = table.parts.iter().flat_map(|part| part.cells.keys()).map(String::as_str).collect();
            let shared = shared.join(", ");
            match classes {
                0 => format!("{name} holds {attributes}; cells of {shared} may stand for several values"),
                _ => {
                    format!(
                        "{name} holds {attributes} in {classes} classes; the rows of a class share the cells of {shared}"
                    )
                }
            }
        }
        (TableKind::Decomposed, _) => {
            let of_values = table.parts.iter().filter(|part| part.row_meaning == RowKind::Values);
            let listed: Vec<&str> = of_values.flat_map(|part| &part.attributes).map(String::as_str).collect();
            let listed = match &listed[..] {
                [] => String::new(),
                listed => format!("; each bucket lists the values of {}", listed.join(", ")),
            };
            format!("{name} holds {attributes} in {classes} buckets{listed}")
        }
        (TableKind::Sensitive, _) => format!("{name} holds the joint values of {attributes}, without a link to rows"),
        (TableKind::Sliced, _) => {
            let parts = table.parts.len();
            format!("{name} holds {attributes} in {parts} parts, linked only by {classes} buckets")
        }
        (_, None) => format!("{name} holds the exact tuples of {attributes}"),
        (_, Some(guard)) => {
            let sensitive = guard.sensitive.join(", ");
            format!(
                "{name} holds {attributes}; {sensitive} is in a part of its own, linked to the rest only by {classes} buckets"
            )
        }
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
        (Some(false), Guarantee::LDiversity { l }) if rule.closed.is_none() => {
            format!(
                "an adversary who knows {known} of a person sees at least {l} values of {sensitive}, with no bound on the probability of each"
            )
        }
        _ => format!("an adversary who knows {known} of a person learns {}", promised(rule, &sensitive)),
    };
    let reason = match &rule.enforced_by {
        ManifestEnforcedBy::Unreachable { .. } => format!("no path of published tables leads to {sensitive}"),
        ManifestEnforcedBy::Guardian { guardian, .. } => format!("every path passes the guarding table {guardian}"),
        ManifestEnforcedBy::Table { table } => format!("table {table} enforces it"),
    };
    let promise = match rule.closed.filter(|closed| closed.buckets > 0) {
        Some(closed) => format!("{promise}; {}", without_bound(rule, closed)),
        None => promise,
    };
    match rule.achieved {
        None => format!("{promise}: {reason}"),
        Some(achieved) => match achieved.worst_posterior {
            Some(worst) => format!("{promise}: {reason}, and its worst bucket gives {} of {}", worst.count, worst.of),
            None => format!("{promise}: {reason}, and its smallest class has {} rows", achieved.smallest_bucket),
        },
    }
}

/// For which share of the rows a bound holds, and what is known of the others.
fn without_bound(rule: &ManifestRule, closed: ManifestClosed) -> String {
    let ManifestClosed { buckets, rows, of, .. } = closed;
    // in hundredths of a percent, rounded down: never more than what holds
    let share = u128::from(of.saturating_sub(rows)) * 10_000 / u128::from(of.max(1));
    let (whole, part) = (share / 100, share % 100);
    let strata = rule.strata.join(", ");
    format!(
        "the bound holds for {whole}.{part:02}% of the rows; for the {rows} others, in {buckets} buckets, {strata} alone reveals more than \
         the rule allows, and the release adds nothing to that"
    )
}

/// The promise of a guarantee for a sensitive attribute, as the object of "learns".
fn promised(rule: &ManifestRule, sensitive: &str) -> String {
    let reference = match rule.guarantee.reference() {
        Reference::Stratum if !rule.strata.is_empty() => format!("the rows with the same {}", rule.strata.join(", ")),
        Reference::Stratum | Reference::Table => "the whole table".to_owned(),
    };
    match rule.guarantee {
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
        Guarantee::TCloseness { t, distance, .. } => format!(
            "a distribution of {sensitive} that is within {t} of that of {reference} (earth mover's distance, {})",
            match distance {
                ValueDistance::Equal => "all values equally far apart",
                ValueDistance::Ordered => "values in their order",
                ValueDistance::Hierarchical => "values by their taxonomy",
            }
        ),
        Guarantee::Rho { rho1, rho2, .. } => {
            format!(
                "no fact about {sensitive} with probability above {rho2} whose probability in {reference} is at most {rho1}"
            )
        }
        Guarantee::Thresholds { least, most, .. } if least == most => {
            format!("each value of {sensitive} with probability at most {most}")
        }
        Guarantee::Thresholds { .. } => {
            format!("each value of {sensitive} with probability at most the declared threshold of the value")
        }
        Guarantee::Delta { b, distance, .. } => format!(
            "a distribution of {sensitive} that is within {b} of that of {reference} ({})",
            match distance {
                Divergence::TotalVariation => "total variation",
                Divergence::Max => "largest difference",
                Divergence::Kl => "nats of relative entropy",
                Divergence::Emd => "earth mover's distance, values in their order",
                Divergence::LogRatio => "log ratio",
            }
        ),
    }
}

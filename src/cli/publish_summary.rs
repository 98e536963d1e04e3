//! What `guardian publish` prints when it is done.

use std::io::{IsTerminal, Write};
use std::path::Path;

use serde_json::json;

use super::exit::CommandOutcome;
use super::standard_output;
use super::words::{
    GOOD, HEADLINE, guarantee_in_words, only_styles, quoted, reason_in_words, rule_in_words, section, styled,
};
use crate::report::{
    Manifest, ManifestExposures, ManifestPart, ManifestRule, OVER_BUCKETS, PublicReport, RuleFigures,
    SpecificationNotice,
};

/// The most sentences of one kind that are printed; the report has all of them.
const MAX_PRINTED: usize = 8;

/// A release that was written.
pub(super) struct PublishSummary<'a> {
    pub(super) folder: &'a Path,
    pub(super) manifest: &'a Manifest,
    pub(super) report: &'a PublicReport,
    pub(super) warnings: Vec<SpecificationNotice>,
}

impl PublishSummary<'_> {
    /// Prints a screen on a terminal, else one line of JSON with `json`; without either, notices on standard error.
    pub(super) fn print(&self, json: bool) -> Result<CommandOutcome, CommandOutcome> {
        if json {
            return standard_output::print(&format!("{}\n", self.to_json()));
        }
        if std::io::stdout().is_terminal() {
            return standard_output::print_styled(&self.in_words());
        }
        let mut stderr = std::io::stderr().lock();
        for sentence in self.sentences() {
            // a lost notice does not fail the command
            let _ = writeln!(stderr, "guardian: {}", only_styles(&sentence));
        }
        Ok(CommandOutcome::Done)
    }

    fn to_json(&self) -> serde_json::Value {
        let Self { folder, manifest, report, warnings } = self;
        let tables: Vec<_> = manifest
            .tables
            .iter()
            .map(|table| {
                json!({
                    "name": table.name,
                    "attributes": table.attributes,
                    "files": table.parts.iter().flat_map(ManifestPart::file_names).collect::<Vec<_>>(),
                })
            })
            .collect();
        let rules: Vec<_> = manifest
            .rules
            .iter()
            .map(|rule| {
                json!({
                    "rule": written(rule),
                    "guarantee": rule.guarantee,
                    "enforced_by": rule.enforced_by,
                    "worst_posterior": rule.achieved.and_then(|achieved| achieved.worst_posterior),
                })
            })
            .collect();
        json!({
            "release": folder.display().to_string(),
            "verified": manifest.verification.verified,
            "linkage": manifest.verification.linkage,
            "composition": manifest.composition,
            "tables": tables,
            "rules": rules,
            "premises": report.premises,
            "not_promised": report.not_promised,
            "exposures": self.exposures(),
            "warnings": warnings,
        })
    }

    fn exposures(&self) -> Vec<String> {
        self.manifest.exposures.as_ref().map(ManifestExposures::summary).unwrap_or_default()
    }

    /// Warnings, premises, what is not promised, and exposures, each with its kind before it.
    fn sentences(&self) -> Vec<String> {
        let Self { report, .. } = self;
        let warnings: Vec<String> = self.warnings.iter().map(|of| format!("{}: {}", of.r#type, of.detail)).collect();
        let mut sentences: Vec<String> = warnings.iter().map(|warning| format!("warning: {warning}")).collect();
        let exposures = self.exposures();
        let kinds = [("premise", &report.premises), ("not promised", &report.not_promised), ("exposure", &exposures)];
        for (kind, all) in kinds {
            sentences.extend(few(all).into_iter().map(|sentence| format!("{kind}: {sentence}")));
        }
        sentences
    }

    /// The screen at the end, as text with styles.
    fn in_words(&self) -> String {
        let Self { folder, manifest, report, warnings } = self;
        let place = quoted(folder);
        let mut text = format!("{} {place}\n", styled(GOOD, "published and verified:"));
        text += &format!("{}\n", report.summary);
        section(&mut text, "tables", report.tables.iter().cloned());
        section(
            &mut text,
            "rules",
            manifest.rules.iter().zip(&report.figures).map(|(rule, figures)| kept(rule, figures)),
        );
        section(&mut text, "exposure", few(&self.exposures()));
        section(&mut text, "not promised", few(&report.not_promised));
        section(&mut text, "warnings", warnings.iter().map(|of| format!("{}: {}", of.r#type, of.detail)));
        let mut steps = vec![
            format!("read the report:      guardian report {place} --html report.html"),
            format!("check it again:       guardian verify {place} --original TABLE"),
            format!("hand the folder over: {place} holds the parts, manifest.json and report.json"),
        ];
        if manifest.reproducible {
            steps.push("keep the key secret:  who has it can undo the buckets".to_owned());
        }
        text += &format!("\n{}\n", styled(HEADLINE, "next"));
        steps.iter().for_each(|step| text += &format!("  {step}\n"));
        text
    }
}

/// A rule with its worst posterior and its bound, and why it holds.
fn kept(rule: &ManifestRule, figures: &RuleFigures) -> String {
    let figures = match (figures.worst, figures.bound) {
        (Some(worst), Some(bound)) => {
            let (alone, over) = if figures.is_over_buckets { (" of one bucket alone", OVER_BUCKETS) } else { ("", "") };
            format!("; worst posterior{alone} {}/{}, bound {}/{}{over}", worst.count, worst.of, bound.count, bound.of)
        }
        (Some(worst), None) => format!("; worst posterior {}/{}", worst.count, worst.of),
        (None, _) => String::new(),
    };
    let (guarantee, reason) = (guarantee_in_words(&rule.guarantee), reason_in_words(&rule.enforced_by));
    format!("{} [{guarantee}{figures}]: {reason}", written(rule))
}

fn written(rule: &ManifestRule) -> String {
    rule_in_words(&rule.quasi_identifiers, &rule.sensitive, rule.combination)
}

/// The first sentences, and how many more the report has.
fn few(sentences: &[String]) -> Vec<String> {
    let more = sentences.len().saturating_sub(MAX_PRINTED);
    let more = (more > 0).then(|| format!("{more} more in report.json"));
    sentences.iter().take(MAX_PRINTED).cloned().chain(more).collect()
}

//! The public report as a page.

use maud::{Markup, html};

use super::histogram::ChartError;
use super::layout::{list, page, sentence};
use super::{graph, histogram, nights, scale};
use crate::publication::{AdversaryModel, Algorithm, TableKind};
use crate::report::exposures::{ExposedValues, ManifestExposures, listed};
use crate::report::manifest::{Manifest, ManifestTable};
use crate::report::public::{Certainty, PublicReport};
use crate::report::ratio::ManifestRatio;
use crate::report::results::{BucketSizes, ColumnFigures};
use crate::report::rule_figures::{OVER_BUCKETS, RuleFigures};

/// The most inferences in the table of a page; the report has all of them.
const MAX_INFERENCES: usize = 30;

/// Writes the page of a release.
///
/// # Errors
/// [`ChartError`] when a chart cannot be drawn.
pub fn report_page(report: &PublicReport, manifest: &Manifest) -> Result<String, ChartError> {
    let title = manifest.id.map_or_else(|| "A release".to_owned(), |id| format!("Release {id}"));
    let tables: Vec<Markup> =
        manifest.tables.iter().map(|table| table_section(manifest, table)).collect::<Result<_, _>>()?;
    let nights = nights::nights(manifest)?;
    Ok(page(
        &title,
        &html! {
            h1 { (title) }
            p class="lead" { (sentence(&report.summary)) }
            (facts(report, manifest))
            h2 { "What is promised" }
            (promises(report))
            h2 { "What is not promised" }
            (not_promised(report, manifest))
            @if let Some(nights) = nights {
                h2 { "Nights" }
                (nights)
            }
            h2 { "Tables" }
            (graph::tables(manifest))
            (list("What each table holds", &report.tables))
            @for table in tables { (table) }
            h2 { "How to read it" }
            p { (sentence(&report.reading)) }
            (list("Values that readers may conclude", &report.inferences))
            (certainties(&report.certainty))
            h2 { "Verification" }
            p { (sentence(&report.verification)) }
            (list("Warnings", &manifest.warnings.iter().map(|warning| warning.detail.clone()).collect::<Vec<_>>()))
        },
    ))
}

fn facts(report: &PublicReport, manifest: &Manifest) -> Markup {
    let method: Vec<&str> = [
        Some(manifest.method.r#type.as_str()),
        manifest.method.algorithm.map(Algorithm::as_str),
        manifest.method.adversary.map(AdversaryModel::as_str),
    ]
    .into_iter()
    .flatten()
    .collect();
    let facts = [
        ("Made", format!("{} by {}", manifest.created_at, manifest.software)),
        ("Method", method.join(", ")),
        ("Series", manifest.series.clone().unwrap_or_else(|| "none".to_owned())),
        ("Status", manifest.status.to_string()),
        ("Composition", manifest.composition.to_string()),
    ];
    let digest = report.manifest_sha256.clone().map(|digest| ("SHA-256 of manifest.json", digest));
    html! {
        dl { @for (name, value) in facts.into_iter().chain(digest) { dt { (name) } dd { (value) } } }
        @if manifest.reproducible {
            p class="warning" { "The caller chose the key of this release: who knows the key can undo it." }
        }
    }
}

fn promises(report: &PublicReport) -> Markup {
    html! {
        @if report.rules.is_empty() { p { "The release has no privacy rule." } }
        (list("", &report.rules))
        @if report.figures.iter().any(|figures| figures.worst.is_some() || figures.measure.is_some()) {
            h3 { "Before, allowed, and the worst bucket" }
            div class="wide" { (rule_table(&report.figures)) }
            (scale::legend())
        }
        (list("Who counts as an adversary", &report.premises))
        @if !report.composition.is_empty() {
            h3 { "Together with other releases" }
            p { (sentence(&report.composition)) }
        }
    }
}

fn rule_table(figures: &[RuleFigures]) -> Markup {
    let ratio = |of: Option<ManifestRatio>| of.map_or_else(String::new, ManifestRatio::percent);
    html! {
        table {
            tr {
                th { "rule" } th { "table" }
                th class="number" { "before" } th class="number" { "allowed" } th class="number" { "worst" }
                th { "probability" }
            }
            @for of in figures {
                tr {
                    td { (of.rule) }
                    td { @if let Some(table) = &of.table { (table) } @else { "no path" } }
                    td class="number" { (ratio(of.prior)) }
                    td class="number" { (ratio(of.bound)) }
                    td class="number" { (ratio(of.worst)) }
                    td class="drawing" {
                        @if of.worst.is_some() { (scale::probabilities(of)) }
                        @if let Some(measure) = &of.measure {
                            span class="note" { (measure.name) " " (measure.limit) "; worst " (measure.worst_in_words()) }
                        }
                        @if of.is_over_buckets {
                            span class="note" { "allowed" (OVER_BUCKETS) "; one bucket may reveal more" }
                        }
                        @if of.table.is_some() && of.bound.is_none() && of.measure.is_none() {
                            span class="note" { "no bound on probabilities" }
                        }
                        @if let Some(rows) = of.rows_without_bound {
                            span class="note" { (rows.in_words()) " of the rows have no bound" }
                        }
                    }
                }
            }
        }
    }
}

fn not_promised(report: &PublicReport, manifest: &Manifest) -> Markup {
    html! {
        (list("", &report.not_promised))
        @if let Some(exposures) = &manifest.exposures {
            (unprotected(exposures))
            (unique_rows(exposures))
            (inferences(exposures))
        }
        (list("In sentences", &report.exposures))
    }
}

fn unprotected(exposures: &ManifestExposures) -> Markup {
    html! {
        @if !exposures.unprotected.is_empty() {
            p class="warning" {
                "No rule protects " strong { (listed(&exposures.unprotected)) }
                ". The release says nothing to keep these uncertain."
            }
        }
    }
}

fn unique_rows(exposures: &ManifestExposures) -> Markup {
    html! {
        @if !exposures.rows.is_empty() {
            h3 { "Rows that no other row equals" }
            p { "Who knows these columns of a person finds the one row of the person in the table." }
            div class="wide" {
                table {
                    tr { th { "table" } th { "columns by which a row is known" } th class="number" { "unique rows" } th { "share" } }
                    @for of in &exposures.rows {
                        tr {
                            td class="place" { (of.table) "." (of.part) }
                            td { (of.attributes.join(", ")) }
                            td class="number" { (of.unique.count) " of " (of.unique.of) }
                            td class="drawing" { (scale::bar(of.unique)) }
                        }
                    }
                }
            }
        }
    }
}

/// What columns reveal of others, the most revealing first.
fn inferences(exposures: &ManifestExposures) -> Markup {
    let mut revealing: Vec<&ExposedValues> = exposures.values.iter().filter(|values| values.likely.count > 0).collect();
    // equal shares keep the order of the report
    revealing.sort_by(|a, b| {
        let by = |of: fn(&ExposedValues) -> ManifestRatio| of(b).as_share().total_cmp(&of(a).as_share());
        by(|values| values.fixed).then_with(|| by(|values| values.likely))
    });
    let more = revealing.len().saturating_sub(MAX_INFERENCES);
    html! {
        @if !revealing.is_empty() {
            h3 { "Columns that predict others" }
            p {
                "The rules bound what the named adversary learns. These shares are what the published columns themselves say of an \
                 attribute to a reader who knows the listed columns of a person."
            }
            div class="wide" {
                table {
                    tr {
                        th { "attribute" } th { "known columns" } th { "table" }
                        th class="number" { "certain" } th class="number" { "above 1/2" } th { "share of rows that are certain" }
                    }
                    @for of in revealing.iter().take(MAX_INFERENCES) {
                        tr {
                            td { (of.attribute) @if !of.protected { " (no rule)" } }
                            td { @if of.known.is_empty() { "none" } @else { (of.known.join(", ")) } }
                            td class="place" { (of.table) "." (of.part) }
                            td class="number" { (of.fixed.exposed_percent()) }
                            td class="number" { (of.likely.exposed_percent()) }
                            td class="drawing" { (scale::bar(of.fixed)) }
                        }
                    }
                }
            }
            @if more > 0 { p class="note" { (more) " more in the report in JSON." } }
        }
    }
}

fn table_section(manifest: &Manifest, table: &ManifestTable) -> Result<Markup, ChartError> {
    let sizes: Vec<&BucketSizes> =
        manifest.utility.bucket_sizes.iter().filter(|sizes| sizes.table == table.name).collect();
    let noun = if table.kind == TableKind::Generalized { "classes" } else { "buckets" };
    let sizes = histogram::sizes(&table.name, noun, &sizes)?;
    Ok(html! {
        h3 { (table.name) }
        table {
            tr { th { "file" } th { "columns" } th class="number" { "rows" } }
            @for part in &table.parts {
                tr {
                    td { (part.csv()) }
                    td { (part.attributes.join(", ")) }
                    td class="number" { (part.rows) }
                }
            }
        }
        @if let Some(sizes) = sizes { (sizes) }
        (columns(manifest, table))
    })
}

/// What the cells of a table's columns say.
fn columns(manifest: &Manifest, table: &ManifestTable) -> Markup {
    let figures: Vec<&ColumnFigures> =
        manifest.utility.columns.iter().filter(|figures| figures.table == table.name).collect();
    html! {
        @if !figures.is_empty() {
            h4 { "What the cells of " (table.name) " say" }
            div class="wide" {
                table {
                    tr {
                        th class="place" { "column" } th class="place" { "part" }
                        th class="number" { "different cells" } th { "share of rows" }
                    }
                    @for of in &figures {
                        tr {
                            td { (of.attribute) }
                            td class="place" { (of.part) }
                            td class="number" { (of.distinct) }
                            td class="drawing" { (scale::cells(of)) span class="note" { (of.in_words()) } }
                        }
                    }
                }
            }
            (scale::legend_of_cells())
        }
    }
}

fn certainties(certainties: &[Certainty]) -> Markup {
    html! {
        @if !certainties.is_empty() {
            h3 { "With counterfeits" }
            table {
                tr {
                    th class="number" { "rows of a bucket" } th class="number" { "of them known" }
                    th class="number" { "of the values left, of somebody" }
                    th class="number" { "one of the other rows has one of them" }
                }
                @for line in certainties {
                    tr {
                        td class="number" { (line.size) }
                        td class="number" { (line.known) }
                        td class="number" { (line.real.count) "/" (line.real.of) }
                        td class="number" { (line.posterior.count) "/" (line.posterior.of) }
                    }
                }
            }
        }
    }
}

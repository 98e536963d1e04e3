//! The internal report as a page, for the holder of the original alone.

use maud::{Markup, html};

use super::layout::{list, page};
use super::scale;
use crate::report::exposures::{PractitionerExposures, listed};
use crate::report::internal::{
    Classification, CountReport, Generalization, InternalReport, KlReport, LeftOutContributions,
};
use crate::report::manifest::Manifest;
use crate::report::results::ColumnFigures;

/// Writes the page of an internal report.
#[must_use]
pub fn internal_report_page(report: &InternalReport, manifest: &Manifest) -> String {
    let name = manifest.id.map_or_else(|| "a release".to_owned(), |id| format!("release {id}"));
    let title = format!("Internal report of {name}");
    page(
        &title,
        &html! {
            h1 { (title) }
            p class="warning" {
                "These figures are of the original. Do not pass them on: each of them says more of the persons than the release does."
            }
            dl {
                dt { "Rows of the original" } dd { (report.rows) }
                dt { "Rows in no table" } dd { (report.suppressed_rows) }
                @if let Some(LeftOutContributions { left_out_rows, cut_persons }) = report.contributions {
                    dt { "Rows left out before" }
                    dd { (left_out_rows) " of " (cut_persons) " persons, who had more rows than are kept" }
                }
            }
            @if let Some(practitioner) = &report.practitioner { (inferences(practitioner)) }
            (columns(report, manifest))
            @if let Some(kl) = &report.kl { (divergence(kl)) }
            @if let Some(counts) = &report.count_queries { (count_errors(counts)) }
            @if let Some(generalization) = &report.generalization { (generalized(*generalization)) }
            @if let Some(classification) = &report.classification { (classified(classification)) }
            (list("Warnings", &report.warnings.iter().map(|warning| warning.detail.clone()).collect::<Vec<_>>()))
        },
    )
}

fn inferences(practitioner: &PractitionerExposures) -> Markup {
    let (protected, others): (Vec<_>, Vec<_>) = practitioner.values.iter().partition(|values| values.protected);
    let names: Vec<String> = others.iter().map(|values| values.attribute.clone()).collect();
    html! {
        h2 { "Who knows all other columns of a person" }
        p { (practitioner.unique.in_words()) " of the rows are the only ones with their values of all published columns." }
        (scale::bar(practitioner.unique))
        div class="wide" {
            table {
                tr {
                    th { "attribute" } th class="number" { "certain" } th class="number" { "above 1/2" }
                    th { "share of rows that are certain" }
                }
                @for of in protected.iter().chain(&others) {
                    tr {
                        td { (of.attribute) @if !of.protected { " (no rule)" } }
                        td class="number" { (of.fixed.exposed_percent()) }
                        td class="number" { (of.likely.exposed_percent()) }
                        td class="drawing" { (scale::bar(of.fixed)) }
                    }
                }
            }
        }
        @if !names.is_empty() { p class="note" { "No rule protects " (listed(&names)) "." } }
    }
}

/// The columns of generalized and sliced tables, before and after.
fn columns(report: &InternalReport, manifest: &Manifest) -> Markup {
    let figures = &manifest.utility.columns;
    let before = |of: &ColumnFigures| {
        report.columns.iter().find(|column| column.attribute == of.attribute).map(|column| column.distinct)
    };
    html! {
        @if !figures.is_empty() && !report.columns.is_empty() {
            h2 { "Columns before and after" }
            div class="wide" {
                table {
                    tr {
                        th class="place" { "column" } th class="place" { "part" } th class="number" { "values before" }
                        th class="number" { "different cells after" } th { "before, after, and what the cells say" }
                    }
                    @for of in figures {
                        tr {
                            td { (of.attribute) }
                            td class="place" { (of.table) "." (of.part) }
                            td class="number" { @if let Some(before) = before(of) { (before) } }
                            td class="number" { (of.distinct) }
                            td class="drawing" {
                                @if let Some(before) = before(of) { (scale::before_and_after(before, of.distinct)) }
                                (scale::cells(of))
                            }
                        }
                    }
                }
            }
            p class="note" { "The outlined bar is the number of values in the original, the dark one that of different cells." }
            (scale::legend_of_cells())
        }
    }
}

fn divergence(kl: &KlReport) -> Markup {
    html! {
        h2 { "Divergence of the original from the readers' model" }
        @match (kl.nats, kl.bits) {
            (Some(nats), Some(bits)) => {
                p { (format!("{nats:.4}")) " nats, " (format!("{bits:.4}")) " bits (" (kl.kl_method) ")" }
                table {
                    tr { th { "unit" } th class="number" { "divergence" } th { "from 0" } }
                    @for (unit, value) in [("nats", nats), ("bits", bits)] {
                        tr {
                            td { (unit) }
                            td class="number" { (format!("{value:.4}")) }
                            td class="drawing" { (scale::on_axis(value)) }
                        }
                    }
                }
            },
            _ => p { "Infinite: some row of the original cannot occur in the model." },
        }
        p class="note" { "0 means that readers can rebuild the joint distribution of the original exactly." }
    }
}

fn count_errors(counts: &CountReport) -> Markup {
    let lines = [
        ("median", counts.median),
        ("mean", counts.mean),
        ("95th percentile", counts.percentile_95),
        ("largest", counts.largest),
    ];
    let top = lines.iter().filter_map(|(_, error)| *error).fold(1.0_f64, f64::max);
    html! {
        h2 { "Relative errors of COUNT queries" }
        p { (counts.queries) " random queries, each compared with the original." }
        table {
            tr { th { "error" } th class="number" { "share of the true count" } th { (format!("0 to {:.0}%", top * 100.0)) } }
            @for (name, error) in lines {
                tr {
                    td { (name) }
                    td class="number" {
                        @if let Some(error) = error { (format!("{:.1}%", error * 100.0)) } @else { "none" }
                        @if let (true, Some(within)) = (name == "mean", counts.mean_within) { (format!(" \u{b1} {:.1}%", within * 100.0)) }
                    }
                    td class="drawing" { @if let Some(error) = error { (scale::length(error / top)) } }
                }
            }
        }
    }
}

fn generalized(of: Generalization) -> Markup {
    html! {
        h2 { "Generalization" }
        dl {
            dt { "Steps up the taxonomies, each row" } dd { (format!("{:.2}", of.levels_per_row)) }
            dt { "Generalized cells, each row" } dd { (format!("{:.2}", of.values_per_row)) }
        }
    }
}

fn classified(of: &Classification) -> Markup {
    let lines = [
        ("tree on the release", of.error),
        ("tree on the original", of.error_of_original),
        ("most frequent class", of.error_of_most_frequent),
    ];
    html! {
        h2 { "Classification of " (of.class) }
        p { "A decision tree on " (of.trained_rows) " rows, tested on " (of.tested_rows) " others." }
        table {
            tr { th { "classifier" } th class="number" { "wrong" } th { "0 to 100%" } }
            @for (name, error) in lines {
                tr {
                    td { (name) }
                    td class="number" { (format!("{:.1}%", error * 100.0)) }
                    td class="drawing" { (scale::length(error)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ratio::ManifestRatio;

    #[test]
    fn errors_above_one_are_drawn_to_scale() {
        let counts = CountReport::new(&[0.0, 0.5, 2.0], 0);
        let drawn = count_errors(&counts).into_string();
        assert!(drawn.contains("0 to 200%") && drawn.contains("200.0%"), "{drawn}");
        // the median takes a quarter of the longest bar
        let width = |share: f64| format!("width=\"{:.1}\"", share * 224.0);
        assert!(drawn.contains(&width(0.25)) && drawn.contains(&width(1.0)), "{drawn}");
        let none = count_errors(&CountReport::new(&[], 4)).into_string();
        assert!(none.contains("none") && !none.contains("NaN"), "{none}");
        assert_eq!(ManifestRatio::new(0, 0).percent(), "0.0%");
    }
}

//! Shares on a scale from 0 to 1, small enough for the row of a table.

use maud::{Markup, html};

use crate::report::ratio::ManifestRatio;
use crate::report::rule_figures::RuleFigures;

const WIDTH_PX: f64 = 240.0;
const HEIGHT_PX: f64 = 26.0;
/// Room for half a mark at both ends.
const MARGIN_PX: f64 = 8.0;

fn x(share: f64) -> f64 {
    MARGIN_PX + share.clamp(0.0, 1.0) * (WIDTH_PX - 2.0 * MARGIN_PX)
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// What is known before, what is allowed, and the worst bucket. The three marks have three shapes.
pub(super) fn probabilities(figures: &RuleFigures) -> Markup {
    let middle = HEIGHT_PX / 2.0;
    let said = [("before", figures.prior), ("allowed", figures.bound), ("worst bucket", figures.worst)];
    let said: Vec<String> =
        said.iter().filter_map(|(name, of)| of.map(|of| format!("{name} {}", of.in_words()))).collect();
    let is_broken = matches!((figures.worst, figures.bound), (Some(worst), Some(bound)) if worst.exceeds(bound));
    html! {
        svg role="img" aria-label=(said.join(", ")) viewBox=(format!("0 0 {WIDTH_PX} {HEIGHT_PX}")) width=(WIDTH_PX) height=(HEIGHT_PX) {
            line class="axis" x1=(x(0.0)) x2=(x(1.0)) y1=(middle) y2=(middle) {}
            @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
                line class="axis" x1=(x(share)) x2=(x(share)) y1=(middle - 3.0) y2=(middle + 3.0) {}
            }
            @if let Some(prior) = figures.prior {
                rect class="prior" x=(number(x(prior.as_share()) - 4.5)) y=(middle - 4.5) width="9" height="9" {}
            }
            @if let Some(bound) = figures.bound {
                @let at = number(x(bound.as_share()));
                line class="bound" x1=(at) x2=(at) y1="2" y2=(HEIGHT_PX - 2.0) {}
            }
            @if let Some(worst) = figures.worst {
                circle class=(if is_broken { "broken" } else { "worst" }) cx=(number(x(worst.as_share()))) cy=(middle) r="4.5" {}
            }
        }
    }
}

/// What the marks of [`probabilities`] mean.
pub(super) fn legend() -> Markup {
    let mark = |shape: Markup| html! { svg aria-hidden="true" viewBox="0 0 14 14" width="14" height="14" { (shape) } };
    html! {
        p class="legend" {
            "Each scale runs from 0 to 1. "
            span { (mark(html! { rect class="prior" x="2.5" y="2.5" width="9" height="9" {} })) "square: largest probability of a value before the release. " }
            span { (mark(html! { line class="bound" x1="7" x2="7" y1="0" y2="14" {} })) "line: what the rule allows. " }
            span { (mark(html! { circle class="worst" cx="7" cy="7" r="4.5" {} })) "dot: the worst bucket." }
        }
    }
}

/// A share as a bar.
pub(super) fn bar(share: ManifestRatio) -> Markup {
    length(share.as_share())
}

/// A bar of a length between 0 and 1.
pub(super) fn length(length: f64) -> Markup {
    let (full, height) = (WIDTH_PX - 2.0 * MARGIN_PX, 12.0);
    // what occurs is seen, however little it is
    let width = if length <= 0.0 { 0.0 } else { (length.min(1.0) * full).max(1.0) };
    html! {
        svg aria-hidden="true" viewBox=(format!("0 0 {WIDTH_PX} 16")) width=(WIDTH_PX) height="16" {
            rect class="track" x=(MARGIN_PX) y="2" width=(full) height=(height) {}
            rect class="bar" x=(MARGIN_PX) y="2" width=(number(width)) height=(height) {}
        }
    }
}

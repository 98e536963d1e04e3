//! Shares on a scale from 0 to 1, small enough for the row of a table.

use maud::{Markup, html};

use crate::report::ratio::ManifestRatio;
use crate::report::results::ColumnFigures;
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
    let exceeds = matches!((figures.worst, figures.bound), (Some(worst), Some(bound)) if worst.exceeds(bound));
    let is_broken = exceeds && !figures.is_over_buckets;
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

/// Rows whose cell is one value, dark; one of several values, striped; and any value, empty.
pub(super) fn cells(of: &ColumnFigures) -> Markup {
    const STRIPE_PX: f64 = 5.0;
    let full = WIDTH_PX - 2.0 * MARGIN_PX;
    let exact = of.exact.as_share() * full;
    let several = of.several().as_share() * full;
    let stripes = (several / STRIPE_PX).floor() as usize;
    html! {
        svg role="img" aria-label=(of.in_words()) viewBox=(format!("0 0 {WIDTH_PX} 16")) width=(WIDTH_PX) height="16" {
            rect class="track" x=(MARGIN_PX) y="2" width=(full) height="12" {}
            rect class="bar" x=(MARGIN_PX) y="2" width=(number(exact)) height="12" {}
            @if several > 0.0 {
                rect class="several" x=(number(MARGIN_PX + exact)) y="2" width=(number(several)) height="12" {}
            }
            @for stripe in 1..=stripes {
                @let x = number(MARGIN_PX + exact + stripe as f64 * STRIPE_PX);
                line class="stripe" x1=(x) x2=(x) y1="2" y2="14" {}
            }
        }
    }
}

/// What the marks of [`cells`] mean.
pub(super) fn legend_of_cells() -> Markup {
    let mark = |shape: Markup| html! { svg aria-hidden="true" viewBox="0 0 24 14" width="24" height="14" { (shape) } };
    let rect = |class: &str| html! { rect class=(class) x="1" y="1" width="22" height="12" {} };
    html! {
        p class="legend" {
            span { (mark(rect("bar"))) "dark: the cell is one value. " }
            span { (mark(html! { (rect("several")) @for x in [5, 10, 15, 20] { line class="stripe" x1=(x) x2=(x) y1="1" y2="13" {} } })) "striped: one of several values. " }
            span { (mark(rect("track"))) "empty: any value, so that the cell says nothing." }
        }
    }
}

/// Two numbers, one above the other, against the larger of both.
pub(super) fn before_and_after(before: u64, after: u64) -> Markup {
    let full = WIDTH_PX - 2.0 * MARGIN_PX;
    let most = before.max(after).max(1) as f64;
    let width = |of: u64| number(if of == 0 { 0.0 } else { (of as f64 / most * full).max(1.0) });
    html! {
        svg role="img" aria-label=(format!("{before} before, {after} after")) viewBox=(format!("0 0 {WIDTH_PX} 24")) width=(WIDTH_PX) height="24" {
            rect class="prior" x=(MARGIN_PX) y="2" width=(width(before)) height="8" {}
            rect class="bar" x=(MARGIN_PX) y="13" width=(width(after)) height="9" {}
        }
    }
}

/// A number on an axis from 0 to the next whole number, at least 1.
pub(super) fn on_axis(value: f64) -> Markup {
    let top = value.ceil().clamp(1.0, 1_000.0);
    let step = (top / 5.0).ceil().max(1.0);
    let ticks = (0..=(top / step) as usize).map(|tick| tick as f64 * step);
    let bar = x((value / top).min(1.0)) - MARGIN_PX;
    html! {
        svg role="img" aria-label=(format!("{value:.4} on a scale from 0 to {top}")) viewBox=(format!("0 0 {WIDTH_PX} 32")) width=(WIDTH_PX) height="32" {
            rect class="track" x=(MARGIN_PX) y="2" width=(WIDTH_PX - 2.0 * MARGIN_PX) height="12" {}
            rect class="bar" x=(MARGIN_PX) y="2" width=(number(bar.max(1.0))) height="12" {}
            @for tick in ticks {
                line class="axis" x1=(number(x(tick / top))) x2=(number(x(tick / top))) y1="14" y2="18" {}
                text class="tick" x=(number(x(tick / top))) y="29" text-anchor="middle" { (tick) }
            }
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

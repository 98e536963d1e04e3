//! How buckets and counterfeits grow from night to night.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;

use super::histogram::ChartError;
use crate::publication::PastNight;
use crate::report::manifest::Manifest;
use crate::report::method_details::MethodDetailsForm;

const SIZE_PX: (u32, u32) = (640, 240);
const BUCKETS: RGBColor = RGBColor(0x1f, 0x4e, 0x79);
const COUNTERFEITS: RGBColor = RGBColor(0xa3, 0x46, 0x0e);
const INK: RGBColor = RGBColor(0x44, 0x44, 0x44);

/// The chart of the last nights; nothing where the release is no night.
///
/// # Errors
/// [`ChartError`] when the chart cannot be drawn.
pub(super) fn nights(manifest: &Manifest) -> Result<Option<Markup>, ChartError> {
    let Some(MethodDetailsForm::Republish(form)) = &manifest.method_details else { return Ok(None) };
    let nights = form.nights();
    let (Some(first), Some(last)) = (nights.first(), nights.last()) else { return Ok(None) };
    let caption = format!(
        "Nights {} to {}: buckets (filled marks) and counterfeits (open marks); tonight {} buckets hold {} persons and {} counterfeits",
        first.night,
        last.night,
        last.buckets,
        last.rows,
        last.counterfeits()
    );
    let mut drawn = String::new();
    draw(&nights, &mut drawn).map_err(|error| ChartError::new(&*error))?;
    Ok(Some(html! {
        figure {
            div role="img" aria-label=(caption) { (PreEscaped(drawn)) }
            figcaption { (caption) }
            details {
                summary class="note" { "Figures" }
                table {
                    tr {
                        th { "night" }
                        th class="number" { "persons" }
                        th class="number" { "buckets" }
                        th class="number" { "counterfeits" }
                    }
                    @for night in nights.iter().rev() {
                        tr {
                            td { (night.night) }
                            td class="number" { (night.rows) }
                            td class="number" { (night.buckets) }
                            td class="number" { (night.counterfeits()) }
                        }
                    }
                }
            }
        }
    }))
}

fn draw(nights: &[PastNight], drawn: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let highest = nights.iter().map(|night| night.buckets.max(night.counterfeits())).max().unwrap_or(1).max(1) as f64;
    let (first, last) = (nights.first().map_or(1, |night| night.night), nights.last().map_or(1, |night| night.night));
    let area = SVGBackend::with_string(drawn, SIZE_PX).into_drawing_area();
    let across = f64::from(first) - 0.5..f64::from(last) + 0.5;
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(across, 0.0..highest * 1.12)?;
    let whole = |number: &f64| if number.fract() == 0.0 { format!("{number}") } else { String::new() };
    let style = ("sans-serif", 12).into_font().color(&INK);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xdd, 0xdd, 0xdd))
        .axis_style(INK)
        .x_labels(10)
        .y_labels(5)
        .x_label_formatter(&whole)
        .y_label_formatter(&whole)
        .x_desc("night")
        .y_desc("number")
        .label_style(style.clone())
        .axis_desc_style(style)
        .draw()?;
    let points = |of: fn(&PastNight) -> u64| nights.iter().map(move |night| (f64::from(night.night), of(night) as f64));
    chart.draw_series([PathElement::new(points(|night| night.buckets).collect::<Vec<_>>(), BUCKETS)])?;
    chart.draw_series(points(|night| night.buckets).map(|at| Circle::new(at, 3, BUCKETS.filled())))?;
    chart.draw_series([PathElement::new(points(|night| night.counterfeits()).collect::<Vec<_>>(), COUNTERFEITS)])?;
    chart
        .draw_series(points(|night| night.counterfeits()).map(|at| Circle::new(at, 3, COUNTERFEITS.stroke_width(1))))?;
    area.present()?;
    drop(chart);
    Ok(())
}

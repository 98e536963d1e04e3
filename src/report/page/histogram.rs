//! How many buckets or classes of each size a table has, with axes.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::report::results::BucketSizes;

/// The most bars of a chart; sizes are put together where there are more.
const MAX_BARS: u64 = 40;
const SIZE_PX: (u32, u32) = (640, 240);
const BAR_COLOR: RGBColor = RGBColor(0x1f, 0x4e, 0x79);
const INK: RGBColor = RGBColor(0x44, 0x44, 0x44);
/// The most bars with their count written above them.
const MAX_COUNTED_BARS: usize = 16;

/// The chart could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("a chart could not be drawn: {0}")]
pub struct ChartError(String);

impl ChartError {
    pub(super) fn new(error: &dyn std::error::Error) -> Self {
        Self(error.to_string())
    }
}

/// The sizes of a bar and their buckets.
struct SizeBar {
    least: u64,
    most: u64,
    buckets: u64,
}

impl SizeBar {
    fn label(&self) -> String {
        if self.least == self.most { self.least.to_string() } else { format!("{}-{}", self.least, self.most) }
    }
}

fn bars(sizes: &[&BucketSizes]) -> Vec<SizeBar> {
    let of = || sizes.iter().map(|sizes| sizes.size);
    let (Some(least), Some(most)) = (of().min(), of().max()) else { return Vec::new() };
    let width = (most - least) / MAX_BARS + 1;
    let count = (most - least) / width + 1;
    let mut bars: Vec<SizeBar> = (0..count)
        .map(|at| least.saturating_add(at.saturating_mul(width)))
        .map(|from| SizeBar { least: from, most: from.saturating_add(width - 1).min(most), buckets: 0 })
        .collect();
    for sizes in sizes {
        let bar = &mut bars[((sizes.size - least) / width) as usize];
        bar.buckets = bar.buckets.saturating_add(sizes.buckets);
    }
    bars
}

/// The chart of a table's sizes; nothing where it has no buckets. `noun` is what has the sizes.
///
/// # Errors
/// [`ChartError`] when the chart cannot be drawn.
pub(super) fn sizes(table: &str, noun: &str, sizes: &[&BucketSizes]) -> Result<Option<Markup>, ChartError> {
    let bars = bars(sizes);
    if bars.is_empty() {
        return Ok(None);
    }
    let buckets = bars.iter().fold(0_u64, |all, bar| all.saturating_add(bar.buckets));
    let rows = sizes.iter().fold(0_u64, |all, of| all.saturating_add(of.size.saturating_mul(of.buckets)));
    let caption = format!("{table}: {buckets} {noun} of {rows} rows, by their number of rows");
    let mut drawn = String::new();
    draw(&bars, noun, &mut drawn).map_err(|error| ChartError::new(&*error))?;
    Ok(Some(html! {
        figure {
            div role="img" aria-label=(caption) { (PreEscaped(drawn)) }
            figcaption { (caption) }
            details {
                summary class="note" { "Figures" }
                table {
                    tr { th { "rows" } th class="number" { (noun) } }
                    @for bar in bars.iter().filter(|bar| bar.buckets > 0) {
                        tr { td { (bar.label()) } td class="number" { (bar.buckets) } }
                    }
                }
            }
        }
    }))
}

fn draw(bars: &[SizeBar], noun: &str, drawn: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let highest = bars.iter().map(|bar| bar.buckets).max().unwrap_or(1).max(1) as f64;
    let area = SVGBackend::with_string(drawn, SIZE_PX).into_drawing_area();
    let across = bars.len() as f64;
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..across, 0.0..highest * 1.12)?;
    let label = |at: &f64| bars.get(at.floor() as usize).map(SizeBar::label).unwrap_or_default();
    let style = ("sans-serif", 12).into_font().color(&INK);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xdd, 0xdd, 0xdd))
        .axis_style(INK)
        .x_labels(0)
        .y_labels(5)
        .y_label_formatter(&|count| if count.fract() == 0.0 { format!("{count}") } else { String::new() })
        .x_desc("rows")
        .y_desc(noun)
        .label_style(style.clone())
        .axis_desc_style(style.clone())
        .draw()?;
    chart.draw_series(bars.iter().enumerate().filter(|(_, bar)| bar.buckets > 0).map(|(at, bar)| {
        let (left, right) = (at as f64 + 0.12, at as f64 + 0.88);
        Rectangle::new([(left, 0.0), (right, bar.buckets as f64)], BAR_COLOR.filled())
    }))?;
    let centred = style.pos(Pos::new(HPos::Center, VPos::Bottom));
    // labels do not touch: a character takes about seven pixels
    let longest = bars.iter().map(|bar| bar.label().len()).max().unwrap_or(1);
    let step = (bars.len() * (longest + 2) * 7).div_ceil(SIZE_PX.0 as usize - 80).max(1);
    let below = centred.clone().pos(Pos::new(HPos::Center, VPos::Top));
    for at in (0..bars.len()).step_by(step) {
        let middle = at as f64 + 0.5;
        let (x, y) = chart.backend_coord(&(middle, 0.0));
        area.draw(&Text::new(label(&middle), (x, y + 6), below.clone()))?;
    }
    if bars.len() <= MAX_COUNTED_BARS {
        let counts = bars.iter().enumerate().filter(|(_, bar)| bar.buckets > 0);
        chart.draw_series(counts.map(|(at, bar)| {
            Text::new(bar.buckets.to_string(), (at as f64 + 0.5, bar.buckets as f64), centred.clone())
        }))?;
    }
    area.present()?;
    drop(chart);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(of: &[(u64, u64)]) -> Option<String> {
        let of: Vec<BucketSizes> =
            of.iter().map(|&(size, buckets)| BucketSizes { table: "t1".into(), size, buckets }).collect();
        sizes("a<b>&\"'", "buckets", &of.iter().collect::<Vec<_>>()).unwrap().map(Markup::into_string)
    }

    #[test]
    fn a_bar_for_each_size_and_many_sizes_together() {
        let few = drawn(&[(3, 10), (5, 1)]).unwrap();
        assert!(few.contains("a&lt;b&gt;&amp;&quot;") && !few.contains("<b>"), "{few}");
        assert!(few.contains("11 buckets of 35 rows"), "{few}");
        assert_eq!(few.matches("fill=\"#1F4E79\"").count(), 2, "{few}");
        assert!(few.contains("<td>5</td><td class=\"number\">1</td>"), "{few}");

        let many = drawn(&(1..=1000).map(|size| (size, 1)).collect::<Vec<_>>()).unwrap();
        assert!((1..=40).contains(&many.matches("fill=\"#1F4E79\"").count()), "{many}");
        assert!(many.contains("<td>1-25</td><td class=\"number\">25</td>"), "{many}");
        let far = drawn(&[(1, 1), (u64::MAX, u64::MAX)]).unwrap();
        assert_eq!(far.matches("fill=\"#1F4E79\"").count(), 2, "{far}");
        assert!(drawn(&[]).is_none());
    }
}

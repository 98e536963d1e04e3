//! The public report as a page of HTML: its sentences, and a chart of bucket sizes for each table.
//!
//! The page has no script and no style, so that a browser shows it under a policy that allows nothing. Every text from a
//! specification or a dataset is escaped.

use std::fmt::Write;

use super::manifest::Manifest;
use super::public::{Certainty, PublicReport};
use super::results::BucketSizes;
use crate::publication::{AdversaryModel, Algorithm};

/// The most bars of a chart; the last bar counts all larger sizes.
const MAX_BARS: u64 = 40;
/// The width of a bar with its gap, and the height of the tallest bar.
const BAR_STEP_PX: u64 = 16;
const BAR_HEIGHT_PX: u64 = 120;

/// Writes the page of a release.
#[must_use]
pub fn report_page(report: &PublicReport, manifest: &Manifest) -> String {
    let title = manifest.id.map_or_else(|| "A release".to_owned(), |id| format!("Release {id}"));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    let method: Vec<&str> = [
        Some(manifest.method.r#type.as_str()),
        manifest.method.algorithm.map(Algorithm::as_str),
        manifest.method.adversary.map(AdversaryModel::as_str),
    ]
    .into_iter()
    .flatten()
    .collect();
    let facts = [
        ("Series", manifest.series.clone().unwrap_or_else(|| "none".to_owned())),
        ("Made", format!("{} by {}", manifest.created_at, manifest.software)),
        ("Method", method.join(", ")),
        ("Status", manifest.status.to_string()),
        ("Composition", manifest.composition.to_string()),
    ];
    page.push_str("<dl>\n");
    for (name, value) in facts {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escaped(&value));
    }
    let _ = writeln!(page, "</dl>\n<p>{}</p>", escaped(&report.summary));
    list(&mut page, "Rules", report.rules.iter());
    list(&mut page, "Premises", report.premises.iter());
    list(&mut page, "Not promised", report.not_promised.iter());
    list(&mut page, "Tables", report.tables.iter());
    for table in &manifest.tables {
        let sizes: Vec<&BucketSizes> =
            manifest.utility.bucket_sizes.iter().filter(|sizes| sizes.table == table.name).collect();
        picture(&mut page, &table.name, &sizes);
    }
    list(&mut page, "What no rule prevents", report.exposures.iter());
    let _ = writeln!(page, "<h2>Verification</h2>\n<p>{}</p>", escaped(&report.verification));
    let _ = writeln!(page, "<h2>How to read it</h2>\n<p>{}</p>", escaped(&report.reading));
    certainties(&mut page, &report.certainty);
    list(&mut page, "Warnings", manifest.warnings.iter().map(|warning| &warning.detail));
    page.push_str("</body>\n</html>\n");
    page
}

fn list<'a>(page: &mut String, heading: &str, items: impl ExactSizeIterator<Item = &'a String>) {
    if items.len() == 0 {
        return;
    }
    let _ = writeln!(page, "<h2>{heading}</h2>\n<ul>");
    for item in items {
        let _ = writeln!(page, "<li>{}</li>", escaped(item));
    }
    page.push_str("</ul>\n");
}

/// How many buckets, or classes, of each size a table has; nothing where it has none.
fn picture(page: &mut String, table: &str, sizes: &[&BucketSizes]) {
    let (Some(least), Some(most)) =
        (sizes.iter().map(|sizes| sizes.size).min(), sizes.iter().map(|sizes| sizes.size).max())
    else {
        return;
    };
    let width = (most - least) / MAX_BARS + 1;
    let mut bars = vec![0_u64; ((most - least) / width + 1) as usize];
    for sizes in sizes {
        let bar = &mut bars[((sizes.size - least) / width) as usize];
        *bar = bar.saturating_add(sizes.buckets);
    }
    let highest = bars.iter().copied().max().unwrap_or(0).max(1);
    let caption = format!("{}: number of buckets by their number of rows", escaped(table));
    let (across, down) = (bars.len() as u64 * BAR_STEP_PX, BAR_HEIGHT_PX + 2 * BAR_STEP_PX);
    let _ = writeln!(page, "<figure>\n<figcaption>{caption}</figcaption>");
    let _ = writeln!(page, "<svg role=\"img\" aria-label=\"{caption}\" width=\"{across}\" height=\"{down}\">");
    for (at, buckets) in bars.iter().enumerate().filter(|(_, buckets)| **buckets > 0) {
        let (left, from) = (at as u64 * BAR_STEP_PX, least + at as u64 * width);
        let to = from.saturating_add(width - 1).min(most);
        let label = if from == to { from.to_string() } else { format!("{from} to {to}") };
        // what occurs is seen, however little it is
        let height = ((u128::from(*buckets) * u128::from(BAR_HEIGHT_PX)).div_ceil(u128::from(highest))) as u64;
        let (top, bar) = (BAR_STEP_PX + BAR_HEIGHT_PX - height, BAR_STEP_PX - 2);
        let _ = writeln!(
            page,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{bar}\" height=\"{height}\" fill=\"steelblue\"><title>{label} rows: {buckets}</title></rect>"
        );
    }
    let base = BAR_HEIGHT_PX + 2 * BAR_STEP_PX - 4;
    let _ = writeln!(page, "<text x=\"0\" y=\"{base}\" font-size=\"11\">{least}</text>");
    if most > least {
        let _ = writeln!(page, "<text x=\"{across}\" y=\"{base}\" font-size=\"11\" text-anchor=\"end\">{most}</text>");
    }
    page.push_str("</svg>\n</figure>\n");
}

fn certainties(page: &mut String, certainties: &[Certainty]) {
    if certainties.is_empty() {
        return;
    }
    page.push_str("<h2>With counterfeits</h2>\n<table>\n<tr><th>rows of a bucket</th><th>of them known</th>");
    page.push_str("<th>of the values left, of somebody</th><th>one of the other rows has one of them</th></tr>\n");
    for line in certainties {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}/{}</td><td>{}/{}</td></tr>",
            line.size, line.known, line.real.count, line.real.of, line.posterior.count, line.posterior.of
        );
    }
    page.push_str("</table>\n");
}

fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\'' => written.push_str("&#39;"),
            other => written.push(other),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(of: &[(u64, u64)]) -> Vec<BucketSizes> {
        of.iter().map(|&(size, buckets)| BucketSizes { table: "t1".into(), size, buckets }).collect()
    }

    fn drawn(of: &[(u64, u64)]) -> String {
        let mut page = String::new();
        picture(&mut page, "a<b>&\"'", &sizes(of).iter().collect::<Vec<_>>());
        page
    }

    #[test]
    fn sizes_are_bars_of_their_share_and_many_are_put_together() {
        let few = drawn(&[(3, 10), (5, 1)]);
        assert!(few.contains("a&lt;b&gt;&amp;&quot;&#39;: number of buckets") && !few.contains("<b>"), "{few}");
        assert_eq!(few.matches("<rect").count(), 2, "{few}");
        assert!(few.contains("height=\"120\" fill=\"steelblue\"><title>3 rows: 10<"), "{few}");
        assert!(few.contains("height=\"12\" fill=\"steelblue\"><title>5 rows: 1<"), "{few}");

        let many = drawn(&(1..=1000).map(|size| (size, 1)).collect::<Vec<_>>());
        assert!((1..=40).contains(&many.matches("<rect").count()), "{many}");
        assert!(many.contains("<title>1 to 25 rows: 25<"), "{many}");
        let far = drawn(&[(1, 1), (u64::MAX, u64::MAX)]);
        assert_eq!(far.matches("<rect").count(), 2, "{far}");
        assert_eq!(drawn(&[]), "");
    }
}

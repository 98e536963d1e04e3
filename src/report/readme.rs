//! The README of an archive, for whoever opens it without having made it. A function of the manifest alone.

use super::manifest::{Manifest, ManifestPart, ManifestTable};
use super::public::public_report;
use crate::microdata::CellShape;
use crate::publication::{ProtectionKind, RowKind, TableKind};

const LINE_CHARS: usize = 80;

/// The text of `README.txt`.
#[must_use]
pub fn readme(manifest: &Manifest) -> String {
    let report = public_report(manifest);
    let mut text = ReadmeWriter(String::new());
    text.heading("What this is");
    text.paragraph(
        "",
        &format!("Microdata published under privacy rules by {} on {}.", manifest.software, manifest.created_at),
    );
    text.paragraph("", &format!("{}.", report.summary));

    text.heading("Files");
    for (table, part) in manifest.tables.iter().flat_map(|table| table.parts.iter().map(move |part| (table, part))) {
        text.paragraph(&format!("{}  ", part.file), &about(table, part));
    }
    text.paragraph(
        "manifest.json  ",
        "every table, part and rule of the release, and what the audit of the files found",
    );
    text.paragraph("report.json  ", "the same in sentences");
    text.paragraph(
        "datapackage.json  ",
        "the types of all columns and the digests of all files, as a Frictionless Data Package",
    );

    text.heading("How to read the files");
    text.paragraph("", "CSV (RFC 4180) in UTF-8, with a header, lines ending in LF. A missing value is an empty field without quotes; \"\" is the empty text. A file of one column writes its missing values as the marker that is named above.");
    text.paragraph("", "Rows are sorted; their order says nothing of the order of the original.");
    let bucketed = manifest.tables.iter().flat_map(|table| &table.parts).any(|part| part.bucketed);
    if bucketed {
        text.paragraph("", "Buckets: the parts of a bucketized table are tied by the column `bucket` alone. Every row of one part belongs to some row of the other part with the same bucket, and which one is not told: each is as likely as any other. To count, spread a bucket's rows evenly: a row of one part stands with each value of the other part as often as the value's share of the bucket says.");
    }

    let generalized = manifest.tables.iter().flat_map(|table| &table.parts).any(|part| !part.cells.is_empty());
    if generalized {
        if manifest.tables.iter().any(|table| table.kind == TableKind::Generalized) {
            text.paragraph("", "Classes: rows whose quasi-identifiers stand in equal cells are a class.");
        }
        text.paragraph("", "Cells of several values: an interval is written `17..24`, also of a single value (`17..17`): the value of each of its rows lies between the ends, both included. The missing value comes before all others: `..24` is a missing value or one up to 24, and an empty field is a missing value alone. An end in quotation marks is a JSON string. A set is a JSON array, null for a missing value. A node is a name in the taxonomy that stands in the manifest, and its rows have values among the leaves below it; a leaf is the value itself. To count, spread a row evenly over its cell.");
    }
    if manifest.tables.iter().any(|table| table.kind == TableKind::Decomposed) {
        text.paragraph("", "A decomposed table has the rows of a bucket in one part, their values of the primary sensitive attribute in another, and of every other sensitive attribute a list of distinct values, which may be more than its rows have where the manifest tells of noise. The table of joint values says which sensitive values go together, and of whom is not told; rows of a primary value that it does not have are left out of it.");
        text.paragraph("", "What is promised holds as long as nothing else is published of the same people that shares an attribute with these tables.");
    }
    if manifest.tables.iter().any(|table| table.kind == TableKind::Sliced) {
        text.paragraph("", "A sliced table has a part for each of its columns. In every bucket the rows of all its parts are the same people, each part in an order of its own: a row of one part may belong with every row of every other part.");
    }
    if manifest
        .tables
        .iter()
        .any(|table| table.kind == TableKind::Sliced && table.protection == ProtectionKind::Exclusive)
    {
        text.paragraph("", "What is promised of it holds over all buckets in which a person may stand, not in every bucket by itself. It does so as long as nothing else is published of the same people that shares an attribute with it.");
    }

    text.heading("What must not be concluded");
    if generalized {
        text.paragraph(
            "- ",
            "A cell does not say which of its values a row has, nor that each of them is equally frequent.",
        );
    }
    for warning in [
        "Joining two parts on `bucket` gives more rows than there are people: most of these combinations belong to nobody.",
        "The number of a bucket means nothing, and buckets of different tables have nothing to do with each other, also when their numbers are equal.",
        "Rows of different tables do not follow each other in the same order; a row of one table must not be matched with a row of another by its position.",
        "That a combination occurs in a bucket does not show that it occurs in the original; that it does not occur in a bucket shows that none of the bucket's rows has it.",
        "Associations between attributes that stand on different sides of a bucket are weakened by design.",
    ] {
        if bucketed || !warning.contains("bucket") {
            text.paragraph("- ", warning);
        }
    }

    text.heading("What is promised");
    if report.rules.is_empty() {
        text.paragraph("", "No rule was stated.");
    }
    for rule in &report.rules {
        text.paragraph("- ", &format!("{rule}."));
    }
    text.paragraph("", &format!("Audit: {}.", report.verification));
    text.0
}

fn about(table: &ManifestTable, part: &ManifestPart) -> String {
    let mut about = format!("{} rows of {}", part.rows, part.attributes.join(", "));
    about += match part.row_meaning {
        RowKind::Values => "; a row is a distinct value of its bucket, and may be noise",
        RowKind::TuplesAndCounterfeits => "; a row is a tuple of the original, or a counterfeit: a value of nobody",
        RowKind::Tuples => "; a row is a tuple of the original",
    };
    if part.bucketed {
        about += &format!("; table {}, tied to its other parts by `bucket`", table.name);
    }
    for (name, cells) in &part.cells {
        about += &match cells {
            CellShape::Interval => format!("; {name} holds intervals, both ends included"),
            CellShape::Set => format!("; {name} holds sets of values, as JSON arrays"),
            CellShape::Node => {
                format!("; {name} holds nodes of a taxonomy, each standing for one of the values below it")
            }
            CellShape::Suppressed => format!("; {name} is suppressed: * stands for any value, also a missing one"),
            CellShape::Exact => format!("; {name} holds exact values"),
        };
    }
    if let Some(null) = &part.null {
        about += &format!("; a missing value is written {null}");
    }
    about
}

struct ReadmeWriter(String);

impl ReadmeWriter {
    fn heading(&mut self, heading: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0 += &format!("{heading}\n{}\n", "-".repeat(heading.len()));
    }

    /// A paragraph behind a lead, in lines of bounded width.
    fn paragraph(&mut self, lead: &str, text: &str) {
        let mut line = lead.to_owned();
        let mut begun = false;
        for word in text.split_whitespace() {
            if begun && line.chars().count() + 1 + word.chars().count() > LINE_CHARS {
                self.0 += line.trim_end();
                self.0.push('\n');
                line = if lead.is_empty() { String::new() } else { "  ".to_owned() };
                begun = false;
            }
            if begun {
                line.push(' ');
            }
            line += word;
            begun = true;
        }
        self.0 += line.trim_end();
        self.0.push('\n');
    }
}

//! The README of an archive, for its reader. A function of the manifest alone.

use super::manifest::{Manifest, ManifestTable};
use super::manifest_part::ManifestPart;
use super::public::public_report;
use super::rule_figures::RuleFigures;
use crate::microdata::CellShape;
use crate::publication::{NoticeKind, ProtectionKind, RowKind, TableKind};

const LINE_CHARS: usize = 80;

/// The text of `README.txt`.
#[must_use]
pub fn readme(manifest: &Manifest) -> String {
    let report = public_report(manifest);
    let mut text = ReadmeWriter { text: String::new(), manifest };
    text.heading("What this is");
    text.paragraph(
        "",
        &format!("Microdata published under privacy rules by {} on {}.", manifest.software, manifest.created_at),
    );
    text.paragraph("", &format!("{}.", report.summary));

    text.files();
    text.reading();
    text.conclusions();

    text.heading("What is promised");
    if report.rules.is_empty() {
        text.paragraph("", "The release has no privacy rule.");
    }
    for rule in &report.rules {
        text.paragraph("- ", &format!("{rule}."));
    }
    for figures in report.figures.iter().filter_map(RuleFigures::in_words) {
        text.paragraph("- ", &format!("{figures}."));
    }
    for premise in &report.premises {
        text.paragraph("- ", &format!("{premise}."));
    }
    text.paragraph("", &format!("Other releases: {}.", report.composition));
    text.paragraph("", &format!("Verification: {}.", report.verification));

    let not_promised = report.not_promised.iter().chain(&report.exposures);
    if not_promised.clone().next().is_some() {
        text.heading("What is not promised");
        for sentence in not_promised {
            text.paragraph("- ", &format!("{sentence}."));
        }
    }
    text.text
}

fn about(table: &ManifestTable, part: &ManifestPart) -> String {
    let mut about = format!("{} rows of {}", part.rows, part.attributes.join(", "));
    about += match part.row_meaning {
        RowKind::Values => "; a row is a distinct value of its bucket, and may be noise",
        RowKind::TuplesAndCounterfeits => "; a row is a tuple of the original, or a counterfeit: a fake value",
        RowKind::Tuples => "; a row is a tuple of the original",
    };
    if part.bucketed {
        about += &format!("; table {}, linked to its other parts by `bucket`", table.name);
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

struct ReadmeWriter<'a> {
    text: String,
    manifest: &'a Manifest,
}

impl ReadmeWriter<'_> {
    fn parts(&self) -> impl Iterator<Item = &ManifestPart> {
        self.manifest.tables.iter().flat_map(|table| &table.parts)
    }

    fn is_bucketed(&self) -> bool {
        self.parts().any(|part| part.bucketed)
    }

    fn is_generalized(&self) -> bool {
        self.parts().any(|part| !part.cells.is_empty())
    }

    fn has(&self, kind: TableKind) -> bool {
        self.manifest.tables.iter().any(|table| table.kind == kind)
    }

    fn files(&mut self) {
        self.heading("Files");
        for table in &self.manifest.tables {
            for part in &table.parts {
                self.paragraph(&format!("{}  ", part.csv()), &about(table, part));
            }
        }

        self.paragraph("manifest.json  ", "every table, part and rule of the release, and the results of the verifier");
        self.paragraph("report.html  ", "what is promised and what is not, as a page to read or print");
        self.paragraph("report.json  ", "the same for programs");
        self.paragraph(
            "datapackage.json  ",
            "the types of all columns and the digests of all files, as a Frictionless Data Package",
        );
    }

    fn reading(&mut self) {
        self.heading("How to read the files");
        for warning in &self.manifest.warnings {
            if warning.r#type == NoticeKind::SpreadsheetFormulas {
                self.paragraph("", &format!("Do not open these files in a spreadsheet. {}.", warning.detail));
            }
        }
        self.paragraph("", "CSV (RFC 4180) in UTF-8, with a header, lines ending in LF. A missing value is an empty field without quotes; \"\" is the empty text.");
        if self.parts().any(|part| part.null.is_some()) {
            self.paragraph("", "A file of one column writes a missing value as the marker named above.");
        }
        self.paragraph("", "Rows are sorted. Their order reveals nothing of the order of the original.");
        if self.is_bucketed() {
            self.paragraph("", "Buckets: only the column `bucket` links the parts of a table. A row of one part belongs to one row of the other part with the same bucket label, and each of them is equally likely. To count, spread the rows of a bucket evenly: weight each value of the other part by its share of the bucket.");
        }
        if self.is_generalized() {
            if self.has(TableKind::Generalized) {
                self.paragraph("", "Classes: rows with equal quasi-identifier cells form a class.");
            }
            self.paragraph("", "Cells of several values: an interval is written `17..24`, and a single value `17..17`; both ends are included. The missing value comes before all others: `..24` is a missing value or one up to 24, and an empty field is a missing value alone. An end in quotation marks is a JSON string. A set is a JSON array, with null for a missing value. A node is a name in a taxonomy of the manifest, and stands for the leaves below it; a leaf is the value itself. To count, spread a row evenly over its cell.");
        }
        if self.has(TableKind::Decomposed) {
            self.paragraph("", "A decomposed table has three kinds of parts. One part holds the rows of each bucket, and one holds their primary sensitive values. The others list the distinct values of one further sensitive attribute for each bucket; where the manifest reports noise, a list may hold values that no row has. The table of joint values shows which sensitive values occur together, without a link to rows. Rows with a suppressed primary value are missing from it.");
            self.paragraph(
                "",
                "The promises hold only while no other table about the same people shares an attribute with these tables.",
            );
        }
        if self.has(TableKind::Sliced) {
            self.paragraph("", "A sliced table has a part for each of its columns. In each bucket all parts hold the same people, each part in its own order: any row of one part may belong to any row of another.");
        }
        let is_exclusive = |table: &ManifestTable| table.protection == ProtectionKind::Exclusive;
        if self.manifest.tables.iter().any(|table| table.kind == TableKind::Sliced && is_exclusive(table)) {
            self.paragraph("", "Its promise holds over all buckets that match a person, not in each bucket by itself. It holds only while no other table about the same people shares an attribute with it.");
        }
    }

    fn conclusions(&mut self) {
        self.heading("Conclusions to avoid");
        if self.is_generalized() {
            self.paragraph(
                "- ",
                "A cell does not show which of its values a row has, nor that its values are equally frequent.",
            );
        }
        for warning in [
            "Joining two parts on `bucket` gives more rows than there are people: most of these combinations belong to no person.",
            "The label of a bucket has no meaning. Buckets of different tables are unrelated, even if their labels are equal.",
            "Tables are sorted independently: never match a row of one table with a row of another by its position.",
            "A combination that occurs in a bucket need not occur in the original. A combination that is missing from a bucket belongs to none of its rows.",
            "Associations between attributes in different parts of a bucketized table are weakened by design.",
        ] {
            if self.is_bucketed() || !warning.contains("bucket") {
                self.paragraph("- ", warning);
            }
        }
    }

    fn heading(&mut self, heading: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &format!("{heading}\n{}\n", "-".repeat(heading.len()));
    }

    /// Writes a paragraph after a lead, in lines of at most [`LINE_CHARS`] characters.
    fn paragraph(&mut self, lead: &str, text: &str) {
        let mut line = lead.to_owned();
        let mut begun = false;
        for word in text.split_whitespace() {
            if begun && line.chars().count() + 1 + word.chars().count() > LINE_CHARS {
                self.text += line.trim_end();
                self.text.push('\n');
                line = if lead.is_empty() { String::new() } else { "  ".to_owned() };
                begun = false;
            }
            if begun {
                line.push(' ');
            }
            line += word;
            begun = true;
        }
        self.text += line.trim_end();
        self.text.push('\n');
    }
}

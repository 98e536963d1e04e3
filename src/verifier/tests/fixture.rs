//! Fixtures: publications with their claims, modifiable cells, and witness.

use std::collections::BTreeMap;
use std::io;
use std::io::Read;

use crate::control::Control;
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Codes, Column, Domain, Table};
use crate::publication::{
    CellContent, DeclaredTaxonomy, EnforcedBy, EnforcedRule, ExcludedValues, Guarantee, MethodDetails, Part, Protected,
    Publication, PublishedBytes, PublishedColumn, PublishedTable, Ratio, RowMeaning, RuleOrigin, SubmittedRule,
    TableGuard, TableName, TableProtection, TableWitness, Witness,
};
use crate::verifier::contract::checks::{Check, CheckName, VerifierReport};
use crate::verifier::contract::input::{DeclaredSearch, VerifierInput};
use crate::verifier::verify::verify;

pub(in crate::verifier) type Cell = Option<String>;

/// The cells of a part: a header, and labelled rows.
#[derive(Clone)]
pub(in crate::verifier) struct Grid {
    pub(in crate::verifier) header: Vec<String>,
    pub(in crate::verifier) rows: Vec<(String, Vec<Cell>)>,
}

/// A publication with the input that verifies it.
pub(in crate::verifier) struct VerifierFixture {
    pub(in crate::verifier) names: Vec<String>,
    pub(in crate::verifier) original: Vec<Vec<Cell>>,
    pub(in crate::verifier) publication: Publication,
    pub(in crate::verifier) submitted: Vec<SubmittedRule>,
    pub(in crate::verifier) dependencies: Vec<(AttrSet, AttrSet)>,
    /// Whether a search found the dependencies; otherwise they are declared.
    pub(in crate::verifier) searched: bool,
    /// Whether strata without a bound are admitted.
    pub(in crate::verifier) closes: bool,
    /// The dependencies that the adversary is assumed not to know.
    pub(in crate::verifier) withdrawn: Vec<(AttrSet, AttrSet)>,
    pub(in crate::verifier) files: BTreeMap<String, Grid>,
    pub(in crate::verifier) witness: Vec<Option<Vec<u32>>>,
    pub(in crate::verifier) accounted: AttrSet,
    pub(in crate::verifier) excludable: Vec<ExcludedValues>,
    pub(in crate::verifier) taxonomies: Vec<DeclaredTaxonomy>,
    /// For each part of a table of generalized columns, the box of each row.
    pub(in crate::verifier) boxes: Option<Vec<Vec<u32>>>,
}

/// Files in memory.
pub(in crate::verifier) struct Memory(pub(in crate::verifier) BTreeMap<String, Vec<u8>>);

impl PublishedBytes for Memory {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        let bytes = self.0.get(file).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(bytes.as_slice()))
    }
}

/// A column of cells with the inferred type.
pub(in crate::verifier) fn column(cells: &[Cell]) -> Column {
    let mut values = Arena::default();
    let mut seen = BTreeMap::new();
    for cell in cells.iter().flatten() {
        seen.entry(cell.as_str()).or_insert_with(|| {
            values.push(cell.as_bytes());
            values.len() - 1
        });
    }
    let (domain, ranks) = Domain::sort(AttributeType::infer(values.iter()), cells.contains(&None), &values);
    let codes = cells.iter().map(|cell| cell.as_ref().map_or(0, |cell| ranks[seen[cell.as_str()]]));
    Column { codes: Codes::collect(domain.len(), codes), domain }
}

/// A table of rows.
pub(in crate::verifier) fn table(names: &[String], rows: &[Vec<Cell>]) -> Table {
    let columns = (0..names.len()).map(|c| column(&rows.iter().map(|row| row[c].clone()).collect::<Vec<_>>()));
    Table::new(names.to_vec(), columns.collect())
}

/// A rule `known -> sensitive`.
pub(in crate::verifier) fn rule(number: usize, known: &[u8], sensitive: u8, l: u64) -> SubmittedRule {
    SubmittedRule {
        pointer: format!("/method/rules/{number}"),
        known: known.iter().map(|&a| Attr(a)).collect(),
        protects: Protected::Attribute(Attr(sensitive)),
        guarantee: Guarantee::LDiversity { l },
    }
}

/// A submitted rule as a publication lists it, with the reason why it holds.
pub(in crate::verifier) fn protection(rule: &SubmittedRule, enforced_by: EnforcedBy) -> EnforcedRule {
    EnforcedRule {
        pointer: Some(rule.pointer.clone()),
        origin: RuleOrigin::Submitted,
        because: None,
        known: rule.known,
        protects: rule.protects,
        guarantee: rule.guarantee,
        enforced_by,
    }
}

/// The guardian table with the entry attributes `known`.
pub(in crate::verifier) fn guardian(table: &str, known: &[u8]) -> EnforcedBy {
    EnforcedBy::Guardian { table: TableName(table.to_owned()), known: known.iter().map(|&a| Attr(a)).collect() }
}

/// The guard of l-diversity against an adversary who knows `known`.
pub(in crate::verifier) fn guard(known: &[u8], protects: Protected, l: u64) -> TableGuard {
    TableGuard::new(known.iter().map(|&a| Attr(a)).collect(), protects, vec![Guarantee::LDiversity { l }])
}

impl VerifierFixture {
    pub(in crate::verifier) fn new(names: &[&str], original: Vec<Vec<Cell>>) -> Self {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let method_details = MethodDetails::None;
        Self {
            accounted: AttrSet::first(names.len()),
            names,
            original,
            publication: Publication { tables: Vec::new(), rules: Vec::new(), method_details, suppressed: 0 },
            submitted: Vec::new(),
            dependencies: Vec::new(),
            searched: false,
            closes: false,
            withdrawn: Vec::new(),
            files: BTreeMap::new(),
            witness: Vec::new(),
            excludable: Vec::new(),
            taxonomies: Vec::new(),
            boxes: None,
        }
    }

    /// Adds a rule that holds by `enforced_by`.
    pub(in crate::verifier) fn hold(&mut self, rule: SubmittedRule, enforced_by: EnforcedBy) {
        self.publication.rules.push(protection(&rule, enforced_by));
        self.submitted.push(rule);
    }

    /// Publishes a plain table.
    pub(in crate::verifier) fn plain(&mut self, attrs: &[u8]) {
        let part = self.part("rows", attrs, None);
        self.push(vec![part], TableProtection::Plain, None);
    }

    /// Publishes a bucketized table: `known` in one part, `sensitive` in another.
    pub(in crate::verifier) fn guarding(&mut self, known: &[u8], sensitive: u8, l: u64, labels: Vec<u32>) {
        let parts = vec![self.part("qi", known, Some(&labels)), self.part("sa", &[sensitive], Some(&labels))];
        let guard = guard(known, Protected::Attribute(Attr(sensitive)), l);
        self.push(parts, TableProtection::Guarding(vec![guard]), Some(labels));
    }

    /// Publishes two sensitive attributes with the same buckets.
    pub(in crate::verifier) fn together(&mut self, known: &[u8], sensitive: [u8; 2], l: u64, labels: Vec<u32>) {
        let [first, second] = sensitive;
        let guards = [first, second].map(|attr| guard(known, Protected::Attribute(Attr(attr)), l));
        self.bucketized(known, &[("sa1", &[first]), ("sa2", &[second])], guards.to_vec(), labels);
    }

    /// Publishes a bucketized table of any shape: `known` in one part, the others as named.
    pub(in crate::verifier) fn bucketized(
        &mut self,
        known: &[u8],
        sensitive: &[(&str, &[u8])],
        guards: Vec<TableGuard>,
        labels: Vec<u32>,
    ) {
        let mut parts = vec![self.part("qi", known, Some(&labels))];
        for (name, attrs) in sensitive {
            let part = self.part(name, attrs, Some(&labels));
            parts.push(part);
        }
        self.push(parts, TableProtection::Guarding(guards), Some(labels));
    }

    /// Publishes a decomposition: `known` and the first sensitive attribute by bucket, lists of the others with
    /// `noise`, and joint values.
    pub(in crate::verifier) fn decomposed(
        &mut self,
        known: &[u8],
        sensitive: &[u8],
        noise: &[(u8, u32, &str)],
        labels: Vec<u32>,
    ) {
        let mut parts =
            vec![self.part("qi", known, Some(&labels)), self.part("primary", &sensitive[..1], Some(&labels))];
        for (number, &attr) in (1..).zip(&sensitive[1..]) {
            let name = format!("values{number}");
            let mut part = self.part(&name, &[attr], Some(&labels));
            let file = part.file(&TableName::at(self.publication.tables.len()));
            let rows = &mut self.files.get_mut(&file).expect("a part").rows;
            let more = noise.iter().filter(|(of, ..)| *of == attr);
            rows.extend(more.map(|(_, label, value)| (label.to_string(), vec![Some((*value).to_owned())])));
            self.settle(&file, &[attr]);
            let rows = &mut self.files.get_mut(&file).expect("a part").rows;
            rows.dedup();
            (part.rows, part.len) = (RowMeaning::Values, rows.len() as u64);
            parts.push(part);
        }
        self.push(parts, TableProtection::Exclusive, Some(labels));
        let mut all = sensitive.to_vec();
        all.sort_unstable();
        let joint = self.part("rows", &all, None);
        self.push(vec![joint], TableProtection::Exclusive, None);
    }

    fn push(&mut self, parts: Vec<Part>, protection: TableProtection, labels: Option<Vec<u32>>) {
        let name = TableName::at(self.publication.tables.len());
        self.publication.tables.push(PublishedTable { name, parts, protection });
        self.witness.push(labels);
    }

    fn part(&mut self, name: &str, attrs: &[u8], labels: Option<&[u32]>) -> Part {
        let columns = attrs.iter().map(|&a| self.published(a)).collect();
        // label 0: the row is in no part
        let shown = |row: usize| labels.is_none_or(|labels| labels[row] > 0);
        let rows = self.original.iter().enumerate().filter(|(row, _)| shown(*row)).map(|(row, cells)| {
            let label = labels.map_or_else(String::new, |labels| labels[row].to_string());
            (label, attrs.iter().map(|&a| cells[a as usize].clone()).collect())
        });
        let bucket = labels.map(|_| "bucket".to_owned());
        let header = bucket.into_iter().chain(attrs.iter().map(|&a| self.names[a as usize].clone())).collect();
        let grid = Grid { header, rows: rows.collect() };
        let null = (labels.is_none() && attrs.len() == 1 && grid.rows.iter().any(|row| row.1[0].is_none()))
            .then(|| "NA".to_owned());
        let file = format!("{}.{name}.csv", TableName::at(self.publication.tables.len()));
        self.files.insert(file.clone(), grid);
        let len = self.files[&file].rows.len() as u64;
        self.settle(&file, attrs);
        Part { name: name.to_owned(), columns, rows: RowMeaning::Tuples, bucketed: labels.is_some(), len, null }
    }

    /// The claimed column of an attribute.
    pub(in crate::verifier) fn published(&self, attr: u8) -> PublishedColumn {
        PublishedColumn { attribute: Attr(attr), name: self.names[attr as usize].clone(), cells: CellContent::Exact }
    }

    /// Sorts the rows of a file with the columns `attrs` canonically.
    pub(in crate::verifier) fn settle(&mut self, file: &str, attrs: &[u8]) {
        let original = table(&self.names, &self.original);
        let grid = self.files.get_mut(file).expect("a file");
        grid.rows.sort_by(|(a, left), (b, right)| {
            let cells = attrs.iter().zip(left.iter().zip(right)).map(|(&attr, (left, right))| {
                let kind = original.column(Attr(attr)).domain.kind();
                kind.compare(left.as_deref().map(str::as_bytes), right.as_deref().map(str::as_bytes))
            });
            let number = |label: &str| label.parse::<u64>().unwrap_or(0);
            cells.fold(number(a).cmp(&number(b)), std::cmp::Ordering::then)
        });
    }

    /// The bytes of all files.
    pub(in crate::verifier) fn bytes(&self) -> Memory {
        let nulls: BTreeMap<String, String> = self
            .publication
            .tables
            .iter()
            .flat_map(|table| table.parts.iter().map(|part| (part.file(&table.name), part.null.clone())))
            .filter_map(|(file, null)| Some((file, null?)))
            .collect();
        let file = |(name, grid): (&String, &Grid)| {
            let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            let null = nulls.get(name);
            let cell = |cell: &Cell| match cell {
                None => null.cloned().unwrap_or_default(),
                Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) || Some(text) == null => {
                    quote(text)
                }
                Some(text) => text.clone(),
            };
            let mut text = grid.header.join(",") + "\n";
            for (label, cells) in &grid.rows {
                let label = Some(label.clone()).filter(|label| !label.is_empty());
                let fields: Vec<String> = label.into_iter().chain(cells.iter().map(cell)).collect();
                text += &(fields.join(",") + "\n");
            }
            (name.clone(), text.into_bytes())
        };
        Memory(self.files.iter().map(file).collect())
    }

    /// Verifies with all input.
    pub(in crate::verifier) fn verify(&self) -> VerifierReport {
        self.verify_with(true, true)
    }

    /// Verifies with or without the original and the witness.
    pub(in crate::verifier) fn verify_with(&self, original: bool, witness: bool) -> VerifierReport {
        let table = table(&self.names, &self.original);
        let assigned = self.witness.iter().map(|labels| match labels {
            None => TableWitness::Plain,
            Some(labels) => match &self.boxes {
                None => TableWitness::Buckets(labels.clone()),
                Some(boxes) => TableWitness::Boxes { labels: labels.clone(), boxes: boxes.clone() },
            },
        });
        let assigned = Witness { tables: assigned.collect() };
        let parts = self.bytes();
        let (original, witness) = (original.then_some(&table), witness.then_some(&assigned));
        verified(&VerifierInput { original, witness, ..self.input(&parts) })
    }

    /// The claims and declarations, without the original and the witness.
    pub(in crate::verifier) fn input<'a>(&'a self, parts: &'a dyn PublishedBytes) -> VerifierInput<'a> {
        VerifierInput {
            publication: &self.publication,
            submitted: &self.submitted,
            dependencies: &self.dependencies,
            dependency_search: self.searched.then_some(DeclaredSearch {
                found: &self.dependencies,
                withdrawn: &self.withdrawn,
                tolerance: Ratio::new(1, 100).expect("a ratio"),
                lists_all: true,
            }),
            parts,
            original: None,
            dropped: &[],
            witness: None,
            names: &self.names,
            kinds: &[],
            accounted: self.accounted,
            excludable: &self.excludable,
            taxonomies: &self.taxonomies,
            earlier_releases: None,
            thresholds: &[],
            closes: self.closes,
        }
    }

    /// Publishes one exclusive table of one part, with the given rows.
    pub(in crate::verifier) fn rows_with(&mut self, cells: &[CellContent], rows: Vec<Vec<Cell>>) {
        let name = TableName::at(0);
        let columns =
            (0..).zip(cells).map(|(attr, cells)| PublishedColumn { cells: cells.clone(), ..self.published(attr) });
        let part = Part {
            name: "rows".into(),
            columns: columns.collect(),
            rows: RowMeaning::Tuples,
            bucketed: false,
            len: rows.len() as u64,
            null: None,
        };
        let rows = rows.into_iter().map(|cells| (String::new(), cells)).collect();
        self.files.insert(part.file(&name), Grid { header: self.names.clone(), rows });
        self.publication.tables =
            vec![PublishedTable { name, parts: vec![part], protection: TableProtection::Exclusive }];
    }
}

/// The report on input that can be read.
pub(in crate::verifier) fn verified(input: &VerifierInput<'_>) -> VerifierReport {
    verify(input, &Control::default()).expect("an answer")
}

/// The names of the failed checks.
pub(in crate::verifier) fn failed(report: &VerifierReport) -> Vec<CheckName> {
    report.checks.iter().filter(|check| !check.passed).map(|check| check.check).collect()
}

/// The detail of a check.
pub(in crate::verifier) fn detail(report: &VerifierReport, name: CheckName) -> &str {
    let found: Option<&Check> = report.checks.iter().find(|check| check.check == name);
    found.and_then(|check| check.detail.as_deref()).unwrap_or("")
}

/// The hospital table with the schema of UAD for l = 2: `gender, hospital, race | zipcode` and `age, icd9` [Jin et
/// al. 2010, Table 1].
pub(in crate::verifier) fn hospital() -> VerifierFixture {
    let names = ["hospital", "age", "gender", "zipcode", "race", "icd9"];
    let rows = [
        ["111111", "37", "F", "71000", "asian", "HIV"],
        ["111111", "71", "M", "72000", "white", "diabetes"],
        ["222222", "55", "F", "73000", "black", "diabetes"],
        ["222222", "37", "F", "74000", "white", "flu"],
        ["333333", "23", "M", "71000", "black", "alcoholism"],
        ["333333", "37", "M", "72000", "white", "HIV"],
    ];
    let rows = rows.iter().map(|row| row.iter().map(|&cell| Some(cell.to_owned())).collect()).collect();
    let mut fixture = VerifierFixture::new(&names, rows);
    // buckets {asian, white}, {white, white}, {black, black}, as in Table 3
    fixture.guarding(&[0, 2, 4], 3, 2, vec![2, 3, 1, 3, 1, 2]);
    fixture.plain(&[1, 5]);
    fixture.hold(rule(0, &[1, 5], 4, 2), EnforcedBy::Unreachable);
    fixture.hold(rule(1, &[2, 5], 3, 2), guardian("t1", &[2]));
    fixture.hold(rule(2, &[0, 4], 3, 2), guardian("t1", &[0, 4]));
    fixture
}

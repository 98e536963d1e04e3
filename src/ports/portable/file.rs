//! The ledger as a file: one JSON document a line. The first says whose it is, the last how many there are and what they hash to,
//! so that a file that was cut or changed by accident differs from a whole one.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader, Read, Write};

use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::LedgerCopy;
use super::hex::to_hex;
use super::records::{
    PortableDataset, PortableDisclosure, PortableRelease, PortableRule, PortableStatement, PortableVersion,
};

/// The format that is written. One before is read too: it knew neither data subjects nor statements.
const LEDGER_FORMAT_VERSION: u32 = 2;

/// No line of a ledger has more bytes.
const MAX_LEDGER_LINE_BYTES: u64 = 1 << 26;

/// Whose ledger a file holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerHeader {
    format: u32,
    /// The store that it was read from.
    pub store: Uuid,
    /// The fingerprint of the secret that keys the hashes of contents, in hexadecimal: under another one equal contents hash
    /// differently, and what the file says would be of nothing.
    pub hashing: String,
    /// That secret, wrapped under the master key, in hexadecimal: a store that was never used takes it up.
    hashing_key: String,
    /// When it was read.
    pub exported_at: DateTime<Utc>,
    /// The tenant whose ledger it is; none for all.
    pub tenant: Option<String>,
}

impl LedgerHeader {
    /// A header of the present format.
    #[must_use]
    pub fn new(
        store: Uuid,
        hashing: &[u8; 32],
        hashing_key: &[u8],
        exported_at: DateTime<Utc>,
        tenant: Option<String>,
    ) -> Self {
        let (hashing, hashing_key) = (to_hex(hashing), to_hex(hashing_key));
        Self { format: LEDGER_FORMAT_VERSION, store, hashing, hashing_key, exported_at, tenant }
    }

    /// Whether the hashes are keyed by the secret with this fingerprint.
    #[must_use]
    pub fn is_keyed_by(&self, hashing: &[u8; 32]) -> bool {
        self.hashing == to_hex(hashing)
    }

    /// The secret that keys the hashes, wrapped; `None` when it cannot be read.
    #[must_use]
    pub fn hashing_key(&self) -> Option<Vec<u8>> {
        let digits = self.hashing_key.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2).map(byte).collect()).flatten()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LedgerLine {
    Ledger(LedgerHeader),
    Release(PortableRelease),
    Disclosure(PortableDisclosure),
    Rule(PortableRule),
    Version(PortableVersion),
    Dataset(Box<PortableDataset>),
    /// What earlier formats had of data subjects.
    #[serde(skip_serializing)]
    People(IgnoredAny),
    Statement(PortableStatement),
    End(LedgerTrailer),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerTrailer {
    /// How many lines come before.
    lines: usize,
    /// Of their bytes.
    sha256: String,
}

/// Why a file was refused, whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LedgerFileError {
    /// A line is not what it should be.
    #[error("line {0} cannot be read: {1}")]
    Line(usize, String),
    /// A later guardian wrote it.
    #[error("it has the format {0}; this guardian reads formats up to {LEDGER_FORMAT_VERSION}")]
    Format(u64),
    /// It does not begin as a ledger does.
    #[error("it is no ledger that guardian has exported")]
    NoLedger,
    /// It ends before its end.
    #[error("it was cut: its last line is not there")]
    Cut,
    /// It is not what was written.
    #[error("it was changed or cut since it was written: what it holds is not what its last line says")]
    Changed,
    /// It speaks of one thing twice, or of things that are not in it.
    #[error("it contradicts itself: {0}")]
    Contradictory(String),
    /// The system gave nothing, or not all.
    #[error("{0}")]
    Unread(String),
}

impl From<io::Error> for LedgerFileError {
    fn from(error: io::Error) -> Self {
        Self::Unread(error.to_string())
    }
}

/// Writes a ledger line by line.
pub struct LedgerWriter<W> {
    out: W,
    lines: usize,
    hash: Sha256,
}

impl<W: Write> LedgerWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written, as for each line.
    pub fn begin(out: W, header: &LedgerHeader) -> io::Result<Self> {
        let mut writer = Self { out, lines: 0, hash: Sha256::new() };
        writer.put(&LedgerLine::Ledger(header.clone()))?;
        Ok(writer)
    }

    /// Writes the ledger of a moment.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn copy(&mut self, copy: LedgerCopy) -> io::Result<()> {
        copy.releases.into_iter().map(LedgerLine::Release).try_for_each(|line| self.put(&line))?;
        copy.disclosures.into_iter().map(LedgerLine::Disclosure).try_for_each(|line| self.put(&line))?;
        copy.rules.into_iter().map(LedgerLine::Rule).try_for_each(|line| self.put(&line))?;
        copy.versions.into_iter().map(LedgerLine::Version).try_for_each(|line| self.put(&line))?;
        copy.datasets.into_iter().map(Box::new).map(LedgerLine::Dataset).try_for_each(|line| self.put(&line))?;
        copy.statements.into_iter().map(LedgerLine::Statement).try_for_each(|line| self.put(&line))
    }

    /// Writes the trailer, which a truncated file lacks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        let trailer = LedgerTrailer { lines: self.lines, sha256: to_hex(&self.hash.clone().finalize()) };
        self.put(&LedgerLine::End(trailer))?;
        self.out.flush()
    }

    fn put(&mut self, line: &LedgerLine) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.hash.update(&bytes);
        self.lines += 1;
        self.out.write_all(&bytes)
    }
}

/// Reads a ledger from the beginning of a file: all of it, or nothing.
///
/// # Errors
/// [`LedgerFileError`]
pub fn read(file: File) -> Result<(LedgerHeader, LedgerCopy), LedgerFileError> {
    let mut reading =
        LedgerReading { hash: Sha256::new(), lines: 0, header: None, copy: LedgerCopy::default(), fault: None };
    let mut lines = BufReader::new(file);
    // which line is the last is known when there is no other
    let (mut line, mut next) = (Vec::new(), Vec::new());
    loop {
        next.clear();
        (&mut lines).take(MAX_LEDGER_LINE_BYTES).read_until(b'\n', &mut next)?;
        if next.is_empty() {
            break;
        }
        if next.last() != Some(&b'\n') {
            let number = reading.lines + usize::from(!line.is_empty()) + 1;
            let too_long = || LedgerFileError::Line(number, "it is too long".to_owned());
            return Err(if next.len() as u64 == MAX_LEDGER_LINE_BYTES { too_long() } else { LedgerFileError::Cut });
        }
        if line.is_empty() {
            known_format(&next)?;
        } else {
            reading.take(&line);
        }
        std::mem::swap(&mut line, &mut next);
    }
    if line.is_empty() {
        return Err(LedgerFileError::NoLedger);
    }
    let Ok(LedgerLine::End(trailer)) = serde_json::from_slice(&line) else { return Err(LedgerFileError::Cut) };
    let LedgerReading { hash, lines, header, copy, fault, .. } = reading;
    if trailer.lines != lines || trailer.sha256 != to_hex(&hash.finalize()) {
        return Err(LedgerFileError::Changed);
    }
    let header = fault.map_or(header.ok_or(LedgerFileError::Cut), Err)?;
    consistent(&header, &copy)?;
    Ok((header, copy))
}

/// Whether the first line is one that this guardian reads.
fn known_format(first: &[u8]) -> Result<(), LedgerFileError> {
    let format = serde_json::from_slice::<Value>(first).ok().and_then(|line| line["ledger"]["format"].as_u64());
    match format {
        Some(format) if (1..=u64::from(LEDGER_FORMAT_VERSION)).contains(&format) => Ok(()),
        Some(format) => Err(LedgerFileError::Format(format)),
        None => Err(LedgerFileError::NoLedger),
    }
}

/// What was read of a ledger, but for its last line.
struct LedgerReading {
    hash: Sha256,
    lines: usize,
    header: Option<LedgerHeader>,
    copy: LedgerCopy,
    /// The first line that cannot be read. It counts when the file is what was written.
    fault: Option<LedgerFileError>,
}

impl LedgerReading {
    fn take(&mut self, line: &[u8]) {
        self.hash.update(line);
        self.lines += 1;
        if self.fault.is_some() {
            return;
        }
        let mut unreadable = |why: String| self.fault = Some(LedgerFileError::Line(self.lines, why));
        let copy = &mut self.copy;
        match serde_json::from_slice(line) {
            Ok(LedgerLine::Ledger(found)) if self.lines == 1 => self.header = Some(found),
            Ok(LedgerLine::Release(release)) => copy.releases.push(release),
            Ok(LedgerLine::Disclosure(disclosure)) => copy.disclosures.push(disclosure),
            Ok(LedgerLine::Rule(rule)) => copy.rules.push(rule),
            Ok(LedgerLine::Version(version)) => copy.versions.push(version),
            Ok(LedgerLine::Dataset(dataset)) => copy.datasets.push(*dataset),
            Ok(LedgerLine::People(IgnoredAny)) => {}
            Ok(LedgerLine::Statement(statement)) => copy.statements.push(statement),
            Ok(LedgerLine::Ledger(_) | LedgerLine::End(_)) => unreadable("it stands in the middle".to_owned()),
            Err(error) => unreadable(error.to_string()),
        }
    }
}

fn consistent(header: &LedgerHeader, copy: &LedgerCopy) -> Result<(), LedgerFileError> {
    let contradictory = |what: String| Err(LedgerFileError::Contradictory(what));
    let mut releases = HashSet::new();
    for release in &copy.releases {
        if !releases.insert(release.id) {
            return contradictory(format!("the release {} stands in it twice", release.id));
        }
        if header.tenant.as_ref().is_some_and(|tenant| *tenant != release.tenant) {
            return contradictory(format!("the release {} is of another tenant", release.id));
        }
    }
    let mut disclosures = HashSet::new();
    for disclosure in &copy.disclosures {
        if !disclosures.insert(disclosure.id) || !releases.contains(&disclosure.release) {
            return contradictory(format!(
                "the disclosure {} stands in it twice, or without its release",
                disclosure.id
            ));
        }
    }
    let mut rules = HashSet::new();
    for rule in &copy.rules {
        if !rules.insert((rule.release, rule.number)) || !releases.contains(&rule.release) {
            return contradictory(format!("a rule of the release {} stands in it twice, or without it", rule.release));
        }
    }
    let mut statements = HashSet::new();
    for statement in &copy.statements {
        if !statements.insert(statement.id) || statement.read().is_none() {
            return contradictory(format!("the statement {} stands in it twice, or states nothing", statement.id));
        }
        if header.tenant.as_ref().is_some_and(|tenant| *tenant != statement.tenant) {
            return contradictory(format!("the statement {} is of another tenant", statement.id));
        }
    }
    let mut datasets = HashSet::new();
    for dataset in &copy.datasets {
        if !datasets.insert(dataset.id) {
            return contradictory(format!("the dataset {} stands in it twice", dataset.id));
        }
        if header.tenant.as_ref().is_some_and(|tenant| *tenant != dataset.tenant) {
            return contradictory(format!("the dataset {} is of another tenant", dataset.id));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Seek;

    use serde_json::json;

    use super::*;
    use crate::publication::ReleaseStatus;

    fn write(header: &LedgerHeader, copy: LedgerCopy) -> io::Result<String> {
        let mut text = Vec::new();
        let mut writer = LedgerWriter::begin(&mut text, header)?;
        writer.copy(copy)?;
        writer.end()?;
        Ok(String::from_utf8(text).unwrap())
    }

    fn read(text: &str) -> Result<(LedgerHeader, LedgerCopy), LedgerFileError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        super::read(file)
    }

    fn example() -> String {
        let (id, at) = (Uuid::from_u128(7), DateTime::UNIX_EPOCH);
        let copy = LedgerCopy {
            releases: vec![PortableRelease {
                id,
                tenant: "north".into(),
                series: "a \"series\"\n".into(),
                content_hash: [1; 32],
                reuse_key: [0xab; 32],
                method: "versatile".into(),
                created_at: at,
                status: ReleaseStatus::Published,
                was_read: false,
            }],
            disclosures: vec![PortableDisclosure {
                id: Uuid::from_u128(8),
                release: id,
                table: "t1".into(),
                body: json!({"attributes": ["a"]}),
                recorded_at: at,
            }],
            rules: vec![PortableRule { release: id, number: 0, body: json!({"pointer": "/method"}) }],
            versions: vec![],
            datasets: vec![PortableDataset {
                id: Uuid::from_u128(10),
                tenant: "north".into(),
                name: None,
                series: "s".into(),
                same_people: None,
                same_people_reason: None,
                population: None,
                person: BTreeMap::new(),
                record_key: Some(vec!["k".into()]),
                subject: None,
                max_rows_per_subject: None,
                created_at: at,
                rows: 3,
                bytes: 6,
                format: "text/csv".into(),
                content_hash: [4; 32],
                overlaps: IgnoredAny,
                fingerprint: IgnoredAny,
            }],
            statements: vec![PortableStatement {
                id: Uuid::from_u128(11),
                tenant: "north".into(),
                series: "s".into(),
                body: json!({"reason": "r", "aliases": {"a": "b"}}),
                recorded_at: at,
            }],
        };
        let header = LedgerHeader::new(Uuid::from_u128(9), &[2; 32], &[3, 250], at, None);
        let text = write(&header, copy.clone()).unwrap();
        assert_eq!(read(&text).unwrap(), (header, copy));
        text
    }

    /// The file with other lines, and a last line that fits them.
    fn with_lines(lines: &[String]) -> Result<(LedgerHeader, LedgerCopy), LedgerFileError> {
        let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let trailer = LedgerTrailer { lines: lines.len(), sha256: to_hex(&Sha256::digest(text.as_bytes())) };
        text.push_str(&serde_json::to_string(&LedgerLine::End(trailer)).unwrap());
        read(&(text + "\n"))
    }

    #[test]
    fn a_file_that_was_cut_or_changed_is_refused_whole() {
        let text = example();
        for end in 0..text.len() {
            assert!(read(&text[..end]).is_err(), "cut at {end}");
        }
        let lines: Vec<&str> = text.lines().collect();
        for without in 0..lines.len() {
            let mut rest = lines.clone();
            rest.remove(without);
            assert!(read(&(rest.join("\n") + "\n")).is_err(), "without line {without}");
        }
        assert_eq!(read(&text.replace("north", "south")), Err(LedgerFileError::Changed));
        assert_eq!(read(&format!("{text}{text}")), Err(LedgerFileError::Changed));
        assert_eq!(read(&text.replace("\"format\":2", "\"format\":3")), Err(LedgerFileError::Format(3)));
        // of a whole file the line that cannot be read is named
        let mut unknown: Vec<String> = lines[..lines.len() - 1].iter().map(|line| (*line).to_owned()).collect();
        unknown[3] = unknown[3].replace("number", "numbers");
        assert!(matches!(with_lines(&unknown), Err(LedgerFileError::Line(4, _))));
        unknown[2] = lines[0].to_owned();
        assert!(matches!(with_lines(&unknown), Err(LedgerFileError::Line(3, _))));
        assert_eq!(read(""), Err(LedgerFileError::NoLedger));
        assert_eq!(read("{}\n"), Err(LedgerFileError::NoLedger));
    }

    #[test]
    fn a_file_that_contradicts_itself_is_refused() {
        let text = example();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.pop();
        assert!(with_lines(&lines).is_ok());
        for twice in 0..lines.len() {
            let mut more = lines.clone();
            more.push(lines[twice].clone());
            assert!(with_lines(&more).is_err(), "line {twice} twice");
        }
        let mut stray = lines.clone();
        stray.remove(1);
        assert!(matches!(with_lines(&stray), Err(LedgerFileError::Contradictory(_))), "without the release");
        for (from, to) in [
            ("published", "lost"),
            ("\"tenant\":null", "\"tenant\":\"south\""),
            ("abab", "ab"),
            ("t1", "t1\",\"x\":\""),
            ("\"aliases\"", "\"alias\""),
        ] {
            let other: Vec<String> = lines.iter().map(|line| line.replace(from, to)).collect();
            assert!(with_lines(&other).is_err(), "{from}");
        }
    }

    #[test]
    fn a_file_from_before_people_and_statements_is_read() {
        let text = example();
        let is_old =
            |line: &&str| !["dataset", "people", "statement", "end"].iter().any(|kind| line[2..].starts_with(kind));
        let lines: Vec<String> =
            text.lines().filter(is_old).map(|line| line.replace("\"format\":2", "\"format\":1")).collect();
        let (_, copy) = with_lines(&lines).unwrap();
        assert_eq!((copy.releases.len(), copy.disclosures.len(), copy.rules.len()), (1, 1, 1));
        assert!(copy.datasets.is_empty() && copy.statements.is_empty());
    }
}

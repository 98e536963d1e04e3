//! The ledger as a file: one JSON document a line. The first says whose it is, the last how many there are and what they hash to,
//! so that a file that was cut or changed by accident is told from a whole one.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::portable::{
    LedgerCopy, PortableDataset, PortableDisclosure, PortablePiece, PortableRelease, PortableRule, PortableStatement,
    PortableVersion,
};

/// The format that is written. One before is read too: it knew neither people nor statements.
const FORMAT: u32 = 2;

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
        Self { format: FORMAT, store, hashing, hashing_key, exported_at, tenant }
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
enum Line {
    Ledger(LedgerHeader),
    Release(PortableRelease),
    Disclosure(PortableDisclosure),
    Rule(PortableRule),
    Version(PortableVersion),
    Dataset(Box<PortableDataset>),
    People(PortablePiece),
    Statement(PortableStatement),
    End(Trailer),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trailer {
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
    #[error("it has the format {0}; this guardian reads formats up to {FORMAT}")]
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
}

/// Writes a ledger line by line: of what there is of people, a piece at a time is in memory.
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
        writer.put(&Line::Ledger(header.clone()))?;
        Ok(writer)
    }

    /// Writes the ledger of a moment, with those pieces of people that are in it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn copy(&mut self, copy: LedgerCopy) -> io::Result<()> {
        copy.releases.into_iter().map(Line::Release).try_for_each(|line| self.put(&line))?;
        copy.disclosures.into_iter().map(Line::Disclosure).try_for_each(|line| self.put(&line))?;
        copy.rules.into_iter().map(Line::Rule).try_for_each(|line| self.put(&line))?;
        copy.versions.into_iter().map(Line::Version).try_for_each(|line| self.put(&line))?;
        copy.datasets.into_iter().map(Box::new).map(Line::Dataset).try_for_each(|line| self.put(&line))?;
        copy.pieces.into_iter().try_for_each(|piece| self.people(piece))?;
        copy.statements.into_iter().map(Line::Statement).try_for_each(|line| self.put(&line))
    }

    /// Writes a piece of the people of a dataset.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn people(&mut self, piece: PortablePiece) -> io::Result<()> {
        self.put(&Line::People(piece))
    }

    /// Writes what tells a whole file from one that was cut.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        let trailer = Trailer { lines: self.lines, sha256: to_hex(&self.hash.clone().finalize()) };
        self.put(&Line::End(trailer))?;
        self.out.flush()
    }

    fn put(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.hash.update(&bytes);
        self.lines += 1;
        self.out.write_all(&bytes)
    }
}

/// Reads a ledger: all of it, or nothing.
///
/// # Errors
/// [`LedgerFileError`]
pub fn read(text: &str) -> Result<(LedgerHeader, LedgerCopy), LedgerFileError> {
    let whole = text.strip_suffix('\n').ok_or(if text.is_empty() {
        LedgerFileError::NoLedger
    } else {
        LedgerFileError::Cut
    })?;
    let first = whole.lines().next().unwrap_or_default();
    let format = serde_json::from_str::<Value>(first).ok().and_then(|line| line["ledger"]["format"].as_u64());
    match format {
        Some(format) if (1..=u64::from(FORMAT)).contains(&format) => {}
        Some(format) => return Err(LedgerFileError::Format(format)),
        None => return Err(LedgerFileError::NoLedger),
    }
    let (content, last) = whole.rsplit_once('\n').ok_or(LedgerFileError::Cut)?;
    let Ok(Line::End(trailer)) = serde_json::from_str(last) else { return Err(LedgerFileError::Cut) };
    let hash = Sha256::new().chain_update(content).chain_update("\n").finalize();
    if trailer.lines != content.split('\n').count() || trailer.sha256 != to_hex(&hash) {
        return Err(LedgerFileError::Changed);
    }

    let mut header = None;
    let mut copy = LedgerCopy::default();
    for (at, line) in content.split('\n').enumerate() {
        let unreadable = |why: String| LedgerFileError::Line(at + 1, why);
        match serde_json::from_str(line).map_err(|error| unreadable(error.to_string()))? {
            Line::Ledger(found) if at == 0 => header = Some(found),
            Line::Release(release) => copy.releases.push(release),
            Line::Disclosure(disclosure) => copy.disclosures.push(disclosure),
            Line::Rule(rule) => copy.rules.push(rule),
            Line::Version(version) => copy.versions.push(version),
            Line::Dataset(dataset) => copy.datasets.push(*dataset),
            Line::People(piece) => copy.pieces.push(piece),
            Line::Statement(statement) => copy.statements.push(statement),
            Line::Ledger(_) | Line::End(_) => return Err(unreadable("it stands in the middle".to_owned())),
        }
    }
    let header = header.ok_or(LedgerFileError::NoLedger)?;
    consistent(&header, &copy)?;
    Ok((header, copy))
}

fn consistent(header: &LedgerHeader, copy: &LedgerCopy) -> Result<(), LedgerFileError> {
    let contradictory = |what: String| Err(LedgerFileError::Contradictory(what));
    let mut releases = HashSet::new();
    for release in &copy.releases {
        if !releases.insert(release.id) {
            return contradictory(format!("the release {} stands in it twice", release.id));
        }
        if !["held", "published", "rejected", "withdrawn"].contains(&release.status.as_str()) {
            return contradictory(format!("the release {} has no known status", release.id));
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
    whole_people(header, copy)
}

/// What is known of the people of an upload is there as a whole, or it would be missed by whoever judges by it.
fn whole_people(header: &LedgerHeader, copy: &LedgerCopy) -> Result<(), LedgerFileError> {
    let contradictory = |what: String| Err(LedgerFileError::Contradictory(what));
    let mut pieces: BTreeMap<Uuid, BTreeMap<i64, u64>> = BTreeMap::new();
    for piece in &copy.pieces {
        let twice = pieces.entry(piece.dataset).or_default().insert(piece.piece, piece.hashes.len() as u64);
        if twice.is_some() || !piece.hashes.len().is_multiple_of(16) {
            return contradictory(format!("people of the dataset {} stand in it twice, or in part", piece.dataset));
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
        let mut found = pieces.remove(&dataset.id).unwrap_or_default();
        let is_whole = dataset.people.as_ref().map_or(found.is_empty(), |people| {
            let sampled = found.remove(&-1);
            sampled == people.sampled.checked_mul(16)
                && found.keys().copied().eq(0..i64::from(people.pieces))
                && Some(found.values().sum()) == people.rows.checked_mul(16)
        });
        if !is_whole {
            return contradictory(format!("people of the dataset {} are missing, or too many", dataset.id));
        }
    }
    match pieces.first_key_value() {
        Some((dataset, _)) => contradictory(format!("people stand in it without their dataset {dataset}")),
        None => Ok(()),
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Hashes as text.
pub(super) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(in crate::jobs) fn serialize<S: Serializer>(bytes: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::to_hex(bytes))
    }

    pub(in crate::jobs) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        super::of_hex(&text).ok_or_else(|| de::Error::custom("not 64 hexadecimal digits"))
    }
}

/// Many hashes as text.
pub(super) mod base64 {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(in crate::jobs) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(in crate::jobs) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(|_undecodable| de::Error::custom("not base64"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::KnownBy;
    use super::super::people::{Mark, People};
    use super::*;

    fn write(header: &LedgerHeader, copy: LedgerCopy) -> io::Result<String> {
        let mut text = Vec::new();
        let mut writer = LedgerWriter::begin(&mut text, header)?;
        writer.copy(copy)?;
        writer.end()?;
        Ok(String::from_utf8(text).unwrap())
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
                status: "published".into(),
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
                record_key: Some(vec!["k".into()]),
                subject: None,
                max_rows_per_subject: None,
                created_at: at,
                rows: 3,
                bytes: 6,
                format: "text/csv".into(),
                content_hash: [4; 32],
                overlaps: vec![],
                people: Some(People {
                    by: KnownBy::Keys,
                    folded: true,
                    key: vec![Mark(1)],
                    rows: 3,
                    pieces: 2,
                    set: Mark(2),
                    table: Mark(3),
                    columns: vec![(Mark(4), Mark(5))],
                    sampled: 1,
                    below: None,
                }),
            }],
            pieces: [(-1, 1), (0, 2), (1, 1)]
                .map(|(piece, hashes)| PortablePiece {
                    dataset: Uuid::from_u128(10),
                    piece,
                    hashes: vec![250; 16 * hashes],
                })
                .into(),
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
        let trailer = Trailer { lines: lines.len(), sha256: to_hex(&Sha256::digest(text.as_bytes())) };
        text.push_str(&serde_json::to_string(&Line::End(trailer)).unwrap());
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
        // without the release, the dataset, or a piece of its people
        for without in [1, 4, 5, 6, 7] {
            let mut stray = lines.clone();
            stray.remove(without);
            assert!(matches!(with_lines(&stray), Err(LedgerFileError::Contradictory(_))), "without line {without}");
        }
        for (from, to) in [
            ("published", "lost"),
            ("\"tenant\":null", "\"tenant\":\"south\""),
            ("abab", "ab"),
            ("t1", "t1\",\"x\":\""),
            ("+vr6", "+v"),
            ("\"sampled\":1", "\"sampled\":2"),
            ("\"pieces\":2", "\"pieces\":4294967295"),
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
        assert!(copy.datasets.is_empty() && copy.pieces.is_empty() && copy.statements.is_empty());
    }
}

//! Ledger files: what is written is read, and what was cut or changed is refused.

use std::collections::BTreeMap;
use std::io::Seek;

use serde_json::json;

use std::os::unix::fs::FileExt;

use super::*;
use crate::people::{
    Coverage, Evidence, Fold, KeySystem, KeyedHash, Place, Population, PopulationKey, Separation, SeparationStatement,
    SystemEvidence,
};
use crate::ports::people::{AlikeKind, AlikeMark};
use crate::ports::portable::carried_bytes::CarriedBytes;
use crate::publication::ReleaseStatus;
use crate::vault::Ciphertext;

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

/// A population of three persons, in two pieces.
fn people(at: DateTime<Utc>) -> LedgerCopy {
    let tenant = || "north".to_owned();
    let key = PopulationKey { key_system: "k".into(), columns: vec!["id".into()], fold: Fold::Standard };
    let population =
        Population { description: "d".into(), person: vec![key], max_rows_per_person: 1, republication: None };
    let places = [Place::Population("p".into()), Place::Dataset(Uuid::from_u128(10))];
    let statement = SeparationStatement::new(Uuid::from_u128(12), Separation::Disjoint, places, "r".into());
    let mut coverage = Coverage::new(Uuid::from_u128(10), Some("p"), &Evidence::default());
    coverage.systems.insert("k".into(), SystemEvidence { persons: 3, columns: BTreeMap::new() });
    let piece = |persons: &[u128]| PortableHashes {
        coverage: CoverageId(5),
        system: Some("k".into()),
        hashes: CarriedBytes::of_persons(&persons.iter().map(|hash| KeyedHash(*hash)).collect::<Vec<_>>()),
    };
    let mark = AlikeMark { hash: KeyedHash(9), kind: AlikeKind::Signature(3), weight: 77 };
    LedgerCopy {
        systems: vec![PortableKeySystem {
            tenant: tenant(),
            name: "k".into(),
            system: KeySystem { components: 1, fold: Fold::Standard },
        }],
        populations: vec![PortablePopulation { tenant: tenant(), name: "p".into(), population }],
        separations: vec![PortableSeparation { tenant: tenant(), statement: statement.unwrap(), recorded_at: at }],
        coverages: vec![PortableCoverage {
            tenant: tenant(),
            id: CoverageId(5),
            coverage,
            published: ["a".to_owned()].into(),
            cuts: vec![false],
        }],
        hashes: vec![
            piece(&[1, 2]),
            piece(&[3]),
            PortableHashes { coverage: CoverageId(5), system: None, hashes: CarriedBytes::of_marks(&[mark]) },
        ],
        ..LedgerCopy::default()
    }
}

fn chain_piece(piece: u32, bytes: &[u8]) -> PortableChainPiece {
    let payload = CarriedBytes::of_ciphertext(&Ciphertext::from_stored(bytes.to_vec()));
    PortableChainPiece { chain: Uuid::from_u128(13), piece, payload }
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
        chains: vec![PortableChain {
            tenant: "north".into(),
            population: "p".into(),
            id: Uuid::from_u128(13),
            wrapped_key: vec![0xcd, 5],
            ended_at: None,
            state: Some(PortableChainState {
                version: 3,
                job: Uuid::from_u128(14),
                attempt: 1,
                pieces: 2,
                bytes: 7,
                release: id,
            }),
            pending: None,
        }],
        pieces: vec![chain_piece(0, &[1; 4]), chain_piece(1, &[2; 3])],
        ..people(at)
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
    assert_eq!(read(&text.replace("\"format\":3", "\"format\":4")), Err(LedgerFileError::Format(4)));
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
fn persons_are_not_believed_once_the_file_changed() {
    let text = example();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    let (_, copy) = super::read(file.try_clone().unwrap()).unwrap();
    assert!(copy.hashes.iter().all(|piece| piece.hashes.are_in_file()));
    assert_eq!(copy.hashes[1].hashes.read_persons().unwrap(), [KeyedHash(3)]);
    let at = text.rfind("\"hashes\":\"").unwrap() as u64;
    file.write_at(b"h", at).unwrap();
    let read: Vec<bool> = copy.hashes.iter().map(|piece| piece.hashes.read_persons().is_ok()).collect();
    assert_eq!(read, [true, true, false]);
    assert_eq!(copy.pieces[1].payload.read_ciphertext().unwrap()[..], [2; 3]);
    let at = text.rfind("\"payload\":\"").unwrap() as u64;
    file.write_at(b"q", at).unwrap();
    let read: Vec<bool> = copy.pieces.iter().map(|piece| piece.payload.read_ciphertext().is_ok()).collect();
    assert_eq!(read, [true, false]);
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
    // without the release, the key system, the population, the coverage, the chain, some persons, or a piece of the state
    for without in [1, 6, 7, 9, 10, 11, 12, 14, 15] {
        let mut stray = lines.clone();
        stray.remove(without);
        assert!(matches!(with_lines(&stray), Err(LedgerFileError::Contradictory(_))), "without line {without}");
    }
    for (from, to) in [
        ("published", "lost"),
        ("\"tenant\":null", "\"tenant\":\"south\""),
        ("abab", "ab"),
        ("t1", "t1\",\"x\":\""),
        ("\"aliases\"", "\"alias\""),
        ("\"persons\":3", "\"persons\":2"),
        ("\"system\":\"k\"", "\"system\":\"l\""),
        ("\"hashes\":\"AAAA", "\"hashes\":\""),
        ("\"pieces\":2", "\"pieces\":3"),
        ("\"pieces\":2", "\"pieces\":1"),
        ("\"bytes\":7", "\"bytes\":8"),
        ("\"wrapped_key\":\"cd05\"", "\"wrapped_key\":\"\""),
        ("\"ended_at\":null", "\"ended_at\":\"2026-01-01T00:00:00Z\""),
    ] {
        let other: Vec<String> = lines.iter().map(|line| line.replace(from, to)).collect();
        assert!(with_lines(&other).is_err(), "{from}");
    }
}

#[test]
fn a_file_from_before_people_and_statements_is_read() {
    let text = example();
    let is_old = |line: &&str| {
        !["dataset", "statement", "key_system", "population", "separation", "coverage", "hashes", "chain", "end"]
            .iter()
            .any(|kind| line[2..].starts_with(kind))
    };
    let lines: Vec<String> =
        text.lines().filter(is_old).map(|line| line.replace("\"format\":3", "\"format\":1")).collect();
    let (_, copy) = with_lines(&lines).unwrap();
    assert_eq!((copy.releases.len(), copy.disclosures.len(), copy.rules.len()), (1, 1, 1));
    assert!(copy.datasets.is_empty() && copy.statements.is_empty());
}

//! The ledger as a file: one JSON document a line. The first says whose it is, the last how many there are and what they hash to,
//! so that a file that was cut or changed by accident differs from a whole one.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::LedgerCopy;
use super::hex::to_hex;
use super::records::{
    PortableChain, PortableChainPiece, PortableChainState, PortableCoverage, PortableDataset, PortableDisclosure,
    PortableHashes, PortableKeySystem, PortablePopulation, PortableRelease, PortableRule, PortableSeparation,
    PortableStatement, PortableVersion,
};
use crate::people::CoverageId;

/// The format that is written. Those before are read too: they knew no populations and no coverages, and the first one no
/// statements.
const LEDGER_FORMAT_VERSION: u32 = 3;

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
        super::hex::bytes::of_digits(&self.hashing_key)
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
    KeySystem(PortableKeySystem),
    Population(PortablePopulation),
    Separation(PortableSeparation),
    Coverage(Box<PortableCoverage>),
    Hashes(PortableHashes),
    Chain(Box<PortableChain>),
    ChainPiece(PortableChainPiece),
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

    /// Writes the ledger of a moment, with those hashes that are in it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn copy(&mut self, copy: LedgerCopy) -> io::Result<()> {
        copy.releases.into_iter().map(LedgerLine::Release).try_for_each(|line| self.put(&line))?;
        copy.disclosures.into_iter().map(LedgerLine::Disclosure).try_for_each(|line| self.put(&line))?;
        copy.rules.into_iter().map(LedgerLine::Rule).try_for_each(|line| self.put(&line))?;
        copy.versions.into_iter().map(LedgerLine::Version).try_for_each(|line| self.put(&line))?;
        copy.datasets.into_iter().map(Box::new).map(LedgerLine::Dataset).try_for_each(|line| self.put(&line))?;
        copy.statements.into_iter().map(LedgerLine::Statement).try_for_each(|line| self.put(&line))?;
        copy.systems.into_iter().map(LedgerLine::KeySystem).try_for_each(|line| self.put(&line))?;
        copy.populations.into_iter().map(LedgerLine::Population).try_for_each(|line| self.put(&line))?;
        copy.separations.into_iter().map(LedgerLine::Separation).try_for_each(|line| self.put(&line))?;
        copy.coverages.into_iter().map(Box::new).map(LedgerLine::Coverage).try_for_each(|line| self.put(&line))?;
        copy.chains.into_iter().map(Box::new).map(LedgerLine::Chain).try_for_each(|line| self.put(&line))?;
        copy.hashes.into_iter().try_for_each(|hashes| self.hashes(hashes))?;
        copy.pieces.into_iter().try_for_each(|piece| self.chain_piece(piece))
    }

    /// Writes a piece of the state of a chain.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn chain_piece(&mut self, piece: PortableChainPiece) -> io::Result<()> {
        self.put(&LedgerLine::ChainPiece(piece))
    }

    /// Writes persons or marks of a coverage.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn hashes(&mut self, hashes: PortableHashes) -> io::Result<()> {
        self.put(&LedgerLine::Hashes(hashes))
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

/// Reads a ledger from the beginning of a file: all of it, or nothing. Hashes are checked and left there.
///
/// # Errors
/// [`LedgerFileError`]
pub fn read(file: File) -> Result<(LedgerHeader, LedgerCopy), LedgerFileError> {
    let file = Arc::new(file);
    let mut reading = LedgerReading {
        file: Arc::clone(&file),
        read: 0,
        hash: Sha256::new(),
        lines: 0,
        header: None,
        copy: LedgerCopy::default(),
        fault: None,
    };
    let mut lines = BufReader::new(&*file);
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
    file: Arc<File>,
    /// The bytes of the lines.
    read: u64,
    hash: Sha256,
    lines: usize,
    header: Option<LedgerHeader>,
    copy: LedgerCopy,
    /// The first line that cannot be read. It counts when the file is what was written.
    fault: Option<LedgerFileError>,
}

impl LedgerReading {
    fn take(&mut self, line: &[u8]) {
        let begin = self.read;
        self.read += line.len() as u64;
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
            Ok(LedgerLine::KeySystem(system)) => copy.systems.push(system),
            Ok(LedgerLine::Population(population)) => copy.populations.push(population),
            Ok(LedgerLine::Separation(separation)) => copy.separations.push(separation),
            Ok(LedgerLine::Coverage(coverage)) => copy.coverages.push(*coverage),
            Ok(LedgerLine::Hashes(PortableHashes { coverage, system, hashes })) => {
                let hashes = hashes.in_file(&self.file, begin, line);
                copy.hashes.push(PortableHashes { coverage, system, hashes });
            }
            Ok(LedgerLine::Chain(chain)) => copy.chains.push(*chain),
            Ok(LedgerLine::ChainPiece(PortableChainPiece { chain, piece, payload })) => {
                let payload = payload.in_file(&self.file, begin, line);
                copy.pieces.push(PortableChainPiece { chain, piece, payload });
            }
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
    check_people(header, copy)?;
    check_coverages(copy)?;
    check_chains(header, copy)
}

/// Checks key systems, populations and statements about people.
fn check_people(header: &LedgerHeader, copy: &LedgerCopy) -> Result<(), LedgerFileError> {
    let contradictory = |what: String| Err(LedgerFileError::Contradictory(what));
    let mut named: HashSet<(&str, &str, &str)> = HashSet::new();
    let systems = copy.systems.iter().map(|of| ("key system", of.tenant.as_str(), of.name.as_str()));
    let populations = copy.populations.iter().map(|of| ("population", of.tenant.as_str(), of.name.as_str()));
    for (what, tenant, name) in systems.chain(populations) {
        if !named.insert((what, tenant, name)) {
            return contradictory(format!("the {what} {name} stands in it twice"));
        }
        if header.tenant.as_ref().is_some_and(|expected| expected != tenant) {
            return contradictory(format!("the {what} {name} is of another tenant"));
        }
    }
    for PortablePopulation { tenant, name, population } in &copy.populations {
        for key in &population.person {
            if !named.contains(&("key system", tenant.as_str(), key.key_system.as_str())) {
                return contradictory(format!("the population {name} stands in it without a key system"));
            }
        }
    }
    let mut separations = HashSet::new();
    for PortableSeparation { tenant, statement, .. } in &copy.separations {
        let is_foreign = header.tenant.as_ref().is_some_and(|expected| expected != tenant);
        if is_foreign || !separations.insert(statement.id) {
            return contradictory(format!(
                "the statement {} stands in it twice, or is of another tenant",
                statement.id
            ));
        }
    }
    Ok(())
}

/// Checks that the persons of every coverage are complete and in order: later jobs are judged by them.
fn check_coverages(copy: &LedgerCopy) -> Result<(), LedgerFileError> {
    let contradictory = |what: String| Err(LedgerFileError::Contradictory(what));
    let systems: HashSet<(&str, &str)> = copy.systems.iter().map(|of| (of.tenant.as_str(), of.name.as_str())).collect();
    let mut missing: BTreeMap<(CoverageId, Option<&str>), u64> = BTreeMap::new();
    for PortableCoverage { tenant, id, coverage, .. } in &copy.coverages {
        if missing.insert((*id, None), 0).is_some() {
            return contradictory(format!("the coverage {} stands in it twice", id.0));
        }
        for (name, system) in &coverage.systems {
            if !systems.contains(&(tenant.as_str(), name.as_str())) {
                return contradictory(format!("the coverage {} stands in it without a key system", id.0));
            }
            missing.insert((*id, Some(name.as_str())), system.persons);
        }
    }
    let mut marked = HashSet::new();
    for PortableHashes { coverage, system, hashes } in &copy.hashes {
        if system.is_none() && !marked.insert(coverage) {
            return contradictory(format!("the marks of the coverage {} stand in it twice", coverage.0));
        }
        let found = if system.is_some() { hashes.persons() } else { hashes.marks() };
        let left = missing.get_mut(&(*coverage, system.as_deref()));
        let Some((left, found)) = left.zip(found) else {
            return contradictory(format!("hashes of the coverage {} stand in it in part, or without it", coverage.0));
        };
        if system.is_some() {
            match left.checked_sub(found as u64) {
                Some(rest) => *left = rest,
                None => return contradictory(format!("the coverage {} has persons too many", coverage.0)),
            }
        }
    }
    match missing.iter().find(|(_, left)| **left > 0) {
        Some(((id, _), _)) => contradictory(format!("persons of the coverage {} are missing", id.0)),
        None => Ok(()),
    }
}

/// Checks that the state of every chain is whole: what is missing of it cannot be guessed.
fn check_chains(header: &LedgerHeader, copy: &LedgerCopy) -> Result<(), LedgerFileError> {
    let contradictory = |what: String| Err(LedgerFileError::Contradictory(what));
    let populations: HashSet<(&str, &str)> =
        copy.populations.iter().map(|of| (of.tenant.as_str(), of.name.as_str())).collect();
    let releases: HashSet<Uuid> = copy.releases.iter().map(|release| release.id).collect();
    let (mut named, mut states) = (HashSet::new(), BTreeMap::new());
    for PortableChain { tenant, population, id, wrapped_key, ended_at, state, .. } in &copy.chains {
        let is_foreign = header.tenant.as_ref().is_some_and(|expected| expected != tenant);
        let is_twice = !named.insert((tenant, population)) || states.insert(*id, (*state, 0, 0)).is_some();
        if is_foreign || is_twice || !populations.contains(&(tenant.as_str(), population.as_str())) {
            return contradictory(format!(
                "the chain of {population} stands in it twice, without its population, or is of another tenant"
            ));
        }
        if wrapped_key.is_empty() != ended_at.is_some() || state.is_some() && ended_at.is_some() {
            return contradictory(format!("the chain of {population} has ended, and has not"));
        }
        if state.is_some_and(|state| !releases.contains(&state.release)) {
            return contradictory(format!("the chain of {population} stands in it without its last release"));
        }
    }
    for PortableChainPiece { chain, piece, payload } in &copy.pieces {
        let Some((Some(_), found, bytes)) = states.get_mut(chain) else {
            return contradictory(format!("a piece of the chain {chain} stands in it without a state"));
        };
        // in their order, so that none is there twice
        if piece != found {
            return contradictory(format!("pieces of the chain {chain} are missing, or not in their order"));
        }
        (*found, *bytes) = (*found + 1, *bytes + payload.length() as u64);
    }
    let is_whole =
        |state: &PortableChainState, found: u32, bytes: u64| (state.pieces, state.bytes) == (found, bytes) && found > 0;
    let half = states.iter().find(|(_, (state, found, bytes))| state.is_some_and(|of| !is_whole(&of, *found, *bytes)));
    match half {
        Some((chain, _)) => contradictory(format!("the state of the chain {chain} is not whole")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;

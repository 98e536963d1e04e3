//! The population of a table that is published night after night: its state, and the persons of a table.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::exit::CommandOutcome;
use super::folder::FolderDraft;
use crate::engine::{self, RepublishInput};
use crate::microdata::Chunk;
use crate::people::{Fold, KeyedHasher, SystemColumns, person_hashes};
use crate::problem::{Kind, Problem};
use crate::service::population_file::{PopulationFile, PopulationFileError};
use crate::spec::Specification;

/// The name of the key system of a population in a file.
const KEY_SYSTEM: &str = "person";

/// Options of a table that is published night after night.
#[derive(Args)]
pub(super) struct PopulationOptions {
    /// The state of the population that the specification republishes: a sealed file that each night replaces, with its key in
    /// FILE.key. Without it the people can never be published in the population again
    #[arg(long, value_name = "FILE", requires = "person", help_heading = "Population")]
    population: Option<PathBuf>,
    /// The columns that identify persons, such as pid or first,last
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "population", help_heading = "Population")]
    person: Vec<String>,
    /// Begins the population: this is its first night, and nothing of its people is published
    #[arg(long, requires = "population", help_heading = "Population")]
    begin: bool,
}

/// A population with its state.
pub(super) struct OpenedPopulation {
    pub(super) file: PopulationFile,
    /// The columns that identify persons.
    columns: Vec<String>,
    /// What person hashes are made of: the same text on all nights.
    key: String,
}

impl OpenedPopulation {
    /// How its persons are distinguished.
    pub(super) fn keys(&self) -> PersonHashing<'_> {
        PersonHashing { hasher: self.file.hasher(), columns: &self.columns }
    }

    /// Puts the last night in its place, if the run that made it was killed before it did.
    pub(super) fn recover(&self, out: &Path) -> Result<(), CommandOutcome> {
        let Some(last) = self.file.state().and_then(engine::last_night) else { return Ok(()) };
        let recovered = FolderDraft::recover(out, |manifest| engine::shows_night(manifest, &last));
        let Some(place) = recovered.map_err(|error| CommandOutcome::io(out, &error))? else { return Ok(()) };
        let said = format!("night {}, which an interrupted run had made, is now in {}", last.night, place.display());
        if place.file_name() == out.file_name() {
            let detail = format!("{said}: name another folder for the next night");
            return Err(CommandOutcome::InputOutput(detail));
        }
        let _ = writeln!(std::io::stderr().lock(), "guardian: {said}");
        Ok(())
    }

    /// The input of a night of these persons.
    pub(super) fn input<'a>(&'a self, persons: &'a [[u8; 16]]) -> RepublishInput<'a> {
        RepublishInput { state: self.file.state(), previous: None, persons, key: &self.key }
    }

    /// Refuses a population without a night, and a night without its population.
    pub(super) fn check(population: Option<&Self>, specification: &Specification) -> Result<(), CommandOutcome> {
        let message = match (population, specification.republish) {
            (Some(_), Some(_)) | (None, None) => return Ok(()),
            (Some(_), None) => "the specification has no member republish: leave --population out, or add it",
            (None, Some(_)) => "the specification republishes a population: name it with --population and --person",
        };
        Err(CommandOutcome::Usage(message.to_owned()))
    }
}

impl PopulationOptions {
    /// Opens the population, if one is named.
    pub(super) fn open(&self) -> Result<Option<OpenedPopulation>, CommandOutcome> {
        let Some(path) = &self.population else { return Ok(None) };
        let opened = if self.begin { PopulationFile::begin(path) } else { PopulationFile::open(path) };
        let file = opened.map_err(outcome)?;
        Ok(Some(OpenedPopulation { file, columns: self.person.clone(), key: json!(self.person).to_string() }))
    }
}

/// The outcome of a state that is not there.
pub(super) fn outcome(error: PopulationFileError) -> CommandOutcome {
    match error {
        PopulationFileError::Lost(detail) => {
            let detail = format!("{detail}. A population that was never published begins with --begin");
            CommandOutcome::Refused(Box::new(Problem::new(Kind::RepublishStateLost, detail)))
        }
        PopulationFileError::Begun(_) => CommandOutcome::Usage(error.to_string()),
        PopulationFileError::Files(detail) => CommandOutcome::InputOutput(detail),
    }
}

/// How persons are distinguished.
#[derive(Clone, Copy)]
pub(super) struct PersonHashing<'a> {
    pub(super) hasher: &'a dyn KeyedHasher,
    /// The columns that identify persons.
    pub(super) columns: &'a [String],
}

/// The persons of a table, row by row.
pub(super) struct PersonReader<'a> {
    hasher: &'a dyn KeyedHasher,
    system: SystemColumns,
    persons: Vec<[u8; 16]>,
    /// The first row without a key, from 1.
    keyless: Option<usize>,
}

impl<'a> PersonReader<'a> {
    pub(super) fn new(keys: PersonHashing<'a>, names: &[String]) -> Result<Self, CommandOutcome> {
        let place = |column: &String| {
            let unknown = || CommandOutcome::Usage(format!("the table has no column {column:?}"));
            names.iter().position(|name| name == column).ok_or_else(unknown)
        };
        let columns = keys.columns.iter().map(place).collect::<Result<_, _>>()?;
        let system = SystemColumns { system: KEY_SYSTEM.to_owned(), fold: Fold::Standard, columns };
        Ok(Self { hasher: keys.hasher, system, persons: Vec::new(), keyless: None })
    }

    pub(super) fn add(&mut self, chunk: &Chunk) {
        for person in person_hashes(self.hasher, &self.system, chunk) {
            if person.is_none() && self.keyless.is_none() {
                self.keyless = Some(self.persons.len() + 1);
            }
            self.persons.push(person.map(|hash| hash.to_bytes()).unwrap_or_default());
        }
    }

    /// The person of each row, or the problem of a row without a key.
    pub(super) fn finish(mut self) -> Result<Vec<[u8; 16]>, CommandOutcome> {
        let Some(row) = self.keyless else {
            // they stay as long as the release
            self.persons.shrink_to_fit();
            return Ok(self.persons);
        };
        let detail = "a row has no value of the columns that identify persons";
        Err(CommandOutcome::Refused(Box::new(Problem::new(Kind::UploadMalformed, detail).with("row", row))))
    }
}

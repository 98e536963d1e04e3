//! The table and the specification of a publication, as `publish` and `plan` take them.

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::CommandOutcome;
use super::population::PopulationOptions;
use super::table_file::{TableFile, TableOptions};
use super::words::quoted;
use crate::publication::{ContributionChoice, Unit};

/// Whose rows a table holds.
#[derive(Args)]
pub(super) struct UnitOptions {
    /// The column that identifies data subjects with several rows; guarantees then hold for persons
    #[arg(long, value_name = "COLUMN", requires = "rows_of_a_person")]
    subject: Option<String>,
    /// Maximum number of rows of a data subject; a table with more is refused
    #[arg(long, value_name = "ROWS", requires = "subject", group = "rows_of_a_person", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_rows_per_subject: Option<u64>,
    #[command(flatten)]
    keep: KeepOptions,
}

/// How many rows of a person are kept.
#[derive(Args)]
pub(super) struct KeepOptions {
    /// Keeps at most this number of rows of a data subject, by a secret draw, and leaves out the others
    #[arg(long, value_name = "ROWS", requires = "subject", group = "rows_of_a_person", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    keep: Option<u64>,
    /// Keeps the rows with the smallest values of this column, which must say nothing of a sensitive column
    #[arg(long, value_name = "COLUMN", requires = "keep")]
    keep_order: Option<String>,
}

impl UnitOptions {
    /// The unit of protection.
    fn unit(&self) -> Unit {
        let kept = self.keep.unit(self.subject.as_deref());
        match (&self.subject, self.max_rows_per_subject) {
            (Some(attribute), Some(max_rows)) if self.keep.keep.is_none() => {
                Unit::Subject { attribute: attribute.clone(), max_rows, kept: None }
            }
            _ => kept,
        }
    }
}

impl KeepOptions {
    /// The unit of protection of what is kept; a row where nothing is left out.
    pub(super) fn unit(&self, subject: Option<&str>) -> Unit {
        let Some((attribute, max_rows)) = subject.zip(self.keep) else { return Unit::Row };
        let order = self.keep_order.clone();
        let choice = order.map_or(ContributionChoice::Random, ContributionChoice::First);
        Unit::Subject { attribute: attribute.to_owned(), max_rows, kept: Some(choice) }
    }

    /// The options as they stand on a command line, each after a space.
    pub(super) fn in_words(&self) -> String {
        let keep = self.keep.map(|rows| format!(" --keep {rows}"));
        let order = self.keep_order.as_ref().map(|column| format!(" --keep-order {}", quoted(Path::new(column))));
        keep.into_iter().chain(order).collect()
    }
}

/// The files of a job, and whose rows they hold.
#[derive(Args)]
pub(super) struct JobFiles {
    /// The table, its address such as s3://bucket/key, or `-` for standard input: CSV, NDJSON, JSON, Parquet or Arrow; plain, gzip or
    /// zstd
    #[arg(required_unless_present = "input", value_name = "TABLE")]
    table: Option<PathBuf>,
    /// The specification: the document of a job, without `dataset`
    #[arg(required_unless_present = "spec", value_name = "SPECIFICATION")]
    specification: Option<PathBuf>,
    /// The table, instead of the first argument
    #[arg(long, conflicts_with = "table", value_name = "TABLE")]
    input: Option<PathBuf>,
    /// The specification, instead of the second argument
    #[arg(long, conflicts_with = "specification", value_name = "SPECIFICATION")]
    spec: Option<PathBuf>,
    #[command(flatten)]
    options: TableOptions,
    #[command(flatten)]
    unit: UnitOptions,
    #[command(flatten)]
    population: PopulationOptions,
}

impl JobFiles {
    /// The table with its options.
    pub(super) fn table(&self) -> Result<TableFile<'_>, CommandOutcome> {
        let path = given(&self.table, &self.input)?;
        Ok(TableFile { path, format: None, options: self.options.parsed()? })
    }

    /// The file of the specification.
    pub(super) fn specification(&self) -> Result<&Path, CommandOutcome> {
        given(&self.specification, &self.spec)
    }

    /// The unit of protection.
    pub(super) fn unit(&self) -> Unit {
        self.unit.unit()
    }

    /// The population of which the table is published night after night.
    pub(super) const fn population(&self) -> &PopulationOptions {
        &self.population
    }
}

fn given<'a>(argument: &'a Option<PathBuf>, flag: &'a Option<PathBuf>) -> Result<&'a Path, CommandOutcome> {
    let path = argument.as_deref().or(flag.as_deref());
    path.ok_or_else(|| CommandOutcome::Usage("name a table and a specification".to_owned()))
}

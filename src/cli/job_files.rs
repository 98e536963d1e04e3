//! The table and the specification of a publication, as `publish` and `plan` take them.

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::CommandOutcome;
use super::table_file::{TableFile, TableOptions};
use crate::publication::Unit;

/// The files of a job, and whose rows they hold.
#[derive(Args)]
pub(super) struct JobFiles {
    /// The table, or `-` for standard input: CSV, NDJSON, JSON, Parquet or Arrow; plain, gzip or zstd
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
    /// The column that identifies data subjects with several rows; guarantees then hold for persons
    #[arg(long, value_name = "COLUMN", requires = "max_rows_per_subject")]
    subject: Option<String>,
    /// Maximum number of rows of a data subject; a table with more is refused
    #[arg(long, value_name = "ROWS", requires = "subject", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_rows_per_subject: Option<u64>,
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
        match (&self.subject, self.max_rows_per_subject) {
            (Some(attribute), Some(max_rows)) => Unit::Subject { attribute: attribute.clone(), max_rows },
            _ => Unit::Row,
        }
    }
}

fn given<'a>(argument: &'a Option<PathBuf>, flag: &'a Option<PathBuf>) -> Result<&'a Path, CommandOutcome> {
    let path = argument.as_deref().or(flag.as_deref());
    path.ok_or_else(|| CommandOutcome::Usage("name a table and a specification".to_owned()))
}

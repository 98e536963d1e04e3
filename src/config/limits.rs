//! What is accepted at most, and how much may be under way. Bytes may be written as 512MiB or 2GB.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

/// The limits of a service that accepts tables and requests.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize)]
#[command(next_help_heading = "Limits")]
pub struct RequestLimits {
    /// The most rows of a table
    #[arg(long, env = "GUARDIAN_MAX_ROWS", default_value_t = Self::DEFAULT.max_rows, value_parser = clap::value_parser!(u64).range(1..=4_294_967_294))]
    pub max_rows: u64,
    /// The most bytes of one cell of a table
    #[arg(long, env = "GUARDIAN_MAX_CELL_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_cell_bytes, value_parser = piece)]
    pub max_cell_bytes: u64,
    /// The most bytes of one row of a table, as CSV or NDJSON
    #[arg(long, env = "GUARDIAN_MAX_ROW_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_row_bytes, value_parser = piece)]
    pub max_row_bytes: u64,
    /// The most bytes of one record batch of an Arrow stream or one page of a Parquet file, which are held as a whole
    #[arg(long, env = "GUARDIAN_MAX_BATCH_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_batch_bytes, value_parser = bytes)]
    pub max_batch_bytes: u64,
    /// The most bytes that an upload may decompress to
    #[arg(long, env = "GUARDIAN_MAX_DECOMPRESSED_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_decompressed_bytes, value_parser = bytes)]
    pub max_decompressed_bytes: u64,
    /// The most decompressed bytes for each compressed one, after the first 64 MiB
    #[arg(long, env = "GUARDIAN_MAX_DECOMPRESSION_RATIO", value_name = "RATIO", default_value_t = Self::DEFAULT.max_decompression_ratio, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_decompression_ratio: u64,
    /// The most bytes of a JSON document, such as a job
    #[arg(long, env = "GUARDIAN_MAX_DOCUMENT_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_document_bytes, value_parser = bytes)]
    pub max_document_bytes: u64,
    /// Seconds in which at least 16 KiB of a body must arrive, or its end; else it is answered 408
    #[arg(long, env = "GUARDIAN_UPLOAD_IDLE_SECONDS", value_name = "SECONDS", default_value_t = Self::DEFAULT.upload_idle_seconds, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub upload_idle_seconds: u64,
    /// Seconds in which a whole upload must arrive; else it is answered 408
    #[arg(long, env = "GUARDIAN_MAX_UPLOAD_SECONDS", value_name = "SECONDS", default_value_t = Self::DEFAULT.max_upload_seconds, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_upload_seconds: u64,
    /// Requests under way at the same time, of every kind; beyond, they are answered 429
    #[arg(long, env = "GUARDIAN_MAX_REQUESTS", default_value_t = Self::DEFAULT.max_requests, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_requests: u32,
    /// Callers that wait for jobs at the same time, by wait= or by events; beyond, they are answered 429
    #[arg(long, env = "GUARDIAN_MAX_WAITING", default_value_t = Self::DEFAULT.max_waiting, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_waiting: u32,
    /// Downloads of parts and archives at the same time; beyond, they are answered 429
    #[arg(long, env = "GUARDIAN_MAX_DOWNLOADS", default_value_t = Self::DEFAULT.max_downloads, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_downloads: u32,
    /// Connections at the same time; others wait until one ends
    #[arg(long, env = "GUARDIAN_MAX_CONNECTIONS", default_value_t = Self::DEFAULT.max_connections, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: u32,
}

impl RequestLimits {
    /// What holds unless stated.
    pub const DEFAULT: Self = Self {
        max_rows: 4_294_967_294,
        max_cell_bytes: 64 << 10,
        max_row_bytes: 1 << 20,
        max_batch_bytes: 512 << 20,
        max_decompressed_bytes: 64 << 30,
        max_decompression_ratio: 200,
        max_document_bytes: 16 << 20,
        upload_idle_seconds: 60,
        max_upload_seconds: 6 * 60 * 60,
        max_requests: 1024,
        max_waiting: 512,
        max_downloads: 64,
        max_connections: 4096,
    };
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The limits of whoever judges and runs jobs.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize)]
#[command(next_help_heading = "Limits")]
pub struct JobLimits {
    /// Memory that the jobs and plans of this process may take together, as estimated beforehand; 0 for no bound. Default: half of
    /// the memory of the machine, or of the control group where that has less
    #[arg(long, env = "GUARDIAN_MEMORY_BUDGET", value_name = "BYTES", value_parser = bytes)]
    pub memory_budget: Option<u64>,
    /// Seconds that one attempt of a job may run; it then ends as failed, with deadline. Without a bound unless given
    #[arg(long, env = "GUARDIAN_MAX_JOB_SECONDS", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_job_seconds: Option<u64>,
    /// The most distinct values of a column that a job uses; a column with more can only be dropped
    #[arg(long, env = "GUARDIAN_MAX_DISTINCT", default_value_t = Self::DEFAULT.max_distinct, value_parser = clap::value_parser!(u64).range(1..=4_294_967_294))]
    pub max_distinct: u64,
    /// The most bytes that the distinct values of such a column take together
    #[arg(long, env = "GUARDIAN_MAX_DICTIONARY_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_dictionary_bytes, value_parser = bytes)]
    pub max_dictionary_bytes: u64,
}

impl JobLimits {
    /// What holds unless stated.
    pub const DEFAULT: Self =
        Self { memory_budget: None, max_job_seconds: None, max_distinct: 1 << 22, max_dictionary_bytes: 512 << 20 };

    /// How long an attempt may run.
    #[must_use]
    pub fn max_job(&self) -> Option<Duration> {
        self.max_job_seconds.map(Duration::from_secs)
    }
}

impl Default for JobLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A number of bytes, with or without a unit.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let unit = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err("the unit may be KiB, MiB, GiB, TiB, kB, MB, GB or TB".to_owned()),
    };
    let number: u64 = digits.trim().parse().map_err(|_| "write a whole number of bytes, such as 512MiB".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "more bytes than can be counted".to_owned())
}

/// Bytes of something that is held in memory as a whole, and that a stored piece of a column must hold.
fn piece(text: &str) -> Result<u64, String> {
    const MOST: u64 = 16 << 20;
    let found = bytes(text)?;
    if found <= MOST { Ok(found) } else { Err("at most 16MiB".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        requests: RequestLimits,
        #[command(flatten)]
        jobs: JobLimits,
    }

    #[test]
    fn defaults_are_those_of_the_command_line() {
        let line = Line::try_parse_from(["guardian"]).unwrap();
        assert_eq!((line.requests, line.jobs), (RequestLimits::default(), JobLimits::default()));
    }

    #[test]
    fn bytes_have_units() {
        for (text, expected) in [
            ("0", 0),
            ("512MiB", 512 << 20),
            ("512 mib", 512 << 20),
            ("2GB", 2_000_000_000),
            ("64k", 64 << 10),
            ("7b", 7),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "MiB", "1.5GiB", "-1", "1 parsec", "99999999999TiB", "1MiB2"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(Line::try_parse_from(["guardian", "--max-cell-bytes", "16MiB"]).is_ok());
        assert!(Line::try_parse_from(["guardian", "--max-cell-bytes", "17MiB"]).is_err());
    }
}

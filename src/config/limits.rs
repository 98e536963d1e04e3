//! Limits of requests and jobs. Sizes accept units such as 512MiB or 2GB.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

/// The limits of a service that accepts tables and requests.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize)]
#[command(next_help_heading = "Limits")]
pub struct RequestLimits {
    /// Maximum number of rows of a table
    #[arg(long, env = "GUARDIAN_MAX_ROWS", default_value_t = Self::DEFAULT.max_rows, value_parser = clap::value_parser!(u64).range(1..=4_294_967_294))]
    pub max_rows: u64,
    /// Maximum size of a cell of a table
    #[arg(long, env = "GUARDIAN_MAX_CELL_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_cell_bytes, value_parser = chunk_bytes)]
    pub max_cell_bytes: u64,
    /// Maximum size of a row of a CSV, NDJSON or JSON table
    #[arg(long, env = "GUARDIAN_MAX_ROW_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_row_bytes, value_parser = chunk_bytes)]
    pub max_row_bytes: u64,
    /// Maximum size of a record batch of Arrow or a page of a Parquet file
    #[arg(long, env = "GUARDIAN_MAX_BATCH_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_batch_bytes, value_parser = bytes)]
    pub max_batch_bytes: u64,
    /// Maximum decompressed size of an upload
    #[arg(long, env = "GUARDIAN_MAX_DECOMPRESSED_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_decompressed_bytes, value_parser = bytes)]
    pub max_decompressed_bytes: u64,
    /// Maximum decompression ratio after the first 64 MiB
    #[arg(long, env = "GUARDIAN_MAX_DECOMPRESSION_RATIO", value_name = "RATIO", default_value_t = Self::DEFAULT.max_decompression_ratio, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_decompression_ratio: u64,
    /// Maximum size of a JSON document, such as a job
    #[arg(long, env = "GUARDIAN_MAX_DOCUMENT_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_document_bytes, value_parser = bytes)]
    pub max_document_bytes: u64,
    /// Bytes per second that a client must at least send of a body, or take of an answer, while the service waits for it
    #[arg(long, env = "GUARDIAN_MIN_BYTES_PER_SECOND", value_name = "BYTES", default_value_t = Self::DEFAULT.min_bytes_per_second, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub min_bytes_per_second: u64,
    /// Seconds of waiting over which the speed of a body is judged; a slower one is answered 408
    #[arg(long, env = "GUARDIAN_UPLOAD_IDLE_SECONDS", value_name = "SECONDS", default_value_t = Self::DEFAULT.upload_idle_seconds, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub upload_idle_seconds: u64,
    /// Seconds within which a whole upload must arrive; otherwise the answer is 408
    #[arg(long, env = "GUARDIAN_MAX_UPLOAD_SECONDS", value_name = "SECONDS", default_value_t = Self::DEFAULT.max_upload_seconds, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_upload_seconds: u64,
    /// Maximum number of concurrent requests, of which one tenant has at most half; others are answered 429
    #[arg(long, env = "GUARDIAN_MAX_REQUESTS", default_value_t = Self::DEFAULT.max_requests, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_requests: u32,
    /// Maximum number of callers that wait for jobs, by wait= or events, of which one tenant has at most half; others are answered 429
    #[arg(long, env = "GUARDIAN_MAX_WAITING", default_value_t = Self::DEFAULT.max_waiting, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_waiting: u32,
    /// Maximum number of concurrent downloads of parts and archives, of which one tenant has at most half; others are answered 429
    #[arg(long, env = "GUARDIAN_MAX_DOWNLOADS", default_value_t = Self::DEFAULT.max_downloads, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_downloads: u32,
    /// Maximum total size of the rendered parts that the data folder holds for requests of ranges, of which one tenant has at most
    /// half; 0 to answer with whole parts
    #[arg(long, env = "GUARDIAN_MAX_RENDERED_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_rendered_bytes, value_parser = bytes)]
    pub max_rendered_bytes: u64,
    /// Maximum number of concurrent connections. Above it the connection that has rested longest is closed
    #[arg(long, env = "GUARDIAN_MAX_CONNECTIONS", default_value_t = Self::DEFAULT.max_connections, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: u32,
    /// Maximum number of concurrent connections of one address; more are closed. Default: half of all, or all with
    /// --trust-forwarded, as a gateway has one address
    #[arg(long, env = "GUARDIAN_MAX_CONNECTIONS_PER_ADDRESS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections_per_address: Option<u32>,
    /// Seconds of waiting over which the speed of a client that takes an answer is judged; the connection of a slower one is closed
    #[arg(long, env = "GUARDIAN_UNREAD_SECONDS", value_name = "SECONDS", default_value_t = Self::DEFAULT.unread_seconds, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub unread_seconds: u64,
}

impl RequestLimits {
    /// The defaults of the command line.
    pub const DEFAULT: Self = Self {
        max_rows: 4_294_967_294,
        max_cell_bytes: 64 << 10,
        max_row_bytes: 1 << 20,
        max_batch_bytes: 512 << 20,
        max_decompressed_bytes: 64 << 30,
        max_decompression_ratio: 200,
        max_document_bytes: 16 << 20,
        min_bytes_per_second: 1024,
        upload_idle_seconds: 60,
        max_upload_seconds: 6 * 60 * 60,
        max_requests: 1024,
        max_waiting: 512,
        max_downloads: 64,
        max_rendered_bytes: 4 << 30,
        max_connections: 4096,
        max_connections_per_address: None,
        unread_seconds: 60,
    };
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The limits of processes that plan and run jobs.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize)]
#[command(next_help_heading = "Limits")]
pub struct JobLimits {
    /// Memory budget of the jobs and plans of this process; 0 for no bound. Default: half of the memory of the machine or of the
    /// control group, whichever is smaller
    #[arg(long, env = "GUARDIAN_MEMORY_BUDGET", value_name = "BYTES", value_parser = bytes)]
    pub memory_budget: Option<u64>,
    /// Seconds that one attempt of a job may run; it then fails with deadline. Default: no bound
    #[arg(long, env = "GUARDIAN_MAX_JOB_SECONDS", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_job_seconds: Option<u64>,
    /// Maximum number of distinct values of a column; a column with more can only be dropped
    #[arg(long, env = "GUARDIAN_MAX_DISTINCT", default_value_t = Self::DEFAULT.max_distinct, value_parser = clap::value_parser!(u64).range(1..=4_294_967_294))]
    pub max_distinct: u64,
    /// Maximum total size of the distinct values of a column
    #[arg(long, env = "GUARDIAN_MAX_DICTIONARY_BYTES", value_name = "BYTES", default_value_t = Self::DEFAULT.max_dictionary_bytes, value_parser = bytes)]
    pub max_dictionary_bytes: u64,
}

impl JobLimits {
    /// The defaults of the command line.
    pub const DEFAULT: Self =
        Self { memory_budget: None, max_job_seconds: None, max_distinct: 1 << 22, max_dictionary_bytes: 512 << 20 };

    /// The longest duration of an attempt.
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

/// Parses a number of bytes, with or without a unit.
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
        _ => return Err("the unit must be KiB, MiB, GiB, TiB, kB, MB, GB or TB".to_owned()),
    };
    let number: u64 =
        digits.trim().parse().map_err(|_| "the size must be an integer number of bytes, such as 512MiB".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "the size is too large".to_owned())
}

/// Parses the size of a cell or row, which must fit into a chunk of a column.
fn chunk_bytes(text: &str) -> Result<u64, String> {
    const MAX_CHUNK_BYTES: u64 = 16 << 20;
    let found = bytes(text)?;
    if found <= MAX_CHUNK_BYTES { Ok(found) } else { Err("at most 16MiB".to_owned()) }
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
    fn defaults_equal_those_of_the_command_line() {
        let line = Line::try_parse_from(["guardian"]).unwrap();
        assert_eq!((line.requests, line.jobs), (RequestLimits::default(), JobLimits::default()));
    }

    #[test]
    fn bytes_accept_units() {
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

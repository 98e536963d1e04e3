//! A release as one zip file, written as it is sent. Equal releases give equal bytes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use super::manifest::Manifest;
use super::manifest_part::ManifestPart;
use super::page::report_page;
use super::public::PublicReport;
use super::readme::readme;
use crate::microdata::AttributeType;

/// Writes the archive of a release, piece by piece: what describes it, then its parts.
pub struct Archive {
    zip: ZipWriter<StreamWriter<PendingBytes>>,
    pieces: PendingBytes,
    options: SimpleFileOptions,
}

impl Archive {
    /// Begins with `README.txt`, `manifest.json`, `report.json`, `report.html` and `datapackage.json`. Every file has the time of the release.
    ///
    /// # Errors
    /// When a chart of the page cannot be drawn.
    pub fn begin(manifest: &Manifest, report: &PublicReport) -> io::Result<Self> {
        let pieces = PendingBytes::default();
        // the size follows each file, in 64 bits where it needs them
        let zip = ZipWriter::new_stream(pieces.clone()).set_auto_large_file();
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .unix_permissions(0o644)
            .last_modified_time(moment(&manifest.created_at));
        let mut archive = Self { zip, pieces, options };
        archive.file("README.txt", readme(manifest).as_bytes())?;
        archive.file("manifest.json", &pretty(manifest)?)?;
        archive.file("report.json", &pretty(report)?)?;
        let page = report_page(report, manifest).map_err(io::Error::other)?;
        archive.file("report.html", page.as_bytes())?;
        archive.file("datapackage.json", &pretty(&data_package(manifest))?)?;
        Ok(archive)
    }

    /// Begins the file of a part.
    ///
    /// # Errors
    /// When there is one of this name.
    pub fn part(&mut self, file: &str) -> io::Result<()> {
        self.zip.start_file(file, self.options).map_err(io::Error::other)
    }

    /// Writes the next bytes of the part.
    ///
    /// # Errors
    /// When no part was begun.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.zip.write_all(bytes)
    }

    /// Writes the directory and gives the last bytes.
    ///
    /// # Errors
    /// Never in practice.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        self.zip.finish().map_err(io::Error::other)?;
        Ok(self.pieces.take())
    }

    /// The bytes written since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<u8> {
        self.pieces.take()
    }

    fn file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.part(name)?;
        self.bytes(bytes)
    }
}

/// What was written and not yet taken.
#[derive(Clone, Default)]
struct PendingBytes(Arc<Mutex<Vec<u8>>>);

impl PendingBytes {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for PendingBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn pretty(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
    json.push(b'\n');
    Ok(json)
}

/// A time as zip files hold it, in UTC; the earliest one for what they cannot hold.
fn moment(rfc3339: &str) -> zip::DateTime {
    let number = |from: usize, to: usize| rfc3339.get(from..to)?.parse::<u16>().ok();
    let parsed = || {
        let small = |from: usize| number(from, from + 2).map(|number| number as u8);
        zip::DateTime::from_date_and_time(number(0, 4)?, small(5)?, small(8)?, small(11)?, small(14)?, small(17)?).ok()
    };
    parsed().unwrap_or_default()
}

/// The parts of a release as a Frictionless Tabular Data Package.
#[must_use]
pub fn data_package(manifest: &Manifest) -> Value {
    let resources = manifest.tables.iter().flat_map(|table| {
        table.parts.iter().map(|part| {
            json!({
                "name": format!("{}-{}", table.name, part.name),
                "path": part.csv(),
                "profile": "tabular-data-resource",
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "hash": format!("sha256:{}", part.digest()),
                "dialect": {"delimiter": ",", "lineTerminator": "\n", "quoteChar": "\"", "doubleQuote": true, "header": true},
                "schema": {"fields": fields(part), "missingValues": [part.null.as_deref().unwrap_or("")]},
            })
        })
    });
    let name = manifest.id.map_or_else(|| "release".to_owned(), |id| format!("release-{id}"));
    json!({
        "profile": "tabular-data-package",
        "name": name,
        "created": manifest.created_at,
        "resources": resources.collect::<Vec<_>>(),
    })
}

fn fields(part: &ManifestPart) -> Vec<Value> {
    let bucket = part.bucketed.then(|| json!({"name": "bucket", "type": "integer", "constraints": {"required": true}}));
    let attribute = |name: &String| {
        let kind = if part.cells.contains_key(name) { None } else { part.types.get(name).copied() };
        let word = match kind.unwrap_or(AttributeType::Text) {
            AttributeType::Integer => "integer",
            AttributeType::Decimal | AttributeType::Float => "number",
            AttributeType::Text => "string",
            AttributeType::Boolean => "boolean",
            AttributeType::Date => "date",
            AttributeType::Timestamp | AttributeType::LocalTimestamp => "datetime",
        };
        json!({"name": name, "type": word})
    };
    bucket.into_iter().chain(part.attributes.iter().map(attribute)).collect()
}

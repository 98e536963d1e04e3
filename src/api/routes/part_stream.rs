//! Streams of parts. A chunk is fetched after the client has read the previous one; a blocking thread renders it.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, stream};

use crate::api::http::app::App;
use crate::app::run_blocking;
use crate::inputs::decompress;
use crate::microdata::formats::DecimalScales;
use crate::ports::{PartChunkRecord, ReleaseRecord, StoreError};
use crate::problem::Problem;
use crate::report::{Archive, Manifest, ManifestPart, PartFormat, PublicReport, Rendering};

/// The decompressed CSV of a chunk.
pub(in crate::api) fn unpacked(chunk: &PartChunkRecord) -> Result<Vec<u8>, StoreError> {
    decompress(&chunk.payload).map_err(StoreError::corrupt)
}

/// The problem of a failed rendering: the stored part is corrupt.
pub(in crate::api) fn storage_problem(error: &io::Error) -> Problem {
    StoreError::corrupt(error.to_string()).into()
}

/// Runs a closure on a blocking thread.
pub(in crate::api) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    match run_blocking("the rendering", move |_| work()).await {
        Ok(done) => done.map_err(StoreError::corrupt),
        Err(_panicked) => Err(StoreError::corrupt("rendering of a part stopped")),
    }
}

/// Logs the error that truncates a started answer.
pub(in crate::api) fn cut(error: StoreError) -> StoreError {
    error.log();
    error
}

/// Scans a whole part for its decimal scales, if the format needs them.
pub(in crate::api) async fn scales(
    app: &App,
    release: &ReleaseRecord,
    part: &ManifestPart,
    format: PartFormat,
) -> Result<Option<DecimalScales>, Problem> {
    let Some(mut scales) = crate::report::scales(part, format) else { return Ok(None) };
    let mut number = 0;
    loop {
        let found =
            app.service.store.part_chunk(&release.tenant, release.job, release.attempt, &part.csv(), number).await;
        let Some(chunk) = found? else { return Ok(Some(scales)) };
        let looked = blocking(move || {
            scales.look(&decompress(&chunk.payload)?, chunk.number == 0)?;
            Ok(scales)
        });
        scales = looked.await?;
        number += 1;
    }
}

/// The position of a stream in a part.
pub(in crate::api) struct PartPosition {
    pub(in crate::api) file: String,
    pub(in crate::api) number: u32,
    /// The number of remaining rows.
    left: u64,
}

impl PartPosition {
    pub(in crate::api) fn begin(part: &ManifestPart) -> Self {
        Self { file: part.csv(), number: 0, left: part.rows }
    }

    /// Skips to the chunk after `chunk`.
    pub(in crate::api) fn skip_to(&mut self, chunk: &PartChunkRecord) {
        self.number = chunk.number;
        self.left = self.left.saturating_sub(chunk.first_row);
    }

    /// Reads the chunk at the position, and advances by it.
    async fn read(&mut self, app: &App, release: &ReleaseRecord) -> Result<Option<PartChunkRecord>, StoreError> {
        let (tenant, store) = (release.tenant.as_str(), &app.service.store);
        let found = store.part_chunk(tenant, release.job, release.attempt, &self.file, self.number).await;
        let found = found.map_err(cut)?;
        self.step(found.as_ref())?;
        Ok(found)
    }

    /// Advances by a chunk. A missing chunk truncates the stream: the release was withdrawn or rejected meanwhile.
    pub(in crate::api) fn step(&mut self, found: Option<&PartChunkRecord>) -> Result<(), StoreError> {
        let Some(chunk) = found else {
            return if self.left == 0 { Ok(()) } else { Err(StoreError::NotFound) };
        };
        self.number += 1;
        self.left = self.left.saturating_sub(u64::from(chunk.rows));
        Ok(())
    }
}

/// Streams all rows of a part.
pub(in crate::api) fn part(
    app: App,
    release: ReleaseRecord,
    part: &ManifestPart,
    rendering: Rendering,
) -> impl Stream<Item = Result<Bytes, StoreError>> + use<> {
    let begun = (app, release, PartPosition::begin(part), Some(rendering));
    stream::try_unfold(begun, |(app, release, mut place, rendering)| async move {
        let Some(mut rendering) = rendering else { return Ok(None) };
        loop {
            let found = place.read(&app, &release).await?;
            let last = found.is_none();
            let rendered = blocking(move || {
                let bytes = match found {
                    Some(chunk) => rendering.chunk(decompress(&chunk.payload)?)?,
                    None => rendering.finish()?,
                };
                Ok((rendering, bytes))
            });
            let bytes;
            (rendering, bytes) = rendered.await.map_err(cut)?;
            if last {
                return Ok(Some((bytes.into(), (app, release, place, None))));
            }
            if !bytes.is_empty() {
                return Ok(Some((bytes.into(), (app, release, place, Some(rendering)))));
            }
        }
    })
}

/// The state of a streamed archive.
struct ArchiveProgress {
    app: App,
    release: ReleaseRecord,
    parts: std::vec::IntoIter<PartPosition>,
    /// The part in progress.
    current: Option<PartPosition>,
    archive: Option<Archive>,
}

/// Streams a release as a zip file.
///
/// # Errors
/// If the archive cannot be started.
pub(in crate::api) async fn archive(
    app: App,
    release: ReleaseRecord,
    manifest: Manifest,
    report: PublicReport,
) -> Result<impl Stream<Item = Result<Bytes, StoreError>>, Problem> {
    let parts: Vec<PartPosition> =
        manifest.tables.iter().flat_map(|table| &table.parts).map(PartPosition::begin).collect();
    let archive = blocking(move || Archive::begin(&manifest, &report)).await?;
    let begun = ArchiveProgress { app, release, parts: parts.into_iter(), current: None, archive: Some(archive) };
    Ok(stream::try_unfold(begun, |mut packing| async move {
        let Some(mut archive) = packing.archive.take() else { return Ok(None) };
        loop {
            let beginning = packing.current.is_none();
            if beginning {
                packing.current = packing.parts.next();
            }
            let Some(mut place) = packing.current.take() else {
                let bytes = blocking(move || archive.finish()).await.map_err(cut)?;
                return Ok(Some((Bytes::from(bytes), packing)));
            };
            let ArchiveProgress { app, release, .. } = &packing;
            let found = place.read(app, release).await?;
            let Some(chunk) = found else { continue };
            let file = place.file.clone();
            packing.current = Some(place);
            let bytes;
            (archive, bytes) = blocking(move || {
                if beginning {
                    archive.part(&file)?;
                }
                archive.bytes(&decompress(&chunk.payload)?)?;
                let bytes = archive.take();
                Ok((archive, bytes))
            })
            .await
            .map_err(cut)?;
            if !bytes.is_empty() {
                packing.archive = Some(archive);
                return Ok(Some((Bytes::from(bytes), packing)));
            }
        }
    }))
}

//! Parts on their way out. A chunk is fetched when the client has taken what came before; what is made of it is made on a
//! blocking thread, which no slow client can hold.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, stream};
use tracing::Span;

use super::App;
use crate::jobs::{PartChunkRecord, ReleaseRecord, StoreError, decompress, problem_of};
use crate::microdata::formats::DecimalScales;
use crate::problem::Problem;
use crate::report::{Archive, Manifest, ManifestPart, PartFormat, PublicReport, Rendering};

/// The CSV of a chunk.
pub(super) fn unpacked(chunk: &PartChunkRecord) -> Result<Vec<u8>, StoreError> {
    decompress(&chunk.payload).map_err(StoreError::corrupt)
}

/// What a failed rendering is answered: what is stored is not what was written.
pub(super) fn fault(error: &io::Error) -> Problem {
    problem_of(&StoreError::corrupt(error.to_string()))
}

/// Runs work on a blocking thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, StoreError> {
    let span = Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(done) => done.map_err(StoreError::corrupt),
        Err(_panicked) => Err(StoreError::corrupt("a part could not be rendered")),
    }
}

/// Logs why an answer under way is cut, so that no client takes what it has for the whole.
fn cut(error: StoreError) -> StoreError {
    let _ = problem_of(&error);
    error
}

/// Looks at a whole part, where its format needs to know the decimals of all rows beforehand.
pub(super) async fn scales(
    app: &App,
    release: &ReleaseRecord,
    part: &ManifestPart,
    format: PartFormat,
) -> Result<Option<DecimalScales>, Problem> {
    let Some(mut scales) = crate::report::scales(part, format) else { return Ok(None) };
    let mut number = 0;
    loop {
        let found = app.desk.store.part_chunk(&release.tenant, release.job, release.attempt, &part.file, number).await;
        let Some(chunk) = found.map_err(|error| problem_of(&error))? else { return Ok(Some(scales)) };
        let looked = blocking(move || {
            scales.look(&decompress(&chunk.payload)?, chunk.number == 0)?;
            Ok(scales)
        });
        scales = looked.await.map_err(|error| problem_of(&error))?;
        number += 1;
    }
}

/// All rows of a part.
pub(super) fn part(
    app: App,
    release: ReleaseRecord,
    file: String,
    rendering: Rendering,
) -> impl Stream<Item = Result<Bytes, StoreError>> {
    let begun = (app, release, file, 0u32, Some(rendering));
    stream::try_unfold(begun, |(app, release, file, mut number, rendering)| async move {
        let Some(mut rendering) = rendering else { return Ok(None) };
        loop {
            let found = app
                .desk
                .store
                .part_chunk(&release.tenant, release.job, release.attempt, &file, number)
                .await
                .map_err(cut)?;
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
            number += 1;
            if last {
                return Ok(Some((bytes.into(), (app, release, file, number, None))));
            }
            if !bytes.is_empty() {
                return Ok(Some((bytes.into(), (app, release, file, number, Some(rendering)))));
            }
        }
    })
}

/// What is left of an archive under way.
struct Packing {
    app: App,
    release: ReleaseRecord,
    files: std::vec::IntoIter<String>,
    /// The file under way and its next chunk.
    current: Option<(String, u32)>,
    archive: Option<Archive>,
}

/// A release as one zip file.
///
/// # Errors
/// When it cannot be begun.
pub(super) async fn archive(
    app: App,
    release: ReleaseRecord,
    manifest: Manifest,
    report: PublicReport,
) -> Result<impl Stream<Item = Result<Bytes, StoreError>>, Problem> {
    let files: Vec<String> =
        manifest.tables.iter().flat_map(|table| &table.parts).map(|part| part.file.clone()).collect();
    let archive = blocking(move || Archive::begin(&manifest, &report)).await.map_err(|error| problem_of(&error))?;
    let begun = Packing { app, release, files: files.into_iter(), current: None, archive: Some(archive) };
    Ok(stream::try_unfold(begun, |mut packing| async move {
        let Some(mut archive) = packing.archive.take() else { return Ok(None) };
        loop {
            let beginning = packing.current.is_none();
            if beginning {
                packing.current = packing.files.next().map(|file| (file, 0));
            }
            let Some((file, number)) = packing.current.take() else {
                let bytes = blocking(move || archive.finish()).await.map_err(cut)?;
                return Ok(Some((Bytes::from(bytes), packing)));
            };
            let Packing { app, release, .. } = &packing;
            let found = app
                .desk
                .store
                .part_chunk(&release.tenant, release.job, release.attempt, &file, number)
                .await
                .map_err(cut)?;
            let Some(chunk) = found else { continue };
            packing.current = Some((file.clone(), number + 1));
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

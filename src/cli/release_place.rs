//! Where `guardian publish` writes a release: a folder, or a prefix of an object store.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::exit::CommandOutcome;
use super::folder::FolderDraft;
use super::object_access::{Location, ObjectAccess, failed};
use super::population::OpenedPopulation;
use crate::control::{Control, Phase};
use crate::objects::{ReleaseUpload, UploadError};

/// The name of the folder in which a release waits for its upload.
const SPOOLED: &str = "release";

/// A release that is being made, in a folder of its own.
pub(super) struct BegunRelease {
    pub(super) draft: FolderDraft,
    place: ReleasePlace,
}

enum ReleasePlace {
    /// The draft becomes this folder.
    Folder(PathBuf),
    /// The complete folder is uploaded.
    Objects(Box<ClaimedPrefix>),
}

/// A prefix that is claimed. Unless the release is completed, the claim is lifted.
struct ClaimedPrefix {
    access: ObjectAccess,
    /// `None` once it was completed.
    upload: Option<ReleaseUpload>,
    spool: TempDir,
}

impl BegunRelease {
    /// Begins a release at a path or an address that has no objects, once the last night of the population is in its own folder.
    pub(super) fn begin(out: &Path, population: Option<&OpenedPopulation>) -> Result<Self, CommandOutcome> {
        let io = |error: io::Error| CommandOutcome::io(out, &error);
        let address = match Location::parse(out)? {
            Location::Local(folder) => {
                population.map_or(Ok(()), |population| population.recover(&folder))?;
                let draft = FolderDraft::begin(&folder).map_err(io)?;
                return Ok(Self { draft, place: ReleasePlace::Folder(folder) });
            }
            Location::Object(address) => address,
        };
        if population.is_some() {
            // an interrupted night is completed from the folder in which it waits
            let message = "a night of a population is written to a folder: name one with --out, and copy it from there";
            return Err(CommandOutcome::Usage(message.to_owned()));
        }
        let access = ObjectAccess::new()?;
        let spool = tempfile::tempdir().map_err(|error| CommandOutcome::io(&std::env::temp_dir(), &error))?;
        let draft = FolderDraft::begin(&spool.path().join(SPOOLED)).map_err(io)?;
        let begun = access.runtime.block_on(ReleaseUpload::begin(&access.stores, &address));
        let upload = Some(begun.map_err(|error| failed(&error))?);
        Ok(Self { draft, place: ReleasePlace::Objects(Box::new(ClaimedPrefix { access, upload, spool })) })
    }

    /// Makes the release visible: by a new name of its folder, or by the upload of its manifest after all else.
    pub(super) fn complete(self, control: &Control) -> Result<(), CommandOutcome> {
        let Self { draft, place } = self;
        match place {
            ReleasePlace::Folder(folder) => draft.complete().map_err(|error| CommandOutcome::io(&folder, &error)),
            ReleasePlace::Objects(mut prefix) => {
                draft.complete().map_err(|error| CommandOutcome::io(&std::env::temp_dir(), &error))?;
                prefix.upload(control)
            }
        }
    }
}

impl ClaimedPrefix {
    fn upload(&mut self, control: &Control) -> Result<(), CommandOutcome> {
        let folder = self.spool.path().join(SPOOLED);
        let io = |error: io::Error| CommandOutcome::io(&std::env::temp_dir(), &error);
        let mut files = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(io)?;
        // parts before documents
        files.sort_by_key(|entry| (entry.path().extension().is_some_and(|ending| ending == "json"), entry.file_name()));
        let sizes = files.iter().map(|entry| entry.metadata().map(|metadata| metadata.len()));
        let size = sizes.sum::<io::Result<u64>>().map_err(io)?;
        control.begin(Phase::Commit, size).map_err(|_| CommandOutcome::interrupted())?;
        let names = files.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
        for name in names.filter(|name| name != MANIFEST) {
            let mut file = File::open(folder.join(&name)).map_err(io)?;
            let proceed = |bytes: u64| control.advance(bytes).map_err(io::Error::other);
            let Some(upload) = &mut self.upload else { continue };
            let sent = self.access.runtime.block_on(upload.put(&name, &mut file, &proceed));
            sent.map_err(|error| match error {
                UploadError::Object(error) => failed(&error),
                UploadError::Io(_) if control.check().is_err() => CommandOutcome::interrupted(),
                UploadError::Io(error) => io(error),
            })?;
        }
        let manifest = fs::read(folder.join(MANIFEST)).map_err(io)?;
        control.check().map_err(|_| CommandOutcome::interrupted())?;
        let completed = self.upload.take().map(|upload| self.access.runtime.block_on(upload.complete(manifest)));
        completed.unwrap_or(Ok(())).map_err(|error| failed(&error))
    }
}

/// What makes the files a release.
const MANIFEST: &str = "manifest.json";

impl Drop for ClaimedPrefix {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            self.access.runtime.block_on(upload.abandon());
        }
    }
}

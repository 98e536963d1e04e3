//! Where `guardian publish` writes a release: a folder, or a prefix of an object store.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::documents::pretty;
use super::exit::CommandOutcome;
use super::folder::FolderDraft;
use super::object_access::{Location, ObjectAccess, failed};
use super::population::OpenedPopulation;
use crate::control::{Control, Phase};
use crate::objects::{ObjectAddress, ReleaseUpload, UploadError};
use crate::report::{Manifest, ManifestPart, PublicReport, public_report};
#[cfg(feature = "spark")]
use crate::spark::{ScratchFolder, SharedFolders};
use crate::spec::Specification;

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
    /// The folder in which the release waits. It goes when it is dropped.
    spool: Box<dyn AsRef<Path>>,
}

impl BegunRelease {
    /// Begins a release at a path or an address that has no objects, once the last night of the population is in its own folder.
    pub(super) fn begin(out: &Path, population: Option<&OpenedPopulation>) -> Result<Self, CommandOutcome> {
        let address = match Location::parse(out)? {
            Location::Local(folder) => {
                population.map_or(Ok(()), |population| population.recover(&folder))?;
                return Self::in_folder(folder);
            }
            Location::Object(address) => address,
        };
        if population.is_some() {
            // an interrupted night is completed from the folder in which it waits
            let message = "a night of a population is written to a folder: name one with --out, and copy it from there";
            return Err(CommandOutcome::Usage(message.to_owned()));
        }
        let spool = tempfile::tempdir().map_err(|error| CommandOutcome::io(&std::env::temp_dir(), &error))?;
        Self::for_objects(&address, Box::new(spool))
    }

    /// Begins a release whose parts an engine writes, with the folders that it shares. Those of objects wait in the scratch.
    #[cfg(feature = "spark")]
    pub(super) fn begin_shared(out: &Path, scratch: &Path) -> Result<(Self, SharedFolders), CommandOutcome> {
        let io = |error: io::Error| CommandOutcome::io(scratch, &error);
        match Location::parse(out)? {
            Location::Local(folder) => {
                let begun = Self::in_folder(folder)?;
                let folders = SharedFolders::new(begun.draft.path(), scratch).map_err(io)?;
                Ok((begun, folders))
            }
            Location::Object(address) => {
                let spool = ScratchFolder::begin(scratch).map_err(io)?;
                let begun = Self::for_objects(&address, Box::new(spool))?;
                let folders = SharedFolders::of_waiting(begun.draft.path(), scratch).map_err(io)?;
                Ok((begun, folders))
            }
        }
    }

    fn in_folder(folder: PathBuf) -> Result<Self, CommandOutcome> {
        let draft = FolderDraft::begin(&folder).map_err(|error| CommandOutcome::io(&folder, &error))?;
        Ok(Self { draft, place: ReleasePlace::Folder(folder) })
    }

    /// Claims the prefix of a release that waits in `spool`.
    fn for_objects(address: &ObjectAddress, spool: Box<dyn AsRef<Path>>) -> Result<Self, CommandOutcome> {
        let access = ObjectAccess::new()?;
        let folder = (*spool).as_ref().join(SPOOLED);
        let draft = FolderDraft::begin(&folder).map_err(|error| CommandOutcome::io(&folder, &error))?;
        let begun = access.runtime.block_on(ReleaseUpload::begin(&access.stores, address));
        let upload = Some(begun.map_err(|error| failed(&error))?);
        Ok(Self { draft, place: ReleasePlace::Objects(Box::new(ClaimedPrefix { access, upload, spool })) })
    }

    /// Writes the documents of the release next to its parts; the report.
    pub(super) fn describe(
        &self,
        manifest: &Manifest,
        specification: &Specification,
    ) -> Result<PublicReport, CommandOutcome> {
        let bytes = pretty(manifest)?;
        let report = public_report(manifest).of_file(&bytes);
        let [of_report, of_specification] = DOCUMENTS;
        for (name, bytes) in
            [(of_report, pretty(&report)?), (of_specification, pretty(&specification.normalized)?), (MANIFEST, bytes)]
        {
            self.draft.write(name, &bytes).map_err(|error| CommandOutcome::io(self.draft.path(), &error))?;
        }
        Ok(report)
    }

    /// Makes the release visible: by a new name of its folder, or by the upload of its manifest after all else.
    pub(super) fn complete(self, manifest: &Manifest, control: &Control) -> Result<(), CommandOutcome> {
        let Self { draft, place } = self;
        match place {
            ReleasePlace::Folder(folder) => draft.complete().map_err(|error| CommandOutcome::io(&folder, &error)),
            ReleasePlace::Objects(mut prefix) => {
                let io = |error: io::Error| CommandOutcome::io((*prefix.spool).as_ref(), &error);
                draft.complete().map_err(io)?;
                prefix.upload(manifest, control)
            }
        }
    }
}

impl ClaimedPrefix {
    /// Uploads the files that the manifest names, the documents, and then the manifest.
    fn upload(&mut self, manifest: &Manifest, control: &Control) -> Result<(), CommandOutcome> {
        let folder = (*self.spool).as_ref().join(SPOOLED);
        let io = |error: io::Error| CommandOutcome::io(&folder, &error);
        let parts = manifest.tables.iter().flat_map(|table| &table.parts);
        let names: Vec<&str> = parts.flat_map(ManifestPart::file_names).chain(DOCUMENTS).collect();
        let sizes = names.iter().map(|name| fs::metadata(folder.join(name)).map(|metadata| metadata.len()));
        let size = sizes.sum::<io::Result<u64>>().map_err(io)?;
        control.begin(Phase::Commit, size).map_err(|_| CommandOutcome::interrupted())?;
        for name in names {
            let mut file = File::open(folder.join(name)).map_err(io)?;
            let proceed = |bytes: u64| control.advance(bytes).map_err(io::Error::other);
            let Some(upload) = &mut self.upload else { continue };
            let sent = self.access.runtime.block_on(upload.put(name, &mut file, &proceed));
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

/// What stands next to the parts of a release before its manifest does.
const DOCUMENTS: [&str; 2] = ["report.json", "specification.json"];
/// What makes the files a release.
const MANIFEST: &str = "manifest.json";

impl Drop for ClaimedPrefix {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            self.access.runtime.block_on(upload.abandon());
        }
    }
}

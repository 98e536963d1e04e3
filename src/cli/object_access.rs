//! Objects on the command line. What is read of a store is spooled to files of this machine before anything looks into it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::exit::CommandOutcome;
use super::folder::{Folder, is_in_release};
use crate::control::{Control, Phase};
use crate::microdata::{SpoolFile, SpoolReader};
use crate::objects::{ObjectAddress, ObjectError, ObjectFault, ObjectScheme, ObjectStores};

/// The most bytes of an object, and of all objects of a release.
pub(super) const MAX_OBJECT_BYTES: u64 = 64 << 30;
/// The most bytes of a manifest or a specification.
const MAX_DOCUMENT_BYTES: u64 = 1 << 30;
/// The longest reading of an object.
const MAX_READING: Duration = Duration::from_secs(6 * 60 * 60);

/// Where a table or a release is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In the file system.
    Local(PathBuf),
    /// In an object store.
    Object(ObjectAddress),
}

impl Location {
    /// Reads a path or an address.
    pub(super) fn parse(path: &Path) -> Result<Self, CommandOutcome> {
        let Some(parsed) = path.to_str().and_then(ObjectAddress::parse) else {
            return Ok(Self::Local(path.to_owned()));
        };
        // the text may hold credentials
        let address = parsed.map_err(|error| CommandOutcome::Usage(format!("the address is not accepted: {error}")))?;
        Ok(match address.scheme() {
            ObjectScheme::File => Self::Local(Path::new("/").join(address.segments().join("/"))),
            _ => Self::Object(address),
        })
    }
}

/// The object stores of this command.
pub(super) struct ObjectAccess {
    pub(super) runtime: Runtime,
    pub(super) stores: ObjectStores,
}

impl ObjectAccess {
    pub(super) fn new() -> Result<Self, CommandOutcome> {
        let failed = |error: std::io::Error| CommandOutcome::Internal(error.to_string());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self { runtime: runtime.map_err(failed)?, stores: ObjectStores::new().map_err(failed)? })
    }

    /// Copies an object to an encrypted file without a name; the bytes are progress of `control`.
    pub(super) fn spooled(&self, address: &ObjectAddress, control: &Control) -> Result<SpoolReader, CommandOutcome> {
        let folder = std::env::temp_dir();
        let mut spool = SpoolFile::new(&folder).map_err(|error| CommandOutcome::io(&folder, &error))?;
        let mut reading = Reading { access: self, left: MAX_OBJECT_BYTES, control };
        reading.copy(address, MAX_OBJECT_BYTES, &mut spool)?;
        Ok(spool.into_reader())
    }

    /// Copies a release, and its specification where it is wanted, to a folder that goes when it is dropped.
    pub(super) fn spooled_release(
        &self,
        address: &ObjectAddress,
        with_specification: bool,
        control: &Control,
    ) -> Result<TempDir, CommandOutcome> {
        let folder = tempfile::tempdir().map_err(|error| CommandOutcome::io(&std::env::temp_dir(), &error))?;
        let mut reading = Reading { access: self, left: MAX_OBJECT_BYTES, control };
        let mut fetch = |name: &str, limit: u64| {
            let path = folder.path().join(name);
            let mut file = File::create_new(&path).map_err(|error| CommandOutcome::io(&path, &error))?;
            reading.copy(&address.join(name), limit, &mut file)
        };
        fetch("manifest.json", MAX_DOCUMENT_BYTES)?;
        if with_specification {
            fetch("specification.json", MAX_DOCUMENT_BYTES)?;
        }
        let manifest = Folder::named(folder.path(), address.to_string()).manifest();
        let manifest = manifest.map_err(CommandOutcome::InputOutput)?;
        for part in manifest.tables.iter().flat_map(|table| &table.parts) {
            let detail = "the manifest names a file twice, or one that is not in its folder";
            let refused = || CommandOutcome::InputOutput(format!("{address}: {detail}"));
            for name in part.file_names() {
                let path = folder.path().join(name);
                if !is_in_release(name) || path.exists() {
                    return Err(refused());
                }
                let parent = path.parent().unwrap_or(folder.path());
                fs::create_dir_all(parent).map_err(|error| CommandOutcome::io(parent, &error))?;
                fetch(name, MAX_OBJECT_BYTES)?;
            }
        }
        Ok(folder)
    }
}

/// What is read of object stores, within one bound.
struct Reading<'a> {
    access: &'a ObjectAccess,
    /// The bytes that may still be read.
    left: u64,
    control: &'a Control,
}

impl Reading<'_> {
    fn copy(&mut self, address: &ObjectAddress, limit: u64, file: &mut impl Write) -> Result<(), CommandOutcome> {
        let Self { access, left, control } = self;
        let copied = access.runtime.block_on(async {
            let whole =
                tokio::time::timeout(MAX_READING, copied(&access.stores, address, limit.min(*left), file, control));
            tokio::select! {
                copied = whole => copied.unwrap_or_else(|_elapsed| {
                    let fault = ObjectFault::TooSlow;
                    Err(failed(&ObjectError { address: address.clone(), fault }))
                }),
                () = interrupted(control) => Err(CommandOutcome::interrupted()),
            }
        });
        *left -= copied?;
        Ok(())
    }
}

/// The outcome after a fault of a store.
pub(super) fn failed(error: &ObjectError) -> CommandOutcome {
    CommandOutcome::InputOutput(error.to_string())
}

async fn copied(
    stores: &ObjectStores,
    address: &ObjectAddress,
    limit: u64,
    file: &mut impl Write,
    control: &Control,
) -> Result<u64, CommandOutcome> {
    let place = stores.open(address).await.map_err(|error| failed(&error))?;
    let mut object = place.read(limit).await.map_err(|error| failed(&error))?;
    let size = object.size();
    control.begin(Phase::Load, size).map_err(|_| CommandOutcome::interrupted())?;
    let io = |error: std::io::Error| CommandOutcome::io(&std::env::temp_dir(), &error);
    while let Some(bytes) = object.next().await.map_err(|error| failed(&error))? {
        file.write_all(&bytes).map_err(io)?;
        control.advance(bytes.len() as u64).map_err(|_| CommandOutcome::interrupted())?;
    }
    Ok(size)
}

/// Ends when the command is interrupted.
async fn interrupted(control: &Control) {
    while control.check().is_ok() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_addresses_differ_by_their_scheme() {
        let local = |path: &str| Location::parse(Path::new(path)).unwrap();
        assert_eq!(local("a/T.csv"), Location::Local("a/T.csv".into()));
        assert_eq!(local("file:///a/b%20c.csv"), Location::Local("/a/b c.csv".into()));
        assert!(matches!(local("s3://bucket/T.csv"), Location::Object(_)));
        let Err(CommandOutcome::Usage(refused)) = Location::parse(Path::new("s3://key:hidden@bucket/T.csv")) else {
            panic!("credentials are no part of an address")
        };
        assert!(!refused.contains("hidden"), "{refused}");
    }
}

//! Folders that both the engine and this process reach: the files of the release, and the scratch that goes away.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::statements::FILE;
use crate::report::PartFile;

/// Names that an engine leaves among its files.
const MARKS: [&str; 2] = ["_SUCCESS", "._SUCCESS.crc"];

/// How the scratch of an attempt is named, and its lock.
const PREFIX: &str = "guardian-";
const LOCK: &str = ".lock";

/// A folder in the scratch. It goes when it is dropped, and with the next one if this process is killed.
pub struct ScratchFolder {
    path: PathBuf,
    /// Locked as long as the folder is wanted.
    _lock: File,
    lock_path: PathBuf,
}

impl ScratchFolder {
    /// Begins an empty folder, after it has deleted those that nothing wants.
    ///
    /// # Errors
    /// When it cannot be made, or another cannot be deleted.
    pub fn begin(scratch: &Path) -> io::Result<Self> {
        let scratch = fs::canonicalize(scratch)?;
        sweep(&scratch)?;
        let name = format!("{PREFIX}{}", uuid::Uuid::now_v7());
        let lock_path = scratch.join(format!("{name}{LOCK}"));
        let lock = locked(&lock_path)?;
        let path = scratch.join(name);
        // the engine writes as the same user, or as one of the group
        fs::DirBuilder::new().mode(0o770).create(&path)?;
        Ok(Self { path, _lock: lock, lock_path })
    }

    /// Deletes it.
    ///
    /// # Errors
    /// When something is left.
    fn clear(&self) -> io::Result<()> {
        gone(fs::remove_dir_all(&self.path))?;
        gone(fs::remove_file(&self.lock_path))?;
        if self.path.exists() { Err(io::Error::other("the scratch of the release is still there")) } else { Ok(()) }
    }
}

impl AsRef<Path> for ScratchFolder {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // those of an attempt are cleared before, with the error
        let _ = self.clear();
    }
}

/// The folders of one attempt.
pub struct SharedFolders {
    release: PathBuf,
    scratch: ScratchFolder,
}

impl SharedFolders {
    /// Files go to `release`, which exists; what must not outlive the release to a new folder in `scratch`, outside of it.
    ///
    /// # Errors
    /// When the scratch folder cannot be made, or is in the folder of the release.
    pub fn new(release: &Path, scratch: &Path) -> io::Result<Self> {
        let (release, scratch) = (fs::canonicalize(release)?, fs::canonicalize(scratch)?);
        if scratch.starts_with(&release) || release.starts_with(&scratch) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the scratch folder and the folder of the release contain each other",
            ));
        }
        Ok(Self { release, scratch: ScratchFolder::begin(&scratch)? })
    }

    /// Files go to `release`, which is in a folder of the scratch of its own until it is taken from there.
    ///
    /// # Errors
    /// When the scratch folder cannot be made.
    pub fn of_waiting(release: &Path, scratch: &Path) -> io::Result<Self> {
        Ok(Self { release: fs::canonicalize(release)?, scratch: ScratchFolder::begin(scratch)? })
    }

    /// The folders of an attempt whose files go with its scratch.
    ///
    /// # Errors
    /// When the scratch folder cannot be made.
    pub fn from_scratch(scratch: &Path) -> io::Result<Self> {
        let scratch = ScratchFolder::begin(scratch)?;
        Ok(Self { release: scratch.path.join("release"), scratch })
    }

    /// The folder of a part, as the engine writes it.
    pub(super) fn part(&self, name: &str) -> String {
        self.release.join(name).display().to_string()
    }

    /// A folder in the scratch.
    pub(super) fn staged(&self, name: &str) -> String {
        self.scratch.path.join(name).display().to_string()
    }

    /// The path of a file of the release.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.release.join(file)
    }

    /// Gives the files of a part their names: that of its place and no more. Anything else in the folder is an error.
    pub(super) fn settle(&self, name: &str) -> io::Result<Vec<PartFile>> {
        let folder = self.release.join(name);
        let unexpected = |path: &Path| io::Error::other(format!("{} is not expected there", path.display()));
        let (mut places, of_place) = (Vec::new(), format!("{FILE}="));
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match file_name.strip_prefix(&of_place).map(str::parse::<u64>) {
                Some(Ok(place)) => places.push((place, path)),
                _ if MARKS.contains(&file_name) => fs::remove_file(&path)?,
                _ => return Err(unexpected(&path)),
            }
        }
        places.sort_unstable();
        let mut files = Vec::new();
        for (place, path) in places {
            let mut found = Vec::new();
            for entry in fs::read_dir(&path)? {
                let path = entry?.path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                match (name.ends_with(".crc"), name.ends_with(".parquet")) {
                    (true, _) => fs::remove_file(&path)?,
                    (false, true) => found.push(path),
                    (false, false) => return Err(unexpected(&path)),
                }
            }
            let [file] = &found[..] else {
                return Err(io::Error::other(format!("{} has no single file", path.display())));
            };
            let named = format!("{name}/{place:05}.parquet");
            fs::rename(file, self.release.join(&named))?;
            fs::remove_dir(&path)?;
            files.push(named);
        }
        files.into_iter().map(|file| self.described(file)).collect()
    }

    /// A file with its size and digest; its rows are read from its footer.
    fn described(&self, file: String) -> io::Result<PartFile> {
        let mut opened = File::open(self.release.join(&file))?;
        let (mut hash, mut block, mut bytes) = (Sha256::new(), vec![0; 1 << 16], 0);
        loop {
            let read = opened.read(&mut block)?;
            if read == 0 {
                break;
            }
            hash.update(&block[..read]);
            bytes += read as u64;
        }
        opened.sync_all()?;
        Ok(PartFile { file, rows: 0, bytes, sha256: hex::encode(hash.finalize()) })
    }

    /// Deletes the scratch of this attempt.
    ///
    /// # Errors
    /// When something is left.
    pub fn clear(&self) -> io::Result<()> {
        self.scratch.clear()
    }
}

/// Makes a file that is locked before it has its name: others take one that is free for that of a killed attempt.
fn locked(path: &Path) -> io::Result<File> {
    let unnamed = path.with_extension("new");
    let lock = File::create_new(&unnamed)?;
    lock.lock()?;
    fs::rename(unnamed, path)?;
    Ok(lock)
}

/// The Parquet files of a folder, by name.
pub(super) fn parquet_files(folder: &Path) -> io::Result<Vec<File>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    paths.into_iter().map(File::open).collect()
}

/// Where a path leads; of one that is not there, as far as it is.
fn resolved(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|start| Some((start, start.canonicalize().ok()?)));
    let rest = |start| path.strip_prefix(start).unwrap_or(path);
    there.map_or_else(|| path.to_owned(), |(start, real)| real.join(rest(start)))
}

/// Whether a table is a path that leads into a folder, or to one around it, wherever links go.
#[cfg_attr(
    not(any(test, feature = "spark")),
    expect(dead_code, reason = "only the engine of a service is asked for others' tables")
)]
pub(super) fn overlaps(folder: &Path, table: &str) -> bool {
    let path = Path::new(table.strip_prefix("file://").unwrap_or(table));
    let [folder, path] = [folder, path].map(resolved);
    path.starts_with(&folder) || (path.is_absolute() && folder.starts_with(&path))
}

/// Deletes what attempts left behind that were killed. Their locks are free, or gone with what an earlier sweep found: the engine
/// may have written more of it since.
pub(super) fn sweep(scratch: &Path) -> io::Result<()> {
    for entry in fs::read_dir(scratch)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with(PREFIX) {
            continue;
        }
        let (folder, lock_path) = match path.extension() {
            None => (path.clone(), path.with_extension(&LOCK[1..])),
            Some(_) if name.ends_with(LOCK) => (path.with_extension(""), path.clone()),
            Some(_) => continue,
        };
        let _held = match File::open(&lock_path) {
            Ok(lock) if lock.try_lock().is_ok() => Some(lock),
            // a folder is made after its lock, and goes before it
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            _ => continue,
        };
        gone(fs::remove_dir_all(folder))?;
        gone(fs::remove_file(lock_path))?;
    }
    Ok(())
}

/// What was deleted need not have been there.
fn gone(deleted: io::Result<()>) -> io::Result<()> {
    match deleted {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

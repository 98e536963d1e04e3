//! A release in a folder: written under a temporary name in the same parent, renamed when complete.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use crate::engine::PartStore;
use crate::publication::PublishedBytes;
use crate::report::{Manifest, PartFilesReader};

/// A folder with the parts of a release.
pub(super) struct Folder {
    path: PathBuf,
    /// What messages call it.
    name: String,
}

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self::named(path, path.display().to_string())
    }

    /// A folder that holds what is elsewhere.
    pub(super) fn named(path: &Path, name: String) -> Self {
        Self { path: path.to_owned(), name }
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(super) fn manifest(&self) -> Result<Manifest, String> {
        self.manifest_file().map(|(manifest, _)| manifest)
    }

    /// Reads the manifest, with the bytes of its file.
    ///
    /// # Errors
    /// As [`Folder::manifest`].
    pub(super) fn manifest_file(&self) -> Result<(Manifest, Vec<u8>), String> {
        let file = fs::read(self.path.join("manifest.json"));
        let file = file.map_err(|error| format!("{}: {error}", self.name))?;
        let manifest = serde_json::from_slice(&file).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            format!("{}: manifest.json is not a manifest, at {place}", self.name)
        })?;
        Ok((manifest, file))
    }
}

impl PublishedBytes for Folder {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        if !is_in_release(file) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file name of a part contains a path"));
        }
        let path = self.path.join(file);
        let folder = path.with_extension("");
        if file.ends_with(".csv") && !path.exists() && folder.is_dir() {
            return Ok(Box::new(PartFilesReader::new(files_of(&folder)?)));
        }
        Ok(Box::new(File::open(path)?))
    }
}

/// Whether a name is that of a file in the folder of a release, or of one in the folder of a part: manifests may name others.
pub(super) fn is_in_release(name: &str) -> bool {
    is_plain(name) || name.split_once('/').is_some_and(|(part, file)| is_plain(part) && is_plain(file))
}

/// Whether a name is that of a file in a folder, and no path.
fn is_plain(name: &str) -> bool {
    let components: Vec<Component<'_>> = Path::new(name).components().collect();
    matches!(components[..], [Component::Normal(_)]) && !name.starts_with('.') && !name.contains('/')
}

/// The files of a part, in the order in which they are read.
fn files_of(folder: &Path) -> io::Result<Vec<File>> {
    let paths = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
    paths.sort_unstable();
    paths.into_iter().map(File::open).collect()
}

/// An incomplete folder, removed when dropped before [`FolderDraft::complete`].
pub(super) struct FolderDraft {
    place: PathBuf,
    folder: Folder,
    current: Option<(String, File)>,
}

impl FolderDraft {
    /// Starts a folder for `place`, which must be absent or an empty folder.
    pub(super) fn begin(place: &Path) -> io::Result<Self> {
        if fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the folder is not empty"));
        }
        if place.is_file() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file has this path"));
        }
        let name = place.file_name().ok_or_else(|| io::Error::other("the path has no folder name"))?;
        let draft = format!(".{}.{}", name.to_string_lossy(), uuid::Uuid::now_v7());
        let path = place.with_file_name(draft);
        fs::create_dir(&path)?;
        Ok(Self { place: place.to_owned(), folder: Folder::new(&path), current: None })
    }

    /// The folder while it is incomplete.
    pub(super) fn path(&self) -> &Path {
        &self.folder.path
    }

    /// Writes a small file.
    pub(super) fn write(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let mut written = File::create(self.folder.path.join(file))?;
        written.write_all(bytes)?;
        written.sync_data()
    }

    /// Makes sure that all files outlive a crash.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        self.finish_current()?;
        sync_folder(&self.folder.path)
    }

    /// Renames the complete folder to its place.
    pub(super) fn complete(mut self) -> io::Result<()> {
        self.settle()?;
        put(&self.folder.path, &self.place)
    }

    /// Puts a complete folder in its place that an interrupted run has left in the parent of `place`, if it is the one that is
    /// looked for; the place.
    pub(super) fn recover(place: &Path, is_wanted: impl Fn(&Manifest) -> bool) -> io::Result<Option<PathBuf>> {
        let parent = parent_of(place);
        let entries = match fs::read_dir(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().and_then(place_of_draft).map(str::to_owned) else { continue };
            if Folder::new(&entry.path()).manifest().is_ok_and(|manifest| is_wanted(&manifest)) {
                let place = place.with_file_name(name);
                put(&entry.path(), &place)?;
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn finish_current(&mut self) -> io::Result<()> {
        self.current.take().map_or(Ok(()), |(_, file)| file.sync_data())
    }
}

/// The name of the folder that a draft becomes.
fn place_of_draft(name: &str) -> Option<&str> {
    let (place, id) = name.strip_prefix('.')?.rsplit_once('.')?;
    uuid::Uuid::try_parse(id).ok().map(|_| place).filter(|place| !place.is_empty())
}

/// Renames a folder to a place that is absent or an empty folder.
fn put(folder: &Path, place: &Path) -> io::Result<()> {
    if place.is_dir() {
        fs::remove_dir(place).map_err(|error| {
            let (folder, place) = (folder.display(), place.display());
            io::Error::new(error.kind(), format!("{folder} is a complete release that belongs in {place}: {error}"))
        })?;
    }
    fs::rename(folder, place)?;
    sync_folder(parent_of(place))
}

fn parent_of(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

impl PartStore for FolderDraft {
    fn put(&mut self, file: &str, _: u32, _: u64, _: u32, csv: &[u8]) -> io::Result<()> {
        if self.current.as_ref().is_none_or(|(name, _)| name != file) {
            self.finish_current()?;
            self.current = Some((file.to_owned(), File::create_new(self.folder.path.join(file))?));
        }
        match &mut self.current {
            Some((_, current)) => current.write_all(csv),
            None => Ok(()),
        }
    }
}

impl PublishedBytes for FolderDraft {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        self.folder.open(file)
    }
}

impl Drop for FolderDraft {
    fn drop(&mut self) {
        // after completion the temporary name is gone
        let _ = fs::remove_dir_all(&self.folder.path);
    }
}

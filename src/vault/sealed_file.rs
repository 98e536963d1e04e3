//! A file that only its owner reads, and that is replaced as a whole: each content is encrypted under a key of its own.
//!
//! The keys are in a second file. A new key is added to it before the new content takes its place, and the old one goes afterwards. So
//! after a crash one of two contents opens, and after a replacement no copy of an earlier content does. Until the first content is in
//! its place, the file of its key has a byte more, so that a beginning that a crash cut off is not taken for a lost content.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::ciphertext::{decrypt_in_place, encrypt_in_place};
use super::error::VaultError;
use super::file::is_private;
use super::secret::{self, Secret, SecretBytes};

/// What every content is bound to.
const CONTEXT: &[u8] = b"guardian sealed file 1";

const KEY_BYTES: usize = 32;

/// Bytes of one write: for longer ones the system looks for larger pieces of memory, which takes longer than the copy.
const WRITTEN_AT_ONCE: usize = 1 << 16;

/// Follows the key of a first content that is not in its place yet.
const UNFINISHED: u8 = 0;

/// A sealed file, locked against other processes.
pub struct SealedFile {
    path: PathBuf,
    /// The locked file of the keys; `None` before there is a content.
    keys: Option<File>,
}

/// Why a sealed file is not read or replaced.
#[derive(Debug, thiserror::Error)]
pub enum SealedFileError {
    /// The file or that of its keys is there already.
    #[error("{0} is there already")]
    Exists(String),
    /// The file or that of its keys is missing.
    #[error("{0} is missing")]
    Missing(String),
    /// The content is damaged, is not the latest, or has other keys.
    #[error("{0} does not open with its keys: it is damaged, an earlier copy, or another file")]
    Unopened(String),
    /// Another process works with it.
    #[error("{0} is in use by another process")]
    InUse(String),
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// No randomness, or a file that others can read.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

type Sealed<T> = Result<T, SealedFileError>;

impl SealedFile {
    /// The place of a file that is not there yet. Nothing is written before [`SealedFile::replace`].
    ///
    /// # Errors
    /// [`SealedFileError::Exists`] if it or its keys are there, unless these are of a beginning that was cut off.
    pub fn begin(path: &Path) -> Sealed<Self> {
        let sealed = Self { path: path.to_owned(), keys: None };
        if fs::symlink_metadata(path).is_ok() {
            return Err(SealedFileError::Exists(shown(path)));
        }
        let key_path = sealed.key_path();
        if fs::symlink_metadata(&key_path).is_ok_and(|keys| !is_unfinished(keys.len())) {
            return Err(SealedFileError::Exists(shown(&key_path)));
        }
        Ok(sealed)
    }

    /// Opens a file and gives its content.
    ///
    /// # Errors
    /// [`SealedFileError`]
    pub fn open(path: &Path) -> Sealed<(Self, SecretBytes)> {
        let mut sealed = Self { path: path.to_owned(), keys: None };
        let key_path = sealed.key_path();
        let mut keys = open_if_there(OpenOptions::new().read(true).write(true), &key_path)?;
        match keys.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SealedFileError::InUse(shown(path))),
            Err(TryLockError::Error(error)) => return Err(SealedFileError::Io(shown(&key_path), error)),
        }
        let mut content = open_if_there(OpenOptions::new().read(true), path)?;
        refuse_exposed(&keys, &key_path)?;
        refuse_exposed(&content, path)?;
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(|error| SealedFileError::Io(shown(path), error))?;
        let mut all = Zeroizing::new(Vec::new());
        keys.read_to_end(&mut all).map_err(|error| SealedFileError::Io(shown(&key_path), error))?;
        let mut keys_of_file = all.as_chunks::<KEY_BYTES>().0.iter().map(|key| Zeroizing::new(*key));
        let key: Option<Secret> = keys_of_file.find(|key| decrypt_in_place(key, CONTEXT, &mut bytes).is_ok());
        let key = key.ok_or_else(|| SealedFileError::Unopened(shown(path)))?;
        let plain = SecretBytes::from(bytes);
        // after a crash there may be a key that opens nothing
        let alone = write_key(&mut keys, 0, &key).and_then(|()| keys.set_len(KEY_BYTES as u64));
        alone.map_err(|error| SealedFileError::Io(shown(&key_path), error))?;
        sealed.keys = Some(keys);
        Ok((sealed, plain))
    }

    /// Replaces the content by bytes behind some others. When it returns, no other content opens any more, whatever happens
    /// to the machine.
    ///
    /// # Errors
    /// [`SealedFileError`]; the content is then the earlier one or the new one.
    pub fn replace(&mut self, first: &[u8], plain: SecretBytes) -> Sealed<()> {
        let key = secret::draw()?;
        let sealed = encrypt_in_place(&key, CONTEXT, first, plain)?;
        let key_path = self.key_path();
        let of_keys = |error| SealedFileError::Io(shown(&key_path), error);
        let draft = self.sibling(&format!(".{}", uuid::Uuid::now_v7().simple()));
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            sealed.chunks(WRITTEN_AT_ONCE).try_for_each(|block| file.write_all(block))?;
            file.sync_all()
        })();
        let outcome = written.map_err(|error| SealedFileError::Io(shown(&draft), error)).and_then(|()| {
            let mut keys = match self.keys.take() {
                Some(mut keys) => {
                    write_key(&mut keys, KEY_BYTES as u64, &key).map_err(of_keys)?;
                    fs::rename(&draft, &self.path).map_err(|error| SealedFileError::Io(shown(&self.path), error))?;
                    keys
                }
                None => self.create(&key, &draft)?,
            };
            sync_folder(&self.path)?;
            write_key(&mut keys, 0, &key).map_err(of_keys)?;
            keys.set_len(KEY_BYTES as u64).and_then(|()| keys.sync_all()).map_err(of_keys)?;
            self.keys = Some(keys);
            Ok(())
        });
        // a draft that took its place is gone
        let _ = fs::remove_file(&draft);
        outcome
    }

    /// Makes both files of the first content; none of them is replaced.
    fn create(&self, key: &Secret, draft: &Path) -> Sealed<File> {
        let key_path = self.key_path();
        let of_keys = |error| SealedFileError::Io(shown(&key_path), error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let mut keys = match options.clone().create_new(true).open(&key_path) {
            // of a beginning that was cut off
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(&key_path),
            made => made,
        }
        .map_err(of_keys)?;
        keys.try_lock().map_err(|_| SealedFileError::InUse(shown(&self.path)))?;
        refuse_exposed(&keys, &key_path)?;
        if !is_unfinished(keys.metadata().map_err(of_keys)?.len()) {
            return Err(SealedFileError::Exists(shown(&key_path)));
        }
        let marked = Zeroizing::new([&key[..], &[UNFINISHED]].concat());
        let written = keys.set_len(0).and_then(|()| keys.write_all(&marked)).and_then(|()| keys.sync_all());
        written.map_err(of_keys)?;
        fs::hard_link(draft, &self.path).map_err(|error| not_twice(&self.path, error))?;
        Ok(keys)
    }

    /// The file of the keys.
    fn key_path(&self) -> PathBuf {
        self.sibling(".key")
    }

    fn sibling(&self, extension: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(extension);
        self.path.with_file_name(name)
    }
}

/// Whether a file of keys of this length belongs to a first content that is not in its place.
const fn is_unfinished(length: u64) -> bool {
    length < KEY_BYTES as u64 || length == KEY_BYTES as u64 + 1
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn not_twice(path: &Path, error: io::Error) -> SealedFileError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => SealedFileError::Exists(shown(path)),
        _ => SealedFileError::Io(shown(path), error),
    }
}

fn open_if_there(options: &OpenOptions, path: &Path) -> Sealed<File> {
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SealedFileError::Missing(shown(path)),
        _ => SealedFileError::Io(shown(path), error),
    })
}

fn refuse_exposed(file: &File, path: &Path) -> Sealed<()> {
    let is_private = file.metadata().and_then(|metadata| is_private(&metadata));
    match is_private.map_err(|error| SealedFileError::Io(shown(path), error))? {
        true => Ok(()),
        false => Err(VaultError::Exposed { path: shown(path) }.into()),
    }
}

fn write_key(file: &mut File, at: u64, key: &Secret) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(key.as_slice())?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> Sealed<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| SealedFileError::Io(shown(folder), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &Path) -> Result<Vec<u8>, SealedFileError> {
        SealedFile::open(path).map(|(_, plain)| plain.to_vec())
    }

    #[test]
    fn a_content_opens_until_it_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("staff");
        assert!(matches!(opened(&path), Err(SealedFileError::Missing(_))));
        let mut sealed = SealedFile::begin(&path).unwrap();
        sealed.replace(b"fi", b"rst".to_vec().into()).unwrap();
        assert!(matches!(opened(&path), Err(SealedFileError::InUse(_))));
        drop(sealed);
        assert_eq!(opened(&path).unwrap(), b"first");
        let first = fs::read(&path).unwrap();
        let (mut sealed, _) = SealedFile::open(&path).unwrap();
        sealed.replace(b"se", b"cond".to_vec().into()).unwrap();
        drop(sealed);
        assert_eq!(opened(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
        fs::write(&path, first).unwrap();
        assert!(matches!(opened(&path), Err(SealedFileError::Unopened(_))));
        assert!(matches!(SealedFile::begin(&path), Err(SealedFileError::Exists(_))));
    }

    #[test]
    fn a_crash_leaves_a_content_that_opens() {
        let home = tempfile::tempdir().unwrap();
        let (path, key) = (home.path().join("staff"), home.path().join("staff.key"));
        SealedFile::begin(&path).unwrap().replace(b"fi", b"rst".to_vec().into()).unwrap();
        let (first, old) = (fs::read(&path).unwrap(), fs::read(&key).unwrap());
        let (mut sealed, _) = SealedFile::open(&path).unwrap();
        sealed.replace(b"se", b"cond".to_vec().into()).unwrap();
        drop(sealed);
        let (second, new) = (fs::read(&path).unwrap(), fs::read(&key).unwrap());
        let both = [old.clone(), new.clone()].concat();
        let torn = [vec![7; 16], new[16..].to_vec(), new.clone()].concat();
        for (content, keys, expected) in
            [(&first, &both, &b"first"[..]), (&second, &both, b"second"), (&second, &torn, b"second")]
        {
            fs::write(&path, content).unwrap();
            fs::write(&key, keys).unwrap();
            assert_eq!(opened(&path).unwrap(), expected);
        }
    }

    #[test]
    fn a_beginning_that_was_cut_off_begins_again() {
        let home = tempfile::tempdir().unwrap();
        let (path, key) = (home.path().join("staff"), home.path().join("staff.key"));
        let begin = || SealedFile::begin(&path).and_then(|mut sealed| sealed.replace(b"fi", b"rst".to_vec().into()));
        for cut in [0, 5, KEY_BYTES + 1] {
            fs::write(&key, vec![7; cut]).unwrap();
            fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            assert!(matches!(opened(&path), Err(SealedFileError::Missing(_))));
            begin().unwrap();
            assert_eq!((opened(&path).unwrap(), fs::read(&key).unwrap().len()), (b"first".to_vec(), KEY_BYTES));
            // the content came to its place, and the mark of the key stayed
            let marked = [fs::read(&key).unwrap(), vec![UNFINISHED]].concat();
            fs::write(&key, marked).unwrap();
            assert!(matches!(begin(), Err(SealedFileError::Exists(_))));
            assert_eq!(opened(&path).unwrap(), b"first");
            // a content that is lost is not begun again
            fs::remove_file(&path).unwrap();
            assert!(matches!(begin(), Err(SealedFileError::Exists(_))));
            fs::remove_file(&key).unwrap();
        }
        // two begin at once: one has the file
        let (mut one, mut other) = (SealedFile::begin(&path).unwrap(), SealedFile::begin(&path).unwrap());
        one.replace(b"on", b"e".to_vec().into()).unwrap();
        assert!(matches!(other.replace(b"ot", b"her".to_vec().into()), Err(SealedFileError::InUse(_))));
        drop(one);
        assert!(matches!(other.replace(b"ot", b"her".to_vec().into()), Err(SealedFileError::Exists(_))));
        assert_eq!(opened(&path).unwrap(), b"one");
    }

    #[test]
    fn files_that_others_read_are_refused() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("staff");
        SealedFile::begin(&path).unwrap().replace(b"fi", b"rst".to_vec().into()).unwrap();
        for file in ["staff", "staff.key"] {
            let file = home.path().join(file);
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(matches!(opened(&path), Err(SealedFileError::Vault(VaultError::Exposed { .. }))));
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::remove_file(home.path().join("staff.key")).unwrap();
        assert!(matches!(opened(&path), Err(SealedFileError::Missing(_))));
    }
}

//! The file of the master key.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use super::error::VaultError;
use super::secret::{self, Secret};

/// Reads the key, or creates one if the file is absent.
pub(super) fn read_or_create(path: &Path) -> Result<Secret, VaultError> {
    let failed = |source| VaultError::File { path: path.display().to_string(), source };
    match File::open(path) {
        Ok(file) => read(path, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let secret = secret::draw()?;
            match create(path, &secret) {
                // another process was faster: use its key
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => outcome.map_err(failed)?,
            }
            read(path, File::open(path).map_err(failed)?)
        }
        Err(error) => Err(failed(error)),
    }
}

fn read(path: &Path, mut file: File) -> Result<Secret, VaultError> {
    let shown = || path.display().to_string();
    let failed = |source| VaultError::File { path: shown(), source };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(VaultError::Exposed { path: shown() });
    }
    let mut secret = Zeroizing::new([0; 32]);
    if metadata.len() != secret.len() as u64 {
        return Err(VaultError::NotAKey { path: shown() });
    }
    file.read_exact(secret.as_mut_slice()).map_err(failed)?;
    Ok(secret)
}

/// Writes the key to a temporary file and links it, so that an existing file is complete.
fn create(path: &Path, secret: &Secret) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let draft = folder.join(format!(".{}.{}", name.to_string_lossy(), uuid::Uuid::now_v7().simple()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(secret.as_slice())?;
        file.sync_all()?;
        fs::hard_link(&draft, path)
    })();
    // best effort: a remaining draft contains an unused key, readable only by its owner
    let _ = fs::remove_file(&draft);
    written?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("keys").join("master.key");
        let first = read_or_create(&path).unwrap();
        assert_eq!(*read_or_create(&path).unwrap(), *first);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn unsafe_or_malformed_key_file_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("master.key");
        read_or_create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read_or_create(&path), Err(VaultError::Exposed { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"short").unwrap();
        assert!(matches!(read_or_create(&path), Err(VaultError::NotAKey { .. })));
    }
}

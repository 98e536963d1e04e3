//! The file of the master key.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::process;
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
    if !is_private(&metadata).map_err(failed)? {
        return Err(VaultError::Exposed { path: shown() });
    }
    let mut secret = Zeroizing::new([0; 32]);
    if metadata.len() != secret.len() as u64 {
        return Err(VaultError::NotAKey { path: shown() });
    }
    file.read_exact(secret.as_mut_slice()).map_err(failed)?;
    Ok(secret)
}

/// Whether no one but the owner, and groups of this process, can read the file, and no one but the owner write it. Orchestrators
/// mount keys for a group.
pub(super) fn is_private(metadata: &Metadata) -> io::Result<bool> {
    let of_others = metadata.permissions().mode() & 0o077;
    Ok(of_others == 0 || of_others == 0o040 && is_own_group(metadata.gid())?)
}

/// Whether this process is in a group.
fn is_own_group(group: u32) -> io::Result<bool> {
    let groups = process::getgroups()?;
    Ok(groups.into_iter().chain([process::getegid()]).any(|own| own.as_raw() == group))
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
        for (mode, is_accepted) in [(0o640, true), (0o440, true), (0o660, false), (0o644, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_or_create(&path).is_ok(), is_accepted, "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"short").unwrap();
        assert!(matches!(read_or_create(&path), Err(VaultError::NotAKey { .. })));
    }

    #[test]
    fn groups_of_others_are_not_own_groups() {
        let group = process::getegid().as_raw();
        assert!(is_own_group(group).unwrap());
        let foreign =
            (60_000..60_999).find(|&group| !process::getgroups().unwrap().iter().any(|own| own.as_raw() == group));
        assert!(!is_own_group(foreign.unwrap()).unwrap());
    }
}

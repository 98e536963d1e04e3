//! The address of an engine, with the token that it asks for.

use std::fs;
use std::io;
use std::path::PathBuf;

/// Where an engine is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineAddress {
    /// `sc://HOST:PORT`, without a token.
    url: String,
    /// The file with the token.
    token_file: Option<PathBuf>,
}

/// Why an address is not used.
#[derive(Debug, thiserror::Error)]
pub enum EngineAddressError {
    /// Addresses are shown.
    #[error("an address is shown in lists of processes: name a file with the token of the engine")]
    Token,
    /// No address of Spark Connect.
    #[error("the address of an engine begins with sc://")]
    Scheme,
    /// The connection could be read, or anyone could make it.
    #[error(
        "off this machine an engine is reached with /;use_ssl=true and a file with a token: who joins a session reads its keys"
    )]
    Open,
    /// The token cannot be read.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
}

impl EngineAddress {
    /// Checks an address.
    ///
    /// # Errors
    /// [`EngineAddressError`], but for a token that cannot be read.
    pub fn new(url: &str, token_file: Option<PathBuf>) -> Result<Self, EngineAddressError> {
        if url.contains("token=") {
            return Err(EngineAddressError::Token);
        }
        let host = url.strip_prefix("sc://").ok_or(EngineAddressError::Scheme)?;
        let host = host.split(['/', ';']).next().unwrap_or_default();
        let is_local = ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .any(|name| host.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')));
        if !is_local && (!url.contains("use_ssl=true") || token_file.is_none()) {
            return Err(EngineAddressError::Open);
        }
        Ok(Self { url: url.to_owned(), token_file })
    }

    /// The address with its token, which is never shown. The file is read each time: tokens are replaced.
    ///
    /// # Errors
    /// [`EngineAddressError::Io`]
    pub fn with_token(&self) -> Result<String, EngineAddressError> {
        let Self { url, token_file } = self;
        let Some(path) = token_file else { return Ok(url.clone()) };
        let token = fs::read_to_string(path).map_err(|error| EngineAddressError::Io(path.clone(), error))?;
        let written: String = token.trim().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let joint = if url.contains(';') { ";" } else { "/;" };
        Ok(format!("{url}{joint}token={written}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_off_this_machine_need_tls_and_a_token() {
        let token = || Some(PathBuf::from("token"));
        for url in ["sc://127.0.0.1:15002", "sc://localhost", "sc://[::1]:15002"] {
            assert!(EngineAddress::new(url, None).is_ok(), "{url}");
        }
        assert!(EngineAddress::new("sc://lake:15002/;use_ssl=true", token()).is_ok());
        for (url, token_file) in [
            ("sc://lake:15002", None),
            ("sc://lake:15002", token()),
            ("sc://lake:15002/;use_ssl=true", None),
            ("sc://127.0.0.1.evil.org", None),
            ("http://127.0.0.1", None),
            ("sc://127.0.0.1/;token=x", None),
        ] {
            assert!(EngineAddress::new(url, token_file).is_err(), "{url}");
        }
    }

    #[test]
    fn a_token_is_written_in_hexadecimal() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "a;b\n").unwrap();
        let path = Some(file.path().to_owned());
        let address = EngineAddress::new("sc://localhost", path.clone()).unwrap();
        assert_eq!(address.with_token().unwrap(), "sc://localhost/;token=%61%3B%62");
        let address = EngineAddress::new("sc://lake/;use_ssl=true", path).unwrap();
        assert_eq!(address.with_token().unwrap(), "sc://lake/;use_ssl=true;token=%61%3B%62");
    }
}

//! What a cluster encrypts of that which its processes send each other and write on the way to a release.

use crate::engine::RemoteError;

/// Whether an engine must encrypt keys, rows and their buckets between its processes, and on their disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineEncryption {
    /// An engine without it is given nothing.
    Required,
    /// As the cluster is set up.
    Optional,
}

impl EngineEncryption {
    /// The settings that decide it: of files that are spilled or shuffled, and of two forms of messages. They are off unless set.
    pub const SETTINGS: [&str; 3] =
        ["spark.io.encryption.enabled", "spark.network.crypto.enabled", "spark.ssl.rpc.enabled"];

    /// As an option says.
    #[must_use]
    pub const fn from_option(is_required: bool) -> Self {
        if is_required { Self::Required } else { Self::Optional }
    }

    /// Checks the values of [`Self::SETTINGS`] where encryption is required.
    ///
    /// # Errors
    /// [`RemoteError::Failed`] with what is not encrypted.
    pub fn check(values: &[Option<String>]) -> Result<(), RemoteError> {
        let is_on = |value: Option<&Option<String>>| {
            value.and_then(Option::as_ref).is_some_and(|value| value.eq_ignore_ascii_case("true"))
        };
        let missing = match (is_on(values.first()), is_on(values.get(1)) || is_on(values.get(2))) {
            (true, true) => return Ok(()),
            (false, _) => "files: spark.io.encryption.enabled is not true",
            (true, false) => "messages: neither spark.network.crypto.enabled nor spark.ssl.rpc.enabled is true",
        };
        Err(RemoteError::Failed(format!("it must encrypt, and does not encrypt its {missing}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_messages_must_be_encrypted() {
        let checked = |values: [&str; 3]| EngineEncryption::check(&values.map(|value| Some(value.to_owned())));
        for encrypted in [["true", "true", "false"], ["true", "false", "true"], ["TRUE", "true", "true"]] {
            assert_eq!(checked(encrypted), Ok(()));
        }
        for (open, named) in [
            (["false", "true", "true"], "spark.io.encryption.enabled"),
            (["yes", "true", "true"], "spark.io.encryption.enabled"),
            (["true", "false", ""], "spark.ssl.rpc.enabled"),
        ] {
            assert!(checked(open).unwrap_err().to_string().contains(named), "{open:?}");
        }
        assert!(EngineEncryption::check(&[None, None, None]).is_err() && EngineEncryption::check(&[]).is_err());
    }
}

use std::fmt;

/// The most characters of a name.
const NAME_CHARS: usize = 100;

/// The form of a name, as faults describe it.
pub const POLICY_NAME: &str = "1 to 100 of a-z, 0-9, '.', '_' and '-', the first a letter or a digit, and not ending in a version \
                               such as -v3";

pub(in crate::spec) const PINNED: &str = "the name of a policy and its version, such as \"hospital-v3\"";

/// Whether a policy can have this name. A name that ends like a version would be ambiguous.
#[must_use]
pub fn is_policy_name(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let spelled = bytes.first().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || b"._-".contains(byte))
        && bytes.len() <= NAME_CHARS;
    let versioned =
        name.rsplit_once("-v").is_some_and(|(_, end)| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()));
    spelled && !versioned
}

/// One version of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionedName {
    /// The name of the policy.
    pub name: String,
    /// Its version, from 1 on.
    pub version: u32,
}

impl fmt::Display for VersionedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-v{}", self.name, self.version)
    }
}

impl VersionedName {
    pub(in crate::spec) fn parse(text: &str) -> Option<Self> {
        let (name, version) = text.rsplit_once("-v")?;
        // versions have one spelling
        let digits = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
        let version = version.parse().ok().filter(|_| digits)?;
        is_policy_name(name).then(|| Self { name: name.to_owned(), version })
    }
}

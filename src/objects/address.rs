//! Addresses of objects, read strictly: each object has one spelling, so prefixes can be compared by their segments.

use std::fmt;
use std::fmt::Write as _;

/// The most bytes of an address.
const MAX_ADDRESS_BYTES: usize = 2048;

/// How the store of an object is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectScheme {
    /// Amazon S3, or what speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage.
    Az,
    /// A file of a web server, over TLS.
    Https,
    /// A file of a web server on this machine.
    Http,
    /// A file of this machine.
    File,
}

impl ObjectScheme {
    const ALL: [Self; 6] = [Self::S3, Self::Gs, Self::Az, Self::Https, Self::Http, Self::File];

    /// The word before `://`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Az => "az",
            Self::Https => "https",
            Self::Http => "http",
            Self::File => "file",
        }
    }

    /// Whether addresses are URLs, with percent-encoding.
    const fn is_url(self) -> bool {
        matches!(self, Self::Https | Self::Http | Self::File)
    }
}

/// The address of an object or of a prefix: `SCHEME://AUTHORITY/SEGMENT/SEGMENT`.
///
/// It has no user, query or fragment, no empty segment and none that is `.` or `..`, also not in percent-encoding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectAddress {
    scheme: ObjectScheme,
    authority: String,
    /// Decoded.
    segments: Vec<String>,
}

/// What is wrong with an address, and its repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(&'static str);

impl ObjectAddress {
    /// Reads an address; one `/` at its end is permitted. `None` for a text that is none, such as a path.
    ///
    /// # Errors
    /// What is wrong with an address.
    pub fn parse(text: &str) -> Option<Result<Self, AddressError>> {
        let (scheme, rest) = text.split_once("://")?;
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        (!scheme.is_empty() && scheme.bytes().all(is_scheme)).then(|| Self::parse_rest(scheme, rest))
    }

    fn parse_rest(scheme: &str, rest: &str) -> Result<Self, AddressError> {
        let scheme = ObjectScheme::ALL.into_iter().find(|known| known.as_str() == scheme);
        let scheme = scheme.ok_or(AddressError("an address begins with s3://, gs://, az://, https:// or file://"))?;
        if rest.len() > MAX_ADDRESS_BYTES {
            return Err(AddressError("an address has at most 2048 bytes"));
        }
        if rest.chars().any(|letter| letter.is_control() || letter == '\\') {
            return Err(AddressError("an address has no control characters and no backslash"));
        }
        if rest.contains(['?', '#']) {
            return Err(AddressError(
                "an address has no query and no fragment; credentials come from the environment of the process",
            ));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(AddressError("an address has no user; credentials come from the environment of the process"));
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        let written = path.split('/').filter(|_| !path.is_empty());
        let segments = written.map(|segment| segment_of(scheme, segment)).collect::<Result<_, _>>()?;
        Ok(Self { scheme, authority: authority_of(scheme, authority)?, segments })
    }

    /// How the store is spoken to.
    #[must_use]
    pub const fn scheme(&self) -> ObjectScheme {
        self.scheme
    }

    /// The bucket, the container, or the host with its port.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The decoded segments of the path.
    #[must_use]
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The last segment.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.segments.last().map(String::as_str)
    }

    /// The address of a file below this one.
    #[must_use]
    pub fn join(&self, file: &str) -> Self {
        let segments = self.segments.iter().cloned().chain([file.to_owned()]).collect();
        Self { scheme: self.scheme, authority: self.authority.clone(), segments }
    }

    /// The address with `other` in place of each segment `segment`.
    #[must_use]
    pub(super) fn with_segment(&self, segment: &str, other: &str) -> Self {
        let replaced = |of: &String| if of == segment { other.to_owned() } else { of.clone() };
        Self { segments: self.segments.iter().map(replaced).collect(), ..self.clone() }
    }

    /// Whether the other address is this one or lies below it, segment by segment.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.scheme == other.scheme
            && self.authority == other.authority
            && other.segments.starts_with(self.segments.as_slice())
    }
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority)?;
        for segment in &self.segments {
            f.write_char('/')?;
            for letter in segment.chars() {
                if !self.scheme.is_url() || is_written_plainly(letter) {
                    f.write_char(letter)?;
                } else {
                    let mut bytes = [0; 4];
                    letter.encode_utf8(&mut bytes).bytes().try_for_each(|byte| write!(f, "%{byte:02X}"))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a URL has the character as it is.
fn is_written_plainly(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(letter)
}

fn segment_of(scheme: ObjectScheme, written: &str) -> Result<String, AddressError> {
    let segment = match (scheme.is_url(), written.contains('%')) {
        (true, true) => decoded(written)?,
        (false, true) => return Err(AddressError("an address of a bucket has no % and no percent-encoding")),
        (_, false) => written.to_owned(),
    };
    match segment.as_str() {
        "" => Err(AddressError("an address has no empty segment: write one / between two segments")),
        "." | ".." => Err(AddressError("an address has no segment . or ..")),
        _ => Ok(segment),
    }
}

/// Percent-encoding may stand only for what cannot be written: it hides neither dots nor separators.
fn decoded(written: &str) -> Result<String, AddressError> {
    const WRONG: AddressError =
        AddressError("percent-encoding stands only for characters that an address cannot have, in UTF-8");
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or(WRONG);
        let byte = (digit()? << 4 | digit()?) as u8;
        let letter = char::from(byte);
        if is_written_plainly(letter) || letter.is_ascii_control() || b"/\\%".contains(&byte) {
            return Err(WRONG);
        }
        bytes.push(byte);
    }
    let text = String::from_utf8(bytes).map_err(|_| WRONG)?;
    if text.chars().any(char::is_control) { Err(WRONG) } else { Ok(text) }
}

fn authority_of(scheme: ObjectScheme, authority: &str) -> Result<String, AddressError> {
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_plainly = authority.bytes().next().is_some_and(lower) && authority.bytes().last().is_some_and(lower);
    let has_only = |others: &[u8]| authority.bytes().all(|byte| lower(byte) || others.contains(&byte));
    let (length, others, error): (_, &[u8], _) = match scheme {
        ObjectScheme::S3 => (3..=63, b"-.", "a bucket of S3 has 3 to 63 lower-case letters, digits, - and ."),
        ObjectScheme::Gs => (3..=222, b"-._", "a bucket has 3 to 222 lower-case letters, digits, -, _ and ."),
        ObjectScheme::Az => (3..=63, b"-", "a container has 3 to 63 lower-case letters, digits and -"),
        ObjectScheme::File if matches!(authority, "" | "localhost") => return Ok(String::new()),
        ObjectScheme::File => return Err(AddressError("a file has three slashes: file:///folder/file")),
        ObjectScheme::Https | ObjectScheme::Http => return host_of(scheme, authority),
    };
    let is_name = length.contains(&authority.len()) && ends_plainly && has_only(others) && !authority.contains("..");
    let is_ip = authority.parse::<std::net::Ipv4Addr>().is_ok();
    if is_name && !is_ip { Ok(authority.to_owned()) } else { Err(AddressError(error)) }
}

/// A host with its port, in lower case and without the port that the scheme has anyway.
fn host_of(scheme: ObjectScheme, authority: &str) -> Result<String, AddressError> {
    const WRONG: AddressError =
        AddressError("a host is a name of ASCII letters, digits, - and ., or an IP address, with or without a port");
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            (host, Some(port.parse::<u16>().ok().filter(|port| is_number && *port > 0).ok_or(WRONG)?))
        }
        _ => (authority, None),
    };
    let host = host.to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok_and(|parsed| parsed.to_string() == address),
        None => host.len() <= 253 && host.split('.').all(is_label),
    };
    if !is_host {
        return Err(WRONG);
    }
    let is_local = ["localhost", "127.0.0.1", "[::1]"].contains(&host.as_str());
    let usual = match scheme {
        ObjectScheme::Http if !is_local => {
            return Err(AddressError("http:// is for this machine alone (localhost, 127.0.0.1, [::1]): use https://"));
        }
        ObjectScheme::Http => 80,
        _ => 443,
    };
    Ok(port.filter(|port| *port != usual).map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ObjectAddress, AddressError> {
        ObjectAddress::parse(text).unwrap()
    }

    #[test]
    fn addresses_have_one_spelling() {
        for (text, shown) in [
            ("s3://bucket/a/b.csv", "s3://bucket/a/b.csv"),
            ("s3://bucket/a b/ä/", "s3://bucket/a b/ä"),
            ("s3://bucket", "s3://bucket"),
            ("gs://my_bucket/a", "gs://my_bucket/a"),
            ("az://container/a", "az://container/a"),
            ("https://Example.ORG:443/a%20b/%C3%A4.csv", "https://example.org/a%20b/%C3%A4.csv"),
            ("https://[::1]:8443/a", "https://[::1]:8443/a"),
            ("http://localhost:80/a", "http://localhost/a"),
            ("file:///a/b.csv", "file:///a/b.csv"),
        ] {
            assert_eq!(read(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn paths_are_no_addresses() {
        for path in ["table.csv", "/a/b.csv", "s3:/bucket/a", "a b://c", "://x", "-"] {
            assert_eq!(ObjectAddress::parse(path), None, "{path}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_senses_is_refused() {
        for text in [
            "s3://bucket/a/../b",
            "s3://bucket/./b",
            "s3://bucket//b",
            "s3://bucket/a%2fb",
            "s3://bucket/%2e%2e/b",
            "s3://bucket/a\\b",
            "s3://bucket/a\nb",
            "s3://bucket/a?versionId=1",
            "s3://bucket/a#b",
            "s3://key:secret@bucket/a",
            "s3://Bucket/a",
            "s3://b/a",
            "s3://a..b/a",
            "s3://127.0.0.1/a",
            "s3://bucket:9000/a",
            "s3:///a",
            "az://a_b/c",
            "S3://bucket/a",
            "ftp://host/a",
            "https://host/%2e%2e/a",
            "https://host/%2E/a",
            "https://host/a%2Eb",
            "https://host/a%2Fb",
            "https://host/a%5cb",
            "https://host/a%252e",
            "https://host/a%00",
            "https://host/a%C2%85",
            "https://host/a%",
            "https://host/a%zz",
            "https://host/%ff",
            "https://host/a//b",
            "https://user@host/a",
            "https://host:0/a",
            "https://host:99999/a",
            "https://host:/a",
            "https://ho st/a",
            "https://höst/a",
            "https://host./a",
            "https://[::0001]/a",
            "http://example.org/a",
            "http://localhost.example.org/a",
            "file://host/a",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(&format!("s3://bucket/{}", "a".repeat(2100))).is_err());
    }

    #[test]
    fn prefixes_end_at_a_segment() {
        let prefix = read("s3://bucket/data").unwrap();
        assert!(prefix.contains(&read("s3://bucket/data").unwrap()));
        assert!(prefix.contains(&read("s3://bucket/data/x/y.csv").unwrap()));
        for other in ["s3://bucket/data-secret", "s3://bucket", "s3://bucket2/data/x", "gs://bucket/data/x"] {
            assert!(!prefix.contains(&read(other).unwrap()), "{other}");
        }
    }
}

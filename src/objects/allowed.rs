use super::address::{ObjectAddress, ObjectScheme};

/// The sources that an operator allows; none unless listed.
#[derive(Clone, Debug, Default)]
pub struct SourceList(Vec<ObjectAddress>);

impl SourceList {
    /// Reads a list of addresses, separated by commas. Each allows itself and what lies below it.
    ///
    /// # Errors
    /// The entry with what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let entries = written.map(|entry| {
            let address = ObjectAddress::parse(entry)
                .ok_or_else(|| format!("{entry:?} is no address such as s3://bucket/prefix"))?
                .map_err(|error| format!("{entry:?}: {error}"))?;
            match address.scheme() {
                // links of a file system lead out of each prefix
                ObjectScheme::File => Err(format!("{entry:?}: a service reads no files of its machine on request")),
                _ => Ok(address),
            }
        });
        Ok(Self(entries.collect::<Result<_, String>>()?))
    }

    /// Whether nothing is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an entry contains the address.
    #[must_use]
    pub fn allows(&self, address: &ObjectAddress) -> bool {
        self.0.iter().any(|entry| entry.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ObjectAddress {
        ObjectAddress::parse(text).unwrap().unwrap()
    }

    #[test]
    fn only_what_is_listed_is_allowed() {
        let list = SourceList::parse("s3://bucket/data, https://example.org/open/").unwrap();
        assert!(list.allows(&address("s3://bucket/data/a.csv")));
        assert!(list.allows(&address("https://EXAMPLE.org:443/open/a.csv")));
        for other in [
            "s3://bucket/data-secret/a.csv",
            "s3://bucket/a.csv",
            "s3://bucket2/data/a.csv",
            "https://example.org/opener/a.csv",
            "https://example.org:8443/open/a.csv",
            "https://example.org.evil.org/open/a.csv",
            "http://localhost/open/a.csv",
            "file:///open/a.csv",
        ] {
            assert!(!list.allows(&address(other)), "{other}");
        }
        assert!(SourceList::parse("").unwrap().is_empty());
        assert!(!SourceList::default().allows(&address("s3://bucket/data")));
    }

    #[test]
    fn entries_are_checked() {
        for list in ["bucket/data", "s3://bucket/../x", "file:///data", "s3://bucket,https://"] {
            assert!(SourceList::parse(list).is_err(), "{list}");
        }
    }
}

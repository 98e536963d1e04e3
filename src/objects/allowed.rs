use super::address::{ObjectAddress, ObjectScheme};

/// The segment of an entry that stands for the name of the caller's tenant.
const TENANT: &str = "{tenant}";

/// The sources that an operator allows; none unless listed.
#[derive(Clone, Debug, Default)]
pub struct SourceList(Vec<ObjectAddress>);

impl SourceList {
    /// Reads a list of addresses, separated by commas. Each allows itself and what lies below it; a segment `{tenant}` stands for the
    /// name of the caller's tenant.
    ///
    /// # Errors
    /// The position of an entry, which may hold credentials, with what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let entries = written.zip(1..).map(|(entry, number)| {
            let wrong = |text: &str| format!("source {number}: {text}");
            let address =
                ObjectAddress::parse(entry).ok_or_else(|| wrong("write an address such as s3://bucket/prefix"))?;
            let address = address.map_err(|error| wrong(&error.to_string()))?;
            match address.scheme() {
                // links of a file system lead out of each prefix
                ObjectScheme::File => Err(wrong("a service reads no files of its machine on request")),
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

    /// Whether an entry contains the address, for a caller of this tenant.
    #[must_use]
    pub fn allows(&self, address: &ObjectAddress, tenant: &str) -> bool {
        self.0.iter().any(|entry| entry.with_segment(TENANT, tenant).contains(address))
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
        assert!(list.allows(&address("s3://bucket/data/a.csv"), "t"));
        assert!(list.allows(&address("https://EXAMPLE.org:443/open/a.csv"), "t"));
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
            assert!(!list.allows(&address(other), "t"), "{other}");
        }
        assert!(SourceList::parse("").unwrap().is_empty());
        assert!(!SourceList::default().allows(&address("s3://bucket/data"), "t"));
    }

    #[test]
    fn tenants_have_prefixes_of_their_own() {
        let list = SourceList::parse("s3://bucket/of/{tenant}/in").unwrap();
        assert!(list.allows(&address("s3://bucket/of/a/in/x.csv"), "a"));
        for (other, tenant) in [
            ("s3://bucket/of/a/in/x.csv", "b"),
            ("s3://bucket/of/a/x.csv", "a"),
            ("s3://bucket/of/{tenant}/in/x.csv", "a"),
            ("s3://bucket/of/a/b/in/x.csv", "a/b"),
        ] {
            assert!(!list.allows(&address(other), tenant), "{other} {tenant}");
        }
    }

    #[test]
    fn entries_are_checked() {
        let refused = SourceList::parse("s3://bucket/a,s3://key:hidden@bucket/b").unwrap_err();
        assert!(refused.starts_with("source 2: ") && !refused.contains("hidden"), "{refused}");
        for list in ["bucket/data", "s3://bucket/../x", "file:///data", "s3://bucket,https://"] {
            assert!(SourceList::parse(list).is_err(), "{list}");
        }
    }
}

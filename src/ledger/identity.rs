//! Identities of attributes across datasets: aliases, and attributes that are computed from others.

use std::collections::{BTreeMap, BTreeSet};

/// Declared identities of the attributes of a series.
///
/// A name without a declaration is an attribute of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AttributeIdentities {
    aliases: BTreeMap<String, String>,
    functions: BTreeMap<String, BTreeSet<String>>,
}

/// Contradiction between declared identities.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum IdentityError {
    /// The name already belongs to another attribute.
    #[error("{name} is declared to be {of}, and stays so")]
    Taken {
        /// The name.
        name: String,
        /// The attribute to which the name belongs.
        of: String,
    },
    /// The attribute would be defined by itself.
    #[error("{0} would be defined by itself")]
    Circle(String),
}

impl AttributeIdentities {
    /// Declares a name as another name of an attribute; with its own name, as a new attribute.
    ///
    /// # Errors
    /// [`IdentityError`]
    pub fn alias(&mut self, name: &str, of: &str) -> Result<(), IdentityError> {
        match self.aliases.get(name) {
            Some(before) if before == of => return Ok(()),
            Some(before) if before != name => {
                return Err(IdentityError::Taken { name: name.to_owned(), of: before.clone() });
            }
            _ => {}
        }
        if name != of && self.canonical(of) == name {
            return Err(IdentityError::Circle(name.to_owned()));
        }
        self.aliases.insert(name.to_owned(), of.to_owned());
        Ok(())
    }

    /// Declares that an attribute is computed from others, and so counts as each of them.
    ///
    /// Later declarations only add.
    ///
    /// # Errors
    /// [`IdentityError`]
    pub fn function(&mut self, name: &str, of: &[String]) -> Result<(), IdentityError> {
        let own = self.canonical(name).to_owned();
        if of.iter().any(|of| self.passed(of).contains(own.as_str())) {
            return Err(IdentityError::Circle(name.to_owned()));
        }
        let of: Vec<String> = of.iter().map(|of| self.canonical(of).to_owned()).collect();
        self.functions.entry(own).or_default().extend(of);
        Ok(())
    }

    /// Whether a name has a declaration.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.aliases.contains_key(name) || self.functions.contains_key(name)
    }

    /// The attribute of a name.
    #[must_use]
    pub fn canonical<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name;
        // declarations form no cycle; the bound covers imported ones
        for _ in 0..=self.aliases.len() {
            match self.aliases.get(name) {
                Some(of) if of != name => name = of,
                _ => break,
            }
        }
        name
    }

    /// The attributes that a name counts as; two names with a common one count as the same.
    #[must_use]
    pub fn roots<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let passed = self.passed(name);
        passed.into_iter().filter(|name| !self.functions.contains_key(*name)).collect()
    }

    /// An attribute, and all attributes from which it is computed.
    fn passed<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let mut passed = BTreeSet::new();
        let mut next = vec![self.canonical(name)];
        while let Some(name) = next.pop() {
            if passed.insert(name) {
                next.extend(self.functions.get(name).into_iter().flatten().map(|of| self.canonical(of)));
            }
        }
        passed
    }

    /// All names with a declared attribute.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.aliases.keys().map(String::as_str)
    }

    /// All attributes that are declared as computed.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// The other names of an attribute.
    #[must_use]
    pub fn aliases_of(&self, attribute: &str) -> Vec<String> {
        let others = self.aliases.keys().filter(|name| *name != attribute && self.canonical(name) == attribute);
        others.cloned().collect()
    }

    /// The attributes from which an attribute is computed.
    #[must_use]
    pub fn function_of(&self, attribute: &str) -> Option<Vec<String>> {
        self.functions.get(attribute).map(|of| of.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alias_cycle_is_an_error() {
        let mut identities = AttributeIdentities::default();
        identities.alias("zip", "zipcode").unwrap();
        identities.alias("plz", "zip").unwrap();
        identities.alias("plz", "zip").unwrap();
        identities.alias("age", "age").unwrap();
        assert_eq!(
            (identities.canonical("plz"), identities.canonical("age"), identities.canonical("x")),
            ("zipcode", "age", "x")
        );
        assert!(identities.knows("age") && identities.knows("plz") && !identities.knows("x"));
        assert!(matches!(identities.alias("zipcode", "plz"), Err(IdentityError::Circle(_))));
        assert!(matches!(identities.alias("plz", "plz"), Err(IdentityError::Taken { .. })));
        // a new attribute can later become an alias
        identities.alias("age", "years").unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        identities.function("region", &names(&["plz", "country"])).unwrap();
        identities.function("area", &names(&["region"])).unwrap();
        assert_eq!(identities.roots("area"), BTreeSet::from(["country", "zipcode"]));
        assert_eq!(identities.roots("x"), BTreeSet::from(["x"]));
        assert!(identities.function("zipcode", &names(&["area"])).is_err());
        assert!(identities.function("area", &names(&["area"])).is_err());
        assert_eq!(identities.aliases_of("zipcode"), ["plz", "zip"]);
        assert_eq!(identities.function_of("area").unwrap(), ["region"]);
    }
}

//! Attributes stay what they are, whatever a dataset calls them.

use std::collections::{BTreeMap, BTreeSet};

/// What was stated of the attributes of a series. A name of which nothing was stated is an attribute of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AttributeIdentities {
    aliases: BTreeMap<String, String>,
    functions: BTreeMap<String, BTreeSet<String>>,
}

/// What is stated contradicts itself, or what was stated before.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum IdentityError {
    /// Another attribute has the name already.
    #[error("{name} was stated to be {of}, and stays so")]
    Taken {
        /// The name.
        name: String,
        /// What it was stated to be.
        of: String,
    },
    /// It would be defined by itself.
    #[error("{0} would be defined by itself")]
    Circle(String),
}

impl AttributeIdentities {
    /// States that a name is another name of an attribute; of itself, that it is a new attribute.
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

    /// States that an attribute is computed from others: it counts as each of them. More can be added later, nothing taken back.
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

    /// Whether anything was stated of the name.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.aliases.contains_key(name) || self.functions.contains_key(name)
    }

    /// The attribute that a name stands for.
    #[must_use]
    pub fn canonical<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name;
        // no circle is ever entered; the bound is for statements that are none of ours
        for _ in 0..=self.aliases.len() {
            match self.aliases.get(name) {
                Some(of) if of != name => name = of,
                _ => break,
            }
        }
        name
    }

    /// The attributes that a name counts as: two names that share one are taken for the same.
    #[must_use]
    pub fn roots<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let passed = self.passed(name);
        passed.into_iter().filter(|name| !self.functions.contains_key(*name)).collect()
    }

    /// An attribute, and all that it is computed from.
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

    /// All names of which it was stated what they stand for.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.aliases.keys().map(String::as_str)
    }

    /// All attributes of which it was stated what they are computed from.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// The names that were stated to stand for an attribute, but its own.
    #[must_use]
    pub fn aliases_of(&self, attribute: &str) -> Vec<String> {
        let others = self.aliases.keys().filter(|name| *name != attribute && self.canonical(name) == attribute);
        others.cloned().collect()
    }

    /// What an attribute was stated to be computed from.
    #[must_use]
    pub fn function_of(&self, attribute: &str) -> Option<Vec<String>> {
        self.functions.get(attribute).map(|of| of.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_attributes_and_never_in_circles() {
        let mut stated = AttributeIdentities::default();
        stated.alias("zip", "zipcode").unwrap();
        stated.alias("plz", "zip").unwrap();
        stated.alias("plz", "zip").unwrap();
        stated.alias("age", "age").unwrap();
        assert_eq!((stated.canonical("plz"), stated.canonical("age"), stated.canonical("x")), ("zipcode", "age", "x"));
        assert!(stated.knows("age") && stated.knows("plz") && !stated.knows("x"));
        assert!(matches!(stated.alias("zipcode", "plz"), Err(IdentityError::Circle(_))));
        assert!(matches!(stated.alias("plz", "plz"), Err(IdentityError::Taken { .. })));
        // what was new can still turn out to be another
        stated.alias("age", "years").unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        stated.function("region", &names(&["plz", "country"])).unwrap();
        stated.function("area", &names(&["region"])).unwrap();
        assert_eq!(stated.roots("area"), BTreeSet::from(["country", "zipcode"]));
        assert_eq!(stated.roots("x"), BTreeSet::from(["x"]));
        assert!(stated.function("zipcode", &names(&["area"])).is_err());
        assert!(stated.function("area", &names(&["area"])).is_err());
        assert_eq!(stated.aliases_of("zipcode"), ["plz", "zip"]);
        assert_eq!(stated.function_of("area").unwrap(), ["region"]);
    }
}

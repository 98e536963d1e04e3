//! Scopes and the presets that bundle them.

use std::fmt;
use std::str::FromStr;

macro_rules! scopes {
    ($($variant:ident, $name:literal, $what:literal;)*) => {
        /// A permission of a key.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Scope {
            $(#[doc = $what] $variant,)*
        }

        impl Scope {
            /// Every scope, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in the contract.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

scopes! {
    DatasetsWrite, "datasets:write", "Upload, describe and purge datasets.";
    DatasetsInspect, "datasets:inspect", "See counts of the data: plans, profiles, values.";
    Jobs, "jobs", "Submit, watch and cancel jobs; verify.";
    ReleasesRead, "releases:read", "Read published releases.";
    ReleasesInternal, "releases:internal", "Read what needs the original.";
    ReleasesApprove, "releases:approve", "Approve, reject and withdraw releases; see held ones.";
    LedgerRead, "ledger:read", "Read the ledger.";
    LedgerOverride, "ledger:override", "Enter disclosures; publish unproven.";
    TaxonomiesWrite, "taxonomies:write", "Write taxonomies and policies.";
    Operate, "operate", "See the service's own state; none of the data.";
}

/// An unknown name of a scope or preset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown name")]
pub struct UnknownScopeError;

impl FromStr for Scope {
    type Err = UnknownScopeError;

    fn from_str(text: &str) -> Result<Self, UnknownScopeError> {
        Self::ALL.iter().copied().find(|scope| scope.name() == text).ok_or(UnknownScopeError)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u32);

impl Scopes {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// The set of all scopes.
    pub const ALL: Self = Self((1 << Scope::ALL.len()) - 1);

    /// Whether the set contains `scope`.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 >> scope as u32 & 1 == 1
    }

    /// The union of two sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The members in the order of the contract.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |&scope| self.contains(scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u32))
    }
}

/// Names, separated by spaces.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { " " }, scope.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromStr for Scopes {
    type Err = UnknownScopeError;

    fn from_str(text: &str) -> Result<Self, UnknownScopeError> {
        text.split_whitespace().map(str::parse).collect()
    }
}

/// A preset of scopes for a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// Uploads tables, publishes and reads releases.
    Pipeline,
    /// Inspects data, publishes and approves releases, maintains the ledger.
    Officer,
    /// Reads published releases.
    Analyst,
    /// Runs the service without access to data.
    Operator,
    /// All scopes.
    Admin,
}

impl Preset {
    /// Every preset, in the order of the command line.
    pub const ALL: [Self; 5] = [Self::Pipeline, Self::Officer, Self::Analyst, Self::Operator, Self::Admin];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pipeline => "pipeline",
            Self::Officer => "officer",
            Self::Analyst => "analyst",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The scopes of the preset.
    #[must_use]
    pub fn scopes(self) -> Scopes {
        use Scope as S;
        match self {
            Self::Pipeline => [S::DatasetsWrite, S::Jobs, S::ReleasesRead].into_iter().collect(),
            Self::Officer => {
                Scope::ALL.iter().copied().filter(|scope| !matches!(scope, S::DatasetsWrite | S::Operate)).collect()
            }
            Self::Analyst => [S::ReleasesRead].into_iter().collect(),
            Self::Operator => [S::Operate].into_iter().collect(),
            Self::Admin => Scopes::ALL,
        }
    }
}

impl FromStr for Preset {
    type Err = UnknownScopeError;

    fn from_str(text: &str) -> Result<Self, UnknownScopeError> {
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or(UnknownScopeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_survive_their_text() {
        for preset in Preset::ALL {
            let scopes = preset.scopes();
            assert_eq!(scopes.to_string().parse(), Ok(scopes), "{}", preset.name());
        }
        assert_eq!("jobs nonsense".parse::<Scopes>(), Err(UnknownScopeError));
        assert_eq!("".parse(), Ok(Scopes::NONE));
    }

    #[test]
    fn presets_hold_what_the_contract_says() {
        assert_eq!(Preset::Pipeline.scopes().to_string(), "datasets:write jobs releases:read");
        assert_eq!(Preset::Analyst.scopes().to_string(), "releases:read");
        assert!(!Preset::Officer.scopes().contains(Scope::DatasetsWrite));
        assert!(Preset::Operator.scopes().iter().all(|scope| scope == Scope::Operate));
    }
}

//! Thresholds: the largest share of a bucket that each value of a sensitive attribute may take.
//!
//! # Citations
//! [Wang et al. 2012]; `docs/spec/bucketize.md`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::guarantee::Guarantee;
use super::ratio::Ratio;
use super::thresholds_name::ThresholdsDigest;

/// The thresholds of the values of an attribute, as the caller declares them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "ThresholdsForm", into = "ThresholdsForm")]
pub enum Thresholds {
    /// 1/l for every value.
    Uniform {
        /// At least 1.
        l: u64,
    },
    /// `theta` times the share of the value in the table, plus `c`, at most 1; `overrides` replace it for single values.
    Linear {
        /// The factor on the share of a value in the table.
        theta: Ratio,
        /// The share that every value may take in addition.
        c: Ratio,
        /// Thresholds of single values.
        overrides: BTreeMap<String, Ratio>,
    },
    /// One threshold for each named value.
    Explicit {
        /// Thresholds of single values.
        values: BTreeMap<String, Ratio>,
        /// The threshold of all other values, and of the missing value.
        otherwise: Option<Ratio>,
    },
}

impl Thresholds {
    /// The thresholds of single values, where there are any.
    #[must_use]
    pub fn of_values(&self) -> Option<&BTreeMap<String, Ratio>> {
        match self {
            Self::Uniform { .. } => None,
            Self::Linear { overrides: values, .. } | Self::Explicit { values, .. } => Some(values),
        }
    }

    /// The digest by which a guarantee names them: SHA-256 of their JSON.
    #[must_use]
    pub fn name(&self) -> ThresholdsDigest {
        // the JSON has sorted members and fractions in lowest terms; writing it cannot fail
        let written = serde_json::to_vec(self).unwrap_or_default();
        ThresholdsDigest(Sha256::digest(&written).into())
    }

    /// The guarantee of a table whose buckets satisfy the thresholds; uniform thresholds are l-diversity.
    #[must_use]
    pub fn guarantee(&self) -> Guarantee {
        let values = || self.of_values().into_iter().flatten().map(|(_, ratio)| *ratio);
        let (floor, ceiling) = match *self {
            Self::Uniform { l } => return Guarantee::LDiversity { l },
            // the share of the table is not known here
            Self::Linear { c, .. } => (c.min(Ratio::ONE), Ratio::ONE),
            Self::Explicit { otherwise, .. } => {
                let otherwise = otherwise.or_else(|| values().next()).unwrap_or(Ratio::ONE);
                (otherwise, otherwise)
            }
        };
        let (least, most) = (values().fold(floor, Ratio::min), values().fold(ceiling, Ratio::max));
        Guarantee::Thresholds { digest: self.name(), least, most }
    }
}

/// Thresholds with their digest and guarantee, which are computed once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DigestedThresholds {
    declared: Arc<Thresholds>,
    name: ThresholdsDigest,
    guarantee: Guarantee,
}

impl From<Thresholds> for DigestedThresholds {
    fn from(declared: Thresholds) -> Self {
        let guarantee = declared.guarantee();
        let name = match guarantee {
            Guarantee::Thresholds { digest, .. } => digest,
            _ => declared.name(),
        };
        Self { declared: Arc::new(declared), name, guarantee }
    }
}

impl DigestedThresholds {
    /// The declared thresholds.
    #[must_use]
    pub fn declared(&self) -> &Thresholds {
        &self.declared
    }

    /// The digest by which guarantees name them.
    #[must_use]
    pub const fn name(&self) -> ThresholdsDigest {
        self.name
    }

    /// The guarantee of a table whose buckets satisfy them.
    #[must_use]
    pub const fn guarantee(&self) -> Guarantee {
        self.guarantee
    }
}

impl utoipa::PartialSchema for Thresholds {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new().into()
    }
}

// the schema of this name is written by hand
impl utoipa::ToSchema for Thresholds {
    fn name() -> std::borrow::Cow<'static, str> {
        "ThresholdsChoice".into()
    }
}

/// Thresholds as JSON has them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThresholdsForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uniform: Option<UniformForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    linear: Option<LinearForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    explicit: Option<BTreeMap<String, Ratio>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    otherwise: Option<Ratio>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UniformForm {
    l: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinearForm {
    theta: Ratio,
    c: Ratio,
    #[serde(default)]
    overrides: BTreeMap<String, Ratio>,
}

impl From<Thresholds> for ThresholdsForm {
    fn from(thresholds: Thresholds) -> Self {
        let nothing = Self { uniform: None, linear: None, explicit: None, otherwise: None };
        match thresholds {
            Thresholds::Uniform { l } => Self { uniform: Some(UniformForm { l }), ..nothing },
            Thresholds::Linear { theta, c, overrides } => {
                Self { linear: Some(LinearForm { theta, c, overrides }), ..nothing }
            }
            Thresholds::Explicit { values, otherwise } => Self { explicit: Some(values), otherwise, ..nothing },
        }
    }
}

impl TryFrom<ThresholdsForm> for Thresholds {
    type Error = &'static str;

    fn try_from(written: ThresholdsForm) -> Result<Self, Self::Error> {
        match written {
            ThresholdsForm { uniform: Some(UniformForm { l }), linear: None, explicit: None, otherwise: None } => {
                Ok(Self::Uniform { l })
            }
            ThresholdsForm { uniform: None, linear: Some(linear), explicit: None, otherwise: None } => {
                let LinearForm { theta, c, overrides } = linear;
                Ok(Self::Linear { theta, c, overrides })
            }
            ThresholdsForm { uniform: None, linear: None, explicit: Some(values), otherwise } => {
                Ok(Self::Explicit { values, otherwise })
            }
            _ => Err("thresholds are one of uniform, linear and explicit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Thresholds {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn thresholds_are_written_as_they_are_declared() {
        for declared in [
            json!({"uniform": {"l": 3}}),
            json!({"linear": {"theta": 8, "c": "0.02", "overrides": {"flu": 1}}}),
            json!({"explicit": {"HIV": "0.02"}, "otherwise": "0.6"}),
            json!({"explicit": {"HIV": "1/3"}}),
        ] {
            assert_eq!(serde_json::to_value(read(declared.clone())).unwrap(), declared);
        }
        let wrong = json!({"uniform": {"l": 3}, "otherwise": "0.6"});
        assert!(serde_json::from_value::<Thresholds>(wrong).is_err());
    }

    #[test]
    fn a_guarantee_names_its_thresholds_and_their_bounds() {
        let ratio = |text: &str| text.parse::<Ratio>().unwrap();
        let explicit = read(json!({"explicit": {"HIV": "0.02", "flu": "1/2"}, "otherwise": "0.6"}));
        let Guarantee::Thresholds { digest, least, most } = explicit.guarantee() else { panic!("thresholds") };
        assert_eq!((least, most), (ratio("0.02"), ratio("0.6")));
        assert_eq!(digest, read(json!({"otherwise": "3/5", "explicit": {"flu": "0.5", "HIV": "1/50"}})).name());
        assert_ne!(digest, read(json!({"explicit": {"HIV": "0.03", "flu": "1/2"}, "otherwise": "0.6"})).name());
        let kept = serde_json::to_value(explicit.guarantee()).unwrap();
        assert_eq!(serde_json::from_value::<Guarantee>(kept).unwrap(), explicit.guarantee());
        assert_eq!(read(json!({"uniform": {"l": 3}})).guarantee(), Guarantee::LDiversity { l: 3 });
        let Guarantee::Thresholds { least, most, .. } = read(json!({"linear": {"theta": 2, "c": "0.1"}})).guarantee()
        else {
            panic!("thresholds")
        };
        assert_eq!((least, most), (ratio("0.1"), Ratio::ONE));
    }
}

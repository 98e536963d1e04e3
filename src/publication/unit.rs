//! The unit of protection: a row, or a data subject with several rows.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::contributions::ContributionChoice;
use super::guarantee::Guarantee;
use super::ratio::Ratio;
use super::thresholds::{DigestedThresholds, Thresholds};
use super::thresholds_name::ThresholdsDigest;

/// The guarantees of units behind the thresholds of rows, by the digest of the latter.
pub type UnitGuarantees = BTreeMap<ThresholdsDigest, Guarantee>;

/// The unit of protection (`docs/security/threat-model.md#adversary`).
///
/// An adversary may look for any of the at most R rows of a data subject. Rows therefore satisfy a stricter guarantee than data
/// subjects: l times R, a threshold divided by R, and R(k - 1) + 1 rows for k data subjects.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "UnitForm", into = "UnitForm")]
pub enum Unit {
    /// A row.
    #[default]
    Row,
    /// All rows of one data subject.
    Subject {
        /// The name of the column that identifies data subjects.
        attribute: String,
        /// The most rows of one data subject.
        max_rows: u64,
        /// How they were chosen, where other rows were left out.
        kept: Option<ContributionChoice>,
    },
}

impl Unit {
    /// How the rows of a unit were chosen, where rows were left out.
    #[must_use]
    pub const fn kept(&self) -> Option<&ContributionChoice> {
        match self {
            Self::Row => None,
            Self::Subject { kept, .. } => kept.as_ref(),
        }
    }

    /// The most rows of one unit.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        match self {
            Self::Row => 1,
            Self::Subject { max_rows, .. } => *max_rows,
        }
    }

    /// The least number of rows that belong to at least `k` units; `None` on overflow.
    #[must_use]
    pub fn rows_of(&self, k: u64) -> Option<u64> {
        k.saturating_sub(1).checked_mul(self.rows())?.checked_add(1)
    }

    /// The largest share of rows that bounds the share of each unit by `share`; `None` on overflow.
    #[must_use]
    pub fn share_of(&self, share: Ratio) -> Option<Ratio> {
        divided(share, self.rows())
    }

    /// The l of rows that gives units the diversity `l`; `None` on overflow.
    #[must_use]
    pub fn l_of(&self, l: Ratio) -> Option<Ratio> {
        times(l, self.rows())
    }

    /// The guarantee of rows that gives each unit `guarantee`; `None` where none is defined, or on overflow.
    ///
    /// A guarantee names only the digest of its thresholds: see [`Thresholds::divided`].
    #[must_use]
    pub fn enforced(&self, guarantee: Guarantee) -> Option<Guarantee> {
        let of = self.rows();
        if of == 1 {
            return Some(guarantee);
        }
        Some(match guarantee {
            Guarantee::LDiversity { l } => Guarantee::LDiversity { l: l.checked_mul(of)? },
            Guarantee::AlphaK { alpha, k } => Guarantee::AlphaK { alpha: self.share_of(alpha)?, k: self.rows_of(k)? },
            Guarantee::KAnonymity { k } => Guarantee::KAnonymity { k: self.rows_of(k)? },
            _ => return None,
        })
    }

    /// The guarantee of units behind each of the `known` thresholds of rows.
    #[must_use]
    pub fn promised<'t>(&self, known: impl IntoIterator<Item = &'t DigestedThresholds>) -> UnitGuarantees {
        let of = self.rows();
        if of == 1 {
            return UnitGuarantees::new();
        }
        let promised = |known: &DigestedThresholds| Some((known.name(), known.declared().times(of)?.guarantee()));
        known.into_iter().filter_map(promised).collect()
    }

    /// The guarantee of units behind the guarantee `enforced` of rows; `promised` holds those behind thresholds.
    #[must_use]
    pub fn unit_guarantee(&self, enforced: Guarantee, promised: &UnitGuarantees) -> Guarantee {
        let of = self.rows();
        let persons = |k: u64| k.saturating_sub(1) / of + 1;
        match enforced {
            _ if of == 1 => enforced,
            Guarantee::LDiversity { l } => Guarantee::LDiversity { l: l / of },
            Guarantee::AlphaK { alpha, k } => {
                let alpha = times(alpha, of).unwrap_or(alpha);
                Guarantee::AlphaK { alpha, k: persons(k) }
            }
            Guarantee::KAnonymity { k } => Guarantee::KAnonymity { k: persons(k) },
            Guarantee::Thresholds { digest, .. } => promised.get(&digest).copied().unwrap_or(enforced),
            other => other,
        }
    }
}

fn divided(ratio: Ratio, by: u64) -> Option<Ratio> {
    Ratio::new(ratio.numerator(), ratio.denominator().checked_mul(by)?).ok()
}

fn times(ratio: Ratio, by: u64) -> Option<Ratio> {
    Ratio::new(ratio.numerator().checked_mul(by)?, ratio.denominator()).ok()
}

impl Thresholds {
    /// Each threshold divided by `by`; `None` on overflow.
    #[must_use]
    pub fn divided(&self, by: u64) -> Option<Self> {
        self.scaled(|ratio| divided(ratio, by), |l| l.checked_mul(by))
    }

    /// Each threshold `by` times as large.
    fn times(&self, by: u64) -> Option<Self> {
        self.scaled(|ratio| times(ratio, by), |l| Some(l / by))
    }

    fn scaled(&self, each: impl Fn(Ratio) -> Option<Ratio>, l: impl Fn(u64) -> Option<u64>) -> Option<Self> {
        let all = |values: &BTreeMap<String, Ratio>| {
            values.iter().map(|(value, ratio)| Some((value.clone(), each(*ratio)?))).collect::<Option<_>>()
        };
        Some(match self {
            Self::Uniform { l: of } => Self::Uniform { l: l(*of)? },
            Self::Linear { theta, c, overrides } => {
                Self::Linear { theta: each(*theta)?, c: each(*c)?, overrides: all(overrides)? }
            }
            Self::Explicit { values, otherwise } => Self::Explicit {
                values: all(values)?,
                otherwise: match otherwise {
                    Some(ratio) => Some(each(*ratio)?),
                    None => None,
                },
            },
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row => f.write_str("row"),
            Self::Subject { attribute, max_rows: 1, .. } => write!(f, "{attribute} with at most 1 row"),
            Self::Subject { attribute, max_rows, .. } => write!(f, "{attribute} with at most {max_rows} rows"),
        }
    }
}

/// The unit of protection.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
enum UnitForm {
    Word(UnitTag),
    /// All rows of one data subject.
    #[schema(title = "SubjectUnit")]
    Subject {
        /// The column that identifies data subjects.
        subject: String,
        /// The most rows of one data subject.
        #[schema(minimum = 1, maximum = 1_000_000)]
        max_rows: u64,
        /// How they were chosen, where other rows were left out before anything else; otherwise absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        kept: Option<ContributionChoice>,
    },
}

/// A row.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RowUnit)]
enum UnitTag {
    Row,
}

impl From<Unit> for UnitForm {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Row => Self::Word(UnitTag::Row),
            Unit::Subject { attribute, max_rows, kept } => Self::Subject { subject: attribute, max_rows, kept },
        }
    }
}

impl From<UnitForm> for Unit {
    fn from(written: UnitForm) -> Self {
        match written {
            UnitForm::Word(UnitTag::Row) => Self::Row,
            // every guarantee holds for a unit without rows: such a manifest is read as one with single rows
            UnitForm::Subject { subject, max_rows, kept } => {
                Self::Subject { attribute: subject, max_rows: max_rows.max(1), kept }
            }
        }
    }
}

impl PartialSchema for Unit {
    fn schema() -> RefOr<Schema> {
        UnitForm::schema()
    }
}

impl ToSchema for Unit {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        UnitForm::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ratio(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    #[test]
    fn guarantees_of_rows_restore_those_of_subjects() {
        let unit: Unit = serde_json::from_value(json!({"subject": "patient", "max_rows": 3})).unwrap();
        let cases = [
            (Guarantee::LDiversity { l: 4 }, Guarantee::LDiversity { l: 12 }),
            (Guarantee::KAnonymity { k: 5 }, Guarantee::KAnonymity { k: 13 }),
            (Guarantee::AlphaK { alpha: ratio("0.3"), k: 2 }, Guarantee::AlphaK { alpha: ratio("0.1"), k: 4 }),
        ];
        for (declared, enforced) in cases {
            assert_eq!(unit.enforced(declared), Some(enforced));
            assert_eq!(unit.unit_guarantee(enforced, &UnitGuarantees::new()), declared);
            assert_eq!(Unit::Row.enforced(declared), Some(declared));
            assert_eq!(Unit::Row.unit_guarantee(declared, &UnitGuarantees::new()), declared);
        }
        for other in [Guarantee::DistinctLDiversity { l: 3 }, Guarantee::RecursiveLDiversity { c: ratio("2"), l: 3 }] {
            assert_eq!(unit.enforced(other), None);
            // with one row each, rows are data subjects
            assert_eq!(Unit::Subject { attribute: "p".into(), max_rows: 1, kept: None }.enforced(other), Some(other));
        }
        assert_eq!(unit.enforced(Guarantee::LDiversity { l: u64::MAX / 2 }), None);
    }

    #[test]
    fn divided_thresholds_restore_the_declared_ones() {
        let unit = Unit::Subject { attribute: "patient".into(), max_rows: 7, kept: None };
        for declared in [
            json!({"linear": {"theta": 8, "c": "0.02", "overrides": {"flu": 1}}}),
            json!({"explicit": {"HIV": "0.02"}, "otherwise": "0.6"}),
            json!({"explicit": {"HIV": "1/3"}}),
        ] {
            let declared: Thresholds = serde_json::from_value(declared).unwrap();
            let enforced = declared.divided(7).unwrap();
            let promised = unit.promised([&enforced.clone().into()]);
            assert_eq!(unit.unit_guarantee(enforced.guarantee(), &promised), declared.guarantee());
        }
        let small: Thresholds = serde_json::from_value(json!({"explicit": {"HIV": "1/999999999"}})).unwrap();
        assert_eq!(small.divided(7), None);
        assert_eq!(serde_json::to_value(Unit::Row).unwrap(), json!("row"));
        assert!(serde_json::from_value::<Unit>(json!("rows")).is_err());
    }
}

//! The details of a method, as a manifest writes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ratio::ManifestRatio;
use super::republish::RepublishForm;
use super::sequence::SequentialForm;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    BreachKind, DecompositionDetails, InferableBucket, MethodDetails, MethodKind, SizeCount, SlicedDiversity,
    Thresholds,
};

/// The details of one method; the members of the form say which method.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = MethodDetails)]
pub enum MethodDetailsForm {
    /// Details of `bucketize`.
    Bucketize(BucketizeForm),
    /// Details of `slicing`.
    Slicing(SlicingForm),
    /// Details of `decompose`.
    Decompose(DecomposeForm),
    /// Details of `sequential`.
    Sequential(SequentialForm),
    /// Details of a night of a republished table.
    Republish(RepublishForm),
}

/// The bucket sizes of `bucketize` and their loss.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BucketizeDetails)]
pub struct BucketizeForm {
    /// The number of buckets of each size.
    pub setting: Vec<SizeClass>,
    /// Sum over buckets of (size - 1)^2.
    pub loss: u64,
    /// The loss divided by the number of rows minus one.
    pub mse: f64,
    /// A proved lower bound of the loss, where the caller asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lower_bound: Option<u64>,
    /// The thresholds that every bucket satisfies.
    pub thresholds: Thresholds,
}

/// Buckets of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeClass {
    /// Rows in each bucket, at least one.
    pub size: u64,
    /// The number of such buckets.
    pub buckets: u64,
}

/// The columns of a sliced table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SlicingDetails)]
pub struct SlicingForm {
    /// The attributes of each column, the sensitive column last.
    pub columns: Vec<Vec<String>>,
    /// The scope of the guarantee.
    pub diversity: SlicedDiversity,
    /// The least number of rows that share the cells of a column, where columns are generalized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub column_k: Option<u64>,
}

/// The buckets of a decomposition and what can be inferred of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DecompositionDetails)]
pub struct DecomposeForm {
    /// The sensitive attribute that makes the buckets.
    pub primary: String,
    /// The least number of values of each sensitive attribute in a bucket.
    pub l: BTreeMap<String, u64>,
    /// The attributes whose lists may hold values that no row of the bucket has.
    pub noise: Vec<String>,
    /// The share of buckets without a repeated value, for each sensitive attribute but the primary one.
    pub repeat_free_groups: BTreeMap<String, ManifestRatio>,
    /// The first breaches, at most 100.
    pub breaches: Vec<InferredBreachForm>,
    /// The number of breaches of each kind.
    pub breaches_total: BTreeMap<BreachKind, u64>,
}

/// A bucket for which a reader may infer a value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InferredBreach)]
pub struct InferredBreachForm {
    /// How the value is inferred.
    pub attack: BreachKind,
    /// The label of the bucket.
    pub bucket: u32,
    /// The attribute whose value is inferred.
    pub attribute: String,
}

impl MethodDetailsForm {
    /// The form of method details, by the published `names`; `None` for methods without details.
    #[must_use]
    pub fn from_details(details: &MethodDetails, names: &[String]) -> Option<Self> {
        match details {
            MethodDetails::Bucketize { thresholds, setting, loss, lower_bound } => {
                let rows: u64 = setting.iter().map(|class| class.size.saturating_mul(class.buckets)).sum();
                Some(Self::Bucketize(BucketizeForm {
                    setting: setting.iter().map(|&SizeCount { size, buckets }| SizeClass { size, buckets }).collect(),
                    loss: *loss,
                    // the loss of one bucket of all rows is (rows - 1)^2
                    mse: if rows > 1 { *loss as f64 / (rows - 1) as f64 } else { 0.0 },
                    lower_bound: *lower_bound,
                    thresholds: thresholds.clone(),
                }))
            }
            MethodDetails::Slicing { columns, diversity, column_k } => {
                let named = |set: &AttrSet| set.iter().map(|attr| names[attr.index()].clone()).collect();
                let columns = columns.iter().map(named).collect();
                Some(Self::Slicing(SlicingForm { columns, diversity: *diversity, column_k: *column_k }))
            }
            MethodDetails::Decompose(details) => Some(Self::Decompose(DecomposeForm::from_details(details, names))),
            MethodDetails::Sequential(details) => Some(Self::Sequential(SequentialForm::from_details(details))),
            MethodDetails::Republish(details) => Some(Self::Republish(RepublishForm::from_details(details))),
            MethodDetails::None => None,
        }
    }

    /// The method whose details these are.
    #[must_use]
    pub const fn method(&self) -> MethodKind {
        match self {
            Self::Bucketize(_) => MethodKind::Bucketize,
            Self::Slicing(_) => MethodKind::Slicing,
            Self::Decompose(_) => MethodKind::Decompose,
            Self::Sequential(_) => MethodKind::Sequential,
            Self::Republish(_) => MethodKind::Anatomy,
        }
    }
}

impl BucketizeForm {
    fn read(&self) -> Option<MethodDetails> {
        // a bucket has a row
        if self.setting.iter().any(|class| class.size == 0 || class.size > u64::from(u32::MAX)) {
            return None;
        }
        Some(MethodDetails::Bucketize {
            thresholds: self.thresholds.clone(),
            setting: self.setting.iter().map(|&SizeClass { size, buckets }| SizeCount { size, buckets }).collect(),
            loss: self.loss,
            lower_bound: self.lower_bound,
        })
    }
}

impl SlicingForm {
    fn read(&self, names: &[String]) -> Option<MethodDetails> {
        let set = |column: &Vec<String>| column.iter().map(|name| attr_of(name, names)).collect::<Option<AttrSet>>();
        Some(MethodDetails::Slicing {
            columns: self.columns.iter().map(set).collect::<Option<_>>()?,
            diversity: self.diversity,
            column_k: self.column_k,
        })
    }
}

impl DecomposeForm {
    fn from_details(details: &DecompositionDetails, names: &[String]) -> Self {
        let name = |attr: Attr| names[attr.index()].clone();
        let ratio = |&(count, of): &(u64, u64)| ManifestRatio { count, of };
        let breach = |inferred: &InferableBucket| InferredBreachForm {
            attack: inferred.kind,
            bucket: inferred.bucket,
            attribute: name(inferred.attribute),
        };
        Self {
            primary: name(details.primary),
            l: details.l.iter().map(|(attr, l)| (name(*attr), *l)).collect(),
            noise: details.noisy.iter().map(name).collect(),
            repeat_free_groups: details.repeat_free.iter().map(|(attr, free)| (name(*attr), ratio(free))).collect(),
            breaches: details.first.iter().map(breach).collect(),
            breaches_total: details.breach_counts.clone(),
        }
    }

    /// The details without the bounded attributes: these stand with the rules of the manifest.
    fn read(&self, names: &[String]) -> Option<DecompositionDetails> {
        let inferred = |breach: &InferredBreachForm| {
            let attribute = attr_of(&breach.attribute, names)?;
            Some(InferableBucket { bucket: breach.bucket, attribute, kind: breach.attack })
        };
        let free = |(name, free): (&String, &ManifestRatio)| Some((attr_of(name, names)?, (free.count, free.of)));
        let l = self.l.iter().map(|(name, l)| Some((attr_of(name, names)?, *l)));
        Some(DecompositionDetails {
            primary: attr_of(&self.primary, names)?,
            l: l.collect::<Option<_>>()?,
            noisy: self.noise.iter().map(|name| attr_of(name, names)).collect::<Option<_>>()?,
            bounded: AttrSet::EMPTY,
            repeat_free: self.repeat_free_groups.iter().map(free).collect::<Option<_>>()?,
            breach_counts: self.breaches_total.clone(),
            first: self.breaches.iter().map(inferred).collect::<Option<_>>()?,
        })
    }
}

fn attr_of(name: &str, names: &[String]) -> Option<Attr> {
    names.iter().position(|known| known == name).map(Attr::from)
}

/// The details of a method from the form in its manifest.
///
/// # Errors
/// A sentence on the form when it does not belong to the method.
pub(super) fn read(
    form: Option<&MethodDetailsForm>,
    method: MethodKind,
    names: &[String],
) -> Result<MethodDetails, String> {
    let details = match (method, form) {
        (MethodKind::Bucketize, Some(MethodDetailsForm::Bucketize(form))) => form.read(),
        (MethodKind::Slicing, Some(MethodDetailsForm::Slicing(form))) => form.read(names),
        (MethodKind::Decompose, Some(MethodDetailsForm::Decompose(form))) => {
            form.read(names).map(MethodDetails::Decompose)
        }
        (MethodKind::Sequential, Some(MethodDetailsForm::Sequential(form))) => {
            form.read().map(|details| MethodDetails::Sequential(Box::new(details)))
        }
        (MethodKind::Anatomy | MethodKind::Bucketize, Some(MethodDetailsForm::Republish(form))) => {
            Some(MethodDetails::Republish(Box::new(form.read())))
        }
        (MethodKind::Bucketize | MethodKind::Slicing | MethodKind::Decompose | MethodKind::Sequential, None) => {
            return Err(format!("a release by {method} has no method_details"));
        }
        (MethodKind::Versatile | MethodKind::Anatomy | MethodKind::Generalize, None) => Some(MethodDetails::None),
        (_, Some(_)) => None,
    };
    details.ok_or_else(|| format!("the method_details do not belong to a release by {method}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_details_read_back_equal() {
        let thresholds = Thresholds::Uniform { l: 2 };
        let setting = vec![SizeCount::new(6, 6), SizeCount::new(7, 2)];
        let details = MethodDetails::Bucketize { thresholds, setting, loss: 222, lower_bound: None };
        let form = MethodDetailsForm::from_details(&details, &[]).unwrap();
        let written = serde_json::to_value(&form).unwrap();
        assert_eq!(written["mse"], serde_json::json!(222.0 / 49.0));
        assert_eq!(serde_json::from_value::<MethodDetailsForm>(written.clone()).unwrap(), form);
        assert_eq!(read(Some(&form), MethodKind::Bucketize, &[]), Ok(details));
        assert_eq!(read(None, MethodKind::Anatomy, &[]), Ok(MethodDetails::None));
        assert!(read(Some(&form), MethodKind::Slicing, &[]).is_err());
        let mut extended = written;
        extended["true_loss"] = 1.into();
        assert!(serde_json::from_value::<MethodDetailsForm>(extended).is_err());
    }
}

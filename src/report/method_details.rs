//! What only some methods have to say, as a manifest states it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ratio::ManifestRatio;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    BreachKind, DecompositionDetails, InferableBucket, MethodDetails, SlicedDiversity, Thresholds,
};

/// What `bucketize` says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BucketizeDetails {
    setting: Vec<SizeClass>,
    loss: u64,
    mse: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lower_bound: Option<u64>,
    thresholds: Thresholds,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeClass {
    size: u64,
    buckets: u64,
}

/// As they stand in a manifest; null where there is nothing to say. `names` are the published names.
#[must_use]
pub fn method_details(method_details: &MethodDetails, names: &[String]) -> Option<Value> {
    match method_details {
        MethodDetails::Bucketize { thresholds, setting, loss, lower_bound } => {
            let rows: u64 = setting.iter().map(|(size, buckets)| size.saturating_mul(*buckets)).sum();
            let stated = BucketizeDetails {
                setting: setting.iter().map(|&(size, buckets)| SizeClass { size, buckets }).collect(),
                loss: *loss,
                // the loss of one bucket of all rows is (rows - 1)^2
                mse: if rows > 1 { *loss as f64 / (rows - 1) as f64 } else { 0.0 },
                lower_bound: *lower_bound,
                thresholds: thresholds.clone(),
            };
            // nothing of it can fail to be written
            serde_json::to_value(stated).ok()
        }
        MethodDetails::Slicing { columns, diversity, column_k } => {
            let named = |set: &AttrSet| set.iter().map(|attr| names[attr.index()].as_str()).collect::<Vec<_>>();
            let columns = columns.iter().map(named).collect::<Vec<_>>();
            let mut stated = json!({"columns": columns, "diversity": diversity.as_str()});
            if let Some(k) = column_k {
                stated["column_k"] = json!(k);
            }
            Some(stated)
        }
        MethodDetails::Decompose(said) => serde_json::to_value(DecomposeDetails::new(said, names)).ok(),
        MethodDetails::Sequential(sequence) => super::sequence::write(sequence),
        MethodDetails::None => None,
    }
}

/// What `decompose` says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecomposeDetails {
    primary: String,
    l: BTreeMap<String, u64>,
    /// The attributes of which buckets may list values that none of their rows has.
    noise: Vec<String>,
    repeat_free_groups: BTreeMap<String, ManifestRatio>,
    /// The first of all.
    breaches: Vec<InferredBreachForm>,
    breaches_total: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InferredBreachForm {
    attack: String,
    bucket: u32,
    attribute: String,
}

impl DecomposeDetails {
    fn new(said: &DecompositionDetails, names: &[String]) -> Self {
        let name = |attr: Attr| names[attr.index()].clone();
        let ratio = |&(count, of): &(u64, u64)| ManifestRatio { count, of };
        let breach = |told: &InferableBucket| InferredBreachForm {
            attack: told.kind.as_str().to_owned(),
            bucket: told.bucket,
            attribute: name(told.attribute),
        };
        Self {
            primary: name(said.primary),
            l: said.l.iter().map(|(attr, l)| (name(*attr), *l)).collect(),
            noise: said.noisy.iter().map(name).collect(),
            repeat_free_groups: said.repeat_free.iter().map(|(attr, free)| (name(*attr), ratio(free))).collect(),
            breaches: said.first.iter().map(breach).collect(),
            breaches_total: said.tellable.iter().map(|(kind, count)| (kind.as_str().to_owned(), *count)).collect(),
        }
    }

    /// Which attributes are bounded stands with their rules.
    fn read(&self, names: &[String]) -> Option<DecompositionDetails> {
        let attr = |name: &String| names.iter().position(|known| known == name).map(Attr::from);
        let kind = |word: &str| BreachKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        let told = |told: &InferredBreachForm| {
            let (attribute, kind) = (attr(&told.attribute)?, kind(&told.attack)?);
            Some(InferableBucket { bucket: told.bucket, attribute, kind })
        };
        let free = self.repeat_free_groups.iter().map(|(name, free)| Some((attr(name)?, (free.count, free.of))));
        Some(DecompositionDetails {
            primary: attr(&self.primary)?,
            l: self.l.iter().map(|(name, l)| Some((attr(name)?, *l))).collect::<Option<_>>()?,
            noisy: self.noise.iter().map(attr).collect::<Option<_>>()?,
            bounded: AttrSet::EMPTY,
            repeat_free: free.collect::<Option<_>>()?,
            tellable: self
                .breaches_total
                .iter()
                .map(|(word, count)| Some((kind(word)?, *count)))
                .collect::<Option<_>>()?,
            first: self.breaches.iter().map(told).collect::<Option<_>>()?,
        })
    }
}

/// Reads them back, out of the manifest of a method.
///
/// # Errors
/// What cannot be understood, in words.
pub(super) fn read(stated: Option<&Value>, method: &str, names: &[String]) -> Result<MethodDetails, String> {
    let read = match (method, stated) {
        ("bucketize", Some(stated)) => of_buckets(stated),
        ("slicing", Some(stated)) => of_slices(stated, names),
        ("decompose", Some(stated)) => {
            let read = serde_json::from_value::<DecomposeDetails>(stated.clone()).ok();
            read.and_then(|read| read.read(names)).map(MethodDetails::Decompose)
        }
        ("sequential", Some(stated)) => {
            super::sequence::read(stated).map(|sequence| MethodDetails::Sequential(Box::new(sequence)))
        }
        ("bucketize" | "slicing" | "decompose" | "sequential", None) => {
            return Err(format!("a release by {method} without its method_details"));
        }
        (_, None) => Some(MethodDetails::None),
        _ => None,
    };
    read.ok_or_else(|| "method_details of a method that this version does not have".to_owned())
}

fn of_buckets(stated: &Value) -> Option<MethodDetails> {
    let BucketizeDetails { setting, loss, lower_bound, thresholds, .. } =
        serde_json::from_value(stated.clone()).ok()?;
    // a bucket has a row
    if setting.iter().any(|class| class.size == 0 || class.size > u64::from(u32::MAX)) {
        return None;
    }
    let setting = setting.into_iter().map(|SizeClass { size, buckets }| (size, buckets)).collect();
    Some(MethodDetails::Bucketize { thresholds, setting, loss, lower_bound })
}

fn of_slices(stated: &Value, names: &[String]) -> Option<MethodDetails> {
    if stated.as_object()?.keys().any(|name| !["columns", "diversity", "column_k"].contains(&name.as_str())) {
        return None;
    }
    let attr = |name: &Value| names.iter().position(|known| name == known.as_str()).map(Attr::from);
    let set = |names: &Value| names.as_array()?.iter().map(attr).collect::<Option<AttrSet>>();
    let columns = stated["columns"].as_array()?.iter().map(set).collect::<Option<_>>()?;
    let diversity = SlicedDiversity::of_word(stated["diversity"].as_str()?)?;
    let column_k = match stated.get("column_k") {
        None => None,
        Some(k) => Some(k.as_u64()?),
    };
    Some(MethodDetails::Slicing { columns, diversity, column_k })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let thresholds = Thresholds::Uniform { l: 2 };
        let setting = vec![(6, 6), (7, 2)];
        let said = MethodDetails::Bucketize { thresholds, setting, loss: 222, lower_bound: None };
        let written = method_details(&said, &[]).unwrap();
        assert_eq!(written["mse"], serde_json::json!(222.0 / 49.0));
        assert_eq!(read(Some(&written), "bucketize", &[]), Ok(said));
        assert_eq!(read(None, "anatomy", &[]), Ok(MethodDetails::None));
        let mut more = written.clone();
        more["true_loss"] = 1.into();
        assert!(read(Some(&more), "bucketize", &[]).is_err());
    }
}

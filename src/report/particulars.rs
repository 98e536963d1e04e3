//! What only some methods have to say, as a manifest states it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::publication::{Particulars, Thresholds};

/// What `bucketize` says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfBuckets {
    setting: Vec<Class>,
    loss: u64,
    mse: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lower_bound: Option<u64>,
    thresholds: Thresholds,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Class {
    size: u64,
    buckets: u64,
}

/// Particulars in JSON; null where there are none.
#[must_use]
pub fn particulars(particulars: &Particulars) -> Option<Value> {
    let Particulars::Bucketize { thresholds, setting, loss, lower_bound } = particulars else { return None };
    let rows: u64 = setting.iter().map(|(size, buckets)| size.saturating_mul(*buckets)).sum();
    let stated = OfBuckets {
        setting: setting.iter().map(|&(size, buckets)| Class { size, buckets }).collect(),
        loss: *loss,
        // the loss of one bucket of all rows is (rows - 1)^2
        mse: if rows > 1 { *loss as f64 / (rows - 1) as f64 } else { 0.0 },
        lower_bound: *lower_bound,
        thresholds: thresholds.clone(),
    };
    // nothing of it can fail to be written
    serde_json::to_value(stated).ok()
}

/// Reads them back.
///
/// # Errors
/// What cannot be understood, in words.
pub(super) fn read(stated: Option<&Value>) -> Result<Particulars, String> {
    let Some(stated) = stated else { return Ok(Particulars::None) };
    let read: Option<OfBuckets> = serde_json::from_value(stated.clone()).ok();
    // a bucket has a row
    let read = read.filter(|read| read.setting.iter().all(|class| class.size > 0 && class.size <= u64::from(u32::MAX)));
    let OfBuckets { setting, loss, lower_bound, thresholds, .. } =
        read.ok_or("particulars of a method that this version does not have")?;
    let setting = setting.into_iter().map(|Class { size, buckets }| (size, buckets)).collect();
    Ok(Particulars::Bucketize { thresholds, setting, loss, lower_bound })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let thresholds = Thresholds::Uniform { l: 2 };
        let setting = vec![(6, 6), (7, 2)];
        let said = Particulars::Bucketize { thresholds, setting, loss: 222, lower_bound: None };
        let written = particulars(&said).unwrap();
        assert_eq!(written["mse"], serde_json::json!(222.0 / 49.0));
        assert_eq!(read(Some(&written)), Ok(said));
        assert_eq!(read(None), Ok(Particulars::None));
        let mut more = written.clone();
        more["true_loss"] = 1.into();
        assert!(read(Some(&more)).is_err());
    }
}

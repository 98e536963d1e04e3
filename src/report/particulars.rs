//! What only some methods have to say of a release, in a manifest.

use serde_json::{Value, json};

use crate::microdata::{Attr, AttrSet};
use crate::publication::{Particulars, SlicedDiversity};

/// As it stands in a manifest; null where there is nothing to say. `names` are the published names.
pub(super) fn in_json(particulars: &Particulars, names: &[String]) -> Option<Value> {
    let named = |set: &AttrSet| set.iter().map(|attr| names[attr.index()].as_str()).collect::<Vec<_>>();
    match particulars {
        Particulars::Slicing { columns, diversity } => {
            Some(json!({"columns": columns.iter().map(named).collect::<Vec<_>>(), "diversity": diversity.word()}))
        }
        _ => None,
    }
}

/// Read back out of a manifest, of a method.
pub(super) fn of_json(stated: Option<&Value>, method: &str, names: &[String]) -> Result<Particulars, String> {
    let unknown = || "particulars of a method that this version does not have".to_owned();
    let stated = match (method, stated) {
        ("slicing", Some(stated)) => stated,
        ("slicing", None) => return Err("a sliced release without its columns".to_owned()),
        (_, None) => return Ok(Particulars::None),
        _ => return Err(unknown()),
    };
    let known = ["columns", "diversity"];
    if stated.as_object().is_none_or(|members| members.keys().any(|name| !known.contains(&name.as_str()))) {
        return Err(unknown());
    }
    let attr = |name: &Value| names.iter().position(|known| name == known.as_str()).map(Attr::from);
    let set = |names: &Value| names.as_array()?.iter().map(attr).collect::<Option<AttrSet>>();
    let columns = stated["columns"].as_array().and_then(|columns| columns.iter().map(set).collect::<Option<_>>());
    let diversity = stated["diversity"].as_str().and_then(SlicedDiversity::of_word);
    let (Some(columns), Some(diversity)) = (columns, diversity) else { return Err(unknown()) };
    Ok(Particulars::Slicing { columns, diversity })
}

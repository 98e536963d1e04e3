use serde_json::Value;

use crate::microdata::Attr;
use crate::publication::{DeclaredTaxonomy, DeclaredThresholds, Thresholds};
use crate::report::{Manifest, MethodDetailsForm};
use crate::spec;
use crate::spec::FaultList;

/// The taxonomies of a manifest.
pub(in crate::engine) fn taxonomies_of(manifest: &Manifest, names: &[String]) -> Result<Vec<DeclaredTaxonomy>, String> {
    let read = |(name, tree): (&String, &Value)| {
        let unread = || format!("the taxonomy of {name} cannot be read");
        let attribute = names.iter().position(|known| known == name).ok_or_else(unread)?;
        let tree = spec::taxonomy(tree, "", &mut FaultList::new()).ok_or_else(unread)?;
        Ok(DeclaredTaxonomy { attribute: Attr::from(attribute), tree })
    };
    manifest.taxonomies.iter().map(read).collect()
}

/// The thresholds of the rules of a manifest.
pub(in crate::engine) fn thresholds_in(manifest: &Manifest, names: &[String]) -> Vec<DeclaredThresholds> {
    let of = |(name, declared): (&String, &Vec<Thresholds>)| {
        let attribute = Attr::from(names.iter().position(|known| known == name)?);
        let declared =
            declared.iter().map(|thresholds| DeclaredThresholds { attribute, thresholds: thresholds.clone().into() });
        Some(declared.collect::<Vec<_>>())
    };
    manifest.thresholds.iter().filter_map(of).flatten().collect()
}

/// All thresholds of a manifest, with those of its method.
pub(in crate::engine) fn all_thresholds_in(manifest: &Manifest, names: &[String]) -> Vec<DeclaredThresholds> {
    let mut found = thresholds_in(manifest, names);
    let of_method = match &manifest.method_details {
        Some(MethodDetailsForm::Bucketize(form)) => Some(form.thresholds.clone()),
        _ => None,
    };
    let sensitive = manifest.rules.first().and_then(|rule| rule.sensitive.first());
    let attribute = sensitive.and_then(|name| names.iter().position(|known| known == name));
    found.extend(
        attribute.zip(of_method).map(|(at, of)| DeclaredThresholds { attribute: at.into(), thresholds: of.into() }),
    );
    found
}

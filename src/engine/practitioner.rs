//! What a reader infers who knows all other published attributes of a person: figures of the original, for its holder alone.

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::model::InferredByOthers;
use crate::report::{ManifestRatio, PractitionerExposures, PractitionerValues};
use crate::utility;
use crate::utility::PractitionerKnowledge;

/// The attributes of a release, by what rules say of them.
#[derive(Clone, Copy)]
pub(in crate::engine) struct PublishedAttributes<'a> {
    /// All that some table publishes.
    pub(in crate::engine) published: AttrSet,
    /// Those that some rule protects.
    pub(in crate::engine) protected: AttrSet,
    /// Their names.
    pub(in crate::engine) names: &'a [String],
}

impl PublishedAttributes<'_> {
    /// What follows of each published attribute from all others.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub(in crate::engine) fn practitioner(
        &self,
        table: &Table,
        control: &Control,
    ) -> Result<PractitionerExposures, Cancelled> {
        Ok(self.described(utility::practitioner(table, self.published, control)?, table.rows() as u64))
    }

    /// What was counted, with names; `of` is the number of all rows.
    pub(in crate::engine) fn described(&self, known: PractitionerKnowledge, of: u64) -> PractitionerExposures {
        let values = known.values.into_iter().map(|InferredByOthers { attribute, inferred }| PractitionerValues {
            attribute: self.names[attribute.index()].clone(),
            protected: self.protected.contains(attribute),
            fixed: ManifestRatio::new(inferred.fixed, of),
            likely: ManifestRatio::new(inferred.likely, of),
        });
        PractitionerExposures { unique: ManifestRatio::new(known.unique, of), values: values.collect() }
    }
}

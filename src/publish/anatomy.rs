//! Anatomy: one table, its sensitive attribute in a part of its own, tied to the rest by bucket.

use super::{Bucketized, Design, DesignedRule, DesignedTable, Input, Method, Published, Refusal};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::random::Streams;
use crate::spec::AnatomySpec;

/// The method `anatomy`.
pub struct Anatomy;

impl Method for Anatomy {
    type Spec = AnatomySpec;
    type Plan = Design;

    fn plan(spec: &AnatomySpec, input: &Input<'_>) -> Result<Design, Refusal> {
        let rule = DesignedRule::new(&spec.rule, input).map_err(|fault| Refusal(vec![fault]))?;
        let bucketized = Bucketized { sensitive: rule.rule.sensitive, guarantees: vec![rule.rule.guarantee] };
        // further published attributes stand on the side of the quasi-identifiers, where the buckets protect beside them too
        let attributes = AttrSet::first(input.counts.attributes());
        let table = DesignedTable { attributes, bucketized: Some(bucketized) };
        let mut design = Design { tables: vec![table], rules: vec![rule] };
        design.judge();
        Ok(design)
    }

    fn publish(
        plan: &Design,
        input: &Input<'_>,
        table: &Table,
        streams: &Streams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        plan.execute(input, true, table, streams, control)
    }
}

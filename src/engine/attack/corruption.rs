//! The attack `corruption`: the adversary knows the sensitive values of some rows of a bucket.
//!
//! # Citations
//! [Tao et al. 2008]; [Wang et al. 2012, section 6]

use super::report::{AttackFinding, AttackFindings, AttackReport};
use super::target::{guards, unsupported};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::external::rules_of;
use crate::engine::read_back::model::model_problem;
use crate::engine::read_back::published_value::PublishedValue;
use crate::microdata::{Attr, AttrSet, AttributeType};
use crate::model::{PublishedRows, corrupted};
use crate::problem::{Fault, Problem};
use crate::publication::{
    AttackInput, Guarantee, Protected, Publication, PublishedBytes, Ratio as Bound, SubmittedRule,
};
use crate::report::{Manifest, ManifestRatio, publication_of};
use crate::spec::Attack;

/// The most findings in a report.
const MAX_REPORTED_CORRUPTIONS: usize = 10;

/// The attack `corruption` on a release, before its parts are read.
pub struct Corruption {
    publication: Publication,
    kinds: Vec<Option<AttributeType>>,
    asked: Vec<BoundedAttribute>,
    known: u64,
}

/// A protected attribute of a bucketized table.
struct BoundedAttribute {
    /// The index of the table.
    table: usize,
    attr: Attr,
    rule: SubmittedRule,
    /// The bound on the posterior of each value.
    bound: Bound,
}

impl Corruption {
    /// The attack by an adversary who knows the values of `known` rows of each bucket.
    ///
    /// # Errors
    /// The refusal of a release or a rule that the attack does not apply to.
    pub fn new(manifest: &Manifest, known: usize, rule: Option<&str>) -> Result<Self, EngineError> {
        let attributes = manifest.attributes();
        let names: Vec<String> = attributes.iter().map(|(name, _)| name.clone()).collect();
        let publication = publication_of(manifest, &names).map_err(EngineError::bug)?;
        let refused = |faults: Vec<Fault>| EngineError::Refused(Problem::of_faults(faults));
        let rules = rules_of(manifest, rule, &names).map_err(refused)?;
        let mut asked: Vec<BoundedAttribute> = Vec::new();
        for rule in rules {
            let (Protected::Attribute(attr), Some(bound)) = (rule.protects, bound(rule.guarantee)) else { continue };
            let tables = publication.tables.iter().enumerate().filter(|(_, table)| guards(table, rule.protects));
            asked.extend(tables.map(|(table, _)| BoundedAttribute { table, attr, rule: rule.clone(), bound }));
        }
        // of the rules on one attribute of a table, the strictest decides
        asked.sort_by_key(|of| (of.table, of.attr, of.bound));
        asked.dedup_by_key(|of| (of.table, of.attr));
        if asked.is_empty() {
            let detail =
                "corruption is played on bucketized tables, against rules that bound the share of each value alike";
            return Err(unsupported("/attack", detail));
        }
        let kinds = attributes.into_iter().map(|(_, kind)| Some(kind)).collect();
        Ok(Self { publication, kinds, asked, known: known as u64 })
    }

    /// The estimated memory of the attack in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        const BASE: u64 = 4 << 20;
        /// Bytes for a row of a part: its bucket, its code, its rank and its count.
        const ROW: u64 = 64;
        let read = self.asked.iter().flat_map(|of| &self.publication.tables[of.table].parts);
        read.fold(BASE, |all, part| all.saturating_add(part.len.saturating_mul(ROW)))
    }

    /// Runs the attack on the parts.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`], or [`EngineError::Failed`] when a part cannot be read.
    pub fn play(&self, parts: &dyn PublishedBytes, control: &Control) -> Result<AttackReport, EngineError> {
        control.begin(Phase::Verify, 1)?;
        let wanted = |table: usize| {
            let of_table = self.asked.iter().filter(|of| of.table == table);
            of_table.map(|of| AttrSet::one(of.attr)).reduce(AttrSet::union)
        };
        let cells =
            PublishedRows::read(&self.publication, wanted, &self.kinds, parts, control).map_err(model_problem)?;
        let (mut found, mut worst): (Vec<AttackFinding>, Option<ManifestRatio>) = (Vec::new(), None);
        let mut total = 0;
        for BoundedAttribute { table, attr, rule, bound } in &self.asked {
            let posteriors = corrupted(&cells, *table, *attr, self.known, control)?;
            let posteriors = posteriors.ok_or_else(|| EngineError::bug("a protected attribute stands in no part"))?;
            let bound = ManifestRatio { count: bound.numerator(), of: bound.denominator() };
            for (posterior, label) in posteriors.into_iter().zip(1_u32..) {
                let Some((count, of)) = posterior else { continue };
                let posterior = ManifestRatio::new(count, of);
                worst = worst.filter(|worst| !posterior.exceeds(*worst)).or(Some(posterior));
                if !posterior.exceeds(bound) {
                    continue;
                }
                total += 1;
                let table = &self.publication.tables[*table].name.0;
                found.push(AttackFinding {
                    rule: Some(rule.pointer.clone()),
                    bucket: Some(PublishedValue(label.into())),
                    ..AttackFinding::new(&rule.pointer, Some(table), posterior)
                });
                // keeps the memory of findings bounded
                if found.len() > 64 * MAX_REPORTED_CORRUPTIONS {
                    first(&mut found);
                }
            }
        }
        first(&mut found);
        Ok(AttackReport::new(Attack::Corruption, AttackInput::Parts, worst, AttackFindings { total, first: found }))
    }
}

/// Keeps the most certain findings; of equal ones the first.
fn first(found: &mut Vec<AttackFinding>) {
    found.sort_by(|a, b| {
        let (a, b) = (a.posterior, b.posterior);
        b.exceeds(a).cmp(&a.exceeds(b))
    });
    found.truncate(MAX_REPORTED_CORRUPTIONS);
}

/// The bound of a guarantee on the share of every value.
fn bound(guarantee: Guarantee) -> Option<Bound> {
    match guarantee {
        Guarantee::LDiversity { l } => Bound::new(1, l).ok(),
        Guarantee::AlphaK { alpha, .. } => Some(alpha),
        _ => None,
    }
}

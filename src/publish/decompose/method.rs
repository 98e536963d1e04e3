//! The method `decompose`: buckets by the primary attribute, and what readers of both tables can conclude, decided before
//! anything is made.
//!
//! Which quasi-identifiers a row has decides nothing: within a bucket each row is as likely as any other to have each of its
//! sensitive tuples, also for who knows how buckets are made. Which tuples share a bucket does depend on sensitive values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::designed::{DecomposedTable, DecompositionRole, SecretBuckets};
use super::{
    InferredBreach, MAX_GROUP_PAIRS, NoiseError, PossibleTuples, RowsByGroup, SensitiveCodesByRow, breaches,
    fresh_pick, fresh_swap, groups_of, pairs, sets_of, swap_noise,
};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::privacy::{self, Dependency, RuleDemand, RuleStatus};
use crate::problem::{Fault, Kind};
use crate::publication::{BreachKind, MethodDetails, SubmittedRule};
use crate::publish::assign::{Labels, largest_l};
use crate::publish::dispatch::Method;
use crate::publish::error::PlanError;
use crate::publish::input::{PlanInput, PlanRows};
use crate::publish::published::Published;
use crate::publish::{Decision, Design, DesignedRule, DesignedTable};
use crate::random::RandomStreams;
use crate::spec::DecomposeSpec;

/// The method `decompose`.
pub struct Decompose;

/// Of fewer values than this somebody is taken to conclude one.
const MIN_POSSIBLE_VALUES: usize = 2;

impl Method for Decompose {
    type Spec = DecomposeSpec;
    type Plan = Design;

    fn plan(spec: &DecomposeSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
        let attributes = AttrSet::first(input.counts.attributes());
        let sensitive = spec.sensitive();
        // further published attributes stand on the side of the quasi-identifiers, where the buckets protect beside them too
        let known = attributes.minus(sensitive);
        let designed = |rule: &SubmittedRule| {
            let mut designed = DesignedRule::submitted(rule, input);
            designed.impossible = tells(&designed, known, sensitive, input);
            designed.status = RuleStatus::Guardian { table: 0, known: rule.known };
            designed
        };
        let rules: Vec<DesignedRule> = spec.rules.iter().map(designed).collect();
        let mut buckets = DecomposedTable {
            role: DecompositionRole::Buckets,
            primary: spec.primary,
            l: spec.l(),
            drawn: None,
            faults: Vec::new(),
        };
        if let (Some(rows), false) = (input.rows, rules.iter().any(DesignedRule::is_refused)) {
            match draw(spec, &buckets, rows, control)? {
                Ok(drawn) => buckets.drawn = Some(Arc::new(drawn)),
                Err(fault) => buckets.faults.push(fault),
            }
        }
        let joint = DecomposedTable { role: DecompositionRole::Joint, faults: Vec::new(), ..buckets.clone() };
        let tables = vec![DesignedTable::decomposed(attributes, buckets), DesignedTable::decomposed(sensitive, joint)];
        // which tuples share a bucket, and which values are added, is decided by looking at sensitive values
        Ok(Design { tables, rules, used_dependencies: Vec::new(), decision: Decision::ByData(None) })
    }

    fn publish(
        plan: &Design,
        input: &PlanInput<'_>,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        let mut published = plan.execute(input, true, table, streams, control)?;
        let buckets = plan.tables.first().and_then(|designed| designed.decomposed.as_ref());
        if let Some((buckets, drawn)) = buckets.and_then(|buckets| Some((buckets, buckets.drawn.as_deref()?))) {
            let labels = drawn.labels(&Labels::draw(drawn.groups.len() as u32, &mut streams.stream("t1/labels")));
            published.publication.method_details = MethodDetails::Decompose(buckets.method_details(drawn, &labels));
        }
        Ok(published)
    }
}

/// A dependency by which quasi-identifiers tell the sensitive attribute of a rule, alone or together with other sensitive attributes.
/// What sensitive attributes tell by themselves is as secret as they are: a bucket's tuples are bound to its rows by nothing.
fn tells(rule: &DesignedRule, known: AttrSet, sensitive: AttrSet, input: &PlanInput<'_>) -> Option<Dependency> {
    let demand = RuleDemand { known, protects: AttrSet::one(rule.rule.sensitive), guarantee: rule.rule.guarantee };
    let alone = privacy::expand(&[demand], input.dependencies, usize::MAX).ok();
    let alone = alone.and_then(|expansion| expansion.impossible.first().map(|(_, dependency)| *dependency));
    let mixed = |dependency: &&Dependency| {
        let Dependency { determinant, dependent } = **dependency;
        dependent == rule.rule.sensitive && determinant.meets(sensitive) && determinant.meets(known)
    };
    alone.or_else(|| input.dependencies.iter().find(mixed).copied())
}

/// Draws the buckets, and looks at what they tell.
fn draw(
    spec: &DecomposeSpec,
    buckets: &DecomposedTable,
    PlanRows { table, streams }: PlanRows<'_>,
    control: &Control,
) -> Result<Result<SecretBuckets, Fault>, Cancelled> {
    let others: Vec<Attr> = buckets.others().collect();
    let codes = |attr: Attr| table.column(attr).codes.iter().collect::<Vec<u32>>();
    let sensitive = SensitiveCodesByRow {
        primary: codes(buckets.primary),
        others: others.iter().map(|attr| codes(*attr)).collect(),
    };
    let l: Vec<u64> = others.iter().map(|attr| buckets.l[attr]).collect();
    let of_primary = buckets.l.get(&buckets.primary).copied().unwrap_or(1);
    let label = format!("assign/{}", buckets.primary.0);
    let assigned = largest_l(table.column(buckets.primary), of_primary, &mut streams.stream(&label), control)?;
    let groups = groups_of(&assigned.bucket_of, assigned.buckets);
    let groups = if others.is_empty() {
        groups
    } else {
        let picked = fresh_pick(&sensitive, &groups, &mut streams.stream("decompose/pick"), control)?;
        fresh_swap(&sensitive, picked, control)?
    };
    let too_many = |found: u64| {
        let detail = "the sensitive attributes have too many values together to see what can be concluded of them";
        let fault = Fault::new("/method/sensitive", Kind::WorkLimit, detail);
        fault.with("limit", MAX_GROUP_PAIRS).with("found", found)
    };
    // merging makes groups fewer, so that this bounds what is looked at in the end, too
    let found = pairs(&sensitive, &groups);
    if found > MAX_GROUP_PAIRS {
        return Ok(Err(too_many(found)));
    }
    let noisy = match swap_noise(&sensitive, groups, &l, &mut streams.stream("decompose/noise"), control) {
        Ok(noisy) => noisy,
        Err(NoiseError::Cancelled) => return Err(Cancelled),
        Err(NoiseError::TooFew { attribute }) => {
            return Ok(Err(too_few(spec, others[attribute], l[attribute])));
        }
    };
    let (groups, sets) = (noisy.groups, noisy.sets);
    let truth = sets_of(&sensitive, &groups);
    let has_noise = |at: usize| sets.iter().zip(&truth).any(|(sets, truth)| sets[at] != truth[at]);
    let noisy: Vec<bool> = (0..others.len()).map(has_noise).collect();
    let exact: Vec<bool> = noisy.iter().map(|noisy| !noisy).collect();
    let told = |left_out: &BTreeSet<u32>| PossibleTuples::without(&sensitive, &groups, &sets, left_out, control);
    let mut left_out = BTreeSet::new();
    if spec.suppress_chain {
        let chains = breaches(&told(&left_out)?, &l, MIN_POSSIBLE_VALUES);
        left_out = chained(&chains, &sensitive, &groups, &left_out);
    }
    let mut candidates = told(&left_out)?.covering(&sets, &exact, control)?;
    loop {
        let more = chained(&breaches(&candidates, &l, MIN_POSSIBLE_VALUES), &sensitive, &groups, &left_out);
        if !spec.suppress_chain || more.is_empty() {
            break;
        }
        left_out.extend(more);
        candidates = told(&left_out)?.covering(&sets, &exact, control)?;
    }
    let breaches = breaches(&candidates, &l, MIN_POSSIBLE_VALUES);
    let alike = Repetition { groups: &groups, candidates: &candidates, values: &|group, at| sets[group][at].len() };
    let mut bounded = AttrSet::one(buckets.primary);
    let mut repeat_free = BTreeMap::new();
    for (at, &attr) in others.iter().enumerate() {
        let most = |group: usize| alike.most(group, at, noisy[at]);
        repeat_free.insert(attr, (0..groups.len()).filter(|group| most(*group) <= 1).count() as u64);
        let held = |group: usize| most(group) as u128 * u128::from(l[at]) <= groups[group].len() as u128;
        if (0..groups.len()).all(held) {
            bounded = bounded.with(attr);
        }
    }
    let noisy = others.iter().zip(&noisy).filter(|(_, noisy)| **noisy).map(|(attr, _)| *attr).collect();
    Ok(Ok(SecretBuckets { left_out, noisy, bounded, repeat_free, breaches, groups, sets }))
}

/// The primary values of which joint rows are to be left out: those that tell a value, and where one tells it without its joint
/// rows, for what the rest of its bucket cannot have, those of the rest.
fn chained(
    found: &[InferredBreach],
    sensitive: &SensitiveCodesByRow,
    groups: &RowsByGroup,
    left_out: &BTreeSet<u32>,
) -> BTreeSet<u32> {
    let mut more = BTreeSet::new();
    for told in found.iter().filter(|told| told.kind == BreachKind::Chain) {
        match told.primary {
            Some(primary) if left_out.contains(&primary) => {
                more.extend(groups[told.group].iter().map(|&row| sensitive.primary[row as usize]));
            }
            primary => more.extend(primary),
        }
    }
    more.retain(|primary| !left_out.contains(primary));
    more
}

/// Not even one bucket of all rows could list so many values. Whoever has been checked for eligibility asks for no more than there are.
pub(super) fn too_few(spec: &DecomposeSpec, attr: Attr, l: u64) -> Fault {
    let pointer = spec.rules.iter().find(|rule| rule.protects.attributes().contains(attr));
    let pointer = pointer.map_or("/method/sensitive", |rule| rule.pointer.as_str());
    Fault::new(pointer, Kind::NoNoise, format!("no bucket can list {l} values, not even one of all rows"))
}

/// How many rows of a bucket can have the same value.
struct Repetition<'a> {
    groups: &'a RowsByGroup,
    candidates: &'a PossibleTuples,
    /// How many values are published of a bucket and an attribute.
    values: &'a dyn Fn(usize, usize) -> usize,
}

impl Repetition<'_> {
    /// Where no set has noise, each of its values is some row's.
    fn most(&self, group: usize, at: usize, noisy: bool) -> usize {
        let possible = self.candidates.most_alike(group, at);
        if noisy {
            return possible;
        }
        let rows = self.groups[group].len();
        possible.min((rows + 1).saturating_sub((self.values)(group, at)))
    }
}

//! Plan of the method `decompose`: buckets by the primary attribute, and what readers of both tables can infer.
//!
//! Quasi-identifiers decide nothing. Within a bucket, each row is equally likely to have each of its sensitive tuples, even for an
//! adversary who knows the algorithm. The tuples that share a bucket do depend on sensitive values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::attack::{InferredBreach, MAX_GROUP_PAIRS, PossibleTuples, breaches, pairs};
use super::codes::{PublishedSets, RowsByGroup, SensitiveCodesByRow, groups_of, sets_of};
use super::designed::{DecomposedTable, DecompositionRole, SecretBuckets};
use super::fresh::{fresh_pick, fresh_swap};
use super::noise::{NoiseError, NoisySets, swap_noise};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::links::Strata;
use crate::privacy::{self, Dependency, RuleDemand, RuleStatus};
use crate::problem::{Fault, Kind};
use crate::publication::{BreachKind, MethodDetails, SubmittedRule, TableName};
use crate::publish::assign::{ComparedRows, Labels, SensitiveCodes, largest_l};
use crate::publish::design::{Decision, Design};
use crate::publish::designed_rule::{DesignedRule, RuleRejection};
use crate::publish::designed_table::{DesignedTable, TableDesign};
use crate::publish::error::PlanError;
use crate::publish::input::{PlanInput, PlanRows};
use crate::publish::linked::{ConstantAttributes, LinkedSides, demands};
use crate::spec::{BreachPolicy, DecomposeSpec};

/// Smallest number of possible values of a row that is no breach.
const MIN_POSSIBLE_VALUES: usize = 2;

/// Plans the two tables of a decomposition, and draws their buckets if the rows are known.
///
/// # Errors
/// [`PlanError`] on cancellation.
pub fn plan(spec: &DecomposeSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    // its tables state no strata: readers see those of published attributes alone
    let rows = input.rows.map(|rows| PlanRows { strata: rows.table, ..rows });
    let input = &PlanInput { rows, ..*input };
    let attributes = AttrSet::first(input.counts.attributes());
    let sensitive = spec.sensitive();
    let mut rules: Vec<DesignedRule> =
        spec.rules.iter().map(|rule| designed_rule(rule, attributes.minus(sensitive), sensitive, input)).collect();
    let mut buckets = DecomposedTable {
        role: DecompositionRole::Buckets,
        primary: spec.primary,
        l: spec.l(),
        drawn: None,
        faults: Vec::new(),
    };
    let constant = constant_attributes(spec, &mut rules, input, control)?;
    if let (Some(rows), false) = (input.rows, rules.iter().any(DesignedRule::is_refused)) {
        let strata = Strata::new(rows.strata, constant.attributes);
        match draw(spec, &buckets, StratifiedRows { rows, strata }, control)? {
            Ok(drawn) => {
                if spec.breaches == BreachPolicy::Refuse {
                    buckets.faults = inference_faults(spec, &buckets, &drawn, input.published_names);
                }
                buckets.drawn = Some(Arc::new(drawn));
            }
            Err(fault) => buckets.faults.push(fault),
        }
    }
    let details = input.rows.and_then(|rows| published_details(&buckets, rows)).unwrap_or_default();
    let joint = DecomposedTable { role: DecompositionRole::Joint, faults: Vec::new(), ..buckets.clone() };
    let tables = vec![
        DesignedTable::new(attributes, TableDesign::Decomposed(buckets)),
        DesignedTable::new(sensitive, TableDesign::Decomposed(joint)),
    ];
    // buckets and noise depend on sensitive values
    let used_dependencies = constant.because;
    Ok(Design { decision: Decision::ByData(None), details, used_dependencies, ..Design::new(tables, rules) })
}

/// The attributes in which every bucket has to be constant; the rule of the primary attribute is rejected where no strata
/// keep it.
///
/// Links among the sensitive attributes ask for nothing: their joint values are published.
fn constant_attributes(
    spec: &DecomposeSpec,
    rules: &mut [DesignedRule],
    input: &PlanInput<'_>,
    control: &Control,
) -> Result<ConstantAttributes, Cancelled> {
    let protected = spec.sensitive();
    let is_primary = |rule: &&DesignedRule| rule.rule.sensitive == spec.primary;
    let sides = LinkedSides {
        protected,
        row_side: AttrSet::first(input.counts.attributes()).minus(protected),
        constant: AttrSet::EMPTY,
        demands: demands(rules.iter().filter(is_primary)),
    };
    match sides.constant(rules, input, control)? {
        Ok(constant) => Ok(constant),
        Err(reason) => {
            let primary = rules.iter_mut().filter(|rule| rule.rule.sensitive == spec.primary);
            primary.for_each(|rule| rule.reject(RuleRejection::Linked(reason)));
            Ok(ConstantAttributes::default())
        }
    }
}

/// Rows in strata of which none shares a bucket with another, nor lends it noise.
struct StratifiedRows<'a> {
    rows: PlanRows<'a>,
    strata: Strata,
}

/// Details of the publication, under the labels that the buckets are published with.
fn published_details(buckets: &DecomposedTable, rows: PlanRows<'_>) -> Option<MethodDetails> {
    let drawn = buckets.drawn.as_deref()?;
    let stream = format!("{}/labels", TableName::at(0));
    let labels = drawn.labels(&Labels::draw(drawn.groups.len() as u32, &mut rows.streams.stream(&stream)));
    Some(MethodDetails::Decompose(buckets.method_details(drawn, &labels)))
}

/// A rule that the table of buckets keeps, rejected if attributes determine its sensitive one.
fn designed_rule(submitted: &SubmittedRule, known: AttrSet, sensitive: AttrSet, input: &PlanInput<'_>) -> DesignedRule {
    let mut rule = DesignedRule::submitted(submitted, input);
    if let Some(dependency) = determining(&rule, known, sensitive, input) {
        rule.reject(RuleRejection::Determined(dependency));
    }
    rule.status = RuleStatus::Guardian { table: 0, known: submitted.known };
    rule
}

/// A dependency by which quasi-identifiers, alone or with other sensitive attributes, determine the sensitive one of a rule.
///
/// A determinant of sensitive attributes alone is as secret as they are: nothing links the tuples of a bucket to its rows.
fn determining(rule: &DesignedRule, known: AttrSet, sensitive: AttrSet, input: &PlanInput<'_>) -> Option<Dependency> {
    let demand = RuleDemand { known, protects: AttrSet::one(rule.rule.sensitive), guarantee: rule.rule.guarantee };
    let expansion = privacy::expand(&[demand], input.known.all(), usize::MAX).ok();
    let by_known = expansion.and_then(|expansion| expansion.impossible.first().map(|(_, dependency)| *dependency));
    let mixed = |dependency: &&Dependency| {
        let Dependency { determinant, dependent } = **dependency;
        dependent == rule.rule.sensitive && determinant.meets(sensitive) && determinant.meets(known)
    };
    by_known.or_else(|| input.known.all().iter().find(mixed).copied())
}

/// Draws the buckets, and finds what readers of both tables infer; or the fault for which there are none.
fn draw(
    spec: &DecomposeSpec,
    buckets: &DecomposedTable,
    stratified: StratifiedRows<'_>,
    control: &Control,
) -> Result<Result<SecretBuckets, Fault>, Cancelled> {
    let rows = stratified.rows;
    let others: Vec<Attr> = buckets.others().collect();
    let codes = |attr: Attr| rows.table.column(attr).codes.iter().collect::<Vec<u32>>();
    let sensitive = SensitiveCodesByRow {
        primary: codes(buckets.primary),
        others: others.iter().map(|attr| codes(*attr)).collect(),
    };
    let l: Vec<u64> = others.iter().map(|attr| buckets.l[attr]).collect();
    let strata = groups_by_primary(buckets, &sensitive, &stratified, control)?;
    // merging of groups only lowers the number of pairs that are examined in the end
    let found = pairs(&sensitive, &strata.concat(), control)?;
    if found > MAX_GROUP_PAIRS {
        return Ok(Err(too_many_pairs(found)));
    }
    let mut noisy = NoisySets { groups: Vec::new(), sets: Vec::new(), noise: Vec::new(), merged: 0 };
    let mut stream = rows.streams.stream("decompose/noise");
    for groups in strata {
        match swap_noise(&sensitive, groups, &l, &mut stream, control) {
            Ok(of_stratum) => {
                noisy.groups.extend(of_stratum.groups);
                noisy.sets.extend(of_stratum.sets);
            }
            Err(NoiseError::Cancelled) => return Err(Cancelled),
            Err(NoiseError::TooFew { attribute }) => {
                return Ok(Err(too_few(spec, others[attribute], l[attribute])));
            }
        }
    }
    let truth = sets_of(&sensitive, &noisy.groups);
    let has_noise = |at: usize| noisy.sets.iter().zip(&truth).any(|(sets, truth)| sets[at] != truth[at]);
    let published = PublishedBuckets {
        sensitive: &sensitive,
        groups: &noisy.groups,
        sets: &noisy.sets,
        possible: PossibleTuples::new(&sensitive, &noisy.groups, &noisy.sets, control)?,
        l: &l,
        noisy: (0..others.len()).map(has_noise).collect(),
        control,
    };
    let (left_out, possible) = published.suppressed(spec.suppress_chain)?;
    let breaches = breaches(&possible, &l, MIN_POSSIBLE_VALUES);
    let mut bounded = AttrSet::one(buckets.primary);
    let mut repeat_free = BTreeMap::new();
    for (at, &attr) in others.iter().enumerate() {
        repeat_free.insert(attr, published.repeat_free(&possible, at));
        if published.is_bounded(&possible, at) {
            bounded = bounded.with(attr);
        }
    }
    let with_noise = others.iter().zip(&published.noisy).filter(|(_, noisy)| **noisy).map(|(attr, _)| *attr).collect();
    let (groups, sets) = (noisy.groups, noisy.sets);
    Ok(Ok(SecretBuckets { left_out, noisy: with_noise, bounded, repeat_free, breaches, groups, sets }))
}

/// For each stratum, groups of rows by primary values, with few repeated values of the others.
fn groups_by_primary(
    buckets: &DecomposedTable,
    sensitive: &SensitiveCodesByRow,
    StratifiedRows { rows: PlanRows { table, streams, .. }, strata }: &StratifiedRows<'_>,
    control: &Control,
) -> Result<Vec<RowsByGroup>, Cancelled> {
    let l = buckets.l.get(&buckets.primary).copied().unwrap_or(1);
    let mut assign = streams.stream(&format!("assign/{}", buckets.primary.0));
    let mut pick = streams.stream("decompose/pick");
    let column = SensitiveCodes::from(table.column(buckets.primary));
    let mut found = Vec::new();
    for rows in strata.split().iter() {
        let values = if strata.len() == 1 { column.clone() } else { column.of_rows(rows, ComparedRows::None) };
        let assigned = largest_l(values, l, &mut assign, control)?;
        let mut groups = groups_of(&assigned.bucket_of, assigned.buckets);
        groups.iter_mut().flatten().for_each(|row| *row = rows[*row as usize]);
        if !sensitive.others.is_empty() {
            let picked = fresh_pick(sensitive, &groups, &mut pick, control)?;
            groups = fresh_swap(sensitive, picked, control)?;
        }
        found.push(groups);
    }
    Ok(found)
}

/// Buckets with their published sets, as readers of both tables examine them.
struct PublishedBuckets<'a> {
    sensitive: &'a SensitiveCodesByRow,
    groups: &'a RowsByGroup,
    sets: &'a PublishedSets,
    /// Possible tuples for readers of all joint rows, who do not know which attributes have no noise.
    possible: PossibleTuples<'a>,
    /// Diversity of each other attribute.
    l: &'a [u64],
    /// Whether each other attribute has noise.
    noisy: Vec<bool>,
    control: &'a Control,
}

impl<'a> PublishedBuckets<'a> {
    /// Primary values to leave out of the joint table, and the tuples that stay possible.
    fn suppressed(&self, suppress_chain: bool) -> Result<(BTreeSet<u32>, PossibleTuples<'a>), Cancelled> {
        let mut left_out = BTreeSet::new();
        if suppress_chain {
            left_out = self.chained(&self.possible, &left_out);
        }
        loop {
            let possible = self.covering(&left_out)?;
            let more = self.chained(&possible, &left_out);
            if !suppress_chain || more.is_empty() {
                return Ok((left_out, possible));
            }
            left_out.extend(more);
        }
    }

    /// Possible tuples for readers who know which attributes have no noise.
    fn covering(&self, left_out: &BTreeSet<u32>) -> Result<PossibleTuples<'a>, Cancelled> {
        let exact: Vec<bool> = self.noisy.iter().map(|noisy| !noisy).collect();
        self.possible.clone().without(left_out).covering(&exact, self.control)
    }

    /// Primary values to leave out next: those that reveal a value.
    ///
    /// A primary value that is left out already may still reveal one, as the rest of its bucket cannot have it. Then the primary
    /// values of the rest are left out.
    fn chained(&self, possible: &PossibleTuples<'_>, left_out: &BTreeSet<u32>) -> BTreeSet<u32> {
        let found: Vec<InferredBreach> = breaches(possible, self.l, MIN_POSSIBLE_VALUES);
        let mut more = BTreeSet::new();
        for breach in found.iter().filter(|breach| breach.kind == BreachKind::Chain) {
            match breach.primary {
                Some(primary) if left_out.contains(&primary) => {
                    let rows = &self.groups[breach.group];
                    more.extend(rows.iter().map(|&row| self.sensitive.primary[row as usize]));
                }
                primary => more.extend(primary),
            }
        }
        more.retain(|primary| !left_out.contains(primary));
        more
    }

    /// Largest number of rows of a bucket that can have the same value. Without noise, each published value is that of some row.
    fn most_repeated(&self, possible: &PossibleTuples<'_>, group: usize, at: usize) -> usize {
        let most = possible.most_alike(group, at);
        if self.noisy[at] {
            return most;
        }
        let rows = self.groups[group].len();
        most.min((rows + 1).saturating_sub(self.sets[group][at].len()))
    }

    /// Number of buckets in which no two rows can have the same value of an attribute.
    fn repeat_free(&self, possible: &PossibleTuples<'_>, at: usize) -> u64 {
        (0..self.groups.len()).filter(|group| self.most_repeated(possible, *group, at) <= 1).count() as u64
    }

    /// Whether no value of an attribute can exceed its share of a bucket.
    fn is_bounded(&self, possible: &PossibleTuples<'_>, at: usize) -> bool {
        let holds = |group: usize| {
            let most = self.most_repeated(possible, group, at) as u128;
            most * u128::from(self.l[at]) <= self.groups[group].len() as u128
        };
        (0..self.groups.len()).all(holds)
    }
}

/// The faults of attributes of which a value can be inferred.
fn inference_faults(
    spec: &DecomposeSpec,
    buckets: &DecomposedTable,
    drawn: &SecretBuckets,
    names: &[String],
) -> Vec<Fault> {
    let fault = |attr: Attr| {
        let inferences = buckets.inferences_in_words(drawn, attr, names)?;
        let detail = format!(
            "{inferences}; suppress_chain prevents the first kind, versatile all; \"breaches\": \"report\" publishes with a warning"
        );
        Some(Fault::new(pointer_of(spec, attr), Kind::CanBeConcluded, detail))
    };
    buckets.others().filter_map(fault).collect()
}

/// The pointer of the rule of a sensitive attribute.
fn pointer_of(spec: &DecomposeSpec, attr: Attr) -> &str {
    let rule = spec.rules.iter().find(|rule| rule.protects.attributes().contains(attr));
    rule.map_or("/method/sensitive", |rule| rule.pointer.as_str())
}

/// Fault of sensitive attributes with too many joint values.
fn too_many_pairs(found: u64) -> Fault {
    let detail = "the sensitive attributes have too many values together to see what can be concluded of them";
    let fault = Fault::new("/method/sensitive", Kind::WorkLimit, detail);
    fault.with("limit", MAX_GROUP_PAIRS).with("found", found)
}

/// Fault of an l that exceeds the number of values: not even one bucket of all rows has l values.
pub(super) fn too_few(spec: &DecomposeSpec, attr: Attr, l: u64) -> Fault {
    Fault::new(
        pointer_of(spec, attr),
        Kind::NoNoise,
        format!("no bucket can list {l} values, not even one of all rows that it may hold"),
    )
}

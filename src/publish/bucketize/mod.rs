//! Bucketization with a threshold for each sensitive value (F'-privacy of Wang, Wang, Fu and Wong): frequent values may take more of
//! a bucket than rare ones, and buckets of several sizes keep more of the table than equal ones.
//!
//! What is decided depends on how often each sensitive value occurs, and on nothing else: the published parts tell that too.

mod capped;
mod columns;
mod counterfeits;
mod flow;
mod multi;
mod optimal;
mod place;
mod share;
mod sizes;

#[cfg(test)]
mod tests;

pub(super) use capped::capped;
pub use flow::fill;
pub use multi::{FilledBuckets, MoveOrder, MultiSizeSearch};
pub use place::place;
pub use share::{ValueClass as ValueKind, ValueThreshold, kinds, shares, unknown_values};
pub use sizes::{Pruning, SizeCount, SizePairs, TwoSizes, loss, one_size, two_are_valid, two_sizes};

use std::collections::BTreeMap;
use std::sync::Arc;

use super::assign::{BucketAssignment, SensitiveCodes};
use super::dispatch::Method;
use super::error::PlanError;
use super::input::PlanInput;
use super::published::Published;
use super::{Bucketized, Decision, Design, DesignedTable, anatomy};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Codes, Table};
use crate::privacy::IneligibilityReason;
use crate::problem::{Fault, Kind};
use crate::publication::{MethodDetails, Protected, Thresholds};
use crate::random::{RandomStream, RandomStreams};
use crate::spec::{BucketSizeChoice, BucketizeSpec};
use optimal::SolverProposal;

/// So many steps the search for sizes may take.
const MOST_WORK: u64 = 1 << 32;
/// So many pairs of a kind of value and a size are filled exactly.
const MAX_FILL_STEPS: u64 = 50_000;

/// The method `bucketize`.
pub struct Bucketize;

/// The buckets as they are decided before rows are dealt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedBuckets {
    /// How much of a bucket each value may take.
    pub thresholds: Thresholds,
    /// What the buckets of each size hold; nothing where there are faults.
    pub filled: Vec<FilledBuckets>,
    /// No buckets lose less, where that was asked for and proved.
    pub lower_bound: Option<u64>,
    /// How many counterfeits each bucket gets.
    pub counterfeits: Option<u32>,
    /// Why there are no buckets.
    pub faults: Vec<Fault>,
    /// How many of the values that have thresholds of their own do not occur.
    pub unknown_values: usize,
    /// How many counterfeits have a value that some row of their bucket makes unlikely, for want of others.
    pub seen_through: u64,
}

impl PlannedBuckets {
    /// How many buckets of each size there are, sizes rising.
    #[must_use]
    pub fn setting(&self) -> Vec<SizeCount> {
        let mut setting: BTreeMap<u64, u64> = BTreeMap::new();
        for FilledBuckets { class: (size, buckets), .. } in &self.filled {
            *setting.entry(*size).or_default() += buckets;
        }
        setting.into_iter().collect()
    }

    /// What a publication says of the buckets.
    #[must_use]
    pub fn method_details(&self) -> MethodDetails {
        let setting = self.setting();
        let loss = loss(&setting);
        MethodDetails::Bucketize { thresholds: self.thresholds.clone(), setting, loss, lower_bound: self.lower_bound }
    }

    /// Draws the bucket of each row.
    pub(super) fn draw(
        &self,
        values: &SensitiveCodes<'_>,
        stream: &mut RandomStream,
        control: &Control,
    ) -> Result<BucketAssignment, Cancelled> {
        place(values.codes(), values.counts().len(), &self.filled, stream, control)
    }

    /// Draws the counterfeits of each bucket, where there are some: a bucket and a code each. Rows of `table` stand in `bucket_of`.
    pub(super) fn counterfeits(
        &self,
        table: &Table,
        sensitive: Attr,
        (bucket_of, buckets): (&[u32], u32),
        stream: &mut RandomStream,
        control: &Control,
    ) -> Result<Option<Vec<(u32, u32)>>, Cancelled> {
        let Some(number) = self.counterfeits else { return Ok(None) };
        let drawn = counterfeits::draw(table, sensitive, (bucket_of, buckets), number, stream, control)?;
        Ok(Some(drawn.0))
    }
}

impl Method for Bucketize {
    type Spec = BucketizeSpec;
    type Plan = Design;

    fn plan(spec: &BucketizeSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
        let mut rule = anatomy::designed_rule(&spec.rule, input);
        // further published attributes stand on the side of the quasi-identifiers, where the buckets protect beside them too
        let attributes = AttrSet::first(input.counts.attributes());
        let mut bucketized = Bucketized::on(attributes, rule.rule.sensitive, vec![rule.rule.guarantee]);
        let planned = match &input.rows {
            Some(rows) => {
                let column = rows.table.column(rule.rule.sensitive);
                let counts = column.counts();
                let shares = share::shares(&spec.thresholds, &column.domain, &counts);
                let mut planned = SizePlanner { spec, counts: &counts, control }.plan(shares)?;
                planned.unknown_values = share::unknown_values(&spec.thresholds, &column.domain);
                if let Some(number) = planned.counterfeits.filter(|_| planned.faults.is_empty()) {
                    // the very ones that come out
                    let attr = rule.rule.sensitive;
                    let mut stream = rows.streams.stream(&bucketized.label());
                    let dealt = planned.draw(&SensitiveCodes::from(column), &mut stream, control)?;
                    let mut stream = rows.streams.stream(&counterfeits_label(attr));
                    let buckets = (&dealt.bucket_of[..], dealt.buckets);
                    let drawn = counterfeits::draw(rows.table, attr, buckets, number, &mut stream, control)?;
                    planned.seen_through = drawn.1;
                }
                Some(planned)
            }
            None => None,
        };
        if let Some(planned) = planned {
            let largest_l = rule.largest_l;
            if planned.faults.iter().any(|fault| fault.kind == Kind::RuleIneligible) {
                rule.ineligible.get_or_insert(IneligibilityReason { requested: rule.rule.guarantee, largest_l });
            }
            bucketized.planned = Some(Arc::new(planned));
        }
        let table = DesignedTable::new(attributes, Some(bucketized));
        let (used_dependencies, decision) = (Vec::new(), Decision::ByRules);
        let mut design = Design { tables: vec![table], rules: vec![rule], used_dependencies, decision };
        design.judge();
        Ok(design)
    }

    fn publish(
        plan: &Design,
        input: &PlanInput<'_>,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        plan.execute(input, true, table, streams, control)
    }
}

/// Buckets, and what any lose at least, where that was asked for; or why there are none.
type SizingResult = Result<(Vec<FilledBuckets>, Option<u64>), Fault>;

/// Decides the buckets for values that occur so often.
struct SizePlanner<'a> {
    spec: &'a BucketizeSpec,
    counts: &'a [u64],
    control: &'a Control,
}

impl SizePlanner<'_> {
    fn plan(&self, shares: Result<Vec<ValueThreshold>, u64>) -> Result<PlannedBuckets, Cancelled> {
        let mut planned = PlannedBuckets {
            thresholds: self.spec.thresholds.clone(),
            filled: Vec::new(),
            lower_bound: None,
            counterfeits: self.spec.counterfeits,
            faults: Vec::new(),
            unknown_values: 0,
            seen_through: 0,
        };
        let found = match shares {
            Ok(shares) => self.buckets(&shares)?,
            Err(missing) => {
                let detail = format!("{missing} values of the sensitive attribute have no threshold");
                Err(Fault::new("/method/thresholds", Kind::ThresholdMissing, detail).with("missing", missing))
            }
        };
        match found.and_then(|found| self.room_for_counterfeits(found)) {
            Ok((filled, lower_bound)) => (planned.filled, planned.lower_bound) = (filled, lower_bound),
            Err(fault) => planned.faults.push(fault),
        }
        Ok(planned)
    }

    /// The buckets, and a bound on what any lose, where one is asked for.
    fn buckets(&self, shares: &[ValueThreshold]) -> Result<SizingResult, Cancelled> {
        let (spec, counts, control) = (self.spec, self.counts, self.control);
        let kinds = kinds(counts, shares);
        if !kinds.is_empty() && kinds.iter().all(|kind| kind.share.is_all()) {
            let detail = "every value that occurs may take all of a bucket: state a threshold below 1";
            return Ok(Err(Fault::new("/method/thresholds", Kind::VacuousGuarantee, detail)));
        }
        let too_frequent = share::too_frequent(&kinds);
        if too_frequent > 0 {
            let detail = format!(
                "{too_frequent} values of the sensitive attribute are more frequent in the table than their thresholds allow"
            );
            let fault = Fault::new("/method/thresholds", Kind::RuleIneligible, detail);
            let largest_l = share::rows(&kinds) / counts.iter().max().copied().unwrap_or(0).max(1);
            let fault = fault.with("requested", "thresholds").with("largest_l", largest_l);
            return Ok(Err(fault.with("too_frequent", too_frequent)));
        }
        let smallest = kinds.iter().map(|kind| kind.share.smallest_bucket()).min().unwrap_or(1);
        let (m, most) = (spec.min_size.unwrap_or(smallest), spec.max_size);
        let infeasible = |detail: String, pointer: &str| Err(Fault::new(pointer, Kind::InfeasibleSizes, detail));
        let too_large = || {
            let detail = format!(
                "no buckets of {m} to {most} rows keep the thresholds of all values; a larger max_size may, and one of all rows does"
            );
            infeasible(detail, "/method/max_size")
        };
        let work = sizes::work(kinds.len(), m, most);
        let too_much = |pointer: &str, limit: u64, found: u64| {
            let detail = "the sizes and the values are too many to be searched; allow fewer sizes, or list them";
            Ok(Err(Fault::new(pointer, Kind::WorkLimit, detail).with("limit", limit).with("found", found)))
        };
        if work > MOST_WORK && !matches!(spec.sizes, BucketSizeChoice::Listed(_)) {
            return too_much("/method/max_size", MOST_WORK, work);
        }
        let multi = MultiSizeSearch { shares, m, most, order: MoveOrder::Falling, control };
        Ok(match &spec.sizes {
            BucketSizeChoice::One => {
                one_size(&kinds, m, most).map_or_else(too_large, |one| Ok((multi::fill_two(counts, shares, one), None)))
            }
            BucketSizeChoice::Two => two_sizes(&kinds, m, most, Pruning::Full, control)?
                .map_or_else(too_large, |two| Ok((multi::fill_two(counts, shares, two), None))),
            BucketSizeChoice::Multi => multi.best(counts)?.0.map_or_else(too_large, |filled| Ok((filled, None))),
            BucketSizeChoice::Optimal => {
                let variables = optimal::variables(&kinds, m, most);
                if variables > optimal::MAX_VARIABLES {
                    return too_much("/method/sizes", optimal::MAX_VARIABLES, variables);
                }
                let (many, proved) = multi.best(counts)?;
                let known: Option<Vec<SizeCount>> =
                    many.as_ref().map(|many| many.iter().map(|filled| filled.class).collect());
                let proposal = if many.as_ref().map(|many| FilledBuckets::loss(many)) == proved && proved.is_some() {
                    SolverProposal::default()
                } else {
                    optimal::propose(&kinds, (m, most), known.as_deref(), control)?
                };
                // what floats propose is believed where it can be filled
                let proposed = match &proposal.setting {
                    Some(setting) => fill(counts, shares, setting, control)?,
                    None => None,
                };
                let best = many.into_iter().chain(proposed).min_by_key(|filled| FilledBuckets::loss(filled));
                best.map_or_else(too_large, |filled| {
                    let bound = proposal.lower_bound.max(proved).map(|bound| bound.min(FilledBuckets::loss(&filled)));
                    Ok((filled, bound))
                })
            }
            BucketSizeChoice::Listed(setting) => {
                let pairs = (kinds.len() * setting.len()) as u64;
                if pairs > MAX_FILL_STEPS {
                    return too_much("/method/sizes", MAX_FILL_STEPS, pairs);
                }
                let held: u128 = setting.iter().map(|&(size, buckets)| u128::from(size) * u128::from(buckets)).sum();
                let rows = share::rows(&kinds);
                if held != u128::from(rows) {
                    let detail = format!("the listed buckets hold {held} rows, and the table has {rows}");
                    return Ok(infeasible(detail, "/method/sizes"));
                }
                let detail = "the listed buckets cannot be filled so that all values keep their thresholds";
                fill(counts, shares, setting, control)?
                    .map_or_else(|| infeasible(detail.to_owned(), "/method/sizes"), |filled| Ok((filled, None)))
            }
        })
    }

    /// Whether each bucket lacks enough values to take its counterfeits.
    fn room_for_counterfeits(&self, (filled, bound): (Vec<FilledBuckets>, Option<u64>)) -> SizingResult {
        let Some(number) = self.spec.counterfeits else { return Ok((filled, bound)) };
        let values = self.counts.iter().filter(|count| **count > 0).count() as u64;
        let in_bucket = |filled: &FilledBuckets| {
            let occurring = filled.counts.iter().filter(|count| **count > 0).count() as u64;
            occurring.min(filled.class.0)
        };
        let most = filled.iter().map(in_bucket).max().unwrap_or(0);
        if most + u64::from(number) > values {
            let detail = "a bucket may hold so many values that there are not enough others for its counterfeits";
            return Err(Fault::new("/method/counterfeits", Kind::DomainTooSmall, detail));
        }
        Ok((filled, bound))
    }
}

/// The codes of a column, and of counterfeits behind it.
pub(super) fn with_counterfeits(codes: &Codes, values: usize, counterfeits: &[(u32, u32)]) -> Codes {
    let all: Vec<u32> = codes.iter().chain(counterfeits.iter().map(|(_, code)| *code)).collect();
    Codes::collect(values, all.into_iter())
}

/// The stream of counterfeits of an attribute.
pub(super) fn counterfeits_label(attr: Attr) -> String {
    format!("counterfeits/{}", attr.0)
}

/// The attribute that a bucketized table protects by itself.
pub(super) fn protected(bucketized: &Bucketized) -> Option<Attr> {
    match bucketized.guards.first()?.protects {
        Protected::Attribute(attr) => Some(attr),
        Protected::Joint(_) | Protected::Rows => None,
    }
}

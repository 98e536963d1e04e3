//! Choice of the sizes of buckets, and of the values in them.

use super::filled::FilledBuckets;
use super::flow::{MAX_FILL_STEPS, fill};
use super::multi::{MoveOrder, MultiSizeSearch, fill_two};
use super::optimal::{self, SolverProposal};
use super::planned::PlannedBuckets;
use super::share::{self, ValueClass, ValueThreshold, kinds};
use super::sizes::{self, MAX_SEARCH_STEPS, Pruning, one_size, two_sizes};
use crate::control::{Cancelled, Control};
use crate::microdata::Column;
use crate::privacy::links::Strata;
use crate::problem::{Fault, Kind};
use crate::publication::SizeCount;
use crate::spec::{BucketSizeChoice, BucketizeSpec};

/// Buckets with the values in them.
struct SizedBuckets {
    filled: Vec<FilledBuckets>,
    /// Proved lower bound of the loss, if one was requested.
    lower_bound: Option<u64>,
}

impl From<Vec<FilledBuckets>> for SizedBuckets {
    fn from(filled: Vec<FilledBuckets>) -> Self {
        Self { filled, lower_bound: None }
    }
}

/// The buckets, or the fault for which there are none.
type SizingResult = Result<SizedBuckets, Fault>;

/// Largest work of a trial of sizes.
const MAX_TRIAL_STEPS: u64 = 1 << 27;

/// The faults of the sizes of buckets for the values of a column: those of the plan, where no dependency makes strata. `None` where
/// they would take too long to find.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn try_sizes(spec: &BucketizeSpec, column: &Column, control: &Control) -> Result<Option<Vec<Fault>>, Cancelled> {
    let counts = column.counts();
    let shares = share::shares(&spec.thresholds, &column.domain, &counts);
    let planner = SizePlanner { spec, counts: &counts, control };
    if let Ok(range) = shares.as_deref().map(|shares| planner.range(shares))
        && planner.threshold_fault(&range.kinds).is_none()
        && let Some(fault) = range.work_fault(&spec.sizes)
    {
        return Ok(Some(vec![fault]));
    }
    let sizes = match &spec.sizes {
        // what is found faster is as feasible, and may hold other values
        BucketSizeChoice::Optimal if spec.counterfeits.is_some() => return Ok(None),
        BucketSizeChoice::Optimal => BucketSizeChoice::Multi,
        other => other.clone(),
    };
    let values = counts.iter().filter(|count| **count > 0).count();
    let is_listed = matches!(sizes, BucketSizeChoice::Listed(_));
    if !is_listed && sizes::work(values, spec.min_size.unwrap_or(1), spec.max_size) > MAX_TRIAL_STEPS {
        return Ok(None);
    }
    let spec = BucketizeSpec { sizes, ..spec.clone() };
    Ok(Some(SizePlanner { spec: &spec, counts: &counts, control }.plan(shares)?.faults))
}

/// Planner of the buckets for the frequencies of values.
pub(super) struct SizePlanner<'a> {
    pub(super) spec: &'a BucketizeSpec,
    pub(super) counts: &'a [u64],
    pub(super) control: &'a Control,
}

/// Values of the sensitive attribute, and the sizes that buckets may have.
struct SizeRange<'a> {
    /// Threshold of each code.
    shares: &'a [ValueThreshold],
    kinds: Vec<ValueClass>,
    smallest: u64,
    largest: u64,
}

impl SizePlanner<'_> {
    /// Plans the buckets. `shares` are the thresholds of codes, or the number of values without one.
    pub(super) fn plan(&self, shares: Result<Vec<ValueThreshold>, u64>) -> Result<PlannedBuckets, Cancelled> {
        let mut planned = self.empty();
        let found = match shares {
            Ok(shares) => self.buckets(&shares)?,
            Err(missing) => {
                let detail = format!("{missing} values of the sensitive attribute have no threshold");
                Err(Fault::new("/method/thresholds", Kind::ThresholdMissing, detail).with("missing", missing))
            }
        };
        match found.and_then(|found| self.room_for_counterfeits(found)) {
            Ok(SizedBuckets { filled, lower_bound }) => (planned.filled, planned.lower_bound) = (filled, lower_bound),
            Err(fault) => planned.faults.push(fault),
        }
        Ok(planned)
    }

    /// A plan without buckets.
    fn empty(&self) -> PlannedBuckets {
        PlannedBuckets {
            thresholds: self.spec.thresholds.clone(),
            filled: Vec::new(),
            in_strata: Vec::new(),
            lower_bound: None,
            counterfeits: self.spec.counterfeits,
            faults: Vec::new(),
            seen_through: 0,
        }
    }

    /// What is searched, where each code has a threshold.
    fn range<'s>(&self, shares: &'s [ValueThreshold]) -> SizeRange<'s> {
        let kinds = kinds(self.counts, shares);
        let smallest = kinds.iter().map(|kind| kind.share.smallest_bucket()).min().unwrap_or(1);
        SizeRange { shares, kinds, smallest: self.spec.min_size.unwrap_or(smallest), largest: self.spec.max_size }
    }

    fn buckets(&self, shares: &[ValueThreshold]) -> Result<SizingResult, Cancelled> {
        let range = self.range(shares);
        if let Some(fault) = self.threshold_fault(&range.kinds).or_else(|| range.work_fault(&self.spec.sizes)) {
            return Ok(Err(fault));
        }
        let (smallest, largest) = (range.smallest, range.largest);
        let filled = match &self.spec.sizes {
            BucketSizeChoice::One => {
                one_size(&range.kinds, smallest, largest).map(|one| fill_two(self.counts, shares, one))
            }
            BucketSizeChoice::Two => two_sizes(&range.kinds, smallest, largest, Pruning::Full, self.control)?
                .map(|two| fill_two(self.counts, shares, two)),
            BucketSizeChoice::Multi => self.search(&range).best(self.counts)?.0,
            BucketSizeChoice::Optimal => return self.optimal(&range),
            BucketSizeChoice::Listed(setting) => return self.listed(&range, setting),
        };
        Ok(filled.map(SizedBuckets::from).ok_or_else(|| range.fault()))
    }

    fn search<'a>(&'a self, range: &SizeRange<'a>) -> MultiSizeSearch<'a> {
        let SizeRange { shares, smallest, largest, .. } = *range;
        MultiSizeSearch { shares, m: smallest, most: largest, order: MoveOrder::Falling, control: self.control }
    }

    /// Fault of thresholds that bound nothing, or that the table exceeds.
    fn threshold_fault(&self, kinds: &[ValueClass]) -> Option<Fault> {
        if !kinds.is_empty() && kinds.iter().all(|kind| kind.share.is_all()) {
            let detail = "every value that occurs may take all of a bucket: state a threshold below 1";
            return Some(Fault::new("/method/thresholds", Kind::VacuousGuarantee, detail));
        }
        let too_frequent = share::too_frequent(kinds);
        if too_frequent == 0 {
            return None;
        }
        let detail = format!(
            "{too_frequent} values of the sensitive attribute are more frequent in the table than their thresholds allow"
        );
        let largest_l = share::rows(kinds) / self.counts.iter().max().copied().unwrap_or(0).max(1);
        let fault = Fault::new("/method/thresholds", Kind::RuleIneligible, detail);
        let fault = fault.with("requested", "thresholds").with("largest_l", largest_l);
        Some(fault.with("too_frequent", too_frequent))
    }

    /// The buckets of the smallest loss that the searches find, with the proved lower bound.
    fn optimal(&self, range: &SizeRange<'_>) -> Result<SizingResult, Cancelled> {
        let (many, proved) = self.search(range).best(self.counts)?;
        let known: Option<Vec<SizeCount>> = many.as_ref().map(|many| many.iter().map(|filled| filled.class).collect());
        let is_optimal = proved.is_some() && many.as_ref().map(|many| FilledBuckets::loss(many)) == proved;
        let proposal = match is_optimal {
            true => SolverProposal::default(),
            false => optimal::propose(&range.kinds, range.smallest, range.largest, known.as_deref(), self.control)?,
        };
        // the solver computes with floats: its proposal counts if it can be filled
        let proposed = match &proposal.setting {
            Some(setting) => fill(self.counts, range.shares, setting, self.control)?,
            None => None,
        };
        let best = many.into_iter().chain(proposed).min_by_key(|filled| FilledBuckets::loss(filled));
        let Some(filled) = best else { return Ok(Err(range.fault())) };
        let bound = proposal.lower_bound.max(proved).map(|bound| bound.min(FilledBuckets::loss(&filled)));
        Ok(Ok(SizedBuckets { filled, lower_bound: bound }))
    }

    /// The buckets of listed sizes.
    fn listed(&self, range: &SizeRange<'_>, setting: &[SizeCount]) -> Result<SizingResult, Cancelled> {
        let pairs = (range.kinds.len() * setting.len()) as u64;
        if pairs > MAX_FILL_STEPS {
            return Ok(Err(too_much_work("/method/sizes", MAX_FILL_STEPS, pairs)));
        }
        let held: u128 = setting.iter().map(|class| class.wide_rows()).sum();
        let rows = share::rows(&range.kinds);
        if held != u128::from(rows) {
            let detail = format!("the listed buckets hold {held} rows, and the table has {rows}");
            return Ok(Err(infeasible("/method/sizes", detail)));
        }
        let detail = "the listed buckets cannot be filled so that all values keep their thresholds";
        let filled = fill(self.counts, range.shares, setting, self.control)?;
        Ok(filled.map(SizedBuckets::from).ok_or_else(|| infeasible("/method/sizes", detail)))
    }

    /// Checks that enough values are absent from each bucket for its counterfeits.
    fn room_for_counterfeits(&self, sized: SizedBuckets) -> SizingResult {
        let Some(number) = self.spec.counterfeits else { return Ok(sized) };
        let values = self.counts.iter().filter(|count| **count > 0).count() as u64;
        let in_bucket = |filled: &FilledBuckets| {
            let occurring = filled.counts.iter().filter(|count| **count > 0).count() as u64;
            occurring.min(filled.class.size)
        };
        let most = sized.filled.iter().map(in_bucket).max().unwrap_or(0);
        if most + u64::from(number) > values {
            let detail = "a bucket may hold so many values that there are not enough others for its counterfeits";
            return Err(Fault::new("/method/counterfeits", Kind::DomainTooSmall, detail));
        }
        Ok(sized)
    }
}

/// Planner of the buckets of every stratum by itself, with the thresholds of the whole table.
pub(super) struct StratifiedPlanner<'a> {
    pub(super) spec: &'a BucketizeSpec,
    pub(super) column: &'a Column,
    pub(super) strata: &'a Strata,
    pub(super) control: &'a Control,
}

impl StratifiedPlanner<'_> {
    /// Plans the buckets: those of all strata, whose losses and lower bounds add.
    pub(super) fn plan(&self, shares: &Result<Vec<ValueThreshold>, u64>) -> Result<PlannedBuckets, Cancelled> {
        let values = self.column.domain.len();
        let mut all = SizePlanner { spec: self.spec, counts: &vec![0; values], control: self.control }.empty();
        all.lower_bound = Some(0);
        let mut first = None;
        for rows in self.strata.split().iter() {
            let mut counts = vec![0; values];
            rows.iter().for_each(|&row| counts[self.column.codes.get(row as usize) as usize] += 1);
            let planner = SizePlanner { spec: self.spec, counts: &counts, control: self.control };
            let mut planned = planner.plan(shares.clone())?;
            if let Some(fault) = planned.faults.pop() {
                first.get_or_insert(fault);
            }
            all.in_strata.push(planned.filled.len());
            all.filled.append(&mut planned.filled);
            all.lower_bound = all.lower_bound.zip(planned.lower_bound).map(|(a, b)| a + b);
        }
        if let Some(fault) = first {
            // their number is a count of the data, which not every caller may see
            let detail = format!("in some strata of a dependency: {}", fault.detail);
            all.faults.push(Fault { detail, ..fault });
            (all.filled, all.in_strata, all.lower_bound) = (Vec::new(), Vec::new(), None);
        }
        Ok(all)
    }
}

impl SizeRange<'_> {
    /// Fault of a search that would take too long, which takes no search to find.
    fn work_fault(&self, sizes: &BucketSizeChoice) -> Option<Fault> {
        let (kinds, is_optimal) = (&self.kinds, matches!(sizes, BucketSizeChoice::Optimal));
        let steps = sizes::work(kinds.len(), self.smallest, self.largest);
        if steps > MAX_SEARCH_STEPS && !matches!(sizes, BucketSizeChoice::Listed(_)) {
            return Some(too_much_work("/method/max_size", MAX_SEARCH_STEPS, steps));
        }
        let variables = optimal::variables(kinds, self.smallest, self.largest);
        let is_large = is_optimal && variables > optimal::MAX_VARIABLES;
        is_large.then(|| too_much_work("/method/sizes", optimal::MAX_VARIABLES, variables))
    }

    /// Fault of a range without valid buckets.
    fn fault(&self) -> Fault {
        let (smallest, largest) = (self.smallest, self.largest);
        let detail = match smallest > largest {
            true => {
                format!("the thresholds need a bucket of {smallest} rows at least, and there are {largest} at most")
            }
            false => format!(
                "no buckets of {smallest} to {largest} rows keep the thresholds of all values; a larger max_size may, and one of all \
                 rows does"
            ),
        };
        infeasible("/method/max_size", detail)
    }
}

fn infeasible(pointer: &str, detail: impl Into<String>) -> Fault {
    Fault::new(pointer, Kind::InfeasibleSizes, detail.into())
}

fn too_much_work(pointer: &str, limit: u64, found: u64) -> Fault {
    let detail = "the sizes and the values are too many to be searched; allow fewer sizes, or list them";
    Fault::new(pointer, Kind::WorkLimit, detail).with("limit", limit).with("found", found)
}

//! Eligibility of strata: whether each of them satisfies the guarantees by itself.

use super::super::eligibility::largest_l_of;
use super::super::guarantee::{OverallCounts, holds};
use super::strata::Strata;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Codes, ColumnAnnotations, Table};
use crate::publication::{Guarantee, Reference};

/// What every stratum has to satisfy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StratumDemand {
    /// The protected attributes; of several ones the joint value counts.
    pub protects: AttrSet,
    /// The bound on the inference.
    pub guarantee: Guarantee,
    /// The distribution with which distances compare.
    pub reference: Reference,
}

/// The most frequent value of a stratum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StratumCount {
    /// Number of rows with it.
    pub count: u64,
    /// Number of rows of the stratum.
    pub of: u64,
}

/// The result of the test of all strata of some attributes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StrataEligibility {
    /// The attributes of the strata.
    pub attributes: AttrSet,
    /// The strata that break a demand by themselves, rising.
    pub ineligible: Vec<u32>,
    /// Number of all strata.
    pub of: usize,
    /// The largest diversity that every stratum has; `None` without a demand on values or without rows.
    pub largest_l: Option<u64>,
    /// The stratum in which the most frequent value has the largest share; the first of several.
    pub worst: Option<StratumCount>,
}

impl StrataEligibility {
    /// Whether every stratum satisfies every demand.
    #[must_use]
    pub const fn is_eligible(&self) -> bool {
        self.ineligible.is_empty()
    }
}

/// The demands on the strata of one table, with the results so far.
pub struct StrataTests<'a> {
    table: &'a Table,
    values: Vec<(StratumDemand, ProtectedValues<'a>)>,
    tested: Vec<StrataEligibility>,
    control: &'a Control,
}

impl<'a> StrataTests<'a> {
    /// Demands on a table. k-anonymity speaks of no values and demands nothing of strata.
    #[must_use]
    pub fn new(table: &'a Table, demands: &[StratumDemand], control: &'a Control) -> Self {
        let on_values = demands.iter().filter(|demand| !matches!(demand.guarantee, Guarantee::KAnonymity { .. }));
        let values = on_values.map(|demand| (*demand, ProtectedValues::new(table, demand.protects))).collect();
        Self { table, values, tested: Vec::new(), control }
    }

    /// The table of the strata.
    #[must_use]
    pub const fn table(&self) -> &'a Table {
        self.table
    }

    /// Tests every stratum of `attributes`; a repeated question costs nothing.
    ///
    /// # Errors
    /// [`Cancelled`] when the caller cancels.
    ///
    /// # Citations
    /// docs/spec/dependencies.md#strata
    pub fn test(&mut self, attributes: AttrSet) -> Result<&StrataEligibility, Cancelled> {
        let known = self.tested.iter().position(|tested| tested.attributes == attributes);
        let at = match known {
            Some(at) => at,
            None => {
                let tested = self.test_anew(attributes)?;
                self.tested.push(tested);
                self.tested.len() - 1
            }
        };
        Ok(&self.tested[at])
    }

    fn test_anew(&self, attributes: AttrSet) -> Result<StrataEligibility, Cancelled> {
        self.control.check()?;
        let strata = Strata::new(self.table, attributes);
        let mut result =
            StrataEligibility { attributes, ineligible: Vec::new(), of: strata.len(), largest_l: None, worst: None };
        let groups = strata.split();
        let mut counter = self.counter();
        let mut until_check = Control::STRIDE;
        for (stratum, rows) in (0..).zip(groups.iter()) {
            until_check = until_check.saturating_sub(rows.len());
            if until_check == 0 {
                self.control.check()?;
                until_check = Control::STRIDE;
            }
            let mut is_eligible = true;
            for (demand, values) in &self.values {
                let bucket = counter.count(values, rows);
                result.include(&bucket, &values.annotations);
                // its own distribution is at no distance
                is_eligible &= is_relative(demand) || holds(demand.guarantee, &bucket, &values.population);
            }
            if !is_eligible {
                result.ineligible.push(stratum);
            }
        }
        Ok(result)
    }

    /// Whether the rows of a part of `stratum` satisfy every demand by themselves.
    pub(super) fn hold(&self, rows: &[u32], stratum: &StratumReferences, counter: &mut ValueCounter) -> bool {
        self.values.iter().zip(&stratum.0).all(|((demand, values), own)| {
            let reference = own.as_ref().unwrap_or(&values.population);
            holds(demand.guarantee, &counter.count(values, rows), reference)
        })
    }

    /// The references of the demands inside a stratum.
    pub(super) fn references(&self, rows: &[u32], counter: &mut ValueCounter) -> StratumReferences {
        let reference = |(demand, values): &(StratumDemand, ProtectedValues<'a>)| {
            is_relative(demand).then(|| {
                let mut counts = vec![0; values.population.counts().len()];
                counter.count(values, rows).iter().for_each(|&(code, count)| counts[code as usize] = count);
                OverallCounts::new(counts).on(values.annotations.clone())
            })
        };
        StratumReferences(self.values.iter().map(reference).collect())
    }

    pub(super) fn counter(&self) -> ValueCounter {
        let most = self.values.iter().map(|(_, values)| values.population.counts().len()).max();
        ValueCounter { counts: vec![0; most.unwrap_or(0)], seen: Vec::new() }
    }
}

impl StrataEligibility {
    /// Takes a stratum into the largest diversity and the worst share.
    fn include(&mut self, bucket: &[(u32, u64)], annotations: &ColumnAnnotations) {
        let l = largest_l_of(bucket, annotations);
        self.largest_l = Some(self.largest_l.map_or(l, |before| before.min(l)));
        let of = bucket.iter().map(|(_, count)| count).sum();
        let count = bucket.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let is_worse =
            |worst: &StratumCount| u128::from(count) * u128::from(worst.of) > u128::from(worst.count) * u128::from(of);
        if self.worst.as_ref().is_none_or(is_worse) {
            self.worst = Some(StratumCount { count, of });
        }
    }
}

/// For each demand, the distribution of the stratum where the demand compares with it.
pub(super) struct StratumReferences(Vec<Option<OverallCounts>>);

/// Whether a demand compares buckets with their stratum.
fn is_relative(demand: &StratumDemand) -> bool {
    let compares =
        matches!(demand.guarantee, Guarantee::TCloseness { .. } | Guarantee::Rho { .. } | Guarantee::Delta { .. });
    compares && demand.reference == Reference::Stratum
}

/// The value of each row of one or several protected attributes.
struct ProtectedValues<'a> {
    codes: RowCodes<'a>,
    population: OverallCounts,
    annotations: ColumnAnnotations,
}

enum RowCodes<'a> {
    Column(&'a Codes),
    Joint(Strata),
}

impl<'a> ProtectedValues<'a> {
    fn new(table: &'a Table, protects: AttrSet) -> Self {
        let single = protects.iter().next().filter(|_| protects.len() == 1);
        let joint = || {
            let strata = Strata::new(table, protects);
            let counts = strata.sizes().iter().map(|&size| u64::from(size)).collect();
            (RowCodes::Joint(strata), counts, ColumnAnnotations::default())
        };
        let column = |attr: Attr| {
            let column = table.column(attr);
            (RowCodes::Column(&column.codes), column.counts(), table.annotations(attr).clone())
        };
        let (codes, counts, annotations) = single.map_or_else(joint, column);
        Self { codes, population: OverallCounts::new(counts).on(annotations.clone()), annotations }
    }

    fn code(&self, row: u32) -> u32 {
        match &self.codes {
            RowCodes::Column(codes) => codes.get(row as usize),
            RowCodes::Joint(strata) => strata.of_row()[row as usize],
        }
    }
}

/// Room to count values in; empty between uses.
pub(super) struct ValueCounter {
    counts: Vec<u64>,
    seen: Vec<u32>,
}

impl ValueCounter {
    /// Each occurring value of `rows` with its count, values rising.
    fn count(&mut self, values: &ProtectedValues<'_>, rows: &[u32]) -> Vec<(u32, u64)> {
        for &row in rows {
            let code = values.code(row);
            let count = &mut self.counts[code as usize];
            if *count == 0 {
                self.seen.push(code);
            }
            *count += 1;
        }
        self.seen.sort_unstable();
        self.seen.drain(..).map(|code| (code, std::mem::take(&mut self.counts[code as usize]))).collect()
    }
}

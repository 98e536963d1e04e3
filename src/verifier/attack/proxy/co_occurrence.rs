use crate::control::Control;
use crate::microdata::Column;
use crate::verifier::attack::error::AttackError;

/// Maximal number of possible sensitive values for which all pairs are weighed.
///
/// Above it, only pairs that occur.
const MAX_DENSE_VALUES: usize = 256;

/// Added to observed and expected counts: pairs that are rare in both reveal little.
const SMOOTHING: f64 = 0.01;

/// Counts of pairs of values in the known half of the original.
pub(super) struct CoOccurrence {
    /// For each value of the proxy, the sensitive values of its rows in rising order, each with its count.
    sensitive_of: Vec<Vec<(u32, u32)>>,
    sensitive: Vec<f64>,
    attribute: Vec<f64>,
    rows: f64,
}

impl CoOccurrence {
    pub(super) fn new(
        sensitive: &Column,
        attribute: &Column,
        hashes: &[u64],
        control: &Control,
    ) -> Result<Self, AttackError> {
        let (mut of_sensitive, mut of_attribute) =
            (vec![0.0; sensitive.domain.len()], vec![0.0; attribute.domain.len()]);
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (row, _) in hashes.iter().enumerate().filter(|(_, hash)| **hash & 1 == 0) {
            let (s, a) = (sensitive.codes.get(row), attribute.codes.get(row));
            of_sensitive[s as usize] += 1.0;
            of_attribute[a as usize] += 1.0;
            pairs.push((a, s));
        }
        control.check()?;
        pairs.sort_unstable();
        let mut sensitive_of: Vec<Vec<(u32, u32)>> = vec![Vec::new(); attribute.domain.len()];
        for run in pairs.chunk_by(|a, b| a == b) {
            sensitive_of[run[0].0 as usize].push((run[0].1, run.len() as u32));
        }
        Ok(Self { sensitive_of, sensitive: of_sensitive, attribute: of_attribute, rows: pairs.len() as f64 })
    }

    /// Ratio of the observed count of a pair to the count expected by chance.
    fn lift(&self, sensitive: u32, attribute: u32, count: f64) -> f64 {
        let of = |counts: &[f64], code: u32| counts.get(code as usize).copied().unwrap_or(0.0);
        let chance = of(&self.sensitive, sensitive) * of(&self.attribute, attribute) / self.rows.max(1.0);
        (count + SMOOTHING) / (chance + SMOOTHING)
    }

    fn count(&self, sensitive: u32, attribute: u32) -> f64 {
        let values = self.sensitive_of.get(attribute as usize).map_or(&[][..], |values| &values[..]);
        let found = values.binary_search_by_key(&sensitive, |&(of, _)| of);
        found.map_or(0.0, |at| f64::from(values[at].1))
    }

    /// The probability of the true value, and the number of weighed pairs.
    pub(super) fn weigh(&self, sensitive: &[(u32, f64)], attribute: &[(u32, f64)], truth: u32) -> (f64, u64) {
        let (mut all, mut of_truth, mut work) = (0.0, 0.0, 0);
        let mut weigh = |value: u32, weight: f64| {
            all += weight;
            if value == truth {
                of_truth += weight;
            }
        };
        if sensitive.len() <= MAX_DENSE_VALUES {
            work += (sensitive.len() * attribute.len()) as u64;
            for &(value, share) in sensitive {
                let lifts = attribute.iter().map(|&(proxy, of)| of * self.lift(value, proxy, self.count(value, proxy)));
                weigh(value, share * lifts.sum::<f64>());
            }
        } else {
            for &(proxy, of) in attribute {
                let together = self.sensitive_of.get(proxy as usize).map_or(&[][..], |values| &values[..]);
                work += together.len() as u64 + 1;
                for &(value, count) in together {
                    let at = sensitive.binary_search_by_key(&value, |&(value, _)| value);
                    let share = at.map_or(0.0, |at| sensitive[at].1);
                    weigh(value, share * of * self.lift(value, proxy, f64::from(count)));
                }
            }
        }
        if all > 0.0 {
            return (of_truth / all, work);
        }
        // the counts contradict the tables: only the tables remain
        let shares = sensitive.iter().filter(|(value, _)| *value == truth).map(|(_, share)| share);
        (shares.sum(), work)
    }
}

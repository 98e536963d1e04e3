//! Exposure without a violated rule: predictors of sensitive attributes, and singled-out rows.
//!
//! An officer decides about both (docs/security/threat-model.md#exposure).

use std::collections::HashMap;

use ahash::RandomState;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::with_codes;

/// Minimal number of rows for each value of a predictor, on average.
///
/// Below it a prediction counts as coincidence.
const MIN_ROWS_PER_PREDICTOR: usize = 20;

/// Maximal number of reported predictors of an attribute.
const MAX_REPORTED_PREDICTORS: usize = 10;

/// Inverse of the share of rows that a choice of attributes must single out to be reported.
const SINGLED_OUT_FRACTION: u64 = 100;

/// Maximal number of examined rows, one attribute at a time.
const MAX_EXPOSURE_ROWS: u64 = 1 << 31;

/// An attribute that predicts a sensitive one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProxyAttribute {
    /// The predicted attribute.
    pub sensitive: Attr,
    /// The predicting attribute.
    pub attribute: Attr,
    /// Number of wrong guesses of the most frequent value that the predictor corrects.
    pub corrected: u64,
    /// Number of wrong guesses without the predictor.
    pub wrong: u64,
}

/// Remaining work of a search.
#[derive(Clone, Copy, Debug)]
pub struct WorkBudget {
    left: u64,
}

impl Default for WorkBudget {
    fn default() -> Self {
        Self { left: MAX_EXPOSURE_ROWS }
    }
}

impl WorkBudget {
    /// A budget of `rows` rows.
    #[must_use]
    pub const fn from_rows(rows: u64) -> Self {
        Self { left: rows }
    }

    fn take(&mut self, rows: usize) -> bool {
        let left = self.left.checked_sub(rows as u64);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    /// Whether the budget ran out, so that the search is incomplete.
    #[must_use]
    pub const fn is_spent(self) -> bool {
        self.left == 0
    }
}

/// The attributes that predict a sensitive attribute without determining it, by attribute.
///
/// A predictor has a lambda of Goodman and Kruskal of at least 1/10, and at least 20 rows for each value on average.
/// At most ten are reported, the strongest first.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
pub fn proxies(
    table: &Table,
    sensitive: AttrSet,
    effort: &mut WorkBudget,
    control: &Control,
) -> Result<Vec<ProxyAttribute>, Cancelled> {
    let rows = table.rows();
    let most = |attr: Attr| table.column(attr).counts().into_iter().max().unwrap_or(0);
    let targets: Vec<(Attr, u64)> = sensitive.iter().map(|attr| (attr, rows as u64 - most(attr))).collect();
    let mut found: Vec<Vec<ProxyAttribute>> = vec![Vec::new(); targets.len()];
    for attribute in table.attributes().iter() {
        let values = table.column(attribute).domain.len();
        if values < 2 || values > rows / MIN_ROWS_PER_PREDICTOR {
            continue;
        }
        let grouped = grouped(table, attribute, control)?;
        for (&(target, wrong), found) in targets.iter().zip(&mut found) {
            if target == attribute || wrong == 0 {
                continue;
            }
            if !effort.take(rows) {
                break;
            }
            let corrected = most_frequent_of_each(table, &grouped, target, control)? - (rows as u64 - wrong);
            if corrected < wrong && corrected * 10 >= wrong {
                found.push(ProxyAttribute { sensitive: target, attribute, corrected, wrong });
            }
        }
    }
    for found in &mut found {
        // the denominators are equal; of equally strong predictors the first attribute
        found.sort_by_key(|proxy| (std::cmp::Reverse(proxy.corrected), proxy.attribute));
        found.truncate(MAX_REPORTED_PREDICTORS);
    }
    Ok(found.into_iter().flatten().collect())
}

/// Number of distinct tuples of `attributes` in the table.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
pub fn distinct_tuples(table: &Table, attributes: AttrSet, control: &Control) -> Result<usize, Cancelled> {
    let mut groups = ValueGroups::of_all_rows(table.rows());
    for attr in attributes.iter() {
        groups.refine(table, attr, control)?;
    }
    Ok(groups.size.len())
}

/// Whether an attribute mostly determines another.
///
/// Its lambda of Goodman and Kruskal is at least 1/2, and it has at least 20 rows for each value on average.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
pub fn mostly_determines(table: &Table, from: Attr, to: Attr, control: &Control) -> Result<bool, Cancelled> {
    let rows = table.rows();
    if table.column(from).domain.len() > rows / MIN_ROWS_PER_PREDICTOR {
        return Ok(false);
    }
    let most = table.column(to).counts().into_iter().max().unwrap_or(0);
    let grouped = grouped(table, from, control)?;
    let right = most_frequent_of_each(table, &grouped, to, control)? - most;
    let wrong = rows as u64 - most;
    Ok(wrong > 0 && right * 2 >= wrong)
}

/// Rows in the order of an attribute's values, and the end of each value.
struct SortedRows {
    rows: Vec<u32>,
    ends: Vec<usize>,
}

fn grouped(table: &Table, attribute: Attr, control: &Control) -> Result<SortedRows, Cancelled> {
    let column = table.column(attribute);
    let mut ends = Vec::with_capacity(column.domain.len());
    let mut start = 0;
    for count in column.counts() {
        ends.push(start);
        start += count as usize;
    }
    let mut rows = vec![0; table.rows()];
    let mut row = 0;
    with_codes!(&column.codes, codes => for codes in codes.chunks(Control::STRIDE) {
        control.check()?;
        for &code in codes {
            let end = &mut ends[code as usize];
            rows[*end] = row;
            *end += 1;
            row += 1;
        }
    });
    Ok(SortedRows { rows, ends })
}

/// The sum over groups of the count of the most frequent value of `target`.
fn most_frequent_of_each(
    table: &Table,
    grouped: &SortedRows,
    target: Attr,
    control: &Control,
) -> Result<u64, Cancelled> {
    let column = table.column(target);
    let mut counts = vec![0_u32; column.domain.len()];
    let (mut start, mut sum) = (0, 0);
    with_codes!(&column.codes, codes => for &end in &grouped.ends {
        let group = &grouped.rows[start..end];
        let mut most = 0;
        for rows in group.chunks(Control::STRIDE) {
            control.check()?;
            for &row in rows {
                let count = &mut counts[codes[row as usize] as usize];
                *count += 1;
                most = most.max(*count);
            }
        }
        for &row in group {
            counts[codes[row as usize] as usize] = 0;
        }
        sum += u64::from(most);
        start = end;
    });
    Ok(sum)
}

/// The choices of `attributes` that single out at least one row of a hundred.
///
/// Reports every single such attribute, and one minimal choice of the others, where they single out rows together.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
pub fn singling_out(
    table: &Table,
    attributes: AttrSet,
    effort: &mut WorkBudget,
    control: &Control,
) -> Result<Vec<AttrSet>, Cancelled> {
    let rows = table.rows() as u64;
    let enough = |unique: u64| unique > 0 && unique * SINGLED_OUT_FRACTION >= rows;
    let alone =
        |attr: &Attr| enough(table.column(*attr).counts().into_iter().filter(|&count| count == 1).count() as u64);
    let single: AttrSet = attributes.iter().filter(alone).collect();
    let mut choices: Vec<AttrSet> = single.iter().map(AttrSet::one).collect();

    // starting with many values, few attributes suffice
    let mut others: Vec<Attr> = attributes.minus(single).iter().collect();
    others.sort_by_key(|&attr| std::cmp::Reverse(table.column(attr).domain.len()));
    let mut groups = ValueGroups::of_all_rows(table.rows());
    let mut chosen: Vec<Attr> = Vec::new();
    for attr in others {
        if !effort.take(table.rows()) {
            return Ok(choices);
        }
        groups.refine(table, attr, control)?;
        chosen.push(attr);
        if enough(groups.unique()) {
            break;
        }
    }
    if !enough(groups.unique()) {
        return Ok(choices);
    }
    let mut at = 0;
    while at < chosen.len() {
        let mut fewer = ValueGroups::of_all_rows(table.rows());
        for (_, &attr) in chosen.iter().enumerate().filter(|(index, _)| *index != at) {
            if !effort.take(table.rows()) {
                choices.push(chosen.into_iter().collect());
                return Ok(choices);
            }
            fewer.refine(table, attr, control)?;
        }
        if enough(fewer.unique()) {
            chosen.remove(at);
        } else {
            at += 1;
        }
    }
    choices.push(chosen.into_iter().collect());
    Ok(choices)
}

/// Rows grouped by their values of some attributes.
struct ValueGroups {
    of_row: Vec<u32>,
    size: Vec<u32>,
}

impl ValueGroups {
    fn of_all_rows(rows: usize) -> Self {
        Self { of_row: vec![0; rows], size: vec![rows as u32] }
    }

    fn refine(&mut self, table: &Table, attr: Attr, control: &Control) -> Result<(), Cancelled> {
        let codes = &table.column(attr).codes;
        let mut groups: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
        self.size.clear();
        for (row, group) in self.of_row.iter_mut().enumerate() {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let next = self.size.len() as u32;
            let refined = *groups.entry((*group, codes.get(row))).or_insert(next);
            if refined == next {
                self.size.push(0);
            }
            self.size[refined as usize] += 1;
            *group = refined;
        }
        Ok(())
    }

    fn unique(&self) -> u64 {
        self.size.iter().filter(|size| **size == 1).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Arena, AttributeType, Codes, Column, Domain};

    fn table(rows: u32, columns: &[&dyn Fn(u32) -> u32]) -> Table {
        let column = |f: &&dyn Fn(u32) -> u32| {
            let codes: Vec<u32> = (0..rows).map(f).collect();
            let len = codes.iter().max().unwrap() + 1;
            let mut arena = Arena::default();
            (0..len).for_each(|value| arena.push(format!("{value:05}").as_bytes()));
            let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
            Column { domain, codes: Codes::collect(len as usize, codes.into_iter()) }
        };
        Table::new((0..columns.len()).map(|i| i.to_string()).collect(), columns.iter().map(column).collect())
    }

    fn set(attrs: &[u8]) -> AttrSet {
        attrs.iter().map(|&a| Attr(a)).collect()
    }

    #[test]
    fn proxies_determining_or_weak_attribute_is_none() {
        // 0: four values; 1: a function of 0; 2: as 0, but for one row of eight; 3: a key; 4: independent
        let table =
            table(400, &[&|i| i % 4, &|i| i % 4 / 2, &|i| if i % 32 < 4 { 0 } else { i % 4 }, &|i| i, &|i| i / 4 % 5]);
        let found = proxies(&table, set(&[0, 1]), &mut WorkBudget::default(), &Control::default()).unwrap();
        let found: Vec<_> = found.iter().map(|p| (p.sensitive.0, p.attribute.0, (p.corrected, p.wrong))).collect();
        // of 300 rows without the most frequent value, the third attribute guesses all but 39 correctly
        let wrong = |i: &u32| i % 32 < 4 && !i.is_multiple_of(4);
        let wrong = (0..400).filter(wrong).count() as u64;
        let halved = (0..400).filter(|i| i % 32 < 4 && i % 4 > 1).count() as u64;
        assert_eq!(found, [(0, 2, (300 - wrong, 300)), (0, 1, (100, 300)), (1, 2, (200 - halved, 200))]);
        let mut effort = WorkBudget::from_rows(500);
        proxies(&table, set(&[0, 1]), &mut effort, &Control::default()).unwrap();
        assert!(effort.is_spent());
    }

    #[test]
    fn singling_out_reports_minimal_choices() {
        // 0: a key for half of the rows; 1 and 2 together a key, neither alone; 3: constant
        let table = table(400, &[&|i| if i < 200 { i } else { 200 }, &|i| i % 20, &|i| i / 20, &|i| i % 2]);
        let choices =
            |attrs: &[u8]| singling_out(&table, set(attrs), &mut WorkBudget::default(), &Control::default()).unwrap();
        assert_eq!(choices(&[0, 1, 2, 3]), [set(&[0]), set(&[1, 2])]);
        assert_eq!(choices(&[1, 3]), []);
        assert_eq!(choices(&[]), []);
    }

    proptest! {
        /// Lambda by its definition.
        #[test]
        fn lambda_is_the_share_of_errors_that_are_saved(pairs in proptest::collection::vec((0u32..3, 0u32..4), 80..120)) {
            let table = table(pairs.len() as u32, &[&|i| pairs[i as usize].0, &|i| pairs[i as usize].1]);
            let count = |x: Option<u32>, s: u32| pairs.iter().filter(|(a, b)| x.is_none_or(|x| x == *a) && *b == s).count() as u64;
            let most = |x| (0..4).map(|s| count(x, s)).max().unwrap();
            let (rows, overall) = (pairs.len() as u64, most(None));
            let each: u64 = (0..3).map(|x| most(Some(x))).sum();
            let varied = (0..3).filter(|x| pairs.iter().any(|(a, _)| a == x)).count() > 1;
            let expected = varied && each < rows && (each - overall) * 10 >= rows - overall;
            let found = proxies(&table, set(&[1]), &mut WorkBudget::default(), &Control::default()).unwrap();
            let lambdas: Vec<_> = found.iter().map(|proxy| (proxy.corrected, proxy.wrong)).collect();
            prop_assert_eq!(lambdas, if expected { vec![(each - overall, rows - overall)] } else { vec![] });
        }

        /// No reported choice has a superfluous attribute, and none is missing.
        #[test]
        fn choices_are_minimal_and_complete(cells in proptest::collection::vec(0u32..64, 20..60)) {
            let table = table(cells.len() as u32, &[&|i| cells[i as usize] % 4, &|i| cells[i as usize] / 4 % 4, &|i| cells[i as usize] / 16]);
            let enough = |attrs: AttrSet| {
                let key = |row: usize| attrs.iter().map(|a| table.column(a).codes.get(row)).collect::<Vec<_>>();
                let keys: Vec<_> = (0..cells.len()).map(key).collect();
                keys.iter().any(|key| keys.iter().filter(|other| *other == key).count() == 1)
            };
            let all = set(&[0, 1, 2]);
            let found = singling_out(&table, all, &mut WorkBudget::default(), &Control::default()).unwrap();
            prop_assert!(found.iter().all(|&choice| enough(choice) && choice.iter().all(|a| !enough(choice.without(a)))));
            let single = found.iter().fold(AttrSet::EMPTY, |all, choice| if choice.len() == 1 { all.union(*choice) } else { all });
            prop_assert_eq!(found.iter().any(|choice| choice.len() > 1), enough(all.minus(single)));
        }
    }
}

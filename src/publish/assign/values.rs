//! Sensitive codes of rows: of one attribute, or of a combination.

use std::borrow::Cow;

use ahash::AHashMap;

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Codes, Column, ColumnAnnotations, Table};

/// Codes of the rows, with the frequency of each code.
#[derive(Clone, Debug)]
pub struct SensitiveCodes<'a> {
    pub(super) codes: Cow<'a, Codes>,
    pub(super) counts: Vec<u64>,
    /// Annotations of the attribute; empty for a combination.
    pub(super) annotations: ColumnAnnotations,
    /// Frequencies in the whole table or in a stratum, for codes of some rows; distances compare buckets with them.
    pub(super) reference: Option<Vec<u64>>,
}

/// The rows whose distribution is the reference of distances: t-closeness and the like compare each bucket with it.
#[derive(Clone, Copy, Debug)]
pub enum ComparedRows<'r> {
    /// No guarantee compares.
    None,
    /// The whole table.
    All,
    /// The rows of a stratum.
    Stratum(&'r [u32]),
}

impl<'a> From<&'a Column> for SensitiveCodes<'a> {
    fn from(column: &'a Column) -> Self {
        Self {
            codes: Cow::Borrowed(&column.codes),
            counts: column.counts(),
            annotations: ColumnAnnotations::default(),
            reference: None,
        }
    }
}

impl<'a> SensitiveCodes<'a> {
    /// Codes of at least one of `attributes`; of several, each occurring combination is a value.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    ///
    /// # Panics
    /// If there is no attribute.
    pub fn new(table: &'a Table, attributes: AttrSet, control: &Control) -> Result<Self, Cancelled> {
        let mut columns = attributes.iter().map(|attr| table.column(attr));
        #[expect(clippy::expect_used)]
        let first = columns.next().expect("there is an attribute");
        let values = columns.try_fold(Self::from(first), |values, column| values.others(column, control))?;
        Ok(match attributes.iter().next() {
            Some(single) if attributes.len() == 1 => values.on(table.annotations(single)),
            _ => values,
        })
    }

    /// The same codes with annotations.
    #[must_use]
    pub fn on(self, annotations: &ColumnAnnotations) -> Self {
        Self { annotations: annotations.clone(), ..self }
    }

    /// The codes of some rows, in their order, with the rows with which distances compare them.
    ///
    /// Without annotations and distances, only occurring values have codes: a stratum then costs what its rows cost.
    #[must_use]
    pub fn of_rows(&self, rows: &[u32], compared: ComparedRows<'_>) -> SensitiveCodes<'static> {
        let mut codes: Vec<u32> = rows.iter().map(|&row| self.codes.get(row as usize)).collect();
        let mut values = self.counts.len();
        if matches!(compared, ComparedRows::None) && self.annotations == ColumnAnnotations::default() {
            let mut occurring = codes.clone();
            occurring.sort_unstable();
            occurring.dedup();
            values = occurring.len();
            for code in &mut codes {
                *code = occurring.partition_point(|value| value < code) as u32;
            }
        }
        let mut counts = vec![0; values];
        codes.iter().for_each(|&code| counts[code as usize] += 1);
        let reference = match compared {
            ComparedRows::None => None,
            ComparedRows::All => Some(self.counts.clone()),
            ComparedRows::Stratum(stratum) => {
                let mut counts = vec![0; values];
                stratum.iter().for_each(|&row| counts[self.codes.get(row as usize) as usize] += 1);
                Some(counts)
            }
        };
        SensitiveCodes {
            codes: Cow::Owned(Codes::collect(values, codes.into_iter())),
            counts,
            annotations: self.annotations.clone(),
            reference,
        }
    }

    /// Annotations of the values.
    #[must_use]
    pub const fn annotations(&self) -> &ColumnAnnotations {
        &self.annotations
    }

    /// Number of rows of each code.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Code of each row.
    #[must_use]
    pub fn codes(&self) -> &Codes {
        &self.codes
    }

    /// Combinations with the values of a column. Their codes rise with the codes of both, whatever the order of rows.
    fn others(&self, column: &Column, control: &Control) -> Result<Self, Cancelled> {
        let mut counted: AHashMap<(u32, u32), u64> = AHashMap::new();
        let pairs = || self.codes.iter().zip(column.codes.iter());
        for (row, pair) in pairs().enumerate() {
            if row.is_multiple_of(Control::STRIDE) {
                control.check()?;
            }
            *counted.entry(pair).or_default() += 1;
        }
        let mut rising: Vec<((u32, u32), u64)> = counted.into_iter().collect();
        rising.sort_unstable();
        let code: AHashMap<(u32, u32), u32> = rising.iter().zip(0..).map(|((pair, _), code)| (*pair, code)).collect();
        control.check()?;
        let rows: Vec<u32> = pairs().map(|pair| code[&pair]).collect();
        let codes = Cow::Owned(Codes::collect(rising.len(), rows.into_iter()));
        let counts = rising.into_iter().map(|(_, count)| count).collect();
        Ok(Self { codes, counts, annotations: ColumnAnnotations::default(), reference: None })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Arena, Attr, AttributeType, Domain};

    proptest! {
        #[test]
        fn combinations_have_equal_codes_if_their_values_are_equal(
            rows in prop::collection::vec([0u32..3, 0u32..4, 0u32..2], 1..40)
        ) {
            let mut arena = Arena::default();
            (0..4).for_each(|code| arena.push(format!("v{code}").as_bytes()));
            let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
            let codes = |at: usize| Codes::collect(4, rows.iter().map(move |row| row[at]));
            let columns = (0..3).map(|at| Column { domain: Arc::clone(&domain), codes: codes(at) }).collect();
            let table = Table::new((0..3).map(|i| i.to_string()).collect(), columns);
            let joint = SensitiveCodes::new(&table, [Attr(0), Attr(2)].into_iter().collect(), &Control::default()).unwrap();
            let key = |row: usize| (rows[row][0], rows[row][2]);
            for a in 0..rows.len() {
                prop_assert_eq!(joint.counts[joint.codes.get(a) as usize], (0..rows.len()).filter(|&b| key(a) == key(b)).count() as u64);
                for b in 0..rows.len() {
                    prop_assert_eq!(joint.codes.get(a).cmp(&joint.codes.get(b)), key(a).cmp(&key(b)));
                }
            }
        }
    }
}

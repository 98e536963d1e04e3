//! Attribute partition: the attributes of each column.
//!
//! # Citations
//! - [Li et al. 2012, section 4.1], clusters of correlated attributes.
//! - [Kaufman and Rousseeuw 1990], medoids.

use std::collections::BTreeMap;

use super::medoids;
use crate::control::{Cancelled, Control};
use crate::microdata::{Associations, Attr, AttrSet, Coarse, DEFAULT_BINS, Table, phi_squared};

/// Largest number of columns with the sensitive attribute: all choices of them are checked.
pub(super) const MAX_SENSITIVE_COLUMNS: usize = 4;

/// Numbers of equal-width bins that numeric attributes are cut into when their correlations are measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CorrelationBins {
    /// Number of bins of the other attributes.
    pub otherwise: u32,
    /// Number of bins by attribute.
    pub of: BTreeMap<Attr, u32>,
}

impl Default for CorrelationBins {
    fn default() -> Self {
        Self { otherwise: DEFAULT_BINS, of: BTreeMap::new() }
    }
}

impl CorrelationBins {
    fn number(&self, attr: Attr) -> u32 {
        self.of.get(&attr).copied().unwrap_or(self.otherwise)
    }

    fn coarse(&self, table: &Table, attr: Attr) -> Coarse {
        Coarse::new(table.column(attr), self.number(attr))
    }
}

/// How attributes are put into columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnChoice {
    /// A number of columns, each of correlated attributes.
    Count(usize),
    /// A number of columns, of which the sensitive one has `width` attributes: the sensitive attribute and its closest
    /// correlates.
    SensitiveWidth {
        /// Number of all columns.
        count: usize,
        /// Number of attributes of the sensitive column.
        width: usize,
    },
    /// A number of columns, of which the sensitive one has the sensitive attribute and these, which dependencies tie to it.
    Linked {
        /// Number of all columns.
        count: usize,
        /// The other attributes of the sensitive column.
        linked: AttrSet,
    },
    /// The columns, by their attributes.
    Explicit(Vec<AttrSet>),
}

/// Why attributes cannot be put into such columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ColumnsError {
    /// The number of columns is 0, or exceeds the number of attributes for them.
    #[error("{count} columns cannot be made of {attributes} attributes")]
    BadColumnCount {
        /// Number of columns requested, the sensitive one apart if its width was given.
        count: usize,
        /// Number of attributes for these columns.
        attributes: usize,
    },
    /// The width of the sensitive column is 0, or exceeds the number of attributes.
    #[error("a sensitive column of {width} attributes cannot be made of {attributes}")]
    BadSensitiveWidth {
        /// Requested width of the sensitive column.
        width: usize,
        /// Number of all attributes.
        attributes: usize,
    },
    /// An explicit column has no attribute.
    #[error("column {0} is empty")]
    Empty(usize),
    /// An explicit column names attributes that are not to be published.
    #[error("column {0} names attributes that are not published")]
    Unknown(usize, AttrSet),
    /// All attributes of an explicit column stand in another one.
    #[error("the attributes of column {0} all stand in column {1}")]
    Contained(usize, usize),
    /// Too many explicit columns have the sensitive attribute.
    #[error("{0} columns have the sensitive attribute")]
    TooManySensitive(usize),
    /// Explicit columns that share attributes form no tree, so that their join has no closed form.
    #[error("columns share attributes in a circle")]
    Circle,
    /// Explicit columns that share attributes cannot be generalized.
    #[error("columns that share attributes are not generalized")]
    Generalized,
    /// Explicit columns leave attributes out.
    #[error("attributes stand in no column")]
    NotCovered(AttrSet),
    /// The sensitive attribute is not published.
    #[error("the sensitive attribute is not published")]
    NoSensitive,
}

/// Why there are no columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ColumnPartitionError {
    /// The columns have a fault.
    #[error(transparent)]
    Refused(#[from] ColumnsError),
    /// The job was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl ColumnChoice {
    /// Checks the columns as far as possible without rows.
    ///
    /// # Errors
    /// [`ColumnsError`] with the first fault.
    pub fn check(&self, attributes: AttrSet, sensitive: Attr) -> Result<(), ColumnsError> {
        let all = attributes.len();
        if !attributes.contains(sensitive) {
            return Err(ColumnsError::NoSensitive);
        }
        match self {
            Self::Count(count) if (1..=all).contains(count) => Ok(()),
            Self::Count(count) => Err(ColumnsError::BadColumnCount { count: *count, attributes: all }),
            Self::SensitiveWidth { width, .. } if !(1..=all).contains(width) => {
                Err(ColumnsError::BadSensitiveWidth { width: *width, attributes: all })
            }
            Self::SensitiveWidth { count, width } => check_others(*count, all - width),
            Self::Linked { count, linked } => check_others(*count, all - linked.with(sensitive).len()),
            Self::Explicit(columns) => check_explicit(columns, attributes, sensitive),
        }
    }

    /// Puts `attributes` of `table` into columns, those with the sensitive attribute last.
    ///
    /// Columns that are not explicit depend on the data: numeric attributes are cut into `bins` before correlations are measured.
    ///
    /// # Errors
    /// [`ColumnPartitionError`] if the columns cannot be made, or on cancellation.
    pub fn divide(
        &self,
        table: &Table,
        attributes: AttrSet,
        sensitive: Attr,
        bins: &CorrelationBins,
        control: &Control,
    ) -> Result<Vec<AttrSet>, ColumnPartitionError> {
        self.check(attributes, sensitive)?;
        let correlations = Correlations { table, bins, control };
        let mut columns = match self {
            Self::Count(count) => correlations.clustered(attributes, *count)?,
            Self::SensitiveWidth { count, width } => {
                let with = correlations.companions(attributes, sensitive, *width - 1)?;
                with_others(with, correlations.clustered(attributes.minus(with), count - 1)?)
            }
            Self::Linked { count, linked } => {
                let with = linked.with(sensitive);
                with_others(with, correlations.clustered(attributes.minus(with), count - 1)?)
            }
            Self::Explicit(columns) => columns.clone(),
        };
        columns.sort_by_key(|column| column.contains(sensitive));
        Ok(columns)
    }
}

/// Columns with the sensitive one, which is `with`.
fn with_others(with: AttrSet, mut others: Vec<AttrSet>) -> Vec<AttrSet> {
    others.push(with);
    others
}

/// Checks that leftover attributes have a column, and that columns other than the sensitive one have leftover attributes.
fn check_others(count: usize, left: usize) -> Result<(), ColumnsError> {
    match count.checked_sub(1) {
        Some(0) if left == 0 => Ok(()),
        Some(others) if others > 0 && others <= left => Ok(()),
        others => Err(ColumnsError::BadColumnCount { count: others.unwrap_or(0), attributes: left }),
    }
}

/// Whether some columns share attributes.
#[must_use]
pub fn is_cover(columns: &[AttrSet]) -> bool {
    let all = columns.iter().fold(AttrSet::EMPTY, |all, column| all.union(*column));
    columns.iter().map(|column| column.len()).sum::<usize>() > all.len()
}

fn check_explicit(columns: &[AttrSet], attributes: AttrSet, sensitive: Attr) -> Result<(), ColumnsError> {
    for (index, &column) in columns.iter().enumerate() {
        if column.is_empty() {
            return Err(ColumnsError::Empty(index));
        }
        if !column.is_subset(attributes) {
            return Err(ColumnsError::Unknown(index, column.minus(attributes)));
        }
        let within = |(other, whole): (usize, &AttrSet)| (other != index && column.is_subset(*whole)).then_some(other);
        if let Some(other) = columns.iter().enumerate().find_map(within) {
            return Err(ColumnsError::Contained(index, other));
        }
    }
    let with = columns.iter().filter(|column| column.contains(sensitive)).count();
    if with > MAX_SENSITIVE_COLUMNS {
        return Err(ColumnsError::TooManySensitive(with));
    }
    let covered = columns.iter().fold(AttrSet::EMPTY, |all, &column| all.union(column));
    if covered == attributes { Ok(()) } else { Err(ColumnsError::NotCovered(attributes.minus(covered))) }
}

/// The attributes other than the sensitive one, its closest correlates first.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn by_association(
    table: &Table,
    attributes: AttrSet,
    sensitive: Attr,
    bins: &CorrelationBins,
    control: &Control,
) -> Result<Vec<Attr>, Cancelled> {
    Correlations { table, bins, control }.ranked(attributes, sensitive)
}

/// Correlations between the attributes of a table.
struct Correlations<'a> {
    table: &'a Table,
    bins: &'a CorrelationBins,
    control: &'a Control,
}

impl Correlations<'_> {
    /// Clusters of attributes under the distance 1 - phi squared.
    fn clustered(&self, attributes: AttrSet, count: usize) -> Result<Vec<AttrSet>, Cancelled> {
        if attributes.is_empty() {
            return Ok(Vec::new());
        }
        if count == 1 {
            return Ok(vec![attributes]);
        }
        let attrs: Vec<Attr> = attributes.iter().collect();
        if count == attrs.len() {
            return Ok(attrs.into_iter().map(AttrSet::one).collect());
        }
        let bins = |attr| self.bins.number(attr);
        let associations = Associations::new(self.table, attributes, bins, || self.control.check())?;
        let from = |a: usize| (0..attrs.len()).map(|b| 1.0 - associations.between(a, b)).collect::<Vec<f64>>();
        let distances: Vec<Vec<f64>> = (0..attrs.len()).map(from).collect();
        let clusters = medoids::cluster(&distances, count).into_iter();
        Ok(clusters.map(|cluster| cluster.into_iter().map(|at| attrs[at]).collect()).collect())
    }

    /// The sensitive attribute and its `others` closest correlates; of equal ones the first.
    fn companions(&self, attributes: AttrSet, sensitive: Attr, others: usize) -> Result<AttrSet, Cancelled> {
        if others == 0 {
            return Ok(AttrSet::one(sensitive));
        }
        let ranked = self.ranked(attributes, sensitive)?;
        Ok(ranked.into_iter().take(others).fold(AttrSet::one(sensitive), AttrSet::with))
    }

    /// The other attributes, the closest correlates of the sensitive one first; of equal ones the first.
    fn ranked(&self, attributes: AttrSet, sensitive: Attr) -> Result<Vec<Attr>, Cancelled> {
        let of_sensitive = self.bins.coarse(self.table, sensitive);
        let mut ranked = Vec::with_capacity(attributes.len());
        for attr in attributes.without(sensitive).iter() {
            self.control.check()?;
            let coarse = self.bins.coarse(self.table, attr);
            // the lower attribute comes first, as in a profile, so that results are equal to the bit
            let (a, b) = if attr < sensitive { (&coarse, &of_sensitive) } else { (&of_sensitive, &coarse) };
            ranked.push((phi_squared(a, b), attr));
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(ranked.into_iter().map(|(_, attr)| attr).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(attrs: &[u8]) -> AttrSet {
        attrs.iter().map(|&attr| Attr(attr)).collect()
    }

    #[test]
    fn impossible_columns_are_refused() {
        let check = |columns: ColumnChoice| columns.check(AttrSet::first(5), Attr(4)).err();
        assert_eq!(check(ColumnChoice::Count(0)), Some(ColumnsError::BadColumnCount { count: 0, attributes: 5 }));
        assert_eq!(check(ColumnChoice::Count(6)), Some(ColumnsError::BadColumnCount { count: 6, attributes: 5 }));
        assert_eq!((check(ColumnChoice::Count(1)), check(ColumnChoice::Count(5))), (None, None));
        let wide = |count, width| check(ColumnChoice::SensitiveWidth { count, width });
        assert_eq!(wide(2, 0), Some(ColumnsError::BadSensitiveWidth { width: 0, attributes: 5 }));
        assert_eq!(wide(2, 6), Some(ColumnsError::BadSensitiveWidth { width: 6, attributes: 5 }));
        assert_eq!(wide(4, 3), Some(ColumnsError::BadColumnCount { count: 3, attributes: 2 }));
        assert_eq!(wide(1, 3), Some(ColumnsError::BadColumnCount { count: 0, attributes: 2 }));
        assert_eq!(wide(0, 3), Some(ColumnsError::BadColumnCount { count: 0, attributes: 2 }));
        assert_eq!((wide(3, 3), wide(2, 1), wide(1, 5)), (None, None, None));
        let explicit =
            |columns: &[&[u8]]| check(ColumnChoice::Explicit(columns.iter().map(|column| set(column)).collect()));
        assert_eq!(explicit(&[&[0, 1, 2], &[3, 4]]), None);
        assert_eq!(explicit(&[&[0, 1, 2, 3, 4], &[]]), Some(ColumnsError::Empty(1)));
        assert_eq!(explicit(&[&[0, 1, 2], &[3, 4, 5]]), Some(ColumnsError::Unknown(1, set(&[5]))));
        assert_eq!(explicit(&[&[0, 1, 2], &[2, 3, 4]]), None);
        assert_eq!(explicit(&[&[0, 1, 2], &[3, 4], &[4]]), Some(ColumnsError::Contained(2, 1)));
        assert_eq!(explicit(&[&[0, 1, 2], &[3, 4], &[4, 3]]), Some(ColumnsError::Contained(1, 2)));
        let many = |count: u8| {
            let column = |other: u8| [Attr(other), Attr(9)].into_iter().collect();
            ColumnChoice::Explicit((0..count).map(column).collect())
                .check(AttrSet::first(usize::from(count)).with(Attr(9)), Attr(9))
        };
        assert_eq!((many(4), many(5)), (Ok(()), Err(ColumnsError::TooManySensitive(5))));
        assert_eq!(explicit(&[&[0, 1], &[3]]), Some(ColumnsError::NotCovered(set(&[2, 4]))));
        assert_eq!(ColumnChoice::Count(1).check(set(&[0, 1]), Attr(4)), Err(ColumnsError::NoSensitive));
    }
}

//! Random COUNT queries: relative errors of their estimates.

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table, ValueSelection};
use crate::model::{Boxes, DecompositionModel, Estimator, ModelShape, Predicates, PublishedRows, QueryPath};
use crate::with_codes;

/// A workload of random queries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Workload {
    /// Number of queries.
    pub number: u32,
    /// Number of attributes of each query.
    pub dimensions: u32,
    /// Number of values of each of these attributes.
    pub width: PredicateWidth,
}

/// Width of the selection of an attribute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PredicateWidth {
    /// This share of the values, at least one.
    ValueFraction(f64),
    /// The width at which all selections together match this share of the rows, if attributes were independent and uniform.
    Selectivity(f64),
}

impl PredicateWidth {
    fn values(self, of: usize, dimensions: u32) -> usize {
        let of_all = of as f64;
        let values = match self {
            Self::ValueFraction(share) => (share * of_all).round(),
            Self::Selectivity(share) => (of_all * share.powf(1.0 / f64::from(dimensions))).ceil(),
        };
        (values as usize).clamp(1, of.max(1))
    }
}

/// Relative errors of the estimates.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CountErrors {
    /// Relative error of each query, rising.
    pub relative: Vec<f64>,
    /// Number of queries that were redrawn because no row matches.
    pub redrawn: u64,
}

/// Largest number of redraws per query; after more of them the workload ends early.
const MAX_DRAWS_PER_QUERY: u64 = 100;

/// A workload, and the original that its queries are drawn from.
pub struct WorkloadRun<'a> {
    /// The queries.
    pub workload: Workload,
    /// The original.
    pub original: &'a Table,
    /// Draws a number below its argument.
    pub below: &'a mut dyn FnMut(u32) -> u32,
    /// Looked at between queries.
    pub control: &'a Control,
}

impl WorkloadRun<'_> {
    /// Errors of estimates from the tables of a release.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn of_tables(self, shape: &ModelShape, cells: &PublishedRows) -> Result<CountErrors, Cancelled> {
        let (original, control) = (self.original, self.control);
        let published: AttrSet = shape.published.iter().fold(AttrSet::EMPTY, |all, view| all.union(view.attributes()));
        // buckets that are an attribute of the model are not in the original
        let published = published.intersection(original.attributes());
        let all = QueryPath::Joined(shape.whole_tree());
        let estimator = Estimator::new(shape, cells, std::slice::from_ref(&all), control)?;
        self.errors(published, |query| {
            let route = shape.route(query.iter().map(|(attr, _)| *attr).collect());
            let asked = translated(query, cells, original);
            Ok(estimator.estimate(&route, &asked, control)?.count)
        })
    }

    /// Errors of estimates from both tables of a decomposition, which has all attributes of the original.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn of_decomposition(
        self,
        model: &DecompositionModel<'_>,
        cells: &PublishedRows,
    ) -> Result<CountErrors, Cancelled> {
        let (original, control) = (self.original, self.control);
        self.errors(original.attributes(), |query| {
            Ok(model.estimate(&translated(query, cells, original), control)?.count)
        })
    }

    /// Errors of estimates from the boxes of a generalized table of all attributes. Suppressed attributes are not queried.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn of_boxes(self, boxes: &Boxes) -> Result<CountErrors, Cancelled> {
        let (original, control) = (self.original, self.control);
        self.errors(boxes.revealed(), |query| {
            let selection = |(attribute, admitted): &(Attr, Vec<bool>)| {
                let values = original.column(*attribute).domain.iter().zip(admitted).filter(|(_, admitted)| **admitted);
                let among = Some(values.map(|(value, _)| value.map(<[u8]>::to_vec)).collect());
                ValueSelection { attribute: *attribute, among, from: None, to: None }
            };
            let selections: Vec<ValueSelection> = query.iter().map(selection).collect();
            Ok(boxes.estimate(&selections, control)?.count)
        })
    }

    /// Compares estimates with the original.
    fn errors(
        self,
        published: AttrSet,
        estimate: impl Fn(&Predicates) -> Result<f64, Cancelled>,
    ) -> Result<CountErrors, Cancelled> {
        let Self { workload, original, below, control } = self;
        let mut found = CountErrors::default();
        let most = match published.is_empty() {
            true => 0,
            false => MAX_DRAWS_PER_QUERY.saturating_mul(u64::from(workload.number)),
        };
        while found.relative.len() < workload.number as usize && found.redrawn < most {
            let query = drawn(original, published, &workload, below);
            let actual = counted(original, &query, control)?;
            if actual == 0 {
                found.redrawn += 1;
                continue;
            }
            let estimated = estimate(&query)?;
            found.relative.push((actual as f64 - estimated).abs() / actual as f64);
        }
        found.relative.sort_by(f64::total_cmp);
        Ok(found)
    }
}

/// A query over codes of the original as one over codes of the parts.
fn translated(query: &Predicates, cells: &PublishedRows, original: &Table) -> Predicates {
    let of = |(attr, admitted): &(Attr, Vec<bool>)| {
        let domain = cells.domain(*attr)?;
        let values = original.column(*attr).domain.iter().zip(admitted).filter(|(_, admitted)| **admitted);
        let mut values = values.map(|(value, _)| value).peekable();
        // both domains are in the order of the values
        let admits = domain.iter().map(|value| {
            while values.next_if(|next| domain.kind().compare(*next, value).is_lt()).is_some() {}
            values.peek() == Some(&value)
        });
        Some((*attr, admits.collect()))
    };
    query.iter().filter_map(of).collect()
}

/// A random query over the original: attributes and values are drawn without replacement.
fn drawn(original: &Table, published: AttrSet, workload: &Workload, below: &mut dyn FnMut(u32) -> u32) -> Predicates {
    let mut attributes: Vec<Attr> = published.iter().collect();
    let dimensions = (workload.dimensions as usize).min(attributes.len());
    let query = (0..dimensions).map(|at| {
        let other = at + below((attributes.len() - at) as u32) as usize;
        attributes.swap(at, other);
        let attr = attributes[at];
        let size = original.column(attr).domain.len();
        let mut codes: Vec<usize> = (0..size).collect();
        let mut admitted = vec![false; size];
        for chosen in 0..workload.width.values(size, workload.dimensions).min(size) {
            let other = chosen + below((size - chosen) as u32) as usize;
            codes.swap(chosen, other);
            admitted[codes[chosen]] = true;
        }
        (attr, admitted)
    });
    query.collect()
}

/// Number of rows of the original that match a query.
fn counted(original: &Table, query: &Predicates, control: &Control) -> Result<u64, Cancelled> {
    control.check()?;
    let mut has = vec![true; original.rows()];
    for (attr, admitted) in query {
        with_codes!(&original.column(*attr).codes, codes => for (has, &code) in has.iter_mut().zip(codes) {
            *has &= admitted[code as usize];
        });
    }
    Ok(has.into_iter().map(u64::from).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_papers() {
        assert_eq!(PredicateWidth::ValueFraction(0.4).values(10, 3), 4);
        assert_eq!(PredicateWidth::ValueFraction(0.01).values(10, 3), 1);
        assert_eq!(PredicateWidth::ValueFraction(1.0).values(10, 3), 10);
        // 10 * 0.05^(1/3) = 3.68
        assert_eq!(PredicateWidth::Selectivity(0.05).values(10, 3), 4);
        assert_eq!(PredicateWidth::Selectivity(1.0).values(7, 1), 7);
    }
}

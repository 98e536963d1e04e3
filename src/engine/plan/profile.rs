//! The profile of a table before there are rules: associations and dependencies of attributes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::control::{Cancelled, Control};
use crate::microdata::{Associations, AttrSet, DEFAULT_BINS, Table};
use crate::privacy;
use crate::privacy::DiscoveryOptions;
use crate::report::ManifestRatio;

/// The number of evenly spaced rows on which associations of larger tables are computed.
const MAX_ASSOCIATION_ROWS: usize = 100_000;

/// Associations and dependencies between the columns of a dataset.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct DependencyProfile {
    /// The profiled columns, in their order.
    pub columns: Vec<ProfiledColumn>,
    /// Every associated pair of columns, the strongest first.
    pub associations: Vec<AttributeAssociation>,
    /// Exact dependencies on one or two attributes that are no accidents.
    pub dependencies: Vec<ExactDependency>,
    /// The number of rows behind the associations; null for all rows.
    pub sampled_rows: Option<u64>,
}

/// A column of a profile.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ProfiledColumn {
    /// Its name.
    pub name: String,
    /// The distinct values among the rows, a missing value counted as one.
    pub distinct_share: ManifestRatio,
}

/// The strength of the association of two columns.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct AttributeAssociation {
    /// The earlier column.
    pub a: String,
    /// The later column.
    pub b: String,
    /// Mean-square contingency, from 0 for independent columns to 1; numbers are in ten bins.
    pub phi_squared: f64,
}

/// A dependency that holds in the rows.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExactDependency {
    /// The determining columns.
    pub determinant: Vec<String>,
    /// The determined column.
    pub dependent: Vec<String>,
    /// The number of rows over the number of values of the determinant.
    pub rows_per_value: ManifestRatio,
}

/// The profile of a table.
///
/// # Errors
/// [`Cancelled`]
pub fn profile(table: &Table, control: &Control) -> Result<DependencyProfile, Cancelled> {
    let (rows, attrs) = (table.rows(), table.attributes());
    let named = |set: AttrSet| set.iter().map(|attr| table.name(attr).to_owned()).collect::<Vec<_>>();
    let ratio = |count: usize, of: usize| ManifestRatio { count: count as u64, of: of as u64 };

    let columns = attrs.iter().map(|attr| ProfiledColumn {
        name: table.name(attr).to_owned(),
        distinct_share: ratio(table.column(attr).domain.len(), rows),
    });
    let columns = columns.collect();

    let sampled = (rows > MAX_ASSOCIATION_ROWS).then(|| {
        let spread: Vec<u32> =
            (0..MAX_ASSOCIATION_ROWS).map(|row| (row * rows / MAX_ASSOCIATION_ROWS) as u32).collect();
        table.reordered(&spread)
    });
    let looked_at = sampled.as_ref().unwrap_or(table);
    let matrix = Associations::new(looked_at, attrs, |_| DEFAULT_BINS, || control.check())?;
    let name = |at: usize| table.name(matrix.attributes()[at]).to_owned();
    let pairs = (0..attrs.len()).flat_map(|a| (a + 1..attrs.len()).map(move |b| (a, b)));
    let mut associations: Vec<AttributeAssociation> = pairs
        .map(|(a, b)| AttributeAssociation { a: name(a), b: name(b), phi_squared: matrix.between(a, b) })
        .filter(|association| association.phi_squared > 0.0)
        .collect();
    // the sort is stable: equally strong pairs keep the order of columns
    associations.sort_by(|one, other| other.phi_squared.total_cmp(&one.phi_squared));

    let discovery = privacy::discover_dependencies(table, &DiscoveryOptions::default(), control)?;
    let exact = discovery.found.iter().filter(|found| found.errors == 0).map(|found| ExactDependency {
        determinant: named(found.dependency.determinant),
        dependent: named(AttrSet::one(found.dependency.dependent)),
        rows_per_value: ratio(rows, found.groups),
    });
    let dependencies = exact.collect();
    Ok(DependencyProfile {
        columns,
        associations,
        dependencies,
        sampled_rows: sampled.map(|_| MAX_ASSOCIATION_ROWS as u64),
    })
}

//! What an officer sees of a table before there are rules: how its attributes go together, and what they may be to a rule.

use serde::Serialize;
use utoipa::ToSchema;

use crate::control::{Cancelled, Control};
use crate::microdata::{Associations, Attr, AttrSet, DEFAULT_BINS, Table};
use crate::privacy;
use crate::privacy::WorkBudget;
use crate::report::ManifestRatio;

/// Associations of larger tables are computed on so many rows, taken from all over the table.
const MAX_ASSOCIATION_ROWS: usize = 100_000;

/// Rows per value below which an attribute is not taken for a sensitive one: its values are hardly ever shared.
const MIN_ROWS_PER_SENSITIVE_VALUE: usize = 20;

/// What columns of a dataset have to do with each other.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct DependencyProfile {
    /// The columns that were looked at, in their order.
    pub columns: Vec<ProfiledColumn>,
    /// Every pair of them that goes together at all, the strongest first.
    pub associations: Vec<AttributeAssociation>,
    /// What is determined by one or two attributes, exactly, with at least 20 rows per value of these on average.
    pub dependencies: Vec<ExactDependency>,
    /// On how many rows the associations were computed; null when on all.
    pub sampled_rows: Option<u64>,
}

/// A column of a profile.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ProfiledColumn {
    /// Its name.
    pub name: String,
    /// What it may be to a rule.
    pub suggested_role: SuggestedRole,
    /// The distinct values among the rows, a missing value counted as one.
    pub distinct_share: ManifestRatio,
}

/// What a column may be to a rule. A guess from counts: what is sensitive, people decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuggestedRole {
    /// Nearly every row has a value of its own.
    Identifier,
    /// One of the attributes by which at least one row of a hundred is found alone.
    QuasiIdentifier,
    /// None of those, with values that are shared and none of which half of the rows have.
    Sensitive,
    /// Anything else.
    Other,
}

/// How strongly two attributes go together.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct AttributeAssociation {
    /// The column that comes first.
    pub a: String,
    /// The other.
    pub b: String,
    /// The mean-square contingency, from 0 for independent attributes to 1; numbers are cut into ten bins.
    pub phi_squared: f64,
}

/// A dependency that holds in the rows.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExactDependency {
    /// What determines.
    pub determinant: Vec<String>,
    /// What is determined.
    pub dependent: Vec<String>,
    /// The rows, and how many values the determinant has.
    pub rows_per_value: ManifestRatio,
}

/// Profiles a table. `identifiers` are the attributes of which nearly every row has a value of its own.
///
/// # Errors
/// [`Cancelled`] when told to stop.
pub fn profile(table: &Table, identifiers: AttrSet, control: &Control) -> Result<DependencyProfile, Cancelled> {
    let (rows, attrs) = (table.rows(), table.attributes());
    let named = |set: AttrSet| set.iter().map(|attr| table.name(attr).to_owned()).collect::<Vec<_>>();
    let ratio = |count: usize, of: usize| ManifestRatio { count: count as u64, of: of as u64 };

    let choices = privacy::singling_out(table, attrs.minus(identifiers), &mut WorkBudget::default(), control)?;
    let finding = choices.into_iter().fold(AttrSet::EMPTY, AttrSet::union);
    let role = |attr: Attr| {
        let column = table.column(attr);
        let (values, most) = (column.domain.len(), column.counts().into_iter().max().unwrap_or(0));
        match () {
            () if identifiers.contains(attr) => SuggestedRole::Identifier,
            () if finding.contains(attr) => SuggestedRole::QuasiIdentifier,
            () if values > 1 && values <= rows / MIN_ROWS_PER_SENSITIVE_VALUE && most * 2 <= rows as u64 => {
                SuggestedRole::Sensitive
            }
            () => SuggestedRole::Other,
        }
    };
    let columns = attrs.iter().map(|attr| ProfiledColumn {
        name: table.name(attr).to_owned(),
        suggested_role: role(attr),
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
    // the order of columns where two are equally strong
    associations.sort_by(|one, other| other.phi_squared.total_cmp(&one.phi_squared));

    let held = privacy::discover_dependencies(table, control)?.into_iter().map(|dependency| {
        Ok(ExactDependency {
            determinant: named(dependency.determinant),
            dependent: named(AttrSet::one(dependency.dependent)),
            rows_per_value: ratio(rows, privacy::distinct_tuples(table, dependency.determinant, control)?),
        })
    });
    let dependencies = held.collect::<Result<_, _>>()?;
    Ok(DependencyProfile {
        columns,
        associations,
        dependencies,
        sampled_rows: sampled.map(|_| MAX_ASSOCIATION_ROWS as u64),
    })
}

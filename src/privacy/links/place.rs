//! The place of attributes that no rule knows: on the row side, in strata, or in the protected part.

use super::eligibility::StrataTests;
use super::pools::pools;
use super::strata::Strata;
use super::stratify::{LinkContext, StratificationError, TableSides, stratify, visible_separators};
use crate::microdata::AttrSet;

/// A table whose attributes are to be placed.
#[derive(Clone, Copy, Debug)]
pub struct TableToPlace<'a> {
    /// The attributes besides the protected ones.
    pub row_side: AttrSet,
    /// The protected attributes.
    pub protects: AttrSet,
    /// The known sides of all rules that the table guards.
    pub known: AttrSet,
    /// What readers learn from each other table of the release, see [`TableSides::other_tables`].
    pub other_tables: &'a [AttrSet],
    /// The attributes that the release publishes.
    pub published: AttrSet,
    /// Whether strata that break a demand may be published, each as one bucket, where no strata satisfy all demands.
    pub closes: bool,
    /// Attributes of which alone strata may be made, see [`TableSides::within`].
    pub within: Option<AttrSet>,
}

/// Where the attributes of a table stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The row side, with those attributes of the strata that other tables publish.
    pub kept: AttrSet,
    /// The attributes that join the protected part.
    pub moved: AttrSet,
    /// The attributes in which every bucket is constant.
    pub constant: AttrSet,
    /// The sets of rows in which buckets are made; each but the closed ones satisfies the demands by itself.
    pub pools: Strata,
    /// The pools, rising, that are strata that break a demand: one bucket each.
    pub closed: Vec<u32>,
}

/// Places each attribute of `table` that no rule knows, in column order.
///
/// An attribute stays on the row side if the strata that it needs satisfy all demands. Otherwise it joins the protected
/// part, which asks for nothing unless other elements tie it to the row side.
///
/// Where the table closes strata, and those of the known attributes break a demand, an attribute stays on the row side if
/// it needs no other strata.
///
/// # Errors
/// [`StratificationError`] where no strata keep even the known attributes apart from the protected ones.
///
/// # Citations
/// docs/spec/dependencies.md#algorithm
pub fn place(
    table: &TableToPlace<'_>,
    context: &LinkContext<'_>,
    tests: &mut StrataTests<'_>,
) -> Result<Placement, StratificationError> {
    let mut sides = TableSides {
        row_side: table.row_side.intersection(table.known),
        protected: table.protects,
        known: table.known,
        other_tables: table.other_tables,
        published: table.published,
        within: table.within,
    };
    let closed_in = match stratify(&sides, context, tests) {
        Err(StratificationError::Ineligible { .. }) if table.closes => Some(closable(&sides, context, tests)?),
        other => other.map(|_| None)?,
    };
    for attr in table.row_side.minus(table.known).iter() {
        let kept = TableSides { row_side: sides.row_side.with(attr), ..sides };
        let stays = match (stratify(&kept, context, tests), closed_in) {
            (Err(StratificationError::Cancelled), _) => return Err(StratificationError::Cancelled),
            (found, None) => found.is_ok(),
            (_, Some(closed_in)) => visible_separators(&kept, context).first() == Some(&closed_in),
        };
        match stays {
            true => sides = kept,
            false => sides.protected = sides.protected.with(attr),
        }
    }
    let constant = match stratify(&sides, context, tests) {
        Err(StratificationError::Ineligible { .. }) if table.closes => closable(&sides, context, tests)?,
        other => other?,
    };
    let moved = sides.protected.minus(table.protects);
    let strata = Strata::new(tests.table(), constant);
    let ineligible = tests.test(constant)?.ineligible.clone();
    let (pools, closed) = pools(&strata, moved, &ineligible, tests)?;
    Ok(Placement { kept: sides.row_side_with(constant), moved, constant, pools, closed })
}

/// The separator whose strata are published though some break a demand.
///
/// Without attributes there is one stratum, the table: then no publication satisfies a rule for any row.
fn closable(
    sides: &TableSides<'_>,
    context: &LinkContext<'_>,
    tests: &mut StrataTests<'_>,
) -> Result<AttrSet, StratificationError> {
    let first = visible_separators(sides, context).first().copied();
    match first.filter(|separator| !separator.is_empty()) {
        Some(separator) => Ok(separator),
        // the reason that no separator is eligible
        None => stratify(sides, context, tests),
    }
}

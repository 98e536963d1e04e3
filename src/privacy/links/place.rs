//! The place of attributes that no rule knows: on the row side, in strata, or in the protected part.

use super::eligibility::StrataTests;
use super::pools::pools;
use super::strata::Strata;
use super::stratify::{LinkContext, StratificationError, TableSides, stratify};
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
    /// The attributes that other tables of the release publish, one set a table.
    pub other_tables: &'a [AttrSet],
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
    /// The sets of rows in which buckets are made; each satisfies the demands by itself.
    pub pools: Strata,
}

/// Places each attribute of `table` that no rule knows, in column order.
///
/// An attribute stays on the row side if the strata that it needs satisfy all demands. Otherwise it joins the protected
/// part, which asks for nothing unless other elements tie it to the row side.
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
    };
    stratify(&sides, context, tests)?;
    for attr in table.row_side.minus(table.known).iter() {
        let kept = TableSides { row_side: sides.row_side.with(attr), ..sides };
        match stratify(&kept, context, tests) {
            Ok(_) => sides = kept,
            Err(StratificationError::Cancelled) => return Err(StratificationError::Cancelled),
            Err(_) => sides.protected = sides.protected.with(attr),
        }
    }
    let constant = stratify(&sides, context, tests)?;
    let moved = sides.protected.minus(table.protects);
    let pools = pools(&Strata::new(tests.table(), constant), moved, tests)?;
    Ok(Placement { kept: sides.row_side_with(constant), moved, constant, pools })
}

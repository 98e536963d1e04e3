//! What a published table shows beside its guarantees: unique rows, and values that other columns reveal.
//!
//! A reader knows some columns of one part. Another column of the part stands beside them row by row; of a column in another part
//! of the table, each row of the bucket is equally likely. See `docs/reference/manifest.md#exposures`.

use super::cells::{PublishedRows, TableCells};
use super::groups::RowGroups;
use super::inference::{
    AttributeColumn, BucketValues, InferredByOthers, RowKnowledge, RowsByBucket, inferred_in_part,
    inferred_through_buckets, row_knowledge, unique_rows,
};
use super::inferred_rows::InferredRows;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, CellShape, Column};
use crate::publication::{PublishedTable, RowMeaning};

/// Largest number of cells that are compared for choices of at most two columns, over all tables of a release.
const MAX_COMPARED_CELLS: u64 = 1 << 27;

/// Largest number of columns in a choice of known columns, apart from all columns of a part.
const MAX_CHOSEN_COLUMNS: usize = 2;

/// Rows that are the only ones with their cells in some columns of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UniqueRows {
    /// Index of the part.
    pub part: usize,
    /// The columns.
    pub attributes: AttrSet,
    /// The unique rows.
    pub unique: u64,
    /// All rows of the part.
    pub of: u64,
}

/// Rows whose value of a column follows from other columns of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExposedColumn {
    /// The inferred column.
    pub attribute: Attr,
    /// Index of the part with the known columns.
    pub part: usize,
    /// The known columns.
    pub known: AttrSet,
    /// The rows whose value follows.
    pub inferred: InferredRows,
    /// All rows of the part.
    pub of: u64,
}

/// Exposures of one table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableExposures {
    /// Unique rows, by part.
    pub rows: Vec<UniqueRows>,
    /// Inferred columns, by part: an unprotected one by all other columns of its part, a protected one also by smaller choices
    /// that reveal more than those before.
    pub values: Vec<ExposedColumn>,
}

/// The attributes of a table by what rules say of them.
#[derive(Clone, Copy, Debug)]
pub struct ProtectedColumns {
    /// Attributes that some rule or requirement of the release protects.
    pub by_any_rule: AttrSet,
    /// Attributes that the table itself protects; a row is not known by them.
    pub by_table: AttrSet,
}

/// Choices of known columns that were tried, and the cells that may still be compared.
#[derive(Clone, Copy, Debug)]
pub struct CombinationBudget {
    /// Choices that were tried.
    pub tried: u64,
    /// All choices.
    pub of: u64,
    left: u64,
}

impl Default for CombinationBudget {
    fn default() -> Self {
        Self { tried: 0, of: 0, left: MAX_COMPARED_CELLS }
    }
}

impl CombinationBudget {
    /// Whether the next choice is tried; once one is too large, no later one is.
    fn takes(&mut self, cells: u64) -> bool {
        self.of += 1;
        let left = self.left.checked_sub(cells);
        self.left = left.unwrap_or(0);
        self.tried += u64::from(left.is_some());
        left.is_some()
    }
}

impl PublishedRows {
    /// Exposures of the table at `index`, which was read with all attributes, as text.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn exposures(
        &self,
        index: usize,
        table: &PublishedTable,
        protected: ProtectedColumns,
        budget: &mut CombinationBudget,
        control: &Control,
    ) -> Result<TableExposures, Cancelled> {
        let mut found = TableExposures::default();
        for (at, part) in table.parts.iter().enumerate() {
            if part.rows != RowMeaning::Tuples {
                continue;
            }
            let known = KnownPart::new(table, &self.tables[index], at);
            let RowKnowledge { unique, by_others } = row_knowledge(known.rows, &known.columns, control)?;
            found.rows.extend(known.unique_rows(unique, protected.by_table, control)?);
            for column in by_others {
                if !protected.by_any_rule.contains(column.attribute) && known.exact.contains(column.attribute) {
                    found.values.push(known.exposed(column, known.attributes.without(column.attribute)));
                }
            }
            let targets = known.targets(protected.by_any_rule);
            found.values.extend(known.inferred_by_choices(&targets, budget, control)?);
        }
        Ok(found)
    }
}

/// A part of which a reader knows columns.
struct KnownPart<'a> {
    table: &'a PublishedTable,
    cells: &'a TableCells,
    part: usize,
    rows: usize,
    /// The columns that are not suppressed.
    columns: Vec<AttributeColumn<'a>>,
    attributes: AttrSet,
    /// The columns whose cells are values.
    exact: AttrSet,
}

/// A protected column that a reader infers.
struct InferredColumn<'a> {
    attribute: Attr,
    column: &'a Column,
    /// Of a column in another part.
    buckets: Option<BucketedTarget<'a>>,
}

struct BucketedTarget<'a> {
    /// `None` where no bucket can reveal a value, whatever the known columns are.
    rows: Option<RowsByBucket<'a>>,
    values: BucketValues,
    work: u64,
}

impl InferredColumn<'_> {
    fn inferred(&self, groups: &RowGroups, control: &Control) -> Result<InferredRows, Cancelled> {
        match &self.buckets {
            None => inferred_in_part(groups, self.column, control),
            Some(BucketedTarget { rows: Some(rows), values, .. }) => {
                inferred_through_buckets(groups, rows, values, control)
            }
            Some(BucketedTarget { rows: None, .. }) => Ok(InferredRows::default()),
        }
    }

    /// Whether some known columns may reveal a value.
    fn may_follow(&self) -> bool {
        self.buckets.as_ref().is_none_or(|buckets| buckets.rows.is_some())
    }

    /// Cells that are compared for one choice of known columns.
    fn work(&self, rows: usize) -> u64 {
        self.buckets.as_ref().map_or(rows as u64, |buckets| buckets.work)
    }
}

/// What a choice of known columns reveals.
#[derive(Clone, Copy)]
struct ChosenColumns {
    known: AttrSet,
    inferred: InferredRows,
}

fn with_shape(table: &PublishedTable, part: usize, shape: impl Fn(CellShape) -> bool) -> AttrSet {
    let columns = table.parts[part].columns.iter().filter(|column| shape(column.cells.shape()));
    columns.map(|column| column.attribute).collect()
}

impl<'a> KnownPart<'a> {
    fn new(table: &'a PublishedTable, cells: &'a TableCells, part: usize) -> Self {
        let attributes = with_shape(table, part, |shape| shape != CellShape::Suppressed);
        let columns = cells.parts[part].columns.iter().filter(|(attr, _)| attributes.contains(*attr));
        Self {
            table,
            cells,
            part,
            rows: cells.parts[part].rows(cells.rows),
            columns: columns.map(|(attribute, column)| AttributeColumn { attribute: *attribute, column }).collect(),
            attributes,
            exact: with_shape(table, part, |shape| shape == CellShape::Exact),
        }
    }

    fn exposed(&self, column: InferredByOthers, known: AttrSet) -> ExposedColumn {
        let InferredByOthers { attribute, inferred } = column;
        ExposedColumn { attribute, part: self.part, known, inferred, of: self.rows as u64 }
    }

    fn grouped(&self, attributes: AttrSet, control: &Control) -> Result<RowGroups, Cancelled> {
        let columns = self.columns.iter().filter(|of| attributes.contains(of.attribute));
        let columns: Vec<&Column> = columns.map(|of| of.column).collect();
        RowGroups::whole(self.rows).refined(&columns, control)
    }

    /// The rows that are unique in the columns by which a row is known; `None` for a part without such columns. `unique` are so
    /// in all columns.
    fn unique_rows(&self, unique: u64, by_table: AttrSet, control: &Control) -> Result<Option<UniqueRows>, Cancelled> {
        let attributes = self.attributes.minus(by_table);
        if attributes.is_empty() {
            return Ok(None);
        }
        let unique = if attributes == self.attributes {
            unique
        } else {
            let columns = self.columns.iter().filter(|of| attributes.contains(of.attribute));
            let columns: Vec<&Column> = columns.map(|of| of.column).collect();
            unique_rows(self.rows, &columns, control)?
        };
        Ok(Some(UniqueRows { part: self.part, attributes, unique, of: self.rows as u64 }))
    }

    /// The protected columns of the table with values that columns of this part may reveal.
    fn targets(&self, protected: AttrSet) -> Vec<InferredColumn<'a>> {
        let all = self.table.attributes();
        all.iter().filter(|attr| protected.contains(*attr)).filter_map(|attr| self.target(attr)).collect()
    }

    fn target(&self, attribute: Attr) -> Option<InferredColumn<'a>> {
        if self.attributes.without(attribute).is_empty() {
            return None;
        }
        let column = |part: usize| {
            let columns = &self.cells.parts[part].columns;
            columns.iter().find(|(of, _)| *of == attribute).map(|(_, column)| column)
        };
        if self.attributes.contains(attribute) {
            let column = column(self.part).filter(|_| self.exact.contains(attribute))?;
            return Some(InferredColumn { attribute, column, buckets: None });
        }
        let parts = &self.table.parts;
        let exact = |part: &usize| {
            parts[*part].columns.iter().any(|of| of.attribute == attribute && of.cells.shape() == CellShape::Exact)
        };
        let other = (0..parts.len()).filter(|part| parts[*part].bucketed).find(exact)?;
        let labels = &self.cells.parts[self.part].labels;
        let buckets = labels.iter().max().map_or(0, |last| *last as usize + 1);
        let column = column(other).filter(|_| parts[self.part].bucketed)?;
        let values = BucketValues::new(&self.cells.parts[other].labels, column, buckets);
        let rows = values.can_reveal().then(|| RowsByBucket::new(labels, &values));
        let work = values.work(labels);
        Some(InferredColumn { attribute, column, buckets: Some(BucketedTarget { rows, values, work }) })
    }

    /// What choices of columns reveal of protected columns.
    fn inferred_by_choices(
        &self,
        targets: &[InferredColumn<'a>],
        budget: &mut CombinationBudget,
        control: &Control,
    ) -> Result<Vec<ExposedColumn>, Cancelled> {
        let mut best: Vec<[Option<ChosenColumns>; MAX_CHOSEN_COLUMNS + 1]> =
            vec![[None; MAX_CHOSEN_COLUMNS + 1]; targets.len()];
        for known in self.choices() {
            let reveals = |target: &InferredColumn<'_>| {
                !known.contains(target.attribute) && known.len() < self.attributes.without(target.attribute).len()
            };
            let work: u64 = targets.iter().filter(|target| reveals(target)).map(|target| target.work(self.rows)).sum();
            if !targets.iter().any(reveals) || !budget.takes(self.rows as u64 + work) {
                continue;
            }
            let follow = |target: &InferredColumn<'_>| reveals(target) && target.may_follow();
            if !targets.iter().any(follow) {
                continue;
            }
            let groups = self.grouped(known, control)?;
            for (target, best) in targets.iter().zip(&mut best).filter(|(target, _)| reveals(target)) {
                let inferred = target.inferred(&groups, control)?;
                let best = &mut best[known.len()];
                if best.is_none_or(|best| best.inferred < inferred) {
                    *best = Some(ChosenColumns { known, inferred });
                }
            }
        }
        let mut found = Vec::new();
        for (target, best) in targets.iter().zip(&best) {
            let mut revealed = InferredRows::default();
            let listed = |of: ChosenColumns| {
                self.exposed(InferredByOthers { attribute: target.attribute, inferred: of.inferred }, of.known)
            };
            for chosen in best.iter().flatten() {
                if chosen.inferred > revealed {
                    revealed = chosen.inferred;
                    found.push(listed(*chosen));
                }
            }
            let known = self.attributes.without(target.attribute);
            let inferred = if target.may_follow() {
                target.inferred(&self.grouped(known, control)?, control)?
            } else {
                InferredRows::default()
            };
            found.push(listed(ChosenColumns { known, inferred }));
        }
        Ok(found)
    }

    /// The choices of few columns: none, each one, each two, in the order of the columns.
    fn choices(&self) -> Vec<AttrSet> {
        let columns: Vec<Attr> = self.columns.iter().map(|of| of.attribute).collect();
        let mut choices = vec![AttrSet::EMPTY];
        choices.extend(columns.iter().map(|attr| AttrSet::one(*attr)));
        for (at, first) in columns.iter().enumerate() {
            choices.extend(columns[at + 1..].iter().map(|second| AttrSet::one(*first).with(*second)));
        }
        choices
    }
}

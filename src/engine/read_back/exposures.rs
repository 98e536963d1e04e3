//! What no rule of a release prevents, as a manifest holds it.

use std::collections::HashMap;
use std::io;

use super::model::model_problem;
use crate::control::{Cancelled, Control};
use crate::engine::error::EngineError;
use crate::microdata::{Attr, AttrSet, AttributeType, Taxonomy};
use crate::model::{
    ColumnCells, CombinationBudget, ExposedColumn, ModelError, ProtectedColumns, PublishedRows, UniqueRows,
};
use crate::publication::{DeclaredTaxonomy, Publication, PublishedBytes, PublishedTable, ReadPart, TableKind};
use crate::report::{ColumnFigures, ExposedRows, ExposedValues, Manifest, ManifestExposures, ManifestRatio};
use crate::verifier::PartsReader;

/// Widths are written to four digits.
const WIDTH_STEPS: f64 = 10_000.0;

/// What the parts of a release say by themselves.
#[derive(Default)]
pub(in crate::engine) struct FiguresOfParts {
    /// What no rule prevents.
    pub(in crate::engine) exposures: ManifestExposures,
    /// What the cells of generalized and sliced tables say.
    pub(in crate::engine) columns: Vec<ColumnFigures>,
}

/// The tables of a release and the taxonomies that their cells are nodes of, with the names of attributes.
#[derive(Clone, Copy)]
pub(in crate::engine) struct PublishedTables<'a> {
    pub(in crate::engine) publication: &'a Publication,
    pub(in crate::engine) names: &'a [String],
    pub(in crate::engine) taxonomies: &'a [DeclaredTaxonomy],
}

/// The figures of the parts of a release, of whose tables `reader` has read the first ones.
///
/// # Errors
/// [`EngineError`] when the parts cannot be read.
pub(in crate::engine) fn of_parts(
    reader: FigureReader<'_>,
    parts: &dyn PublishedBytes,
) -> Result<FiguresOfParts, EngineError> {
    reader.completed(parts).map_err(model_problem)
}

/// Whether the exposures and columns in a manifest follow from the parts; true where the manifest holds none.
///
/// # Errors
/// [`EngineError`] when the parts cannot be read. Malformed parts give false.
pub(in crate::engine) fn hold(
    manifest: &Manifest,
    tables: PublishedTables<'_>,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<bool, EngineError> {
    let (Some(claimed), columns) = (&manifest.exposures, &manifest.utility.columns) else { return Ok(true) };
    let PublishedTables { publication, names, .. } = tables;
    // earlier versions counted what requirements bound among what nothing protects
    let (protected, by_rules) = (publication.protected(names), publication.protected_by_rules());
    let meanings = [protected].into_iter().chain((by_rules != protected).then_some(by_rules));
    for protected in meanings {
        match read(tables, protected, parts, control) {
            Ok(found) => {
                let same_columns = columns.is_empty() || found.columns == *columns;
                if same_columns && comparable(&found.exposures) == comparable(claimed) {
                    return Ok(true);
                }
            }
            Err(ModelError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => return Ok(false),
            Err(error) => return Err(model_problem(error)),
        }
    }
    Ok(false)
}

/// Exposures without what depends on the order of attributes, which a manifest does not hold: of equally good choices of columns
/// any may be named.
fn comparable(exposures: &ManifestExposures) -> ManifestExposures {
    let mut same = exposures.clone();
    same.rows.iter_mut().for_each(|rows| rows.attributes.sort_unstable());
    for values in &mut same.values {
        let columns = values.known.len();
        values.known = vec![columns.to_string()];
    }
    let order = |values: &ExposedValues| {
        let place = (values.attribute.clone(), values.table.clone(), values.part.clone());
        (place, values.known.clone(), values.fixed.count, values.likely.count)
    };
    same.values.sort_by_key(order);
    same.unprotected.sort_unstable();
    same
}

fn read(
    tables: PublishedTables<'_>,
    protected: AttrSet,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<FiguresOfParts, ModelError> {
    FigureReader::of_protected(tables, protected, control).completed(parts)
}

/// Reader of the figures of tables, one after the other.
pub(in crate::engine) struct FigureReader<'a> {
    tables: PublishedTables<'a>,
    trees: HashMap<Attr, &'a Taxonomy>,
    control: &'a Control,
    /// Number of tables that were read.
    read: usize,
    writer: ExposureWriter<'a>,
    budget: CombinationBudget,
    unprotected: Vec<ExposedValues>,
    columns: Vec<ColumnFigures>,
}

impl PartsReader for FigureReader<'_> {
    /// What comes out of turn is read from the parts at the end: figures depend on the order of tables.
    fn read(&mut self, index: usize, parts: Vec<ReadPart>) -> Result<(), Cancelled> {
        let rows =
            (index == self.read).then(|| PublishedRows::of_read(self.tables.publication, index, parts)).flatten();
        rows.map_or(Ok(()), |rows| self.add(&rows))
    }
}

impl<'a> FigureReader<'a> {
    /// A reader of the tables of a release.
    pub(in crate::engine) fn new(tables: PublishedTables<'a>, control: &'a Control) -> Self {
        Self::of_protected(tables, tables.publication.protected(tables.names), control)
    }

    /// The same, where some rule protects `protected`.
    fn of_protected(tables: PublishedTables<'a>, protected: AttrSet, control: &'a Control) -> Self {
        Self {
            tables,
            trees: tables.taxonomies.iter().map(|of| (of.attribute, &*of.tree)).collect(),
            control,
            read: 0,
            writer: ExposureWriter { names: tables.names, protected, found: ManifestExposures::default() },
            budget: CombinationBudget::default(),
            unprotected: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// Adds the next table.
    fn add(&mut self, rows: &PublishedRows) -> Result<(), Cancelled> {
        let (index, writer) = (self.read, &mut self.writer);
        let table = &self.tables.publication.tables[index];
        let by_table = self.tables.publication.protected_by(&table.name);
        let protected = ProtectedColumns { by_any_rule: writer.protected, by_table };
        let exposures = rows.exposures(index, table, protected, &mut self.budget, self.control)?;
        if matches!(table.kind(), TableKind::Generalized | TableKind::Sliced) {
            for at in 0..table.parts.len() {
                let cells = rows.cells_of_columns(index, table, at, &self.trees, self.control)?;
                self.columns.extend(cells.into_iter().map(|(attr, cells)| writer.column(table, at, attr, cells)));
            }
        }
        let unique = exposures.rows.iter().map(|rows| writer.rows(table, rows));
        let unique: Vec<ExposedRows> = unique.collect();
        writer.found.rows.extend(unique);
        for column in &exposures.values {
            let values = writer.values(table, column);
            if values.protected {
                writer.found.values.push(values);
            } else {
                keep_most(&mut self.unprotected, values);
            }
        }
        self.read += 1;
        Ok(())
    }

    /// The figures, once the other tables are read from their parts.
    fn completed(mut self, parts: &dyn PublishedBytes) -> Result<FiguresOfParts, ModelError> {
        let PublishedTables { publication, names, .. } = self.tables;
        // cells compare as text: those of generalized columns are no values of the column's type
        let kinds: Vec<Option<AttributeType>> = vec![None; names.len()];
        for (index, table) in publication.tables.iter().enumerate().skip(self.read) {
            let wanted = |of: usize| (of == index).then(|| table.attributes());
            let rows = PublishedRows::read(publication, wanted, &kinds, parts, self.control)?;
            self.add(&rows)?;
        }
        let Self { mut writer, budget, unprotected, columns, .. } = self;
        writer.found.values.extend(unprotected);
        let published = publication.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes()));
        writer.found.unprotected = writer.named(published.minus(writer.protected));
        writer.found.choices = ManifestRatio::new(budget.tried, budget.of);
        Ok(FiguresOfParts { exposures: writer.found, columns })
    }
}

/// Keeps of each attribute the entry that reveals most, the first of equal ones.
fn keep_most(kept: &mut Vec<ExposedValues>, values: ExposedValues) {
    let revealed = |of: &ExposedValues| (of.fixed.count, of.likely.count);
    match kept.iter_mut().find(|known| known.attribute == values.attribute) {
        None => kept.push(values),
        Some(known) if revealed(known) < revealed(&values) => *known = values,
        Some(_) => {}
    }
}

/// Writes exposures with published names.
struct ExposureWriter<'a> {
    names: &'a [String],
    protected: AttrSet,
    found: ManifestExposures,
}

impl ExposureWriter<'_> {
    fn name(&self, attr: Attr) -> String {
        self.names[attr.index()].clone()
    }

    fn named(&self, set: AttrSet) -> Vec<String> {
        set.iter().map(|attr| self.name(attr)).collect()
    }

    fn column(&self, table: &PublishedTable, part: usize, attr: Attr, cells: ColumnCells) -> ColumnFigures {
        let ColumnCells { distinct, exact, whole, values, widths, of } = cells;
        ColumnFigures {
            table: table.name.0.clone(),
            part: table.parts[part].name.clone(),
            attribute: self.name(attr),
            distinct,
            exact: ManifestRatio::new(exact, of),
            whole: ManifestRatio::new(whole, of),
            values: values.map(|values| ManifestRatio::new(values, of)),
            mean_width: widths.map(|widths| (widths / of.max(1) as f64 * WIDTH_STEPS).round() / WIDTH_STEPS),
        }
    }

    fn rows(&self, table: &PublishedTable, rows: &UniqueRows) -> ExposedRows {
        ExposedRows {
            table: table.name.0.clone(),
            part: table.parts[rows.part].name.clone(),
            attributes: self.named(rows.attributes),
            unique: ManifestRatio::new(rows.unique, rows.of),
        }
    }

    fn values(&self, table: &PublishedTable, column: &ExposedColumn) -> ExposedValues {
        ExposedValues {
            attribute: self.name(column.attribute),
            protected: self.protected.contains(column.attribute),
            table: table.name.0.clone(),
            part: table.parts[column.part].name.clone(),
            known: self.named(column.known),
            fixed: ManifestRatio::new(column.inferred.fixed, column.of),
            likely: ManifestRatio::new(column.inferred.likely, column.of),
        }
    }
}

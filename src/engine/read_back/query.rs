//! COUNT queries, answered from the parts of a release alone.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::manifest::taxonomies_of;
use super::model::{boxes_of, decomposition_of, model_of, model_problem, read_of};
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::{Attr, AttrSet, AttributeType, MAX_ATTRIBUTES};
use crate::model::{
    BoxMeaning, Boxes, ErrorModel, Estimate, Estimator, ModelShape, Predicates, PublishedRows, QueryPath, parted,
};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{
    CellContent as Published, DeclaredTaxonomy, DecompositionDetails, Publication, PublishedBytes,
};
use crate::report::{Manifest, publication_of};
use crate::spec::{ResolvedCountQuery, read_or_remedy, read_queries};

/// The most rows that are read to answer one document of queries; a row counts once for each query that reads it.
const MAX_QUERY_ROWS: u64 = 1 << 32;

/// The answer to a query.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, ToSchema)]
pub struct QueryAnswer {
    /// How many rows the query has, as a reader of the release must expect.
    pub estimate: f64,
    /// The model's own standard deviation of that number.
    pub standard_error: f64,
    /// What the deviation is taken over.
    pub error_model: ErrorModelName,
}

/// What the standard error of an estimate speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorModelName {
    /// One part shows all attributes of the query together: the number is that of the original.
    Exact,
    /// One table holds them in parts that are tied by bucket.
    Matching,
    /// Several tables are needed, or several parts that share attributes, or cells stand for several values.
    Multinomial,
}

/// Queries that a release can be asked.
pub struct QuerySet {
    publication: Publication,
    /// Those whose nodes stand in cells.
    taxonomies: Vec<DeclaredTaxonomy>,
    kinds: Vec<Option<AttributeType>>,
    shape: ModelShape,
    queries: Vec<(ResolvedCountQuery, QueryPath)>,
    /// The attributes that are needed of each table.
    needed: Vec<Option<AttrSet>>,
}

impl QuerySet {
    /// Understands a document of queries over a release.
    ///
    /// # Errors
    /// `invalid-specification` with every fault, or `work-limit`.
    pub fn new(manifest: &Manifest, document: &Value) -> Result<Self, Problem> {
        let attributes = manifest.attributes();
        let names: Vec<String> = attributes.iter().map(|(name, _)| name.clone()).collect();
        let unknown = |_| Problem::new(Kind::Internal, "the manifest of the release cannot be understood");
        if names.len() > MAX_ATTRIBUTES {
            return Err(unknown(()));
        }
        let mut publication = publication_of(manifest, &names).map_err(|_| unknown(()))?;
        let mut kinds: Vec<Option<AttributeType>> = attributes.iter().map(|(_, kind)| Some(*kind)).collect();
        // where parts share attributes the bucket is one more, which no query names
        if names.len() < MAX_ATTRIBUTES
            && let Some(several) = parted(&publication, Attr::from(names.len()))
        {
            publication = several;
            kinds.push(Some(AttributeType::Integer));
        }
        let taxonomies = match boxes_of(&publication) {
            Some(_) => taxonomies_of(manifest, &names).map_err(|_| unknown(()))?,
            None => Vec::new(),
        };
        let queries = read_or_remedy(document, |document| read_queries(document, &attributes))?;
        suppressed(&publication, &names, &queries)?;
        let shape = ModelShape::from_publication(&publication);
        let rows = publication.tables.iter().flat_map(|table| &table.parts).map(|part| part.len).max().unwrap_or(0);
        let (mut needed, mut work): (Vec<Option<AttrSet>>, u64) = (vec![None; publication.tables.len()], 0);
        let routed = |query: ResolvedCountQuery| {
            let attributes = query.iter().map(|selection| selection.attribute).collect();
            let route = shape.route(attributes);
            for (needed, more) in needed.iter_mut().zip(shape.needed(&route, attributes)) {
                *needed = more.map(|more| needed.unwrap_or_default().union(more)).or(*needed);
            }
            work = work.saturating_add(Estimator::work(&shape, &route, rows));
            (query, route)
        };
        let queries: Vec<(ResolvedCountQuery, QueryPath)> = queries.into_iter().map(routed).collect();
        if let Some(said) = decomposition_of(&publication) {
            let asked = queries.iter().flat_map(|(query, _)| query.iter().map(|selection| selection.attribute));
            needed = read_of(said, asked.collect());
        }
        if work > MAX_QUERY_ROWS {
            let detail = "the queries together look at more rows than one request may; send them in several";
            return Err(Problem::new(Kind::WorkLimit, detail).with("limit", MAX_QUERY_ROWS).with("found", work));
        }
        Ok(Self { publication, taxonomies, kinds, shape, queries, needed })
    }

    /// The bytes of memory that answering is estimated to take.
    #[must_use]
    pub fn memory(&self) -> u64 {
        const BASE: u64 = 4 << 20;
        /// For a row of a part: its bucket and its weight.
        const ROW: u64 = 16;
        /// For a cell: its code, once as it comes and once in its order, its part in a key, its share of the values.
        const CELL: u64 = 24;
        let part = |part: &crate::publication::Part, wanted: AttrSet| {
            let cells = part.columns.iter().filter(|column| wanted.contains(column.attribute)).count() as u64;
            part.len.saturating_mul(ROW + CELL * cells)
        };
        let tables = self.publication.tables.iter().zip(&self.needed);
        let parts = tables.filter_map(|(table, wanted)| Some((table, (*wanted)?)));
        let need = parts.flat_map(|(table, wanted)| table.parts.iter().map(move |of_table| part(of_table, wanted)));
        need.fold(BASE, u64::saturating_add)
    }

    /// Answers every query, in their order.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`], or [`EngineError::Failed`] when a part cannot be read.
    pub fn answer(&self, parts: &dyn PublishedBytes, control: &Control) -> Result<Vec<QueryAnswer>, EngineError> {
        if let Some(table) = boxes_of(&self.publication) {
            let wanted = self.needed.iter().flatten().fold(AttrSet::EMPTY, |all, more| all.union(*more));
            let meaning = BoxMeaning { kinds: &self.kinds, taxonomies: &self.taxonomies };
            let read = Boxes::read(table, wanted, meaning, parts, control);
            let boxes = read.map_err(model_problem)?;
            let estimates = self.queries.iter().map(|(query, _)| Ok(boxes.estimate(query, control)?.into()));
            return estimates.collect();
        }
        let cells = PublishedRows::read(&self.publication, |table| self.needed[table], &self.kinds, parts, control);
        let cells = cells.map_err(model_problem)?;
        if let Some(said) = decomposition_of(&self.publication) {
            return self.answer_of_decomposition(said, &cells, control);
        }
        let routes: Vec<QueryPath> = self.queries.iter().map(|(_, route)| route.clone()).collect();
        let estimator = Estimator::new(&self.shape, &cells, &routes, control)?;
        let answer = |(query, route): &(ResolvedCountQuery, QueryPath)| {
            let estimate = estimator.estimate(route, &predicates(query, &cells), control)?;
            Ok(estimate.into())
        };
        self.queries.iter().map(answer).collect()
    }

    fn answer_of_decomposition(
        &self,
        said: &DecompositionDetails,
        cells: &PublishedRows,
        control: &Control,
    ) -> Result<Vec<QueryAnswer>, EngineError> {
        let model = model_of(said, cells)?;
        let work = model.work().saturating_mul(self.queries.len() as u64);
        if work > MAX_QUERY_ROWS {
            let detail = "the queries together look at more joint values than one request may; send them in several";
            let problem = Problem::new(Kind::WorkLimit, detail).with("limit", MAX_QUERY_ROWS).with("found", work);
            return Err(EngineError::Refused(problem));
        }
        let answer = |(query, _): &(ResolvedCountQuery, QueryPath)| {
            Ok(model.estimate(&predicates(query, cells), control)?.into())
        };
        self.queries.iter().map(answer).collect()
    }
}

/// Of an attribute of which every cell is suppressed nothing is published.
fn suppressed(publication: &Publication, names: &[String], queries: &[ResolvedCountQuery]) -> Result<(), Problem> {
    let columns = || publication.tables.iter().flat_map(|table| &table.parts).flat_map(|part| &part.columns);
    let shown = |of: Attr| columns().any(|column| column.attribute == of && column.cells != Published::Suppressed);
    let asked = queries.iter().enumerate().flat_map(|(at, query)| {
        query.iter().enumerate().map(move |(condition, selection)| (at, condition, selection.attribute))
    });
    let faults = asked.filter(|(_, _, attribute)| !shown(*attribute)).map(|(at, condition, attribute)| {
        let pointer = format!("/queries/{at}/where/{condition}/attribute");
        let detail = "every cell of the attribute is suppressed: the release says nothing of its values";
        Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", names[attribute.index()].as_str())
    });
    let faults: Vec<Fault> = faults.collect();
    if faults.is_empty() { Ok(()) } else { Err(Problem::of_faults(faults)) }
}

impl From<Estimate> for QueryAnswer {
    fn from(estimate: Estimate) -> Self {
        Self {
            estimate: estimate.count,
            standard_error: estimate.standard_error,
            error_model: match estimate.error_model {
                ErrorModel::Exact => ErrorModelName::Exact,
                ErrorModel::Matching => ErrorModelName::Matching,
                ErrorModel::Multinomial => ErrorModelName::Multinomial,
            },
        }
    }
}

fn predicates(query: &ResolvedCountQuery, cells: &PublishedRows) -> Predicates {
    let admitted = query
        .iter()
        .filter_map(|selection| Some((selection.attribute, selection.codes(cells.domain(selection.attribute)?))));
    admitted.collect()
}

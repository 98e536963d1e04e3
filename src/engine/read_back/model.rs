use crate::engine::error::EngineError;
use crate::microdata::AttrSet;
use crate::model::{DecompositionModel, ModelError, PublishedRows};
use crate::problem::{Kind, Problem};
use crate::publication::{DecompositionDetails, MethodDetails, Publication, PublishedTable};

/// What is said of a decomposition, where a publication is one.
pub(in crate::engine) fn decomposition_of(publication: &Publication) -> Option<&DecompositionDetails> {
    match &publication.method_details {
        MethodDetails::Decompose(said) => Some(said),
        _ => None,
    }
}

/// The attributes of both its tables that are read to answer for `asked`.
pub(in crate::engine) fn read_of(said: &DecompositionDetails, asked: AttrSet) -> Vec<Option<AttrSet>> {
    let sensitive: AttrSet = said.l.keys().copied().collect();
    vec![Some(asked.union(sensitive)), Some(sensitive)]
}

/// The model of a decomposition that was read.
pub(in crate::engine) fn model_of<'c>(
    said: &DecompositionDetails,
    cells: &'c PublishedRows,
) -> Result<DecompositionModel<'c>, EngineError> {
    let others: Vec<_> = said.l.keys().copied().filter(|attr| *attr != said.primary).collect();
    DecompositionModel::new(cells, said.primary, &others)
        .ok_or_else(|| EngineError::bug("the parts of a decomposition are not what its manifest says"))
}

/// The one table of a publication, where cells of it stand for several values.
pub(in crate::engine) fn boxes_of(publication: &Publication) -> Option<&PublishedTable> {
    let [table] = &publication.tables[..] else { return None };
    table.is_generalized().then_some(table)
}

/// What it means when parts cannot be read.
pub(in crate::engine) fn model_problem(error: ModelError) -> EngineError {
    match error {
        ModelError::Cancelled(cancelled) => cancelled.into(),
        ModelError::Io(error) => {
            let kind = match error.kind() {
                std::io::ErrorKind::ResourceBusy => Kind::Unavailable,
                _ => Kind::Internal,
            };
            let problem = Problem::new(kind, "the parts of the release could not be read");
            EngineError::Failed { problem, cause: error.to_string() }
        }
    }
}

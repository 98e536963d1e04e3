//! Earlier releases as a new one is made beside them: read back from their parts.

use std::collections::BTreeMap;
use std::io::Read;

use super::verification::{Take, read_published};
use super::verify::taxonomies_of;
use super::{ReadFile, Stopped};
use crate::microdata::{AttributeType, CellShape};
use crate::problem::{Kind, Problem};
use crate::publication::{EarlierColumn, EarlierRelease, Particulars, RowMeaning, Standing};
use crate::report::{Manifest, publication_of};

/// Reads a release of one table of tuples. `names` are the dataset's names of the table's attributes.
///
/// # Errors
/// [`Stopped::Refused`] with what cannot be joined, in words, or the answer of `take`.
pub fn read_earlier<R: Read>(
    manifest: &Manifest,
    names: &[String],
    open: impl FnOnce(&str) -> Result<R, Stopped>,
    take: Take<'_>,
) -> Result<EarlierRelease, Stopped> {
    let refused = |detail: &str| Stopped::Refused(Problem::new(Kind::BadColumns, detail));
    let [table] = &manifest.tables[..] else { return Err(refused("the release has several tables")) };
    let [part] = &table.parts[..] else { return Err(refused("the table of the release stands in several parts")) };
    let published = &table.attributes;
    if published != names {
        return Err(refused("the release publishes attributes under other names"));
    }
    let publication = publication_of(manifest, published).map_err(Stopped::bug)?;
    let described = &publication.tables[0].parts[0];
    if described.bucketed || described.rows != RowMeaning::Tuples {
        return Err(refused("the rows of the release are no tuples, but parts of buckets"));
    }
    let ReadFile { columns, rows } = read_published(part, open(&part.file)?, take).map_err(Stopped::Refused)?;
    let sequence = match publication.particulars {
        Particulars::Sequential(sequence) => Some(*sequence),
        _ => None,
    };
    let alone = publication.tables[0].standing == Standing::Unsealed && sequence.is_none();
    let column = |(name, cells): (String, crate::microdata::Column)| {
        let shape = part.shape(&name);
        EarlierColumn {
            nodes: shape == CellShape::Node,
            kind: part.types.get(&name).copied().unwrap_or(AttributeType::Text),
            shape,
            name,
            cells,
        }
    };
    let trees = taxonomies_of(manifest, published).map_err(Stopped::bug)?;
    let taxonomies: BTreeMap<_, _> =
        trees.into_iter().map(|stated| (published[stated.attribute.index()].clone(), stated.tree)).collect();
    Ok(EarlierRelease {
        release: manifest.id.map(|id| id.to_string()).unwrap_or_default(),
        columns: columns.into_iter().map(column).collect(),
        rows,
        sequence,
        alone,
        taxonomies,
    })
}

//! What a table is: attributes, values in one canonical order, dictionary-encoded columns, and the chunks that uploads
//! are kept in; how tables are read and written. Knows nothing of rules or of what is published.

mod annotations;
mod attrs;
mod axis;
mod branches;
mod builder;
mod calendar;
mod cell;
mod chunk;
mod chunk_file;
mod contingency;
mod distinct;
mod domain;
pub mod formats;
mod interner;
mod labelled_rows;
mod limits;
mod names;
mod profile;
mod selection;
mod spool_file;
mod table;
pub mod taxonomy;
mod value;

pub use annotations::{ColumnAnnotations, ExactFraction};
pub use attrs::{Attr, AttrSet, MAX_ATTRIBUTES};
pub use axis::Axis;
pub use branches::{JoinTreeNode, branches};
pub use builder::{ColumnBuilder, TableBuilder};
pub use calendar::{
    format_date, format_local_timestamp, format_time_of_day, format_timestamp, parse_date, parse_local_timestamp,
    parse_timestamp,
};
pub use cell::{CellInterval, CellShape, SUPPRESSED_CELL, is_formula, parse_set, write_json, write_set, write_span};
pub use chunk::{CHUNK_ROWS, Chunk, ChunkColumn, ChunkError};
pub use chunk_file::ChunkFile;
pub use contingency::{Associations, Coarse, DEFAULT_BINS, phi_squared};
pub use domain::{Arena, Domain};
pub use interner::{Interner, ValueKey};
pub use labelled_rows::LabelledRows;
pub use limits::{DictionaryError, IngestLimits};
pub use names::{is_composed, is_shown};
pub use profile::{ColumnProfile, DatasetProfile, ProfileBuilder};
pub use selection::ValueSelection;
pub use spool_file::{SpoolFile, SpoolReader};
pub use table::{AttributeCounts, Codes, Column, Table, UploadedColumn};
pub use taxonomy::{BoundTaxonomy, Taxonomy};
pub use value::{AttributeType, parse_integer};

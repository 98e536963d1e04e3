//! Links against reference vectors, brute force and the check without links.

mod data;
mod judgements;
mod placements;
mod separators;
mod strata;
mod vectors;

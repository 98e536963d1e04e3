//! Releases checked on the join with earlier ones.

pub(crate) mod composition;
pub(crate) mod external_tables;
pub(crate) mod joined_worlds;
pub(crate) mod linked_columns;
pub(crate) mod other_methods;
pub(crate) mod policies;
pub(crate) mod random_sequences;
pub(crate) mod refusals;
pub(crate) mod releases;

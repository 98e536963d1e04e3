//! External tables and attacks.

pub(crate) mod attacks;
pub(crate) mod external_tables;
pub(crate) mod possible_worlds;
pub(crate) mod proxy;

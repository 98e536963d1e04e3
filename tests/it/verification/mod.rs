//! External tables and attacks.

pub(crate) mod attacks;
mod dependency_attack;
pub(crate) mod external_tables;
pub(crate) mod possible_worlds;
pub(crate) mod proxy;

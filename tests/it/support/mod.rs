//! Helpers of all tests.

pub(crate) mod bounds;
pub(crate) mod browser;
pub(crate) mod chance;
pub(crate) mod folder;
pub(crate) mod harness;
pub(crate) mod independent_check;
pub(crate) mod issuer;
pub(crate) mod knowledge;
pub(crate) mod library;
pub(crate) mod nights;
pub(crate) mod object_server;
pub(crate) mod openapi_judge;
pub(crate) mod planted;
pub(crate) mod rust_source;
pub(crate) mod sequence;
pub(crate) mod stores;
pub(crate) mod table_engine;
pub(crate) mod worlds;

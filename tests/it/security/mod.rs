//! Keys, tokens, scopes, origins, encryption.

pub(crate) mod authorization_matrix;
pub(crate) mod encryption_at_rest;
pub(crate) mod gateway;
pub(crate) mod identity;
pub(crate) mod jwt;
pub(crate) mod nginx;
pub(crate) mod origin_and_host;
pub(crate) mod presets;
pub(crate) mod unnamed_files;

//! Common parts of all routes: bodies, pages, limits, access, errors.

pub(super) mod access;
pub(super) mod app;
pub(super) mod body;
pub(super) mod compression;
pub(super) mod credentials;
pub(super) mod error;
pub(super) mod extract;
pub(super) mod form;
pub(super) mod gateway;
pub(super) mod headers;
pub(super) mod limits;
pub(super) mod negotiation;
pub(super) mod origin;
pub(super) mod page;
pub(super) mod renderings;
pub(super) mod request_head;
pub(super) mod tracing;

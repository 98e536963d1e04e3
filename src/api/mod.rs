//! Routes, wire types, extractors and the OpenAPI document.

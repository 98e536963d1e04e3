//! The job document: types, rule grammar, and a check that names every fault with its pointer.

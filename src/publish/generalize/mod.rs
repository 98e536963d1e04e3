//! Generalization: rows in classes whose quasi-identifiers are published alike (slicing, section 6.1).

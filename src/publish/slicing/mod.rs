//! Slicing: attributes in columns, rows in buckets, and the values of every column in no order (slicing, section 2).

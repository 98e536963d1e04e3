//! How it is made to hold: one module per method, all returning the shape of `publication`.

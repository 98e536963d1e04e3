//! The union check over what was published before: pure.

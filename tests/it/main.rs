//! The tests over the whole house, in one binary.

mod readme;

//! Verification of submitted tables of any publisher: rules, checks and attacks.

pub(super) mod report;
pub(super) mod run;

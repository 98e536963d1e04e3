//! Whole histories of a ledger, with tables of people whose true identity only the tests know.

mod alike;
mod chains;
mod collected;
mod decision_table;
mod histories;
mod interleavings;
mod ledger;
mod scenarios;
mod tables;

//! Whole histories of a ledger, with tables of people whose true identity only the tests know.

mod collected;
mod decision_table;
mod histories;
mod ledger;
mod scenarios;
mod tables;

//! Guardian publishes microdata tables under privacy rules: many rules, one provable release, and a ledger so that the
//! next release does not undo it.
//!
//! The rooms of the house and the arrows between them are described in `ARCHITECTURE.md`; a test holds them.

pub mod api;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod engine;
pub mod identity;
pub mod inputs;
pub mod jobs;
pub mod ledger;
pub mod meter;
pub mod microdata;
pub mod model;
pub mod objects;
pub mod people;
pub mod ports;
pub mod privacy;
pub mod problem;
pub mod publication;
pub mod publish;
pub mod random;
pub mod report;
pub mod republication;
pub mod service;
pub mod spark;
pub mod spec;
pub mod store;
pub mod telemetry;
pub mod utility;
pub mod vault;
pub mod verifier;

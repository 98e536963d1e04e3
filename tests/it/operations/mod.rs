//! The process: command line, durability, metrics, faults.

pub(crate) mod backup;
pub(crate) mod command_line;
pub(crate) mod durability;
pub(crate) mod engine_rows;
pub(crate) mod engine_tables;
pub(crate) mod fault_injection;
pub(crate) mod first_specification;
pub(crate) mod fuzz_targets;
pub(crate) mod local_tables;
pub(crate) mod metrics;
pub(crate) mod object_stores;
pub(crate) mod parts_in_objects;
pub(crate) mod screens;
pub(crate) mod suggested_columns;
pub(crate) mod telemetry;
pub(crate) mod threads;
pub(crate) mod torture;

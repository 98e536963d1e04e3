//! The log on standard error, traces for a collector and the recorder of metrics, all without values of the data.
//!
//! `RUST_LOG` sets level and targets of the log; traces contain this program's spans independently of the log.

mod configuration;
mod metrics;
mod panics;
mod start;
mod traces;

pub use configuration::announce;
pub use metrics::{Recorder, RecorderError};
pub use panics::install_panic_hook;
pub use start::{Telemetry, start, start_quiet, start_with_traces};
pub use traces::{continue_trace, note_status};

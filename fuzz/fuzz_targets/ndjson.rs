//! NDJSON is read or refused.
#![no_main]

#[path = "reading.rs"]
mod reading;

use guardian::microdata::formats::InputFormat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| reading::read(InputFormat::Ndjson, data));

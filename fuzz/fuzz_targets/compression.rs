//! A compressed stream is unpacked within its limits, or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guardian_fuzz::compression::run(data));

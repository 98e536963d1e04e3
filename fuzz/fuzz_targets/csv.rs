//! CSV is read or refused; what was read is written as CSV that reads as the same table.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guardian_fuzz::csv::run(data));

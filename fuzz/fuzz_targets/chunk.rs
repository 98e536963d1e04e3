//! A stored column chunk is read or found damaged; what was read is stored as a chunk that reads as the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guardian_fuzz::chunk::run(data));

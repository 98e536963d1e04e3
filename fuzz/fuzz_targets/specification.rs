//! A specification is understood or refused: every fault points at something, or at what is missing from something; the normal
//! form of what was understood is its own.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| guardian_fuzz::specification::run(data));

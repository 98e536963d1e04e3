//! A rule is read or refused at a place in the text; what was read is written as a rule that reads as the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| guardian_fuzz::rule::run(text));

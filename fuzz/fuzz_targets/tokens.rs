//! Small texts that callers send: what is accepted is written as a text that means the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| guardian_fuzz::tokens::run(text));

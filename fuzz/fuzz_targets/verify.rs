//! A folder that says it is a release is judged, whatever is in it. The input is the manifest, then each part under a line
//! `=== FILE`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| guardian_fuzz::verify::run(text));

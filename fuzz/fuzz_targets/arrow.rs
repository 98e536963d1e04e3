//! Arrow is read or refused.
#![no_main]

use guardian::microdata::formats::InputFormat;

libfuzzer_sys::fuzz_target!(|data: &[u8]| guardian_fuzz::reading::run(InputFormat::Arrow, data));

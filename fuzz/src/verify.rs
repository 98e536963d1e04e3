//! A folder that says it is a release is judged, whatever is in it. The input is the manifest, then each part under a line
//! `=== FILE`.

use std::collections::HashMap;
use std::io::{self, Read};

use guardian::control::Control;
use guardian::engine::VerificationInput;
use guardian::engine::verify;
use guardian::publication::PublishedBytes;
use guardian::report::Manifest;

struct Files<'a>(HashMap<&'a str, &'a str>);

impl PublishedBytes for Files<'_> {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.get(file).ok_or(io::ErrorKind::NotFound)?.as_bytes()))
    }
}

/// Judges one input.
pub fn run(text: &str) {
    let mut sections = text.split("=== ");
    let Some(Ok(manifest)) = sections.next().map(serde_json::from_str::<Manifest>) else { return };
    let files = Files(sections.filter_map(|section| section.split_once('\n')).collect());
    let mut names: Vec<String> = Vec::new();
    for name in manifest.tables.iter().flat_map(|table| &table.attributes) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let claim = VerificationInput {
        manifest: &manifest,
        names: &names,
        rules: None,
        excludable: None,
        taxonomies: None,
        requirements: None,
        thresholds: None,
        closes: None,
        original: None,
        dropped: &[],
    };
    if let Ok(summary) = verify(&claim, &files, &Control::default()) {
        assert_eq!(summary.verified, summary.checks.iter().all(|check| check.passed));
    }
}

//! The examples of the document: files of `openapi/examples`, most of them answers of a real run that a test repeats.

use serde_json::Value;

use super::hoist::parsed;

macro_rules! files {
    ($($file:literal, $summary:literal;)*) => {
        const FILES: &[(&str, &str, &str)] =
            &[$(($file, $summary, include_str!(concat!("../../../openapi/examples/", $file))),)*];
    };
}

files! {
    "anatomy.json", "One sensitive attribute";
    "answers.json", "Answers from one part, from one table and from several";
    "arrow.txt", "The bytes of an Arrow IPC stream";
    "attacked.json", "Nothing was learned beyond the rules";
    "audit.json", "Every world, against every rule";
    "audit_log.json", "What was done to a policy";
    "bucketize.json", "One value of an attribute with a threshold of its own";
    "dataset.json", "The hospital table";
    "datasets.json", "A list of one dataset";
    "decompose.json", "Two sensitive attributes, whose joint values are published too";
    "differential_inference.json", "A share of 0.8 among a thousand, in answers with noise of scale 10";
    "entered.json", "A table that was published elsewhere";
    "events.txt", "The last event of a job";
    "form.json", "The file and its name";
    "generalize.json", "Classes of at least two rows, with zip codes that differ";
    "health.json", "All is well";
    "held.json", "A release that waits for an approval, from a table with columns that are not published";
    "history.json", "A release that was published and withdrawn";
    "hospital.csv", "Six patients";
    "hospital.ndjson", "Six patients, one a line";
    "inferred.json", "The share is inferred";
    "internal_report.json", "What the original says of the release";
    "job.json", "A job that made a release";
    "job_queued.json", "A job that waits";
    "job_refused.json", "A job that would have broken a rule";
    "jobs.json", "A list of one job";
    "manifest.json", "The hospital table, published";
    "one_rule.json", "A rule as an object, and everything else dropped";
    "parquet.txt", "The bytes of a Parquet file";
    "part.csv", "The quasi-identifiers of a table, tied by bucket";
    "part.json", "A page of three rows";
    "part.ndjson", "One row a line";
    "plan.json", "What would come out";
    "policies.json", "A list of one policy";
    "policy.json", "The first version of a policy";
    "policy_document.json", "What the law asks of a hospital";
    "policy_versions.json", "A list of one version";
    "profile.json", "How the columns of the hospital table go together";
    "proposed.json", "Two tables to be judged under three rules";
    "purged.json", "The rows are gone, the release stays";
    "queries.json", "Three queries over the hospital table";
    "reason.json", "Why it is done";
    "rejected.json", "A release that was given up";
    "releases.json", "A list of one release";
    "report.html", "The release in words and pictures";
    "report.json", "The release in words";
    "sequential.json", "A table beside an earlier one: whoever joins them finds no group of one row";
    "series.json", "What was published of the hospital table";
    "slicing.json", "Two columns, in which zip codes stand beside hospitals";
    "statement.json", "A table that was published elsewhere, and another name of an attribute";
    "taxonomies.json", "A list of one taxonomy";
    "taxonomy.csv", "Jobs, as rows of levels";
    "taxonomy.json", "The first version of a taxonomy";
    "taxonomy_deleted.json", "A taxonomy that is not there any more";
    "taxonomy_document.json", "Jobs, in two branches";
    "values.json", "The zip codes of the hospital table";
    "verification.json", "A table with classes that keep too little";
    "verification_form.json", "A table of one part, with the classes of two attributes";
    "verification_release.json", "A release, held against a rule of the reader's own";
    "versatile.json", "Three rules over the hospital table";
    "withdrawn.json", "A release that is not served any more";
    "zip.txt", "The bytes of a zip file";
}

fn find(file: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    FILES.iter().find(|(name, ..)| *name == file)
}

/// What an example shows.
pub(super) fn summary(file: &str) -> &'static str {
    find(file).map(|(_, summary, _)| *summary).unwrap_or_default()
}

/// An example: a document, or a text.
pub(super) fn value(file: &str) -> Value {
    match find(file) {
        Some((name, _, text)) if name.ends_with(".json") => parsed(text),
        Some((.., text)) => (*text).into(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::routes::table::ROUTES;

    #[test]
    fn every_example_is_there_and_used() {
        let answers = ROUTES.iter().flat_map(|route| route.answers).flat_map(|(.., examples)| *examples);
        let used = ROUTES.iter().flat_map(|route| route.requests).chain(answers);
        let mut used: Vec<&str> = used.map(|(_, file)| *file).collect();
        used.sort_unstable();
        used.dedup();
        let files: Vec<&str> = FILES.iter().map(|(name, ..)| *name).collect();
        assert_eq!(used, files);
        assert!(files.iter().all(|file| !value(file).is_null()));
    }
}

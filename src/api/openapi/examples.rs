//! The examples of the document, from `openapi/examples`; a test repeats the run that made most of them.

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
    "attacked.json", "An attack without findings";
    "audit.json", "All possible worlds, for every rule";
    "audit_log.json", "An entry for a policy";
    "bucketize.json", "One value with its own threshold";
    "dataset.json", "The hospital table";
    "datasets.json", "A list of one dataset";
    "decompose.json", "Two sensitive attributes with a joint table";
    "differential_inference.json", "A share of 0.8 among a thousand, in answers with noise of scale 10";
    "engine_table.json", "A table of an engine, which stays there";
    "entered.json", "An external table";
    "events.txt", "The last event of a job";
    "form.json", "The file and its name";
    "generalize.json", "Classes of at least two rows, with zip codes that differ";
    "health.json", "A healthy service";
    "held.json", "A release that waits for approval, without some columns";
    "history.json", "A published and withdrawn release";
    "hospital.csv", "Six patients";
    "hospital.ndjson", "Six patients, one per line";
    "inferred.json", "The share is inferred";
    "internal_report.html", "Figures of the original, as a page";
    "internal_report.json", "The internal report of the hospital release";
    "job.json", "A succeeded job";
    "job_queued.json", "A queued job";
    "job_refused.json", "A refused job";
    "jobs.json", "A list of one job";
    "manifest.json", "The hospital table, published";
    "one_rule.json", "A rule as an object, with unlisted attributes dropped";
    "parquet.txt", "The bytes of a Parquet file";
    "part.csv", "The quasi-identifiers of a table with bucket labels";
    "part.json", "A page of three rows";
    "part.ndjson", "One row a line";
    "part_links.json", "A part in one object";
    "plan.json", "A feasible plan";
    "policies.json", "A list of one policy";
    "policy.json", "The first version of a policy";
    "policy_document.json", "The policy of a hospital";
    "policy_versions.json", "A list of one version";
    "population.json", "The patients of a clinic, who are nowhere else";
    "population_details.json", "The patients of a clinic, with an external table";
    "population_document.json", "The patients of a clinic, who are nowhere else";
    "population_statement.json", "An external table, a new attribute, and a place of other people";
    "population_statements.json", "The recorded statements";
    "populations.json", "Two populations";
    "profile.json", "The profile of the hospital table";
    "proposed.json", "Two proposed tables under three rules";
    "purged.json", "A purged dataset with a remaining release";
    "queries.json", "Three queries over the hospital table";
    "reason.json", "A reason";
    "reference.json", "A table in a bucket, compressed with gzip";
    "rejected.json", "A rejected release";
    "releases.json", "A list of one release";
    "report.html", "What a release promises, as a page";
    "report.json", "The release as sentences";
    "republication_ended.json", "A population that is not published any more";
    "sequential.json", "A table after an earlier one: no group of their join has one row";
    "series.json", "The series of the hospital table";
    "slicing.json", "Two columns that keep zip codes with hospitals";
    "statement.json", "An external table and an alias";
    "suggestion.json", "The suggestion for the hospital table";
    "suggestion_request.json", "Two answers to questions of a suggestion";
    "taxonomies.json", "A list of one taxonomy";
    "taxonomy.csv", "Jobs as rows of levels";
    "taxonomy.json", "The first version of a taxonomy";
    "taxonomy_deleted.json", "A deleted taxonomy";
    "taxonomy_document.json", "Jobs in two branches";
    "values.json", "The zip codes of the hospital table";
    "verification.json", "A table with classes that break a rule";
    "verification_form.json", "A table of one part with classes of two attributes";
    "verification_release.json", "A release under a rule of its reader";
    "versatile.json", "Three rules over the hospital table";
    "withdrawn.json", "A withdrawn release";
    "zip.txt", "The bytes of a zip file";
}

fn find(file: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    FILES.iter().find(|(name, ..)| *name == file)
}

/// The summary of an example.
pub(super) fn summary(file: &str) -> &'static str {
    find(file).map(|(_, summary, _)| *summary).unwrap_or_default()
}

/// The value of an example: a document or a text.
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
    fn examples_exist_and_are_used() {
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

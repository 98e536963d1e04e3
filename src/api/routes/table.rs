//! The routes: for each one handler, access, examples and problems. The router, the scopes and the OpenAPI document use it.

use Kind::{
    CompositionUndecidable, Conflict, DigestMismatch, EmptyTable, Gone, GuaranteeUnsupported, IdempotencyConflict,
    InvalidSpecification, MalformedBody, MalformedRequest, NoNewPeople, NotAcceptable, NotFound, OverlappingPeople,
    PeopleAlike, PeopleUnknown, PersonKeyMissing, PopulationUndeclared, Quota, RangeUnsatisfiable, RepublishNotStarted,
    RepublishPending, RepublishStateLost, ReservedName, RowsElsewhere, SourceRefused, SourceUnreadable,
    StatementContradicted, StorageFull, TooLarge, TooManyColumns, Unavailable, UnknownPopulation, UnsupportedMediaType,
    UploadMalformed, WorkLimit,
};
use RouteAccess::{Needs, NeedsOne, Open};
use Scope::{
    DatasetsInspect, DatasetsWrite, Jobs, LedgerOverride, LedgerRead, Operate, ReleasesApprove, ReleasesInternal,
    ReleasesRead, TaxonomiesWrite,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{
    archive, attacks, audit_log, calculators, datasets, events, health, internal_report, jobs, lifecycle, part_links,
    parts, plans, policies, populations, profile, queries, releases, series, suggestions, taxonomies, upload,
    upload_by_reference, verifications,
};
use crate::api::http::access::RouteAccess;
use crate::api::http::app::App;
use crate::identity::Scope;
use crate::problem::Kind;

/// A media type and the file of `openapi/examples` with an example of it.
pub(in crate::api) type Example = (&'static str, &'static str);

/// A status that is no problem, its description and its examples.
pub(in crate::api) type RouteAnswer = (&'static str, &'static str, &'static [Example]);

/// An operation of the service.
pub(in crate::api) struct Route {
    /// Uppercase.
    pub(in crate::api) method: &'static str,
    pub(in crate::api) path: &'static str,
    /// Stable: generated clients name their functions after it.
    pub(in crate::api) id: &'static str,
    pub(in crate::api) access: RouteAccess,
    /// Examples of request bodies; empty where the route takes none.
    pub(in crate::api) requests: &'static [Example],
    pub(in crate::api) answers: &'static [RouteAnswer],
    /// Problems of this route, in addition to those of all routes with its access.
    pub(in crate::api) problems: &'static [Kind],
}

/// Makes [`ROUTES`] and [`with_handlers`] from one list.
macro_rules! route_table {
    ($($method:ident $path:literal => $module:ident::$handler:ident, $id:literal {
        access: $access:expr, requests: $requests:expr, answers: $answers:expr, problems: $problems:expr,
    })*) => {
        /// Every route of the document.
        pub(in crate::api) const ROUTES: &[Route] = &[$(Route {
            method: stringify!($method),
            path: $path,
            id: $id,
            access: $access,
            requests: $requests,
            answers: $answers,
            problems: $problems,
        }),*];

        /// Adds the handler of every route with its description.
        pub(in crate::api) fn with_handlers(router: OpenApiRouter<App>) -> OpenApiRouter<App> {
            router$(.routes(routes!($module::$handler)))*
        }
    };
}

/// The access that a route requires; `None` for an unknown route.
pub(in crate::api) fn access(method: &str, path: &str) -> Option<RouteAccess> {
    ROUTES.iter().find(|route| route.method == method && route.path == path).map(|route| route.access)
}

const JSON: &str = "application/json";
const CSV: &str = "text/csv";
const HTML: &str = "text/html";
const NDJSON: &str = "application/x-ndjson";
const PARQUET: &str = "application/vnd.apache.parquet";
const ARROW: &str = "application/vnd.apache.arrow.stream";
const ARROW_FILE: &str = "application/vnd.apache.arrow.file";
const JOB_EXAMPLES: &[Example] = &[
    (JSON, "versatile.json"),
    (JSON, "anatomy.json"),
    (JSON, "bucketize.json"),
    (JSON, "decompose.json"),
    (JSON, "generalize.json"),
    (JSON, "slicing.json"),
    (JSON, "sequential.json"),
    (JSON, "held.json"),
    (JSON, "one_rule.json"),
];
const PLAN_EXAMPLES: &[Example] = &[
    (JSON, "versatile.json"),
    (JSON, "anatomy.json"),
    (JSON, "bucketize.json"),
    (JSON, "decompose.json"),
    (JSON, "generalize.json"),
    (JSON, "slicing.json"),
    (JSON, "sequential.json"),
    (JSON, "held.json"),
    (JSON, "one_rule.json"),
    (JSON, "proposed.json"),
];
/// The second sees what the tables say that it uploaded.
const INSPECTION: &[Scope] = &[DatasetsInspect, DatasetsWrite];
/// Of what a table is, not of what it says.
const READING: &[Scope] = &[DatasetsWrite, DatasetsInspect];
const REASON: &[Example] = &[(JSON, "reason.json")];
const NOT_MODIFIED_RESPONSE: RouteAnswer = ("304", "The content has the ETag of `If-None-Match`.", &[]);
const LIFECYCLE_PROBLEMS: &[Kind] = &[MalformedBody, NotFound, Conflict, TooLarge, UnsupportedMediaType, StorageFull];

route_table! {
    POST "/v1/datasets" => upload::create, "upload_dataset" {
        access: Needs(DatasetsWrite),
        requests: &[
            (CSV, "hospital.csv"),
            (NDJSON, "hospital.ndjson"),
            (PARQUET, "parquet.txt"),
            (ARROW, "arrow.txt"),
            (ARROW_FILE, "arrow.txt"),
            ("multipart/form-data", "form.json"),
        ],
        answers: &[("201", "The dataset.", &[(JSON, "dataset.json")])],
        problems: &[
            MalformedRequest, DigestMismatch, NotFound, Conflict, IdempotencyConflict, Gone, TooLarge, TooManyColumns,
            UnsupportedMediaType, UploadMalformed, EmptyTable, GuaranteeUnsupported, UnknownPopulation, PersonKeyMissing,
            StorageFull,
        ],
    }
    POST "/v1/datasets/by-reference" => upload_by_reference::create, "upload_dataset_by_reference" {
        access: Needs(DatasetsWrite),
        requests: &[(JSON, "reference.json"), (JSON, "engine_table.json")],
        answers: &[("201", "The dataset.", &[(JSON, "dataset.json")])],
        problems: &[
            MalformedRequest, MalformedBody, SourceRefused, SourceUnreadable, DigestMismatch, NotFound, Conflict,
            IdempotencyConflict, Gone, TooLarge, TooManyColumns, UnsupportedMediaType, UploadMalformed, EmptyTable,
            GuaranteeUnsupported, UnknownPopulation, PersonKeyMissing, StorageFull,
        ],
    }
    GET "/v1/datasets" => datasets::list, "list_datasets" {
        access: NeedsOne(READING),
        requests: &[],
        answers: &[("200", "A page of datasets, newest first.", &[(JSON, "datasets.json")])],
        problems: &[MalformedRequest],
    }
    GET "/v1/datasets/{id}" => datasets::get, "get_dataset" {
        access: NeedsOne(READING),
        requests: &[],
        answers: &[("200", "The dataset.", &[(JSON, "dataset.json")])],
        problems: &[NotFound, Gone],
    }
    GET "/v1/datasets/{id}/profile" => profile::profile, "profile_dataset" {
        access: NeedsOne(INSPECTION),
        requests: &[],
        answers: &[("200", "The profile.", &[(JSON, "profile.json")])],
        problems: &[MalformedRequest, NotFound, Gone, TooManyColumns, RowsElsewhere, WorkLimit],
    }
    POST "/v1/datasets/{id}/suggestion" => suggestions::create, "suggest_specification" {
        access: NeedsOne(INSPECTION),
        requests: &[(JSON, "suggestion_request.json")],
        answers: &[("200", "The suggestion.", &[(JSON, "suggestion.json")])],
        problems: &[
            MalformedBody, NotFound, Gone, TooLarge, UnsupportedMediaType, RowsElsewhere, InvalidSpecification, WorkLimit,
        ],
    }
    GET "/v1/datasets/{id}/attributes/{name}/values" => profile::values, "list_values" {
        access: NeedsOne(INSPECTION),
        requests: &[],
        answers: &[("200", "A page of values, most frequent first.", &[(JSON, "values.json")])],
        problems: &[MalformedRequest, NotFound, Gone, RowsElsewhere, WorkLimit],
    }
    DELETE "/v1/datasets/{id}" => datasets::purge, "purge_dataset" {
        access: Needs(DatasetsWrite),
        requests: &[],
        answers: &[("200", "The receipt. A second purge is answered 410.", &[(JSON, "purged.json")])],
        problems: &[NotFound, Gone, StorageFull],
    }
    POST "/v1/plans" => plans::create, "plan_job" {
        access: NeedsOne(INSPECTION),
        requests: PLAN_EXAMPLES,
        answers: &[("200", "The plan of the job, feasible or not.", &[(JSON, "plan.json")])],
        problems: &[
            MalformedRequest, MalformedBody, NotFound, Gone, TooLarge, UnsupportedMediaType, SourceRefused,
            SourceUnreadable, RowsElsewhere, InvalidSpecification, WorkLimit, StorageFull,
        ],
    }
    POST "/v1/jobs" => jobs::submit, "submit_job" {
        access: Needs(Jobs),
        requests: JOB_EXAMPLES,
        answers: &[
            (
                "202",
                "Accepted by the counts of single columns; the job has not ended yet. Rows decide on dependencies, strata \
                 and earlier releases: it may still end as refused, for a reason that a plan shows.",
                &[(JSON, "job_queued.json")],
            ),
            ("200", "The job ended while the caller waited.", &[(JSON, "job.json")]),
        ],
        problems: &[
            MalformedRequest, MalformedBody, NotFound, Conflict, IdempotencyConflict,
            PopulationUndeclared, PeopleUnknown, OverlappingPeople, PeopleAlike,
            StatementContradicted, NoNewPeople, RepublishNotStarted, RepublishPending, RepublishStateLost,
            CompositionUndecidable, Gone, TooLarge, UnsupportedMediaType, InvalidSpecification, WorkLimit, Quota,
            StorageFull,
        ],
    }
    GET "/v1/jobs" => jobs::list, "list_jobs" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[("200", "A page of jobs, newest first.", &[(JSON, "jobs.json")])],
        problems: &[MalformedRequest],
    }
    GET "/v1/jobs/{id}" => jobs::get, "get_job" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[
            ("200", "The job in its present or final state.", &[(JSON, "job.json"), (JSON, "job_refused.json")]),
        ],
        problems: &[MalformedRequest, NotFound],
    }
    DELETE "/v1/jobs/{id}" => jobs::cancel, "cancel_job" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[("202", "The job is asked to stop.", &[(JSON, "job_queued.json")])],
        problems: &[NotFound, Conflict, StorageFull],
    }
    GET "/v1/jobs/{id}/events" => events::stream_events, "stream_job_events" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[("200", "The events of the job until it ends.", &[("text/event-stream", "events.txt")])],
        problems: &[MalformedRequest, NotFound],
    }
    GET "/v1/releases" => releases::list, "list_releases" {
        access: Needs(ReleasesRead),
        requests: &[],
        answers: &[("200", "A page of releases, newest first.", &[(JSON, "releases.json")])],
        problems: &[MalformedRequest],
    }
    GET "/v1/releases/{id}" => releases::get, "get_release" {
        access: Needs(ReleasesRead),
        requests: &[],
        answers: &[("200", "The manifest.", &[(JSON, "manifest.json")])],
        problems: &[NotFound, Gone],
    }
    GET "/v1/releases/{id}/report" => releases::report, "get_release_report" {
        access: Needs(ReleasesRead),
        requests: &[],
        answers: &[("200", "The report.", &[(JSON, "report.json"), (HTML, "report.html")])],
        problems: &[MalformedRequest, NotFound, NotAcceptable, Gone],
    }
    GET "/v1/releases/{id}/internal-report" => internal_report::get, "get_internal_report" {
        access: Needs(ReleasesInternal),
        requests: &[],
        answers: &[("200", "The report.", &[(JSON, "internal_report.json"), (HTML, "internal_report.html")])],
        problems: &[NotFound, Gone],
    }
    GET "/v1/releases/{id}/tables/{table}/parts/{part}" => parts::get, "download_part" {
        access: Needs(ReleasesRead),
        requests: &[],
        answers: &[
            ("200", "The rows.", &[
                (CSV, "part.csv"), (NDJSON, "part.ndjson"), (JSON, "part.json"), (PARQUET, "parquet.txt"),
                (ARROW, "arrow.txt"),
            ]),
            ("206", "The range of bytes.", &[
                (CSV, "part.csv"), (NDJSON, "part.ndjson"), (PARQUET, "parquet.txt"), (ARROW, "arrow.txt"),
            ]),
            NOT_MODIFIED_RESPONSE,
        ],
        problems: &[
            MalformedRequest, NotFound, NotAcceptable, Gone, RangeUnsatisfiable, ReservedName, GuaranteeUnsupported,
        ],
    }
    GET "/v1/releases/{id}/tables/{table}/parts/{part}/links" => part_links::list, "list_part_links" {
        access: Needs(ReleasesRead),
        requests: &[],
        answers: &[("200", "A page of links, in the order of the rows.", &[(JSON, "part_links.json")])],
        problems: &[MalformedRequest, NotFound, Gone],
    }
    GET "/v1/releases/{id}/archive" => archive::get, "download_archive" {
        access: Needs(ReleasesRead),
        requests: &[],
        answers: &[
            ("200", "The archive.", &[("application/zip", "zip.txt")]),
            ("206", "The range of bytes.", &[("application/zip", "zip.txt")]),
            NOT_MODIFIED_RESPONSE,
        ],
        problems: &[NotFound, Gone, RangeUnsatisfiable],
    }
    POST "/v1/releases/{id}/queries" => queries::answer, "query_release" {
        access: Needs(ReleasesRead),
        requests: &[(JSON, "queries.json")],
        answers: &[("200", "The answers, in the order of the queries.", &[(JSON, "answers.json")])],
        problems: &[MalformedBody, NotFound, Gone, TooLarge, UnsupportedMediaType, InvalidSpecification, WorkLimit],
    }
    POST "/v1/analyses/differential-inference" => calculators::differential_inference, "infer_ratio" {
        access: Needs(ReleasesRead),
        requests: &[(JSON, "differential_inference.json")],
        answers: &[("200", "The inference from the ratio of the answers.", &[(JSON, "inferred.json")])],
        problems: &[MalformedBody, TooLarge, UnsupportedMediaType, InvalidSpecification],
    }
    POST "/v1/releases/{id}/approve" => lifecycle::approve, "approve_release" {
        access: Needs(ReleasesApprove),
        requests: REASON,
        answers: &[("200", "The manifest of the published release.", &[(JSON, "manifest.json")])],
        problems: LIFECYCLE_PROBLEMS,
    }
    POST "/v1/releases/{id}/reject" => lifecycle::reject, "reject_release" {
        access: Needs(ReleasesApprove),
        requests: REASON,
        answers: &[("200", "The manifest of the rejected release.", &[(JSON, "rejected.json")])],
        problems: LIFECYCLE_PROBLEMS,
    }
    POST "/v1/releases/{id}/withdraw" => lifecycle::withdraw, "withdraw_release" {
        access: Needs(ReleasesApprove),
        requests: REASON,
        answers: &[("200", "The manifest of the withdrawn release.", &[(JSON, "withdrawn.json")])],
        problems: LIFECYCLE_PROBLEMS,
    }
    GET "/v1/releases/{id}/history" => lifecycle::history, "get_release_history" {
        access: Needs(ReleasesApprove),
        requests: &[],
        answers: &[("200", "Each change of the release's status.", &[(JSON, "history.json")])],
        problems: &[NotFound],
    }
    POST "/v1/releases/{id}/attacks" => attacks::create, "audit_release" {
        access: Needs(ReleasesRead),
        requests: &[(JSON, "audit.json")],
        answers: &[("200", "The result of the attack.", &[(JSON, "attacked.json")])],
        problems: &[
            MalformedBody, NotFound, Gone, TooLarge, UnsupportedMediaType, RowsElsewhere, InvalidSpecification,
            GuaranteeUnsupported, WorkLimit, Quota,
        ],
    }
    PUT "/v1/policies/{name}" => policies::put, "put_policy" {
        access: Needs(TaxonomiesWrite),
        requests: &[(JSON, "policy_document.json")],
        answers: &[
            ("201", "A new version.", &[(JSON, "policy.json")]),
            ("200", "The latest version is equal and remains the latest.", &[(JSON, "policy.json")]),
        ],
        problems: &[
            MalformedRequest, MalformedBody, NotFound, TooLarge, UnsupportedMediaType, InvalidSpecification,
            StorageFull,
        ],
    }
    GET "/v1/policies" => policies::list, "list_policies" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[("200", "A page of policies.", &[(JSON, "policies.json")])],
        problems: &[MalformedRequest],
    }
    GET "/v1/policies/{name}" => policies::get, "get_policy" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[("200", "The version.", &[(JSON, "policy.json")])],
        problems: &[MalformedRequest, NotFound],
    }
    GET "/v1/policies/{name}/versions" => policies::versions, "list_policy_versions" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[("200", "A page of versions, newest first.", &[(JSON, "policy_versions.json")])],
        problems: &[MalformedRequest, NotFound],
    }
    PUT "/v1/taxonomies/{name}" => taxonomies::put, "put_taxonomy" {
        access: Needs(TaxonomiesWrite),
        requests: &[(JSON, "taxonomy_document.json"), (CSV, "taxonomy.csv")],
        answers: &[
            ("201", "A new version.", &[(JSON, "taxonomy.json")]),
            ("200", "The latest version is equal and remains the latest.", &[(JSON, "taxonomy.json")]),
        ],
        problems: &[
            MalformedRequest, MalformedBody, NotFound, TooLarge, UnsupportedMediaType, UploadMalformed, EmptyTable,
            InvalidSpecification, StorageFull,
        ],
    }
    GET "/v1/taxonomies" => taxonomies::list, "list_taxonomies" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[("200", "A page of taxonomies.", &[(JSON, "taxonomies.json")])],
        problems: &[MalformedRequest],
    }
    GET "/v1/taxonomies/{name}" => taxonomies::get, "get_taxonomy" {
        access: Needs(Jobs),
        requests: &[],
        answers: &[("200", "The version.", &[(JSON, "taxonomy.json")])],
        problems: &[MalformedRequest, NotFound],
    }
    DELETE "/v1/taxonomies/{name}" => taxonomies::delete, "delete_taxonomy" {
        access: Needs(TaxonomiesWrite),
        requests: &[],
        answers: &[("200", "The version that was the latest.", &[(JSON, "taxonomy_deleted.json")])],
        problems: &[NotFound, StorageFull],
    }
    POST "/v1/verifications" => verifications::create, "verify_tables" {
        access: Needs(Jobs),
        requests: &[("multipart/form-data", "verification_form.json"), (JSON, "verification_release.json")],
        answers: &[
            ("200", "The result of the verifier, whether or not the tables pass.", &[(JSON, "verification.json")]),
        ],
        problems: &[
            MalformedRequest, MalformedBody, DigestMismatch, NotFound, Gone, TooLarge, TooManyColumns,
            UnsupportedMediaType, UploadMalformed, EmptyTable, RowsElsewhere, InvalidSpecification, GuaranteeUnsupported,
            WorkLimit, StorageFull,
        ],
    }
    GET "/v1/series/{name}" => series::get, "get_series" {
        access: Needs(LedgerRead),
        requests: &[],
        answers: &[("200", "The series with its disclosures and active rules.", &[(JSON, "series.json")])],
        problems: &[MalformedRequest, NotFound],
    }
    POST "/v1/series/{name}/disclosures" => series::declare, "enter_disclosures" {
        access: Needs(LedgerOverride),
        requests: &[(JSON, "statement.json")],
        answers: &[("201", "The recorded statement.", &[(JSON, "entered.json")])],
        problems: &[
            MalformedBody, UnknownPopulation, NotFound, Conflict, Gone, TooLarge, UnsupportedMediaType,
            InvalidSpecification, WorkLimit, StorageFull,
        ],
    }
    PUT "/v1/populations/{name}" => populations::put, "put_population" {
        access: Needs(LedgerOverride),
        requests: &[(JSON, "population_document.json")],
        answers: &[
            ("201", "A new population.", &[(JSON, "population.json")]),
            ("200", "The population was there before.", &[(JSON, "population.json")]),
        ],
        problems: &[
            MalformedRequest, MalformedBody, NotFound, Conflict, StatementContradicted, TooLarge, UnsupportedMediaType,
            InvalidSpecification, WorkLimit, StorageFull,
        ],
    }
    GET "/v1/populations" => populations::list, "list_populations" {
        access: Needs(LedgerRead),
        requests: &[],
        answers: &[("200", "A page of populations.", &[(JSON, "populations.json")])],
        problems: &[MalformedRequest],
    }
    GET "/v1/populations/{name}" => populations::get, "get_population" {
        access: Needs(LedgerRead),
        requests: &[],
        answers: &[("200", "The population.", &[(JSON, "population_details.json")])],
        problems: &[MalformedRequest, NotFound],
    }
    DELETE "/v1/populations/{name}/republication" => populations::end_republication, "end_republication" {
        access: Needs(LedgerOverride),
        requests: &[],
        answers: &[("200", "The receipt, also of a second call.", &[(JSON, "republication_ended.json")])],
        problems: &[NotFound, StorageFull],
    }
    POST "/v1/populations/{name}/statements" => populations::declare, "enter_statements" {
        access: Needs(LedgerOverride),
        requests: &[(JSON, "population_statement.json")],
        answers: &[("201", "The statements that now stand.", &[(JSON, "population_statements.json")])],
        problems: &[
            MalformedBody, NotFound, Conflict, StatementContradicted, Gone, TooLarge, UnsupportedMediaType,
            InvalidSpecification, WorkLimit, StorageFull,
        ],
    }
    // approvers of releases and operators read the log
    GET "/v1/audit-log" => audit_log::list, "list_audit_log" {
        access: NeedsOne(&[Operate, ReleasesApprove]),
        requests: &[],
        answers: &[("200", "A page of the log, newest first.", &[(JSON, "audit_log.json")])],
        problems: &[MalformedRequest],
    }
    GET "/healthz" => health::healthz, "get_health" {
        access: Open,
        requests: &[],
        answers: &[("200", "The process is running.", &[(JSON, "health.json")])],
        problems: &[],
    }
    GET "/readyz" => health::readyz, "get_readiness" {
        access: Open,
        requests: &[],
        answers: &[("200", "The service can serve.", &[(JSON, "health.json")])],
        problems: &[Unavailable],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_table_equals_document() {
        let document = crate::api::openapi_document();
        let mut described: Vec<(String, String)> = Vec::new();
        // a format of a part is the end of a path of the table
        let is_format =
            |path: &str| path.rsplit_once('.').is_some_and(|(stem, _)| ROUTES.iter().any(|route| route.path == stem));
        for (path, item) in document["paths"].as_object().unwrap().iter().filter(|(path, _)| !is_format(path)) {
            let methods = item.as_object().unwrap().keys().map(|method| method.to_uppercase());
            described.extend(methods.map(|method| (method, path.clone())));
        }
        let mut table: Vec<_> = ROUTES.iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
        described.sort();
        table.sort();
        assert_eq!(described, table);
    }
}

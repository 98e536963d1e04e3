//! What the document says of each operation beside its handler: its name, its answers with their examples, and the problems
//! that it can answer.

use crate::problem::Kind;
use Kind::{
    BadColumns, CompositionViolated, Conflict, DependencyExpansionLimit, DigestMismatch, EmptyTable, Forbidden,
    ForeignOrigin, Gone, GuaranteeUnsupported, HostRefused, IdempotencyConflict, IdentifierPublished, Internal,
    InvalidSpecification, MalformedBody, MalformedRequest, MultiSaEmpty, NotAcceptable, NotFound, NotGnf,
    ParameterRange, Quota, ReservedName, RuleImpossible, RuleIneligible, RuleMalformed, StorageFull, TooLarge,
    TooManyAttributes, TooManyColumns, TooManyRequests, Unauthenticated, Unavailable, UnclassifiedAttributes,
    UnknownAttribute, UnknownField, UnknownPolicy, UnsupportedMediaType, UploadMalformed, VacuousGuarantee, WorkLimit,
};

/// An example: the media type it has, and the file of `openapi/examples` that holds it.
pub(super) type Example = (&'static str, &'static str);

/// What the document says of an operation.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// Stable: clients are generated with functions of this name.
    pub(super) id: &'static str,
    /// Bodies that may be sent.
    pub(super) requests: &'static [Example],
    /// Answers that are no problems: status, what it means, examples.
    pub(super) answers: &'static [(&'static str, &'static str, &'static [Example])],
    /// Problems beside those that every operation with its access can answer.
    pub(super) problems: &'static [Kind],
}

/// Every operation can answer these.
pub(super) const ALWAYS: &[Kind] = &[ForeignOrigin, HostRefused, Internal];
/// Every operation that needs a key can answer these too.
pub(super) const WITH_KEYS: &[Kind] = &[Unauthenticated, Forbidden, TooManyRequests, Unavailable];
/// Every operation with a body can answer this.
pub(super) const WITH_BODY: &[Kind] = &[Kind::RequestTimeout];
/// What the faults of an `invalid-specification` can be.
pub(super) const FAULTS: &[Kind] = &[
    UnknownField,
    ParameterRange,
    ReservedName,
    UnknownAttribute,
    UnknownPolicy,
    Kind::UnknownTaxonomy,
    Kind::TaxonomyConflict,
    Kind::TaxonomyValueMissing,
    UnclassifiedAttributes,
    IdentifierPublished,
    RuleMalformed,
    RuleIneligible,
    RuleImpossible,
    MultiSaEmpty,
    NotGnf,
    DependencyExpansionLimit,
    VacuousGuarantee,
    GuaranteeUnsupported,
    BadColumns,
    TooManyAttributes,
];
/// What can end a job.
pub(super) const OF_JOBS: &[Kind] = &[
    InvalidSpecification,
    CompositionViolated,
    Gone,
    WorkLimit,
    Kind::Deadline,
    Kind::AttemptsExhausted,
    Unavailable,
    StorageFull,
    Internal,
];

const JSON: &str = "application/json";
const CSV: &str = "text/csv";
const NDJSON: &str = "application/x-ndjson";
const PARQUET: &str = "application/vnd.apache.parquet";
const ARROW: &str = "application/vnd.apache.arrow.stream";
const DOCUMENTS: &[Example] =
    &[(JSON, "versatile.json"), (JSON, "anatomy.json"), (JSON, "held.json"), (JSON, "one_rule.json")];
const PLANNED: &[Example] = &[
    (JSON, "versatile.json"),
    (JSON, "anatomy.json"),
    (JSON, "held.json"),
    (JSON, "one_rule.json"),
    (JSON, "proposed.json"),
];
const REASON: &[Example] = &[(JSON, "reason.json")];
const UNCHANGED: (&str, &str, &[Example]) = ("304", "What has the ETag that `If-None-Match` names is unchanged.", &[]);

/// Every operation.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        method: "post",
        path: "/v1/datasets",
        id: "upload_dataset",
        requests: &[
            (CSV, "hospital.csv"),
            (NDJSON, "hospital.ndjson"),
            (PARQUET, "parquet.txt"),
            (ARROW, "arrow.txt"),
            ("multipart/form-data", "form.json"),
        ],
        answers: &[("201", "The dataset.", &[(JSON, "dataset.json")])],
        problems: &[
            MalformedRequest,
            DigestMismatch,
            NotFound,
            Conflict,
            IdempotencyConflict,
            Gone,
            TooLarge,
            TooManyColumns,
            UnsupportedMediaType,
            UploadMalformed,
            EmptyTable,
            GuaranteeUnsupported,
            StorageFull,
        ],
    },
    Operation {
        method: "get",
        path: "/v1/datasets",
        id: "list_datasets",
        requests: &[],
        answers: &[("200", "A page of datasets, newest first.", &[(JSON, "datasets.json")])],
        problems: &[MalformedRequest],
    },
    Operation {
        method: "get",
        path: "/v1/datasets/{id}",
        id: "get_dataset",
        requests: &[],
        answers: &[("200", "The dataset.", &[(JSON, "dataset.json")])],
        problems: &[NotFound, Gone],
    },
    Operation {
        method: "get",
        path: "/v1/datasets/{id}/profile",
        id: "profile_dataset",
        requests: &[],
        answers: &[("200", "The profile.", &[(JSON, "profile.json")])],
        problems: &[MalformedRequest, NotFound, Gone, TooManyColumns, WorkLimit],
    },
    Operation {
        method: "get",
        path: "/v1/datasets/{id}/attributes/{name}/values",
        id: "list_values",
        requests: &[],
        answers: &[("200", "A page of values, the most frequent first.", &[(JSON, "values.json")])],
        problems: &[MalformedRequest, NotFound, Gone, WorkLimit],
    },
    Operation {
        method: "delete",
        path: "/v1/datasets/{id}",
        id: "purge_dataset",
        requests: &[],
        answers: &[("200", "The receipt. A second purge is answered 410.", &[(JSON, "purged.json")])],
        problems: &[NotFound, Gone, StorageFull],
    },
    Operation {
        method: "post",
        path: "/v1/plans",
        id: "plan_job",
        requests: PLANNED,
        answers: &[("200", "What a job would do, or why it would not.", &[(JSON, "plan.json")])],
        problems: &[
            MalformedRequest,
            MalformedBody,
            NotFound,
            Gone,
            TooLarge,
            UnsupportedMediaType,
            InvalidSpecification,
            WorkLimit,
            StorageFull,
        ],
    },
    Operation {
        method: "post",
        path: "/v1/jobs",
        id: "submit_job",
        requests: DOCUMENTS,
        answers: &[
            ("202", "Accepted; the job has not ended yet.", &[(JSON, "job_queued.json")]),
            ("200", "The job ended while the caller waited.", &[(JSON, "job.json")]),
        ],
        problems: &[
            MalformedRequest,
            MalformedBody,
            NotFound,
            Conflict,
            IdempotencyConflict,
            Gone,
            TooLarge,
            UnsupportedMediaType,
            InvalidSpecification,
            WorkLimit,
            Quota,
            StorageFull,
        ],
    },
    Operation {
        method: "get",
        path: "/v1/jobs",
        id: "list_jobs",
        requests: &[],
        answers: &[("200", "A page of jobs, newest first.", &[(JSON, "jobs.json")])],
        problems: &[MalformedRequest],
    },
    Operation {
        method: "get",
        path: "/v1/jobs/{id}",
        id: "get_job",
        requests: &[],
        answers: &[("200", "The job as it is now, or as it ended.", &[(JSON, "job.json"), (JSON, "job_refused.json")])],
        problems: &[MalformedRequest, NotFound],
    },
    Operation {
        method: "delete",
        path: "/v1/jobs/{id}",
        id: "cancel_job",
        requests: &[],
        answers: &[("202", "The job was asked to stop.", &[(JSON, "job_queued.json")])],
        problems: &[NotFound, Conflict, StorageFull],
    },
    Operation {
        method: "get",
        path: "/v1/jobs/{id}/events",
        id: "stream_job_events",
        requests: &[],
        answers: &[("200", "The events, until the job has ended.", &[("text/event-stream", "events.txt")])],
        problems: &[MalformedRequest, NotFound],
    },
    Operation {
        method: "get",
        path: "/v1/releases",
        id: "list_releases",
        requests: &[],
        answers: &[("200", "A page of releases, newest first.", &[(JSON, "releases.json")])],
        problems: &[MalformedRequest],
    },
    Operation {
        method: "get",
        path: "/v1/releases/{id}",
        id: "get_release",
        requests: &[],
        answers: &[("200", "The manifest.", &[(JSON, "manifest.json")])],
        problems: &[NotFound, Gone],
    },
    Operation {
        method: "get",
        path: "/v1/releases/{id}/report",
        id: "get_release_report",
        requests: &[],
        answers: &[("200", "The report.", &[(JSON, "report.json")])],
        problems: &[NotFound, Gone],
    },
    Operation {
        method: "get",
        path: "/v1/releases/{id}/internal-report",
        id: "get_internal_report",
        requests: &[],
        answers: &[("200", "The report.", &[(JSON, "internal_report.json")])],
        problems: &[NotFound, Gone],
    },
    Operation {
        method: "get",
        path: "/v1/releases/{id}/tables/{table}/parts/{part}",
        id: "download_part",
        requests: &[],
        answers: &[
            (
                "200",
                "The rows.",
                &[
                    (CSV, "part.csv"),
                    (NDJSON, "part.ndjson"),
                    (JSON, "part.json"),
                    (PARQUET, "parquet.txt"),
                    (ARROW, "arrow.txt"),
                ],
            ),
            UNCHANGED,
        ],
        problems: &[MalformedRequest, NotFound, NotAcceptable, Gone, ReservedName, GuaranteeUnsupported],
    },
    Operation {
        method: "get",
        path: "/v1/releases/{id}/archive",
        id: "download_archive",
        requests: &[],
        answers: &[("200", "The archive.", &[("application/zip", "zip.txt")]), UNCHANGED],
        problems: &[NotFound, Gone],
    },
    Operation {
        method: "post",
        path: "/v1/releases/{id}/queries",
        id: "query_release",
        requests: &[(JSON, "queries.json")],
        answers: &[("200", "An answer to each query, in their order.", &[(JSON, "answers.json")])],
        problems: &[MalformedBody, NotFound, Gone, TooLarge, UnsupportedMediaType, InvalidSpecification, WorkLimit],
    },
    Operation {
        method: "post",
        path: "/v1/releases/{id}/approve",
        id: "approve_release",
        requests: REASON,
        answers: &[("200", "The manifest, published.", &[(JSON, "manifest.json")])],
        problems: LIFE,
    },
    Operation {
        method: "post",
        path: "/v1/releases/{id}/reject",
        id: "reject_release",
        requests: REASON,
        answers: &[("200", "The manifest of what was rejected.", &[(JSON, "rejected.json")])],
        problems: LIFE,
    },
    Operation {
        method: "post",
        path: "/v1/releases/{id}/withdraw",
        id: "withdraw_release",
        requests: REASON,
        answers: &[("200", "The manifest of what was withdrawn.", &[(JSON, "withdrawn.json")])],
        problems: LIFE,
    },
    Operation {
        method: "get",
        path: "/v1/releases/{id}/history",
        id: "get_release_history",
        requests: &[],
        answers: &[("200", "Every change of its status.", &[(JSON, "history.json")])],
        problems: &[NotFound],
    },
    Operation {
        method: "post",
        path: "/v1/releases/{id}/audits",
        id: "audit_release",
        requests: &[(JSON, "audit.json")],
        answers: &[("200", "How the attack went.", &[(JSON, "attacked.json")])],
        problems: &[
            MalformedBody,
            NotFound,
            Gone,
            TooLarge,
            UnsupportedMediaType,
            InvalidSpecification,
            GuaranteeUnsupported,
            WorkLimit,
        ],
    },
    Operation {
        method: "put",
        path: "/v1/policies/{name}",
        id: "put_policy",
        requests: &[(JSON, "policy_document.json")],
        answers: &[
            ("201", "A version was written.", &[(JSON, "policy.json")]),
            ("200", "The latest version is equal, and stays the latest.", &[(JSON, "policy.json")]),
        ],
        problems: &[
            MalformedRequest,
            MalformedBody,
            NotFound,
            TooLarge,
            UnsupportedMediaType,
            InvalidSpecification,
            StorageFull,
        ],
    },
    Operation {
        method: "get",
        path: "/v1/policies",
        id: "list_policies",
        requests: &[],
        answers: &[("200", "A page of policies.", &[(JSON, "policies.json")])],
        problems: &[MalformedRequest],
    },
    Operation {
        method: "get",
        path: "/v1/policies/{name}",
        id: "get_policy",
        requests: &[],
        answers: &[("200", "The version.", &[(JSON, "policy.json")])],
        problems: &[MalformedRequest, NotFound],
    },
    Operation {
        method: "get",
        path: "/v1/policies/{name}/versions",
        id: "list_policy_versions",
        requests: &[],
        answers: &[("200", "A page of versions, newest first.", &[(JSON, "policy_versions.json")])],
        problems: &[MalformedRequest, NotFound],
    },
    Operation {
        method: "put",
        path: "/v1/taxonomies/{name}",
        id: "put_taxonomy",
        requests: &[(JSON, "taxonomy_document.json"), (CSV, "taxonomy.csv")],
        answers: &[
            ("201", "A version was written.", &[(JSON, "taxonomy.json")]),
            ("200", "The latest version is equal, and stays the latest.", &[(JSON, "taxonomy.json")]),
        ],
        problems: &[
            MalformedRequest,
            MalformedBody,
            NotFound,
            TooLarge,
            UnsupportedMediaType,
            UploadMalformed,
            EmptyTable,
            InvalidSpecification,
            StorageFull,
        ],
    },
    Operation {
        method: "get",
        path: "/v1/taxonomies",
        id: "list_taxonomies",
        requests: &[],
        answers: &[("200", "A page of taxonomies.", &[(JSON, "taxonomies.json")])],
        problems: &[MalformedRequest],
    },
    Operation {
        method: "get",
        path: "/v1/taxonomies/{name}",
        id: "get_taxonomy",
        requests: &[],
        answers: &[("200", "The version.", &[(JSON, "taxonomy.json")])],
        problems: &[MalformedRequest, NotFound],
    },
    Operation {
        method: "delete",
        path: "/v1/taxonomies/{name}",
        id: "delete_taxonomy",
        requests: &[],
        answers: &[("200", "The version that was the latest.", &[(JSON, "taxonomy_deleted.json")])],
        problems: &[NotFound, StorageFull],
    },
    Operation {
        method: "post",
        path: "/v1/verifications",
        id: "verify_tables",
        requests: &[("multipart/form-data", "verification_form.json"), (JSON, "verification_release.json")],
        answers: &[("200", "What was found, also when it is not verified.", &[(JSON, "verification.json")])],
        problems: &[
            MalformedRequest,
            MalformedBody,
            DigestMismatch,
            NotFound,
            Gone,
            TooLarge,
            TooManyColumns,
            UnsupportedMediaType,
            UploadMalformed,
            EmptyTable,
            InvalidSpecification,
            GuaranteeUnsupported,
            WorkLimit,
            StorageFull,
        ],
    },
    Operation {
        method: "get",
        path: "/v1/audit-log",
        id: "list_audit_log",
        requests: &[],
        answers: &[("200", "A page of the log, newest first.", &[(JSON, "audit_log.json")])],
        problems: &[MalformedRequest],
    },
    Operation {
        method: "get",
        path: "/healthz",
        id: "get_health",
        requests: &[],
        answers: &[("200", "The process lives.", &[(JSON, "health.json")])],
        problems: &[],
    },
    Operation {
        method: "get",
        path: "/readyz",
        id: "get_readiness",
        requests: &[],
        answers: &[("200", "The service can serve.", &[(JSON, "health.json")])],
        problems: &[Unavailable],
    },
];

const LIFE: &[Kind] = &[MalformedBody, NotFound, Conflict, TooLarge, UnsupportedMediaType, StorageFull];

//! Every kind of problem is reached: here over HTTP, or by the test that is named beside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use guardian::problem::Kind;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::harness::{Answer, HOSPITAL, Server, hospital_method, kind, versatile};

const NIGHTS: &str = "tests/it/ledger/nights.rs";
const REFERENCES: &str = "tests/it/service/uploads_by_reference.rs";
const CHAINS: &str = "src/store/conformance/chains.rs";

/// Kinds that need a fault of the machine, of the clock or of the service, and the tests that bring it about.
const ELSEWHERE: [(Kind, &str, &str); 46] = [
    (Kind::SourceRefused, REFERENCES, "only_listed_sources_are_read"),
    (Kind::SourceUnreadable, REFERENCES, "faults_of_a_source_are_named"),
    (Kind::RowsElsewhere, "tests/it/operations/engine_tables.rs", "what_needs_rows_says_that_they_are_elsewhere"),
    (Kind::UnknownPopulation, "tests/it/ledger/uploads_of_people.rs", "what_an_upload_says_wrongly_is_refused"),
    (Kind::PersonKeyMissing, "tests/it/ledger/uploads_of_people.rs", "what_an_upload_says_wrongly_is_refused"),
    (Kind::SeriesUndeclared, "tests/it/ledger/undeclared.rs", "refusals_of_earlier_versions_are_served"),
    (Kind::OverlappingRowSets, "tests/it/ledger/undeclared.rs", "refusals_of_earlier_versions_are_served"),
    (Kind::PopulationUndeclared, NIGHTS, "other_people_are_declared_and_named_in_the_manifest"),
    (Kind::PeopleUnknown, NIGHTS, "people_need_keys_to_be_left_out"),
    (Kind::OverlappingPeople, NIGHTS, "second_night_is_refused_and_its_remedy_works"),
    (Kind::PeopleAlike, NIGHTS, "keys_drawn_anew_are_noticed_by_the_cells"),
    (Kind::RepublishNotStarted, "src/people/tests/chains.rs", "what_was_published_once_does_not_become_a_chain"),
    (Kind::RepublishPending, CHAINS, "a_job_goes_on_from_the_state_before"),
    (Kind::RepublishUnsupported, "src/spec/tests/republish.rs", "what_no_night_offers_is_a_fault"),
    (Kind::RepublishNeedsRecordKey, "src/spec/tests/republish.rs", "persons_need_a_key_and_have_one_row"),
    (
        Kind::RepublishSpecificationChanged,
        "tests/it/republication/nights.rs",
        "other_terms_are_refused_with_the_way_back",
    ),
    (Kind::RepublishValueChanged, "tests/it/republication/nights.rs", "what_no_night_can_be_made_of_is_refused"),
    (Kind::RepublishStateLost, CHAINS, "a_job_goes_on_from_the_state_before"),
    (Kind::NoNewPeople, NIGHTS, "five_nights_publish_each_person_once"),
    (
        Kind::CompositionUndecidable,
        "tests/it/ledger/data_subjects.rs",
        "a_column_under_a_new_name_is_refused_until_it_is_declared",
    ),
    (Kind::StatementContradicted, "tests/it/ledger/populations.rs", "contradicted_statements_leave_nothing"),
    (Kind::Unauthenticated, "tests/it/security/identity.rs", "every_route_asks_every_caller_for_its_scope"),
    (Kind::Forbidden, "tests/it/security/identity.rs", "every_route_asks_every_caller_for_its_scope"),
    (Kind::Quota, "tests/it/service/idempotency.rs", "jobs_above_the_quota_are_refused"),
    (Kind::Deadline, "tests/it/operations/durability.rs", "a_deadline_ends_a_job"),
    (
        Kind::AttemptsExhausted,
        "src/store/conformance/queue.rs",
        "expired_leases_are_reaped_until_attempts_are_exhausted",
    ),
    (Kind::Internal, "src/jobs/worker/tests/mod.rs", "a_panic_fails_the_job_and_the_worker_goes_on"),
    (Kind::Unavailable, "tests/it/architecture/problem_catalogue.rs", "a_store_that_is_gone_is_unavailable"),
    (Kind::RequestTimeout, "tests/it/service/limits.rs", "silent_upload_times_out"),
    (Kind::UriTooLong, "tests/it/service/request_errors.rs", "heads_of_requests_are_bounded"),
    (Kind::HeadersTooLarge, "tests/it/service/request_errors.rs", "heads_of_requests_are_bounded"),
    (Kind::RangeUnsatisfiable, "tests/it/reading/ranges.rs", "every_range_is_a_slice_of_the_whole"),
    (Kind::WorkLimit, "tests/it/service/limits.rs", "job_above_the_memory_budget_is_refused"),
    (Kind::ThresholdMissing, "tests/it/methods/bucketize.rs", "infeasible_specification_is_refused_with_reason"),
    (Kind::ThresholdUnused, "tests/it/methods/thresholds.rs", "a_threshold_of_a_value_that_does_not_occur_is_refused"),
    (Kind::UnknownDependency, "tests/it/methods/known_dependencies.rs", "withdrawal_of_nothing_is_a_fault"),
    (Kind::CanBeConcluded, "tests/it/methods/decompose_breaches.rs", "inferences_are_refused_unless_they_are_reported"),
    (Kind::InfeasibleSizes, "tests/it/methods/bucketize.rs", "infeasible_specification_is_refused_with_reason"),
    (Kind::NoNoise, "src/publish/decompose/tests/mod.rs", "more_values_than_there_are_cannot_be_published"),
    (Kind::DomainTooSmall, "tests/it/methods/bucketize.rs", "infeasible_specification_is_refused_with_reason"),
    (Kind::PriorReleaseViolates, "tests/it/sequential/refusals.rs", "infeasible_specification_is_refused_with_reason"),
    (Kind::ExclusionContradicted, "tests/it/sequential/refusals.rs", "infeasible_specification_is_refused_with_reason"),
    (Kind::UnknownRelease, "tests/it/sequential/refusals.rs", "infeasible_specification_is_refused_with_reason"),
    (Kind::JoinTooDense, "tests/it/sequential/refusals.rs", "a_join_of_too_much_is_refused"),
    (Kind::NotGnf, "tests/it/methods/proposed_tables.rs", "the_tables_of_the_paper_are_judged"),
    (Kind::StorageFull, "src/store/sqlite/tests.rs", "a_full_store_says_so_and_keeps_nothing"),
];

/// The kinds that occur in an answer: its own and those of its faults.
fn kinds(problem: &Value) -> Vec<String> {
    let faults = problem["errors"].as_array().into_iter().flatten();
    std::iter::once(problem).chain(faults).map(|document| kind(document).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_reached() {
    let server = Server::start_with(|config| {
        config.max_columns = 200;
        config.max_upload_bytes = 100_000;
        config.max_plans = 0;
    })
    .await;
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut note = |problem: &Value| reached.extend(kinds(problem));

    let wide = |columns: usize| {
        let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
        format!("{}\n{}\n", names.join(","), vec!["1"; columns].join(","))
    };
    type Upload<'a> = (&'a str, String, &'a [(&'a str, &'a str)]);
    let digest = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:";
    let uploads: [Upload<'_>; 7] = [
        ("surprise=1", HOSPITAL.to_owned(), &[]),
        ("", HOSPITAL.to_owned(), &[("content-digest", digest)]),
        ("", "x\n".repeat(100_000), &[]),
        ("", wide(201), &[]),
        ("", HOSPITAL.to_owned(), &[("content-type", "image/png")]),
        ("", "a,b\n1\n".to_owned(), &[]),
        ("", "a,b\n".to_owned(), &[]),
    ];
    for (query, body, headers) in uploads {
        note(&server.upload_with(query, body, headers).await.json());
    }

    let dataset = server.dataset(HOSPITAL).await;
    let gone = server.dataset(HOSPITAL).await;
    server.delete(&format!("/v1/datasets/{gone}")).await.ok(200);
    let attributes = server.dataset(wide(150)).await;
    let all: serde_json::Map<_, _> = (0..150).map(|column| (format!("c{column}"), json!({"publish": true}))).collect();
    let done = server.job(&dataset, json!({"method": hospital_method()})).await.ok(200);
    let release = done["links"]["release"].as_str().unwrap();

    for (method, path, header, value) in [
        (Method::GET, "/v1/datasets", "origin", "https://example.com"),
        (Method::GET, "/v1/datasets", "host", "example.com"),
        (Method::GET, "/nowhere", "accept", "*/*"),
        (Method::PUT, "/v1/jobs", "accept", "*/*"),
        (Method::GET, &format!("{release}/tables/t1/parts/qi"), "accept", "image/png"),
        (Method::DELETE, done["links"]["self"].as_str().unwrap(), "accept", "*/*"),
        (Method::GET, &format!("/v1/datasets/{gone}"), "accept", "*/*"),
        (Method::POST, "/v1/jobs", "content-type", "application/json"),
    ] {
        note(&server.send(server.request(method, path).header(header, value)).await.json());
    }

    let mut faulty = json!({"surprise": 1, "priority": "high", "schema": [],
        "attributes": {"nobody": {}, "age": {"identifier": true, "rename": "bucket"}},
        "method": versatile(&["age -> race", "age", "-> gender"])});
    faulty["method"]["default_guarantee"]["l"] = 7.into();
    let mut vacuous = json!({"method": hospital_method()});
    vacuous["method"]["default_guarantee"]["l"] = 1.into();
    let overlapping = json!({"unlisted": "drop", "method": {"type": "anatomy", "quasi_identifiers": ["age"],
        "sensitive": "age", "guarantee": {"type": "l_diversity", "l": 2}}});
    let infeasible = json!({"unlisted": "drop", "method": {"type": "slicing", "sensitive": "gender",
        "columns": {"explicit": [["age"], ["gender"]]}, "guarantee": {"type": "l_diversity", "l": 3}}});
    let on_race = |tree: Value| json!({"attributes": {"race": {"taxonomy": tree}}, "method": hospital_method()});
    for (dataset, document) in [
        (&dataset, faulty),
        (&dataset, json!({"policy": "x-v1"})),
        (&dataset, json!({"attributes": {"age": {"taxonomy": "none"}}, "method": hospital_method()})),
        (&dataset, on_race(json!({"Any": ["asian", "asian"]}))),
        (&dataset, on_race(json!({"Any": ["asian"]}))),
        (&dataset, vacuous),
        (&dataset, overlapping),
        (&dataset, infeasible),
        (&attributes, json!({"attributes": all, "method": versatile(&["c0 -> c1"])})),
    ] {
        note(&server.job(dataset, document).await.json());
    }

    let rules: Vec<String> = (0..20).map(|known| format!("c{known} -> c100")).collect();
    let pairs = (20..70).flat_map(|a| (a + 1..70).map(move |b| (a, b))).take(1000);
    let dependencies: Vec<Value> =
        pairs.map(|(a, b)| json!({"determinant": [format!("c{a}"), format!("c{b}")], "dependent": ["c100"]})).collect();
    let mut endless = json!({"unlisted": "drop", "method": versatile(&[])});
    endless["method"]["rules"] = json!(rules);
    endless["method"]["functional_dependencies"] = json!(dependencies);
    note(&server.job(&attributes, endless).await.json());

    for body in ["a\n1\n", "a\n2\n"] {
        let answer = server.upload_with("", body, &[("idempotency-key", "k")]).await;
        if answer.status >= 400 {
            note(&answer.json());
        }
    }
    note(&server.post("/v1/plans", &json!({})).await.json());

    // those that a job runs into
    let open = json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "race": {"publish": true}},
        "no_rules_reason": "x", "method": {"type": "versatile", "rules": []}});
    note(&server.refused(&dataset, open).await);
    let county: String = (0..80).map(|row| format!("z{},c{}\n", row % 4, row % 4 / 2)).collect();
    let server = server.anew().await;
    let dependent = server.dataset(format!("zip,county\n{county}")).await;
    note(&server.refused(&dependent, json!({"method": versatile(&["zip -> county"])})).await);
    let server = server.anew().await;
    let same = server.dataset("a,b,c\n1,x,p\n2,x,p\n3,y,q\n4,y,q\n").await;
    let mut none_left = json!({"unlisted": "drop", "method": versatile(&["a -> b", "a -> c"])});
    none_left["attributes"] = json!({"a": {"publish": true, "identifier": false}});
    none_left["method"]["algorithm"] = "multi_sa".into();
    note(&server.refused(&same, none_left).await);
    server.stop().await;

    let elsewhere = ELSEWHERE.iter().map(|(kind, ..)| kind.name().to_owned());
    let all: BTreeSet<String> = Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect();
    let missed: Vec<_> = all.difference(&reached.into_iter().chain(elsewhere).collect()).cloned().collect();
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn kinds_reached_elsewhere_have_their_test() {
    for (kind, file, test) in ELSEWHERE {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}(")), "{}: {file} has no {test}", kind.name());
    }
}

/// The store is closed under a service that still answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_gone_is_unavailable() {
    let server = Server::start().await;
    let router = server.router();
    server.stop().await;
    for path in ["/readyz", "/v1/datasets", "/v1/jobs"] {
        let request = axum::http::Request::builder().uri(path).header("host", "localhost");
        let request = request.body(axum::body::Body::empty()).unwrap();
        let response = tower::ServiceExt::oneshot(router.clone(), request).await.unwrap();
        let retry = response.headers()["retry-after"].to_str().unwrap().to_owned();
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec();
        let problem = Answer { status, headers, body }.problem(503, "unavailable");
        crate::support::harness::assert_problem(&problem);
        assert!(retry.parse::<u32>().is_ok());
    }
}

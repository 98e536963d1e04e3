//! Attacks on releases that need only parts and manifests. `attacks_on_original` handles the others.

use axum::Json;
use axum::extract::State;
use uuid::Uuid;

use super::attacks_on_original;
use super::intersection;
use super::stored_parts::{StoredParts, engine_problem, open_stored_parts};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, JsonDocument};
use crate::app::read_request;
use crate::app::run_engine;
use crate::engine::{AttackReport, AttackTarget};
use crate::problem::Problem;
use crate::spec::{Attack, AttackRequest};
use crate::{engine, spec};

/// Runs an attack against a release
///
/// `exact_posteriors` enumerates the possible worlds of a release of at most 16 rows. A possible world gives each person one row of
/// every table, no row twice, so that tables agree on shared attributes; all worlds are equally probable. A finding is a person whose
/// sensitive value has a larger share of the worlds than the rule allows. More rows or too many worlds are `work-limit`. Every
/// world keeps the functional dependencies of the manifest between published attributes, unless no world keeps them.
///
/// `join` joins a release by `sequential` with the releases that it was checked against. For each requirement, or the one with the
/// pointer `rule`, `joins` contains the measure of every join and its worst group. A finding is a measure that breaks the
/// requirement. A join with too many tuples is `work-limit`; a withdrawn earlier release is `gone`. With an external table the attack
/// reads the dataset of its rows: this needs the scope `releases:internal`, adds an entry to the audit log, and is `gone` after a
/// purge of that dataset.
///
/// `intersection` reads a night of a population that is published night after night, and all nights before it that are served. It
/// keeps, of the values of a person's bucket on one night, those that the buckets of the other nights have too. A finding is a person
/// of whom a value has more than 1/l of what is left; `intersection` has the number of nights and persons, and every promise of
/// earlier nights that a later one breaks. With `persons` of `keys`, the default, the adversary knows who stands in which row: this
/// needs the scope `releases:internal`, adds an entry for each night to the audit log, and is `gone` after a purge of a night's dataset. With `cells`
/// it takes rows with equal cells, which are unique on both nights, for one person, and may be wrong. Too many nights or rows are
/// `work-limit`.
///
/// `chain`, `exclusion`, `excludable` and `forced` use the parts of decomposed releases. A joint row is possible at a position of its
/// primary value if some assignment of all joint rows puts it there and each bucket lists its values. `chain`: an adversary who knows
/// a person's primary value excludes all but fewer than `lambda` (default 2) values of another sensitive attribute. `exclusion`: the
/// same for an adversary who excludes up to `excluded` (default 1) primary values; findings of fewer exclusions are not repeated. The
/// posterior of such a finding is the lower bound for one of the remaining values. `forced`: a value is certain for more than 1/l of
/// the rows of a bucket. `excludable`: no assignment contains a listed value, so that this noise protects nothing.
///
/// `corruption` uses the parts of bucketized tables, with or without counterfeits. The adversary knows the sensitive values of
/// `corrupted` (default 1) rows of a bucket, the most informative ones, and removes them from the bucket. A value that remains more
/// than once is real; a value that remains once may be a counterfeit. A finding is a bucket in which a value of another row exceeds
/// the bound of the rule.
///
/// `proxy` needs the original: the scope `releases:internal` and an entry in the audit log. A fixed secret half of the original
/// represents the adversary's knowledge of similar people: how often the values of each published attribute occur with the sensitive
/// values. For at most 20,000 target rows of the other half, the attack combines the candidates that the tables leave with these
/// counts, for each rule that protects one attribute. A finding is an attribute that gives the true value, on average over the
/// targets, a significantly higher probability than the rule allows.
///
/// `negative_association` needs the original: the scope `releases:internal` and an entry in the audit log. It attacks bucketized
/// tables of exact values, with or without counterfeits, under rules that bound the share of each value. A value of a
/// quasi-identifier with at least 30 rows excludes a sensitive value that does not occur among them, or that is ten times rarer there
/// than in the whole table. The adversary removes the excluded values from a person's bucket. In a bucket with counterfeits, a value
/// that occurs once and that all rows exclude counts as a counterfeit. A finding is a bucket and a row, given by its known values,
/// with a remaining value that is more probable than the rule allows; equal rows are one finding. `worst` covers rows with excluded
/// values only. A row that excludes all values of its bucket has no finding. Too many distinct rows in buckets of too many values are
/// `work-limit`.
///
/// `dependency` needs the original: the scope `releases:internal` and an entry in the audit log. It attacks bucketized tables of
/// exact values under rules that bound the share of each value. The adversary knows the dependencies of the manifest: which values
/// of their attributes go together. From a person's bucket the adversary removes the sensitive values that no row of the original has
/// with the values of that person. A finding is a bucket and a row with a remaining value that is more probable than the rule allows.
/// `worst` covers all rows. Too many distinct rows in buckets of too many values are `work-limit`.
///
/// `membership` needs the original: the scope `releases:internal` and an entry in the audit log. For each bucketized table it counts
/// the tuples that match a bucket in all parts and are not rows of the original (`fake_full`; `fake_qi` without protected
/// attributes), and the buckets that rows and other tuples match. Parts agree on shared attributes. Large numbers are estimates from
/// a sample, with their standard error. No rule bounds membership, so the attack has no findings.
#[utoipa::path(post, path = "/v1/releases/{id}/attacks", tag = "releases", params(("id" = Uuid, Path)),
    request_body = ref("#/components/schemas/AttackRequest"), responses((status = 200, body = AttackReport)))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    JsonDocument(document): JsonDocument,
) -> Result<Json<AttackReport>, Problem> {
    let request = read_request(&document, spec::read_attack_request).await?;
    let _place = app.plans.try_acquire(&caller.tenant)?;
    if request.attack.uses_original() {
        return attacks_on_original::attack_on_original(&app, &caller, id, request).await.map(Json);
    }
    if request.attack == Attack::Intersection {
        return intersection::attack(&app, &caller, id, request).await.map(Json);
    }
    let AttackRequest { attack, options, rule } = request;
    let (manifest, storage) = open_stored_parts(&app, &caller, id).await?;
    if attack == Attack::Join {
        if !engine::external_releases(&manifest).is_empty() {
            return attacks_on_original::join_attack(&app, &caller, id, rule).await.map(Json);
        }
        let mut shelves = vec![storage];
        for earlier in engine::against(&manifest)?.iter().filter_map(|id| Uuid::try_parse(id).ok()) {
            shelves.push(open_stored_parts(&app, &caller, earlier).await?.1);
        }
        let attacked = run_engine("the computation", move |control| {
            let (joinable, _room) = StoredParts::joinable(&shelves, control)?;
            joinable.attack(rule.as_deref(), control)
        });
        return attacked.await.map(Json);
    }
    let attacked = run_engine("the computation", move |control| {
        if attack == Attack::Corruption {
            return storage.corruption(options.corrupted, rule.as_deref(), control);
        }
        let (material, _room) = storage.read(control)?;
        let rules = engine::rules_of(&manifest, rule.as_deref(), material.names()).map_err(engine_problem)?;
        let target = AttackTarget { manifest: &manifest, material: &material, rules: &rules };
        if attack.of_decompositions() {
            return engine::inference_attack(target, attack, options, control);
        }
        engine::attack_tables(target, attack, &|_| 0, control)
    });
    attacked.await.map(Json)
}

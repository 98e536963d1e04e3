//! Attacks on releases, played as audits. Reaches parts and manifests only, never a dataset: what needs the original is played by
//! `originals`.

use axum::Json;
use axum::extract::State;
use utoipa::ToSchema;
use uuid::Uuid;

use super::attacks_on_original;
use super::stored_parts::{StoredParts, engine_problem, open_stored_parts, run_blocking};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{IdPath, JsonDocument};
use crate::engine::AttackReport;
use crate::problem::Problem;
use crate::spec::Attack;
use crate::{engine, spec};

/// Which attack is played, against which rule. It is read by hand, so that one answer names every fault.
#[derive(ToSchema)]
#[expect(dead_code, reason = "gives the schema its name")]
pub(in crate::api) struct AttackRequest {
    attack: String,
    rule: Option<String>,
}

/// Plays an attack on a release
///
/// `exact_posteriors` counts every world that the published parts allow, one by one, for releases of at most 16 rows: a world gives
/// each person one row of every table, no row twice, so that tables which share an attribute agree on it, and all worlds are
/// equally probable. It learns more than a rule allows when the share of worlds in which a person of known attributes has a
/// sensitive value exceeds the rule's bound. More rows, or too many worlds, are `work-limit`. What an adversary knows of
/// dependencies is not in it.
///
/// `join` is played on releases by `sequential`, with those that they were made against: rows that match are put together, and for
/// every requirement, or the one whose pointer is given as `rule`, `joins` tells what it comes to on each join that counts, and in which
/// group. There is a breach where that is not what was asked for. A join of too many tuples is `work-limit`; an earlier release that is
/// withdrawn is `gone`. Against a table that was published elsewhere and entered it reads the dataset that holds its rows, and needs
/// the scope `releases:internal`; it is in the audit log then, and `gone` when that dataset was purged.
///
/// `chain`, `exclusion`, `excludable` and `forced` are played on the parts of decomposed releases. A joint row is possible at a place
/// of its primary value when some assignment of all joint rows puts it there with values that each bucket lists. `chain`: whoever
/// knows somebody's primary value is left with fewer than `lambda` values (2 where nothing is said) of another sensitive attribute.
/// `exclusion`: the same for whoever knows of up to `excluded` (1) primary values that they are not somebody's; what fewer exclusions
/// tell is not listed again. The posterior of such a finding is what one of the values left has at least. `forced`: a value is certain
/// of more of a bucket's rows than 1/l. `excludable`: a listed value that no assignment has, which is noise that protects nobody.
///
/// `corruption` is played on the parts of bucketized tables, also of those with counterfeits: whoever knows the sensitive values of
/// `corrupted` (1) rows of a bucket, those that tell most, removes them from the bucket's. A value that is left more than once is
/// real; one that is left once may be a counterfeit. A finding is a bucket in which a value of another row is then more probable than
/// the rule allows.
///
/// `proxy` needs the original, and so the scope `releases:internal`; each time is in the audit log. Half of the original's rows, a
/// secret half that is always the same, stands for what an adversary knows of people like these: how often the values of each
/// published attribute go with the values of the sensitive one. For the targets, at most 20,000 rows of the other half, what the
/// tables leave possible of both is held against these counts, for every rule that protects one attribute. A finding is an attribute
/// by which the true value is given, on average over the targets, a higher probability than the rule allows to any value, beyond
/// what chance explains.
///
/// `negative_association` needs the original, and so the scope `releases:internal`; it is in the audit log. It is played on
/// bucketized tables of exact values, also with counterfeits, against rules that bound the share of each value. A value of a
/// quasi-identifier that 30 rows of the original have or more excludes a sensitive value that is ten times rarer among them than in the whole, or does not
/// occur there. Whoever knows that crosses out of somebody's bucket what the person's values exclude; in a bucket with
/// counterfeits, a value that occurs once and that all of its rows exclude is taken for one of them. A finding is a bucket and a
/// row, by what is known of it, for which a value that is left is then more probable than the rule allows; rows that are alike are
/// one. `worst` is over those for whom something is crossed out. Nothing is told of a row that excludes all values of its bucket. Too
/// many different rows in buckets of too many values are `work-limit`.
///
/// `membership` needs the original, and so the scope `releases:internal`; it is in the audit log. Of every table that is tied by
/// bucket it tells how many tuples match some bucket in all parts and are no row of the original (`fake_full`; `fake_qi` without
/// protected attributes), and by how many buckets rows and other tuples are matched; where parts share attributes, they agree on
/// these. Where there are too many tuples to be counted, numbers are estimated from a sample, with their standard error. No rule
/// bounds it: there is no breach.
#[utoipa::path(post, path = "/v1/releases/{id}/attacks", tag = "releases", params(("id" = Uuid, Path)),
    request_body = AttackRequest, responses((status = 200, body = AttackReport)))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    JsonDocument(document): JsonDocument,
) -> Result<Json<AttackReport>, Problem> {
    let (attack, options, rule) = spec::read_audit(&document).map_err(Problem::of_faults)?;
    let _place = app.plans.try_acquire()?;
    if attack.uses_original() {
        return attacks_on_original::attack_on_original(&app, &caller, id, (attack, rule)).await.map(Json);
    }
    let (manifest, storage) = open_stored_parts(&app, &caller, id).await?;
    if attack == spec::Attack::Join {
        if !engine::entered(&manifest).is_empty() {
            return attacks_on_original::join_attack(&app, &caller, id, rule).await.map(Json);
        }
        let mut shelves = vec![storage];
        for earlier in engine::against(&manifest)?.iter().filter_map(|id| Uuid::try_parse(id).ok()) {
            shelves.push(open_stored_parts(&app, &caller, earlier).await?.1);
        }
        let attacked = run_blocking(move |control| {
            let (joinable, _room) = StoredParts::joinable(&shelves, control)?;
            joinable.attack(rule.as_deref(), control)
        });
        return attacked.await.map(Json);
    }
    let attacked = run_blocking(move |control| {
        if attack == Attack::Corruption {
            return storage.corruption(options.corrupted, rule.as_deref(), control);
        }
        let (material, _room) = storage.read(control)?;
        let rules = engine::rules_of(&manifest, rule.as_deref(), material.names()).map_err(engine_problem)?;
        if attack.of_decompositions() {
            return engine::inference_attack(&material, &manifest, (attack, options), &rules, control);
        }
        engine::attack_tables(&material, attack, &rules, &|_| 0, &manifest, control)
    });
    attacked.await.map(Json)
}

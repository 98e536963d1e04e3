//! Attacks on releases, played as audits. Reaches parts and manifests only, never a dataset.

use axum::Json;
use axum::extract::State;
use utoipa::ToSchema;

use super::App;
use super::access::Who;
use super::extract::{Document, Id};
use super::verifications::{computed, refused, shelved};
use crate::engine::{self, Attacked};
use crate::problem::Problem;
use crate::spec;

/// Which attack is played, against which rule. It is read by hand, so that one answer names every fault.
#[derive(ToSchema)]
#[expect(dead_code, reason = "gives the schema its name")]
pub(super) struct AuditRequest {
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
#[utoipa::path(post, path = "/v1/releases/{id}/audits", tag = "releases", params(("id" = Uuid, Path)),
    request_body = AuditRequest, responses((status = 200, body = Attacked)))]
pub(super) async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Id(id): Id,
    Document(document): Document,
) -> Result<Json<Attacked>, Problem> {
    let (attack, rule) = spec::read_audit(&document).map_err(Problem::of_faults)?;
    let _place = app.plans.take()?;
    let (manifest, shelf) = shelved(&app, &caller, id).await?;
    let attacked = computed(move |control| {
        let (material, _room) = shelf.read(control)?;
        let rules = engine::rules_of(&manifest, rule.as_deref(), material.names()).map_err(refused)?;
        engine::attack_tables(&material, attack, &rules, &manifest, control)
    });
    attacked.await.map(Json)
}

//! Attacks on releases that need the original, and therefore the scope `releases:internal`.

use uuid::Uuid;

use super::served;
use super::stored_parts::{StoredParts, engine_problem, open_stored_parts};
use crate::api::http::app::App;
use crate::app::run_engine;
use crate::engine;
use crate::engine::{AttackReport, AttackTarget};
use crate::identity::{Caller, Scope};
use crate::problem::{Kind, Problem};
use crate::spec::{Attack, AttackRequest};

/// Runs an attack against a release and its original.
///
/// # Errors
/// `forbidden` without the scope, `gone` without the original, or the problem of the attack.
pub(in crate::api) async fn attack_on_original(
    app: &App,
    caller: &Caller,
    id: Uuid,
    request: AttackRequest,
) -> Result<AttackReport, Problem> {
    let AttackRequest { attack, rule, .. } = request;
    check_internal_scope(caller, "the original")?;
    let (release, _) = served::read(app, caller, id).await?;
    let original = app.service.original(caller, &release).await?;
    let (manifest, storage) = open_stored_parts(app, caller, id).await?;
    let attacked = run_engine("the computation", move |control| {
        let hash = original.hash();
        let (file, _held) = original.read(control)?;
        let tables_of = match attack {
            Attack::NegativeAssociation | Attack::Dependency => engine::tables_with_counterfeits,
            _ => engine::submitted_tables,
        };
        let (material, _room) = storage.read_as(tables_of, control)?;
        let rules = engine::rules_of(&manifest, rule.as_deref(), material.names()).map_err(engine_problem)?;
        let material = material.with_original(file);
        let target = AttackTarget { manifest: &manifest, material: &material, rules: &rules };
        match attack {
            Attack::Membership => engine::membership(&manifest, &material, control),
            Attack::NegativeAssociation => engine::negative_association(target, control),
            Attack::Dependency => engine::dependency_attack(target, control),
            _ => engine::attack_tables(target, attack, &hash, control),
        }
    });
    attacked.await
}

/// Joins a sequential release with the earlier releases and external tables that it was checked against.
///
/// # Errors
/// `forbidden` without the scope, `gone` without a release or the rows of a table, or the problem of the attack.
pub(in crate::api) async fn join_attack(
    app: &App,
    caller: &Caller,
    id: Uuid,
    rule: Option<String>,
) -> Result<AttackReport, Problem> {
    check_internal_scope(caller, "the rows of external tables")?;
    let (release, manifest) = served::read(app, caller, id).await?;
    let ids = |texts: Vec<String>| texts.iter().filter_map(|id| Uuid::try_parse(id).ok()).collect::<Vec<Uuid>>();
    let external = ids(engine::external_releases(&manifest));
    let rows = app.service.external_rows(caller, &release, &external).await?;
    let mut shelves = vec![open_stored_parts(app, caller, id).await?.1];
    for earlier in ids(engine::against(&manifest)?).into_iter().filter(|id| !external.contains(id)) {
        shelves.push(open_stored_parts(app, caller, earlier).await?.1);
    }
    let attacked = run_engine("the computation", move |control| {
        let (mut joinable, _room) = StoredParts::joinable(&shelves, control)?;
        let (tables, _held) = rows.read(control)?;
        tables.into_iter().try_for_each(|table| joinable.add_external(table))?;
        joinable.attack(rule.as_deref(), control)
    });
    attacked.await
}

/// Rejects callers who may not read the original.
pub(super) fn check_internal_scope(caller: &Caller, what: &str) -> Result<(), Problem> {
    if caller.has_scope(Scope::ReleasesInternal) {
        return Ok(());
    }
    let scope = Scope::ReleasesInternal.name();
    let detail = format!("the attack needs {what}, which requires the scope {scope}");
    Err(Problem::new(Kind::Forbidden, detail).with("scope", scope))
}

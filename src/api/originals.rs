//! Attacks on releases that need the original: for those alone who may know what it says.

use uuid::Uuid;

use super::verifications::{computed, refused, shelved};
use super::{App, releases};
use crate::engine::{self, Attacked};
use crate::identity::{Caller, Scope};
use crate::problem::{Kind, Problem};
use crate::spec::Attack;

/// Plays an attack on a release, beside what it was made from.
///
/// # Errors
/// `forbidden` without the scope, `gone` without the original, or what stops the attack.
pub(super) async fn attack(
    app: &App,
    caller: &Caller,
    id: Uuid,
    (attack, rule): (Attack, Option<String>),
) -> Result<Attacked, Problem> {
    if !caller.may(Scope::ReleasesInternal) {
        let scope = Scope::ReleasesInternal.name();
        let detail = format!("the attack needs the original, and so a key with the scope {scope}");
        return Err(Problem::new(Kind::Forbidden, detail).with("scope", scope));
    }
    let (release, _) = releases::read(app, caller, id).await?;
    let original = app.desk.original(caller, &release).await?;
    let (manifest, shelf) = shelved(app, caller, id).await?;
    let attacked = computed(move |control| {
        let hash = original.hash();
        let (file, _held) = original.read(control)?;
        let stated = match attack {
            Attack::NegativeAssociation => engine::stated_with_counterfeits,
            _ => engine::stated_by,
        };
        let (material, _room) = shelf.read_as(stated, control)?;
        let rules = engine::rules_of(&manifest, rule.as_deref(), material.names()).map_err(refused)?;
        let material = material.beside(file);
        match attack {
            Attack::Membership => engine::membership(&manifest, &material, control),
            Attack::NegativeAssociation => engine::negative_association(&manifest, &material, &rules, control),
            _ => engine::attack_tables(&material, attack, &rules, &hash, &manifest, control),
        }
    });
    attacked.await
}

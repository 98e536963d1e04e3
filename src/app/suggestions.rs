//! A first specification for a dataset.

use serde_json::Value;
use uuid::Uuid;

use super::blocking::run_engine;
use super::people::check_population_of_key;
use super::remedies::read_request;
use super::service::AppService;
use crate::engine;
use crate::engine::{Suggestion, SuggestionInput};
use crate::identity::Caller;
use crate::inputs::{column_facts, columns_memory, load};
use crate::ports::AuditAction;
use crate::problem::Problem;
use crate::spec::read_suggestion_request;

/// A suggestion holds the columns, those of the draft, the permuted ones of its plan, and what dependencies are searched with: as much
/// as a release of the same columns for each.
const RELEASES_HELD: u64 = 4;

impl AppService {
    /// A specification for a dataset in which every column is placed, for a held job; `request` has what people declare.
    ///
    /// # Errors
    /// `invalid-specification` for a faulty request or where nothing can be published, `not-found`, `gone`, `work-limit`,
    /// `too-many-requests`, or the store's problem.
    pub async fn suggest(&self, caller: &Caller, id: Uuid, request: &Value) -> Result<Suggestion, Problem> {
        let dataset = self.inspected_dataset(caller, id).await?;
        check_population_of_key(caller, dataset.population.as_deref())?;
        let profiles = self.profiles(&dataset)?;
        let facts = column_facts(dataset.rows, &profiles, &self.limits);
        let columns = facts.clone();
        let roles = read_request(request, move |request| read_suggestion_request(request, &columns)).await?;
        let loaded = engine::columns_to_load(&profiles, &roles, &self.limits);
        let need = columns_memory(&dataset, &profiles, &loaded).saturating_mul(RELEASES_HELD);
        let room = self.budget.try_acquire(need)?;
        self.record(caller, AuditAction::ReadProfile, id).await?;
        let (env, limits) = (self.env(), self.limits.clone());
        let suggested = run_engine("the suggestion", move |control| {
            let _room = room;
            let names: Vec<String> = loaded.iter().map(|&at| profiles[at].name.clone()).collect();
            let table = load(&env, (&dataset).into(), &names, &loaded, control)?;
            let (keys, unit) = (dataset.key_columns(), dataset.unit());
            let input = SuggestionInput {
                profiles: &profiles,
                loaded: &loaded,
                table: &table,
                rows: dataset.rows,
                keys: &keys,
                unit: &unit,
                roles: &roles,
                limits: &limits,
            };
            engine::suggest(&input, control)
        });
        let mut suggestion = suggested.await?;
        suggestion.specification["dataset"] = id.to_string().into();
        // a person reads the suggestion before anything of it is published
        suggestion.specification["hold"] = true.into();
        Ok(suggestion)
    }
}

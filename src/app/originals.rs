//! The original of a release and the rows of external tables, for attacks that need them.

use uuid::Uuid;

use super::service::AppService;
use crate::identity::Caller;
use crate::inputs::{
    ColumnSelection, ExternalRows, ExternalRowsSource, NightTable, ReleaseOriginal, columns_memory,
    external_rows_problem, specification_of,
};
use crate::ledger::EarlierDisclosures;
use crate::ports::{AuditAction, ReleaseRecord, Statement, StoreError};
use crate::problem::{Kind, Problem};
use crate::spec::PeopleChoice;

impl AppService {
    /// The original of a release that is served, which the caller may use.
    ///
    /// # Errors
    /// `gone` when it was purged, or the store's problem: what cannot be recorded is not answered.
    pub async fn original(&self, caller: &Caller, release: &ReleaseRecord) -> Result<ReleaseOriginal, Problem> {
        let dataset = self.dataset(caller, release.dataset).await?;
        let job = self.store.job(&caller.tenant, release.job).await?;
        let job = job.ok_or_else(|| StoreError::corrupt("a release has no job"))?;
        let profiles = self.profiles(&dataset)?;
        let unread = |_| Problem::new(Kind::Internal, "the specification of the release cannot be understood");
        let specification = specification_of(&job, &dataset, &profiles, &self.limits).map_err(unread)?;
        let need = columns_memory(&dataset, &profiles, &specification.used);
        let mut hasher = self.vault.content_hasher(&caller.tenant);
        hasher.update(b"halves of the rows of a release\0");
        hasher.update(release.id.as_bytes());
        self.record(caller, AuditAction::ReadInternal, release.id).await?;
        Ok(ReleaseOriginal {
            env: self.env(),
            budget: self.budget.clone(),
            dataset,
            left_out_by: (specification.people == PeopleChoice::Unpublished).then_some(release.job),
            columns: ColumnSelection { names: specification.published_names, indexes: specification.used },
            need,
            hasher,
        })
    }

    /// The table that a night was made of, which the caller may use.
    ///
    /// # Errors
    /// `gone` when it was purged, or the store's problem: what cannot be recorded is not answered.
    pub async fn night_table(&self, caller: &Caller, release: &ReleaseRecord) -> Result<NightTable, Problem> {
        self.dataset(caller, release.dataset).await.map_err(|problem| match problem.kind {
            Kind::Gone => {
                let detail = format!(
                    "the dataset of the night {} was purged, so that its persons are known by their cells alone: ask with \
                     \"options\": {{\"persons\": \"cells\"}}",
                    release.id
                );
                Problem::new(Kind::Gone, detail).with("release", release.id.to_string())
            }
            _ => problem,
        })?;
        let job = self.store.job(&caller.tenant, release.job).await?;
        let job = job.ok_or_else(|| StoreError::corrupt("a release has no job"))?;
        self.record(caller, AuditAction::ReadInternal, release.id).await?;
        Ok(NightTable { env: self.env(), budget: self.budget.clone(), job })
    }

    /// The external tables of a series with these ids, if the caller may read them.
    ///
    /// # Errors
    /// `gone` when the rows of one were purged, what else keeps them from being read, or the store's problem: what cannot be
    /// recorded is not answered.
    pub async fn external_rows(
        &self,
        caller: &Caller,
        release: &ReleaseRecord,
        ids: &[Uuid],
    ) -> Result<ExternalRowsSource, Problem> {
        let series = self.store.series(&caller.tenant, &release.series).await?;
        let mut earlier = EarlierDisclosures::default();
        for record in &series.statements {
            Statement::read(record)?.enter(&mut earlier);
        }
        let (env, mut tables) = (self.env(), Vec::new());
        for id in ids {
            let found = ExternalRows::find(&env, &caller.tenant, *id, &earlier).await;
            tables.push(found.map_err(external_rows_problem)?);
        }
        self.record(caller, AuditAction::ReadInternal, release.id).await?;
        Ok(ExternalRowsSource { env, budget: self.budget.clone(), tables })
    }
}

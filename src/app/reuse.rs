//! The reuse key of a job: equal jobs have one release between them.

use uuid::Uuid;

use super::service::AppService;
use crate::inputs::{CompositionContext, JobContext};
use crate::ports::{DatasetRecord, KeyedReleases, StoreError};
use crate::problem::Problem;
use crate::spec::Specification;

/// Nights of one population that may be submitted while none of them is published, and are still known again.
const MAX_NIGHTS_AT_ONCE: u64 = 1_024;

/// A reuse key, and the releases that have it.
pub(super) struct ReuseKey {
    pub(super) key: [u8; 32],
    pub(super) releases: KeyedReleases,
}

impl ReuseKey {
    /// Whether a release has or had the key.
    fn is_taken(&self) -> bool {
        self.releases.standing.is_some() || self.releases.ended.is_some()
    }
}

impl AppService {
    /// The standing release of the job's key, if the job may have it: it is returned in place of a new one. A caller gets
    /// the release of another dataset only if the caller may publish these people.
    pub(super) async fn reused_release(
        &self,
        JobContext { dataset, .. }: &JobContext,
        composition: &CompositionContext,
        standing: Option<Uuid>,
    ) -> Result<Option<Uuid>, Problem> {
        let Some(id) = standing else { return Ok(None) };
        if composition.clash.is_none() {
            return Ok(Some(id));
        }
        let release = self.store.release(&dataset.tenant, id).await?;
        Ok(release.filter(|release| release.dataset == dataset.id).map(|release| release.id))
    }

    /// Under one key, one release: tenant, content, and everything in the specification that has an effect. Of the same people,
    /// another content is the same if all that the job publishes is. A release from before coverages has a key with its series,
    /// which `composition` knows.
    ///
    /// # Errors
    /// The store's problem.
    pub(super) async fn reuse_key(
        &self,
        context: &JobContext,
        composition: &CompositionContext,
    ) -> Result<ReuseKey, Problem> {
        let JobContext { dataset, specification, .. } = context;
        let key = |series: Option<&str>, content: &[u8; 32]| {
            let mut hash = self.vault.content_hasher(&dataset.tenant);
            hash.update(b"reuse\0");
            if let Some(series) = series {
                hash.update(&(series.len() as u64).to_le_bytes());
                hash.update(series.as_bytes());
            }
            hash.update(content);
            hash.update(specification.reuse_form.to_string().as_bytes());
            hash.finish()
        };
        let (own, content) = (key(None, &dataset.content_hash), &dataset.content_hash);
        if let Some(population) = context.chain() {
            let key = self.night_key(&dataset.tenant, population, &own).await?;
            return Ok(self.known(&dataset.tenant, key).await?);
        }
        for series in composition.versions.keys() {
            let found = self.known(&dataset.tenant, key(Some(series), content)).await?;
            if found.is_taken() {
                return Ok(found);
            }
        }
        let own = self.known(&dataset.tenant, own).await?;
        if own.is_taken() {
            return Ok(own);
        }
        for (content, other) in &composition.others {
            let found = self.known(&dataset.tenant, key(None, content)).await?;
            if found.is_taken() && self.says_the_same(dataset, *other, specification).await? {
                return Ok(found);
            }
        }
        Ok(own)
    }

    /// The key of a night, which is that of the last one if both are equal: an equal table after another one is a new night.
    async fn night_key(&self, tenant: &str, population: &str, own: &[u8; 32]) -> Result<[u8; 32], StoreError> {
        let chain = self.store.chain(tenant, population).await?;
        let after = |version: u64| {
            let mut hash = self.vault.content_hasher(tenant);
            hash.update(b"night\0");
            hash.update(own);
            hash.update(&version.to_be_bytes());
            hash.finish()
        };
        if let Some(last) = chain.as_ref().and_then(|chain| chain.pending.or(chain.current)) {
            // jobs that were submitted at once go on from each other, each under the key of the night that it saw
            let seen = last.version.saturating_sub(MAX_NIGHTS_AT_ONCE)..last.version;
            let mut keys = seen.rev().map(after);
            let equal = match self.store.release(tenant, last.release).await? {
                Some(release) => keys.find(|key| *key == release.reuse_key),
                None => match keys.next() {
                    Some(key) if self.known(tenant, key).await?.is_taken() => Some(key),
                    _ => None,
                },
            };
            if let Some(key) = equal {
                return Ok(key);
            }
        }
        Ok(after(chain.map_or(0, |chain| chain.version())))
    }

    /// A key with the releases that it has.
    async fn known(&self, tenant: &str, key: [u8; 32]) -> Result<ReuseKey, StoreError> {
        Ok(ReuseKey { key, releases: self.store.releases_of_key(tenant, &key).await? })
    }

    /// Whether all that a job publishes of a dataset is the same in another one.
    async fn says_the_same(
        &self,
        dataset: &DatasetRecord,
        other: Uuid,
        specification: &Specification,
    ) -> Result<bool, StoreError> {
        let own = self.store.evidence(&dataset.tenant, dataset.id).await?;
        let theirs = self.store.evidence(&dataset.tenant, other).await?;
        let both = own.zip(theirs);
        Ok(both.is_some_and(|(own, theirs)| own.says_the_same(&theirs, &specification.names)))
    }
}

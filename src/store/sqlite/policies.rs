//! Policies.

use async_trait::async_trait;
use sqlx::SqliteConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use super::keys::log;
use crate::ports::{Cursor, NewPolicy, Page, PolicyRecord, PolicyStore, PolicyVersion, StoreError};
use crate::store::rows::{PolicyRow, PolicyVersionRow, before};
use crate::store::sql::policies as sql;

#[async_trait]
impl PolicyStore for SqliteStore {
    async fn put_policy(&self, policy: &NewPolicy) -> Result<(PolicyRecord, bool), StoreError> {
        let (tenant, at) = (&policy.audit_entry.tenant, policy.audit_entry.at);
        let mut tx = self.begin("put_policy").await?;
        let latest = read_policy(&mut tx, tenant, &policy.name, None).await?;
        let version = match latest {
            Some(latest) if latest.specification == policy.specification => return Ok((latest, false)),
            latest => latest.map_or(0, |latest| latest.of.version) + 1,
        };
        let insert = sqlx::query(sql::INSERT_POLICY).bind(Uuid::now_v7()).bind(tenant).bind(&policy.name);
        insert.execute(&mut *tx).await.map_err(failed)?;
        let id: Uuid = sqlx::query_scalar(sql::POLICY_ID)
            .bind(tenant)
            .bind(&policy.name)
            .fetch_one(&mut *tx)
            .await
            .map_err(failed)?;
        sqlx::query(sql::INSERT_POLICY_VERSION)
            .bind(policy.id)
            .bind(id)
            .bind(i64::from(version))
            .bind(at)
            .bind(Json(&policy.specification))
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        log(&mut tx, &policy.audit_entry_for(version)).await?;
        let made = read_policy(&mut tx, tenant, &policy.name, Some(version)).await?.ok_or(StoreError::NotFound)?;
        tx.commit().await.map_err(failed)?;
        Ok((made, true))
    }

    async fn policy(&self, tenant: &str, name: &str, version: Option<u32>) -> Result<Option<PolicyRecord>, StoreError> {
        let mut connection = self.reader.acquire().await.map_err(failed)?;
        read_policy(&mut connection, tenant, name, version).await
    }

    async fn policies(
        &self,
        tenant: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<PolicyVersion>, StoreError> {
        let rows: Vec<PolicyVersionRow> = sqlx::query_as(sql::POLICIES)
            .bind(tenant)
            .bind(before(cursor))
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.reader)
            .await
            .map_err(failed)?;
        let versions = rows.into_iter().map(PolicyVersion::try_from).collect::<Result<_, _>>()?;
        Ok(Page::new(versions, limit, |version| version.id))
    }

    async fn policy_versions(
        &self,
        tenant: &str,
        name: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<PolicyVersion>, StoreError> {
        let rows: Vec<PolicyVersionRow> = sqlx::query_as(sql::POLICY_VERSIONS)
            .bind(tenant)
            .bind(name)
            .bind(before(cursor))
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.reader)
            .await
            .map_err(failed)?;
        let versions = rows.into_iter().map(PolicyVersion::try_from).collect::<Result<_, _>>()?;
        Ok(Page::new(versions, limit, |version| version.id))
    }
}

async fn read_policy(
    connection: &mut SqliteConnection,
    tenant: &str,
    name: &str,
    version: Option<u32>,
) -> Result<Option<PolicyRecord>, StoreError> {
    let row: Option<PolicyRow> = match version {
        None => sqlx::query_as(sql::LATEST_POLICY).bind(tenant).bind(name),
        Some(version) => sqlx::query_as(sql::POLICY).bind(tenant).bind(name).bind(i64::from(version)),
    }
    .fetch_optional(connection)
    .await
    .map_err(failed)?;
    row.map(PolicyRecord::try_from).transpose()
}

//! Taxonomies.

use async_trait::async_trait;
use sqlx::SqliteConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use super::keys::log;
use crate::ports::{AuditEntry, Cursor, NewTaxonomy, Page, StoreError, TaxonomyRecord, TaxonomyStore, TaxonomyVersion};
use crate::store::rows::{TaxonomyRow, TaxonomyVersionRow, before};
use crate::store::sql::taxonomies as sql;

#[async_trait]
impl TaxonomyStore for SqliteStore {
    async fn put_taxonomy(&self, taxonomy: &NewTaxonomy) -> Result<(TaxonomyRecord, bool), StoreError> {
        let (tenant, at) = (&taxonomy.audit_entry.tenant, taxonomy.audit_entry.at);
        let mut tx = self.begin("put_taxonomy").await?;
        if let Some(latest) = read_taxonomy(&mut tx, tenant, &taxonomy.name, None).await?
            && latest.tree == taxonomy.tree
        {
            return Ok((latest, false));
        }
        let insert = sqlx::query(sql::INSERT_TAXONOMY).bind(Uuid::now_v7()).bind(tenant).bind(&taxonomy.name);
        insert.execute(&mut *tx).await.map_err(failed)?;
        let (id, version): (Uuid, i64) = sqlx::query_as(sql::NEXT_TAXONOMY_VERSION)
            .bind(tenant)
            .bind(&taxonomy.name)
            .fetch_one(&mut *tx)
            .await
            .map_err(failed)?;
        sqlx::query(sql::INSERT_TAXONOMY_VERSION)
            .bind(taxonomy.id)
            .bind(id)
            .bind(version)
            .bind(at)
            .bind(Json(&taxonomy.tree))
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        let made = read_taxonomy(&mut tx, tenant, &taxonomy.name, None).await?.ok_or(StoreError::NotFound)?;
        log(&mut tx, &taxonomy.audit_entry_for(&made.of)).await?;
        tx.commit().await.map_err(failed)?;
        Ok((made, true))
    }

    async fn taxonomy(
        &self,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<TaxonomyRecord>, StoreError> {
        let mut connection = self.reader.acquire().await.map_err(failed)?;
        read_taxonomy(&mut connection, tenant, name, version).await
    }

    async fn taxonomies(
        &self,
        tenant: &str,
        cursor: Option<Cursor>,
        limit: u32,
    ) -> Result<Page<TaxonomyVersion>, StoreError> {
        let rows: Vec<TaxonomyVersionRow> = sqlx::query_as(sql::TAXONOMIES)
            .bind(tenant)
            .bind(before(cursor))
            .bind(i64::from(limit) + 1)
            .fetch_all(&self.reader)
            .await
            .map_err(failed)?;
        let versions = rows.into_iter().map(TaxonomyVersion::try_from).collect::<Result<_, _>>()?;
        Ok(Page::new(versions, limit, |version| version.id))
    }

    async fn delete_taxonomy(
        &self,
        name: &str,
        audit_entry: &AuditEntry,
    ) -> Result<Option<TaxonomyVersion>, StoreError> {
        let mut tx = self.begin("delete_taxonomy").await?;
        let Some(latest) = read_taxonomy(&mut tx, &audit_entry.tenant, name, None).await? else { return Ok(None) };
        let delete = sqlx::query(sql::DELETE_TAXONOMY_VERSIONS).bind(&audit_entry.tenant).bind(name);
        delete.execute(&mut *tx).await.map_err(failed)?;
        log(&mut tx, audit_entry).await?;
        tx.commit().await.map_err(failed)?;
        Ok(Some(latest.of))
    }
}

async fn read_taxonomy(
    connection: &mut SqliteConnection,
    tenant: &str,
    name: &str,
    version: Option<u32>,
) -> Result<Option<TaxonomyRecord>, StoreError> {
    let row: Option<TaxonomyRow> = match version {
        None => sqlx::query_as(sql::LATEST_TAXONOMY).bind(tenant).bind(name),
        Some(version) => sqlx::query_as(sql::TAXONOMY).bind(tenant).bind(name).bind(i64::from(version)),
    }
    .fetch_optional(connection)
    .await
    .map_err(failed)?;
    row.map(TaxonomyRecord::try_from).transpose()
}

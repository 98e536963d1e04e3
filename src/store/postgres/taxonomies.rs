//! Taxonomies.

use async_trait::async_trait;
use sqlx::PgConnection;
use uuid::Uuid;

use super::PostgresStore;
use super::document::JsonText;
use super::error::{TransactionError, failed};
use super::keys::log;
use super::pool::retried;
use crate::ports::{AuditEntry, Cursor, NewTaxonomy, Page, StoreError, TaxonomyRecord, TaxonomyStore, TaxonomyVersion};
use crate::store::rows::{TaxonomyRow, TaxonomyVersionRow, before};
use crate::store::sql::taxonomies as sql;

#[async_trait]
impl TaxonomyStore for PostgresStore {
    async fn put_taxonomy(&self, taxonomy: &NewTaxonomy) -> Result<(TaxonomyRecord, bool), StoreError> {
        retried("put_taxonomy", || self.try_put_taxonomy(taxonomy)).await
    }

    async fn taxonomy(
        &self,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<TaxonomyRecord>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed)?;
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
            .fetch_all(&self.pool)
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
        retried("delete_taxonomy", || self.try_delete_taxonomy(name, audit_entry)).await
    }
}

impl PostgresStore {
    async fn try_put_taxonomy(&self, taxonomy: &NewTaxonomy) -> Result<(TaxonomyRecord, bool), TransactionError> {
        let (tenant, at) = (&taxonomy.audit_entry.tenant, taxonomy.audit_entry.at);
        let mut tx = self.begin().await?;
        let insert = sqlx::query(sql::INSERT_TAXONOMY).bind(Uuid::now_v7()).bind(tenant).bind(&taxonomy.name);
        insert.execute(&mut *tx).await?;
        // from here on others wait; where no version is made, the number is given back with the transaction
        let (id, version): (Uuid, i64) =
            sqlx::query_as(sql::NEXT_TAXONOMY_VERSION).bind(tenant).bind(&taxonomy.name).fetch_one(&mut *tx).await?;
        if let Some(latest) = read_taxonomy(&mut tx, tenant, &taxonomy.name, None).await?
            && latest.tree == taxonomy.tree
        {
            return Ok((latest, false));
        }
        sqlx::query(sql::INSERT_TAXONOMY_VERSION)
            .bind(taxonomy.id)
            .bind(id)
            .bind(version)
            .bind(at)
            .bind(JsonText(&taxonomy.tree))
            .execute(&mut *tx)
            .await?;
        let made = read_taxonomy(&mut tx, tenant, &taxonomy.name, None).await?.ok_or(StoreError::NotFound)?;
        log(&mut tx, &taxonomy.audit_entry_for(&made.of)).await?;
        tx.commit().await?;
        Ok((made, true))
    }

    async fn try_delete_taxonomy(
        &self,
        name: &str,
        audit_entry: &AuditEntry,
    ) -> Result<Option<TaxonomyVersion>, TransactionError> {
        let mut tx = self.begin().await?;
        let Some(latest) = read_taxonomy(&mut tx, &audit_entry.tenant, name, None).await? else { return Ok(None) };
        let delete = sqlx::query(sql::DELETE_TAXONOMY_VERSIONS).bind(&audit_entry.tenant).bind(name);
        if delete.execute(&mut *tx).await?.rows_affected() == 0 {
            // another deleted it meanwhile
            return Ok(None);
        }
        log(&mut tx, audit_entry).await?;
        tx.commit().await?;
        Ok(Some(latest.of))
    }
}

async fn read_taxonomy(
    connection: &mut PgConnection,
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

//! Policies and taxonomies in versions.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ports::{
    AuditEntry, Cursor, DocumentKind, DocumentVersion, NamedDocument, NamedDocumentStore, NewDocument, Page, StoreError,
};
use crate::store::rows::{DocumentRow, DocumentVersionRow, before, number, records};
use crate::store::sql::{policies, taxonomies};

/// The statements of one kind of document.
struct DocumentStatements {
    insert: &'static str,
    insert_version: &'static str,
    latest: &'static str,
    version: &'static str,
    list: &'static str,
}

const fn statements(kind: DocumentKind) -> DocumentStatements {
    match kind {
        DocumentKind::Policy => DocumentStatements {
            insert: policies::INSERT_POLICY,
            insert_version: policies::INSERT_POLICY_VERSION,
            latest: policies::LATEST_POLICY,
            version: policies::POLICY,
            list: policies::POLICIES,
        },
        DocumentKind::Taxonomy => DocumentStatements {
            insert: taxonomies::INSERT_TAXONOMY,
            insert_version: taxonomies::INSERT_TAXONOMY_VERSION,
            latest: taxonomies::LATEST_TAXONOMY,
            version: taxonomies::TAXONOMY,
            list: taxonomies::TAXONOMIES,
        },
    }
}

both_stores! {
    #[async_trait]
    impl NamedDocumentStore for Backend {
        async fn put_document(&self, document: &NewDocument) -> Result<(NamedDocument, bool), StoreError> {
            match document.kind {
                DocumentKind::Policy => run_transaction("put_policy", || self.try_put_document(document)).await,
                DocumentKind::Taxonomy => run_transaction("put_taxonomy", || self.try_put_document(document)).await,
            }
        }

        async fn document(
            &self,
            kind: DocumentKind,
            tenant: &str,
            name: &str,
            version: Option<u32>,
        ) -> Result<Option<NamedDocument>, StoreError> {
            let mut connection = self.reader().acquire().await.map_err(failed)?;
            read_document(&mut connection, kind, tenant, name, version).await
        }

        async fn documents(
            &self,
            kind: DocumentKind,
            tenant: &str,
            cursor: Option<Cursor>,
            limit: u32,
        ) -> Result<Page<DocumentVersion>, StoreError> {
            let (cursor, rows) = (before(cursor), i64::from(limit) + 1);
            let rows: Vec<DocumentVersionRow> =
                run_sql!(
                    query_as.fetch_all, self.reader(), statements(kind).list, tenant, cursor, rows
                ).map_err(failed)?;
            Ok(Page::new(records(rows)?, limit, |version: &DocumentVersion| version.id))
        }

        async fn policy_versions(
            &self,
            tenant: &str,
            name: &str,
            cursor: Option<Cursor>,
            limit: u32,
        ) -> Result<Page<DocumentVersion>, StoreError> {
            let (cursor, rows) = (before(cursor), i64::from(limit) + 1);
            let rows: Vec<DocumentVersionRow> =
                run_sql!(
                    query_as.fetch_all, self.reader(), policies::POLICY_VERSIONS, tenant, name, cursor, rows
                ).map_err(failed)?;
            Ok(Page::new(records(rows)?, limit, |version: &DocumentVersion| version.id))
        }

        async fn delete_taxonomy(
            &self,
            name: &str,
            audit_entry: &AuditEntry,
        ) -> Result<Option<DocumentVersion>, StoreError> {
            run_transaction("delete_taxonomy", || self.try_delete_taxonomy(name, audit_entry)).await
        }
    }

    impl Backend {
        async fn try_put_document(&self, new: &NewDocument) -> Result<(NamedDocument, bool), TransactionError> {
            let (kind, tenant, name) = (new.kind, &new.audit_entry.tenant, &new.name);
            let statements = statements(kind);
            let mut tx = self.begin().await?;
            run_sql!(query.execute, &mut *tx, statements.insert, Uuid::now_v7(), tenant, name)?;
            // from here on others wait for the row of the name; a number that is not used is given back by the rollback
            let (id, reserved) = reserve_version(&mut tx, kind, tenant, name).await?;
            let latest = read_document(&mut tx, kind, tenant, name, None).await?;
            let version = match (latest, reserved) {
                (Some(latest), _) if latest.content == new.content => return Ok((latest, false)),
                (_, Some(reserved)) => reserved,
                (latest, None) => latest.map_or(0, |latest| latest.version.version) + 1,
            };
            run_sql!(
                query.execute, &mut *tx, statements.insert_version, new.id, id, i64::from(version),
                new.audit_entry.at, Json(&new.content)
            )?;
            log(&mut tx, &new.audit_entry_for(version)).await?;
            let made = read_document(&mut tx, kind, tenant, name, Some(version)).await?.ok_or(StoreError::NotFound)?;
            tx.commit().await?;
            Ok((made, true))
        }

        async fn try_delete_taxonomy(
            &self,
            name: &str,
            audit_entry: &AuditEntry,
        ) -> Result<Option<DocumentVersion>, TransactionError> {
            let tenant = &audit_entry.tenant;
            let mut tx = self.begin().await?;
            let Some(latest) = read_document(&mut tx, DocumentKind::Taxonomy, tenant, name, None).await? else {
                return Ok(None);
            };
            let delete = sqlx::query(taxonomies::DELETE_TAXONOMY_VERSIONS).bind(tenant).bind(name);
            if delete.execute(&mut *tx).await?.rows_affected() == 0 {
                // another deleted it meanwhile
                return Ok(None);
            }
            log(&mut tx, audit_entry).await?;
            tx.commit().await?;
            Ok(Some(latest.version))
        }
    }

    /// Locks the row of a name and returns its id; for taxonomies also the next version, which no later one reuses.
    async fn reserve_version(
        connection: &mut Connection,
        kind: DocumentKind,
        tenant: &str,
        name: &str,
    ) -> Result<(Uuid, Option<u32>), TransactionError> {
        match kind {
            DocumentKind::Policy => {
                let id = run_sql!(query_scalar.fetch_one, connection, POLICY_ID, tenant, name)?;
                Ok((id, None))
            }
            DocumentKind::Taxonomy => {
                let (id, version) =
                    run_sql!(query_as.fetch_one, connection, taxonomies::NEXT_TAXONOMY_VERSION, tenant, name)?;
                Ok((id, Some(number(version)?)))
            }
        }
    }

    async fn read_document(
        connection: &mut Connection,
        kind: DocumentKind,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<NamedDocument>, StoreError> {
        let row: Option<DocumentRow> = match version {
            None => sqlx::query_as(statements(kind).latest).bind(tenant).bind(name),
            Some(version) => sqlx::query_as(statements(kind).version).bind(tenant).bind(name).bind(i64::from(version)),
        }
        .fetch_optional(connection)
        .await
        .map_err(failed)?;
        row.map(NamedDocument::try_from).transpose()
    }
}

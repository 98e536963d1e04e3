//! Rows of the ledger as it is exported.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::numbers::{hash, number};
use super::release_status;
use crate::people::{Coverage, CoverageId, KeySystem, Population, SeparationStatement};
use crate::ports::{
    DatasetRecord, PortableCoverage, PortableDataset, PortableKeySystem, PortablePopulation, PortableRelease,
    PortableRule, PortableSeparation, PortableStatement, PortableVersion, StoreError,
};

#[derive(FromRow)]
pub(in crate::store) struct PortableReleaseRow {
    pub(in crate::store) id: Uuid,
    tenant: String,
    series: String,
    content_hash: Vec<u8>,
    reuse_key: Vec<u8>,
    method: String,
    created_at: DateTime<Utc>,
    status: String,
    was_read: bool,
    pub(in crate::store) imported: bool,
}

impl TryFrom<PortableReleaseRow> for PortableRelease {
    type Error = StoreError;

    fn try_from(row: PortableReleaseRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            tenant: row.tenant,
            series: row.series,
            content_hash: hash(&row.content_hash)?,
            reuse_key: hash(&row.reuse_key)?,
            method: row.method,
            created_at: row.created_at,
            status: release_status(&row.status)?,
            was_read: row.was_read,
        })
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortableRuleRow {
    release_id: Uuid,
    rule_no: i64,
    #[sqlx(json)]
    body: Value,
}

impl TryFrom<PortableRuleRow> for PortableRule {
    type Error = StoreError;

    fn try_from(row: PortableRuleRow) -> Result<Self, StoreError> {
        Ok(Self { release: row.release_id, number: number(row.rule_no)?, body: row.body })
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortableVersionRow {
    tenant: String,
    series: String,
    content_hash: Vec<u8>,
    version: i64,
}

impl TryFrom<PortableVersionRow> for PortableVersion {
    type Error = StoreError;

    fn try_from(row: PortableVersionRow) -> Result<Self, StoreError> {
        let PortableVersionRow { tenant, series, content_hash, version } = row;
        Ok(Self { tenant, series, content_hash: hash(&content_hash)?, version })
    }
}

impl From<DatasetRecord> for PortableDataset {
    fn from(dataset: DatasetRecord) -> Self {
        Self {
            id: dataset.id,
            tenant: dataset.tenant,
            name: dataset.name,
            series: dataset.series,
            same_people: dataset.same_people,
            same_people_reason: dataset.same_people_reason,
            population: dataset.population,
            person: dataset.person,
            record_key: dataset.record_key,
            subject: dataset.subject,
            max_rows_per_subject: dataset.max_rows_per_subject,
            created_at: dataset.created_at,
            rows: dataset.rows,
            bytes: dataset.bytes,
            format: dataset.format,
            content_hash: dataset.content_hash,
            overlaps: IgnoredAny,
            fingerprint: IgnoredAny,
        }
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortableKeySystemRow {
    tenant: String,
    name: String,
    #[sqlx(json)]
    body: KeySystem,
}

impl From<PortableKeySystemRow> for PortableKeySystem {
    fn from(row: PortableKeySystemRow) -> Self {
        Self { tenant: row.tenant, name: row.name, system: row.body }
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortablePopulationRow {
    tenant: String,
    name: String,
    #[sqlx(json)]
    body: Population,
}

impl From<PortablePopulationRow> for PortablePopulation {
    fn from(row: PortablePopulationRow) -> Self {
        Self { tenant: row.tenant, name: row.name, population: row.body }
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortableSeparationRow {
    tenant: String,
    #[sqlx(json)]
    body: SeparationStatement,
    recorded_at: DateTime<Utc>,
}

impl From<PortableSeparationRow> for PortableSeparation {
    fn from(row: PortableSeparationRow) -> Self {
        Self { tenant: row.tenant, statement: row.body, recorded_at: row.recorded_at }
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortableCoverageRow {
    tenant: String,
    id: i64,
    #[sqlx(json)]
    body: Coverage,
    #[sqlx(json)]
    published: BTreeSet<String>,
    #[sqlx(json)]
    cuts: Vec<bool>,
}

impl From<PortableCoverageRow> for PortableCoverage {
    fn from(row: PortableCoverageRow) -> Self {
        let PortableCoverageRow { tenant, id, body, published, cuts } = row;
        Self { tenant, id: CoverageId(id), coverage: body, published, cuts }
    }
}

#[derive(FromRow)]
pub(in crate::store) struct PortableStatementRow {
    id: Uuid,
    tenant: String,
    series: String,
    #[sqlx(json)]
    body: Value,
    recorded_at: DateTime<Utc>,
}

impl From<PortableStatementRow> for PortableStatement {
    fn from(row: PortableStatementRow) -> Self {
        let PortableStatementRow { id, tenant, series, body, recorded_at } = row;
        Self { id, tenant, series, body, recorded_at }
    }
}

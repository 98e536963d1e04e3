//! Profiles of datasets for data protection officers: associations of columns and values of a column.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::{ColumnPath, IdPath, QueryParameters};
use crate::api::http::page;
use crate::api::http::page::{ListPage, PageQuery};
use crate::app::ValueCount;
use crate::engine::DependencyProfile;
use crate::problem::{Kind, Problem};

/// Filter of the profiled columns.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Columns {
    /// Names of columns, separated by commas; by default all.
    columns: Option<String>,
}

/// Profiles the columns of a dataset
///
/// A profile covers at most 64 columns. In
/// tables above 100,000 rows, associations use a sample of that size. The audit log records every answer.
#[utoipa::path(get, path = "/v1/datasets/{id}/profile", tag = "datasets", params(("id" = Uuid, Path), Columns),
    responses((status = 200, body = DependencyProfile)))]
pub(in crate::api) async fn profile(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    QueryParameters(filter): QueryParameters<Columns>,
) -> Result<Json<DependencyProfile>, Problem> {
    let _permit = app.plans.try_acquire(&caller.tenant)?;
    let names: Option<Vec<String>> = filter.columns.map(|names| names.split(',').map(str::to_owned).collect());
    app.service.profile(&caller, id, names.as_deref()).await.map(Json)
}

/// A value of a column with its count.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct ColumnValue {
    /// The value as text; null for a missing one.
    value: Option<String>,
    /// The number of rows with the value.
    count: u64,
}

/// Lists the distinct values of a column
///
/// The list is sorted by descending count, then by value. The answer contains data, and the audit log records it.
#[utoipa::path(get, path = "/v1/datasets/{id}/attributes/{name}/values", tag = "datasets",
    params(("id" = Uuid, Path), ("name" = String, Path), PageQuery), responses((status = 200, body = ListPage<ColumnValue>)))]
pub(in crate::api) async fn values(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    ColumnPath { dataset, name }: ColumnPath,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<ColumnValue>>, Problem> {
    let _permit = app.plans.try_acquire(&caller.tenant)?;
    let limit = page::limit(paging.limit)? as usize;
    let skip = match paging.cursor.as_deref() {
        None => 0,
        Some(text) => text
            .parse::<u32>()
            .map_err(|_| Problem::new(Kind::MalformedRequest, "the cursor does not belong to this list"))?
            as usize,
    };
    let page = app.service.values(&caller, dataset, &name, skip..skip.saturating_add(limit)).await?;
    let item = |ValueCount { value, count }: ValueCount| ColumnValue { value, count };
    let next = page.has_more.then(|| (skip + limit).to_string());
    Ok(Json(ListPage { items: page.values.into_iter().map(item).collect(), next }))
}

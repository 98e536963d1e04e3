//! What an officer sees of a dataset: how its columns go together, and the values of one.

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

/// Which columns are looked at.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct Columns {
    /// Names, parted by commas; all columns when not given.
    columns: Option<String>,
}

/// How the columns of a dataset go together
///
/// At most 64 columns at once. Suggested roles are guesses from counts: what is sensitive, people decide. Associations of tables
/// above 100,000 rows are computed on so many rows, taken from all over the table. Every answer is in the audit log.
#[utoipa::path(get, path = "/v1/datasets/{id}/profile", tag = "datasets", params(("id" = Uuid, Path), Columns),
    responses((status = 200, body = DependencyProfile)))]
pub(in crate::api) async fn profile(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    QueryParameters(asked): QueryParameters<Columns>,
) -> Result<Json<DependencyProfile>, Problem> {
    let _place = app.plans.try_acquire()?;
    let names: Option<Vec<String>> = asked.columns.map(|names| names.split(',').map(str::to_owned).collect());
    app.service.profile(&caller, id, names.as_deref()).await.map(Json)
}

/// A value of a column.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct ColumnValue {
    /// The value as text; null for a missing one.
    value: Option<String>,
    /// How many rows have it.
    count: u64,
}

/// The distinct values of a column
///
/// The most frequent first, those of equal frequency in their order. This is data: every answer is in the audit log.
#[utoipa::path(get, path = "/v1/datasets/{id}/attributes/{name}/values", tag = "datasets",
    params(("id" = Uuid, Path), ("name" = String, Path), PageQuery), responses((status = 200, body = ListPage<ColumnValue>)))]
pub(in crate::api) async fn values(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    ColumnPath { dataset, name }: ColumnPath,
    QueryParameters(paging): QueryParameters<PageQuery>,
) -> Result<Json<ListPage<ColumnValue>>, Problem> {
    let _place = app.plans.try_acquire()?;
    let limit = page::limit(paging.limit)? as usize;
    let skip = match paging.cursor.as_deref() {
        None => 0,
        Some(text) => {
            text.parse::<u32>().map_err(|_| Problem::new(Kind::MalformedRequest, "cursor is not one of this list"))?
                as usize
        }
    };
    let (values, more) = app.service.values(&caller, dataset, &name, (skip, limit)).await?;
    let item = |ValueCount { value, count }: ValueCount| ColumnValue { value, count };
    let next = more.then(|| (skip + limit).to_string());
    Ok(Json(ListPage { items: values.into_iter().map(item).collect(), next }))
}

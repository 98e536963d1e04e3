//! Lists: one shape, cursor-paged.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ports::{Cursor, Page};
use crate::problem::{Kind, Problem};

const DEFAULT_LIMIT: u32 = 100;

const MAX_LIMIT: u32 = 1000;

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct ListPage<T> {
    /// The items.
    pub(in crate::api) items: Vec<T>,
    /// Gives the next page as `cursor`; null at the end.
    pub(in crate::api) next: Option<String>,
}

/// Where a page begins and how long it is.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct PageQuery {
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(in crate::api) limit: Option<u32>,
    /// `next` of the page before.
    pub(in crate::api) cursor: Option<String>,
}

/// The number of items asked for.
pub(in crate::api) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        _ => Err(Problem::new(Kind::MalformedRequest, "limit must be from 1 to 1000")),
    }
}

/// The place asked for.
pub(in crate::api) fn cursor(asked: Option<&str>) -> Result<Option<Cursor>, Problem> {
    let parse =
        |text: &str| text.parse().map_err(|_| Problem::new(Kind::MalformedRequest, "cursor is not one of this list"));
    asked.map(parse).transpose()
}

impl<T> ListPage<T> {
    pub(in crate::api) fn new<R>(page: Page<R>, item: impl Fn(R) -> Result<T, Problem>) -> Result<Self, Problem> {
        let next = page.next.map(|cursor| cursor.to_string());
        Ok(Self { items: page.items.into_iter().map(item).collect::<Result<_, _>>()?, next })
    }
}

//! Query parameters of lists and named documents, and pages of lists with cursors.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ports::{Cursor, Page};
use crate::problem::{Kind, Problem};

const DEFAULT_LIMIT: u32 = 100;

const MAX_LIMIT: u32 = 1000;

/// A page of a list, with the cursor of the next.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct ListPage<T> {
    /// The items of the page.
    pub(in crate::api) items: Vec<T>,
    /// The `cursor` of the next page; null on the last page.
    pub(in crate::api) next: Option<String>,
}

/// The start and size of a page.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct PageQuery {
    /// The maximum number of items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(in crate::api) limit: Option<u32>,
    /// `next` of the previous page.
    pub(in crate::api) cursor: Option<String>,
}

/// The requested version of a named document.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct VersionQuery {
    /// The version; by default the latest.
    #[param(minimum = 1)]
    pub(in crate::api) version: Option<u32>,
}

/// The requested number of items, 1 to 1000.
pub(in crate::api) fn limit(requested: Option<u32>) -> Result<u32, Problem> {
    match requested.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        _ => Err(Problem::new(Kind::MalformedRequest, "limit must be between 1 and 1000")),
    }
}

/// The requested start of the page.
pub(in crate::api) fn cursor(requested: Option<&str>) -> Result<Option<Cursor>, Problem> {
    let parse = |text: &str| {
        text.parse().map_err(|_| Problem::new(Kind::MalformedRequest, "the cursor does not belong to this list"))
    };
    requested.map(parse).transpose()
}

/// The name after which a page of a list by names starts.
pub(in crate::api) fn name_cursor(requested: Option<&str>) -> Result<Option<String>, Problem> {
    let decode = |text: &str| {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| !bytes.is_empty());
        let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        name.ok_or_else(|| Problem::new(Kind::MalformedRequest, "the cursor does not belong to this list"))
    };
    requested.map(decode).transpose()
}

/// The cursor of the page after a name.
pub(in crate::api) fn after_name(name: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(name)
}

impl<T> ListPage<T> {
    pub(in crate::api) fn new<R>(page: Page<R>, item: impl Fn(R) -> Result<T, Problem>) -> Result<Self, Problem> {
        let next = page.next.map(|cursor| cursor.to_string());
        Ok(Self { items: page.items.into_iter().map(item).collect::<Result<_, _>>()?, next })
    }
}

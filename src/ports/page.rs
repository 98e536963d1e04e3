//! Lists in pages.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Where a page ended. Opaque to clients; ids are UUIDv7, so pages follow time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor(pub(crate) Uuid);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.simple())
    }
}

/// The text is no cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a cursor of this list")]
pub struct CursorError;

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self).map_err(|_| CursorError)
    }
}

/// A page of a list, newest first.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where to go on; `None` on the last page.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// The page of at most `limit` items, from a query that asked for one more.
    #[must_use]
    pub fn new(mut items: Vec<T>, limit: u32, id: impl Fn(&T) -> Uuid) -> Self {
        let more = items.len() > limit as usize;
        items.truncate(limit as usize);
        let next = items.last().filter(|_| more).map(|last| Cursor(id(last)));
        Self { items, next }
    }
}

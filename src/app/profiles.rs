//! What an officer may see of a dataset before there is a job: how its columns go together, and the values of one.

use std::cmp::Reverse;
use std::ops::Range;

use uuid::Uuid;

use super::blocking::run_blocking;
use super::service::AppService;
use crate::control::{Cancelled, Control};
use crate::engine;
use crate::engine::DependencyProfile;
use crate::identity::Caller;
use crate::inputs::{columns_memory, load};
use crate::microdata::{Attr, ColumnProfile, Table};
use crate::ports::{AuditAction, DatasetRecord};
use crate::problem::{Kind, Problem};

/// Most columns that one profile compares with each other.
const MAX_PROFILED_COLUMNS: usize = 64;

/// A value of a column, and how many rows have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueCount {
    /// The value as text; none for a missing one.
    pub value: Option<String>,
    /// The rows.
    pub count: u64,
}

/// A page of the values of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValuePage {
    /// The values.
    pub values: Vec<ValueCount>,
    /// Whether more values follow.
    pub has_more: bool,
}

impl AppService {
    /// How columns of a dataset go together: those named, or all. Columns with too many values to be counted are left out when
    /// none is named.
    ///
    /// # Errors
    /// `not-found`, `gone`, `too-many-columns`, `work-limit`, `quota`, or the store's problem.
    pub async fn profile(
        &self,
        caller: &Caller,
        id: Uuid,
        named: Option<&[String]>,
    ) -> Result<DependencyProfile, Problem> {
        let dataset = self.inspected_dataset(caller, id).await?;
        let profiles = self.profiles(&dataset)?;
        let used = match named {
            None => (0..profiles.len()).filter(|&at| !profiles[at].exceeds(&self.limits)).collect(),
            Some(names) => {
                let mut used = names.iter().map(|name| place(&profiles, name)).collect::<Result<Vec<_>, _>>()?;
                used.sort_unstable();
                used.dedup();
                used
            }
        };
        if used.len() > MAX_PROFILED_COLUMNS {
            let detail = format!("{} columns are too many to be compared with each other; name some", used.len());
            let problem = Problem::new(Kind::TooManyColumns, detail);
            return Err(problem.with("limit", MAX_PROFILED_COLUMNS).with("found", used.len()));
        }
        self.record(caller, AuditAction::ReadProfile, id).await?;
        self.on_columns(dataset, &profiles, used, engine::profile).await
    }

    /// A page of the values of a column, the most frequent first, then by value.
    ///
    /// # Errors
    /// As [`AppService::profile`]; `not-found` also when there is no such column.
    pub async fn values(
        &self,
        caller: &Caller,
        id: Uuid,
        name: &str,
        page: Range<usize>,
    ) -> Result<ValuePage, Problem> {
        let dataset = self.inspected_dataset(caller, id).await?;
        let profiles = self.profiles(&dataset)?;
        let used = vec![place(&profiles, name)?];
        self.record(caller, AuditAction::ReadValues, id).await?;
        self.on_columns(dataset, &profiles, used, move |table, _| {
            let column = table.column(Attr(0));
            let mut counted: Vec<(u64, u32)> = column.counts().into_iter().zip(0..).collect();
            // codes rise with values
            counted.sort_unstable_by_key(|&(count, code)| (Reverse(count), code));
            let text = |code| column.domain.value(code).map(|value| String::from_utf8_lossy(value).into_owned());
            let values = counted.iter().take(page.end).skip(page.start);
            let values = values.map(|&(count, code)| ValueCount { value: text(code), count }).collect();
            Ok(ValuePage { values, has_more: counted.len() > page.end })
        })
        .await
    }

    /// Loads columns and looks at them, on a blocking thread and within the budget of memory.
    async fn on_columns<T: Send + 'static>(
        &self,
        dataset: DatasetRecord,
        profiles: &[ColumnProfile],
        used: Vec<usize>,
        look: impl FnOnce(&Table, &Control) -> Result<T, Cancelled> + Send + 'static,
    ) -> Result<T, Problem> {
        let room = self.budget.try_acquire(columns_memory(&dataset, profiles, &used))?;
        let names: Vec<String> = used.iter().map(|&at| profiles[at].name.clone()).collect();
        let env = self.env();
        let work = move |control: &Control| {
            let _room = room;
            let table = load(&env, (&dataset).into(), &names, &used, control)?;
            look(&table, control).map_err(|Cancelled| Problem::new(Kind::Unavailable, "the work was stopped"))
        };
        run_blocking("the work", work).await?
    }
}

/// Where a column stands.
fn place(profiles: &[ColumnProfile], name: &str) -> Result<usize, Problem> {
    let unknown = || Problem::new(Kind::NotFound, "the dataset has no column of that name").with("attribute", name);
    profiles.iter().position(|profile| profile.name == name).ok_or_else(unknown)
}

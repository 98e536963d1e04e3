use crate::engine;
use crate::engine::ColumnSize;
use crate::microdata::ColumnProfile;
use crate::ports::DatasetRecord;
use crate::spec::Specification;

/// The bytes of memory for the counts of a job whose rows are in another engine. Its parts are read, too, if they are small.
const ENGINE_JOB_BYTES: u64 = 64 << 20;

/// The bytes of memory here for a release that another engine makes.
#[must_use]
pub(super) fn engine_job_memory(
    dataset: &DatasetRecord,
    profiles: &[ColumnProfile],
    specification: &Specification,
) -> u64 {
    let columns = sizes_of(dataset, profiles, &specification.used);
    // all rows, or the distinct rows of the table; and what the audit finds behind those of the parts
    let by_rows = engine::chooses_by_rows(&specification.method);
    let most = if by_rows { engine::MOST_HELD_ROWS } else { engine::MOST_DISTINCT_ROWS };
    let held = dataset.rows.min(most);
    let reads = by_rows || engine::are_parts_read(dataset.rows);
    let parts = if reads { engine::release_memory(held, &columns) } else { 0 };
    let distinct = engine::choice_memory(held, &specification.method);
    parts.saturating_add(distinct.saturating_mul(2)).saturating_add(ENGINE_JOB_BYTES)
}

/// The bytes of memory that a release of a dataset takes whose rows are read here.
#[must_use]
pub(crate) fn job_memory(dataset: &DatasetRecord, profiles: &[ColumnProfile], specification: &Specification) -> u64 {
    let columns = sizes_of(dataset, profiles, &specification.used);
    engine::release_memory(dataset.rows, &columns)
        .saturating_add(engine::choice_memory(dataset.rows, &specification.method))
        .saturating_add(engine::measurement_memory(dataset.rows, &columns, specification))
}

/// The bytes of memory that work on columns of a dataset takes, estimated as for a release of them.
#[must_use]
pub(crate) fn columns_memory(dataset: &DatasetRecord, profiles: &[ColumnProfile], used: &[usize]) -> u64 {
    engine::release_memory(dataset.rows, &sizes_of(dataset, profiles, used))
}

/// Bytes of memory for extra columns, compared with those of the release; 0 without extra columns.
#[must_use]
pub(crate) fn extra_columns_memory(
    dataset: &DatasetRecord,
    profiles: &[ColumnProfile],
    specification: &Specification,
    extra: &[usize],
) -> u64 {
    if extra.is_empty() {
        return 0;
    }
    engine::profile_memory(dataset.rows, &sizes_of(dataset, profiles, &[extra, &specification.used].concat()))
}

/// Bytes of memory for columns that no release publishes, compared with those that the release publishes; 0 without any.
#[must_use]
pub(crate) fn dropped_columns_memory(dataset: &DatasetRecord, profiles: &[ColumnProfile], dropped: &[usize]) -> u64 {
    match dropped.is_empty() {
        true => 0,
        false => engine::profile_memory(dataset.rows, &sizes_of(dataset, profiles, dropped)),
    }
}

/// For a value of a dataset that was uploaded before bytes were counted.
pub(super) const ASSUMED_VALUE_BYTES: u64 = 32;

pub(super) fn sizes_of(dataset: &DatasetRecord, profiles: &[ColumnProfile], used: &[usize]) -> Vec<ColumnSize> {
    let size = |column: &usize| {
        let profile = &profiles[*column];
        let codes = profile.codes().unwrap_or(dataset.rows);
        ColumnSize { codes, bytes: profile.bytes.unwrap_or(codes.saturating_mul(ASSUMED_VALUE_BYTES)) }
    };
    used.iter().map(size).collect()
}

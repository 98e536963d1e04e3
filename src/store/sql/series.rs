//! Versions of series.

pub(crate) const SERIES_VERSION: &str = "\
-- series_version
SELECT version FROM series_versions WHERE tenant = $1 AND series = $2";

pub(crate) const BUMP_SERIES: &str = "\
-- bump_series
INSERT INTO series_versions (tenant, series, version) VALUES ($1, $2, 1)
ON CONFLICT (tenant, series) DO UPDATE SET version = series_versions.version + 1";

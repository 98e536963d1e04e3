use super::error::StartError;
use crate::api::TableSources;
use crate::config::Config;
use crate::objects::{ObjectStores, SourceList};

/// What may be read on request; none where the operator lists nothing.
pub(super) fn table_sources(config: &Config) -> Result<Option<TableSources>, StartError> {
    let wrong = |text: &str| StartError::Config(format!("--sources: {text}"));
    let allowed = SourceList::parse(config.sources.as_deref().unwrap_or_default()).map_err(|error| wrong(&error))?;
    if allowed.is_empty() {
        return Ok(None);
    }
    let stores = ObjectStores::new().map_err(|error| wrong(&error.to_string()))?;
    Ok(Some(TableSources { allowed, stores }))
}

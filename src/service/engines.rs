use std::collections::BTreeSet;

use super::error::StartError;
use crate::config::TableEngineOptions;
use crate::inputs::{EngineTableList, Engines, NamedEngines};

/// The engines of the options, with `others` among them.
///
/// # Errors
/// [`StartError::Config`]
pub(super) fn configured(options: &TableEngineOptions, others: NamedEngines) -> Result<Engines, StartError> {
    let wrong = |text: String| StartError::Config(format!("--engine-tables: {text}"));
    let tables = EngineTableList::parse(options.tables.as_deref().unwrap_or_default()).map_err(wrong)?;
    let mut engines = others;
    engines.extend(of_spark(options)?);
    let unknown: BTreeSet<&str> = tables.engines().filter(|name| !engines.contains_key(*name)).collect();
    if let Some(name) = unknown.first() {
        return Err(StartError::Config(format!(
            "--engine-tables lists tables of {name:?}, which --engines does not name"
        )));
    }
    Ok(Engines::new(engines, tables))
}

#[cfg(feature = "spark")]
fn of_spark(options: &TableEngineOptions) -> Result<NamedEngines, StartError> {
    use std::sync::Arc;

    use crate::spark::{EngineAddress, EngineEncryption, SparkEngine};

    let encryption = EngineEncryption::from_option(options.engine_require_encryption);
    let mut engines = NamedEngines::new();
    for (name, url) in options.named().map_err(StartError::Config)? {
        let scratch = options.scratch_of(&name).map_err(StartError::Config)?;
        let address = EngineAddress::new(&url, options.token_file_of(&name).map_err(StartError::Config)?);
        let address = address.map_err(|error| StartError::Config(format!("--engines: {name}: {error}")))?;
        let engine = SparkEngine::open(address, &scratch, encryption);
        let engine = engine.map_err(|error| StartError::Config(format!("--engine-scratch: {name}: {error}")))?;
        engines.insert(name, Arc::new(engine));
    }
    Ok(engines)
}

#[cfg(not(feature = "spark"))]
fn of_spark(options: &TableEngineOptions) -> Result<NamedEngines, StartError> {
    if options.engines.is_some() {
        let needs = "--engines: this program has no client of Spark: build it with --features spark";
        return Err(StartError::Config(needs.to_owned()));
    }
    Ok(NamedEngines::new())
}

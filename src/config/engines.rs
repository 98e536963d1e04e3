//! The engines whose tables a service publishes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use serde::{Serialize, Serializer};

/// Options of engines that have tables. Lists are separated by commas; each entry begins with the name of an engine.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct TableEngineOptions {
    /// Engines that have tables, such as lake=sc://HOST:15002 of Spark Connect, separated by commas; off this machine with /;use_ssl=true
    /// and a token. Equal for all processes of a store. Default: none
    #[arg(long, env = "GUARDIAN_ENGINES", value_name = "NAME=URL")]
    #[serde(serialize_with = "names_alone")]
    pub engines: Option<String>,
    /// The files with the tokens of engines, read at each connection
    #[arg(long, env = "GUARDIAN_ENGINE_TOKEN_FILES", value_name = "NAME=FILE")]
    pub engine_token_files: Option<String>,
    /// For each engine a folder that it and this process reach under the same path, and readers of tables and releases do not: it holds
    /// copies and buckets while a job runs, and nothing afterwards
    #[arg(long, env = "GUARDIAN_ENGINE_SCRATCH", value_name = "NAME=FOLDER")]
    pub engine_scratch: Option<String>,
    /// The tables that callers may name, such as lake=catalog.db.*,lake=/lake/{tenant}/*. A last part * stands for what is below, a part
    /// {tenant} for the tenant of the caller. Default: none
    #[arg(id = "engine_tables", long = "engine-tables", env = "GUARDIAN_ENGINE_TABLES", value_name = "NAME=TABLE")]
    #[serde(rename = "engine_tables")]
    pub tables: Option<String>,
    /// Uses an engine only if it encrypts the files that it writes on the way (spark.io.encryption.enabled) and the messages of its
    /// processes (spark.network.crypto.enabled or spark.ssl.rpc.enabled)
    #[arg(long, env = "GUARDIAN_ENGINE_REQUIRE_ENCRYPTION", value_parser = BoolishValueParser::new())]
    pub engine_require_encryption: bool,
}

impl TableEngineOptions {
    /// The engines with their addresses.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn named(&self) -> Result<BTreeMap<String, String>, String> {
        entries("--engines", self.engines.as_deref())
    }

    /// The scratch folder of an engine.
    ///
    /// # Errors
    /// A message for the operator, also if it has none.
    pub fn scratch_of(&self, engine: &str) -> Result<PathBuf, String> {
        let found = entries("--engine-scratch", self.engine_scratch.as_deref())?.remove(engine);
        found.map(PathBuf::from).ok_or_else(|| format!("--engine-scratch names no folder for the engine {engine}"))
    }

    /// The file with the token of an engine, if it has one.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn token_file_of(&self, engine: &str) -> Result<Option<PathBuf>, String> {
        let found = entries("--engine-token-files", self.engine_token_files.as_deref())?.remove(engine);
        Ok(found.map(PathBuf::from))
    }
}

/// The entries of a list by the names that they begin with.
fn entries(option: &str, text: Option<&str>) -> Result<BTreeMap<String, String>, String> {
    let mut entries = BTreeMap::new();
    for entry in text.unwrap_or_default().split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let named = entry.split_once('=').filter(|(name, value)| is_name(name) && !value.is_empty());
        // an address may have a secret in it
        let (name, value) = named.ok_or_else(|| format!("{option}: an entry is not NAME=VALUE, or NAME is no name"))?;
        if entries.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(format!("{option} has two entries of {name}"));
        }
    }
    Ok(entries)
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain)
}

/// Names of engines, without their addresses.
#[expect(clippy::ref_option, reason = "the form of serialize_with")]
fn names_alone<S: Serializer>(engines: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let names = entries("", engines.as_deref()).map(|entries| entries.into_keys().collect::<Vec<_>>().join(","));
    names.ok().filter(|names| !names.is_empty()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_belong_to_named_engines() {
        let options = TableEngineOptions {
            engines: Some("lake=sc://h:1/;use_ssl=true, other=sc://127.0.0.1:2".to_owned()),
            engine_scratch: Some("lake=/scratch".to_owned()),
            ..TableEngineOptions::default()
        };
        let named = options.named().unwrap();
        assert_eq!(
            named.into_iter().collect::<Vec<_>>(),
            [
                ("lake".to_owned(), "sc://h:1/;use_ssl=true".to_owned()),
                ("other".to_owned(), "sc://127.0.0.1:2".to_owned())
            ]
        );
        assert_eq!(options.scratch_of("lake").unwrap(), PathBuf::from("/scratch"));
        assert!(options.scratch_of("other").unwrap_err().contains("other"));
        assert_eq!(options.token_file_of("lake").unwrap(), None);
        assert_eq!(serde_json::to_value(&options).unwrap()["engines"], "lake,other", "addresses are not shown");
    }

    #[test]
    fn entries_without_a_name_are_refused() {
        for engines in ["sc://h:1", "=sc://h:1", "La ke=sc://h:1", "lake=", "lake=a,lake=b"] {
            let options = TableEngineOptions { engines: Some(engines.to_owned()), ..TableEngineOptions::default() };
            assert!(options.named().unwrap_err().starts_with("--engines"), "{engines}");
        }
    }
}

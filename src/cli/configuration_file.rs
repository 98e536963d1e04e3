//! The configuration file: options that neither the command line nor the environment sets.
//!
//! Settings become arguments of a second parse, so that one declaration checks them all. Options with an environment variable can
//! be set; names before the first table count for every command that has the option, those of a table for its command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::{Table, Value};

use super::exit::CommandOutcome;
use crate::problem::nearest_names;

/// Larger files are not read.
const MAX_BYTES: u64 = 1 << 20;

/// Options, and those that stand in for them in the environment.
const STAND_INS: [(&str, &str); 3] =
    [("store", "database_url"), ("master_key", "master_key_digits"), ("otlp_endpoint", "otel_endpoint")];

/// A command and the arguments as they were typed.
pub(super) struct CommandLine {
    pub(super) command: Command,
    pub(super) typed: Vec<OsString>,
}

impl CommandLine {
    /// The arguments, and for what they and the environment leave open those of the configuration file.
    ///
    /// # Errors
    /// A message for the operator that names every fault of the file. An error of the arguments ends the process.
    pub(super) fn matches(mut self) -> Result<ArgMatches, CommandOutcome> {
        let matches = self.command.try_get_matches_from_mut(&self.typed).unwrap_or_else(|error| error.exit());
        let Some(path) = matches.get_one::<PathBuf>("config").cloned() else { return Ok(matches) };
        let settings = read(&path)?;
        let added = self.additions(&matches, &settings).map_err(|faults| {
            CommandOutcome::Usage(format!("{} cannot be used:\n  {}", path.display(), faults.join("\n  ")))
        })?;
        if added.is_empty() {
            return Ok(matches);
        }
        let end = self.typed.iter().position(|argument| argument == "--").unwrap_or(self.typed.len());
        self.typed.splice(end..end, added.into_iter().map(OsString::from));
        self.command.try_get_matches_from_mut(&self.typed).map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default();
            CommandOutcome::Usage(format!(
                "{} cannot be used: {}",
                path.display(),
                reason.strip_prefix("error: ").unwrap_or(reason)
            ))
        })
    }

    /// The arguments that the settings add for the command that was called, or all faults of the settings.
    fn additions(&self, matches: &ArgMatches, settings: &Table) -> Result<Vec<String>, Vec<String>> {
        let (called, innermost) = match matches.subcommand() {
            Some((name, inner)) => (name, iter::successors(Some(inner), |&inner| Some(inner.subcommand()?.1)).last()),
            None => ("", None),
        };
        let is_open = |option: &str| {
            innermost.is_some_and(|matches| {
                let given = |id: &str| {
                    let known = matches.try_contains_id(id).is_ok();
                    known
                        && matches!(matches.value_source(id), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
                };
                let stand_in = STAND_INS.iter().find(|(name, _)| *name == option);
                matches.try_contains_id(option).is_ok()
                    && !given(option)
                    && stand_in.is_none_or(|(_, stand_in)| !given(stand_in))
            })
        };
        let mut chosen: BTreeMap<&str, String> = BTreeMap::new();
        let mut faults = Vec::new();
        // tables come last, so that those of the command replace the common values
        let (tables, common): (Vec<_>, Vec<_>) = settings.iter().partition(|(_, value)| value.is_table());
        let everywhere = options(&self.command);
        for (name, value) in common {
            match setting(&everywhere, name, value) {
                Ok((option, text)) => drop(chosen.insert(option, text)),
                Err(fault) => faults.push(fault),
            }
        }
        for (table, values) in tables {
            let Some(command) = self.command.find_subcommand(table).filter(|command| !options(command).is_empty())
            else {
                faults.push(format!("[{table}] is no command with such options"));
                continue;
            };
            let of_command = options(command);
            for (name, value) in values.as_table().into_iter().flatten() {
                match setting(&of_command, name, value) {
                    Ok((option, text)) if command.get_name() == called => drop(chosen.insert(option, text)),
                    Ok(_) => {}
                    Err(fault) => faults.push(format!("[{table}] {fault}")),
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let open = chosen.into_iter().filter(|(option, argument)| !argument.is_empty() && is_open(option));
        Ok(open.map(|(_, argument)| argument).collect())
    }
}

/// The table of a file.
fn read(path: &Path) -> Result<Table, CommandOutcome> {
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| CommandOutcome::io(path, &error))?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| CommandOutcome::io(path, &error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(CommandOutcome::Usage(format!("{} is larger than {MAX_BYTES} bytes", path.display())));
    }
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        CommandOutcome::Usage(format!("{}, line {line}: {}", path.display(), error.message()))
    })
}

/// The options of a command and its subcommands that a file can set: those with an environment variable that are shown.
fn options(command: &Command) -> Vec<&Arg> {
    let own =
        command.get_arguments().filter(|arg| arg.get_env().is_some() && !arg.is_hide_set() && !arg.is_global_set());
    own.chain(command.get_subcommands().flat_map(options)).collect()
}

/// The id of an option and the argument that sets it; empty for a flag that is off.
fn setting<'a>(options: &[&'a Arg], name: &str, value: &Value) -> Result<(&'a str, String), String> {
    let long = |arg: &&'a Arg| arg.get_long().unwrap_or_default();
    let Some(option) = options.iter().find(|arg| long(arg) == name) else {
        let near = nearest_names(name, options.iter().map(long), 1);
        let hint = near.first().map_or_else(String::new, |near| format!("; the nearest is {near}"));
        return Err(format!("{name} is no option that a file can set{hint}"));
    };
    let id = option.get_id().as_str();
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    match value {
        Value::Boolean(is_on) if is_flag => Ok((id, if *is_on { format!("--{name}") } else { String::new() })),
        Value::String(text) if !is_flag => Ok((id, format!("--{name}={text}"))),
        Value::Integer(number) if !is_flag => Ok((id, format!("--{name}={number}"))),
        Value::Float(number) if !is_flag => Ok((id, format!("--{name}={number}"))),
        _ if is_flag => Err(format!("{name} must be true or false")),
        _ => Err(format!("{name} must be a text or a number")),
    }
}

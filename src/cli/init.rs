//! `guardian init`: writes a first specification for a table.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::exit::CommandOutcome;
use super::job_files::KeepOptions;
use super::object_access::Location;
use super::progress::ProgressBarGuard;
use super::standard_output::ended;
use super::table_file::{TableFile, TableOptions, is_standard_input};
use super::words::quoted;
use super::{input, interrupt, standard_output};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine;
use crate::engine::{ColumnQuestion, Suggestion, SuggestionInput};
use crate::microdata::formats::IngestLimits;
use crate::problem::Problem;
use crate::publication::Unit;
use crate::spec::{ColumnFacts, ColumnRole, DeclaredRoles, read_suggestion_request};
use crate::telemetry;

/// Options of the suggestion.
#[derive(Args)]
pub struct InitArguments {
    /// The table, its address such as s3://bucket/key, or `-` for standard input: CSV, NDJSON, JSON, Parquet or Arrow; plain, gzip or
    /// zstd
    table: PathBuf,
    #[command(flatten)]
    options: TableOptions,
    /// The file of the specification, or `-` for standard output; by default next to the table, with the ending `.spec.json`, and for
    /// an address in the current folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Takes the suggested answer of each question instead of asking
    #[arg(long)]
    yes: bool,
    /// Overwrites the file of the specification
    #[arg(long)]
    force: bool,
    /// The role of a column: identifier, subject, quasi_identifier, sensitive or dropped
    #[arg(long = "role", value_name = "COLUMN=ROLE", value_parser = declared_role)]
    roles: Vec<(String, String)>,
    /// The column that identifies data subjects with several rows; guarantees then hold for persons
    #[arg(long, value_name = "COLUMN")]
    subject: Option<String>,
    #[command(flatten)]
    keep: KeepOptions,
}

fn declared_role(text: &str) -> Result<(String, String), String> {
    // names may have the sign, roles have not
    let (column, role) = text.rsplit_once('=').ok_or("write COLUMN=ROLE")?;
    Ok((column.to_owned(), role.to_owned()))
}

impl InitArguments {
    fn output(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let name = self.table.file_name().unwrap_or_default().to_string_lossy();
            let stem = name.split('.').find(|stem| !stem.is_empty()).unwrap_or("table");
            let name = format!("{stem}.spec.json");
            match Location::parse(&self.table) {
                Ok(Location::Local(table)) => table.with_file_name(name),
                // a specification is a file of this machine
                Ok(Location::Object(_)) | Err(_) => PathBuf::from(name),
            }
        })
    }

    /// The unit of protection, where it is declared.
    fn unit(&self) -> Unit {
        self.keep.unit(self.subject.as_deref())
    }

    /// The declared roles as the service takes them.
    fn request(&self) -> Value {
        let roles: Map<String, Value> =
            self.roles.iter().map(|(column, role)| (column.clone(), role.clone().into())).collect();
        // of a table that is bounded, the subject is known already
        let subject = self.subject.as_ref().filter(|_| self.unit() == Unit::Row);
        json!({"roles": roles, "subject": subject})
    }
}

pub(super) fn run(arguments: &InitArguments, json: bool) -> Result<CommandOutcome, CommandOutcome> {
    telemetry::start(LogFormat::Text);
    let asks = !arguments.yes && !json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !asks && !arguments.yes {
        let why = if json { "--json asks no questions" } else { "there is no terminal to ask questions on" };
        let message = format!("{why}; --yes takes the suggested answers");
        return Err(CommandOutcome::Usage(message));
    }
    let table = TableFile { path: &arguments.table, format: None, options: arguments.options.parsed()? };
    if is_standard_input(table.path) && arguments.output.is_none() {
        let message = "a table on standard input has no name; --output names the file of the specification";
        return Err(CommandOutcome::Usage(message.to_owned()));
    }
    let output = arguments.output();
    if !arguments.force && output.exists() {
        let message = format!("{} exists; --force overwrites it, --output names another file", output.display());
        return Err(CommandOutcome::Usage(message));
    }
    let control = Control::default();
    interrupt::cancel_on_signal(&control);
    let shown = ProgressBarGuard::begin(&control);
    let limits = IngestLimits::default();
    let unit = arguments.unit();
    let read = input::profiled(&table, &unit, &limits, &control)?;
    let facts: Vec<ColumnFacts> = read.profiles.iter().map(|profile| ColumnFacts::new(profile, read.rows)).collect();
    let mut roles = read_suggestion_request(&arguments.request(), &facts)
        .map_err(|faults| CommandOutcome::Refused(Box::new(Problem::of_faults(faults))))?;
    let mut suggestion = suggest(&read, &unit, &roles, &control)?;
    drop(shown);
    let io = |error: std::io::Error| CommandOutcome::io(Path::new("terminal"), &error);
    // each round settles its questions, and there is at most one for each column
    while asks && !suggestion.questions.is_empty() {
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        ask(&suggestion.questions, &mut roles, &mut stdin.lock(), &mut stdout.lock()).map_err(io)?;
        suggestion = suggest(&read, &unit, &roles, &control)?;
    }
    if is_standard_input(&output) {
        ended(describe(&suggestion, &mut std::io::stderr()))?;
        return standard_output::print(&format!("{:#}\n", suggestion.specification));
    }
    write(&output, &suggestion.specification, arguments.force)?;
    if json {
        let mut said =
            serde_json::to_value(&suggestion).map_err(|error| CommandOutcome::Internal(error.to_string()))?;
        said["written_to"] = output.display().to_string().into();
        return standard_output::print(&format!("{said}\n"));
    }
    let mut stdout = std::io::stdout().lock();
    ended(describe(&suggestion, &mut stdout))?;
    ended(describe_next(&suggestion, arguments, &output, &mut stdout))?;
    Ok(CommandOutcome::Done)
}

fn suggest(
    read: &input::ProfiledTable,
    unit: &Unit,
    roles: &DeclaredRoles,
    control: &Control,
) -> Result<Suggestion, CommandOutcome> {
    let limits = &IngestLimits::default();
    let loaded = engine::columns_to_load(&read.profiles, roles, limits);
    let table = read.table(&loaded);
    let input = SuggestionInput {
        profiles: &read.profiles,
        loaded: &loaded,
        table: &table,
        rows: read.rows,
        keys: &[],
        unit,
        roles,
        limits,
    };
    Ok(engine::suggest(&input, control)?)
}

/// The word after an answer that gives it to all later questions of the same words.
const FOR_ALL: &str = "all";

/// What was chosen for a column.
struct ChosenRole {
    role: ColumnRole,
    /// Whether it is meant for all columns with the same question.
    is_for_all: bool,
}

/// Asks each question until it is answered with the number of a choice; an empty line, or the end, takes the suggested one.
fn ask(
    questions: &[ColumnQuestion],
    roles: &mut DeclaredRoles,
    reader: &mut dyn BufRead,
    writer: &mut dyn Write,
) -> std::io::Result<()> {
    let mut for_all: Vec<(&str, ColumnRole)> = Vec::new();
    for (at, asked) in questions.iter().enumerate() {
        let known = for_all.iter().find(|(question, _)| *question == asked.question);
        let role = match known {
            Some((_, role)) => *role,
            None => {
                let alike = questions[at..].iter().filter(|other| other.question == asked.question).count();
                let chosen = choose(asked, alike, reader, writer)?;
                if chosen.is_for_all {
                    for_all.push((&asked.question, chosen.role));
                }
                chosen.role
            }
        };
        roles.insert(asked.column.clone(), role);
    }
    Ok(())
}

/// Asks one question; `alike` columns have it.
fn choose(
    asked: &ColumnQuestion,
    alike: usize,
    reader: &mut dyn BufRead,
    writer: &mut dyn Write,
) -> std::io::Result<ChosenRole> {
    let ColumnQuestion { column, question, assumed, choices } = asked;
    writeln!(writer, "\n{column}: {question}")?;
    for (number, choice) in (1..).zip(choices) {
        let mark = if choice == assumed { " (suggested)" } else { "" };
        writeln!(writer, "  {number}  {}{mark}", choice.as_str())?;
    }
    if alike > 1 {
        writeln!(writer, "  `1 {FOR_ALL}` answers for all {alike} columns with this question")?;
    }
    loop {
        write!(writer, "> ")?;
        writer.flush()?;
        let mut line = String::new();
        let is_end = reader.read_line(&mut line)? == 0;
        let line = line.trim();
        let is_for_all = alike > 1 && line.split_whitespace().last() == Some(FOR_ALL);
        let answer = if is_for_all { line[..line.len() - FOR_ALL.len()].trim_end() } else { line };
        let number = answer.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        let named = choices.iter().find(|choice| choice.as_str() == answer);
        let suggested = (is_end || answer.is_empty()).then_some(assumed);
        if let Some(role) = number.or(named).or(suggested) {
            return Ok(ChosenRole { role: *role, is_for_all });
        }
        writeln!(writer, "a number from 1 to {}", choices.len())?;
    }
}

fn write(path: &Path, specification: &Value, force: bool) -> Result<(), CommandOutcome> {
    let opened = match force {
        true => File::create(path),
        false => OpenOptions::new().write(true).create_new(true).open(path),
    };
    let written = opened.and_then(|mut file| file.write_all(format!("{specification:#}\n").as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CommandOutcome::Usage(format!("{} exists; --force overwrites it", path.display())),
        _ => CommandOutcome::io(path, &error),
    })
}

/// Writes the place of each column with its reason, and the questions that are open.
fn describe(suggestion: &Suggestion, writer: &mut dyn Write) -> std::io::Result<()> {
    let width = suggestion.columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0).min(32);
    for column in &suggestion.columns {
        writeln!(writer, "{:width$}  {:16}  {}", column.name, column.role.as_str(), column.reason)?;
    }
    if !suggestion.questions.is_empty() {
        writeln!(writer, "\nquestions, with the answer that is assumed (--role COLUMN=ROLE gives another):")?;
        let mut questions: Vec<(&ColumnQuestion, Vec<&str>)> = Vec::new();
        for asked in &suggestion.questions {
            let same = |of: &ColumnQuestion| (&of.question, of.assumed) == (&asked.question, asked.assumed);
            match questions.iter_mut().find(|(first, _)| same(first)) {
                Some((_, columns)) => columns.push(&asked.column),
                None => questions.push((asked, vec![&asked.column])),
            }
        }
        for (ColumnQuestion { question, assumed, .. }, columns) in questions {
            writeln!(writer, "  {}: {question} ({})", columns.join(", "), assumed.as_str())?;
        }
    }
    Ok(())
}

/// Writes how to go on.
fn describe_next(
    suggestion: &Suggestion,
    arguments: &InitArguments,
    output: &Path,
    writer: &mut dyn Write,
) -> std::io::Result<()> {
    let (table, specification) = (quoted(&arguments.table), quoted(output));
    write!(writer, "\nwritten to {}; to publish:\n", output.display())?;
    write!(writer, "  guardian publish {table} {specification} --out release{}", arguments.options.in_words())?;
    if let (Some(subject), true) = (&arguments.subject, arguments.unit() != Unit::Row) {
        write!(writer, " --subject {}{}", quoted(Path::new(subject)), arguments.keep.in_words())?;
    } else if let Some(subject) = &suggestion.subject {
        let column = quoted(Path::new(&subject.column));
        write!(writer, " --subject {column} --max-rows-per-subject {}", subject.max_rows)?;
        if subject.max_rows > 1 && arguments.unit() == Unit::Row {
            write!(writer, "\nor for one row of each person, which keeps more of what is published:\n")?;
            let again = format!("guardian init {table} --force --subject {column} --keep 1");
            write!(writer, "  {again}{}", arguments.options.in_words())?;
        }
    }
    writeln!(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_asked_until_they_are_answered() {
        let question = |column: &str, assumed| ColumnQuestion {
            column: column.to_owned(),
            question: "is it a secret?".to_owned(),
            assumed,
            choices: vec![ColumnRole::QuasiIdentifier, ColumnRole::Sensitive, ColumnRole::Dropped],
        };
        let questions = ["race", "party", "ward", "unit"].map(|column| question(column, ColumnRole::QuasiIdentifier));
        let mut roles = DeclaredRoles::new();
        let mut written = Vec::new();
        ask(&questions, &mut roles, &mut &b"7\nmaybe\n2\n\ndropped\n"[..], &mut written).unwrap();
        let chosen: Vec<ColumnRole> = ["race", "party", "ward", "unit"].map(|column| roles[column]).into();
        use ColumnRole::{Dropped, QuasiIdentifier, Sensitive};
        assert_eq!(chosen, [Sensitive, QuasiIdentifier, Dropped, QuasiIdentifier]);
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written.matches("a number from 1 to 3").count(), 2);
        assert!(
            written.contains("race: is it a secret?\n  1  quasi_identifier (suggested)\n  2  sensitive\n"),
            "{written}"
        );
        let mut written = Vec::new();
        ask(&questions, &mut roles, &mut &b"1\n2 all\n"[..], &mut written).unwrap();
        let chosen: Vec<ColumnRole> = ["race", "party", "ward", "unit"].map(|column| roles[column]).into();
        assert_eq!(chosen, [QuasiIdentifier, Sensitive, Sensitive, Sensitive], "an answer for all later ones");
        let written = String::from_utf8(written).unwrap();
        assert_eq!(
            (written.matches("\n> ").count(), written.matches("`1 all` answers for all 3").count()),
            (2, 1),
            "{written}"
        );
    }
}

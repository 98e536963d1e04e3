//! Verifies external tables under rules.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::super::progress::ProgressBarGuard;
use super::VerifyArguments;
use crate::cli::exit::CommandOutcome;
use crate::cli::table_file::TableFile;
use crate::cli::{input, interrupt, standard_output};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine::{
    self, BrokenClass, PublishedValue, TableMeasures, Verification, VerificationMaterial, VerifiedRule,
};
use crate::microdata::formats::IngestLimits;
use crate::microdata::formats::csv::CsvOptions;
use crate::problem::{Kind, Problem};
use crate::spec::{self, VerificationSubject};
use crate::telemetry;

/// Verifies a request with its files in the same folder.
pub(super) fn request(path: &Path, json: bool) -> Result<CommandOutcome, CommandOutcome> {
    let document = input::document(path)?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let options = FileOptions { options: CsvOptions::default(), json };
    verify(&document, &options, |file| {
        let plain = matches!(Path::new(file).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
        plain.then(|| folder.join(file)).ok_or_else(|| {
            let detail = "a file of the request must be the name of a file in its folder";
            CommandOutcome::Refused(Box::new(Problem::new(Kind::MalformedRequest, detail).with("file", file)))
        })
    })
}

/// Verifies a table under the rules of the command line.
pub(super) fn table(path: &Path, arguments: &VerifyArguments, json: bool) -> Result<CommandOutcome, CommandOutcome> {
    let guarantee = arguments.guarantee.as_deref().unwrap_or_default();
    let guarantee = spec::parse_json(guarantee.as_bytes()).map_err(|problem| {
        CommandOutcome::Usage(format!(
            "--guarantee: {}; an example is '{{\"type\":\"l_diversity\",\"l\":2}}'",
            problem.detail
        ))
    })?;
    let original = arguments.original.as_ref();
    let document = json!({
        "tables": [{ "name": "table", "parts": [{ "file": "table" }] }],
        "rules": arguments.rules,
        "default_guarantee": guarantee,
        "original": original.map(|_| json!({ "file": "original" })),
    });
    let options = FileOptions { options: arguments.options.parsed()?, json };
    verify(&document, &options, |file| match original {
        Some(original) if file == "original" => Ok(original.clone()),
        _ => Ok(path.to_owned()),
    })
}

/// How files are read and what is printed.
struct FileOptions {
    options: CsvOptions,
    json: bool,
}

fn verify(
    document: &Value,
    FileOptions { options, json }: &FileOptions,
    place: impl Fn(&str) -> Result<PathBuf, CommandOutcome>,
) -> Result<CommandOutcome, CommandOutcome> {
    telemetry::start(LogFormat::Text);
    let control = Control::default();
    interrupt::cancel_on_signal(&control);
    let shown = ProgressBarGuard::begin(&control);
    let refused = |faults| CommandOutcome::Refused(Box::new(Problem::of_faults(faults)));
    let subject = spec::read_or_remedy(document, spec::read_verification)
        .map_err(|problem| CommandOutcome::Refused(Box::new(problem)))?;
    let VerificationSubject::Tables(tables, original) = &subject else {
        let detail = "only the service verifies its releases by id; verify the folder of a release here";
        return Err(CommandOutcome::Refused(Box::new(Problem::new(Kind::GuaranteeUnsupported, detail))));
    };
    let limits = IngestLimits::default();
    let mut files = Vec::new();
    for file in subject.files() {
        let path = place(&file.file)?;
        let table = TableFile { path: &path, format: file.format, options: options.clone() };
        let mut reader = table.open(&limits, &control)?;
        let read = engine::read_file(reader.as_mut(), &limits, &mut |_| Ok(()));
        files.push(read.map_err(|problem| {
            let detail = format!("{}: {}", path.display(), problem.detail);
            control.check().map_or_else(
                |_| CommandOutcome::interrupted(),
                |()| CommandOutcome::Refused(Box::new(Problem { detail, ..problem })),
            )
        })?);
    }
    let material = VerificationMaterial::new(tables, files, original.is_some()).map_err(refused)?;
    let asked = spec::read_verification_rules(document, material.names()).map_err(refused)?;
    let found = engine::verify_tables(&material, &asked, &control)?;
    drop(shown);
    let text = if *json {
        serde_json::to_string_pretty(&found).map_err(|error| CommandOutcome::Internal(error.to_string()))? + "\n"
    } else {
        in_words(&found)
    };
    standard_output::print(&text)?;
    Ok(if found.verified { CommandOutcome::Done } else { CommandOutcome::NotVerified })
}

/// The result in sentences.
fn in_words(found: &Verification) -> String {
    let mut text = String::new();
    // writing to a text cannot fail
    for table in &found.tables {
        let buckets = if table.buckets > 0 { format!(" in {} buckets", table.buckets) } else { String::new() };
        let _ = writeln!(text, "table {}: {} rows{buckets}", table.name, table.rows);
        for TableMeasures { sensitive, quasi_identifiers, achieved: measures } in &table.measures {
            let by = match &quasi_identifiers[..] {
                [] => String::new(),
                by => format!(" by {}", by.join(", ")),
            };
            let _ = write!(text, "  {sensitive}{by}: {} classes, distinct l {}", measures.classes, measures.distinct_l);
            if let (Some(k), Some(worst)) = (measures.k, measures.worst_posterior) {
                let l = worst.of as f64 / worst.count.max(1) as f64;
                let _ = write!(text, ", k {k}, l {l:.3}, worst posterior {}/{}", worst.count, worst.of);
            }
            let reals = [("entropy l", measures.entropy_l), ("t", measures.t_equal), ("t ordered", measures.t_ordered)];
            for (name, real) in reals.into_iter().filter_map(|(name, real)| Some((name, real?))) {
                let _ = write!(text, ", {name} {real:.3}");
            }
            text.push('\n');
        }
    }
    for rule in &found.rules {
        of_rule(rule, &mut text);
    }
    for check in
        found.checks.iter().filter(|check| !check.passed && !["gnf", "guarantee"].contains(&check.check.as_str()))
    {
        let _ = writeln!(text, "{} FAILS {}", check.check, check.detail.as_deref().unwrap_or_default());
    }
    for attack in &found.attacks {
        let verdict = if attack.breach { "BREACH" } else { "no breach" };
        let worst = attack.worst.map_or_else(|| "none".to_owned(), |worst| format!("{}/{}", worst.count, worst.of));
        let _ = writeln!(
            text,
            "attack {}: {verdict}, {} findings, worst posterior {worst}",
            attack.attack.as_str(),
            attack.findings.total
        );
    }
    for warning in &found.warnings {
        let _ = writeln!(text, "note: {}", warning.detail);
    }
    let verdict = if found.verified { "verified" } else { "NOT VERIFIED" };
    let _ = writeln!(text, "{verdict}; linkage {}", found.linkage.in_words());
    text
}

fn of_rule(rule: &VerifiedRule, text: &mut String) {
    let verdict = if rule.holds { "holds" } else { "FAILS" };
    let sensitive = rule.sensitive.join(if rule.combination { " & " } else { ", " });
    let _ = write!(text, "rule {} -> {sensitive}: {verdict}", rule.quasi_identifiers.join(", "));
    let _ = writeln!(text, "{}", rule.detail.as_ref().map(|detail| format!("; {detail}")).unwrap_or_default());
    for class in &rule.breaks.first {
        let _ = writeln!(text, "  {}", of_class(class));
    }
    let more = rule.breaks.total.saturating_sub(rule.breaks.first.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
}

fn of_class(class: &BrokenClass) -> String {
    let said = |PublishedValue(value): &PublishedValue| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let bucket = class.bucket.iter().map(|bucket| format!("bucket {}", said(bucket)));
    let cells = class.class.iter().flatten().map(|(name, value)| format!("{name} = {}", said(value)));
    let words: Vec<String> = bucket.chain(cells).collect();
    format!("{}: {}", class.table, if words.is_empty() { "all rows".to_owned() } else { words.join(", ") })
}

//! `guardian nights`: what all nights of a republished table show together.

use std::path::{Path, PathBuf};

use clap::Args;

use super::contributions::DrawHasher;
use super::exit::CommandOutcome;
use super::folder::Folder;
use super::input::{InputJob, JobSource};
use super::population::PersonHashing;
use super::table_file::{TableFile, TableOptions};
use super::{input, interrupt, standard_output};
use crate::control::Control;
use crate::engine::{Intersection, IntersectionReport, NightOriginal, ReleasedNight};
use crate::publication::{PersonLink, Unit};
use crate::random::RandomStreams;
use crate::report::Manifest;
use crate::spec::DocumentSource;

/// The nights, and how persons are distinguished.
#[derive(Args)]
pub struct NightsArguments {
    /// The folders of the releases, the first night first; with `=TABLE` the table that each was made of, by which the adversary
    /// knows everybody
    #[arg(required = true, num_args = 2.., value_name = "FOLDER[=TABLE]")]
    nights: Vec<String>,
    /// The columns of the tables that identify persons
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    person: Vec<String>,
    #[command(flatten)]
    options: TableOptions,
}

/// A night that was read.
struct ReadNight {
    folder: Folder,
    manifest: Manifest,
    job: Option<InputJob>,
}

pub(super) fn run(arguments: &NightsArguments, json: bool) -> Result<CommandOutcome, CommandOutcome> {
    let control = Control::default();
    interrupt::cancel_on_signal(&control);
    let nights = arguments.nights.iter().map(|night| read(night, arguments, &control));
    let nights: Vec<ReadNight> = nights.collect::<Result<_, _>>()?;
    let manifests: Vec<&Manifest> = nights.iter().map(|night| &night.manifest).collect();
    let by = if nights.iter().all(|night| night.job.is_some()) { PersonLink::Keys } else { PersonLink::Cells };
    let mut intersection = Intersection::new(&manifests, by)?;
    nights.iter().try_for_each(|night| intersection.add(&night.released(), &control))?;
    let report = intersection.report();
    let text = match json {
        true => serde_json::to_string_pretty(&report).map_err(|error| CommandOutcome::Internal(error.to_string()))?,
        false => in_words(&report),
    };
    standard_output::print(&(text + "\n"))?;
    Ok(if report.holds() { CommandOutcome::Done } else { CommandOutcome::NotVerified })
}

fn read(night: &str, arguments: &NightsArguments, control: &Control) -> Result<ReadNight, CommandOutcome> {
    let (path, table) = night.split_once('=').map_or((night, None), |(path, table)| (path, Some(PathBuf::from(table))));
    let path = Path::new(path);
    let folder = Folder::new(path);
    let manifest = folder.manifest().map_err(CommandOutcome::InputOutput)?;
    let Some(table) = table else { return Ok(ReadNight { folder, manifest, job: None }) };
    if arguments.person.is_empty() {
        return Err(CommandOutcome::Usage("name the columns that identify persons with --person".to_owned()));
    }
    // no hash leaves this process
    let hasher = DrawHasher::new(&RandomStreams::Identity);
    let document = input::document(&path.join("specification.json"))?;
    let source = JobSource {
        table: TableFile { path: &table, format: None, options: arguments.options.parsed()? },
        document: &document,
        unit: &Unit::Row,
        streams: &RandomStreams::Identity,
        persons: Some(PersonHashing { hasher: &hasher, columns: &arguments.person }),
        origin: DocumentSource::Reproduction,
    };
    let job = input::job(source, control)?;
    Ok(ReadNight { folder, manifest, job: Some(job) })
}

impl ReadNight {
    fn released(&self) -> ReleasedNight<'_> {
        let original = self.job.as_ref().map(|job| NightOriginal {
            names: &job.specification.published_names,
            table: &job.table,
            persons: &job.republished,
        });
        ReleasedNight { manifest: &self.manifest, parts: &self.folder, original }
    }
}

fn in_words(report: &IntersectionReport) -> String {
    let IntersectionReport { nights, missing, linked_by, persons, above, l, worst, faults } = report;
    let worst = worst.map_or_else(String::new, |worst| format!("; the largest share is {}/{}", worst.count, worst.of));
    let mut lines = vec![format!(
        "{nights} nights, {persons} persons linked by {}: of {above} a value has more than 1/{l} of what is left{worst}",
        linked_by.as_str()
    )];
    lines.extend(faults.iter().map(|fault| format!("night {}: {}", fault.night, fault.fault)));
    if *missing > 0 {
        lines.push(format!(
            "nights that are not among these: {missing}; who came on one of them is not judged by the entry"
        ));
    }
    if !report.holds() && *linked_by == PersonLink::Cells {
        lines.push("equal cells may be those of two persons: name the table of each night to link by keys".to_owned());
    }
    lines.join("\n")
}

//! From a table to a first specification: a role for each column, a reason for each role, and guarantees that the data can hold.
//!
//! `words` and `shape` say what a column may be, `roles` decides, `guarantees` lists what may be promised of a sensitive column, and
//! `trial` plans the specification with the engine and mends it until a job would publish.

mod draft;
mod guarantees;
mod roles;
mod shape;
mod trial;
mod words;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use self::draft::{ColumnDraft, SpecificationDraft};
use self::roles::{ColumnEvidence, JudgedColumn};
use self::trial::Trial;
use self::words::Meaning;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::formats::IngestLimits;
use crate::microdata::{Attr, ColumnProfile, Table};
use crate::privacy;
use crate::privacy::DiscoveryOptions;
use crate::publication::Unit;
use crate::spec::{ColumnRole, DeclaredRoles};

/// The most columns that a suggestion publishes; their dependencies are searched in pairs.
const MAX_SUGGESTED_COLUMNS: usize = 64;

/// A specification in which every column is placed, and why.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct Suggestion {
    /// The document of a job; on the command line without `dataset`.
    #[schema(value_type = Object)]
    pub specification: Value,
    /// Every column, in the order of the table.
    pub columns: Vec<SuggestedColumn>,
    /// What only a person can decide; the specification assumes an answer of each.
    pub questions: Vec<ColumnQuestion>,
    /// The column that identifies persons with several rows, whom the guarantees protect; null where each row is a person.
    pub subject: Option<SuggestedSubject>,
}

/// The place of a column in a suggestion.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SuggestedColumn {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub role: ColumnRole,
    /// Why, in one sentence. It has counts of the data, and no values.
    pub reason: String,
}

/// A question about a column; a request with the answer in `roles` settles it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ColumnQuestion {
    /// The name of the column.
    pub column: String,
    /// The question.
    pub question: String,
    /// The role that the specification assumes.
    pub assumed: ColumnRole,
    /// The roles to choose from.
    pub choices: Vec<ColumnRole>,
}

/// The persons whom the guarantees protect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SuggestedSubject {
    /// The column that identifies them.
    pub column: String,
    /// The most rows of one of them.
    pub max_rows: u64,
}

/// What a suggestion is made of.
pub struct SuggestionInput<'a> {
    /// The profiles of all columns, in the order of the table.
    pub profiles: &'a [ColumnProfile],
    /// The positions of the columns of `table`, ascending.
    pub loaded: &'a [usize],
    /// The columns that [`columns_to_load`] names.
    pub table: &'a Table,
    /// The rows of the table.
    pub rows: u64,
    /// The columns that identify records or persons of the dataset.
    pub keys: &'a [String],
    /// The unit of protection of the dataset.
    pub unit: &'a Unit,
    /// What people declare.
    pub roles: &'a DeclaredRoles,
    /// What columns may hold.
    pub limits: &'a IngestLimits,
}

/// The columns that a suggestion looks into: those that a job could load, at most 64 besides keys; named ones come first.
#[must_use]
pub fn columns_to_load(profiles: &[ColumnProfile], roles: &DeclaredRoles, limits: &IngestLimits) -> Vec<usize> {
    let precedence = |at: usize| {
        let name = &profiles[at].name;
        match (roles.get(name), words::meaning(name)) {
            (Some(role), _) if role.is_published() || *role == ColumnRole::Subject => 0,
            (None, Some(meaning)) if meaning.is_secret() || meaning == Meaning::PersonKey => 1,
            (None, Some(meaning)) if meaning.is_known() => 2,
            (None, _) => 3,
            (Some(_), _) => 4,
        }
    };
    let mut loaded: Vec<usize> = (0..profiles.len()).filter(|&at| !profiles[at].exceeds(limits)).collect();
    loaded.sort_by_key(|&at| precedence(at));
    loaded.truncate(MAX_SUGGESTED_COLUMNS);
    loaded.sort_unstable();
    loaded
}

/// Suggests a specification that a job would publish.
///
/// # Errors
/// Refused where nothing can be published, or cancelled.
pub fn suggest(input: &SuggestionInput<'_>, control: &Control) -> Result<Suggestion, EngineError> {
    let mut judged = judge_columns(input);
    protect_something(input, &mut judged);
    choose_subject(input, &mut judged);
    protect_determining(input, &mut judged, control)?;
    let subject = subject_of(input, &judged);
    let unit = subject.as_ref().map_or_else(
        || input.unit.clone(),
        |subject| Unit::Subject { attribute: subject.column.clone(), max_rows: subject.max_rows },
    );
    let questions = judged.iter().filter_map(|column| column.question.clone()).collect();
    let columns = judged.into_iter().zip(input.profiles).map(|(judged, profile)| {
        let declares = profile.identifier || input.is_key(&profile.name);
        ColumnDraft::new(judged, profile, declares)
    });
    let draft = SpecificationDraft::new(columns.collect(), input.rows, unit.rows());
    let draft = Trial { input, unit: &unit }.settle(draft, control)?;
    Ok(Suggestion { specification: draft.document(), columns: draft.columns(), questions, subject })
}

impl SuggestionInput<'_> {
    /// Whether the dataset has a column as a key.
    fn is_key(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key == name)
            || matches!(self.unit, Unit::Subject { attribute, .. } if attribute == name)
    }

    /// The attribute of a column of the table.
    fn attr(&self, column: usize) -> Option<Attr> {
        self.loaded.binary_search(&column).ok().map(Attr::from)
    }
}

/// The role of each column by itself, or the declared one.
fn judge_columns(input: &SuggestionInput<'_>) -> Vec<JudgedColumn> {
    let judge = |(at, profile): (usize, &ColumnProfile)| {
        let declared = input.roles.get(&profile.name).copied();
        let Some(attr) = input.attr(at) else {
            let reason = if profile.exceeds(input.limits) {
                "it has more distinct values than a job can load".to_owned()
            } else {
                format!("a suggestion publishes at most {MAX_SUGGESTED_COLUMNS} columns, and others come first")
            };
            return JudgedColumn { role: ColumnRole::Dropped, reason, question: None };
        };
        if let Some(role) = declared {
            return JudgedColumn { role, reason: "you declare it".to_owned(), question: None };
        }
        let evidence = ColumnEvidence {
            profile,
            rows: input.rows,
            is_key: input.is_key(&profile.name),
            meaning: words::meaning(&profile.name),
            shape: shape::shape(&input.table.column(attr).domain),
        };
        evidence.judge()
    };
    input.profiles.iter().enumerate().map(judge).collect()
}

/// Where nothing is sensitive by name, occupations are: the classical secret of a census.
fn protect_something(input: &SuggestionInput<'_>, judged: &mut [JudgedColumn]) {
    if judged.iter().any(|column| column.role == ColumnRole::Sensitive) {
        return;
    }
    let is_occupation = |profile: &ColumnProfile| {
        !input.roles.contains_key(&profile.name) && words::meaning(&profile.name) == Some(Meaning::Occupation)
    };
    let occupations = judged.iter_mut().zip(input.profiles);
    let occupation = occupations
        .filter(|(column, profile)| column.role == ColumnRole::QuasiIdentifier && is_occupation(profile))
        .max_by_key(|(_, profile)| profile.distinct);
    if let Some((column, profile)) = occupation {
        column.role = ColumnRole::Sensitive;
        column.reason = format!("{}; nothing else looks like a secret", column.reason);
        column.question = Some(ColumnQuestion {
            column: profile.name.clone(),
            question: "no column looks like a secret of the person: is this one?".to_owned(),
            assumed: ColumnRole::Sensitive,
            choices: vec![ColumnRole::Sensitive, ColumnRole::QuasiIdentifier, ColumnRole::Dropped],
        });
    }
}

/// At most one column identifies persons: the declared one, else that of the dataset, else the one with the most values. Where a key of
/// persons is different in each row, each row is a person.
fn choose_subject(input: &SuggestionInput<'_>, judged: &mut [JudgedColumn]) {
    let is_declared = input.roles.values().any(|role| *role == ColumnRole::Subject);
    let is_person_key = |profile: &ColumnProfile| words::meaning(&profile.name) == Some(Meaning::PersonKey);
    let has_unique_key = judged.iter().zip(input.profiles).any(|(column, profile)| {
        column.role == ColumnRole::Identifier && is_person_key(profile) && profile.distinct == Some(input.rows)
    });
    let candidates = judged.iter().enumerate().filter(|(_, column)| column.role == ColumnRole::Subject);
    let most = candidates.max_by_key(|(at, _)| input.profiles[*at].distinct).map(|(at, _)| at);
    let is_settled = is_declared || has_unique_key || *input.unit != Unit::Row;
    for (at, column) in judged.iter_mut().enumerate() {
        let is_kept = input.roles.contains_key(&input.profiles[at].name) || (!is_settled && Some(at) == most);
        if column.role == ColumnRole::Subject && !is_kept {
            column.role = ColumnRole::Identifier;
            column.question = None;
        }
    }
}

/// The declared or suggested subject, unless the dataset has one.
fn subject_of(input: &SuggestionInput<'_>, judged: &[JudgedColumn]) -> Option<SuggestedSubject> {
    if let Unit::Subject { attribute, max_rows } = input.unit {
        return Some(SuggestedSubject { column: attribute.clone(), max_rows: *max_rows });
    }
    let at = judged.iter().position(|column| column.role == ColumnRole::Subject)?;
    Some(SuggestedSubject { column: input.profiles[at].name.clone(), max_rows: input.profiles[at].top })
}

/// A column of no clear name that fixes a sensitive one is sensitive too: a guess of it is a guess of the other.
fn protect_determining(
    input: &SuggestionInput<'_>,
    judged: &mut [JudgedColumn],
    control: &Control,
) -> Result<(), EngineError> {
    let discovery = privacy::discover_dependencies(input.table, &DiscoveryOptions::default(), control)?;
    for found in discovery.found {
        let mut determinants = found.dependency.determinant.iter();
        let (Some(determinant), None) = (determinants.next(), determinants.next()) else { continue };
        let (from, to) = (input.loaded[determinant.index()], input.loaded[found.dependency.dependent.index()]);
        let profile = &input.profiles[from];
        let is_open = judged[from].role == ColumnRole::QuasiIdentifier
            && words::meaning(&profile.name).is_none()
            && !input.roles.contains_key(&profile.name);
        if is_open && judged[to].role == ColumnRole::Sensitive {
            let name = &input.profiles[to].name;
            judged[from].role = ColumnRole::Sensitive;
            judged[from].reason = format!("its value fixes that of {name}, which is sensitive");
            if let Some(question) = &mut judged[from].question {
                question.assumed = ColumnRole::Sensitive;
            }
        }
    }
    Ok(())
}

/// A share of rows in whole percent; never 0% or 100% of what is not none or all.
fn percent(count: u64, of: u64) -> String {
    match (count * 200 + of) / (of.max(1) * 2) {
        0 if count > 0 => "under 1%".to_owned(),
        100 if count < of => "over 99%".to_owned(),
        percent => format!("{percent}%"),
    }
}

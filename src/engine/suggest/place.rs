//! The place of every column of a table: each by itself, then all together.

use super::draft::{ColumnDraft, SpecificationDraft};
use super::roles::{ColumnEvidence, JudgedColumn};
use super::suggestion::{ColumnQuestion, SuggestedSubject, Suggestion};
use super::trial::Trial;
use super::words::Meaning;
use super::{shape, words};
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::formats::IngestLimits;
use crate::microdata::{Attr, ColumnProfile, Table};
use crate::privacy;
use crate::privacy::DiscoveryOptions;
use crate::problem::{Fault, FaultRemedy, Kind, Problem};
use crate::publication::Unit;
use crate::spec::{ColumnRole, DeclaredRoles};

/// The most columns that a suggestion publishes; their dependencies are searched in pairs.
const MAX_SUGGESTED_COLUMNS: usize = 64;

/// The most columns that are tried where nothing can be published.
const MAX_TRIED_ROLES: usize = 5;

/// What a suggestion is made of.
#[derive(Clone, Copy)]
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
/// Refused where nothing can be published, with roles that would let something be, or cancelled.
pub fn suggest(input: &SuggestionInput<'_>, control: &Control) -> Result<Suggestion, EngineError> {
    let mut problem = match suggest_as_declared(input, control) {
        Err(EngineError::Refused(problem)) => problem,
        suggested => return suggested,
    };
    for fault in problem.errors.iter_mut().filter(|fault| fault.pointer == "/roles") {
        fault.remedies.extend(published_after_all(input, control)?);
    }
    Err(EngineError::Refused(problem))
}

/// The declaration that lets a column of few values be published, where no column is.
fn published_after_all(input: &SuggestionInput<'_>, control: &Control) -> Result<Option<FaultRemedy>, EngineError> {
    let mut undeclared: Vec<&ColumnProfile> = input.loaded.iter().map(|&at| &input.profiles[at]).collect();
    undeclared.retain(|profile| !input.roles.contains_key(&profile.name) && !input.is_key(&profile.name));
    undeclared.sort_by_key(|profile| profile.distinct);
    for profile in undeclared.into_iter().take(MAX_TRIED_ROLES) {
        let mut roles = input.roles.clone();
        roles.insert(profile.name.clone(), ColumnRole::QuasiIdentifier);
        match suggest_as_declared(&SuggestionInput { roles: &roles, ..*input }, control) {
            Err(EngineError::Refused(_)) => {}
            Err(other) => return Err(other),
            Ok(_) => {
                // a subject has a member of its own
                roles.retain(|_, role| *role != ColumnRole::Subject);
                let written = roles.iter().map(|(name, role)| (name.clone(), role.as_str().into()));
                let written: serde_json::Map<String, serde_json::Value> = written.collect();
                let title = format!("publish {0} all the same: --role {0}=quasi_identifier", profile.name);
                let patch = serde_json::json!([{"op": "add", "path": "/roles", "value": written}]);
                return Ok(Some(FaultRemedy { title, patch }));
            }
        }
    }
    Ok(None)
}

fn suggest_as_declared(input: &SuggestionInput<'_>, control: &Control) -> Result<Suggestion, EngineError> {
    check_subject(input)?;
    let mut judged = judge_columns(input);
    protect_something(input, &mut judged);
    choose_subject(input, &mut judged);
    protect_determining(input, &mut judged, control)?;
    let subject = subject_of(input, &judged);
    let unit = subject.as_ref().map_or_else(
        || input.unit.clone(),
        |subject| Unit::Subject { attribute: subject.column.clone(), max_rows: subject.max_rows, kept: None },
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
        self.keys.iter().any(|key| key == name) || self.is_subject(name)
    }

    /// Whether a column identifies the persons of the dataset.
    fn is_subject(&self, name: &str) -> bool {
        matches!(self.unit, Unit::Subject { attribute, .. } if attribute == name)
    }

    /// The attribute of a column of the table.
    pub(super) fn attr(&self, column: usize) -> Option<Attr> {
        self.loaded.binary_search(&column).ok().map(Attr::from)
    }
}

/// Refuses a declared subject that cannot identify the persons of the rows.
fn check_subject(input: &SuggestionInput<'_>) -> Result<(), EngineError> {
    let is_declared = |profile: &&ColumnProfile| input.roles.get(&profile.name) == Some(&ColumnRole::Subject);
    let Some(profile) = input.profiles.iter().find(is_declared) else { return Ok(()) };
    let detail = match input.unit {
        Unit::Subject { attribute, .. } if *attribute != profile.name => {
            format!("the dataset has another subject: {attribute}")
        }
        _ if profile.exceeds(input.limits) => "the column has too many values to be counted".to_owned(),
        _ if profile.missing > 0 => format!("{} rows have no value of it, and so no subject", profile.missing),
        _ => return Ok(()),
    };
    Err(EngineError::Refused(Problem::of_faults(vec![Fault::new("/subject", Kind::BadColumns, detail)])))
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
            return JudgedColumn::new(ColumnRole::Dropped, reason);
        };
        if input.is_subject(&profile.name) {
            return JudgedColumn::new(ColumnRole::Subject, "it identifies the persons of the dataset");
        }
        if let Some(role) = declared {
            return JudgedColumn::new(role, "you declare it");
        }
        let domain = &input.table.column(attr).domain;
        let evidence = ColumnEvidence {
            profile,
            rows: input.rows,
            is_key: input.is_key(&profile.name),
            meaning: words::meaning(&profile.name),
            shape: shape::shape(domain),
            unread: shape::unread(domain),
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
        let name = &input.profiles[at].name;
        let is_kept = input.roles.contains_key(name) || input.is_subject(name) || (!is_settled && Some(at) == most);
        if column.role == ColumnRole::Subject && !is_kept {
            column.role = ColumnRole::Identifier;
            column.question = None;
        }
    }
}

/// The declared or suggested subject, unless the dataset has one.
fn subject_of(input: &SuggestionInput<'_>, judged: &[JudgedColumn]) -> Option<SuggestedSubject> {
    if let Unit::Subject { attribute, max_rows, .. } = input.unit {
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

//! Refusals of the judge in words, each with the calls that help.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::coverage::{Coverage, CoverageId};
use super::evidence::Resemblance;
use super::judge::PeopleRefusal;
use super::statement::Place;

/// A scope that an officer has.
const OFFICER_SCOPE: &str = "ledger:override";

/// The scope of uploads and that of jobs.
const UPLOAD_SCOPE: &str = "datasets:write";
const JOB_SCOPE: &str = "jobs";

/// A call that helps.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Remedy {
    /// When it helps.
    pub words: String,
    /// Method and path.
    pub call: String,
    /// The body, if it has one.
    pub body: Option<Value>,
    /// The scope that it needs.
    pub needs: &'static str,
}

/// Most populations and tables that a sentence names.
const MAX_NAMES: usize = 5;

/// Most populations, tables and coverages that a refusal lists.
const MAX_PLACES: usize = 20;

/// A refusal as callers see it. It names populations, datasets and counts, never a hash.
#[derive(Clone, PartialEq, Debug)]
pub struct RefusalDocument {
    /// The type of the problem.
    pub kind: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What stands in the way.
    pub detail: String,
    /// Other members of the problem.
    pub members: Map<String, Value>,
    /// What helps, the most likely first.
    pub remedies: Vec<Remedy>,
}

/// Persons of a job and of the coverages that share some of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PersonCounts {
    /// In both.
    pub common: u64,
    /// In the job alone.
    pub added: u64,
    /// In the coverages alone.
    pub removed: u64,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug)]
pub struct RefusedJob<'a> {
    /// The dataset of the job.
    pub dataset: Uuid,
    /// Its population.
    pub population: Option<&'a str>,
    /// The columns of its persons, per key system.
    pub person: &'a BTreeMap<String, Vec<String>>,
    /// The job as it was submitted.
    pub job: &'a Value,
    /// The job without the columns of which values changed, if it has a meaning without them.
    pub without_changed: Option<&'a Value>,
    /// The coverages in its way.
    pub coverages: &'a [(CoverageId, Coverage)],
    /// Common people.
    pub counts: PersonCounts,
}

impl PeopleRefusal {
    /// The refusal of a job.
    #[must_use]
    pub fn document(&self, refused: &RefusedJob<'_>) -> RefusalDocument {
        match self {
            Self::StatementContradicted { statement, .. } => refused.contradicted(*statement),
            Self::PopulationUndeclared { .. } => refused.undeclared(),
            Self::PeopleUnknown { .. } => refused.unknown(),
            Self::OverlappingPeople { changed, .. } => {
                refused.overlapping(&changed.iter().cloned().collect::<Vec<_>>())
            }
            Self::PeopleAlike { by, statement, .. } => refused.alike(*by, *statement),
            Self::EverybodyPublished => refused.document(
                "nobody-new",
                "all persons of the dataset were published before; there is nothing to publish".to_owned(),
                Vec::new(),
            ),
            Self::PublishedWithoutChain { .. } => refused.not_started(),
        }
    }
}

impl RefusedJob<'_> {
    /// The populations, or else the tables, that the refusal is about.
    fn places(&self) -> Vec<Place> {
        let of = |coverage: &Coverage| match coverage.populations.is_empty() {
            true => coverage.datasets.iter().copied().map(Place::Dataset).collect::<Vec<_>>(),
            false => coverage.populations.iter().cloned().map(Place::Population).collect(),
        };
        let mut places: Vec<Place> = self.coverages.iter().flat_map(|(_, coverage)| of(coverage)).collect();
        places.sort();
        places.dedup();
        places
    }

    fn names(&self) -> String {
        let places = self.places();
        let mut names: Vec<String> = places.iter().take(MAX_NAMES).map(Place::to_string).collect();
        if places.len() > MAX_NAMES {
            names.push(format!("{} more", places.len() - MAX_NAMES));
        }
        names.join(", ")
    }

    fn document(&self, kind: &'static str, detail: String, remedies: Vec<Remedy>) -> RefusalDocument {
        let mut members = Map::new();
        if !self.coverages.is_empty() {
            let shown =
                |coverage: &Coverage| json!({"populations": coverage.populations, "datasets": coverage.datasets});
            let first = self.coverages.iter().take(MAX_PLACES);
            let shown: Vec<Value> = first.map(|(_, coverage)| shown(coverage)).collect();
            members.insert("coverages".to_owned(), shown.into());
        }
        RefusalDocument { kind, status: 409, detail, members, remedies }
    }

    fn upload(&self, words: &str, parameters: &str) -> Remedy {
        let call = format!("POST /v1/datasets?{parameters}");
        Remedy { words: words.to_owned(), call, body: None, needs: UPLOAD_SCOPE }
    }

    /// The same job, with a member set.
    fn job_with(&self, words: &str, member: &str, value: Value) -> Remedy {
        let mut body = self.job.clone();
        if let Some(members) = body.as_object_mut() {
            members.insert(member.to_owned(), value);
        }
        self.other_job(words, body)
    }

    fn other_job(&self, words: &str, body: Value) -> Remedy {
        Remedy { words: words.to_owned(), call: "POST /v1/jobs".to_owned(), body: Some(body), needs: JOB_SCOPE }
    }

    /// The populations and tables that the refusal is about, as a statement names them.
    fn named_places(&self) -> Value {
        let places: Vec<String> = self.places().iter().map(Place::to_string).collect();
        if places.len() > MAX_PLACES { json!("all") } else { json!(places) }
    }

    /// A population of other people. It numbers them as `person` says.
    fn other_population(&self, words: &str, person: Value) -> Remedy {
        let places = self.named_places();
        Remedy {
            words: words.to_owned(),
            call: "PUT /v1/populations/NAME".to_owned(),
            body: Some(
                json!({"description": "DESCRIPTION", "person": person, "disjoint_from": places, "reason": "REASON"}),
            ),
            needs: OFFICER_SCOPE,
        }
    }

    /// The earlier table once more, with a key.
    fn earlier_with_key(&self) -> Remedy {
        let population = self.population.unwrap_or("NAME");
        let words = "if the earlier file has a column of persons: upload it once more with it, and post its job again";
        self.upload(words, &format!("population={population}&person=COLUMN"))
    }

    fn undeclared(&self) -> RefusalDocument {
        let names = self.names();
        let detail = format!(
            "it is not known whether the people of this dataset are those of {names}, of which tables were published"
        );
        let populations = self.coverages.iter().flat_map(|(_, coverage)| &coverage.populations);
        let these = populations.clone().min().map(|name| {
            self.upload(
                &format!("if these are people of {name}: upload the file into it"),
                &format!("population={name}"),
            )
        });
        let others = match self.population {
            Some(name) => Remedy {
                words: "if these are other people: state it".to_owned(),
                call: format!("POST /v1/populations/{name}/statements"),
                body: Some(json!({"disjoint_from": self.named_places(), "reason": "REASON"})),
                needs: OFFICER_SCOPE,
            },
            None => self.other_population(
                "if these are other people: define their population, and upload the file into it",
                json!([]),
            ),
        };
        let remedies = these.into_iter().chain([others, self.earlier_with_key()]).collect();
        self.document("population-undeclared", detail, remedies)
    }

    fn unknown(&self) -> RefusalDocument {
        let population = self.population.unwrap_or_default();
        let detail = match self.coverages.is_empty() {
            true => "persons of the dataset are not identified: it has no person key".to_owned(),
            false => format!("tables of {population} were published without a common person key"),
        };
        let theirs = |of: &Coverage| of.systems.keys().any(|system| !self.person.contains_key(system));
        let lacks_a_key = self.person.is_empty() || self.coverages.iter().any(|(_, of)| theirs(of));
        let own = lacks_a_key.then(|| {
            self.upload(
                "if this file has a column that identifies persons: upload it once more with it",
                &format!("population={}&person=COLUMN", if population.is_empty() { "NAME" } else { population }),
            )
        });
        let earlier = (!self.coverages.is_empty()).then(|| self.earlier_with_key());
        self.document("people-unknown", detail, own.into_iter().chain(earlier).collect())
    }

    fn overlapping(&self, changed: &[String]) -> RefusalDocument {
        let PersonCounts { common, added, removed } = self.counts;
        let mut detail =
            format!("{common} persons were published before; {added} are new, {removed} are no longer here");
        if !changed.is_empty() {
            detail += &format!("; other values in: {}", changed.join(", "));
        }
        let unpublished =
            (added > 0).then(|| self.job_with("publish the new persons alone", "people", json!("unpublished")));
        let without = self
            .without_changed
            .map(|job| self.other_job("leave out the columns of which values changed", job.clone()));
        // numbers of their own: those of the population stand for its people
        let keys = self
            .person
            .iter()
            .map(|(system, columns)| json!({"key_system": format!("NAME/{system}"), "columns": columns}));
        let renumbered = self.other_population(
            "if these keys number other people: define their population, with a key system of its own, and upload the \
             file into it",
            keys.collect(),
        );
        let remedies = unpublished.into_iter().chain(without).chain([renumbered]).collect();
        let mut document = self.document("overlapping-people", detail, remedies);
        let members = json!({"common": common, "added": added, "removed": removed, "changed": changed});
        document.members.extend(members.as_object().cloned().unwrap_or_default());
        document
    }

    fn not_started(&self) -> RefusalDocument {
        let detail = format!(
            "the people of this dataset were published without republication, as those of {}: no release of them can be \
             the first of a chain",
            self.names()
        );
        let population = self.population.unwrap_or("NAME");
        let newcomers =
            self.upload("publish people who are new to the population alone", &format!("population={population}"));
        self.document("republish-not-started", detail, vec![newcomers])
    }

    fn alike(&self, by: Resemblance, statement: Option<Uuid>) -> RefusalDocument {
        let because = statement.map_or("its keys".to_owned(), |id| format!("statement {id}"));
        let names = self.names();
        let detail =
            format!("by {because} this table is about other people than {names}, but its cells say the same of them");
        let population = self.population.unwrap_or("NAME");
        let keys = self.upload(
            "if these are the same people under new keys: upload the file with the earlier keys, or with both",
            &format!("population={population}"),
        );
        let earlier: Vec<Uuid> = self
            .coverages
            .iter()
            .take(MAX_NAMES)
            .flat_map(|(_, coverage)| coverage.datasets.first().copied())
            .collect();
        let others = earlier.into_iter().map(|than| Remedy {
            words: format!("if these are truly other people than those of dataset {than}: state it"),
            call: format!("POST /v1/populations/{population}/statements"),
            body: Some(json!({"others": {"dataset": self.dataset, "than": than}, "reason": "REASON"})),
            needs: OFFICER_SCOPE,
        });
        let mut document = self.document("people-alike", detail, std::iter::once(keys).chain(others).collect());
        document.members.insert("by".to_owned(), json!(by));
        document
    }

    fn contradicted(&self, statement: Uuid) -> RefusalDocument {
        let names = self.names();
        let detail = format!(
            "statement {statement} says that this table and {names} have no person in common; \
             persons or whole tables are in both"
        );
        let right = self.upload("upload the file into the population that its people belong to", "population=NAME");
        let mut document = self.document("statement-contradicted", detail, vec![right]);
        document.members.insert("statement".to_owned(), json!(statement));
        document
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::people::{Evidence, KeyedHash, SystemEvidence};

    const TABLE: u128 = 0x00c0_ffee_0000_0000_0000_0000_0000_0001;

    fn coverage(population: Option<&str>, dataset: u128) -> (CoverageId, Coverage) {
        let evidence = Evidence { table: Some(KeyedHash(TABLE)), ..Evidence::default() };
        (CoverageId(1), Coverage::new(Uuid::from_u128(dataset), population, &evidence))
    }

    fn document(refusal: &PeopleRefusal, population: Option<&str>, of: &[(CoverageId, Coverage)]) -> RefusalDocument {
        let job = json!({"dataset": "d", "method": {"type": "anatomy"}, "attributes": {"id": {"drop": true}}});
        let counts = PersonCounts { common: 3, added: 2, removed: 1 };
        let person = BTreeMap::from([("patient".to_owned(), vec!["id".to_owned()])]);
        let mut without = job.clone();
        without["attributes"]["ward"] = json!({"drop": true});
        let refused = RefusedJob {
            dataset: Uuid::from_u128(9),
            population,
            person: &person,
            job: &job,
            without_changed: Some(&without),
            coverages: of,
            counts,
        };
        let document = refusal.document(&refused);
        let shown = format!("{document:?}");
        assert!(!shown.contains("c0ffee"), "{shown}");
        document
    }

    #[test]
    fn overlaps_offer_the_new_persons_alone() {
        let changed = BTreeSet::from(["ward".to_owned()]);
        let refusal = PeopleRefusal::OverlappingPeople { coverages: vec![CoverageId(1)], system: None, changed };
        let found = document(&refusal, Some("clinic"), &[coverage(Some("clinic"), 1)]);
        let detail = "3 persons were published before; 2 are new, 1 are no longer here; other values in: ward";
        assert_eq!((found.kind, found.status, found.detail.as_str()), ("overlapping-people", 409, detail));
        assert_eq!((&found.members["common"], &found.members["changed"]), (&json!(3), &json!(["ward"])));
        let body = found.remedies[0].body.clone().unwrap();
        assert_eq!((&body["people"], &body["method"]), (&json!("unpublished"), &json!({"type": "anatomy"})));
        let body = found.remedies[1].body.clone().unwrap();
        assert_eq!(body["attributes"], json!({"id": {"drop": true}, "ward": {"drop": true}}));
        let body = found.remedies[2].body.clone().unwrap();
        assert_eq!(body["person"], json!([{"key_system": "NAME/patient", "columns": ["id"]}]));
        assert_eq!(body["disjoint_from"], json!(["population:clinic"]));
    }

    #[test]
    fn unknown_people_offer_their_population_or_a_statement() {
        let refusal = PeopleRefusal::PopulationUndeclared { coverages: vec![CoverageId(1)] };
        let found = document(&refusal, None, &[coverage(Some("clinic"), 1), coverage(None, 2)]);
        let places = json!([format!("population:clinic"), format!("dataset:{}", Uuid::from_u128(2))]);
        assert_eq!(found.remedies[0].call, "POST /v1/datasets?population=clinic");
        assert_eq!(found.remedies[1].call, "PUT /v1/populations/NAME");
        assert_eq!(found.remedies[1].body.as_ref().unwrap()["disjoint_from"], places);
        let found = document(&refusal, Some("births"), &[coverage(None, 2)]);
        assert_eq!(found.remedies[0].call, "POST /v1/populations/births/statements");
        let refusal = PeopleRefusal::PeopleUnknown { coverages: vec![CoverageId(1)] };
        let found = document(&refusal, Some("clinic"), &[coverage(Some("clinic"), 1)]);
        // the dataset has its key, the earlier table has none
        assert_eq!(found.remedies[0].call, "POST /v1/datasets?population=clinic&person=COLUMN");
        assert!(found.remedies[0].words.starts_with("if the earlier file"), "{:?}", found.remedies[0].words);
        assert_eq!(found.remedies.len(), 1);
        let (id, mut badged) = coverage(Some("clinic"), 1);
        badged.systems.insert("badge".to_owned(), SystemEvidence::default());
        let found = document(&refusal, Some("clinic"), &[(id, badged)]);
        assert!(found.remedies[0].words.starts_with("if this file"), "{:?}", found.remedies[0].words);
        assert_eq!(found.remedies.len(), 2);
    }

    #[test]
    fn alike_tables_offer_a_statement_of_both() {
        let statement = Some(Uuid::from_u128(7));
        let refusal = PeopleRefusal::PeopleAlike { coverages: vec![CoverageId(1)], by: Resemblance::Rows, statement };
        let found = document(&refusal, Some("y"), &[coverage(Some("x"), 1)]);
        let both = json!({"dataset": Uuid::from_u128(9), "than": Uuid::from_u128(1)});
        assert_eq!(found.remedies[1].body.as_ref().unwrap()["others"], both);
        assert_eq!(found.members["by"], "rows");
        assert!(found.detail.starts_with(&format!("by statement {} this table", Uuid::from_u128(7))));
    }

    #[test]
    fn contradictions_name_the_statement() {
        let statement = Uuid::from_u128(7);
        let refusal = PeopleRefusal::StatementContradicted { statement, coverages: vec![CoverageId(1)] };
        let found = document(&refusal, Some("y"), &[coverage(Some("x"), 1)]);
        assert_eq!((found.kind, &found.members["statement"]), ("statement-contradicted", &json!(statement)));
        assert_eq!(found.members["coverages"][0]["populations"], json!(["x"]));
        let nothing = document(&PeopleRefusal::EverybodyPublished, Some("y"), &[]);
        assert_eq!((nothing.kind, nothing.remedies.len()), ("nobody-new", 0));
    }
}

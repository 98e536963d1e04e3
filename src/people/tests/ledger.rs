//! A ledger in memory that asks every question of all coverages.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::tables::{PeopleTable, TableSpec};
use crate::control::Control;
use crate::people::hash::tests::GoldenTenant;
use crate::people::{
    Admission, Basis, Coverage, CoverageId, Evidence, EvidenceCollector, Fold, JudgedRows, KeyLayout, KeyedHash,
    LiveCoverage, NamedColumns, PeopleClaim, PeopleRefusal, PersonColumns, Place, Population, PopulationError,
    PopulationKey, PopulationRegistry, Separation, SeparationStatement, SignatureSample, UnrelatedPolicy,
    UploadPersonError, attribute_names, judge, person_hashes,
};

type PersonSets = BTreeMap<String, BTreeSet<KeyedHash>>;

/// The evidence of some rows, with everything in memory.
#[derive(Clone)]
pub(super) struct WholeEvidence {
    pub(super) evidence: Evidence,
    persons: PersonSets,
    truth: BTreeSet<u64>,
}

impl WholeEvidence {
    pub(super) fn new(table: &PeopleTable, layout: &KeyLayout, kept: &[bool]) -> Result<Self, Value> {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = EvidenceCollector::new(GoldenTenant, layout.clone(), folder.path());
        let malformed = |_| problem("upload-malformed");
        collector.add(&table.chunk(), |row| kept[row]).map_err(malformed)?;
        let mut persons: PersonSets = layout.systems.iter().map(|of| (of.system.clone(), BTreeSet::new())).collect();
        let evidence = collector.finish(&Control::default(), |system, hashes| {
            persons.get_mut(system).unwrap().extend(hashes);
            Ok(())
        });
        let truth = table.truth.iter().zip(kept).filter(|(_, kept)| **kept).map(|(person, _)| *person).collect();
        Ok(Self { evidence: evidence.map_err(|_| problem("upload-malformed"))?, persons, truth })
    }
}

struct TestDataset {
    id: Uuid,
    table: PeopleTable,
    population: Option<String>,
    layout: KeyLayout,
    evidence: WholeEvidence,
    is_purged: bool,
}

#[derive(Clone)]
struct TestRelease {
    job: Value,
    status: &'static str,
    is_read: bool,
    composition: String,
    columns: BTreeSet<String>,
    root: Option<String>,
    dataset: String,
}

impl TestRelease {
    fn is_disclosed(&self) -> bool {
        self.is_read || self.status != "rejected"
    }
}

struct TestCoverage {
    id: CoverageId,
    coverage: Coverage,
    persons: PersonSets,
    blocks: BTreeSet<KeyedHash>,
    signatures: Vec<SignatureSample>,
    truth: BTreeSet<u64>,
    releases: Vec<TestRelease>,
}

impl TestCoverage {
    fn is_live(&self) -> bool {
        self.releases.iter().any(TestRelease::is_disclosed)
    }

    fn disclosed(&self) -> impl Iterator<Item = &TestRelease> {
        self.releases.iter().filter(|release| release.is_disclosed())
    }

    fn published(&self) -> BTreeSet<String> {
        self.disclosed().flat_map(|release| release.columns.iter().cloned()).collect()
    }

    fn against(&self, rows: &WholeEvidence) -> LiveCoverage {
        let shared = |(name, own): (&String, &BTreeSet<KeyedHash>)| {
            let theirs = self.persons.get(name)?;
            Some((name.clone(), own.intersection(theirs).count() as u64))
        };
        let resemblance = rows.evidence.resemblance(|mark| self.blocks.contains(&mark), &self.signatures);
        LiveCoverage {
            id: self.id,
            coverage: self.coverage.clone(),
            published: self.published(),
            common: rows.persons.iter().filter_map(shared).collect(),
            resemblance,
        }
    }
}

pub(super) fn problem(name: &str) -> Value {
    json!({"status": "refused", "problem": name})
}

/// One tenant.
#[derive(Default)]
pub(super) struct TestLedger {
    registry: PopulationRegistry,
    statements: Vec<SeparationStatement>,
    declared: BTreeSet<(String, String)>,
    number_of_statements: u128,
    coverages: Vec<TestCoverage>,
    ids: BTreeMap<String, Uuid>,
    datasets: BTreeMap<String, TestDataset>,
    policy: UnrelatedPolicy,
}

#[derive(Deserialize)]
struct SystemStep {
    name: String,
    columns: Vec<String>,
    #[serde(default)]
    fold: Fold,
}

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

fn is_officer(step: &Value) -> bool {
    step["by"] == "officer"
}

impl TestLedger {
    /// The answer to a call.
    pub(super) fn call(&mut self, step: &Value) -> Value {
        let done = |result: Result<(), Value>| result.map_or_else(|problem| problem, |()| json!({"status": "done"}));
        match step["do"].as_str().unwrap() {
            "population" => done(self.define(step)),
            "state" => done(self.declare(step)),
            "upload" => done(self.upload(step)),
            "job" => self.job(step).unwrap_or_else(|problem| problem),
            "end" => done(self.end(step)),
            "purge" => {
                self.datasets.get_mut(step["dataset"].as_str().unwrap()).unwrap().is_purged = true;
                done(Ok(()))
            }
            "setting" => {
                self.policy = serde_json::from_value(step["beside_unrelated"].clone()).unwrap();
                done(Ok(()))
            }
            "carry" => {
                self.carry();
                done(Ok(()))
            }
            "fold" => fold(step),
            other => panic!("{other}"),
        }
    }

    fn define(&mut self, step: &Value) -> Result<(), Value> {
        if !is_officer(step) {
            return Err(problem("forbidden"));
        }
        let systems: Vec<SystemStep> = serde_json::from_value(step["systems"].clone()).unwrap();
        let key = |of: SystemStep| PopulationKey { key_system: of.name, columns: of.columns, fold: of.fold };
        let population = Population {
            description: String::new(),
            person: systems.into_iter().map(key).collect(),
            max_rows_per_person: 1,
            republication: (step["republication"] == true).then(|| json!({})),
        };
        let name = step["name"].as_str().unwrap();
        let is_live = self.coverages.iter().any(|of| of.is_live() && of.coverage.populations.contains(name));
        self.registry.define(name, population, is_live).map_err(|error| match error {
            PopulationError::SystemChanged(_) | PopulationError::PopulationChanged => problem("conflict"),
            other => panic!("{other}"),
        })
    }

    fn id(&mut self, dataset: &str) -> Uuid {
        let next = Uuid::from_u128(self.ids.len() as u128 + 1);
        *self.ids.entry(dataset.to_owned()).or_insert(next)
    }

    fn place(&self, text: &str) -> Result<Place, Value> {
        let (kind, name) = text.split_once(':').unwrap();
        let id = self.datasets.get(name).map(|dataset| dataset.id);
        match kind {
            "population" if self.registry.populations.contains_key(name) => Ok(Place::Population(name.to_owned())),
            "dataset" => id.map(Place::Dataset).ok_or_else(|| problem("not-found")),
            _ => Err(problem("not-found")),
        }
    }

    fn declare(&mut self, step: &Value) -> Result<(), Value> {
        let of = texts(&step["of"]);
        let reason = step["reason"].as_str().unwrap();
        if !is_officer(step) {
            return Err(problem("forbidden"));
        }
        if reason.is_empty() {
            return Err(problem("malformed-body"));
        }
        if step["kind"] == "attribute" {
            let population = of[0].trim_start_matches("population:").to_owned();
            self.declared.insert((population, of[1].trim_start_matches("attribute:").to_owned()));
            self.number_of_statements += 1;
            return Ok(());
        }
        let kind: Separation = serde_json::from_value(step["kind"].clone()).unwrap();
        let own = self.place(&of[0])?;
        let others = if of[1] == "all" { self.all_but(&own) } else { vec![self.place(&of[1])?] };
        for other in others {
            if kind == Separation::Disjoint && self.meet(&own, &other) {
                return Err(problem("statement-contradicted"));
            }
            let (id, places) = (Uuid::from_u128(self.number_of_statements), [own.clone(), other]);
            let statement = SeparationStatement::new(id, kind, places, reason.to_owned());
            self.statements.push(statement.ok_or_else(|| problem("malformed-body"))?);
            self.number_of_statements += 1;
        }
        Ok(())
    }

    fn all_but(&self, own: &Place) -> Vec<Place> {
        let undeclared = self.coverages.iter().filter(|of| of.is_live() && of.coverage.populations.is_empty());
        let tables = undeclared.flat_map(|of| of.coverage.datasets.iter().copied().map(Place::Dataset));
        let populations = self.registry.populations.keys().cloned().map(Place::Population);
        populations.chain(tables).filter(|place| place != own).collect()
    }

    fn meet(&self, one: &Place, other: &Place) -> bool {
        let of = |place: &Place| {
            let place = place.clone();
            self.coverages.iter().filter(move |of| of.is_live() && of.coverage.places().contains(&place))
        };
        let share = |a: &TestCoverage, b: &TestCoverage| {
            let persons = |(name, own): (&String, &BTreeSet<KeyedHash>)| {
                b.persons.get(name).is_some_and(|theirs| !own.is_disjoint(theirs))
            };
            a.id == b.id || a.persons.iter().any(persons) || !a.coverage.tables.is_disjoint(&b.coverage.tables)
        };
        of(one).any(|a| of(other).any(|b| share(a, b)))
    }

    fn upload(&mut self, step: &Value) -> Result<(), Value> {
        let spec: TableSpec = serde_json::from_value(step["table"].clone()).unwrap();
        let table = spec.table();
        if table.rows.is_empty() {
            return Err(problem("empty-table"));
        }
        let person = match step["person"].as_object() {
            None => PersonColumns::Inherited,
            Some(none) if none.is_empty() => PersonColumns::Keyless,
            Some(systems) => {
                let columns = |(name, columns): (&String, &Value)| NamedColumns {
                    system: Some(name.clone()),
                    columns: texts(columns),
                };
                PersonColumns::Columns(systems.iter().map(columns).collect())
            }
        };
        let population = step["population"].as_str();
        let systems = self.registry.layout(population, &person, &table.names).map_err(|error| match error {
            UploadPersonError::UnknownPopulation(_) => problem("unknown-population"),
            UploadPersonError::MissingColumns(_) => problem("person-key-missing"),
            _ => problem("malformed-request"),
        })?;
        let place = |column: &String| table.names.iter().position(|name| name == column).unwrap();
        let layout = KeyLayout {
            names: table.names.clone(),
            systems,
            record_key: texts(&step["record_key"]).iter().map(place).collect(),
            max_rows_per_person: step["most"].as_u64().unwrap_or(1),
        };
        let evidence = WholeEvidence::new(&table, &layout, &vec![true; table.rows.len()])?;
        let (name, population) = (step["as"].as_str().unwrap(), population.map(str::to_owned));
        let id = self.id(name);
        let dataset = TestDataset { id, table, population, layout, evidence, is_purged: false };
        self.datasets.insert(name.to_owned(), dataset);
        Ok(())
    }

    /// The evidence of the rows of people of whom nothing is published.
    fn unpublished(&self, dataset: &TestDataset) -> Result<WholeEvidence, Value> {
        if dataset.layout.systems.is_empty() {
            return Err(problem("people-unknown"));
        }
        let chunk = dataset.table.chunk();
        let mut kept = vec![true; dataset.table.rows.len()];
        for system in &dataset.layout.systems {
            let live = self.coverages.iter().filter(|of| of.is_live());
            let sets: Vec<&BTreeSet<KeyedHash>> = live.filter_map(|of| of.persons.get(&system.system)).collect();
            for (kept, person) in kept.iter_mut().zip(person_hashes(&GoldenTenant, system, &chunk)) {
                *kept &= sets.iter().all(|set| !set.contains(&person.unwrap()));
            }
        }
        if !kept.contains(&true) {
            return Err(problem("nobody-new"));
        }
        WholeEvidence::new(&dataset.table, &dataset.layout, &kept)
    }

    fn job(&mut self, step: &Value) -> Result<Value, Value> {
        let is_report = step["mode"] == "report";
        if is_report && !is_officer(step) {
            return Err(problem("forbidden"));
        }
        if is_report && step["reason"].as_str().is_none_or(str::is_empty) {
            return Err(problem("malformed-body"));
        }
        let name = step["dataset"].as_str().unwrap();
        let dataset = &self.datasets[name];
        if dataset.is_purged {
            return Err(problem("gone"));
        }
        let whole = &dataset.evidence;
        let people = || match step["people"].as_str() {
            Some("unpublished") => self.unpublished(dataset),
            _ => Ok(whole.clone()),
        };
        let live: Vec<&TestCoverage> = self.coverages.iter().filter(|of| of.is_live()).collect();
        let publishes: BTreeSet<String> = texts(&step["columns"]).into_iter().collect();
        let judged = people().and_then(|rows| {
            let against: Vec<LiveCoverage> = live.iter().map(|of| of.against(&rows)).collect();
            let asked = JudgedRows {
                dataset: dataset.id,
                population: dataset.population.as_deref(),
                evidence: &rows.evidence,
                publishes: &publishes,
                is_republication: step["republish"] == true,
            };
            let admission = judge(&asked, &against, &self.statements, self.policy);
            Ok((admission.map_err(|refusal| self.refused(&refusal, &rows))?, rows))
        });
        let (mut admission, rows) = match judged {
            Err(refusal) if !is_report => return Err(refusal),
            Err(_) => {
                let against: Vec<LiveCoverage> = live.iter().map(|of| of.against(whole)).collect();
                (Admission::unproven(&whole.evidence, &against), whole.clone())
            }
            Ok(judged) => judged,
        };
        if is_report {
            admission.claim = PeopleClaim::Unproven;
        }
        self.admit(step, &admission, rows)
    }

    fn refused(&self, refusal: &PeopleRefusal, rows: &WholeEvidence) -> Value {
        let (name, coverages) = match refusal {
            PeopleRefusal::StatementContradicted { coverages, .. } => ("statement-contradicted", coverages),
            PeopleRefusal::PopulationUndeclared { coverages } => ("population-undeclared", coverages),
            PeopleRefusal::PeopleUnknown { coverages } => ("people-unknown", coverages),
            PeopleRefusal::PeopleAlike { coverages, .. } => ("people-alike", coverages),
            PeopleRefusal::EverybodyPublished => return problem("nobody-new"),
            PeopleRefusal::PublishedWithoutChain { coverages } => ("republish-not-started", coverages),
            PeopleRefusal::OverlappingPeople { coverages, system, changed } => {
                let system = system.as_ref().unwrap();
                let met = self.coverages.iter().filter(|of| coverages.contains(&of.id));
                let theirs: BTreeSet<&KeyedHash> = met.filter_map(|of| of.persons.get(system)).flatten().collect();
                let own = &rows.persons[system];
                let common = own.iter().filter(|person| theirs.contains(person)).count();
                let (added, removed) = (own.len() - common, theirs.len() - common);
                return json!({"status": "refused", "problem": "overlapping-people", "common": common,
                    "added": added, "removed": removed, "changed": changed});
            }
        };
        json!({"status": "refused", "problem": name, "coverages": coverages})
    }

    fn admit(&mut self, step: &Value, admission: &Admission, rows: WholeEvidence) -> Result<Value, Value> {
        let job = json!([step["columns"], step["bucketize"], step["people"], step["l"], step["republish"]]);
        let dataset = &self.datasets[step["dataset"].as_str().unwrap()];
        let (id, population) = (dataset.id, dataset.population.clone());
        let joined: Vec<CoverageId> = admission.same.iter().chain(&admission.chain).copied().collect();
        let place = |id: &CoverageId| self.coverages.iter().position(|of| of.id == *id).unwrap();
        let joined: Vec<usize> = joined.iter().map(place).collect();
        for &at in joined.iter().filter(|_| admission.chain.is_none()) {
            let equal = |of: &&TestRelease| of.job == job && of.status != "rejected";
            let Some(release) = self.coverages[at].releases.iter().find(equal).cloned() else { continue };
            if release.status == "withdrawn" {
                return Err(problem("gone"));
            }
            self.coverages[at].adopt(id, population.as_deref(), &rows);
            return Ok(json!({"status": "reused", "composition": release.composition}));
        }
        let is_checked = admission.chain.is_none() && admission.claim != PeopleClaim::Unproven;
        let columns: BTreeSet<String> = texts(&step["columns"]).into_iter().collect();
        let own_names: BTreeMap<String, String> = columns.iter().map(|name| (name.clone(), name.clone())).collect();
        let root = step["bucketize"].as_str();
        for &at in joined.iter().filter(|_| is_checked) {
            let names = self.names(&self.coverages[at], &rows.evidence, &columns)?;
            self.coverages[at].check_union(&names, root)?;
        }
        let at = match joined.first() {
            Some(&at) => {
                self.coverages[at].adopt(id, population.as_deref(), &rows);
                at
            }
            None => {
                let number = CoverageId(self.coverages.len() as i64 + 1);
                self.coverages.push(TestCoverage::new(number, id, population.as_deref(), &rows));
                self.coverages.len() - 1
            }
        };
        let names = if is_checked { self.names(&self.coverages[at], &rows.evidence, &columns)? } else { own_names };
        if step["republish"] == true {
            let is_republished =
                population.as_ref().is_some_and(|name| self.registry.populations[name].republication.is_some());
            if !is_republished {
                return Err(problem("invalid-specification"));
            }
            self.coverages[at].extend_chain(population, &rows);
        }
        let status = if step["hold"] == true { "held" } else { "published" };
        let claim = serde_json::to_value(admission.claim).unwrap().as_str().unwrap().to_owned();
        let composition = if admission.chain.is_some() { "republication".to_owned() } else { claim };
        self.coverages[at].releases.push(TestRelease {
            job,
            status,
            is_read: false,
            composition: composition.clone(),
            columns: names.values().cloned().collect(),
            root: root.map(|root| names[root].clone()),
            dataset: step["dataset"].as_str().unwrap().to_owned(),
        });
        Ok(json!({"status": status, "composition": composition, "basis": basis(admission), "people": rows.truth.len()}))
    }

    fn names(
        &self,
        of: &TestCoverage,
        evidence: &Evidence,
        columns: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, String>, Value> {
        let is_declared = |column: &str| {
            let populations = of.coverage.populations.iter();
            populations.cloned().any(|population| self.declared.contains(&(population, column.to_owned())))
        };
        let names = attribute_names(evidence, &of.coverage, &of.published(), columns, is_declared);
        names.map_err(|error| json!({"status": "refused", "problem": "composition-undecidable", "attributes": error.0}))
    }

    fn end(&mut self, step: &Value) -> Result<(), Value> {
        let how = step["how"].as_str().unwrap();
        let of_dataset = |release: &&mut TestRelease| step["dataset"] == release.dataset.as_str();
        for release in self.coverages.iter_mut().flat_map(|of| &mut of.releases).filter(of_dataset) {
            if !["held", "published"].contains(&release.status) {
                continue;
            }
            let wanted = if how == "withdraw" { "published" } else { "held" };
            if release.status != wanted {
                return Err(problem("conflict"));
            }
            release.status = match how {
                "withdraw" => "withdrawn",
                "reject" => "rejected",
                _ => "published",
            };
            release.is_read |= step["read"] == true;
        }
        Ok(())
    }

    /// Export and import into an empty store.
    fn carry(&mut self) {
        self.datasets.values_mut().for_each(|dataset| dataset.is_purged = true);
        self.coverages.retain(TestCoverage::is_live);
        for release in self.coverages.iter_mut().flat_map(|of| &mut of.releases) {
            if release.status != "rejected" {
                release.status = "withdrawn";
            }
        }
    }

    /// Persons of two coverages with claims that say that they have none in common.
    pub(super) fn truly_shared(&self) -> usize {
        let is_proven = |of: &&TestCoverage| of.is_live() && of.disclosed().all(|of| of.composition != "unproven");
        let proven: Vec<&TestCoverage> = self.coverages.iter().filter(is_proven).collect();
        let pairs = proven.iter().enumerate().flat_map(|(at, a)| proven[at + 1..].iter().map(move |b| (a, b)));
        pairs.map(|(a, b)| a.truth.intersection(&b.truth).count()).sum()
    }
}

impl TestCoverage {
    fn new(id: CoverageId, dataset: Uuid, population: Option<&str>, rows: &WholeEvidence) -> Self {
        Self {
            id,
            coverage: Coverage::new(dataset, population, &rows.evidence),
            persons: rows.persons.clone(),
            blocks: rows.evidence.blocks.iter().map(|block| block.mark).collect(),
            signatures: rows.evidence.signatures.clone(),
            truth: rows.truth.clone(),
            releases: Vec::new(),
        }
    }

    fn adopt(&mut self, dataset: Uuid, population: Option<&str>, rows: &WholeEvidence) {
        let published = self.published();
        for system in self.coverage.adopt(dataset, population, &rows.evidence, &published) {
            self.persons.insert(system.clone(), rows.persons[&system].clone());
        }
    }

    fn extend_chain(&mut self, population: Option<String>, rows: &WholeEvidence) {
        let is_first = self.coverage.chain.is_none();
        self.coverage.chain = population;
        for (system, persons) in &rows.persons {
            let all = self.persons.entry(system.clone()).or_default();
            let before = all.len();
            all.extend(persons);
            if !is_first {
                self.coverage.count_new_persons(system, (all.len() - before) as u64);
            }
        }
        self.truth.extend(&rows.truth);
    }

    /// Stands for the check of the union: one bucketization of an attribute, and no other table that has it.
    fn check_union(&self, names: &BTreeMap<String, String>, root: Option<&str>) -> Result<(), Value> {
        let root = root.map(|root| &names[root]);
        for release in self.disclosed() {
            let is_again = root.is_some_and(|own| match &release.root {
                Some(other) => own == other,
                None => release.columns.contains(own),
            });
            let is_plain =
                root.is_none() && release.root.as_ref().is_some_and(|other| names.values().any(|name| name == other));
            let is_unproven =
                release.composition == "unproven" && names.values().any(|name| release.columns.contains(name));
            if is_again || is_plain || is_unproven {
                return Err(problem("composition-violated"));
            }
        }
        Ok(())
    }
}

fn basis(admission: &Admission) -> Vec<String> {
    let text = |basis: &Basis| match basis {
        Basis::Content => "content".to_owned(),
        Basis::Keys(system) => format!("keys:{system}"),
        Basis::Statement(id) => format!("statement:{}", id.as_u128()),
    };
    let mut texts: Vec<String> = admission.basis.iter().map(text).collect();
    texts.sort();
    texts
}

fn fold(step: &Value) -> Value {
    let how: Fold = serde_json::from_value(step["how"].clone()).unwrap_or_default();
    let folded: Vec<String> = texts(&step["texts"]).iter().map(|text| how.apply(text).into_owned()).collect();
    let status = if folded.windows(2).all(|pair| pair[0] == pair[1]) { "same" } else { "different" };
    json!({"status": status, "folded": folded})
}

/// The answers of a sequence of calls to an empty ledger, and the ledger.
pub(super) fn run(steps: &[Value]) -> (Vec<Value>, TestLedger) {
    let mut ledger = TestLedger::default();
    (steps.iter().map(|step| ledger.call(step)).collect(), ledger)
}

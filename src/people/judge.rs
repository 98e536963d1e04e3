//! The decision beside which releases a new one is judged, from evidence, live coverages and statements alone.
//!
//! Exact evidence is stronger than any statement, a statement is stronger than statistical evidence. What is unknown is
//! refused.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::coverage::{CoverageId, LiveCoverage};
use super::evidence::{Evidence, Resemblance, SystemEvidence};
use super::statement::{Place, Separation, SeparationStatement, find};

/// The rows of a job.
#[derive(Clone, Copy, Debug)]
pub struct JudgedRows<'a> {
    /// Their dataset.
    pub dataset: Uuid,
    /// Its population.
    pub population: Option<&'a str>,
    /// Their evidence.
    pub evidence: &'a Evidence,
    /// The columns that the job publishes.
    pub publishes: &'a BTreeSet<String>,
    /// Whether it publishes everybody of a population again.
    pub is_republication: bool,
}

impl JudgedRows<'_> {
    fn places(&self) -> BTreeSet<Place> {
        let population = self.population.map(|name| Place::Population(name.to_owned()));
        population.into_iter().chain([Place::Dataset(self.dataset)]).collect()
    }
}

/// What happens where nothing is known of two populations with person keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnrelatedPolicy {
    /// The job is refused.
    #[default]
    Refuse,
    /// The release says so.
    Mark,
}

impl UnrelatedPolicy {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Mark => "mark",
        }
    }
}

/// By what it is known how two tables stand to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The content of the whole table.
    Content,
    /// The person keys of this key system.
    Keys(String),
    /// This statement.
    Statement(Uuid),
}

/// What a release claims of its people.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeopleClaim {
    /// Every release of the tenant was judged together with this one, or is about other persons.
    Enforced,
    /// As [`PeopleClaim::Enforced`] within the population; of others it is unknown whether they share persons.
    WithinPopulation,
    /// Persons are not identified. Every release of this very table was judged.
    SameDatasetOnly,
    /// Nothing.
    Unproven,
}

/// A job that the ledger admits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admission {
    /// The coverages of the same rows: their releases stand together with the new one.
    pub same: Vec<CoverageId>,
    /// What the others are known by.
    pub basis: BTreeSet<Basis>,
    /// The populations of which it is unknown whether they share persons.
    pub unrelated: BTreeSet<String>,
    /// What the release claims.
    pub claim: PeopleClaim,
    /// The chain that the job continues; none of the first release that republishes a population.
    pub chain: Option<CoverageId>,
}

impl Admission {
    /// Of a job that is published without proof: it joins coverages of an equal table.
    #[must_use]
    pub fn unproven(evidence: &Evidence, live: &[LiveCoverage]) -> Self {
        let equal = live.iter().filter(|coverage| has_equal_table(evidence, coverage));
        Self {
            same: equal.map(|coverage| coverage.id).collect(),
            basis: BTreeSet::new(),
            unrelated: BTreeSet::new(),
            claim: PeopleClaim::Unproven,
            chain: None,
        }
    }
}

/// A job that the ledger refuses, with the coverages that are in its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeopleRefusal {
    /// Evidence shows common people where a statement denies them.
    StatementContradicted {
        /// The first of the statements.
        statement: Uuid,
        /// The coverages that it is about.
        coverages: Vec<CoverageId>,
    },
    /// It is unknown whether these people are those of other populations or tables.
    PopulationUndeclared {
        /// Those tables.
        coverages: Vec<CoverageId>,
    },
    /// Tables of the same population have no person key in common.
    PeopleUnknown {
        /// Those tables; none where the dataset itself has no keys and needs them.
        coverages: Vec<CoverageId>,
    },
    /// Persons were published before, in another set of rows.
    OverlappingPeople {
        /// The coverages that have them.
        coverages: Vec<CoverageId>,
        /// The key system that shows most of them.
        system: Option<String>,
        /// The published attributes of which values differ, where the persons are the same.
        changed: BTreeSet<String>,
    },
    /// Keys or a statement say other people, the cells say the same.
    PeopleAlike {
        /// The tables with these cells.
        coverages: Vec<CoverageId>,
        /// By which test.
        by: Resemblance,
        /// The statement that says otherwise; none if the keys do.
        statement: Option<Uuid>,
    },
    /// All persons were published before.
    EverybodyPublished,
    /// A job republishes persons who were published without it.
    PublishedWithoutChain {
        /// The coverages of the same rows.
        coverages: Vec<CoverageId>,
    },
}

/// How the rows of a job stand to one coverage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Relation {
    /// The same people and values.
    Same(BTreeSet<Basis>),
    /// Common people, and not the same in all; with the attributes whose values differ.
    Overlap(BTreeSet<String>),
    /// Common people, which this statement denies.
    Contradicted(Uuid),
    /// Other people.
    Different(BTreeSet<Basis>),
    /// Other people by keys or by this statement, with the same cells.
    Alike(Resemblance, Option<Uuid>),
    /// Two populations of which nothing is known, where that is only marked.
    Unrelated,
    /// Nothing is known.
    Unknown,
}

/// How rows stand to a coverage.
#[must_use]
pub fn relate(
    rows: &JudgedRows<'_>,
    live: &LiveCoverage,
    statements: &[SeparationStatement],
    policy: UnrelatedPolicy,
) -> Relation {
    let (own, theirs) = (rows.places(), live.coverage.places());
    let disjoint = find(statements, Separation::Disjoint, &own, &theirs).map(|statement| statement.id);
    let shared: Vec<&String> =
        rows.evidence.systems.keys().filter(|name| live.coverage.systems.contains_key(*name)).collect();
    let by_keys = || shared.iter().map(|name| Basis::Keys((*name).clone())).collect::<BTreeSet<Basis>>();
    let meets = shared.iter().any(|name| common(live, name) > 0);
    let is_equal = has_equal_table(rows.evidence, live);
    if meets || is_equal {
        if let Some(statement) = disjoint {
            return Relation::Contradicted(statement);
        }
        // the column marks of a chain are those of its first rows
        if live.coverage.chain.is_some() {
            return Relation::Overlap(BTreeSet::new());
        }
        // of several tables it is not known which one a column was published of, unless its mark says so
        let is_only_table = is_equal && live.coverage.tables.len() == 1;
        let published = || rows.publishes.intersection(&live.published).cloned().collect();
        let changed = match changed_attributes(rows, live, &shared) {
            None if is_equal => Some(published()),
            changed => changed,
        };
        let is_same = is_only_table || changed.as_ref().is_some_and(BTreeSet::is_empty);
        return match is_same {
            true if shared.is_empty() => Relation::Same(BTreeSet::from([Basis::Content])),
            true => Relation::Same(by_keys()),
            false => Relation::Overlap(changed.unwrap_or_default()),
        };
    }
    if !shared.is_empty() || disjoint.is_some() {
        let mut basis = if shared.is_empty() { BTreeSet::new() } else { by_keys() };
        let by_statement = disjoint.filter(|_| shared.is_empty());
        basis.extend(by_statement.map(Basis::Statement));
        if let Some(by) = live.resemblance {
            let tables = |places: BTreeSet<Place>| {
                places.into_iter().filter(|place| matches!(place, Place::Dataset(_))).collect::<BTreeSet<_>>()
            };
            match find(statements, Separation::Others, &tables(own), &tables(theirs)) {
                Some(others) => basis.insert(Basis::Statement(others.id)),
                None => return Relation::Alike(by, by_statement),
            };
        }
        return Relation::Different(basis);
    }
    if policy == UnrelatedPolicy::Mark && are_other_populations(rows, live) {
        return live.resemblance.map_or(Relation::Unrelated, |by| Relation::Alike(by, None));
    }
    Relation::Unknown
}

fn common(live: &LiveCoverage, system: &str) -> u64 {
    live.common.get(system).copied().unwrap_or(0)
}

fn has_equal_table(evidence: &Evidence, live: &LiveCoverage) -> bool {
    evidence.table.is_some_and(|table| live.coverage.tables.contains(&table))
}

/// Both have person keys, and stand in different populations.
fn are_other_populations(rows: &JudgedRows<'_>, live: &LiveCoverage) -> bool {
    let is_other = rows
        .population
        .is_some_and(|own| !live.coverage.populations.is_empty() && !live.coverage.populations.contains(own));
    is_other && !rows.evidence.systems.is_empty() && !live.coverage.systems.is_empty()
}

/// The attributes that are published of both and do not have the same values of the same persons; `None` if the persons
/// differ, or if it is not known which rows of a person go together.
fn changed_attributes(rows: &JudgedRows<'_>, live: &LiveCoverage, shared: &[&String]) -> Option<BTreeSet<String>> {
    let systems: Vec<(&SystemEvidence, &SystemEvidence)> =
        shared.iter().map(|name| (&rows.evidence.systems[*name], &live.coverage.systems[*name])).collect();
    let is_same = |name: &str, own: &SystemEvidence, theirs: &SystemEvidence| {
        own.persons == theirs.persons && own.persons == common(live, name)
    };
    let persons_agree = shared.iter().zip(&systems).all(|(name, (own, theirs))| is_same(name, own, theirs));
    let have_marks = systems.iter().all(|(own, theirs)| !own.columns.is_empty() && !theirs.columns.is_empty());
    if shared.is_empty() || !persons_agree || !have_marks {
        return None;
    }
    let agree = |column: &String| {
        systems
            .iter()
            .all(|(own, theirs)| own.columns.get(column).is_some_and(|mark| theirs.columns.get(column) == Some(mark)))
    };
    Some(rows.publishes.intersection(&live.published).filter(|column| !agree(column)).cloned().collect())
}

/// What stands in the way of a job, by kind.
#[derive(Default)]
struct Obstacles {
    contradicted: Vec<CoverageId>,
    statement: Option<Uuid>,
    unknown: Vec<CoverageId>,
    is_own_population_unknown: bool,
    overlapping: Vec<CoverageId>,
    changed: BTreeSet<String>,
    alike: Vec<CoverageId>,
    resemblance: Option<(Resemblance, Option<Uuid>)>,
}

/// Judges a job beside all live coverages.
///
/// # Errors
/// The first refusal: of contradicted statements, of what is unknown, of common people, of tables that are alike, of
/// people who were published before they were republished.
pub fn judge(
    rows: &JudgedRows<'_>,
    live: &[LiveCoverage],
    statements: &[SeparationStatement],
    policy: UnrelatedPolicy,
) -> Result<Admission, PeopleRefusal> {
    let (mut same, mut basis, mut unrelated) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut obstacles = Obstacles::default();
    for coverage in live {
        match relate(rows, coverage, statements, policy) {
            Relation::Same(by) => {
                same.push(coverage.id);
                basis.extend(by);
            }
            Relation::Different(by) => basis.extend(by),
            Relation::Unrelated => unrelated.extend(coverage.coverage.populations.iter().cloned()),
            Relation::Contradicted(statement) => {
                obstacles.contradicted.push(coverage.id);
                obstacles.statement.get_or_insert(statement);
            }
            Relation::Unknown => {
                obstacles.unknown.push(coverage.id);
                obstacles.is_own_population_unknown |=
                    rows.population.is_some_and(|own| coverage.coverage.populations.contains(own));
            }
            Relation::Overlap(changed) => {
                obstacles.overlapping.push(coverage.id);
                obstacles.changed.extend(changed);
            }
            Relation::Alike(by, statement) => {
                obstacles.alike.push(coverage.id);
                obstacles.resemblance.get_or_insert((by, statement));
            }
        }
    }
    let chain = continued_chain(rows, live, &obstacles).filter(|_| same.is_empty());
    if chain.is_some() {
        obstacles.overlapping.clear();
        basis.extend(rows.evidence.systems.keys().cloned().map(Basis::Keys));
    }
    if let Some(refusal) = obstacles.refusal(rows, live) {
        return Err(refusal);
    }
    if rows.is_republication && !same.is_empty() {
        return Err(PeopleRefusal::PublishedWithoutChain { coverages: same });
    }
    let claim = match (rows.evidence.systems.is_empty(), unrelated.is_empty()) {
        (true, _) => PeopleClaim::SameDatasetOnly,
        (false, false) => PeopleClaim::WithinPopulation,
        (false, true) => PeopleClaim::Enforced,
    };
    Ok(Admission { same, basis, unrelated, claim, chain })
}

/// The chain of the dataset's own population, if none of its persons stands in another coverage. While a release of it
/// is held, its persons stand in a coverage of their own, apart from that of the others.
fn continued_chain(rows: &JudgedRows<'_>, live: &[LiveCoverage], obstacles: &Obstacles) -> Option<CoverageId> {
    let is_own = |coverage: &&LiveCoverage| {
        let chain = coverage.coverage.chain.as_deref();
        rows.is_republication && chain.is_some() && chain == rows.population
    };
    let own: BTreeSet<CoverageId> = live.iter().filter(is_own).map(|coverage| coverage.id).collect();
    let is_alone = obstacles.overlapping.iter().all(|id| own.contains(id));
    own.first().copied().filter(|_| is_alone)
}

impl Obstacles {
    fn refusal(self, rows: &JudgedRows<'_>, live: &[LiveCoverage]) -> Option<PeopleRefusal> {
        if let Some(statement) = self.statement {
            return Some(PeopleRefusal::StatementContradicted { statement, coverages: self.contradicted });
        }
        if !self.unknown.is_empty() {
            let coverages = self.unknown;
            return Some(if self.is_own_population_unknown {
                PeopleRefusal::PeopleUnknown { coverages }
            } else {
                PeopleRefusal::PopulationUndeclared { coverages }
            });
        }
        if !self.overlapping.is_empty() {
            let (coverages, changed) = (self.overlapping, self.changed);
            let met = |name: &String| {
                let of = live.iter().filter(|coverage| coverages.contains(&coverage.id));
                of.map(|coverage| common(coverage, name)).max().unwrap_or(0)
            };
            let mut system: Option<&String> = None;
            for name in rows.evidence.systems.keys() {
                if system.is_none_or(|best| met(name) > met(best)) {
                    system = Some(name);
                }
            }
            let system = system.cloned();
            return Some(PeopleRefusal::OverlappingPeople { coverages, system, changed });
        }
        let (by, statement) = self.resemblance?;
        Some(PeopleRefusal::PeopleAlike { coverages: self.alike, by, statement })
    }
}

//! What the ledger records and the manifest claims of the people of a release, held against the evidence of its rows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::facts::{PeopleFacts, SystemFacts};
use super::fault::{OtherCoverageError, PeopleClaimError};
use super::marks::{AuditedMark, AuditedSample, MarkKind};
use super::surprise::exceeds_fair_coins;
use crate::publication::CompositionMode;

/// The surprise of common blocks of two columns from which tables are alike, in 1/256 bit.
const ALIKE_SURPRISE: u64 = 160 * 256;

/// The bits of a signature that are zero where tables are found by it: of 81 twins, all have another bit for one key in 10^10.
const FINDING_BITS: u128 = 3;

/// Persons that are compared at once.
const PERSONS_AT_ONCE: usize = 1000;

/// What is known of persons by one key system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KnownSystem {
    /// How many there are.
    pub persons: u64,
    /// Per column the mark of what whom has.
    pub columns: BTreeMap<String, u128>,
}

/// The coverage of a release, as the ledger records it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedRows {
    /// `population:NAME` and `dataset:ID`.
    pub places: BTreeSet<String>,
    /// The marks of the tables.
    pub tables: BTreeSet<u128>,
    /// Per column the marks of what stands in which row.
    pub contents: BTreeMap<String, BTreeSet<u128>>,
    /// Per key system.
    pub systems: BTreeMap<String, KnownSystem>,
    /// Blocks, all of pair 0, and signatures.
    pub marks: BTreeSet<AuditedMark>,
    /// For each sample of signatures, whether the table has more.
    pub cuts: Vec<bool>,
    /// The columns of its release.
    pub published: BTreeSet<String>,
    /// The population that it republishes, if it is of a chain.
    pub chain: Option<String>,
    /// The coverage of the chain, if persons of that one are not listed again.
    pub continued: Option<ContinuedRows>,
}

/// A coverage that another one continues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContinuedRows {
    /// Its number.
    pub id: i64,
    /// Per key system how many persons of the release it has.
    pub common: BTreeMap<String, u64>,
}

/// The persons of the coverage of a release, as the ledger records them.
pub trait RecordedPersons {
    /// Why they cannot be had, or are not those of the release.
    type Error: From<std::io::Error> + From<PeopleClaimError>;

    /// Those that are listed by a key system behind a hash, in order; none behind the last one.
    ///
    /// # Errors
    /// Those of the ledger.
    fn listed(&mut self, system: &str, after: Option<u128>) -> Result<Vec<u128>, Self::Error>;

    /// How many of these stand in the coverage that it continues.
    ///
    /// # Errors
    /// Those of the ledger.
    fn continued(&mut self, system: &str, persons: &[u128]) -> Result<u64, Self::Error>;
}

/// Another coverage, as it stands to the rows of a release.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OtherCoverage {
    /// Its number.
    pub id: i64,
    /// `population:NAME` and `dataset:ID`.
    pub places: BTreeSet<String>,
    /// The marks of its tables.
    pub tables: BTreeSet<u128>,
    /// Per key system.
    pub systems: BTreeMap<String, KnownSystem>,
    /// The columns that its releases published.
    pub published: BTreeSet<String>,
    /// Per key system how many persons of the release it has.
    pub common: BTreeMap<String, u64>,
    /// The blocks that both have.
    pub blocks: BTreeSet<u128>,
    /// Its samples of signatures.
    pub samples: Vec<AuditedSample>,
    /// The population that it republishes, if it is a chain.
    pub chain: Option<String>,
}

/// A statement about two places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedStatement {
    /// Its id.
    pub id: String,
    /// Whether it says that the places have no person in common, and not only that they are alike and of others.
    pub is_disjoint: bool,
    /// The places.
    pub of: [String; 2],
}

/// What a release says and does about its people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimedPeople {
    /// The claim of the manifest.
    pub mode: CompositionMode,
    /// The key systems of the manifest.
    pub key_systems: BTreeSet<String>,
    /// The statements of the manifest.
    pub statements: BTreeSet<String>,
    /// The populations of which the manifest says that nothing is known.
    pub unrelated: BTreeSet<String>,
    /// `population:NAME`, if there is one, and `dataset:ID`.
    pub places: BTreeSet<String>,
    /// The columns that it publishes.
    pub publishes: BTreeSet<String>,
    /// The coverages whose releases it was judged together with, or whose chain it continues.
    pub joined: BTreeSet<i64>,
    /// The population that it republishes.
    pub chain: Option<String>,
}

/// Checks the coverage of a release.
///
/// # Errors
/// The first difference, or what `persons` fails with.
pub fn audit_recorded<P: RecordedPersons>(
    facts: &mut PeopleFacts,
    names: &[String],
    claim: &ClaimedPeople,
    recorded: &RecordedRows,
    persons: &mut P,
) -> Result<(), P::Error> {
    if recorded.places != claim.places {
        return Err(PeopleClaimError::Names.into());
    }
    if recorded.chain != claim.chain {
        return Err(PeopleClaimError::Chain.into());
    }
    if recorded.continued.as_ref().is_some_and(|of| claim.chain.is_none() || !claim.joined.contains(&of.id)) {
        return Err(PeopleClaimError::Chain.into());
    }
    recorded.check_marks(facts, names, claim)?;
    facts.systems.iter_mut().try_for_each(|system| check_persons(system, recorded.continued.as_ref(), persons))
}

/// Checks that exactly the persons of a release are recorded: each is listed, or stands in the coverage that is continued,
/// and no other one is listed.
fn check_persons<P: RecordedPersons>(
    system: &mut SystemFacts,
    continued: Option<&ContinuedRows>,
    recorded: &mut P,
) -> Result<(), P::Error> {
    let SystemFacts { name, persons: derived, .. } = system;
    let fault = || P::Error::from(PeopleClaimError::Persons(name.clone()));
    let (mut page, mut last, mut is_ended) = (VecDeque::new(), None, false);
    let (mut listed, mut twice) = (0, 0);
    derived.batches(PERSONS_AT_ONCE, |some| {
        for person in some {
            if page.is_empty() && !is_ended {
                page.extend(recorded.listed(name, last)?);
                is_ended = page.is_empty();
                listed += page.len() as u64;
                twice += if continued.is_some() { recorded.continued(name, page.make_contiguous())? } else { 0 };
            }
            match page.front() {
                Some(next) if next < person => return Err(fault()),
                Some(next) if next == person => last = page.pop_front(),
                _ => {}
            }
        }
        Ok(())
    })?;
    if !page.is_empty() || !is_ended && !recorded.listed(name, last)?.is_empty() {
        return Err(fault());
    }
    let in_continued = continued.map_or(0, |of| of.common.get(name).copied().unwrap_or(0));
    if listed + in_continued == derived.len() + twice { Ok(()) } else { Err(fault()) }
}

impl RecordedRows {
    fn check_marks(
        &self,
        facts: &PeopleFacts,
        names: &[String],
        claim: &ClaimedPeople,
    ) -> Result<(), PeopleClaimError> {
        let differs = |what: String| Err(PeopleClaimError::Mark(what));
        if self.tables != BTreeSet::from([facts.table]) {
            return differs("mark of its table".to_owned());
        }
        let of_names = |marks: &[u128]| names.iter().cloned().zip(marks.iter().copied()).collect::<BTreeMap<_, _>>();
        let contents = of_names(&facts.contents).into_iter().map(|(name, mark)| (name, BTreeSet::from([mark])));
        if self.contents != contents.collect() {
            return differs("mark of the contents of a column".to_owned());
        }
        let system = |of: &SystemFacts| {
            let columns = of.columns.as_deref().map(of_names).unwrap_or_default();
            (of.name.clone(), KnownSystem { persons: of.persons.len(), columns })
        };
        if self.systems != facts.systems.iter().map(system).collect() {
            return differs("number of persons or mark of a column".to_owned());
        }
        if self.published != claim.publishes {
            return differs("list of published columns".to_owned());
        }
        let paired = |mark: &AuditedMark| match mark.kind {
            MarkKind::Block(_) => AuditedMark { kind: MarkKind::Block(0), ..*mark },
            MarkKind::Signature(_) => *mark,
        };
        let derived: BTreeSet<AuditedMark> = facts.marks.iter().map(paired).collect();
        if self.marks != derived || self.cuts != facts.cuts {
            return differs("mark of blocks or signatures".to_owned());
        }
        Ok(())
    }
}

/// Checks the claim of a manifest against the other coverages of the tenant and its statements. They are those that came
/// first: later ones were judged with this one.
///
/// # Errors
/// The first fault.
pub fn audit_claim(
    facts: &PeopleFacts,
    names: &[String],
    claim: &ClaimedPeople,
    others: &[OtherCoverage],
    statements: &[RecordedStatement],
) -> Result<(), PeopleClaimError> {
    let samples = OwnSamples::new(facts);
    let rows = ClaimedRows { facts, samples: &samples, names, claim, statements };
    for id in &claim.statements {
        let is_about = |of: &&RecordedStatement| of.id == *id && others.iter().any(|other| rows.links(of, other));
        if !statements.iter().any(|of| is_about(&of)) {
            return Err(PeopleClaimError::Statement(id.clone()));
        }
    }
    let systems: BTreeSet<String> = facts.systems.iter().map(|of| of.name.clone()).collect();
    if systems != claim.key_systems {
        return Err(PeopleClaimError::Claim("other key systems"));
    }
    if claim.mode == CompositionMode::Unproven {
        let wrong =
            others.iter().find(|other| claim.joined.contains(&other.id) && !other.tables.contains(&facts.table));
        return wrong
            .map_or(Ok(()), |other| Err(PeopleClaimError::Other { id: other.id, how: OtherCoverageError::NotSame }));
    }
    for other in others {
        rows.stands_with(other).map_err(|how| PeopleClaimError::Other { id: other.id, how })?;
    }
    match claim.mode {
        CompositionMode::SameDatasetOnly => Ok(()),
        CompositionMode::Enforced if !systems.is_empty() && claim.unrelated.is_empty() => Ok(()),
        CompositionMode::WithinPopulation if !systems.is_empty() => Ok(()),
        CompositionMode::Enforced => Err(PeopleClaimError::Claim("that the composition is enforced")),
        _ => Err(PeopleClaimError::Claim("a mode of composition")),
    }
}

/// The rows of a release with what it claims of them.
#[derive(Clone, Copy)]
struct ClaimedRows<'a> {
    facts: &'a PeopleFacts,
    samples: &'a OwnSamples,
    names: &'a [String],
    claim: &'a ClaimedPeople,
    statements: &'a [RecordedStatement],
}

/// The marks of rows by which tables are found that may be alike: blocks of columns that say enough together, and of the
/// signatures of single rows those whose hashes end in two zero bits.
#[must_use]
pub fn decisive_marks(facts: &PeopleFacts) -> BTreeSet<u128> {
    let (mut surprise, mut singles): (BTreeMap<u16, u64>, BTreeMap<u16, u64>) = (BTreeMap::new(), BTreeMap::new());
    for mark in &facts.marks {
        match mark.kind {
            MarkKind::Block(pair) => *surprise.entry(pair).or_default() += mark.weight,
            MarkKind::Signature(sample) => *singles.entry(sample).or_default() += u64::from(mark.weight == 1),
        }
    }
    let is_decisive = |mark: &&AuditedMark| match mark.kind {
        MarkKind::Block(pair) => surprise[&pair] >= ALIKE_SURPRISE,
        MarkKind::Signature(sample) => {
            let singles = singles[&sample];
            mark.weight == 1 && mark.hash & FINDING_BITS == 0 && exceeds_fair_coins(singles, singles)
        }
    };
    facts.marks.iter().filter(is_decisive).map(|mark| mark.hash).collect()
}

impl ClaimedRows<'_> {
    /// Whether a statement is about these rows and another coverage.
    fn links(&self, statement: &RecordedStatement, other: &OtherCoverage) -> bool {
        let [a, b] = &statement.of;
        let own = &self.claim.places;
        (own.contains(a) && other.places.contains(b)) || (own.contains(b) && other.places.contains(a))
    }

    fn stands_with(&self, other: &OtherCoverage) -> Result<(), OtherCoverageError> {
        let disjoint: Vec<&RecordedStatement> =
            self.statements.iter().filter(|of| of.is_disjoint && self.links(of, other)).collect();
        let is_joined = self.claim.joined.contains(&other.id);
        let is_equal = other.tables.contains(&self.facts.table);
        let shared: Vec<&SystemFacts> =
            self.facts.systems.iter().filter(|of| other.systems.contains_key(&of.name)).collect();
        let meets = is_equal || shared.iter().any(|of| self.common(other, of) > 0);
        let is_own_chain = other.chain.is_some() && other.chain == self.claim.chain;
        if is_own_chain && !is_joined {
            return Err(OtherCoverageError::NotJoined);
        }
        if meets && (other.chain.is_some() || self.claim.chain.is_some()) {
            // who is in a chain is in no other coverage
            return match (disjoint.is_empty(), is_own_chain) {
                (false, _) => Err(OtherCoverageError::Contradicted),
                (true, false) => Err(OtherCoverageError::Overlap),
                (true, true) => Ok(()),
            };
        }
        if meets {
            let both = self.claim.publishes.intersection(&other.published).count();
            let is_only_table = is_equal && (other.tables.len() == 1 || both == 0);
            return match (is_only_table || self.agrees(other, &shared), is_joined) {
                _ if !disjoint.is_empty() => Err(OtherCoverageError::Contradicted),
                (false, _) => Err(OtherCoverageError::Overlap),
                (true, false) => Err(OtherCoverageError::NotJoined),
                (true, true) => Ok(()),
            };
        }
        if is_joined && !is_own_chain {
            return Err(OtherCoverageError::NotSame);
        }
        let is_named = |of: &&&RecordedStatement| self.claim.statements.contains(&of.id);
        if shared.is_empty() {
            match (disjoint.is_empty(), disjoint.iter().any(|of| is_named(&of))) {
                (false, true) => {}
                (false, false) => return Err(OtherCoverageError::Unnamed),
                (true, _) if self.is_marked_unrelated(other) => {}
                (true, _) => return Err(OtherCoverageError::Unknown),
            }
        }
        if !self.is_alike(other) {
            return Ok(());
        }
        // only what names both tables says that they are of others
        let is_table = |place: &String| place.starts_with("dataset:");
        let mut of_others =
            self.statements.iter().filter(|of| !of.is_disjoint && of.of.iter().all(is_table) && self.links(of, other));
        if of_others.any(|of| is_named(&&of)) { Ok(()) } else { Err(OtherCoverageError::Alike) }
    }

    fn common(&self, other: &OtherCoverage, of: &SystemFacts) -> u64 {
        other.common.get(&of.name).copied().unwrap_or(0)
    }

    /// Whether both have the same persons, and these have the same cells in each column that is published of both.
    fn agrees(&self, other: &OtherCoverage, shared: &[&SystemFacts]) -> bool {
        !shared.is_empty()
            && shared.iter().all(|of| {
                let theirs = &other.systems[&of.name];
                let Some(marks) = &of.columns else { return false };
                let both = self.claim.publishes.intersection(&other.published);
                let own = |column: &String| self.names.iter().position(|name| name == column).map(|at| marks[at]);
                of.persons.len() == theirs.persons
                    && self.common(other, of) == theirs.persons
                    && !theirs.columns.is_empty()
                    && both
                        .into_iter()
                        .all(|column| own(column).is_some_and(|own| theirs.columns.get(column) == Some(&own)))
            })
    }

    /// Whether both have keys and are of other populations, of which the manifest says that nothing is known.
    fn is_marked_unrelated(&self, other: &OtherCoverage) -> bool {
        let populations = |places: &BTreeSet<String>| {
            places.iter().filter_map(|place| place.strip_prefix("population:")).map(str::to_owned).collect()
        };
        let (own, theirs): (BTreeSet<String>, BTreeSet<String>) =
            (populations(&self.claim.places), populations(&other.places));
        let have_keys = !self.facts.systems.is_empty() && !other.systems.is_empty();
        let are_apart = !own.is_empty() && !theirs.is_empty() && own.is_disjoint(&theirs);
        have_keys && are_apart && theirs.is_subset(&self.claim.unrelated)
    }

    fn is_alike(&self, other: &OtherCoverage) -> bool {
        let mut surprise: BTreeMap<u16, u64> = BTreeMap::new();
        for mark in self.facts.marks.iter().filter(|mark| other.blocks.contains(&mark.hash)) {
            if let MarkKind::Block(pair) = mark.kind {
                *surprise.entry(pair).or_default() += mark.weight;
            }
        }
        surprise.values().any(|of_pair| *of_pair >= ALIKE_SURPRISE)
            || other.samples.iter().any(|theirs| self.samples.have_twins_in(theirs))
    }
}

/// The samples of the rows, and which of them have each signature of one row.
struct OwnSamples {
    samples: Vec<AuditedSample>,
    singles: BTreeMap<u128, Vec<usize>>,
}

impl OwnSamples {
    fn new(facts: &PeopleFacts) -> Self {
        let sample = |&is_cut: &bool| AuditedSample { is_cut, ..AuditedSample::default() };
        let mut own = Self { samples: facts.cuts.iter().map(sample).collect(), singles: BTreeMap::new() };
        for AuditedMark { hash, kind, weight } in &facts.marks {
            let MarkKind::Signature(sample) = kind else { continue };
            let sample = usize::from(*sample);
            own.samples[sample].rows.push((*hash, *weight));
            if *weight == 1 {
                own.singles.entry(*hash).or_default().push(sample);
            }
        }
        own.samples.iter_mut().for_each(|sample| sample.rows.sort_unstable());
        own
    }

    /// Whether one of the samples has twins in another table's. Those with fewer common signatures of one row than coins show
    /// anything have none.
    fn have_twins_in(&self, theirs: &AuditedSample) -> bool {
        let mut common = vec![0; self.samples.len()];
        for (signature, _) in theirs.rows.iter().filter(|(_, rows)| *rows == 1) {
            self.singles.get(signature).into_iter().flatten().for_each(|sample| common[*sample] += 1);
        }
        let mut near = self.samples.iter().zip(common).filter(|(_, common)| exceeds_fair_coins(*common, *common));
        near.any(|(own, _)| have_twins(own, theirs))
    }
}

/// Whether signatures that two rows of both tables have stand in both tables more often than by chance.
fn have_twins(own: &AuditedSample, theirs: &AuditedSample) -> bool {
    let end = |of: &AuditedSample| if of.is_cut { of.rows.last().map(|(last, _)| *last) } else { None };
    let end = end(own).unwrap_or(u128::MAX).min(end(theirs).unwrap_or(u128::MAX));
    let mut rows: BTreeMap<u128, (u64, u64)> = BTreeMap::new();
    for &(signature, of) in own.rows.iter().filter(|(signature, _)| *signature <= end) {
        rows.entry(signature).or_default().0 = of;
    }
    for &(signature, of) in theirs.rows.iter().filter(|(signature, _)| *signature <= end) {
        rows.entry(signature).or_default().1 = of;
    }
    let twins: Vec<(u64, u64)> = rows.into_values().filter(|(own, theirs)| own + theirs == 2).collect();
    let cross = twins.iter().filter(|twin| **twin == (1, 1)).count() as u64;
    cross * 2 > twins.len() as u64 && exceeds_fair_coins(cross, twins.len() as u64)
}

//! The composition check of a job: earlier disclosures about the data subjects of its dataset.
//!
//! - **Series.** Where more than one in a hundred of its people stand in a dataset of another series that came before, the job is
//!   refused until the dataset is uploaded into that series, or with `same_people=false`.
//! - **Contents.** Of the datasets of its series of which something was published, one of the same people with the same values is the
//!   same content, also when one of them has more columns; one without a common record key is no matter of this job; of any other
//!   nothing could be proved, and the job is refused.
//! - **Attributes.** A column that says the same of everyone as another one is that one, whatever it is called. Where the ledger names
//!   an attribute that the dataset has not, a column that never occurred together with it may be it under a new name: the job is refused
//!   until a statement declares it an alias, or new (`POST /v1/series/{name}/disclosures`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use uuid::Uuid;

use crate::fingerprints::{FingerprintedDataset, RecordOverlap, record_overlap};
use crate::ledger::{ActiveRule, AttributeIdentities, Disclosure, EarlierDisclosures};
use crate::microdata::ColumnProfile;
use crate::microdata::formats::IngestLimits;
use crate::ports::{
    ActiveRuleRecord, DatasetRecord, DisclosureRecord, KeyedHash, RecordIdentity, SeriesRecord, Statement, Store,
    StoreError, SubjectFingerprint, SubjectOverlap,
};
use crate::problem::{Kind, Problem};
use crate::publication::CompositionVerdict;
use crate::spec::Specification;
use crate::vault::{ContentHasher, Vault};

/// The ledger as far as it concerns the data subjects of a dataset.
pub(crate) struct CompositionContext {
    /// Disclosures about them.
    pub(crate) earlier: EarlierDisclosures,
    /// The version of the series that it was read from.
    pub(crate) version: i64,
    /// Why no job is accepted, whatever it publishes.
    pub(crate) clash: Option<CompositionConflict>,
}

/// Why nothing can be published of a dataset.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum CompositionConflict {
    /// Other series speak of the same people.
    Undeclared(Vec<SubjectOverlap>),
    /// Something was published of some of them.
    Overlapping(RecordOverlap),
    /// Not decidable: the detail, and the attributes concerned.
    Undecidable(String, Vec<String>),
}

impl CompositionConflict {
    /// What a plan calls it.
    pub(crate) const fn verdict(&self) -> CompositionVerdict {
        match self {
            Self::Overlapping(_) => CompositionVerdict::Overlapping,
            Self::Undeclared(_) | Self::Undecidable(..) => CompositionVerdict::Undecidable,
        }
    }

    /// The counts that a plan shows.
    pub(crate) fn counts(&self) -> Option<serde_json::Value> {
        match self {
            Self::Overlapping(RecordOverlap { common, added, removed }) => {
                Some(serde_json::json!({"common": common, "added": added, "removed": removed}))
            }
            Self::Undeclared(_) | Self::Undecidable(..) => None,
        }
    }

    /// What a job is refused with.
    pub(crate) fn problem(&self) -> Problem {
        match self {
            Self::Undeclared(overlaps) => {
                let series: Vec<&str> = overlaps.iter().map(|overlap| overlap.series.as_str()).collect();
                let detail = format!(
                    "people of the dataset stand in the series {} too; upload it into that series, or with same_people=false and the \
                     reason why they are others",
                    series.join(", ")
                );
                Problem::new(Kind::SeriesUndeclared, detail).with("series", series)
            }
            Self::Overlapping(RecordOverlap { common, added, removed }) => {
                let detail = format!(
                    "{common} records stand in a dataset of the series of which something was published; {added} were added since, and \
                     {removed} removed. Tables of both would tell the difference"
                );
                let mut remedies =
                    vec!["upload these records as a new series where they are other people, with same_people=false"];
                if *added > 0 {
                    remedies.insert(
                        0,
                        "upload the added records as a dataset of their own into the same series, and publish that",
                    );
                }
                Problem::new(Kind::OverlappingRowSets, detail)
                    .with("common", *common)
                    .with("added", *added)
                    .with("removed", *removed)
                    .with("remedies", remedies)
            }
            Self::Undecidable(detail, attributes) => {
                let problem = Problem::new(Kind::CompositionUndecidable, detail.clone());
                if attributes.is_empty() { problem } else { problem.with("attributes", attributes.clone()) }
            }
        }
    }
}

/// How an earlier content stands to a dataset.
enum DatasetRelation {
    /// The same data subjects and values, with other names of columns.
    Same(Vec<(String, String)>),
    /// Other people.
    Disjoint,
    /// Neither.
    Clash(CompositionConflict),
}

/// The dataset of a job.
pub(crate) struct CompositionCheck<'a> {
    /// Where all is kept.
    pub(crate) store: &'a dyn Store,
    /// What hashes names.
    pub(crate) vault: &'a Vault,
    /// The dataset.
    pub(crate) dataset: &'a DatasetRecord,
    /// The names of its columns.
    pub(crate) columns: &'a [String],
    /// Those that the job uses.
    pub(crate) used: &'a [String],
}

impl CompositionCheck<'_> {
    /// Reads what stands in the ledger of the dataset's series, and what of it is of the same people.
    ///
    /// # Errors
    /// The store's; [`StoreError::Corrupt`] when an entry cannot be read: a ledger that is not understood is not an empty one.
    pub(crate) async fn context(&self, series: &SeriesRecord) -> Result<CompositionContext, StoreError> {
        let mut earlier = EarlierDisclosures::default();
        for record in &series.statements {
            Statement::read(record)?.enter(&mut earlier);
        }
        let (clash, seen) = match self.undeclared() {
            None => self.contents(series, &mut earlier).await?,
            some => (some, BTreeSet::new()),
        };
        let clash = clash.or_else(|| self.unnamed(&earlier, &seen));
        Ok(CompositionContext { earlier, version: series.version, clash })
    }

    fn undeclared(&self) -> Option<CompositionConflict> {
        if self.dataset.same_people == Some(false) {
            return None;
        }
        let decide: Vec<SubjectOverlap> =
            self.dataset.overlaps.iter().filter(|overlap| overlap.decides).cloned().collect();
        (!decide.is_empty()).then_some(CompositionConflict::Undeclared(decide))
    }

    /// Collects the disclosures about the same data subjects, and the columns that occurred together with them.
    async fn contents(
        &self,
        series: &SeriesRecord,
        earlier: &mut EarlierDisclosures,
    ) -> Result<(Option<CompositionConflict>, BTreeSet<KeyedHash>), StoreError> {
        let of_entries = series.entries.iter().map(|entry| entry.content_hash);
        let contents: BTreeSet<[u8; 32]> = of_entries.chain(series.rules.iter().map(|(content, _)| *content)).collect();
        let mut same = BTreeSet::new();
        let (mut clash, mut seen) = (None, BTreeSet::new());
        if !contents.is_empty() {
            let template = self.vault.content_hasher(&self.dataset.tenant);
            let (_, people) = self.store.people(&self.dataset.tenant, Some(&self.dataset.series)).await?;
            let known = people.iter().filter_map(|record| Some((record, record.people.as_ref()?)));
            let own = known.clone().find(|known| known.0.dataset == self.dataset.id);
            // of each content the dataset that was there first
            let mut of: HashMap<[u8; 32], FingerprintedDataset<'_>> = HashMap::new();
            for known in known {
                of.entry(known.0.content_hash).or_insert(known);
            }
            let in_common = match own {
                Some(own) => {
                    self.in_common(own, contents.iter().filter_map(|content| of.get(content).copied())).await?
                }
                None => HashMap::new(),
            };
            let names = named(series)?;
            let mut marks = ColumnFingerprints::new(&template, &earlier.identities, self.columns, &names);
            for content in &contents {
                let theirs = of.get(content).copied();
                let relation = match (own, theirs) {
                    (own, _) if *content == self.dataset.content_hash => {
                        let renamed = own.map_or_else(Vec::new, |(_, people)| marks.renamed(people, people));
                        DatasetRelation::Same(renamed.into_iter().filter_map(|pair| marks.in_words(pair)).collect())
                    }
                    (Some((_, own)), Some((record, theirs))) => {
                        seen.extend(theirs.columns.iter().map(|(name, _)| marks.canonical(*name)));
                        relation(&marks, own, theirs, in_common.get(&record.dataset).copied())
                    }
                    _ => DatasetRelation::Clash(undecidable_conflict(
                        "a dataset of the series of which something was published has left nothing that its people could be known by",
                    )),
                };
                match relation {
                    DatasetRelation::Disjoint => {}
                    DatasetRelation::Same(aliases) => {
                        same.insert(*content);
                        for (name, of) in &aliases {
                            // a statement that says otherwise stays
                            let _ = earlier.identities.alias(name, of);
                        }
                        if !aliases.is_empty() {
                            marks = ColumnFingerprints::new(&template, &earlier.identities, self.columns, &names);
                        }
                    }
                    DatasetRelation::Clash(found) => clash = clash.or(Some(found)),
                }
            }
        }
        let entries = series.entries.iter().filter(|entry| same.contains(&entry.content_hash));
        let rules = series.rules.iter().filter(|(content, _)| same.contains(content));
        let published = earlier_of(entries.map(|entry| &entry.entry), rules.map(|(_, rule)| rule))?;
        earlier.disclosures.extend(published.disclosures);
        earlier.rules.extend(published.rules);
        Ok((clash, seen))
    }

    /// How many records each of the datasets that are known by what this one is known by has in common with it, by its id.
    async fn in_common<'p>(
        &self,
        (record, own): FingerprintedDataset<'p>,
        others: impl Iterator<Item = FingerprintedDataset<'p>>,
    ) -> Result<HashMap<Uuid, u64>, StoreError> {
        let (same, others): (Vec<_>, Vec<_>) =
            others.filter(|(_, of)| of.by == own.by).partition(|(_, of)| of.set == own.set);
        let common = record_overlap(self.store, &self.dataset.tenant, (record, own), &others).await?;
        let common = others.iter().zip(common).chain(same.iter().map(|same| (same, own.rows)));
        Ok(common.map(|((record, _), common)| (record.dataset, common)).collect())
    }

    /// The columns of the job that may be attributes of the ledger under new names.
    fn unnamed(&self, earlier: &EarlierDisclosures, seen: &BTreeSet<KeyedHash>) -> Option<CompositionConflict> {
        let identities = &earlier.identities;
        let named: BTreeSet<&str> = earlier.names().map(|name| identities.canonical(name)).collect();
        let here: BTreeSet<&str> = self.columns.iter().map(|name| identities.canonical(name)).collect();
        let missing: Vec<&str> = named.difference(&here).copied().collect();
        if missing.is_empty() {
            return None;
        }
        let template = self.vault.content_hasher(&self.dataset.tenant);
        let unknown = |name: &&String| {
            let canonical = identities.canonical(name);
            let is_seen = || seen.contains(&KeyedHash::of_name(&template, canonical));
            !named.contains(canonical) && !identities.knows(name) && !is_seen()
        };
        let unknown: Vec<String> = self.used.iter().filter(unknown).cloned().collect();
        (!unknown.is_empty()).then(|| {
            let detail = format!(
                "the ledger of the series names {}, which the dataset has not, and nothing is known of {}: state in the series for each of \
                 the latter whether it is an alias of one of the former, or of itself when it is new",
                missing.join(", "),
                unknown.join(", ")
            );
            CompositionConflict::Undecidable(detail, unknown)
        })
    }
}

/// The places of the columns, of all `columns`, that the ledger names and that are not `used`.
pub(crate) fn cross_release_columns(columns: &[String], used: &[String], earlier: &EarlierDisclosures) -> Vec<usize> {
    let identities = &earlier.identities;
    let named: BTreeSet<&str> = earlier.names().flat_map(|name| identities.roots(name)).collect();
    let wanted = |name: &String| !used.contains(name) && identities.roots(name).iter().any(|root| named.contains(root));
    columns.iter().enumerate().filter(|(_, name)| wanted(name)).map(|(at, _)| at).collect()
}

/// How the people of an earlier content stand to those of a dataset; `common` are the records of both, where they can be compared.
fn relation(
    marks: &ColumnFingerprints,
    own: &SubjectFingerprint,
    theirs: &SubjectFingerprint,
    common: Option<u64>,
) -> DatasetRelation {
    let Some(common) = common else {
        return DatasetRelation::Clash(undecidable_conflict(
            "of two datasets of the series one has a record key and the other has not: upload both with the same one",
        ));
    };
    let mine = marks.columns(own);
    let others = marks.columns(theirs);
    let by_keys = own.by == RecordIdentity::Keys;
    let key =
        |people: &SubjectFingerprint| people.key.iter().map(|name| marks.canonical(*name)).collect::<BTreeSet<_>>();
    if by_keys && key(own) != key(theirs) {
        return DatasetRelation::Clash(undecidable_conflict(
            "two datasets of the series have record keys of different columns: it is not known which records are of the same people",
        ));
    }
    let counts = RecordOverlap { common, added: own.rows - common, removed: theirs.rows - common };
    if by_keys && counts.common == 0 {
        return match own.folded == theirs.folded {
            true => DatasetRelation::Disjoint,
            false => DatasetRelation::Clash(undecidable_conflict(
                "a dataset of the series of which something was published is from before record keys were compared in one spelling, \
                 and none of its keys is written as one of these: it is not known whether they are of the same people",
            )),
        };
    }
    if counts.added == 0 && counts.removed == 0 {
        // what says the same of everyone is the same, and what has one name says the same
        let alike = |name: &KeyedHash| mine.get(name).zip(others.get(name)).is_none_or(|(a, b)| a == b);
        let renamed = marks.renamed(own, theirs);
        let all_known = by_keys || {
            let found: BTreeSet<KeyedHash> = renamed.iter().map(|(_, of)| *of).collect();
            others.keys().all(|name| mine.contains_key(name) || found.contains(name))
        };
        if mine.keys().all(alike) && all_known {
            return DatasetRelation::Same(renamed.into_iter().filter_map(|pair| marks.in_words(pair)).collect());
        }
        return DatasetRelation::Clash(CompositionConflict::Overlapping(counts));
    }
    if !by_keys && mine.keys().ne(others.keys()) {
        return DatasetRelation::Clash(undecidable_conflict(
            "two datasets of the series have different columns and no record key: it is not known which rows are of the same people; \
             upload them with record_key",
        ));
    }
    if !by_keys && counts.common == 0 {
        return DatasetRelation::Clash(undecidable_conflict(
            "no row of the dataset stands in an earlier one of the series, but without record keys it is not known whether they are of \
             the same people; upload both with record_key",
        ));
    }
    DatasetRelation::Clash(CompositionConflict::Overlapping(counts))
}

fn undecidable_conflict(detail: &str) -> CompositionConflict {
    CompositionConflict::Undecidable(detail.to_owned(), Vec::new())
}

/// The names that the ledger of a series has.
fn named(series: &SeriesRecord) -> Result<BTreeSet<String>, StoreError> {
    let published =
        earlier_of(series.entries.iter().map(|entry| &entry.entry), series.rules.iter().map(|(_, rule)| rule))?;
    Ok(published.names().map(str::to_owned).collect())
}

/// The names of columns in hashes.
struct ColumnFingerprints {
    /// What is known in words.
    words: HashMap<KeyedHash, String>,
    /// Of aliases, the attribute.
    canonical: HashMap<KeyedHash, KeyedHash>,
    /// Those that the ledger names.
    named: BTreeSet<KeyedHash>,
}

impl ColumnFingerprints {
    fn new(
        template: &ContentHasher,
        identities: &AttributeIdentities,
        columns: &[String],
        named: &BTreeSet<String>,
    ) -> Self {
        let mark = |name: &str| KeyedHash::of_name(template, name);
        let mut marks = Self { words: HashMap::new(), canonical: HashMap::new(), named: BTreeSet::new() };
        for name in columns.iter().chain(named).map(String::as_str).chain(identities.aliases()) {
            let canonical = identities.canonical(name);
            marks.words.insert(mark(name), name.to_owned());
            marks.words.insert(mark(canonical), canonical.to_owned());
            marks.canonical.insert(mark(name), mark(canonical));
        }
        marks.named = named.iter().map(|name| mark(identities.canonical(name))).collect();
        marks
    }

    fn canonical(&self, name: KeyedHash) -> KeyedHash {
        self.canonical.get(&name).copied().unwrap_or(name)
    }

    /// What stands in each attribute of whom.
    fn columns(&self, people: &SubjectFingerprint) -> BTreeMap<KeyedHash, KeyedHash> {
        people.columns.iter().map(|(name, holds)| (self.canonical(*name), *holds)).collect()
    }

    /// Columns of a dataset that say of everyone what one of another name does in `theirs`, which has the same people.
    fn renamed(&self, own: &SubjectFingerprint, theirs: &SubjectFingerprint) -> Vec<(KeyedHash, KeyedHash)> {
        let mut by_content: HashMap<KeyedHash, Vec<KeyedHash>> = HashMap::new();
        for (name, holds) in &theirs.columns {
            by_content.entry(*holds).or_default().push(self.canonical(*name));
        }
        let mut renamed = Vec::new();
        for (name, holds) in &own.columns {
            let name = self.canonical(*name);
            let alike = by_content.get(holds).map_or(&[][..], Vec::as_slice);
            // what the ledger names first: it is what others are held against
            let other = alike.iter().filter(|other| **other != name).max_by_key(|other| self.named.contains(*other));
            if let Some(other) = other.filter(|other| !self.named.contains(&name) || self.named.contains(*other)) {
                renamed.push((name, *other));
            }
        }
        renamed
    }

    fn in_words(&self, (name, of): (KeyedHash, KeyedHash)) -> Option<(String, String)> {
        let word = |mark| self.words.get(&mark).cloned();
        Some((word(name)?, word(of)?))
    }
}

/// The places of columns that the ledger names and the specification does not use, but for those that cannot be loaded.
pub(crate) fn extra_columns(
    columns: &[String],
    profiles: &[ColumnProfile],
    specification: &Specification,
    earlier: &EarlierDisclosures,
    limits: &IngestLimits,
) -> Vec<usize> {
    let places = cross_release_columns(columns, &specification.names, earlier);
    places.into_iter().filter(|&at| !profiles[at].exceeds(limits)).collect()
}

/// What the ledger holds, understood.
///
/// # Errors
/// [`StoreError::Corrupt`] when an entry cannot be read: a ledger that is not understood is not an empty one.
pub(crate) fn earlier_of<'a>(
    entries: impl Iterator<Item = &'a DisclosureRecord>,
    rules: impl Iterator<Item = &'a ActiveRuleRecord>,
) -> Result<EarlierDisclosures, StoreError> {
    let mut earlier = EarlierDisclosures::default();
    for entry in entries {
        earlier.disclosures.push((entry.release, Disclosure::deserialize(&entry.body).map_err(StoreError::corrupt)?));
    }
    for rule in rules {
        earlier.rules.push((rule.release, ActiveRule::deserialize(&rule.body).map_err(StoreError::corrupt)?));
    }
    Ok(earlier)
}

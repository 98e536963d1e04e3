//! The composition check of a dataset without a population: by its series.
//!
//! - **Series.** Where more than one in a hundred of its data subjects stand in a dataset of another series that came before, the job is
//!   refused until the dataset is uploaded into that series, or with `same_people=false`.
//! - **Contents.** Of the datasets of its series of which something was published, one of the same data subjects with the same values is the
//!   same content, also when one of them has more columns; one without a common record key is no matter of this job; of any other
//!   nothing could be proved, and the job is refused.
//! - **Attributes.** A column that says the same of everyone as another one is that one, whatever it is called. Where the ledger names
//!   an attribute that the dataset has not, a column that never occurred together with it may be it under a new name: the job is refused
//!   until a statement declares it an alias, or new (`POST /v1/series/{name}/disclosures`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use uuid::Uuid;

use super::composition::{CompositionConflict, earlier_of};
use super::context::JobContext;
use super::env::InputEnv;
use crate::fingerprints::{FingerprintedDataset, RecordOverlap, record_overlap};
use crate::ledger::{AttributeIdentities, EarlierDisclosures};
use crate::ports::{
    KeyedHash, RecordIdentity, SeriesRecord, Statement, StoreError, SubjectFingerprint, SubjectOverlap,
};
use crate::vault::ContentHasher;

/// What the series of a dataset holds about its data subjects.
pub(super) struct SeriesFindings {
    /// Disclosures about them.
    pub(super) earlier: EarlierDisclosures,
    /// The version of the series that it was read from.
    pub(super) version: i64,
    /// Why no job is accepted, whatever it publishes.
    pub(super) clash: Option<CompositionConflict>,
}

/// Another name of an attribute.
struct Alias {
    name: String,
    of: String,
}

/// How an earlier content stands to a dataset.
enum DatasetRelation {
    /// The same data subjects and values, with other names of columns.
    Same(Vec<Alias>),
    /// Other data subjects.
    Disjoint,
    /// Neither.
    Clash(CompositionConflict),
}

/// What the ledger holds about the data subjects of a dataset without a population.
///
/// # Errors
/// The store's; [`StoreError::Corrupt`] when an entry cannot be read: a ledger that is not understood is not an empty one.
pub(super) async fn series_findings(env: &InputEnv, job: &JobContext) -> Result<SeriesFindings, StoreError> {
    let series = env.store.series(&job.dataset.tenant, &job.dataset.series).await?;
    CompositionCheck { env, job, series: &series }.context().await
}

/// A job and the series of its dataset.
struct CompositionCheck<'a> {
    env: &'a InputEnv,
    job: &'a JobContext,
    series: &'a SeriesRecord,
}

/// What the contents of a series are to the dataset of a job.
#[derive(Default)]
struct ContentFindings {
    /// Contents with the same data subjects and values.
    same: BTreeSet<[u8; 32]>,
    /// Columns of the other contents.
    seen: BTreeSet<KeyedHash>,
    clash: Option<CompositionConflict>,
}

impl CompositionCheck<'_> {
    async fn context(&self) -> Result<SeriesFindings, StoreError> {
        let mut earlier = EarlierDisclosures::default();
        for record in &self.series.statements {
            Statement::read(record)?.enter(&mut earlier);
        }
        let found = match self.undeclared() {
            None => self.contents(&mut earlier).await?,
            clash => ContentFindings { clash, ..ContentFindings::default() },
        };
        self.add_disclosures(&found.same, &mut earlier)?;
        let clash = found.clash.or_else(|| self.unnamed(&earlier, &found.seen));
        Ok(SeriesFindings { earlier, version: self.series.version, clash })
    }

    fn undeclared(&self) -> Option<CompositionConflict> {
        if self.job.dataset.same_people == Some(false) {
            return None;
        }
        let decide: Vec<SubjectOverlap> =
            self.job.dataset.overlaps.iter().filter(|overlap| overlap.decides).cloned().collect();
        (!decide.is_empty()).then_some(CompositionConflict::Undeclared(decide))
    }

    /// Compares the dataset with the contents of its series; declares renamed columns in `earlier`.
    async fn contents(&self, earlier: &mut EarlierDisclosures) -> Result<ContentFindings, StoreError> {
        let of_entries = self.series.entries.iter().map(|entry| entry.content_hash);
        let contents: BTreeSet<[u8; 32]> =
            of_entries.chain(self.series.rules.iter().map(|(content, _)| *content)).collect();
        let mut findings = ContentFindings::default();
        if contents.is_empty() {
            return Ok(findings);
        }
        let dataset = &self.job.dataset;
        let (_, records) = self.env.store.fingerprints(&dataset.tenant, Some(&dataset.series)).await?;
        let mut own = None;
        // of each content the dataset that was there first
        let mut first: HashMap<[u8; 32], FingerprintedDataset<'_>> = HashMap::new();
        for known in records.iter().filter_map(FingerprintedDataset::from_record) {
            own = own.or(Some(known).filter(|known| known.record.dataset == dataset.id));
            first.entry(known.record.content_hash).or_insert(known);
        }
        let others = contents.iter().filter_map(|content| first.get(content).copied());
        let common = match own {
            Some(own) => self.common_records(own, others).await?,
            None => HashMap::new(),
        };
        let template = self.env.vault.content_hasher(&dataset.tenant);
        let names = named(self.series)?;
        let mut marks = ColumnFingerprints::new(&template, &earlier.identities, &self.job.columns, &names);
        for content in contents {
            let relation = match (own, first.get(&content)) {
                (own, _) if content == dataset.content_hash => DatasetRelation::Same(
                    own.map_or_else(Vec::new, |own| marks.aliases(own.fingerprint, own.fingerprint)),
                ),
                (Some(own), Some(theirs)) => {
                    findings.seen.extend(theirs.fingerprint.columns.iter().map(|(name, _)| marks.canonical(*name)));
                    relation(&marks, own.fingerprint, theirs.fingerprint, common.get(&theirs.record.dataset).copied())
                }
                _ => DatasetRelation::Clash(undecidable_conflict(
                    "a dataset of the series of which something was published has left nothing that its data subjects could be known by",
                )),
            };
            match relation {
                DatasetRelation::Disjoint => {}
                DatasetRelation::Same(aliases) => {
                    findings.same.insert(content);
                    for alias in &aliases {
                        // a statement that says otherwise stays
                        let _ = earlier.identities.alias(&alias.name, &alias.of);
                    }
                    if !aliases.is_empty() {
                        marks = ColumnFingerprints::new(&template, &earlier.identities, &self.job.columns, &names);
                    }
                }
                DatasetRelation::Clash(clash) => findings.clash = findings.clash.or(Some(clash)),
            }
        }
        Ok(findings)
    }

    /// Adds the disclosures and active rules of the contents that are the same.
    fn add_disclosures(&self, same: &BTreeSet<[u8; 32]>, earlier: &mut EarlierDisclosures) -> Result<(), StoreError> {
        let entries = self.series.entries.iter().filter(|entry| same.contains(&entry.content_hash));
        let rules = self.series.rules.iter().filter(|(content, _)| same.contains(content));
        let published = earlier_of(entries.map(|entry| &entry.entry), rules.map(|(_, rule)| rule))?;
        earlier.disclosures.extend(published.disclosures);
        earlier.rules.extend(published.rules);
        Ok(())
    }

    /// The records that the dataset has in common with each of `others` that is identified alike, by the id of the other.
    async fn common_records<'p>(
        &self,
        own: FingerprintedDataset<'p>,
        others: impl Iterator<Item = FingerprintedDataset<'p>>,
    ) -> Result<HashMap<Uuid, u64>, StoreError> {
        let alike = others.filter(|other| other.fingerprint.by == own.fingerprint.by);
        let (same, others): (Vec<_>, Vec<_>) = alike.partition(|other| other.fingerprint.set == own.fingerprint.set);
        let common = record_overlap(self.env.store.as_ref(), &self.job.dataset.tenant, own, &others).await?;
        let common = others.iter().zip(common).chain(same.iter().map(|same| (same, own.fingerprint.rows)));
        Ok(common.map(|(other, common)| (other.record.dataset, common)).collect())
    }

    /// The columns of the job that may be attributes of the ledger under new names.
    fn unnamed(&self, earlier: &EarlierDisclosures, seen: &BTreeSet<KeyedHash>) -> Option<CompositionConflict> {
        let identities = &earlier.identities;
        let named: BTreeSet<&str> = earlier.names().map(|name| identities.canonical(name)).collect();
        let here: BTreeSet<&str> = self.job.columns.iter().map(|name| identities.canonical(name)).collect();
        let missing: Vec<&str> = named.difference(&here).copied().collect();
        if missing.is_empty() {
            return None;
        }
        let template = self.env.vault.content_hasher(&self.job.dataset.tenant);
        let unknown = |name: &&String| {
            let canonical = identities.canonical(name);
            let is_seen = || seen.contains(&KeyedHash::of_name(&template, canonical));
            !named.contains(canonical) && !identities.knows(name) && !is_seen()
        };
        let unknown: Vec<String> = self.job.specification.names.iter().filter(unknown).cloned().collect();
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

/// How the data subjects of an earlier content stand to those of a dataset; `common` are the records of both, where they can be compared.
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
    let key = |fingerprint: &SubjectFingerprint| {
        fingerprint.key.iter().map(|name| marks.canonical(*name)).collect::<BTreeSet<_>>()
    };
    if by_keys && key(own) != key(theirs) {
        return DatasetRelation::Clash(undecidable_conflict(
            "two datasets of the series have record keys of different columns: it is not known which records are of the same data subjects",
        ));
    }
    let counts = RecordOverlap { common, added: own.rows - common, removed: theirs.rows - common };
    if by_keys && counts.common == 0 {
        return match own.folded == theirs.folded {
            true => DatasetRelation::Disjoint,
            false => DatasetRelation::Clash(undecidable_conflict(
                "a dataset of the series of which something was published is from before record keys were compared in one spelling, \
                 and none of its keys is written as one of these: it is not known whether they are of the same data subjects",
            )),
        };
    }
    if counts.added == 0 && counts.removed == 0 {
        // what says the same of everyone is the same, and what has one name says the same
        let alike = |name: &KeyedHash| mine.get(name).zip(others.get(name)).is_none_or(|(a, b)| a == b);
        let all_known = by_keys || {
            let found: BTreeSet<KeyedHash> = marks.renamed(own, theirs).iter().map(|renamed| renamed.of).collect();
            others.keys().all(|name| mine.contains_key(name) || found.contains(name))
        };
        if mine.keys().all(alike) && all_known {
            return DatasetRelation::Same(marks.aliases(own, theirs));
        }
        return DatasetRelation::Clash(CompositionConflict::Overlapping(counts));
    }
    if !by_keys && mine.keys().ne(others.keys()) {
        return DatasetRelation::Clash(undecidable_conflict(
            "two datasets of the series have different columns and no record key: it is not known which rows are of the same data subjects; \
             upload them with record_key",
        ));
    }
    if !by_keys && counts.common == 0 {
        return DatasetRelation::Clash(undecidable_conflict(
            "no row of the dataset stands in an earlier one of the series, but without record keys it is not known whether they are of \
             the same data subjects; upload both with record_key",
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

/// A column and the one that it is under another name.
struct RenamedColumn {
    name: KeyedHash,
    of: KeyedHash,
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
    fn columns(&self, fingerprint: &SubjectFingerprint) -> BTreeMap<KeyedHash, KeyedHash> {
        fingerprint.columns.iter().map(|(name, holds)| (self.canonical(*name), *holds)).collect()
    }

    /// Columns of a dataset that say of everyone what one of another name does in `theirs`, which has the same data subjects.
    fn renamed(&self, own: &SubjectFingerprint, theirs: &SubjectFingerprint) -> Vec<RenamedColumn> {
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
                renamed.push(RenamedColumn { name, of: *other });
            }
        }
        renamed
    }

    /// The renamed columns whose names are known.
    fn aliases(&self, own: &SubjectFingerprint, theirs: &SubjectFingerprint) -> Vec<Alias> {
        let word = |mark: KeyedHash| self.words.get(&mark).cloned();
        let renamed = self.renamed(own, theirs).into_iter();
        renamed.filter_map(|column| Some(Alias { name: word(column.name)?, of: word(column.of)? })).collect()
    }
}

//! The adversary who intersects what all nights of a republished table show of each person.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::report::{AttackFinding, AttackFindings, AttackReport};
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::read_back::night::{digest_of, night_of};
use crate::microdata::Table;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{AttackInput, Guarantee, NightDigest, PersonLink, PreviousNight, Publication, PublishedBytes};
use crate::report::{Manifest, ManifestRatio, PreviousNightForm, publication_of};
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::{ChainAudit, NightParts};

/// A released night.
pub struct ReleasedNight<'a> {
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Its parts.
    pub parts: &'a dyn PublishedBytes,
    /// The table that it was made of, if persons are linked by keys.
    pub original: Option<NightOriginal<'a>>,
}

/// The table of a night.
pub struct NightOriginal<'a> {
    /// The published names of its columns.
    pub names: &'a [String],
    /// The columns.
    pub table: &'a Table,
    /// The hash of the person of each row.
    pub persons: &'a [[u8; 16]],
}

/// What all nights show together.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct IntersectionReport {
    /// The number of nights that were read.
    pub nights: usize,
    /// The number of nights up to the last one that were not: imported, rejected, withdrawn or not named. Who came on one of them
    /// is not judged by the entry.
    pub missing: u64,
    /// How persons were recognized from night to night.
    pub linked_by: PersonLink,
    /// The number of persons that were linked.
    pub persons: u64,
    /// The number of them of whom a value has more than 1/l of what is left.
    pub above: u64,
    /// The l of the nights.
    pub l: u64,
    /// The largest share of a value in what is left of a person.
    pub worst: Option<ManifestRatio>,
    /// Broken promises of earlier nights, each with the first night that breaks it.
    pub faults: Vec<IntersectionFault>,
}

/// A broken promise.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct IntersectionFault {
    /// In a sentence.
    pub fault: String,
    /// The first night of those given that breaks it, from 1.
    pub night: usize,
}

impl IntersectionReport {
    /// Whether no more is learned of anybody than each night promises.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.above == 0 && self.faults.is_empty()
    }

    /// The report as that of an attack on the last night.
    #[must_use]
    pub fn of_attack(self, last: &Manifest) -> AttackReport {
        let rule = last.rules.first().and_then(|rule| rule.pointer.as_deref()).unwrap_or_default();
        let uses = match self.linked_by {
            PersonLink::Keys => AttackInput::Original,
            PersonLink::Cells => AttackInput::Parts,
        };
        let worst = self.worst.filter(|_| self.above > 0);
        let first = worst.map(|worst| AttackFinding::new(rule, None, worst)).into_iter();
        let findings = AttackFindings { total: self.above, first: first.collect() };
        let attacked = AttackReport::new(Attack::Intersection, uses, self.worst, findings);
        AttackReport { breach: !self.holds(), intersection: Some(self), ..attacked }
    }
}

/// Nights that are read one by one, the first first.
pub struct Intersection {
    linked_by: PersonLink,
    l: u64,
    /// The columns that all nights have in the known part.
    columns: Vec<String>,
    audit: ChainAudit,
    nights: usize,
    missing: u64,
    last: Option<FollowedNight>,
    faults: Vec<IntersectionFault>,
}

/// The night that was read last.
struct FollowedNight {
    /// Its number, where it is a night of a republished table.
    number: Option<u32>,
    digest: String,
}

impl Intersection {
    /// The most nights that are read for a caller, and the most rows of all of them.
    const MAX_NIGHTS: usize = 4_096;
    const MAX_ROWS: u64 = 200_000_000;

    /// Bytes for each row of a night while it is read, at most; values and labels of average length.
    const ROW_BYTES: u64 = 256;

    /// An intersection of the nights of these manifests, the first night first.
    ///
    /// # Errors
    /// Refused where they are no nights of one table.
    pub fn new(manifests: &[&Manifest], linked_by: PersonLink) -> Result<Self, EngineError> {
        let l = manifests.iter().map(|manifest| diversity(manifest)).collect::<Option<BTreeSet<u64>>>();
        let l = l.and_then(|l| l.first().copied());
        let l = l.ok_or_else(|| refused("a release has not one rule of l_diversity".to_owned()))?;
        let numbers: Vec<u32> = manifests.iter().filter_map(|manifest| Some(night_of(manifest)?.night)).collect();
        if !numbers.is_sorted_by(|a, b| a < b) {
            return Err(refused("the nights are not in their order: name the first night first".to_owned()));
        }
        let mut audit = ChainAudit::new(l);
        if linked_by == PersonLink::Cells {
            // whose cells are corrected looks like a person who enters
            audit.skip();
        }
        Ok(Self {
            linked_by,
            l,
            columns: common_columns(manifests),
            audit,
            nights: 0,
            missing: 0,
            last: None,
            faults: Vec::new(),
        })
    }

    /// Refuses what would take too long.
    ///
    /// # Errors
    /// `work-limit`
    pub fn check_work(manifests: &[&Manifest]) -> Result<(), Problem> {
        let (nights, limit) = (manifests.len(), Self::MAX_NIGHTS);
        let problem = |what: &str| Problem::new(Kind::WorkLimit, format!("too many {what} are to be read at once"));
        if nights > limit {
            return Err(problem("nights").with("limit", limit).with("found", nights));
        }
        let rows = manifests.iter().fold(0_u64, |all, manifest| all.saturating_add(rows_of(manifest)));
        if rows > Self::MAX_ROWS {
            return Err(problem("rows of nights").with("limit", Self::MAX_ROWS).with("found", rows));
        }
        Ok(())
    }

    /// Bytes of memory that it takes at most while the night of a manifest is read.
    #[must_use]
    pub fn memory(&self, night: &Manifest) -> u64 {
        let rows = rows_of(night);
        let persons = self.audit.persons().saturating_add(rows);
        persons.saturating_mul(ChainAudit::PERSON_BYTES).saturating_add(rows.saturating_mul(Self::ROW_BYTES))
    }

    /// Reads the next night.
    ///
    /// # Errors
    /// Cancelled, a part that cannot be read, or a release that is no night.
    pub fn add(&mut self, night: &ReleasedNight<'_>, control: &Control) -> Result<(), EngineError> {
        let place = self.nights + 1;
        let no_night = || refused(format!("release {place} is not one table of a known and a sensitive part"));
        let names = night.original.as_ref().map_or_else(|| names_of(night.manifest), |of| of.names.to_vec());
        let publication: Publication = publication_of(night.manifest, &names).map_err(|_| no_night())?;
        let found = match (&night.original, self.linked_by) {
            (Some(NightOriginal { table, persons, .. }), PersonLink::Keys) => {
                NightParts { publication: &publication, parts: night.parts, original: table, persons }.link(control)?
            }
            (None, PersonLink::Keys) => return Err(EngineError::bug("a night lacks its table")),
            (_, PersonLink::Cells) => verifier::link_by_cells(&publication, night.parts, &self.columns, control)?,
        };
        let found = found.ok_or_else(no_night)?;
        self.follow(night, &publication, control)?;
        self.audit.night(&found, control)?;
        self.nights = place;
        Ok(())
    }

    /// Holds a night against the link of the chain that leads to it.
    fn follow(
        &mut self,
        night: &ReleasedNight<'_>,
        publication: &Publication,
        control: &Control,
    ) -> Result<(), EngineError> {
        let form = night_of(night.manifest);
        let named = form.and_then(|form| form.previous.as_ref()).map(|previous| previous.digest.clone());
        let previous = named.clone().map(|digits| PreviousNight { release: None, digest: NightDigest(digits) });
        let digest = verifier::night_digest(publication, previous.as_ref(), night.parts, control)?;
        if digest_of(night.manifest).0 != digest {
            self.fault("the parts are not those of the manifest");
        }
        let number = form.map(|form| form.night);
        let before = self.last.as_ref().map_or(Some(0), |last| last.number);
        if let Some((number, before)) = number.zip(before) {
            let between = u64::from(number - before).saturating_sub(1);
            self.missing += between;
            if between > 0 {
                self.audit.skip();
            } else if self.last.as_ref().is_some_and(|last| named.as_ref() != Some(&last.digest)) {
                self.fault("the night goes on from another night than the one before it");
            }
        }
        self.last = Some(FollowedNight { number, digest });
        Ok(())
    }

    fn fault(&mut self, fault: &str) {
        if self.faults.iter().all(|known| known.fault != fault) {
            self.faults.push(IntersectionFault { fault: fault.to_owned(), night: self.nights + 1 });
        }
    }

    /// What the nights show together.
    #[must_use]
    pub fn report(self) -> IntersectionReport {
        let Self { linked_by, l, audit, nights, missing, mut faults, .. } = self;
        let report = audit.report();
        let broken = report.faults.into_iter();
        faults.extend(broken.map(|(fault, night)| IntersectionFault { fault: fault.to_string(), night: night + 1 }));
        IntersectionReport {
            nights,
            missing,
            linked_by,
            persons: report.persons,
            above: report.above,
            l,
            worst: report.worst.map(|worst| ManifestRatio::new(worst.count, worst.of)),
            faults,
        }
    }
}

/// What the manifest of a night says of the night before; `None` of the first night, and of other releases.
///
/// # Errors
/// Refused where the release is no night.
pub fn previous_night(manifest: &Manifest) -> Result<Option<&PreviousNightForm>, Problem> {
    let Some(form) = night_of(manifest) else {
        let detail = "intersection is played on the nights of a population that is published night after night";
        return Err(Problem::of_faults(vec![Fault::new("/attack", Kind::GuaranteeUnsupported, detail)]));
    };
    Ok(form.previous.as_ref())
}

fn refused(detail: String) -> EngineError {
    EngineError::Refused(Problem::new(Kind::BadColumns, detail))
}

fn rows_of(manifest: &Manifest) -> u64 {
    let parts = manifest.tables.iter().flat_map(|table| &table.parts);
    parts.fold(0, |all, part| all.saturating_add(part.rows))
}

fn diversity(manifest: &Manifest) -> Option<u64> {
    let [rule] = &manifest.rules[..] else { return None };
    match rule.guarantee {
        Guarantee::LDiversity { l } => Some(l),
        _ => None,
    }
}

/// The names of the published attributes.
fn names_of(manifest: &Manifest) -> Vec<String> {
    let parts = manifest.tables.iter().flat_map(|table| &table.parts);
    parts.flat_map(|part| part.attributes.iter().cloned()).collect()
}

/// The columns that the known part of every night has.
fn common_columns(manifests: &[&Manifest]) -> Vec<String> {
    let known = |manifest: &&Manifest| -> BTreeSet<String> {
        let part = manifest.tables.first().and_then(|table| table.parts.first());
        part.map(|part| part.attributes.iter().cloned().collect()).unwrap_or_default()
    };
    let common = manifests.iter().map(known).reduce(|common, of| &common & &of);
    common.unwrap_or_default().into_iter().collect()
}

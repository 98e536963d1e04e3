//! The audit of a night against the states before and after it, from definitions.

use std::collections::{BTreeMap, BTreeSet};

use super::chain_state::{ChainState, Standing, Text};
use super::parts::ShownSignatures;
use crate::control::Control;
use crate::publication::{BucketMerging, ChangedValues, RepublishDetails};
use crate::verifier::contract::input::VerifierError;

/// A night as it was made, to be audited.
#[derive(Clone, Copy)]
pub struct AuditedNight<'a> {
    /// The state before; `None` of the first night.
    pub before: Option<&'a [u8]>,
    /// The state after.
    pub after: &'a [u8],
    /// The hash of the person of each row of the table.
    pub persons: &'a [[u8; 16]],
    /// The sensitive value of each row.
    pub values: &'a [Option<&'a [u8]>],
    /// The label of the bucket of each row; 0 of a row that is not published.
    pub labels: &'a [u32],
    /// The values of each bucket in the sensitive part, by label.
    pub shown: &'a ShownSignatures,
    /// The terms that the release states.
    pub details: &'a RepublishDetails,
    /// The diversity l of the guarantee.
    pub l: u64,
}

/// Audits a night; the sentence on the first fault, without values.
///
/// # Errors
/// [`VerifierError`] on cancellation.
pub fn audit_night(night: &AuditedNight<'_>, control: &Control) -> Result<Result<(), String>, VerifierError> {
    let before = match night.before {
        None => Some(ChainState::default()),
        Some(bytes) => ChainState::read(bytes),
    };
    let (Some(before), Some(after)) = (before, ChainState::read(night.after)) else {
        return Ok(Err("a state of the population cannot be read".to_owned()));
    };
    let rows = night.persons.len();
    if night.values.len() != rows || night.labels.len() != rows {
        return Ok(Err("the rows of the night are not those of its persons".to_owned()));
    }
    let audit = NightAudit { night, before: &before, after: &after };
    let mut outcome = audit.states();
    for step in [
        NightAudit::buckets,
        NightAudit::members,
        NightAudit::newcomers,
        NightAudit::absent,
        NightAudit::merges,
        NightAudit::unpublished,
    ] {
        control.check()?;
        outcome = outcome.and_then(|()| step(&audit));
    }
    Ok(outcome)
}

struct NightAudit<'a> {
    night: &'a AuditedNight<'a>,
    before: &'a ChainState,
    after: &'a ChainState,
}

type Outcome = Result<(), String>;

fn fail(sentence: &str) -> Outcome {
    Err(sentence.to_owned())
}

impl NightAudit<'_> {
    /// The states follow each other, and the release names the night.
    fn states(&self) -> Outcome {
        let Self { before, after, night } = self;
        if after.night != before.night + 1 || night.details.night != after.night {
            return fail("the state is not that of the night before");
        }
        if night.before.is_some() && before.terms != after.terms {
            return fail("the terms of the population changed");
        }
        Ok(())
    }

    /// The published rows: person, value and label.
    fn published(&self) -> impl Iterator<Item = (usize, [u8; 16], u32)> {
        let rows = self.night.persons.iter().zip(self.night.labels).enumerate();
        rows.filter(|(_, (_, label))| **label > 0).map(|(row, (person, label))| (row, *person, *label))
    }

    /// (a), (b): a bucket of the release is a bucket of the state, shown with its whole signature, which keeps the guarantee.
    fn buckets(&self) -> Outcome {
        let mut bucket_of: BTreeMap<u32, usize> = BTreeMap::new();
        let mut label_of: BTreeMap<usize, u32> = BTreeMap::new();
        let mut persons = BTreeSet::new();
        for (_, person, label) in self.published() {
            let Some(standing) = self.after.persons.get(&person) else {
                return fail("a published person is not in the state");
            };
            if !persons.insert(person) {
                return fail("a person is published twice");
            }
            if *bucket_of.entry(label).or_insert(standing.bucket) != standing.bucket
                || *label_of.entry(standing.bucket).or_insert(label) != label
            {
                return fail("the buckets of the release are not those of the state");
            }
        }
        if !bucket_of.keys().eq(self.night.shown.keys()) {
            return fail("a bucket is shown without members, or not shown");
        }
        for (label, bucket) in bucket_of {
            let mut shown = self.night.shown[&label].clone();
            let mut kept = self.after.buckets[bucket].values.clone();
            shown.sort();
            kept.sort();
            if shown != kept {
                return fail("a bucket does not show its whole signature");
            }
            let most = kept.chunk_by(|a, b| a == b).map(<[Text]>::len).max().unwrap_or(0);
            if self.night.l < 2 || most as u128 * u128::from(self.night.l) > kept.len() as u128 {
                return fail("a signature does not keep the guarantee");
            }
        }
        Ok(())
    }

    /// (c): a member has the value of his slot, and the signature that he had.
    fn members(&self) -> Outcome {
        let mut slots = BTreeSet::new();
        for standing in self.after.persons.values() {
            if !slots.insert((standing.bucket, standing.slot)) {
                return fail("two persons have one slot");
            }
        }
        for (row, person, _) in self.published() {
            let standing = self.after.persons[&person];
            let signature = self.after.signature(standing);
            if standing.last != self.after.night {
                return fail("the state does not know that a person is published");
            }
            if signature[standing.slot].as_deref() != self.night.values[row] {
                return fail("a person is published with another value than that of the slot");
            }
            let Some(earlier) = self.before.persons.get(&person) else { continue };
            let known = self.before.signature(*earlier);
            let is_kept = known == signature && earlier.slot == standing.slot;
            let is_moved = self.night.details.changes == ChangedValues::Move
                && known.iter().all(|value| !signature.contains(value));
            if !is_kept && !is_moved {
                return fail("the signature of a person changed");
            }
        }
        Ok(())
    }

    /// The persons of a version that begins tonight: newcomers, and those who moved.
    fn begins(&self, person: &[u8; 16], standing: Standing) -> bool {
        self.before
            .persons
            .get(person)
            .is_none_or(|earlier| self.before.signature(*earlier) != self.after.signature(standing))
    }

    /// (c): newcomers stand in full buckets of their own; movers stand in others than newcomers, in groups of l.
    fn newcomers(&self) -> Outcome {
        let mut buckets: BTreeMap<usize, Vec<[u8; 16]>> = BTreeMap::new();
        for (_, person, _) in self.published() {
            buckets.entry(self.after.persons[&person].bucket).or_default().push(person);
        }
        for (bucket, persons) in &buckets {
            let fresh: Vec<&[u8; 16]> =
                persons.iter().filter(|person| self.begins(person, self.after.persons[*person])).collect();
            if fresh.is_empty() {
                continue;
            }
            let slots = self.after.buckets[*bucket].values.len();
            if fresh.len() != persons.len() || persons.len() != slots {
                return fail("a person enters a bucket of others, or one with counterfeits");
            }
            let moved = fresh.iter().filter(|person| self.before.persons.contains_key(**person)).count();
            if moved > 0 && (moved != slots || slots as u64 != self.night.l) {
                return fail("persons with new values stand with others");
            }
            let forgotten = |person: &&&[u8; 16]| self.before.forgotten.contains(&person[..8]);
            if fresh.iter().any(|person| forgotten(&person)) {
                return fail("a forgotten person is published");
            }
        }
        Ok(())
    }

    /// What is not published stays as it was.
    fn absent(&self) -> Outcome {
        let published: BTreeSet<[u8; 16]> = self.published().map(|(_, person, _)| person).collect();
        for (person, earlier) in &self.before.persons {
            if published.contains(person) {
                continue;
            }
            let absent = self.after.night - earlier.last;
            match self.after.persons.get(person) {
                Some(standing) => {
                    let is_same = self.after.signature(*standing) == self.before.signature(*earlier)
                        && (standing.slot, standing.last) == (earlier.slot, earlier.last);
                    if !is_same {
                        return fail("the state of an absent person changed");
                    }
                }
                None => {
                    let may_go = self.night.details.forget_after.is_some_and(|nights| absent >= nights);
                    if !may_go || !self.after.forgotten.contains(&person[..8]) {
                        return fail("the state lost a person");
                    }
                }
            }
        }
        if !self.before.forgotten.is_subset(&self.after.forgotten) {
            return fail("the state lost a forgotten person");
        }
        if self
            .after
            .persons
            .keys()
            .any(|person| !self.before.persons.contains_key(person) && !published.contains(person))
        {
            return fail("the state has a person who was never published");
        }
        Ok(())
    }

    /// (d): old members share a bucket as before, or are single survivors of different components.
    fn merges(&self) -> Outcome {
        let published: BTreeSet<[u8; 16]> = self.published().map(|(_, person, _)| person).collect();
        let mut present: BTreeMap<usize, u64> = BTreeMap::new();
        let mut recent: BTreeMap<usize, u64> = BTreeMap::new();
        for (person, earlier) in &self.before.persons {
            let is_present = published.contains(person);
            // a mover is published elsewhere
            let stays = is_present && !self.begins(person, self.after.persons[person]);
            *present.entry(earlier.bucket).or_default() += u64::from(stays);
            let nights = self.night.details.grace.max(1);
            let was_recent = !is_present && earlier.last.saturating_add(nights) > self.after.night;
            *recent.entry(earlier.bucket).or_default() += u64::from(stays || was_recent);
        }
        let mut parents: BTreeMap<usize, usize> = BTreeMap::new();
        let mut origins: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (person, earlier) in &self.before.persons {
            let Some(standing) = self.after.persons.get(person) else { continue };
            if !self.begins(person, *standing) {
                origins.entry(standing.bucket).or_default().insert(earlier.bucket);
            }
        }
        for (bucket, origins) in origins.iter().filter(|(_, origins)| origins.len() > 1) {
            let is_single = |origin: &usize| present.get(origin) == Some(&1) && recent.get(origin) == Some(&1);
            let is_large = self.after.buckets[*bucket].values.len() >= 3;
            if self.night.details.merge == BucketMerging::Never || !is_large || !origins.iter().all(is_single) {
                return fail("buckets were joined that are not of single survivors");
            }
            let roots: BTreeSet<usize> =
                origins.iter().map(|origin| root(&parents, self.before.buckets[*origin].component)).collect();
            if roots.len() < origins.len() {
                return fail("buckets of one component were joined");
            }
            let first = roots.first().copied().unwrap_or_default();
            parents.extend(roots.iter().skip(1).map(|other| (*other, first)));
        }
        self.kept_together(&origins)?;
        self.components(&parents)
    }

    /// Members of an old bucket stay together, but for a single survivor who was joined with others.
    fn kept_together(&self, origins: &BTreeMap<usize, BTreeSet<usize>>) -> Outcome {
        let mut kept_in: BTreeMap<usize, usize> = BTreeMap::new();
        for (person, earlier) in &self.before.persons {
            let Some(standing) = self.after.persons.get(person) else { continue };
            let is_joined = origins.get(&standing.bucket).is_some_and(|origins| origins.len() > 1);
            if self.begins(person, *standing) || is_joined {
                continue;
            }
            if *kept_in.entry(earlier.bucket).or_insert(standing.bucket) != standing.bucket {
                return fail("the members of a bucket were parted");
            }
        }
        Ok(())
    }

    /// The components of the state after are those before, joined by the merges.
    fn components(&self, parents: &BTreeMap<usize, usize>) -> Outcome {
        let mut new_of: BTreeMap<usize, usize> = BTreeMap::new();
        let mut old_of: BTreeMap<usize, usize> = BTreeMap::new();
        for (person, earlier) in &self.before.persons {
            let Some(standing) = self.after.persons.get(person) else { continue };
            if self.begins(person, *standing) {
                continue;
            }
            let old = root(parents, self.before.buckets[earlier.bucket].component);
            let new = self.after.buckets[standing.bucket].component;
            if *new_of.entry(old).or_insert(new) != new || *old_of.entry(new).or_insert(old) != old {
                return fail("the state does not know which buckets were joined");
            }
        }
        Ok(())
    }

    /// Nothing is left out in silence: of the rows that are not published, newcomers wait together, and others have new values.
    fn unpublished(&self) -> Outcome {
        let is_known = |person: &[u8; 16]| self.before.persons.get(person);
        let mut entered = false;
        let (mut waiting, mut newcomers) = (false, 0_u64);
        for (row, (person, label)) in self.night.persons.iter().zip(self.night.labels).enumerate() {
            match is_known(person) {
                None if self.before.forgotten.contains(&person[..8]) => {}
                None => {
                    newcomers += 1;
                    entered |= *label > 0;
                    waiting |= *label == 0;
                }
                Some(earlier) if *label == 0 => {
                    let value = self.before.signature(*earlier)[earlier.slot].as_deref();
                    if value == self.night.values[row] {
                        return fail("a person with the published value is left out");
                    }
                    if self.night.details.changes == ChangedValues::Refuse {
                        return fail("a value changed");
                    }
                }
                Some(_) => {}
            }
        }
        if waiting && entered {
            return fail("some newcomers wait, and others do not");
        }
        if entered && newcomers < self.night.details.min_newcomers {
            return fail("newcomers are published who are too few");
        }
        Ok(())
    }
}

fn root(parents: &BTreeMap<usize, usize>, mut of: usize) -> usize {
    while let Some(&parent) = parents.get(&of) {
        of = parent;
    }
    of
}

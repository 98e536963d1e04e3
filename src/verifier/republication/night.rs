//! The audit of a night against the states before and after it, from definitions.

use std::collections::{BTreeMap, BTreeSet};

use super::chain_state::{ChainStanding, ChainState};
use super::joined::{JoinedPersons, LabelledPersons, NightPerson};
use super::parts::ShownSignatures;
use crate::control::Control;
use crate::microdata::Column;
use crate::publication::{BucketMerging, ChangedValues, PastNight, RepublishDetails};
use crate::verifier::contract::input::VerifierError;

/// A night as it was made, to be audited.
#[derive(Clone, Copy)]
pub struct AuditedNight<'a> {
    /// The state before; `None` of the first night.
    pub before: Option<&'a [u8]>,
    /// The state after.
    pub after: &'a [u8],
    /// What the parts and the nights before published, as a digest of them.
    pub digest: &'a str,
    /// The hash of the person of each row of the table.
    pub persons: &'a [[u8; 16]],
    /// The sensitive values of the rows.
    pub values: &'a Column,
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
        return Ok(fail("a state of the population cannot be read"));
    };
    let rows = night.persons.len();
    if night.values.codes.len() != rows || night.labels.len() != rows {
        return Ok(fail("the rows of the night are not those of its persons"));
    }
    if let Err(sentence) = states(night, &before, &after) {
        return Ok(Err(sentence));
    }
    let table = LabelledPersons { persons: night.persons, labels: night.labels };
    let Some(persons) = JoinedPersons::new(table, &before, &after) else {
        return Ok(fail("a person is published twice"));
    };
    let audit = NightAudit { night, before: &before, after: &after, persons };
    for step in [
        NightAudit::buckets,
        NightAudit::members,
        NightAudit::newcomers,
        NightAudit::absent,
        NightAudit::merges,
        NightAudit::unpublished,
        NightAudit::past,
    ] {
        control.check()?;
        if let Err(sentence) = step(&audit) {
            return Ok(Err(sentence));
        }
    }
    Ok(Ok(()))
}

struct NightAudit<'a> {
    night: &'a AuditedNight<'a>,
    before: &'a ChainState<'a>,
    after: &'a ChainState<'a>,
    persons: JoinedPersons<'a>,
}

type Outcome = Result<(), String>;

fn fail(sentence: &str) -> Outcome {
    Err(sentence.to_owned())
}

/// What has no number yet.
const NONE: u32 = u32::MAX;

/// Whether `place` has this number, or gets it.
fn holds(place: &mut u32, number: u32) -> bool {
    if *place == NONE {
        *place = number;
    }
    *place == number
}

/// The states follow each other, and the release names the night.
fn states(night: &AuditedNight<'_>, before: &ChainState<'_>, after: &ChainState<'_>) -> Outcome {
    if after.night != before.night + 1 || night.details.night != after.night {
        return fail("the state is not that of the night before");
    }
    if night.before.is_some() && before.terms != after.terms {
        return fail("the terms of the population changed");
    }
    let named = night.details.previous.as_ref().map_or("", |previous| &previous.digest.0);
    if named.as_bytes() != before.digest || night.digest.as_bytes() != after.digest {
        return fail("the state or the release names another night before, or other parts");
    }
    Ok(())
}

impl NightAudit<'_> {
    /// The published persons, each with where the person stands.
    fn published(&self) -> impl Iterator<Item = (NightPerson, ChainStanding)> {
        self.persons.iter().filter(|person| person.is_published()).filter_map(|person| Some((person, person.after?)))
    }

    /// (a), (b): a bucket of the release is a bucket of the state, shown with its whole signature, which keeps the guarantee.
    fn buckets(&self) -> Outcome {
        let Self { night, after, .. } = self;
        let shown: Vec<_> = night.shown.buckets().collect();
        let mut bucket_of = vec![NONE; shown.len() + 1];
        let mut label_of = vec![NONE; after.buckets.len()];
        for person in self.persons.iter().filter(|person| person.is_published()) {
            let Some(standing) = person.after else { return fail("a published person is not in the state") };
            let Some(bucket) = bucket_of.get_mut(person.label as usize) else {
                return fail("a bucket is shown without members, or not shown");
            };
            if !holds(bucket, standing.bucket) || !holds(&mut label_of[standing.bucket as usize], person.label) {
                return fail("the buckets of the release are not those of the state");
            }
        }
        if !(1..).zip(&shown).all(|(label, slots)| label == slots[0].label) || bucket_of[1..].contains(&NONE) {
            return fail("a bucket is shown without members, or not shown");
        }
        let places: Vec<u32> = night.shown.values().iter().map(|value| after.place(value.as_deref())).collect();
        let mut is_used = vec![false; after.signatures.len()];
        let (mut kept, mut seen) = (Vec::new(), Vec::new());
        for (bucket, slots) in bucket_of[1..].iter().zip(shown) {
            let signature = after.buckets[*bucket as usize].signature;
            is_used[signature as usize] = true;
            sort_into(&mut kept, after.signatures.slots(signature).iter().copied());
            sort_into(&mut seen, slots.iter().map(|slot| places[slot.value as usize]));
            if kept != seen {
                return fail("a bucket does not show its whole signature");
            }
        }
        for (slots, _) in after.signatures.iter().zip(is_used).filter(|(_, is_used)| *is_used) {
            sort_into(&mut kept, slots.iter().copied());
            let most = kept.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0);
            if night.l < 2 || most as u128 * u128::from(night.l) > kept.len() as u128 {
                return fail("a signature does not keep the guarantee");
            }
        }
        Ok(())
    }

    /// (c): a member has the value of his slot, and the signature that he had.
    fn members(&self) -> Outcome {
        let mut all = 0;
        let first = self.after.buckets.iter().map(|slots| {
            let first = all;
            all += self.after.signatures.slots(slots.signature).len();
            first
        });
        let first: Vec<usize> = first.collect();
        let mut is_taken = vec![false; all];
        for standing in self.after.persons.standings() {
            let place = first[standing.bucket as usize] + standing.slot as usize;
            if std::mem::replace(&mut is_taken[place], true) {
                return fail("two persons have one slot");
            }
        }
        let Column { domain, codes } = self.night.values;
        let places: Vec<u32> = domain.iter().map(|value| self.after.place(value)).collect();
        for (person, standing) in self.published() {
            if standing.last != self.after.night {
                return fail("the state does not know that a person is published");
            }
            // a value that the state has not stands in no slot
            let place = person.row.map(|row| places[codes.get(row as usize) as usize]);
            if place != Some(self.after.slots(standing)[standing.slot as usize]) {
                return fail("a person is published with another value than that of the slot");
            }
            let Some(earlier) = person.before else { continue };
            let is_kept = !person.begins && earlier.slot == standing.slot;
            let is_moved = || {
                let known = self.before.slots(earlier).iter().map(|place| &self.before.values[*place as usize]);
                let mut carried = known.map(|value| self.after.place(value.as_deref()));
                self.night.details.changes == ChangedValues::Move
                    && carried.all(|place| !self.after.slots(standing).contains(&place))
            };
            if !is_kept && !is_moved() {
                return fail("the signature of a person changed");
            }
        }
        Ok(())
    }

    /// (c): newcomers stand in full buckets of their own; movers stand in others than newcomers, in groups of l.
    fn newcomers(&self) -> Outcome {
        #[derive(Clone, Copy, Default)]
        struct Members {
            all: u32,
            fresh: u32,
            moved: u32,
            has_forgotten: bool,
        }
        let mut buckets = vec![Members::default(); self.after.buckets.len()];
        for (person, standing) in self.published() {
            let members = &mut buckets[standing.bucket as usize];
            members.all += 1;
            if person.begins {
                members.fresh += 1;
                members.moved += u32::from(person.before.is_some());
                members.has_forgotten |= person.was_forgotten;
            }
        }
        for (members, slots) in buckets.iter().zip(&self.after.buckets).filter(|(members, _)| members.fresh > 0) {
            let slots = self.after.signatures.slots(slots.signature).len();
            if members.fresh != members.all || members.all as usize != slots {
                return fail("a person enters a bucket of others, or one with counterfeits");
            }
            if members.moved > 0 && (members.moved as usize != slots || slots as u64 != self.night.l) {
                return fail("persons with new values stand with others");
            }
            if members.has_forgotten {
                return fail("a forgotten person is published");
            }
        }
        Ok(())
    }

    /// What is not published stays as it was.
    fn absent(&self) -> Outcome {
        for person in self.persons.iter().filter(|person| !person.is_published()) {
            match (person.before, person.after) {
                (Some(earlier), Some(standing)) => {
                    if person.begins || (standing.slot, standing.last) != (earlier.slot, earlier.last) {
                        return fail("the state of an absent person changed");
                    }
                }
                (Some(earlier), None) => {
                    let absent = self.after.night - earlier.last;
                    let may_go = self.night.details.forget_after.is_some_and(|nights| absent >= nights);
                    if !may_go || !person.is_forgotten {
                        return fail("the state lost a person");
                    }
                }
                (None, Some(_)) => return fail("the state has a person who was never published"),
                (None, None) => {}
            }
        }
        let mut forgotten = self.before.forgotten.iter();
        if !forgotten.all(|prefix| self.after.forgotten.binary_search(prefix).is_ok()) {
            return fail("the state lost a forgotten person");
        }
        Ok(())
    }

    /// (d): old members share a bucket as before, or are single survivors of different components.
    fn merges(&self) -> Outcome {
        let mut present = vec![0_u32; self.before.buckets.len()];
        let mut recent = present.clone();
        // the buckets in which those stood and stand who have the signature that they had; most pairs once
        let mut stayed: Vec<(u32, u32)> = Vec::with_capacity(self.before.buckets.len());
        let mut last = vec![NONE; self.before.buckets.len()];
        for person in self.persons.iter() {
            let Some(earlier) = person.before else { continue };
            if let Some(standing) = person.after.filter(|_| !person.begins)
                && std::mem::replace(&mut last[earlier.bucket as usize], standing.bucket) != standing.bucket
            {
                stayed.push((earlier.bucket, standing.bucket));
            }
            // a mover is published elsewhere
            let stays = person.is_published() && !person.begins;
            let nights = self.night.details.grace.max(1);
            let was_recent = !person.is_published() && earlier.last.saturating_add(nights) > self.after.night;
            present[earlier.bucket as usize] += u32::from(stays);
            recent[earlier.bucket as usize] += u32::from(stays || was_recent);
        }
        let mut first = vec![NONE; self.after.buckets.len()];
        let mut has_several = vec![false; self.after.buckets.len()];
        for (old, new) in &stayed {
            has_several[*new as usize] |= !holds(&mut first[*new as usize], *old);
        }
        let several = stayed.iter().filter(|(_, new)| has_several[*new as usize]);
        let mut origins: Vec<(u32, u32)> = several.map(|(old, new)| (*new, *old)).collect();
        origins.sort_unstable();
        origins.dedup();
        let mut parents: BTreeMap<u32, u32> = BTreeMap::new();
        let mut is_joined = vec![false; self.after.buckets.len()];
        for origins in origins.chunk_by(|a, b| a.0 == b.0).filter(|origins| origins.len() > 1) {
            let bucket = self.after.buckets[origins[0].0 as usize];
            is_joined[origins[0].0 as usize] = true;
            let is_single = |(_, of): &(u32, u32)| present[*of as usize] == 1 && recent[*of as usize] == 1;
            let is_large = self.after.signatures.slots(bucket.signature).len() >= 3;
            if self.night.details.merge == BucketMerging::Never || !is_large || !origins.iter().all(is_single) {
                return fail("buckets were joined that are not of single survivors");
            }
            let component = |(_, of): &(u32, u32)| root(&parents, self.before.buckets[*of as usize].component);
            let roots: BTreeSet<u32> = origins.iter().map(component).collect();
            if roots.len() < origins.len() {
                return fail("buckets of one component were joined");
            }
            let first = roots.first().copied().unwrap_or_default();
            parents.extend(roots.iter().skip(1).map(|other| (*other, first)));
        }
        self.kept_together(&stayed, &is_joined)?;
        self.components(&stayed, &parents)
    }

    /// Members of an old bucket stay together, but for a single survivor who was joined with others.
    fn kept_together(&self, stayed: &[(u32, u32)], is_joined: &[bool]) -> Outcome {
        let mut kept_in = vec![NONE; self.before.buckets.len()];
        let mut alone = stayed.iter().filter(|(_, new)| !is_joined[*new as usize]);
        match alone.all(|(old, new)| holds(&mut kept_in[*old as usize], *new)) {
            true => Ok(()),
            false => fail("the members of a bucket were parted"),
        }
    }

    /// The components of the state after are those before, joined by the merges.
    fn components(&self, stayed: &[(u32, u32)], parents: &BTreeMap<u32, u32>) -> Outcome {
        let mut new_of = vec![NONE; self.before.buckets.len()];
        let mut old_of = vec![NONE; self.after.buckets.len()];
        let mut is_known = stayed.iter().map(|(old, new)| {
            let old = root(parents, self.before.buckets[*old as usize].component);
            let new = self.after.buckets[*new as usize].component;
            holds(&mut new_of[old as usize], new) && holds(&mut old_of[new as usize], old)
        });
        match is_known.all(|is_known| is_known) {
            true => Ok(()),
            false => fail("the state does not know which buckets were joined"),
        }
    }

    /// The release says what the nights before published, and the state adds what this one does.
    fn past(&self) -> Outcome {
        let Self { night, before, after, .. } = self;
        if night.details.earlier != before.past {
            return fail("the release says other figures of earlier nights");
        }
        let tonight = PastNight {
            night: after.night,
            rows: self.published().count() as u64,
            slots: night.shown.buckets().map(|slots| slots.len() as u64).sum(),
            buckets: night.shown.buckets().count() as u64,
        };
        let all: Vec<PastNight> = before.past.iter().copied().chain([tonight]).collect();
        match all.ends_with(&after.past) && after.past.last() == Some(&tonight) {
            true => Ok(()),
            false => fail("the state has other figures of the nights"),
        }
    }

    /// Nothing is left out in silence: of the rows that are not published, newcomers wait together, and others have new values.
    fn unpublished(&self) -> Outcome {
        let (mut published, mut waiting, mut newcomers) = (false, false, 0_u64);
        for person in self.persons.iter() {
            let Some(row) = person.row else { continue };
            match person.before {
                None if person.was_forgotten => {}
                None => {
                    newcomers += 1;
                    published |= person.is_published();
                    waiting |= !person.is_published();
                }
                Some(earlier) if !person.is_published() => {
                    let place = self.before.slots(earlier)[earlier.slot as usize];
                    if self.before.values[place as usize].as_deref() == self.night.values.value(row as usize) {
                        return fail("a person with the published value is left out");
                    }
                    if self.night.details.changes == ChangedValues::Refuse {
                        return fail("a value changed");
                    }
                }
                Some(_) => {}
            }
        }
        if waiting && published {
            return fail("some newcomers wait, and others do not");
        }
        if published && newcomers < self.night.details.min_newcomers {
            return fail("newcomers are published who are too few");
        }
        Ok(())
    }
}

/// Puts numbers into a list, sorted, in place of what it has.
fn sort_into(list: &mut Vec<u32>, numbers: impl Iterator<Item = u32>) {
    list.clear();
    list.extend(numbers);
    list.sort_unstable();
}

fn root(parents: &BTreeMap<u32, u32>, mut of: u32) -> u32 {
    while let Some(&parent) = parents.get(&of) {
        of = parent;
    }
    of
}

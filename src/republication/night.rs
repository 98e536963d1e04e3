//! One night: the buckets to publish, and the next state.

use std::collections::BTreeMap;
use std::fmt;

use ahash::RandomState;
use hashbrown::HashTable;

use super::components::ComponentForest;
use super::division::{Division, Mover, PublishedMember, divide};
use super::founding::{self, Newcomer};
use super::merging::{self, Single};
use super::movers;
use super::state::{PersonHash, SensitiveText, State, StateBucket, StateMember};
use super::terms::NightTerms;
use crate::control::{Cancelled, Control};
use crate::publication::{BucketMerging, ChangedValues, PastNight};
use crate::random::RandomStreams;

/// The table of a night.
#[derive(Clone, Copy)]
pub struct NightInput<'a> {
    /// The hash of the person of each row, each person once.
    pub persons: &'a [[u8; 16]],
    /// The sensitive value of each row: a position in `values`.
    pub value_of: &'a [u32],
    /// The values that rows refer to.
    pub values: &'a [SensitiveText],
    /// Each row once, in a secret order: who is drawn follows it.
    pub order: &'a [u32],
}

/// A published bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NightBucket {
    /// The position of its signature in those of the night.
    pub signature: u32,
    /// The number of members.
    pub members: u64,
}

/// What became of the rows of a night. For the holder of the original alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NightTally {
    /// Rows of persons who were published before.
    pub known: u64,
    /// Rows of persons who were never published.
    pub newcomers: u64,
    /// Known persons who are published, and were not on the night before.
    pub returning: u64,
    /// Persons who were published on the night before, and are not in the table.
    pub departed: u64,
    /// Known persons whose value is not the published one.
    pub changed: u64,
    /// Newcomers who wait.
    pub waiting: u64,
    /// Rows of known or forgotten persons that are not published.
    pub withheld: u64,
    /// Persons with a new bucket for a new value.
    pub moved: u64,
    /// Buckets made of single survivors.
    pub merged: u64,
    /// Whether the newcomers are enough, and wait because a value is too frequent among them.
    pub ineligible: bool,
}

/// A night.
pub struct Night {
    /// For each row its position in the published buckets; `None` of a row that is not published.
    pub bucket_of: Vec<Option<u32>>,
    /// The published buckets.
    pub buckets: Vec<NightBucket>,
    /// Their whole signatures: positions in the values of the night, not falling. What no member has is a counterfeit.
    pub signatures: Vec<Vec<u32>>,
    /// The values of the signatures, rising.
    pub values: Vec<SensitiveText>,
    /// What became of the rows.
    pub tally: NightTally,
    /// The state after the night.
    pub state: State,
}

/// The reason why there is no night.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NightError {
    /// The caller cancelled.
    Cancelled(Cancelled),
    /// Some persons have several rows.
    SeveralRows {
        /// The rows in excess of one a person.
        rows: u64,
    },
    /// Values changed, and the terms refuse changes.
    ValueChanged {
        /// The number of persons with a changed value.
        changed: u64,
    },
    /// A bucket would have more slots, or the state more buckets, than can be numbered.
    TooLarge,
    /// The night is the last that can be numbered.
    NightsExhausted,
}

impl fmt::Display for NightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled(cancelled) => cancelled.fmt(f),
            Self::SeveralRows { rows } => write!(f, "{rows} rows are second or later rows of a person"),
            Self::ValueChanged { changed } => write!(f, "{changed} persons have another value than the published one"),
            Self::TooLarge => f.write_str("a bucket would have too many slots, or the state too many buckets"),
            Self::NightsExhausted => f.write_str("there were too many nights"),
        }
    }
}

impl std::error::Error for NightError {}

impl From<Cancelled> for NightError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}

impl Night {
    /// Makes the night after `state`. The same state, rows and streams give the same night.
    ///
    /// # Errors
    /// [`NightError`]
    pub fn new(
        mut state: State,
        input: NightInput<'_>,
        terms: &NightTerms<'_>,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<Self, NightError> {
        let ranks = state.rank(input.values);
        let mut division = divide(&state, input, &ranks, terms.changes, control)?;
        state.night = state.night.checked_add(1).ok_or(NightError::NightsExhausted)?;
        let mut making = NightInProgress::new(state, input);
        making.take(&mut division);
        let Division { newcomers, movers, .. } = division;
        making.found(newcomers, terms, streams)?;
        making.move_changed(movers, terms, streams, control)?;
        control.check()?;
        making.mark_published();
        if terms.merging == BucketMerging::Single {
            making.merge(terms.grace, streams, control)?;
        }
        Ok(making.finish(terms.forget_after))
    }

    /// The whole signature of a bucket.
    #[must_use]
    pub fn signature(&self, bucket: NightBucket) -> &[u32] {
        &self.signatures[bucket.signature as usize]
    }
}

/// What has no number yet.
const UNSEEN: u32 = u32::MAX;

/// The signatures of a state, found by their slots.
struct SignatureIndex {
    numbers: HashTable<u32>,
    hashing: RandomState,
}

impl SignatureIndex {
    fn new(signatures: &[Vec<u32>]) -> Self {
        let (mut numbers, hashing) = (HashTable::with_capacity(signatures.len()), RandomState::new());
        for (signature, number) in signatures.iter().zip(0_u32..) {
            numbers.insert_unique(hashing.hash_one(signature), number, |of: &u32| {
                hashing.hash_one(&signatures[*of as usize])
            });
        }
        Self { numbers, hashing }
    }

    /// The number of a signature, which is added if it is new.
    fn number(&mut self, signature: Vec<u32>, signatures: &mut Vec<Vec<u32>>) -> u32 {
        let Self { numbers, hashing } = self;
        let hash = hashing.hash_one(&signature);
        if let Some(known) = numbers.find(hash, |of| signatures[*of as usize] == signature) {
            return *known;
        }
        let number = signatures.len() as u32;
        signatures.push(signature);
        *numbers.insert_unique(hash, number, |of| hashing.hash_one(&signatures[*of as usize])).get()
    }
}

/// The next state while it is made.
struct NightInProgress<'a> {
    state: State,
    table: NightInput<'a>,
    signatures: SignatureIndex,
    components: ComponentForest,
    /// Published rows with the positions of their members.
    published: Vec<PublishedMember>,
    tally: NightTally,
}

impl<'a> NightInProgress<'a> {
    fn new(state: State, table: NightInput<'a>) -> Self {
        let signatures = SignatureIndex::new(&state.signatures);
        let components = ComponentForest::new(state.buckets.iter().map(|bucket| bucket.component).collect());
        Self { state, table, signatures, components, published: Vec::new(), tally: NightTally::default() }
    }

    /// Publishes the survivors, and counts.
    fn take(&mut self, division: &mut Division) {
        let before = self.state.night - 1;
        let is_of_before = |member: &StateMember| before > 0 && member.last == before;
        self.published = std::mem::take(&mut division.survivors);
        let all = self.state.members.iter().filter(|member| is_of_before(member)).count() as u64;
        self.tally = NightTally {
            known: self.published.len() as u64 + division.changed,
            newcomers: division.newcomers.len() as u64,
            returning: self.published.len() as u64 - division.stayed,
            departed: all - division.here,
            changed: division.changed,
            withheld: division.withheld,
            ..NightTally::default()
        };
    }

    /// Founds buckets of newcomers, or lets all of them wait.
    fn found(
        &mut self,
        newcomers: Vec<Newcomer>,
        terms: &NightTerms<'_>,
        streams: &RandomStreams,
    ) -> Result<(), NightError> {
        let number = newcomers.len() as u64;
        if number < terms.min_newcomers.max(1) {
            self.tally.waiting = number;
            return Ok(());
        }
        let Some(buckets) =
            terms.founding.buckets(&founding::counts(&newcomers)).filter(|&b| (1..=number).contains(&b))
        else {
            self.tally.waiting = number;
            self.tally.ineligible = true;
            return Ok(());
        };
        // they may be few among many, who need no room for as many again
        self.state.members.reserve_exact(newcomers.len());
        for founders in founding::deal(newcomers, buckets as usize, &mut streams.stream("republish/founding")) {
            let bucket = self.bucket(founders.iter().map(|founder| founder.value).collect())?;
            for (founder, slot) in founders.iter().zip(0_u16..) {
                let person = PersonHash(self.table.persons[founder.row as usize]);
                let member = self.state.members.len() as u32;
                self.state.members.push(StateMember { person, bucket, slot, last: 0 });
                self.published.push(PublishedMember { row: founder.row, member });
            }
        }
        Ok(())
    }

    /// Founds buckets of movers. Who fits in none is withheld.
    fn move_changed(
        &mut self,
        movers: Vec<Mover>,
        terms: &NightTerms<'_>,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<(), NightError> {
        let number = movers.len() as u64;
        if terms.changes != ChangedValues::Move || number == 0 {
            return Ok(());
        }
        let mut stream = streams.stream("republish/movers");
        let groups = movers::groups(&self.state, movers, terms.group.max(1) as usize, &mut stream, control)?;
        for group in groups {
            let bucket = self.bucket(group.iter().map(|mover| mover.value).collect())?;
            for (mover, slot) in group.iter().zip(0_u16..) {
                let member = &mut self.state.members[mover.member as usize];
                (member.bucket, member.slot) = (bucket, slot);
                self.published.push(PublishedMember { row: mover.row, member: mover.member });
                self.tally.moved += 1;
            }
        }
        self.tally.withheld += number - self.tally.moved;
        Ok(())
    }

    fn mark_published(&mut self) {
        let State { members, night, .. } = &mut self.state;
        let mut is_published = vec![false; members.len()];
        self.published.iter().for_each(|published| is_published[published.member as usize] = true);
        let published = members.iter_mut().zip(is_published).filter(|(_, is_published)| *is_published);
        published.for_each(|(member, _)| member.last = *night);
    }

    /// Joins buckets in which a single member is left.
    fn merge(&mut self, grace: u32, streams: &RandomStreams, control: &Control) -> Result<(), NightError> {
        let State { members, buckets, night, .. } = &self.state;
        let mut present = vec![0_u32; buckets.len()];
        let mut recent = vec![0_u32; buckets.len()];
        for member in members {
            present[member.bucket as usize] += u32::from(member.last == *night);
            recent[member.bucket as usize] += u32::from(member.last.saturating_add(grace.max(1)) > *night);
        }
        let alone = (0..).zip(members).filter(|(_, StateMember { bucket, last, .. })| {
            let is_alone = last == night && present[*bucket as usize] == 1 && recent[*bucket as usize] == 1;
            // two persons of a merged bucket of two slots would have equal values for certain
            is_alone && self.state.signature(*bucket).len() >= 3
        });
        let alone = alone.map(|(member, &StateMember { bucket, slot, .. })| Single { member, bucket, slot });
        let mut alone: Vec<Single> = alone.collect();
        alone.sort_unstable_by_key(|single| single.bucket);
        let mut singles: BTreeMap<&[u32], Vec<Single>> = BTreeMap::new();
        for single in alone {
            singles.entry(self.state.signature(single.bucket)).or_default().push(single);
        }
        let mut stream = streams.stream("republish/merges");
        let mut made = Vec::new();
        for (signature, singles) in singles {
            control.check()?;
            let groups = merging::groups(&singles, &mut self.components, &mut stream);
            made.extend(groups.into_iter().map(|group| (signature.to_vec(), group)));
        }
        for (signature, group) in made {
            let bucket = self.bucket(signature)?;
            self.components.join(group[0].bucket, bucket);
            group.iter().for_each(|single| self.state.members[single.member as usize].bucket = bucket);
            self.tally.merged += 1;
        }
        Ok(())
    }

    /// A new bucket with a signature.
    fn bucket(&mut self, signature: Vec<u32>) -> Result<u32, NightError> {
        if signature.len() > usize::from(u16::MAX) {
            return Err(NightError::TooLarge);
        }
        let bucket = u32::try_from(self.state.buckets.len()).map_err(|_| NightError::TooLarge)?;
        let signature = self.signatures.number(signature, &mut self.state.signatures);
        self.state.buckets.push(StateBucket { signature, component: bucket });
        self.components.add();
        Ok(bucket)
    }

    fn finish(mut self, forget_after: Option<u32>) -> Night {
        let mut bucket_of = vec![None; self.table.persons.len()];
        let of_member: Vec<u32> = self.state.members.iter().map(|member| member.bucket).collect();
        let published = self.published.iter();
        published.for_each(|of| bucket_of[of.row as usize] = Some(of_member[of.member as usize]));
        let mut numbering = BucketNumbering::new(&self.state);
        for &row in self.table.order {
            if let Some(bucket) = &mut bucket_of[row as usize] {
                *bucket = numbering.member_of(*bucket);
            }
        }
        let BucketNumbering { buckets, signatures, .. } = numbering;
        let values = self.state.values.clone();
        // not yet that of this night
        self.state.digest = None;
        let State { past, night, .. } = &mut self.state;
        past.push(PastNight {
            night: *night,
            rows: self.published.len() as u64,
            slots: buckets.iter().map(|bucket| signatures[bucket.signature as usize].len() as u64).sum(),
            buckets: buckets.len() as u64,
        });
        past.drain(..past.len().saturating_sub(PastNight::KEPT));
        self.forget(forget_after);
        self.compact();
        // newcomers stand behind sorted members: a stable sort merges them
        self.state.members.sort_by_key(|member| member.person.number());
        Night { bucket_of, buckets, signatures, values, tally: self.tally, state: self.state }
    }

    fn forget(&mut self, after: Option<u32>) {
        let Some(after) = after else { return };
        let State { members, forgotten, night, .. } = &mut self.state;
        let is_kept = |member: &StateMember| *night - member.last < after.max(1);
        forgotten.extend(members.iter().filter(|member| !is_kept(member)).map(|member| member.person.prefix()));
        forgotten.sort_unstable();
        forgotten.dedup();
        members.retain(is_kept);
    }

    /// Drops buckets without members, and signatures and values that none has. ComponentForest stay.
    fn compact(&mut self) {
        let State { members, buckets, signatures, values, .. } = &mut self.state;
        let mut is_used = vec![false; buckets.len()];
        members.iter().for_each(|member| is_used[member.bucket as usize] = true);
        let kept = Renumbered::new(&is_used);
        let mut representative = vec![UNSEEN; buckets.len()];
        for (bucket, number) in kept.pairs() {
            let first = &mut representative[self.components.of(bucket) as usize];
            if *first == UNSEEN {
                *first = number;
            }
            buckets[bucket as usize].component = *first;
        }
        buckets.retain(with(&is_used));
        members.iter_mut().for_each(|member| member.bucket = kept.0[member.bucket as usize]);

        let mut is_used = vec![false; signatures.len()];
        buckets.iter().for_each(|bucket| is_used[bucket.signature as usize] = true);
        let kept = Renumbered::new(&is_used);
        signatures.retain(with(&is_used));
        buckets.iter_mut().for_each(|bucket| bucket.signature = kept.0[bucket.signature as usize]);

        let mut is_used = vec![false; values.len()];
        signatures.iter().flatten().for_each(|&value| is_used[value as usize] = true);
        let kept = Renumbered::new(&is_used);
        values.retain(with(&is_used));
        signatures.iter_mut().flatten().for_each(|value| *value = kept.0[*value as usize]);
    }
}

/// Numbers for the buckets that are published, and for their signatures, as they are met.
struct BucketNumbering<'a> {
    state: &'a State,
    /// By bucket and by signature of the state.
    of_bucket: Vec<u32>,
    of_signature: Vec<u32>,
    buckets: Vec<NightBucket>,
    signatures: Vec<Vec<u32>>,
}

impl<'a> BucketNumbering<'a> {
    fn new(state: &'a State) -> Self {
        let of_bucket = vec![UNSEEN; state.buckets.len()];
        let of_signature = vec![UNSEEN; state.signatures.len()];
        Self { state, of_bucket, of_signature, buckets: Vec::new(), signatures: Vec::new() }
    }

    /// Counts a member of a bucket, and gives the number of the bucket.
    fn member_of(&mut self, bucket: u32) -> u32 {
        let number = &mut self.of_bucket[bucket as usize];
        if *number == UNSEEN {
            *number = self.buckets.len() as u32;
            let signature = &mut self.of_signature[self.state.buckets[bucket as usize].signature as usize];
            if *signature == UNSEEN {
                *signature = self.signatures.len() as u32;
                self.signatures.push(self.state.signature(bucket).to_vec());
            }
            self.buckets.push(NightBucket { signature: *signature, members: 0 });
        }
        self.buckets[*number as usize].members += 1;
        *number
    }
}

/// The new number of each thing that is kept.
struct Renumbered(Vec<u32>);

impl Renumbered {
    fn new(is_used: &[bool]) -> Self {
        let mut next = 0;
        let number = |&is_used: &bool| {
            if !is_used {
                return u32::MAX;
            }
            next += 1;
            next - 1
        };
        Self(is_used.iter().map(number).collect())
    }

    /// The kept things, each with its new number.
    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(self.0.iter().copied()).filter(|(_, number)| *number != u32::MAX)
    }
}

/// A predicate for `retain`, by position.
fn with<T>(is_used: &[bool]) -> impl FnMut(&T) -> bool {
    let mut is_used = is_used.iter();
    move |_| is_used.next().copied().unwrap_or_default()
}

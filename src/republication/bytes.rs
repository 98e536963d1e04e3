//! The bytes of a state: versioned, bounded while they are read, and refused when damaged.

use std::fmt;

use sha2::{Digest, Sha256};

use super::state::{PersonHash, SensitiveText, State, StateBucket, StateMember};
use crate::publication::{NightDigest, PastNight};

const MAGIC: &[u8; 4] = b"GRST";
const VERSION: u8 = 2;
const DIGEST_BYTES: usize = 32;
/// The bytes of a person who is known, of a bucket, and of an earlier night.
const MEMBER_BYTES: usize = 26;
const BUCKET_BYTES: usize = 8;
const PAST_BYTES: usize = 28;
/// The bytes of what every state has once, at most.
const HEAD_BYTES: usize = 256;

/// The reason why bytes are not a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateError {
    /// They are no state of this kind, cut, or changed.
    Damaged,
    /// A later version of the program wrote them.
    Version(u8),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => f.write_str("the state of the population is damaged"),
            Self::Version(version) => write!(f, "the state of the population has the unknown version {version}"),
        }
    }
}

impl std::error::Error for StateError {}

impl State {
    /// The bytes of the state. Equal states have equal bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        put_bytes(&mut bytes, &self.terms);
        put(&mut bytes, self.night);
        put_bytes(&mut bytes, self.digest.as_ref().map_or(&[], |NightDigest(digits)| digits.as_bytes()));
        put(&mut bytes, self.past.len() as u32);
        for past in &self.past {
            put(&mut bytes, past.night);
            for number in [past.rows, past.slots, past.buckets] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        put(&mut bytes, self.values.len() as u32);
        for value in &self.values {
            bytes.push(u8::from(value.is_some()));
            put_bytes(&mut bytes, value.as_deref().unwrap_or_default());
        }
        put(&mut bytes, self.signatures.len() as u32);
        for signature in &self.signatures {
            bytes.extend_from_slice(&(signature.len() as u16).to_le_bytes());
            signature.iter().for_each(|&value| put(&mut bytes, value));
        }
        put(&mut bytes, self.buckets.len() as u32);
        for bucket in &self.buckets {
            put(&mut bytes, bucket.signature);
            put(&mut bytes, bucket.component);
        }
        put(&mut bytes, self.members.len() as u32);
        self.members.iter().for_each(|member| bytes.extend_from_slice(&member.to_bytes()));
        put(&mut bytes, self.forgotten.len() as u32);
        self.forgotten.iter().for_each(|prefix| bytes.extend_from_slice(&prefix.to_le_bytes()));
        let digest = Sha256::digest(&bytes);
        bytes.extend_from_slice(&digest);
        bytes
    }

    /// The room of [`State::to_bytes`], at least: a list that grows leaves a copy of the secret behind, and pages to be wiped.
    fn bytes(&self) -> usize {
        let of_values: usize = self.values.iter().map(|value| 5 + value.as_ref().map_or(0, |text| text.len())).sum();
        let of_signatures: usize = self.signatures.iter().map(|signature| 2 + 4 * signature.len()).sum();
        let of_lists = PAST_BYTES * self.past.len() + MEMBER_BYTES * self.members.len();
        let of_numbers = BUCKET_BYTES * self.buckets.len() + 8 * self.forgotten.len();
        HEAD_BYTES + self.terms.len() + of_values + of_signatures + of_lists + of_numbers
    }

    /// Reads the output of [`State::to_bytes`]. Nothing is allocated that the bytes do not hold.
    ///
    /// # Errors
    /// [`StateError`]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StateError> {
        let (content, digest) =
            bytes.split_at_checked(bytes.len().wrapping_sub(DIGEST_BYTES)).ok_or(StateError::Damaged)?;
        let rest = content.strip_prefix(MAGIC).ok_or(StateError::Damaged)?;
        let (&version, rest) = rest.split_first().ok_or(StateError::Damaged)?;
        if version != VERSION {
            return Err(StateError::Version(version));
        }
        if Sha256::digest(content)[..] != *digest {
            return Err(StateError::Damaged);
        }
        let mut reader = Reader(rest);
        let state = reader.state().filter(|_| reader.0.is_empty()).ok_or(StateError::Damaged)?;
        if state.is_sound() { Ok(state) } else { Err(StateError::Damaged) }
    }

    /// The number and the digest of the last night, from the beginning of the bytes of a state; `None` where they are none, or where
    /// nothing is published yet. The rest is not read.
    #[must_use]
    pub fn last_night(bytes: &[u8]) -> Option<(u32, NightDigest)> {
        let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&[VERSION])?;
        let mut reader = Reader(rest);
        reader.text()?;
        Some((reader.number()?, reader.digest()??))
    }

    /// Whether all numbers lead somewhere, lists are sorted, and no slot is taken twice.
    fn is_sound(&self) -> bool {
        let Self { terms, night, digest, past, values, signatures, buckets, members, forgotten } = self;
        let of_signatures = signatures.iter().all(|signature| {
            !signature.is_empty()
                && signature.is_sorted()
                && signature.iter().all(|&value| (value as usize) < values.len())
        });
        let of_buckets = buckets.iter().all(|bucket| {
            let representative = buckets.get(bucket.component as usize);
            (bucket.signature as usize) < signatures.len()
                && representative.is_some_and(|of| of.component == bucket.component && of.signature == bucket.signature)
        });
        let of_members = || {
            members.iter().all(|member| {
                (member.bucket as usize) < buckets.len()
                    && usize::from(member.slot) < self.signature(member.bucket).len()
                    && (1..=*night).contains(&member.last)
            })
        };
        let nights = past.iter().map(|past| past.night);
        terms.len() <= Self::MAX_TERMS
            && digest.as_ref().is_none_or(|NightDigest(digits)| *night > 0 && digits.len() == NightDigest::DIGITS)
            && past.len() == PastNight::KEPT.min(*night as usize)
            && nights.rev().eq((0..past.len() as u32).map(|before| night - before))
            && values.is_sorted_by(|a, b| a < b)
            && of_signatures
            && of_buckets
            && of_members()
            && members.is_sorted_by(|a, b| a.person < b.person)
            && self.has_slots_of_their_own()
            && forgotten.is_sorted_by(|a, b| a < b)
    }
}

impl State {
    /// Whether no two members have one slot. Their buckets and slots are known to be there.
    fn has_slots_of_their_own(&self) -> bool {
        let mut all = 0;
        let first = |bucket: &StateBucket| {
            let first = all;
            all += self.signatures[bucket.signature as usize].len();
            first
        };
        let first: Vec<usize> = self.buckets.iter().map(first).collect();
        let mut is_taken = vec![false; all];
        let place = |member: &StateMember| first[member.bucket as usize] + usize::from(member.slot);
        self.members.iter().all(|member| !std::mem::replace(&mut is_taken[place(member)], true))
    }
}

impl StateMember {
    /// At once: lists of members are long.
    fn to_bytes(self) -> [u8; MEMBER_BYTES] {
        let mut bytes = [0; MEMBER_BYTES];
        bytes[..16].copy_from_slice(&self.person.0);
        bytes[16..20].copy_from_slice(&self.bucket.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.slot.to_le_bytes());
        bytes[22..].copy_from_slice(&self.last.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; MEMBER_BYTES]) -> Option<Self> {
        let (person, rest) = bytes.split_first_chunk()?;
        let (bucket, rest) = rest.split_first_chunk()?;
        let (slot, last) = rest.split_first_chunk()?;
        Some(Self {
            person: PersonHash(*person),
            bucket: u32::from_le_bytes(*bucket),
            slot: u16::from_le_bytes(*slot),
            last: u32::from_le_bytes(last.try_into().ok()?),
        })
    }
}

fn put(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, text: &[u8]) {
    put(bytes, text.len() as u32);
    bytes.extend_from_slice(text);
}

/// What is left of the bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn state(&mut self) -> Option<State> {
        Some(State {
            terms: self.text()?.to_vec(),
            night: self.number()?,
            digest: self.digest()?,
            past: self.list(PAST_BYTES, Self::past)?,
            values: self.list(5, Self::value)?,
            signatures: self.list(2, Self::signature)?,
            buckets: self.list(BUCKET_BYTES, |reader| {
                Some(StateBucket { signature: reader.number()?, component: reader.number()? })
            })?,
            members: self.list(MEMBER_BYTES, Self::member)?,
            forgotten: self.list(8, |reader| reader.array().map(u64::from_le_bytes))?,
        })
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// A list whose items take at least `least` bytes each.
    fn list<T>(&mut self, least: usize, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()? as usize;
        if length > self.0.len() / least {
            return None;
        }
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(item(self)?);
        }
        Some(items)
    }

    fn digest(&mut self) -> Option<Option<NightDigest>> {
        let digits = std::str::from_utf8(self.text()?).ok()?;
        Some((!digits.is_empty()).then(|| NightDigest(digits.to_owned())))
    }

    fn past(&mut self) -> Option<PastNight> {
        let night = self.number()?;
        let mut number = || self.array().map(u64::from_le_bytes);
        Some(PastNight { night, rows: number()?, slots: number()?, buckets: number()? })
    }

    fn value(&mut self) -> Option<SensitiveText> {
        let [is_some] = self.array()?;
        match (is_some, self.text()?) {
            (0, []) => Some(None),
            (1, text) => Some(Some(text.into())),
            _ => None,
        }
    }

    fn signature(&mut self) -> Option<Vec<u32>> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        let (slots, rest) = self.0.split_at_checked(4 * length)?;
        self.0 = rest;
        Some(slots.as_chunks().0.iter().map(|value| u32::from_le_bytes(*value)).collect())
    }

    fn member(&mut self) -> Option<StateMember> {
        StateMember::from_bytes(&self.array()?)
    }
}

//! The rows of a night, and the persons of the states before and after it, brought together by their hashes.

use ahash::AHashMap;

use super::chain_state::{ChainStanding, ChainState, NO_VALUE, PersonHashBytes, person_number};

/// A person of the night: of the table, of the state before, of the state after, or of several of these.
#[derive(Clone, Copy)]
pub(super) struct NightPerson {
    /// The row of the table.
    pub(super) row: Option<u32>,
    /// The label of the bucket; 0 of who is not published.
    pub(super) label: u32,
    /// Where the person stood.
    pub(super) before: Option<ChainStanding>,
    /// Where the person stands.
    pub(super) after: Option<ChainStanding>,
    /// Whether the person was forgotten before the night, and after it.
    pub(super) was_forgotten: bool,
    pub(super) is_forgotten: bool,
    /// Whether a version of the person begins tonight: of a newcomer, or of one who moved.
    pub(super) begins: bool,
}

impl NightPerson {
    pub(super) const fn is_published(&self) -> bool {
        self.label > 0
    }
}

/// The rows of the table of a night.
#[derive(Clone, Copy)]
pub(super) struct LabelledPersons<'a> {
    pub(super) persons: &'a [PersonHashBytes],
    /// The label of the bucket of each row; 0 of who is not published.
    pub(super) labels: &'a [u32],
}

/// All persons of a night.
pub(super) struct JoinedPersons<'a> {
    before: &'a ChainState<'a>,
    after: &'a ChainState<'a>,
    places: Vec<JoinedPlace>,
}

/// Where a person of a night stands: a fraction of what is known of the person.
#[derive(Clone, Copy)]
struct JoinedPlace {
    /// The row of the table, and the numbers of the person in both states, or [`NOWHERE`].
    row: u32,
    before: u32,
    after: u32,
    label: u32,
    was_forgotten: bool,
    is_forgotten: bool,
    begins: bool,
}

/// The place of who is not there.
const NOWHERE: u32 = u32::MAX;

impl<'a> JoinedPersons<'a> {
    /// The persons of a table and of both states; `None` where a person has two rows.
    pub(super) fn new(
        table: LabelledPersons<'_>,
        before: &'a ChainState<'a>,
        after: &'a ChainState<'a>,
    ) -> Option<Self> {
        let rows = sorted_rows(table.persons)?;
        let signatures = EqualSignatures::new(before, after);
        let mut places = Vec::with_capacity(after.persons.len().max(rows.len()));
        let mut rows = rows.iter().map(|row| (person_number(&row.person), row.row)).peekable();
        let mut known = before.persons.hashes().zip(0..).peekable();
        let mut kept = after.persons.hashes().zip(0..).peekable();
        loop {
            let (row, earlier, standing) = (rows.peek(), known.peek(), kept.peek());
            if row.is_none() && earlier.is_none() && standing.is_none() {
                break;
            }
            let hash = |next: Option<&(u128, u32)>| next.map_or(u128::MAX, |(person, _)| *person);
            let person = hash(row).min(hash(earlier)).min(hash(standing));
            let at = |taken: Option<(u128, u32)>| taken.map_or(NOWHERE, |(_, at)| at);
            let row = at(rows.next_if(|(of, _)| *of == person));
            let earlier = at(known.next_if(|(of, _)| *of == person));
            let standing = at(kept.next_if(|(of, _)| *of == person));
            let bytes = person.to_be_bytes();
            places.push(JoinedPlace {
                row,
                before: earlier,
                after: standing,
                label: table.labels.get(row as usize).copied().unwrap_or(0),
                was_forgotten: before.has_forgotten(&bytes),
                is_forgotten: after.has_forgotten(&bytes),
                begins: match (before.persons.get(earlier), after.persons.get(standing)) {
                    (Some(earlier), Some(standing)) => !signatures.are_equal(earlier.bucket, standing.bucket),
                    _ => true,
                },
            });
        }
        Some(Self { before, after, places })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = NightPerson> {
        self.places.iter().map(move |place| NightPerson {
            row: (place.row != NOWHERE).then_some(place.row),
            label: place.label,
            before: self.before.persons.get(place.before),
            after: self.after.persons.get(place.after),
            was_forgotten: place.was_forgotten,
            is_forgotten: place.is_forgotten,
            begins: place.begins,
        })
    }
}

/// A row of the table, and its person.
struct SortedRow {
    person: PersonHashBytes,
    row: u32,
}

/// The rows of a table by rising hash of their persons; `None` where a person has two.
fn sorted_rows(persons: &[PersonHashBytes]) -> Option<Vec<SortedRow>> {
    let mut rows: Vec<SortedRow> =
        persons.iter().zip(0..).map(|(person, row)| SortedRow { person: *person, row }).collect();
    rows.sort_unstable_by_key(|row| person_number(&row.person));
    rows.is_sorted_by(|one, other| one.person < other.person).then_some(rows)
}

/// A number for the signature of each bucket of both states. Those of a bucket before and one after are equal exactly if the
/// signatures are.
struct EqualSignatures {
    before: Vec<u32>,
    after: Vec<u32>,
}

/// The number of a signature that the state after has not.
const UNEQUALLED: u32 = u32::MAX;

impl EqualSignatures {
    fn new(before: &ChainState<'_>, after: &ChainState<'_>) -> Self {
        let mut numbers: AHashMap<&[u32], u32> = AHashMap::with_capacity(after.signatures.len());
        let of_after = after.signatures.iter().zip(0..).map(|(slots, at)| *numbers.entry(slots).or_insert(at));
        let of_after: Vec<u32> = of_after.collect();
        let carried: Vec<u32> = before.values.iter().map(|value| after.place(value.as_deref())).collect();
        let mut slots = Vec::new();
        let of_before = before.signatures.iter().map(|signature| {
            slots.clear();
            slots.extend(signature.iter().map(|place| carried[*place as usize]));
            if slots.contains(&NO_VALUE) { UNEQUALLED } else { numbers.get(&slots[..]).copied().unwrap_or(UNEQUALLED) }
        });
        let of_before: Vec<u32> = of_before.collect();
        let of_buckets = |state: &ChainState<'_>, numbers: &[u32]| {
            state.buckets.iter().map(|bucket| numbers[bucket.signature as usize]).collect()
        };
        Self { before: of_buckets(before, &of_before), after: of_buckets(after, &of_after) }
    }

    /// Whether a bucket has the signature of one before.
    fn are_equal(&self, before: u32, after: u32) -> bool {
        self.before[before as usize] == self.after[after as usize]
    }
}

//! Conflicts of an earlier and a new table that no path is needed for, with the attributes and the remedy in words.

use uuid::Uuid;

use super::CompositionViolation;
use super::meeting::{MeetingTables, StandsAlone, reached};
use super::union::{CandidateRelease, EarlierTable, ExclusiveTable, LedgerUnion, NewRule};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::TableSchema;

impl LedgerUnion {
    /// The conflict of an earlier and a new table that no path is needed for.
    pub(super) fn table_conflict(
        &self,
        release: &CandidateRelease<'_>,
        pair: MeetingTables,
    ) -> Option<CompositionViolation> {
        let MeetingTables { earlier, new, tied, is_bound } = pair;
        let (schema, table) = (&self.schemas[earlier], &self.tables[earlier]);
        let (name, attributes) = (&table.name, release.tables[new].attributes);
        let sensitive = protected(&release.tables[new]);
        let conflict =
            |attr: Option<Attr>, detail: String| Some(self.without_path(table.release, release.rules, attr, detail));
        if let Some(twice) = table.bucketized.intersection(sensitive).iter().next() {
            let attribute = &self.places.names[twice.index()];
            let detail = format!(
                "{attribute} was bucketized before, in table {name} of release {}; buckets drawn a second time over the same people can be intersected",
                table.release
            );
            return conflict(Some(twice), detail);
        }
        let linked = self.linked_pair(table.bucketized, sensitive).filter(|_| schema.attributes.meets(attributes));
        if let Some((before, now)) = linked {
            let [before, now] = [before, now].map(|attr| &self.places.names[attr.index()]);
            let detail = format!(
                "{before}, which table {name} of release {} protects, and {now} predict each other, and both tables share \
                 attributes: the buckets of one narrow down those of the other",
                table.release
            );
            return conflict(None, detail);
        }
        // the requirements on the join cover joined releases
        let tied = tied.filter(|_| !self.joined.contains(&table.release))?;
        // buckets may be constant in an attribute that no table shows
        let tied = if tied.is_empty() { attributes } else { tied };
        let meeting = Meeting { shared: schema.attributes.intersection(attributes), tied };
        let of = table.release;
        if let Some(why) = table.alone.or_else(|| is_bound.then_some(StandsAlone::JoinedElsewhere)) {
            let (how, remedy) = (self.how(meeting), self.remedy(meeting, of, why != StandsAlone::LacksRows));
            let why = why.words();
            return conflict(
                None,
                format!("table {name} of release {of} {why} and {how} table t{}: {remedy}", new + 1),
            );
        }
        let ExclusiveTable { property, .. } = release.exclusive.iter().find(|exclusive| exclusive.table == new)?;
        let (how, remedy) = (self.how(meeting), self.remedy(meeting, of, *property == ExclusiveTable::EXCLUSIVE));
        conflict(None, format!("table t{} {property} and {how} table {name} of release {of}: {remedy}", new + 1))
    }

    /// Conflicts of tables that a chain of joins connects with the new release.
    ///
    /// No requirement of a sequential release covers them.
    pub(super) fn unjoined(
        &self,
        new: &[AttrSet],
        earlier: &[AttrSet],
        rules: &[NewRule],
    ) -> Vec<CompositionViolation> {
        if self.joined.is_empty() {
            return Vec::new();
        }
        let own = new.iter().fold(AttrSet::EMPTY, |all, closure| all.union(*closure));
        let found = reached(earlier, own);
        let joined = self.schemas.iter().zip(&self.tables).filter(|(_, table)| self.joined.contains(&table.release));
        let joined = joined.fold(AttrSet::EMPTY, |all, (schema, _)| all.union(schema.attributes));
        let others = (0..earlier.len())
            .filter(|&at| found[at] && !self.joined.contains(&self.tables[at].release) && !earlier[at].meets(own));
        let violation = |at: usize| {
            let EarlierTable { release, name, .. } = &self.tables[at];
            let attributes = self.schemas[at].attributes;
            let how = self.how(Meeting { shared: attributes.intersection(joined), tied: attributes });
            let detail = format!(
                "table {name} of release {release} {how} a release in /method/against, and would join with it: name \
                 {release} in /method/against, too"
            );
            self.without_path(*release, rules, None, detail)
        };
        others.map(violation).collect()
    }

    /// A protected attribute of an earlier table and one of a new table that predict each other.
    fn linked_pair(&self, before: AttrSet, now: AttrSet) -> Option<(Attr, Attr)> {
        self.linked.iter().copied().find(|(earlier, new)| before.contains(*earlier) && now.contains(*new))
    }

    /// How two tables can be joined, in words.
    fn how(&self, meeting: Meeting) -> String {
        let listed = self.places.named(meeting.attributes()).join(", ");
        match meeting.shared.is_empty() {
            false => format!("shares {listed} with"),
            true => format!("is linked by dependencies on {listed} with"),
        }
    }

    /// What to do about a table that meets one of an earlier release.
    fn remedy(&self, meeting: Meeting, release: Uuid, can_be_joined: bool) -> String {
        let left_out = format!("leave {} out of the new release", self.places.named(meeting.attributes()).join(", "));
        match can_be_joined {
            true => format!("{left_out}, or make it by sequential with {release} in /method/against"),
            false => left_out,
        }
    }
}

/// The attributes in which two tables meet.
#[derive(Clone, Copy)]
struct Meeting {
    /// Those of both.
    shared: AttrSet,
    /// Those of one that dependencies tie to the other.
    tied: AttrSet,
}

impl Meeting {
    const fn attributes(self) -> AttrSet {
        if self.shared.is_empty() { self.tied } else { self.shared }
    }
}

/// The attributes that the guards of a table protect.
fn protected(schema: &TableSchema) -> AttrSet {
    schema.guards.iter().flat_map(|guard| guard.protects.attributes().iter()).collect()
}

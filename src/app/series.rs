//! The public view of a series: its disclosures, active rules and refused pairs of attributes.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::blocking::run_blocking;
use super::service::AppService;
use crate::identity::Caller;
use crate::inputs::earlier_of;
use crate::ledger;
use crate::ledger::{
    ActiveRule, AttributeIdentities, Disclosure, EarlierDisclosures, RecordedDependency, RecordedProtection,
    TooManyAttributesError,
};
use crate::ports::{
    ActiveRuleRecord, Cursor, DisclosureRecord, ExternalDisclosure, LedgerSnapshot, SeriesEntry, SeriesRecord,
    Statement, StoreError,
};
use crate::problem::{Kind, Problem};
use crate::publication::{DisclosureStatus, ProtectionKind, ReleaseStatus};
use crate::report::{
    DependencyForm, ManifestGuard, Series, SeriesAttribute, SeriesDisclosure, SeriesPage, SeriesRule, SharedAttributes,
    Unproven, WeakenedRule, WeakenedRuleReference,
};

/// Most attributes of a content whose pairs are listed.
const MAX_PAIRED_ATTRIBUTES: usize = 64;

impl AppService {
    /// A page of a series of the caller's tenant: its datasets after one, at most `limit`.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn series(
        &self,
        caller: &Caller,
        name: String,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<SeriesPage, Problem> {
        let datasets = self.store.series_datasets(&caller.tenant, &name).await?;
        let place = LedgerPlace::new(&datasets, after, limit);
        let series = self.ledger_page(caller, name, &place).await?;
        let series = series.ok_or_else(|| Problem::new(Kind::NotFound, "there is no such series"))?;
        Ok(SeriesPage { series, next: place.next.map(|cursor| cursor.to_string()) })
    }

    /// What there is in a series of some of its datasets; none if there is nothing in it at all.
    ///
    /// # Errors
    /// The store's problem.
    pub(super) async fn ledger_page(
        &self,
        caller: &Caller,
        name: String,
        place: &LedgerPlace,
    ) -> Result<Option<Series>, Problem> {
        let LedgerPlace { from, to, .. } = *place;
        let record = self.store.series_between(&caller.tenant, &name, from, to).await?;
        let ledger = ledger_of(name, record).await?;
        Ok(ledger.map(|mut ledger| {
            ledger.datasets.retain(|dataset| place.has(*dataset));
            ledger
        }))
    }
}

/// Which of some ids stand on a page, which follow each other in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LedgerPlace {
    /// The first and the last id that may.
    pub(super) from: Uuid,
    pub(super) to: Uuid,
    /// Where to go on; none on the last page.
    pub(super) next: Option<Cursor>,
}

impl LedgerPlace {
    /// The page after a cursor of at most `limit` of these ids, which are in order.
    pub(super) fn new(ids: &[Uuid], after: Option<Cursor>, limit: u32) -> Self {
        let from = after.map_or(Uuid::nil(), |Cursor(last)| Uuid::from_u128(last.as_u128().saturating_add(1)));
        let rest = &ids[ids.partition_point(|id| *id < from)..];
        let last = rest.get((limit as usize).saturating_sub(1)).filter(|_| rest.len() > limit as usize).copied();
        Self { from, to: last.unwrap_or(Uuid::max()), next: last.map(Cursor) }
    }

    /// Whether an id stands on it.
    pub(super) fn has(&self, id: Uuid) -> bool {
        (self.from..=self.to).contains(&id)
    }
}

/// What there is in a series; none if there is nothing.
///
/// # Errors
/// The store's problem.
pub(super) async fn ledger_of(name: String, record: SeriesRecord) -> Result<Option<Series>, Problem> {
    let first = record.datasets.iter().map(|(_, at)| *at);
    let first = first.chain(record.statements.iter().map(|statement| statement.recorded_at));
    let first = first.chain(record.entries.iter().map(|entry| entry.entry.recorded_at)).min();
    let Some(created_at) = first else { return Ok(None) };
    // pairs by pairs by tables: not on a thread that answers others
    let shown = run_blocking("the listing of the series", move |_| shown(name, created_at, record)).await?;
    shown.map(Some).map_err(Problem::from)
}

fn shown(name: String, created_at: DateTime<Utc>, record: SeriesRecord) -> Result<Series, StoreError> {
    let (mut disclosures, mut active_rules) = (Vec::new(), Vec::new());
    let mut contents: BTreeMap<[u8; 32], LedgerSnapshot> = BTreeMap::new();
    for SeriesEntry { content_hash, status, entry } in record.entries {
        let disclosure: Disclosure = serde_json::from_value(entry.body.clone()).map_err(StoreError::corrupt)?;
        disclosures.push(disclosed(&entry, disclosure, status));
        contents.entry(content_hash).or_default().entries.push(entry);
    }
    for (content_hash, rule) in record.rules {
        active_rules.push(series_rule(&rule)?);
        contents.entry(content_hash).or_default().rules.push(rule);
    }
    // statements bind every content, also before there is one
    let mut declared = EarlierDisclosures::default();
    for record in &record.statements {
        let statement = Statement::read(record)?;
        statement.enter(&mut declared);
        disclosures.extend(statement.tables.iter().map(|table| declared_table(&statement, table, record.recorded_at)));
    }
    disclosures.sort_by_key(|disclosure| disclosure.id);
    if contents.is_empty() && !declared.disclosures.is_empty() {
        contents.insert([0; 32], LedgerSnapshot::default());
    }
    let mut series = Series {
        name,
        created_at: written(created_at),
        datasets: record.datasets.iter().map(|(id, _)| *id).collect(),
        attributes: attributes(&disclosures, &declared.identities),
        disclosures,
        active_rules,
        dependencies: Vec::new(),
        weakened: Vec::new(),
        graph: Vec::new(),
        refused_pairs: Vec::new(),
    };
    for snapshot in contents.values() {
        add_content(&mut series, &declared, snapshot)?;
    }
    series.graph.sort_unstable();
    series.refused_pairs.sort_unstable();
    series.refused_pairs.dedup();
    Ok(series)
}

fn series_rule(rule: &ActiveRuleRecord) -> Result<SeriesRule, StoreError> {
    let active: ActiveRule = serde_json::from_value(rule.body.clone()).map_err(StoreError::corrupt)?;
    let of_combination = !active.combination.is_empty();
    Ok(SeriesRule {
        release: rule.release,
        pointer: active.pointer,
        quasi_identifiers: active.quasi_identifiers,
        sensitive: if of_combination { active.combination } else { vec![active.sensitive] },
        guarantee: active.guarantee,
    })
}

/// A table that a statement declares.
fn declared_table(statement: &Statement, table: &ExternalDisclosure, recorded_at: DateTime<Utc>) -> SeriesDisclosure {
    let (id, name) = (table.id, table.name.clone());
    let entry = DisclosureRecord { id, release: id, table: name, body: Value::Null, recorded_at };
    let shown = disclosed(&entry, statement.disclosure(table), ReleaseStatus::Published);
    SeriesDisclosure { release: None, cuts: table.cuts.clone(), ..shown }
}

/// The attributes of a series, in the order in which they first occur.
fn attributes(disclosures: &[SeriesDisclosure], identities: &AttributeIdentities) -> Vec<SeriesAttribute> {
    let disclosed = disclosures.iter().flat_map(|disclosure| &disclosure.attributes).map(String::as_str);
    let mut attributes: Vec<&str> = Vec::new();
    for name in disclosed.chain(identities.aliases()).chain(identities.functions()) {
        let name = identities.canonical(name);
        if !attributes.contains(&name) {
            attributes.push(name);
        }
    }
    let attribute = |name: &str| SeriesAttribute {
        name: name.to_owned(),
        aliases: identities.aliases_of(name),
        function_of: identities.function_of(name),
    };
    attributes.into_iter().map(attribute).collect()
}

/// Adds what one content of a series discloses: its dependencies, weakened rules, and pairs of tables and attributes.
fn add_content(series: &mut Series, declared: &EarlierDisclosures, content: &LedgerSnapshot) -> Result<(), StoreError> {
    let published = earlier_of(content.entries.iter(), content.rules.iter())?;
    let mut earlier = declared.clone();
    earlier.disclosures.extend(published.disclosures);
    earlier.rules.extend(published.rules);
    for known in earlier.disclosures.iter().flat_map(|(_, disclosure)| &disclosure.dependencies) {
        let form = dependency(known);
        if !series.dependencies.contains(&form) {
            series.dependencies.push(form);
        }
    }
    let weakened = ledger::weakened_rules(&earlier).map_err(too_many)?;
    series.weakened.extend(weakened.into_iter().map(|weakened| WeakenedRule {
        rule: WeakenedRuleReference { release: weakened.release, pointer: weakened.pointer },
        dependency: dependency(&weakened.dependency),
        attributes: weakened.attributes,
    }));
    add_pairs(series, declared, content, &earlier)
}

fn dependency(recorded: &RecordedDependency) -> DependencyForm {
    DependencyForm { dependent: vec![recorded.dependent.clone()], determinant: recorded.determinant.clone() }
}

fn too_many(TooManyAttributesError(found): TooManyAttributesError) -> StoreError {
    StoreError::corrupt(format!("{found} attributes in one ledger"))
}

/// Adds the pairs of tables of a content that share attributes, and its pairs of attributes that a rule forbids.
fn add_pairs(
    series: &mut Series,
    declared: &EarlierDisclosures,
    content: &LedgerSnapshot,
    earlier: &EarlierDisclosures,
) -> Result<(), StoreError> {
    let identities = &declared.identities;
    let ids = declared.disclosures.iter().map(|(id, _)| *id).chain(content.entries.iter().map(|entry| entry.id));
    let tables: Vec<(Uuid, &Disclosure)> =
        ids.zip(earlier.disclosures.iter().map(|(_, disclosure)| disclosure)).collect();
    for (number, (b, second)) in tables.iter().enumerate() {
        for (a, first) in &tables[..number] {
            let shared = ledger::shared_attributes(identities, first, second);
            if !shared.is_empty() {
                series.graph.push(SharedAttributes { a: *a, b: *b, shared });
            }
        }
    }
    let attributes = tables.iter().flat_map(|(_, table)| &table.attributes);
    let mut names: Vec<String> = attributes.map(|name| identities.canonical(name).to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(MAX_PAIRED_ATTRIBUTES);
    series.refused_pairs.extend(ledger::conflicting_pairs(&names, earlier).map_err(too_many)?);
    Ok(())
}

fn disclosed(entry: &DisclosureRecord, disclosure: Disclosure, status: ReleaseStatus) -> SeriesDisclosure {
    let (protection, guards) = match disclosure.protection {
        RecordedProtection::Plain => (ProtectionKind::Plain, Vec::new()),
        RecordedProtection::Exclusive => (ProtectionKind::Exclusive, Vec::new()),
        RecordedProtection::Guarding(guards) => (ProtectionKind::Guarding, guards),
    };
    let guards = guards.into_iter().map(|guard| ManifestGuard {
        quasi_identifiers: guard.quasi_identifiers,
        sensitive: guard.sensitive,
        joint: guard.joint,
        guarantees: guard.guarantees,
        constant: guard.constant,
        closed: guard.closes,
    });
    SeriesDisclosure {
        id: entry.id,
        release: Some(entry.release),
        table: disclosure.table,
        attributes: disclosure.attributes,
        protection,
        guards: guards.collect(),
        cuts: BTreeMap::new(),
        status: match status {
            ReleaseStatus::Held => DisclosureStatus::Reserved,
            ReleaseStatus::Published => DisclosureStatus::Published,
            // a rejected release that was read stays in the ledger too
            ReleaseStatus::Rejected | ReleaseStatus::Withdrawn => DisclosureStatus::Withdrawn,
        },
        recorded_at: written(entry.recorded_at),
        unproven: disclosure.unproven.map(|reason| Unproven { reason }),
    }
}

pub(super) fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

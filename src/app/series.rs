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
use crate::ledger::{ActiveRule, Disclosure, EarlierDisclosures, RecordedProtection};
use crate::ports::{DisclosureRecord, LedgerSnapshot, SeriesEntry, SeriesRecord, Statement, StoreError};
use crate::problem::{Kind, Problem};
use crate::publication::{DisclosureStatus, ProtectionKind, ReleaseStatus};
use crate::report::{ManifestGuard, Series, SeriesAttribute, SeriesDisclosure, SeriesRule, SharedAttributes, Unproven};

/// Most attributes of a content whose pairs are listed.
const MAX_PAIRED_ATTRIBUTES: usize = 64;

impl AppService {
    /// A series of the caller's tenant.
    ///
    /// # Errors
    /// `not-found`, or the store's problem.
    pub async fn series(&self, caller: &Caller, name: String) -> Result<Series, Problem> {
        let record = self.store.series(&caller.tenant, &name).await?;
        let first = record.datasets.iter().map(|(_, at)| *at);
        let first = first.chain(record.statements.iter().map(|statement| statement.recorded_at));
        let first = first.chain(record.entries.iter().map(|entry| entry.entry.recorded_at)).min();
        let created_at = first.ok_or_else(|| Problem::new(Kind::NotFound, "there is no such series"))?;
        // pairs by pairs by tables: not on a thread that answers others
        let shown = run_blocking("the listing of the series", move |_| shown(name, created_at, record)).await?;
        shown.map_err(Problem::from)
    }
}

fn shown(name: String, created_at: DateTime<Utc>, record: SeriesRecord) -> Result<Series, StoreError> {
    let mut series = Series {
        name,
        created_at: written(created_at),
        datasets: record.datasets.iter().map(|(id, _)| *id).collect(),
        attributes: Vec::new(),
        disclosures: Vec::new(),
        active_rules: Vec::new(),
        graph: Vec::new(),
        refused_pairs: Vec::new(),
    };
    let mut contents: BTreeMap<[u8; 32], LedgerSnapshot> = BTreeMap::new();
    for SeriesEntry { content_hash, status, entry } in record.entries {
        let disclosure: Disclosure = serde_json::from_value(entry.body.clone()).map_err(StoreError::corrupt)?;
        series.disclosures.push(disclosed(&entry, disclosure, status));
        contents.entry(content_hash).or_default().entries.push(entry);
    }
    for (content_hash, rule) in record.rules {
        let protection: ActiveRule = serde_json::from_value(rule.body.clone()).map_err(StoreError::corrupt)?;
        let of_combination = !protection.combination.is_empty();
        series.active_rules.push(SeriesRule {
            release: rule.release,
            pointer: protection.pointer,
            quasi_identifiers: protection.quasi_identifiers,
            sensitive: if of_combination { protection.combination } else { vec![protection.sensitive] },
            guarantee: protection.guarantee,
        });
        contents.entry(content_hash).or_default().rules.push(rule);
    }
    // statements bind every content, also before there is one
    let mut declared_tables = EarlierDisclosures::default();
    for record in &record.statements {
        let statement = Statement::read(record)?;
        statement.enter(&mut declared_tables);
        for table in &statement.tables {
            let entry = DisclosureRecord {
                id: table.id,
                release: table.id,
                table: table.name.clone(),
                body: Value::Null,
                recorded_at: record.recorded_at,
            };
            let shown = disclosed(&entry, statement.disclosure(table), ReleaseStatus::Published);
            series.disclosures.push(SeriesDisclosure { release: None, cuts: table.cuts.clone(), ..shown });
        }
    }
    series.disclosures.sort_by_key(|disclosure| disclosure.id);
    let declared = series.disclosures.iter().flat_map(|disclosure| &disclosure.attributes).map(String::as_str);
    let identities = &declared_tables.identities;
    let mut attributes: Vec<&str> = Vec::new();
    for name in declared.chain(identities.aliases()).chain(identities.functions()) {
        let name = identities.canonical(name);
        if !attributes.contains(&name) {
            attributes.push(name);
        }
    }
    series.attributes = attributes
        .into_iter()
        .map(|name| SeriesAttribute {
            name: name.to_owned(),
            aliases: identities.aliases_of(name),
            function_of: identities.function_of(name),
        })
        .collect();
    if contents.is_empty() && !declared_tables.disclosures.is_empty() {
        contents.insert([0; 32], LedgerSnapshot::default());
    }
    for snapshot in contents.values() {
        let published = earlier_of(snapshot.entries.iter(), snapshot.rules.iter())?;
        let mut earlier = declared_tables.clone();
        earlier.disclosures.extend(published.disclosures);
        earlier.rules.extend(published.rules);
        let ids: Vec<Uuid> = declared_tables
            .disclosures
            .iter()
            .map(|(id, _)| *id)
            .chain(snapshot.entries.iter().map(|entry| entry.id))
            .collect();
        let mut names: Vec<String> = Vec::new();
        for (second, (_, disclosure)) in earlier.disclosures.iter().enumerate() {
            for (first, (_, before)) in earlier.disclosures[..second].iter().enumerate() {
                let shared = ledger::shared_attributes(identities, before, disclosure);
                if !shared.is_empty() {
                    let (a, b) = (ids[first], ids[second]);
                    series.graph.push(SharedAttributes { a, b, shared });
                }
            }
            names.extend(disclosure.attributes.iter().map(|name| identities.canonical(name).to_owned()));
        }
        names.sort_unstable();
        names.dedup();
        names.truncate(MAX_PAIRED_ATTRIBUTES);
        let refused = ledger::conflicting_pairs(&names, &earlier)
            .map_err(|error| StoreError::corrupt(format!("{} attributes in one ledger", error.0)))?;
        series.refused_pairs.extend(refused);
    }
    series.graph.sort_unstable();
    series.refused_pairs.sort_unstable();
    series.refused_pairs.dedup();
    Ok(series)
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

fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

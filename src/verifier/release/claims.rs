//! Checks of the claims, before a byte is read: names, columns, protections and rules.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::sequential::details;
use super::{decomposed, republished, slicing};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    EnforcedBy, Guarantee, MethodDetails, Part, Protected, PublishedTable, RowMeaning, SizeCount, TableGuard,
    TableName, TableProtection, Thresholds,
};
use crate::verifier::contract::checks::{CheckLog, CheckName, TableFigures};
use crate::verifier::contract::claim;
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::definition::gnf;
use crate::verifier::read::part::is_readable;

/// Checks the claims of a publication.
pub(in crate::verifier) fn check(input: &VerifierInput<'_>, log: &mut CheckLog) {
    let publication = input.publication;
    if publication.tables.is_empty() {
        log.fail(CheckName::Columns, "no table is published");
    }
    // rows that one table lacks are revealed by another that has them
    let is_single = publication.tables.len() == 1 && publication.tables[0].parts.iter().all(|part| part.bucketed);
    if publication.suppressed != 0 && !is_single {
        log.fail(CheckName::Dictionary, "rows are suppressed next to other tables, which no check covers");
    }
    match &publication.method_details {
        MethodDetails::None | MethodDetails::Bucketize { .. } => {}
        MethodDetails::Slicing { .. } => slicing::claims(input, log),
        MethodDetails::Sequential(sequence) => details::claims(input, sequence, log),
        MethodDetails::Decompose(_) => decomposed::claims(input, log),
        MethodDetails::Republish(_) => republished::claims(input, log),
    }
    names(input, log);
    for table in &publication.tables {
        columns(input, table, log);
        protection(input, table, log);
    }
    needs(input, log);
}

/// Checks that names are unique: those of tables and files, and the published name of each attribute.
fn names(input: &VerifierInput<'_>, log: &mut CheckLog) {
    let (mut tables, mut files) = (BTreeSet::new(), BTreeSet::new());
    let (mut names, mut attributes) = (BTreeMap::new(), BTreeMap::new());
    for table in &input.publication.tables {
        if !tables.insert(&table.name) {
            log.fail(CheckName::Columns, format!("two tables are named {}", table.name));
        }
        for part in &table.parts {
            if !files.insert(part.file(&table.name)) {
                log.fail(CheckName::Columns, format!("two parts share the file {}", part.file(&table.name)));
            }
            for column in &part.columns {
                let same = *names.entry(column.attribute).or_insert(&column.name) == &column.name
                    && *attributes.entry(&column.name).or_insert(column.attribute) == column.attribute;
                if !same || column.name == crate::verifier::read::part::BUCKET_COLUMN_NAME {
                    let name = input.name(column.attribute);
                    log.fail(CheckName::Columns, format!("the published name of {name} is not its own"));
                }
            }
        }
    }
}

/// Checks the columns of a table.
///
/// The attributes may be published, stand once in a table, and have readable cells.
///
/// Where columns share attributes, an attribute stands once in a part.
fn columns(input: &VerifierInput<'_>, table: &PublishedTable, log: &mut CheckLog) {
    let mut seen = AttrSet::EMPTY;
    if table.parts.is_empty() || table.parts.len() > 1 && !table.parts.iter().all(|part| part.bucketed) {
        log.fail(CheckName::Columns, format!("table {}: parts are not tied by bucket", table.name));
    }
    let repeats = claim::SlicingClaim::repeats(input);
    for part in &table.parts {
        if repeats {
            seen = AttrSet::EMPTY;
        }
        let place = format!("table {}, part {}", table.name, part.name);
        if part.columns.is_empty() {
            log.fail(CheckName::Columns, format!("{place}: there is no attribute"));
        }
        // the check of a decomposition covers its lists
        let listed = part.rows == RowMeaning::Values && claim::DecompositionClaim::from_input(input).is_some();
        if part.rows != RowMeaning::Tuples && !listed && !counterfeited(input, table, part) {
            log.fail(CheckName::Columns, format!("{place}: rows that are not tuples cannot be checked"));
        }
        if part.null.is_some() && (part.bucketed || part.columns.len() != 1) {
            log.fail(CheckName::Columns, format!("{place}: only a part of one column has a null marker"));
        }
        for column in &part.columns {
            let name = input.name(column.attribute);
            if !input.accounted.contains(column.attribute) || !is_readable(input, column.attribute) {
                log.fail(CheckName::Columns, format!("{place}: {name} is not to be published"));
            }
            if seen.contains(column.attribute) {
                log.fail(CheckName::Columns, format!("table {}: {name} is there twice", table.name));
            }
            seen = seen.with(column.attribute);
        }
    }
}

/// Whether a part may hold counterfeits.
///
/// It has the protected attribute alone, under a uniform threshold or in buckets that persist.
fn counterfeited(input: &VerifierInput<'_>, table: &PublishedTable, part: &Part) -> bool {
    let is_of_method = match (&input.publication.method_details, part.rows) {
        (MethodDetails::Bucketize { thresholds: Thresholds::Uniform { .. }, .. }, rows) => {
            matches!(rows, RowMeaning::TuplesAndCounterfeits { per_bucket } if per_bucket > 0)
        }
        (MethodDetails::Republish(_), rows) => rows == RowMeaning::TuplesAndVaryingCounterfeits,
        _ => false,
    };
    let protected = |guard: &TableGuard| {
        part.columns.len() == 1 && guard.protects == Protected::Attribute(part.columns[0].attribute)
    };
    let guarding = matches!(&table.protection, TableProtection::Guarding(guards) if guards.iter().any(protected));
    is_of_method && part.bucketed && guarding
}

/// Checks that the parts of a table have the shape that its protection needs.
fn protection(input: &VerifierInput<'_>, table: &PublishedTable, log: &mut CheckLog) {
    let name = &table.name;
    let mut fail = |detail: String| log.fail(CheckName::Guards, format!("table {name}: {detail}"));
    if claim::is_boxed(table) {
        if let Err(detail) = claim::boxed(input, table) {
            fail(detail);
        }
    } else if table.is_generalized() {
        if let Err(detail) = claim::claimed(input, table) {
            fail(detail);
        }
        return;
    }
    match &table.protection {
        TableProtection::Plain => {
            if table.parts.len() != 1 || table.parts[0].bucketed {
                fail("a plain table has one part without buckets".to_owned());
            }
        }
        TableProtection::Exclusive if claim::SlicingClaim::from_input(input).is_some() => {
            if !table.parts.iter().all(|part| part.bucketed) {
                fail("the parts of a sliced table are tied by bucket".to_owned());
            }
        }
        TableProtection::Exclusive if claim::DecompositionClaim::from_input(input).is_some() => {}
        // the check of requirements covers its joins
        TableProtection::Exclusive if details::sequential_details(input).is_some() => {}
        TableProtection::Exclusive => fail("an exclusive table cannot be checked".to_owned()),
        TableProtection::Guarding(guards) => {
            // all columns of a sliced table may be one
            let fewest = if matches!(input.publication.method_details, MethodDetails::Slicing { .. }) { 1 } else { 2 };
            if table.parts.len() < fewest || !table.parts.iter().all(|part| part.bucketed) {
                fail("a guarding table has several parts, all tied by bucket".to_owned());
            }
            if guards.is_empty() {
                fail("there is no guard".to_owned());
            }
            for guard in guards {
                if let Err(detail) = guarding(input, table, guard) {
                    fail(detail);
                }
            }
        }
    }
}

fn guarding(input: &VerifierInput<'_>, table: &PublishedTable, guard: &TableGuard) -> Result<(), String> {
    let sensitive = guard.protects.attributes();
    let names = input.list(sensitive);
    if matches!(guard.protects, Protected::Joint(_)) && sensitive.len() < 2 {
        return Err("a guarding combination has a single attribute".to_owned());
    }
    let columns = |part: &Part| part.columns.iter().map(|column| column.attribute).collect::<AttrSet>();
    if guard.known.meets(sensitive) {
        return Err(format!("{names} is on both sides of a guard"));
    }
    let attributes = gnf::LiteralTable::from_published(table).attributes;
    if !guard.known.is_subset(attributes) {
        let missing = input.list(guard.known.minus(attributes));
        return Err(format!("the guard of {names} names {missing}, which the table does not hold"));
    }
    // another part with the same buckets may hold attributes that determine the protected one; buckets do not protect
    // against an adversary who knows these
    let own = table.parts.iter().map(columns).find(|part| sensitive.is_subset(*part)).unwrap_or_default();
    let others =
        gnf::LiteralTable::from_published(table).guards.iter().filter(|other| other.protects != guard.protects);
    let behind = others.fold(AttrSet::EMPTY, |all, other| all.union(other.protects.attributes())).minus(own);
    if guard.known.meets(behind) {
        let known = input.list(guard.known.intersection(behind));
        return Err(format!("the guard of {names} takes {known} as known, which another part of the table protects"));
    }
    if guard.guarantees.is_empty() {
        return Err(format!("the guard of {names} guarantees nothing"));
    }
    // the rows decide about known attributes of the same part; an adversary with more knowledge needs another guard
    match table.parts.iter().find(|part| sensitive.is_subset(columns(part))) {
        Some(_) => Ok(()),
        None if sensitive.is_subset(attributes) => Err(format!("{names} do not stand in one part")),
        None => Err(format!("{names} is guarding and not in the table")),
    }
}

/// Checks that guards promise what the rules need that their tables enforce.
fn needs(input: &VerifierInput<'_>, log: &mut CheckLog) {
    let tables = &input.publication.tables;
    for rule in &input.publication.rules {
        let find = |name: &TableName| tables.iter().find(|table| table.name == *name);
        let (name, table, known) = match &rule.enforced_by {
            EnforcedBy::Unreachable => continue,
            EnforcedBy::Guardian { table, known } => (table, find(table), *known),
            EnforcedBy::Table(table) => {
                let found = find(table);
                (
                    table,
                    found,
                    found.map_or(rule.known, |t| {
                        rule.known.intersection(gnf::LiteralTable::from_published(t).attributes)
                    }),
                )
            }
        };
        // the rows decide which classes there are
        let by_classes = match rule.protects {
            Protected::Rows => matches!(rule.guarantee, Guarantee::KAnonymity { .. }) && table.is_some(),
            Protected::Attribute(attr) => claim::keeps_alone(input, known, attr, rule.guarantee),
            Protected::Joint(_) => false,
        };
        let by_mixture = |part: Protected| match (claim::SlicingClaim::from_input(input), part) {
            (Some(claim), Protected::Attribute(attr)) => claim.covers(known, attr, rule.guarantee),
            _ => false,
        };
        let by_claim = match (claim::DecompositionClaim::from_input(input), rule.protects) {
            (Some(claim), Protected::Attribute(attr)) => claim.covers(known, attr, rule.guarantee),
            _ => false,
        };
        let promised = by_classes
            || by_claim
            || table.is_some_and(|table| {
                let node = gnf::LiteralTable::from_published(table);
                let mut parts = crate::verifier::contract::claim::protections(input, rule.protects);
                parts.any(|part| node.holds(known, part, rule.guarantee) || by_mixture(part))
            });
        if !promised {
            let rule = rule.pointer.as_deref().unwrap_or("from a dependency");
            log.fail(CheckName::Guards, format!("table {name} does not promise what rule {rule} needs"));
        }
    }
}

/// Checks the details of bucketization: declared thresholds, setting of sizes, and loss.
pub(in crate::verifier) fn check_thresholds(input: &VerifierInput<'_>, figures: &[TableFigures], log: &mut CheckLog) {
    let MethodDetails::Bucketize { thresholds, setting, loss, lower_bound } = &input.publication.method_details else {
        let known: HashSet<(Attr, Guarantee)> =
            input.thresholds.iter().map(|declared| (declared.attribute, declared.thresholds.guarantee())).collect();
        let is_declared = |protects: Protected, guarantee: Guarantee| match (guarantee, protects) {
            (Guarantee::Thresholds { .. }, Protected::Attribute(attr)) => known.contains(&(attr, guarantee)),
            (guarantee, _) => !matches!(guarantee, Guarantee::Thresholds { .. }),
        };
        let rules = input.publication.rules.iter().map(|rule| (rule.protects, rule.guarantee));
        let guards = input.publication.tables.iter().flat_map(|table| match &table.protection {
            TableProtection::Guarding(guards) => &guards[..],
            _ => &[],
        });
        let guards = guards.flat_map(|guard| guard.guarantees.iter().map(|guarantee| (guard.protects, *guarantee)));
        if !rules.chain(guards).all(|(protects, guarantee)| is_declared(protects, guarantee)) {
            log.fail(CheckName::Guarantee, "a guarantee names thresholds that are not declared");
        }
        return;
    };
    let [rule] = input.submitted else {
        return log.fail(CheckName::Gnf, "thresholds belong to one rule");
    };
    let is_of_rule = match (thresholds, rule.guarantee) {
        (Thresholds::Uniform { l }, Guarantee::LDiversity { l: asked }) => *l == asked,
        (_, Guarantee::Thresholds { digest, .. }) => thresholds.name() == digest,
        _ => false,
    };
    if !is_of_rule {
        log.fail(CheckName::Guarantee, "the declared thresholds are not those of the rule");
    }
    let [figures] = figures else {
        return log.fail(CheckName::Buckets, "buckets by size stand in one table");
    };
    if !figures.sizes.iter().map(|(&size, &buckets)| SizeCount { size, buckets }).eq(setting.iter().copied()) {
        log.fail(CheckName::Buckets, "the buckets do not have the declared sizes");
    }
    let lost: u128 = figures.sizes.iter().map(|(&s, &b)| u128::from(b) * u128::from(s - 1) * u128::from(s - 1)).sum();
    if lost != u128::from(*loss) {
        log.fail(CheckName::Buckets, "the declared loss is not that of the buckets");
    }
    if lower_bound.is_some_and(|bound| bound > *loss) {
        log.fail(CheckName::Buckets, "the declared lower bound exceeds the loss of the buckets");
    }
}

use std::collections::BTreeSet;

use super::input::VerifierInput;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    CellContent, DecompositionDetails, EnforcedBy, EnforcedRule, Guarantee, MethodDetails, Part, Protected,
    PublishedColumn, PublishedTable, Ratio, RowMeaning, SlicedDiversity, TableGuard, TableProtection,
};
use crate::verifier::definition::gnf;
use crate::verifier::definition::guarantee::at_least;

/// Claim of two tables to be a decomposition [docs/spec/decompose.md#publication].
#[derive(Clone, Copy)]
pub(in crate::verifier) struct DecompositionClaim<'a> {
    pub(in crate::verifier) details: &'a DecompositionDetails,
    /// The table with the buckets.
    pub(in crate::verifier) buckets: &'a PublishedTable,
    /// The single part of the table of joint values.
    joint: &'a Part,
    /// The quasi-identifiers.
    pub(in crate::verifier) known: AttrSet,
}

fn attributes(part: &Part) -> AttrSet {
    part.columns.iter().map(|column| column.attribute).collect()
}

impl<'a> DecompositionClaim<'a> {
    /// The claim, where the publication has the shape of a decomposition.
    pub(in crate::verifier) fn from_input(input: &VerifierInput<'a>) -> Option<Self> {
        let MethodDetails::Decompose(details) = &input.publication.method_details else { return None };
        let [buckets, joint] = &input.publication.tables[..] else { return None };
        let ([qi, primary, values @ ..], [joint_part]) = (&buckets.parts[..], &joint.parts[..]) else { return None };
        let sensitive: AttrSet = details.l.keys().copied().collect();
        let others = details.l.keys().filter(|attr| **attr != details.primary);
        let exact = |part: &Part| part.columns.iter().all(|column| column.cells == CellContent::Exact);
        let exclusive =
            |table: &PublishedTable| table.protection == TableProtection::Exclusive && table.parts.iter().all(exact);
        let one = |part: &Part, attr: Attr| part.columns.len() == 1 && part.columns[0].attribute == attr;
        let fits = exclusive(buckets)
            && exclusive(joint)
            && buckets.parts.iter().all(|part| part.bucketed)
            && !joint_part.bucketed
            && [qi, primary, joint_part].iter().all(|part| part.rows == RowMeaning::Tuples)
            && sensitive.contains(details.primary)
            && !attributes(qi).meets(sensitive)
            && one(primary, details.primary)
            && values.iter().all(|part| part.rows == RowMeaning::Values)
            && values.len() + 1 == details.l.len()
            && values.iter().zip(others).all(|(part, attr)| one(part, *attr))
            && attributes(joint_part) == sensitive;
        fits.then(|| Self { details, buckets, joint: joint_part, known: attributes(qi) })
    }

    /// Whether the claim implies a rule: its sensitive attribute is listed with at least its guarantee.
    pub(in crate::verifier) fn covers(&self, known: AttrSet, attr: Attr, guarantee: Guarantee) -> bool {
        let l = self.details.l.get(&attr);
        known.is_subset(self.known) && l.is_some_and(|&l| at_least(Guarantee::LDiversity { l }, guarantee))
    }

    /// The guarantees of all sensitive attributes.
    pub(in crate::verifier) fn kept(&self) -> Vec<(Protected, Guarantee)> {
        let kept = |(attr, l): (&Attr, &u64)| (Protected::Attribute(*attr), Guarantee::LDiversity { l: *l });
        self.details.l.iter().map(kept).collect()
    }

    /// The guards that the buckets of a table keep by themselves.
    pub(in crate::verifier) fn promised(&self, table: &PublishedTable) -> Vec<TableGuard> {
        let l = self.details.l.get(&self.details.primary).filter(|_| table.name == self.buckets.name);
        let guard = |l: &u64| {
            TableGuard::new(
                self.known,
                Protected::Attribute(self.details.primary),
                vec![Guarantee::LDiversity { l: *l }],
            )
        };
        l.map(guard).into_iter().collect()
    }

    /// Whether the joint table lacks rows.
    pub(in crate::verifier) fn leaves_out(&self) -> bool {
        self.buckets.parts.first().is_none_or(|qi| qi.len != self.joint.len)
    }

    /// Whether the part is the one with the joint values.
    pub(in crate::verifier) fn is_joint(&self, part: &Part) -> bool {
        std::ptr::eq(part, self.joint)
    }

    pub(in crate::verifier) fn others(&self) -> impl Iterator<Item = Attr> {
        self.details.l.keys().copied().filter(|attr| *attr != self.details.primary)
    }
}

/// The attributes of a table whose cells stand for several values.
pub(in crate::verifier) fn shared(table: &PublishedTable) -> AttrSet {
    let columns = table.parts.iter().flat_map(|part| &part.columns);
    columns.filter(|column| column.cells != CellContent::Exact).map(|column| column.attribute).collect()
}

/// Checks that a generalized table has a shape that the verifier can read.
pub(in crate::verifier) fn claimed(input: &VerifierInput<'_>, table: &PublishedTable) -> Result<(), String> {
    let [part] = &table.parts[..] else {
        return Err("generalized cells stand in one part".to_owned());
    };
    if part.bucketed {
        return Err("generalized cells do not stand in buckets".to_owned());
    }
    let without_taxonomy = |column: &&PublishedColumn| {
        matches!(column.cells, CellContent::Node { .. })
            && input.taxonomies.iter().all(|declared| declared.attribute != column.attribute)
    };
    if let Some(column) = part.columns.iter().find(without_taxonomy) {
        return Err(format!(
            "{} is published as nodes, but no taxonomy of it is declared",
            input.name(column.attribute)
        ));
    }
    let (shared, attributes) =
        (shared(table), crate::verifier::definition::gnf::LiteralTable::from_published(table).attributes);
    match &table.protection {
        TableProtection::Plain => return Err("a plain table holds exact values".to_owned()),
        TableProtection::Exclusive => {}
        TableProtection::Guarding(guards) => {
            for guard in guards {
                let Protected::Attribute(attr) = guard.protects else {
                    return Err("a generalized table guards single attributes".to_owned());
                };
                // of two exact columns, each reveals the other
                if !attributes.without(attr).is_subset(shared) || guard.known != attributes.without(attr) {
                    let others = input.list(attributes.without(attr).minus(shared));
                    return Err(format!("a guard protects {} next to exact values of {others}", input.name(attr)));
                }
            }
        }
    }
    let enforced = input.publication.rules.iter().filter(|rule| is_enforced_by(rule, table));
    for rule in enforced {
        let exact = rule.known.intersection(attributes).minus(shared);
        if !exact.is_empty() {
            return Err(format!("{} are known and not generalized", input.list(exact)));
        }
    }
    Ok(())
}

fn is_enforced_by(rule: &EnforcedRule, table: &PublishedTable) -> bool {
    matches!(&rule.enforced_by, EnforcedBy::Table(name) if *name == table.name)
}

/// The guards that every class must keep; for an exclusive table, the rules that it enforces.
pub(in crate::verifier) fn promised(input: &VerifierInput<'_>, table: &PublishedTable) -> Vec<TableGuard> {
    if let TableProtection::Guarding(guards) = &table.protection {
        // all rows of a class agree on the known attributes
        return guards.iter().map(|guard| TableGuard { known: AttrSet::EMPTY, ..guard.clone() }).collect();
    }
    let mut promised: Vec<TableGuard> = Vec::new();
    for rule in
        input.publication.rules.iter().filter(|rule| is_enforced_by(rule, table) && rule.protects != Protected::Rows)
    {
        match promised.iter_mut().find(|guard| guard.protects == rule.protects) {
            Some(guard) => guard.guarantees.push(rule.guarantee),
            None => promised.push(TableGuard::new(AttrSet::EMPTY, rule.protects, vec![rule.guarantee])),
        }
    }
    promised
}

/// Whether the publication is one exclusive table that enforces such a rule in its classes.
pub(in crate::verifier) fn keeps_alone(
    input: &VerifierInput<'_>,
    known: AttrSet,
    sensitive: Attr,
    guarantee: Guarantee,
) -> bool {
    let [table] = &input.publication.tables[..] else { return false };
    let keeps = |rule: &EnforcedRule| {
        is_enforced_by(rule, table)
            && rule.protects == Protected::Attribute(sensitive)
            && known.is_subset(rule.known)
            && at_least(rule.guarantee, guarantee)
    };
    table.protection == TableProtection::Exclusive
        && table.is_generalized()
        && input.publication.rules.iter().any(keeps)
}

/// Checks that no table shows exact values of the known attributes, as k-anonymity of classes needs.
pub(in crate::verifier) fn hides(input: &VerifierInput<'_>, known: AttrSet) -> Result<(), String> {
    for table in &input.publication.tables {
        let exact = known
            .intersection(crate::verifier::definition::gnf::LiteralTable::from_published(table).attributes)
            .minus(shared(table));
        if !exact.is_empty() {
            return Err(format!("table {} shows exact values of {}", table.name, input.list(exact)));
        }
    }
    Ok(())
}

/// Number of rows with each value of a column.
pub(in crate::verifier) type ValueCounts = Vec<u64>;

/// The combinations that rules and guards protect.
pub(in crate::verifier) fn combinations(input: &VerifierInput<'_>) -> BTreeSet<AttrSet> {
    let guards = input.publication.tables.iter().flat_map(|table| gnf::LiteralTable::from_published(table).guards);
    let listed = input.publication.rules.iter().map(|rule| rule.protects);
    let submitted = input.submitted.iter().map(|rule| rule.protects);
    let all = guards.map(|guard| guard.protects).chain(listed).chain(submitted);
    all.filter(|protects| matches!(protects, Protected::Joint(_))).map(Protected::attributes).collect()
}

/// The attributes and combinations whose protection implies that of the sensitive side of a rule.
///
/// A joint value is at most as likely as each of its components, so each component and each combination of some
/// suffices.
pub(in crate::verifier) fn protections(
    input: &VerifierInput<'_>,
    protects: Protected,
) -> impl Iterator<Item = Protected> {
    let sensitive = protects.attributes();
    let mut within = combinations(input);
    within.insert(sensitive);
    let within = within.into_iter().filter(move |joint| joint.len() > 1 && joint.is_subset(sensitive));
    sensitive.iter().map(Protected::Attribute).chain(within.map(Protected::Joint))
}

/// Claim of a sliced table without a guard.
///
/// It is about all buckets together, or about columns that share attributes.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct SlicingClaim {
    /// All attributes of the table.
    attributes: AttrSet,
    pub(in crate::verifier) sensitive: Attr,
    guarantee: Guarantee,
    pub(in crate::verifier) l: Ratio,
    pub(in crate::verifier) diversity: SlicedDiversity,
    /// Whether columns share attributes.
    pub(in crate::verifier) shared: bool,
}

impl SlicingClaim {
    /// The claim, where the publication is one sliced table with one rule, and makes it.
    pub(in crate::verifier) fn from_input(input: &VerifierInput<'_>) -> Option<Self> {
        let publication = input.publication;
        let MethodDetails::Slicing { diversity, .. } = &publication.method_details else { return None };
        let ([table], [rule]) = (&publication.tables[..], &publication.rules[..]) else { return None };
        let Protected::Attribute(sensitive) = rule.protects else { return None };
        let l = match rule.guarantee {
            Guarantee::LDiversity { l } => Ratio::new(l, 1).ok()?,
            Guarantee::AlphaK { alpha, k: 0 | 1 } => Ratio::new(alpha.denominator(), alpha.numerator()).ok()?,
            _ => return None,
        };
        let attributes = gnf::LiteralTable::from_published(table).attributes;
        let shared = parts(table).map(|part| part.len()).sum::<usize>() > attributes.len();
        let fits = (shared || *diversity != SlicedDiversity::Bucket)
            && table.protection == TableProtection::Exclusive
            && rule.enforced_by == EnforcedBy::Table(table.name.clone())
            && attributes.contains(sensitive)
            && rule.known == attributes.without(sensitive);
        fits.then_some(Self { attributes, sensitive, guarantee: rule.guarantee, l, diversity: *diversity, shared })
    }

    /// Whether the claim implies a rule.
    pub(in crate::verifier) fn covers(&self, known: AttrSet, sensitive: Attr, guarantee: Guarantee) -> bool {
        sensitive == self.sensitive && known.is_subset(self.attributes) && at_least(self.guarantee, guarantee)
    }

    /// Whether an attribute may stand in several columns.
    pub(in crate::verifier) fn repeats(input: &VerifierInput<'_>) -> bool {
        Self::from_input(input).is_some_and(|claim| claim.shared)
    }

    /// Whether the claim is about the rows of the original.
    pub(in crate::verifier) fn needs_rows(&self) -> bool {
        self.diversity != SlicedDiversity::Bucket
    }

    /// The attributes of the table.
    pub(in crate::verifier) const fn attributes(&self) -> AttrSet {
        self.attributes
    }

    /// A guard without guarantees, so that figures of each bucket are computed.
    pub(in crate::verifier) fn figures_guard(&self) -> TableGuard {
        TableGuard::new(self.attributes.without(self.sensitive), Protected::Attribute(self.sensitive), Vec::new())
    }
}

/// Whether a table has buckets and cells that stand for several values.
pub(in crate::verifier) fn is_boxed(table: &PublishedTable) -> bool {
    table.is_generalized() && table.parts.iter().all(|part| part.bucketed)
}

/// Checks that the verifier can check a table of generalized columns.
///
/// All columns but the protected ones must be intervals, and the publication must declare the rows of each box.
pub(in crate::verifier) fn boxed(input: &VerifierInput<'_>, table: &PublishedTable) -> Result<(), String> {
    let MethodDetails::Slicing { diversity: SlicedDiversity::Bucket, column_k: Some(_), .. } =
        &input.publication.method_details
    else {
        return Err("its buckets hold generalized cells without a declared column k".to_owned());
    };
    let TableProtection::Guarding(guards) = &table.protection else {
        return Err("a table of generalized columns needs guards".to_owned());
    };
    let protected = guards.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()));
    for column in table.parts.iter().flat_map(|part| &part.columns) {
        let wanted = if protected.contains(column.attribute) { CellContent::Exact } else { CellContent::Interval };
        if column.cells != wanted {
            return Err(format!("{} has not the cells that a column of boxes needs", input.name(column.attribute)));
        }
    }
    Ok(())
}

pub(in crate::verifier) fn parts(table: &PublishedTable) -> impl Iterator<Item = AttrSet> {
    table.parts.iter().map(|part| part.columns.iter().map(|column| column.attribute).collect())
}

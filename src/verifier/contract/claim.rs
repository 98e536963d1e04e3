use std::collections::BTreeSet;

use super::evidence::Evidence;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    CellContent, DecompositionDetails, EnforcedBy, EnforcedRule, Guarantee, MethodDetails, Part, Protected,
    PublishedColumn, PublishedTable, Ratio, RowMeaning, SlicedDiversity, TableGuard, TableProtection,
};
use crate::verifier::definition::gnf;
use crate::verifier::definition::guarantee::at_least;

/// Two tables that claim to be a decomposition.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct DecompositionClaim<'a> {
    pub(in crate::verifier) said: &'a DecompositionDetails,
    /// The table of buckets.
    pub(in crate::verifier) buckets: &'a PublishedTable,
    /// The one part of the table of joint values.
    joint: &'a Part,
    /// The quasi-identifiers.
    pub(in crate::verifier) known: AttrSet,
}

fn attributes(part: &Part) -> AttrSet {
    part.columns.iter().map(|column| column.attribute).collect()
}

impl<'a> DecompositionClaim<'a> {
    /// The claim, where the publication has the shape of a decomposition.
    pub(in crate::verifier) fn from_evidence(evidence: &Evidence<'a>) -> Option<Self> {
        let MethodDetails::Decompose(said) = &evidence.publication.method_details else { return None };
        let [buckets, joint] = &evidence.publication.tables[..] else { return None };
        let ([qi, primary, values @ ..], [joint_part]) = (&buckets.parts[..], &joint.parts[..]) else { return None };
        let sensitive: AttrSet = said.l.keys().copied().collect();
        let others = said.l.keys().filter(|attr| **attr != said.primary);
        let exact = |part: &Part| part.columns.iter().all(|column| column.cells == CellContent::Exact);
        let exclusive =
            |table: &PublishedTable| table.protection == TableProtection::Exclusive && table.parts.iter().all(exact);
        let one = |part: &Part, attr: Attr| part.columns.len() == 1 && part.columns[0].attribute == attr;
        let fits = exclusive(buckets)
            && exclusive(joint)
            && buckets.parts.iter().all(|part| part.bucketed)
            && !joint_part.bucketed
            && [qi, primary, joint_part].iter().all(|part| part.rows == RowMeaning::Tuples)
            && sensitive.contains(said.primary)
            && !attributes(qi).meets(sensitive)
            && one(primary, said.primary)
            && values.iter().all(|part| part.rows == RowMeaning::Values)
            && values.len() + 1 == said.l.len()
            && values.iter().zip(others).all(|(part, attr)| one(part, *attr))
            && attributes(joint_part) == sensitive;
        fits.then(|| Self { said, buckets, joint: joint_part, known: attributes(qi) })
    }

    /// Whether a rule asks for what is claimed: one of its sensitive attributes, with no more than is stated.
    pub(in crate::verifier) fn covers(&self, known: AttrSet, attr: Attr, guarantee: Guarantee) -> bool {
        let l = self.said.l.get(&attr);
        known.is_subset(self.known) && l.is_some_and(|&l| at_least(Guarantee::LDiversity { l }, guarantee))
    }

    /// What its buckets promise by themselves.
    pub(in crate::verifier) fn promised(&self, table: &PublishedTable) -> Vec<TableGuard> {
        let l = self.said.l.get(&self.said.primary).filter(|_| table.name == self.buckets.name);
        let guard = |l: &u64| TableGuard {
            known: self.known,
            protects: Protected::Attribute(self.said.primary),
            guarantees: vec![Guarantee::LDiversity { l: *l }],
        };
        l.map(guard).into_iter().collect()
    }

    /// Whether the joint table lacks rows.
    pub(in crate::verifier) fn leaves_out(&self) -> bool {
        self.buckets.parts.first().is_none_or(|qi| qi.len != self.joint.len)
    }

    /// Whether the part is the one of joint values.
    pub(in crate::verifier) fn is_joint(&self, part: &Part) -> bool {
        std::ptr::eq(part, self.joint)
    }

    pub(in crate::verifier) fn others(&self) -> impl Iterator<Item = Attr> {
        self.said.l.keys().copied().filter(|attr| *attr != self.said.primary)
    }
}

/// The attributes of a table whose cells stand for several values.
pub(in crate::verifier) fn shared(table: &PublishedTable) -> AttrSet {
    let columns = table.parts.iter().flat_map(|part| &part.columns);
    columns.filter(|column| column.cells != CellContent::Exact).map(|column| column.attribute).collect()
}

/// Whether the shape of a generalized table is one that this audit reads.
pub(in crate::verifier) fn claimed(evidence: &Evidence<'_>, table: &PublishedTable) -> Result<(), String> {
    let [part] = &table.parts[..] else {
        return Err("generalized cells stand in one part".to_owned());
    };
    if part.bucketed {
        return Err("generalized cells do not stand in buckets".to_owned());
    }
    let bare = |column: &&PublishedColumn| {
        matches!(column.cells, CellContent::Node { .. })
            && evidence.taxonomies.iter().all(|stated| stated.attribute != column.attribute)
    };
    if let Some(column) = part.columns.iter().find(bare) {
        return Err(format!("no taxonomy of {} is stated, whose nodes are published", evidence.name(column.attribute)));
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
                // of two exact columns each tells of the other
                if !attributes.without(attr).is_subset(shared) || guard.known != attributes.without(attr) {
                    let others = evidence.list(attributes.without(attr).minus(shared));
                    return Err(format!("{} is guarding beside exact values of {others}", evidence.name(attr)));
                }
            }
        }
    }
    let leaning = evidence.publication.rules.iter().filter(|rule| leans(rule, table));
    for rule in leaning {
        let exact = rule.known.intersection(attributes).minus(shared);
        if !exact.is_empty() {
            return Err(format!("{} are known and not generalized", evidence.list(exact)));
        }
    }
    Ok(())
}

fn leans(rule: &EnforcedRule, table: &PublishedTable) -> bool {
    matches!(&rule.enforced_by, EnforcedBy::Table(name) if *name == table.name)
}

/// What every class is to keep: the guards, or, in an exclusive table, the rules that it holds.
pub(in crate::verifier) fn promised(evidence: &Evidence<'_>, table: &PublishedTable) -> Vec<TableGuard> {
    if let TableProtection::Guarding(guards) = &table.protection {
        // all rows of a class agree in what is known
        return guards.iter().map(|guard| TableGuard { known: AttrSet::EMPTY, ..guard.clone() }).collect();
    }
    let mut promised: Vec<TableGuard> = Vec::new();
    for rule in evidence.publication.rules.iter().filter(|rule| leans(rule, table) && rule.protects != Protected::Rows)
    {
        match promised.iter_mut().find(|guard| guard.protects == rule.protects) {
            Some(guard) => guard.guarantees.push(rule.guarantee),
            None => promised.push(TableGuard {
                known: AttrSet::EMPTY,
                protects: rule.protects,
                guarantees: vec![rule.guarantee],
            }),
        }
    }
    promised
}

/// Whether the publication is one exclusive table that lists such a rule as its own: its classes are held to it.
pub(in crate::verifier) fn keeps_alone(
    evidence: &Evidence<'_>,
    known: AttrSet,
    sensitive: Attr,
    guarantee: Guarantee,
) -> bool {
    let [table] = &evidence.publication.tables[..] else { return false };
    let keeps = |rule: &EnforcedRule| {
        leans(rule, table)
            && rule.protects == Protected::Attribute(sensitive)
            && known.is_subset(rule.known)
            && at_least(rule.guarantee, guarantee)
    };
    table.protection == TableProtection::Exclusive
        && table.is_generalized()
        && evidence.publication.rules.iter().any(keeps)
}

/// Whether no table shows exact values of what is known: classes are then held to k-anonymity.
pub(in crate::verifier) fn hides(evidence: &Evidence<'_>, known: AttrSet) -> Result<(), String> {
    for table in &evidence.publication.tables {
        let exact = known
            .intersection(crate::verifier::definition::gnf::LiteralTable::from_published(table).attributes)
            .minus(shared(table));
        if !exact.is_empty() {
            return Err(format!("table {} shows exact values of {}", table.name, evidence.list(exact)));
        }
    }
    Ok(())
}

/// How often each value of a column occurs.
pub(in crate::verifier) type ValueCounts = Vec<u64>;

/// The combinations that rules and guards speak of.
pub(in crate::verifier) fn combinations(evidence: &Evidence<'_>) -> BTreeSet<AttrSet> {
    let guards = evidence.publication.tables.iter().flat_map(|table| gnf::LiteralTable::from_published(table).guards);
    let listed = evidence.publication.rules.iter().map(|rule| rule.protects);
    let submitted = evidence.submitted.iter().map(|rule| rule.protects);
    let all = guards.map(|guard| guard.protects).chain(listed).chain(submitted);
    all.filter(|protects| matches!(protects, Protected::Joint(_))).map(Protected::attributes).collect()
}

/// What protects a rule's sensitive side when it is protected itself: each attribute, and each combination of some or all (a
/// joint value is no more likely than what it consists of).
pub(in crate::verifier) fn protections(
    evidence: &Evidence<'_>,
    protects: Protected,
) -> impl Iterator<Item = Protected> {
    let sensitive = protects.attributes();
    let mut within = combinations(evidence);
    within.insert(sensitive);
    let within = within.into_iter().filter(move |joint| joint.len() > 1 && joint.is_subset(sensitive));
    sensitive.iter().map(Protected::Attribute).chain(within.map(Protected::Joint))
}

/// A table that claims its guarantee without a guard: over all buckets together, or in columns that share attributes.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct SlicingClaim {
    /// All its attributes.
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
    pub(in crate::verifier) fn from_evidence(evidence: &Evidence<'_>) -> Option<Self> {
        let publication = evidence.publication;
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

    /// Whether the claim is what a rule asks for.
    pub(in crate::verifier) fn covers(&self, known: AttrSet, sensitive: Attr, guarantee: Guarantee) -> bool {
        sensitive == self.sensitive && known.is_subset(self.attributes) && at_least(self.guarantee, guarantee)
    }

    /// Whether an attribute may stand in several columns: where a publication is one table that says so of itself.
    pub(in crate::verifier) fn repeats(evidence: &Evidence<'_>) -> bool {
        Self::from_evidence(evidence).is_some_and(|claim| claim.shared)
    }

    /// Whether it speaks of the rows of the original.
    pub(in crate::verifier) fn needs_rows(&self) -> bool {
        self.diversity != SlicedDiversity::Bucket
    }

    /// The attributes of the table.
    pub(in crate::verifier) const fn attributes(&self) -> AttrSet {
        self.attributes
    }

    /// What its buckets are looked at for: figures of each by itself, which promise nothing.
    pub(in crate::verifier) fn looked_at(&self) -> TableGuard {
        TableGuard {
            known: self.attributes.without(self.sensitive),
            protects: Protected::Attribute(self.sensitive),
            guarantees: Vec::new(),
        }
    }
}

/// Whether a table is tied by bucket and has cells that stand for several values.
pub(in crate::verifier) fn is_boxed(table: &PublishedTable) -> bool {
    table.is_generalized() && table.parts.iter().all(|part| part.bucketed)
}

/// Whether what a table of generalized columns says of them can be checked: all but what is protected is intervals, and it is said how
/// many rows each box holds.
pub(in crate::verifier) fn boxed(evidence: &Evidence<'_>, table: &PublishedTable) -> Result<(), String> {
    let MethodDetails::Slicing { diversity: SlicedDiversity::Bucket, column_k: Some(_), .. } =
        &evidence.publication.method_details
    else {
        return Err("its buckets hold cells of several values, and nothing says of how many rows".to_owned());
    };
    let TableProtection::Guarding(guards) = &table.protection else {
        return Err("columns that are generalized are guarding".to_owned());
    };
    let protected = guards.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()));
    for column in table.parts.iter().flat_map(|part| &part.columns) {
        let wanted = if protected.contains(column.attribute) { CellContent::Exact } else { CellContent::Interval };
        if column.cells != wanted {
            return Err(format!("{} is not published as a column of boxes has it", evidence.name(column.attribute)));
        }
    }
    Ok(())
}

pub(in crate::verifier) fn parts(table: &PublishedTable) -> impl Iterator<Item = AttrSet> {
    table.parts.iter().map(|part| part.columns.iter().map(|column| column.attribute).collect())
}

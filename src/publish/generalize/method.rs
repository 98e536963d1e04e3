//! The method `generalize`: one table of one part, its quasi-identifiers in cells that the rows of a class share.

use super::cells::CutOrder;
use super::{GeneralizationInput, GeneralizeError, intervals, nodes, sets};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Axis, BoundTaxonomy, Column, Interner, Table};
use crate::microdata::{write_set, write_span};
use crate::privacy::{self, RuleDemand};
use crate::publication::{
    CellContent, Guarantee, MethodDetails, PartContents, Protected, Publication, PublicationCells, PublishedColumn,
    PublishedTable, TableGuard, TableName, TableProtection, TableWitness, Witness,
};
use crate::publish::assign::BucketAssignment;
use crate::publish::dispatch::Method;
use crate::publish::error::PlanError;
use crate::publish::input::PlanInput;
use crate::publish::partition::MedianSplit;
use crate::publish::published::Published;
use crate::publish::single::{column_of_texts, of_one_part};
use crate::publish::{Decision, Design, DesignedRule, DesignedTable, Generalized};
use crate::random::RandomStreams;
use crate::spec::{CellKind, ClassSplit, GeneralizeSpec};

/// The method `generalize`.
pub struct Generalize;

impl Method for Generalize {
    type Spec = GeneralizeSpec;
    type Plan = Design;

    fn plan(spec: &GeneralizeSpec, input: &PlanInput<'_>, _: &Control) -> Result<Design, PlanError> {
        let rules = designed_rules(spec, input);
        let guard = |attr: Attr| TableGuard {
            known: spec.quasi_identifiers,
            protects: Protected::Attribute(attr),
            guarantees: rules.iter().filter(|r| r.rule.sensitive == attr).map(|r| r.rule.guarantee).collect(),
        };
        let protected: AttrSet = rules.iter().map(|rule| rule.rule.sensitive).collect();
        let k = spec.rules.iter().find_map(|rule| match rule.guarantee {
            Guarantee::KAnonymity { k } => Some(k),
            _ => None,
        });
        let generalized = Generalized {
            quasi_identifiers: spec.quasi_identifiers,
            cells: spec.cells,
            split: match spec.split {
                ClassSplit::Strict => MedianSplit::Strict,
                ClassSplit::Relaxed => MedianSplit::Relaxed,
            },
            k,
            rows: input.counts.rows(),
            keeps: protected.iter().map(guard).collect(),
            // beside a second exact attribute, whoever knows that one's value knows more of the first
            guarding: protected.len() == 1 && protected == spec.sensitive,
        };
        let table = DesignedTable::generalized(spec.quasi_identifiers.union(spec.sensitive), generalized);
        // a split is refused where a half would break a guarantee, and that it was tells of the data
        Ok(Design { tables: vec![table], rules, used_dependencies: Vec::new(), decision: Decision::ByData(None) })
    }

    fn publish(
        plan: &Design,
        input: &PlanInput<'_>,
        table: &Table,
        _: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        let mut published = Published {
            publication: Publication {
                tables: Vec::new(),
                rules: plan.protection(true),
                method_details: MethodDetails::None,
                suppressed: 0,
            },
            contents: PublicationCells { tables: Vec::new() },
            witness: Witness { tables: Vec::new() },
        };
        for (index, designed) in plan.tables.iter().enumerate() {
            let Some(generalized) = &designed.generalized else { continue };
            let made = make(TableName::at(index), designed.attributes, generalized, input, table, control)?;
            published.publication.tables.push(made.0);
            published.contents.tables.push(vec![made.1]);
            published.witness.tables.push(made.2);
        }
        Ok(published)
    }
}

/// The rules of the specification, but for k-anonymity, as they stand in the one table.
fn designed_rules(spec: &GeneralizeSpec, input: &PlanInput<'_>) -> Vec<DesignedRule> {
    let protecting = spec.rules.iter().filter(|rule| rule.protects != Protected::Rows);
    let mut rules: Vec<DesignedRule> = protecting.map(|rule| DesignedRule::submitted(rule, input)).collect();
    let demands: Vec<RuleDemand> = rules.iter().map(DesignedRule::demand).collect();
    for rule in &mut rules {
        rule.status = privacy::RuleStatus::Guardian { table: 0, known: rule.rule.known };
        let Ok(expansion) = privacy::expand(&[rule.demand()], input.dependencies, MAX_FOLLOWED) else { continue };
        // what follows is kept where another rule asks for it
        let kept = |demand: &RuleDemand| demands.iter().any(|other| other.implies(demand));
        let broken = expansion.derived.iter().find(|derived| !kept(&derived.demand)).map(|derived| derived.because);
        let told = expansion.impossible.first().or(expansion.unsupported.first()).map(|(_, dependency)| *dependency);
        rule.impossible = told.or(broken);
    }
    rules
}

/// So many rules may follow from one; beyond, the verifier refuses.
const MAX_FOLLOWED: usize = 10_000;

fn make(
    name: TableName,
    attributes: AttrSet,
    generalized: &Generalized,
    input: &PlanInput<'_>,
    table: &Table,
    control: &Control,
) -> Result<(PublishedTable, PartContents, TableWitness), Cancelled> {
    let kept = |guard: &TableGuard| {
        let attr = guard.protects.attributes().iter().next();
        attr.map_or_else(Vec::new, |attr| guard.guarantees.iter().map(|&guarantee| (attr, guarantee)).collect())
    };
    let generalization = GeneralizationInput {
        quasi_identifiers: generalized.quasi_identifiers,
        k: generalized.k.unwrap_or(1),
        guarantees: generalized.keeps.iter().flat_map(kept).collect(),
        split: generalized.split,
        max_attempts: None,
    };
    let order = CutOrder { table, cells: generalized.cells };
    let classes = match generalization.classes(table, &order, control) {
        Ok(classes) => classes,
        Err(GeneralizeError::Cancelled(cancelled)) => return Err(cancelled),
        Err(GeneralizeError::Empty) => BucketAssignment { bucket_of: Vec::new(), buckets: 0 },
        Err(GeneralizeError::TooFewRows { .. } | GeneralizeError::NotKept(_)) => {
            unreachable!("a design that the data cannot keep is not executed")
        }
    };
    let mut columns = Vec::with_capacity(attributes.len());
    let mut described = Vec::with_capacity(attributes.len());
    for attribute in attributes.iter() {
        control.check()?;
        let column = table.column(attribute);
        let shared = generalized.quasi_identifiers.contains(attribute);
        // what has no taxonomy is a number, and stays an interval
        let tree = table.annotations(attribute).taxonomy().filter(|_| generalized.cells == CellKind::Node);
        let name = input.published_names[attribute.index()].clone();
        columns.push(match shared {
            true => shared_cells(column, generalized.cells, tree, &classes),
            false => column.clone(),
        });
        let cells = match (generalized.cells, tree) {
            _ if !shared => CellContent::Exact,
            (CellKind::Set, _) => CellContent::Set,
            (CellKind::Node, Some(_)) => CellContent::Node { taxonomy: name.clone(), cut: None },
            (CellKind::Interval | CellKind::Node, _) => CellContent::Interval,
        };
        described.push(PublishedColumn { attribute, name, cells });
    }
    let protection = match generalized.guarding {
        true => TableProtection::Guarding(generalized.keeps.clone()),
        false => TableProtection::Exclusive,
    };
    of_one_part((name, protection), (described, columns), table.rows(), control)
}

/// The interval of the class of each row, as text.
pub(in crate::publish) fn interval_cells(column: &Column, classes: &BucketAssignment) -> Column {
    shared_cells(column, CellKind::Interval, None, classes)
}

/// The text of the cell that each row shares with its class. Of a class without values an interval is missing, and so is a node that is
/// the missing value as a leaf.
fn shared_cells(column: &Column, cells: CellKind, tree: Option<&BoundTaxonomy>, classes: &BucketAssignment) -> Column {
    let domain = &column.domain;
    let mut texts = Interner::default();
    let mut text = Vec::new();
    let mut number = |write: &mut dyn FnMut(&mut Vec<u8>)| {
        text.clear();
        write(&mut text);
        texts.intern(&text)
    };
    let numbers: Vec<Option<u32>> = match (cells, tree) {
        (_, Some(tree)) => nodes(column, classes, tree)
            .iter()
            .map(|&node| {
                let label = tree.tree().label(node)?;
                Some(number(&mut |text| text.extend_from_slice(label.as_bytes())))
            })
            .collect(),
        (CellKind::Set, None) => sets(column, classes)
            .iter()
            .map(|codes| {
                let values = || codes.iter().map(|&code| domain.value(code));
                Some(number(&mut |text| write_set(domain.kind(), values(), text)))
            })
            .collect(),
        (CellKind::Interval | CellKind::Node, None) => intervals(column, &Axis::from_domain(domain), classes)
            .iter()
            .map(|interval| {
                let (first, last) = interval.ends?;
                let from = if interval.missing { None } else { domain.value(first) };
                let to = domain.value(last)?;
                Some(number(&mut |text| write_span(from, to, text)))
            })
            .collect(),
    };
    column_of_texts(texts, &numbers, classes.bucket_of.iter().copied())
}

//! Checks of proposed tables: the rules they violate, and the tables that are redundant.

use super::types::paths;
use crate::ledger::LedgerUnion;
use crate::microdata::AttrSet;
use crate::model::{JoinTree, TableView};
use crate::privacy::RuleStatus;
use crate::problem::{Fault, Kind};
use crate::publication::{NoticeKind, TableName};
use crate::publish;
use crate::publish::{Design, DesignedTable};
use crate::report::SpecificationNotice;
use crate::spec::Specification;

/// The faults of rules that the tables of a design violate; `names` are those of the attributes.
pub(in crate::engine) fn violations(design: &Design, names: &[String]) -> Vec<Fault> {
    let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].as_str()).collect::<Vec<_>>();
    let violated = design.rules.iter().filter(|rule| !rule.is_refused()).filter_map(|rule| match &rule.status {
        RuleStatus::Violated(violation) => Some((rule, violation)),
        _ => None,
    });
    let fault = violated.map(|(rule, violation)| {
        let (reaching, sensitive) = (named(violation.reaching), named(AttrSet::one(rule.rule.sensitive)));
        let detail = format!(
            "{} reaches {}, and no table guards it: use another algorithm, or leave out one of these attributes",
            reaching.join(", "),
            sensitive.join(", ")
        );
        // a rule from a dependency has no pointer
        let pointer = rule.pointer.as_deref().unwrap_or("/method/rules");
        Fault::new(pointer, Kind::NotGnf, detail)
            .with("violated_by", reaching)
            .with("paths", paths(design, &rule.rule, violation))
    });
    fault.collect()
}

/// Notices on proposed tables that guard no rule, omit attributes, or form no join tree.
pub(in crate::engine) fn redundant_tables(
    specification: &Specification,
    design: &Design,
    union: &LedgerUnion,
) -> Vec<SpecificationNotice> {
    let Some(tables) = &specification.schema else { return Vec::new() };
    let notice = |r#type: NoticeKind, pointer: String, detail: String| SpecificationNotice {
        r#type,
        pointer: Some(pointer),
        detail,
    };
    let mut notices = Vec::new();
    for index in publish::redundant(design, &union.schemas, &union.rules) {
        let detail = format!("{} guards no rule: its buckets protect nothing", TableName::at(index));
        notices.push(notice(NoticeKind::IdleBucketization, format!("/schema/{index}/sensitive"), detail));
    }
    let proposed = tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes));
    let left: Vec<&str> = specification
        .attributes
        .minus(proposed)
        .iter()
        .map(|attr| specification.published_names[attr.index()].as_str())
        .collect();
    if !left.is_empty() {
        let detail = format!("no table holds {}", left.join(", "));
        notices.push(notice(NoticeKind::AttributeInNoTable, "/schema".to_owned(), detail));
    }
    let view = |table: &DesignedTable| match table.bucketized() {
        Some(bucketized) => {
            let known = table.attributes.minus(bucketized.sensitive());
            TableView::tied(std::iter::once(known).chain(bucketized.parts.iter().copied()))
        }
        None => TableView::plain(table.attributes),
    };
    let tree = JoinTree::from_views(&design.tables.iter().map(view).collect::<Vec<_>>());
    let why = match tree.mixed {
        _ if !tree.acyclic => Some("they share attributes in a ring".to_owned()),
        Some((tied, other)) => {
            Some(format!("{} ties by buckets what {} shows together", TableName::at(tied), TableName::at(other)))
        }
        None => None,
    };
    if let Some(why) = why {
        let detail = format!("the model of the tables has no closed form: {why}");
        notices.push(notice(NoticeKind::NotDecomposable, "/schema".to_owned(), detail));
    }
    notices
}

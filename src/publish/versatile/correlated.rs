//! Correlated sensitive attributes.
//!
//! Two tables may protect one of them each and share an attribute. Then the buckets of one narrow down those of the other. Such
//! tables become one, with both attributes in parts of their own behind the same buckets. A bucket then reveals of each attribute
//! what it reveals of it alone.
//!
//! See `docs/spec/guardian-normal-form.md#correlated-attributes`.

use std::collections::BTreeMap;

use super::ground::{DecompositionInput, TableDraft, without_redundant};
use super::score::EntropyScorer;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::{self, Dependency};
use crate::publish::designed_rule::{DesignedRule, RuleRejection};
use crate::publish::input::PlanRows;
use crate::spec::CorrelatedPolicy;

/// Correlations of sensitive attributes, computed when needed.
pub(super) struct CorrelatedAttributes<'a> {
    rows: PlanRows<'a>,
    dependencies: &'a [Dependency],
    declared_policy: CorrelatedPolicy,
    control: &'a Control,
    known: BTreeMap<(Attr, Attr), Option<Correlation>>,
}

/// How one attribute predicts another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Correlation {
    /// By a dependency.
    Dependent,
    /// In most rows of the data.
    Mostly,
}

const LINKED_BY_DEPENDENCY_DETAIL: &str = "a dependency links what it protects to what another table protects, and both tables share an attribute: in \
                     tables of their own, the buckets of one tell of the other; use uad without addback, or \"correlated\": \
                     \"together\"";
const KNOWN_SIDE_REVEALS_DETAIL: &str = "its known side holds an attribute that tells the sensitive one and is protected behind the same buckets; take it \
                     out of the known side, use uad without addback, or state \"correlated\": \"separate\" where no dependency links \
                     them";

impl<'a> CorrelatedAttributes<'a> {
    /// Correlations of which none is computed yet.
    pub(super) fn new(
        rows: PlanRows<'a>,
        dependencies: &'a [Dependency],
        declared_policy: CorrelatedPolicy,
        control: &'a Control,
    ) -> Self {
        Self { rows, dependencies, declared_policy, control, known: BTreeMap::new() }
    }

    /// Joins tables that share an attribute and whose sensitive attributes are correlated. Attributes that a joined table
    /// protects stand in no other table.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn together(&mut self, tables: Vec<TableDraft>) -> Result<Vec<TableDraft>, Cancelled> {
        let mut tables = tables;
        if self.declared_policy == CorrelatedPolicy::Separate {
            return Ok(tables);
        }
        while let Some((one, other)) = self.first_linked(&tables)? {
            let other = tables.remove(other);
            let TableDraft { attributes, sensitive } = tables[one];
            tables[one] = TableDraft {
                attributes: attributes.union(other.attributes),
                sensitive: sensitive.union(other.sensitive),
            };
        }
        let tied = tables.iter().filter(|table| table.is_tied());
        let tied = tied.fold(AttrSet::EMPTY, |all, table| all.union(table.sensitive));
        if tied.is_empty() {
            return Ok(tables);
        }
        let mut apart = Vec::new();
        for table in tables {
            let table = table.minus(if table.is_tied() { tied.minus(table.sensitive) } else { tied });
            match table.known().is_empty() {
                // with no known attribute there is nothing to protect from
                true => apart.extend(table.attributes.iter().map(|attr| TableDraft::plain(AttrSet::one(attr)))),
                false => apart.push(table),
            }
        }
        Ok(without_redundant(&apart))
    }

    fn first_linked(&mut self, tables: &[TableDraft]) -> Result<Option<(usize, usize)>, Cancelled> {
        for (index, one) in tables.iter().enumerate() {
            for (other, table) in tables.iter().enumerate().skip(index + 1) {
                if one.attributes.meets(table.attributes) && self.linked(one, table)?.is_some() {
                    return Ok(Some((index, other)));
                }
            }
        }
        Ok(None)
    }

    /// Draws shared buckets as the release draws them, for the scores of decompositions.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn draw(
        &self,
        ground: &DecompositionInput<'_>,
        tied: AttrSet,
        scorer: &mut EntropyScorer<'_>,
    ) -> Result<(), Cancelled> {
        let table = ground.designed(&TableDraft { attributes: tied, sensitive: tied });
        match table.bucketized() {
            Some(buckets) => scorer.tie(tied, buckets.draw(self.rows.table, self.rows.streams, self.control)?),
            None => Ok(()),
        }
    }

    /// Rejects the rules that correlations make impossible in `tables`.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn mark(&mut self, rules: &mut [DesignedRule], tables: &[TableDraft]) -> Result<(), Cancelled> {
        let apart = self.apart(tables)?;
        for rule in rules.iter_mut().filter(|rule| rule.implied_by.is_none()) {
            let (known, sensitive) = (rule.rule.known, rule.rule.sensitive);
            let revealed = |table: &&TableDraft| table.sensitive.contains(sensitive) && table.sensitive.meets(known);
            if apart.contains(sensitive) {
                rule.reject(RuleRejection::Correlated(LINKED_BY_DEPENDENCY_DETAIL));
            } else if tables.iter().any(|table| revealed(&table)) {
                rule.reject(RuleRejection::Correlated(KNOWN_SIDE_REVEALS_DETAIL));
            }
        }
        Ok(())
    }

    /// Protected attributes that a dependency links across tables with a common attribute.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn apart(&mut self, tables: &[TableDraft]) -> Result<AttrSet, Cancelled> {
        let mut all = AttrSet::EMPTY;
        for (index, one) in tables.iter().enumerate() {
            for other in &tables[index + 1..] {
                if one.attributes.meets(other.attributes)
                    && let Some((a, b)) = self.linked(one, other)?
                {
                    all = all.with(a).with(b);
                }
            }
        }
        Ok(all)
    }

    /// Two correlated sensitive attributes, one of each table.
    fn linked(&mut self, one: &TableDraft, other: &TableDraft) -> Result<Option<(Attr, Attr)>, Cancelled> {
        for a in one.sensitive.iter() {
            for b in other.sensitive.iter().filter(|&b| b != a) {
                match self.link(a.min(b), a.max(b))? {
                    Some(Correlation::Dependent) => return Ok(Some((a, b))),
                    Some(Correlation::Mostly) if self.declared_policy == CorrelatedPolicy::Together => {
                        return Ok(Some((a, b)));
                    }
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    fn link(&mut self, a: Attr, b: Attr) -> Result<Option<Correlation>, Cancelled> {
        if let Some(known) = self.known.get(&(a, b)) {
            return Ok(*known);
        }
        let dependent = |from: Attr, to: Attr| {
            let mut revealed = AttrSet::one(from);
            // determination is transitive
            loop {
                let more = self.dependencies.iter().filter(|d| d.determinant.is_subset(revealed));
                let wider = more.fold(revealed, |all, d| all.with(d.dependent));
                if wider == revealed {
                    break;
                }
                revealed = wider;
            }
            let with_others = |d: &Dependency| d.dependent == to && d.determinant.contains(from);
            revealed.contains(to) || self.dependencies.iter().any(with_others)
        };
        let link = if dependent(a, b) || dependent(b, a) {
            Some(Correlation::Dependent)
        } else if self.declared_policy == CorrelatedPolicy::Separate {
            None
        } else {
            let table = self.rows.table;
            let mostly = privacy::mostly_determines(table, a, b, self.control)?
                || privacy::mostly_determines(table, b, a, self.control)?;
            mostly.then_some(Correlation::Mostly)
        };
        self.known.insert((a, b), link);
        Ok(link)
    }
}

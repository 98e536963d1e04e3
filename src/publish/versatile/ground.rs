//! What decompositions are judged on: drafts of tables, the rules, and what is published already.

use std::collections::BTreeMap;

use crate::microdata::{Attr, AttrSet};
use crate::privacy::{self, PrivacyRule, RuleStatus, TableSchema};
use crate::publication::Guarantee;
use crate::publish::designed_table::{Bucketized, DesignedTable};

/// A table under consideration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableDraft {
    /// All its attributes.
    pub attributes: AttrSet,
    /// The attributes that buckets part from the others, each in a part of its own; none where tuples are whole.
    pub sensitive: AttrSet,
}

impl TableDraft {
    /// A table of whole tuples.
    #[must_use]
    pub const fn plain(attributes: AttrSet) -> Self {
        Self { attributes, sensitive: AttrSet::EMPTY }
    }

    /// A table in which buckets part one attribute from the others.
    #[must_use]
    pub const fn on(attributes: AttrSet, sensitive: Attr) -> Self {
        Self { attributes, sensitive: AttrSet::one(sensitive) }
    }

    /// The attributes that stand with the rows.
    #[must_use]
    pub const fn known(&self) -> AttrSet {
        self.attributes.minus(self.sensitive)
    }

    /// Whether several sensitive attributes share its buckets.
    #[must_use]
    pub const fn is_tied(&self) -> bool {
        self.sensitive.len() > 1
    }

    /// The table with another attribute beside those known.
    #[must_use]
    pub const fn with(self, attr: Attr) -> Self {
        Self { attributes: self.attributes.with(attr), ..self }
    }

    /// The table without some attributes.
    #[must_use]
    pub const fn minus(self, attrs: AttrSet) -> Self {
        Self { attributes: self.attributes.minus(attrs), sensitive: self.sensitive.minus(attrs) }
    }
}

/// The rules, and the tables that are published already.
#[derive(Clone, Debug)]
pub struct DecompositionInput<'a> {
    /// The attributes to publish.
    pub attributes: AttrSet,
    /// The rules of the job, none implied by another, in the order in which they are to be looked at.
    pub rules: Vec<PrivacyRule>,
    protection: &'a [PrivacyRule],
    earlier: &'a [TableSchema],
    guarantees: BTreeMap<Attr, Vec<Guarantee>>,
}

impl<'a> DecompositionInput<'a> {
    /// The ground of a job beside what the ledger holds.
    #[must_use]
    pub fn new(
        attributes: AttrSet,
        rules: Vec<PrivacyRule>,
        protection: &'a [PrivacyRule],
        earlier: &'a [TableSchema],
    ) -> Self {
        let mut into: BTreeMap<Attr, Vec<Guarantee>> = BTreeMap::new();
        for rule in rules.iter().chain(protection).filter(|rule| attributes.contains(rule.sensitive)) {
            into.entry(rule.sensitive).or_default().push(rule.guarantee);
        }
        let guarantees = into.into_iter().map(|(attr, all)| (attr, privacy::strongest(all))).collect();
        Self { attributes, rules, protection, earlier, guarantees }
    }

    /// The same without what is published already.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self::new(self.attributes, self.rules.clone(), &[], &[])
    }

    /// All rules: those of the job first.
    pub(super) fn all_rules(&self) -> impl Iterator<Item = &PrivacyRule> {
        self.rules.iter().chain(self.protection)
    }

    /// What buckets on `sensitive` keep: the strongest guarantees of all rules that protect it, whatever is known to whom. So
    /// they are the same in every decomposition.
    pub fn guarantees(&self, sensitive: Attr) -> &[Guarantee] {
        self.guarantees.get(&sensitive).map_or(&[], Vec::as_slice)
    }

    /// The table that a draft is of.
    pub(super) fn designed(&self, draft: &TableDraft) -> DesignedTable {
        let asked: Vec<(Attr, &[Guarantee])> =
            draft.sensitive.iter().map(|attr| (attr, self.guarantees(attr))).collect();
        let bucketized = (!asked.is_empty()).then(|| Bucketized::together(draft.attributes, &asked));
        DesignedTable::new(draft.attributes, bucketized)
    }

    /// The attributes that rules protect.
    pub fn protected(&self) -> AttrSet {
        self.guarantees.keys().copied().collect()
    }

    fn schema(&self, draft: &TableDraft) -> TableSchema {
        self.designed(draft).schema()
    }

    /// The drafts, and behind them what is published already, as the check of Guardian Normal Form sees them.
    fn schemas(&self, drafts: &[TableDraft]) -> Vec<TableSchema> {
        drafts.iter().map(|draft| self.schema(draft)).chain(self.earlier.iter().cloned()).collect()
    }

    /// The rules, by index into [`DecompositionInput::all_rules`], that the drafts break together with what is published already.
    #[must_use]
    pub fn violated(&self, drafts: &[TableDraft]) -> Vec<usize> {
        let schemas = self.schemas(drafts);
        let violated = |rule: &PrivacyRule| matches!(privacy::judge(&schemas, rule), RuleStatus::Violated(_));
        self.all_rules().enumerate().filter(|(_, rule)| violated(rule)).map(|(index, _)| index).collect()
    }

    /// Whether every rule holds.
    #[must_use]
    pub fn holds(&self, drafts: &[TableDraft]) -> bool {
        let schemas = self.schemas(drafts);
        !self.all_rules().any(|rule| matches!(privacy::judge(&schemas, rule), RuleStatus::Violated(_)))
    }

    /// Publishes raw what guards no rule: its buckets would protect nothing. Where a rule is broken nothing is certain, and
    /// every protection stays.
    #[must_use]
    pub fn released(&self, drafts: &[TableDraft]) -> Vec<TableDraft> {
        let schemas = self.schemas(drafts);
        let mut active = vec![false; schemas.len()];
        for rule in self.all_rules() {
            match privacy::judge(&schemas, rule) {
                RuleStatus::Unreachable => {}
                RuleStatus::Guardian { table, .. } => active[table] = true,
                RuleStatus::Violated(_) => return drafts.to_vec(),
            }
        }
        let kept = |(draft, active): (&TableDraft, &bool)| match *active || draft.is_tied() {
            true => *draft,
            false => TableDraft::plain(draft.attributes),
        };
        drafts.iter().zip(&active).map(kept).collect()
    }
}

/// The drafts without the column of `attr`.
pub(super) fn stripped(drafts: &[TableDraft], attr: Attr) -> Vec<TableDraft> {
    drafts.iter().map(|draft| draft.minus(AttrSet::one(attr))).filter(|draft| !draft.attributes.is_empty()).collect()
}

/// The drafts without those that say nothing beside another; of equal ones the first is kept.
pub(super) fn without_redundant(drafts: &[TableDraft]) -> Vec<TableDraft> {
    let says_it = |this: usize, other: usize| {
        let (t, o) = (&drafts[this], &drafts[other]);
        let shown = match t.sensitive.is_empty() {
            true => !t.attributes.meets(o.sensitive) || t.attributes.len() == 1,
            false => t.sensitive == o.sensitive,
        };
        let equal = t.attributes == o.attributes && t.sensitive == o.sensitive;
        other != this && t.attributes.is_subset(o.attributes) && shown && (!equal || other < this)
    };
    let kept = |this: &usize| !(0..drafts.len()).any(|other| says_it(*this, other));
    (0..drafts.len()).filter(kept).map(|this| drafts[this]).collect()
}

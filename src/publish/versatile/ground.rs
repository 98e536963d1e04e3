//! Input of a decomposition: drafts of tables, the rules, and earlier tables.

use std::collections::BTreeMap;

use crate::microdata::{Attr, AttrSet};
use crate::privacy::{self, PrivacyRule, RuleStatus, TableSchema};
use crate::publication::Guarantee;
use crate::publish::assign::AttributeGuarantees;
use crate::publish::designed_table::{Bucketized, DesignedTable};

/// A candidate for a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableDraft {
    /// All attributes of the table.
    pub attributes: AttrSet,
    /// Sensitive attributes, each in a part of its own; empty for a plain table.
    pub sensitive: AttrSet,
}

impl TableDraft {
    /// A plain table of these attributes.
    #[must_use]
    pub const fn plain(attributes: AttrSet) -> Self {
        Self { attributes, sensitive: AttrSet::EMPTY }
    }

    /// A table in which buckets separate one attribute from the others.
    #[must_use]
    pub const fn on(attributes: AttrSet, sensitive: Attr) -> Self {
        Self { attributes, sensitive: AttrSet::one(sensitive) }
    }

    /// Attributes that no bucket separates.
    #[must_use]
    pub const fn known(&self) -> AttrSet {
        self.attributes.minus(self.sensitive)
    }

    /// Whether several sensitive attributes share its buckets.
    #[must_use]
    pub const fn is_tied(&self) -> bool {
        self.sensitive.len() > 1
    }

    /// The table with another known attribute.
    #[must_use]
    pub const fn with(self, attr: Attr) -> Self {
        Self { attributes: self.attributes.with(attr), ..self }
    }

    /// The table without these attributes.
    #[must_use]
    pub const fn minus(self, attrs: AttrSet) -> Self {
        Self { attributes: self.attributes.minus(attrs), sensitive: self.sensitive.minus(attrs) }
    }
}

/// The rules of a job, and the tables of earlier releases.
#[derive(Clone, Debug)]
pub struct DecompositionInput<'a> {
    /// The published attributes.
    pub attributes: AttrSet,
    /// Rules of the job in the order of their treatment; none implies another.
    pub rules: Vec<PrivacyRule>,
    protection: &'a [PrivacyRule],
    earlier: &'a [TableSchema],
    guarantees: BTreeMap<Attr, Vec<Guarantee>>,
}

impl<'a> DecompositionInput<'a> {
    /// Input of a job, next to the tables and active rules of the ledger.
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

    /// The same input without earlier tables and active rules.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self::new(self.attributes, self.rules.clone(), &[], &[])
    }

    /// All rules, those of the job first.
    pub(super) fn all_rules(&self) -> impl Iterator<Item = &PrivacyRule> {
        self.rules.iter().chain(self.protection)
    }

    /// Guarantees of buckets on `sensitive`: the strongest of all rules that protect it. They are equal in every decomposition.
    pub fn guarantees(&self, sensitive: Attr) -> &[Guarantee] {
        self.guarantees.get(&sensitive).map_or(&[], Vec::as_slice)
    }

    /// The designed table of a draft.
    pub(super) fn designed(&self, draft: &TableDraft) -> DesignedTable {
        let of_attribute = |attr| AttributeGuarantees { attr, guarantees: self.guarantees(attr) };
        let asked: Vec<AttributeGuarantees<'_>> = draft.sensitive.iter().map(of_attribute).collect();
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

    /// Schemas of the drafts, followed by those of earlier tables.
    fn schemas(&self, drafts: &[TableDraft]) -> Vec<TableSchema> {
        drafts.iter().map(|draft| self.schema(draft)).chain(self.earlier.iter().cloned()).collect()
    }

    /// Indexes of the rules, among [`DecompositionInput::all_rules`], that the drafts break together with earlier tables.
    #[must_use]
    pub fn violated(&self, drafts: &[TableDraft]) -> Vec<usize> {
        let schemas = self.schemas(drafts);
        let violated = |rule: &PrivacyRule| matches!(privacy::judge(&schemas, rule), RuleStatus::Violated(_));
        self.all_rules().enumerate().filter(|(_, rule)| violated(rule)).map(|(index, _)| index).collect()
    }

    /// Whether every rule holds together with earlier tables.
    #[must_use]
    pub fn holds(&self, drafts: &[TableDraft]) -> bool {
        let schemas = self.schemas(drafts);
        !self.all_rules().any(|rule| matches!(privacy::judge(&schemas, rule), RuleStatus::Violated(_)))
    }

    /// Makes drafts plain that guard no rule: their buckets would protect nothing. With a broken rule every draft stays.
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

/// The drafts without the attribute `attr`.
pub(super) fn stripped(drafts: &[TableDraft], attr: Attr) -> Vec<TableDraft> {
    drafts.iter().map(|draft| draft.minus(AttrSet::one(attr))).filter(|draft| !draft.attributes.is_empty()).collect()
}

/// The drafts without those that another one contains; the first of equal ones stays.
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

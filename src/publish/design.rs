//! A design: which tables come out and how every rule stands in them, decided before rows are touched. And its execution,
//! shared by the methods whose tables are raw projections or bucketized on one attribute.

use std::cmp::Reverse;
use std::sync::Arc;

use super::assign::{BucketAssignment, SensitiveCodes, assign, assign_tied, several};
use super::bucketize::{PlannedBuckets, capped};
use super::decompose::DecomposedTable;
use super::error::PlanRefusal;
use super::input::PlanInput;
use super::make::TableMaker;
use super::partition::MedianSplit;
use super::published::Published;
use super::sequential::SequentialDesign;
use super::slicing::{SlicingPlan, WholeTableViolation};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::privacy::{self, Dependency, Guard, IneligibilityReason, PrivacyRule, RuleDemand, RuleStatus, TableSchema};
use crate::problem::{Fault, Kind};
use crate::publication::{
    EnforcedBy, EnforcedRule, Guarantee, MethodDetails, Protected, Publication, PublicationCells, PublishedTable,
    RuleDerivation, RuleOrigin, SubmittedRule, TableGuard, TableName, TableWitness, Witness,
};
use crate::random::RandomStreams;
use crate::spec::CellKind;

/// The tables to publish and how the submitted rules stand in them.
#[derive(Clone, PartialEq, Debug)]
pub struct Design {
    /// The tables; table `i` is named `t{i+1}`.
    pub tables: Vec<DesignedTable>,
    /// The submitted rules, in their order, then those that follow from dependencies.
    pub rules: Vec<DesignedRule>,
    /// The dependencies that changed a rule.
    pub used_dependencies: Vec<Dependency>,
    /// What the tables were chosen by.
    pub decision: Decision,
}

/// What the tables of a design were chosen by.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Decision {
    /// By the rules alone.
    #[default]
    ByRules,
    /// By what the data makes of them: an adversary who asks why these tables were chosen is not reckoned with.
    ByData(Option<CandidateScores>),
    /// Nothing was chosen, as the rows are not known or a rule cannot be kept; there are no tables.
    Undecided,
    /// By the rules, and no row would be left in the table.
    Empty,
    /// The whole table does not hold what every bucket of it is to hold.
    NotDiverse(WholeTableViolation),
}

/// The best of several.
#[derive(Clone, PartialEq, Debug)]
pub struct CandidateScores {
    /// What was chosen.
    pub winner: &'static str,
    /// What was tried, each with its score: the lower, the more is told. Tells of the data more than the release does.
    pub considered: Vec<(&'static str, f64)>,
}

/// A table to publish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesignedTable {
    /// All its attributes.
    pub attributes: AttrSet,
    /// What stands in parts of its own; `None`: whole tuples.
    pub bucketized: Option<Bucketized>,
    /// What stands in cells that several rows share; `None`: exact values.
    pub generalized: Option<Generalized>,
    /// How it is cut beside earlier releases.
    pub cut: Option<Arc<SequentialDesign>>,
    /// What it is of a decomposition, whose tables are judged together.
    pub decomposed: Option<DecomposedTable>,
}

/// The protection of a bucketized table: sensitive parts, tied to each other and to the other attributes by the same buckets.
///
/// A guard says: in every bucket, among the rows of the part that holds what it protects, and for every combination of what it
/// takes as known in that same part, the distribution of what it protects keeps the guarantees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucketized {
    /// The attributes of each sensitive part, all apart from each other.
    pub parts: Vec<AttrSet>,
    /// What every bucket keeps; nothing where only the table as a whole does.
    pub guards: Vec<TableGuard>,
    /// The buckets, where they are decided beforehand.
    pub planned: Option<Arc<PlannedBuckets>>,
    /// How the other attributes are divided into parts and rows into buckets, in a sliced table. Its one sensitive part may
    /// hold attributes that are known.
    pub sliced: Option<SlicingPlan>,
}

impl Bucketized {
    /// Of a table of `attributes`: one sensitive part, protected from whoever knows all the others.
    #[must_use]
    pub fn new(attributes: AttrSet, protects: Protected, guarantees: Vec<Guarantee>) -> Self {
        let part = protects.attributes();
        let guard = TableGuard { known: attributes.minus(part), protects, guarantees };
        Self { parts: vec![part], guards: vec![guard], planned: None, sliced: None }
    }

    /// The same with one sensitive attribute.
    #[must_use]
    pub fn on(attributes: AttrSet, sensitive: Attr, guarantees: Vec<Guarantee>) -> Self {
        Self::new(attributes, Protected::Attribute(sensitive), guarantees)
    }

    /// One sensitive part of several attributes, each protected from whoever knows all other attributes of the table, with so
    /// much diversity. Rows that cannot stand in such a table are left out of it.
    #[must_use]
    pub fn each_of(attributes: AttrSet, sensitive: &[(Attr, u64)]) -> Self {
        let guard = |&(attr, l): &(Attr, u64)| TableGuard {
            known: attributes.without(attr),
            protects: Protected::Attribute(attr),
            guarantees: vec![Guarantee::LDiversity { l }],
        };
        Self {
            parts: vec![sensitive.iter().map(|(attr, _)| *attr).collect()],
            guards: sensitive.iter().map(guard).collect(),
            planned: None,
            sliced: None,
        }
    }

    /// Several sensitive attributes, each in a part of its own and protected from whoever knows the attributes of no sensitive part:
    /// for attributes that tell each other.
    #[must_use]
    pub fn together(attributes: AttrSet, sensitive: &[(Attr, &[Guarantee])]) -> Self {
        let all: AttrSet = sensitive.iter().map(|(attr, _)| *attr).collect();
        let guard = |&(attr, guarantees): &(Attr, &[Guarantee])| TableGuard {
            known: attributes.minus(all),
            protects: Protected::Attribute(attr),
            guarantees: guarantees.to_vec(),
        };
        let (parts, guards) = (all.iter().map(AttrSet::one).collect(), sensitive.iter().map(guard).collect());
        Self { parts, guards, planned: None, sliced: None }
    }

    /// Whether rows may be left out: where what is protected stands beside what is known, no assignment takes all rows.
    #[must_use]
    pub fn leaves_out(&self) -> bool {
        self.sliced.is_none() && self.guards.iter().any(|guard| guard.known.meets(self.sensitive()))
    }

    /// Whether nothing else may be published of the same rows that shares an attribute.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        self.sliced.is_some() && self.guards.is_empty()
    }

    /// The attributes that guards protect, each with its diversity.
    fn diversities(&self) -> Vec<(Attr, u64)> {
        let diversity = |guarantee: &Guarantee| match guarantee {
            Guarantee::LDiversity { l } => Some(*l),
            _ => None,
        };
        let of = |guard: &TableGuard| {
            let attr = guard.protects.attributes().iter().next()?;
            Some((attr, guard.guarantees.iter().filter_map(diversity).max()?))
        };
        self.guards.iter().filter_map(of).collect()
    }

    /// The attributes of all sensitive parts.
    #[must_use]
    pub fn sensitive(&self) -> AttrSet {
        self.parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(*part))
    }

    /// The one sensitive attribute and what every bucket keeps of it, where that is all there is.
    #[must_use]
    pub fn single(&self) -> Option<(Attr, &[Guarantee])> {
        match &self.guards[..] {
            [TableGuard { protects: Protected::Attribute(attr), guarantees, .. }] => Some((*attr, guarantees)),
            _ => None,
        }
    }
}

/// The protection of a generalized table: classes of rows whose quasi-identifiers are published alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generalized {
    /// The attributes whose cells the rows of a class share.
    pub quasi_identifiers: AttrSet,
    /// What stands in such cells.
    pub cells: CellKind,
    /// How classes are halved.
    pub split: MedianSplit,
    /// No class has fewer rows, where that is asked for.
    pub k: Option<u64>,
    /// The rows of the table.
    pub rows: u64,
    /// What every class keeps.
    pub keeps: Vec<TableGuard>,
    /// Whether it keeps that whatever stands beside it: every attribute but the one protected is generalized.
    pub guarding: bool,
}

impl Generalized {
    /// The rule of k-anonymity, where it is asked for, as it stands in the table at `index`.
    fn anonymity(&self, index: usize) -> Option<EnforcedRule> {
        Some(EnforcedRule {
            pointer: Some("/method".to_owned()),
            origin: RuleOrigin::Submitted,
            because: None,
            known: self.quasi_identifiers,
            protects: Protected::Rows,
            guarantee: Guarantee::KAnonymity { k: self.k? },
            enforced_by: EnforcedBy::Table(TableName::at(index)),
        })
    }

    fn too_few_rows(&self) -> Option<Fault> {
        let k = self.k.filter(|k| self.rows < *k)?;
        let detail = format!("the table has {} rows, fewer than a class of {k}", self.rows);
        let fault = Fault::new("/method", Kind::RuleIneligible, detail);
        Some(fault.with("requested", k.to_string()).with("largest_l", self.rows))
    }
}

/// A rule in a design: a submitted one, or one that follows from a dependency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesignedRule {
    /// Where the specification states it; `None` for one that follows.
    pub pointer: Option<String>,
    /// What it protects.
    pub protects: Protected,
    /// The rule as tables are decided for it: of a combination, the one attribute whose protection protects it, or that stands
    /// for the joint value.
    pub rule: PrivacyRule,
    /// What of it is judged in tables: one attribute, or the joint value where no attribute can be protected by itself.
    pub judged: Protected,
    /// The dependency it follows from.
    pub follows_from: Option<Dependency>,
    /// The rule, by index, that implies it.
    pub implied_by: Option<usize>,
    /// The dependency by which the known side determines the sensitive one.
    pub impossible: Option<Dependency>,
    /// Why the data cannot satisfy it.
    pub ineligible: Option<IneligibilityReason>,
    /// Why it cannot be held beside the other rules, in words.
    pub refused: Option<&'static str>,
    /// Why it is impossible where protected attributes tell each other, in words.
    pub told: Option<&'static str>,
    /// A dependency by which an insider can rule out more than is stated, and what to do, in words.
    pub outside: Option<(Dependency, &'static str)>,
    /// The largest diversity that the data allows for its sensitive attribute.
    pub largest_l: u64,
    /// How it stands in the tables of this design alone.
    pub status: RuleStatus,
}

impl DesignedTable {
    /// A table of exact values, in buckets or not.
    #[must_use]
    pub const fn new(attributes: AttrSet, bucketized: Option<Bucketized>) -> Self {
        Self { attributes, bucketized, generalized: None, cut: None, decomposed: None }
    }

    /// A table of one part whose cells are shared by the rows of a class.
    #[must_use]
    pub const fn generalized(attributes: AttrSet, generalized: Generalized) -> Self {
        Self { attributes, bucketized: None, generalized: Some(generalized), cut: None, decomposed: None }
    }

    /// A table of a decomposition.
    #[must_use]
    pub const fn decomposed(attributes: AttrSet, decomposed: DecomposedTable) -> Self {
        Self { attributes, bucketized: None, generalized: None, cut: None, decomposed: Some(decomposed) }
    }

    /// Whether its rows are whole tuples of exact values.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.bucketized.is_none() && self.generalized.is_none() && self.cut.is_none() && self.decomposed.is_none()
    }

    /// Whether nothing else may be published of the same rows that shares an attribute: it keeps what it keeps by itself alone.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        self.cut.is_some()
            || self.generalized.as_ref().is_some_and(|generalized| !generalized.guarding)
            || self.bucketized.as_ref().is_some_and(Bucketized::stands_alone)
            || self.decomposed.is_some()
    }

    /// The table as the Guardian Normal Form check sees it.
    #[must_use]
    pub fn schema(&self) -> TableSchema {
        let bucketized = self.bucketized.iter().flat_map(|bucketized| &bucketized.guards);
        let guards = bucketized.chain(self.generalized.iter().flat_map(|generalized| &generalized.keeps));
        let guards = guards.flat_map(|&TableGuard { known, protects, ref guarantees }| {
            guarantees.iter().map(move |&guarantee| Guard { known, protects, guarantee })
        });
        TableSchema { attributes: self.attributes, guards: guards.collect() }
    }
}

impl Bucketized {
    /// The stream of the assignment.
    pub(super) fn label(&self) -> String {
        let numbers: Vec<String> = self.sensitive().iter().map(|attr| attr.0.to_string()).collect();
        format!("assign/{}", numbers.join("+"))
    }

    /// Draws the bucket of each row.
    ///
    /// Streams are named by attributes, not by the table: a plan that looks at buckets draws them before tables have names.
    pub(super) fn draw(
        &self,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<BucketAssignment, Cancelled> {
        let mut stream = streams.stream(&self.label());
        if let Some(planned) = &self.planned {
            return planned.draw(&SensitiveCodes::new(table, self.sensitive(), control)?, &mut stream, control);
        }
        if self.leaves_out() {
            return several(table, &self.diversities(), &mut stream, control);
        }
        if self.parts.len() > 1 {
            // a sensitive part of a table of several is one attribute, by their construction
            let of_part = |guard: &'_ TableGuard| guard.protects.attributes().iter().next();
            let asked: Vec<(Attr, &[Guarantee])> =
                self.guards.iter().filter_map(|guard| Some((of_part(guard)?, &guard.guarantees[..]))).collect();
            return assign_tied(table, &asked, &mut stream, control);
        }
        let guarantees: Vec<Guarantee> = self.guards.iter().flat_map(|guard| guard.guarantees.clone()).collect();
        let values = SensitiveCodes::new(table, self.sensitive(), control)?;
        match capped(&values, &guarantees, &mut stream, control)? {
            Some(assigned) => Ok(assigned),
            None => assign(values, &guarantees, &mut stream, control),
        }
    }
}

impl DesignedRule {
    /// A submitted rule, not yet judged in any tables.
    #[must_use]
    pub fn submitted(submitted: &SubmittedRule, input: &PlanInput<'_>) -> Self {
        let demand = demand(submitted);
        Self::new(Some(submitted.pointer.clone()), &demand, &[], input)
    }

    /// A rule not yet judged in any tables. Of a combination that attribute is to be protected which is protected most often
    /// in `others` already, of those that the data allows; of equally many the one whose most frequent value is rarest.
    pub(super) fn new(
        pointer: Option<String>,
        demand: &RuleDemand,
        others: &[RuleDemand],
        input: &PlanInput<'_>,
    ) -> Self {
        let judged = |sensitive: Attr| {
            let rule = PrivacyRule { known: demand.known, sensitive, guarantee: demand.guarantee };
            (rule, privacy::check_eligibility(&rule, input.counts).err())
        };
        let protected = |attr: Attr| others.iter().filter(|other| other.protects == AttrSet::one(attr)).count();
        let rank = |(rule, ineligible): &(PrivacyRule, Option<IneligibilityReason>)| {
            let largest = input.counts.largest(rule.sensitive);
            (ineligible.is_some(), Reverse(protected(rule.sensitive)), largest, rule.sensitive)
        };
        let mut candidates = demand.protects.iter().map(judged);
        // Unwrap safety: a rule protects at least one attribute, by its construction
        #[expect(clippy::unwrap_used)]
        let first = candidates.next().unwrap();
        let (rule, ineligible) = candidates.fold(first, |a, b| if rank(&b) < rank(&a) { b } else { a });
        let protects = match demand.protects.len() {
            1 => Protected::Attribute(rule.sensitive),
            _ => Protected::Joint(demand.protects),
        };
        Self {
            pointer,
            protects,
            judged: Protected::Attribute(rule.sensitive),
            rule,
            follows_from: None,
            implied_by: None,
            impossible: None,
            ineligible,
            refused: None,
            told: None,
            outside: None,
            largest_l: privacy::largest_l(input.counts, rule.sensitive),
            status: RuleStatus::Unreachable,
        }
    }

    /// Whether no publication satisfies it.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        let by_others = self.refused.is_some() || self.told.is_some() || self.outside.is_some();
        self.ineligible.is_some() || self.impossible.is_some() || by_others
    }

    /// What is judged in tables.
    #[must_use]
    pub const fn demand(&self) -> RuleDemand {
        RuleDemand { known: self.rule.known, protects: self.judged.attributes(), guarantee: self.rule.guarantee }
    }
}

/// A submitted rule in the terms of reduction.
pub(super) fn demand(submitted: &SubmittedRule) -> RuleDemand {
    let SubmittedRule { known, protects, guarantee, .. } = submitted;
    RuleDemand { known: *known, protects: protects.attributes(), guarantee: *guarantee }
}

impl Design {
    /// The tables as the Guardian Normal Form check sees them.
    #[must_use]
    pub fn schemas(&self) -> Vec<TableSchema> {
        self.tables.iter().map(DesignedTable::schema).collect()
    }

    /// Judges every rule in the designed tables.
    pub(super) fn judge(&mut self) {
        let schemas = self.schemas();
        for rule in &mut self.rules {
            rule.status = privacy::judge_demand(&schemas, &rule.demand());
        }
    }

    /// The faults for which nothing is published: rules that the data cannot satisfy, or that a dependency makes impossible.
    /// `names` are those of the attributes.
    ///
    /// # Errors
    /// [`PlanRefusal`] when there are any.
    pub fn feasible(&self, names: &[String]) -> Result<(), PlanRefusal> {
        let impossible = |rule: &DesignedRule| {
            let detail = "the known attributes determine the sensitive one";
            Some(dependency_fault(rule.pointer.as_deref()?, Kind::RuleImpossible, rule.impossible?, detail, names))
        };
        let outside = |rule: &DesignedRule| {
            let (dependency, detail) = rule.outside?;
            let pointer = rule.pointer.as_deref().unwrap_or("/method/rules");
            Some(dependency_fault(pointer, Kind::GuaranteeUnsupported, dependency, detail, names))
        };
        // what follows has no pointer of its own: a combination of which no attribute is eligible is its rule's fault
        let planned = self.planned().next().is_some();
        // where buckets were planned by thresholds, the plan says more
        let told = |rule: &&DesignedRule| planned && matches!(rule.rule.guarantee, Guarantee::Thresholds { .. });
        let ineligible = self.rules.iter().filter(|rule| rule.implied_by.is_none() && !told(rule));
        let ineligible = ineligible.filter_map(ineligible_fault);
        let refused = |rule: &DesignedRule| {
            let refused = rule.refused.map(|why| (Kind::GuaranteeUnsupported, why));
            let (kind, why) = refused.or_else(|| Some((Kind::RuleImpossible, rule.told?)))?;
            Some(Fault::new(rule.pointer.as_deref().unwrap_or("/method/rules"), kind, why))
        };
        let refused = self.rules.iter().filter_map(refused).chain(match &self.decision {
            Decision::Empty => {
                let detail = "no rows can stand together so that every sensitive attribute is protected from whoever knows all others";
                Some(Fault::new("/method/algorithm", Kind::MultiSaEmpty, detail))
            }
            Decision::NotDiverse(whole) => Some(whole.fault(names)),
            Decision::ByRules | Decision::ByData(_) | Decision::Undecided => None,
        });
        let few = self.tables.iter().filter_map(|table| table.generalized.as_ref()?.too_few_rows());
        let planned = self.planned().flat_map(|planned| planned.faults.iter().cloned());
        let decomposed = self.tables.iter().filter_map(|table| table.decomposed.as_ref());
        let planned = planned.chain(decomposed.flat_map(|decomposed| decomposed.faults.iter().cloned()));
        let impossible = self.rules.iter().filter_map(impossible).chain(self.rules.iter().filter_map(outside));
        let faults = impossible.chain(ineligible).chain(refused).chain(few).chain(planned);
        let faults: Vec<Fault> = faults.collect();
        if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
    }

    /// Buckets that are decided before rows are dealt.
    pub fn planned(&self) -> impl Iterator<Item = &PlannedBuckets> {
        self.tables.iter().filter_map(|table| table.bucketized.as_ref()?.planned.as_deref())
    }

    /// How the rules stand, in the words of a publication.
    pub(super) fn protection(&self, single_table: bool) -> Vec<EnforcedRule> {
        let by = |index: usize| match &self.rules[index] {
            DesignedRule { pointer: Some(pointer), .. } => Some(RuleDerivation::Rule(pointer.clone())),
            other => other.follows_from.map(because_of),
        };
        let protection = |designed: &DesignedRule| EnforcedRule {
            pointer: designed.pointer.clone(),
            origin: match (designed.follows_from, designed.implied_by) {
                (Some(_), _) => RuleOrigin::FromDependency,
                (None, Some(_)) => RuleOrigin::ImpliedBy,
                (None, None) => RuleOrigin::Submitted,
            },
            because: designed.follows_from.map(because_of).or_else(|| designed.implied_by.and_then(by)),
            known: designed.rule.known,
            protects: designed.protects,
            guarantee: designed.rule.guarantee,
            enforced_by: match designed.status {
                RuleStatus::Guardian { table, .. } if single_table => EnforcedBy::Table(TableName::at(table)),
                RuleStatus::Guardian { table, known } => EnforcedBy::Guardian { table: TableName::at(table), known },
                RuleStatus::Unreachable => EnforcedBy::Unreachable,
                RuleStatus::Violated(_) => unreachable!("a design that violates a rule is not executed"),
            },
        };
        let tables = self.tables.iter().enumerate();
        let anonymity = tables.filter_map(|(index, table)| table.generalized.as_ref()?.anonymity(index));
        anonymity.chain(self.rules.iter().map(protection)).collect()
    }

    /// Makes the tables of the design: raw projections, and buckets by largest-l.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub(super) fn execute(
        &self,
        input: &PlanInput<'_>,
        single_table: bool,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        let mut tables = Vec::new();
        let mut contents = Vec::new();
        let mut witnesses = Vec::new();
        for (index, designed) in self.tables.iter().enumerate() {
            let name = TableName::at(index);
            let maker = TableMaker { table, published_names: input.published_names, control };
            let (parts, protection, witness) = match (&designed.decomposed, &designed.bucketized) {
                (Some(decomposed), _) => maker.decomposed(designed.attributes, decomposed, &name, streams)?,
                (_, None) => maker.raw(designed.attributes)?,
                (_, Some(Bucketized { sliced: Some(slicing), .. })) => maker.sliced(slicing, &name, streams)?,
                (_, Some(bucketized)) => maker.bucketized(designed.attributes, bucketized, &name, streams)?,
            };
            let (descriptions, cells) = parts.into_iter().unzip();
            tables.push(PublishedTable { name, parts: descriptions, protection });
            contents.push(cells);
            witnesses.push(witness);
        }
        let nowhere = |witness: &TableWitness| match witness {
            TableWitness::Plain | TableWitness::Rows(_) => 0,
            TableWitness::Buckets(labels) | TableWitness::Boxes { labels, .. } => {
                labels.iter().filter(|label| **label == 0).count() as u64
            }
        };
        let suppressed = witnesses.iter().map(nowhere).max().unwrap_or(0);
        Ok(Published {
            publication: Publication {
                tables,
                rules: self.protection(single_table),
                method_details: self.planned().next().map_or(MethodDetails::None, PlannedBuckets::method_details),
                suppressed,
            },
            contents: PublicationCells { tables: contents },
            witness: Witness { tables: witnesses },
        })
    }
}

fn ineligible_fault(rule: &DesignedRule) -> Option<Fault> {
    let IneligibilityReason { requested, largest_l } = rule.ineligible?;
    let pointer = rule.pointer.as_deref().unwrap_or("/method/rules");
    let asked = match requested {
        Guarantee::KAnonymity { k } => k.to_string(),
        Guarantee::LDiversity { l }
        | Guarantee::DistinctLDiversity { l }
        | Guarantee::RecursiveLDiversity { l, .. } => l.to_string(),
        Guarantee::EntropyLDiversity { l } => l.to_string(),
        Guarantee::AlphaK { alpha, .. } => alpha.to_string(),
        Guarantee::TCloseness { t, .. } => t.to_string(),
        Guarantee::Rho { rho2, .. } => rho2.to_string(),
        Guarantee::Delta { b, .. } => b.to_string(),
        Guarantee::Thresholds { .. } => "thresholds".to_owned(),
    };
    let detail = match (requested, largest_l) {
        (Guarantee::LDiversity { l }, 0 | 1) => {
            format!("one value of the sensitive attribute is too frequent for any diversity; l = {l} was asked for")
        }
        (Guarantee::LDiversity { l }, _) => format!("the data allows l of at most {largest_l} here; {l} was asked for"),
        (Guarantee::Thresholds { .. }, _) => {
            "some values of the sensitive attribute are more frequent in the table than their thresholds allow"
                .to_owned()
        }
        _ => "the sensitive attribute itself, over the whole table, does not keep the guarantee".to_owned(),
    };
    let detail = match (rule.protects, rule.follows_from) {
        (Protected::Joint(_), _) => {
            format!("neither an attribute of the combination nor its joint value can be protected: {detail}")
        }
        (_, Some(_)) => format!("by a dependency the rules protect one more attribute: {detail}"),
        _ => detail,
    };
    let fault = Fault::new(pointer, Kind::RuleIneligible, detail);
    Some(fault.with("requested", asked).with("largest_l", largest_l))
}

fn because_of(dependency: Dependency) -> RuleDerivation {
    RuleDerivation::Dependency { determinant: dependency.determinant, dependent: AttrSet::one(dependency.dependent) }
}

/// A fault that a dependency makes of a rule.
pub(super) fn dependency_fault(
    pointer: &str,
    kind: Kind,
    dependency: Dependency,
    detail: &str,
    names: &[String],
) -> Fault {
    let named = |set: AttrSet| -> Vec<&str> {
        set.iter().map(|attr| names.get(attr.index()).map_or("a dropped attribute", String::as_str)).collect()
    };
    let (determinant, dependent) = (named(dependency.determinant), named(AttrSet::one(dependency.dependent)));
    let detail = format!("{detail}: {} determines {}", determinant.join(", "), dependent.join(", "));
    let member = serde_json::json!({ "determinant": determinant, "dependent": dependent });
    Fault::new(pointer, kind, detail).with("dependency", member)
}

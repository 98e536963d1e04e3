//! A design: the tables of a release and the status of every rule in them, decided before parts are made.

use super::bucketize::PlannedBuckets;
use super::designed_rule::{DesignedRule, RuleRejection};
use super::designed_table::DesignedTable;
use super::error::PlanRefusal;
use super::slicing::WholeTableViolation;
use crate::microdata::AttrSet;
use crate::privacy::{self, Dependency, RuleStatus, TableSchema};
use crate::problem::{Fault, Kind};
use crate::publication::{EnforcedBy, EnforcedRule, Guarantee, MethodDetails, RuleDerivation, RuleOrigin, TableName};
use crate::spec::AutoGoal;

/// The tables to publish, and the status of the rules in them.
#[derive(Clone, PartialEq, Debug)]
pub struct Design {
    /// The tables; table `i` (from 0) is named `t{i+1}`.
    pub tables: Vec<DesignedTable>,
    /// The submitted rules in their order, then those that follow from dependencies.
    pub rules: Vec<DesignedRule>,
    /// Dependencies that changed a rule.
    pub used_dependencies: Vec<Dependency>,
    /// Dependencies on a path to what a rule or requirement protects, which a place or another requirement cuts.
    pub cut_dependencies: Vec<Dependency>,
    /// Basis of the choice of tables.
    pub decision: Decision,
    /// What the design loses, for plans and manifests.
    pub remarks: Vec<DesignRemark>,
    /// How a publication names the table that enforces a rule.
    pub enforcement: Enforcement,
    /// Members of the manifest that the method adds.
    pub details: MethodDetails,
}

/// Basis of the choice of tables.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Decision {
    /// The rules alone.
    #[default]
    ByRules,
    /// The data; guarantees assume an adversary without minimality [Wong et al. 2007].
    ByData(Option<CandidateScores>),
    /// No choice, as rows are unknown or a rule cannot be kept; the design has no tables.
    Undecided,
    /// The rules alone, but every row would be suppressed.
    Empty,
    /// No choice, as the whole table violates the guarantee of its buckets.
    NotDiverse(WholeTableViolation),
}

/// Scores of the decompositions that were compared.
#[derive(Clone, PartialEq, Debug)]
pub struct CandidateScores {
    /// Name of the chosen decomposition.
    pub winner: &'static str,
    /// What decided: with `classification` the information that is kept of protected attributes, negated; else the entropy of the estimate.
    pub goal: AutoGoal,
    /// Number of protected attributes, where it is why forms of UAD alone were compared, for COUNT queries.
    pub only_uad_for: Option<usize>,
    /// Names and scores of all; a lower score keeps more information. Reveals more of the data than the release does.
    pub considered: Vec<(&'static str, f64)>,
}

/// What a design loses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DesignRemark {
    /// These attributes left the column of the sensitive attribute, which with them keeps no guarantee.
    SensitiveColumnNarrowed(AttrSet),
}

/// How a publication names the table that enforces a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Enforcement {
    /// By the table alone: it holds all attributes.
    #[default]
    OneTable,
    /// As the guarding table on every path of Guardian Normal Form.
    NormalForm,
}

impl Design {
    /// A design whose tables are chosen by the rules alone.
    pub(super) const fn new(tables: Vec<DesignedTable>, rules: Vec<DesignedRule>) -> Self {
        Self {
            tables,
            rules,
            used_dependencies: Vec::new(),
            cut_dependencies: Vec::new(),
            decision: Decision::ByRules,
            remarks: Vec::new(),
            enforcement: Enforcement::OneTable,
            details: MethodDetails::None,
        }
    }

    /// The tables as the check of Guardian Normal Form sees them.
    #[must_use]
    pub fn schemas(&self) -> Vec<TableSchema> {
        self.tables.iter().map(DesignedTable::schema).collect()
    }

    /// Drops rules; a rule that one of them implies stands by itself.
    pub(super) fn drop_rules(&mut self, is_dropped: &[bool]) {
        let mut next = 0;
        let place = |&dropped: &bool| {
            next += usize::from(!dropped);
            (!dropped).then(|| next - 1)
        };
        let places: Vec<Option<usize>> = is_dropped.iter().map(place).collect();
        let rules = std::mem::take(&mut self.rules).into_iter().zip(&places);
        self.rules = rules.filter_map(|(rule, place)| place.map(|_| rule)).collect();
        for rule in &mut self.rules {
            rule.implied_by = rule.implied_by.and_then(|by| places[by]);
        }
    }

    /// Judges every rule in the designed tables.
    pub(super) fn judge(&mut self) {
        let schemas = self.schemas();
        for rule in &mut self.rules {
            rule.status = privacy::judge_demand(&schemas, &rule.demand());
        }
    }

    /// Checks that the design can be published. `names` are the dataset names of the attributes.
    ///
    /// # Errors
    /// [`PlanRefusal`] with the faults of rules in the order of [`RuleRejection`], then those of the choice and of the tables.
    pub fn feasible(&self, names: &[String]) -> Result<(), PlanRefusal> {
        let mut faults = Vec::new();
        for rank in 0..RuleRejection::RANKS {
            faults.extend(self.rules.iter().flat_map(|rule| self.faults_of_rank(rule, rank, names)));
        }
        faults.extend(self.decision.fault(names));
        faults.extend(self.tables.iter().flat_map(DesignedTable::faults));
        if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
    }

    /// Gives up the design of a table that violates, as a whole, the guarantee of its buckets.
    pub fn refute(&mut self, violation: WholeTableViolation) {
        for rule in &mut self.rules {
            rule.largest_l = rule.largest_l.min(violation.largest_l());
        }
        self.decision = Decision::NotDiverse(violation);
    }

    /// Faults of the rejections of a rule that have this rank.
    fn faults_of_rank<'a>(
        &'a self,
        rule: &'a DesignedRule,
        rank: u8,
        names: &'a [String],
    ) -> impl Iterator<Item = Fault> + 'a {
        // where buckets were planned by thresholds, the faults of the plan say more
        let by_plan = |rejection: &RuleRejection| {
            matches!(rejection, RuleRejection::Ineligible(_))
                && matches!(rule.rule.guarantee, Guarantee::Thresholds { .. })
                && self.planned().next().is_some()
        };
        let of_rank = rule.rejections.iter().filter(move |rejection| rejection.rank() == rank);
        of_rank.filter(move |rejection| !by_plan(rejection)).filter_map(|rejection| rejection.fault(rule, names))
    }

    /// Buckets that the plan decides before rows are dealt.
    pub fn planned(&self) -> impl Iterator<Item = &PlannedBuckets> {
        self.tables.iter().filter_map(|table| table.bucketized()?.planned())
    }

    /// The rules with the reason why each holds, as a publication lists them.
    #[must_use]
    pub fn protection(&self) -> Vec<EnforcedRule> {
        let tables = self.tables.iter().enumerate();
        let anonymity = tables.filter_map(|(index, table)| table.generalized()?.anonymity(index));
        anonymity.chain(self.rules.iter().map(|rule| self.enforced(rule))).collect()
    }

    fn enforced(&self, rule: &DesignedRule) -> EnforcedRule {
        let implied = |index: usize| match &self.rules[index] {
            DesignedRule { pointer: Some(pointer), .. } => Some(RuleDerivation::Rule(pointer.clone())),
            other => other.follows_from.map(because_of),
        };
        EnforcedRule {
            pointer: rule.pointer.clone(),
            origin: match (rule.follows_from, rule.implied_by) {
                (Some(_), _) => RuleOrigin::FromDependency,
                (None, Some(_)) => RuleOrigin::ImpliedBy,
                (None, None) => RuleOrigin::Submitted,
            },
            because: rule.follows_from.map(because_of).or_else(|| rule.implied_by.and_then(implied)),
            known: rule.rule.known,
            protects: rule.protects,
            guarantee: rule.rule.guarantee,
            enforced_by: match (&rule.status, self.enforcement) {
                (RuleStatus::Guardian { table, .. }, Enforcement::OneTable) => EnforcedBy::Table(TableName::at(*table)),
                (RuleStatus::Guardian { table, known }, Enforcement::NormalForm) => {
                    EnforcedBy::Guardian { table: TableName::at(*table), known: *known }
                }
                (RuleStatus::Unreachable, _) => EnforcedBy::Unreachable,
                // Only proposed tables are judged without a rejection. Tables of UAD and GD keep every rule as they are chosen.
                // What joins correlated attributes connects nothing that a common attribute did not connect, and rejects a
                // rule that knows one of them. Apart from links, `stratify` rejects what nothing holds.
                (RuleStatus::Violated(_), _) => unreachable!("a design that violates a rule is not executed"),
            },
        }
    }
}

impl Decision {
    /// The fault of a choice that leaves nothing to publish.
    fn fault(&self, names: &[String]) -> Option<Fault> {
        match self {
            Self::Empty => {
                let detail = "no rows can stand together so that every sensitive attribute is protected from an adversary who knows \
                              all others";
                Some(Fault::new("/method/algorithm", Kind::MultiSaEmpty, detail))
            }
            Self::NotDiverse(violation) => Some(violation.fault(names)),
            Self::ByRules | Self::ByData(_) | Self::Undecided => None,
        }
    }
}

fn because_of(dependency: Dependency) -> RuleDerivation {
    RuleDerivation::Dependency { determinant: dependency.determinant, dependent: AttrSet::one(dependency.dependent) }
}

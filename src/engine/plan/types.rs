use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::engine::prepare::annotations::pointer_of;
use crate::engine::prepare::known::attribute_names;
use crate::engine::prepare::wording::unused_names;
use crate::microdata::{AttrSet, Table};
use crate::privacy;
use crate::privacy::{Dependency, GnfViolation, PrivacyRule, RuleStatus};
use crate::publication::{
    CompositionVerdict, DeclaredThresholds, DigestedThresholds, Guarantee, MethodDetails, PlanRuleStatus, Protected,
    ProtectionKind, RuleOrigin, TableKind, TableName, Unit, UnitGuarantees,
};
use crate::publish::bucketize::{PlannedBuckets, unknown_values};
use crate::publish::{Decision, Design, DesignedRule, DesignedTable};
use crate::report::{
    DependencyForm, ManifestDependencies, ManifestEnforcedBy, MethodDetailsForm, RuleDerivationForm,
    SpecificationNotice,
};
use crate::spec::{MethodSpec, Specification};

/// What a job with this specification would do. For keys that may inspect datasets: it tells counts of the data.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Whether a job would publish.
    pub feasible: bool,
    /// The submitted rules, in their order.
    pub rules: Vec<PlanRule>,
    /// The tables that would come out.
    pub tables: Vec<PlanTable>,
    /// Dependencies that the adversary is taken to know.
    pub dependencies: ManifestDependencies,
    /// Published attributes that predict a sensitive one without determining it, the strongest first; empty where the rows were not
    /// looked at.
    pub proxies: Vec<PlanProxy>,
    /// Published attributes that stand with a sensitive one in plain tables and single rows out; empty where the rows were not looked
    /// at.
    pub exposed_to: Vec<ExposedTo>,
    /// How the release would stand beside earlier ones.
    pub composition: PlanComposition,
    /// What only some methods have to say: the buckets of `bucketize`, and what can be concluded of those of `decompose`, as a manifest would
    /// state them.
    #[schema(value_type = Option<Object>)]
    pub method_details: Option<MethodDetailsForm>,
    /// What a job would answer.
    #[schema(value_type = Vec<Object>)]
    pub problems: Vec<Value>,
    /// What the caller should think about.
    pub warnings: Vec<SpecificationNotice>,
}

/// An attribute that predicts a sensitive one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanProxy {
    /// What is predicted: the sensitive attribute of a rule.
    pub sensitive: String,
    /// What predicts it.
    pub attribute: String,
    /// By what share the errors of whoever guesses the most frequent value become fewer when the attribute is known: Goodman and
    /// Kruskal's lambda, from 0.1 to below 1.
    pub lambda: f64,
}

/// Attributes by which a sensitive value can be found out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExposedTo {
    /// The sensitive attribute of a rule.
    pub sensitive: String,
    /// Attributes of a plain table with it. At least one row of a hundred is the only one with its values of all of them, and of no
    /// smaller choice of them.
    pub attributes: Vec<String>,
}

/// A rule in a plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanRule {
    /// Where the specification states it.
    pub pointer: Option<String>,
    /// Why it is listed.
    pub origin: RuleOrigin,
    /// What the adversary may know.
    pub quasi_identifiers: Vec<String>,
    /// What stays protected.
    pub sensitive: Vec<String>,
    /// Whether only the joint value is protected.
    pub combination: bool,
    /// The bound.
    pub guarantee: Guarantee,
    /// What becomes of it.
    pub status: PlanRuleStatus,
    /// The rule that implies it.
    #[schema(value_type = Option<Object>)]
    pub because: Option<RuleDerivationForm>,
    /// Whether the data can satisfy it.
    pub eligible: bool,
    /// The largest l that the data allows; of k-anonymity the largest k.
    pub largest_l: u64,
    /// Why it would hold.
    pub enforced_by: Option<ManifestEnforcedBy>,
    /// The known attributes that reach the sensitive one.
    pub violated_by: Option<Vec<String>>,
    /// For each attribute of `violated_by` a shortest chain of tables from it to the sensitive one; around a table that protects the
    /// latter, where there is such a chain.
    pub paths: Vec<Vec<String>>,
}

/// A table in a plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanTable {
    /// `t1`, `t2`, ...
    pub name: String,
    /// What kind of table it is.
    pub kind: TableKind,
    /// `plain` or `guarding`; `exclusive` where a schema proposes buckets for which no rule states a guarantee, where buckets of a sliced
    /// table do not hold it alone, of both tables of a decomposition, and of generalized tables that do not keep one whatever stands beside them.
    pub protection: ProtectionKind,
    /// Its attributes.
    pub attributes: Vec<String>,
    /// The attributes in the sensitive parts; of a generalized table those that stay exact.
    pub sensitive: Option<Vec<String>>,
}

/// How a release would stand beside earlier ones of the same dataset.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanComposition {
    /// The outcome of the composition check.
    pub verdict: CompositionVerdict,
    /// The earlier releases.
    pub against: Vec<uuid::Uuid>,
    /// What would break.
    #[schema(value_type = Vec<Object>)]
    pub violations: Vec<Value>,
    /// Rows in common with other uploads; null while only the same dataset is judged.
    #[schema(value_type = Option<Object>)]
    pub counts: Option<Value>,
}

/// A shortest chain of tables from each attribute of a violation to the sensitive attribute of the rule.
pub(in crate::engine) fn paths(design: &Design, rule: &PrivacyRule, violation: &GnfViolation) -> Vec<Vec<String>> {
    let schemas = design.schemas();
    let path = |attr| privacy::leak(&schemas, rule, attr).into_iter().map(|table| TableName::at(table).0).collect();
    violation.reaching.iter().map(path).collect()
}

/// The plan of a design, without dependencies, proxies and exposures. Feasibility, problems and composition are the caller's.
#[must_use]
pub(in crate::engine) fn to_report(
    design: &Design,
    specification: &Specification,
    composition: PlanComposition,
    problems: Vec<Value>,
    warnings: Vec<SpecificationNotice>,
) -> Plan {
    let writer = PlanWriter::new(design, specification);
    let tables = design.tables.iter().enumerate();
    let anonymity = tables.clone().filter_map(|(index, table)| writer.anonymity_rule(index, table));
    Plan {
        feasible: problems.is_empty(),
        tables: tables.clone().map(|(index, table)| writer.table(index, table)).collect(),
        rules: anonymity.chain(design.rules.iter().map(|rule| writer.rule(rule))).collect(),
        dependencies: ManifestDependencies::default(),
        proxies: Vec::new(),
        exposed_to: Vec::new(),
        method_details: details_of(design).and_then(|details| MethodDetailsForm::from_details(&details, &writer.names)),
        composition,
        problems,
        warnings,
    }
}

/// Writes the tables and rules of a design by the names of its attributes.
struct PlanWriter<'a> {
    design: &'a Design,
    unit: &'a Unit,
    /// The guarantees of units behind the thresholds of rules and method.
    promised: UnitGuarantees,
    names: Vec<String>,
    /// Whether no buckets satisfy the rules together.
    infeasible: bool,
}

/// How a plan enforces a rule, or the attributes that violate it.
#[derive(Default)]
struct PlannedEnforcement {
    enforced_by: Option<ManifestEnforcedBy>,
    violated_by: Option<Vec<String>>,
    paths: Vec<Vec<String>>,
}

impl<'a> PlanWriter<'a> {
    fn new(design: &'a Design, specification: &'a Specification) -> Self {
        let of_method = match &specification.method {
            MethodSpec::Bucketize(spec) => Some(DigestedThresholds::from(spec.thresholds.clone())),
            _ => None,
        };
        let of_rules = specification.thresholds.iter().map(|declared| &declared.thresholds);
        Self {
            design,
            unit: &specification.unit,
            promised: specification.unit.promised(of_rules.chain(&of_method)),
            names: attribute_names(specification),
            infeasible: matches!(design.decision, Decision::NotDiverse(_)),
        }
    }

    fn named(&self, set: AttrSet) -> Vec<String> {
        set.iter().map(|attr| self.names[attr.index()].clone()).collect()
    }

    /// The guarantee of a unit of protection behind that of rows.
    fn declared(&self, guarantee: Guarantee) -> Guarantee {
        self.unit.stated(guarantee, &self.promised)
    }

    fn table(&self, index: usize, table: &DesignedTable) -> PlanTable {
        let protection = match table.bucketized() {
            Some(bucketized) if bucketized.guards.iter().all(|guard| guard.guarantees.is_empty()) => {
                ProtectionKind::Exclusive
            }
            _ if table.stands_alone() => ProtectionKind::Exclusive,
            _ if table.is_plain() => ProtectionKind::Plain,
            _ => ProtectionKind::Guarding,
        };
        PlanTable {
            name: TableName::at(index).0,
            kind: table.kind(),
            protection,
            attributes: self.named(table.attributes),
            sensitive: table.sensitive().map(|set| self.named(set)),
        }
    }

    fn dependency(&self, dependency: Dependency) -> RuleDerivationForm {
        RuleDerivationForm::Dependency(DependencyForm {
            dependent: self.named(AttrSet::one(dependency.dependent)),
            determinant: self.named(dependency.determinant),
        })
    }

    fn rule(&self, designed: &DesignedRule) -> PlanRule {
        let refused = designed.is_refused() || self.infeasible;
        let PlannedEnforcement { enforced_by, violated_by, paths } = self.enforcement(designed, refused);
        let status = match (refused, designed.implied_by) {
            (true, _) => PlanRuleStatus::Refused,
            (false, Some(_)) => PlanRuleStatus::Implied,
            (false, None) => PlanRuleStatus::Kept,
        };
        PlanRule {
            pointer: designed.pointer.clone(),
            origin: if designed.follows_from.is_some() { RuleOrigin::FromDependency } else { RuleOrigin::Submitted },
            quasi_identifiers: self.named(designed.rule.known),
            sensitive: self.named(designed.protects.attributes()),
            combination: matches!(designed.protects, Protected::Joint(_)),
            guarantee: self.declared(designed.rule.guarantee),
            status,
            because: self.derivation(designed),
            eligible: designed.ineligibility().is_none() && !self.infeasible,
            largest_l: designed.largest_l / self.unit.rows(),
            enforced_by,
            violated_by,
            paths,
        }
    }

    fn enforcement(&self, designed: &DesignedRule, refused: bool) -> PlannedEnforcement {
        if refused || self.design.decision == Decision::Undecided {
            return PlannedEnforcement::default();
        }
        match &designed.status {
            RuleStatus::Unreachable => PlannedEnforcement {
                enforced_by: Some(ManifestEnforcedBy::Unreachable { unreachable: true }),
                ..PlannedEnforcement::default()
            },
            RuleStatus::Guardian { table, known } => PlannedEnforcement {
                enforced_by: Some(ManifestEnforcedBy::Guardian {
                    guardian: TableName::at(*table).0,
                    known: self.named(*known),
                }),
                ..PlannedEnforcement::default()
            },
            RuleStatus::Violated(violation) => PlannedEnforcement {
                enforced_by: None,
                violated_by: Some(self.named(violation.reaching)),
                paths: paths(self.design, &designed.rule, violation),
            },
        }
    }

    /// What made a rule impossible, added or implied.
    fn derivation(&self, designed: &DesignedRule) -> Option<RuleDerivationForm> {
        if let Some(dependency) = designed.determined_by().or(designed.follows_from) {
            return Some(self.dependency(dependency));
        }
        let implying = &self.design.rules[designed.implied_by?];
        match &implying.pointer {
            Some(pointer) => Some(RuleDerivationForm::Rule { rule: pointer.clone() }),
            None => implying.follows_from.map(|dependency| self.dependency(dependency)),
        }
    }

    /// The rule that a generalized table keeps for k-anonymity.
    fn anonymity_rule(&self, index: usize, table: &DesignedTable) -> Option<PlanRule> {
        let generalized = table.generalized()?;
        let k = generalized.k?;
        let eligible = k <= generalized.rows;
        Some(PlanRule {
            pointer: Some("/method".to_owned()),
            origin: RuleOrigin::Submitted,
            quasi_identifiers: self.named(generalized.quasi_identifiers),
            sensitive: Vec::new(),
            combination: false,
            guarantee: self.declared(Guarantee::KAnonymity { k }),
            status: if eligible { PlanRuleStatus::Kept } else { PlanRuleStatus::Refused },
            because: None,
            eligible,
            largest_l: generalized.rows / self.unit.rows(),
            enforced_by: eligible.then(|| ManifestEnforcedBy::Table { table: TableName::at(index).0 }),
            violated_by: None,
            paths: Vec::new(),
        })
    }
}

/// The method details that a manifest of the design would hold.
fn details_of(design: &Design) -> Option<MethodDetails> {
    let planned = design.planned().find(|planned| planned.faults.is_empty());
    planned.map(PlannedBuckets::method_details).or_else(|| decomposition(design)).or_else(|| {
        let cut = design.tables.iter().find_map(DesignedTable::sequential)?;
        Some(MethodDetails::Sequential(Box::new(cut.details.clone())))
    })
}

/// What a manifest would say of a decomposition, buckets in the order in which they are made: no labels are drawn for a plan.
fn decomposition(design: &Design) -> Option<MethodDetails> {
    let decomposed = design.tables.iter().find_map(DesignedTable::decomposed)?;
    let drawn = decomposed.drawn.as_deref()?;
    let labels: Vec<u32> = (1..=drawn.groups.len() as u32).collect();
    Some(MethodDetails::Decompose(decomposed.method_details(drawn, &labels)))
}

/// The same of the thresholds that rules put on values of a table.
pub(in crate::engine) fn unknown_values_of_rules(
    specification: &Specification,
    table: &Table,
) -> Vec<SpecificationNotice> {
    let of = |stated: &DeclaredThresholds| {
        let domain = &table.column(stated.attribute).domain;
        unused_names(unknown_values(stated.thresholds.stated(), domain), pointer_of(stated, specification))
    };
    specification.thresholds.iter().filter_map(of).collect()
}

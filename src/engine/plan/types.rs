use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::night::PlannedNight;
use crate::engine::prepare::PreparedRelease;
use crate::engine::prepare::known_forms::DescribedDependencies;
use crate::ledger::CompositionViolation;
use crate::microdata::AttrSet;
use crate::privacy;
use crate::privacy::{Dependency, DiscoveredDependency, GnfViolation, PrivacyRule, RuleStatus};
use crate::problem::ProblemDocument;
use crate::publication::{
    CompositionVerdict, DependencyUse, DigestedThresholds, Guarantee, MethodDetails, PlanRuleStatus, Protected,
    ProtectionKind, RuleOrigin, TableKind, TableName, Unit, UnitGuarantees,
};
use crate::publish::bucketize::PlannedBuckets;
use crate::publish::{Decision, Design, DesignedRule, DesignedTable};
use crate::report::{
    DependencyForm, ManifestDependencies, ManifestEnforcedBy, ManifestRatio, MethodDetailsForm, PractitionerExposures,
    RuleDerivationForm, SpecificationNotice, UsedDependencyForm,
};
use crate::spec::{MethodSpec, Specification};

/// The dry run of a job. It reveals counts of the data, so only keys that may see the dataset's table get it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Whether a job would publish.
    pub feasible: bool,
    /// The submitted rules, in their order.
    pub rules: Vec<PlanRule>,
    /// The planned tables.
    pub tables: Vec<PlanTable>,
    /// Dependencies that the adversary is assumed to know.
    pub dependencies: PlanDependencies,
    /// Published attributes that predict a sensitive one without determining it, the strongest first; empty where the rows were not
    /// read.
    pub proxies: Vec<PlanProxy>,
    /// Attributes in plain tables with a sensitive one that single out rows; empty where the rows were not read.
    pub exposed_to: Vec<ExposedTo>,
    /// What no rule would prevent; null where nothing would be published, or the rows were not read.
    #[serde(default)]
    pub exposures: Option<PlanExposures>,
    /// The composition check with earlier releases.
    pub composition: PlanComposition,
    /// Details of the method, as a manifest would hold them.
    pub method_details: Option<MethodDetailsForm>,
    /// The night, where the table is published night after night and the state of its population could be read; only for callers who
    /// have `datasets:inspect`, as it says which values persons were published with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub night: Option<PlannedNight>,
    /// The problems that a job would answer with.
    #[schema(value_type = Vec<ProblemDocument>)]
    pub problems: Vec<Value>,
    /// Notices for the caller.
    pub warnings: Vec<SpecificationNotice>,
}

/// What the adversary is assumed to know of dependencies, with the evidence in the rows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PlanDependencies {
    /// What a manifest would say.
    #[serde(flatten)]
    pub manifest: ManifestDependencies,
    /// Every known dependency, declared ones first.
    pub known: Vec<PlanDependency>,
    /// Dependencies that hold within the tolerance, and that random data could show as well; no adversary is assumed to know them.
    pub proxies: Vec<PlanDependency>,
}

/// A dependency with its evidence.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanDependency {
    /// The determining attributes.
    pub determinant: Vec<String>,
    /// The determined attributes.
    pub dependent: Vec<String>,
    /// Whether the document declares it.
    pub declared: bool,
    /// Whether only earlier releases or statements of the series know it.
    #[serde(default)]
    pub recorded: bool,
    /// Whether the determined attribute is a column of the upload that would not be published, and the data show the dependency.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpublished: bool,
    /// What the planned release makes of it.
    pub used: Vec<DependencyUse>,
    /// The number of distinct values of the determinant; null where rows were not read.
    pub groups: Option<u64>,
    /// The rows that are exceptions: the fewest without which it holds in all (g3).
    pub errors: Option<u64>,
    /// The bits that it saves of the description of the determined column; an accident saves as many with probability 2^-bits.
    pub saved_bits: Option<i64>,
}

impl PlanDependencies {
    /// What is known in a plan.
    pub(in crate::engine) fn new(described: &DescribedDependencies<'_>) -> Self {
        let known = described.known().into_iter().map(|known| {
            let UsedDependencyForm { dependent, determinant, unpublished, used } = known.form;
            let form = DependencyForm { dependent, determinant };
            PlanDependency {
                declared: known.is_declared,
                recorded: known.is_recorded,
                unpublished,
                used,
                ..PlanDependency::new(form, known.evidence)
            }
        });
        let proxies =
            described.rejected().into_iter().map(|(form, evidence)| PlanDependency::new(form, Some(evidence)));
        Self { manifest: described.in_json(), known: known.collect(), proxies: proxies.collect() }
    }
}

impl PlanDependency {
    fn new(form: DependencyForm, evidence: Option<DiscoveredDependency>) -> Self {
        Self {
            determinant: form.determinant,
            dependent: form.dependent,
            declared: false,
            recorded: false,
            unpublished: false,
            used: Vec::new(),
            groups: evidence.map(|evidence| evidence.groups as u64),
            errors: evidence.map(|evidence| evidence.errors as u64),
            saved_bits: evidence.map(|evidence| evidence.saved >> 20),
        }
    }
}

/// An attribute that predicts a sensitive one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanProxy {
    /// The predicted attribute: the sensitive attribute of a rule.
    pub sensitive: String,
    /// The predicting attribute.
    pub attribute: String,
    /// Goodman and Kruskal's lambda, from 0.1 to below 1: the reduction of the error of a guess when the attribute is known.
    pub lambda: f64,
}

/// Attributes that together reveal a sensitive value of some rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExposedTo {
    /// The sensitive attribute of a rule.
    pub sensitive: String,
    /// Attributes of a plain table with it. They single out at least one row in a hundred, and no smaller choice of them does.
    pub attributes: Vec<String>,
}

/// What no rule would prevent: figures of the original. The manifest has those of the parts, once there are parts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanExposures {
    /// The unique rows of each planned table with exact cells.
    pub rows: Vec<PlanUniqueRows>,
    /// The published attributes that no rule or requirement protects.
    pub unprotected: Vec<String>,
    /// What a reader infers who knows all other published attributes of a person.
    pub practitioner: PractitionerExposures,
}

/// The rows of a planned table that are unique.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanUniqueRows {
    /// The table.
    pub table: String,
    /// The attributes by which a row is known: all but those of the protected part.
    pub attributes: Vec<String>,
    /// The rows that no other row equals in these attributes.
    pub unique: ManifestRatio,
}

/// A rule in a plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanRule {
    /// Its pointer in the specification.
    pub pointer: Option<String>,
    /// Why it is listed.
    pub origin: RuleOrigin,
    /// The attributes that the adversary may know.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes.
    pub sensitive: Vec<String>,
    /// Whether only the joint value is protected.
    pub combination: bool,
    /// The bound on the inference.
    pub guarantee: Guarantee,
    /// The outcome for the rule.
    pub status: PlanRuleStatus,
    /// The rule that implies it, or the dependency that adds it or makes it impossible.
    pub because: Option<RuleDerivationForm>,
    /// Whether the data can satisfy it.
    pub eligible: bool,
    /// The largest l that the data allows; of k-anonymity the largest k.
    pub largest_l: u64,
    /// The reason it would hold.
    pub enforced_by: Option<ManifestEnforcedBy>,
    /// The known attributes that reach the sensitive one.
    pub violated_by: Option<Vec<String>>,
    /// For each attribute of `violated_by`, a shortest chain of tables from it to the sensitive attribute. The chain avoids tables that
    /// protect the attribute, where possible.
    pub paths: Vec<Vec<String>>,
}

/// A table in a plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanTable {
    /// `t1`, `t2`, ...
    pub name: String,
    /// What kind of table it is.
    pub kind: TableKind,
    /// The protection of the table.
    pub protection: ProtectionKind,
    /// Its attributes.
    pub attributes: Vec<String>,
    /// The attributes of the sensitive parts; for a generalized table the exact ones.
    pub sensitive: Option<Vec<String>>,
}

/// The composition check of a plan with the earlier releases of its series.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanComposition {
    /// The outcome of the composition check.
    pub verdict: CompositionVerdict,
    /// The earlier releases.
    pub against: Vec<uuid::Uuid>,
    /// The violated rules.
    pub violations: Vec<CompositionViolation>,
    /// Counts of records shared with another series, where one overlaps.
    pub counts: Option<CompositionCounts>,
}

/// The records of the dataset and of an earlier one of the series with a release.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CompositionCounts {
    /// Records of both.
    pub common: u64,
    /// Records of this dataset alone.
    pub added: u64,
    /// Records of the earlier one alone.
    pub removed: u64,
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
    prepared: &PreparedRelease,
    specification: &Specification,
    composition: PlanComposition,
    problems: Vec<Value>,
    warnings: Vec<SpecificationNotice>,
) -> Plan {
    let design = &prepared.design;
    let writer = PlanWriter::new(prepared, specification);
    let tables = design.tables.iter().enumerate();
    let anonymity = tables.clone().filter_map(|(index, table)| writer.anonymity_rule(index, table));
    Plan {
        feasible: problems.is_empty(),
        tables: tables.clone().map(|(index, table)| writer.table(index, table)).collect(),
        rules: anonymity.chain(design.rules.iter().map(|rule| writer.rule(rule))).collect(),
        dependencies: PlanDependencies::default(),
        proxies: Vec::new(),
        exposed_to: Vec::new(),
        exposures: None,
        method_details: details_of(design).and_then(|details| MethodDetailsForm::from_details(&details, &writer.names)),
        composition,
        night: None,
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
    fn new(
        PreparedRelease { design, dependencies, .. }: &'a PreparedRelease,
        specification: &'a Specification,
    ) -> Self {
        let of_method = match &specification.method {
            MethodSpec::Bucketize(spec) => Some(DigestedThresholds::from(spec.thresholds.clone())),
            _ => None,
        };
        let of_rules = specification.thresholds.iter().map(|declared| &declared.thresholds);
        Self {
            design,
            unit: &specification.unit,
            promised: specification.unit.promised(of_rules.chain(&of_method)),
            names: dependencies.names(specification),
            infeasible: matches!(design.decision, Decision::NotDiverse(_)),
        }
    }

    fn named(&self, set: AttrSet) -> Vec<String> {
        set.iter().map(|attr| self.names[attr.index()].clone()).collect()
    }

    /// The guarantee of a unit of protection behind that of rows.
    fn declared(&self, guarantee: Guarantee) -> Guarantee {
        self.unit.unit_guarantee(guarantee, &self.promised)
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

/// The details of a planned decomposition; buckets are numbered in their order, because a plan draws no labels.
fn decomposition(design: &Design) -> Option<MethodDetails> {
    let decomposed = design.tables.iter().find_map(DesignedTable::decomposed)?;
    let drawn = decomposed.drawn.as_deref()?;
    let labels: Vec<u32> = (1..=drawn.groups.len() as u32).collect();
    Some(MethodDetails::Decompose(decomposed.method_details(drawn, &labels)))
}

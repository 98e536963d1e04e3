use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::engine::prepare::annotations::pointer_of;
use crate::engine::prepare::wording::unused_names;
use crate::microdata::{AttrSet, Table};
use crate::privacy;
use crate::privacy::{Dependency, GnfViolation, PrivacyRule, RuleStatus};
use crate::publication::{DeclaredThresholds, DigestedThresholds, Guarantee, MethodDetails, Protected, TableName};
use crate::publish::bucketize::{PlannedBuckets, unknown_values};
use crate::publish::{Decision, Design, DesignedRule};
use crate::report::{ManifestDependencies, ManifestEnforcedBy, SpecificationNotice, method_details};
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
    pub method_details: Option<Value>,
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
    /// `submitted` or `from_dependency`.
    pub origin: String,
    /// What the adversary may know.
    pub quasi_identifiers: Vec<String>,
    /// What stays protected.
    pub sensitive: Vec<String>,
    /// Whether only the joint value is protected.
    pub combination: bool,
    /// The bound.
    pub guarantee: Guarantee,
    /// `kept`, `implied` or `refused`.
    pub status: String,
    /// The rule that implies it.
    #[schema(value_type = Option<Object>)]
    pub because: Option<Value>,
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
    /// `marginal`, `bucketized`, `sliced`, `generalized`, `decomposed` or `sensitive`.
    pub kind: String,
    /// `plain` or `guarding`; `exclusive` where a schema proposes buckets for which no rule states a guarantee, where buckets of a sliced
    /// table do not hold it alone, of both tables of a decomposition, and of generalized tables that do not keep one whatever stands beside them.
    pub protection: String,
    /// Its attributes.
    pub attributes: Vec<String>,
    /// The attributes in the sensitive parts; of a generalized table those that stay exact.
    pub sensitive: Option<Vec<String>>,
}

/// How a release would stand beside earlier ones of the same dataset.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PlanComposition {
    /// `safe`, `violated` or `undecidable`.
    pub verdict: String,
    /// The earlier releases.
    pub against: Vec<uuid::Uuid>,
    /// What would break.
    #[schema(value_type = Vec<Object>)]
    pub violations: Vec<Value>,
    /// Rows in common with other uploads; null while only the same dataset is judged.
    #[schema(value_type = Option<Object>)]
    pub counts: Option<Value>,
}

/// By which tables known attributes reach what a rule protects: for each of them one way.
pub(in crate::engine) fn paths(design: &Design, rule: &PrivacyRule, violation: &GnfViolation) -> Vec<Vec<String>> {
    let schemas = design.schemas();
    let path = |attr| privacy::leak(&schemas, rule, attr).into_iter().map(|table| TableName::at(table).0).collect();
    violation.reaching.iter().map(path).collect()
}

/// Puts a design into words. Feasibility, problems and composition are the caller's.
#[must_use]
pub(in crate::engine) fn to_report(
    design: &Design,
    specification: &Specification,
    composition: PlanComposition,
    problems: Vec<Value>,
    warnings: Vec<SpecificationNotice>,
) -> Plan {
    let names = crate::engine::prepare::known::attribute_names(specification);
    let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].clone()).collect::<Vec<_>>();
    let of_method = match &specification.method {
        MethodSpec::Bucketize(spec) => Some(DigestedThresholds::from(spec.thresholds.clone())),
        _ => None,
    };
    let of_rules = specification.thresholds.iter().map(|stated| &stated.thresholds);
    let promised = specification.unit.promised(of_rules.chain(&of_method));
    let stated = |guarantee: Guarantee| specification.unit.stated(guarantee, &promised);
    let tables = design.tables.iter().enumerate().map(|(index, table)| PlanTable {
        name: TableName::at(index).0,
        kind: table.kind().to_string(),
        protection: match &table.bucketized {
            Some(bucketized) if bucketized.guards.iter().all(|guard| guard.guarantees.is_empty()) => "exclusive",
            _ if table.stands_alone() => "exclusive",
            _ if table.is_plain() => "plain",
            _ => "guarding",
        }
        .to_owned(),
        attributes: named(table.attributes),
        sensitive: table.sensitive().map(named),
    });
    let dependency = |dependency: Dependency| {
        serde_json::json!({
            "determinant": named(dependency.determinant), "dependent": named(AttrSet::one(dependency.dependent)),
        })
    };
    let rule = |designed: &DesignedRule| {
        let infeasible = matches!(design.decision, Decision::NotDiverse(_));
        let refused = designed.is_refused() || infeasible;
        let (enforced_by, violated_by, paths) = match &designed.status {
            _ if refused || design.decision == Decision::Undecided => (None, None, Vec::new()),
            RuleStatus::Unreachable => (Some(ManifestEnforcedBy::Unreachable { unreachable: true }), None, Vec::new()),
            RuleStatus::Guardian { table, known } => (
                Some(ManifestEnforcedBy::Guardian { guardian: TableName::at(*table).0, known: named(*known) }),
                None,
                Vec::new(),
            ),
            RuleStatus::Violated(violation) => {
                (None, Some(named(violation.reaching)), paths(design, &designed.rule, violation))
            }
        };
        let status = match (refused, designed.implied_by) {
            (true, _) => "refused",
            (false, Some(_)) => "implied",
            (false, None) => "kept",
        };
        PlanRule {
            pointer: designed.pointer.clone(),
            origin: if designed.follows_from.is_some() { "from_dependency" } else { "submitted" }.to_owned(),
            quasi_identifiers: named(designed.rule.known),
            sensitive: named(designed.protects.attributes()),
            combination: matches!(designed.protects, Protected::Joint(_)),
            guarantee: stated(designed.rule.guarantee),
            status: status.to_owned(),
            because: designed.impossible.or(designed.follows_from).map(dependency).or_else(|| {
                let by = &design.rules[designed.implied_by?];
                let rule = by.pointer.as_ref().map(|pointer| serde_json::json!({ "rule": pointer }));
                rule.or_else(|| by.follows_from.map(dependency))
            }),
            eligible: designed.ineligible.is_none() && !infeasible,
            largest_l: designed.largest_l / specification.unit.rows(),
            enforced_by,
            violated_by,
            paths,
        }
    };
    let generalized = design.tables.iter().enumerate().filter_map(|(index, t)| Some((index, t.generalized.as_ref()?)));
    let anonymity = generalized.filter_map(|(index, generalized)| {
        let k = generalized.k?;
        let eligible = k <= generalized.rows;
        Some(PlanRule {
            pointer: Some("/method".to_owned()),
            origin: "submitted".to_owned(),
            quasi_identifiers: named(generalized.quasi_identifiers),
            sensitive: Vec::new(),
            combination: false,
            guarantee: stated(Guarantee::KAnonymity { k }),
            status: if eligible { "kept" } else { "refused" }.to_owned(),
            because: None,
            eligible,
            largest_l: generalized.rows / specification.unit.rows(),
            enforced_by: eligible.then(|| ManifestEnforcedBy::Table { table: TableName::at(index).0 }),
            violated_by: None,
            paths: Vec::new(),
        })
    });
    Plan {
        feasible: problems.is_empty(),
        tables: tables.collect(),
        rules: anonymity.chain(design.rules.iter().map(rule)).collect(),
        dependencies: ManifestDependencies::default(),
        proxies: Vec::new(),
        exposed_to: Vec::new(),
        method_details: design
            .planned()
            .find(|planned| planned.faults.is_empty())
            .map(PlannedBuckets::method_details)
            .or_else(|| decomposition(design))
            .or_else(|| {
                let cut = design.tables.iter().find_map(|table| table.cut.as_ref())?;
                Some(MethodDetails::Sequential(Box::new(cut.sequence.clone())))
            })
            .and_then(|said| method_details(&said, &names)),
        composition,
        problems,
        warnings,
    }
}

/// What a manifest would say of a decomposition, buckets in the order in which they are made: no labels are drawn for a plan.
fn decomposition(design: &Design) -> Option<MethodDetails> {
    let decomposed = design.tables.iter().find_map(|table| table.decomposed.as_ref())?;
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

//! Repairs of rules that dependencies make impossible: each is tried, and carries the merge patch (RFC 7396) that makes it. What needs
//! no word of a person is a remedy too, as are changes that end other faults of the data.

mod unlisted;
mod weaker;

use serde_json::{Map, Value, json};

use super::known::JobDependencies;
use super::prepared::{PreparedRelease, feasible_design};
use crate::control::Cancelled;
use crate::microdata::{Attr, AttrSet};
use crate::privacy::Dependency;
use crate::privacy::links::{KnownDependencies, KnownDependency, Link};
use crate::problem::{Fault, FaultRemedy, Kind};
use crate::publication::{Guarantee, JoinAttribute, Reference, SlicedDiversity, YElement, reference_parts};
use crate::publish::{PlanError, PlanRefusal};
use crate::spec;
use crate::spec::{Algorithm, BucketSizeChoice, MethodSpec, SequentialSpec, Specification};

/// Maximal number of repairs that are tried for a specification; those behind are not listed.
///
/// A fault of a rule has at most seven candidates, and the strictest parameter is found within nine; so two such faults are tried in full.
const MAX_TRIALS: usize = 32;

/// The repairs in the order in which they are listed.
const ORDER: [&str; 9] = [
    "leave_out_of_known",
    "name_in_x",
    "lower_l",
    "drop",
    "reference",
    "diversity",
    "sizes",
    "ineligible_strata",
    "assume_unknown",
];

/// Prepares a changed specification among changed dependencies, without some attributes.
pub(in crate::engine) type PrepareAgain<'a> =
    &'a dyn Fn(&Specification, JobDependencies, AttrSet) -> Result<PreparedRelease, PlanError>;

/// Tries repairs of a refused specification.
pub(in crate::engine) struct RepairTrials<'a> {
    pub(in crate::engine) specification: &'a Specification,
    pub(in crate::engine) dependencies: &'a JobDependencies,
    pub(in crate::engine) prepare: PrepareAgain<'a>,
}

/// A change of the document, and what it changes in memory.
struct Repair {
    /// The member that names it, with its value.
    name: &'static str,
    value: Value,
    patch: Value,
    /// Where the caller has to give a reason before the patched document is accepted.
    reasons: Vec<String>,
    specification: Specification,
    dependencies: JobDependencies,
    dropped: AttrSet,
}

impl Repair {
    /// The repair as problems list it.
    fn to_json(&self) -> Value {
        let mut written = json!({ self.name: self.value, "patch": self.patch });
        if !self.reasons.is_empty() {
            written["reason_at"] = json!(self.reasons);
        }
        written
    }

    /// What it does, in words.
    fn title(&self) -> String {
        let value = match &self.value {
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match self.name {
            "leave_out_of_known" => format!("leave {value} out of what the adversary knows"),
            "name_in_x" => format!("name {value} in x"),
            "lower_l" | "lower_k" | "raise_h" | "raise_c" | "raise_t" | "raise_alpha" => {
                let (_, parameter) = self.name.split_once('_').unwrap_or_default();
                format!("ask for {parameter} = {value}")
            }
            "raise_thresholds" => format!("let each value take {value} of a bucket"),
            "drop" => format!("drop {value}"),
            "reference" => format!("compare with the {value}"),
            "diversity" => "let each bucket keep the guarantee by itself".to_owned(),
            "sizes" => "search for the sizes of buckets".to_owned(),
            "sensitive_width" => "give the sensitive attribute a column of its own".to_owned(),
            "suppress_chain" => "suppress the rows that lead to other values".to_owned(),
            "algorithm" => format!("use {value}"),
            _ => format!("leave out {value}"),
        }
    }

    /// The same as a patch of the document that was sent; `None` where a person has to give a reason.
    fn remedy(&self, Specification { document, normalized, .. }: &Specification) -> Option<FaultRemedy> {
        if !self.reasons.is_empty() {
            return None;
        }
        let mut patched = normalized.clone();
        json_patch::merge(&mut patched, &self.patch);
        Some(FaultRemedy { title: self.title(), patch: spec::fitted(normalized, &patched, document)? })
    }
}

/// A fault whose repairs are tried, among all that were found.
#[derive(Clone, Copy)]
struct FaultTrial<'a> {
    fault: &'a Fault,
    found: &'a [Fault],
}

impl FaultTrial<'_> {
    /// Whether a fault of a changed document is this one, or one that the change led to.
    fn is_left(&self, other: &Fault) -> bool {
        let Self { fault, found } = self;
        let is_rule =
            |of: &Fault| matches!(of.kind, Kind::RuleImpossible | Kind::RuleIneligible | Kind::GuaranteeUnsupported);
        let is_same = other.pointer == fault.pointer && (is_rule(other) || other.kind == fault.kind);
        let is_known = found.iter().any(|known| (&known.pointer, known.kind) == (&other.pointer, other.kind));
        is_same || (!is_known && !is_elsewhere(&other.pointer, &fault.pointer))
    }
}

/// Whether two pointers are to different rules or requirements.
fn is_elsewhere(a: &str, b: &str) -> bool {
    let entry = |pointer: &str| -> Option<String> {
        let mut names = pointer.strip_prefix("/method/")?.split('/');
        let list = names.next().filter(|list| matches!(*list, "rules" | "requirements"))?;
        Some(format!("{list}/{}", names.next()?))
    };
    entry(a).zip(entry(b)).is_some_and(|(a, b)| a != b)
}

impl RepairTrials<'_> {
    /// The faults with those of their repairs that hold, each with its patch.
    pub(in crate::engine) fn tried(&self, faults: Vec<Fault>) -> Result<Vec<Fault>, Cancelled> {
        let mut trials = MAX_TRIALS;
        let mut tried = Vec::new();
        for mut fault in faults.clone() {
            let listed = fault.members.remove("repairs");
            let of = FaultTrial { fault: &fault, found: &faults };
            let candidates = match &listed {
                Some(Value::Array(listed)) => self.candidates(listed, &fault),
                _ => self.unlisted(&fault),
            };
            let mut repairs = self.holding(candidates, of, &mut trials)?;
            if repairs.iter().all(|repair| repair.name != "lower_l") {
                let at = if listed.is_some() { repairs.len() } else { 0 };
                repairs.splice(at..at, self.weakened(of, &mut trials)?);
            }
            // where the rules have to stay as they are, other tables may keep them
            if fault.kind == Kind::RuleImpossible && repairs.iter().all(|repair| !repair.reasons.is_empty()) {
                let others = [Algorithm::Auto, Algorithm::SingleAttribute].into_iter();
                let others = others.filter_map(|algorithm| self.other_algorithm(algorithm)).collect();
                repairs.splice(0..0, self.holding(others, of, &mut trials)?);
            }
            fault.remedies.extend(repairs.iter().filter_map(|repair| repair.remedy(self.specification)));
            if listed.is_some() {
                fault = fault.with("repairs", repairs.iter().map(Repair::to_json).collect::<Vec<_>>());
            }
            tried.push(fault);
        }
        Ok(tried)
    }

    /// The listed repairs that the document can say. Where they neither leave out nor drop an attribute, those that the
    /// dependency of the fault ties come to them.
    fn candidates(&self, listed: &[Value], fault: &Fault) -> Vec<Repair> {
        let mut candidates: Vec<Repair> =
            listed.iter().filter_map(|listed| self.repair(listed, &fault.pointer)).collect();
        let has = |candidates: &[Repair], name: &str| candidates.iter().any(|repair| repair.name == name);
        let tied = self.tied(fault);
        for name in ["leave_out_of_known", "drop"] {
            if !tied.is_empty() && !has(&candidates, "leave_out_of_known") && !has(&candidates, "drop") {
                let all = json!({ name: self.published(tied) });
                let each = tied.iter().map(|attr| json!({ name: self.published(AttrSet::one(attr)) }));
                // one attribute may be enough
                let listed: Vec<Value> = if tied.len() > 1 { each.chain([all]).collect() } else { vec![all] };
                candidates.extend(listed.iter().filter_map(|listed| self.repair(listed, &fault.pointer)));
            }
        }
        candidates.sort_by_key(|repair| ORDER.iter().position(|name| *name == repair.name));
        candidates
    }

    /// The published attributes that the dependency of a fault ties, without those that its rule protects.
    fn tied(&self, fault: &Fault) -> AttrSet {
        let side = |name: &str| fault.members.get("dependency").and_then(|of| self.attributes(of.get(name)?));
        let all = side("determinant").unwrap_or_default().union(side("dependent").unwrap_or_default());
        // what is not published is tied by all that determine it
        let unpublished = all.minus(self.specification.attributes);
        let ends = self.dependencies.all.iter().filter(|of| unpublished.contains(of.dependent));
        let all = ends.fold(all, |all, of| all.union(of.determinant));
        let rules = self.specification.method.rules().iter().filter(|rule| rule.pointer == fault.pointer);
        let protected = rules.fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
        all.minus(protected).intersection(self.specification.attributes)
    }

    /// The published names of attributes, which faults use.
    fn published(&self, set: AttrSet) -> Vec<&str> {
        set.iter().filter_map(|attr| self.specification.published_names.get(attr.index())).map(String::as_str).collect()
    }

    /// The repairs that hold, as far as trials are left.
    fn holding(&self, repairs: Vec<Repair>, of: FaultTrial<'_>, trials: &mut usize) -> Result<Vec<Repair>, Cancelled> {
        let mut holding = Vec::new();
        for repair in repairs {
            if *trials > 0 && self.holds(&repair, of)? {
                holding.push(repair);
            }
            *trials = trials.saturating_sub(1);
        }
        Ok(holding)
    }

    /// Whether a repair leaves no fault like this one, and leads to no other one there.
    fn holds(&self, repair: &Repair, of: FaultTrial<'_>) -> Result<bool, Cancelled> {
        let is_left = |fault: &Fault| of.is_left(fault);
        let is_join = matches!(repair.specification.method, MethodSpec::Sequential(_));
        let prepared = match (self.prepare)(&repair.specification, repair.dependencies.clone(), repair.dropped) {
            Ok(prepared) => prepared,
            // what is left out can be tied to the other releases all the more
            Err(PlanError::Refused(_)) if is_join && repair.name == "drop" => return Ok(false),
            Err(PlanError::Refused(PlanRefusal(faults))) => return Ok(!faults.iter().any(is_left)),
            Err(PlanError::Cancelled(cancelled)) => return Err(cancelled),
        };
        if prepared.misnamed.iter().any(is_left) {
            return Ok(false);
        }
        let Err(PlanRefusal(faults)) = feasible_design(&prepared, &repair.specification) else {
            return Ok(true);
        };
        Ok(!faults.iter().any(is_left))
    }

    /// A listed repair as a change of the document; `None` where the document cannot say it.
    fn repair(&self, listed: &Value, pointer: &str) -> Option<Repair> {
        let (name, value) = listed.as_object()?.iter().next()?;
        match name.as_str() {
            "leave_out_of_known" => self.leave_out(self.attributes(value)?, pointer),
            "lower_l" => self.lower_l(value.as_u64()?, pointer),
            "name_in_x" => self.name_in_x(value, pointer),
            "drop" => self
                .attributes(value)
                .filter(|of| of.is_subset(self.specification.attributes))
                .and_then(|of| self.drop(of)),
            "reference" => self.other_reference(value.as_str()?, pointer),
            "diversity" => self.bucket_diversity(),
            "sizes" => self.searched_sizes(),
            "ineligible_strata" => self.close_strata(),
            "assume_unknown" => self.assume_unknown(value),
            _ => None,
        }
    }

    fn attributes(&self, names: &Value) -> Option<AttrSet> {
        names.as_array()?.iter().map(|name| self.attribute(name.as_str()?)).collect()
    }

    fn attribute(&self, name: &str) -> Option<Attr> {
        let Specification { published_names, dropped_names, .. } = self.specification;
        published_names.iter().chain(dropped_names).position(|known| known == name).map(Attr::from)
    }

    /// The names of the dataset, which documents use.
    fn names(&self, set: AttrSet) -> Vec<&str> {
        let Specification { names, dropped_names, .. } = self.specification;
        let all: Vec<&str> = names.iter().chain(dropped_names).map(String::as_str).collect();
        set.iter().filter_map(|attr| all.get(attr.index()).copied()).collect()
    }

    /// The patch that changes the rule at `pointer` of a method, or the method itself.
    fn patch(&self, pointer: &str, change: impl Fn(&mut Map<String, Value>)) -> Option<Value> {
        let method = self.specification.normalized.get("method")?;
        if pointer == "/method" {
            let mut members = Map::new();
            change(&mut members);
            return Some(json!({ "method": members }));
        }
        let at: usize = pointer.strip_prefix("/method/rules/")?.parse().ok()?;
        let mut rules = method.get("rules")?.clone();
        change(rules.get_mut(at)?.as_object_mut()?);
        Some(json!({ "method": { "rules": rules } }))
    }

    /// A repair that changes the specification alone.
    fn changed(&self, name: &'static str, value: Value, patch: Value, specification: Specification) -> Repair {
        let (dependencies, reasons) = (self.dependencies.clone(), Vec::new());
        Repair { name, value, patch, reasons, specification, dependencies, dropped: AttrSet::EMPTY }
    }

    /// A guarantee that compares with other rows.
    fn other_reference(&self, name: &str, pointer: &str) -> Option<Repair> {
        let reference = if name == "stratum" { Reference::Stratum } else { Reference::Table };
        let mut specification = self.specification.clone();
        let mut changed = None;
        for rule in specification.method.rules_mut().iter_mut().filter(|rule| rule.pointer == pointer) {
            rule.guarantee = rule.guarantee.against(reference)?;
            changed = Some(rule.guarantee);
        }
        let guarantee = json!(changed?);
        let patch = self.patch(pointer, |members| {
            members.insert("guarantee".to_owned(), guarantee.clone());
        })?;
        Some(self.changed("reference", name.into(), patch, specification))
    }

    /// Buckets that keep the guarantee each by itself, in place of all together.
    fn bucket_diversity(&self) -> Option<Repair> {
        let mut specification = self.specification.clone();
        let MethodSpec::Slicing(spec) = &mut specification.method else { return None };
        spec.diversity = SlicedDiversity::Bucket;
        let patch = json!({ "method": { "diversity": "bucket" } });
        Some(self.changed("diversity", "bucket".into(), patch, specification))
    }

    /// Bucket sizes that are searched for, in place of listed ones.
    fn searched_sizes(&self) -> Option<Repair> {
        let mut specification = self.specification.clone();
        let MethodSpec::Bucketize(spec) = &mut specification.method else { return None };
        spec.sizes = BucketSizeChoice::Two;
        let patch = json!({ "method": { "sizes": "two" } });
        Some(self.changed("sizes", "two".into(), patch, specification))
    }

    /// Strata that break the guarantee become one bucket each; the reason is the caller's to give.
    fn close_strata(&self) -> Option<Repair> {
        let mut specification = self.specification.clone();
        match &mut specification.method {
            MethodSpec::Versatile(spec) => spec.closed = Some(String::new()),
            MethodSpec::Anatomy(spec) => spec.closed = Some(String::new()),
            _ => return None,
        }
        let patch = json!({ "method": { "ineligible_strata": { "closed": {} } } });
        let reasons = vec!["/method/ineligible_strata/closed/reason".to_owned()];
        Some(Repair { reasons, ..self.changed("ineligible_strata", "closed".into(), patch, specification) })
    }

    fn leave_out(&self, left_out: AttrSet, pointer: &str) -> Option<Repair> {
        // the known side of such a table is all of it
        if matches!(
            self.specification.method,
            MethodSpec::Slicing(_) | MethodSpec::Sequential(_) | MethodSpec::Generalize(_)
        ) {
            return None;
        }
        let mut specification = self.specification.clone();
        let mut known = AttrSet::EMPTY;
        for rule in specification.method.rules_mut().iter_mut().filter(|rule| rule.pointer == pointer) {
            rule.known = rule.known.minus(left_out);
            known = rule.known;
        }
        if known.is_empty() && !matches!(specification.method, MethodSpec::Versatile(_)) {
            return None;
        }
        let kept = json!(self.names(known));
        let mut patch = self.patch(pointer, |members| {
            members.insert("quasi_identifiers".to_owned(), kept.clone());
        })?;
        // it is published all the same
        let published = self.names(left_out).into_iter().map(|name| (name.to_owned(), json!({"publish": true})));
        patch["attributes"] = Value::Object(published.collect());
        let value = json!(self.names(left_out));
        Some(self.changed("leave_out_of_known", value, patch, specification))
    }

    fn lower_l(&self, largest: u64, pointer: &str) -> Option<Repair> {
        if !matches!(self.specification.method, MethodSpec::Versatile(_) | MethodSpec::Anatomy(_)) {
            return None;
        }
        let rows = self.specification.unit.rows();
        let l = largest / rows;
        if l < 2 {
            return None;
        }
        let mut specification = self.specification.clone();
        for rule in specification.method.rules_mut().iter_mut().filter(|rule| rule.pointer == pointer) {
            rule.guarantee = Guarantee::LDiversity { l: l * rows };
        }
        let patch = self.patch(pointer, |members| {
            members.insert("guarantee".to_owned(), json!({"type": "l_diversity", "l": l}));
        })?;
        Some(self.changed("lower_l", l.into(), patch, specification))
    }

    /// Names attributes in the X of the requirement at `pointer`.
    fn name_in_x(&self, listed: &Value, pointer: &str) -> Option<Repair> {
        let mut specification = self.specification.clone();
        let Specification { names, .. } = self.specification;
        let MethodSpec::Sequential(spec) = &mut specification.method else { return None };
        let against: Vec<String> = spec.against.iter().map(ToString::to_string).collect();
        let requirement = spec.requirements.iter_mut().find(|requirement| requirement.pointer == pointer)?;
        let mut requirements = self.specification.normalized.pointer("/method/requirements")?.clone();
        let at: usize = pointer.strip_prefix("/method/requirements/")?.parse().ok()?;
        let x = requirements.get_mut(at)?.get_mut("x")?.as_array_mut()?;
        for text in listed.as_array()? {
            let (release, attribute) = reference_parts(&against, text.as_str()?)?;
            if release == 0 {
                spec.generalized = spec.generalized.with(names.iter().position(|name| name == attribute)?.into());
            }
            requirement.x.push(JoinAttribute { release, attribute: attribute.to_owned() });
            x.push(text.clone());
        }
        let patch = json!({ "method": { "requirements": requirements } });
        Some(self.changed("name_in_x", listed.clone(), patch, specification))
    }

    /// Drops attributes that no rule of several tables mentions, and that no rule of one table protects.
    fn drop(&self, dropped: AttrSet) -> Option<Repair> {
        let rules = self.specification.method.rules();
        let known = rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.known));
        let protected = rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
        let is_one_table = !matches!(self.specification.method, MethodSpec::Versatile(_));
        if protected.meets(dropped) || (known.meets(dropped) && (!is_one_table || known.is_subset(dropped))) {
            return None;
        }
        let options =
            self.names(dropped).into_iter().map(|name| (name.to_owned(), json!({"publish": null, "drop": true})));
        let mut patch = json!({ "attributes": Value::Object(options.collect()) });
        let names = self.names(dropped);
        let is_kept = |name: &&Value| !name.as_str().is_some_and(|name| names.contains(&name));
        let method = self.specification.normalized.get("method")?;
        let without =
            |list: &Value| list.as_array().map(|list| list.iter().filter(is_kept).cloned().collect::<Vec<_>>());
        if let Some(kept) = method.get("quasi_identifiers").and_then(without) {
            patch["method"]["quasi_identifiers"] = kept.into();
        }
        if let Some(Value::Array(columns)) = method.pointer("/columns/explicit") {
            let kept = columns.iter().filter_map(without).filter(|column| !column.is_empty());
            patch["method"]["columns"] = json!({ "explicit": kept.collect::<Vec<_>>() });
        }
        let dependencies = self.without(|dependency| self.ends_with(dropped, dependency));
        let mut specification = self.specification.clone();
        if let MethodSpec::Sequential(spec) = &mut specification.method {
            self.leave_out_of_join(spec, dropped, &mut patch["method"])?;
        }
        let repair = self.changed("drop", json!(self.names(dropped)), patch, specification);
        Some(Repair { dependencies, dropped, ..repair })
    }

    /// Whether a dependency counts no more once some attributes are dropped.
    ///
    /// A dropped attribute still ties those that determine it, if there are two.
    fn ends_with(&self, dropped: AttrSet, dependency: &Dependency) -> bool {
        let determines = |other: &&Dependency, attr: Attr| {
            other.dependent == attr && other.determinant.len() == 1 && !other.determinant.meets(dropped)
        };
        let ties = |attr: Attr| self.dependencies.all.iter().filter(|other| determines(other, attr)).count() > 1;
        let stays = determines(&dependency, dependency.dependent) && ties(dependency.dependent);
        Link::from(*dependency).attributes.meets(dropped) && !stays
    }

    /// Leaves attributes out of a sequential release and of each X; `None` where a requirement counts one or is left without X.
    fn leave_out_of_join(&self, spec: &mut SequentialSpec, dropped: AttrSet, patch: &mut Value) -> Option<()> {
        let names = self.names(dropped);
        let is_dropped = |of: &JoinAttribute| of.release == 0 && names.contains(&of.attribute.as_str());
        let counts = |of: &YElement| matches!(of, YElement::Attribute(of) if is_dropped(of));
        if spec.class.is_some_and(|class| dropped.contains(class))
            || spec.requirements.iter().any(|requirement| requirement.y.iter().any(counts))
        {
            return None;
        }
        let method = self.specification.normalized.get("method")?;
        let mut requirements = method.get("requirements")?.clone();
        for (requirement, written) in spec.requirements.iter_mut().zip(requirements.as_array_mut()?) {
            let mut stays = requirement.x.iter().map(|of| !is_dropped(of)).collect::<Vec<_>>().into_iter();
            written.get_mut("x")?.as_array_mut()?.retain(|_| stays.next().unwrap_or(true));
            requirement.x.retain(|of| !is_dropped(of));
            requirement.x.iter().any(|of| of.release == 0).then_some(())?;
        }
        let published = method.get("publish")?.as_array()?.iter();
        let published = published.filter(|of| !of.as_str().is_some_and(|name| names.contains(&name)));
        *patch = json!({ "publish": published.collect::<Vec<_>>(), "requirements": requirements });
        spec.generalized = spec.generalized.minus(dropped);
        spec.left_out = dropped;
        Some(())
    }

    /// Withdraws a dependency and every other one that ties the same attributes.
    fn assume_unknown(&self, named: &Value) -> Option<Repair> {
        let side = |name: &str| self.attributes(named.get(name)?);
        let tied = side("determinant")?.union(side("dependent")?);
        let JobDependencies { all, declared, recorded, .. } = self.dependencies;
        let same = |dependency: &&Dependency| Link::from(**dependency).attributes == tied;
        // what is declared, or known to the series, is known
        if all[..declared + recorded].iter().any(|dependency| same(&dependency)) {
            return None;
        }
        let withdrawn = |dependency: &Dependency| {
            json!({"determinant": self.names(dependency.determinant),
                "dependent": self.names(AttrSet::one(dependency.dependent))})
        };
        let given = self.specification.normalized.pointer("/method/assume_unknown").and_then(Value::as_array);
        let mut entries = given.cloned().unwrap_or_default();
        let first = entries.len();
        entries.extend(all.iter().filter(same).map(withdrawn));
        let reasons = (first..entries.len()).map(|at| format!("/method/assume_unknown/{at}/reason")).collect();
        let patch = json!({ "method": { "assume_unknown": entries } });
        let dependencies = self.without(|dependency| same(&dependency));
        let repair = self.changed("assume_unknown", named.clone(), patch, self.specification.clone());
        Some(Repair { reasons, dependencies, ..repair })
    }

    /// The known dependencies without some of the discovered ones.
    fn without(&self, is_gone: impl Fn(&Dependency) -> bool) -> JobDependencies {
        let mut kept = self.dependencies.clone();
        let stays: Vec<bool> =
            (0..kept.all.len()).map(|at| at < kept.declared + kept.recorded || !is_gone(&kept.all[at])).collect();
        let mut stay = stays.iter();
        kept.all.retain(|_| stay.next().is_some_and(|stays| *stays));
        let mut stay = stays.iter();
        kept.evidence.retain(|_| stay.next().is_some_and(|stays| *stays));
        let known: Vec<KnownDependency> = kept
            .all
            .iter()
            .zip(&kept.evidence)
            .map(|(&dependency, evidence)| KnownDependency {
                dependency,
                is_exact: evidence.is_some_and(|evidence| evidence.errors == 0),
            })
            .collect();
        kept.known = KnownDependencies::new(&known, &[]);
        kept
    }
}

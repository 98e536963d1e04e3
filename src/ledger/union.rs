//! The union of all earlier disclosures and a new release, in the attributes of its job.

use std::collections::{BTreeSet, HashMap, HashSet};

use uuid::Uuid;

use super::exclusions::{ExcludedBySpec, UnionExclusions};
use super::linked::LinkedKnowledge;
use super::meeting::{MeetingTables, StandsAlone, reached};
use super::record::digest;
use super::series::SeriesDependencies;
use super::{
    ActiveRule, AttributeIdentities, CompositionViolation, Disclosure, EarlierDisclosures, JoinStep, RecordedGuard,
    RecordedProtection, TooManyAttributesError, ViolatedRule,
};
use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES};
use crate::privacy::{
    self, Dependency, ExpansionError, Guard, PrivacyRule, RuleDemand, RuleExpansion, RuleStatus, TableSchema,
};
use crate::publication::{DeclaredTaxonomy, ExcludedValues, Guarantee, Protected};

/// Maximal number of rules that follow from one rule.
const MAX_FOLLOWED: usize = 10_000;

/// Positions of named attributes among the attributes of a job and of the ledger.
#[derive(Clone, Debug, Default)]
pub(super) struct AttributePositions {
    pub(super) names: Vec<String>,
    pub(super) identities: AttributeIdentities,
    /// The positions of each attribute; a job may have several for one.
    exact: HashMap<String, AttrSet>,
    /// The positions of each attribute, and of all attributes that count as it.
    related: HashMap<String, AttrSet>,
}

impl AttributePositions {
    /// Positions for the attributes of a job, followed by all others of the ledger.
    fn new(names: &[String], earlier: &EarlierDisclosures) -> Result<Self, TooManyAttributesError> {
        let identities = earlier.identities.clone();
        let mut places = Self { names: names.to_vec(), identities, ..Self::default() };
        let mut seen: HashSet<&str> = names.iter().map(String::as_str).collect();
        let others: Vec<&str> = earlier.names().chain(earlier.mentioned()).filter(|name| seen.insert(name)).collect();
        let mut known: HashSet<String> =
            names.iter().map(|name| places.identities.canonical(name).to_owned()).collect();
        for other in others {
            if known.insert(places.identities.canonical(other).to_owned()) {
                places.names.push(other.to_owned());
            }
        }
        if places.names.len() > MAX_ATTRIBUTES {
            return Err(TooManyAttributesError(places.names.len()));
        }
        let mut of_roots: HashMap<String, AttrSet> = HashMap::new();
        for (index, name) in places.names.iter().enumerate() {
            let attr = AttrSet::one(Attr::from(index));
            let canonical = places.identities.canonical(name).to_owned();
            let exact = places.exact.entry(canonical).or_insert(AttrSet::EMPTY);
            *exact = exact.union(attr);
            for root in places.identities.roots(name) {
                let of_root = of_roots.entry(root.to_owned()).or_insert(AttrSet::EMPTY);
                *of_root = of_root.union(attr);
            }
        }
        for (canonical, exact) in &places.exact {
            let roots = places.identities.roots(canonical);
            let related = roots.iter().filter_map(|root| of_roots.get(*root)).fold(*exact, |all, set| all.union(*set));
            places.related.insert(canonical.clone(), related);
        }
        Ok(places)
    }

    /// The positions of a name.
    pub(super) fn exact(&self, name: &str) -> AttrSet {
        self.exact.get(self.identities.canonical(name)).copied().unwrap_or(AttrSet::EMPTY)
    }

    /// The positions of a name, and of all attributes that count as it.
    pub(super) fn related(&self, name: &str) -> AttrSet {
        self.related.get(self.identities.canonical(name)).copied().unwrap_or(AttrSet::EMPTY)
    }

    fn set(&self, names: &[String]) -> AttrSet {
        names.iter().fold(AttrSet::EMPTY, |all, name| all.union(self.related(name)))
    }

    pub(super) fn named(&self, set: AttrSet) -> Vec<String> {
        set.iter().map(|attr| self.names[attr.index()].clone()).collect()
    }
}

/// An earlier table, in parallel to its schema.
#[derive(Clone, Debug)]
pub(super) struct EarlierTable {
    pub(super) release: Uuid,
    pub(super) name: String,
    /// The reason why no other table may share an attribute with it.
    pub(super) alone: Option<StandsAlone>,
    /// The attributes that its buckets or classes protect, and those that count as them.
    pub(super) bucketized: AttrSet,
    /// Whether its guarantee holds only while no other table joins with it, directly or by other tables.
    on_join: bool,
}

/// Earlier disclosures in the attributes of a new job.
///
/// Attributes that the job does not use follow its own.
///
/// Equal disclosures count once: a nightly release adds to the ledger, but not to the work of the check.
#[derive(Clone, Debug, Default)]
pub struct LedgerUnion {
    pub(super) places: AttributePositions,
    /// The schemas of the earlier tables.
    pub schemas: Vec<TableSchema>,
    /// The active rules, without those that protect joint values.
    pub rules: Vec<PrivacyRule>,
    pub(super) tables: Vec<EarlierTable>,
    /// Annotations of guards, active rules, and attributes of the new release.
    pub(super) exclusions: UnionExclusions,
    /// All active rules.
    pub(super) protection: Vec<EarlierRule>,
    /// The combinations that must stay protected by dependencies; one protected attribute of each suffices.
    followed: Vec<EarlierRule>,
    /// Active rules from which too many others follow; with them no release passes the check.
    unfollowed: Vec<EarlierRule>,
    /// The dependencies on attributes that the new release lacks.
    extra: Vec<Dependency>,
    /// The dependencies of the adversary; their links also join tables.
    pub(super) series: SeriesDependencies,
    /// The earlier releases of the sequential join, whose requirements cover tables with common attributes.
    pub(super) joined: BTreeSet<Uuid>,
    /// Pairs of sensitive attributes, of an earlier and of the new release, that predict each other.
    pub(super) linked: BTreeSet<(Attr, Attr)>,
}

/// A rule that an earlier release promised, in the attributes of the job.
#[derive(Clone, Debug)]
pub(super) struct EarlierRule {
    pub(super) release: Uuid,
    pub(super) pointer: Option<String>,
    pub(super) demand: RuleDemand,
}

/// A release to be checked.
#[derive(Clone, Copy, Debug)]
pub struct CandidateRelease<'a> {
    /// The tables.
    pub tables: &'a [TableSchema],
    /// Tables that must not share an attribute with an earlier one.
    pub exclusive: &'a [ExclusiveTable<'a>],
    /// The rules.
    pub rules: &'a [NewRule],
}

/// A table of a new release that must not share an attribute with an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExclusiveTable<'a> {
    /// Index of the table.
    pub table: usize,
    /// Its property in words.
    pub property: &'a str,
}

impl ExclusiveTable<'_> {
    /// The property of a table that holds its promise by itself only.
    pub const EXCLUSIVE: &'static str = "would be exclusive";
}

/// A rule of a new release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewRule {
    /// The pointer into its specification; `None` for a rule that follows from a dependency.
    pub pointer: Option<String>,
    /// What the rule demands of tables.
    pub demand: RuleDemand,
}

/// A rule to judge, with the annotations of its sensitive attribute.
pub(super) struct JudgedRule<'a> {
    pub(super) release: Option<Uuid>,
    pub(super) pointer: &'a Option<String>,
    pub(super) demand: RuleDemand,
    pub(super) annotations: ExcludedBySpec,
}

impl LedgerUnion {
    /// Maps the ledger onto the attributes `names` of a new job.
    ///
    /// # Errors
    /// [`TooManyAttributesError`] when all releases together have too many attributes.
    pub fn new(names: &[String], earlier: &EarlierDisclosures) -> Result<Self, TooManyAttributesError> {
        // requirements do not cover a guarantee that holds only for a table by itself
        let releases = earlier.releases.releases.iter().filter(|release| !release.alone);
        let joined = releases.filter_map(|release| Uuid::try_parse(&release.release).ok());
        // a join with another table reveals the missing rows
        let lacks_rows = |of: &Uuid| earlier.disclosures.iter().any(|(release, table)| release == of && table.partial);
        let joined = joined.filter(|release| !lacks_rows(release)).collect();
        let places = AttributePositions::new(names, earlier)?;
        let series = SeriesDependencies::new(&places, names.len(), earlier);
        let mut union = Self { places, joined, series, ..Self::default() };
        let mut seen = HashSet::new();
        for (release, disclosure) in &earlier.disclosures {
            let attributes = union.places.set(&disclosure.attributes);
            // of two equal tables, one may be joined and the other not
            let joined = union.joined.contains(release).then_some(release);
            let unproven = disclosure.unproven.is_some();
            if seen.insert((attributes, &disclosure.protection, disclosure.partial, unproven, joined)) {
                union.disclosed(*release, disclosure, attributes);
            }
        }
        let mut seen = HashSet::new();
        let withdrawals = earlier.withdrawals();
        for (release, rule) in &earlier.rules {
            // of two equal rules, one may assume unknown what the other does not
            let withdrawn = withdrawals.get(release);
            if seen.insert((rule.pointer.is_some(), ActiveRule { pointer: None, ..rule.clone() }, withdrawn)) {
                union.promised(*release, rule);
            }
        }
        Ok(union)
    }

    fn disclosed(&mut self, release: Uuid, disclosure: &Disclosure, attributes: AttrSet) {
        let (mut guards, mut of_guards) = (Vec::new(), Vec::new());
        let mut bucketized = AttrSet::EMPTY;
        let recorded: &[RecordedGuard] = match &disclosure.protection {
            RecordedProtection::Guarding(guards) => guards,
            RecordedProtection::Plain | RecordedProtection::Exclusive => &[],
        };
        for guard in recorded {
            let known = self.places.set(&guard.quasi_identifiers);
            // buckets need not be constant in an attribute that is computed from a constant one and others
            let exact = |all: AttrSet, name: &String| all.union(self.places.exact(name));
            let constant = guard.constant.iter().fold(AttrSet::EMPTY, exact);
            bucketized = bucketized.union(self.places.set(&guard.sensitive));
            // buckets do not protect attributes that only count as the protected one
            let exact = guard.sensitive.iter().map(|name| (Some(name), self.places.exact(name)));
            let protected: Vec<(Option<&String>, Protected)> = match guard.joint {
                true => {
                    let joint = exact.fold(AttrSet::EMPTY, |all, (_, set)| all.union(set));
                    vec![(None, Protected::Joint(joint))]
                }
                false => exact
                    .flat_map(|(name, set)| {
                        set.iter().map(move |attr| (name, Protected::Attribute(attr))).collect::<Vec<_>>()
                    })
                    .collect(),
            };
            for (name, protects) in protected {
                let excluded = name.and_then(|name| guard.excludable.get(name)).into_iter().flatten();
                let annotations = ExcludedBySpec {
                    excluded: excluded.cloned().collect(),
                    taxonomy: name.and_then(|name| guard.taxonomies.get(name)).cloned(),
                    closes: guard.closes,
                };
                of_guards.extend(guard.guarantees.iter().map(|guarantee| annotations.under(*guarantee)));
                let closes = guard.closes;
                let guarantees = guard.guarantees.iter();
                guards.extend(guarantees.map(|&guarantee| Guard { known, protects, guarantee, constant, closes }));
            }
        }
        self.schemas.push(TableSchema { attributes, guards });
        self.exclusions.guards.push(of_guards);
        let alone = match (&disclosure.protection, disclosure.partial) {
            (_, true) => Some(StandsAlone::LacksRows),
            (RecordedProtection::Exclusive, false) => Some(StandsAlone::Exclusive),
            (_, false) => None,
        };
        let on_join = disclosure.protection == RecordedProtection::Exclusive && disclosure.unproven.is_none();
        self.tables.push(EarlierTable { release, name: disclosure.table.clone(), alone, bucketized, on_join });
    }

    fn promised(&mut self, release: Uuid, rule: &ActiveRule) {
        let known = self.places.set(&rule.quasi_identifiers);
        let values = || ExcludedBySpec {
            excluded: rule.excludable.iter().cloned().collect(),
            taxonomy: rule.taxonomy.clone(),
            closes: rule.closes,
        };
        let combination = self.places.set(&rule.combination);
        let protected: Vec<AttrSet> = match combination.is_empty() {
            // attributes that count as the sensitive one are protected like it
            true => self.places.related(&rule.sensitive).iter().map(AttrSet::one).collect(),
            false => vec![combination.union(self.places.related(&rule.sensitive))],
        };
        for protects in protected {
            let known = known.minus(protects);
            if let (Some(sensitive), 1) = (protects.iter().next(), protects.len()) {
                self.rules.push(PrivacyRule { known, sensitive, guarantee: rule.guarantee });
            }
            let demand = RuleDemand { known, protects, guarantee: rule.guarantee };
            self.protection.push(EarlierRule { release, pointer: rule.pointer.clone(), demand });
            self.exclusions.rules.push(values());
        }
    }

    /// All attributes: those of the job, then the others of the ledger.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.places.names
    }

    /// The attribute of a name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<Attr> {
        self.places.exact(name).iter().next()
    }

    /// The attributes that earlier buckets and classes protect.
    #[must_use]
    pub fn bucketized(&self) -> AttrSet {
        self.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.bucketized))
    }

    /// Records that attributes of an earlier and of the new release predict each other.
    ///
    /// The earlier release protects its attribute.
    pub fn link(&mut self, earlier: Attr, new: Attr) {
        self.linked.insert((earlier, new));
    }

    /// Records the excluded values of the new release, the taxonomies of its guarantees, and whether it closes strata.
    pub fn set_exclusions(&mut self, excludable: &[ExcludedValues], taxonomies: &[DeclaredTaxonomy], closes: bool) {
        self.exclusions.new_closes = closes;
        for ExcludedValues { attribute, values } in excludable {
            self.exclusions.new.entry(*attribute).or_default().excluded = values.iter().cloned().collect();
        }
        for DeclaredTaxonomy { attribute, tree } in taxonomies {
            self.exclusions.new.entry(*attribute).or_default().taxonomy = Some(digest(tree));
        }
    }

    /// Adds the rules that follow from active ones; a determinant of a protected attribute must stay protected too.
    ///
    /// `extra` are dependencies on attributes that the new release lacks.
    pub(super) fn follow_rules(&mut self, dependencies: &[Dependency], extra: &[Dependency]) {
        let dependencies = &[dependencies, extra].concat();
        if !extra.is_empty() {
            self.extra.clone_from(dependencies);
        }
        for rule in &self.protection {
            match follow(&rule.demand, dependencies) {
                Ok(demands) => {
                    self.followed.extend(demands.into_iter().map(|demand| EarlierRule { demand, ..rule.clone() }));
                }
                Err(ExpansionError) => self.unfollowed.push(rule.clone()),
            }
        }
    }

    /// Checks a new release together with all earlier disclosures.
    ///
    /// # Errors
    /// All conflicts with earlier releases.
    pub fn check(&self, release: &CandidateRelease<'_>) -> Result<(), Vec<CompositionViolation>> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let knowledge = self.knowledge(release);
        let tied = |tables: &[TableSchema]| tables.iter().map(|table| knowledge.tied(table)).collect::<Vec<AttrSet>>();
        let (tied_to_new, tied_to_earlier) = (tied(release.tables), tied(&self.schemas));
        let bound = self.bound(&tied_to_earlier);
        let mut violations = Vec::new();
        for (earlier, closure) in tied_to_earlier.iter().enumerate() {
            for (new, closure_of_new) in tied_to_new.iter().enumerate() {
                let tied = match closure.meets(*closure_of_new) {
                    true => Some(closure.intersection(release.tables[new].attributes)),
                    false => None,
                };
                let pair = MeetingTables { earlier, new, tied, is_bound: bound[earlier] };
                violations.extend(self.table_conflict(release, pair));
            }
        }
        violations.extend(self.unjoined(&tied_to_new, &tied_to_earlier, release.rules));
        let mut by_tables = self.rule_conflicts(release, &knowledge);
        let mut linked = self.linked_conflicts(release, &knowledge);
        // of two violations of a rule, the path with links says more, and otherwise the one over tables alone
        linked.retain(|linked| linked.leads_over_link() || by_tables.iter().all(|other| other.rule != linked.rule));
        by_tables.retain(|other| linked.iter().all(|linked| linked.rule != other.rule));
        violations.extend(linked.into_iter().chain(by_tables));
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// The conflicts with active, derived and new rules.
    fn rule_conflicts(&self, release: &CandidateRelease<'_>, knowledge: &LinkedKnowledge) -> Vec<CompositionViolation> {
        let Some(first) = self.tables.first() else { return Vec::new() };
        let all: Vec<TableSchema> = release.tables.iter().chain(&self.schemas).cloned().collect();
        let none = ExcludedBySpec::default();
        let judge = |demand: &RuleDemand, annotations: &ExcludedBySpec| {
            privacy::judge_demand(&self.exclusions.serving(&all, demand, annotations), demand)
        };
        let is_violated = |demand: &RuleDemand| matches!(judge(demand, &none), RuleStatus::Violated(_));
        // of a derived combination, one protected attribute suffices, or the joint value
        let is_open = |demand: &RuleDemand| {
            let single = |attr| RuleDemand { protects: AttrSet::one(attr), ..*demand };
            is_violated(demand) && demand.protects.iter().map(single).all(|single| is_violated(&single))
        };
        // what a dependency breaks without the new tables is no matter of theirs
        let is_reached = |demand: &RuleDemand| knowledge.reaches(demand.protects, release.tables, &all);
        let followed = self.followed.iter().filter(|rule| is_open(&rule.demand) && is_reached(&rule.demand));
        let earlier =
            self.protection.iter().zip(&self.exclusions.rules).chain(followed.map(|followed| (followed, &none)));
        let earlier = earlier.map(|(EarlierRule { release, pointer, demand }, annotations)| JudgedRule {
            release: Some(*release),
            pointer,
            demand: *demand,
            annotations: annotations.clone(),
        });
        let new = release.rules.iter().map(|NewRule { pointer, demand }| JudgedRule {
            release: None,
            pointer,
            demand: *demand,
            annotations: self.exclusions.of_new(demand.protects, demand.guarantee),
        });
        let unfollowed = self.unfollowed.iter().map(|rule| too_many_rules(rule.release, rule.pointer.clone()));
        let mut violations: Vec<CompositionViolation> = unfollowed.collect();
        let mut extra = Vec::new();
        for NewRule { pointer, demand } in release.rules {
            match follow(demand, &self.extra) {
                Ok(demands) => extra.extend(demands.into_iter().filter(&is_open).map(|demand| JudgedRule {
                    release: None,
                    pointer,
                    demand,
                    annotations: ExcludedBySpec::default(),
                })),
                Err(ExpansionError) => violations.push(too_many_rules(first.release, pointer.clone())),
            }
        }
        for rule in earlier.chain(new).chain(extra) {
            if let RuleStatus::Violated(violation) = judge(&rule.demand, &rule.annotations) {
                violations.push(self.rule_conflict(release, &rule, &violation, first.release));
            }
        }
        violations
    }

    /// A step of a path into a table, the new ones first.
    pub(super) fn join_step(&self, release: &CandidateRelease<'_>, table: usize, via: AttrSet) -> JoinStep {
        let via = self.places.named(via);
        match table.checked_sub(release.tables.len()) {
            None => JoinStep::Table { release: None, table: format!("t{}", table + 1), via },
            Some(earlier) => {
                let EarlierTable { release, name, .. } = &self.tables[earlier];
                JoinStep::Table { release: Some(*release), table: name.clone(), via }
            }
        }
    }

    /// The first release with a table that has one of some attributes.
    pub(super) fn release_with(&self, attributes: AttrSet) -> Option<Uuid> {
        let mut tables = self.schemas.iter().zip(&self.tables);
        tables.find(|(schema, _)| schema.attributes.meets(attributes)).map(|(_, table)| table.release)
    }

    /// For each earlier table, whether it joins with an exclusive one of another release.
    ///
    /// A new table would extend that join, and the promise about it does not cover the extension.
    fn bound(&self, closures: &[AttrSet]) -> Vec<bool> {
        let mut bound = vec![false; closures.len()];
        for (at, exclusive) in self.tables.iter().enumerate().filter(|(_, table)| table.on_join) {
            for (other, _) in reached(closures, closures[at]).into_iter().enumerate().filter(|(_, reached)| *reached) {
                bound[other] |= self.tables[other].release != exclusive.release;
            }
        }
        bound
    }

    pub(super) fn without_path(
        &self,
        release: Uuid,
        rules: &[NewRule],
        sensitive: Option<Attr>,
        detail: String,
    ) -> CompositionViolation {
        let concerns = |demand: &RuleDemand| sensitive.is_some_and(|attr| demand.protects.contains(attr));
        let concerned = rules.iter().find(|rule| concerns(&rule.demand)).or_else(|| rules.first());
        let pointer = concerned.map_or_else(|| Some("/method".to_owned()), |rule| rule.pointer.clone());
        let rule = ViolatedRule { release: None, pointer };
        CompositionViolation { rule, release, path: Vec::new(), detail }
    }
}

/// The violation of a rule from which too many others follow.
fn too_many_rules(release: Uuid, pointer: Option<String>) -> CompositionViolation {
    let detail = format!("dependencies lead from the rule to more than {MAX_FOLLOWED} others, and cannot be followed");
    let rule = ViolatedRule { release: Some(release), pointer };
    CompositionViolation { rule, release, path: Vec::new(), detail }
}

/// The combinations that dependencies imply for a rule; one attribute of each must be protected.
///
/// Some guarantees have no meaning for combinations, and a known side may determine the protected one. Then no bucket
/// satisfies the bound for a determinant, and no path may reach it.
fn follow(demand: &RuleDemand, dependencies: &[Dependency]) -> Result<Vec<RuleDemand>, ExpansionError> {
    let out_of_reach = |demand: &RuleDemand| RuleDemand { guarantee: Guarantee::LDiversity { l: u64::MAX }, ..*demand };
    let derived = |expansion: RuleExpansion| expansion.derived.into_iter().map(|derived| derived.demand).collect();
    let expansion = privacy::expand(&[*demand], dependencies, MAX_FOLLOWED)?;
    if !expansion.impossible.is_empty() {
        let dependencies = dependencies.iter().filter(|dependency| demand.protects.contains(dependency.dependent));
        let determinants = dependencies.map(|&Dependency { determinant, dependent }| {
            demand.protects.without(dependent).union(determinant).minus(demand.known)
        });
        let determinants =
            determinants.filter(|determinants| !determinants.is_empty() && !demand.protects.is_subset(*determinants));
        return Ok(determinants.map(|protects| RuleDemand { protects, ..out_of_reach(demand) }).collect());
    }
    if !expansion.unsupported.is_empty() {
        return Ok(derived(privacy::expand(&[out_of_reach(demand)], dependencies, MAX_FOLLOWED)?));
    }
    Ok(derived(expansion))
}

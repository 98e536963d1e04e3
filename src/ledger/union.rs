//! The union of all earlier disclosures and a new release, in the attributes of its job.

use std::collections::{BTreeSet, HashMap, HashSet};

use uuid::Uuid;

use super::exclusions::{ExcludedBySpec, UnionExclusions};
use super::meeting::{determined_by, reached};
use super::{
    ActiveRule, AttributeIdentities, CompositionViolation, Disclosure, EarlierDisclosures, RecordedGuard,
    RecordedProtection, TooManyAttributesError, digest,
};
use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES};
use crate::privacy::{
    self, Dependency, ExpansionError, Guard, PrivacyRule, RuleDemand, RuleExpansion, RuleStatus, TableSchema,
};
use crate::publication::{DeclaredTaxonomy, ExcludedValues, Guarantee, Protected};

/// Reason why no table may share an attribute with a table of a sequential join.
const JOINED_ELSEWHERE_DETAIL: &str = "was joined with an exclusive one, whose join has a promise,";

/// Maximal number of rules that follow from one rule.
const MAX_FOLLOWED: usize = 10_000;

/// Positions of named attributes among the attributes of a job and of the ledger.
#[derive(Clone, Debug, Default)]
struct AttributePositions {
    names: Vec<String>,
    identities: AttributeIdentities,
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
        let others: Vec<&str> = earlier.names().filter(|name| seen.insert(name)).collect();
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
    fn exact(&self, name: &str) -> AttrSet {
        self.exact.get(self.identities.canonical(name)).copied().unwrap_or(AttrSet::EMPTY)
    }

    /// The positions of a name, and of all attributes that count as it.
    fn related(&self, name: &str) -> AttrSet {
        self.related.get(self.identities.canonical(name)).copied().unwrap_or(AttrSet::EMPTY)
    }

    fn set(&self, names: &[String]) -> AttrSet {
        names.iter().fold(AttrSet::EMPTY, |all, name| all.union(self.related(name)))
    }

    fn named(&self, set: AttrSet) -> Vec<String> {
        set.iter().map(|attr| self.names[attr.index()].clone()).collect()
    }
}

/// An earlier table, in parallel to its schema.
#[derive(Clone, Debug)]
struct EarlierTable {
    release: Uuid,
    name: String,
    /// The reason why no other table may share an attribute with it.
    alone: Option<&'static str>,
    /// The attributes that its buckets or classes protect, and those that count as them.
    bucketized: AttrSet,
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
    places: AttributePositions,
    /// The schemas of the earlier tables.
    pub schemas: Vec<TableSchema>,
    /// The active rules, without those that protect joint values.
    pub rules: Vec<PrivacyRule>,
    tables: Vec<EarlierTable>,
    /// Annotations of guards, active rules, and attributes of the new release.
    exclusions: UnionExclusions,
    /// All active rules.
    protection: Vec<(Uuid, Option<String>, RuleDemand)>,
    /// The combinations that must stay protected by dependencies; one protected attribute of each suffices.
    followed: Vec<(Uuid, Option<String>, RuleDemand)>,
    /// Active rules from which too many others follow; with them no release passes the check.
    unfollowed: Vec<(Uuid, Option<String>)>,
    /// The dependencies on attributes that the new release lacks.
    extra: Vec<Dependency>,
    /// All dependencies of the adversary; they also join tables.
    known: Vec<Dependency>,
    /// The earlier releases of the sequential join, whose requirements cover tables with common attributes.
    joined: BTreeSet<Uuid>,
    /// Pairs of sensitive attributes, of an earlier and of the new release, that predict each other.
    linked: BTreeSet<(Attr, Attr)>,
}

/// A release to be checked.
#[derive(Clone, Copy)]
struct NewRelease<'a> {
    tables: &'a [TableSchema],
    /// Indexes of tables that must not share an attribute with an earlier one, with their property in words.
    exclusive: &'a [(usize, &'a str)],
    rules: &'a [(Option<String>, RuleDemand)],
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
        let mut union = Self { places: AttributePositions::new(names, earlier)?, joined, ..Self::default() };
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
        for (release, rule) in &earlier.rules {
            if seen.insert(ActiveRule { pointer: None, ..rule.clone() }) {
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
                };
                of_guards.extend(guard.guarantees.iter().map(|guarantee| annotations.under(*guarantee)));
                guards.extend(guard.guarantees.iter().map(|&guarantee| Guard { known, protects, guarantee }));
            }
        }
        self.schemas.push(TableSchema { attributes, guards });
        self.exclusions.guards.push(of_guards);
        let alone = match (&disclosure.protection, disclosure.partial) {
            (_, true) => Some("lacks some rows"),
            (RecordedProtection::Exclusive, false) => Some("is exclusive"),
            (_, false) => None,
        };
        let on_join = disclosure.protection == RecordedProtection::Exclusive && disclosure.unproven.is_none();
        self.tables.push(EarlierTable { release, name: disclosure.table.clone(), alone, bucketized, on_join });
    }

    fn promised(&mut self, release: Uuid, rule: &ActiveRule) {
        let known = self.places.set(&rule.quasi_identifiers);
        let values =
            || ExcludedBySpec { excluded: rule.excludable.iter().cloned().collect(), taxonomy: rule.taxonomy.clone() };
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
            self.protection.push((release, rule.pointer.clone(), demand));
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

    /// Records the excluded values of the new release, and the taxonomies of its guarantees.
    pub fn set_exclusions(&mut self, excludable: &[ExcludedValues], taxonomies: &[DeclaredTaxonomy]) {
        for ExcludedValues { attribute, values } in excludable {
            self.exclusions.new.entry(*attribute).or_default().excluded = values.iter().cloned().collect();
        }
        for DeclaredTaxonomy { attribute, tree } in taxonomies {
            self.exclusions.new.entry(*attribute).or_default().taxonomy = Some(digest(tree));
        }
    }

    /// Records the dependencies of the adversary.
    ///
    /// A determinant of a protected attribute must stay protected too.
    ///
    /// `extra` are dependencies on attributes that the new release lacks.
    pub fn assume(&mut self, dependencies: &[Dependency], extra: &[Dependency]) {
        let dependencies = &[dependencies, extra].concat();
        self.known.clone_from(dependencies);
        if !extra.is_empty() {
            self.extra.clone_from(dependencies);
        }
        for (release, pointer, demand) in &self.protection {
            match follow(demand, dependencies) {
                Ok(demands) => {
                    self.followed.extend(demands.into_iter().map(|demand| (*release, pointer.clone(), demand)));
                }
                Err(ExpansionError) => self.unfollowed.push((*release, pointer.clone())),
            }
        }
    }

    /// Checks new tables, under the new rules with their pointers, together with all earlier disclosures.
    ///
    /// `exclusive` lists tables by index that must not share an attribute with an earlier one, with their property in
    /// words.
    ///
    /// # Errors
    /// All conflicts with earlier releases.
    pub fn check(
        &self,
        tables: &[TableSchema],
        alone: &[(usize, &str)],
        rules: &[(Option<String>, RuleDemand)],
    ) -> Result<(), Vec<CompositionViolation>> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let release = NewRelease { tables, exclusive: alone, rules };
        let closures_of_new: Vec<AttrSet> =
            tables.iter().map(|new| determined_by(new.attributes, &self.known)).collect();
        let closures_of_earlier = self.closures_of_earlier();
        let bound = self.bound(&closures_of_earlier);
        let mut violations = Vec::new();
        for (earlier, closure) in closures_of_earlier.iter().enumerate() {
            for (new, closure_of_new) in closures_of_new.iter().enumerate() {
                let can_join = closure.meets(*closure_of_new);
                violations.extend(self.table_conflict(&release, earlier, new, can_join, bound[earlier]));
            }
        }
        violations.extend(self.unjoined(&closures_of_new, &closures_of_earlier, rules));
        violations.extend(self.rule_conflicts(&release));
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// The conflict of an earlier and a new table, by their indexes, that no path is needed for.
    fn table_conflict(
        &self,
        release: &NewRelease<'_>,
        earlier: usize,
        new: usize,
        can_join: bool,
        is_bound: bool,
    ) -> Option<CompositionViolation> {
        let (schema, table) = (&self.schemas[earlier], &self.tables[earlier]);
        let (name, attributes) = (&table.name, release.tables[new].attributes);
        let sensitive = protected(&release.tables[new]);
        let conflict =
            |attr: Option<Attr>, detail: String| Some(self.without_path(table.release, release.rules, attr, detail));
        if let Some(twice) = table.bucketized.intersection(sensitive).iter().next() {
            let attribute = &self.places.names[twice.index()];
            let detail = format!(
                "{attribute} was bucketized before, in table {name} of the release; buckets drawn a second time over the same people can be intersected"
            );
            return conflict(Some(twice), detail);
        }
        let linked = self.linked_pair(table.bucketized, sensitive).filter(|_| schema.attributes.meets(attributes));
        if let Some((before, now)) = linked {
            let [before, now] = [before, now].map(|attr| &self.places.names[attr.index()]);
            let detail = format!(
                "{before}, which table {name} of the release protects, and {now} predict each other, and both tables share \
                 attributes: the buckets of one narrow down those of the other"
            );
            return conflict(None, detail);
        }
        // the requirements on the join cover joined releases
        if self.joined.contains(&table.release) || !can_join {
            return None;
        }
        if let Some(why) = table.alone.or_else(|| is_bound.then_some(JOINED_ELSEWHERE_DETAIL)) {
            let how = how(schema.attributes, attributes);
            return conflict(None, format!("table {name} of the release {why} and {how} table t{}", new + 1));
        }
        let (_, why) = release.exclusive.iter().find(|(of, _)| *of == new)?;
        let how = how(attributes, schema.attributes);
        conflict(None, format!("table t{} {why} and {how} table {name} of the release", new + 1))
    }

    /// The conflicts with active, derived and new rules.
    fn rule_conflicts(&self, release: &NewRelease<'_>) -> Vec<CompositionViolation> {
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
        let followed = self.followed.iter().filter(|(_, _, demand)| is_open(demand));
        let earlier =
            self.protection.iter().zip(&self.exclusions.rules).chain(followed.map(|followed| (followed, &none)));
        let earlier = earlier
            .map(|((release, pointer, demand), annotations)| (Some(*release), pointer, *demand, annotations.clone()));
        let annotations = |demand: &RuleDemand| self.exclusions.of_new(demand.protects, demand.guarantee);
        let new = release.rules.iter().map(|(pointer, demand)| (None, pointer, *demand, annotations(demand)));
        let mut unfollowed = self.unfollowed.clone();
        let mut extra = Vec::new();
        for (pointer, demand) in release.rules {
            match follow(demand, &self.extra) {
                Ok(demands) => {
                    let demands = demands.into_iter().filter(&is_open);
                    extra.extend(demands.map(|demand| (None, pointer, demand, ExcludedBySpec::default())));
                }
                Err(ExpansionError) => unfollowed.push((first.release, pointer.clone())),
            }
        }
        let unfollowed = unfollowed.into_iter().map(|(release, pointer)| {
            let detail =
                format!("dependencies lead from the rule to more than {MAX_FOLLOWED} others, and cannot be followed");
            CompositionViolation { rule: (Some(release), pointer), release, path: Vec::new(), detail }
        });
        let mut violations: Vec<CompositionViolation> = unfollowed.collect();
        for (rule_release, pointer, demand, annotations) in earlier.chain(new).chain(extra) {
            let RuleStatus::Violated(violation) = judge(&demand, &annotations) else { continue };
            let path: Vec<_> = violation.path.iter().map(|step| self.path_step(release, *step)).collect();
            let detail = format!(
                "an adversary who knows {} could reach {} through the tables of both releases",
                self.places.named(violation.reaching).join(", "),
                self.places.named(demand.protects).join(", ")
            );
            let in_conflict = path.iter().find_map(|step| step.0).or(rule_release).unwrap_or(first.release);
            violations.push(CompositionViolation {
                rule: (rule_release, pointer.clone()),
                release: in_conflict,
                path,
                detail,
            });
        }
        violations
    }

    /// A step of a path: the release (`None` for the new one), the table, and the attributes through which the path enters it.
    fn path_step(
        &self,
        release: &NewRelease<'_>,
        (table, via): (usize, AttrSet),
    ) -> (Option<Uuid>, String, Vec<String>) {
        match table.checked_sub(release.tables.len()) {
            None => (None, format!("t{}", table + 1), self.places.named(via)),
            Some(earlier) => {
                let earlier = &self.tables[earlier];
                (Some(earlier.release), earlier.name.clone(), self.places.named(via))
            }
        }
    }

    /// Conflicts of tables that a chain of joins connects with the new release.
    ///
    /// No requirement of a sequential release covers them.
    fn unjoined(
        &self,
        new: &[AttrSet],
        earlier: &[AttrSet],
        rules: &[(Option<String>, RuleDemand)],
    ) -> Vec<CompositionViolation> {
        if self.joined.is_empty() {
            return Vec::new();
        }
        let own = new.iter().fold(AttrSet::EMPTY, |all, closure| all.union(*closure));
        let found = reached(earlier, own);
        let others = (0..earlier.len())
            .filter(|&at| found[at] && !self.joined.contains(&self.tables[at].release) && !earlier[at].meets(own));
        let violation = |at: usize| {
            let EarlierTable { release, name, .. } = &self.tables[at];
            let detail = format!(
                "table {name} of the release would join with the earlier releases of the new one, and is none of them"
            );
            self.without_path(*release, rules, None, detail)
        };
        others.map(violation).collect()
    }

    /// The closure of the attributes of each earlier table.
    fn closures_of_earlier(&self) -> Vec<AttrSet> {
        self.schemas.iter().map(|schema| determined_by(schema.attributes, &self.known)).collect()
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

    /// A protected attribute of an earlier table and one of a new table that predict each other.
    fn linked_pair(&self, before: AttrSet, now: AttrSet) -> Option<(Attr, Attr)> {
        self.linked.iter().copied().find(|(earlier, new)| before.contains(*earlier) && now.contains(*new))
    }

    fn without_path(
        &self,
        release: Uuid,
        rules: &[(Option<String>, RuleDemand)],
        sensitive: Option<Attr>,
        detail: String,
    ) -> CompositionViolation {
        let concerns = |demand: &RuleDemand| sensitive.is_some_and(|attr| demand.protects.contains(attr));
        let concerned = rules.iter().find(|(_, demand)| concerns(demand)).or_else(|| rules.first());
        let pointer = concerned.map_or_else(|| Some("/method".to_owned()), |(pointer, _)| pointer.clone());
        CompositionViolation { rule: (None, pointer), release, path: Vec::new(), detail }
    }
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

/// How two tables can be joined, in words.
fn how(one: AttrSet, other: AttrSet) -> &'static str {
    if one.meets(other) { "shares attributes with" } else { "is linked by dependencies with" }
}

/// The attributes that the guards of a table protect.
fn protected(schema: &TableSchema) -> AttrSet {
    schema.guards.iter().flat_map(|guard| guard.protects.attributes().iter()).collect()
}

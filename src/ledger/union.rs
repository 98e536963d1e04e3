//! Everything earlier beside a new release, in the attributes of its job.

use std::collections::{BTreeSet, HashMap, HashSet};

use uuid::Uuid;

use super::aside::{ExcludedBySpec, UnionExclusions};
use super::meeting::{reached, told_by};
use super::{
    ActiveRule, AttributeIdentities, CompositionViolation, Disclosure, EarlierDisclosures, RecordedGuard,
    RecordedProtection, TooManyAttributesError, digest,
};
use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES};
use crate::privacy::{
    self, Dependency, ExpansionError, Guard, PrivacyRule, RuleDemand, RuleExpansion, RuleStatus, TableSchema,
};
use crate::publication::{DeclaredTaxonomy, ExcludedValues, Guarantee, Protected};

/// Why nothing stands beside a table that a sequential release was made against.
const JOINED_ELSEWHERE_DETAIL: &str = "was joined with an exclusive one, of whose join something was promised,";

/// So many rules may follow from a rule.
const MAX_FOLLOWED: usize = 10_000;

/// The attributes that names stand for, in the attributes of a job.
#[derive(Clone, Debug, Default)]
struct AttributePositions {
    names: Vec<String>,
    identities: AttributeIdentities,
    /// Per attribute the places that have it: those of the job may be several.
    exact: HashMap<String, AttrSet>,
    /// Per attribute the places of whatever counts as it, too.
    related: HashMap<String, AttrSet>,
}

impl AttributePositions {
    /// The attributes of a job first, then all others that the ledger names.
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

    /// What a name stands for.
    fn exact(&self, name: &str) -> AttrSet {
        self.exact.get(self.identities.canonical(name)).copied().unwrap_or(AttrSet::EMPTY)
    }

    /// What counts as it, too.
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

/// An earlier table, beside its schema.
#[derive(Clone, Debug)]
struct EarlierTable {
    release: Uuid,
    name: String,
    /// Why no other table may share an attribute with it.
    alone: Option<&'static str>,
    /// What its buckets or classes protect, and whatever counts as that.
    bucketized: AttrSet,
    /// Whether it keeps what it promises as long as nothing else is joined with it, over others neither.
    on_join: bool,
}

/// Earlier disclosures in the attributes of a new job; attributes that the job does not use come behind its own. Equal disclosures
/// are one: a ledger grows with every night, and what there is to judge does not.
#[derive(Clone, Debug, Default)]
pub struct LedgerUnion {
    places: AttributePositions,
    /// The earlier tables.
    pub schemas: Vec<TableSchema>,
    /// The rules that stand, but for those that protect joint values.
    pub rules: Vec<PrivacyRule>,
    tables: Vec<EarlierTable>,
    /// What can be ruled out, per guard of each earlier table, per protection rule, and of the attributes of the new release.
    aside: UnionExclusions,
    /// All rules that stand.
    protection: Vec<(Uuid, Option<String>, RuleDemand)>,
    /// What follows from protection rules by dependencies: combinations, of which one attribute must be protected.
    followed: Vec<(Uuid, Option<String>, RuleDemand)>,
    /// Standing rules from which more follows than is looked at: nothing can be judged beside them.
    unfollowed: Vec<(Uuid, Option<String>)>,
    /// Dependencies on attributes that the new release does not have.
    beyond: Vec<Dependency>,
    /// All dependencies that are taken to be known: tables are joined by what their attributes tell, too.
    known: Vec<Dependency>,
    /// The earlier releases that the new one is joined with, whose requirements speak for tables that share attributes.
    joined: BTreeSet<Uuid>,
    /// Sensitive attributes, of an earlier and of the new release, of which one tells the other.
    linked: BTreeSet<(Attr, Attr)>,
}

impl LedgerUnion {
    /// Maps what the ledger holds onto the attributes `names` of a new job.
    ///
    /// # Errors
    /// [`TooManyAttributesError`] when all releases together have more than a set can hold.
    pub fn new(names: &[String], earlier: &EarlierDisclosures) -> Result<Self, TooManyAttributesError> {
        // what an earlier table keeps only while it stands alone no requirement speaks for
        let releases = earlier.beside.releases.iter().filter(|release| !release.alone);
        let joined = releases.filter_map(|release| Uuid::try_parse(&release.release).ok());
        // rows that are missing from it would be told from the others
        let lacks_rows = |of: &Uuid| earlier.disclosures.iter().any(|(release, table)| release == of && table.partial);
        let joined = joined.filter(|release| !lacks_rows(release)).collect();
        let mut union = Self { places: AttributePositions::new(names, earlier)?, joined, ..Self::default() };
        let mut seen = HashSet::new();
        for (release, disclosure) in &earlier.disclosures {
            let attributes = union.places.set(&disclosure.attributes);
            // of two tables that are alike, one may be joined and the other not
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
            // what only counts as a protected attribute is not protected by its buckets
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
                let aside = ExcludedBySpec {
                    excluded: excluded.cloned().collect(),
                    taxonomy: name.and_then(|name| guard.taxonomies.get(name)).cloned(),
                };
                of_guards.extend(guard.guarantees.iter().map(|guarantee| aside.under(*guarantee)));
                guards.extend(guard.guarantees.iter().map(|&guarantee| Guard { known, protects, guarantee }));
            }
        }
        self.schemas.push(TableSchema { attributes, guards });
        self.aside.guards.push(of_guards);
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
            // whatever counts as it is protected as it is
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
            self.aside.rules.push(values());
        }
    }

    /// All attributes: those of the job, and behind them what else the ledger names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.places.names
    }

    /// The attribute that a name stands for.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<Attr> {
        self.places.exact(name).iter().next()
    }

    /// What earlier buckets and classes protect.
    #[must_use]
    pub fn bucketized(&self) -> AttrSet {
        self.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.bucketized))
    }

    /// Takes into account that of two attributes, the first of which an earlier release protects, one tells the other.
    pub fn link(&mut self, earlier: Attr, new: Attr) {
        self.linked.insert((earlier, new));
    }

    /// Takes into account what an insider can rule out of the new release's values, and the taxonomies that its bounds go by.
    pub fn set_aside(&mut self, excludable: &[ExcludedValues], taxonomies: &[DeclaredTaxonomy]) {
        for ExcludedValues { attribute, values } in excludable {
            self.aside.new.entry(*attribute).or_default().excluded = values.iter().cloned().collect();
        }
        for DeclaredTaxonomy { attribute, tree } in taxonomies {
            self.aside.new.entry(*attribute).or_default().taxonomy = Some(digest(tree));
        }
    }

    /// Takes dependencies into account that the adversary is now taken to know: what determines an attribute that a protection
    /// rule protects is to stay protected too. Those of `beyond` concern attributes that the new release does not have.
    pub fn assume(&mut self, dependencies: &[Dependency], beyond: &[Dependency]) {
        let dependencies = &[dependencies, beyond].concat();
        self.known.clone_from(dependencies);
        if !beyond.is_empty() {
            self.beyond.clone_from(dependencies);
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

    /// Judges new tables, under the new rules with their pointers, together with everything earlier. `alone` are those, by index,
    /// beside which no earlier one may share an attribute, and what they would be.
    ///
    /// # Errors
    /// Every violation.
    pub fn check(
        &self,
        tables: &[TableSchema],
        alone: &[(usize, &str)],
        rules: &[(Option<String>, RuleDemand)],
    ) -> Result<(), Vec<CompositionViolation>> {
        let Some(first) = self.tables.first() else { return Ok(()) };
        let first_release = first.release;
        let mut violations = Vec::new();
        let sensitive: Vec<AttrSet> = tables.iter().map(protected).collect();
        let told_of_new: Vec<AttrSet> = tables.iter().map(|new| told_by(new.attributes, &self.known)).collect();
        let told_of_earlier = self.told_of_earlier();
        let bound = self.bound(&told_of_earlier);
        for (at, (EarlierTable { release, name: table, alone: earlier_alone, bucketized, .. }, schema)) in
            self.tables.iter().zip(&self.schemas).enumerate()
        {
            for (index, new) in tables.iter().enumerate() {
                let meets = told_of_earlier[at].meets(told_of_new[index]);
                let twice = bucketized.intersection(sensitive[index]);
                let told =
                    || self.told(*bucketized, sensitive[index]).filter(|_| schema.attributes.meets(new.attributes));
                if let Some(twice) = twice.iter().next() {
                    let detail = format!(
                        "{} was bucketized before, in table {table} of the release; buckets drawn a second time over the same people can be intersected",
                        self.places.names[twice.index()]
                    );
                    violations.push(self.without_path(*release, rules, Some(twice), detail));
                } else if let Some((before, now)) = told() {
                    let [before, now] = [before, now].map(|attr| &self.places.names[attr.index()]);
                    let detail = format!(
                        "{before}, which table {table} of the release protects, and {now} tell each other, and both tables share \
                         attributes: the buckets of one narrow down those of the other"
                    );
                    violations.push(self.without_path(*release, rules, None, detail));
                } else if self.joined.contains(release) {
                    // judged on the join
                } else if let Some(why) =
                    earlier_alone.or_else(|| bound[at].then_some(JOINED_ELSEWHERE_DETAIL)).filter(|_| meets)
                {
                    let how = how(schema.attributes, new.attributes);
                    let detail = format!("table {table} of the release {why} and {how} table t{}", index + 1);
                    violations.push(self.without_path(*release, rules, None, detail));
                } else if let Some((_, why)) = alone.iter().find(|(of, _)| *of == index).filter(|_| meets) {
                    let how = how(new.attributes, schema.attributes);
                    let detail = format!("table t{} {why} and {how} table {table} of the release", index + 1);
                    violations.push(self.without_path(*release, rules, None, detail));
                }
            }
        }
        violations.extend(self.unjoined(&told_of_new, &told_of_earlier, rules));
        let all: Vec<TableSchema> = tables.iter().chain(&self.schemas).cloned().collect();
        let nothing = ExcludedBySpec::default();
        let judge = |demand: &RuleDemand, aside: &ExcludedBySpec| {
            privacy::judge_demand(&self.aside.seen(&all, demand, aside), demand)
        };
        let violated = |demand: &RuleDemand| matches!(judge(demand, &nothing), RuleStatus::Violated(_));
        // of what follows, one attribute that is protected is enough, or the joint value
        let open = |demand: &RuleDemand| {
            let single = |attr| RuleDemand { protects: AttrSet::one(attr), ..*demand };
            violated(demand) && demand.protects.iter().map(single).all(|single| violated(&single))
        };
        let followed = self.followed.iter().filter(|(_, _, demand)| open(demand));
        let earlier =
            self.protection.iter().zip(&self.aside.rules).chain(followed.map(|followed| (followed, &nothing)));
        let earlier =
            earlier.map(|((release, pointer, demand), aside)| (Some(*release), pointer, *demand, aside.clone()));
        let aside = |demand: &RuleDemand| self.aside.of_new(demand.protects, demand.guarantee);
        let new = rules.iter().map(|(pointer, demand)| (None, pointer, *demand, aside(demand)));
        let mut unfollowed = self.unfollowed.clone();
        let mut beyond = Vec::new();
        for (pointer, demand) in rules {
            match follow(demand, &self.beyond) {
                Ok(demands) => {
                    let demands = demands.into_iter().filter(&open);
                    beyond.extend(demands.map(|demand| (None, pointer, demand, ExcludedBySpec::default())));
                }
                Err(ExpansionError) => unfollowed.push((first_release, pointer.clone())),
            }
        }
        violations.extend(unfollowed.into_iter().map(|(release, pointer)| {
            let detail =
                format!("dependencies lead from the rule to more than {MAX_FOLLOWED} others, and cannot be followed");
            CompositionViolation { rule: (Some(release), pointer), release, path: Vec::new(), detail }
        }));
        for (release, pointer, demand, aside) in earlier.chain(new).chain(beyond) {
            let RuleStatus::Violated(violation) = judge(&demand, &aside) else { continue };
            let step = |&(table, via): &(usize, AttrSet)| match table.checked_sub(tables.len()) {
                None => (None, format!("t{}", table + 1), self.places.named(via)),
                Some(earlier) => {
                    let earlier = &self.tables[earlier];
                    (Some(earlier.release), earlier.name.clone(), self.places.named(via))
                }
            };
            let path: Vec<_> = violation.path.iter().map(step).collect();
            let in_the_way = path.iter().find_map(|step| step.0).or(release).unwrap_or(first_release);
            let detail = format!(
                "whoever knows {} could reach {} through the tables of both releases",
                self.places.named(violation.reaching).join(", "),
                self.places.named(demand.protects).join(", ")
            );
            violations.push(CompositionViolation {
                rule: (release, pointer.clone()),
                release: in_the_way,
                path,
                detail,
            });
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// Tables that share attributes with one that the new release is joined with, and not with the new release: they would be joined
    /// too, and no requirement was looked at with them.
    fn unjoined(
        &self,
        new: &[AttrSet],
        earlier: &[AttrSet],
        rules: &[(Option<String>, RuleDemand)],
    ) -> Vec<CompositionViolation> {
        if self.joined.is_empty() {
            return Vec::new();
        }
        let own = new.iter().fold(AttrSet::EMPTY, |all, told| all.union(*told));
        let found = reached(earlier, own);
        let others = (0..earlier.len())
            .filter(|&at| found[at] && !self.joined.contains(&self.tables[at].release) && !earlier[at].meets(own));
        let violation = |at: usize| {
            let EarlierTable { release, name, .. } = &self.tables[at];
            let detail = format!(
                "table {name} of the release would be joined with those that the new one is made against, and is none of them"
            );
            self.without_path(*release, rules, None, detail)
        };
        others.map(violation).collect()
    }

    /// What each earlier table tells.
    fn told_of_earlier(&self) -> Vec<AttrSet> {
        self.schemas.iter().map(|schema| told_by(schema.attributes, &self.known)).collect()
    }

    /// The earlier tables, by what they tell, that stand on a join with an exclusive one of another release: a further table would be
    /// joined with both, and what was promised of their join says nothing of that.
    fn bound(&self, told: &[AttrSet]) -> Vec<bool> {
        let mut bound = vec![false; told.len()];
        for (at, exclusive) in self.tables.iter().enumerate().filter(|(_, table)| table.on_join) {
            for (other, _) in reached(told, told[at]).into_iter().enumerate().filter(|(_, reached)| *reached) {
                bound[other] |= self.tables[other].release != exclusive.release;
            }
        }
        bound
    }

    /// An attribute that was protected before and one that is now, of which one tells the other.
    fn told(&self, before: AttrSet, now: AttrSet) -> Option<(Attr, Attr)> {
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

/// What follows from a rule by dependencies: combinations, of which one attribute must be protected.
///
/// Where the bound says nothing of combinations, or where what the rule knows already tells what it protects, no bucket keeps the bound
/// for what determines an attribute: it must be out of reach.
fn follow(demand: &RuleDemand, dependencies: &[Dependency]) -> Result<Vec<RuleDemand>, ExpansionError> {
    let out_of_reach = |demand: &RuleDemand| RuleDemand { guarantee: Guarantee::LDiversity { l: u64::MAX }, ..*demand };
    let derived = |expansion: RuleExpansion| expansion.derived.into_iter().map(|derived| derived.demand).collect();
    let expansion = privacy::expand(&[*demand], dependencies, MAX_FOLLOWED)?;
    if !expansion.impossible.is_empty() {
        let telling = dependencies.iter().filter(|dependency| demand.protects.contains(dependency.dependent));
        let told = telling.map(|&Dependency { determinant, dependent }| {
            demand.protects.without(dependent).union(determinant).minus(demand.known)
        });
        let told = told.filter(|told| !told.is_empty() && !demand.protects.is_subset(*told));
        return Ok(told.map(|protects| RuleDemand { protects, ..out_of_reach(demand) }).collect());
    }
    if !expansion.unsupported.is_empty() {
        return Ok(derived(privacy::expand(&[out_of_reach(demand)], dependencies, MAX_FOLLOWED)?));
    }
    Ok(derived(expansion))
}

/// How tables of some attributes are joined, in words.
fn how(one: AttrSet, other: AttrSet) -> &'static str {
    if one.meets(other) { "shares attributes with" } else { "is linked by dependencies with" }
}

/// What the guards of a table protect.
fn protected(schema: &TableSchema) -> AttrSet {
    schema.guards.iter().flat_map(|guard| guard.protects.attributes().iter()).collect()
}

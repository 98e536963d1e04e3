//! Dependencies known of the attributes of a series, and the check of all rules beside the links that they make.
//!
//! A link is a fact about people, not about a release: each new release is judged beside those of all releases.
//!
//! # Citations
//! docs/spec/dependencies.md#guardians-and-links

use uuid::Uuid;

use super::exclusions::ExcludedBySpec;
use super::series::ReleaseDependencies;
use super::union::{CandidateRelease, EarlierRule, JudgedRule, LedgerUnion};
use super::{CompositionViolation, JoinStep, NewRule, RecordedDependency, ViolatedRule};
use crate::microdata::AttrSet;
use crate::privacy::links::{
    self, AttributeWeights, Element, KnownDependencies, KnownDependency, Link, LinkContext, LinkedSchema, LinkedStatus,
    Violation,
};
use crate::privacy::{Dependency, GnfViolation, Guard, RuleDemand, TableSchema};

/// By what a series knows a dependency that a new release does not declare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DependencyOrigin {
    /// This earlier release recorded it.
    Recorded(Uuid),
    /// The data has it, with an attribute that this earlier release publishes and the new one lacks.
    Published(Uuid),
    /// A statement declares it.
    Statement,
}

/// What an adversary knows of all attributes.
pub(super) struct LinkedKnowledge {
    dependencies: KnownDependencies,
    links: Vec<Link>,
}

impl LinkedKnowledge {
    pub(super) fn new(dependencies: KnownDependencies, visible: AttrSet) -> Self {
        Self { links: dependencies.links(visible), dependencies }
    }

    /// The attributes that links tie to those of a table, with these.
    pub(super) fn tied(&self, table: &TableSchema) -> AttrSet {
        let links: Vec<AttrSet> = self.links.iter().map(|link| link.attributes).collect();
        links::connected(learned(table), &links)
    }

    /// Whether any link ties published or known attributes.
    pub(super) const fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// How `tables` violate a demand beside the links.
    pub(super) fn judge(&self, tables: &[TableSchema], demand: &RuleDemand) -> Option<Violation> {
        let weights = AttributeWeights::equal();
        let context = LinkContext { dependencies: &self.dependencies, links: &self.links, weights: &weights };
        // strata that a release relies on are published in a table that guards the rule
        let statuses = links::judge(&LinkedSchema { tables, context }, &[*demand], |_, _| false);
        statuses.into_iter().find_map(|status| match status {
            LinkedStatus::Violated(violation) => Some(violation),
            LinkedStatus::Unreachable | LinkedStatus::Guardian { .. } | LinkedStatus::HeldByStrata { .. } => None,
        })
    }

    /// Whether tables and links lead from `start` to one of the `new` tables.
    pub(super) fn reaches(&self, start: AttrSet, new: &[TableSchema], all: &[TableSchema]) -> bool {
        let component = self.component(start, all);
        new.iter().any(|table| learned(table).meets(component))
    }

    /// The attributes that tables and links connect to `start`.
    pub(super) fn component(&self, start: AttrSet, tables: &[TableSchema]) -> AttrSet {
        let links = self.links.iter().map(|link| link.attributes);
        let elements: Vec<AttrSet> = tables.iter().map(learned).chain(links).collect();
        links::connected(start, &elements)
    }
}

impl LedgerUnion {
    /// Records the dependencies of which a new release knows.
    ///
    /// Those that it withdraws count for the rules of other releases.
    pub fn assume(&mut self, release: ReleaseDependencies<'_>) {
        let dependencies = |known: &[KnownDependency]| known.iter().map(|known| known.dependency).collect::<Vec<_>>();
        self.follow_rules(&dependencies(release.own), &dependencies(release.across));
        self.series.add(release);
    }

    /// The dependencies of which the new release knows, for the ledger.
    #[must_use]
    pub fn recorded_dependencies(&self) -> Vec<RecordedDependency> {
        self.series.own.iter().map(|known| self.recorded_form(known)).collect()
    }

    /// The dependencies that the new release assumes unknown, for the ledger.
    #[must_use]
    pub fn recorded_withdrawals(&self) -> Vec<RecordedDependency> {
        self.series.withdrawn.iter().map(|known| self.recorded_form(known)).collect()
    }

    /// A dependency by the names of its attributes.
    pub(super) fn recorded_form(&self, known: &KnownDependency) -> RecordedDependency {
        RecordedDependency {
            determinant: self.places.named(known.dependency.determinant),
            dependent: self.places.names[known.dependency.dependent.index()].clone(),
            exact: known.is_exact,
        }
    }

    /// The dependencies of the series among the first `attributes`: earlier releases or statements know them.
    #[must_use]
    pub fn series_dependencies(&self, attributes: usize) -> Vec<KnownDependency> {
        let own = AttrSet::first(attributes);
        let is_own = |known: &&KnownDependency| links::Link::from(known.dependency).attributes.is_subset(own);
        self.series.recorded.iter().filter(is_own).copied().collect()
    }

    /// The dependencies on attributes behind the first `attributes`, as far as they constrain the new release.
    ///
    /// Over attributes that the job lacks they may tie attributes that it has. The verifier knows them, and so the design
    /// has to. A join knows all of them: its earlier releases publish attributes that the job lacks.
    #[must_use]
    pub fn hidden_dependencies(&self, attributes: usize, is_join: bool) -> Vec<KnownDependency> {
        let own = AttrSet::first(attributes);
        let known = self.series.of_new_release();
        let hidden: Vec<KnownDependency> =
            known.entries().filter(|known| !Link::from(known.dependency).attributes.is_subset(own)).collect();
        let behind: Vec<AttrSet> =
            hidden.iter().map(|known| Link::from(known.dependency).attributes.minus(own)).collect();
        let ties_own = |known: &KnownDependency| {
            let attributes = Link::from(known.dependency).attributes;
            let reached = links::connected(attributes.minus(own), &behind);
            let meeting = hidden.iter().map(|other| Link::from(other.dependency).attributes);
            let meeting = meeting.filter(|other| other.meets(reached)).fold(attributes, AttrSet::union);
            meeting.intersection(own).len() > 1
        };
        hidden.iter().filter(|known| is_join || ties_own(known)).copied().collect()
    }

    /// The earlier release by which the series knows a dependency of the new one, as words and id.
    ///
    /// It recorded the dependency, or publishes an attribute of it that the job lacks.
    #[must_use]
    pub fn origin_of(&self, dependency: &Dependency) -> Option<DependencyOrigin> {
        if let Some(release) = self.series.recorded_by(dependency) {
            return Some(DependencyOrigin::Recorded(release));
        }
        if self.series.recorded.iter().any(|recorded| recorded.dependency == *dependency) {
            return Some(DependencyOrigin::Statement);
        }
        let lacking = Link::from(*dependency).attributes.minus(self.series.own_attributes());
        self.release_with(lacking).map(DependencyOrigin::Published)
    }

    /// The dependencies against which the rules of the new release must hold, those of earlier releases included.
    #[must_use]
    pub fn assumed_dependencies(&self) -> Vec<Dependency> {
        self.series.of_new_release().all().to_vec()
    }

    /// The names of all attributes: those of the job first.
    #[must_use]
    pub fn attribute_names(&self) -> &[String] {
        &self.places.names
    }

    /// What is known of the attributes of all releases, whatever the new one withdraws.
    pub(super) fn knowledge(&self, release: &CandidateRelease<'_>) -> LinkedKnowledge {
        LinkedKnowledge::new(self.series.all(), self.visible(release))
    }

    /// What the rules of an earlier release must hold against.
    pub(super) fn knowledge_against(&self, rule: &EarlierRule, release: &CandidateRelease<'_>) -> LinkedKnowledge {
        LinkedKnowledge::new(self.series.against(rule.release), self.visible(release))
    }

    /// A path over tables and links, for readers.
    pub(super) fn linked_path(
        &self,
        release: &CandidateRelease<'_>,
        knowledge: &LinkedKnowledge,
        violation: &Violation,
    ) -> Vec<JoinStep> {
        let step = |step: &links::LinkedStep| match step.through {
            Element::Table(table) => self.join_step(release, table, step.via),
            Element::Link(link) => {
                let mut attributes = self.places.named(knowledge.links[link].attributes);
                attributes.sort_unstable();
                JoinStep::Link { link: attributes, via: self.places.named(step.via) }
            }
        };
        violation.path.iter().map(step).collect()
    }

    /// The attributes that are published, or known by a rule.
    pub(super) fn visible(&self, release: &CandidateRelease<'_>) -> AttrSet {
        let tables = release.tables.iter().chain(&self.schemas).map(learned);
        let earlier = self.protection.iter().map(|rule| rule.demand.known);
        let rules = release.rules.iter().map(|rule| rule.demand.known);
        tables.chain(earlier).chain(rules).fold(AttrSet::EMPTY, AttrSet::union)
    }

    /// The conflicts with active and new rules beside all links; none where there are no links.
    ///
    /// A rule that follows from a dependency is held by the rule that it follows from.
    pub(super) fn linked_conflicts(
        &self,
        release: &CandidateRelease<'_>,
        knowledge: &LinkedKnowledge,
    ) -> Vec<CompositionViolation> {
        let compares_with_strata =
            |guard: &Guard| !guard.constant.is_empty() && !guard.guarantee.reference().is_table();
        let mut guards = release.tables.iter().chain(&self.schemas).flat_map(|table| &table.guards);
        if !knowledge.has_links() && !guards.any(compares_with_strata) {
            return Vec::new();
        }
        let of_new = LinkedKnowledge::new(self.series.of_new_release(), self.visible(release));
        let tables: Vec<TableSchema> = release.tables.iter().chain(&self.schemas).cloned().collect();
        let check = |rule: &JudgedRule<'_>, knowledge: &LinkedKnowledge| {
            LinkedCheck { union: self, release, knowledge }.check(&tables, rule)
        };
        let earlier = self.protection.iter().zip(&self.exclusions.rules).filter(|(rule, _)| rule.pointer.is_some());
        let earlier = earlier.filter_map(|(rule, annotations)| {
            let judged = JudgedRule {
                release: Some(rule.release),
                pointer: &rule.pointer,
                demand: rule.demand,
                annotations: annotations.clone(),
            };
            match self.series.has_withdrawn(rule.release) {
                true => check(&judged, &self.knowledge_against(rule, release)),
                false => check(&judged, knowledge),
            }
        });
        let new = release.rules.iter().filter(|rule| rule.pointer.is_some());
        let new = new.filter_map(|NewRule { pointer, demand }| {
            let annotations: ExcludedBySpec = self.exclusions.of_new(demand.protects, demand.guarantee);
            check(&JudgedRule { release: None, pointer, demand: *demand, annotations }, &of_new)
        });
        earlier.chain(new).collect()
    }
}

/// A check of rules beside links.
struct LinkedCheck<'a> {
    union: &'a LedgerUnion,
    release: &'a CandidateRelease<'a>,
    knowledge: &'a LinkedKnowledge,
}

impl LinkedCheck<'_> {
    /// The violation of a rule in `tables`, the new ones first.
    ///
    /// Where no path connects old and new tables with what the rule protects, the releases are no matter of each other.
    fn check(&self, tables: &[TableSchema], rule: &JudgedRule<'_>) -> Option<CompositionViolation> {
        let tables = self.union.exclusions.serving(tables, &rule.demand, &rule.annotations);
        let violation = self.knowledge.judge(&tables, &rule.demand)?;
        let component = self.knowledge.component(rule.demand.protects, &tables);
        let (new, earlier) = tables.split_at(self.release.tables.len());
        let meets = |tables: &[TableSchema]| tables.iter().any(|table| learned(table).meets(component));
        if !meets(new) || !meets(earlier) {
            return None;
        }
        let path = self.union.linked_path(self.release, self.knowledge, &violation);
        let in_conflict = path.iter().find_map(JoinStep::earlier_release).or(rule.release);
        let in_conflict = in_conflict.or_else(|| self.union.release_with(component))?;
        let broken_before = rule.release.is_some() && self.knowledge.judge(earlier, &rule.demand).is_some();
        let detail = match broken_before {
            true => {
                let before = self.knowledge.component(rule.demand.protects, earlier);
                let shared = new.iter().fold(AttrSet::EMPTY, |all, table| all.union(learned(table)));
                self.broken_before_detail(rule, &violation, in_conflict, shared.intersection(before))
            }
            false => self.detail(rule, &violation, in_conflict),
        };
        let rule = ViolatedRule { release: rule.release, pointer: rule.pointer.clone() };
        Some(CompositionViolation { rule, release: in_conflict, path, detail })
    }

    /// A path over old and new tables in words, with the attributes by which it leaves a new table.
    fn detail(&self, rule: &JudgedRule<'_>, violation: &Violation, in_conflict: Uuid) -> String {
        let Violation { reaching, path } = violation;
        let is_new =
            |step: &links::LinkedStep| matches!(step.through, Element::Table(at) if at < self.release.tables.len());
        let left_by = path.iter().position(is_new).and_then(|at| path.get(at + 1).or_else(|| path.get(at)));
        let remedy = left_by.map_or_else(
            || "publish the new release without the attributes of the path".to_owned(),
            |step| format!("leave {} out of the new release", self.listed(step.via)),
        );
        format!(
            "an adversary who knows {} could reach {} through the tables of release {in_conflict} and of the new one{}; {remedy}",
            self.listed(*reaching),
            self.listed(rule.demand.protects),
            self.because(violation)
        )
    }

    /// A path over old tables alone in words: the dependency was not known when they were published.
    fn broken_before_detail(
        &self,
        rule: &JudgedRule<'_>,
        violation: &Violation,
        in_conflict: Uuid,
        shared: AttrSet,
    ) -> String {
        format!(
            "an adversary who knows {} could reach {} through the tables of earlier releases alone, such as {in_conflict}{}, which \
             was not known to them: no release may add to it; leave {} out of the new release",
            self.listed(violation.reaching),
            self.listed(rule.demand.protects),
            self.because(violation),
            self.listed(shared)
        )
    }

    /// The dependencies on the path of a violation in words; of a path without any, those of the protected attributes.
    fn because(&self, violation: &Violation) -> String {
        let of_path = violation.path.iter().filter_map(|step| match step.through {
            Element::Link(link) => Some(&self.knowledge.links[link]),
            Element::Table(_) => None,
        });
        let words = of_path.map(|link| {
            let Dependency { determinant, dependent } = link.because;
            let verb = if determinant.len() == 1 { "determines" } else { "determine" };
            format!("{} {verb} {}", self.listed(determinant), self.union.places.names[dependent.index()])
        });
        let words: Vec<String> = words.collect();
        if words.is_empty() { String::new() } else { format!(", as {}", words.join(" and ")) }
    }

    fn named(&self, attributes: AttrSet) -> Vec<String> {
        self.union.places.named(attributes)
    }

    fn listed(&self, attributes: AttrSet) -> String {
        self.named(attributes).join(", ")
    }
}

/// What a reader learns of together: the attributes of a table, and those in which its buckets are constant.
fn learned(table: &TableSchema) -> AttrSet {
    table.guards.iter().fold(table.attributes, |learned, guard| learned.union(guard.constant))
}

impl LedgerUnion {
    /// The conflict of a violated rule; `first` is the release to name where neither path nor rule names one.
    pub(super) fn rule_conflict(
        &self,
        release: &CandidateRelease<'_>,
        rule: &JudgedRule<'_>,
        violation: &GnfViolation,
        first: Uuid,
    ) -> CompositionViolation {
        let path: Vec<JoinStep> =
            violation.path.iter().map(|step| self.join_step(release, step.table, step.via)).collect();
        let detail = format!(
            "an adversary who knows {} could reach {} through the tables of both releases",
            self.places.named(violation.reaching).join(", "),
            self.places.named(rule.demand.protects).join(", ")
        );
        let in_conflict = path.iter().find_map(JoinStep::earlier_release).or(rule.release).unwrap_or(first);
        CompositionViolation {
            rule: ViolatedRule { release: rule.release, pointer: rule.pointer.clone() },
            release: in_conflict,
            path,
            detail,
        }
    }
}

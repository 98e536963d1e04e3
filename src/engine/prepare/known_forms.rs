//! Known dependencies in manifests and plans, and the notices on them.

use super::known::{JobDependencies, withdrawal};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::links::{KnownDependency, Link, connected};
use crate::privacy::{Dependency, DiscoveredDependency};
use crate::publication::{DependencyUse, NoticeKind, SearchedDependencies};
use crate::publish::{Design, DesignedRule, DesignedTable, TableDesign};
use crate::report::{
    AssumedUnknownForm, ClosedStrataForm, ClosingReasonForm, DependencyForm, ManifestDependencies, SpecificationNotice,
    UsedDependencyForm,
};
use crate::spec::{AssumedUnknown, DeclaredDependency, Specification};

/// Known dependencies with the design that was made beside them.
#[derive(Clone, Copy)]
pub(in crate::engine) struct DescribedDependencies<'a> {
    pub(in crate::engine) dependencies: &'a JobDependencies,
    pub(in crate::engine) design: &'a Design,
    pub(in crate::engine) specification: &'a Specification,
}

/// A known dependency with its evidence and its use.
pub(in crate::engine) struct DescribedDependency {
    pub(in crate::engine) form: UsedDependencyForm,
    pub(in crate::engine) is_declared: bool,
    /// Whether only the series knows it.
    pub(in crate::engine) is_recorded: bool,
    pub(in crate::engine) evidence: Option<DiscoveredDependency>,
}

impl DescribedDependencies<'_> {
    /// The form for plans and manifests, with the discovered dependencies that the release makes use of.
    pub(in crate::engine) fn in_json(&self) -> ManifestDependencies {
        let names = self.dependencies.names(self.specification);
        let declared = |of: &DeclaredDependency| UsedDependencyForm {
            dependent: named(&names, of.dependent),
            determinant: named(&names, of.determinant),
            unpublished: false,
            used: self.uses_of_all(of),
        };
        let assumed_unknown = |assumed: &AssumedUnknown| AssumedUnknownForm {
            dependent: named(&names, assumed.dependency.dependent),
            determinant: named(&names, assumed.dependency.determinant),
            reason: assumed.reason.clone(),
        };
        let used = self.known().into_iter().filter(|known| !known.is_declared && !known.form.used.is_empty());
        let (recorded, discovered): (Vec<_>, Vec<_>) = used.partition(|known| known.is_recorded);
        let forms = |known: Vec<DescribedDependency>| known.into_iter().map(|known| known.form).collect();
        ManifestDependencies {
            tolerance: Some(self.specification.knowledge.tolerance),
            searched: self.dependencies.searched,
            declared: self.specification.declared().iter().map(declared).collect(),
            recorded: forms(recorded),
            discovered: forms(discovered),
            assumed_unknown: self.specification.assumed_unknown().iter().map(assumed_unknown).collect(),
            ineligible_strata: self
                .specification
                .method
                .closed_reason()
                .map(|reason| ClosedStrataForm { closed: ClosingReasonForm { reason: reason.to_owned() } }),
        }
    }

    /// All known dependencies.
    pub(in crate::engine) fn known(&self) -> Vec<DescribedDependency> {
        let names = self.dependencies.names(self.specification);
        let JobDependencies { all, evidence, declared, recorded, .. } = self.dependencies;
        let published = self.specification.names.len();
        let described = |(at, dependency): (usize, &Dependency)| DescribedDependency {
            form: UsedDependencyForm {
                dependent: named(&names, AttrSet::one(dependency.dependent)),
                determinant: named(&names, dependency.determinant),
                unpublished: at >= declared + recorded && dependency.dependent.index() >= published,
                used: self.uses(dependency),
            },
            is_declared: at < *declared,
            is_recorded: (*declared..declared + recorded).contains(&at),
            evidence: evidence[at],
        };
        all.iter().enumerate().map(described).collect()
    }

    /// Dependencies within the tolerance that may be accidents.
    pub(in crate::engine) fn rejected(&self) -> Vec<(DependencyForm, DiscoveredDependency)> {
        let names = self.dependencies.names(self.specification);
        let rejected = self.dependencies.rejected.iter().map(|rejected| {
            let Dependency { determinant, dependent } = rejected.dependency;
            let form = DependencyForm {
                dependent: named(&names, AttrSet::one(dependent)),
                determinant: named(&names, determinant),
            };
            (form, *rejected)
        });
        rejected.collect()
    }

    /// What the design makes of a declaration, which may name several dependent attributes.
    fn uses_of_all(&self, declared: &DeclaredDependency) -> Vec<DependencyUse> {
        let single = |dependent: Attr| Dependency { determinant: declared.determinant, dependent };
        let mut uses: Vec<DependencyUse> = declared.dependent.iter().flat_map(|to| self.uses(&single(to))).collect();
        uses.sort_unstable();
        uses.dedup();
        uses
    }

    /// What the design makes of a dependency.
    fn uses(&self, dependency: &Dependency) -> Vec<DependencyUse> {
        let Design { tables, rules, used_dependencies, cut_dependencies, .. } = self.design;
        let link = Link::from(*dependency).attributes;
        let mut uses: Vec<DependencyUse> = tables.iter().flat_map(|table| self.uses_in(table, link)).collect();
        if rules.iter().any(|rule| self.determines_reference(rule, dependency)) {
            uses.push(DependencyUse::Path);
        }
        if rules.iter().any(|rule| rule.follows_from == Some(*dependency)) {
            uses.push(DependencyUse::DerivedRule);
        }
        if uses.is_empty() && cut_dependencies.contains(dependency) {
            uses.push(DependencyUse::Path);
        }
        // a rule that followed from it steered the design, and was dropped as kept by another
        if uses.is_empty() && used_dependencies.contains(dependency) {
            uses.push(DependencyUse::DerivedRule);
        }
        uses.sort_unstable();
        uses.dedup();
        uses
    }

    /// Whether by a dependency the known side of a rule determines the strata that its guarantee compares with.
    fn determines_reference(&self, rule: &DesignedRule, dependency: &Dependency) -> bool {
        let (reference, known) = (rule.rule.guarantee.reference(), rule.rule.known);
        let guards = self.design.tables.iter().flat_map(DesignedTable::guards);
        let constant = guards.fold(AttrSet::EMPTY, |all, guard| all.union(guard.constant)).minus(known);
        let closure = self.dependencies.known.closure(known);
        !reference.is_table()
            && constant.is_subset(closure)
            && !constant.is_empty()
            && dependency.determinant.is_subset(closure)
            && closure.minus(known).contains(dependency.dependent)
    }

    /// What a table makes of a link: strata of its attributes, a place in the protected part, or a path to the strata.
    fn uses_in(&self, table: &DesignedTable, link: AttrSet) -> Vec<DependencyUse> {
        let guards = table.guards();
        let constant = guards.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.constant));
        let protects = guards.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()));
        let moved = moved(table);
        let part = protects.union(moved);
        let elements = |without: AttrSet| -> Vec<AttrSet> {
            self.dependencies.all.iter().map(|of| Link::from(*of).attributes.minus(without)).collect()
        };
        let mut uses = Vec::new();
        if link.meets(moved) && link.meets(part.minus(link.intersection(moved))) {
            uses.push(DependencyUse::ProtectedPart);
        }
        let (reached_by_part, reached_by_strata) =
            (connected(part, &elements(constant)), connected(constant, &elements(part)));
        let companions = companions(table);
        if link.meets(protects) && link.meets(constant.intersection(companions)) {
            uses.push(DependencyUse::ProtectedPart);
        } else if link.meets(reached_by_part) && link.meets(constant.minus(companions)) {
            uses.push(DependencyUse::Strata);
        } else if link.meets(reached_by_part) && link.meets(reached_by_strata) && !constant.is_empty() {
            uses.push(DependencyUse::Path);
        }
        uses
    }

    /// The notices for readers of the release; they reveal nothing that its parts do not show.
    pub(in crate::engine) fn notices(&self) -> Vec<SpecificationNotice> {
        let mut notices: Vec<SpecificationNotice> = self.search_notices().into_iter().collect();
        notices.extend(self.still_linked());
        notices.extend(self.design.tables.iter().flat_map(|table| self.moved_notices(table)));
        notices
    }

    fn search_notices(&self) -> Option<SpecificationNotice> {
        let (r#type, detail) = match self.dependencies.searched? {
            SearchedDependencies::SinglesAndSomePairs => (
                NoticeKind::SearchedPartly,
                "the work limit cut the search for dependencies on two attributes: some pairs were not searched",
            ),
            SearchedDependencies::None => (
                NoticeKind::DependenciesNotSearched,
                "the data was not searched for dependencies: readers who know one may infer more than the rules allow",
            ),
            SearchedDependencies::SinglesAndPairs | SearchedDependencies::Singles => return None,
        };
        let pointer = Some("/method/dependencies".to_owned());
        Some(SpecificationNotice { r#type, pointer, detail: detail.to_owned() })
    }

    /// Notices on withdrawn dependencies whose attributes another one ties.
    fn still_linked(&self) -> Vec<SpecificationNotice> {
        let names = self.dependencies.names(self.specification);
        let JobDependencies { all, withdrawn, .. } = self.dependencies;
        let mut notices = Vec::new();
        for KnownDependency { dependency, .. } in withdrawn {
            let tied = Link::from(*dependency).attributes;
            let remaining = all.iter().find(|other| Link::from(**other).attributes == tied);
            let statement = withdrawal(self.specification, dependency);
            if let (Some(remaining), Some(statement)) = (remaining, statement) {
                notices.push(SpecificationNotice {
                    r#type: NoticeKind::StillLinked,
                    pointer: Some(statement.pointer.clone()),
                    detail: format!(
                        "the attributes stay linked: {} determines {}",
                        named(&names, remaining.determinant).join(", "),
                        names[remaining.dependent.index()]
                    ),
                });
            }
        }
        notices
    }

    fn moved_notices(&self, table: &DesignedTable) -> Vec<SpecificationNotice> {
        let names = self.dependencies.names(self.specification);
        let (moved, protects) = (moved(table), table.bucketized().map(|bucketized| bucketized.protects()));
        let others = table.attributes.minus(moved).minus(protects.unwrap_or_default());
        let notice = |attr: Attr| {
            let (name, sensitive) = (&names[attr.index()], named(&names, protects.unwrap_or_default()).join(", "));
            let detail = match others.is_empty() {
                true => format!("{name} stands beside {sensitive}"),
                false => {
                    let others = named(&names, others).join(", ");
                    format!(
                        "{name} stands beside {sensitive}, not beside {others}: its counts by {others} are estimates"
                    )
                }
            };
            SpecificationNotice { r#type: NoticeKind::AttributeMoved, pointer: None, detail }
        };
        moved.iter().map(notice).collect()
    }

    /// Notices for the holder of the original on declared dependencies that fail in more rows than the tolerance allows.
    pub(in crate::engine) fn failing(&self, rows: usize) -> Vec<SpecificationNotice> {
        let tolerance = self.specification.knowledge.tolerance;
        let fails = |evidence: &DiscoveredDependency| {
            let allowed = rows as u128 * u128::from(tolerance.numerator());
            evidence.errors as u128 * u128::from(tolerance.denominator()) > allowed
        };
        let notice = |known: DescribedDependency| {
            let evidence = known.evidence.filter(|evidence| known.is_declared && fails(evidence))?;
            Some(SpecificationNotice {
                r#type: NoticeKind::DependencyDoesNotHold,
                pointer: Some("/method/functional_dependencies".to_owned()),
                detail: format!(
                    "{} does not determine {}: {} of {rows} rows are exceptions; it counts as known all the same",
                    known.form.determinant.join(", "),
                    known.form.dependent.join(", "),
                    evidence.errors
                ),
            })
        };
        self.known().into_iter().filter_map(notice).collect()
    }

    /// What the known attributes of each rule determine, of the published attributes.
    pub(in crate::engine) fn determined(&self, known: impl Iterator<Item = AttrSet>) -> Vec<AttrSet> {
        let published = AttrSet::first(self.specification.published_names.len());
        let determined = |known: AttrSet| self.dependencies.known.closure(known).minus(known).intersection(published);
        known.map(determined).collect()
    }
}

/// The attributes that stand in a protected part beside the protected ones.
fn moved(table: &DesignedTable) -> AttrSet {
    let bucketized = table.bucketized();
    bucketized.map(|bucketized| bucketized.sensitive().minus(bucketized.protects())).unwrap_or_default()
}

/// The attributes in the column of the protected one of a sliced table.
fn companions(table: &DesignedTable) -> AttrSet {
    let TableDesign::Sliced(sliced) = &table.design else { return AttrSet::EMPTY };
    let column = sliced.columns.iter().find(|column| column.contains(sliced.plan.sensitive));
    column.copied().unwrap_or_default().without(sliced.plan.sensitive)
}

fn named(names: &[String], set: AttrSet) -> Vec<String> {
    set.iter().map(|attr| names[attr.index()].clone()).collect()
}

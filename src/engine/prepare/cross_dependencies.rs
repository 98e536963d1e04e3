//! Dependencies between attributes of the job and attributes of earlier releases, and sensitive attributes that predict each other.

use std::borrow::Cow;

use super::known::{JobDependencies, discovery_options, withdrawal};
use crate::control::{Cancelled, Control};
use crate::ledger::LedgerUnion;
use crate::microdata::{Attr, AttrSet, Table};
use crate::privacy;
use crate::privacy::links::KnownDependency;
use crate::privacy::{Dependency, DiscoveredDependency};
use crate::publish::Design;
use crate::spec::{CorrelatedPolicy, MethodSpec, Specification};

/// The columns of a job, then the other columns of earlier releases, for the same rows.
pub(in crate::engine) struct ExtendedTable<'a> {
    table: Cow<'a, Table>,
    /// The attribute of each column in the ledger.
    at: Vec<Attr>,
    /// The dependencies between attributes of the job and others, in the attributes of the ledger.
    across: Vec<KnownDependency>,
}

/// The columns of earlier releases of the rows of a job.
#[derive(Clone, Copy)]
pub(in crate::engine) struct EarlierColumns<'a> {
    /// The columns that the job does not have, rows in the same order.
    pub(in crate::engine) extra: Option<&'a Table>,
    /// The releases, which say the attribute of each column.
    pub(in crate::engine) union: &'a LedgerUnion,
}

/// Dependencies between attributes of a job and attributes of earlier releases.
#[derive(Default)]
pub(in crate::engine) struct CrossDependencies {
    /// Those that the adversary is assumed to know.
    pub(in crate::engine) known: Vec<KnownDependency>,
    /// Those that the adversary is assumed not to know.
    pub(in crate::engine) withdrawn: Vec<KnownDependency>,
}

impl<'a> ExtendedTable<'a> {
    /// The table of a job, extended by the columns of earlier releases.
    ///
    /// What the job's own columns determine of each other was searched for before, and is `known`.
    pub(in crate::engine) fn new(
        specification: &Specification,
        table: &'a Table,
        earlier: EarlierColumns<'_>,
        known: &JobDependencies,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let own = specification.names.len();
        let mut at: Vec<Attr> = (0..own).map(Attr::from).collect();
        let Some(extra) = earlier.extra else {
            return Ok(Self { table: Cow::Borrowed(table), at, across: Vec::new() });
        };
        let mut names = table.names().to_vec();
        let mut columns: Vec<_> = table.attributes().iter().map(|attr| table.column(attr).clone()).collect();
        for attr in extra.attributes().iter() {
            // an alias of a column of the job is there already
            if let Some(place) = earlier.union.attribute(extra.name(attr)).filter(|place| !at.contains(place)) {
                names.push(extra.name(attr).to_owned());
                columns.push(extra.column(attr).clone());
                at.push(place);
            }
        }
        let table = Table::new(names, columns);
        let across = match at.len() > own {
            true => across(specification, &table, &at, known, control)?,
            false => Vec::new(),
        };
        Ok(Self { table: Cow::Owned(table), at, across })
    }

    /// The dependencies between attributes of the job and others, as the rules of the job assume them.
    pub(in crate::engine) fn dependencies(
        &self,
        specification: &Specification,
        known: &JobDependencies,
    ) -> CrossDependencies {
        let mut across = CrossDependencies::default();
        for found in &self.across {
            if withdrawal(specification, &found.dependency).is_some() {
                across.withdrawn.push(*found);
            } else if !known.all.contains(&found.dependency) {
                across.known.push(*found);
            }
        }
        across
    }

    /// Links protected attributes of earlier releases and of the design that predict each other.
    pub(in crate::engine) fn link(
        &self,
        union: &mut LedgerUnion,
        specification: &Specification,
        design: &Design,
        known: &[Dependency],
        control: &Control,
    ) -> Result<(), Cancelled> {
        let separate = matches!(&specification.method, MethodSpec::Versatile(spec) if spec.correlated == CorrelatedPolicy::Separate);
        let protected = design
            .schemas()
            .iter()
            .flat_map(|schema| schema.guards.clone())
            .fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()));
        for before in union.bucketized().iter() {
            for now in protected.iter().filter(|now| *now != before) {
                control.check()?;
                if determines(before, now, known) || determines(now, before, known) {
                    union.link(before, now);
                    continue;
                }
                let place = |attr: Attr| self.at.iter().position(|at| *at == attr).map(Attr::from);
                let (Some(a), Some(b), false) = (place(before), place(now), separate) else { continue };
                let determines = |from, to| privacy::mostly_determines(&self.table, from, to, control);
                if determines(a, b)? || determines(b, a)? {
                    union.link(before, now);
                }
            }
        }
        Ok(())
    }
}

/// The dependencies between the first attributes of a table, those of the job, and the others.
fn across(
    specification: &Specification,
    table: &Table,
    at: &[Attr],
    known: &JobDependencies,
    control: &Control,
) -> Result<Vec<KnownDependency>, Cancelled> {
    let own = AttrSet::first(specification.names.len());
    let is_exact = |known: &KnownDependency| {
        known.is_exact && known.dependency.determinant.with(known.dependency.dependent).is_subset(own)
    };
    let before = known.known.entries().chain(known.withdrawn.iter().copied());
    let exact: Vec<Dependency> = before.filter(is_exact).map(|known| known.dependency).collect();
    let found = privacy::discover_dependencies_across(table, own, &exact, &discovery_options(specification), control)?;
    let mapped = |found: DiscoveredDependency| KnownDependency {
        dependency: Dependency {
            determinant: found.dependency.determinant.iter().map(|attr| at[attr.index()]).collect(),
            dependent: at[found.dependency.dependent.index()],
        },
        is_exact: found.errors == 0,
    };
    Ok(found.into_iter().map(mapped).collect())
}

/// Whether one attribute determines another, also through others.
fn determines(from: Attr, to: Attr, dependencies: &[Dependency]) -> bool {
    let mut closure = AttrSet::one(from);
    loop {
        let more = dependencies.iter().filter(|d| d.determinant.is_subset(closure));
        let wider = more.fold(closure, |all, d| all.with(d.dependent));
        if wider == closure || wider.contains(to) {
            return wider.contains(to);
        }
        closure = wider;
    }
}

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy;
use crate::privacy::Dependency;
use crate::publication::NoticeKind;
use crate::report::{AssumedUnknownForm, DependencyForm, ManifestDependencies, SpecificationNotice};
use crate::spec::{DeclaredDependency, Specification};

/// The published names of the attributes, then the names of dropped attributes in dependencies.
pub(in crate::engine) fn attribute_names(specification: &Specification) -> Vec<String> {
    specification.published_names.iter().chain(&specification.dropped_names).cloned().collect()
}

/// The dependencies that the adversary is assumed to know.
#[derive(Clone, Default)]
pub(in crate::engine) struct KnownDependencies {
    /// The declared dependencies, then the discovered ones.
    pub(in crate::engine) all: Vec<Dependency>,
    /// The number of declared ones.
    declared: usize,
}

impl KnownDependencies {
    pub(in crate::engine) fn declared(specification: &Specification) -> Self {
        let single = |&DeclaredDependency { determinant, dependent }: &DeclaredDependency| {
            dependent.iter().map(move |dependent| Dependency { determinant, dependent }).collect::<Vec<_>>()
        };
        let all: Vec<Dependency> = specification.method.declared().iter().flat_map(single).collect();
        Self { declared: all.len(), all }
    }

    /// Declared dependencies, and those of the data that the adversary is not assumed to miss.
    pub(in crate::engine) fn new(
        specification: &Specification,
        table: &Table,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut known = Self::declared(specification);
        let unknown = |found: &Dependency| {
            let assumed = specification.method.assumed_unknown();
            assumed.iter().any(|(d, _)| d.determinant == found.determinant && d.dependent.contains(found.dependent))
        };
        for found in privacy::discover_dependencies(table, control)? {
            if !known.all.contains(&found) && !unknown(&found) {
                known.all.push(found);
            }
        }
        Ok(known)
    }

    /// The form for plans and manifests, with the discovered dependencies that changed a rule.
    pub(in crate::engine) fn in_json(
        &self,
        used_dependencies: &[Dependency],
        specification: &Specification,
    ) -> ManifestDependencies {
        let names = attribute_names(specification);
        let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].clone()).collect::<Vec<_>>();
        let declared = |of: &DeclaredDependency| DependencyForm {
            dependent: named(of.dependent),
            determinant: named(of.determinant),
        };
        let discovered = |of: &Dependency| DependencyForm {
            dependent: named(AttrSet::one(of.dependent)),
            determinant: named(of.determinant),
        };
        let assumed_unknown = |(of, reason): &(DeclaredDependency, String)| AssumedUnknownForm {
            dependent: named(of.dependent),
            determinant: named(of.determinant),
            reason: reason.clone(),
        };
        let used = self.all[self.declared..].iter().filter(|of| used_dependencies.contains(of));
        ManifestDependencies {
            declared: specification.method.declared().iter().map(declared).collect(),
            discovered: used.map(discovered).collect(),
            assumed_unknown: specification.method.assumed_unknown().iter().map(assumed_unknown).collect(),
        }
    }

    /// The notice for releases whose rules depend on known dependencies.
    pub(in crate::engine) fn notices(&self, used_dependencies: &[Dependency]) -> Option<SpecificationNotice> {
        (self.declared > 0 || !used_dependencies.is_empty()).then(|| SpecificationNotice {
            r#type: NoticeKind::DependencyNecessaryOnly,
            pointer: None,
            detail:
                "attributes that determine a protected attribute are protected too; this is necessary, but no proof that \
                     nothing else follows from the dependencies"
                    .to_owned(),
        })
    }
}

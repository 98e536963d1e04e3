use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy;
use crate::privacy::Dependency;
use crate::report::{ManifestDependencies, SpecificationNotice};
use crate::spec::{DeclaredDependency, Specification};

/// The published names of the attributes, and behind them the names of dropped ones that dependencies name.
pub(in crate::engine) fn attribute_names(specification: &Specification) -> Vec<String> {
    specification.published_names.iter().chain(&specification.dropped_names).cloned().collect()
}

/// The dependencies that the adversary is taken to know.
#[derive(Clone, Default)]
pub(in crate::engine) struct KnownDependencies {
    /// Declared ones first.
    pub(in crate::engine) all: Vec<Dependency>,
    /// How many of them are declared.
    declared: usize,
}

impl KnownDependencies {
    pub(in crate::engine) fn declared(specification: &Specification) -> Self {
        let single = |stated: &DeclaredDependency| {
            let DeclaredDependency { determinant, dependent } = *stated;
            dependent.iter().map(move |dependent| Dependency { determinant, dependent }).collect::<Vec<_>>()
        };
        let all: Vec<Dependency> = specification.method.declared().iter().flat_map(single).collect();
        Self { declared: all.len(), all }
    }

    /// Declared ones, and those that hold in the data, but for those that are assumed unknown.
    pub(in crate::engine) fn new(
        specification: &Specification,
        table: &Table,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut known = Self::declared(specification);
        let unknown = |found: &Dependency| {
            let stated = specification.method.assumed_unknown();
            stated.iter().any(|(d, _)| d.determinant == found.determinant && d.dependent.contains(found.dependent))
        };
        for found in privacy::discover_dependencies(table, control)? {
            if !known.all.contains(&found) && !unknown(&found) {
                known.all.push(found);
            }
        }
        Ok(known)
    }

    /// As they stand in plans and manifests: of those that were discovered only the ones that changed a rule.
    pub(in crate::engine) fn in_json(
        &self,
        used_dependencies: &[Dependency],
        specification: &Specification,
    ) -> ManifestDependencies {
        let names = attribute_names(specification);
        let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].as_str()).collect::<Vec<_>>();
        let stated = |d: &DeclaredDependency| serde_json::json!({ "determinant": named(d.determinant), "dependent": named(d.dependent) });
        let found = |d: &Dependency| serde_json::json!({ "determinant": named(d.determinant), "dependent": named(AttrSet::one(d.dependent)) });
        ManifestDependencies {
            declared: specification.method.declared().iter().map(stated).collect(),
            discovered: self.all[self.declared..].iter().filter(|d| used_dependencies.contains(d)).map(found).collect(),
            assumed_unknown: specification
                .method
                .assumed_unknown()
                .iter()
                .map(|(dependency, reason)| {
                    let mut written = stated(dependency);
                    written["reason"] = reason.as_str().into();
                    written
                })
                .collect(),
        }
    }

    /// What a reader should know where rules hold in spite of dependencies.
    pub(in crate::engine) fn notices(&self, used_dependencies: &[Dependency]) -> Option<SpecificationNotice> {
        (self.declared > 0 || !used_dependencies.is_empty()).then(|| SpecificationNotice {
            r#type: "dependency-necessary-only".to_owned(),
            pointer: None,
            detail:
                "what determines a protected attribute is protected too; that is necessary, and no proof that nothing \
                     else follows from the dependencies"
                    .to_owned(),
        })
    }
}

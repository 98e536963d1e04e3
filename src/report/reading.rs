//! Publications read back from manifests.

use super::dependencies::RuleDerivationForm;
use super::manifest::{Manifest, ManifestEnforcedBy, ManifestGuard, ManifestRule, ManifestTable};
use super::manifest_part::ManifestPart;
use crate::microdata::{Attr, AttrSet, CellShape};
use crate::publication::{
    CellContent, EnforcedBy, EnforcedRule, MethodDetails, Part, Protected, ProtectionKind, Publication,
    PublishedColumn, PublishedTable, RowMeaning, RuleDerivation, TableGuard, TableName, TableProtection,
};

/// The publication that a manifest describes; `names` are the published names of its attributes.
///
/// # Errors
/// A sentence on the first contradiction in the manifest.
pub fn publication_of(manifest: &Manifest, names: &[String]) -> Result<Publication, String> {
    let reader = ManifestReader { names };
    let mut method_details =
        super::method_details::read(manifest.method_details.as_ref(), manifest.method.r#type, names)?;
    if let MethodDetails::Decompose(details) = &mut method_details {
        let bounded = manifest.rules.iter().filter(|rule| rule.bounded == Some(true));
        details.bounded = bounded
            .map(|rule| reader.set(&rule.sensitive))
            .try_fold(AttrSet::EMPTY, |all, of| of.map(|of| all.union(of)))?;
    }
    Ok(Publication {
        tables: manifest.tables.iter().map(|table| reader.table(table)).collect::<Result<_, _>>()?,
        rules: manifest.rules.iter().map(|rule| reader.rule(rule)).collect::<Result<_, _>>()?,
        method_details,
        suppressed: 0,
    })
}

struct ManifestReader<'a> {
    names: &'a [String],
}

impl ManifestReader<'_> {
    fn attr(&self, name: &str) -> Result<Attr, String> {
        let index = self.names.iter().position(|known| known == name);
        index.map(Attr::from).ok_or_else(|| format!("no column holds attribute {name:?}"))
    }

    fn set(&self, names: &[String]) -> Result<AttrSet, String> {
        names.iter().map(|name| self.attr(name)).collect()
    }

    fn protects(&self, sensitive: &[String], joint: bool) -> Result<Protected, String> {
        match (sensitive, joint) {
            ([only], false) => Ok(Protected::Attribute(self.attr(only)?)),
            ([], false) => Ok(Protected::Rows),
            (several, true) => Ok(Protected::Joint(self.set(several)?)),
            _ => Err("a rule or guard protects exactly one attribute or a combination".to_owned()),
        }
    }

    fn rule(&self, rule: &ManifestRule) -> Result<EnforcedRule, String> {
        let enforced_by = match &rule.enforced_by {
            ManifestEnforcedBy::Unreachable { .. } => EnforcedBy::Unreachable,
            ManifestEnforcedBy::Guardian { guardian, known } => {
                EnforcedBy::Guardian { table: TableName(guardian.clone()), known: self.set(known)? }
            }
            ManifestEnforcedBy::Table { table } => EnforcedBy::Table(TableName(table.clone())),
        };
        // a dependency is read with the dependencies of the manifest
        let because = rule.because.as_ref().and_then(|because| match because {
            RuleDerivationForm::Rule { rule } => Some(RuleDerivation::Rule(rule.clone())),
            RuleDerivationForm::Dependency(_) => None,
        });
        Ok(EnforcedRule {
            pointer: rule.pointer.clone(),
            origin: rule.origin,
            because,
            known: self.set(&rule.quasi_identifiers)?,
            protects: self.protects(&rule.sensitive, rule.combination)?,
            guarantee: rule.of_rows(),
            enforced_by,
        })
    }

    fn table(&self, table: &ManifestTable) -> Result<PublishedTable, String> {
        let guard = |guard: &ManifestGuard| -> Result<TableGuard, String> {
            Ok(TableGuard {
                known: self.set(&guard.quasi_identifiers)?,
                protects: self.protects(&guard.sensitive, guard.joint)?,
                guarantees: guard.guarantees.clone(),
                // of those that are not published the parts say nothing, and with fewer a guard claims less
                constant: guard.constant.iter().filter_map(|name| self.attr(name).ok()).collect(),
                closes: guard.closed,
            })
        };
        let protection = match table.protection {
            ProtectionKind::Plain => TableProtection::Plain,
            ProtectionKind::Exclusive if table.guards.is_empty() => TableProtection::Exclusive,
            ProtectionKind::Exclusive => return Err(format!("the exclusive table {} has guards", table.name)),
            ProtectionKind::Guarding => {
                TableProtection::Guarding(table.guards.iter().map(guard).collect::<Result<_, _>>()?)
            }
        };
        let parts = table.parts.iter().map(|part| self.part(table, part)).collect::<Result<_, _>>()?;
        Ok(PublishedTable { name: TableName(table.name.clone()), parts, protection })
    }

    fn part(&self, table: &ManifestTable, part: &ManifestPart) -> Result<Part, String> {
        let unreadable = || format!("the description of part {} of table {} contradicts itself", part.name, table.name);
        let rows = RowMeaning::from_kind(part.row_meaning, part.counterfeits_per_bucket).ok_or_else(unreadable)?;
        if part.cells.iter().any(|(name, shape)| *shape == CellShape::Exact || !part.attributes.contains(name)) {
            return Err(unreadable());
        }
        let column = |name: &String| -> Result<PublishedColumn, String> {
            let cells = match part.cell_shape(name) {
                CellShape::Exact => CellContent::Exact,
                CellShape::Interval => CellContent::Interval,
                CellShape::Set => CellContent::Set,
                CellShape::Suppressed => CellContent::Suppressed,
                // the manifest holds the tree with the other taxonomies
                CellShape::Node => CellContent::Node { taxonomy: name.clone(), cut: None },
            };
            Ok(PublishedColumn { attribute: self.attr(name)?, name: name.clone(), cells })
        };
        let read = Part {
            name: part.name.clone(),
            columns: part.attributes.iter().map(column).collect::<Result<_, _>>()?,
            rows,
            bucketed: part.bucketed,
            len: part.rows,
            null: part.null.clone(),
        };
        if read.file(&TableName(table.name.clone())) == part.csv() {
            Ok(read)
        } else {
            Err(format!("part {} of table {} names an unexpected file", part.name, table.name))
        }
    }
}

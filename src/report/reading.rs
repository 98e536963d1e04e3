//! Manifests read back.

use super::manifest::{Manifest, ManifestEnforcedBy, ManifestGuard, ManifestPart, ManifestRule, ManifestTable};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    CellContent, EnforcedBy, EnforcedRule, MethodDetails, Part, Protected, Publication, PublishedColumn,
    PublishedTable, RowMeaning, RuleDerivation, RuleOrigin, TableGuard, TableName, TableProtection,
};

/// Reads a publication back out of a manifest, in the attributes `names` (published names), to be verified again.
///
/// # Errors
/// What in the manifest cannot be understood, in words.
pub fn publication_of(manifest: &Manifest, names: &[String]) -> Result<Publication, String> {
    let reader = ManifestReader { names };
    let mut method_details =
        super::method_details::read(manifest.method_details.as_ref(), &manifest.method.r#type, names)?;
    if let MethodDetails::Decompose(said) = &mut method_details {
        let bounded = manifest.rules.iter().filter(|rule| rule.bounded == Some(true));
        said.bounded = bounded
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
        index.map(Attr::from).ok_or_else(|| format!("attribute {name:?} stands in no column"))
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
        let origin = match rule.origin.as_str() {
            "submitted" => RuleOrigin::Submitted,
            "implied_by" => RuleOrigin::ImpliedBy,
            "from_dependency" => RuleOrigin::FromDependency,
            _ => return Err("a rule of unknown origin".to_owned()),
        };
        let enforced_by = match &rule.enforced_by {
            ManifestEnforcedBy::Unreachable { .. } => EnforcedBy::Unreachable,
            ManifestEnforcedBy::Guardian { guardian, known } => {
                EnforcedBy::Guardian { table: TableName(guardian.clone()), known: self.set(known)? }
            }
            ManifestEnforcedBy::Table { table } => EnforcedBy::Table(TableName(table.clone())),
        };
        let because = rule.because.as_ref().and_then(|because| because["rule"].as_str());
        Ok(EnforcedRule {
            pointer: rule.pointer.clone(),
            origin,
            because: because.map(|pointer| RuleDerivation::Rule(pointer.to_owned())),
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
            })
        };
        let protection = match table.protection.as_str() {
            "plain" => TableProtection::Plain,
            "exclusive" if table.guards.is_empty() => TableProtection::Exclusive,
            "guarding" => TableProtection::Guarding(table.guards.iter().map(guard).collect::<Result<_, _>>()?),
            _ => return Err(format!("table {} has a standing that this version does not know", table.name)),
        };
        let parts = table.parts.iter().map(|part| self.part(table, part)).collect::<Result<_, _>>()?;
        Ok(PublishedTable { name: TableName(table.name.clone()), parts, protection })
    }

    fn part(&self, table: &ManifestTable, part: &ManifestPart) -> Result<Part, String> {
        let foreign = || format!("part {} of table {} holds what this version does not read", part.name, table.name);
        let rows = match (part.row_meaning.as_str(), part.counterfeits_per_bucket) {
            ("tuples", None) => RowMeaning::Tuples,
            ("values", None) => RowMeaning::Values,
            ("tuples_and_counterfeits", Some(per_bucket)) => RowMeaning::TuplesAndCounterfeits { per_bucket },
            _ => return Err(foreign()),
        };
        if part.cells.keys().any(|name| !part.attributes.contains(name)) {
            return Err(foreign());
        }
        let column = |name: &String| -> Result<PublishedColumn, String> {
            let cells = match part.cells.get(name).map(String::as_str) {
                None => CellContent::Exact,
                Some("interval") => CellContent::Interval,
                Some("set") => CellContent::Set,
                Some("suppressed") => CellContent::Suppressed,
                // the tree stands in the manifest beside the tables
                Some("node") => CellContent::Node { taxonomy: name.clone(), cut: None },
                Some(_) => return Err(foreign()),
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
        if read.file(&TableName(table.name.clone())) == part.file {
            Ok(read)
        } else {
            Err(format!("part {} of table {} names an unexpected file", part.name, table.name))
        }
    }
}

//! Earlier releases of one table of tuples, read back from their parts to be joined.

use std::collections::BTreeMap;

use crate::engine::error::EngineError;
use crate::engine::read_back::external::ReadFile;
use crate::engine::read_back::manifest::taxonomies_of;
use crate::ledger::LedgerUnion;
use crate::microdata::{Attr, AttrSet, AttributeType, CellShape, Column};
use crate::privacy::Dependency;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{
    EarlierColumn, EarlierRelease, EarlierReleases, MethodDetails, RowCorrespondence, RowKind, RowMeaning,
    TableProtection, XyRequirement,
};
use crate::publish::PlanRefusal;
use crate::report::{Manifest, ManifestPart, MethodDetailsForm, publication_of};

/// The one part of a release of one table of tuples.
///
/// # Errors
/// `bad-columns` for a release of another shape.
pub fn tuples_of(manifest: &Manifest) -> Result<&ManifestPart, Problem> {
    let refused = |detail: &str| Problem::new(Kind::BadColumns, detail);
    let [table] = &manifest.tables[..] else { return Err(refused("the release has several tables")) };
    let [part] = &table.parts[..] else { return Err(refused("the table of the release has several parts")) };
    if part.bucketed || part.row_meaning != RowKind::Tuples {
        return Err(refused("the rows of the release are not tuples"));
    }
    Ok(part)
}

/// An earlier release from its manifest and its only part. `names` are the names of its attributes in the join.
///
/// # Errors
/// [`EngineError::Refused`] for a release that cannot be joined.
pub fn earlier_of(manifest: &Manifest, names: &[String], file: ReadFile) -> Result<EarlierRelease, EngineError> {
    let part = tuples_of(manifest).map_err(EngineError::Refused)?;
    let published = &manifest.tables[0].attributes;
    if published.len() != names.len() {
        return Err(EngineError::bug("the attributes of a release are not those that the ledger has"));
    }
    let name_of = |of: &String| published.iter().position(|name| name == of).map(|at| names[at].clone());
    let publication = publication_of(manifest, published).map_err(EngineError::bug)?;
    let ReadFile { columns, rows } = file;
    let rows_of = publication.tables[0].parts[0].rows;
    if rows as u64 != part.rows || rows_of != RowMeaning::Tuples {
        return Err(EngineError::bug("a part has not the rows that its manifest states"));
    }
    let sequence = match publication.method_details {
        MethodDetails::Sequential(sequence) => Some(*sequence),
        _ => None,
    };
    let alone = publication.tables[0].protection == TableProtection::Exclusive && sequence.is_none();
    let column = |(published, cells): (String, Column)| {
        let shape = part.cell_shape(&published);
        Some(EarlierColumn {
            name: name_of(&published)?,
            nodes: shape == CellShape::Node,
            kind: part.types.get(&published).copied().unwrap_or(AttributeType::Text),
            shape,
            published,
            cells,
        })
    };
    let columns = columns.into_iter().map(column).collect::<Option<_>>();
    let trees = taxonomies_of(manifest, published).map_err(EngineError::bug)?;
    let taxonomies: BTreeMap<_, _> =
        trees.into_iter().map(|of| (names[of.attribute.index()].clone(), of.tree)).collect();
    Ok(EarlierRelease {
        release: manifest.id.map(|id| id.to_string()).unwrap_or_default(),
        columns: columns.ok_or_else(|| EngineError::bug("a part has attributes that its table has not"))?,
        rows,
        sequence,
        alone,
        taxonomies,
        external: false,
        rows_of: RowCorrespondence::Content,
    })
}

/// The releases that a sequential release was checked against, by id.
///
/// # Errors
/// `guarantee-unsupported` for a release by another method.
pub fn against(manifest: &Manifest) -> Result<Vec<String>, Problem> {
    match &manifest.method_details {
        Some(MethodDetailsForm::Sequential(form)) => Ok(form.against.clone()),
        _ => {
            let detail = "join is played on releases that were made to withstand it: those by sequential";
            Err(Problem::of_faults(vec![Fault::new("/attack", Kind::GuaranteeUnsupported, detail)]))
        }
    }
}

/// The external tables among the releases that a sequential release was checked against, by id.
#[must_use]
pub fn external_releases(manifest: &Manifest) -> Vec<String> {
    match &manifest.method_details {
        Some(MethodDetailsForm::Sequential(form)) => form.entered.clone(),
        _ => Vec::new(),
    }
}

/// The attributes of a release of a join, and those that it publishes exactly.
struct JoinMember {
    all: AttrSet,
    exact: AttrSet,
}

/// Checks that an adversary who knows dependencies joins releases no better than by their shared attributes.
///
/// Requirements count the tuples of the join on shared attributes. A dependency between attributes of different releases could
/// exclude some of these tuples.
///
/// # Errors
/// The refusal, with such a dependency.
pub(in crate::engine) fn joined_by_names(
    generalized: AttrSet,
    own: AttrSet,
    joined: &EarlierReleases,
    union: &LedgerUnion,
    known: &[Dependency],
) -> Result<(), PlanRefusal> {
    let named = |columns: &mut dyn Iterator<Item = &EarlierColumn>| -> AttrSet {
        columns.filter_map(|column| union.attribute(&column.name)).collect()
    };
    let earlier = joined.releases.iter().map(|release| {
        let is_exact = |column: &&EarlierColumn| column.shape == CellShape::Exact && !column.nodes;
        JoinMember {
            all: named(&mut release.columns.iter()),
            exact: named(&mut release.columns.iter().filter(is_exact)),
        }
    });
    let members: Vec<JoinMember> =
        std::iter::once(JoinMember { all: own, exact: own.minus(generalized) }).chain(earlier).collect();
    let Some((at, found)) = linking(&members, known) else { return Ok(()) };
    let name = |attr: Attr| union.names()[attr.index()].as_str();
    let determinants: Vec<&str> = found.determinant.iter().map(name).collect();
    let (determinant, dependent) = (determinants.join(" and "), name(found.dependent));
    let detail = format!(
        "{determinant} determines {dependent}, which would join the release by more than the attributes that it shares with others: \
         publish both exactly in every release that has one of them, or neither"
    );
    let pointer = format!("/method/against/{}", at - 1);
    let tied = all_of(&found).intersection(own);
    let repairs: Vec<serde_json::Value> = tied.iter().map(|attr| serde_json::json!({ "drop": [name(attr)] })).collect();
    let fault = Fault::new(pointer, Kind::BadColumns, detail).with("attribute", dependent);
    let fault = fault.with("dependency", serde_json::json!({ "determinant": determinants, "dependent": [dependent] }));
    Err(PlanRefusal(vec![fault.with("repairs", repairs)]))
}

/// A dependency that joins two releases by more than their shared attributes, with the index of the later release.
///
/// Attributes in common dependencies form a group. Two releases with attributes of a group are safe if one of them publishes those
/// of the other exactly: then its rows are possible, and so are all labels that agree with them.
fn linking(members: &[JoinMember], known: &[Dependency]) -> Option<(usize, Dependency)> {
    let seen = members.iter().fold(AttrSet::EMPTY, |all, member| all.union(member.all));
    let mut kept = known.to_vec();
    loop {
        // an attribute that no release has and no other dependency uses is free
        let matters = |&Dependency { determinant, dependent }: &Dependency| {
            let mut others =
                kept.iter().filter(|other| (other.determinant, other.dependent) != (determinant, dependent));
            seen.contains(dependent) || others.any(|other| all_of(other).contains(dependent))
        };
        let fewer: Vec<Dependency> = kept.iter().copied().filter(matters).collect();
        if fewer.len() == kept.len() {
            break;
        }
        kept = fewer;
    }
    kept.iter().find_map(|dependency| {
        let group = dependency_closure(all_of(dependency), &kept);
        let apart = |one: &JoinMember, other: &JoinMember| {
            let (own, others) = (one.all.intersection(group), other.all.intersection(group));
            !own.is_empty() && !others.is_empty() && !own.is_subset(other.exact) && !others.is_subset(one.exact)
        };
        let joined = |&at: &usize| members[..at].iter().any(|other| apart(&members[at], other));
        (0..members.len()).find(joined).map(|at| (at, *dependency))
    })
}

/// All attributes of a dependency.
fn all_of(dependency: &Dependency) -> AttrSet {
    dependency.determinant.with(dependency.dependent)
}

/// The closure of attributes under common dependencies, in both directions.
fn dependency_closure(attributes: AttrSet, dependencies: &[Dependency]) -> AttrSet {
    let all = dependencies.iter().map(all_of).filter(|all| all.meets(attributes));
    let wider = all.fold(attributes, AttrSet::union);
    if wider == attributes { attributes } else { dependency_closure(wider, dependencies) }
}

pub(in crate::engine) type RequirementResults = (XyRequirement, Vec<crate::publication::JoinResult>);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const ATTRIBUTES: usize = 4;
    type Row = [u32; ATTRIBUTES];

    /// What a release shows of an attribute: its value, one of two labels, or nothing but that there is one.
    fn shown(grain: u32, value: u32) -> BTreeSet<u32> {
        (0..3).filter(|other| grain == 2 || other == &value || grain == 1 && value > 0 && *other > 0).collect()
    }

    #[test]
    fn admitted_dependencies_exclude_no_joined_tuple() {
        let mut random = StdRng::seed_from_u64(20_261_122);
        let (mut let_through, mut needed) = (0, 0);
        for _ in 0..4_000 {
            let mut known: Vec<Dependency> = Vec::new();
            let mut functions: Vec<[u32; 9]> = Vec::new();
            for _ in 0..random.random_range(1..=2) {
                let dependent = random.random_range(0..ATTRIBUTES);
                let others = (0..random.random_range(1..=2)).map(|_| random.random_range(0..ATTRIBUTES));
                let determinant: AttrSet = others.filter(|other| *other != dependent).map(Attr::from).collect();
                if !determinant.is_empty() {
                    known.push(Dependency { determinant, dependent: Attr::from(dependent) });
                    functions.push(std::array::from_fn(|_| random.random_range(0..3)));
                }
            }
            let agrees = |row: &Row| {
                known.iter().zip(&functions).all(|(dependency, function)| {
                    let place = dependency.determinant.iter().fold(0, |place, attr| place * 3 + row[attr.index()]);
                    function[place as usize] == row[dependency.dependent.index()]
                })
            };
            let fingerprint: Vec<Row> =
                (0..81_u32).map(|n| [n % 3, n / 3 % 3, n / 9 % 3, n / 27]).filter(|row| agrees(row)).collect();
            // how each of two or three releases shows each attribute, if it does
            let releases = random.random_range(2..=3);
            let grains: Vec<[Option<u32>; ATTRIBUTES]> = (0..releases)
                .map(|_| std::array::from_fn(|_| random.random_bool(0.6).then(|| random.random_range(0..4_u32) % 3)))
                .collect();
            let members: Vec<JoinMember> = grains
                .iter()
                .map(|grains| {
                    let with = |keep: &dyn Fn(u32) -> bool| -> AttrSet {
                        (0..ATTRIBUTES).filter(|&at| grains[at].is_some_and(keep)).map(Attr::from).collect()
                    };
                    JoinMember { all: with(&|_| true), exact: with(&|grain| grain == 0) }
                })
                .collect();
            let is_let_through = linking(&members, &known).is_none();
            let label = |release: usize, at: usize, row: &Row| Some(shown(grains[release][at]?, row[at]));
            let by_names = |a: (usize, &Row), b: (usize, &Row)| {
                (0..ATTRIBUTES).all(|at| match (label(a.0, at, a.1), label(b.0, at, b.1)) {
                    (Some(a), Some(b)) => !a.is_disjoint(&b),
                    _ => true,
                })
            };
            let one_person = |rows: &[&Row]| {
                fingerprint.iter().any(|person| {
                    let may_be = |(release, row): (usize, &&Row)| {
                        (0..ATTRIBUTES)
                            .all(|at| label(release, at, row).is_none_or(|shown| shown.contains(&person[at])))
                    };
                    rows.iter().enumerate().all(may_be)
                })
            };
            let mut differs = false;
            for _ in 0..30 {
                if fingerprint.is_empty() {
                    break;
                }
                let rows: Vec<&Row> =
                    (0..releases).map(|_| &fingerprint[random.random_range(0..fingerprint.len())]).collect();
                let pairs = (0..releases).flat_map(|b| (0..b).map(move |a| (a, b)));
                let joined = pairs.into_iter().all(|(a, b)| by_names((a, rows[a]), (b, rows[b])));
                differs |= joined && !one_person(&rows);
            }
            assert!(!(is_let_through && differs), "{known:?} {grains:?}");
            let_through += usize::from(is_let_through && !fingerprint.is_empty());
            needed += usize::from(differs);
        }
        assert!(let_through > 300 && needed > 300, "{let_through} let through, {needed} refused with reason");
    }
}

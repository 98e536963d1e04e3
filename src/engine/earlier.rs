//! Releases of one table of tuples as they are joined: read back from their parts, and attacked together.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::attack::{Attacked, Finding, Findings};
use super::verify::taxonomies_of;
use super::{ReadFile, Stopped};
use crate::audit::{Join, Joined, Shown, Unjoined};
use crate::control::Control;
use crate::ledger::{Union, told_by};
use crate::microdata::{Attr, AttrSet, AttributeType, CellShape, Column};
use crate::privacy::Dependency;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{
    Beside, EarlierColumn, EarlierRelease, Particulars, Reference, Requirement, RowMeaning, Sequence, Standing, XyMeasure,
    reference_text,
};
use crate::publish::Refusal;
use crate::report::{Manifest, ManifestPart, Ratio, publication_of};
use crate::spec::Attack;

/// The one part of a release of one table of tuples.
///
/// # Errors
/// `bad-columns` with what it is instead, in words.
pub fn tuples_of(manifest: &Manifest) -> Result<&ManifestPart, Problem> {
    let refused = |detail: &str| Problem::new(Kind::BadColumns, detail);
    let [table] = &manifest.tables[..] else { return Err(refused("the release has several tables")) };
    let [part] = &table.parts[..] else { return Err(refused("the table of the release stands in several parts")) };
    if part.bucketed || part.row_meaning != "tuples" {
        return Err(refused("the rows of the release are no tuples, but parts of buckets"));
    }
    Ok(part)
}

/// A release of one table of tuples whose part was read. `names` are the dataset's names of its attributes.
///
/// # Errors
/// [`Stopped::Refused`] with what cannot be joined, in words.
pub fn earlier_of(manifest: &Manifest, names: &[String], file: ReadFile) -> Result<EarlierRelease, Stopped> {
    let part = tuples_of(manifest).map_err(Stopped::Refused)?;
    let published = &manifest.tables[0].attributes;
    if published != names {
        let detail = "the release publishes attributes under other names";
        return Err(Stopped::Refused(Problem::new(Kind::BadColumns, detail)));
    }
    let publication = publication_of(manifest, published).map_err(Stopped::bug)?;
    let ReadFile { columns, rows } = file;
    let rows_of = publication.tables[0].parts[0].rows;
    if rows as u64 != part.rows || rows_of != RowMeaning::Tuples {
        return Err(Stopped::bug("a part has not the rows that its manifest states"));
    }
    let sequence = match publication.particulars {
        Particulars::Sequential(sequence) => Some(*sequence),
        _ => None,
    };
    let alone = publication.tables[0].standing == Standing::Unsealed && sequence.is_none();
    let column = |(name, cells): (String, Column)| {
        let shape = part.shape(&name);
        EarlierColumn {
            nodes: shape == CellShape::Node,
            kind: part.types.get(&name).copied().unwrap_or(AttributeType::Text),
            shape,
            name,
            cells,
        }
    };
    let trees = taxonomies_of(manifest, published).map_err(Stopped::bug)?;
    let taxonomies: BTreeMap<_, _> =
        trees.into_iter().map(|stated| (published[stated.attribute.index()].clone(), stated.tree)).collect();
    Ok(EarlierRelease {
        release: manifest.id.map(|id| id.to_string()).unwrap_or_default(),
        columns: columns.into_iter().map(column).collect(),
        rows,
        sequence,
        alone,
        taxonomies,
    })
}

/// The releases that a sequential one was made against.
///
/// # Errors
/// When it is not sequential.
pub fn against(manifest: &Manifest) -> Result<Vec<String>, Problem> {
    let stated = manifest.particulars.as_ref().filter(|_| manifest.method.r#type == "sequential");
    let Some(stated) = stated else {
        let detail = "join is played on releases that were made to withstand it: those by sequential";
        return Err(Problem::of_faults(vec![Fault::new("/attack", Kind::GuaranteeUnsupported, detail)]));
    };
    let ids = stated["against"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(ids.map(str::to_owned).collect())
}

/// What a requirement comes to on a join: one of both.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct OnJoinMeasure {
    /// The fewest values on y of any group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u64>,
    /// The largest share of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub h: Option<Ratio>,
}

/// What a requirement comes to on a join, by who made it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OnJoin {
    /// The requirement, by its pointer.
    pub requirement: String,
    /// The earlier release that promised it; null of the release's own.
    pub promised_by: Option<String>,
    /// The releases that were joined.
    pub releases: Vec<String>,
    /// What it comes to.
    pub achieved: OnJoinMeasure,
    /// Whether that is what was asked for.
    pub holds: bool,
    /// A group that has it: its labels on x.
    #[schema(value_type = std::collections::BTreeMap<String, Option<String>>)]
    pub group: Map<String, Value>,
    /// The labels on y that take the share; none for `k`.
    #[schema(value_type = std::collections::BTreeMap<String, Option<String>>)]
    pub told: Map<String, Value>,
}

/// A sequential release, and behind it those that it was made against, in any order.
#[derive(Default)]
pub struct Joinable(Vec<EarlierRelease>);

impl Joinable {
    /// Adds a release whose part was read.
    ///
    /// # Errors
    /// As [`earlier_of`].
    pub fn add(&mut self, manifest: &Manifest, file: ReadFile) -> Result<(), Stopped> {
        let names = manifest.tables.first().map(|table| table.attributes.clone()).unwrap_or_default();
        self.0.push(earlier_of(manifest, &names, file)?);
        Ok(())
    }

    /// Joins them, and says of every requirement, or of the one at `rule`, what it comes to.
    ///
    /// # Errors
    /// [`Stopped`]: `work-limit` where the join is too large.
    pub fn attack(&self, rule: Option<&str>, control: &Control) -> Result<Attacked, Stopped> {
        let Some((new, others)) = self.0.split_first() else { return Err(Stopped::bug("there is no release")) };
        let Some(sequence) = &new.sequence else { return Err(Stopped::bug("the release is not sequential")) };
        let own: Vec<&str> = of_rule(sequence, None).map(|(requirement, _)| requirement.pointer.as_str()).collect();
        if let Some(rule) = rule.filter(|rule| !own.contains(rule)) {
            let allowed = format!("the pointer of a requirement of the release: {}", own.join(", "));
            let fault = Fault::new("/rule", Kind::ParameterRange, format!("{rule} is none: expected {allowed}"));
            return Err(Stopped::Refused(Problem::of_faults(vec![fault.with("allowed", allowed)])));
        }
        let find = |id: &String| others.iter().find(|release| release.release == *id);
        let earlier: Option<Vec<&EarlierRelease>> = sequence.against.iter().map(find).collect();
        let Some(earlier) = earlier else { return Err(Stopped::bug("an earlier release is not at hand")) };
        let earlier: Vec<(&EarlierRelease, Shown)> =
            earlier.into_iter().map(|release| (release, Shown::of(release))).collect();
        let shown = Shown::of(new);
        let join = Join::of(&shown, &new.taxonomies, &earlier, &sequence.exclusions);
        let (mut joins, mut breaches, mut worst) = (Vec::new(), Vec::new(), None::<Ratio>);
        for (requirement, on) in of_rule(sequence, rule) {
            for stated in on {
                control.check()?;
                let found = join.measure(requirement, &stated.releases, control).map_err(unjoined)?;
                let posterior = posterior(&requirement.measure, &found);
                if worst.is_none_or(|worst| {
                    u128::from(posterior.count) * u128::from(worst.of)
                        > u128::from(worst.count) * u128::from(posterior.of)
                }) {
                    worst = Some(posterior);
                }
                let holds = found.is_allowed(&requirement.measure);
                let said = on_join(sequence, requirement, &stated.releases, &found, holds);
                if !holds {
                    breaches.push(Finding {
                        rule: Some(requirement.pointer.clone()),
                        table: None,
                        attribute: None,
                        bucket: None,
                        known: said.group.clone(),
                        sensitive: said.told.clone(),
                        posterior,
                    });
                }
                joins.push(said);
            }
        }
        let total = breaches.len() as u64;
        breaches.truncate(super::attack::SHOWN);
        Ok(Attacked {
            attack: Attack::Join.word().to_owned(),
            uses: "parts".to_owned(),
            breach: total > 0,
            worst,
            findings: Findings { total, first: breaches },
            membership: None,
            joins: Some(joins),
        })
    }
}

/// A release of a join: its attributes, and those of them that it has as they are.
struct Member {
    all: AttrSet,
    exact: AttrSet,
}

/// That releases are joined by the attributes they share is all that requirements on their join reckon with. Where a dependency lets one
/// tell of its rows what another one shows of its own, whoever knows it leaves out tuples that the join has.
///
/// # Errors
/// The refusal, which names the dependency.
pub(super) fn joined_by_names(
    generalized: AttrSet,
    own: AttrSet,
    joined: &Beside,
    union: &Union,
    known: &[Dependency],
) -> Result<(), Refusal> {
    let named = |columns: &mut dyn Iterator<Item = &EarlierColumn>| -> AttrSet {
        columns.filter_map(|column| union.attribute(&column.name)).collect()
    };
    let earlier = joined.releases.iter().map(|release| {
        let is_exact = |column: &&EarlierColumn| column.shape == CellShape::Exact && !column.nodes;
        Member { all: named(&mut release.columns.iter()), exact: named(&mut release.columns.iter().filter(is_exact)) }
    });
    let members: Vec<Member> =
        std::iter::once(Member { all: own, exact: own.minus(generalized) }).chain(earlier).collect();
    for (at, one) in members.iter().enumerate() {
        for (before, other) in members[..at].iter().enumerate() {
            let telling = |&&dependency: &&Dependency| {
                tells_more(dependency, one, other, known) || tells_more(dependency, other, one, known)
            };
            if let Some(found) = known.iter().find(telling) {
                let name = |attr: Attr| union.names()[attr.index()].as_str();
                let determinant: Vec<&str> = found.determinant.iter().map(name).collect();
                let (determinant, dependent) = (determinant.join(" and "), name(found.dependent));
                let with = if before == 0 { "the new one" } else { "another one" };
                let detail = format!(
                    "{determinant} determines {dependent}, by which the release and {with} would be joined beyond the attributes that                      they share: publish both as they are where one of them is published, or neither"
                );
                let pointer = format!("/method/against/{}", at - 1);
                return Err(Refusal(vec![Fault::new(pointer, Kind::BadColumns, detail).with("attribute", dependent)]));
            }
        }
    }
    Ok(())
}

/// Whether what a dependency lets one release tell says more of another one's rows than the attributes that both have.
fn tells_more(dependency: Dependency, one: &Member, other: &Member, known: &[Dependency]) -> bool {
    let Dependency { determinant, dependent } = dependency;
    let told = |attributes: AttrSet| told_by(attributes, known);
    if !determinant.is_subset(told(one.all)) || !told(other.all).contains(dependent) {
        return false;
    }
    // what follows is the same in rows that are, on what it follows from, the same
    let same = determinant.is_subset(told(one.exact.intersection(other.exact)));
    // what one of them has as it is agrees with all that follows from it
    let agrees = |exact: &Member, with: &Member| {
        determinant.is_subset(told(exact.exact.intersection(with.all)))
            && (!with.all.contains(dependent) || exact.exact.contains(dependent))
    };
    // and says itself what would follow
    let says = determinant.is_subset(told(one.exact)) && one.exact.contains(dependent) && other.all.contains(dependent);
    !(same || says || agrees(one, other) || agrees(other, one))
}

type Stated = (Requirement, Vec<crate::publication::OnJoin>);

/// The requirements of a release, or its own one at a pointer.
fn of_rule<'a>(sequence: &'a Sequence, rule: Option<&'a str>) -> impl Iterator<Item = &'a Stated> {
    sequence
        .requirements
        .iter()
        .filter(move |(requirement, _)| rule.is_none_or(|rule| requirement.of == 0 && requirement.pointer == rule))
}

/// How likely the worst group makes one of its values: of k of them, one in k.
fn posterior(measure: &XyMeasure, found: &Joined) -> Ratio {
    let (count, of) = lowest(found.achieved);
    match measure {
        XyMeasure::Anonymity { .. } => Ratio { count: of, of: count },
        XyMeasure::Linkability { .. } => Ratio { count, of },
    }
}

/// In its lowest terms.
fn lowest((count, of): (u128, u128)) -> (u64, u64) {
    let (mut a, mut b) = (count, of);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    let word = |number: u128| u64::try_from(number / a.max(1)).unwrap_or(u64::MAX);
    (word(count), word(of))
}

fn on_join(sequence: &Sequence, requirement: &Requirement, releases: &[usize], found: &Joined, holds: bool) -> OnJoin {
    let id = |release: usize| match release.checked_sub(1) {
        None => "new".to_owned(),
        Some(earlier) => sequence.against[earlier].clone(),
    };
    let named = |labels: &[(Reference, Option<Vec<u8>>)]| -> Map<String, Value> {
        let text = |label: &Option<Vec<u8>>| label.as_ref().map(|label| String::from_utf8_lossy(label).into_owned());
        let name = |of: &Reference| reference_text(&sequence.against, of.release, &of.attribute);
        labels.iter().map(|(of, label)| (name(of), json!(text(label)))).collect()
    };
    let (count, of) = lowest(found.achieved);
    OnJoin {
        requirement: requirement.pointer.clone(),
        promised_by: (requirement.of > 0).then(|| id(requirement.of)),
        releases: releases.iter().map(|release| id(*release)).collect(),
        achieved: match requirement.measure {
            XyMeasure::Anonymity { .. } => OnJoinMeasure { k: Some(count), h: None },
            XyMeasure::Linkability { .. } => OnJoinMeasure { k: None, h: Some(Ratio { count, of }) },
        },
        holds,
        group: named(&found.known),
        told: named(&found.told),
    }
}

fn unjoined(why: Unjoined) -> Stopped {
    match why {
        Unjoined::Cancelled(cancelled) => cancelled.into(),
        Unjoined::TooMany => {
            let detail = "the attack would count too many tuples of rows that differ in what is asked";
            Stopped::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", Join::MOST_STEPS))
        }
        Unjoined::Unknown | Unjoined::Empty => Stopped::bug("a release says of its join what its parts do not have"),
    }
}

//! The method `sequential`: a specification beside earlier releases, searched, and published as one table of one part.

use std::sync::Arc;

use super::share::MeasureValue;
use super::world::{ProblemBuilder, is_ordered};
use super::{ColumnCut, SequentialError, SequentialSolution};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, CellShape, Column, Interner, SUPPRESSED_CELL, Table, write_span};
use crate::problem::{Fault, Kind};
use crate::publication::{
    CellContent, EarlierReleases, JoinResult, MethodDetails, PartContents, Publication, PublicationCells,
    PublishedColumn, PublishedTable, SequentialDetails, TableName, TableProtection, TableWitness, Witness,
};
use crate::publish::dispatch::Method;
use crate::publish::error::{PlanError, PlanRefusal};
use crate::publish::input::PlanInput;
use crate::publish::published::Published;
use crate::publish::single::{column_of_texts, of_one_part};
use crate::publish::{Decision, Design, DesignedTable};
use crate::random::RandomStreams;
use crate::spec::SequentialSpec;

/// The method `sequential`.
pub struct Sequential;

/// How the table of a sequential release is published, and what that keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SequentialDesign {
    /// The generalized attributes.
    cuts: Vec<GeneralizedColumn>,
    /// What the release says of itself.
    pub sequence: SequentialDetails,
    /// Steps of generalization over all cells.
    pub distortion: u64,
    /// Cells that are not published as they are.
    pub changed: u64,
}

/// A generalized attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
struct GeneralizedColumn {
    attribute: Attr,
    /// What may stand in its cells; `None` is the missing value.
    labels: Vec<Option<Vec<u8>>>,
    /// The label of each code.
    of_code: Vec<u32>,
    /// What they are.
    shape: CellShape,
}

impl Method for Sequential {
    type Spec = SequentialSpec;
    type Plan = Design;

    fn plan(spec: &SequentialSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
        let mut design = Design {
            tables: Vec::new(),
            rules: Vec::new(),
            used_dependencies: Vec::new(),
            decision: Decision::Undecided,
        };
        let Some(rows) = input.rows else { return Ok(design) };
        let nothing = EarlierReleases::default();
        let beside = input.beside.unwrap_or(&nothing);
        let world = ProblemBuilder::new(spec, rows.table, beside)?;
        let sequence = world.sequence(control)?;
        let mut faults = world.contradicted(&sequence, beside.excluded.as_deref(), control)?;
        faults.extend(world.tied(control)?);
        if !faults.is_empty() {
            return Err(PlanRefusal(faults).into());
        }
        let sequel = sequence.release(control).map_err(|why| refused(why, &world))?;
        let cuts: Vec<GeneralizedColumn> = sequel.cuts.iter().filter_map(|cut| labelled(cut, rows.table)).collect();
        let sequenced = SequentialDesign {
            sequence: said(spec, &world, &sequel, &cuts, (rows.table, input.published_names))?,
            distortion: sequel.distortion,
            changed: sequel.changed,
            cuts,
        };
        let attributes = AttrSet::first(input.counts.attributes());
        design.tables.push(DesignedTable { cut: Some(Arc::new(sequenced)), ..DesignedTable::new(attributes, None) });
        // a step is refused where it would break a requirement, and that it was tells of the data
        design.decision = Decision::ByData(None);
        Ok(design)
    }

    fn publish(
        plan: &Design,
        input: &PlanInput<'_>,
        table: &Table,
        _: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        let mut published = Published {
            publication: Publication {
                tables: Vec::new(),
                rules: Vec::new(),
                method_details: MethodDetails::None,
                suppressed: 0,
            },
            contents: PublicationCells { tables: Vec::new() },
            witness: Witness { tables: Vec::new() },
        };
        for (index, designed) in plan.tables.iter().enumerate() {
            let Some(sequenced) = &designed.cut else { continue };
            let made = sequenced.make(TableName::at(index), designed.attributes, input, table, control)?;
            published.publication.tables.push(made.0);
            published.publication.method_details = MethodDetails::Sequential(Box::new(sequenced.sequence.clone()));
            published.contents.tables.push(vec![made.1]);
            published.witness.tables.push(made.2);
        }
        Ok(published)
    }
}

/// The labels of a cut, as cells have them: of an interval from the first to the last of its values. None where values are published as
/// they are: which there are is told by the cells alone.
fn labelled(cut: &ColumnCut, table: &Table) -> Option<GeneralizedColumn> {
    let attribute = Attr::from(cut.column);
    let domain = &table.column(attribute).domain;
    let tree = table.annotations(attribute).taxonomy();
    if tree.is_none() && !is_ordered(domain.kind()) {
        let labels = vec![Some(SUPPRESSED_CELL.as_bytes().to_vec())];
        let is_suppressed = cut.labels.iter().any(|label| !label.span.is_point());
        let of_code = cut.of_code.clone();
        return is_suppressed.then_some(GeneralizedColumn { attribute, labels, of_code, shape: CellShape::Suppressed });
    }
    let label = |(number, label): (u32, &super::CutLabel)| match (label.node, tree) {
        (Some(node), Some(tree)) => tree.tree().label(node).map(|label| label.as_bytes().to_vec()),
        _ => {
            let mut within = (0..).zip(&cut.of_code).filter(|(_, of)| **of == number).map(|(code, _)| code);
            let first = within.next()?;
            let last = within.last().unwrap_or(first);
            let mut text = Vec::new();
            write_span(domain.value(first), domain.value(last)?, &mut text);
            Some(text)
        }
    };
    Some(GeneralizedColumn {
        attribute,
        labels: (0..).zip(&cut.labels).map(label).collect(),
        of_code: cut.of_code.clone(),
        shape: if tree.is_some() { CellShape::Node } else { CellShape::Interval },
    })
}

/// What the release says of itself.
fn said(
    spec: &SequentialSpec,
    world: &ProblemBuilder<'_>,
    sequel: &SequentialSolution,
    cuts: &[GeneralizedColumn],
    (table, published_names): (&Table, &[String]),
) -> Result<SequentialDetails, PlanRefusal> {
    let mut requirements: Vec<_> =
        world.requirements.iter().map(|requirement| (requirement.clone(), Vec::new())).collect();
    for achieved in &sequel.achieved {
        let Some((requirement, on)) = requirements.get_mut(achieved.requirement) else { continue };
        let achieved_here = lowest(achieved.measure).ok_or_else(|| {
            PlanRefusal(vec![Fault::new(pointer_of(requirement), Kind::JoinTooDense, "tuples are too many")])
        })?;
        on.extend(achieved.joins.iter().map(|join| JoinResult { releases: join.clone(), achieved: achieved_here }));
    }
    for (_, on) in &mut requirements {
        on.sort_by(|a, b| a.releases.cmp(&b.releases));
    }
    let text = |label: &Option<Vec<u8>>| label.as_ref().map(|label| String::from_utf8_lossy(label).into_owned());
    let cut = |cut: &GeneralizedColumn| (table.name(cut.attribute).to_owned(), cut.labels.iter().map(text).collect());
    Ok(SequentialDetails {
        against: spec.against.iter().map(ToString::to_string).collect(),
        subsets: spec.subsets,
        requirements,
        exclusions: world.exclusions.clone(),
        cuts: cuts.iter().map(cut).collect(),
        entered: world.entered(),
        other_rows: !world.same_rows(),
        renamed: world.renamed(published_names),
    })
}

/// In its lowest terms, where these are no longer than a word.
fn lowest(MeasureValue { count, of }: MeasureValue) -> Option<(u64, u64)> {
    let (mut a, mut b) = (count, of);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    let a = a.max(1);
    Some((u64::try_from(count / a).ok()?, u64::try_from(of / a).ok()?))
}

/// Where a requirement stands in this specification.
fn pointer_of(requirement: &crate::publication::XyRequirement) -> String {
    match requirement.of.checked_sub(1) {
        None => requirement.pointer.clone(),
        Some(earlier) => format!("/method/against/{earlier}"),
    }
}

/// Why nothing is published, where it is stated what cannot be kept.
fn refused(why: SequentialError, world: &ProblemBuilder<'_>) -> PlanError {
    let of = |requirement: usize| world.requirements.get(requirement);
    let at = |requirement: usize| of(requirement).map_or_else(|| "/method/requirements".to_owned(), pointer_of);
    let promised = |requirement: usize| match of(requirement).map(|requirement| requirement.of) {
        None | Some(0) => "the requirement",
        Some(_) => "a requirement that the earlier release keeps",
    };
    let detail = why.to_string();
    let fault = match why {
        SequentialError::Cancelled(cancelled) => return cancelled.into(),
        SequentialError::EmptyTable => Fault::new("/dataset", Kind::EmptyTable, detail),
        SequentialError::UnknownReference { requirement } => {
            Fault::new(at(requirement), Kind::UnknownAttribute, detail)
        }
        SequentialError::UnknownExclusion { exclusion } => {
            Fault::new(format!("/method/exclusions/{exclusion}"), Kind::UnknownAttribute, detail)
        }
        SequentialError::Overlap { requirement } => Fault::new(at(requirement), Kind::RuleMalformed, detail),
        SequentialError::Threshold { requirement } => Fault::new(at(requirement), Kind::ParameterRange, detail),
        SequentialError::NothingToGeneralize | SequentialError::NoScale { .. } | SequentialError::ClassMissing => {
            Fault::new("/method/requirements", Kind::BadColumns, detail)
        }
        SequentialError::InfeasibleRoot { requirement, proof } => {
            let detail = format!("not even with everything generalized {} holds", promised(requirement));
            Fault::new(at(requirement), Kind::InfeasibleRoot, detail).with("proof", proof)
        }
        SequentialError::PriorReleaseViolates { requirement } => {
            let detail = format!("earlier releases break {}, whatever is published now", promised(requirement));
            Fault::new(at(requirement), Kind::PriorReleaseViolates, detail)
        }
        SequentialError::EmptyJoin { requirement } => {
            let detail = format!("no row of one release matches any of the others, for {}", promised(requirement));
            Fault::new(at(requirement), Kind::BadColumns, detail)
        }
        SequentialError::TooDense { requirement } => {
            Fault::new(at(requirement), Kind::JoinTooDense, "there is too much to be told apart")
        }
        SequentialError::TooManyJoins { .. } => {
            let allowed = "default, or fewer releases";
            Fault::new("/method/subsets", Kind::ParameterRange, format!("there are too many joins: expected {allowed}"))
                .with("allowed", allowed)
        }
    };
    PlanRefusal(vec![fault]).into()
}

impl SequentialDesign {
    /// Whether some attribute is not published as it is.
    #[must_use]
    pub fn is_generalized(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// The label of each code of an attribute; `None` where it is published as it is.
    #[must_use]
    pub fn labels_of(&self, attribute: Attr) -> Option<&[u32]> {
        self.cuts.iter().find(|cut| cut.attribute == attribute).map(|cut| &cut.of_code[..])
    }

    fn make(
        &self,
        name: TableName,
        attributes: AttrSet,
        input: &PlanInput<'_>,
        table: &Table,
        control: &Control,
    ) -> Result<(PublishedTable, PartContents, TableWitness), Cancelled> {
        let (mut columns, mut described) = (Vec::new(), Vec::new());
        for attribute in attributes.iter() {
            control.check()?;
            let (column, name) = (table.column(attribute), input.published_names[attribute.index()].clone());
            let cut = self.cuts.iter().find(|cut| cut.attribute == attribute);
            let cells = match cut.map(|cut| cut.shape) {
                None => CellContent::Exact,
                Some(CellShape::Node) => CellContent::Node { taxonomy: name.clone(), cut: None },
                Some(CellShape::Suppressed) => CellContent::Suppressed,
                Some(_) => CellContent::Interval,
            };
            columns.push(cut.map_or_else(|| column.clone(), |cut| cut.cells(column)));
            described.push(PublishedColumn { attribute, name, cells });
        }
        of_one_part((name, TableProtection::Exclusive), (described, columns), table.rows(), control)
    }
}

impl GeneralizedColumn {
    /// The column with the labels in place of its values.
    fn cells(&self, column: &Column) -> Column {
        let mut texts = Interner::default();
        let numbers: Vec<Option<u32>> = self
            .of_code
            .iter()
            .map(|&label| self.labels[label as usize].as_ref().map(|text| texts.intern(text)))
            .collect();
        // labels of no row are not among the texts
        column_of_texts(texts, &numbers, (0..column.codes.len()).map(|row| column.codes.get(row)))
    }
}

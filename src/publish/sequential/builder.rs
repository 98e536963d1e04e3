//! The problem of a sequential release, built from a specification and the earlier releases.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::labels::{LabelDomain, LabelError, is_ordered};
use super::{
    ColumnScale, EarlierReleaseTable, GroupMeasure, JoinScope, MAX_LINKS, NewTable, NewTableColumn, NodeRange, NodeSet,
    PublishedLabels, ResolvedAttribute, ResolvedConditions, ResolvedExclusion, ResolvedRequirement, ResolvedYElement,
    SequentialProblem, SpecializationGain, SpecializationScore,
};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, CellShape, Table, Taxonomy};
use crate::problem::{Fault, Kind};
use crate::publication::{
    self, Conditions, EarlierRelease, EarlierReleases, JoinSelection, RowCorrespondence, XyMeasure,
};
use crate::publish::error::{PlanError, PlanRefusal};
use crate::spec::child;
use crate::spec::{SequentialSpec, StepGain, StepScore};

/// Pointer of the list of earlier releases.
const AGAINST_POINTER: &str = "/method/against";

/// Releases of a problem, and the requirements on their join.
pub(super) struct ProblemBuilder<'a> {
    pub(super) spec: &'a SequentialSpec,
    pub(super) table: &'a Table,
    /// Earlier releases in the order of `against`.
    pub(super) earlier: Vec<&'a EarlierRelease>,
    /// Requirements of the new release, then those of earlier ones. Release 0 is the new one.
    pub(super) requirements: Vec<publication::XyRequirement>,
    /// For each requirement, the attributes of other releases by which who knows X groups tuples too.
    pub(super) missing: Vec<Vec<publication::JoinAttribute>>,
    pub(super) exclusions: Vec<publication::Exclusion>,
    /// Attributes of all releases; attribute `i` of the new one is `Attr(i)`.
    names: Vec<String>,
    domains: Vec<LabelDomain>,
}

impl<'a> ProblemBuilder<'a> {
    pub(super) fn new(
        spec: &'a SequentialSpec,
        table: &'a Table,
        earlier_releases: &'a EarlierReleases,
    ) -> Result<Self, PlanRefusal> {
        let mut faults = Vec::new();
        let mut earlier: Vec<&EarlierRelease> = Vec::new();
        for (at, id) in spec.against.iter().map(ToString::to_string).enumerate() {
            let pointer = format!("{AGAINST_POINTER}/{at}");
            match earlier_releases.releases.iter().find(|release| release.release == id) {
                None => {
                    let detail = "no release of this id, of the same series and content, can be read here";
                    faults.push(Fault::new(pointer, Kind::UnknownRelease, detail));
                }
                Some(release) if release.rows_of == RowCorrespondence::Content && release.rows != table.rows() => {
                    let detail = "the release has other rows than the table";
                    faults.push(Fault::new(pointer, Kind::BadColumns, detail));
                }
                Some(release) => earlier.push(release),
            }
        }
        if !faults.is_empty() {
            return Err(PlanRefusal(faults));
        }
        let (requirements, exclusions) = protection(spec, &earlier)?;
        let mut names = table.names().to_vec();
        for column in earlier.iter().flat_map(|release| &release.columns) {
            if !names.contains(&column.name) {
                names.push(column.name.clone());
            }
        }
        let (missing, domains) = (Vec::new(), Vec::new());
        let mut builder = Self { spec, table, earlier, requirements, missing, exclusions, names, domains };
        builder.known()?;
        builder.missing = builder.requirements.iter().map(|requirement| builder.missing(requirement)).collect();
        builder.place()?;
        Ok(builder)
    }

    /// Checks that every reference names an attribute that its release publishes.
    fn known(&self) -> Result<(), PlanRefusal> {
        let has = |reference: &publication::JoinAttribute| match reference.release.checked_sub(1) {
            None => self.own(&reference.attribute).is_some(),
            Some(earlier) => self.earlier[earlier].column(&reference.attribute).is_some(),
        };
        let mut faults = Vec::new();
        let mut check = |pointer: String, reference: &publication::JoinAttribute| {
            if !has(reference) {
                let detail = format!("the release does not publish {}", reference.attribute);
                let fault = Fault::new(pointer, Kind::UnknownAttribute, detail);
                faults.push(fault.with("attribute", reference.attribute.as_str()));
            }
        };
        for requirement in self.requirements.iter().filter(|requirement| requirement.of == 0) {
            for (at, reference) in requirement.x.iter().enumerate() {
                check(format!("{}/x/{at}", requirement.pointer), reference);
            }
            for (at, y_element) in requirement.y.iter().enumerate() {
                if let publication::YElement::Attribute(reference) = y_element {
                    check(format!("{}/y/{at}", requirement.pointer), reference);
                }
            }
        }
        for exclusion in self.exclusions.iter().filter(|exclusion| exclusion.of == 0) {
            for (side, conditions) in [("left", &exclusion.left), ("right", &exclusion.right)] {
                let Conditions { release, within } = conditions;
                for (attribute, _) in within {
                    let pointer = self.condition(&exclusion.pointer, side, *release, attribute);
                    check(pointer, &publication::JoinAttribute { release: *release, attribute: attribute.clone() });
                }
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
    }

    fn condition(&self, pointer: &str, side: &str, release: usize, attribute: &str) -> String {
        let named = match release.checked_sub(1) {
            None => format!("new.{attribute}"),
            Some(earlier) => format!("{}.{attribute}", self.earlier[earlier].release),
        };
        child(&child(pointer, side), &named)
    }

    /// Builds the label domain of every attribute.
    fn place(&mut self) -> Result<(), PlanRefusal> {
        let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for requirement in &self.requirements {
            let XyMeasure::Linkability { sensitive: Some(sensitive), .. } = &requirement.measure else { continue };
            for (y_element, at) in attributes_of(&requirement.y).zip(0..) {
                let declared_value = sensitive.iter().filter_map(|value| value.get(at)?.as_deref());
                values.entry(&y_element.attribute).or_default().extend(declared_value);
            }
        }
        for Conditions { within, .. } in self.exclusions.iter().flat_map(|e| [&e.left, &e.right]) {
            for (attribute, label) in within {
                values.entry(attribute).or_default().extend(label.as_deref());
            }
        }
        let (mut domains, mut faults) = (Vec::new(), Vec::new());
        for (at, name) in self.names.iter().enumerate() {
            let new = (at < self.table.names().len()).then(|| {
                let attr = Attr::from(at);
                (self.table.column(attr), self.table.annotations(attr).taxonomy())
            });
            let earlier: Vec<(&publication::EarlierColumn, Option<&Arc<Taxonomy>>)> = self
                .earlier
                .iter()
                .filter_map(|release| Some((release.column(name)?, release.taxonomies.get(name))))
                .collect();
            let declared_value = values.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            match LabelDomain::new(new, &earlier, declared_value) {
                Ok(domain) => domains.push(domain),
                Err(why) => faults.push(self.unplaced(name, why)),
            }
        }
        self.domains = domains;
        if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
    }

    fn domain(&self, name: &str) -> Option<(u32, &LabelDomain)> {
        let at = self.names.iter().position(|known| known == name)?;
        Some((at as u32, self.domains.get(at)?))
    }

    /// The problem, with attributes and labels as numbers.
    pub(super) fn problem(&'a self, control: &Control) -> Result<SequentialProblem<'a>, PlanError> {
        let class = self.spec.class.map(|class| &self.table.column(class).codes);
        let mut columns = Vec::new();
        for attr in self.table.attributes().iter() {
            control.check()?;
            let (column, domain) = (self.table.column(attr), &self.domains[attr.index()]);
            let spans = domain.of_domain(&column.domain).ok_or_else(|| self.homeless(attr.index()))?;
            let places = || spans.iter().map(|span| span.first).collect();
            let scale = match self.table.annotations(attr).taxonomy() {
                _ if !self.spec.generalized.contains(attr) => ColumnScale::Raw(spans),
                Some(tree) => ColumnScale::Tree(tree),
                None if !is_ordered(column.domain.kind()) => ColumnScale::Values(places(), domain.anything()),
                None if domain.is_tree() => return Err(self.homeless(attr.index()).into()),
                None => ColumnScale::Numbers(places()),
            };
            // no other release has what is left out
            let attribute =
                if self.spec.left_out.contains(attr) { u32::MAX - attr.index() as u32 } else { attr.index() as u32 };
            columns.push(NewTableColumn { attribute, codes: &column.codes, scale });
        }
        let mut earlier = Vec::new();
        for release in &self.earlier {
            let mut labels = Vec::new();
            for column in &release.columns {
                control.check()?;
                let Some((attribute, domain)) = self.domain(&column.name) else { continue };
                let places = domain.of_cells(column).ok_or_else(|| self.homeless(attribute as usize))?;
                labels.push(PublishedLabels { attribute, codes: &column.cells.codes, places });
            }
            earlier.push(EarlierReleaseTable { rows: release.rows, columns: labels });
        }
        Ok(SequentialProblem {
            new: NewTable { rows: self.table.rows(), columns, class },
            earlier,
            same_rows: self.same_rows(),
            requirements: self.numbered()?,
            exclusions: self.barred()?,
            joins: match self.spec.subsets {
                JoinSelection::Default => JoinScope::Extended,
                JoinSelection::All => JoinScope::All,
            },
            gain: match self.spec.gain {
                StepGain::Information => SpecializationGain::Information,
                StepGain::Distortion => SpecializationGain::Distortion,
            },
            score: match self.spec.score {
                StepScore::PlusOne => SpecializationScore::PlusOne,
                StepScore::Ratio => SpecializationScore::Ratio,
            },
            stop_at_zero_gain: false,
            allow_violating_prefix: false,
            most_links: MAX_LINKS,
        })
    }

    fn homeless(&self, attribute: usize) -> PlanRefusal {
        PlanRefusal(vec![self.unplaced(&self.names[attribute], LabelError::Trees)])
    }

    /// Fault of an attribute without a common label domain, at an external table if one publishes it.
    fn unplaced(&self, name: &str, why: LabelError) -> Fault {
        let has = |release: &&EarlierRelease| release.external && release.column(name).is_some();
        let fault = unplaced(name, why);
        match self.earlier.iter().position(has) {
            None => fault,
            Some(at) => {
                let detail = format!("of the external table, {}", fault.detail);
                Fault::new(format!("{AGAINST_POINTER}/{at}"), Kind::BadColumns, detail).with("attribute", name)
            }
        }
    }

    /// Whether some earlier release publishes labels of the attribute in place of values, and a requirement on joins depends on them.
    pub(super) fn is_generalized_before(&self, requirement: &publication::XyRequirement, name: &str) -> bool {
        (1..).zip(&self.earlier).any(|(number, release)| {
            let is_exact = |column: &publication::EarlierColumn| column.shape == CellShape::Exact && !column.nodes;
            release.column(name).is_some_and(|column| !is_exact(column))
                && (requirement.x.iter().any(|of| of.release == number && of.attribute == name)
                    || self.matches(number, name))
        })
    }

    /// Whether rows of a release match those of another by the attribute.
    pub(super) fn matches(&self, release: usize, name: &str) -> bool {
        let is_of_new = release != 0 && self.own(name).is_some();
        let others = (1..).zip(&self.earlier).filter(|(number, _)| *number != release);
        let sides = self.exclusions.iter().flat_map(|exclusion| [&exclusion.left, &exclusion.right]);
        is_of_new
            || others.into_iter().any(|(_, other)| other.column(name).is_some())
            || sides.filter(|side| side.release == release).any(|side| side.within.iter().any(|(of, _)| of == name))
    }

    /// The attribute of the new release with a name.
    pub(super) fn own(&self, name: &str) -> Option<Attr> {
        let place = self.table.names().iter().position(|own| own == name).map(Attr::from);
        place.filter(|attr| !self.spec.left_out.contains(*attr))
    }

    /// The attributes of earlier releases.
    pub(super) fn earlier_names(&self) -> impl Iterator<Item = &str> {
        self.earlier.iter().flat_map(|release| &release.columns).map(|column| column.name.as_str())
    }

    /// Ids of the external tables.
    pub(super) fn external(&self) -> Vec<String> {
        self.earlier.iter().filter(|release| release.external).map(|release| release.release.clone()).collect()
    }

    /// Whether all releases are known to be projections of the rows of the table.
    pub(super) fn same_rows(&self) -> bool {
        self.earlier.iter().all(|release| release.has_rows_of(self.table.rows()))
    }

    /// Faults of external tables whose cells contradict the dataset under the same record key: the true rows would not be joined.
    pub(super) fn tied(&self, control: &Control) -> Result<Vec<Fault>, Cancelled> {
        let mut faults = Vec::new();
        for (at, release) in self.earlier.iter().enumerate() {
            let RowCorrespondence::Records(records) = &release.rows_of else { continue };
            for attr in records.values.attributes().iter() {
                control.check()?;
                let name = records.values.name(attr);
                let values = records.values.column(attr);
                let Some((column, (_, domain))) = release.column(name).zip(self.domain(name)) else { continue };
                let places = domain.of_cells(column).zip(domain.of_domain(&values.domain));
                // a value without a label is a contradiction
                let apart = |(&row, code): (&u32, u32)| {
                    let cell = column.cells.codes.get(row as usize);
                    places.as_ref().is_none_or(|(labels, of)| !labels[cell as usize].meets(&of[code as usize].into()))
                };
                if records.rows.iter().zip(values.codes.iter()).any(apart) {
                    let detail = format!(
                        "rows of the external table have another {name} than the dataset does under the same record key: the \
                         true rows would not be joined"
                    );
                    let fault = Fault::new(format!("{AGAINST_POINTER}/{at}"), Kind::BadColumns, detail);
                    faults.push(fault.with("attribute", name));
                }
            }
        }
        Ok(faults)
    }

    fn reference(&self, reference: &publication::JoinAttribute) -> Option<ResolvedAttribute> {
        Some(ResolvedAttribute { release: reference.release, attribute: self.domain(&reference.attribute)?.0 })
    }

    fn numbered(&self) -> Result<Vec<ResolvedRequirement>, PlanRefusal> {
        let mut numbered = Vec::new();
        for requirement in &self.requirements {
            let y_element = |y_element: &publication::YElement| match y_element {
                publication::YElement::Attribute(reference) => {
                    self.reference(reference).map(ResolvedYElement::Attribute)
                }
                publication::YElement::Key(release) => Some(ResolvedYElement::Key(*release)),
            };
            let measure = match &requirement.measure {
                XyMeasure::Anonymity { k } => GroupMeasure::Anonymity { k: *k },
                XyMeasure::Linkability { h, sensitive } => GroupMeasure::Linkability {
                    h: *h,
                    sensitive: sensitive.as_ref().map(|values| self.sensitive(requirement, values)).transpose()?,
                },
            };
            numbered.push(ResolvedRequirement {
                x: requirement.x.iter().filter_map(|x| self.reference(x)).collect(),
                y: requirement.y.iter().filter_map(y_element).collect(),
                exact: Vec::new(),
                also: Vec::new(),
                measure,
            });
        }
        for at in self.again() {
            let known = self.requirements[at].known_exactly.iter().filter_map(|name| self.domain(name));
            let exact = known.map(|(attr, _)| attr).collect();
            let also = self.missing[at].iter().filter_map(|missing| self.reference(missing)).collect();
            numbered.push(ResolvedRequirement { exact, also, ..numbered[at].clone() });
        }
        Ok(numbered)
    }

    /// The requirements that must also hold for who knows more than the labels on X: each once more, after all.
    fn again(&self) -> impl Iterator<Item = usize> {
        let knows_more = |&at: &usize| !self.requirements[at].known_exactly.is_empty() || !self.missing[at].is_empty();
        (0..self.requirements.len()).filter(knows_more)
    }

    /// The index of the requirement behind a number of the problem, and whether it is the one for who knows more.
    pub(super) fn requirement(&self, number: usize) -> Option<(usize, bool)> {
        match number.checked_sub(self.requirements.len()) {
            None => Some((number, false)),
            Some(again) => self.again().nth(again).map(|at| (at, true)),
        }
    }

    fn sensitive(
        &self,
        requirement: &publication::XyRequirement,
        values: &[publication::SensitiveValue],
    ) -> Result<Vec<Vec<NodeRange>>, PlanRefusal> {
        let of_y: Vec<&publication::JoinAttribute> = attributes_of(&requirement.y).collect();
        let mut spans = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let parts =
                of_y.iter().zip(value).map(|(reference, label)| self.declared_value(reference, label.as_deref()));
            let parts = parts.collect::<Option<Vec<NodeRange>>>();
            spans.push(parts.ok_or_else(|| {
                let pointer = match requirement.of {
                    0 => format!("{}/measure/sensitive_values/{at}", requirement.pointer),
                    release => format!("{AGAINST_POINTER}/{}", release - 1),
                };
                unknown(pointer)
            })?);
        }
        Ok(spans)
    }

    /// Node range of a declared value or node, if some row of the release may have it.
    fn declared_value(&self, reference: &publication::JoinAttribute, label: Option<&str>) -> Option<NodeRange> {
        let (_, domain) = self.domain(&reference.attribute)?;
        let declared_value = domain.declared_value(label)?;
        let shown = match reference.release.checked_sub(1) {
            None => {
                let at = self.table.names().iter().position(|name| *name == reference.attribute)?;
                let spans = domain.of_domain(&self.table.column(Attr::from(at)).domain)?;
                spans.into_iter().map(NodeSet::Range).collect()
            }
            Some(earlier) => domain.of_cells(self.earlier[earlier].column(&reference.attribute)?)?,
        };
        shown.iter().any(|label| label.meets(&declared_value.into())).then_some(declared_value)
    }

    fn barred(&self) -> Result<Vec<ResolvedExclusion>, PlanRefusal> {
        let side = |exclusion: &publication::Exclusion, side: &str, conditions: &Conditions| {
            let mut within = Vec::new();
            for (attribute, label) in &conditions.within {
                let reference =
                    publication::JoinAttribute { release: conditions.release, attribute: attribute.clone() };
                let place = self.reference(&reference).zip(self.declared_value(&reference, label.as_deref()));
                let Some((reference, span)) = place else {
                    return Err(unknown(match exclusion.of {
                        0 => self.condition(&exclusion.pointer, side, conditions.release, attribute),
                        release => format!("{AGAINST_POINTER}/{}", release - 1),
                    }));
                };
                within.push((reference.attribute, span));
            }
            Ok(ResolvedConditions { release: conditions.release, within })
        };
        let barred = |exclusion: &publication::Exclusion| {
            let (left, right) =
                (side(exclusion, "left", &exclusion.left)?, side(exclusion, "right", &exclusion.right)?);
            Ok(ResolvedExclusion { left, right })
        };
        self.exclusions.iter().map(barred).collect()
    }

    /// Attributes that releases publish under other names than the dataset.
    pub(super) fn renamed(&self, published_names: &[String]) -> BTreeMap<usize, BTreeMap<String, String>> {
        let own = self.table.names().iter().zip(published_names);
        let earlier =
            self.earlier.iter().map(|release| release.columns.iter().map(|c| (&c.name, &c.published)).collect());
        let releases = std::iter::once(own.collect()).chain(earlier).enumerate();
        let renamed = releases.map(|(release, names): (usize, Vec<(&String, &String)>)| {
            let others = names.into_iter().filter(|(name, published)| name != published);
            (release, others.map(|(name, published)| (name.clone(), published.clone())).collect())
        });
        renamed.filter(|(_, others): &(_, BTreeMap<_, _>)| !others.is_empty()).collect()
    }

    /// Faults of exclusions that some row of the original satisfies.
    pub(super) fn contradicted(
        &self,
        sequence: &SequentialProblem<'_>,
        excluded: Option<&Table>,
        control: &Control,
    ) -> Result<Vec<Fault>, Cancelled> {
        let mut faults = Vec::new();
        let mut labels = Vec::new();
        for attr in excluded.into_iter().flat_map(|table| table.attributes().iter().map(move |attr| (table, attr))) {
            let (table, attr) = attr;
            let Some((attribute, domain)) = self.domain(table.name(attr)) else { continue };
            let column = table.column(attr);
            let Some(spans) = domain.of_domain(&column.domain) else { continue };
            let places = spans.into_iter().map(NodeSet::Range).collect();
            labels.push(PublishedLabels { attribute, codes: &column.codes, places });
        }
        let rows = excluded.map_or(0, Table::rows);
        for (exclusion, said) in sequence.exclusions.iter().zip(&self.exclusions) {
            let contradicted = exclusion.contradicted_by(rows, &labels, control)?;
            if contradicted == Some(0) {
                continue;
            }
            faults.push(match said.of.checked_sub(1) {
                None => Fault::new(said.pointer.as_str(), Kind::ExclusionContradicted, contradiction(contradicted)),
                Some(earlier) => self.contradicted_before(earlier, said, contradicted),
            });
        }
        Ok(faults)
    }

    /// The fault of an exclusion that an earlier release declares, and that the dataset contradicts or cannot show.
    fn contradicted_before(&self, earlier: usize, said: &publication::Exclusion, contradicted: Option<u64>) -> Fault {
        let sides = said.left.within.iter().chain(&said.right.within);
        let names: Vec<&str> = sides.map(|(name, _)| name.as_str()).collect();
        let detail = format!(
            "release {} keeps an exclusion on {}: {}; upload a dataset with these columns, or do not join the release",
            self.earlier[earlier].release,
            names.join(" and "),
            contradiction(contradicted)
        );
        Fault::new(format!("{AGAINST_POINTER}/{earlier}"), Kind::BadColumns, detail)
    }
}

/// What is wrong with an exclusion that this number of rows contradicts; `None` where it could not be checked.
fn contradiction(rows: Option<u64>) -> String {
    match rows {
        Some(found) => format!("{found} rows of the original are what it says nobody is"),
        // an exclusion that cannot be checked is not accepted
        None => "it cannot be held against the original, whose columns it names are not at hand".to_owned(),
    }
}

/// The attributes among the elements of Y, in their order.
fn attributes_of(y: &[publication::YElement]) -> impl Iterator<Item = &publication::JoinAttribute> {
    y.iter().filter_map(|y_element| match y_element {
        publication::YElement::Attribute(reference) => Some(reference),
        publication::YElement::Key(_) => None,
    })
}

/// Requirements and exclusions of the specification, and those that earlier releases promised.
fn protection(
    spec: &SequentialSpec,
    earlier: &[&EarlierRelease],
) -> Result<(Vec<publication::XyRequirement>, Vec<publication::Exclusion>), PlanRefusal> {
    let (mut requirements, mut exclusions) = (spec.requirements.clone(), spec.exclusions.clone());
    let mut unlisted = Vec::new();
    for (number, release) in (1..).zip(earlier) {
        let Some(sequence) = &release.sequence else { continue };
        // releases under the numbers of this problem
        let numbers: Vec<Option<usize>> = std::iter::once(Some(number))
            .chain(sequence.against.iter().map(|id| Some(earlier.iter().position(|other| other.release == *id)? + 1)))
            .collect();
        if numbers.contains(&None) {
            unlisted.push(format!("{AGAINST_POINTER}/{}", number - 1));
            continue;
        }
        let renumbered = |release: usize| numbers.get(release).copied().flatten().unwrap_or(number);
        let reference = |of: &publication::JoinAttribute| publication::JoinAttribute {
            release: renumbered(of.release),
            attribute: of.attribute.clone(),
        };
        let y_element = |y_element: &publication::YElement| match y_element {
            publication::YElement::Attribute(of) => publication::YElement::Attribute(reference(of)),
            publication::YElement::Key(of) => publication::YElement::Key(renumbered(*of)),
        };
        let side = |side: &Conditions| Conditions { release: renumbered(side.release), within: side.within.clone() };
        // requirements that it took over from others come from these
        for (own, _) in sequence.requirements.iter().filter(|(requirement, _)| requirement.of == 0) {
            requirements.push(publication::XyRequirement {
                pointer: own.pointer.clone(),
                of: number,
                x: own.x.iter().map(reference).collect(),
                y: own.y.iter().map(y_element).collect(),
                known_exactly: Vec::new(),
                measure: own.measure.clone(),
            });
        }
        for own in sequence.exclusions.iter().filter(|exclusion| exclusion.of == 0) {
            let (left, right) = (side(&own.left), side(&own.right));
            exclusions.push(publication::Exclusion { pointer: own.pointer.clone(), of: number, left, right });
        }
    }
    if unlisted.is_empty() {
        return Ok((requirements, exclusions));
    }
    let allowed = "with a release also those that it was published against";
    let fault = |pointer: String| {
        let detail = format!("what the release keeps is kept on its join with others: expected {allowed}");
        Fault::new(pointer, Kind::ParameterRange, detail).with("allowed", allowed)
    };
    Err(PlanRefusal(unlisted.into_iter().map(fault).collect()))
}

fn unknown(pointer: String) -> PlanRefusal {
    let allowed = "a value that some row has, or a node of the taxonomy above one";
    let fault = Fault::new(pointer, Kind::ParameterRange, format!("expected {allowed}"));
    PlanRefusal(vec![fault.with("allowed", allowed)])
}

fn unplaced(name: &str, why: LabelError) -> Fault {
    let pointer = child("/attributes", name);
    match why {
        LabelError::Trees => {
            let detail =
                format!("releases that publish nodes of {name} go by one taxonomy: state that of the earlier ones");
            let fault = Fault::new(child(&pointer, "taxonomy"), Kind::TaxonomyConflict, detail);
            fault.with("attribute", name)
        }
        LabelError::Shapes => {
            let detail =
                format!("the cells of {name} in the releases are of kinds that cannot be held against each other");
            Fault::new(pointer, Kind::BadColumns, detail).with("attribute", name)
        }
        LabelError::Spellings => {
            let detail =
                format!("some numbers of {name} are spelled in several ways, and the spellings would be distinct");
            Fault::new(pointer, Kind::BadColumns, detail).with("attribute", name)
        }
    }
}

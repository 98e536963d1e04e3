//! Making the tables of a design: raw projections, and buckets with their parts.

use super::arrange;
use super::assign::{BucketAssignment, Labels};
use super::bucketize;
use super::design::Bucketized;
use super::generalize;
use super::slicing::{SlicedTable, SlicingPlan};
use crate::control::{Cancelled, Control};
use crate::microdata::formats::csv::null_marker;
use crate::microdata::{Attr, AttrSet, Column, Table};
use crate::publication::{
    BucketColumn, CellContent, Part, PartContents, PublishedColumn, RowMeaning, TableName, TableProtection,
    TableWitness,
};
use crate::random::RandomStreams;

pub(super) type MadeTable = (Vec<(Part, PartContents)>, TableProtection, TableWitness);

/// Makes one table.
pub(super) struct TableMaker<'a> {
    pub(super) table: &'a Table,
    pub(super) published_names: &'a [String],
    pub(super) control: &'a Control,
}

impl TableMaker<'_> {
    pub(super) fn raw(&self, attributes: AttrSet) -> Result<MadeTable, Cancelled> {
        let attrs: Vec<Attr> = attributes.iter().collect();
        let columns = arrange::arranged(self.table, &attrs, None, self.control)?;
        Ok((vec![self.part("rows", &attrs, columns, None)], TableProtection::Plain, TableWitness::Plain))
    }

    pub(super) fn bucketized(
        &self,
        attributes: AttrSet,
        bucketized: &Bucketized,
        name: &TableName,
        streams: &RandomStreams,
    ) -> Result<MadeTable, Cancelled> {
        let Bucketized { parts: sensitive, guards, planned, .. } = bucketized;
        let assignment = bucketized.draw(self.table, streams, self.control)?;
        let buckets = assignment.buckets;
        let fakes = match (planned, bucketize::protected(bucketized)) {
            (Some(planned), Some(attr)) => {
                let mut stream = streams.stream(&bucketize::counterfeits_label(attr));
                planned.counterfeits(self.table, attr, (&assignment.bucket_of, buckets), &mut stream, self.control)?
            }
            _ => None,
        };
        let labels = Labels::draw(buckets, &mut streams.stream(&format!("{name}/labels")));
        let labels_of_fakes = fakes.as_ref().map(|fakes| {
            let bucket_of = fakes.iter().map(|(bucket, _)| *bucket).collect();
            labels.of_rows(BucketAssignment { bucket_of, buckets })
        });
        let labels_of_rows = labels.of_rows(assignment);
        let groups = arrange::BucketRows::new(&labels_of_rows, buckets);
        let part = |name: String, attributes: AttrSet| {
            let attrs: Vec<Attr> = attributes.iter().collect();
            if let (Some(fakes), Some(labels_of_fakes), [attr]) = (&fakes, &labels_of_fakes, &attrs[..])
                && name == "sa"
            {
                return self.with_counterfeits(*attr, (&labels_of_rows, labels_of_fakes), fakes, buckets);
            }
            let columns = arrange::arranged(self.table, &attrs, Some(&groups), self.control)?;
            Ok(self.part(&name, &attrs, columns, Some(Labels::column(groups.sizes()))))
        };
        let known = attributes.minus(bucketized.sensitive());
        let names = (1..).map(|number| if sensitive.len() == 1 { "sa".to_owned() } else { format!("sa{number}") });
        let parts = std::iter::once(("qi".to_owned(), known)).chain(names.zip(sensitive.iter().copied()));
        let parts = parts.map(|(name, attributes)| part(name, attributes)).collect::<Result<_, _>>()?;
        Ok((parts, TableProtection::Guarding(guards.clone()), TableWitness::Buckets(labels_of_rows)))
    }

    pub(super) fn sliced(
        &self,
        slicing: &SlicingPlan,
        name: &TableName,
        streams: &RandomStreams,
    ) -> Result<MadeTable, Cancelled> {
        let SlicedTable { buckets: assignment, boxes, .. } = slicing.draw(self.table, self.control)?;
        let buckets = assignment.buckets;
        let labels = Labels::draw(buckets, &mut streams.stream(&format!("{name}/labels")));
        let labels_of_rows = labels.of_rows(assignment);
        let groups = arrange::BucketRows::new(&labels_of_rows, buckets);
        let parts = slicing.decided().iter().zip(&boxes).zip(1..).map(|((column, boxes), number)| {
            let attrs: Vec<Attr> = column.iter().collect();
            let name = format!("c{number}");
            let Some(boxes) = boxes else {
                let columns = arrange::arranged(self.table, &attrs, Some(&groups), self.control)?;
                return Ok(self.part(&name, &attrs, columns, Some(Labels::column(groups.sizes()))));
            };
            let boxed = self.boxed(&attrs, slicing.sensitive, boxes);
            let places: Vec<Attr> = boxed.attributes().iter().collect();
            let columns = arrange::arranged(&boxed, &places, Some(&groups), self.control)?;
            let (mut part, contents) = self.part(&name, &attrs, columns, Some(Labels::column(groups.sizes())));
            let shared = part.columns.iter_mut().filter(|column| column.attribute != slicing.sensitive);
            shared.for_each(|column| column.cells = CellContent::Interval);
            Ok((part, contents))
        });
        let parts = parts.collect::<Result<_, _>>()?;
        let protection = slicing.diversity.protection(slicing.decided(), slicing.sensitive);
        let witness = match boxes.iter().all(Option::is_none) {
            true => TableWitness::Buckets(labels_of_rows),
            false => TableWitness::Boxes {
                labels: labels_of_rows,
                boxes: boxes.into_iter().map(|boxes| boxes.map(|boxes| boxes.bucket_of).unwrap_or_default()).collect(),
            },
        };
        Ok((parts, protection, witness))
    }

    /// The columns of `attrs`, each value but the sensitive ones being the interval of its box.
    fn boxed(&self, attrs: &[Attr], sensitive: Attr, boxes: &BucketAssignment) -> Table {
        let column = |attr: &Attr| match *attr == sensitive {
            true => self.table.column(*attr).clone(),
            false => generalize::interval_cells(self.table.column(*attr), boxes),
        };
        Table::new(
            attrs.iter().map(|attr| self.table.name(*attr).to_owned()).collect(),
            attrs.iter().map(column).collect(),
        )
    }

    /// The sensitive part with values of nobody among those of the rows.
    fn with_counterfeits(
        &self,
        attr: Attr,
        (labels, labels_of_fakes): (&[u32], &[u32]),
        fakes: &[(u32, u32)],
        buckets: u32,
    ) -> Result<(Part, PartContents), Cancelled> {
        let Column { domain, codes } = self.table.column(attr);
        let codes = bucketize::with_counterfeits(codes, domain.len(), fakes);
        let alone = Table::new(vec![self.table.name(attr).to_owned()], vec![Column { domain: domain.clone(), codes }]);
        let labels: Vec<u32> = labels.iter().chain(labels_of_fakes).copied().collect();
        let groups = arrange::BucketRows::new(&labels, buckets);
        let columns = arrange::arranged(&alone, &[Attr(0)], Some(&groups), self.control)?;
        let (mut part, contents) = self.part("sa", &[attr], columns, Some(Labels::column(groups.sizes())));
        let per_bucket = fakes.len() as u32 / buckets.max(1);
        part.rows = RowMeaning::TuplesAndCounterfeits { per_bucket };
        Ok((part, contents))
    }

    pub(super) fn part(
        &self,
        name: &str,
        attrs: &[Attr],
        columns: Vec<Column>,
        buckets: Option<BucketColumn>,
    ) -> (Part, PartContents) {
        let null = match &columns[..] {
            [only] if buckets.is_none() && only.domain.has_missing() => Some(null_marker(&only.domain)),
            _ => None,
        };
        let description = Part {
            name: name.to_owned(),
            columns: attrs
                .iter()
                .map(|&attribute| PublishedColumn {
                    attribute,
                    name: self.published_names[attribute.index()].clone(),
                    cells: CellContent::Exact,
                })
                .collect(),
            rows: RowMeaning::Tuples,
            bucketed: buckets.is_some(),
            len: columns.first().map_or(0, |column| column.codes.len()) as u64,
            null,
        };
        (description, PartContents { buckets, columns })
    }
}

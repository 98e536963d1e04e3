//! Parts of plain, bucketized and sliced tables.

use super::arrange::{self, BucketRows};
use super::assign::{BucketAssignment, Labels};
use super::bucketize::{self, Counterfeit};
use super::designed_table::{BucketPlan, Bucketized};
use super::error::PublishError;
use super::generalize;
use super::made_table::MadeTable;
use super::secret_rows::SecretRows;
use super::slicing::{SlicedDesign, SlicedTable};
use crate::control::{Cancelled, Control};
use crate::microdata::formats::csv::null_marker;
use crate::microdata::{Attr, AttrSet, Column, Table};
use crate::publication::{
    BucketColumn, CellContent, Part, PartContents, PublishedColumn, RowMeaning, TableName, TableProtection,
    TableWitness,
};
use crate::random::RandomStreams;

/// Maker of the tables of a design.
pub(super) struct TableMaker<'a> {
    pub(super) rows: SecretRows<'a>,
    pub(super) published_names: &'a [String],
    pub(super) streams: &'a RandomStreams,
    pub(super) control: &'a Control,
}

/// Counterfeits of a table and the label of the bucket of each.
struct LabelledCounterfeits {
    values: Vec<Counterfeit>,
    labels: Vec<u32>,
}

impl TableMaker<'_> {
    /// A table of exact tuples.
    pub(super) fn plain(&self, attributes: AttrSet) -> Result<MadeTable, Cancelled> {
        let attrs: Vec<Attr> = attributes.iter().collect();
        let columns = arrange::arranged(self.rows.upload, &attrs, None, self.control)?;
        let parts = vec![self.part("rows", &attrs, columns, None)];
        Ok(MadeTable { parts, protection: TableProtection::Plain, witness: TableWitness::Plain })
    }

    /// A table of a part of known attributes, and sensitive parts.
    pub(super) fn bucketized(
        &self,
        attributes: AttrSet,
        bucketized: &Bucketized,
        name: &TableName,
    ) -> Result<MadeTable, Cancelled> {
        if let BucketPlan::Persistent(night) = &bucketized.buckets {
            return self.persistent(attributes, bucketized, night, name);
        }
        let assignment = bucketized.draw(self.rows.permuted, self.streams, self.control)?;
        let buckets = assignment.buckets;
        let counterfeits = self.counterfeits(bucketized, &assignment)?;
        let labels = self.labels(buckets, name);
        let counterfeits = counterfeits.map(|values| {
            let bucket_of = values.iter().map(|counterfeit| counterfeit.bucket).collect();
            LabelledCounterfeits { values, labels: labels.of_rows(BucketAssignment { bucket_of, buckets }) }
        });
        let labels_of_rows = self.rows.in_upload(labels.of_rows(assignment));
        let rows = BucketRows::new(&labels_of_rows, buckets);
        let known = attributes.minus(bucketized.sensitive());
        let mut parts = vec![self.bucket_part("qi", known, &rows)?];
        match (&bucketized.parts[..], &counterfeits) {
            ([only], Some(counterfeits)) => parts.push(self.part_with_counterfeits(*only, &rows, counterfeits)?),
            ([only], None) => parts.push(self.bucket_part("sa", *only, &rows)?),
            (several, _) => {
                for (part, number) in several.iter().zip(1..) {
                    parts.push(self.bucket_part(&format!("sa{number}"), *part, &rows)?);
                }
            }
        }
        let protection = TableProtection::Guarding(bucketized.guards.clone());
        Ok(MadeTable { parts, protection, witness: TableWitness::Buckets(labels_of_rows) })
    }

    /// A table of columns that are permuted within buckets.
    pub(super) fn sliced(&self, sliced: &SlicedDesign, name: &TableName) -> Result<MadeTable, PublishError> {
        let SlicedTable { buckets, boxes, columns } = sliced.draw(self.rows.permuted, self.control)?;
        let number = buckets.buckets;
        let labels_of_rows = self.rows.in_upload(self.labels(number, name).of_rows(buckets));
        let boxes: Vec<Option<BucketAssignment>> =
            boxes.into_iter().map(|of| of.map(|of| self.in_upload(of))).collect();
        let rows = BucketRows::new(&labels_of_rows, number);
        let sensitive = sliced.plan.sensitive;
        let parts = columns.iter().zip(&boxes).zip(1..).map(|((column, boxes), number)| {
            let name = format!("c{number}");
            match boxes {
                Some(boxes) => self.boxed_part(&name, *column, BoxedColumn { sensitive, boxes }, &rows),
                None => self.bucket_part(&name, *column, &rows),
            }
        });
        let parts = parts.collect::<Result<_, _>>()?;
        let protection = match &sliced.guards[..] {
            [] => TableProtection::Exclusive,
            guards => TableProtection::Guarding(guards.to_vec()),
        };
        let witness = match boxes.iter().all(Option::is_none) {
            true => TableWitness::Buckets(labels_of_rows),
            false => TableWitness::Boxes {
                labels: labels_of_rows,
                boxes: boxes.into_iter().map(|boxes| boxes.map(|boxes| boxes.bucket_of).unwrap_or_default()).collect(),
            },
        };
        Ok(MadeTable { parts, protection, witness })
    }

    /// An assignment of the rows as they were uploaded.
    pub(super) fn in_upload(&self, assignment: BucketAssignment) -> BucketAssignment {
        BucketAssignment { bucket_of: self.rows.in_upload(assignment.bucket_of), buckets: assignment.buckets }
    }

    /// Random labels of the buckets of a table.
    pub(super) fn labels(&self, buckets: u32, name: &TableName) -> Labels {
        Labels::of_table(name, buckets, self.streams)
    }

    /// Counterfeits of each bucket, if the plan asks for any.
    fn counterfeits(
        &self,
        bucketized: &Bucketized,
        assignment: &BucketAssignment,
    ) -> Result<Option<Vec<Counterfeit>>, Cancelled> {
        let (Some(planned), Some(attr)) = (bucketized.planned(), bucketized.protected()) else { return Ok(None) };
        let mut stream = self.streams.stream(&bucketize::counterfeits_label(attr));
        let placed = bucketize::PlacedRows { buckets: assignment, strata: bucketized.strata.as_deref() };
        planned.counterfeits(self.rows.permuted, attr, placed, &mut stream, self.control)
    }

    /// A part of exact tuples in buckets.
    pub(super) fn bucket_part(
        &self,
        name: &str,
        attributes: AttrSet,
        rows: &BucketRows<'_>,
    ) -> Result<(Part, PartContents), Cancelled> {
        let attrs: Vec<Attr> = attributes.iter().collect();
        let columns = arrange::arranged(self.rows.upload, &attrs, Some(rows), self.control)?;
        Ok(self.part(name, &attrs, columns, Some(Labels::column(rows.sizes()))))
    }

    /// A part whose values, the sensitive ones apart, are the intervals of their boxes.
    fn boxed_part(
        &self,
        name: &str,
        attributes: AttrSet,
        boxed: BoxedColumn<'_>,
        rows: &BucketRows<'_>,
    ) -> Result<(Part, PartContents), Cancelled> {
        let attrs: Vec<Attr> = attributes.iter().collect();
        let column = |attr: &Attr| match *attr == boxed.sensitive {
            true => self.rows.upload.column(*attr).clone(),
            false => generalize::interval_cells(self.rows.upload.column(*attr), boxed.boxes),
        };
        let table = Table::new(
            attrs.iter().map(|attr| self.rows.upload.name(*attr).to_owned()).collect(),
            attrs.iter().map(column).collect(),
        );
        let all: Vec<Attr> = table.attributes().iter().collect();
        let columns = arrange::arranged(&table, &all, Some(rows), self.control)?;
        let (mut part, contents) = self.part(name, &attrs, columns, Some(Labels::column(rows.sizes())));
        let shared = part.columns.iter_mut().filter(|column| column.attribute != boxed.sensitive);
        shared.for_each(|column| column.cells = CellContent::Interval);
        Ok((part, contents))
    }

    /// The sensitive part, with counterfeits among the values of the rows. Counterfeits exist of one attribute alone.
    fn part_with_counterfeits(
        &self,
        sensitive: AttrSet,
        rows: &BucketRows<'_>,
        counterfeits: &LabelledCounterfeits,
    ) -> Result<(Part, PartContents), Cancelled> {
        let Some(attr) = sensitive.iter().next() else { return self.bucket_part("sa", sensitive, rows) };
        let Column { domain, codes } = self.rows.upload.column(attr);
        let codes = bucketize::with_counterfeits(codes, domain.len(), &counterfeits.values);
        let alone =
            Table::new(vec![self.rows.upload.name(attr).to_owned()], vec![Column { domain: domain.clone(), codes }]);
        let labels: Vec<u32> = rows.labels().iter().chain(&counterfeits.labels).copied().collect();
        let buckets = rows.groups();
        let all = BucketRows::new(&labels, buckets);
        let columns = arrange::arranged(&alone, &[Attr(0)], Some(&all), self.control)?;
        let (mut part, contents) = self.part("sa", &[attr], columns, Some(Labels::column(all.sizes())));
        let per_bucket = counterfeits.values.len() as u32 / buckets.max(1);
        part.rows = RowMeaning::TuplesAndCounterfeits { per_bucket };
        Ok((part, contents))
    }

    /// A part of exact cells.
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

/// A generalized column of a sliced table.
struct BoxedColumn<'a> {
    sensitive: Attr,
    /// Box of each row.
    boxes: &'a BucketAssignment,
}

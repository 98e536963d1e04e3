//! Tables of buckets that persist over nights: each shows its whole signature, whichever members are left.

use std::sync::Arc;

use super::arrange::{self, BucketRows};
use super::assign::{BucketAssignment, Labels};
use super::design::Design;
use super::designed_table::{BucketPlan, Bucketized, TableDesign};
use super::made_table::MadeTable;
use super::make::TableMaker;
use crate::control::Cancelled;
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Codes, Column, Domain, Table};
use crate::problem::{Fault, Kind};
use crate::publication::{
    MethodDetails, Part, PartContents, RepublishDetails, RowMeaning, TableName, TableProtection, TableWitness,
};

/// The buckets of a night, which are decided before its table is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistentBuckets {
    /// The bucket of each row of the upload; `None` of a row that is not published.
    pub bucket_of: Vec<Option<u32>>,
    /// The signature of each bucket: a position in `signatures`.
    pub signature_of: Vec<u32>,
    /// The signatures: positions in `values`.
    pub signatures: Vec<Vec<u32>>,
    /// The values of the signatures; `None` is the missing value.
    pub values: Vec<Option<Box<[u8]>>>,
}

impl PersistentBuckets {
    /// The assignment of rows of the upload to buckets.
    fn assignment(&self) -> BucketAssignment {
        let bucket_of = self.bucket_of.iter().map(|bucket| bucket.unwrap_or(BucketAssignment::NOWHERE)).collect();
        BucketAssignment { bucket_of, buckets: self.buckets() }
    }

    const fn buckets(&self) -> u32 {
        self.signature_of.len() as u32
    }

    /// The signature of each bucket.
    fn signatures_of_buckets(&self) -> impl Iterator<Item = &[u32]> {
        self.signature_of.iter().map(|signature| &self.signatures[*signature as usize][..])
    }

    /// The slots as a column, bucket after bucket.
    ///
    /// The type is that of the values of the night, or the narrowest wider one that admits those of persons who left.
    fn column(&self, tonight: AttributeType) -> Column {
        let texts = || self.values.iter().flatten();
        let kind = texts().fold(tonight, |kind, text| AttributeType::widened(Some(kind), text));
        let mut arena = Arena::default();
        texts().for_each(|text| arena.push(text));
        let has_missing = self.values.iter().any(Option::is_none);
        let (domain, ranks) = Domain::sort(kind, has_missing, &arena);
        let mut ranks = ranks.into_iter();
        // the missing value has the first code
        let codes: Vec<u32> =
            self.values.iter().map(|value| value.as_ref().and_then(|_| ranks.next()).unwrap_or_default()).collect();
        let slots = self.signatures_of_buckets().flatten().map(|&value| codes[value as usize]);
        Column {
            codes: Codes::collect(domain.len(), slots.collect::<Vec<u32>>().into_iter()),
            domain: Arc::clone(&domain),
        }
    }
}

impl Design {
    /// Makes it the design of a table that is published night after night. Its buckets keep the guarantee by themselves, so that what
    /// the table of one night allows decides nothing.
    ///
    /// # Errors
    /// The fault of a dependency that ties the sensitive attribute: the buckets of different nights are not constant in one
    /// attribute.
    pub fn persist(&mut self) -> Result<(), Fault> {
        let [table] = &mut self.tables[..] else { return Ok(()) };
        let TableDesign::Bucketized(bucketized) = &mut table.design else { return Ok(()) };
        let is_tied = bucketized.strata.is_some()
            || bucketized.sensitive() != bucketized.protects()
            || bucketized.guards.iter().any(|guard| !guard.constant.is_empty());
        if is_tied {
            let detail = "a dependency ties the sensitive attribute to a known one, and buckets of different nights cannot be constant in \
                          it: leave an attribute of the dependency out";
            return Err(Fault::new("/republish", Kind::RepublishUnsupported, detail));
        }
        bucketized.buckets = BucketPlan::Drawn;
        for rule in &mut self.rules {
            rule.take_ineligibility();
        }
        self.details = MethodDetails::None;
        Ok(())
    }

    /// Publishes these buckets.
    pub fn publish_night(&mut self, buckets: PersistentBuckets, details: RepublishDetails) {
        let buckets = Arc::new(buckets);
        for table in &mut self.tables {
            if let TableDesign::Bucketized(bucketized) = &mut table.design {
                bucketized.buckets = BucketPlan::Persistent(Arc::clone(&buckets));
            }
        }
        self.details = MethodDetails::Republish(Box::new(details));
    }
}

impl TableMaker<'_> {
    /// A table of a part of known attributes, and a part of signatures.
    pub(super) fn persistent(
        &self,
        attributes: AttrSet,
        bucketized: &Bucketized,
        night: &PersistentBuckets,
        name: &TableName,
    ) -> Result<MadeTable, Cancelled> {
        let assignment = night.assignment();
        let buckets = assignment.buckets;
        let labels = self.labels(buckets, name);
        let labels_of_rows = labels.of_rows(assignment);
        let rows = BucketRows::new(&labels_of_rows, buckets);
        let sensitive = bucketized.sensitive();
        let mut parts = vec![self.bucket_part("qi", attributes.minus(sensitive), &rows)?];
        for attr in sensitive.iter() {
            parts.push(self.signatures(attr, night, &labels)?);
        }
        let protection = TableProtection::Guarding(bucketized.guards.clone());
        Ok(MadeTable { parts, protection, witness: TableWitness::Buckets(labels_of_rows) })
    }

    /// The part of signatures.
    fn signatures(
        &self,
        attr: Attr,
        night: &PersistentBuckets,
        labels: &Labels,
    ) -> Result<(Part, PartContents), Cancelled> {
        let bucket_of = (0..)
            .zip(night.signatures_of_buckets())
            .flat_map(|(bucket, slots)| std::iter::repeat_n(bucket, slots.len()));
        let buckets = night.buckets();
        let labels = labels.of_rows(BucketAssignment { bucket_of: bucket_of.collect(), buckets });
        let column = night.column(self.rows.upload.domain(attr).kind());
        let alone = Table::new(vec![self.rows.upload.name(attr).to_owned()], vec![column]);
        let slots = BucketRows::new(&labels, buckets);
        let columns = arrange::arranged(&alone, &[Attr(0)], Some(&slots), self.control)?;
        let (mut part, contents) = self.part("sa", &[attr], columns, Some(Labels::column(slots.sizes())));
        part.rows = RowMeaning::TuplesAndVaryingCounterfeits;
        Ok((part, contents))
    }
}

//! Parts of the tables of a decomposition.

use super::codes::CodeSet;
use super::designed::{DecomposedTable, DecompositionRole, SecretBuckets};
use crate::control::Cancelled;
use crate::microdata::{Attr, AttrSet, Codes, Column, Table};
use crate::publication::{Part, PartContents, RowMeaning, TableName, TableProtection, TableWitness};
use crate::publish::arrange::{self, BucketRows};
use crate::publish::assign::Labels;
use crate::publish::error::PublishError;
use crate::publish::made_table::MadeTable;
use crate::publish::make::TableMaker;

impl TableMaker<'_> {
    /// One of the two tables of a decomposition whose buckets are drawn.
    pub(in crate::publish) fn decomposed(
        &self,
        attributes: AttrSet,
        decomposed: &DecomposedTable,
        name: &TableName,
    ) -> Result<MadeTable, PublishError> {
        let drawn = decomposed.drawn.as_deref().ok_or(PublishError::NotDrawn)?;
        Ok(match decomposed.role {
            DecompositionRole::Buckets => self.decomposed_buckets(attributes, decomposed, drawn, name)?,
            DecompositionRole::Joint => self.joint_table(attributes, decomposed.primary, drawn)?,
        })
    }

    /// The sensitive tuples of all rows whose primary value is not left out.
    fn joint_table(&self, attributes: AttrSet, primary: Attr, drawn: &SecretBuckets) -> Result<MadeTable, Cancelled> {
        let attrs: Vec<Attr> = attributes.iter().collect();
        let table = self.rows.upload;
        let primary = &table.column(primary).codes;
        let kept: Vec<u32> =
            (0..table.rows() as u32).filter(|&row| !drawn.left_out.contains(&primary.get(row as usize))).collect();
        let columns = attrs.iter().map(|&attr| {
            let Column { domain, codes } = table.column(attr);
            Column { domain: domain.clone(), codes: codes.gather(&kept) }
        });
        let names = attrs.iter().map(|&attr| table.name(attr).to_owned()).collect();
        let kept = Table::new(names, columns.collect());
        let all: Vec<Attr> = kept.attributes().iter().collect();
        let columns = arrange::arranged(&kept, &all, None, self.control)?;
        let parts = vec![self.part("rows", &attrs, columns, None)];
        Ok(MadeTable { parts, protection: TableProtection::Exclusive, witness: TableWitness::Plain })
    }

    fn decomposed_buckets(
        &self,
        attributes: AttrSet,
        decomposed: &DecomposedTable,
        drawn: &SecretBuckets,
        name: &TableName,
    ) -> Result<MadeTable, Cancelled> {
        let buckets = drawn.groups.len() as u32;
        let labels = self.labels(buckets, name);
        let of_groups = drawn.labels(&labels);
        let of_rows = self.rows.in_upload(labels.of_rows(drawn.assignment(self.rows.upload.rows())));
        let rows = BucketRows::new(&of_rows, buckets);
        let mut parts = vec![
            self.bucket_part("qi", attributes.minus(decomposed.sensitive()), &rows)?,
            self.bucket_part(Part::PRIMARY, AttrSet::one(decomposed.primary), &rows)?,
        ];
        for (at, attr) in decomposed.others().enumerate() {
            self.control.check()?;
            let sets: Vec<&CodeSet> = drawn.sets.iter().map(|sets| &sets[at]).collect();
            parts.push(self.values_part(&format!("values{}", at + 1), attr, &of_groups, &sets)?);
        }
        Ok(MadeTable { parts, protection: TableProtection::Exclusive, witness: TableWitness::Buckets(of_rows) })
    }

    /// A part of the distinct values of each bucket. `labels` and `sets` are those of the buckets.
    fn values_part(
        &self,
        name: &str,
        attr: Attr,
        labels: &[u32],
        sets: &[&CodeSet],
    ) -> Result<(Part, PartContents), Cancelled> {
        let domain = self.rows.upload.domain(attr).clone();
        let (mut of_values, mut codes) = (Vec::new(), Vec::new());
        for (set, &label) in sets.iter().zip(labels) {
            of_values.extend(std::iter::repeat_n(label, set.len()));
            codes.extend(set.as_slice().iter().copied());
        }
        let codes = Codes::collect(domain.len(), codes.into_iter());
        let alone = Table::new(vec![self.rows.upload.name(attr).to_owned()], vec![Column { domain, codes }]);
        let groups = BucketRows::new(&of_values, labels.len() as u32);
        let columns = arrange::arranged(&alone, &[Attr(0)], Some(&groups), self.control)?;
        let (mut part, contents) = self.part(name, &[attr], columns, Some(Labels::column(groups.sizes())));
        part.rows = RowMeaning::Values;
        Ok((part, contents))
    }
}

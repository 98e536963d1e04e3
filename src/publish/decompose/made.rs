//! Making decomposed tables.

use super::designed::{DecomposedTable, DecompositionRole};
use crate::control::Cancelled;
use crate::microdata::{Attr, AttrSet, Codes, Column, Table};
use crate::publication::{Part, PartContents, RowMeaning, TableName, TableProtection, TableWitness};
use crate::publish::arrange::{self, BucketRows};
use crate::publish::assign::Labels;
use crate::publish::make::{MadeTable, TableMaker};
use crate::random::RandomStreams;

impl TableMaker<'_> {
    /// One of the two tables of a decomposition that was drawn.
    pub(in crate::publish) fn decomposed(
        &self,
        attributes: AttrSet,
        decomposed: &DecomposedTable,
        name: &TableName,
        streams: &RandomStreams,
    ) -> Result<MadeTable, Cancelled> {
        // the plan has refused what could not be drawn; the verifier lets no empty table through
        let Some(drawn) = &decomposed.drawn else {
            return Ok((Vec::new(), TableProtection::Exclusive, TableWitness::Plain));
        };
        if decomposed.role == DecompositionRole::Joint {
            let attrs: Vec<Attr> = attributes.iter().collect();
            let primary = &self.table.column(decomposed.primary).codes;
            let kept: Vec<u32> = (0..self.table.rows() as u32)
                .filter(|&row| !drawn.left_out.contains(&primary.get(row as usize)))
                .collect();
            let columns = attrs.iter().map(|&attr| {
                let Column { domain, codes } = self.table.column(attr);
                Column { domain: domain.clone(), codes: codes.gather(&kept) }
            });
            let names = attrs.iter().map(|&attr| self.table.name(attr).to_owned()).collect();
            let kept = Table::new(names, columns.collect());
            let all: Vec<Attr> = kept.attributes().iter().collect();
            let columns = arrange::arranged(&kept, &all, None, self.control)?;
            return Ok((
                vec![self.part("rows", &attrs, columns, None)],
                TableProtection::Exclusive,
                TableWitness::Plain,
            ));
        }
        let buckets = drawn.groups.len() as u32;
        let labels = Labels::draw(buckets, &mut streams.stream(&format!("{name}/labels")));
        let of_groups = drawn.labels(&labels);
        let of_rows = labels.of_rows(drawn.assignment(self.table.rows()));
        let groups = BucketRows::new(&of_rows, buckets);
        let tuples = |name: &str, attributes: AttrSet| {
            let attrs: Vec<Attr> = attributes.iter().collect();
            let columns = arrange::arranged(self.table, &attrs, Some(&groups), self.control)?;
            Ok(self.part(name, &attrs, columns, Some(Labels::column(groups.sizes()))))
        };
        let mut parts = vec![
            tuples("qi", attributes.minus(decomposed.sensitive()))?,
            tuples(Part::PRIMARY, AttrSet::one(decomposed.primary))?,
        ];
        for (at, attr) in decomposed.others().enumerate() {
            self.control.check()?;
            let sets = drawn.sets.iter().map(|sets| &sets[at]);
            parts.push(self.values(&format!("values{}", at + 1), attr, (&of_groups, buckets), sets)?);
        }
        Ok((parts, TableProtection::Exclusive, TableWitness::Buckets(of_rows)))
    }

    /// A part of distinct values of each bucket.
    fn values<'s>(
        &self,
        name: &str,
        attr: Attr,
        (labels, buckets): (&[u32], u32),
        sets: impl Iterator<Item = &'s std::collections::BTreeSet<u32>>,
    ) -> Result<(Part, PartContents), Cancelled> {
        let domain = self.table.column(attr).domain.clone();
        let (mut of_values, mut codes) = (Vec::new(), Vec::new());
        for (set, &label) in sets.zip(labels) {
            of_values.extend(std::iter::repeat_n(label, set.len()));
            codes.extend(set);
        }
        let codes = Codes::collect(domain.len(), codes.into_iter());
        let alone = Table::new(vec![self.table.name(attr).to_owned()], vec![Column { domain, codes }]);
        let groups = BucketRows::new(&of_values, buckets);
        let columns = arrange::arranged(&alone, &[Attr(0)], Some(&groups), self.control)?;
        let (mut part, contents) = self.part(name, &[attr], columns, Some(Labels::column(groups.sizes())));
        part.rows = RowMeaning::Values;
        Ok((part, contents))
    }
}

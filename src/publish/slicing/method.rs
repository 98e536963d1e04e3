//! The method `slicing`: columns and buckets of a specification, decided and published.
//!
//! Which attributes stand together may be left to the data, and which rows stand together always is: splits are refused by
//! looking at sensitive values. An adversary who asks why a split was not made is not reckoned with.

use super::{Bins, Columns, Diversity, Sliced, Slicing, Unsliced, Whole};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy::Status;
use crate::problem::{Fault, Kind};
use crate::publication::{Particulars, Ratio, SlicedDiversity, Standing};
use crate::publish::assign::Assignment;
use crate::publish::partition::Split;
use crate::publish::{
    Bucketized, Decision, Design, DesignedTable, Input, Method, Published, Refusal, Unplanned, anatomy,
};
use crate::random::Streams;
use crate::spec::{SlicedColumns, SlicingSpec};

/// The method `slicing`.
pub struct SlicingMethod;

impl Slicing {
    /// What a specification asks for.
    #[must_use]
    pub fn asked(spec: &SlicingSpec, attributes: AttrSet) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        // single values are bounded by what the specification was checked to have
        let l = spec.l.unwrap_or(Ratio::ONE);
        Self {
            attributes,
            sensitive: spec.sensitive(),
            columns: match &spec.columns {
                SlicedColumns::Count(count) => Columns::Count(number(*count)),
                SlicedColumns::SensitiveWidth { count, width } => {
                    Columns::SensitiveWidth { count: number(*count), width: number(*width) }
                }
                SlicedColumns::Explicit(columns) => Columns::Explicit(columns.clone()),
            },
            diversity: match spec.diversity {
                SlicedDiversity::Bucket => Diversity::Bucket(vec![spec.rule.guarantee]),
                SlicedDiversity::Mixture => Diversity::Mixture(l),
                SlicedDiversity::MixtureWeighted => Diversity::MixtureWeighted(l),
            },
            split: if spec.strict { Split::Strict } else { Split::Relaxed },
            dimensions: None,
            max_attempts: spec.max_attempts.map(number),
            min_bucket: spec.min_bucket.map(number),
            column_k: spec.column_k,
            bins: Bins { of: spec.bins.clone(), ..Bins::default() },
        }
    }

    /// In the words of a publication.
    const fn word(&self) -> SlicedDiversity {
        match self.diversity {
            Diversity::Bucket(_) => SlicedDiversity::Bucket,
            Diversity::Mixture(_) => SlicedDiversity::Mixture,
            Diversity::MixtureWeighted(_) => SlicedDiversity::MixtureWeighted,
        }
    }

    /// The columns, once they are decided.
    #[must_use]
    pub fn decided(&self) -> &[AttrSet] {
        match &self.columns {
            Columns::Explicit(columns) => columns,
            Columns::Count(_) | Columns::SensitiveWidth { .. } => &[],
        }
    }

    /// The bucket of each row of `table`, and the boxes of its values, in columns that were decided and found to hold.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub(in crate::publish) fn draw(&self, table: &Table, control: &Control) -> Result<Sliced, Cancelled> {
        match self.slice(table, table, control) {
            Ok(sliced) => Ok(sliced),
            Err(Unsliced::Cancelled(cancelled)) => Err(cancelled),
            // the plan has refused what cannot be sliced; the audit lets nothing through that does not hold
            Err(_) => Ok(Sliced {
                columns: self.decided().to_vec(),
                boxes: self.decided().iter().map(|_| None).collect(),
                buckets: Assignment { bucket_of: vec![0; table.rows()], buckets: 1 },
            }),
        }
    }
}

impl Method for SlicingMethod {
    type Spec = SlicingSpec;
    type Plan = Design;

    fn plan(spec: &SlicingSpec, input: &Input<'_>, control: &Control) -> Result<Design, Unplanned> {
        let mut rule = anatomy::designed_rule(&spec.rule, input);
        let attributes = AttrSet::first(input.counts.attributes());
        let mut slicing = Slicing::asked(spec, attributes);
        check_floor(spec, input)?;
        let sensitive = slicing.sensitive;
        let mut decision = Decision::ByData(None);
        // what a column by itself cannot keep no column beside it can
        if rule.ineligible.take().is_some() {
            let (most, of) = (input.counts.largest(sensitive), input.counts.rows());
            decision = Decision::NotDiverse(Whole { beside: AttrSet::EMPTY, sensitive, most, of, together: false });
        }
        let columns = match (&slicing.columns, input.rows) {
            _ if matches!(decision, Decision::NotDiverse(_)) => None,
            (Columns::Explicit(columns), None) => Some(columns.clone()),
            (_, None) => None,
            (wanted, Some(rows)) => {
                let divided = wanted.divide(rows.table, attributes, sensitive, &slicing.bins, control);
                Some(divided.map_err(|none| unplanned(none.into()))?)
            }
        };
        let Some(mut columns) = columns else {
            if decision == Decision::ByData(None) {
                decision = Decision::Undecided;
            }
            return Ok(Design { tables: Vec::new(), rules: vec![rule], relied_on: Vec::new(), decision });
        };
        columns.sort_by_key(|column| column.contains(sensitive));
        if let Some(rows) = input.rows {
            match slicing.check_whole(rows.table, &columns, rows.table, control) {
                Ok(()) => {}
                Err(Unsliced::NotDiverse { most, of }) => {
                    let last = columns.last().copied().unwrap_or_default();
                    let beside = last.without(sensitive);
                    rule.largest_l = rule.largest_l.min(of / most.max(1));
                    decision = Decision::NotDiverse(Whole { beside, sensitive, most, of, together: false });
                }
                Err(Unsliced::NotDiverseTogether { beside, most, of }) => {
                    rule.largest_l = rule.largest_l.min(of / most.max(1));
                    decision = Decision::NotDiverse(Whole { beside, sensitive, most, of, together: true });
                }
                Err(other) => return Err(unplanned(other)),
            }
        }
        let mut table = DesignedTable::of(attributes, None);
        let last = columns.last().copied().unwrap_or_default();
        let standing = slicing.diversity.standing(&columns, sensitive);
        slicing.columns = Columns::Explicit(columns);
        let seals = match standing {
            Standing::Sealed(seals) => seals,
            Standing::Plain | Standing::Unsealed => Vec::new(),
        };
        let sealed = !seals.is_empty();
        table.bucketized = Some(Bucketized { parts: vec![last], seals, planned: None, sliced: Some(slicing) });
        let mut design = Design { tables: vec![table], rules: vec![rule], relied_on: Vec::new(), decision };
        design.judge();
        if !sealed {
            // of its own rows the table holds it, whatever a bucket shows: nothing else may be published of them
            let known = attributes.without(sensitive);
            design.rules[0].status = Status::Guardian { table: 0, known };
        }
        Ok(design)
    }

    fn publish(
        plan: &Design,
        input: &Input<'_>,
        table: &Table,
        streams: &Streams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        let mut published = plan.execute(input, true, table, streams, control)?;
        if let Some(slicing) = plan.tables.first().and_then(DesignedTable::sliced) {
            let (columns, diversity) = (slicing.decided().to_vec(), slicing.word());
            let column_k = slicing.column_k;
            published.publication.particulars = Particulars::Slicing { columns, diversity, column_k };
        }
        Ok(published)
    }
}

/// Neither the smallest bucket nor the smallest box that is asked for can be larger than the table.
fn check_floor(spec: &SlicingSpec, input: &Input<'_>) -> Result<(), Refusal> {
    let rows = input.counts.rows();
    let members = [
        ("/method/min_bucket", spec.min_bucket, "an integer from 1 to the number of rows"),
        ("/method/column_k", spec.column_k, "an integer from 2 to the number of rows"),
    ];
    let above = members.into_iter().filter(|(_, stated, _)| stated.is_some_and(|stated| stated > rows));
    let faults: Vec<Fault> = above
        .map(|(pointer, _, allowed)| {
            Fault::new(pointer, Kind::ParameterRange, format!("expected {allowed}")).with("allowed", allowed)
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(Refusal(faults)) }
}

/// What cannot be made of the columns, as far as the specification could not show it.
fn unplanned(unsliced: Unsliced) -> Unplanned {
    match unsliced {
        Unsliced::Cancelled(cancelled) => Unplanned::Cancelled(cancelled),
        Unsliced::TooDense => {
            let fault = Fault::new("/method/columns", Kind::JoinTooDense, unsliced.to_string());
            Unplanned::Refused(Refusal(vec![fault]))
        }
        other => {
            let fault = Fault::new("/method/columns", Kind::BadColumns, other.to_string());
            Unplanned::Refused(Refusal(vec![fault]))
        }
    }
}

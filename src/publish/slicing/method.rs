//! The method `slicing`: columns and buckets of a specification, decided and published.
//!
//! Which attributes stand together may be left to the data, and which rows stand together always is: splits are refused by
//! looking at sensitive values. An adversary who asks why a split was not made is not reckoned with.

use super::{
    ColumnChoice, CorrelationBins, SlicedTable, SlicingDiversity, SlicingError, SlicingPlan, WholeTableViolation,
};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy::RuleStatus;
use crate::problem::{Fault, Kind};
use crate::publication::{MethodDetails, Ratio, SlicedDiversity, TableProtection};
use crate::publish::assign::BucketAssignment;
use crate::publish::dispatch::Method;
use crate::publish::error::{PlanError, PlanRefusal};
use crate::publish::input::PlanInput;
use crate::publish::partition::MedianSplit;
use crate::publish::published::Published;
use crate::publish::{Bucketized, Decision, Design, DesignedTable, anatomy};
use crate::random::RandomStreams;
use crate::spec::{SlicedColumns, SlicingSpec};

/// The method `slicing`.
pub struct SlicingMethod;

impl SlicingPlan {
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
                SlicedColumns::Count(count) => ColumnChoice::Count(number(*count)),
                SlicedColumns::SensitiveWidth { count, width } => {
                    ColumnChoice::SensitiveWidth { count: number(*count), width: number(*width) }
                }
                SlicedColumns::Explicit(columns) => ColumnChoice::Explicit(columns.clone()),
            },
            diversity: match spec.diversity {
                SlicedDiversity::Bucket => SlicingDiversity::Bucket(vec![spec.rule.guarantee]),
                SlicedDiversity::Mixture => SlicingDiversity::Mixture(l),
                SlicedDiversity::MixtureWeighted => SlicingDiversity::MixtureWeighted(l),
            },
            split: if spec.strict { MedianSplit::Strict } else { MedianSplit::Relaxed },
            dimensions: None,
            max_attempts: spec.max_attempts.map(number),
            min_bucket: spec.min_bucket.map(number),
            column_k: spec.column_k,
            bins: CorrelationBins { of: spec.bins.clone(), ..CorrelationBins::default() },
        }
    }

    /// In the words of a publication.
    const fn sliced_diversity(&self) -> SlicedDiversity {
        match self.diversity {
            SlicingDiversity::Bucket(_) => SlicedDiversity::Bucket,
            SlicingDiversity::Mixture(_) => SlicedDiversity::Mixture,
            SlicingDiversity::MixtureWeighted(_) => SlicedDiversity::MixtureWeighted,
        }
    }

    /// The columns, once they are decided.
    #[must_use]
    pub fn decided(&self) -> &[AttrSet] {
        match &self.columns {
            ColumnChoice::Explicit(columns) => columns,
            ColumnChoice::Count(_) | ColumnChoice::SensitiveWidth { .. } => &[],
        }
    }

    /// The bucket of each row of `table`, and the boxes of its values, in columns that were decided and found to hold.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub(in crate::publish) fn draw(&self, table: &Table, control: &Control) -> Result<SlicedTable, Cancelled> {
        match self.slice(table, table, control) {
            Ok(sliced) => Ok(sliced),
            Err(SlicingError::Cancelled(cancelled)) => Err(cancelled),
            // the plan has refused what cannot be sliced; the verifier lets nothing through that does not hold
            Err(_) => Ok(SlicedTable {
                columns: self.decided().to_vec(),
                boxes: self.decided().iter().map(|_| None).collect(),
                buckets: BucketAssignment { bucket_of: vec![0; table.rows()], buckets: 1 },
            }),
        }
    }
}

impl Method for SlicingMethod {
    type Spec = SlicingSpec;
    type Plan = Design;

    fn plan(spec: &SlicingSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
        let mut rule = anatomy::designed_rule(&spec.rule, input);
        let attributes = AttrSet::first(input.counts.attributes());
        let mut slicing = SlicingPlan::asked(spec, attributes);
        check_floor(spec, input)?;
        let sensitive = slicing.sensitive;
        let mut decision = Decision::ByData(None);
        // what a column by itself cannot keep no column beside it can
        if rule.ineligible.take().is_some() {
            let (most, of) = (input.counts.largest(sensitive), input.counts.rows());
            decision = Decision::NotDiverse(WholeTableViolation {
                beside: AttrSet::EMPTY,
                sensitive,
                most,
                of,
                together: false,
            });
        }
        let columns = match (&slicing.columns, input.rows) {
            _ if matches!(decision, Decision::NotDiverse(_)) => None,
            (ColumnChoice::Explicit(columns), None) => Some(columns.clone()),
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
            return Ok(Design { tables: Vec::new(), rules: vec![rule], used_dependencies: Vec::new(), decision });
        };
        columns.sort_by_key(|column| column.contains(sensitive));
        if let Some(rows) = input.rows {
            match slicing.check_whole(rows.table, &columns, rows.table, control) {
                Ok(()) => {}
                Err(SlicingError::NotDiverse { most, of }) => {
                    let last = columns.last().copied().unwrap_or_default();
                    let beside = last.without(sensitive);
                    rule.largest_l = rule.largest_l.min(of / most.max(1));
                    decision =
                        Decision::NotDiverse(WholeTableViolation { beside, sensitive, most, of, together: false });
                }
                Err(SlicingError::NotDiverseTogether { beside, most, of }) => {
                    rule.largest_l = rule.largest_l.min(of / most.max(1));
                    decision =
                        Decision::NotDiverse(WholeTableViolation { beside, sensitive, most, of, together: true });
                }
                Err(other) => return Err(unplanned(other)),
            }
        }
        let mut table = DesignedTable::new(attributes, None);
        let last = columns.last().copied().unwrap_or_default();
        let protection = slicing.diversity.protection(&columns, sensitive);
        slicing.columns = ColumnChoice::Explicit(columns);
        let guards = match protection {
            TableProtection::Guarding(guards) => guards,
            TableProtection::Plain | TableProtection::Exclusive => Vec::new(),
        };
        let guarding = !guards.is_empty();
        table.bucketized = Some(Bucketized { parts: vec![last], guards, planned: None, sliced: Some(slicing) });
        let mut design = Design { tables: vec![table], rules: vec![rule], used_dependencies: Vec::new(), decision };
        design.judge();
        if !guarding {
            // of its own rows the table holds it, whatever a bucket shows: nothing else may be published of them
            let known = attributes.without(sensitive);
            design.rules[0].status = RuleStatus::Guardian { table: 0, known };
        }
        Ok(design)
    }

    fn publish(
        plan: &Design,
        input: &PlanInput<'_>,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        let mut published = plan.execute(input, true, table, streams, control)?;
        if let Some(slicing) = plan.tables.first().and_then(DesignedTable::sliced) {
            let (columns, diversity) = (slicing.decided().to_vec(), slicing.sliced_diversity());
            let column_k = slicing.column_k;
            published.publication.method_details = MethodDetails::Slicing { columns, diversity, column_k };
        }
        Ok(published)
    }
}

/// Neither the smallest bucket nor the smallest box that is asked for can be larger than the table.
fn check_floor(spec: &SlicingSpec, input: &PlanInput<'_>) -> Result<(), PlanRefusal> {
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
    if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
}

/// What cannot be made of the columns, as far as the specification could not show it.
fn unplanned(unsliced: SlicingError) -> PlanError {
    match unsliced {
        SlicingError::Cancelled(cancelled) => PlanError::Cancelled(cancelled),
        SlicingError::TooDense => {
            let fault = Fault::new("/method/columns", Kind::JoinTooDense, unsliced.to_string());
            PlanError::Refused(PlanRefusal(vec![fault]))
        }
        other => {
            let fault = Fault::new("/method/columns", Kind::BadColumns, other.to_string());
            PlanError::Refused(PlanRefusal(vec![fault]))
        }
    }
}

//! Classes of a part, with measures of their sensitive values.
//!
//! A class has the rows that the known attributes and the bucket do not distinguish.

use ahash::{AHashMap, AHashSet};

use super::submission::{ClassMeasures, MAX_REPORTED_CLASSES, Submission, ViolatingClass, ViolatingClasses};
use super::table::ExternalPart;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, RowMeaning, ValueDistance};
use crate::verifier::definition::guarantee::BucketShares;
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::read::bucket_classes::BucketClasses;
use crate::verifier::read::joint_column::refine;

/// Maximal number of comparisons of a value of the column with a kind of class, for distances.
const MAX_COMPARISONS: u64 = 1 << 28;

/// The largest l for which recursive l-diversity is measured.
const MAX_RECURSIVE_L: u64 = 5;

/// Rows of one class.
struct RowClass {
    /// One of the rows.
    first: usize,
    size: u64,
    /// Range of its values in [`ExternalClasses::counts`].
    values: std::ops::Range<usize>,
}

/// The classes of a part of an external table, by bucket and by some of its attributes.
///
/// Nothing is claimed of them: all is measured.
pub(in crate::verifier) struct ExternalClasses<'a> {
    part: &'a ExternalPart,
    by: AttrSet,
    by_bucket: bool,
    classes: Vec<RowClass>,
    /// Values with their counts, class after class; the values of a class rise.
    counts: Vec<(u32, u64)>,
    /// Number of rows of the whole part with each value.
    overall: Vec<u64>,
    /// What the caller declares about the values.
    declared: DeclaredValues,
}

impl<'a> ExternalClasses<'a> {
    /// The classes of `part` by the attributes of `by` that it holds, and by bucket if `by_bucket`.
    ///
    /// `None` when the part lacks one of the protected attributes `target`.
    pub(in crate::verifier) fn new(
        part: &'a ExternalPart,
        by: AttrSet,
        by_bucket: bool,
        target: AttrSet,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let by = by.intersection(part.attributes()).minus(target);
        let by_bucket = by_bucket && part.bucket.is_some();
        let key = part.bucket.iter().filter(|_| by_bucket).chain(by.iter().filter_map(|attr| part.column(attr)));
        let mut labels = vec![0_u32; part.rows];
        for column in key {
            refine(&mut labels, &column.codes, control)?;
        }
        let mut firsts: Vec<usize> = Vec::new();
        for (row, label) in labels.iter_mut().enumerate() {
            // classes are numbered in the order of rows, labels from 1
            if *label as usize == firsts.len() {
                firsts.push(row);
            }
            *label += 1;
        }
        let Some(labelled) = BucketClasses::labelled(part, &labels, target, control)? else { return Ok(None) };
        let (mut classes, mut counts) = (Vec::with_capacity(firsts.len()), Vec::new());
        let mut firsts = firsts.into_iter();
        labelled.each(|values| {
            let start = counts.len();
            counts.extend(values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)));
            let size = values.len() as u64;
            classes.extend(firsts.next().map(|first| RowClass { first, size, values: start..counts.len() }));
        });
        let overall = labelled.protected.counts();
        Ok(Some(Self { part, by, by_bucket, classes, counts, overall, declared: DeclaredValues::default() }))
    }

    /// Adds what the caller declares about the values, where one attribute is protected.
    pub(in crate::verifier) fn with_declared(mut self, submission: &Submission<'_>, target: AttrSet) -> Self {
        let [Some(attr), None] = [target.iter().next(), target.iter().nth(1)] else { return self };
        if let Some(column) = self.part.column(attr) {
            self.declared = submission.declared(attr, Some(column.domain.kind()), column.domain.iter());
        }
        self
    }

    fn values(&self, class: &RowClass) -> &[(u32, u64)] {
        &self.counts[class.values.clone()]
    }

    /// The distinct multisets of values of the classes.
    fn kinds(&self) -> AHashSet<&[(u32, u64)]> {
        self.classes.iter().map(|class| self.values(class)).collect()
    }

    fn listed_only(&self) -> bool {
        self.part.meaning == RowMeaning::Values
    }

    /// The measures of the worst class.
    pub(in crate::verifier) fn measure(&self, control: &Control) -> Result<ClassMeasures, Cancelled> {
        let kinds = self.kinds();
        let compared = kinds.len() as u64 * self.overall.len() as u64 <= MAX_COMPARISONS;
        let mut measures =
            ClassMeasures { classes: self.classes.len() as u64, distinct_l: u64::MAX, ..ClassMeasures::default() };
        let mut recursive: Vec<Option<f64>> = (2..=MAX_RECURSIVE_L).map(|_| Some(0.0)).collect();
        let least = |a: Option<f64>, b: f64| Some(a.map_or(b, |a| a.min(b)));
        let most = |a: Option<f64>, b: f64| Some(a.map_or(b, |a| a.max(b)));
        for kind in &kinds {
            control.check()?;
            measures.distinct_l = measures.distinct_l.min(kind.len() as u64);
            if self.listed_only() {
                continue;
            }
            let alone = BucketShares::alone(kind);
            let here = alone.posterior();
            measures.k = Some(measures.k.map_or(here.of, |k| k.min(here.of)));
            measures.worst = Some(measures.worst.map_or(here, |worst| worst.worse(here)));
            measures.entropy_l = least(measures.entropy_l, alone.entropy_l());
            for (l, worst) in (2..).zip(&mut recursive) {
                *worst = worst.zip(alone.recursive(l)).map(|(worst, (top, tail))| worst.max(top as f64 / tail as f64));
            }
            if compared {
                let shares = BucketShares::new(kind, &self.overall, &self.declared);
                let maximize = |worst: &mut Option<f64>, distance: ValueDistance| {
                    if let Some(distance) = shares.distance(distance) {
                        *worst = most(*worst, distance.to_f64());
                    }
                };
                maximize(&mut measures.t_equal, ValueDistance::Equal);
                maximize(&mut measures.t_ordered, ValueDistance::Ordered);
                maximize(&mut measures.t_hierarchical, ValueDistance::Hierarchical);
            }
        }
        if kinds.is_empty() {
            measures.distinct_l = 0;
        } else if !self.listed_only() {
            measures.recursive_c = (2..).zip(recursive).map_while(|(l, c)| Some((l, c?))).collect();
        }
        Ok(measures)
    }

    /// Whether the comparisons that a guarantee needs are within the limits.
    pub(in crate::verifier) fn is_within_limits(&self, guarantee: Guarantee) -> bool {
        !needs_column(guarantee) || self.kinds().len() as u64 * self.overall.len() as u64 <= MAX_COMPARISONS
    }

    /// The classes that violate a guarantee.
    ///
    /// Values without counts can satisfy distinct l-diversity alone; they violate every other guarantee.
    pub(in crate::verifier) fn broken(
        &self,
        table: usize,
        guarantee: Guarantee,
        control: &Control,
    ) -> Result<ViolatingClasses, Cancelled> {
        let mut satisfied: AHashMap<&[(u32, u64)], bool> = AHashMap::new();
        for kind in self.kinds() {
            control.check()?;
            let satisfies = match guarantee {
                Guarantee::DistinctLDiversity { l } => kind.len() as u64 >= l,
                _ if self.listed_only() => false,
                _ if needs_column(guarantee) => {
                    BucketShares::new(kind, &self.overall, &self.declared).satisfies(guarantee)
                }
                _ => BucketShares::alone(kind).satisfies(guarantee),
            };
            satisfied.insert(kind, satisfies);
        }
        let mut broken: Vec<&RowClass> =
            self.classes.iter().filter(|class| !satisfied.get(self.values(class)).copied().unwrap_or(false)).collect();
        let total = broken.len() as u64;
        let share = |class: &RowClass| {
            let top = self.values(class).iter().map(|(_, count)| *count).max().unwrap_or(0);
            (top, class.size)
        };
        let first_values = |class: &RowClass| -> Vec<u32> {
            let bucket = self.part.bucket.iter().filter(|_| self.by_bucket);
            bucket.chain(self.key_columns().map(|(_, column)| column)).map(|c| c.codes.get(class.first)).collect()
        };
        broken.sort_by_cached_key(|class| {
            let (top, size) = share(class);
            // by falling share, then rising size, then the order of values
            (std::cmp::Reverse(u128::from(top) * (1 << 64) / u128::from(size.max(1))), size, first_values(class))
        });
        let shown = broken.into_iter().take(MAX_REPORTED_CLASSES).map(|class| ViolatingClass {
            table,
            bucket: self
                .part
                .bucket
                .as_ref()
                .filter(|_| self.by_bucket)
                .map(|column| ExternalPart::cell(column, class.first)),
            class: self.key_columns().map(|(attr, column)| (*attr, ExternalPart::cell(column, class.first))).collect(),
        });
        Ok(ViolatingClasses { total, first: shown.collect() })
    }

    fn key_columns(&self) -> impl Iterator<Item = &'a (Attr, crate::microdata::Column)> {
        let by = self.by;
        self.part.columns.iter().filter(move |(attr, _)| by.contains(*attr))
    }
}

/// Whether a guarantee compares a class with the whole column.
const fn needs_column(guarantee: Guarantee) -> bool {
    matches!(
        guarantee,
        Guarantee::TCloseness { .. } | Guarantee::Rho { .. } | Guarantee::Delta { .. } | Guarantee::Thresholds { .. }
    )
}

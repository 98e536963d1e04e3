//! Evaluation of external tables: which rules hold, from the tables alone.
//!
//! A rule holds when no path leads from a known attribute to the sensitive one, or when a table is its guardian [Jin
//! et al. 2010, Definition 4]. The classes of a table decide whether it protects the sensitive value by itself. A
//! class is the rows with the same bucket and equal known attributes in the part of the sensitive one, and every
//! class must satisfy the guarantee. A plain table has one class for each combination of known values.

use std::collections::BTreeMap;

use super::classes::ExternalClasses;
use super::decomposition::JointDecomposition;
use super::overlapping::BucketDisclosure;
use super::submission::{
    ClassMeasures, EvaluationReport, ExternalEnforcement, RuleOutcome, Submission, ViolatingClasses,
};
use super::table::ExternalTable;
use super::{consistency, overlapping};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, NoticeKind, Protected, RowMeaning, SubmittedRule};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::definition::dependencies::follow_dependencies;
use crate::verifier::definition::gnf;
use crate::verifier::definition::share::ShareOfRows;

/// Evaluates tables.
///
/// Fails closed: a rule that the tables do not show to hold does not hold.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
pub fn evaluate(submission: &Submission<'_>, control: &Control) -> Result<EvaluationReport, Cancelled> {
    let mut log = CheckLog::default();
    let mut remarks = Vec::new();
    let decomposition = JointDecomposition::new(submission, &mut log, &mut remarks, control)?;
    let mut tables =
        consistency::check_consistency(submission, decomposition.as_ref(), &mut log, &mut remarks, control)?;
    let disagreement =
        |table: &ExternalTable| if table.overlaps() { overlapping::parts_agree(table).err() } else { None };
    let mut evaluator = Evaluator {
        submission,
        decomposition,
        schemas: submission.tables.iter().map(ExternalTable::attributes).collect(),
        disagreements: submission.tables.iter().map(disagreement).collect(),
        measured: BTreeMap::new(),
        control,
    };
    for disagreement in evaluator.disagreements.iter().flatten() {
        log.fail(CheckName::Buckets, disagreement.clone());
    }
    for table in submission.tables.iter().filter(|table| table.overlaps()) {
        let detail = format!(
            "parts of table {} share attributes: what they say together is judged bucket by bucket, as long as nothing else ties their rows",
            table.name
        );
        remarks.push((NoticeKind::ColumnsShareAttributes, detail));
    }
    let mut rules = Vec::new();
    for rule in submission.rules {
        control.check()?;
        let outcome = evaluator.rule(rule)?;
        if outcome.held.is_none() {
            let detail = outcome.detail.clone().unwrap_or_default();
            let check = if outcome.breaks.total > 0 { CheckName::Guarantee } else { CheckName::Gnf };
            log.fail(check, format!("rule {}: {detail}", rule.pointer));
        }
        rules.push(outcome);
    }
    if !submission.dependencies.is_empty() {
        let detail = "what determines a protected attribute is protected too; that is necessary, and no proof that nothing else \
                      follows from the dependencies";
        remarks.push((NoticeKind::DependencyNecessaryOnly, detail.to_owned()));
    }
    for (key, measures) in evaluator.measured {
        if measures.t_equal.is_none() && measures.k.is_some() {
            let name = &submission.tables[key.table].name;
            let detail = format!("table {name} has too many classes of too many values for distances to be computed");
            if !remarks.iter().any(|(_, known)| *known == detail) {
                remarks.push((NoticeKind::DistancesNotComputed, detail));
            }
        }
        tables[key.table].measures.push((key.target, key.by, measures));
    }
    let mut checks = vec![CheckName::Buckets, CheckName::Columns, CheckName::Guarantee, CheckName::Gnf];
    if submission.original.is_some() {
        checks.insert(0, CheckName::Content);
    }
    let checks = checks.into_iter().map(|check| log.report(check)).collect();
    Ok(EvaluationReport { rules, tables, checks, remarks })
}

/// Identifies the classes of a table, in the order of a report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClassKey {
    table: usize,
    /// The attributes whose equal values make the classes.
    by: AttrSet,
    /// The protected attributes.
    target: AttrSet,
}

/// A protected attribute, or a combination in one part.
#[derive(Clone, Copy)]
struct Target {
    /// The attribute, or the first one of the combination.
    attr: Attr,
    attributes: AttrSet,
    guarantee: Guarantee,
}

impl Target {
    const fn single(attr: Attr, guarantee: Guarantee) -> Self {
        Self { attr, attributes: AttrSet::one(attr), guarantee }
    }
}

/// Classes that violate a guarantee, and the detail where the classes are not the reason.
struct ClassViolation {
    breaks: ViolatingClasses,
    detail: Option<String>,
}

impl ClassViolation {
    fn unknown(detail: String) -> Self {
        Self { breaks: ViolatingClasses::default(), detail: Some(detail) }
    }
}

struct Evaluator<'a> {
    submission: &'a Submission<'a>,
    /// The two tables of a decomposition, which are evaluated together.
    decomposition: Option<JointDecomposition<'a>>,
    /// The attributes of each table.
    schemas: Vec<AttrSet>,
    /// For each table, the reason why parts with common attributes cannot be joined.
    disagreements: Vec<Option<String>>,
    /// The measures of all examined classes.
    measured: BTreeMap<ClassKey, ClassMeasures>,
    control: &'a Control,
}

impl Evaluator<'_> {
    /// The outcome of a rule and of all sets that it protects by dependencies.
    fn rule(&mut self, rule: &SubmittedRule) -> Result<RuleOutcome, Cancelled> {
        let mut outcome = self.protected(rule.known, rule.protects, rule.guarantee)?;
        let follows = match follow_dependencies(rule, self.submission.dependencies) {
            Ok(follows) => follows,
            Err(detail) => {
                let (held, detail) = (None, Some(detail.to_owned()));
                return Ok(RuleOutcome { held, detail, violated_by: rule.known, ..outcome });
            }
        };
        for follows in follows {
            if outcome.held.is_none() {
                break;
            }
            let implied = self.protected(rule.known, Protected::Joint(follows), rule.guarantee)?;
            if implied.held.is_none() {
                let fault = implied.detail.unwrap_or_default();
                let detail = format!("by a dependency {} must stay protected: {fault}", self.submission.list(follows));
                outcome = RuleOutcome { detail: Some(detail), ..implied };
            }
        }
        Ok(outcome)
    }

    /// The outcome for a protected side.
    ///
    /// One protected attribute, or one protected combination of some attributes, suffices.
    fn protected(
        &mut self,
        known: AttrSet,
        protects: Protected,
        guarantee: Guarantee,
    ) -> Result<RuleOutcome, Cancelled> {
        let sensitive = protects.attributes();
        let mut last = RuleOutcome::default();
        for attr in sensitive.iter() {
            last = self.single(known, Target::single(attr, guarantee))?;
            if last.held.is_some() {
                return Ok(last);
            }
        }
        // a combination counts as one attribute where a single part of all tables holds any of it
        let parts = self.submission.tables.iter().flat_map(|table| &table.parts);
        let mut within: Vec<AttrSet> = parts.clone().map(|part| part.attributes().intersection(sensitive)).collect();
        within.retain(|some| some.len() > 1 && guarantee.covers_combinations());
        within.sort_unstable_by_key(|some| (some.len(), *some));
        within.dedup();
        for attributes in within {
            let lone = parts.clone().filter(|part| part.attributes().meets(attributes)).count() == 1;
            if let (true, Some(attr)) = (lone, attributes.iter().next()) {
                last = self.single(known, Target { attr, attributes, guarantee })?;
                if last.held.is_some() {
                    break;
                }
            }
        }
        Ok(last)
    }

    fn single(&mut self, known: AttrSet, target: Target) -> Result<RuleOutcome, Cancelled> {
        let decomposition = self.decomposition.as_ref();
        if let Some(decomposition) = decomposition.filter(|both| both.covers(known, target.attributes)) {
            let (table, primary) = (decomposition.buckets, decomposition.primary);
            let entry = decomposition.entry(known);
            return self.in_decomposition(table, primary, entry, target);
        }
        let tables = self.submission.tables;
        let holders: Vec<usize> = (0..tables.len()).filter(|&at| self.schemas[at].contains(target.attr)).collect();
        let violated_by = gnf::reaching(&self.schemas, known, target.attr);
        let prior = self.violations_of_prior(&holders, target)?;
        if violated_by.is_empty() {
            let Some(ClassViolation { breaks, detail }) = prior else {
                let held = Some(ExternalEnforcement::Unreachable);
                return Ok(RuleOutcome { held, ..RuleOutcome::default() });
            };
            return Ok(RuleOutcome { breaks, detail, ..RuleOutcome::default() });
        }
        let mut outcome = RuleOutcome { violated_by, ..RuleOutcome::default() };
        let mut examined = Vec::new();
        for &table in &holders {
            let entrance = gnf::entrance(&self.schemas, table, known, target.attr);
            let entry = entrance.unwrap_or(known).intersection(self.schemas[table]).minus(target.attributes);
            examined.push((table, entry));
            let violation = self.violation(table, entry, true, target)?;
            if entrance.is_none() {
                // another path leads around the table
                continue;
            }
            match violation {
                None if prior.is_none() => {
                    let achieved = self.nearest(&[(table, entry)], target);
                    let held = Some(ExternalEnforcement::Guardian(table, entry));
                    return Ok(RuleOutcome { held, achieved, ..RuleOutcome::default() });
                }
                None => {}
                Some(ClassViolation { breaks, detail }) => {
                    let detail = detail.unwrap_or_else(|| self.violation_detail(table, breaks.total, target));
                    outcome.detail.get_or_insert(detail);
                    outcome.breaks.extend(breaks);
                }
            }
        }
        outcome.achieved = self.nearest(&examined, target);
        if outcome.breaks.total == 0
            && let Some(ClassViolation { breaks, detail }) = prior
        {
            outcome = RuleOutcome { breaks, detail, ..outcome };
        }
        outcome.detail.get_or_insert_with(|| {
            let (reaching, name) = (self.submission.list(outcome.violated_by), self.submission.list(target.attributes));
            format!("{reaching} and {name} are tied together by several tables, and no one table stands between them")
        });
        Ok(outcome)
    }

    /// The violations of a guarantee by whole tables, before the adversary knows anything.
    fn violations_of_prior(&mut self, holders: &[usize], target: Target) -> Result<Option<ClassViolation>, Cancelled> {
        let mut all: Option<ClassViolation> = None;
        for &table in holders {
            let Some(violation) = self.violation(table, AttrSet::EMPTY, false, target)? else { continue };
            let all = all.get_or_insert(ClassViolation { breaks: ViolatingClasses::default(), detail: None });
            all.breaks.extend(violation.breaks);
            let (table, name) = (&self.submission.tables[table].name, self.submission.list(target.attributes));
            let guarantee = guarantee_name(target.guarantee);
            all.detail.get_or_insert(
                violation
                    .detail
                    .unwrap_or_else(|| format!("table {table}: {name} does not keep {guarantee} even as a whole")),
            );
        }
        Ok(all)
    }

    fn violation_detail(&self, table: usize, total: u64, target: Target) -> String {
        let table = &self.submission.tables[table];
        let bucketed = table.parts.iter().any(|part| part.bucket.is_some());
        let classes = match (total, bucketed) {
            (1, true) => "bucket does",
            (1, false) => "class does",
            (_, true) => "buckets do",
            (_, false) => "classes do",
        };
        let (name, guarantee) = (self.submission.list(target.attributes), guarantee_name(target.guarantee));
        format!("table {}: {total} {classes} not keep {guarantee} of {name}", table.name)
    }

    /// The outcome for one attribute of a decomposition, whose buckets stand in `table`.
    fn in_decomposition(
        &mut self,
        table: usize,
        primary: Attr,
        entry: AttrSet,
        target: Target,
    ) -> Result<RuleOutcome, Cancelled> {
        let name = self.submission.list(target.attributes);
        let (violation, achieved) = if target.attr == primary {
            let violation = self.violation(table, entry, true, target)?;
            (violation, self.nearest(&[(table, entry)], target))
        } else {
            match self.decomposition.as_ref().map(|both| both.evaluate(target.attr, target.guarantee, &name)) {
                Some(Ok((breaks, measures))) => {
                    let violation = (breaks.total > 0).then_some(ClassViolation { breaks, detail: None });
                    (violation, Some(measures))
                }
                Some(Err(detail)) => (Some(ClassViolation::unknown(detail)), None),
                None => (Some(ClassViolation { breaks: ViolatingClasses::default(), detail: None }), None),
            }
        };
        let Some(ClassViolation { breaks, detail }) = violation else {
            let held = Some(ExternalEnforcement::Guardian(table, entry));
            return Ok(RuleOutcome { held, achieved, ..RuleOutcome::default() });
        };
        let detail = detail.unwrap_or_else(|| self.violation_detail(table, breaks.total, target));
        Ok(RuleOutcome { held: None, violated_by: entry, achieved, breaks, detail: Some(detail) })
    }

    /// The violation of a guarantee by the classes of a table, if they violate it.
    fn violation(
        &mut self,
        table: usize,
        entry: AttrSet,
        by_bucket: bool,
        target: Target,
    ) -> Result<Option<ClassViolation>, Cancelled> {
        let Some(part) = self.submission.tables[table].holder(target.attr) else { return Ok(None) };
        if by_bucket && self.submission.tables[table].overlaps() {
            match self.bucket_disclosure(table, entry, target)? {
                BucketDisclosure::InPart => {}
                BucketDisclosure::Unknown(detail) => return Ok(Some(ClassViolation::unknown(detail))),
                BucketDisclosure::Joined(measures, breaks) => {
                    let key = ClassKey { table, by: entry.minus(target.attributes), target: target.attributes };
                    self.measured.entry(key).or_insert(measures);
                    return Ok((breaks.total > 0).then_some(ClassViolation { breaks, detail: None }));
                }
            }
        }
        let values_only = part.meaning == RowMeaning::Values;
        if values_only && !by_bucket {
            // the table does not publish the counts of its values
            return Ok(None);
        }
        let guarantee = guarantee_name(target.guarantee);
        let Some(classes) = ExternalClasses::new(part, entry, by_bucket, target.attributes, self.control)? else {
            let (name, list) = (&self.submission.tables[table].name, self.submission.list(target.attributes));
            return Ok(Some(ClassViolation::unknown(format!("no part of table {name} holds {list} together"))));
        };
        let classes = classes.with_declared(self.submission, target.attributes);
        let by = entry.intersection(part.attributes()).minus(target.attributes);
        let key = ClassKey { table, by, target: target.attributes };
        if by_bucket && !self.measured.contains_key(&key) {
            self.measured.insert(key, classes.measure(self.control)?);
        }
        if !classes.is_within_limits(target.guarantee) {
            let name = &self.submission.tables[table].name;
            let detail =
                format!("table {name}: there are too many classes of too many values for {guarantee} to be judged");
            return Ok(Some(ClassViolation::unknown(detail)));
        }
        let breaks = classes.broken(table, target.guarantee, self.control)?;
        if breaks.total == 0 {
            return Ok(None);
        }
        let unread = values_only && !matches!(target.guarantee, Guarantee::DistinctLDiversity { .. });
        let detail = unread.then(|| {
            let name = self.submission.list(target.attributes);
            format!("of {name} only values without their numbers are published, from which {guarantee} cannot be read")
        });
        Ok(Some(ClassViolation { breaks, detail }))
    }

    /// The disclosure by the buckets of a table whose parts share attributes.
    fn bucket_disclosure(&self, table: usize, entry: AttrSet, target: Target) -> Result<BucketDisclosure, Cancelled> {
        if let Some(detail) = &self.disagreements[table] {
            return Ok(BucketDisclosure::Unknown(detail.clone()));
        }
        let query = overlapping::DisclosureQuery {
            table,
            known: entry,
            target: target.attributes,
            guarantee: target.guarantee,
        };
        overlapping::bucket_disclosure(self.submission, &query, self.control)
    }

    /// The measures of the examined table with the largest share of a value.
    fn nearest(&self, examined: &[(usize, AttrSet)], target: Target) -> Option<ClassMeasures> {
        let target_attributes = target.attributes;
        let measured = examined.iter().filter_map(|&(table, entry)| {
            let part = self.submission.tables[table].holder(target.attr)?;
            let by = entry.intersection(part.attributes()).minus(target_attributes);
            let of_part = ClassKey { table, by, target: target_attributes };
            let of_parts = ClassKey { table, by: entry.minus(target_attributes), target: target_attributes };
            self.measured.get(&of_part).or_else(|| self.measured.get(&of_parts))
        });
        measured.max_by(|a, b| share(a).total_cmp(&share(b))).cloned()
    }
}

fn share(measures: &ClassMeasures) -> f64 {
    measures.worst.map_or(0.0, ShareOfRows::to_f64)
}

/// The name of a guarantee in a detail.
///
/// Classes of k rows without a bound on values are k-anonymity.
const fn guarantee_name(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::AlphaK { alpha, .. } if alpha.numerator() == alpha.denominator() => "k_anonymity",
        other => other.as_str(),
    }
}

//! Whether tables that anybody published keep rules: from the tables alone, with no claim of whoever made them.
//!
//! A rule holds when no known attribute reaches the sensitive one, or when a table stands between as its guardian (versatile
//! publishing, Definition 4). Whether a table by itself keeps what is known from telling the sensitive value is read from its
//! rows: every class of rows that cannot be told apart (equal values of the known attributes beside the sensitive one, and in
//! a bucketized table the bucket) keeps the guarantee. A plain table is so judged as a table with one class for each value of what
//! is known.

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

/// Judges tables. Fails closed: what cannot be read from them does not hold.
///
/// # Errors
/// When cancelled.
pub fn evaluate(submission: &Submission<'_>, control: &Control) -> Result<EvaluationReport, Cancelled> {
    let mut findings = CheckLog::default();
    let mut remarks = Vec::new();
    let together = JointDecomposition::new(submission, &mut findings, &mut remarks, control)?;
    let mut tables =
        consistency::check_consistency(submission, together.as_ref(), &mut findings, &mut remarks, control)?;
    let unlike = |table: &ExternalTable| if table.overlaps() { overlapping::parts_agree(table).err() } else { None };
    let mut bench = Evaluator {
        submission,
        together,
        schemas: submission.tables.iter().map(ExternalTable::attributes).collect(),
        unlike: submission.tables.iter().map(unlike).collect(),
        seen: BTreeMap::new(),
        control,
    };
    for why in bench.unlike.iter().flatten() {
        findings.fail(CheckName::Buckets, why.clone());
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
        let judged = bench.rule(rule)?;
        if judged.held.is_none() {
            let detail = judged.detail.clone().unwrap_or_default();
            let check = if judged.breaks.total > 0 { CheckName::Guarantee } else { CheckName::Gnf };
            findings.fail(check, format!("rule {}: {detail}", rule.pointer));
        }
        rules.push(judged);
    }
    if !submission.dependencies.is_empty() {
        let detail = "what determines a protected attribute is protected too; that is necessary, and no proof that nothing else \
                      follows from the dependencies";
        remarks.push((NoticeKind::DependencyNecessaryOnly, detail.to_owned()));
    }
    for ((table, by, target), measured) in bench.seen {
        if measured.t_equal.is_none() && measured.k.is_some() {
            let name = &submission.tables[table].name;
            let detail = format!("table {name} has too many classes of too many values for distances to be computed");
            if !remarks.iter().any(|(_, known)| *known == detail) {
                remarks.push((NoticeKind::DistancesNotComputed, detail));
            }
        }
        tables[table].measures.push((target, by, measured));
    }
    let mut checks = vec![CheckName::Buckets, CheckName::Columns, CheckName::Guarantee, CheckName::Gnf];
    if submission.original.is_some() {
        checks.insert(0, CheckName::Content);
    }
    let checks = checks.into_iter().map(|check| findings.report(check)).collect();
    Ok(EvaluationReport { rules, tables, checks, remarks })
}

/// A table, the attributes whose equal values make its classes, and what is protected in them.
type ClassKey = (usize, AttrSet, AttrSet);

struct Evaluator<'a> {
    submission: &'a Submission<'a>,
    /// Tables that are judged together.
    together: Option<JointDecomposition<'a>>,
    /// The attributes of each table.
    schemas: Vec<AttrSet>,
    /// Why the parts of a table that share attributes cannot be put together.
    unlike: Vec<Option<String>>,
    /// What the classes showed that were looked at.
    seen: BTreeMap<ClassKey, ClassMeasures>,
    control: &'a Control,
}

impl Evaluator<'_> {
    /// A rule holds, and so does what follows from it.
    fn rule(&mut self, rule: &SubmittedRule) -> Result<RuleOutcome, Cancelled> {
        let mut judged = self.protected(rule.known, rule.protects, rule.guarantee)?;
        let follows = match follow_dependencies(rule, self.submission.dependencies) {
            Ok(follows) => follows,
            Err(detail) => {
                let (held, detail) = (None, Some(detail.to_owned()));
                return Ok(RuleOutcome { held, detail, violated_by: rule.known, ..judged });
            }
        };
        for follows in follows {
            if judged.held.is_none() {
                break;
            }
            let more = self.protected(rule.known, Protected::Joint(follows), rule.guarantee)?;
            if more.held.is_none() {
                let fault = more.detail.unwrap_or_default();
                let detail = format!("by a dependency {} must stay protected: {fault}", self.submission.list(follows));
                judged = RuleOutcome { detail: Some(detail), ..more };
            }
        }
        Ok(judged)
    }

    /// Any one attribute of a combination that is protected protects it; else the combination may be protected by itself.
    fn protected(&mut self, known: AttrSet, protects: Protected, g: Guarantee) -> Result<RuleOutcome, Cancelled> {
        let sensitive = protects.attributes();
        let mut last = RuleOutcome::default();
        for attr in sensitive.iter() {
            last = self.single(known, attr, AttrSet::one(attr), g)?;
            if last.held.is_some() {
                return Ok(last);
            }
        }
        // a combination, or some of it, is one value where that stands in one part of one table and nowhere else
        let parts = self.submission.tables.iter().flat_map(|table| &table.parts);
        let mut within: Vec<AttrSet> = parts.clone().map(|part| part.attributes().intersection(sensitive)).collect();
        within.retain(|some| some.len() > 1 && g.covers_combinations());
        within.sort_unstable_by_key(|some| (some.len(), *some));
        within.dedup();
        for some in within {
            let lone = parts.clone().filter(|part| part.attributes().meets(some)).count() == 1;
            if let (true, Some(first)) = (lone, some.iter().next()) {
                last = self.single(known, first, some, g)?;
                if last.held.is_some() {
                    break;
                }
            }
        }
        Ok(last)
    }

    /// `target` is `attr`, or a combination with it that stands in one part.
    fn single(&mut self, known: AttrSet, attr: Attr, target: AttrSet, g: Guarantee) -> Result<RuleOutcome, Cancelled> {
        if let Some(together) = self.together.as_ref().filter(|together| together.bear_on(known, target)) {
            let entered = together.entered(known);
            return self.in_both((together.buckets, together.primary), (entered, attr), g);
        }
        let tables = self.submission.tables;
        let holders: Vec<usize> = (0..tables.len()).filter(|&at| self.schemas[at].contains(attr)).collect();
        let name = self.submission.list(target);
        let mut judged =
            RuleOutcome { violated_by: gnf::reaching(&self.schemas, known, attr), ..RuleOutcome::default() };
        // by itself, before anything is known
        let (mut whole, mut why_whole) = (ViolatingClasses::default(), None);
        for &table in &holders {
            if let Err((breaks, why)) = self.kept(table, AttrSet::EMPTY, false, attr, target, g)? {
                whole.extend(breaks);
                why_whole.get_or_insert(why.unwrap_or_else(|| {
                    format!("table {}: {name} does not keep {} even as a whole", tables[table].name, guarantee_name(g))
                }));
            }
        }
        if judged.violated_by.is_empty() {
            return Ok(match why_whole {
                None => RuleOutcome { held: Some(ExternalEnforcement::Unreachable), ..judged },
                detail => RuleOutcome { breaks: whole, detail, ..judged },
            });
        }
        let mut looked = Vec::new();
        for &table in &holders {
            let entrance = gnf::entrance(&self.schemas, table, known, attr);
            let entered = entrance.unwrap_or(known).intersection(self.schemas[table]).minus(target);
            looked.push((table, entered));
            let kept = self.kept(table, entered, true, attr, target, g)?;
            if entrance.is_none() {
                // whatever its rows show, another way leads around it
                continue;
            }
            match kept {
                Ok(()) if why_whole.is_none() => {
                    let achieved = self.nearest(&[(table, entered)], attr, target);
                    let (held, violated_by) = (Some(ExternalEnforcement::Guardian(table, entered)), AttrSet::EMPTY);
                    return Ok(RuleOutcome { held, violated_by, achieved, ..RuleOutcome::default() });
                }
                Ok(()) => {}
                Err((breaks, why)) => {
                    let bucketed = tables[table].parts.iter().any(|part| part.bucket.is_some());
                    let what = match (breaks.total, bucketed) {
                        (1, true) => "bucket does",
                        (1, false) => "class does",
                        (_, true) => "buckets do",
                        (_, false) => "classes do",
                    };
                    let detail = why.unwrap_or_else(|| {
                        let (table, total) = (&tables[table].name, breaks.total);
                        format!("table {table}: {total} {what} not keep {} of {name}", guarantee_name(g))
                    });
                    judged.detail.get_or_insert(detail);
                    judged.breaks.extend(breaks);
                }
            }
        }
        judged.achieved = self.nearest(&looked, attr, target);
        if judged.breaks.total == 0 && why_whole.is_some() {
            judged = RuleOutcome { breaks: whole, detail: why_whole, ..judged };
        }
        if judged.detail.is_none() {
            let reaching = self.submission.list(judged.violated_by);
            let detail = format!(
                "{reaching} and {name} are tied together by several tables, and no one table stands between them"
            );
            judged.detail = Some(detail);
        }
        Ok(judged)
    }

    /// A rule on one attribute of tables that are judged together.
    fn in_both(
        &mut self,
        (table, primary): (usize, Attr),
        (entered, attr): (AttrSet, Attr),
        g: Guarantee,
    ) -> Result<RuleOutcome, Cancelled> {
        let name = self.submission.list(AttrSet::one(attr));
        let (breaks, why, achieved) = if attr == primary {
            let kept = self.kept(table, entered, true, attr, AttrSet::one(attr), g)?;
            let (breaks, why) = kept.err().map_or((None, None), |(breaks, why)| (Some(breaks), why));
            (breaks, why, self.nearest(&[(table, entered)], attr, AttrSet::one(attr)))
        } else {
            match self.together.as_ref().map(|together| together.kept(attr, g, &name)) {
                Some(Ok((breaks, measured))) => (Some(breaks).filter(|breaks| breaks.total > 0), None, Some(measured)),
                Some(Err(why)) => (Some(ViolatingClasses::default()), Some(why), None),
                None => (Some(ViolatingClasses::default()), None, None),
            }
        };
        let Some(breaks) = breaks else {
            return Ok(RuleOutcome {
                held: Some(ExternalEnforcement::Guardian(table, entered)),
                achieved,
                ..RuleOutcome::default()
            });
        };
        let detail = why.unwrap_or_else(|| {
            let (table, what) =
                (&self.submission.tables[table].name, if breaks.total == 1 { "bucket does" } else { "buckets do" });
            format!("table {table}: {} {what} not keep {} of {name}", breaks.total, guarantee_name(g))
        });
        Ok(RuleOutcome { held: None, violated_by: entered, achieved, breaks, detail: Some(detail) })
    }

    /// Whether the classes of a table keep a guarantee; else those that do not, and why where they are not the reason.
    fn kept(
        &mut self,
        table: usize,
        entered: AttrSet,
        by_bucket: bool,
        attr: Attr,
        target: AttrSet,
        g: Guarantee,
    ) -> Result<Result<(), (ViolatingClasses, Option<String>)>, Cancelled> {
        let Some(part) = self.submission.tables[table].holder(attr) else { return Ok(Ok(())) };
        if by_bucket && self.submission.tables[table].overlaps() {
            match self.told(table, entered, target, g)? {
                BucketDisclosure::InPart => {}
                BucketDisclosure::Unknown(why) => return Ok(Err((ViolatingClasses::default(), Some(why)))),
                BucketDisclosure::Together(measured, breaks) => {
                    self.seen.entry((table, entered.minus(target), target)).or_insert(measured);
                    return Ok(if breaks.total == 0 { Ok(()) } else { Err((breaks, None)) });
                }
            }
        }
        let values = part.meaning == RowMeaning::Values;
        if values && !by_bucket {
            // how frequent they are over all is not published
            return Ok(Ok(()));
        }
        let classes = ExternalClasses::new(part, entered, by_bucket, target, self.control)?;
        let classes = classes.on(self.submission, target);
        let place = (table, entered.intersection(part.attributes()).minus(target), target);
        if by_bucket && !self.seen.contains_key(&place) {
            self.seen.insert(place, classes.measure(self.control)?);
        }
        if !classes.judgeable(g) {
            let detail = format!(
                "table {}: there are too many classes of too many values for {} to be judged",
                self.submission.tables[table].name,
                guarantee_name(g)
            );
            return Ok(Err((ViolatingClasses::default(), Some(detail))));
        }
        let breaks = classes.broken(table, g, self.control)?;
        if breaks.total == 0 {
            return Ok(Ok(()));
        }
        let unread = values && !matches!(g, Guarantee::DistinctLDiversity { .. });
        let why = unread.then(|| {
            let name = self.submission.list(target);
            format!(
                "of {name} only values without their numbers are published, from which {} cannot be read",
                guarantee_name(g)
            )
        });
        Ok(Err((breaks, why)))
    }

    /// What a table whose parts share attributes tells by bucket.
    fn told(
        &self,
        table: usize,
        entered: AttrSet,
        target: AttrSet,
        g: Guarantee,
    ) -> Result<BucketDisclosure, Cancelled> {
        match &self.unlike[table] {
            Some(why) => Ok(BucketDisclosure::Unknown(why.clone())),
            None => overlapping::bucket_disclosure(self.submission, table, (entered, target), g, self.control),
        }
    }

    /// What the classes of the tables that were looked at show at worst.
    fn nearest(&self, looked: &[(usize, AttrSet)], attr: Attr, target: AttrSet) -> Option<ClassMeasures> {
        let measured = looked.iter().filter_map(|&(table, entered)| {
            let part = self.submission.tables[table].holder(attr)?;
            let of_part = (table, entered.intersection(part.attributes()).minus(target), target);
            let of_parts = (table, entered.minus(target), target);
            self.seen.get(&of_part).or_else(|| self.seen.get(&of_parts))
        });
        measured.max_by(|a, b| share(a).total_cmp(&share(b))).cloned()
    }
}

fn share(measured: &ClassMeasures) -> f64 {
    measured.worst.map_or(0.0, |(count, of)| count as f64 / of as f64)
}

/// The name of a guarantee for people. Classes of k rows, whatever their values, are k-anonymity.
const fn guarantee_name(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::AlphaK { alpha, .. } if alpha.numerator() == alpha.denominator() => "k_anonymity",
        other => other.as_str(),
    }
}

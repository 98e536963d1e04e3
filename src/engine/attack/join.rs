use std::collections::BTreeMap;

use super::report::{AttackFinding, AttackFindings, AttackReport, FindingValue, JoinAttackMeasure, JoinAttackResult};
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::read_back::external::ReadFile;
use crate::engine::read_back::published_value::PublishedValue;
use crate::engine::sequential::earlier::{RequirementResults, earlier_of};
use crate::engine::sequential::external::{ExternalTableRows, JoinContext, external_release};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{
    AttackInput, EarlierRelease, JoinAttribute, MethodDetails, SequentialDetails, XyMeasure, XyRequirement,
    reference_text,
};
use crate::report::{Manifest, ManifestRatio, publication_of};
use crate::spec::Attack;
use crate::verifier::{JoinError, JoinMeasures, ObservedRelease, ReleaseJoin};

/// A sequential release, then the releases it was checked against, in any order.
#[derive(Default)]
pub struct JoinableRelease(Vec<EarlierRelease>);

impl JoinableRelease {
    /// Adds a release and its only part.
    ///
    /// # Errors
    /// As [`earlier_of`].
    pub fn add(&mut self, manifest: &Manifest, file: ReadFile) -> Result<(), EngineError> {
        let published = manifest.tables.first().map_or(&[][..], |table| &table.attributes);
        let publication = publication_of(manifest, published).map_err(EngineError::bug)?;
        let joined = match (self.0.first(), &publication.method_details) {
            (Some(new), _) => new.sequence.as_ref(),
            (None, MethodDetails::Sequential(own)) => Some(&**own),
            (None, _) => None,
        };
        let Some(joined) = joined else { return Err(EngineError::bug("the release is not sequential")) };
        let number = joined.against.iter().position(|id| manifest.id.is_some_and(|own| own.to_string() == *id));
        let number = number.map_or(0, |at| at + 1);
        let names: Vec<String> = published.iter().map(|name| joined.attribute(number, name).to_owned()).collect();
        self.0.push(earlier_of(manifest, &names, file)?);
        Ok(())
    }

    /// Adds an external table, after all releases.
    ///
    /// # Errors
    /// As [`external_release`].
    pub fn add_external(&mut self, table: ExternalTableRows) -> Result<(), EngineError> {
        let of_new = self.0.first().into_iter().flat_map(|new| &new.columns);
        let kinds = of_new.map(|column| (column.name.clone(), column.kind)).collect();
        let context = JoinContext { kinds, ..JoinContext::default() }.with(&self.0);
        let release = external_release(table, &context, "/attack");
        let release = release.map_err(|faults| EngineError::Refused(Problem::of_faults(faults)))?;
        self.0.push(release);
        Ok(())
    }

    /// Measures every requirement, or the one at `rule`, on the joins of the releases.
    ///
    /// # Errors
    /// [`EngineError`]: `work-limit` where the join is too large.
    pub fn attack(&self, rule: Option<&str>, control: &Control) -> Result<AttackReport, EngineError> {
        let Some((new, others)) = self.0.split_first() else { return Err(EngineError::bug("there is no release")) };
        let Some(sequence) = &new.sequence else { return Err(EngineError::bug("the release is not sequential")) };
        let own: Vec<&str> = of_rule(sequence, None).map(|(requirement, _)| requirement.pointer.as_str()).collect();
        if let Some(rule) = rule.filter(|rule| !own.contains(rule)) {
            let allowed = format!("the pointer of a requirement of the release: {}", own.join(", "));
            let fault = Fault::new("/rule", Kind::ParameterRange, format!("{rule} is none: expected {allowed}"));
            return Err(EngineError::Refused(Problem::of_faults(vec![fault.with("allowed", allowed)])));
        }
        let find = |id: &String| others.iter().find(|release| release.release == *id);
        let earlier: Option<Vec<&EarlierRelease>> = sequence.against.iter().map(find).collect();
        let Some(earlier) = earlier else { return Err(EngineError::bug("an earlier release is not at hand")) };
        let earlier: Vec<(&EarlierRelease, ObservedRelease)> =
            earlier.into_iter().map(|release| (release, ObservedRelease::from_earlier(release))).collect();
        let shown = ObservedRelease::from_earlier(new);
        let join = ReleaseJoin::new(&shown, &new.taxonomies, &earlier, &sequence.exclusions);
        let (mut joins, mut breaches, mut worst) = (Vec::new(), Vec::new(), None::<ManifestRatio>);
        for (requirement, on) in of_rule(sequence, rule) {
            for claimed in on {
                control.check()?;
                let found = join.measure(requirement, &claimed.releases, control).map_err(join_problem)?;
                let posterior = posterior(&requirement.measure, &found);
                worst = worst.filter(|worst| !posterior.exceeds(*worst)).or(Some(posterior));
                let holds = found.is_allowed(&requirement.measure);
                let result = on_join(sequence, requirement, &claimed.releases, &found, holds);
                if !holds {
                    breaches.push(AttackFinding {
                        rule: Some(requirement.pointer.clone()),
                        known: label_values(&result.group),
                        sensitive: label_values(&result.values),
                        ..AttackFinding::new(&requirement.pointer, None, posterior)
                    });
                }
                joins.push(result);
            }
        }
        let total = breaches.len() as u64;
        breaches.truncate(super::report::MAX_REPORTED_RESULTS);
        Ok(AttackReport {
            attack: Attack::Join,
            uses: if sequence.external.is_empty() { AttackInput::Parts } else { AttackInput::Original },
            breach: total > 0,
            worst,
            findings: AttackFindings { total, first: breaches },
            membership: None,
            intersection: None,
            joins: Some(joins),
        })
    }
}

/// The requirements of a release, or its own one at a pointer.
fn of_rule<'a>(sequence: &'a SequentialDetails, rule: Option<&'a str>) -> impl Iterator<Item = &'a RequirementResults> {
    sequence
        .requirements
        .iter()
        .filter(move |(requirement, _)| rule.is_none_or(|rule| requirement.of == 0 && requirement.pointer == rule))
}

/// The posterior in the worst group; 1/k for k values.
fn posterior(measure: &XyMeasure, found: &JoinMeasures) -> ManifestRatio {
    let (count, of) = found.achieved;
    match measure {
        XyMeasure::Anonymity { .. } => lowest(of, count),
        XyMeasure::Linkability { .. } => lowest(count, of),
    }
}

/// A ratio in lowest terms; a number above 64 bits counts as the largest.
fn lowest(count: u128, of: u128) -> ManifestRatio {
    let (mut a, mut b) = (count, of);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    let word = |number: u128| u64::try_from(number / a.max(1)).unwrap_or(u64::MAX);
    ManifestRatio { count: word(count), of: word(of) }
}

fn on_join(
    sequence: &SequentialDetails,
    requirement: &XyRequirement,
    releases: &[usize],
    found: &JoinMeasures,
    holds: bool,
) -> JoinAttackResult {
    let id = |release: usize| match release.checked_sub(1) {
        None => "new".to_owned(),
        Some(earlier) => sequence.against[earlier].clone(),
    };
    let named = |labels: &[(JoinAttribute, Option<Vec<u8>>)]| -> BTreeMap<String, Option<String>> {
        let text = |label: &Option<Vec<u8>>| label.as_ref().map(|label| String::from_utf8_lossy(label).into_owned());
        let name = |of: &JoinAttribute| reference_text(&sequence.against, of.release, &of.attribute);
        labels.iter().map(|(of, label)| (name(of), text(label))).collect()
    };
    let achieved = lowest(found.achieved.0, found.achieved.1);
    JoinAttackResult {
        requirement: requirement.pointer.clone(),
        promised_by: (requirement.of > 0).then(|| id(requirement.of)),
        releases: releases.iter().map(|release| id(*release)).collect(),
        achieved: match requirement.measure {
            XyMeasure::Anonymity { .. } => JoinAttackMeasure { k: Some(achieved.count), h: None },
            XyMeasure::Linkability { .. } => JoinAttackMeasure { k: None, h: Some(achieved) },
        },
        holds,
        group: named(&found.known),
        values: named(&found.inferred),
    }
}

fn label_values(labels: &BTreeMap<String, Option<String>>) -> BTreeMap<String, FindingValue> {
    let value = |label: &Option<String>| FindingValue::Value(PublishedValue(label.clone().into()));
    labels.iter().map(|(name, label)| (name.clone(), value(label))).collect()
}

fn join_problem(why: JoinError) -> EngineError {
    match why {
        JoinError::Cancelled(cancelled) => cancelled.into(),
        JoinError::TooMany => {
            let detail = "the attack would count too many distinct tuples of the join";
            EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", ReleaseJoin::MAX_JOIN_STEPS))
        }
        JoinError::Unknown | JoinError::Empty => {
            EngineError::bug("a release says of its join what its parts do not have")
        }
    }
}

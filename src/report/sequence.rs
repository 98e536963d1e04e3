//! What a sequential release says, as a manifest states it. Releases are joined by the names that attributes have in the dataset, and these
//! stand here; where a release publishes one under another name, `renamed` has that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ratio::ManifestRatio;
use crate::publication::{
    Conditions, Exclusion, JoinAttribute, JoinResult, JoinSelection, ROW_KEY, SequentialDetails, XyMeasure,
    XyRequirement, YElement, reference_parts, reference_text,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SequentialForm {
    against: Vec<String>,
    /// Those of them that were published elsewhere; absent where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entered: Vec<String>,
    /// Whether all are projections of the same rows; absent from manifests of a time when nothing else was taken.
    #[serde(default = "always")]
    projection_precondition: bool,
    subsets: String,
    cuts: BTreeMap<String, Vec<Option<String>>>,
    requirements: Vec<RequirementForm>,
    exclusions: Vec<ExclusionForm>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    renamed: BTreeMap<String, BTreeMap<String, String>>,
}

const fn always() -> bool {
    true
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequirementForm {
    pointer: String,
    /// The earlier release that promised it; absent of the release's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promised_by: Option<String>,
    x: Vec<String>,
    y: Vec<String>,
    measure: XyMeasure,
    subsets: Vec<JoinResultForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JoinResultForm {
    releases: Vec<String>,
    achieved: AchievedForm,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AchievedForm {
    K(u64),
    H(ManifestRatio),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExclusionForm {
    pointer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promised_by: Option<String>,
    left: BTreeMap<String, Option<String>>,
    right: BTreeMap<String, Option<String>>,
}

/// As it stands in a manifest.
pub(super) fn write(sequence: &SequentialDetails) -> Option<Value> {
    let against = &sequence.against;
    let name = |release: &usize| match release.checked_sub(1) {
        None => "new".to_owned(),
        Some(earlier) => against.get(earlier).cloned().unwrap_or_default(),
    };
    let promised_by = |of: usize| (of > 0).then(|| name(&of));
    let reference = |reference: &JoinAttribute| reference_text(against, reference.release, &reference.attribute);
    let told = |told: &YElement| match told {
        YElement::Attribute(of) => reference(of),
        YElement::Key(release) => reference_text(against, *release, ROW_KEY),
    };
    let required = |(requirement, on): &(XyRequirement, Vec<JoinResult>)| RequirementForm {
        pointer: requirement.pointer.clone(),
        promised_by: promised_by(requirement.of),
        x: requirement.x.iter().map(reference).collect(),
        y: requirement.y.iter().map(told).collect(),
        measure: requirement.measure.clone(),
        subsets: on
            .iter()
            .map(|JoinResult { releases, achieved: (count, of) }| JoinResultForm {
                releases: releases.iter().map(name).collect(),
                achieved: match requirement.measure {
                    XyMeasure::Anonymity { .. } => AchievedForm::K(*count),
                    XyMeasure::Linkability { .. } => AchievedForm::H(ManifestRatio { count: *count, of: *of }),
                },
            })
            .collect(),
    };
    let side = |side: &Conditions| {
        let condition =
            |(name, label): &(String, Option<String>)| (reference_text(against, side.release, name), label.clone());
        side.within.iter().map(condition).collect()
    };
    let excluded = |exclusion: &Exclusion| ExclusionForm {
        pointer: exclusion.pointer.clone(),
        promised_by: promised_by(exclusion.of),
        left: side(&exclusion.left),
        right: side(&exclusion.right),
    };
    let written = SequentialForm {
        against: against.clone(),
        entered: sequence.entered.clone(),
        projection_precondition: !sequence.other_rows,
        subsets: sequence.subsets.as_str().to_owned(),
        cuts: sequence.cuts.iter().cloned().collect(),
        requirements: sequence.requirements.iter().map(required).collect(),
        exclusions: sequence.exclusions.iter().map(excluded).collect(),
        renamed: sequence.renamed.iter().map(|(release, names)| (name(release), names.clone())).collect(),
    };
    // nothing of it can fail to be written
    serde_json::to_value(written).ok()
}

/// Reads it back; `None` where it is not understood.
pub(super) fn read(stated: &Value) -> Option<SequentialDetails> {
    let SequentialForm { against, entered, projection_precondition, subsets, cuts, requirements, exclusions, renamed } =
        serde_json::from_value(stated.clone()).ok()?;
    if !entered.iter().all(|id| against.contains(id)) {
        return None;
    }
    let number = |name: &String| match name.as_str() {
        "new" => Some(0),
        id => Some(against.iter().position(|known| known == id)? + 1),
    };
    let promised = |by: &Option<String>| by.as_ref().map_or(Some(0), number);
    let reference = |text: &String| {
        let (release, attribute) = reference_parts(&against, text)?;
        Some(JoinAttribute { release, attribute: attribute.to_owned() })
    };
    let told = |text: &String| match reference_parts(&against, text)? {
        (release, ROW_KEY) => Some(YElement::Key(release)),
        _ => reference(text).map(YElement::Attribute),
    };
    let required = |required: &RequirementForm| {
        let requirement = XyRequirement {
            pointer: required.pointer.clone(),
            of: promised(&required.promised_by)?,
            x: required.x.iter().map(reference).collect::<Option<_>>()?,
            y: required.y.iter().map(told).collect::<Option<_>>()?,
            measure: required.measure.clone(),
        };
        let on = |joined: &JoinResultForm| {
            let achieved = match (&joined.achieved, &required.measure) {
                (AchievedForm::K(k), XyMeasure::Anonymity { .. }) => (*k, 1),
                (AchievedForm::H(h), XyMeasure::Linkability { .. }) => (h.count, h.of),
                _ => return None,
            };
            Some(JoinResult { releases: joined.releases.iter().map(number).collect::<Option<_>>()?, achieved })
        };
        Some((requirement, required.subsets.iter().map(on).collect::<Option<_>>()?))
    };
    let side = |side: &BTreeMap<String, Option<String>>| {
        let references = side.iter().map(|(text, label)| Some((reference(text)?, label.clone())));
        let references = references.collect::<Option<Vec<_>>>()?;
        let release = references.first()?.0.release;
        let within = references.into_iter().map(|(of, label)| (of.release == release).then_some((of.attribute, label)));
        Some(Conditions { release, within: within.collect::<Option<_>>()? })
    };
    let excluded = |excluded: &ExclusionForm| {
        Some(Exclusion {
            pointer: excluded.pointer.clone(),
            of: promised(&excluded.promised_by)?,
            left: side(&excluded.left)?,
            right: side(&excluded.right)?,
        })
    };
    Some(SequentialDetails {
        subsets: [JoinSelection::Default, JoinSelection::All].into_iter().find(|word| word.as_str() == subsets)?,
        requirements: requirements.iter().map(required).collect::<Option<_>>()?,
        exclusions: exclusions.iter().map(excluded).collect::<Option<_>>()?,
        cuts: cuts.into_iter().collect(),
        entered,
        other_rows: !projection_precondition,
        renamed: renamed.into_iter().map(|(release, names)| Some((number(&release)?, names))).collect::<Option<_>>()?,
        against: against.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let of = |release: usize, attribute: &str| JoinAttribute { release, attribute: attribute.into() };
        let said = SequentialDetails {
            against: vec!["a-1".into(), "b-2".into()],
            subsets: JoinSelection::All,
            requirements: vec![
                (
                    XyRequirement {
                        pointer: "/method/requirements/0".into(),
                        of: 0,
                        x: vec![of(0, "a.b"), of(1, "c")],
                        y: vec![YElement::Key(0), YElement::Attribute(of(1, "d"))],
                        measure: XyMeasure::Anonymity { k: 3 },
                    },
                    vec![JoinResult { releases: vec![0, 1], achieved: (5, 1) }],
                ),
                (
                    XyRequirement {
                        pointer: "/method/requirements/7".into(),
                        of: 1,
                        x: vec![of(1, "c")],
                        y: vec![YElement::Attribute(of(0, "e"))],
                        measure: XyMeasure::Linkability {
                            h: "0.9".parse().unwrap(),
                            sensitive: Some(vec![vec![None], vec![Some("x".into())]]),
                        },
                    },
                    vec![JoinResult { releases: vec![0, 1], achieved: (2, 3) }],
                ),
            ],
            exclusions: vec![Exclusion {
                pointer: "/method/exclusions/0".into(),
                of: 0,
                left: Conditions { release: 0, within: vec![("sex".into(), Some("Male".into()))] },
                right: Conditions { release: 1, within: vec![("state".into(), None)] },
            }],
            cuts: vec![("a.b".into(), vec![Some("Office".into()), None])],
            entered: vec!["b-2".into()],
            other_rows: true,
            renamed: BTreeMap::from([(0, BTreeMap::from([("a.b".into(), "work".into())]))]),
        };
        let written = write(&said).unwrap();
        assert_eq!(
            written["requirements"][0]["subsets"][0],
            serde_json::json!({"releases": ["new", "a-1"], "achieved": {"k": 5}})
        );
        assert_eq!(written["requirements"][1]["promised_by"], "a-1");
        assert_eq!(written["renamed"], serde_json::json!({"new": {"a.b": "work"}}));
        assert_eq!(read(&written), Some(said.clone()));
        let mut before = written.clone();
        for member in ["entered", "projection_precondition"] {
            before.as_object_mut().unwrap().remove(member);
        }
        assert_eq!(read(&before), Some(SequentialDetails { entered: Vec::new(), other_rows: false, ..said }));
        for (member, value) in [("steps", serde_json::json!(1)), ("entered", serde_json::json!(["c-3"]))] {
            let mut more = written.clone();
            more[member] = value;
            assert_eq!(read(&more), None, "{member}");
        }
    }
}

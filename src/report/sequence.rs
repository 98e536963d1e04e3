//! The details of a sequential release, as a manifest writes them.
//!
//! Attributes have the names of the dataset, by which releases are joined. `renamed` holds the published names that differ.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ratio::ManifestRatio;
use crate::publication::{
    Conditions, Exclusion, JoinAttribute, JoinResult, JoinSelection, ROW_KEY, SequentialDetails, XyMeasure,
    XyRequirement, YElement, reference_parts, reference_text,
};

/// The requirements of a sequential release, its results on joins, and its cuts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SequentialDetails)]
pub struct SequentialForm {
    /// The earlier releases, by id.
    pub against: Vec<String>,
    /// The external tables among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entered: Vec<String>,
    /// Whether all releases are projections of the same rows; absent from older manifests, where they always are.
    #[serde(default = "always")]
    projection_precondition: bool,
    /// The joins on which requirements hold.
    subsets: JoinSelection,
    /// The labels of each attribute that is not published as it is; `*` of a suppressed one.
    cuts: BTreeMap<String, Vec<Option<String>>>,
    /// The requirements, and what they come to.
    requirements: Vec<RequirementForm>,
    /// Combinations of two releases that no person has.
    exclusions: Vec<ExclusionForm>,
    /// For each release, the attributes that it publishes under other names than the dataset's, each with that name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    renamed: BTreeMap<String, BTreeMap<String, String>>,
}

const fn always() -> bool {
    true
}

impl SequentialForm {
    /// What each requirement promises, and what it comes to.
    #[must_use]
    pub fn in_words(&self) -> Vec<String> {
        self.requirements.iter().map(|requirement| requirement.in_words(&self.against)).collect()
    }
}

impl RequirementForm {
    fn in_words(&self, against: &[String]) -> String {
        let named = |references: &[String], rows: &str| {
            let named = references.iter().map(|of| match (of.strip_prefix(NEW_PREFIX), reference_parts(against, of)) {
                (Some(ROW_KEY), _) => rows.to_owned(),
                (Some(name), _) => name.to_owned(),
                (None, Some((release, ROW_KEY))) => format!("{rows} of {}", against[release.saturating_sub(1)]),
                (None, Some((release, name))) => format!("{name} of {}", against[release.saturating_sub(1)]),
                (None, None) => of.clone(),
            });
            named.collect::<Vec<_>>().join(", ")
        };
        let (known, counted) = (named(&self.x, "rows"), named(&self.y, "rows"));
        let joins = self.subsets.iter().map(|of| of.achieved);
        let by_share = |a: &ManifestRatio, b: &ManifestRatio| a.as_share().total_cmp(&b.as_share());
        let promise = match &self.measure {
            XyMeasure::Anonymity { k } => {
                let least = joins.filter_map(|of| match of {
                    AchievedForm::K(least) => Some(least),
                    AchievedForm::H(_) => None,
                });
                let least = least.min().map_or_else(String::new, |least| format!(": the smallest has {least}"));
                format!("each group of equal {known} has at least {k} different {counted}{least}")
            }
            XyMeasure::Linkability { h, sensitive } => {
                let worst = joins.filter_map(|of| match of {
                    AchievedForm::H(share) => Some(share),
                    AchievedForm::K(_) => None,
                });
                let worst = worst.max_by(by_share);
                let worst = worst
                    .map_or_else(String::new, |worst| format!(": the worst group gives {}/{}", worst.count, worst.of));
                let values = if sensitive.is_some() { "each listed value" } else { "each value" };
                format!(
                    "an adversary who knows {known} of a person learns {values} of {counted} with probability at most {h}{worst}"
                )
            }
        };
        match &self.promised_by {
            Some(release) => format!("{promise}; release {release} promised it"),
            None => promise,
        }
    }
}

/// A requirement on joins, with its results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RequirementResults)]
struct RequirementForm {
    /// The pointer of the requirement.
    pointer: String,
    /// The earlier release that promised it; absent for requirements of the release itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    promised_by: Option<String>,
    /// The attributes whose equal labels make a group.
    x: Vec<String>,
    /// What is counted in a group.
    y: Vec<String>,
    /// Generalized attributes of the new release that dependencies tie to what is counted. On the same joins, every group keeps the
    /// measure also for who knows their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    known_exactly: Vec<String>,
    /// What every group keeps.
    measure: XyMeasure,
    /// The result on each join.
    subsets: Vec<JoinResultForm>,
}

/// The result of a requirement on a join.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = JoinResult)]
struct JoinResultForm {
    /// The joined releases; `new` is the release itself.
    releases: Vec<String>,
    /// The measured value.
    achieved: AchievedForm,
}

/// The measure of the worst group.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = JoinMeasure)]
enum AchievedForm {
    /// The least number of values on y.
    K(u64),
    /// The largest share of a value on y.
    H(ManifestRatio),
}

/// Labels of two releases that no person has together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExcludedJoin)]
struct ExclusionForm {
    /// The pointer of the exclusion.
    pointer: String,
    /// The earlier release that declared it; absent for exclusions of the release itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    promised_by: Option<String>,
    /// Labels of one release.
    left: BTreeMap<String, Option<String>>,
    /// Labels of the other.
    right: BTreeMap<String, Option<String>>,
}

/// The name of the new release among the releases of a join.
const NEW_RELEASE: &str = "new";

/// How references to its attributes begin.
const NEW_PREFIX: &str = "new.";

/// Writes numbers of releases as the texts of a form: 0 is the new release, `i` is the earlier release `against[i - 1]`.
struct FormWriter<'a> {
    against: &'a [String],
}

impl FormWriter<'_> {
    fn release(&self, release: usize) -> String {
        match release.checked_sub(1) {
            None => NEW_RELEASE.to_owned(),
            Some(earlier) => self.against.get(earlier).cloned().unwrap_or_default(),
        }
    }

    fn promised_by(&self, release: usize) -> Option<String> {
        (release > 0).then(|| self.release(release))
    }

    fn attribute(&self, of: &JoinAttribute) -> String {
        reference_text(self.against, of.release, &of.attribute)
    }

    fn y_element(&self, element: &YElement) -> String {
        match element {
            YElement::Attribute(of) => self.attribute(of),
            YElement::Key(release) => reference_text(self.against, *release, ROW_KEY),
        }
    }

    fn requirement(&self, requirement: &XyRequirement, results: &[JoinResult]) -> RequirementForm {
        RequirementForm {
            pointer: requirement.pointer.clone(),
            promised_by: self.promised_by(requirement.of),
            x: requirement.x.iter().map(|of| self.attribute(of)).collect(),
            y: requirement.y.iter().map(|element| self.y_element(element)).collect(),
            known_exactly: requirement.known_exactly.clone(),
            measure: requirement.measure.clone(),
            subsets: results.iter().map(|result| self.result(result, &requirement.measure)).collect(),
        }
    }

    fn result(&self, result: &JoinResult, measure: &XyMeasure) -> JoinResultForm {
        let (count, of) = result.achieved;
        JoinResultForm {
            releases: result.releases.iter().map(|release| self.release(*release)).collect(),
            achieved: match measure {
                XyMeasure::Anonymity { .. } => AchievedForm::K(count),
                XyMeasure::Linkability { .. } => AchievedForm::H(ManifestRatio { count, of }),
            },
        }
    }

    fn exclusion(&self, exclusion: &Exclusion) -> ExclusionForm {
        ExclusionForm {
            pointer: exclusion.pointer.clone(),
            promised_by: self.promised_by(exclusion.of),
            left: self.conditions(&exclusion.left),
            right: self.conditions(&exclusion.right),
        }
    }

    fn conditions(&self, side: &Conditions) -> BTreeMap<String, Option<String>> {
        let within = side.within.iter();
        within.map(|(name, label)| (reference_text(self.against, side.release, name), label.clone())).collect()
    }
}

/// Reads the texts of a form as numbers of releases; each method is `None` for an unknown release.
struct FormReader<'a> {
    against: &'a [String],
}

impl FormReader<'_> {
    fn release(&self, name: &str) -> Option<usize> {
        if name == NEW_RELEASE {
            return Some(0);
        }
        Some(self.against.iter().position(|known| known == name)? + 1)
    }

    fn promised_by(&self, release: Option<&String>) -> Option<usize> {
        release.map_or(Some(0), |release| self.release(release))
    }

    fn attribute(&self, text: &str) -> Option<JoinAttribute> {
        let (release, attribute) = reference_parts(self.against, text)?;
        Some(JoinAttribute { release, attribute: attribute.to_owned() })
    }

    fn y_element(&self, text: &str) -> Option<YElement> {
        match reference_parts(self.against, text)? {
            (release, ROW_KEY) => Some(YElement::Key(release)),
            _ => self.attribute(text).map(YElement::Attribute),
        }
    }

    fn requirement(&self, form: &RequirementForm) -> Option<(XyRequirement, Vec<JoinResult>)> {
        let requirement = XyRequirement {
            pointer: form.pointer.clone(),
            of: self.promised_by(form.promised_by.as_ref())?,
            x: form.x.iter().map(|text| self.attribute(text)).collect::<Option<_>>()?,
            y: form.y.iter().map(|text| self.y_element(text)).collect::<Option<_>>()?,
            known_exactly: form.known_exactly.clone(),
            measure: form.measure.clone(),
        };
        let results = form.subsets.iter().map(|result| self.result(result, &form.measure));
        Some((requirement, results.collect::<Option<_>>()?))
    }

    fn result(&self, form: &JoinResultForm, measure: &XyMeasure) -> Option<JoinResult> {
        let achieved = match (&form.achieved, measure) {
            (AchievedForm::K(k), XyMeasure::Anonymity { .. }) => (*k, 1),
            (AchievedForm::H(h), XyMeasure::Linkability { .. }) => (h.count, h.of),
            _ => return None,
        };
        let releases = form.releases.iter().map(|name| self.release(name));
        Some(JoinResult { releases: releases.collect::<Option<_>>()?, achieved })
    }

    fn exclusion(&self, form: &ExclusionForm) -> Option<Exclusion> {
        Some(Exclusion {
            pointer: form.pointer.clone(),
            of: self.promised_by(form.promised_by.as_ref())?,
            left: self.conditions(&form.left)?,
            right: self.conditions(&form.right)?,
        })
    }

    /// Conditions on one release; `None` also where the texts name several.
    fn conditions(&self, side: &BTreeMap<String, Option<String>>) -> Option<Conditions> {
        let attributes = side.iter().map(|(text, label)| Some((self.attribute(text)?, label.clone())));
        let attributes = attributes.collect::<Option<Vec<_>>>()?;
        let release = attributes.first()?.0.release;
        let within = attributes.into_iter().map(|(of, label)| (of.release == release).then_some((of.attribute, label)));
        Some(Conditions { release, within: within.collect::<Option<_>>()? })
    }
}

impl SequentialForm {
    pub(super) fn from_details(details: &SequentialDetails) -> Self {
        let writer = FormWriter { against: &details.against };
        Self {
            against: details.against.clone(),
            entered: details.external.clone(),
            projection_precondition: !details.other_rows,
            subsets: details.subsets,
            cuts: details.cuts.iter().cloned().collect(),
            requirements: details
                .requirements
                .iter()
                .map(|(requirement, results)| writer.requirement(requirement, results))
                .collect(),
            exclusions: details.exclusions.iter().map(|exclusion| writer.exclusion(exclusion)).collect(),
            renamed: details.renamed.iter().map(|(of, names)| (writer.release(*of), names.clone())).collect(),
        }
    }

    /// The details behind the form; `None` where it names an unknown release.
    pub(super) fn read(&self) -> Option<SequentialDetails> {
        if !self.entered.iter().all(|id| self.against.contains(id)) {
            return None;
        }
        let reader = FormReader { against: &self.against };
        let requirements = self.requirements.iter().map(|form| reader.requirement(form));
        let exclusions = self.exclusions.iter().map(|form| reader.exclusion(form));
        let renamed = self.renamed.iter().map(|(release, names)| Some((reader.release(release)?, names.clone())));
        Some(SequentialDetails {
            against: self.against.clone(),
            subsets: self.subsets,
            requirements: requirements.collect::<Option<_>>()?,
            exclusions: exclusions.collect::<Option<_>>()?,
            cuts: self.cuts.iter().map(|(name, labels)| (name.clone(), labels.clone())).collect(),
            external: self.entered.clone(),
            other_rows: !self.projection_precondition,
            renamed: renamed.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_details_read_back_equal() {
        let of = |release: usize, attribute: &str| JoinAttribute { release, attribute: attribute.into() };
        let details = SequentialDetails {
            against: vec!["a-1".into(), "b-2".into()],
            subsets: JoinSelection::All,
            requirements: vec![
                (
                    XyRequirement {
                        pointer: "/method/requirements/0".into(),
                        of: 0,
                        x: vec![of(0, "a.b"), of(1, "c")],
                        y: vec![YElement::Key(0), YElement::Attribute(of(1, "d"))],
                        known_exactly: vec!["job".into()],
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
                        known_exactly: Vec::new(),
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
            external: vec!["b-2".into()],
            other_rows: true,
            renamed: BTreeMap::from([(0, BTreeMap::from([("a.b".into(), "work".into())]))]),
        };
        let read = |document: &serde_json::Value| {
            serde_json::from_value::<SequentialForm>(document.clone()).ok().and_then(|form| form.read())
        };
        let written = serde_json::to_value(SequentialForm::from_details(&details)).unwrap();
        assert_eq!(
            written["requirements"][0]["subsets"][0],
            serde_json::json!({"releases": ["new", "a-1"], "achieved": {"k": 5}})
        );
        assert_eq!(written["requirements"][1]["promised_by"], "a-1");
        assert_eq!(written["renamed"], serde_json::json!({"new": {"a.b": "work"}}));
        assert_eq!(read(&written), Some(details.clone()));
        let mut before = written.clone();
        for member in ["entered", "projection_precondition"] {
            before.as_object_mut().unwrap().remove(member);
        }
        assert_eq!(read(&before), Some(SequentialDetails { external: Vec::new(), other_rows: false, ..details }));
        for (member, value) in [("steps", serde_json::json!(1)), ("entered", serde_json::json!(["c-3"]))] {
            let mut more = written.clone();
            more[member] = value;
            assert_eq!(read(&more), None, "{member}");
        }
    }
}

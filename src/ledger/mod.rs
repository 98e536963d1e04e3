//! The ledger: all disclosures and active rules, and the composition check of a new release.
//!
//! Pure, without I/O.
//!
//! The ledger keeps a [`Disclosure`] for every published table and every promised rule. A new release is checked
//! together with all of them. The union must be in Guardian Normal Form for every active and every new rule, with the
//! guards of all tables (docs/security/threat-model.md#composition). Dataset names identify attributes; published
//! names do not.

mod exclusions;
mod identity;
mod meeting;
mod overview;
mod union;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::microdata::{Attr, AttrSet, Taxonomy};
use crate::publication::{
    DeclaredTaxonomy, EarlierReleases, ExcludedValues, Guarantee, MethodDetails, Protected, Publication,
    PublishedTable, TableGuard, TableProtection,
};

pub use identity::{AttributeIdentities, IdentityError};
pub use overview::{conflicting_pairs, shared_attributes};
pub use union::LedgerUnion;

/// Record of a published table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Disclosure {
    /// The name of the table in its release.
    pub table: String,
    /// The attributes, by their dataset names.
    pub attributes: Vec<String>,
    /// The protection of the table.
    pub protection: RecordedProtection,
    /// Whether rows may be missing from the table; a table with all rows would reveal which ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The reason for publishing without proof, where a release has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<String>,
}

/// Protection of a disclosed table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedProtection {
    /// Exact tuples without a guard.
    Plain,
    /// A table that bounds posteriors by itself.
    Guarding(Vec<RecordedGuard>),
    /// A table that keeps its guarantee while no other table shares an attribute.
    Exclusive,
}

/// Guard of a disclosed table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RecordedGuard {
    /// The attributes that may be known.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes.
    pub sensitive: Vec<String>,
    /// Whether only the joint value of the protected attributes is protected.
    pub joint: bool,
    /// The guarantees of the guard.
    pub guarantees: Vec<Guarantee>,
    /// Excluded values of protected attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excludable: BTreeMap<String, Vec<Option<String>>>,
    /// Digests of the taxonomies of protected attributes, where a guarantee uses them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taxonomies: BTreeMap<String, String>,
}

/// Rule that a release promised.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ActiveRule {
    /// The pointer into its specification; `None` for a rule that follows from a dependency.
    pub pointer: Option<String>,
    /// The quasi-identifiers.
    pub quasi_identifiers: Vec<String>,
    /// The sensitive attribute; for a combination one of its attributes.
    pub sensitive: String,
    /// The attributes of a combination whose joint value is protected; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combination: Vec<String>,
    /// The bound on the inference.
    pub guarantee: Guarantee,
    /// Excluded values of the sensitive attribute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludable: Vec<Option<String>>,
    /// The digest of the taxonomy, where the bound uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<String>,
}

/// Location of the rows of an external table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExternalRowsRef {
    /// The dataset with the rows, if there is one.
    pub dataset: Option<Uuid>,
    /// The labels of each generalized attribute; `None` is the missing value.
    pub cuts: BTreeMap<String, Vec<Option<String>>>,
}

/// All disclosures and active rules of the same data subjects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EarlierDisclosures {
    /// Disclosures, each with its release.
    pub disclosures: Vec<(Uuid, Disclosure)>,
    /// Active rules, each with the release that promised it.
    pub rules: Vec<(Uuid, ActiveRule)>,
    /// Locations of the rows of external tables, by release.
    pub external: BTreeMap<Uuid, ExternalRowsRef>,
    /// The earlier releases that a sequential release names, as they were read back.
    pub releases: EarlierReleases,
    /// The declared identities of attributes.
    pub identities: AttributeIdentities,
}

impl EarlierDisclosures {
    /// The names of attributes in disclosures and rules, in any order, with repetitions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let of_disclosures = self.disclosures.iter().flat_map(|(_, disclosure)| &disclosure.attributes);
        let of_rules = self
            .rules
            .iter()
            .flat_map(|(_, rule)| rule.quasi_identifiers.iter().chain([&rule.sensitive]).chain(&rule.combination));
        of_disclosures.chain(of_rules).map(String::as_str)
    }
}

/// Reason why a release must not be published together with earlier ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompositionViolation {
    /// The violated rule, as its release (`None` for the new one) and pointer.
    pub rule: (Option<Uuid>, Option<String>),
    /// The earlier release in conflict.
    pub release: Uuid,
    /// A path from known attributes to the sensitive one; empty for reasons such as a second bucketization.
    ///
    /// A step is a release (`None` for the new one), a table, and the attributes through which the path enters it.
    ///
    /// Empty for other reasons, such as a second bucketization.
    pub path: Vec<(Option<Uuid>, String, Vec<String>)>,
    /// The reason in words.
    pub detail: String,
}

/// Error: all releases together have more attributes than one check can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyAttributesError(pub usize);

/// The digest of an attribute's taxonomy, where a guarantee uses it.
#[must_use]
pub fn taxonomy_of(attribute: Attr, guarantee: Guarantee, taxonomies: &[DeclaredTaxonomy]) -> Option<String> {
    let declared = taxonomies
        .iter()
        .find(|declared| declared.attribute == attribute)
        .filter(|_| exclusions::uses_taxonomy(guarantee));
    declared.map(|declared| digest(&declared.tree))
}

fn digest(tree: &Taxonomy) -> String {
    tree.digest().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The disclosures of a publication; `names` are the dataset names of its attributes.
#[must_use]
pub fn disclosures(
    publication: &Publication,
    names: &[String],
    (excludable, taxonomies): (&[ExcludedValues], &[DeclaredTaxonomy]),
) -> Vec<Disclosure> {
    let excludable = |protected: AttrSet| {
        let of = excludable.iter().filter(move |excluded| protected.contains(excluded.attribute));
        of.map(|excluded| (names[excluded.attribute.index()].clone(), excluded.values.clone())).collect()
    };
    let along = |guard: &TableGuard| {
        let of = |attr: Attr| {
            let digest = guard.guarantees.iter().find_map(|guarantee| taxonomy_of(attr, *guarantee, taxonomies));
            digest.map(|digest| (names[attr.index()].clone(), digest))
        };
        guard.protects.attributes().iter().filter_map(of).collect()
    };
    let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].clone()).collect();
    let recorded = |protection: &TableProtection| match protection {
        TableProtection::Plain => RecordedProtection::Plain,
        TableProtection::Exclusive => RecordedProtection::Exclusive,
        TableProtection::Guarding(guards) => RecordedProtection::Guarding(
            guards
                .iter()
                .map(|guard| RecordedGuard {
                    quasi_identifiers: named(guard.known),
                    sensitive: named(guard.protects.attributes()),
                    joint: matches!(guard.protects, Protected::Joint(_)),
                    guarantees: guard.guarantees.clone(),
                    excludable: excludable(guard.protects.attributes()),
                    taxonomies: along(guard),
                })
                .collect(),
        ),
    };
    // slicing suppresses no rows
    let is_sliced = matches!(publication.method_details, MethodDetails::Slicing { .. });
    let tables = publication.tables.iter();
    tables
        .map(|table| Disclosure {
            table: table.name.0.clone(),
            attributes: named(table.attributes()),
            protection: recorded(&table.protection),
            partial: publication.suppressed > 0 || (!is_sliced && knows_attribute_of_protected_part(table)),
            unproven: None,
        })
        .collect()
}

/// Whether a guard of a bucketized table knows attributes that share a part with a protected one.
///
/// Such a table may lack rows, and whether it does depends on the data.
fn knows_attribute_of_protected_part(table: &PublishedTable) -> bool {
    let TableProtection::Guarding(guards) = &table.protection else { return false };
    let parts = table
        .parts
        .iter()
        .filter(|part| part.bucketed)
        .map(|part| part.columns.iter().map(|column| column.attribute).collect::<AttrSet>());
    let parts: Vec<AttrSet> = parts.collect();
    guards
        .iter()
        .any(|guard| parts.iter().any(|part| part.meets(guard.protects.attributes()) && part.meets(guard.known)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Guard, PrivacyRule, TableSchema};

    fn names(list: &str) -> Vec<String> {
        list.split_whitespace().map(str::to_owned).collect()
    }

    fn plain(table: &str, attributes: &str) -> Disclosure {
        Disclosure {
            table: table.into(),
            attributes: names(attributes),
            protection: RecordedProtection::Plain,
            partial: false,
            unproven: None,
        }
    }

    fn guarding(table: &str, known: &str, sensitive: &str) -> Disclosure {
        let guard = RecordedGuard {
            quasi_identifiers: names(known),
            sensitive: names(sensitive),
            joint: false,
            guarantees: vec![Guarantee::LDiversity { l: 2 }],
            excludable: BTreeMap::new(),
            taxonomies: BTreeMap::new(),
        };
        Disclosure {
            table: table.into(),
            attributes: names(&format!("{known} {sensitive}")),
            protection: RecordedProtection::Guarding(vec![guard]),
            partial: false,
            unproven: None,
        }
    }

    fn rule(known: &str, sensitive: &str) -> ActiveRule {
        ActiveRule {
            pointer: Some("/method/rules/0".to_owned()),
            quasi_identifiers: names(known),
            sensitive: sensitive.into(),
            combination: Vec::new(),
            guarantee: Guarantee::LDiversity { l: 2 },
            excludable: Vec::new(),
            taxonomy: None,
        }
    }

    fn earlier(disclosures: &[Disclosure], rules: &[ActiveRule]) -> EarlierDisclosures {
        let release = Uuid::from_u128(7);
        EarlierDisclosures {
            disclosures: disclosures.iter().map(|d| (release, d.clone())).collect(),
            rules: rules.iter().map(|r| (release, r.clone())).collect(),
            external: BTreeMap::new(),
            releases: EarlierReleases::default(),
            identities: AttributeIdentities::default(),
        }
    }

    fn raw(attrs: &[u8]) -> TableSchema {
        TableSchema { attributes: attrs.iter().map(|&a| Attr(a)).collect(), guards: vec![] }
    }

    #[test]
    fn check_without_earlier_disclosures_passes() {
        let union = LedgerUnion::new(&names("age zip"), &EarlierDisclosures::default()).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]), Ok(()));
    }

    #[test]
    fn check_plain_table_that_closes_a_path_names_it() {
        let earlier = earlier(&[plain("t1", "age ward")], &[rule("age", "disease")]);
        let union = LedgerUnion::new(&names("ward disease"), &earlier).unwrap();
        let violations = union.check(&[raw(&[0, 1])], &[], &[]).unwrap_err();
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].release, Uuid::from_u128(7));
        assert_eq!(violations[0].rule, (Some(Uuid::from_u128(7)), Some("/method/rules/0".to_owned())));
        let path = [(Some(Uuid::from_u128(7)), "t1".to_owned(), names("age")), (None, "t1".to_owned(), names("ward"))];
        assert_eq!(violations[0].path, path);
    }

    #[test]
    fn check_table_without_sensitive_attribute_passes() {
        let earlier = earlier(&[guarding("t1", "age ward", "disease")], &[rule("age", "disease")]);
        let union = LedgerUnion::new(&names("age ward sex"), &earlier).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1, 2])], &[], &[]), Ok(()));
    }

    #[test]
    fn check_exact_sensitive_attribute_is_a_conflict() {
        let earlier = earlier(&[guarding("t1", "age ward", "disease")], &[rule("age", "disease")]);
        let union = LedgerUnion::new(&names("ward disease"), &earlier).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]).unwrap_err().len(), 1);
    }

    #[test]
    fn check_second_bucketization_is_a_conflict() {
        let earlier = earlier(&[guarding("t1", "age", "disease")], &[rule("age", "disease")]);
        let union = LedgerUnion::new(&names("ward disease"), &earlier).unwrap();
        let guarantee = Guarantee::LDiversity { l: 2 };
        let known = AttrSet::one(Attr(0));
        let again = TableSchema {
            attributes: AttrSet::first(2),
            guards: vec![Guard { known, protects: Protected::Attribute(Attr(1)), guarantee }],
        };
        let new = PrivacyRule { known, sensitive: Attr(1), guarantee };
        let violations = union.check(&[again], &[], &[(Some("/method/rules/3".to_owned()), new.into())]).unwrap_err();
        assert_eq!(violations[0].rule, (None, Some("/method/rules/3".to_owned())));
        assert!(violations[0].path.is_empty());
    }

    #[test]
    fn check_attribute_of_exclusive_table_is_a_conflict() {
        let exclusive = Disclosure { protection: RecordedProtection::Exclusive, ..plain("t1", "age ward") };
        let union = LedgerUnion::new(&names("ward sex"), &earlier(&[exclusive], &[])).unwrap();
        assert!(union.check(&[raw(&[0, 1])], &[], &[]).is_err());
        assert_eq!(union.check(&[raw(&[1])], &[], &[]), Ok(()));
    }

    #[test]
    fn check_attribute_of_joined_exclusive_table_is_a_conflict() {
        let exclusive = Disclosure { protection: RecordedProtection::Exclusive, ..plain("t1", "name job") };
        let mut earlier = earlier(&[plain("t1", "job disease"), plain("t1", "town"), exclusive], &[]);
        for (at, (release, _)) in earlier.disclosures.iter_mut().enumerate() {
            *release = Uuid::from_u128(at as u128);
        }
        let union = LedgerUnion::new(&names("disease town year"), &earlier).unwrap();
        // a join of the first two extends to the new one
        let violations = union.check(&[raw(&[0, 2])], &[], &[]).unwrap_err();
        assert_eq!(violations[0].release, Uuid::from_u128(0));
        assert_eq!(union.check(&[raw(&[1, 2])], &[], &[]), Ok(()));
        // without a proof there is no promise about the join
        earlier.disclosures[2].1.unproven = Some("for a test".to_owned());
        let union = LedgerUnion::new(&names("disease town year"), &earlier).unwrap();
        assert_eq!(union.check(&[raw(&[0, 2])], &[], &[]), Ok(()));
    }

    #[test]
    fn check_determinant_of_exclusive_table_is_a_conflict() {
        let exclusive = Disclosure { protection: RecordedProtection::Exclusive, ..plain("t1", "age ward") };
        let mut union = LedgerUnion::new(&names("room sex ward"), &earlier(&[exclusive], &[])).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]), Ok(()));
        let room = crate::privacy::Dependency { determinant: AttrSet::one(Attr(0)), dependent: Attr(2) };
        union.assume(&[], &[room]);
        assert!(union.check(&[raw(&[0, 1])], &[], &[]).unwrap_err()[0].detail.contains("by dependencies"));
        assert_eq!(union.check(&[raw(&[1])], &[], &[]), Ok(()));
        assert!(union.check(&[raw(&[1])], &[(0, "would be exclusive")], &[]).is_ok());
    }

    #[test]
    fn conflicting_pairs_lists_pairs_that_close_a_path() {
        let (t1, t2) = (guarding("t1", "age ward", "disease"), plain("t2", "ward sex"));
        let mut identities = AttributeIdentities::default();
        assert_eq!(shared_attributes(&identities, &t1, &t2), names("ward"));
        identities.alias("sex", "age").unwrap();
        assert_eq!(shared_attributes(&identities, &t1, &t2), names("age ward"));
        let all = names("age ward disease sex town");
        let refused = conflicting_pairs(&all, &earlier(&[t1, t2], &[rule("age", "disease")])).unwrap();
        // a path leads around the buckets by age - ward - sex, then disease; a town has no path yet
        let pairs =
            ["age disease", "ward disease", "disease sex"].map(|pair| <[String; 2]>::try_from(names(pair)).unwrap());
        assert_eq!(refused, pairs);
        assert_eq!(conflicting_pairs(&all, &EarlierDisclosures::default()), Ok(Vec::new()));
    }

    #[test]
    fn check_part_of_a_joint_value_is_a_conflict() {
        let mut disclosed = guarding("t1", "age ward", "disease drug");
        if let RecordedProtection::Guarding(guards) = &mut disclosed.protection {
            guards[0].joint = true;
        }
        let promised = ActiveRule { combination: names("disease drug"), ..rule("age", "disease") };
        // the stored form
        let kept = serde_json::to_value(&promised).unwrap();
        assert_eq!(serde_json::from_value::<ActiveRule>(kept.clone()).unwrap(), promised);
        assert!(serde_json::to_value(rule("age", "disease")).unwrap().get("combination").is_none());
        let union = LedgerUnion::new(&names("age ward sex disease"), &earlier(&[disclosed], &[promised])).unwrap();
        assert!(union.rules.is_empty() && union.schemas[0].guards.len() == 1);
        assert_eq!(union.check(&[raw(&[0, 1, 2])], &[], &[]), Ok(()));
        for table in [raw(&[3]), raw(&[2, 3])] {
            let violations = union.check(&[table], &[], &[]).unwrap_err();
            assert!(violations[0].detail.contains("disease, drug"), "{}", violations[0].detail);
        }
        // an attribute of a bucketized combination is bucketized
        let guarantee = Guarantee::LDiversity { l: 2 };
        let guard = Guard { known: AttrSet::one(Attr(2)), protects: Protected::Attribute(Attr(3)), guarantee };
        let again = TableSchema { attributes: guard.known.with(Attr(3)), guards: vec![guard] };
        assert!(union.check(&[again], &[], &[]).unwrap_err()[0].detail.contains("disease was bucketized before"));
    }

    #[test]
    fn check_attribute_of_partial_table_is_a_conflict() {
        let partial = Disclosure { partial: true, ..guarding("t1", "age ward", "disease") };
        let kept = serde_json::to_value(&partial).unwrap();
        assert_eq!(serde_json::from_value::<Disclosure>(kept).unwrap(), partial);
        let union = LedgerUnion::new(&names("ward sex"), &earlier(&[partial], &[rule("age", "disease")])).unwrap();
        let violations = union.check(&[raw(&[0, 1])], &[], &[]).unwrap_err();
        assert!(violations[0].detail.contains("lacks some rows"), "{}", violations[0].detail);
        assert_eq!(union.check(&[raw(&[1])], &[], &[]), Ok(()));
        let union = LedgerUnion::new(&names("ward sex"), &earlier(&[plain("t1", "ward")], &[])).unwrap();
        assert!(union.check(&[raw(&[0, 1])], &[(0, "would lack some rows")], &[]).is_err());
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]), Ok(()));
        assert_eq!(union.check(&[raw(&[1])], &[(0, "would lack some rows")], &[]), Ok(()));
    }
}

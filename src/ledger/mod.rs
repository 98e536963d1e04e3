//! What was published before, and whether a new release may stand beside it. Pure.
//!
//! The ledger keeps a [`Disclosure`] for every published table and every rule that was promised. A new release is judged
//! together with all of them: the union must be in Guardian Normal Form for every protection and every new rule, with guards
//! as guards (`PRIVACY`, composition). Attributes are identified by the dataset's names, never by published ones.

mod aside;
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

/// What the ledger keeps of a published table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Disclosure {
    /// The name of the table in its release.
    pub table: String,
    /// Its attributes.
    pub attributes: Vec<String>,
    /// What it is worth beside other tables.
    pub protection: RecordedProtection,
    /// Whether rows may be missing from it: beside a table that has them all, they would be told from the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Why it was published without proof, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<String>,
}

/// The protection of a disclosed table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedProtection {
    /// Exact tuples.
    Plain,
    /// Guarantees by itself.
    Guarding(Vec<RecordedGuard>),
    /// Neither.
    Exclusive,
}

/// A guard of a disclosed table.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct RecordedGuard {
    /// The attributes that may be known.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes.
    pub sensitive: Vec<String>,
    /// Whether only their joint value is protected.
    pub joint: bool,
    /// What holds.
    pub guarantees: Vec<Guarantee>,
    /// Values of protected attributes that an insider can rule out without harm.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excludable: BTreeMap<String, Vec<Option<String>>>,
    /// Of protected attributes with a guarantee that goes by a taxonomy, which one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taxonomies: BTreeMap<String, String>,
}

/// A rule that a release promised.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ActiveRule {
    /// Where its specification stated it; `None` for one that follows from a dependency.
    pub pointer: Option<String>,
    /// The quasi-identifiers.
    pub quasi_identifiers: Vec<String>,
    /// The sensitive attribute; of a combination one of them.
    pub sensitive: String,
    /// All attributes of a combination of which only the joint value is protected; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combination: Vec<String>,
    /// The bound.
    pub guarantee: Guarantee,
    /// Values of the sensitive attribute that an insider can rule out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludable: Vec<Option<String>>,
    /// The taxonomy that the bound goes by, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<String>,
}

/// Where the rows of a table are that was published elsewhere, and entered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExternalRowsRef {
    /// The dataset that holds them, if one does.
    pub dataset: Option<Uuid>,
    /// The labels of each attribute that is published generalized; `None` is the missing value.
    pub cuts: BTreeMap<String, Vec<Option<String>>>,
}

/// Everything the ledger holds of the same people.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EarlierDisclosures {
    /// Disclosures, each with the release it belongs to.
    pub disclosures: Vec<(Uuid, Disclosure)>,
    /// Standing rules, each with the release that promised it.
    pub rules: Vec<(Uuid, ActiveRule)>,
    /// Of the disclosures that were entered, by id, where their rows are.
    pub entered: BTreeMap<Uuid, ExternalRowsRef>,
    /// What was read back of the releases that a new one names, to be joined with it.
    pub beside: EarlierReleases,
    /// What was stated of their attributes.
    pub identities: AttributeIdentities,
}

impl EarlierDisclosures {
    /// The names of attributes in disclosures and rules, as they come, some of them often.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let of_disclosures = self.disclosures.iter().flat_map(|(_, disclosure)| &disclosure.attributes);
        let of_rules = self
            .rules
            .iter()
            .flat_map(|(_, rule)| rule.quasi_identifiers.iter().chain([&rule.sensitive]).chain(&rule.combination));
        of_disclosures.chain(of_rules).map(String::as_str)
    }
}

/// Why a release may not stand beside earlier ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompositionViolation {
    /// The rule that would break: its release (`None`: the new one) and pointer.
    pub rule: (Option<Uuid>, Option<String>),
    /// The earlier release that stands in the way.
    pub release: Uuid,
    /// A path from known attributes to the sensitive one: release (`None`: the new one), table, the attributes through which
    /// the path enters it. Empty when the reason is a second bucketization.
    pub path: Vec<(Option<Uuid>, String, Vec<String>)>,
    /// The reason in words.
    pub detail: String,
}

/// Together, the releases have more attributes than one check can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyAttributesError(pub usize);

/// What the ledger keeps of the taxonomy of an attribute, where a bound goes by it.
#[must_use]
pub fn taxonomy_of(attribute: Attr, guarantee: Guarantee, taxonomies: &[DeclaredTaxonomy]) -> Option<String> {
    let stated =
        taxonomies.iter().find(|stated| stated.attribute == attribute).filter(|_| aside::uses_taxonomy(guarantee));
    stated.map(|stated| digest(&stated.tree))
}

fn digest(tree: &Taxonomy) -> String {
    tree.digest().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the ledger will keep of a publication, `names` being the dataset's names of its attributes.
#[must_use]
pub fn disclosures(
    publication: &Publication,
    names: &[String],
    (excludable, taxonomies): (&[ExcludedValues], &[DeclaredTaxonomy]),
) -> Vec<Disclosure> {
    let aside = |protected: AttrSet| {
        let of = excludable.iter().filter(move |stated| protected.contains(stated.attribute));
        of.map(|stated| (names[stated.attribute.index()].clone(), stated.values.clone())).collect()
    };
    let along = |guard: &TableGuard| {
        let of = |attr: Attr| {
            let digest = guard.guarantees.iter().find_map(|guarantee| taxonomy_of(attr, *guarantee, taxonomies));
            digest.map(|digest| (names[attr.index()].clone(), digest))
        };
        guard.protects.attributes().iter().filter_map(of).collect()
    };
    let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].clone()).collect();
    let keep = |protection: &TableProtection| match protection {
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
                    excludable: aside(guard.protects.attributes()),
                    taxonomies: along(guard),
                })
                .collect(),
        ),
    };
    // slicing leaves no row out, whatever stands beside what it protects
    let is_sliced = matches!(publication.method_details, MethodDetails::Slicing { .. });
    let tables = publication.tables.iter();
    tables
        .map(|table| Disclosure {
            table: table.name.0.clone(),
            attributes: named(table.attributes()),
            protection: keep(&table.protection),
            partial: publication.suppressed > 0 || (!is_sliced && knows_beside(table)),
            unproven: None,
        })
        .collect()
}

/// Whether a guard of a bucketized table takes as known what stands in one part with what it protects: such tables may lack rows,
/// and that they do not tells of the data.
fn knows_beside(table: &PublishedTable) -> bool {
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
            entered: BTreeMap::new(),
            beside: EarlierReleases::default(),
            identities: AttributeIdentities::default(),
        }
    }

    fn raw(attrs: &[u8]) -> TableSchema {
        TableSchema { attributes: attrs.iter().map(|&a| Attr(a)).collect(), guards: vec![] }
    }

    #[test]
    fn nothing_earlier_is_in_nothings_way() {
        let union = LedgerUnion::new(&names("age zip"), &EarlierDisclosures::default()).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]), Ok(()));
    }

    #[test]
    fn a_plain_table_that_closes_a_path_is_refused_with_the_path() {
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
    fn a_table_that_leaves_the_guardian_alone_is_admitted() {
        let earlier = earlier(&[guarding("t1", "age ward", "disease")], &[rule("age", "disease")]);
        let union = LedgerUnion::new(&names("age ward sex"), &earlier).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1, 2])], &[], &[]), Ok(()));
    }

    #[test]
    fn the_sensitive_attribute_raw_beside_its_buckets_is_refused() {
        let earlier = earlier(&[guarding("t1", "age ward", "disease")], &[rule("age", "disease")]);
        let union = LedgerUnion::new(&names("ward disease"), &earlier).unwrap();
        assert_eq!(union.check(&[raw(&[0, 1])], &[], &[]).unwrap_err().len(), 1);
    }

    #[test]
    fn a_second_bucketization_is_refused_even_when_nothing_is_shared() {
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
    fn an_unsealed_table_tolerates_no_other_that_shares_an_attribute() {
        let exclusive = Disclosure { protection: RecordedProtection::Exclusive, ..plain("t1", "age ward") };
        let union = LedgerUnion::new(&names("ward sex"), &earlier(&[exclusive], &[])).unwrap();
        assert!(union.check(&[raw(&[0, 1])], &[], &[]).is_err());
        assert_eq!(union.check(&[raw(&[1])], &[], &[]), Ok(()));
    }

    #[test]
    fn what_was_joined_with_an_unsealed_table_tolerates_no_other() {
        let exclusive = Disclosure { protection: RecordedProtection::Exclusive, ..plain("t1", "name job") };
        let mut earlier = earlier(&[plain("t1", "job disease"), plain("t1", "town"), exclusive], &[]);
        for (at, (release, _)) in earlier.disclosures.iter_mut().enumerate() {
            *release = Uuid::from_u128(at as u128);
        }
        let union = LedgerUnion::new(&names("disease town year"), &earlier).unwrap();
        // whoever joins the first two joins the new one, too
        let violations = union.check(&[raw(&[0, 2])], &[], &[]).unwrap_err();
        assert_eq!(violations[0].release, Uuid::from_u128(0));
        assert_eq!(union.check(&[raw(&[1, 2])], &[], &[]), Ok(()));
        // nothing was proved of what was published without proof
        earlier.disclosures[2].1.unproven = Some("for a test".to_owned());
        let union = LedgerUnion::new(&names("disease town year"), &earlier).unwrap();
        assert_eq!(union.check(&[raw(&[0, 2])], &[], &[]), Ok(()));
    }

    #[test]
    fn an_unsealed_table_tolerates_none_that_tells_what_it_has() {
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
    fn an_overview_names_the_pairs_that_would_be_refused() {
        let (t1, t2) = (guarding("t1", "age ward", "disease"), plain("t2", "ward sex"));
        let mut identities = AttributeIdentities::default();
        assert_eq!(shared_attributes(&identities, &t1, &t2), names("ward"));
        identities.alias("sex", "age").unwrap();
        assert_eq!(shared_attributes(&identities, &t1, &t2), names("age ward"));
        let all = names("age ward disease sex town");
        let refused = conflicting_pairs(&all, &earlier(&[t1, t2], &[rule("age", "disease")])).unwrap();
        // whatever leads around the buckets: age - ward - sex, then disease; a town tells of neither yet
        let pairs =
            ["age disease", "ward disease", "disease sex"].map(|pair| <[String; 2]>::try_from(names(pair)).unwrap());
        assert_eq!(refused, pairs);
        assert_eq!(conflicting_pairs(&all, &EarlierDisclosures::default()), Ok(Vec::new()));
    }

    #[test]
    fn a_joint_value_stays_together_and_in_one_table() {
        let mut disclosed = guarding("t1", "age ward", "disease drug");
        if let RecordedProtection::Guarding(guards) = &mut disclosed.protection {
            guards[0].joint = true;
        }
        let promised = ActiveRule { combination: names("disease drug"), ..rule("age", "disease") };
        // as it is kept
        let kept = serde_json::to_value(&promised).unwrap();
        assert_eq!(serde_json::from_value::<ActiveRule>(kept.clone()).unwrap(), promised);
        assert!(serde_json::to_value(rule("age", "disease")).unwrap().get("combination").is_none());
        let union = LedgerUnion::new(&names("age ward sex disease"), &earlier(&[disclosed], &[promised])).unwrap();
        assert!(union.rules.is_empty() && union.schemas[0].guards.len() == 1);
        assert_eq!(union.check(&[raw(&[0, 1, 2])], &[], &[]), Ok(()));
        for beside in [raw(&[3]), raw(&[2, 3])] {
            let violations = union.check(&[beside], &[], &[]).unwrap_err();
            assert!(violations[0].detail.contains("disease, drug"), "{}", violations[0].detail);
        }
        // what is bucketized in a combination is bucketized
        let guarantee = Guarantee::LDiversity { l: 2 };
        let guard = Guard { known: AttrSet::one(Attr(2)), protects: Protected::Attribute(Attr(3)), guarantee };
        let again = TableSchema { attributes: guard.known.with(Attr(3)), guards: vec![guard] };
        assert!(union.check(&[again], &[], &[]).unwrap_err()[0].detail.contains("disease was bucketized before"));
    }

    #[test]
    fn a_table_that_lacks_rows_shares_no_attribute() {
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

//! Closed vocabularies of documents: each enum holds the texts that manifests, plans and the store may contain.

/// A text that is no member of the vocabulary it was read for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the text names no {0}")]
pub struct VocabularyError(pub(crate) &'static str);

/// Declares an enum whose members documents write as text, with its conversions from and to the texts.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident: $noun:literal { $($(#[$doc:meta])* $member:ident = $text:tt,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[derive(serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $member,)+
        }

        impl $name {
            /// Every member, in the order of the declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$member),+];

            /// Text of the member in documents.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl TryFrom<&str> for $name {
            type Error = $crate::publication::VocabularyError;

            fn try_from(text: &str) -> Result<Self, Self::Error> {
                let member = Self::ALL.into_iter().find(|member| member.as_str() == text);
                member.ok_or($crate::publication::VocabularyError($noun))
            }
        }
    };
}

pub(crate) use vocabulary;

vocabulary! {
    /// The state of a release after its commit. `held` waits for an approval; `rejected` and `withdrawn` are answered 410.
    ReleaseStatus: "status of a release" {
        /// Recorded in the ledger; it waits for an approval.
        Held = "held",
        /// Readable by every caller of its tenant.
        Published = "published",
        /// Refused by an officer while it was held.
        Rejected = "rejected",
        /// No longer served; its disclosures stay in the ledger.
        Withdrawn = "withdrawn",
    }
}

impl ReleaseStatus {
    /// Whether callers may read the parts; those of a held release need the scope to approve it.
    #[must_use]
    pub const fn is_served(self) -> bool {
        matches!(self, Self::Held | Self::Published)
    }

    /// Whether `next` is a later status in the life of a release.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Held, Self::Published | Self::Rejected | Self::Withdrawn) | (Self::Published, Self::Withdrawn)
        )
    }
}

vocabulary! {
    /// The state of a disclosure in the ledger; it counts in each of them.
    DisclosureStatus: "status of a disclosure" {
        /// Its release is held.
        Reserved = "reserved",
        /// Its release is served.
        Published = "published",
        /// Its release is no longer served.
        Withdrawn = "withdrawn",
    }
}

vocabulary! {
    /// The earlier releases that a release was checked against.
    CompositionMode: "mode of composition" {
        /// All of the tenant, or these are about other persons: by their keys, or by statements.
        Enforced = "enforced",
        /// As `enforced` within the population; whether other populations have persons of it is unknown.
        WithinPopulation = "within_population",
        /// None, on a statement of the caller.
        Unproven = "unproven",
        /// None, because there was no ledger.
        None = "none",
        /// Those of this very table, and of its series where it has no population. Persons are not identified.
        SameDatasetOnly = "same_dataset_only",
    }
}

vocabulary! {
    /// By what the persons of a dataset are known.
    PersonsKnown: "knowledge of persons" {
        /// By their keys.
        Identified = "identified",
        /// By the content of the table alone.
        ContentOnly = "content_only",
    }
}

vocabulary! {
    /// What a statement says of the persons of two populations or tables.
    StatementKind: "kind of statement" {
        /// They have no person in common.
        Disjoint = "disjoint",
        /// They are about other persons though their cells are alike.
        Others = "others",
    }
}

vocabulary! {
    /// Whose rows of a dataset are published.
    PublishedPeople: "choice of persons" {
        /// Of all persons.
        All = "all",
        /// Of those of whom nothing was published before.
        Unpublished = "unpublished",
    }
}

vocabulary! {
    /// Among which releases persons were looked for.
    IdentityScope: "scope of identity" {
        /// Those of the tenant.
        Tenant = "tenant",
    }
}

vocabulary! {
    /// Outcome of the composition check of a plan.
    CompositionVerdict: "verdict of the composition check" {
        /// No rule breaks.
        Safe = "safe",
        /// A rule of this or an earlier release breaks.
        Violated = "violated",
        /// The tables are not known yet, or the data subjects are not known.
        Undecidable = "undecidable",
        /// Another series holds records of the same data subjects.
        Overlapping = "overlapping",
    }
}

vocabulary! {
    /// The method of a release.
    MethodKind: "method" {
        /// Decomposition into tables in Guardian Normal Form.
        Versatile = "versatile",
        /// Buckets of l different sensitive values.
        Anatomy = "anatomy",
        /// Buckets whose sizes follow thresholds of the values.
        Bucketize = "bucketize",
        /// Several sensitive attributes, one of which makes the buckets.
        Decompose = "decompose",
        /// Classes with generalized cells.
        Generalize = "generalize",
        /// Generalization that is checked on the join with earlier releases.
        Sequential = "sequential",
        /// Columns of attributes, permuted within buckets.
        Slicing = "slicing",
    }
}

vocabulary! {
    /// The algorithm by which versatile publishing finds its tables.
    ///
    /// # Citations
    /// [Jin et al. 2010, Algorithms 1 to 3]
    Algorithm: "algorithm" {
        /// Utility-aware decomposition: from the rules alone (Algorithm 2).
        Uad = "uad",
        /// Guardian decomposition: greedy, by the information in the tables (Algorithm 1, corrected).
        Gd = "gd",
        /// One table for each attribute.
        SingleAttribute = "single_attribute",
        /// One table, bucketized on all sensitive attributes together (Algorithm 3).
        MultiSa = "multi_sa",
        /// The better of UAD and GD within a work budget.
        Auto = "auto",
    }
}

vocabulary! {
    /// A limit on the adversary that a guarantee assumes.
    ///
    /// # Citations
    /// [Wong et al. 2007]
    AdversaryModel: "model of the adversary" {
        /// The adversary draws no conclusion from the choice of the tables, in which the data had a part.
        WithoutMinimality = "without minimality",
    }
}

vocabulary! {
    /// Reason for which a rule is listed.
    RuleOrigin: "origin of a rule" {
        /// The caller declared it, and it is enforced.
        Submitted = "submitted",
        /// The caller declared it, and another rule implies it.
        ImpliedBy = "implied_by",
        /// A functional dependency that the adversary knows adds it.
        FromDependency = "from_dependency",
    }
}

vocabulary! {
    /// Outcome of a rule in a plan.
    PlanRuleStatus: "status of a planned rule" {
        /// The planned tables enforce it.
        Kept = "kept",
        /// Another rule implies it.
        Implied = "implied",
        /// No table can enforce it.
        Refused = "refused",
    }
}

vocabulary! {
    /// Kind of a published table, as documents name it.
    TableKind: "kind of a table" {
        /// Exact tuples without buckets.
        Marginal = "marginal",
        /// One part of known attributes, linked to sensitive parts by bucket.
        Bucketized = "bucketized",
        /// Columns of attributes, permuted within buckets.
        Sliced = "sliced",
        /// Rows in classes whose quasi-identifier cells are equal.
        Generalized = "generalized",
        /// Buckets of a decomposition: primary values, and sets of the other sensitive values.
        Decomposed = "decomposed",
        /// Joint sensitive values of a decomposition.
        Sensitive = "sensitive",
    }
}

vocabulary! {
    /// Kind of a table's protection when other tables are published of the same data subjects.
    ProtectionKind: "protection of a table" {
        /// Exact tuples without a guard.
        Plain = "plain",
        /// The table keeps its guards whatever else is published.
        Guarding = "guarding",
        /// The table keeps its guarantee only if no other table shares an attribute.
        Exclusive = "exclusive",
    }
}

vocabulary! {
    /// Kind of the rows of a part.
    RowKind: "kind of rows" {
        /// Each row is a tuple of the original.
        Tuples = "tuples",
        /// Each row is a tuple of the original, or a counterfeit.
        TuplesAndCounterfeits = "tuples_and_counterfeits",
        /// Each row is a distinct value of its bucket, and may be noise.
        Values = "values",
    }
}

vocabulary! {
    /// Scope in which a sliced table keeps its guarantee.
    #[derive(Default)]
    SlicedDiversity: "diversity of a sliced table" {
        /// Each bucket by itself: among its rows with equal values of all other attributes of the sensitive column.
        #[default]
        Bucket = "bucket",
        /// Each bucket, and all buckets weighted by the expected number of copies of the row.
        MixtureWeighted = "mixture_weighted",
        /// All buckets that match a row, weighted by the share of a bucket's combinations that equal the row.
        Mixture = "mixture",
    }
}

vocabulary! {
    /// The joins on which requirements are checked.
    #[derive(Default)]
    JoinSelection: "selection of joins" {
        /// The releases that a requirement names, these with any single other release, and all releases.
        #[default]
        Default = "default",
        /// Every set of releases that contains the named ones.
        All = "all",
    }
}

vocabulary! {
    /// Whether the verifier compared the parts with the secret assignment of rows to buckets.
    Linkage: "state of the linkage" {
        /// Both the original and the witness were available.
        Checked = "checked",
        /// The original or the witness was missing.
        NotChecked = "not_checked",
    }
}

impl Linkage {
    /// The linkage in a sentence for people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::NotChecked => "not checked",
        }
    }
}

vocabulary! {
    /// A check of the verifier.
    CheckName: "check" {
        /// Each part is the projection of the original that the witness records. Needs the original.
        Content = "content",
        /// The parts of a table agree on their buckets, which together hold all rows; labels reveal nothing.
        Buckets = "buckets",
        /// Every bucket satisfies the guards of its table; a sliced table satisfies its guarantee over all buckets, which needs the
        /// original.
        Guarantee = "guarantee",
        /// The tables are in Guardian Normal Form for all submitted rules, and each rule is enforced as claimed.
        Gnf = "gnf",
        /// Dependencies that the adversary knows allow no more inference than the rules: they are listed, buckets are constant where
        /// claimed, and no path over tables and dependencies leads around a guard. Only where any are known.
        Dependencies = "dependencies",
        /// Rows and labels are in canonical order.
        Order = "order",
        /// Parts hold exactly the values of the original.
        Dictionary = "dictionary",
        /// Parts have exactly the claimed columns and rows, and nothing else is published.
        Columns = "columns",
        /// Tables have the shape that their protection claims.
        Guards = "guards",
        /// A sequential release satisfies its requirements on the join with earlier ones. Needs the earlier releases.
        Requirements = "requirements",
        /// Every file has the digest in the manifest.
        Digests = "digests",
        /// The figures of the manifest follow from the parts.
        Figures = "figures",
        /// No data subject has more rows than the unit of protection allows.
        Unit = "unit",
        /// A night of a republished table keeps what earlier nights promised. Needs the states of the population.
        Republication = "republication",
    }
}

impl CheckName {
    /// The checks of the verifier, in the order of an answer; the others compare a manifest with its parts.
    pub const OF_VERIFIER: [Self; 10] = [
        Self::Content,
        Self::Buckets,
        Self::Guarantee,
        Self::Gnf,
        Self::Dependencies,
        Self::Order,
        Self::Dictionary,
        Self::Columns,
        Self::Guards,
        Self::Requirements,
    ];
}

vocabulary! {
    /// How the model of the original is made from published tables; a later member is less exact.
    ModelKind: "kind of model" {
        /// A product over tables that form a join tree.
        ClosedForm = "closed_form",
        /// Iterative proportional fitting of tables that form no join tree.
        Fitted = "ipf",
        /// A product over some tables that form a join tree, because fitting all of them is too large.
        AcyclicSubset = "acyclic_subset",
    }
}

vocabulary! {
    /// The data that an attack reads.
    AttackInput: "input of an attack" {
        /// The published parts alone.
        Parts = "parts",
        /// The published parts and the original.
        Original = "original",
    }
}

vocabulary! {
    /// How a person of one night is recognized on another.
    PersonLink: "link of persons" {
        /// By the key in the tables.
        Keys = "keys",
        /// By the published cells, so that two persons with equal cells on different nights count as one.
        Cells = "cells",
    }
}

vocabulary! {
    /// The dependencies that the data was searched for.
    SearchedDependencies: "extent of a search for dependencies" {
        /// All with one or two determinants.
        SinglesAndPairs = "singles_and_pairs",
        /// All with one determinant, and as many with two as the work limit allows.
        SinglesAndSomePairs = "singles_and_some_pairs",
        /// All with one determinant.
        Singles = "singles",
        /// None.
        None = "none",
    }
}

vocabulary! {
    /// What a release makes of a dependency.
    DependencyUse: "use of a dependency" {
        /// Buckets are constant in one of its attributes.
        Strata = "strata",
        /// One of its attributes stands in a protected part.
        ProtectedPart = "protected_part",
        /// A rule follows from it.
        DerivedRule = "derived_rule",
        /// It lies on a path that strata, or the place of an attribute, cut.
        Path = "path",
    }
}

vocabulary! {
    /// Which knowledge of associations a rule holds against.
    AssumedAssociations: "extent of known associations" {
        /// Associations inside links: the attributes of one dependency.
        InLinks = "associations in links",
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::publication::{Divergence, PriorDistribution, Reference, RhoMode, ValueDistance};

    fn assert_read_back<T>(members: &[T])
    where
        T: Copy + PartialEq + Debug + Display + Serialize + DeserializeOwned,
        T: for<'a> TryFrom<&'a str, Error = VocabularyError>,
    {
        for member in members {
            let text = member.to_string();
            assert_eq!(serde_json::to_value(member).unwrap(), text.as_str());
            assert_eq!(serde_json::from_value::<T>(text.as_str().into()).unwrap(), *member);
            assert_eq!(T::try_from(text.as_str()), Ok(*member));
        }
        assert!(T::try_from("no member").is_err());
    }

    #[test]
    fn vocabulary_texts_read_back_equal() {
        assert_read_back(&ReleaseStatus::ALL);
        assert_read_back(&DisclosureStatus::ALL);
        assert_read_back(&SearchedDependencies::ALL);
        assert_read_back(&DependencyUse::ALL);
        assert_read_back(&AssumedAssociations::ALL);
        assert_read_back(&CompositionMode::ALL);
        assert_read_back(&CompositionVerdict::ALL);
        assert_read_back(&MethodKind::ALL);
        assert_read_back(&Algorithm::ALL);
        assert_read_back(&AdversaryModel::ALL);
        assert_read_back(&RuleOrigin::ALL);
        assert_read_back(&PlanRuleStatus::ALL);
        assert_read_back(&TableKind::ALL);
        assert_read_back(&ProtectionKind::ALL);
        assert_read_back(&RowKind::ALL);
        assert_read_back(&SlicedDiversity::ALL);
        assert_read_back(&JoinSelection::ALL);
        assert_read_back(&crate::publication::BreachKind::ALL);
        assert_read_back(&Linkage::ALL);
        assert_read_back(&CheckName::ALL);
        assert_read_back(&ModelKind::ALL);
        assert_read_back(&AttackInput::ALL);
        assert_read_back(&crate::publication::NoticeKind::ALL);
        assert_read_back(&Reference::ALL);
        assert_read_back(&ValueDistance::ALL);
        assert_read_back(&RhoMode::ALL);
        assert_read_back(&Divergence::ALL);
        assert_read_back(&PriorDistribution::ALL);
    }
}

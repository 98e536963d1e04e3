//! What the notices of plans, manifests and verifications are about.

use super::vocabulary::vocabulary;

vocabulary! {
    /// The subject of a notice in a plan, a manifest or a verification.
    NoticeKind: "kind of notice" {
        /// An algorithm was chosen by its score.
        AlgorithmChosen = "algorithm-chosen",
        /// An attribute stands in the protected part of a table, together with the sensitive one.
        AttributeMoved = "attribute-moved",
        /// A proposed schema publishes an attribute in no table.
        AttributeInNoTable = "attribute-in-no-table",
        /// A sequential release publishes attributes exactly.
        AttributesExact = "attributes-exact",
        /// Generalized attributes have the same cell in every row.
        AttributesSuppressed = "attributes-suppressed",
        /// No chain of tables relates some attributes: their associations are not published.
        AttributesUnrelated = "attributes-unrelated",
        /// The adversary may infer a value from the tables of a decomposition.
        CanBeConcluded = "can-be-concluded",
        /// Enough newcomers of a republished table wait because a value is too frequent among them.
        CohortIneligible = "cohort-ineligible",
        /// Columns of a sliced table share attributes.
        ColumnsShareAttributes = "columns-share-attributes",
        /// Values that follow from a decomposition.
        Concluded = "concluded",
        /// Inferences from a decomposition were too many to compute.
        ConclusionsNotComputed = "conclusions-not-computed",
        /// Counterfeits have values that other attributes of their bucket make unlikely.
        CounterfeitsUnlikely = "counterfeits-unlikely",
        /// The data is not searched for dependencies.
        DependenciesNotSearched = "dependencies-not-searched",
        /// An external release is judged by a necessary condition on its dependencies only.
        DependencyNecessaryOnly = "dependency-necessary-only",
        /// A declared dependency fails in more rows than the tolerance allows.
        DependencyDoesNotHold = "dependency-does-not-hold",
        /// A guarantee holds over all buckets that match a row, not in each one.
        DiversityByMixture = "diversity-by-mixture",
        /// Distances of classes were not computed.
        DistancesNotComputed = "distances-not-computed",
        /// The search for attributes that expose a sensitive one was cut short.
        ExposureNotComplete = "exposure-not-complete",
        /// The joint values of a decomposition exclude listed values of a bucket.
        ExcludableValues = "excludable-values",
        /// The caller publishes an attribute that looks like an identifier.
        IdentifierOverridden = "identifier-overridden",
        /// The persons of a dataset are not identified.
        IdentityContentOnly = "identity-content-only",
        /// It is unknown whether persons of these populations are in the release.
        PopulationsUnrelated = "populations-unrelated",
        /// An adversary who knows less of a target may learn more than the guarantee bounds.
        LessKnowledgeMayRevealMore = "less-knowledge-may-reveal-more",
        /// Buckets of a proposed table guard no rule.
        IdleBucketization = "idle-bucketization",
        /// The verifier assumes that every part of a bucket was permuted independently.
        IndependentShuffles = "independent-shuffles",
        /// Two tables were evaluated as one decomposition.
        JudgedTogether = "judged-together",
        /// Bucket labels of an external table may reveal links.
        Labels = "labels",
        /// An attribute has nearly as many values as the table has rows.
        MostlyDistinct = "mostly-distinct",
        /// The posterior of an attribute of a decomposition has no bound.
        NotBounded = "not-bounded",
        /// The tables are decided once the rows are read.
        NotDecided = "not-decided",
        /// Proposed tables form no join tree.
        NotDecomposable = "not-decomposable",
        /// A release that was to be held for an approval is made on the command line, where there is none.
        NotHeld = "not-held",
        /// Rows of a republished table are not published on this night.
        NotTonight = "not-tonight",
        /// Texts look like dates or amounts of another notation, and are compared as texts.
        NotationNotRead = "notation-not-read",
        /// One bucket holds all rows of a table.
        OneBucket = "one-bucket",
        /// Cells of an external table are compared as text.
        OpaqueCells = "opaque-cells",
        /// An equal job has a release already.
        ReleaseReused = "release-reused",
        /// The order of the rows of an external table may reveal links.
        RowOrder = "row-order",
        /// The service makes a release itself, from rows that it reads out of another engine.
        RowsReadHere = "rows-read-here",
        /// A rule of an earlier release no longer holds now that more is known.
        RuleWeakened = "rule-weakened",
        /// Some pairs of attributes were not searched for dependencies.
        SearchedPartly = "searched-partly",
        /// Attributes left the column of the sensitive attribute, which with them keeps no guarantee.
        SensitiveColumnNarrowed = "sensitive-column-narrowed",
        /// A sensitive attribute of a rule is in no table.
        SensitiveNotPublished = "sensitive-not-published",
        /// Cells of some attributes are formulas to a spreadsheet.
        SpreadsheetFormulas = "spreadsheet-formulas",
        /// Texts of too many values for sets are published as intervals.
        TextsInIntervals = "texts-in-intervals",
        /// Persons seem to have several rows, and each row counts as a person.
        SubjectUndeclared = "subject-undeclared",
        /// A dependency is withdrawn, and another one ties the same attributes.
        StillLinked = "still-linked",
        /// A bound of a sequential release is one on shares of tuples of a join, not on posteriors.
        TuplesCounted = "tuples-counted",
        /// An insider may exclude the missing value, and the caller did not declare it.
        UndeclaredMissing = "undeclared-missing",
        /// A part lists values without their counts.
        ValuesOnly = "values-only",
    }
}

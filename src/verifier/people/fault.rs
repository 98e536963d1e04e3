use thiserror::Error;

/// What the ledger would hold or claim wrongly of the people of a release. Names no value and no person.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PeopleClaimError {
    /// Published rows without a key.
    #[error("published rows have no key of {0}")]
    NoKey(String),
    /// A person with too many rows.
    #[error("a person has more rows by {0} than the dataset may have")]
    TooManyRows(String),
    /// Rows of persons of whom nothing is published are left out.
    #[error("rows are left out of persons of whom nothing is published")]
    LeftOut,
    /// The release is of other rows.
    #[error("the release has another number of rows than those of its persons")]
    OtherRows,
    /// The coverage is not of this dataset and its population.
    #[error("the coverage has other names than the dataset")]
    Names,
    /// The coverage is of a chain, and the release is not; or the other way round.
    #[error("the coverage has another chain than the release")]
    Chain,
    /// A mark differs, or one is missing or too many.
    #[error("the coverage has another {0}")]
    Mark(String),
    /// The coverage has other persons.
    #[error("the coverage has other persons by {0}")]
    Persons(String),
    /// Another release speaks of the same persons, or may do so.
    #[error("coverage {id} {how}")]
    Other {
        /// The other coverage.
        id: i64,
        /// How it stands to the release.
        how: OtherCoverageError,
    },
    /// The manifest names a statement that does not say so.
    #[error("statement {0} of the manifest is not recorded, or is not about its people")]
    Statement(String),
    /// The manifest claims more than is established.
    #[error("the manifest claims {0}, which is not established")]
    Claim(&'static str),
}

/// Why a release cannot stand with another coverage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OtherCoverageError {
    /// It shares persons.
    #[error("shares persons and is not of the same rows")]
    Overlap,
    /// It is of the same rows, and is left out of the union check.
    #[error("is of the same rows and was not judged together")]
    NotJoined,
    /// It is judged together and is of other rows.
    #[error("was judged together and is of other rows")]
    NotSame,
    /// Statement and evidence disagree.
    #[error("shares persons that a statement denies")]
    Contradicted,
    /// Nothing separates them.
    #[error("may be about the same persons")]
    Unknown,
    /// The separation rests on a statement that the manifest does not name.
    #[error("is separated by a statement that the manifest does not name")]
    Unnamed,
    /// Their cells say the same.
    #[error("has the same cells")]
    Alike,
    /// What joins it loses what was known of it.
    #[error("would lose what is known of it")]
    Forgets,
}

//! The error of a bucket with too many combinations of rows.

use crate::publish::slicing::sliced::SlicingError;

/// A bucket has too many combinations of rows to examine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct JoinTooDenseError;

impl From<JoinTooDenseError> for SlicingError {
    fn from(JoinTooDenseError: JoinTooDenseError) -> Self {
        Self::TooDense
    }
}

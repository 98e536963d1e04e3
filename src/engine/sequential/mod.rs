//! Earlier releases and external rows as the search for sequential releases needs them.

pub(super) mod earlier;
pub(crate) mod external;

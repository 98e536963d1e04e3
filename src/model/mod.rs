//! The reader's model of a publication: the one distribution over all attributes that says what the published tables say, and
//! nothing more. Of all distributions with the published marginals it has the largest entropy.
//!
//! Whatever is computed here is computed from what is published alone, but for what says that it tells of the original.

mod groups;
mod information;
mod tree;

pub use groups::Groups;
pub use information::{Buckets, entropy};
pub use tree::{Edge, JoinTree, View, maximal, mixed_separator};

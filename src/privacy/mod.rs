//! What must hold: rules, their reduction, guarantees, eligibility, Guardian Normal Form. Pure, no I/O.

mod dependencies;
mod eligibility;
mod gnf;
mod guarantee;
mod rule;

pub use dependencies::{Dependency, Effect, discover as discover_dependencies, effect as effect_of_dependencies};
pub use eligibility::{Ineligible, check as check_eligibility};
pub use gnf::{Guard, Schema, Status, Violation, judge, judge_all};
pub use guarantee::{Population, covers_combinations, distinct_rows, fewest_rows, holds, implies, strongest};
pub use rule::{Rule, reduce};

//! What must hold: rules, their reduction, guarantees, eligibility, Guardian Normal Form. Pure, no I/O.

mod dependencies;
mod eligibility;
mod expansion;
mod gnf;
mod guarantee;
mod rule;

pub use dependencies::{Dependency, discover as discover_dependencies};
pub use eligibility::{Ineligible, check as check_eligibility};
pub use expansion::{Derived, Expansion, TooManyRules, expand};
pub use gnf::{Guard, Schema, Status, Violation, judge, judge_all, judge_demand};
pub use guarantee::{Population, distinct_rows, fewest_rows, holds, implies, strongest};
pub use rule::{Demand, Rule, reduce};

//! Privacy requirements: rules and their reduction, guarantees, eligibility, Guardian Normal Form.
//!
//! Pure, without I/O.

mod dependencies;
mod discovery;
mod eligibility;
mod expansion;
mod exposure;
mod gnf;
mod guarantee;
pub mod links;
mod rule;

pub use dependencies::Dependency;
pub use discovery::{
    CountedColumns, CountedEvidence, DeterminingEnd, DiscoveredDependency, Discovery, DiscoveryOptions, DiscoveryScope,
    EndColumn, SearchedScope, TyingColumn, ValueFrequency, discover_dependencies, discover_dependencies_across,
    discover_tying_columns, measure_dependency,
};
pub use eligibility::{IneligibilityReason, check as check_eligibility, largest_l};
pub use expansion::{DerivedRule, ExpansionError, RuleExpansion, expand};
pub use exposure::{ProxyAttribute, WorkBudget, distinct_tuples, mostly_determines, proxies, singling_out};
pub use gnf::{GnfViolation, Guard, PathStep, RuleStatus, TableSchema, judge, judge_all, judge_demand, leak};
pub use guarantee::{OverallCounts, distinct_rows, fewest_rows, holds, implies, strongest};
pub use rule::{PrivacyRule, RuleDemand, reduce};

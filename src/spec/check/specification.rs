//! The specification of a job, over the attributes of its dataset.

use std::time::Duration;

use serde_json::Value;

use crate::microdata::{Attr, AttrSet};
use crate::problem::Fault;
use crate::publication::{DeclaredInputs, DeclaredTaxonomy, DeclaredThresholds, ExcludedValues, NoticeKind, Unit};
use crate::spec::grammar::general::PeopleChoice;
use crate::spec::grammar::republish::RepublishSpec;
use crate::spec::grammar::utility::InternalUtility;
use crate::spec::methods::method::MethodSpec;
use crate::spec::methods::types::{AssumedKnowledge, AssumedUnknown, DeclaredDependency};

/// A document as it was read, with every fault.
#[derive(Clone, PartialEq, Debug)]
pub struct ParsedDocument {
    /// The specification. It is present also with faults, when well-formed rules can still be checked for eligibility.
    /// It may start a job only when there are no faults.
    pub specification: Option<Specification>,
    /// Every fault, ordered by pointer.
    pub faults: Vec<Fault>,
}

/// A specification, resolved against the columns of its dataset.
#[derive(Clone, PartialEq, Debug)]
pub struct Specification {
    /// The positions of the columns that are published, in column order; attribute `i` is column `used[i]`.
    pub used: Vec<usize>,
    /// The dataset's names of the attributes.
    pub names: Vec<String>,
    /// The published names of the attributes.
    pub published_names: Vec<String>,
    /// The names of dropped columns in declared dependencies. As attributes they follow all others.
    pub dropped_names: Vec<String>,
    /// All attributes.
    pub attributes: AttrSet,
    /// The method, over the attributes.
    pub method: MethodSpec,
    /// What the adversary is assumed to know of the data.
    pub knowledge: AssumedKnowledge,
    /// The tables to be judged in place of those that the method would find.
    pub schema: Option<Vec<ProposedTable>>,
    /// The job's place in the queue, -100 to 100.
    pub priority: i32,
    /// How long the job may take.
    pub deadline: Option<Duration>,
    /// Why the job was submitted.
    pub reason: Option<String>,
    /// Whose rows are published.
    pub people: PeopleChoice,
    /// The terms under which the table is published night after night, where it is.
    pub republish: Option<RepublishSpec>,
    /// Why the release is published without proof that it is safe with earlier ones, where it is.
    pub unproven: Option<String>,
    /// Whether the manifest states the entropy of the model.
    pub entropy: bool,
    /// The measures of the internal report. They have no effect on the release.
    pub internal: InternalUtility,
    /// Attributes for which the document has `"publish": true, "identifier": false`. All of them, not only those that were
    /// detected: which ones were would say something of the data.
    pub overridden_identifiers: Vec<Attr>,
    /// Values that an insider can rule out, per attribute that has some.
    pub excludable: Vec<ExcludedValues>,
    /// The taxonomies of attributes that have one, in the order of attributes.
    pub taxonomies: Vec<DeclaredTaxonomy>,
    /// The thresholds that rules put on values of attributes, where their guarantees name some.
    pub thresholds: Vec<DeclaredThresholds>,
    /// The unit of protection; the rules are those for rows.
    pub unit: Unit,
    /// Warnings for the plan.
    pub warnings: Vec<SpecWarning>,
    /// The document as it was read.
    pub document: Value,
    /// The document with defaults filled in and rules in object form; a rule that cannot be read stands as it is.
    pub normalized: Value,
    /// What enters the reuse key: `normalized` without what has no effect on the release. Columns that are not published
    /// are not named in it, however they were dropped. Serialize it with sorted members.
    pub reuse_form: Value,
}

impl Specification {
    /// What a manifest repeats of the declarations on values and units.
    #[must_use]
    pub fn declared_inputs(&self) -> DeclaredInputs<'_> {
        DeclaredInputs {
            excluded: &self.excludable,
            taxonomies: &self.taxonomies,
            thresholds: &self.thresholds,
            unit: &self.unit,
        }
    }

    /// The dependencies that the adversary knows, as declared.
    #[must_use]
    pub fn declared(&self) -> &[DeclaredDependency] {
        &self.knowledge.declared
    }

    /// The dependencies that the adversary is assumed not to know.
    #[must_use]
    pub fn assumed_unknown(&self) -> &[AssumedUnknown] {
        &self.knowledge.assumed_unknown
    }
}

/// A proposed table that a plan checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProposedTable {
    /// All its attributes.
    pub attributes: AttrSet,
    /// The one of them on which it would be bucketized; `None`: whole tuples.
    pub sensitive: Option<Attr>,
}

/// A permitted choice that deserves attention.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecWarning {
    /// What it is about, as a JSON pointer.
    pub pointer: Option<String>,
    /// A stable name.
    pub type_: NoticeKind,
    /// For people. No value of the data.
    pub detail: String,
}

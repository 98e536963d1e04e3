//! The one catalogue of refusals (RFC 9457). Every layer's error becomes a [`Problem`] once; the HTTP answers, the failed
//! jobs, the command line, the OpenAPI document and `docs/problems.md` are all made from it.
//!
//! No problem carries a value of the data: names of attributes, row numbers, counts and pointers only.

mod ingest;
mod page;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use page::page;

/// The prefix of every problem type.
pub const TYPE_PREFIX: &str = "https://guardian.invalid/problems/";

macro_rules! catalogue {
    ($($variant:ident, $name:literal, $status:literal, $title:literal, $remedy:literal;)*) => {
        /// A kind of problem.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Kind {
            $(#[doc = $title] $variant,)*
        }

        impl Kind {
            /// Every kind, in the catalogue's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name, the last segment of the type.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// A short text, the same for every occurrence.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// What a caller can do about it.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

catalogue! {
    MalformedRequest, "malformed-request", 400, "malformed request",
        "correct the query parameter or header that the detail names";
    MalformedBody, "malformed-body", 400, "the body is not the expected JSON",
        "send one JSON object in UTF-8";
    DigestMismatch, "digest-mismatch", 400, "the body does not match its Content-Digest",
        "upload the file again; it was damaged on the way";
    Unauthenticated, "unauthenticated", 401, "no valid key",
        "send a key that works as Authorization: Bearer TOKEN";
    Forbidden, "forbidden", 403, "the key may not do this",
        "use a key with the scope that the problem names, or what the detail says";
    ForeignOrigin, "foreign-origin", 403, "request from a foreign origin",
        "call the service from its own pages or from a program, not from another site's page";
    HostRefused, "host-refused", 403, "the Host name is not served",
        "address the service as localhost, 127.0.0.1 or [::1]";
    NotFound, "not-found", 404, "not found",
        "check the id or the path";
    MethodNotAllowed, "method-not-allowed", 405, "method not allowed",
        "use a method that the Allow header lists";
    NotAcceptable, "not-acceptable", 406, "no acceptable format",
        "ask for a format that the detail lists";
    RequestTimeout, "request-timeout", 408, "the body came too slowly",
        "send the whole body again, faster or in smaller tables, or let the operator raise the limit";
    Conflict, "conflict", 409, "the resource is in another state",
        "read the resource again and act on its present state";
    IdempotencyConflict, "idempotency-conflict", 409, "the Idempotency-Key was used for another request",
        "send another key with another request, and the same key only with the same request";
    CompositionViolated, "composition-violated", 409, "an earlier release and this one together break a rule",
        "publish under rules that hold beside the earlier release, or use the earlier release";
    PriorReleaseViolates, "prior-release-violates", 409, "earlier releases break a requirement, whatever is published now",
        "ask for less; what is published cannot be taken back";
    SeriesUndeclared, "series-undeclared", 409, "another series speaks of the same people",
        "upload the dataset into the series that the problem names, or with same_people=false and a reason";
    OverlappingRowSets, "overlapping-row-sets", 409, "some people of the dataset were published before, and not all as they are now",
        "publish the added rows as a dataset of their own, or all rows as a new series where they are other people";
    CompositionUndecidable, "composition-undecidable", 409, "whether earlier releases and this one together break a rule cannot be told",
        "say what the detail asks for, or use the earlier release";
    Gone, "gone", 410, "the resource was removed",
        "it will not come back; upload the data again if it is still needed";
    TooLarge, "too-large", 413, "too large",
        "send less, or let the operator raise the limit";
    TooManyColumns, "too-many-columns", 413, "too many columns",
        "drop columns before uploading, or let the operator raise the limit";
    TooManyAttributes, "too-many-attributes", 413, "the job uses too many attributes",
        "drop attributes that need not be published";
    UnsupportedMediaType, "unsupported-media-type", 415, "unsupported media type",
        "send a type and an encoding that the detail lists";
    UploadMalformed, "upload-malformed", 422, "the uploaded table is malformed",
        "correct the record that row and column name; the first record under the header is row 1";
    EmptyTable, "empty-table", 422, "the table has no rows",
        "upload a table with a header and at least one record";
    InvalidSpecification, "invalid-specification", 422, "the specification has faults",
        "correct every member that errors points at";
    UnknownField, "unknown-field", 422, "unknown member",
        "remove the member or correct its spelling";
    ParameterRange, "parameter-range", 422, "a parameter is missing, of the wrong type or out of range",
        "use a value that allowed describes";
    ReservedName, "reserved-name", 422, "a published name is reserved or taken",
        "give the attribute another published name with rename";
    UnknownAttribute, "unknown-attribute", 422, "unknown attribute",
        "name an attribute of the dataset";
    UnknownPolicy, "unknown-policy", 422, "unknown policy",
        "name a policy and a version that GET /v1/policies/NAME/versions lists, as \"NAME-v3\"";
    UnknownTaxonomy, "unknown-taxonomy", 422, "unknown taxonomy",
        "name a taxonomy that GET /v1/taxonomies lists, as \"NAME\" or \"NAME-v3\", or state the tree itself";
    TaxonomyConflict, "taxonomy-conflict", 422, "a label stands for more than one node of a taxonomy",
        "give every value and every node of the tree a label of its own, and every value one place";
    TaxonomyValueMissing, "taxonomy-value-missing", 422, "values of an attribute are no leaves of its taxonomy",
        "add the values to the tree; values_url lists what the attribute holds";
    UnknownRelease, "unknown-release", 422, "unknown release",
        "name a published release of the same series and content, made of one table of tuples, that GET /v1/releases lists";
    UnclassifiedAttributes, "unclassified-attributes", 422, "attributes that the specification does not account for",
        "let each occur in a rule, or give it publish or drop, or set unlisted to drop";
    IdentifierPublished, "identifier-published", 422, "an identifier would be published",
        "drop it, or state publish true and identifier false for it";
    RuleMalformed, "rule-malformed", 422, "a rule is malformed",
        "write a rule as \"a, b -> c\", with different attributes on its two sides";
    ThresholdMissing, "threshold-missing", 422, "values without a threshold",
        "state a threshold for each value that values_url lists, or otherwise for all others";
    InfeasibleSizes, "infeasible-sizes", 422, "no buckets of these sizes keep the thresholds",
        "allow larger buckets with max_size, list other sizes, or raise thresholds";
    DomainTooSmall, "domain-too-small", 422, "too few values for counterfeits",
        "ask for fewer counterfeits, for smaller buckets, or for none";
    NoNoise, "no-noise", 422, "sensitive attributes have too few values together",
        "ask for less diversity of the attribute that the problem points at";
    MultiSaEmpty, "multi-sa-empty", 422, "no rows are left to publish",
        "ask for less diversity, protect fewer attributes, or use another algorithm, which keeps sensitive attributes apart";
    RuleIneligible, "rule-ineligible", 422, "the data cannot satisfy a rule",
        "ask for at most largest_l, or drop the sensitive attribute";
    InfeasibleRoot, "infeasible-root", 422, "not even the coarsest release holds what is asked",
        "ask for less, or let fewer attributes stand beside the sensitive one";
    ExclusionContradicted, "exclusion-contradicted", 422, "an exclusion is true of rows of the original",
        "leave it out, or state it more narrowly";
    JoinTooDense, "join-too-dense", 422, "too much would have to be told apart on a join",
        "let fewer attributes stand in x and y, or publish fewer that the releases share; of columns let fewer share attributes";
    RuleImpossible, "rule-impossible", 422, "a dependency that the adversary knows makes a rule impossible",
        "remove the rule, or do not publish the attributes that determine its sensitive one";
    NotGnf, "not-gnf", 422, "the proposed tables break a rule",
        "take out an attribute by which one of the paths goes on, or bucketize a table of each path on the sensitive attribute";
    DependencyExpansionLimit, "dependency-expansion-limit", 422, "too many rules follow from the dependencies",
        "declare fewer dependencies, or protect fewer attributes";
    VacuousGuarantee, "vacuous-guarantee", 422, "a guarantee that every table satisfies",
        "ask for a guarantee that protects, such as l of at least 2, and for at least one rule";
    GuaranteeUnsupported, "guarantee-unsupported", 422, "not supported here",
        "use what the detail names, or wait for a version that supports it";
    BadColumns, "bad-columns", 422, "the attributes do not fit the method",
        "choose attributes as the detail says";
    Deadline, "deadline", 422, "the job's deadline passed",
        "submit it again with a later deadline";
    TooManyRequests, "too-many-requests", 429, "too many requests of this kind at once",
        "wait as long as Retry-After says and try again";
    Quota, "quota", 429, "a quota is used up",
        "wait until some of what counts against the quota has ended, or let the operator raise it";
    WorkLimit, "work-limit", 422, "more work than is allowed",
        "ask for less, or let the operator raise the limit";
    AttemptsExhausted, "attempts-exhausted", 500, "the job was started too often without an end",
        "look for the reason in the service's log before submitting it again";
    Internal, "internal", 500, "internal error",
        "report it with the instance; nothing was released";
    Unavailable, "unavailable", 503, "the service cannot answer now",
        "try again later";
    StorageFull, "storage-full", 507, "the store has no room",
        "let the operator free room";
}

impl Kind {
    /// The problem type, a URI.
    #[must_use]
    pub fn uri(self) -> String {
        format!("{TYPE_PREFIX}{}", self.name())
    }
}

/// The members that tell a count of the data.
const COUNT_MEMBERS: [&str; 3] = ["largest_l", "proof", "too_frequent"];
/// The faults that have them.
const KINDS_WITH_COUNTS: [Kind; 2] = [Kind::RuleIneligible, Kind::InfeasibleRoot];
/// The detail in place of one that tells it.
const DETAIL_WITHOUT_COUNTS: &str =
    "the data cannot satisfy the rule; a key with datasets:inspect is told how far it could";

/// A stored document as [`Problem::without_counts`] would have been written.
pub fn hide_counts(document: &mut Value) {
    let faults = document.get_mut("errors").and_then(Value::as_array_mut);
    for fault in faults.into_iter().flatten().filter_map(Value::as_object_mut) {
        if KINDS_WITH_COUNTS.iter().any(|kind| fault.get("type") == Some(&kind.uri().into())) {
            COUNT_MEMBERS.iter().for_each(|count| drop(fault.remove(*count)));
            fault.insert("detail".to_owned(), DETAIL_WITHOUT_COUNTS.into());
        }
    }
}

/// A problem document.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// What kind of problem it is.
    pub kind: Kind,
    /// What happened, for people. No value of the data.
    pub detail: String,
    /// Further members of the kind.
    pub members: Map<String, Value>,
    /// The faults of a specification.
    pub errors: Vec<Fault>,
    /// After how many seconds it is worth to try again.
    pub retry_after: Option<u32>,
}

/// One fault of a specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Where the fault stands, as a JSON pointer into the submitted document.
    pub pointer: String,
    /// What kind of fault it is.
    pub kind: Kind,
    /// What is wrong, for people. No value of the data.
    pub detail: String,
    /// Further members of the kind.
    pub members: Map<String, Value>,
}

impl Problem {
    /// A problem without further members.
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), members: Map::new(), errors: Vec::new(), retry_after: None }
    }

    /// Says after how many seconds it is worth to try again.
    #[must_use]
    pub const fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The one document that names every fault of a specification.
    #[must_use]
    pub fn of_faults(mut errors: Vec<Fault>) -> Self {
        errors.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        let detail = "the specification was refused as a whole; nothing was started";
        Self { errors, ..Self::new(Kind::InvalidSpecification, detail) }
    }

    /// The problem for a caller who may not see counts of the data.
    #[must_use]
    pub fn without_counts(mut self) -> Self {
        for fault in self.errors.iter_mut().filter(|fault| KINDS_WITH_COUNTS.contains(&fault.kind)) {
            COUNT_MEMBERS.iter().for_each(|count| drop(fault.members.remove(*count)));
            DETAIL_WITHOUT_COUNTS.clone_into(&mut fault.detail);
        }
        self
    }

    /// The title, which counts the faults of a specification.
    #[must_use]
    pub fn title(&self) -> String {
        match (self.kind, self.errors.len()) {
            (Kind::InvalidSpecification, 1) => "1 fault in the specification".to_owned(),
            (Kind::InvalidSpecification, faults) => format!("{faults} faults in the specification"),
            (kind, _) => kind.title().to_owned(),
        }
    }

    /// The document, with `instance` naming this occurrence.
    #[must_use]
    pub fn to_json(&self, instance: &str) -> Value {
        let mut document = Map::new();
        document.insert("type".into(), self.kind.uri().into());
        document.insert("title".into(), self.title().into());
        document.insert("status".into(), self.kind.status().into());
        document.insert("detail".into(), self.detail.clone().into());
        document.insert("instance".into(), instance.into());
        document.extend(self.members.clone());
        if self.kind == Kind::InvalidSpecification {
            document.insert("errors".into(), self.errors.iter().map(Fault::to_json).collect());
        }
        Value::Object(document)
    }
}

impl Fault {
    /// A fault without further members.
    #[must_use]
    pub fn new(pointer: impl Into<String>, kind: Kind, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), kind, detail: detail.into(), members: Map::new() }
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    fn to_json(&self) -> Value {
        let mut document = Map::new();
        document.insert("pointer".into(), self.pointer.clone().into());
        document.insert("type".into(), self.kind.uri().into());
        document.insert("detail".into(), self.detail.clone().into());
        document.extend(self.members.clone());
        Value::Object(document)
    }
}

/// The shape of a problem document, for the OpenAPI description and for clients.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// `https://guardian.invalid/problems/NAME`
    pub r#type: String,
    /// The same for every occurrence of a type.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened and what to do.
    pub detail: String,
    /// Names this occurrence.
    pub instance: String,
    /// The faults of a specification; only in `invalid-specification`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<FaultDocument>>,
    /// Members of the type, such as `row` or `limit`.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

/// One fault of a specification.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Fault)]
pub struct FaultDocument {
    /// A JSON pointer into the submitted document.
    pub pointer: String,
    /// `https://guardian.invalid/problems/NAME`
    pub r#type: String,
    /// What is wrong.
    pub detail: String,
    /// Members of the type, such as `largest_l` or `allowed`.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_hidden_alike_before_and_after_writing() {
        let told = Fault::new("/method/rules/0", Kind::RuleIneligible, "at most 2")
            .with("requested", "7")
            .with("largest_l", 2);
        let other = Fault::new("/priority", Kind::ParameterRange, "expected more").with("allowed", "more");
        let problem = Problem::of_faults(vec![told, other]);
        let mut written = problem.to_json("urn:uuid:x");
        hide_counts(&mut written);
        assert_eq!(written, problem.without_counts().to_json("urn:uuid:x"));
        assert!(!written.to_string().contains("largest_l") && !written.to_string().contains("at most 2"));
        assert_eq!(written["errors"][0]["requested"], "7");
        assert_eq!(written["errors"][1]["allowed"], "more");
    }
}

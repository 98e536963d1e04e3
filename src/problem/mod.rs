//! The catalogue of problems (RFC 9457). Each error becomes a [`Problem`] once, for HTTP answers, jobs and the command line.
//!
//! The OpenAPI document and `docs/problems.md` come from the same catalogue. A problem contains names of attributes, row
//! numbers, counts and pointers, but no value of the data.

mod counts;
mod ingest;
mod nearest;
mod page;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use counts::hide_counts;
pub use nearest::{nearest_names, similar_name};
pub use page::page;

/// The prefix of every problem type.
pub const TYPE_PREFIX: &str = "https://guardian.invalid/problems/";

macro_rules! catalogue {
    ($($variant:ident, $name:literal, $status:literal, $title:literal, $remedy:literal;)*) => {
        /// A problem type of the catalogue.
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

            /// A short text, equal for all occurrences.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// Advice to the caller.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

catalogue! {
    MalformedRequest, "malformed-request", 400, "a parameter or header is malformed",
        "correct the query parameter or header that the detail names";
    MalformedBody, "malformed-body", 400, "the body is not the expected JSON",
        "send one JSON object in UTF-8";
    DigestMismatch, "digest-mismatch", 400, "the body does not match its Content-Digest",
        "upload the file again; the transfer damaged it";
    Unauthenticated, "unauthenticated", 401, "no valid key or token",
        "send a valid key or token as Authorization: Bearer TOKEN";
    Forbidden, "forbidden", 403, "the key does not permit this",
        "use a key with the scope that the problem names, or follow the detail";
    ForeignOrigin, "foreign-origin", 403, "the request comes from a foreign origin",
        "call the service from its own pages or from a program";
    HostRefused, "host-refused", 403, "the service does not serve this host name",
        "address the service as localhost, 127.0.0.1 or [::1]";
    NotFound, "not-found", 404, "the resource or path does not exist",
        "check the id and the path";
    MethodNotAllowed, "method-not-allowed", 405, "the path does not support the method",
        "use a method that the Allow header lists";
    NotAcceptable, "not-acceptable", 406, "no acceptable format",
        "request a format that the detail lists";
    RequestTimeout, "request-timeout", 408, "the body arrived too slowly",
        "send the body again, faster or in smaller tables, or let the operator raise the limit";
    Conflict, "conflict", 409, "the state of the resource does not allow this",
        "read the resource again and act on its current state";
    IdempotencyConflict, "idempotency-conflict", 409, "the Idempotency-Key belongs to another request",
        "send a new key with each new request";
    CompositionViolated, "composition-violated", 409, "this release and an earlier one together break a rule",
        "change the rules so that they hold together with the earlier release, or use the earlier release";
    PriorReleaseViolates, "prior-release-violates", 409, "earlier releases already break a requirement",
        "weaken the requirement; earlier releases cannot be revoked";
    SeriesUndeclared, "series-undeclared", 409, "another series has the same data subjects",
        "a job of an earlier version: submit it again";
    OverlappingRowSets, "overlapping-row-sets", 409, "an earlier dataset has some of the data subjects, with different rows",
        "a job of an earlier version: submit it again";
    PopulationUndeclared, "population-undeclared", 409, "it is unknown whose people the dataset is about",
        "follow the first of the remedies that fits";
    PeopleUnknown, "people-unknown", 409, "persons are not identified",
        "upload the dataset with a column that identifies persons";
    OverlappingPeople, "overlapping-people", 409, "some of the people were published before, with others or with other values",
        "publish the people that are new, with people set to unpublished, or follow another remedy";
    PeopleAlike, "people-alike", 409, "the cells say what those of a published table about other people do",
        "upload the dataset with the earlier keys, or state that the people are others";
    StatementContradicted, "statement-contradicted", 409, "persons are in two places that are said to have none in common",
        "upload the dataset into the population that its people belong to";
    NoNewPeople, "nobody-new", 409, "all people of the dataset were published before",
        "nothing is left to publish";
    RepublishNotStarted, "republish-not-started", 409, "people of the dataset were published without republication",
        "republish people of whom nothing is published";
    RepublishPending, "republish-pending", 409, "a held release of the population is not decided",
        "approve or reject the held release, then submit the job again";
    RepublishValueChanged, "republish-value-changed", 409, "sensitive values are not those that were published",
        "withhold the changed rows or move them, by the member changes of republish";
    RepublishStateLost, "republish-state-lost", 409, "the state of the republished population is lost",
        "publish people of whom nothing is published in a population with another name";
    CompositionUndecidable, "composition-undecidable", 409, "the composition with earlier releases is undecidable",
        "declare what the detail names, or use the earlier release";
    Gone, "gone", 410, "the resource was removed",
        "upload the data again if needed; the removal is final";
    TooLarge, "too-large", 413, "the request exceeds a size limit",
        "send less data, or let the operator raise the limit";
    TooManyColumns, "too-many-columns", 413, "the table has too many columns",
        "drop columns before uploading, or let the operator raise the limit";
    TooManyAttributes, "too-many-attributes", 413, "the job uses too many attributes",
        "drop attributes from the specification";
    UriTooLong, "uri-too-long", 414, "the address of the request is too long",
        "name fewer things in one request";
    UnsupportedMediaType, "unsupported-media-type", 415, "the media type is not supported",
        "send a media type and an encoding that the detail lists";
    RangeUnsatisfiable, "range-unsatisfiable", 416, "the range is outside the content",
        "request bytes before the length that the Content-Range header names";
    UploadMalformed, "upload-malformed", 422, "the uploaded table is malformed",
        "correct the record at row and column; the first record under the header is row 1";
    SourceRefused, "source-refused", 422, "the service may not read this source",
        "upload the table as the body, or let the operator list the source with --sources";
    SourceUnreadable, "source-unreadable", 422, "the source cannot be read",
        "follow the detail; reason names the cause";
    RowsElsewhere, "rows-elsewhere", 422, "the rows of the dataset are in another engine",
        "upload the table, or ask for what counts and releases answer";
    EmptyTable, "empty-table", 422, "the table has no rows",
        "upload a table with a header and at least one record";
    InvalidSpecification, "invalid-specification", 422, "the specification has faults",
        "correct each member that errors points to";
    UnknownField, "unknown-field", 422, "the member is unknown",
        "remove the member or correct its spelling";
    ParameterRange, "parameter-range", 422, "a parameter is missing, has the wrong type or is out of range",
        "use a value that allowed describes";
    ReservedName, "reserved-name", 422, "a published name is reserved or in use",
        "give the attribute another published name with rename";
    UnknownAttribute, "unknown-attribute", 422, "the attribute is unknown",
        "name an attribute of the dataset";
    UnknownDependency, "unknown-dependency", 422, "no known dependency is meant",
        "name the determinant and the dependent of a dependency that a plan lists, or remove the entry";
    UnknownPolicy, "unknown-policy", 422, "the policy is unknown",
        "name a policy and a version that GET /v1/policies/NAME/versions lists, as \"NAME-v3\"";
    UnknownTaxonomy, "unknown-taxonomy", 422, "the taxonomy is unknown",
        "name a taxonomy that GET /v1/taxonomies lists, as \"NAME\" or \"NAME-v3\", or write the tree in place";
    TaxonomyConflict, "taxonomy-conflict", 422, "a label belongs to more than one node of a taxonomy",
        "give each node of the tree its own label, and each value one leaf";
    TaxonomyValueMissing, "taxonomy-value-missing", 422, "some values of an attribute are not leaves of its taxonomy",
        "add the values to the tree; values_url lists the values of the attribute";
    UnknownPopulation, "unknown-population", 422, "the population is unknown",
        "name a population that GET /v1/populations lists; nearest lists names that resemble it";
    PersonKeyMissing, "person-key-missing", 422, "the table lacks columns of the person key",
        "upload the table with the columns that the problem names, name its key columns with person, or set person=none";
    UnknownRelease, "unknown-release", 422, "the release is unknown",
        "name a published release of the same series that GET /v1/releases lists, with one table of tuples";
    UnclassifiedAttributes, "unclassified-attributes", 422, "the specification does not classify some attributes",
        "use each attribute in a rule, publish or drop it, or set unlisted to drop";
    IdentifierPublished, "identifier-published", 422, "the specification publishes an identifier",
        "drop the attribute, or declare it with publish true and identifier false";
    RuleMalformed, "rule-malformed", 422, "a rule is malformed",
        "write a rule as \"a, b -> c\", with different attributes on the two sides";
    ThresholdMissing, "threshold-missing", 422, "some values have no threshold",
        "declare a threshold for each value that values_url lists, or use otherwise";
    ThresholdUnused, "threshold-unused", 422, "some thresholds are for values that do not occur",
        "correct the values that the detail names, or remove those that values_url does not list";
    InfeasibleSizes, "infeasible-sizes", 422, "no bucket sizes satisfy the thresholds",
        "allow larger buckets with max_size, list other sizes, or raise the thresholds";
    DomainTooSmall, "domain-too-small", 422, "the attribute has too few values for the counterfeits",
        "request fewer counterfeits or smaller buckets";
    NoNoise, "no-noise", 422, "the sensitive attributes have too few joint values",
        "request a smaller l for the attribute that the problem points to";
    CanBeConcluded, "can-be-concluded", 422, "values of a sensitive attribute can be inferred",
        "set suppress_chain, use versatile, or publish with a warning by \"breaches\": \"report\"";
    MultiSaEmpty, "multi-sa-empty", 422, "no rows remain to publish",
        "request a smaller l, protect fewer attributes, or use an algorithm that separates the sensitive attributes";
    RuleIneligible, "rule-ineligible", 422, "the data cannot satisfy a rule",
        "request an l of at most largest_l, or drop the sensitive attribute";
    InfeasibleRoot, "infeasible-root", 422, "the coarsest release does not satisfy the requirement",
        "weaken the requirement, or publish fewer attributes with the sensitive one";
    ExclusionContradicted, "exclusion-contradicted", 422, "an exclusion contradicts rows of the dataset",
        "remove the exclusion, or narrow it";
    JoinTooDense, "join-too-dense", 422, "a join has too many distinct combinations",
        "use fewer attributes in x and y, share fewer attributes between releases, or let fewer columns overlap";
    RuleImpossible, "rule-impossible", 422, "a functional dependency makes a rule impossible",
        "remove the rule, or drop the attributes that determine the sensitive one";
    NotGnf, "not-gnf", 422, "the proposed tables break a rule",
        "remove a shared attribute from each path, or bucketize one table of each path on the sensitive attribute";
    DependencyExpansionLimit, "dependency-expansion-limit", 422, "the dependencies imply too many rules",
        "declare fewer dependencies, or protect fewer attributes";
    VacuousGuarantee, "vacuous-guarantee", 422, "every table satisfies the guarantee",
        "request at least one rule and a guarantee that protects, such as l of at least 2";
    GuaranteeUnsupported, "guarantee-unsupported", 422, "the request is not supported here",
        "use an alternative that the detail names";
    RepublishUnsupported, "republish-unsupported", 422, "republication does not offer this",
        "follow the detail, or publish once without republish";
    RepublishNeedsRecordKey, "republish-needs-record-key", 422, "republication needs a key of persons",
        "upload the dataset into a population with a key of persons";
    RepublishSpecificationChanged, "republish-specification-changed", 422, "the population was begun under other terms",
        "keep what the detail names, or begin with people of whom nothing is published in another population";
    BadColumns, "bad-columns", 422, "the attributes do not fit the method",
        "choose the attributes as the detail says";
    Deadline, "deadline", 422, "the deadline of the job passed",
        "submit the job again with a later deadline";
    TooManyRequests, "too-many-requests", 429, "too many concurrent requests of this kind",
        "repeat the request after Retry-After seconds";
    Quota, "quota", 429, "a quota is exhausted",
        "wait until some of the counted resources end, or let the operator raise the quota";
    WorkLimit, "work-limit", 422, "the request exceeds a limit of work or memory",
        "reduce the request, or let the operator raise the limit";
    HeadersTooLarge, "headers-too-large", 431, "the headers of the request are too large",
        "send fewer or shorter headers";
    AttemptsExhausted, "attempts-exhausted", 500, "all attempts of the job failed",
        "read the reason in the log of the service before submitting the job again";
    Internal, "internal", 500, "internal error",
        "report the error with the instance; nothing was released";
    Unavailable, "unavailable", 503, "the service is temporarily unavailable",
        "repeat the request later";
    StorageFull, "storage-full", 507, "the store is full",
        "let the operator free space";
}

impl Kind {
    /// The problem type, a URI.
    #[must_use]
    pub fn uri(self) -> String {
        format!("{TYPE_PREFIX}{}", self.name())
    }
}

/// A problem of the catalogue with its detail and members.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// Its type in the catalogue.
    pub kind: Kind,
    /// Explains this occurrence; contains no value of the data.
    pub detail: String,
    /// Members of the type, such as `row` or `limit`.
    pub members: Map<String, Value>,
    /// The faults of a specification.
    pub errors: Vec<Fault>,
    /// Seconds until a retry can succeed.
    pub retry_after: Option<u32>,
}

/// One fault of a specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// A JSON pointer into the submitted document.
    pub pointer: String,
    /// Its type in the catalogue.
    pub kind: Kind,
    /// Explains this occurrence; contains no value of the data.
    pub detail: String,
    /// Members of the type, such as `row` or `limit`.
    pub members: Map<String, Value>,
    /// Patches of the document, each of which ends the fault.
    pub remedies: Vec<FaultRemedy>,
}

/// A change of a document that ends a fault in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FaultRemedy {
    /// What it does, in words.
    pub title: String,
    /// A JSON Patch (RFC 6902) of the submitted document.
    #[schema(value_type = Vec<PatchOperationDocument>, min_items = 1)]
    pub patch: Value,
}

/// An operation of a JSON Patch (RFC 6902).
#[derive(utoipa::ToSchema)]
#[schema(as = PatchOperation)]
#[expect(dead_code, reason = "the schema of what patches are made of")]
pub struct PatchOperationDocument {
    /// What is done at the place: `add`, `remove`, `replace`, `move`, or `test`: nothing is changed where it is another value.
    #[schema(pattern = "^(add|remove|replace|move|test)$")]
    op: String,
    /// A JSON pointer (RFC 6901).
    path: String,
    /// Where a moved value is taken from.
    #[schema(nullable = false)]
    from: Option<String>,
    /// What stands at the place afterwards.
    #[schema(nullable = false)]
    value: Option<Value>,
}

/// The most faults of one answer.
pub const MAX_FAULTS: usize = 100;

impl Problem {
    /// A problem without additional members.
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), members: Map::new(), errors: Vec::new(), retry_after: None }
    }

    /// Sets the seconds until a retry can succeed.
    #[must_use]
    pub const fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Adds a member of the type.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The problem with the faults of a specification, sorted by pointer; with the first of them and the number of the
    /// others, if they are many.
    #[must_use]
    pub fn of_faults(mut errors: Vec<Fault>) -> Self {
        errors.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        let others = errors.len().saturating_sub(MAX_FAULTS);
        errors.truncate(MAX_FAULTS);
        let detail = "the specification has faults; nothing was started";
        let problem = Self { errors, ..Self::new(Kind::InvalidSpecification, detail) };
        if others == 0 { problem } else { problem.with("others", others) }
    }

    /// The title; for specifications with the number of faults.
    #[must_use]
    pub fn title(&self) -> String {
        let others = self.members.get("others").and_then(Value::as_u64).unwrap_or(0);
        match (self.kind, self.errors.len() as u64 + others) {
            (Kind::InvalidSpecification, 1) => "1 fault in the specification".to_owned(),
            (Kind::InvalidSpecification, faults) => format!("{faults} faults in the specification"),
            (kind, _) => kind.title().to_owned(),
        }
    }

    /// The document; `instance` identifies this occurrence.
    #[must_use]
    pub fn to_json(&self, instance: &str) -> Value {
        let mut document = Map::new();
        document.insert("type".into(), self.kind.uri().into());
        document.insert("title".into(), self.title().into());
        document.insert("status".into(), self.kind.status().into());
        document.insert("detail".into(), self.detail.clone().into());
        document.insert("instance".into(), instance.into());
        document.extend(self.members.clone());
        if self.kind == Kind::InvalidSpecification || !self.errors.is_empty() {
            document.insert("errors".into(), self.errors.iter().map(Fault::to_json).collect());
        }
        Value::Object(document)
    }
}

impl Fault {
    /// A fault without additional members.
    #[must_use]
    pub fn new(pointer: impl Into<String>, kind: Kind, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), kind, detail: detail.into(), members: Map::new(), remedies: Vec::new() }
    }

    /// Adds a member of the type.
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
        if !self.remedies.is_empty() {
            let remedy = |of: &FaultRemedy| json!({"title": of.title, "patch": of.patch});
            document.insert("remedies".into(), self.remedies.iter().map(remedy).collect());
        }
        Value::Object(document)
    }
}

/// The faults of a problem that was written; `None` if it is of another version.
#[must_use]
pub fn faults_of(problem: &Value) -> Option<Vec<Fault>> {
    let fault = |written: &Value| {
        let FaultDocument { pointer, r#type, detail, remedies, members } = FaultDocument::deserialize(written).ok()?;
        let kind = Kind::ALL.iter().copied().find(|kind| kind.uri() == r#type)?;
        let remedies = remedies.unwrap_or_default();
        Some(Fault { members, remedies, ..Fault::new(pointer, kind, detail) })
    };
    problem["errors"].as_array()?.iter().map(fault).collect()
}

/// The reason why a request was refused or failed (RFC 9457). Other members depend on the type; none contains a value of the data.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// The problem type, `https://guardian.invalid/problems/NAME`; NAME is a stable name of the catalogue.
    #[schema(format = "uri-reference", pattern = r"^https://guardian\.invalid/problems/[a-z-]+$")]
    pub r#type: String,
    /// Equal for all occurrences of a type.
    pub title: String,
    /// The HTTP status code.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// Explains this occurrence.
    pub detail: String,
    /// Identifies this occurrence.
    #[schema(format = "uri-reference")]
    pub instance: String,
    /// The faults of a specification: in `invalid-specification`, and in `not-found` where it names no dataset. The member `others`
    /// has the number of more faults, if there are more than fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    pub errors: Option<Vec<FaultDocument>>,
    /// Members of the type, such as `row` or `limit`.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

/// One fault of a specification.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Fault)]
pub struct FaultDocument {
    /// A JSON pointer (RFC 6901) into the submitted document.
    pub pointer: String,
    /// The problem type, `https://guardian.invalid/problems/NAME`.
    #[schema(format = "uri-reference", pattern = r"^https://guardian\.invalid/problems/[a-z-]+$")]
    pub r#type: String,
    /// Explains the fault.
    pub detail: String,
    /// Changes of the document that end the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_items = 1)]
    pub remedies: Option<Vec<FaultRemedy>>,
    /// Members of the type, such as `largest_l` or `allowed`.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_hidden_before_and_after_writing() {
        let ineligible = Fault::new("/method/rules/0", Kind::RuleIneligible, "at most 2")
            .with("requested", "7")
            .with("largest_l", 2);
        let inferred = Fault::new("/method/sensitive/1", Kind::CanBeConcluded, "in at most 2 of 3 buckets");
        let other = Fault::new("/priority", Kind::ParameterRange, "expected more").with("allowed", "more");
        let joined = Fault::new("/priority/0", Kind::InfeasibleRoot, "k of at most 2").with("largest_k", 2);
        let problem = Problem::of_faults(vec![ineligible, inferred, other, joined]);
        let mut written = problem.to_json("urn:uuid:x");
        hide_counts(&mut written);
        assert_eq!(written, problem.without_counts().to_json("urn:uuid:x"));
        let hidden = ["largest_l", "largest_k", "at most 2"];
        assert!(hidden.iter().all(|count| !written.to_string().contains(count)), "{written:#}");
        // a repair with a count stands among the remedies too
        let repairs = serde_json::json!([{"drop": ["a"]}, {"lower_l": 3}]);
        let mut impossible =
            Fault::new("/method/rules/0", Kind::RuleImpossible, "a dependency").with("repairs", repairs);
        impossible.remedies.push(FaultRemedy { title: "ask for l = 3".to_owned(), patch: serde_json::json!([]) });
        let problem = Problem::of_faults(vec![impossible]);
        let mut stored = problem.to_json("urn:uuid:y");
        hide_counts(&mut stored);
        assert_eq!(stored, problem.without_counts().to_json("urn:uuid:y"));
        assert!(!stored.to_string().contains('3') && stored.to_string().contains("drop"), "{stored:#}");
        assert_eq!(written["errors"][0]["requested"], "7");
        assert!(written["errors"][1]["detail"].as_str().unwrap().contains("datasets:inspect"));
        assert_eq!(written["errors"][2]["allowed"], "more");
    }
}

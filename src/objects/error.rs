use std::error::Error;
use std::fmt;

use object_store::client::{HttpError, HttpErrorKind};

use super::address::{ObjectAddress, ObjectScheme};
use super::connection::PLAIN_HTTP;

/// Why an object cannot be read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectFault {
    /// There is no such object, or no such bucket.
    NotFound,
    /// The store refuses what the credentials ask for.
    AccessDenied,
    /// The environment has no credentials that the store could be asked with.
    NoCredentials,
    /// The environment does not configure the store.
    Unconfigured,
    /// The store does not answer.
    Unreachable,
    /// The store refers to another place.
    Redirected,
    /// The object is not the one that the reading began with.
    Changed,
    /// The object is larger than this number of bytes.
    TooLarge(u64),
    /// The store sends or takes bytes too slowly.
    TooSlow,
    /// The place is not empty.
    Occupied,
    /// An earlier publication began there, and did not end.
    Claimed,
    /// Objects cannot be written without overwriting others.
    NotWritable,
    /// It is unknown whether the manifest was written.
    ManifestUnknown,
    /// The store answered something else.
    Failed,
}

impl ObjectFault {
    /// The name of the fault in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::AccessDenied => "access_denied",
            Self::NoCredentials => "no_credentials",
            Self::Unconfigured => "unconfigured",
            Self::Unreachable => "unreachable",
            Self::Redirected => "redirected",
            Self::Changed => "changed",
            Self::TooLarge(_) => "too_large",
            Self::TooSlow => "too_slow",
            Self::Occupied => "occupied",
            Self::Claimed => "claimed",
            Self::NotWritable => "not_writable",
            Self::ManifestUnknown => "manifest_unknown",
            Self::Failed => "failed",
        }
    }
}

/// A fault at an address. It quotes no answer of a store, which could repeat credentials.
#[derive(Clone, Debug)]
pub struct ObjectError {
    /// Where.
    pub address: ObjectAddress,
    /// What.
    pub fault: ObjectFault,
}

impl ObjectError {
    pub(super) fn new(address: &ObjectAddress, fault: ObjectFault) -> Self {
        Self { address: address.clone(), fault }
    }

    pub(super) fn of_store(address: &ObjectAddress, error: &object_store::Error) -> Self {
        Self::new(address, fault_of(error))
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, fault } = self;
        write!(f, "{address}: ")?;
        let scheme = address.scheme();
        match fault {
            ObjectFault::NotFound => f.write_str("there is no such object; check the bucket and the key"),
            ObjectFault::AccessDenied => {
                f.write_str("the store denies access; check the credentials and what they may do there")
            }
            ObjectFault::NoCredentials => write!(f, "the environment has no credentials; set {}", variables(scheme)),
            ObjectFault::Unconfigured => {
                write!(f, "the environment does not configure the store; check {}", variables(scheme))
            }
            ObjectFault::Unreachable => {
                f.write_str("the store does not answer; check its address, the network and its certificate")
            }
            ObjectFault::Redirected if scheme == ObjectScheme::S3 => {
                f.write_str("the bucket is in another region; set AWS_REGION to it")
            }
            ObjectFault::Redirected => {
                f.write_str("the host refers to another address, which is not followed; name that one")
            }
            ObjectFault::Changed => f.write_str("the object changed while it was read; read it again"),
            ObjectFault::TooLarge(limit) => write!(f, "the object is larger than {limit} bytes; divide it"),
            ObjectFault::TooSlow => f.write_str("the store is too slow; try again, or from a place closer to it"),
            ObjectFault::Occupied => {
                f.write_str("objects have this prefix, and nothing is overwritten; choose another prefix")
            }
            ObjectFault::Claimed => f.write_str(
                "another publication writes to this prefix, or was interrupted there; choose another prefix, or delete what \
                 an interrupted one left",
            ),
            ObjectFault::NotWritable => {
                f.write_str("releases are written to s3://, gs://, az:// or a folder; choose one of these")
            }
            ObjectFault::ManifestUnknown => f.write_str(
                "the store did not say whether it took the manifest; the release is complete if manifest.json is there",
            ),
            ObjectFault::Failed => f.write_str("the store answered what cannot be understood; check its address"),
        }
    }
}

impl Error for ObjectError {}

/// The variables of the environment that say how a store is reached.
const fn variables(scheme: ObjectScheme) -> &'static str {
    match scheme {
        ObjectScheme::S3 => {
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and for other stores AWS_ENDPOINT_URL, with AWS_ALLOW_HTTP=true for \
             one without TLS"
        }
        ObjectScheme::Gs => "GOOGLE_APPLICATION_CREDENTIALS",
        ObjectScheme::Az => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        ObjectScheme::Https | ObjectScheme::Http | ObjectScheme::File => "the address",
    }
}

fn fault_of(error: &object_store::Error) -> ObjectFault {
    use object_store::Error as StoreFault;
    match error {
        StoreFault::NotFound { .. } => ObjectFault::NotFound,
        StoreFault::PermissionDenied { .. } | StoreFault::Unauthenticated { .. } => ObjectFault::AccessDenied,
        StoreFault::Precondition { .. } | StoreFault::NotModified { .. } => ObjectFault::Changed,
        StoreFault::AlreadyExists { .. } => ObjectFault::Occupied,
        other => fault_of_cause(other),
    }
}

/// The fault of a request that had no answer, or one without a kind of its own.
fn fault_of_cause(error: &object_store::Error) -> ObjectFault {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut last = String::new();
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            let is_plain = http.source().is_some_and(|cause| cause.to_string() == PLAIN_HTTP);
            return match http.kind() {
                _ if is_plain => ObjectFault::Unconfigured,
                HttpErrorKind::Timeout => ObjectFault::TooSlow,
                HttpErrorKind::Decode => ObjectFault::Failed,
                _ => ObjectFault::Unreachable,
            };
        }
        last = error.to_string();
        cause = error.source();
    }
    // the status has no type of its own
    match last {
        text if text.starts_with("Received redirect") || text.starts_with("Server returned non-2xx status code: 3") => {
            ObjectFault::Redirected
        }
        text if text.starts_with("Server returned non-2xx status code: 5") => ObjectFault::Unreachable,
        _ => ObjectFault::Failed,
    }
}

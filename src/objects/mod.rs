//! Object stores: addresses, what an operator allows of them, reading, releases that are written to them,
//! and folders of small objects.
//!
//! Credentials come from the environment of the process and stand in no address, error or log.

mod address;
mod allowed;
mod connection;
mod error;
mod folder;
mod read;
mod store;
mod write;

pub use address::{AddressError, ObjectAddress, ObjectScheme};
pub use allowed::SourceList;
pub use error::{ObjectError, ObjectFault};
pub use folder::ObjectFolder;
pub use read::OpenedObject;
pub use store::{ObjectPlace, ObjectStores};
pub use write::{ReleaseUpload, UploadError};

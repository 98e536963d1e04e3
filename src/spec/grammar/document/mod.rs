//! One declaration for each object of a request document.
//!
//! `document!` declares an object, `union!` one of several objects, `choice!` a set of words and `scalar!` any other value without
//! parts. Each generates the reader, which names every fault, the normal form, and the JSON schema. To add a member, add one line:
//!
//! ```text
//! document! {
//!     /// Description of the object in the schema.
//!     Counterfeits as "CounterfeitChoice" {
//!         /// Description of the member in the schema.
//!         required per_bucket: Int<1, 100>,
//!     }
//! }
//! ```
//!
//! - `required`: the schema requires the member, and its absence is a fault.
//! - `needed`: the schema requires the member, and the caller reports its absence in words of its own.
//! - `optional`: the member may be absent or null. With `= value` that value is the default.
//! - `include`: the members of another document stand among those of this one.
//! - `=> "text"` replaces the text of [`Member::allowed`] in faults.
//! - `tagged "word"` after the name of the schema adds the member `type`, which the caller has read already.
//!
//! Members are read in the order of their declaration. A check of several members is a function of the caller.

mod macros;
mod members;
mod object;

pub(in crate::spec) use macros::{choice, document, scalar, union};
pub(in crate::spec) use members::{
    Array, ColumnName, Entries, EntryValue, Fraction, Id, Int, Names, NamesInOrder, PositiveFraction, Reason, Share,
};
pub(in crate::spec) use object::{
    Document, Given, Member, MemberContext, MemberDeclaration, ObjectMap, Presence, PropertyList, SchemaMap,
    UnionVariant, define_as, define_union, description, member_name, open_union, reference, write_member,
};

pub(in crate::spec) use super::columns::DatasetColumns;
pub(in crate::spec) use super::reader::{FaultList, ObjectReader, one_of};

//! The service from outside, over HTTP.

pub(crate) mod end_to_end;
pub(crate) mod events;
pub(crate) mod first_click;
pub(crate) mod hostile_clients;
pub(crate) mod idempotency;
pub(crate) mod input_formats;
pub(crate) mod limits;
pub(crate) mod long_responses;
pub(crate) mod policies;
pub(crate) mod remedies;
mod remedies_elsewhere;
pub(crate) mod request_errors;
pub(crate) mod specification_errors;
pub(crate) mod taxonomies;
pub(crate) mod upload_errors;
pub(crate) mod uploads;
pub(crate) mod uploads_by_reference;

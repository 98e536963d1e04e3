//! Inference by proxy: an attribute that no rule names is published and predicts the sensitive one.
//!
//! The adversary knows how often values of the two attributes occur together. One half of the original's rows stands
//! for this knowledge; the rows of the other half are the targets. For each target the adversary finds in the tables
//! the possible sensitive values and the possible values of the proxy, and weighs their pairs by the counts. The
//! attack measures the mean probability of the true value. While the bound of the rule holds, no weighting exceeds it
//! on average.
//!
//! # Citations
//! [Kifer 2009], docs/spec/guardian-normal-form.md#what-is-proved-and-what-is-not

pub(in crate::verifier) mod agreeing;
pub(in crate::verifier) mod co_occurrence;
pub(in crate::verifier) mod distributions;
pub(in crate::verifier) mod infer;

#[cfg(test)]
mod tests;

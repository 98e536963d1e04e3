//! The adversary who intersects what all nights of a republished table show of each person.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::Table;
use crate::problem::{Kind, Problem};
use crate::publication::{Guarantee, Publication, PublishedBytes};
use crate::report::{Manifest, ManifestRatio, publication_of};
use crate::verifier;
use crate::verifier::NightParts;

/// A released night.
pub struct ReleasedNight<'a> {
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Its parts.
    pub parts: &'a dyn PublishedBytes,
    /// The table that it was made of, by which the adversary knows everybody; without it persons are known by their cells.
    pub original: Option<NightOriginal<'a>>,
}

/// The table of a night.
pub struct NightOriginal<'a> {
    /// The published names of its columns.
    pub names: &'a [String],
    /// The columns.
    pub table: &'a Table,
    /// The hash of the person of each row.
    pub persons: &'a [[u8; 16]],
}

/// What all nights show together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IntersectionReport {
    /// The number of nights.
    pub nights: usize,
    /// How persons were recognized from night to night.
    pub linked_by: PersonLink,
    /// The number of persons that were linked.
    pub persons: u64,
    /// The number of them of whom a value has more than 1/l of what is left.
    pub above: u64,
    /// The l of the nights.
    pub l: u64,
    /// The largest share of a value in what is left of a person.
    pub worst: Option<ManifestRatio>,
    /// Broken promises of earlier nights, each with the first night that breaks it.
    pub faults: Vec<IntersectionFault>,
}

/// How a person of one night is recognized on another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonLink {
    /// By the key in the tables.
    Keys,
    /// By the published cells, so that two persons with equal cells on different nights count as one.
    Cells,
}

impl PersonLink {
    /// The name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Cells => "cells",
        }
    }
}

/// A broken promise.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IntersectionFault {
    /// In a sentence.
    pub fault: String,
    /// The first night of those given that breaks it, from 1.
    pub night: usize,
}

impl IntersectionReport {
    /// Whether no more is learned of anybody than each night promises.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.above == 0 && self.faults.is_empty()
    }
}

/// Intersects all nights.
///
/// # Errors
/// Cancelled, a part that cannot be read, or releases that are no nights of one table.
pub fn intersection_attack(nights: &[ReleasedNight<'_>], control: &Control) -> Result<IntersectionReport, EngineError> {
    let refused = |detail: String| EngineError::Refused(Problem::new(Kind::BadColumns, detail));
    let columns = common_columns(nights);
    let l = nights.iter().map(|night| diversity(night.manifest)).collect::<Option<BTreeSet<u64>>>();
    let l = l.and_then(|l| l.first().copied());
    let l = l.ok_or_else(|| refused("a release has not one rule of l_diversity".to_owned()))?;
    let by_keys = nights.iter().all(|night| night.original.is_some());
    let mut linked = Vec::new();
    for (number, night) in (1..).zip(nights) {
        let no_night = || refused(format!("release {number} is not one table of a known and a sensitive part"));
        let names = night.original.as_ref().map_or_else(|| names_of(night.manifest), |of| of.names.to_vec());
        let publication: Publication = publication_of(night.manifest, &names).map_err(|_| no_night())?;
        let found = match &night.original {
            Some(NightOriginal { table, persons, .. }) if by_keys => {
                NightParts { publication: &publication, parts: night.parts, original: table, persons }.link(control)?
            }
            _ => verifier::link_by_cells(&publication, night.parts, &columns, control)?,
        };
        linked.push(found.ok_or_else(no_night)?);
    }
    let report = verifier::audit_chain(&linked, l, control)?;
    Ok(IntersectionReport {
        nights: nights.len(),
        linked_by: if by_keys { PersonLink::Keys } else { PersonLink::Cells },
        persons: report.persons,
        above: report.above,
        l,
        worst: report.worst.map(|worst| ManifestRatio::new(worst.count, worst.of)),
        faults: report
            .faults
            .into_iter()
            .map(|(fault, night)| IntersectionFault { fault: fault.to_string(), night: night + 1 })
            .collect(),
    })
}

fn diversity(manifest: &Manifest) -> Option<u64> {
    let [rule] = &manifest.rules[..] else { return None };
    match rule.guarantee {
        Guarantee::LDiversity { l } => Some(l),
        _ => None,
    }
}

/// The names of the published attributes.
fn names_of(manifest: &Manifest) -> Vec<String> {
    let parts = manifest.tables.iter().flat_map(|table| &table.parts);
    parts.flat_map(|part| part.attributes.iter().cloned()).collect()
}

/// The columns that the known part of every night has.
fn common_columns(nights: &[ReleasedNight<'_>]) -> Vec<String> {
    let known = |night: &ReleasedNight<'_>| -> BTreeSet<String> {
        let part = night.manifest.tables.first().and_then(|table| table.parts.first());
        part.map(|part| part.attributes.iter().cloned().collect()).unwrap_or_default()
    };
    let common = nights.iter().map(known).reduce(|common, of| &common & &of);
    common.unwrap_or_default().into_iter().collect()
}

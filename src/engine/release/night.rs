//! A night of a table that is published again and again: drawn from the state of its population, and audited with it.

use std::collections::BTreeMap;

use ahash::AHashSet;

use super::input::{ReleaseInput, RepublishInput};
use super::night_terms::PopulationTerms;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::Attr;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{
    BucketFill, CheckName, Guarantee, NightDigest, PreviousNight, Publication, PublishedBytes, RepublishDetails,
    RepublishFigures, TableWitness, Witness,
};
use crate::publish::{Design, DesignedRule, PersistentBuckets, PlanRefusal, SecretRows};
use crate::report::{NightCounts, WrittenPart};
use crate::republication::{
    Diversity, Night, NightError, NightInput, NightTally, NightTerms, State, StateError, least_newcomers,
};
use crate::spec::{RepublishSpec, Specification};
use crate::verifier;
use crate::verifier::{AuditedNight, Check, ShownSignatures};

/// A night that is drawn, and nothing of it published.
pub(in crate::engine) struct DrawnNight {
    /// Its terms and figures.
    pub(in crate::engine) details: RepublishDetails,
    /// What became of the rows.
    pub(in crate::engine) counts: NightCounts,
    /// The state after it, which does not know yet what is published.
    state: State,
    sensitive: Attr,
    l: u64,
}

/// What a night is drawn from.
#[derive(Clone, Copy)]
pub(in crate::engine) struct NightOrder<'a> {
    pub(in crate::engine) specification: &'a Specification,
    pub(in crate::engine) population: &'a RepublishInput<'a>,
    pub(in crate::engine) terms: RepublishSpec,
    pub(in crate::engine) streams: &'a crate::random::RandomStreams,
}

impl<'a> NightOrder<'a> {
    /// The order of a night; `None` of a release that is no night.
    pub(in crate::engine) fn new(order: &'a ReleaseInput<'a>) -> Result<Option<Self>, EngineError> {
        let ReleaseInput { specification, streams, republish, .. } = order;
        match (specification.republish, republish) {
            (None, None) => Ok(None),
            (Some(terms), Some(population)) => Ok(Some(Self { specification, population, terms, streams })),
            _ => Err(EngineError::bug("a night without its population, or a population without a night")),
        }
    }

    /// The state that the night goes on from, begun under the same terms.
    fn state(&self, rule: &DesignedRule) -> Result<State, EngineError> {
        let terms = PopulationTerms::new(self.specification, rule, self.population.key);
        let Some(bytes) = self.population.state else { return Ok(State::new(terms.to_bytes())) };
        let state = State::from_bytes(bytes).map_err(|error: StateError| {
            EngineError::Refused(Problem::new(Kind::RepublishStateLost, error.to_string()))
        })?;
        terms.compare(state.terms()).map_err(|fault| PlanRefusal(vec![fault]))?;
        Ok(state)
    }

    /// The smallest cohort that is published tonight.
    fn least_newcomers(&self, state: &State, l: u64) -> Result<u64, EngineError> {
        if state.nights() == 0 {
            return Ok(l);
        }
        self.terms.min_newcomers.or_else(|| least_newcomers(&state.published_slots(), l)).ok_or_else(|| {
            let detail = "a value takes 1/l of what the last night shows, so that no number of newcomers is eligible by and large: \
                          state the number";
            let fault = Fault::new("/republish/min_newcomers", Kind::ParameterRange, detail);
            PlanRefusal(vec![fault.with("allowed", "an integer of at least 1")]).into()
        })
    }

    /// Draws the night of a design, which then publishes it.
    ///
    /// # Errors
    /// Why there is none.
    pub(in crate::engine) fn draw(
        &self,
        design: &mut Design,
        SecretRows { upload, order, .. }: SecretRows<'_>,
        control: &Control,
    ) -> Result<DrawnNight, EngineError> {
        let [rule] = &design.rules[..] else { return Err(EngineError::bug("a night has one rule")) };
        let Guarantee::LDiversity { l } = rule.rule.guarantee else {
            return Err(EngineError::bug("a night keeps l-diversity"));
        };
        let state = self.state(rule)?;
        let min_newcomers = self.least_newcomers(&state, l)?;
        let RepublishSpec { changes, merge, grace, forget_after, .. } = self.terms;
        let sensitive = rule.rule.sensitive;
        let column = upload.column(sensitive);
        let values: Vec<Option<Box<[u8]>>> = column.domain.iter().map(|value| value.map(Box::from)).collect();
        let persons = self.population.persons;
        if [order.len(), column.codes.len()] != [persons.len(); 2] {
            return Err(EngineError::bug("the persons of a night are not those of its rows"));
        }
        let value_of: Vec<u32> = column.codes.iter().collect();
        let founding = Diversity { l };
        let terms = NightTerms {
            founding: &founding,
            changes,
            group: u32::try_from(l).unwrap_or(u32::MAX),
            merging: merge,
            min_newcomers,
            grace,
            forget_after,
        };
        let earlier = state.past_nights().to_vec();
        let release = self.population.previous;
        let previous = state.digest().map(|digest| PreviousNight { release, digest: digest.clone() });
        let table = NightInput { persons, value_of: &value_of, values: &values, order };
        let night = Night::new(state, table, &terms, self.streams, control)?;
        if night.buckets.is_empty() {
            return Err(empty(&night, rule));
        }
        let details = RepublishDetails {
            night: night.state.nights(),
            previous,
            changes,
            merge,
            min_newcomers,
            grace,
            forget_after,
            figures: figures(&night),
            earlier,
        };
        let counts = counted(&night.tally);
        let (buckets, state) = persistent(night);
        design.publish_night(buckets, details.clone());
        Ok(DrawnNight { details, counts, state, sensitive, l })
    }
}

impl DrawnNight {
    /// Takes the state that the night leaves behind once its parts are written.
    pub(in crate::engine) fn take_state(&mut self, publication: &Publication, written: &[Vec<WrittenPart>]) -> Vec<u8> {
        let files = publication.tables.iter().flat_map(|table| table.parts.iter().map(|part| part.file(&table.name)));
        let files: Vec<String> = files.collect();
        let parts = files
            .iter()
            .zip(written.iter().flatten())
            .map(|(file, part)| (file.as_str(), part.sha256.as_deref().unwrap_or("")));
        let previous = self.details.previous.as_ref().map(|previous| &previous.digest);
        let state = std::mem::replace(&mut self.state, State::new(Vec::new()));
        state.published_as(NightDigest::new(previous, parts)).to_bytes()
    }

    /// Audits the night: the written parts and the witness, rows in the order of the upload, against both states.
    ///
    /// # Errors
    /// Cancelled, or a part that cannot be read.
    pub(in crate::engine) fn audit(
        &self,
        order: &ReleaseInput<'_>,
        written: WrittenNight<'_>,
        parts: &dyn PublishedBytes,
        control: &Control,
    ) -> Result<Check, EngineError> {
        let WrittenNight { publication, witness, state, signatures } = written;
        let population = order.republish.as_ref();
        let shown = match signatures {
            Some(signatures) => Some(signatures),
            None => verifier::shown_signatures(publication, parts, control)?,
        };
        let digest = verifier::night_digest(publication, self.details.previous.as_ref(), parts, control)?;
        let labels = match &witness.tables[..] {
            [TableWitness::Buckets(labels)] => Some(labels),
            _ => None,
        };
        let audited = match (population, &shown, labels) {
            (Some(population), Some(shown), Some(labels)) => verifier::audit_night(
                &AuditedNight {
                    before: population.state,
                    after: state,
                    digest: &digest,
                    persons: population.persons,
                    values: order.table.column(self.sensitive),
                    labels,
                    shown,
                    details: &self.details,
                    l: self.l,
                },
                control,
            )?,
            _ => Err("the parts are not those of a night".to_owned()),
        };
        Ok(Check { check: CheckName::Republication, passed: audited.is_ok(), detail: audited.err() })
    }
}

/// A night whose parts are written.
pub(in crate::engine) struct WrittenNight<'a> {
    pub(in crate::engine) publication: &'a Publication,
    /// Rows in the order of the upload.
    pub(in crate::engine) witness: &'a Witness,
    /// The state that it leaves behind.
    pub(in crate::engine) state: &'a [u8],
    /// What the verifier read of the sensitive part; `None` where that has values that the table has not.
    pub(in crate::engine) signatures: Option<ShownSignatures>,
}

/// The buckets of a night, with the values that some signature has, and its state.
fn persistent(night: Night) -> (PersistentBuckets, State) {
    let Night { bucket_of, buckets, mut signatures, values, state, .. } = night;
    let mut is_used = vec![false; values.len()];
    signatures.iter().flatten().for_each(|value| is_used[*value as usize] = true);
    // the number of used values before each
    let before = is_used.iter().scan(0, |next, used| Some(std::mem::replace(next, *next + u32::from(*used))));
    let place: Vec<u32> = before.collect();
    signatures.iter_mut().flatten().for_each(|value| *value = place[*value as usize]);
    let signature_of = buckets.iter().map(|bucket| bucket.signature).collect();
    let values = values.into_iter().zip(is_used).filter_map(|(value, used)| used.then_some(value)).collect();
    (PersistentBuckets { bucket_of, signature_of, signatures, values }, state)
}

fn figures(night: &Night) -> RepublishFigures {
    let mut fills: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut figures = RepublishFigures::default();
    for bucket in &night.buckets {
        let size = night.signature(*bucket).len() as u64;
        figures.rows += bucket.members;
        figures.slots += size;
        *fills.entry((size, size - bucket.members)).or_default() += 1;
    }
    let signatures: AHashSet<&[u32]> = night.signatures.iter().map(Vec::as_slice).collect();
    figures.signatures = signatures.len() as u64;
    let fills = fills.into_iter();
    figures.buckets = fills.map(|((size, counterfeits), buckets)| BucketFill { size, counterfeits, buckets }).collect();
    figures
}

const fn counted(tally: &NightTally) -> NightCounts {
    let &NightTally { known, newcomers, returning, departed, changed, waiting, withheld, moved, merged, ineligible } =
        tally;
    NightCounts { known, newcomers, returning, departed, changed, waiting, withheld, moved, merged, ineligible }
}

/// Why a night without a row is no release.
fn empty(night: &Night, rule: &DesignedRule) -> EngineError {
    if night.state.nights() == 1 && night.tally.ineligible {
        let Guarantee::LDiversity { l } = rule.rule.guarantee else { return EngineError::bug("no l-diversity") };
        let largest = rule.largest_l;
        let detail = format!("the data allows l of at most {largest} here; {l} was asked for");
        let pointer = rule.pointer.as_deref().unwrap_or("/method");
        let fault = Fault::new(pointer, Kind::RuleIneligible, detail);
        return PlanRefusal(vec![fault.with("requested", l.to_string()).with("largest_l", largest)]).into();
    }
    let detail = "no row would be published tonight: all newcomers wait, and no known person has the published value";
    EngineError::Refused(Problem::new(Kind::EmptyTable, detail))
}

impl From<NightError> for EngineError {
    fn from(error: NightError) -> Self {
        let detail = error.to_string();
        match error {
            NightError::Cancelled(cancelled) => cancelled.into(),
            NightError::SeveralRows { rows } => {
                let fault = Fault::new("/republish", Kind::RepublishUnsupported, detail);
                PlanRefusal(vec![fault.with("rows", rows)]).into()
            }
            NightError::ValueChanged { changed } => {
                Self::Refused(Problem::new(Kind::RepublishValueChanged, detail).with("changed", changed))
            }
            NightError::TooLarge | NightError::NightsExhausted => Self::Refused(Problem::new(Kind::WorkLimit, detail)),
        }
    }
}

//! What does not go together with republication.

use super::specification::Specification;
use crate::problem::{Fault, Kind};
use crate::publication::{ChangedValues, Guarantee, Thresholds};
use crate::spec::grammar::general::PeopleChoice;
use crate::spec::grammar::reader::{FaultList, child};
use crate::spec::grammar::schema::{DatasetSchema, DocumentSource};
use crate::spec::methods::method::MethodSpec;

/// Reports what republication does not do. Nothing is said of documents without it.
pub(super) fn check_republication(
    specification: &Specification,
    schema: &DatasetSchema<'_>,
    origin: DocumentSource,
    faults: &mut FaultList,
) {
    if specification.republish.is_none() {
        return;
    }
    let mut refuse = |pointer: &str, because: &str| {
        let fault = Fault::new(pointer, Kind::RepublishUnsupported, because);
        faults.push(fault);
    };
    of_method(specification, &mut refuse);
    for excluded in &specification.excludable {
        let name = &specification.names[excluded.attribute.index()];
        let pointer = child(&child("/attributes", name), "excludable");
        refuse(&pointer, "values that an insider can rule out are not offered under republication");
    }
    if specification.people == PeopleChoice::Unpublished {
        refuse("/people", "a night publishes all people of the table; leave out people");
    }
    if specification.unproven.is_some() {
        refuse("/composition/mode", "a night without proof would end the promise of all nights; leave out composition");
    }
    if specification.schema.is_some() {
        refuse("/schema", "the tables of a night are not proposed; leave out schema");
    }
    match specification.unit.kept() {
        Some(_) => refuse(
            "/republish",
            "which rows of a person are kept is decided anew for each table, so that values would seem to change: upload one row of \
             each person, without keep",
        ),
        None if specification.unit.rows() > 1 => {
            refuse(
                "/republish",
                "a republished table has one row of each person: upload it with max_rows_per_person of 1",
            );
        }
        None => {}
    }
    // a policy has no table yet, and a release that is read again has left its keys behind
    let is_keyed = matches!(origin, DocumentSource::Policy | DocumentSource::Reproduction);
    if schema.keys.is_empty() && !is_keyed {
        let detail = match origin.is_local() {
            true => {
                "persons are distinguished by their key: name the state of the population with --population and the columns \
                     of the key with --person"
            }
            false => "persons are distinguished by their key: upload the dataset into a population with one",
        };
        faults.push(Fault::new("/republish", Kind::RepublishNeedsRecordKey, detail));
    }
}

/// Offered are methods with one table that bounds the share of each value in a bucket, whatever the table is.
fn of_method(specification: &Specification, refuse: &mut impl FnMut(&str, &str)) {
    match &specification.method {
        MethodSpec::Anatomy(spec) => {
            if !matches!(spec.rule.guarantee, Guarantee::LDiversity { .. }) {
                refuse("/method/guarantee", "under republication anatomy keeps l_diversity alone");
            }
            if spec.closed.is_some() {
                refuse("/method/ineligible_strata", "under republication no bucket is without a bound");
            }
        }
        MethodSpec::Bucketize(spec) => {
            if !matches!(spec.thresholds, Thresholds::Uniform { .. }) {
                refuse(
                    "/method/thresholds",
                    "under republication thresholds are uniform: the shares of a table move every night",
                );
            }
            if spec.counterfeits.is_some() {
                refuse("/method/counterfeits", "under republication persons who left leave the counterfeits");
            }
            let moves = specification.republish.is_some_and(|terms| terms.changes == ChangedValues::Move);
            if moves {
                refuse("/republish/changes", "bucketize does not move persons; withhold their rows, or use anatomy");
            }
        }
        MethodSpec::Versatile(_)
        | MethodSpec::Decompose(_)
        | MethodSpec::Generalize(_)
        | MethodSpec::Sequential(_)
        | MethodSpec::Slicing(_) => {
            refuse("/republish", "republication is offered for the methods anatomy and bucketize");
        }
    }
}

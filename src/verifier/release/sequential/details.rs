use std::collections::BTreeMap;

use crate::publication::{
    CellContent, EarlierRelease, EarlierReleases, MethodDetails, SequentialDetails, TableProtection,
};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::input::VerifierInput;

/// The details of a sequential release.
pub(in crate::verifier) fn sequential_details<'a>(input: &'a VerifierInput<'_>) -> Option<&'a SequentialDetails> {
    match &input.publication.method_details {
        MethodDetails::Sequential(sequence) => Some(sequence),
        _ => None,
    }
}

/// Whether all earlier releases are available.
pub(in crate::verifier) fn has_earlier(input: &VerifierInput<'_>, sequence: &SequentialDetails) -> bool {
    earlier(input.earlier_releases, sequence).is_some()
}

/// The earlier releases in their numbered order.
pub(in crate::verifier) fn earlier<'a>(
    releases: Option<&'a EarlierReleases>,
    sequence: &SequentialDetails,
) -> Option<Vec<&'a EarlierRelease>> {
    let releases = releases.map_or(&[][..], |earlier| &earlier.releases);
    sequence.against.iter().map(|id| releases.iter().find(|release| release.release == *id)).collect()
}

/// Checks that the release is one exclusive table with one part, generalized by its cuts.
pub(in crate::verifier) fn claims(input: &VerifierInput<'_>, sequence: &SequentialDetails, log: &mut CheckLog) {
    let publication = input.publication;
    let [table] = &publication.tables[..] else {
        return log.fail(CheckName::Guards, "a sequential release is one table");
    };
    if table.protection != TableProtection::Exclusive || table.parts.len() != 1 || table.parts[0].bucketed {
        log.fail(CheckName::Guards, format!("table {}: it is exclusive, of one part without buckets", table.name));
    }
    if !publication.rules.is_empty() || !input.submitted.is_empty() {
        log.fail(CheckName::Gnf, "a sequential release keeps requirements, and no rules");
    }
    let columns = table.parts.iter().flat_map(|part| &part.columns);
    for column in columns {
        let own = joined_as(sequence, 0, &column.name);
        let is_cut = sequence.cuts.iter().filter(|(name, _)| name == own).count();
        let name = input.name(column.attribute);
        if is_cut != usize::from(column.cells != CellContent::Exact) {
            log.fail(CheckName::Requirements, format!("{name} is not published with the cells of its cut"));
        }
        let of_original = input.original.and_then(|original| original.names().get(column.attribute.index()));
        if input.names.get(column.attribute.index()) != Some(&column.name) || of_original.is_some_and(|of| of != own) {
            log.fail(CheckName::Columns, format!("{name} is joined under the name of another attribute"));
        }
    }
    let columns = || table.parts.iter().flat_map(|part| &part.columns);
    let is_published = |name: &String| columns().any(|column| joined_as(sequence, 0, &column.name) == name);
    if !sequence.cuts.iter().all(|(name, _)| is_published(name)) {
        log.fail(CheckName::Requirements, "an attribute has a cut and is not published");
    }
    let own = columns().map(|column| (joined_as(sequence, 0, &column.name).to_owned(), column.name.clone()));
    if sequence.renamed.get(&0) != others(own).as_ref() {
        log.fail(CheckName::Columns, "the declared names of attributes are not the published ones");
    }
    if sequence.requirements.is_empty() {
        log.fail(CheckName::Requirements, "nothing is required");
    }
}

/// The attribute that a release of the sequence publishes under a name.
pub(in crate::verifier) fn joined_as<'a>(
    sequence: &'a SequentialDetails,
    release: usize,
    published: &'a str,
) -> &'a str {
    let others = sequence.renamed.get(&release);
    let found = others.and_then(|others| others.iter().find(|(_, name)| name.as_str() == published));
    found.map_or(published, |(attribute, _)| attribute.as_str())
}

/// The attributes with a different published name, with that name; `None` where there is none.
pub(in crate::verifier) fn others(names: impl Iterator<Item = (String, String)>) -> Option<BTreeMap<String, String>> {
    let others: BTreeMap<String, String> = names.filter(|(attribute, published)| attribute != published).collect();
    (!others.is_empty()).then_some(others)
}

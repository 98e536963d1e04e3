use std::collections::BTreeMap;

use crate::publication::{
    CellContent, EarlierRelease, EarlierReleases, MethodDetails, SequentialDetails, TableProtection,
};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::evidence::Evidence;

/// What a sequential release says of itself.
pub(in crate::verifier) fn sequential_details<'a>(evidence: &'a Evidence<'_>) -> Option<&'a SequentialDetails> {
    match &evidence.publication.method_details {
        MethodDetails::Sequential(sequence) => Some(sequence),
        _ => None,
    }
}

/// Whether the earlier releases are at hand.
pub(in crate::verifier) fn is_beside(evidence: &Evidence<'_>, sequence: &SequentialDetails) -> bool {
    earlier(evidence.beside, sequence).is_some()
}

/// The earlier releases in the order in which they are numbered.
pub(in crate::verifier) fn earlier<'a>(
    beside: Option<&'a EarlierReleases>,
    sequence: &SequentialDetails,
) -> Option<Vec<&'a EarlierRelease>> {
    let releases = beside.map_or(&[][..], |beside| &beside.releases);
    sequence.against.iter().map(|id| releases.iter().find(|release| release.release == *id)).collect()
}

/// Whether it is one exclusive table of one part, generalized as its cuts say.
pub(in crate::verifier) fn claims(evidence: &Evidence<'_>, sequence: &SequentialDetails, findings: &mut CheckLog) {
    let publication = evidence.publication;
    let [table] = &publication.tables[..] else {
        return findings.fail(CheckName::Guards, "a sequential release is one table");
    };
    if table.protection != TableProtection::Exclusive || table.parts.len() != 1 || table.parts[0].bucketed {
        findings.fail(CheckName::Guards, format!("table {}: it is exclusive, of one part without buckets", table.name));
    }
    if !publication.rules.is_empty() || !evidence.submitted.is_empty() {
        findings.fail(CheckName::Gnf, "a sequential release keeps requirements, and no rules");
    }
    let columns = table.parts.iter().flat_map(|part| &part.columns);
    for column in columns {
        let own = joined_as(sequence, 0, &column.name);
        let is_cut = sequence.cuts.iter().filter(|(name, _)| name == own).count();
        let name = evidence.name(column.attribute);
        if is_cut != usize::from(column.cells != CellContent::Exact) {
            findings.fail(CheckName::Requirements, format!("{name} is not published as its cut says"));
        }
        let of_original = evidence.original.and_then(|original| original.names().get(column.attribute.index()));
        if evidence.names.get(column.attribute.index()) != Some(&column.name) || of_original.is_some_and(|of| of != own)
        {
            findings.fail(CheckName::Columns, format!("{name} is joined as what it is not"));
        }
    }
    let columns = || table.parts.iter().flat_map(|part| &part.columns);
    let is_published = |name: &String| columns().any(|column| joined_as(sequence, 0, &column.name) == name);
    if !sequence.cuts.iter().all(|(name, _)| is_published(name)) {
        findings.fail(CheckName::Requirements, "an attribute has a cut and is not published");
    }
    let own = columns().map(|column| (joined_as(sequence, 0, &column.name).to_owned(), column.name.clone()));
    if sequence.renamed.get(&0) != others(own).as_ref() {
        findings.fail(CheckName::Columns, "the names of attributes are not those that are published");
    }
    if sequence.requirements.is_empty() {
        findings.fail(CheckName::Requirements, "nothing is required");
    }
}

/// The attribute that a release of a sequence publishes under a name.
pub(in crate::verifier) fn joined_as<'a>(
    sequence: &'a SequentialDetails,
    release: usize,
    published: &'a str,
) -> &'a str {
    let others = sequence.renamed.get(&release);
    let found = others.and_then(|others| others.iter().find(|(_, name)| name.as_str() == published));
    found.map_or(published, |(attribute, _)| attribute.as_str())
}

/// Of attributes with their published names those that have another; `None` where none has.
pub(in crate::verifier) fn others(names: impl Iterator<Item = (String, String)>) -> Option<BTreeMap<String, String>> {
    let others: BTreeMap<String, String> = names.filter(|(attribute, published)| attribute != published).collect();
    (!others.is_empty()).then_some(others)
}

//! Notices on what a release loses, before and after it is published.

use crate::engine::suggest::shape::unread;
use crate::microdata::{Attr, AttrSet, AttributeCounts, Column, Table, is_formula};
use crate::privacy::RuleStatus;
use crate::publication::{CellContent, NoticeKind, PublishedColumn, TableWitness};
use crate::publish::{Design, DesignRemark, Published};
use crate::report::SpecificationNotice;
use crate::spec::{Algorithm, MethodSpec, Specification, child};

/// The names of attributes as the release writes them.
fn named(specification: &Specification, attributes: AttrSet) -> String {
    let names: Vec<&str> = attributes.iter().map(|attr| specification.published_names[attr.index()].as_str()).collect();
    names.join(", ")
}

fn notice(r#type: NoticeKind, pointer: &str, detail: String) -> SpecificationNotice {
    SpecificationNotice { r#type, pointer: Some(pointer.to_owned()), detail }
}

/// Notices for the holder of the original alone: they say of its groups what the parts do not show.
pub(in crate::engine) fn describe_remarks(specification: &Specification, design: &Design) -> Vec<SpecificationNotice> {
    let remarks = design.remarks.iter().map(|remark| match *remark {
        DesignRemark::SensitiveColumnNarrowed(left) => {
            let detail = format!(
                "{} left the column of the sensitive attribute: not even the whole table as one bucket keeps the guarantee with them",
                named(specification, left)
            );
            notice(NoticeKind::SensitiveColumnNarrowed, "/method/columns/count", detail)
        }
    });
    remarks.collect()
}

/// Notices on values that are not what they seem: undeclared missing ones, dates and amounts that are texts.
pub(in crate::engine) fn describe_values(specification: &Specification, table: &Table) -> Vec<SpecificationNotice> {
    let read_as_texts = specification.attributes.iter().filter_map(|attr| {
        let how = unread(&table.column(attr).domain)?;
        let name = &specification.names[attr.index()];
        let detail = format!("the values of {name} are compared as texts: {how} at the upload");
        Some(notice(NoticeKind::NotationNotRead, &child("/attributes", name), detail))
    });
    describe_undeclared(specification, table).into_iter().chain(read_as_texts).collect()
}

/// Notices on undeclared missing values of protected attributes: an insider may exclude them.
fn describe_undeclared(specification: &Specification, table: &Table) -> Vec<SpecificationNotice> {
    // thresholds assume no insider
    if matches!(specification.method, MethodSpec::Bucketize(_)) {
        return Vec::new();
    }
    let rules = specification.method.rules();
    let protected = rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
    let declared = |attr| {
        let excluded = specification.excludable.iter().find(|excluded| excluded.attribute == attr);
        excluded.is_some_and(|excluded| excluded.values.contains(&None))
    };
    let missing = protected.iter().filter(|&attr| table.column(attr).domain.has_missing() && !declared(attr));
    let notice = |attr: Attr| {
        let name = &specification.names[attr.index()];
        SpecificationNotice {
            r#type: NoticeKind::UndeclaredMissing,
            pointer: Some(child("/attributes", name)),
            detail: format!(
                "missing values of {name} count like any other value: if insiders can exclude them, declare null as excludable"
            ),
        }
    };
    missing.map(notice).collect()
}

/// Notices that the specification and the tables show, also to readers.
pub(in crate::engine) fn describe_losses(specification: &Specification, design: &Design) -> Vec<SpecificationNotice> {
    describe_crowded(specification).into_iter().chain(describe_unrelated(specification, design)).collect()
}

/// The notice on texts of too many values for sets.
fn describe_crowded(specification: &Specification) -> Option<SpecificationNotice> {
    let MethodSpec::Generalize(spec) = &specification.method else { return None };
    let detail = || {
        format!(
            "{} have too many values for sets by their type, and are published as intervals of texts; \"cells\": \"set\" publishes sets \
             of any size",
            named(specification, spec.crowded)
        )
    };
    (!spec.crowded.is_empty()).then(|| notice(NoticeKind::TextsInIntervals, "/method/cells", detail()))
}

/// The notice on attributes that no chain of tables relates, where a rule holds by that.
fn describe_unrelated(specification: &Specification, design: &Design) -> Option<SpecificationNotice> {
    let MethodSpec::Versatile(_) = &specification.method else { return None };
    // tables that the caller proposes are the caller's choice
    if specification.schema.is_some() {
        return None;
    }
    let groups = related_groups(design);
    let is_cut = design.rules.iter().any(|rule| rule.status == RuleStatus::Unreachable);
    if groups.len() < 2 || !is_cut {
        return None;
    }
    let groups: Vec<String> = groups.into_iter().map(|group| format!("({})", named(specification, group))).collect();
    let detail = format!("no tables relate {}; readers see no association", groups.join(" and "));
    Some(notice(NoticeKind::AttributesUnrelated, "/method/rules", detail))
}

/// The attributes that chains of tables relate, in the order of the tables.
fn related_groups(design: &Design) -> Vec<AttrSet> {
    let mut groups: Vec<AttrSet> = Vec::new();
    for table in &design.tables {
        let (met, apart): (Vec<AttrSet>, Vec<AttrSet>) =
            groups.into_iter().partition(|group| group.meets(table.attributes));
        groups = apart;
        groups.push(met.into_iter().fold(table.attributes, AttrSet::union));
    }
    groups
}

/// Whether [`describe_made`] has anything to say of releases by the method.
pub(in crate::engine) const fn need_made_tables(specification: &Specification) -> bool {
    match &specification.method {
        MethodSpec::Versatile(spec) => matches!(spec.algorithm, Algorithm::MultiSa),
        MethodSpec::Generalize(_) => true,
        _ => false,
    }
}

/// Notices that need the finished tables: everything in one bucket, and attributes with one cell in all rows.
pub(in crate::engine) fn describe_made(
    specification: &Specification,
    published: &Published,
    table: &Table,
) -> Vec<SpecificationNotice> {
    match &specification.method {
        MethodSpec::Versatile(spec) if spec.algorithm == Algorithm::MultiSa => {
            let one = published.witness.tables.iter().filter_map(rows_of_one_bucket).max();
            let detail = |rows: u64| {
                format!(
                    "one bucket holds all {rows} rows that are published: readers learn no association with a sensitive attribute; fewer \
                     rules or a smaller l give more buckets, and uad protects each attribute in a table of its own"
                )
            };
            one.map(|rows| notice(NoticeKind::OneBucket, "/method/algorithm", detail(rows))).into_iter().collect()
        }
        MethodSpec::Generalize(_) => describe_suppressed(specification, published, table).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The notice on published cells that a spreadsheet would execute, and on such names.
pub(in crate::engine) fn describe_formulas<'c>(
    specification: &Specification,
    columns: impl Iterator<Item = (Attr, &'c Column)>,
) -> Option<SpecificationNotice> {
    let is_named_so = |attr: Attr| is_formula(specification.published_names[attr.index()].as_bytes());
    let found = columns.filter(|(attr, column)| is_named_so(*attr) || has_formula(column));
    let found: AttrSet = found.map(|(attr, _)| attr).collect();
    let detail = || {
        format!(
            "{}: cells or names that begin with =, +, - or @, which a spreadsheet executes as formulas; import such files as text, or \
             download their parts with view=spreadsheet",
            named(specification, found)
        )
    };
    (!found.is_empty()).then(|| SpecificationNotice {
        r#type: NoticeKind::SpreadsheetFormulas,
        pointer: None,
        detail: detail(),
    })
}

/// Whether a row has a formula. A domain may have values of rows that are not published, which must not be named.
fn has_formula(column: &Column) -> bool {
    let formulas: Vec<bool> = column.domain.iter().map(|value| value.is_some_and(is_formula)).collect();
    formulas.contains(&true) && column.codes.iter().any(|code| formulas[code as usize])
}

/// The attributes of the parts with their cells.
pub(in crate::engine) fn written_columns(published: &Published) -> impl Iterator<Item = (Attr, &Column)> {
    let described = published.publication.tables.iter().flat_map(|table| &table.parts);
    let made = published.contents.tables.iter().flatten();
    let columns = described.zip(made).flat_map(|(part, contents)| part.columns.iter().zip(&contents.columns));
    columns.map(|(described, column)| (described.attribute, column))
}

/// The rows of a table whose published rows share one bucket.
fn rows_of_one_bucket(witness: &TableWitness) -> Option<u64> {
    let TableWitness::Buckets(labels) = witness else { return None };
    let largest = labels.iter().copied().max()?;
    (largest == 1).then(|| labels.iter().filter(|label| **label == 1).count() as u64)
}

/// The notice on generalized attributes that have one cell in all rows, though their values differ.
fn describe_suppressed(
    specification: &Specification,
    published: &Published,
    table: &Table,
) -> Option<SpecificationNotice> {
    let described = published.publication.tables.iter().flat_map(|table| &table.parts);
    let made = published.contents.tables.iter().flatten();
    let columns = described.zip(made).flat_map(|(part, contents)| part.columns.iter().zip(&contents.columns));
    let is_suppressed = |(described, column): &(&PublishedColumn, &Column)| {
        described.cells != CellContent::Exact && has_one_cell(column) && table.distinct(described.attribute) > 1
    };
    let suppressed: AttrSet = columns.filter(is_suppressed).map(|(described, _)| described.attribute).collect();
    let detail = || {
        format!(
            "{}: the same cell in every row, which says nothing of it; a weaker guarantee or fewer quasi-identifiers keep more",
            named(specification, suppressed)
        )
    };
    (!suppressed.is_empty()).then(|| notice(NoticeKind::AttributesSuppressed, "/method/quasi_identifiers", detail()))
}

fn has_one_cell(column: &Column) -> bool {
    let mut codes = column.codes.iter();
    let first = codes.next();
    codes.all(|code| Some(code) == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::{Arena, AttributeType, Codes, Domain};

    #[test]
    fn formulas_of_rows_that_are_not_published_are_not_named() {
        let mut values = Arena::default();
        values.push(b"=1+1");
        values.push(b"plain");
        let (domain, _) = Domain::sort(AttributeType::Text, false, &values);
        let of = |codes| Column { domain: domain.clone(), codes: Codes::U8(codes) };
        assert!(has_formula(&of(vec![1, 0])));
        assert!(!has_formula(&of(vec![1, 1])));
    }
}

//! Tables in which each row counts as a person, though a column seems to identify persons with several rows.

use super::roles::ColumnEvidence;
use super::words::{self, Meaning};
use crate::microdata::ColumnProfile;
use crate::publication::NoticeKind;
use crate::report::SpecificationNotice;
use crate::spec::ColumnRole;

/// The notice that persons seem to have several rows, by the names of the columns and their counts; for tables of which nothing is said
/// of persons. None where another key of persons has a value of its own in each row.
#[must_use]
pub fn undeclared_subject(profiles: &[ColumnProfile], rows: u64) -> Option<SpecificationNotice> {
    let is_person_key = |profile: &&ColumnProfile| words::meaning(&profile.name) == Some(Meaning::PersonKey);
    if profiles.iter().filter(is_person_key).any(|profile| profile.distinct == Some(rows)) {
        return None;
    }
    let is_subject = |profile: &&ColumnProfile| {
        let meaning = words::meaning(&profile.name);
        let evidence = ColumnEvidence { profile, rows, is_key: false, meaning, shape: None, unread: None };
        evidence.judge().role == ColumnRole::Subject
    };
    let ColumnProfile { name, top, .. } = profiles.iter().filter(is_subject).max_by_key(|profile| profile.distinct)?;
    let detail = format!(
        "{name} seems to identify persons, who have up to {top} rows, and each row counts as another person; guarantees hold of \
         persons with --subject {name} on the command line, or with subject={name} where the table is uploaded"
    );
    Some(SpecificationNotice { r#type: NoticeKind::SubjectUndeclared, pointer: None, detail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::AttributeType;

    /// The profile of a column without missing values.
    fn column(name: &str, distinct: u64, top: u64) -> ColumnProfile {
        ColumnProfile {
            name: name.to_owned(),
            kind: AttributeType::Integer,
            distinct: Some(distinct),
            missing: 0,
            top,
            identifier: false,
            mostly_distinct: false,
            bytes: None,
            chose_rows: false,
        }
    }

    #[test]
    fn persons_with_several_rows_are_noticed_by_name() {
        let notice = |columns: &[ColumnProfile]| undeclared_subject(columns, 90).map(|notice| notice.detail);
        let said = notice(&[column("patient_id", 18, 5), column("age", 40, 3)]).unwrap();
        assert!(said.contains("patient_id seems to identify persons, who have up to 5 rows"), "{said}");
        // a key that is different in each row, and names that are no keys of persons
        assert_eq!(notice(&[column("patient_id", 90, 1), column("age", 40, 3)]), None);
        assert_eq!(notice(&[column("patient_id", 18, 5), column("person_id", 90, 1)]), None);
        assert_eq!(notice(&[column("age", 40, 3), column("ward", 3, 30)]), None);
    }
}

//! What no rule of a release prevents: unique rows, and values that other columns reveal; in figures and in sentences.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::manifest::SpecificationNotice;
use super::ratio::ManifestRatio;
use crate::publication::NoticeKind;

/// What no rule prevents. Each figure follows from the parts; no value is named.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ManifestExposures {
    /// The unique rows of each part whose rows are tuples.
    pub rows: Vec<ExposedRows>,
    /// The values that columns of a part reveal. Each protected attribute has an entry for every part beside it with all its
    /// columns, and for the best choices of no, one and two columns where these reveal something and more than fewer columns. Each
    /// unprotected attribute has one entry, for the part whose other columns reveal most.
    pub values: Vec<ExposedValues>,
    /// The published attributes that no rule or requirement protects.
    pub unprotected: Vec<String>,
    /// The choices of at most two columns that were tried, of all of them: parts in order, fewer columns first, until 2^27
    /// cells are compared.
    pub choices: ManifestRatio,
}

/// The rows of a part that are unique.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExposedRows {
    /// The table.
    pub table: String,
    /// The part.
    pub part: String,
    /// The columns of the part by which a row is known: all but those that the table protects.
    pub attributes: Vec<String>,
    /// The rows that no other row of the part equals in these columns.
    pub unique: ManifestRatio,
}

/// The rows whose value of an attribute follows from columns of a part.
///
/// Within the part, rows with equal cells in the known columns share what is known. Of an attribute in another part of the table,
/// each row of the bucket there is equally likely.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExposedValues {
    /// The attribute whose value follows.
    pub attribute: String,
    /// Whether some rule or requirement protects it.
    pub protected: bool,
    /// The table.
    pub table: String,
    /// The part with the known columns.
    pub part: String,
    /// The known columns; none where one value is frequent everywhere.
    pub known: Vec<String>,
    /// The rows of the part with one possible value.
    pub fixed: ManifestRatio,
    /// The rows of the part whose likeliest value has a probability above 1/2.
    pub likely: ManifestRatio,
}

/// What a reader infers who knows all other published columns of a person: figures of the original.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PractitionerExposures {
    /// The rows of the original that no other row equals in all published attributes.
    pub unique: ManifestRatio,
    /// What follows of each published attribute.
    pub values: Vec<PractitionerValues>,
}

/// The rows of the original whose value of an attribute follows from all other published attributes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PractitionerValues {
    /// The attribute.
    pub attribute: String,
    /// Whether some rule or requirement protects it.
    pub protected: bool,
    /// The rows with one possible value.
    pub fixed: ManifestRatio,
    /// The rows whose likeliest value has a share above 1/2.
    pub likely: ManifestRatio,
}

/// The longest list of columns that a sentence names.
const MAX_NAMED_COLUMNS: usize = 6;

impl ManifestExposures {
    /// The exposures in sentences.
    #[must_use]
    pub fn in_words(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.rows.iter().map(|rows| self.unique(rows)).collect();
        sentences.extend(self.values.iter().filter(|values| values.protected).map(|values| self.protected(values)));
        sentences.extend(self.unprotected.iter().map(|attribute| self.unprotected(attribute)));
        if self.choices.count < self.choices.of {
            let ManifestRatio { count, of } = self.choices;
            sentences.push(format!("{count} of {of} choices of at most two columns were tried"));
        }
        sentences
    }

    /// The largest exposures in a few sentences; none where there is nothing to say.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        // of equal shares the first
        let rows = self.rows.iter().rev().max_by(|a, b| compared(a.unique, b.unique));
        sentences.extend(rows.filter(|rows| rows.unique.count > 0).map(|rows| self.unique(rows)));
        let protected = self.values.iter().filter(|values| values.protected && values.likely.count > 0).rev();
        let most = protected.max_by(|a, b| compared(a.fixed, b.fixed).then_with(|| compared(a.likely, b.likely)));
        sentences.extend(most.map(|values| self.protected(values)));
        if !self.unprotected.is_empty() {
            sentences.push(format!("no rule protects {}", listed(&self.unprotected)));
        }
        sentences
    }

    /// The notice that not every choice of columns was tried.
    #[must_use]
    pub fn incomplete(&self) -> Option<SpecificationNotice> {
        let ManifestRatio { count, of } = self.choices;
        (count < of).then(|| SpecificationNotice {
            r#type: NoticeKind::ExposureNotComplete,
            pointer: None,
            detail: format!(
                "the tables have too many rows and columns: {count} of {of} choices of at most two columns were tried, and others may \
                 reveal more"
            ),
        })
    }

    /// The name of a part in a sentence: its table, if the sentences name no other part of it.
    fn named(&self, table: &str, part: &str) -> String {
        let mut all = self.rows.iter().map(|rows| (&rows.table, &rows.part));
        match all.any(|(of, other)| of == table && other != part) {
            true => format!("{table}.{part}"),
            false => table.to_owned(),
        }
    }

    fn unique(&self, rows: &ExposedRows) -> String {
        let ExposedRows { table, part, attributes, unique } = rows;
        let name = self.named(table, part);
        let columns = match attributes.len() > MAX_NAMED_COLUMNS {
            true => format!("their values of all {} columns by which a row is known", attributes.len()),
            false => format!("their {}", listed(attributes)),
        };
        format!("{} of {name} are the only ones with {columns}", share(*unique))
    }

    fn protected(&self, values: &ExposedValues) -> String {
        let ExposedValues { attribute, table, part, known, fixed, likely, .. } = values;
        let name = self.named(table, part);
        if known.is_empty() {
            return format!("more than half of the rows of {table} have one value of {attribute}");
        }
        let columns = match known.len() > MAX_NAMED_COLUMNS {
            true => format!("all other columns of {name}"),
            false => format!("{} of {name}", listed(known)),
        };
        format!(
            "who knows {columns} knows {attribute} for {}, and more likely than not for {}",
            share(*fixed),
            share(*likely)
        )
    }

    fn unprotected(&self, attribute: &String) -> String {
        let mut of_attribute = self.values.iter().filter(|values| values.attribute == *attribute);
        match of_attribute.next() {
            None => format!("no rule protects {attribute}: no other column reveals it"),
            Some(ExposedValues { table, part, fixed, likely, .. }) => format!(
                "no rule protects {attribute}: who knows the other columns of {} knows it for {}, and more likely than not for {}",
                self.named(table, part),
                share(*fixed),
                share(*likely)
            ),
        }
    }
}

fn compared(a: ManifestRatio, b: ManifestRatio) -> std::cmp::Ordering {
    let product = |of: ManifestRatio, other: ManifestRatio| u128::from(of.count) * u128::from(other.of);
    product(a, b).cmp(&product(b, a))
}

/// A share of rows in whole percent, rounded up: what is exposed is never said to be less. Only nothing is none, and only everything is all.
pub(super) fn share(ratio: ManifestRatio) -> String {
    let ManifestRatio { count, of } = ratio;
    let hundredfold = u128::from(count) * 100;
    match hundredfold.div_ceil(u128::from(of.max(1))) {
        _ if count == 0 => "none of the rows".to_owned(),
        _ if count == of => "all rows".to_owned(),
        1 if hundredfold < u128::from(of) => "less than 1% of the rows".to_owned(),
        100 => "over 99% of the rows".to_owned(),
        percent => format!("{percent}% of the rows"),
    }
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(count: u64, of: u64) -> ManifestRatio {
        ManifestRatio { count, of }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn shares_are_rounded_up_and_never_to_none_or_all() {
        let said: Vec<String> = [(0, 9), (1, 1000), (1, 100), (11, 1000), (31, 99), (99, 100), (991, 1000), (9, 9)]
            .map(|(count, of)| share(ratio(count, of)))
            .into();
        let rows = |share: &str| format!("{share} of the rows");
        let expected = ["none", "less than 1%", "1%", "2%", "32%", "99%", "over 99%"].map(rows);
        assert_eq!(said[..7], expected);
        assert_eq!(said[7], "all rows");
    }

    #[test]
    fn exposures_are_said_in_sentences() {
        let values = |attribute: &str, protected, known: &[&str], fixed, likely| ExposedValues {
            attribute: attribute.to_owned(),
            protected,
            table: "t1".to_owned(),
            part: "qi".to_owned(),
            known: names(known),
            fixed: ratio(fixed, 100),
            likely: ratio(likely, 100),
        };
        let exposures = ManifestExposures {
            rows: vec![ExposedRows {
                table: "t1".to_owned(),
                part: "qi".to_owned(),
                attributes: names(&["age", "sex", "zip"]),
                unique: ratio(31, 100),
            }],
            values: vec![
                values("disease", true, &["age", "sex"], 0, 4),
                values("occupation", false, &["age", "sex"], 12, 20),
            ],
            unprotected: names(&["occupation", "ward"]),
            choices: ratio(7, 7),
        };
        let unique = "31% of the rows of t1 are the only ones with their age, sex and zip";
        let likely = "who knows age and sex of t1 knows disease for none of the rows, and more likely than not for 4% of the rows";
        assert_eq!(
            exposures.in_words(),
            [
                unique,
                likely,
                "no rule protects occupation: who knows the other columns of t1 knows it for 12% of the rows, and more likely than \
             not for 20% of the rows",
                "no rule protects ward: no other column reveals it",
            ]
        );
        assert_eq!(exposures.summary(), [unique, likely, "no rule protects occupation and ward"]);
    }
}

//! The role of one column, by its name, the shape of its values and their counts.

use super::shape::Shape;
use super::suggestion::ColumnQuestion;
use super::words::{self, Meaning};
use crate::microdata::ColumnProfile;
use crate::spec::ColumnRole;

/// With fewer rows, counts say little of how values spread.
const FEW_ROWS: u64 = 20;

/// What is known of a column.
pub(super) struct ColumnEvidence<'a> {
    pub(super) profile: &'a ColumnProfile,
    /// The rows of the table.
    pub(super) rows: u64,
    /// Whether the dataset has it as a key of records or persons.
    pub(super) is_key: bool,
    pub(super) meaning: Option<Meaning>,
    pub(super) shape: Option<Shape>,
    /// How values that look like days or amounts, and are texts, are read as such.
    pub(super) unread: Option<String>,
}

/// The suggested role of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct JudgedColumn {
    pub(super) role: ColumnRole,
    pub(super) reason: String,
    pub(super) question: Option<ColumnQuestion>,
}

impl JudgedColumn {
    /// A role for a reason, without a question.
    pub(super) fn new(role: ColumnRole, reason: impl Into<String>) -> Self {
        Self { role, reason: reason.into(), question: None }
    }
}

impl ColumnEvidence<'_> {
    /// The role; the first of these that applies: what identifies, what cannot be published, what its name says.
    pub(super) fn judge(&self) -> JudgedColumn {
        let mut judged = self
            .unpublishable()
            .or_else(|| self.identifying())
            .or_else(|| self.singling_out())
            .unwrap_or_else(|| self.named());
        if let Some(how) = &self.unread {
            judged.reason += &format!("; its values are read as texts: {how}");
        }
        judged
    }

    /// Values, a missing one counted as one.
    fn values(&self) -> u64 {
        self.profile.codes().unwrap_or(u64::MAX)
    }

    fn present(&self) -> u64 {
        self.rows - self.profile.missing.min(self.rows)
    }

    /// Whether more than a share of the rows with a value have one of their own.
    fn is_distinct_above(&self, percent: u64) -> bool {
        let distinct = self.profile.distinct.unwrap_or(u64::MAX);
        self.present() >= FEW_ROWS && distinct.saturating_mul(100) > self.present() * percent
    }

    fn is_number(&self) -> bool {
        self.profile.kind.is_number()
    }

    fn is_secret(&self) -> bool {
        self.meaning.is_some_and(Meaning::is_secret)
    }

    fn counts(&self) -> String {
        let values = self.values();
        format!("{values} values, the most frequent in {} of the rows", percent(self.profile.top, self.rows))
    }

    fn asked(&self, judged: JudgedColumn, question: String, choices: &[ColumnRole]) -> JudgedColumn {
        let question = ColumnQuestion {
            column: self.profile.name.clone(),
            question,
            assumed: judged.role,
            choices: choices.to_vec(),
        };
        JudgedColumn { question: Some(question), ..judged }
    }

    /// What cannot be published or says nothing.
    fn unpublishable(&self) -> Option<JudgedColumn> {
        let is_free_text =
            self.shape == Some(Shape::Prose) || (self.meaning == Some(Meaning::FreeText) && !self.is_number());
        let reason = match () {
            () if self.is_key => return Some(JudgedColumn::new(ColumnRole::Identifier, "it is a key of the dataset")),
            () if self.present() == 0 => "it has no values".to_owned(),
            () if self.values() <= 1 => "it has the same value in all rows".to_owned(),
            () if self.profile.distinct.is_none() => "it has more distinct values than a job can load".to_owned(),
            () if is_free_text => "it is free text, which may say anything of a person".to_owned(),
            () if self.meaning == Some(Meaning::Weight) => format!("it is named like {}", Meaning::Weight.noun()),
            () => return None,
        };
        Some(JudgedColumn::new(ColumnRole::Dropped, reason))
    }

    /// What names a person or a record.
    fn identifying(&self) -> Option<JudgedColumn> {
        if let Some(noun) = self.one_person().filter(|_| self.is_shared()) {
            return Some(self.subject(noun));
        }
        if let Some(shape) = self.shape.filter(|shape| shape.identifies()) {
            return Some(JudgedColumn::new(ColumnRole::Identifier, format!("its values look like {}", shape.noun())));
        }
        let meaning = self.meaning?;
        // whether there is a telephone is no number of one
        let is_flag = self.rows >= FEW_ROWS && self.values() <= 2;
        if meaning.identifies() && !is_flag {
            return Some(JudgedColumn::new(ColumnRole::Identifier, format!("it is named like {}", meaning.noun())));
        }
        let is_of_persons = meaning == Meaning::PersonKey || words::is_bare_key(&self.profile.name);
        let is_unique = self.profile.distinct == Some(self.present());
        if (meaning == Meaning::Key || is_of_persons) && is_unique {
            return Some(JudgedColumn::new(
                ColumnRole::Identifier,
                format!("it is named like {}, and each row has its own value", meaning.noun()),
            ));
        }
        if is_of_persons && self.is_shared() {
            return Some(self.subject(&format!("is named like {}", meaning.noun())));
        }
        let is_key =
            matches!(meaning, Meaning::Key | Meaning::PersonKey) && (self.is_distinct_above(50) || is_of_persons);
        is_key.then(|| JudgedColumn::new(ColumnRole::Identifier, format!("it is named like {}", meaning.noun())))
    }

    /// What it is, where a value of the column is that of one person.
    fn one_person(&self) -> Option<&'static str> {
        match (self.shape, self.meaning) {
            (Some(Shape::Email), _) => Some("has e-mail addresses"),
            (Some(Shape::PersonalNumber), _) => Some("has official numbers of persons"),
            (_, Some(Meaning::Identity)) => Some("is named like an official number of a person"),
            _ => None,
        }
    }

    /// Whether each row has a value, several rows share one, and it is no flag.
    fn is_shared(&self) -> bool {
        let is_flag = self.rows >= FEW_ROWS && self.values() <= 2;
        self.profile.missing == 0 && self.profile.distinct.is_some_and(|distinct| distinct < self.rows) && !is_flag
    }

    /// The key of persons who have several rows.
    fn subject(&self, noun: &str) -> JudgedColumn {
        let reason = format!("it {noun}, and several rows share a value");
        let question = "does it identify persons who have several rows?".to_owned();
        let choices = [ColumnRole::Subject, ColumnRole::Identifier, ColumnRole::QuasiIdentifier];
        self.asked(JudgedColumn::new(ColumnRole::Subject, reason), question, &choices)
    }

    /// What singles out rows by its values: distinctness precedes names, but for numbers and codes that are a secret by name.
    fn singling_out(&self) -> Option<JudgedColumn> {
        if words::ends_as_key(&self.profile.name) && self.is_distinct_above(90) {
            return Some(JudgedColumn::new(
                ColumnRole::Identifier,
                "it is named like a key, and nearly every row has its own value",
            ));
        }
        let is_measured = self.is_number() && (self.is_secret() || self.meaning == Some(Meaning::Age));
        let is_amount = self.shape == Some(Shape::Money) || self.profile.kind.has_spellings();
        if is_measured || (is_amount && !self.meaning.is_some_and(Meaning::is_known)) {
            return None;
        }
        let is_unique_text = !self.is_number()
            && self.meaning.is_none()
            && self.present() > 2
            && self.profile.distinct == Some(self.present());
        if self.is_distinct_above(90) || is_unique_text {
            return Some(JudgedColumn::new(ColumnRole::Identifier, "nearly every row has its own value"));
        }
        if self.is_distinct_above(50) && !self.is_secret() {
            let is_date = self.meaning == Some(Meaning::Birth) || self.shape == Some(Shape::Date);
            let reason = if is_date {
                "more than half of its values are distinct, so it singles out persons; publish years instead"
            } else {
                "more than half of its values are distinct, so it singles out persons"
            };
            return Some(JudgedColumn::new(ColumnRole::Identifier, reason));
        }
        None
    }

    /// What the name says, and where it says nothing, the values.
    fn named(&self) -> JudgedColumn {
        let counts = self.counts();
        let published = [ColumnRole::QuasiIdentifier, ColumnRole::Sensitive, ColumnRole::Dropped];
        let known = |what: &str| JudgedColumn::new(ColumnRole::QuasiIdentifier, format!("{what}; {counts}"));
        let secret = |what: &str| JudgedColumn::new(ColumnRole::Sensitive, format!("{what}; {counts}"));
        match self.meaning {
            Some(Meaning::FreeText) => secret("it is named like a note, and has numbers"),
            Some(meaning) if meaning.is_secret() => {
                let judged = secret(&format!("it is named like {}", meaning.noun()));
                if self.is_distinct_above(90) {
                    let question = "nearly every row has its own value: may it be published exactly?".to_owned();
                    return self.asked(judged, question, &[ColumnRole::Sensitive, ColumnRole::Dropped]);
                }
                judged
            }
            Some(meaning @ Meaning::Ethnicity) => {
                let question = "ethnic origin is a special category of data: must it not be inferred?".to_owned();
                self.asked(known(&format!("it is named like {}", meaning.noun())), question, &published)
            }
            Some(meaning) if meaning.is_known() => known(&format!("it is named like {}", meaning.noun())),
            _ if self.shape == Some(Shape::Date) => known("its values are dates"),
            _ if self.profile.kind.has_spellings() || self.shape == Some(Shape::Money) => {
                let what = if self.shape == Some(Shape::Money) { "amounts of money" } else { "measured numbers" };
                let question = format!("its values look like {what}: are they a secret of the person?");
                let choices = [ColumnRole::Sensitive, ColumnRole::QuasiIdentifier, ColumnRole::Dropped];
                self.asked(secret(&format!("its values look like {what}")), question, &choices)
            }
            _ => {
                let question = "its name does not say whether it is a secret of the person: is it?".to_owned();
                self.asked(known("nothing says that it is a secret, so it counts as known"), question, &published)
            }
        }
    }
}

/// A share of rows in whole percent; never 0% or 100% of what is not none or all.
fn percent(count: u64, of: u64) -> String {
    match (count * 200 + of) / (of.max(1) * 2) {
        0 if count > 0 => "under 1%".to_owned(),
        100 if count < of => "over 99%".to_owned(),
        percent => format!("{percent}%"),
    }
}

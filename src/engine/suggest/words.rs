//! The meaning of a column by its name, in the languages and spellings of registers.

use std::sync::LazyLock;

/// The words and their meanings; its head describes the format.
const DICTIONARY: &str = include_str!("words.txt");

/// The most neighbouring parts of a name that are read as one word.
const MAX_JOINED_PARTS: usize = 4;

/// Parts by which a name says that it is a key: `patient_id`, `Kunden-Nr`.
const KEY_PARTS: [&str; 16] = [
    "id",
    "ids",
    "uid",
    "guid",
    "uuid",
    "nr",
    "no",
    "num",
    "number",
    "nummer",
    "numero",
    "key",
    "code",
    "kennung",
    "identifier",
    "index",
];

/// Declares [`Meaning`] with the names of the dictionary and the words of reasons.
macro_rules! meanings {
    ($($meaning:ident = $name:literal, $noun:literal;)+) => {
        /// What a name can mean.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Meaning {
            $(#[doc = $noun] $meaning,)+
        }

        impl Meaning {
            /// The meaning of this name in the dictionary.
            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$meaning),)+
                    _ => None,
                }
            }

            /// What a column is named like.
            pub(super) const fn noun(self) -> &'static str {
                match self {
                    $(Self::$meaning => $noun,)+
                }
            }
        }
    };
}

meanings! {
    Identity = "identity", "an official number of a person";
    Contact = "contact", "a contact or an account of a person";
    PersonName = "person_name", "the name of a person";
    Address = "address", "an address";
    PersonKey = "person_key", "the key of a person";
    Key = "key", "a key";
    Weight = "weight", "the weight of a row in a sample";
    FreeText = "free_text", "a free text";
    Birth = "birth", "a date of birth";
    Age = "age", "an age";
    Sex = "sex", "a sex";
    Place = "place", "a place";
    Origin = "origin", "an origin";
    Ethnicity = "ethnicity", "an ethnic group";
    Family = "family", "a family status";
    Education = "education", "an education";
    Occupation = "occupation", "an occupation";
    Date = "date", "a date";
    Diagnosis = "diagnosis", "a diagnosis or a state of health";
    Treatment = "treatment", "a treatment";
    Measurement = "measurement", "a medical measurement";
    Income = "income", "an income";
    Wealth = "wealth", "an amount of money";
    Belief = "belief", "a belief or an opinion";
    Conduct = "conduct", "an offence or a sanction";
    Performance = "performance", "a mark or a performance";
    Absence = "absence", "days of absence or illness";
    Insurance = "insurance", "an insurance, or who pays";
    Outcome = "outcome", "the outcome of a case";
}

impl Meaning {
    /// Whether such a value names a person.
    pub(super) const fn identifies(self) -> bool {
        matches!(self, Self::Identity | Self::Contact | Self::PersonName | Self::Address)
    }

    /// Whether others may know such a value of a person.
    pub(super) const fn is_known(self) -> bool {
        use Meaning::{Age, Birth, Date, Education, Ethnicity, Family, Occupation, Origin, Place, Sex};
        matches!(self, Age | Birth | Date | Education | Ethnicity | Family | Occupation | Origin | Place | Sex)
    }

    /// Whether such a value must not be inferred.
    pub(super) const fn is_secret(self) -> bool {
        use Meaning::{Absence, Belief, Conduct, Diagnosis, Income, Insurance, Measurement, Outcome, Performance};
        use Meaning::{Treatment, Wealth};
        let is_of_health = matches!(self, Absence | Diagnosis | Measurement | Outcome | Treatment);
        is_of_health || matches!(self, Belief | Conduct | Income | Insurance | Performance | Wealth)
    }
}

/// How a word of the dictionary is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    Whole(&'static str),
    Part(&'static str),
    Beginning(&'static str),
}

impl Pattern {
    fn new(word: &'static str) -> Self {
        match (word.strip_prefix('='), word.strip_suffix('*')) {
            (Some(whole), _) => Self::Whole(whole),
            (_, Some(beginning)) => Self::Beginning(beginning),
            _ => Self::Part(word),
        }
    }

    /// How many letters of a name are this word; none where it does not occur.
    fn matched(self, name: &[String]) -> Option<usize> {
        match self {
            Self::Whole(word) => (name.concat() == word).then_some(word.len()),
            Self::Beginning(word) => name.iter().any(|part| part.starts_with(word)).then_some(word.len()),
            Self::Part(word) => {
                let joined = (1..=MAX_JOINED_PARTS.min(name.len())).flat_map(|length| name.windows(length));
                joined.map(<[String]>::concat).any(|joined| joined == word).then_some(word.len())
            }
        }
    }
}

static WORDS: LazyLock<Vec<(Meaning, Pattern)>> = LazyLock::new(|| {
    let mut words = Vec::new();
    let mut meaning = None;
    for line in DICTIONARY.lines().filter(|line| !line.starts_with('#')) {
        let listed = match line.split_once(':') {
            Some((name, listed)) => {
                meaning = Meaning::from_name(name);
                listed
            }
            None => line,
        };
        words.extend(
            meaning.into_iter().flat_map(|of| listed.split_whitespace().map(move |word| (of, Pattern::new(word)))),
        );
    }
    words
});

/// What the name of a column means; `None` for a name of which the dictionary has no word.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    let spellings = [parts(name, false), parts(name, true)];
    let mut best: Option<(usize, Meaning)> = None;
    for &(meaning, pattern) in WORDS.iter() {
        for parts in spellings.iter().filter(|parts| meaning != Meaning::PersonKey || is_key(parts)) {
            let matched = pattern.matched(parts).filter(|length| best.is_none_or(|(longest, _)| *length > longest));
            best = matched.map(|length| (length, meaning)).or(best);
        }
    }
    best.map(|(_, meaning)| meaning)
}

/// Whether a name that speaks of persons is that of their key: it is one word, or has a word for keys.
fn is_key(parts: &[String]) -> bool {
    parts.len() == 1 || parts.iter().any(|part| KEY_PARTS.contains(&part.as_str()))
}

/// Whether a name says nothing more than that it is a key.
pub(super) fn is_bare_key(name: &str) -> bool {
    let parts = parts(name, false);
    !parts.is_empty() && parts.iter().all(|part| KEY_PARTS.contains(&part.as_str()) && part != "code")
}

/// Whether a name ends as that of a key: `loan_id`.
pub(super) fn ends_as_key(name: &str) -> bool {
    let last = parts(name, false).pop().unwrap_or_default();
    last != "code" && KEY_PARTS.contains(&last.as_str())
}

/// The parts of a name in lower case and ASCII; `long` writes ä, ö, ü and ø with an e.
fn parts(name: &str, long: bool) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let begins = !letter.is_alphabetic() || (letter.is_uppercase() && was_lower);
        if begins && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        was_lower = letter.is_lowercase();
        let folded = letter.to_lowercase().filter(|letter| letter.is_alphabetic()).map(|letter| fold(letter, long));
        if let Some(part) = parts.last_mut() {
            folded.for_each(|folded| part.push_str(&folded));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// A lower case letter in ASCII; letters of other scripts stay.
fn fold(letter: char, long: bool) -> String {
    let folded = match letter {
        'ä' | 'ö' | 'ü' | 'ø' if long => return format!("{}e", fold(letter, false)),
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ą' => "a",
        'ç' | 'ć' | 'č' => "c",
        'è' | 'é' | 'ê' | 'ë' | 'ę' | 'ě' => "e",
        'ì' | 'í' | 'î' | 'ï' => "i",
        'ł' => "l",
        'ñ' | 'ń' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => "o",
        'ś' | 'š' => "s",
        'ß' => "ss",
        'ù' | 'ú' | 'û' | 'ü' => "u",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        'æ' => "ae",
        'œ' => "oe",
        'đ' | 'ð' => "d",
        other => return other.to_string(),
    };
    folded.to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn dictionary_is_well_formed() {
        let mut meanings = 0;
        for line in DICTIONARY.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once(':') {
                Some((name, _)) => {
                    assert!(Meaning::from_name(name).is_some(), "{name}");
                    meanings += 1;
                }
                None => assert!(line.starts_with("  ") || line.is_empty(), "{line}"),
            }
        }
        assert_eq!(meanings, 29);
        let mut places: BTreeMap<String, Meaning> = BTreeMap::new();
        for &(meaning, pattern) in WORDS.iter() {
            let (Pattern::Whole(word) | Pattern::Part(word) | Pattern::Beginning(word)) = pattern;
            assert!(
                word.chars().all(|letter| letter.is_alphabetic() && !letter.is_uppercase()) && word.len() > 1,
                "{word}"
            );
            assert_eq!(places.insert(format!("{pattern:?}"), meaning), None, "{word} twice");
        }
        assert!(WORDS.len() > 800, "{}", WORDS.len());
    }

    #[test]
    fn names_are_split_and_folded() {
        let of = |name| parts(name, false).join(" ");
        assert_eq!(of("birthDate"), "birth date");
        assert_eq!(of("DATE_OF-birth 2"), "date of birth");
        assert_eq!(of("Straße"), "strasse");
        assert_eq!((of("Körpergewicht"), parts("Körper", true).concat()), ("korpergewicht".into(), "koerper".into()));
        assert_eq!(of("dx01"), "dx");
        assert_eq!((of(""), of("__12")), (String::new(), String::new()));
    }

    #[test]
    fn registers_of_many_languages_are_understood() {
        use Meaning::*;
        let cases = [
            ("age", Age),
            ("AgeGroup", Age),
            ("Alter", Age),
            ("edad", Age),
            ("leeftijd", Age),
            ("Возраст", Age),
            ("年齢", Age),
            ("Диагноз", Diagnosis),
            ("Дата рождения", Birth),
            ("病名", Diagnosis),
            ("年収", Income),
            ("诊断", Diagnosis),
            ("straffet", Conduct),
            ("matricule", PersonKey),
            ("Ålder", Age),
            ("wiek", Age),
            ("idade", Age),
            ("età", Age),
            ("age_at_diagnosis", Age),
            ("gender", Sex),
            ("Geschlecht", Sex),
            ("sexe", Sex),
            ("sexo", Sex),
            ("kjønn", Sex),
            ("płeć", Sex),
            ("zip_code", Place),
            ("PLZ", Place),
            ("code postal", Place),
            ("native-country", Place),
            ("Gemeinde", Place),
            ("Kommunekode", Place),
            ("postnummer", Place),
            ("wojewodztwo", Place),
            ("Geburtsdatum", Birth),
            ("date_of_birth", Birth),
            ("dateNaissance", Birth),
            ("fecha_nacimiento", Birth),
            ("diagnosis_code", Diagnosis),
            ("Hauptdiagnose", Diagnosis),
            ("dx01", Diagnosis),
            ("icd9", Diagnosis),
            ("rozpoznanie", Diagnosis),
            ("sygdom", Diagnosis),
            ("DRG", Diagnosis),
            ("salary", Income),
            ("Bruttogehalt", Income),
            ("salaire", Income),
            ("stipendio", Income),
            ("lönn", Income),
            ("wynagrodzenie", Income),
            ("household_income", Income),
            ("capital-gain", Wealth),
            ("loanAmount", Wealth),
            ("religion", Belief),
            ("Konfession", Belief),
            ("Parteipräferenz", Belief),
            ("patient_id", PersonKey),
            ("Kunden-Nr", PersonKey),
            ("pid", PersonKey),
            ("patient", PersonKey),
            ("employeeNumber", PersonKey),
            ("id", Key),
            ("record_id", Key),
            ("first_name", PersonName),
            ("Nachname", PersonName),
            ("name", PersonName),
            ("apellidos", PersonName),
            ("E-Mail", Contact),
            ("telefonnummer", Contact),
            ("IBAN", Contact),
            ("SSN", Identity),
            ("NIF", Identity),
            ("Sozialversicherungsnummer", Identity),
            ("PESEL", Identity),
            ("personnummer", Identity),
            ("street_address", Address),
            ("Hausnummer", Address),
            ("marital-status", Family),
            ("number_of_children", Family),
            ("Familienstand", Family),
            ("workclass", Occupation),
            ("Beruf", Occupation),
            ("education-num", Education),
            ("school", Education),
            ("race", Ethnicity),
            ("nationality", Origin),
            ("fnlwgt", Weight),
            ("comments", FreeText),
            ("Bemerkungen", FreeText),
            ("exam_score", Performance),
            ("Note", FreeText),
            ("payor_primary", Insurance),
            ("insurance_number", Identity),
            ("dc_status", Outcome),
            ("care_days", Treatment),
            ("betyg", Performance),
            ("admission_date", Date),
            ("dc_month", Date),
            ("treatment", Treatment),
            ("hba1c", Measurement),
            ("løn", Income),
            ("lat", Address),
            ("lon", Address),
            ("país_nacimiento", Origin),
            ("pays de naissance", Origin),
            ("lieu_naissance", Origin),
            ("Geburtsort", Origin),
            ("Urteil", Conduct),
            ("Bewährung", Conduct),
            ("gruppo_sanguigno", Diagnosis),
            ("esito", Outcome),
        ];
        let wrong: Vec<_> = cases.iter().filter(|(name, of)| meaning(name) != Some(*of)).collect();
        let wrong: Vec<_> = wrong.iter().map(|(name, of)| (name, of, meaning(name))).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn ambiguous_words_mean_nothing() {
        for name in ["adm_origin", "adm_type", "hospital", "hospital_ownership", "status", "x1", "", "type", "n_beds"] {
            assert_eq!(meaning(name), None, "{name}");
        }
        assert_eq!(meaning("persons_in_room"), None, "persons, and no key of them");
        assert_eq!(["loan_id", "KreditNr", "icd_code", "idle"].map(ends_as_key), [true, true, false, false]);
        assert_eq!(["id", "ID_no", "patient_id", ""].map(is_bare_key), [true, true, false, false]);
    }

    #[test]
    fn each_meaning_has_at_most_one_use() {
        for &(meaning, _) in WORDS.iter() {
            let uses = [meaning.identifies(), meaning.is_known(), meaning.is_secret()];
            assert!(uses.iter().filter(|is| **is).count() <= 1, "{meaning:?}");
        }
    }
}

//! What the values of a column look like, whatever its name.

use crate::microdata::{AttributeType, Domain};

/// The most values of a column that are looked at, evenly spaced among its distinct ones.
const MAX_VALUES: usize = 500;

/// The share of these values, in percent, that must have a shape.
const ENOUGH_PERCENT: usize = 90;

/// A text of at least as many words, or of as many letters, is prose.
const PROSE_WORDS: usize = 6;

const PROSE_LETTERS: usize = 60;

/// A shape of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum Shape {
    /// `name@host.org`
    Email,
    /// A number of a telephone, with a prefix or separators.
    Phone,
    /// An international bank account number with correct check digits.
    Iban,
    /// Five groups of hexadecimal digits.
    Uuid,
    /// An official number of a person, with its separators or its letter: 123-45-6789, 010190-1234, 12345678Z.
    PersonalNumber,
    /// An address of a computer: four numbers from 0 to 255.
    NetworkAddress,
    /// A page on the web.
    Link,
    /// A day, in any of the common orders.
    Date,
    /// Sentences.
    Prose,
    /// Numbers with two decimals, also with a comma.
    Money,
}

/// The shapes of texts, in the order in which they are tried.
const TEXTS: [Shape; 10] = [
    Shape::Email,
    Shape::Link,
    Shape::Iban,
    Shape::Uuid,
    Shape::NetworkAddress,
    Shape::PersonalNumber,
    Shape::Date,
    Shape::Phone,
    Shape::Money,
    Shape::Prose,
];

impl Shape {
    /// What the values look like, for reasons.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Email => "e-mail addresses",
            Self::Phone => "telephone numbers",
            Self::Iban => "bank accounts",
            Self::Uuid => "unique keys",
            Self::PersonalNumber => "official numbers of persons",
            Self::NetworkAddress => "addresses of computers",
            Self::Link => "links",
            Self::Date => "dates",
            Self::Prose => "free text",
            Self::Money => "amounts of money",
        }
    }

    /// Whether such a value names a person.
    pub(super) const fn identifies(self) -> bool {
        match self {
            Self::Email
            | Self::Phone
            | Self::Iban
            | Self::Uuid
            | Self::PersonalNumber
            | Self::NetworkAddress
            | Self::Link => true,
            Self::Date | Self::Prose | Self::Money => false,
        }
    }

    fn fits(self, value: &str) -> bool {
        match self {
            Self::Email => is_email(value),
            Self::Phone => is_phone(value),
            Self::Iban => is_iban(value),
            Self::Uuid => uuid::Uuid::try_parse(value).is_ok() && value.len() >= 32,
            Self::PersonalNumber => {
                ["999-99-9999", "999999-9999", "99999999-9999", "999999-99999"].contains(&mask(value).as_str())
                    || is_dni(value)
            }
            Self::NetworkAddress => value.parse::<std::net::Ipv4Addr>().is_ok(),
            Self::Link => value.starts_with("http://") || value.starts_with("https://"),
            Self::Date => is_date(value),
            Self::Prose => is_prose(value),
            Self::Money => is_amount(value),
        }
    }
}

/// How texts that look like days or amounts become such: by their type, or written in another way. `None` of other columns.
pub(in crate::engine) fn unread(domain: &Domain) -> Option<String> {
    if domain.kind() != AttributeType::Text {
        return None;
    }
    let texts = || domain.iter().flatten().map(<[u8]>::trim_ascii).filter(|text| !text.is_empty());
    let (types, notation): (&[AttributeType], &str) = match shape(domain)? {
        Shape::Date if texts().any(|text| text.contains(&b':')) => {
            (&[AttributeType::Timestamp, AttributeType::LocalTimestamp], "2024-12-31T18:00:00")
        }
        Shape::Date => (&[AttributeType::Date], "2024-12-31"),
        Shape::Money => (&[AttributeType::Decimal], "1234.56"),
        _ => return None,
    };
    let read = types.iter().find(|of| texts().all(|text| of.admits(text)));
    Some(read.map_or_else(|| format!("write them like {notation}"), |of| format!("give them the type {}", of.name())))
}

/// The shape of most values of a column; `None` where they have none, or where there are too few to say so.
pub(in crate::engine) fn shape(domain: &Domain) -> Option<Shape> {
    match domain.kind() {
        AttributeType::Date | AttributeType::Timestamp | AttributeType::LocalTimestamp => return Some(Shape::Date),
        AttributeType::Boolean | AttributeType::Integer => return None,
        AttributeType::Decimal | AttributeType::Float | AttributeType::Text => {}
    }
    let step = (domain.len() / MAX_VALUES).max(1);
    let values = domain.iter().step_by(step).flatten().filter_map(|value| std::str::from_utf8(value).ok());
    let values: Vec<&str> = values.map(str::trim).filter(|value| !value.is_empty()).take(MAX_VALUES).collect();
    let is_most = |shape: &Shape| {
        let fitting = values.iter().filter(|value| shape.fits(value)).count();
        fitting > 0 && fitting * 100 >= values.len() * ENOUGH_PERCENT
    };
    if domain.kind().has_spellings() {
        return Some(Shape::Money).filter(is_most);
    }
    // a few long texts among codes are prose all the same: they may say anything
    let prose = values.iter().filter(|value| Shape::Prose.fits(value)).count();
    let is_prose = values.len() > 10 && prose * 2 > values.len();
    TEXTS.into_iter().find(is_most).or(is_prose.then_some(Shape::Prose))
}

/// The value with a 9 for each digit and an `a` for each letter.
fn mask(value: &str) -> String {
    let masked = |letter: char| match letter {
        letter if letter.is_ascii_digit() => '9',
        letter if letter.is_alphabetic() => 'a',
        other => other,
    };
    value.chars().map(masked).collect()
}

/// A Spanish number: eight digits, or one of X, Y, Z and seven, and a letter for the rest modulo 23.
fn is_dni(value: &str) -> bool {
    const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let Some((number, [letter])) = value.as_bytes().split_at_checked(8) else { return false };
    let first = match number[0] {
        foreign @ b'X'..=b'Z' => foreign - b'X',
        digit => digit.wrapping_sub(b'0'),
    };
    let digits = std::iter::once(first).chain(number[1..].iter().map(|digit| digit.wrapping_sub(b'0')));
    let whole = digits.map(u32::from).try_fold(0_u32, |whole, digit| (digit < 10).then_some(whole * 10 + digit));
    whole.is_some_and(|whole| LETTERS[whole as usize % LETTERS.len()] == *letter)
}

fn is_email(value: &str) -> bool {
    let Some((local, host)) = value.split_once('@') else { return false };
    !local.is_empty() && host.contains('.') && !host.contains('@') && !value.contains(char::is_whitespace)
}

fn is_phone(value: &str) -> bool {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let separated = value.chars().any(|letter| matches!(letter, ' ' | '-' | '/' | '(' | '+' | '.'));
    let begins = value.starts_with(['+', '0', '(']) || mask(value) == "999-999-9999";
    let is_plain = value.chars().all(|letter| letter.is_ascii_digit() || " -/()+.".contains(letter));
    is_plain && separated && begins && (7..=15).contains(&digits)
}

/// Digits with separators of thousands, and two decimals; a sign of a currency may stand before or after.
fn is_amount(value: &str) -> bool {
    let number = value.trim_matches(|letter: char| letter.is_whitespace() || "€$£".contains(letter));
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_whole = |whole: &str| {
        whole.starts_with(|first: char| first.is_ascii_digit())
            && whole.chars().all(|letter| letter.is_ascii_digit() || ".,' \u{a0}\u{202f}".contains(letter))
    };
    digits.rsplit_once(['.', ',']).is_some_and(|(whole, cents)| {
        is_whole(whole) && cents.len() == 2 && cents.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Groups of digits are no words: a number may be written in many.
fn is_prose(value: &str) -> bool {
    let words = value.split_whitespace().filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
    words.count() >= PROSE_WORDS || value.chars().count() >= PROSE_LETTERS
}

/// ISO 13616: the rest of the number, with letters from 10 on and the first four signs at the end, is 1 modulo 97.
fn is_iban(value: &str) -> bool {
    let signs: Vec<char> = value.chars().filter(|letter| *letter != ' ').collect();
    let is_plausible = (15..=34).contains(&signs.len())
        && signs[..2].iter().all(char::is_ascii_uppercase)
        && signs[2..4].iter().all(char::is_ascii_digit);
    if !is_plausible {
        return false;
    }
    let rest = signs[4..].iter().chain(&signs[..4]).try_fold(0_u32, |rest, sign| {
        let number = sign.to_digit(36)?;
        Some((rest * if number < 10 { 10 } else { 100 } + number) % 97)
    });
    rest == Some(1)
}

/// Three numbers with one separator: year, month and day, or the other way round; a time may follow.
fn is_date(value: &str) -> bool {
    let day = value.split(['T', ' ']).next().unwrap_or_default();
    let Some(separator) = day.chars().find(|letter| matches!(letter, '-' | '/' | '.')) else { return false };
    let numbers: Vec<&str> = day.split(separator).collect();
    let [first, second, third] = numbers[..] else { return false };
    let within =
        |text: &str, most: u32| text.len() <= 2 && text.parse().is_ok_and(|number: u32| (1..=most).contains(&number));
    let is_year = |text: &str| text.len() == 4 && text.parse().is_ok_and(|year: u32| (1800..=2200).contains(&year));
    let short_year = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let day_and_month = |one, other| (within(one, 12) && within(other, 31)) || (within(one, 31) && within(other, 12));
    (is_year(first) && within(second, 12) && within(third, 31))
        || (day_and_month(first, second) && (is_year(third) || short_year(third)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Arena;

    fn shape_of(values: &[&str]) -> Option<Shape> {
        let mut sorted: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let kind = AttributeType::infer(sorted.iter().copied());
        sorted.sort_by(|a, b| kind.compare(Some(a), Some(b)));
        let mut arena = Arena::default();
        sorted.iter().for_each(|value| arena.push(value));
        shape(&Domain::from_sorted(kind, false, arena))
    }

    #[test]
    fn texts_that_look_like_days_are_read_by_type_or_notation() {
        let unread_of = |values: &[&str]| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable();
            let mut arena = Arena::default();
            sorted.iter().for_each(|value| arena.push(value.as_bytes()));
            unread(&Domain::from_sorted(AttributeType::Text, false, arena))
        };
        let cases = [
            (&["2000-09-25", "2001-01-31"][..], Some("give them the type date")),
            (&["25.09.2000", "31.01.2001"], Some("write them like 2024-12-31")),
            (&["2020-12-01T18:00:00", "2020-12-02T18:00:00"], Some("give them the type local_timestamp")),
            (&["2020-12-01 18:00:00", "2020-12-02 18:00:00"], Some("write them like 2024-12-31T18:00:00")),
            (&["1.234,56", "7,00"], Some("write them like 1234.56")),
            (&["1234.56", "7.00"], Some("give them the type decimal")),
            (&["red", "blue"], None),
        ];
        for (values, expected) in cases {
            assert_eq!(unread_of(values).as_deref(), expected, "{values:?}");
        }
    }

    #[test]
    fn values_have_their_shapes() {
        assert_eq!(shape_of(&["a.b@c.org", "x@y.de"]), Some(Shape::Email));
        assert_eq!(shape_of(&["+49 30 1234567", "030/998877"]), Some(Shape::Phone));
        assert_eq!(shape_of(&["555-123-4567", "555-987-6543"]), Some(Shape::Phone));
        assert_eq!(shape_of(&["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"]), Some(Shape::Iban));
        assert_eq!(shape_of(&["018f0000-0000-7000-8000-000000000001"]), Some(Shape::Uuid));
        assert_eq!(shape_of(&["123-45-6789", "987-65-4321"]), Some(Shape::PersonalNumber));
        assert_eq!(shape_of(&["12345678Z", "X1234567L"]), Some(Shape::PersonalNumber));
        assert_eq!(shape_of(&["12345678A", "X1234567M"]), None);
        assert_eq!(shape_of(&["10.0.0.1", "192.168.7.9"]), Some(Shape::NetworkAddress));
        assert_eq!(shape_of(&["https://a.org/x", "http://b.org"]), Some(Shape::Link));
        assert_eq!(shape_of(&["2024-01-31", "1999-12-01"]), Some(Shape::Date));
        assert_eq!(shape_of(&["31.12.2024", "01.02.99"]), Some(Shape::Date));
        assert_eq!(shape_of(&["12/31/2024", "1/2/2024 10:30"]), Some(Shape::Date));
        assert_eq!(shape_of(&["12.50", "7.25", "1200.00"]), Some(Shape::Money));
        assert_eq!(shape_of(&["12,50", "1.207,25", "1 200,00 €"]), Some(Shape::Money));
        assert_eq!(
            shape_of(&["the patient said that she felt well", "no pain since the day of the operation"]),
            Some(Shape::Prose)
        );
    }

    #[test]
    fn codes_and_words_have_no_shape() {
        for values in [
            &["12", "13"][..],
            &["A01.1", "B20"],
            &["male", "female"],
            &["1.5", "2.25"],
            &[],
            &["DE00 3704 0044 0532 0130 00"],
            &["40-44", "45-49"],
            &["2024-13-31"],
            &["a@b"],
            &["300.1.1.1"],
            &["d1", "d2", "2024-01-31"],
            &["10-20-30-40"],
            &["1,5", "2,25"],
            &["A,10", "B,20"],
        ] {
            assert_eq!(shape_of(values), None, "{values:?}");
        }
        // one value in ten may be something else
        let mut dates: Vec<String> = (10..28).map(|day| format!("2024-01-{day}")).collect();
        dates.push("unknown".to_owned());
        assert_eq!(shape_of(&dates.iter().map(String::as_str).collect::<Vec<_>>()), Some(Shape::Date));
    }
}

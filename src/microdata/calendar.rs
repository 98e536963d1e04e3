//! The one text of a date and of a moment, and what these texts stand for.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

/// From 0001-01-01 to 1970-01-01.
const EPOCH_DAYS: i32 = 719_163;
/// The years that four digits can say.
const YEARS: std::ops::RangeInclusive<i32> = 0..=9999;

/// The day that `YYYY-MM-DD` spells, in days since 1970-01-01.
#[must_use]
pub fn parse_date(text: &[u8]) -> Option<i32> {
    date(text).map(|date| date.num_days_from_ce() - EPOCH_DAYS)
}

/// The text of a day; `None` outside the years 0000 to 9999.
#[must_use]
pub fn format_date(days: i32) -> Option<String> {
    let date = NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_DAYS)?)?;
    YEARS.contains(&date.year()).then(|| date.format("%Y-%m-%d").to_string())
}

/// The moment that a canonical text spells, in microseconds since 1970-01-01T00:00:00Z.
#[must_use]
pub fn parse_timestamp(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let &[b'T', h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let micros = match rest {
        b"Z" => 0,
        [b'.', digits @ .., b'Z'] if matches!(digits.len(), 1..=6) && digits.last() != Some(&b'0') => {
            number(digits)? * 10_u32.pow(6 - digits.len() as u32)
        }
        _ => return None,
    };
    let time = NaiveTime::from_hms_micro_opt(number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?, micros)?;
    Some(date(day)?.and_time(time).and_utc().timestamp_micros())
}

/// The text of a moment; `None` outside the years 0000 to 9999.
#[must_use]
pub fn format_timestamp(micros: i64) -> Option<String> {
    let moment: NaiveDateTime = DateTime::from_timestamp_micros(micros)?.naive_utc();
    if !YEARS.contains(&moment.year()) {
        return None;
    }
    let mut text = moment.format("%Y-%m-%dT%H:%M:%S").to_string();
    let fraction = moment.nanosecond() / 1000;
    if fraction > 0 {
        text += format!(".{fraction:06}").trim_end_matches('0');
    }
    text.push('Z');
    Some(text)
}

fn date(text: &[u8]) -> Option<NaiveDate> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    NaiveDate::from_ymd_opt(number(&[y1, y2, y3, y4])? as i32, number(&[m1, m2])?, number(&[d1, d2])?)
}

fn number(digits: &[u8]) -> Option<u32> {
    let digit = |number: u32, &byte: &u8| byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0'));
    digits.iter().try_fold(0, digit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_and_values_are_the_same(days in -719_528..=2_932_896_i32, micros in -62_167_219_200_000_000..=253_402_300_799_999_999_i64, coarse in 0..=6_u32) {
            prop_assert_eq!(parse_date(format_date(days).unwrap().as_bytes()), Some(days));
            let micros = micros / 10_i64.pow(coarse) * 10_i64.pow(coarse);
            prop_assert_eq!(parse_timestamp(format_timestamp(micros).unwrap().as_bytes()), Some(micros));
        }

        #[test]
        fn every_accepted_text_is_the_only_one(text in "(0000|19[67][0-9]|2024|9999)-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,7})?Z)?") {
            if let Some(days) = parse_date(text.as_bytes()) {
                prop_assert_eq!(format_date(days), Some(text.clone()));
            }
            if let Some(micros) = parse_timestamp(text.as_bytes()) {
                prop_assert_eq!(format_timestamp(micros), Some(text));
            }
        }
    }

    #[test]
    fn known_moments() {
        assert_eq!(format_date(0).unwrap(), "1970-01-01");
        assert_eq!(parse_date(b"2000-02-29"), Some(11_016));
        assert_eq!(parse_date(b"1900-02-29"), None);
        assert_eq!(format_timestamp(-1).unwrap(), "1969-12-31T23:59:59.999999Z");
        assert_eq!(format_timestamp(1_500_000).unwrap(), "1970-01-01T00:00:01.5Z");
        assert_eq!(parse_timestamp(b"1970-01-01T00:00:01.50Z"), None);
        assert_eq!(parse_timestamp(b"1970-01-01T00:00:60Z"), None);
        assert_eq!((format_date(i32::MAX), format_timestamp(i64::MAX)), (None, None));
        assert_eq!(format_date(2_932_897), None, "the year 10000");
    }
}

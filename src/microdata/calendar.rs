//! The one text of a date and of a moment, and what these texts stand for.

const DAY_SECONDS: i64 = 86_400;
const SECOND: i64 = 1_000_000;

/// The day that `YYYY-MM-DD` spells, in days since 1970-01-01.
#[must_use]
pub fn parse_date(text: &[u8]) -> Option<i32> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let (year, month, day) = (number(&[y1, y2, y3, y4])?, number(&[m1, m2])?, number(&[d1, d2])?);
    let days = days_of(year, month, day);
    // what is no day of the calendar is another day's text
    (date_of(days) == Some((year, month, day))).then_some(days as i32)
}

/// The text of a day; `None` outside the years 0000 to 9999.
#[must_use]
pub fn format_date(days: i32) -> Option<String> {
    let (year, month, day) = date_of(i64::from(days))?;
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

/// The moment that a canonical text spells, in microseconds since 1970-01-01T00:00:00Z.
#[must_use]
pub fn parse_timestamp(text: &[u8]) -> Option<i64> {
    parse_local_timestamp(text.strip_suffix(b"Z")?)
}

/// The date and time of day that a canonical text without a time zone spells, in microseconds since 1970-01-01T00:00:00 of its clock.
#[must_use]
pub fn parse_local_timestamp(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let &[b'T', h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let micros = match rest {
        [] => 0,
        [b'.', digits @ ..] if matches!(digits.len(), 1..=6) && digits.last() != Some(&b'0') => {
            number(digits)? * 10_i64.pow(6 - digits.len() as u32)
        }
        _ => return None,
    };
    let (hours, minutes, seconds) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let seconds = i64::from(parse_date(day)?) * DAY_SECONDS + hours * 3600 + minutes * 60 + seconds;
    Some(seconds * SECOND + micros)
}

/// The text of a moment; `None` outside the years 0000 to 9999.
#[must_use]
pub fn format_timestamp(micros: i64) -> Option<String> {
    format_local_timestamp(micros).map(|text| text + "Z")
}

/// The text of a date and time of day without a time zone; `None` outside the years 0000 to 9999.
#[must_use]
pub fn format_local_timestamp(micros: i64) -> Option<String> {
    let (seconds, fraction) = (micros.div_euclid(SECOND), micros.rem_euclid(SECOND));
    let (days, clock) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let day = format_date(i32::try_from(days).ok()?)?;
    Some(format!("{day}T{}", format_time_of_day(clock * SECOND + fraction)?))
}

/// The canonical text of a time of day, in microseconds since midnight, such as `02:30:00.5`.
#[must_use]
pub fn format_time_of_day(micros: i64) -> Option<String> {
    let (clock, fraction) = (micros.div_euclid(SECOND), micros.rem_euclid(SECOND));
    if !(0..DAY_SECONDS).contains(&clock) {
        return None;
    }
    let mut text = format!("{:02}:{:02}:{:02}", clock / 3600, clock / 60 % 60, clock % 60);
    if fraction > 0 {
        text += format!(".{fraction:06}").trim_end_matches('0');
    }
    Some(text)
}

/// Days since 1970-01-01 in the Gregorian calendar, whose cycle of 400 years has 146,097 days. Years begin in March here, so
/// that the day that some years have more is their last.
const fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    cycle * 146_097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719_468
}

/// Year, month and day, for the years that four digits can say.
fn date_of(days: i64) -> Option<(i64, i64, i64)> {
    let days = days + 719_468;
    let (cycle, of_cycle) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = cycle * 400 + year + i64::from(month <= 2);
    (0..=9999).contains(&year).then_some((year, month, day))
}

fn number(digits: &[u8]) -> Option<i64> {
    let digit = |number: i64, &byte: &u8| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'));
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
            let local = format_local_timestamp(micros).unwrap();
            prop_assert_eq!(parse_local_timestamp(local.as_bytes()), Some(micros));
            prop_assert_eq!(parse_timestamp(local.as_bytes()), None);
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
    fn every_day_is_the_one_of_another_calendar() {
        for days in -719_528..=2_932_896 {
            let theirs = chrono::NaiveDate::from_num_days_from_ce_opt(days + 719_163).unwrap();
            assert_eq!(date_of(i64::from(days)).map(|(y, m, d)| (y as i32, m as u32, d as u32)), {
                use chrono::Datelike;
                Some((theirs.year(), theirs.month(), theirs.day()))
            });
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

//! Durations in ISO 8601, as far as they have one length: weeks, days, hours, minutes, seconds.

use std::time::Duration;

/// What a deadline may be, for people.
pub(in crate::spec) const DURATION_FORM: &str =
    "an ISO 8601 duration of whole days, hours, minutes and seconds, such as PT10M, from PT1S to P365D";

const MAX_DURATION_SECONDS: u64 = 365 * 86_400;

/// Reads a duration; `None` when it is malformed, zero or longer than a year.
pub fn parse(text: &str) -> Option<Duration> {
    let (date, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (text.strip_prefix('P')?, ""),
    };
    let date = fields(date, &[('W', 604_800), ('D', 86_400)])?;
    let time = fields(time, &[('H', 3_600), ('M', 60), ('S', 1)])?;
    let seconds = date.checked_add(time)?;
    (1..=MAX_DURATION_SECONDS).contains(&seconds).then(|| Duration::from_secs(seconds))
}

/// The seconds of numbers with units, each at most once and in order.
fn fields(mut text: &str, units: &[(char, u64)]) -> Option<u64> {
    let mut seconds = 0_u64;
    for &(unit, worth) in units {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if let Some(rest) = text[digits..].strip_prefix(unit) {
            let number: u64 = text[..digits].parse().ok()?;
            seconds = seconds.checked_add(number.checked_mul(worth)?)?;
            text = rest;
        }
    }
    text.is_empty().then_some(seconds)
}

/// The one spelling of a duration that normalized documents use.
pub(in crate::spec) fn write(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let fields = |fields: &[(u64, char)]| -> String {
        fields.iter().filter(|(number, _)| *number > 0).map(|(number, unit)| format!("{number}{unit}")).collect()
    };
    let date = fields(&[(seconds / 86_400, 'D')]);
    let time = fields(&[(seconds / 3_600 % 24, 'H'), (seconds / 60 % 60, 'M'), (seconds % 60, 'S')]);
    if time.is_empty() { format!("P{date}") } else { format!("P{date}T{time}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds, written) in [
            ("PT10M", 600, "PT10M"),
            ("PT600S", 600, "PT10M"),
            ("PT1H30M", 5_400, "PT1H30M"),
            ("P1D", 86_400, "P1D"),
            ("P1DT1S", 86_401, "P1DT1S"),
            ("P1W", 604_800, "P7D"),
            ("PT24H", 86_400, "P1D"),
            ("P365D", MAX_DURATION_SECONDS, "P365D"),
        ] {
            let duration = Duration::from_secs(seconds);
            assert_eq!(parse(text), Some(duration), "{text}");
            assert_eq!(write(duration), written);
            assert_eq!(parse(written), Some(duration));
        }
    }

    #[test]
    fn what_is_no_duration_of_one_length_is_refused() {
        for text in [
            "",
            "P",
            "PT",
            "10M",
            "PT0S",
            "P1M",
            "P1Y",
            "PT1M1H",
            "PT1.5S",
            "P366D",
            "PT-1S",
            "P1DT",
            "pt10m",
            "PT10M ",
            "PT99999999999999999999S",
            "P1H",
            "PTM",
            "PT1H2",
            "é",
            "PTé",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

//! Small texts that callers send: what is accepted is written as a text that means the same.

use guardian::identity::{Scopes, Token};
use guardian::microdata::{format_date, format_timestamp, parse_date, parse_integer, parse_timestamp};
use guardian::ports::{Cursor, JobStatus};
use guardian::spec::duration;

/// Judges one input.
pub fn run(text: &str) {
    if let Ok(cursor) = text.parse::<Cursor>() {
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }
    if let Some(token) = Token::parse(text) {
        let again = Token::parse(&token.reveal()).expect("a token");
        assert!(again.id() == token.id() && again.hash() == token.hash());
    }
    if let Ok(scopes) = text.parse::<Scopes>() {
        assert_eq!(scopes.to_string().parse::<Scopes>().ok(), Some(scopes));
    }
    if let Ok(status) = text.parse::<JobStatus>() {
        assert_eq!(status.name(), text);
    }
    let _ = duration(text);
    let text = text.as_bytes();
    if let Some(number) = parse_integer(text) {
        assert_eq!(number.to_string().as_bytes(), text);
    }
    if let Some(days) = parse_date(text) {
        assert_eq!(format_date(days).expect("a day that was read").as_bytes(), text);
    }
    if let Some(micros) = parse_timestamp(text) {
        let written = format_timestamp(micros).expect("a time that was read");
        assert_eq!(parse_timestamp(written.as_bytes()), Some(micros));
    }
}

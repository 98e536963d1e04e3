//! Logs all options of the operator, with defaults, in one line.

use std::io::Write;

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tracing::Level;

use crate::config::LogFormat;

/// Writes the options in the format of the log. The fields of a `tracing` event are static, so this writes them directly.
pub fn announce(format: LogFormat, options: Map<String, Value>) {
    if !tracing::enabled!(Level::INFO) {
        return;
    }
    // the service runs without a writable log
    let _ = writeln!(std::io::stderr().lock(), "{}", line(format, &now(), options));
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

const MESSAGE: &str = "effective configuration";

fn line(format: LogFormat, at: &str, options: Map<String, Value>) -> String {
    match format {
        LogFormat::Json => {
            let mut fields = Map::from_iter([("message".to_owned(), MESSAGE.into())]);
            fields.extend(options);
            json!({"timestamp": at, "level": "INFO", "fields": fields, "target": module_path!()}).to_string()
        }
        LogFormat::Text => {
            let options: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{at}  INFO {}: {MESSAGE} {}", module_path!(), options.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_in_both_formats() {
        let options = || Map::from_iter([("data".to_owned(), json!("a\nb")), ("workers".to_owned(), json!(2))]);
        let text = line(LogFormat::Text, "t", options());
        assert!(text.ends_with(r#"effective configuration data="a\nb" workers=2"#), "{text}");
        let read: Value = serde_json::from_str(&line(LogFormat::Json, "t", options())).unwrap();
        assert_eq!((&read["fields"]["data"], &read["fields"]["workers"]), (&json!("a\nb"), &json!(2)));
    }
}

//! What all pages have in common.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::style::STYLE;

/// A page of HTML.
pub(super) fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

/// Sentences under a heading; nothing where there are none.
pub(super) fn list(heading: &str, sentences: &[String]) -> Markup {
    html! {
        @if !sentences.is_empty() {
            @if !heading.is_empty() { h3 { (heading) } }
            ul { @for one in sentences { li { (one) } } }
        }
    }
}

/// A clause as a sentence.
pub(super) fn sentence(clause: &str) -> String {
    let mut characters = clause.chars();
    let first = characters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", characters.as_str().trim_end_matches('.'))
}

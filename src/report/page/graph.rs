//! Attributes and tables as a graph: what leads where, and which table guards.

use maud::{Markup, html};

use crate::report::manifest::{Manifest, ManifestTable};

/// Larger releases are shown as a table alone.
const MAX_ATTRIBUTES: usize = 40;
const MAX_TABLES: usize = 16;

const ROW_PX: usize = 24;
const TOP_PX: usize = 30;
const NAME_PX: usize = 230;
const TABLE_PX: usize = 520;
const WIDTH_PX: usize = 700;
const BOX_PX: usize = 160;
/// The longest names that are drawn, of attributes and in a box.
const MAX_ATTRIBUTE_CHARS: usize = 30;
const MAX_GUARDED_CHARS: usize = 19;

/// How a table shows an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// In the part by which rows are known.
    Known,
    /// The same with cells of several values.
    Generalized,
    /// In another part, linked to the first by buckets alone.
    ByBucket,
    /// Protected in a table of classes or of joint values.
    Protected,
}

impl Shown {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Known => "rows",
            Self::Generalized => "rows, generalized",
            Self::ByBucket => "by bucket",
            Self::Protected => "protected",
        }
    }

    /// The class of its line.
    const fn line(self) -> &'static str {
        match self {
            Self::Known => "link",
            Self::Generalized => "coarse-link",
            Self::ByBucket | Self::Protected => "hidden-link",
        }
    }
}

fn shown(table: &ManifestTable, attribute: &str) -> Option<Shown> {
    let part = table.parts.iter().position(|part| part.attributes.iter().any(|name| name == attribute))?;
    let is_protected = table.guards.iter().any(|guard| guard.sensitive.iter().any(|name| name == attribute));
    Some(match (part, is_protected) {
        (_, true) if table.parts.len() == 1 => Shown::Protected,
        (0, false) if table.parts[0].cells.contains_key(attribute) => Shown::Generalized,
        (0, false) => Shown::Known,
        _ => Shown::ByBucket,
    })
}

/// The tables and the attributes that they share. Drawn where it can be read, and in words for everybody.
pub(super) fn tables(manifest: &Manifest) -> Markup {
    let attributes: Vec<String> = manifest.attributes().into_iter().map(|(name, _)| name).collect();
    let is_drawn = attributes.len() <= MAX_ATTRIBUTES && manifest.tables.len() <= MAX_TABLES;
    html! {
        @if is_drawn { (drawing(manifest, &attributes)) }
        details open[!is_drawn] {
            summary class="note" { "The same as a table" }
            div class="wide" {
                table {
                    tr {
                        th { "attribute" }
                        @for table in &manifest.tables { th { (table.name) } }
                    }
                    @for attribute in &attributes {
                        tr {
                            td { (attribute) }
                            @for table in &manifest.tables { td { (shown(table, attribute).map_or("", Shown::as_str)) } }
                        }
                    }
                }
            }
        }
    }
}

fn drawing(manifest: &Manifest, attributes: &[String]) -> Markup {
    let rows = attributes.len().max(2 * manifest.tables.len());
    let height = TOP_PX + rows * ROW_PX + 10;
    // both sides take the whole height
    let at = |index: usize, of: usize| TOP_PX + (2 * index + 1) * rows * ROW_PX / (2 * of.max(1));
    let caption = "Attributes on the left, tables on the right. A solid line: the rows of the table show the attribute. A dotted line: \
                   its cells stand for several values. A dashed line: only buckets or classes link the attribute to the rows. A thick box guards the attributes that it names. An \
                   attribute with lines to two tables joins them.";
    html! {
        figure {
            svg role="img" aria-label="Attributes and the tables that show them" viewBox=(format!("0 0 {WIDTH_PX} {height}")) width=(WIDTH_PX) height=(height) {
                @for (row, attribute) in attributes.iter().enumerate() {
                    @let y = at(row, attributes.len());
                    text class="name" x=(NAME_PX - 12) y=(y + 4) text-anchor="end" { (short(attribute, MAX_ATTRIBUTE_CHARS)) }
                    circle class="bar" cx=(NAME_PX) cy=(y) r="3" {}
                    @for (index, table) in manifest.tables.iter().enumerate() {
                        @if let Some(kind) = shown(table, attribute) {
                            line class=(kind.line())
                                x1=(NAME_PX + 3) y1=(y) x2=(TABLE_PX) y2=(at(index, manifest.tables.len())) {}
                        }
                    }
                }
                @for (index, table) in manifest.tables.iter().enumerate() {
                    @let y = at(index, manifest.tables.len());
                    @let guarded = guarded(table);
                    rect class=(if guarded.is_empty() { "box" } else { "guard" }) x=(TABLE_PX) y=(y - 19) width=(BOX_PX) height="38" rx="3" {}
                    text class="name strong" x=(TABLE_PX + 8) y=(y - 3) { (table.name) }
                    text class="tick" x=(TABLE_PX + 8) y=(y + 12) {
                        @if guarded.is_empty() { (table.kind) } @else { "guards " (short(&guarded.join(", "), MAX_GUARDED_CHARS)) }
                    }
                }
            }
            figcaption { (caption) }
        }
    }
}

/// The attributes that a table protects, each once.
fn guarded(table: &ManifestTable) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in table.guards.iter().flat_map(|guard| &guard.sensitive) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// A name that fits its place.
fn short(name: &str, chars: usize) -> String {
    if name.chars().count() <= chars {
        return name.to_owned();
    }
    name.chars().take(chars - 1).chain(std::iter::once('\u{2026}')).collect()
}

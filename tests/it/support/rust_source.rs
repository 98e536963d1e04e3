//! Rust source as the tests of the house read it: without comments, literals and tests.

/// A name, or a mark (`::` is one mark).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    Name(String),
    Mark(&'static str),
    Other(char),
}

impl Token {
    pub(crate) fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        match self {
            Self::Name(name) => name == text,
            Self::Mark(mark) => *mark == text,
            Self::Other(mark) => text.chars().eq([*mark]),
        }
    }
}

pub(crate) fn tokens(stripped: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = stripped.chars().peekable();
    while let Some(next) = rest.next() {
        if next.is_alphanumeric() || next == '_' {
            let mut name = next.to_string();
            while let Some(more) = rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
                name.push(more);
            }
            tokens.push(Token::Name(name));
        } else if next == ':' && rest.next_if_eq(&':').is_some() {
            tokens.push(Token::Mark("::"));
        } else if !next.is_whitespace() {
            tokens.push(Token::Other(next));
        }
    }
    tokens
}

/// The source with comments and the insides of literals blanked, and without items under `#[cfg(test)]`. Line feeds stay.
pub(crate) fn strip(source: &str) -> String {
    without_tests(&without_comments(source))
}

fn without_comments(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let blank = |out: &mut String, piece: &[char]| out.extend(piece.iter().map(|&c| if c == '\n' { c } else { ' ' }));
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let in_name = at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_');
        let len = match rest {
            ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => rest.windows(2).skip(2).position(|w| w == ['*', '/']).map_or(rest.len(), |end| end + 4),
            ['r', '"' | '#', ..] if !in_name => raw_string(&rest[1..]).map_or(0, |len| len + 1),
            ['b', 'r', '"' | '#', ..] if !in_name => raw_string(&rest[2..]).map_or(0, |len| len + 2),
            ['"', ..] => quoted(rest, '"'),
            // a character, not a lifetime
            ['\'', '\\', ..] | ['\'', _, '\'', ..] => quoted(rest, '\''),
            _ => 0,
        };
        if len == 0 {
            out.push(text[at]);
            at += 1;
        } else {
            blank(&mut out, &rest[..len]);
            at += len;
        }
    }
    out
}

/// The length of a literal from its opening to its closing mark.
fn quoted(text: &[char], mark: char) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != mark {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

/// The length of a raw string from its first `#` or `"`; `None` for a raw name.
fn raw_string(text: &[char]) -> Option<usize> {
    let hashes = text.iter().take_while(|&&c| c == '#').count();
    if text.get(hashes) != Some(&'"') {
        return None;
    }
    let closes = |at: usize| text[at] == '"' && text[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes;
    let end = (hashes + 1..text.len()).find(|&at| closes(at))?;
    Some(end + 1 + hashes)
}

/// Blanks every item under `#[cfg(test)]`: up to its closing brace, or to its semicolon.
fn without_tests(source: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find(MARK) {
        out.push_str(&rest[..start]);
        let item = &rest[start..];
        let (mut level, mut end) = (0_i32, item.len());
        for (at, c) in item.char_indices().skip(MARK.len()) {
            match c {
                '{' | '(' | '[' => level += 1,
                '}' | ')' | ']' => level -= 1,
                _ => {}
            }
            let closed = (c == '}' || c == ';') && level == 0;
            if closed {
                end = at + 1;
                break;
            }
        }
        out.extend(item[..end].chars().filter(|&c| c == '\n'));
        rest = &item[end..];
    }
    out.push_str(rest);
    out
}

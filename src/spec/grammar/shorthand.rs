//! The shorthand of rules: `a, b -> c`, `a -> b, c` (each is protected), `a -> (b & c)` (the combination is), `-> c`.
//!
//! Names are trimmed. A name with a comma, quote, `&`, parenthesis or `->` stands in double quotes, quotes doubled.

/// A rule as it is written, its names not yet looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleShorthand {
    /// The known side; may be empty.
    pub known: Vec<RuleName>,
    /// The sensitive side; never empty.
    pub sensitive: Vec<RuleName>,
    /// Whether only the combination of the sensitive side is protected.
    pub combination: bool,
}

/// A name in a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleName {
    /// The name, unquoted.
    pub text: String,
    /// The byte at which it starts.
    pub position: usize,
}

/// Why a rule cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleSyntaxError {
    /// The byte at which reading ended.
    pub position: usize,
    /// What is wrong and what to write instead.
    pub detail: &'static str,
}

/// The most names of a rule. No table has as many columns; each name takes memory before it is looked up.
pub(super) const MAX_NAMES: usize = 1 << 16;

/// A name with the separator after it.
const MAX_TOKENS: usize = 2 * MAX_NAMES;

#[derive(Clone, PartialEq, Eq, Debug)]
enum RuleToken {
    Name(String),
    Comma,
    And,
    Open,
    Close,
    Arrow,
    End,
}

/// Tokens with their positions; the last is `End`.
fn tokens(text: &str) -> Result<Vec<(usize, RuleToken)>, RuleSyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = text.len() - text[at..].trim_start().len();
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            tokens.push((at, RuleToken::End));
            return Ok(tokens);
        };
        let (token, length) = match first {
            ',' => (RuleToken::Comma, 1),
            '&' => (RuleToken::And, 1),
            '(' => (RuleToken::Open, 1),
            ')' => (RuleToken::Close, 1),
            '"' => {
                let (name, length) = quoted(rest)
                    .ok_or(RuleSyntaxError { position: at, detail: "the quote that opens here is never closed" })?;
                (RuleToken::Name(name), length)
            }
            _ if rest.starts_with("->") => (RuleToken::Arrow, 2),
            _ => {
                let bare = &rest[..bare_length(rest)];
                (RuleToken::Name(bare.trim_end().to_owned()), bare.len())
            }
        };
        if tokens.len() == MAX_TOKENS {
            return Err(RuleSyntaxError { position: at, detail: "a rule has at most 65536 names" });
        }
        tokens.push((at, token));
        at += length;
    }
}

fn bare_length(text: &str) -> usize {
    // in one step to the next separator: a search for each of them would look at the rest of the rule for every name
    let bytes = text.as_bytes();
    let ends = |at: usize| match bytes[at] {
        b',' | b'&' | b'(' | b')' | b'"' => true,
        b'-' => bytes.get(at + 1) == Some(&b'>'),
        _ => false,
    };
    (0..bytes.len()).find(|at| ends(*at)).unwrap_or(bytes.len())
}

/// The name that a quote opens, and the bytes it takes.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut at = 1;
    loop {
        let next = at + text[at..].find('"')?;
        name.push_str(&text[at..next]);
        at = next + 1;
        if !text[at..].starts_with('"') {
            return Some((name, at));
        }
        name.push('"');
        at += 1;
    }
}

struct RuleParser {
    tokens: Vec<(usize, RuleToken)>,
    next: usize,
}

impl RuleParser {
    fn peek(&self) -> &RuleToken {
        &self.tokens[self.next].1
    }

    fn fail<T>(&self, detail: &'static str) -> Result<T, RuleSyntaxError> {
        Err(RuleSyntaxError { position: self.tokens[self.next].0, detail })
    }

    /// Steps over `token` when it comes next; `End` is never stepped over.
    fn eat(&mut self, token: &RuleToken) -> bool {
        let found = self.peek() == token;
        self.next += usize::from(found);
        found
    }

    /// At least one name, separated by `separator`.
    fn names(&mut self, separator: &RuleToken) -> Result<Vec<RuleName>, RuleSyntaxError> {
        let mut names = Vec::new();
        loop {
            let (position, token) = &self.tokens[self.next];
            let RuleToken::Name(text) = token else {
                return self.fail("expected the name of an attribute");
            };
            names.push(RuleName { text: text.clone(), position: *position });
            self.next += 1;
            if !self.eat(separator) {
                return Ok(names);
            }
        }
    }
}

const ADJACENT: &str = "a quoted name stands alone between separators; quotes inside it are doubled";

/// Reads a rule.
///
/// # Errors
/// When the text is no rule; the position is a byte offset.
pub fn parse(text: &str) -> Result<RuleShorthand, RuleSyntaxError> {
    let mut parser = RuleParser { tokens: tokens(text)?, next: 0 };
    let known = match parser.peek() {
        RuleToken::Arrow => Vec::new(),
        RuleToken::Open => return parser.fail("only the right side may be a combination in parentheses"),
        RuleToken::End => return parser.fail("expected a rule such as \"a, b -> c\""),
        _ => parser.names(&RuleToken::Comma)?,
    };
    if !parser.eat(&RuleToken::Arrow) {
        return match parser.peek() {
            RuleToken::End => parser.fail("expected \"->\" between the known attributes and the sensitive ones"),
            RuleToken::Name(_) => parser.fail(ADJACENT),
            _ => parser.fail("expected \",\" or \"->\"; a name with this character is double-quoted"),
        };
    }
    if parser.peek() == &RuleToken::End {
        return parser.fail("the right side is empty: name what must stay protected");
    }
    let combination = parser.eat(&RuleToken::Open);
    let sensitive = parser.names(if combination { &RuleToken::And } else { &RuleToken::Comma })?;
    if combination && !parser.eat(&RuleToken::Close) {
        return parser.fail("expected \"&\" or \")\"; write \"b, c\" without parentheses to protect each");
    }
    match parser.peek() {
        RuleToken::End => Ok(RuleShorthand { known, sensitive, combination }),
        RuleToken::And => parser.fail("write \"b, c\" to protect each, or \"(b & c)\" to protect only the combination"),
        RuleToken::Arrow => parser.fail("a rule has one \"->\""),
        RuleToken::Name(_) => parser.fail(ADJACENT),
        _ => parser.fail("expected the end of the rule"),
    }
}

/// Writes a rule in shorthand; [`parse`] reads it back.
#[must_use]
pub fn write(known: &[&str], sensitive: &[&str], combination: bool) -> String {
    let join =
        |names: &[&str], separator: &str| names.iter().map(|name| write_name(name)).collect::<Vec<_>>().join(separator);
    let left = join(known, ", ");
    let gap = if left.is_empty() { "" } else { " " };
    match combination {
        true => format!("{left}{gap}-> ({})", join(sensitive, " & ")),
        false => format!("{left}{gap}-> {}", join(sensitive, ", ")),
    }
}

fn write_name(name: &str) -> String {
    let bare = !name.is_empty() && name.trim() == name && bare_length(name) == name.len();
    if bare { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn names(names: &[RuleName]) -> Vec<&str> {
        names.iter().map(|name| name.text.as_str()).collect()
    }

    #[test]
    fn rules_are_read() {
        let cases: [(&str, &[&str], &[&str], bool); 11] = [
            ("a, b -> c", &["a", "b"], &["c"], false),
            ("a->b,c", &["a"], &["b", "c"], false),
            ("a -> (c & d)", &["a"], &["c", "d"], true),
            ("a -> ( c )", &["a"], &["c"], true),
            ("-> c", &[], &["c"], false),
            ("  marital status ,b\t->\nc ", &["marital status", "b"], &["c"], false),
            ("\"a, \"\"b\"\"\" -> \"->\"", &["a, \"b\""], &["->"], false),
            ("\" a \" -> \"\"", &[" a "], &[""], false),
            ("education-num, > -> -", &["education-num", ">"], &["-"], false),
            ("a--> b", &["a-"], &["b"], false),
            ("größe -> é", &["größe"], &["é"], false),
        ];
        for (text, known, sensitive, combination) in cases {
            let rule = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!(
                (names(&rule.known).as_slice(), names(&rule.sensitive).as_slice()),
                (known, sensitive),
                "{text}"
            );
            assert_eq!(rule.combination, combination, "{text}");
        }
    }

    #[test]
    fn faults_name_the_byte() {
        for (text, position) in [
            ("", 0),
            ("  ", 2),
            ("a b", 3),
            ("a ->", 4),
            ("->", 2),
            ("a,, b -> c", 2),
            ("a, -> c", 3),
            (", a -> c", 0),
            ("a -> b,", 7),
            ("a -> b & c", 7),
            ("a & b -> c", 2),
            ("(a) -> b", 0),
            ("a -> (b, c)", 7),
            ("a -> (b & c", 11),
            ("a -> (b) c", 9),
            ("a -> ()", 6),
            ("a -> b -> c", 7),
            ("\"a -> b", 0),
            ("a\"b\" -> c", 1),
            ("é, \"x\"y -> c", 7),
            ("a -> b\"c\"", 6),
        ] {
            assert_eq!(parse(text).expect_err(text).position, position, "{text}");
        }
    }

    #[test]
    fn a_rule_has_a_bounded_number_of_names() {
        let rule = |names: usize| format!("{}a -> b", "a,".repeat(names - 2));
        assert_eq!(parse(&rule(MAX_NAMES)).expect("a rule").known.len(), MAX_NAMES - 1);
        let longer = parse(&rule(MAX_NAMES + 1)).expect_err("a name too many");
        assert_eq!((longer.position, longer.detail), (rule(MAX_NAMES + 1).len() - 1, "a rule has at most 65536 names"));
    }

    #[test]
    fn positions_of_names_are_bytes() {
        let rule = parse("é , \"b\" -> c").expect("a rule");
        let positions: Vec<_> = rule.known.iter().chain(&rule.sensitive).map(|name| name.position).collect();
        assert_eq!(positions, [0, 5, 12]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            known in vec("[a-c ,\"&()>é-]{0,6}|->", 0..4),
            sensitive in vec("[a-c ,\"&()>é-]{0,6}|->", 1..4),
            combination: bool,
        ) {
            let refs = |names: &[String]| names.iter().map(|n| n.as_str().to_owned()).collect::<Vec<_>>();
            let known_refs: Vec<&str> = known.iter().map(String::as_str).collect();
            let sensitive_refs: Vec<&str> = sensitive.iter().map(String::as_str).collect();
            let text = write(&known_refs, &sensitive_refs, combination);
            let rule = parse(&text).expect(&text);
            prop_assert_eq!(names(&rule.known), refs(&known));
            prop_assert_eq!(names(&rule.sensitive), refs(&sensitive));
            prop_assert_eq!(rule.combination, combination);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[ab ,\"&()>é-]{0,20}") {
            if let Err(error) = parse(&text) {
                prop_assert!(error.position <= text.len() && text.is_char_boundary(error.position));
            }
        }
    }
}

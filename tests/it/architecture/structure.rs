//! Sizes and shapes: functions, parameters, files of modules. Ceilings may only fall.

use std::collections::BTreeMap;

use super::dependencies::program;
use crate::support::rust_source::{Token, strip, tokens};

const MAX_FUNCTION_LINES: usize = 60;

/// Limit of the parameters of a function, `self` not counted.
const MAX_PARAMETERS: usize = 5;

/// Files of modules that hold items of their own, each with the number of items.
const MODULES_WITH_ITEMS: &[(&str, usize)] = &[
    ("api/mod.rs", 1),
    ("api/openapi/mod.rs", 6),
    ("cli/mod.rs", 5),
    ("identity/mod.rs", 8),
    ("meter/mod.rs", 26),
    ("problem/mod.rs", 14),
    ("publish/assign/mod.rs", 1),
    ("publish/slicing/cover/mod.rs", 7),
    ("publish/versatile/mod.rs", 7),
    ("random/mod.rs", 6),
    ("spec/grammar/document/mod.rs", 16),
    ("store/postgres/mod.rs", 1),
    ("store/shared/mod.rs", 2),
    ("store/sqlite/mod.rs", 1),
    ("telemetry/mod.rs", 5),
];

/// A function of a source.
#[derive(PartialEq, Eq, Debug)]
struct Function {
    name: String,
    /// From the line of the name to that of the closing brace.
    lines: usize,
    /// Number of parameters, without `self`.
    parameters: usize,
    /// Number of parameters that are tuples.
    tuples: usize,
}

/// A token with its line.
type Placed = (usize, Token);

fn placed_tokens(stripped: &str) -> Vec<Placed> {
    let lines = stripped.lines().enumerate();
    lines.flat_map(|(number, line)| tokens(line).into_iter().map(move |token| (number, token))).collect()
}

/// The position after the bracket that closes the one at `open`.
fn after_bracket(tokens: &[Placed], open: usize) -> usize {
    let mut level = 0_usize;
    for (at, (_, token)) in tokens.iter().enumerate().skip(open) {
        if ["(", "[", "{"].iter().any(|mark| token.is(mark)) {
            level += 1;
        } else if [")", "]", "}"].iter().any(|mark| token.is(mark)) {
            level -= 1;
            if level == 0 {
                return at + 1;
            }
        }
    }
    tokens.len()
}

/// Number of parameters between brackets that are tuples, by their pattern or by their type.
fn tuple_parameters(tokens: &[Placed]) -> usize {
    let (mut found, mut at, mut starts, mut counted) = (0, 0, true, false);
    while let Some((_, token)) = tokens.get(at) {
        let skipped = token.is("&") || token.is("mut") || token.is("'");
        if token.is("(") && starts && !counted {
            found += 1;
            counted = true;
        }
        if ["(", "[", "{"].iter().any(|mark| token.is(mark)) {
            at = after_bracket(tokens, at);
            starts = false;
            continue;
        }
        if token.is(",") {
            (starts, counted) = (true, false);
        } else if token.is(":") {
            starts = true;
        } else {
            let is_lifetime = at > 0 && tokens[at - 1].1.is("'");
            starts &= skipped || is_lifetime;
        }
        at += 1;
    }
    found
}

/// Number of parameters between brackets, without `self`.
fn parameters_without_self(tokens: &[Placed]) -> usize {
    let (mut found, mut at, mut level, mut is_empty) = (0, 0, 0_usize, true);
    let is_self = |at: usize| tokens[at].1.is("self") && tokens.get(at + 1).is_none_or(|(_, token)| token.is(","));
    while let Some((_, token)) = tokens.get(at) {
        if ["(", "[", "{"].iter().any(|mark| token.is(mark)) {
            at = after_bracket(tokens, at);
            is_empty = false;
            continue;
        }
        let is_arrow = at > 0 && tokens[at - 1].1.is("-");
        if token.is("<") {
            level += 1;
        } else if token.is(">") && !is_arrow {
            level -= 1;
        } else if token.is(",") && level == 0 {
            found += usize::from(!is_empty);
            is_empty = true;
            at += 1;
            continue;
        }
        let is_lifetime = token.is("'") || at > 0 && tokens[at - 1].1.is("'");
        is_empty &= is_lifetime || token.is("&") || token.is("mut") || is_self(at);
        at += 1;
    }
    found + usize::from(!is_empty)
}

/// The functions of a source that have a body, without those of tests.
fn functions(text: &str) -> Vec<Function> {
    let tokens = placed_tokens(&strip(text));
    let mut found = Vec::new();
    for (at, (line, token)) in tokens.iter().enumerate() {
        let Some(name) = tokens.get(at + 1).and_then(|(_, name)| name.name()).filter(|_| token.is("fn")) else {
            continue;
        };
        let Some(open) = open_parameters(&tokens, at + 2) else { continue };
        let close = after_bracket(&tokens, open);
        let Some(body) = body(&tokens, close) else { continue };
        let last = tokens[after_bracket(&tokens, body) - 1].0;
        let declared = &tokens[open + 1..close - 1];
        let (parameters, tuples) = (parameters_without_self(declared), tuple_parameters(declared));
        found.push(Function { name: name.to_owned(), lines: last - line + 1, parameters, tuples });
    }
    found
}

/// The position of the bracket that opens the body, after the parameters; `None` without a body.
fn body(tokens: &[Placed], mut at: usize) -> Option<usize> {
    loop {
        let token = &tokens.get(at)?.1;
        if token.is("{") {
            return Some(at);
        }
        if token.is(";") {
            return None;
        }
        at = if token.is("(") || token.is("[") { after_bracket(tokens, at) } else { at + 1 };
    }
}

/// The position of the bracket that opens the parameters, after the generic ones.
fn open_parameters(tokens: &[Placed], from: usize) -> Option<usize> {
    let mut level = 0_usize;
    for (at, (_, token)) in tokens.iter().enumerate().skip(from) {
        let is_arrow = at > 0 && tokens[at - 1].1.is("-");
        if token.is("<") {
            level += 1;
        } else if token.is(">") && !is_arrow {
            level = level.checked_sub(1)?;
        } else if token.is("(") && level == 0 {
            return Some(at);
        }
    }
    None
}

/// The names of the structs, enums and traits of a source, without those of tests.
fn types(text: &str) -> Vec<String> {
    let tokens = tokens(&strip(text));
    let declares = |token: &Token| ["struct", "enum", "trait"].iter().any(|word| token.is(word));
    let pairs = tokens.windows(2).filter(|pair| declares(&pair[0]));
    pairs.filter_map(|pair| pair[1].name().map(str::to_owned)).collect()
}

/// Number of items of a file of a module, other than modules and imports.
fn items(text: &str) -> usize {
    let tokens = placed_tokens(&strip(text));
    let (mut found, mut at) = (0, 0);
    while let Some((_, token)) = tokens.get(at) {
        if token.is("#") {
            let open = if tokens.get(at + 1).is_some_and(|(_, token)| token.is("!")) { at + 2 } else { at + 1 };
            at = after_bracket(&tokens, open);
            continue;
        }
        if token.is("pub") {
            let restricted = tokens.get(at + 1).is_some_and(|(_, token)| token.is("("));
            at = if restricted { after_bracket(&tokens, at + 1) } else { at + 1 };
            continue;
        }
        let (is_import, is_module) = (token.is("use"), token.is("mod"));
        let mut end = at;
        while let Some((_, token)) = tokens.get(end).filter(|(_, token)| !token.is(";")) {
            let is_body = token.is("{");
            end = if is_body || token.is("(") || token.is("[") { after_bracket(&tokens, end) } else { end + 1 };
            if is_body && !is_import {
                end -= 1;
                break;
            }
        }
        let has_body = tokens.get(end).is_some_and(|(_, token)| token.is("}"));
        found += usize::from(!(is_import || is_module && !has_body));
        at = end + 1;
    }
    found
}

/// No function of the program has the fault.
fn assert_no_function(fault: impl Fn(&Function) -> bool) {
    let faulty = |(file, text): (String, String)| {
        let of_file = functions(&text).into_iter().filter(|function| fault(function));
        of_file.map(|function| format!("{file}: {function:?}")).collect::<Vec<_>>()
    };
    let found: Vec<String> = program().into_iter().flat_map(faulty).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn functions_have_at_most_60_lines() {
    assert_no_function(|function| function.lines > MAX_FUNCTION_LINES);
}

#[test]
fn parameters_are_no_tuples() {
    assert_no_function(|function| function.tuples > 0);
}

#[test]
fn functions_have_at_most_five_parameters() {
    assert_no_function(|function| function.parameters > MAX_PARAMETERS);
}

#[test]
fn files_of_modules_hold_modules_and_imports() {
    let mut wrongs = Vec::new();
    for (file, text) in program().into_iter().filter(|(file, _)| file.ends_with("mod.rs")) {
        let ceiling = MODULES_WITH_ITEMS.iter().find(|(of, _)| *of == file).map_or(0, |(_, ceiling)| *ceiling);
        let found = items(&text);
        if found > ceiling {
            wrongs.push(format!("{file}: {found} items, more than {ceiling}"));
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

#[test]
fn types_have_names_of_their_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in program() {
        types(&text).into_iter().for_each(|name| places.entry(name).or_default().push(file.clone()));
    }
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "{places:#?}");
}

#[test]
fn names_of_types_are_found() {
    let text = "struct A;\npub(crate) enum B { C }\n// struct D;\ntrait E {}\n#[cfg(test)]\nmod tests { struct F; }\n";
    assert_eq!(types(text), ["A", "B", "E"]);
}

#[test]
fn lengths_of_functions_are_measured() {
    let function = |name: &str, lines, parameters| Function { name: name.to_owned(), lines, parameters, tuples: 0 };
    assert_eq!(functions("fn f() {}\n"), [function("f", 1, 0)]);
    let long = "impl A {\n    // fn no() {\n    fn f<T: Fn(u8) -> u8>(\n        a: T,\n    ) -> [u8; 2] {\n        \"}\";\n    }\n}\n";
    assert_eq!(functions(long), [function("f", 5, 1)]);
    assert_eq!(functions("trait A { fn f(&self, a: (u8, u8)) -> [u8; 2]; }"), []);
    assert_eq!(functions("#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n"), []);
    let nested = format!("fn f() {{\n    fn g() {{}}\n{}}}\n", "    g();\n".repeat(MAX_FUNCTION_LINES));
    assert_eq!(functions(&nested), [function("f", MAX_FUNCTION_LINES + 3, 0), function("g", 1, 0)]);
}

#[test]
fn tuple_parameters_are_found() {
    let tuples =
        |parameters: &str| functions(&format!("fn f({parameters}) {{}}")).iter().map(|f| f.tuples).sum::<usize>();
    assert_eq!(tuples("a: u8, b: &[(u8, u8)], c: impl Fn((u8, u8)), d: Vec<(u8, u8)>"), 0);
    assert_eq!(tuples("(a, b): (u8, u8)"), 1);
    assert_eq!(tuples("&(a, b): &(u8, u8), c: u8"), 1);
    assert_eq!(tuples("self, a: (u8, u8), b: &'a (u8, u8), c: &mut (u8, u8)"), 3);
}

#[test]
fn parameters_are_counted_without_self() {
    let counted = |parameters: &str| functions(&format!("fn f({parameters}) {{}}"))[0].parameters;
    assert_eq!((counted(""), counted("self"), counted("&mut self,"), counted("&'a self, a: u8")), (0, 0, 0, 1));
    assert_eq!(counted("a: Map<u8, u8>, f: impl Fn(u8, u8) -> Vec<u8>, [a, b]: [u8; 2], self_: u8,"), 4);
}

#[test]
fn items_of_modules_are_found() {
    assert_eq!(items("//! Doc.\nmod a;\npub(crate) mod b;\n#[cfg(x)]\npub use a::{b, c::{d}};\n"), 0);
    assert_eq!(items("#[cfg(test)]\nmod tests { fn f() {} }\n"), 0);
    assert_eq!(items("mod a;\npub fn f(a: u8) -> u8 { a }\nconst A: [u8; 2] = [1, 2];\n"), 2);
    assert_eq!(items("mod a { fn f() {} }\nstruct A(u8);\nmacro_rules! m { () => {}; }\nm!();\n"), 4);
}

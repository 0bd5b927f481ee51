//! Splits a source text into functions by its tokens. The result suffices for many languages to list the functions of
//! two versions of a file, and to decide whether a function changed. Comments, white space, quotes, semicolons and
//! trailing commas are ignored in comparisons.

use std::ops::Range;

/// The syntax that decides where a function ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Braces,
    Python,
}

const BRACES: [&str; 26] = [
    "go", "rs", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "java", "kt", "kts", "scala", "cs", "swift", "js", "mjs",
    "cjs", "jsx", "ts", "mts", "tsx", "php", "m", "mm", "dart",
];

/// Returns the language by the file extension; `None` if the file is no source text.
pub(super) fn language(path: &str) -> Option<Language> {
    let (_, ending) = path.rsplit_once('.')?;
    match ending {
        "py" | "pyx" => Some(Language::Python),
        _ => BRACES.contains(&ending).then_some(Language::Braces),
    }
}

/// Words before a parenthesis that are not calls.
const CONTROL: [&str; 26] = [
    "if", "for", "while", "switch", "match", "catch", "else", "return", "do", "try", "select", "case", "with", "loop",
    "unsafe", "defer", "go", "func", "fn", "function", "in", "and", "or", "not", "sizeof", "await",
];
const LOOPS: [&str; 4] = ["for", "while", "loop", "do"];
const DEFINES: [&str; 4] = ["func", "fn", "function", "fun"];
const OWNERS: [&str; 11] =
    ["class", "struct", "interface", "impl", "trait", "mod", "namespace", "enum", "type", "object", "extension"];
/// Words that may continue a signature on a separate line.
const AFTER_SIGNATURE: [&str; 3] = ["where", "throws", "noexcept"];

/// A word, a sign or a quoted text of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lexeme {
    pub text: String,
    /// The line number, starting at 0.
    pub line: u32,
    /// True for the first token of its line.
    pub is_first: bool,
}

impl Lexeme {
    pub(super) fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
    }

    pub(super) fn is_string(&self) -> bool {
        self.text.starts_with('"')
    }
}

/// A function with its tokens, without the tokens of inner functions.
#[derive(Debug, Clone)]
pub(super) struct SourceFunction {
    pub name: String,
    /// The type of a method.
    pub owner: Option<String>,
    /// The line range, starting at 0.
    pub lines: Range<u32>,
    pub tokens: Vec<Lexeme>,
}

/// A source text, split into functions and the tokens outside of functions.
#[derive(Debug, Clone, Default)]
pub(super) struct Outline {
    pub functions: Vec<SourceFunction>,
    pub outside: Vec<Lexeme>,
}

impl Outline {
    pub(super) fn new(text: &str, language: Language) -> Outline {
        let tokens = tokens(text, language);
        match language {
            Language::Python => by_indentation(text, &tokens),
            Language::Braces => by_braces(&tokens),
        }
    }
}

fn tokens(text: &str, language: Language) -> Vec<Lexeme> {
    let mut all: Vec<Lexeme> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut line = 0u32;
    let mut push = |start: usize, end: usize, line: u32, prefix: &str| {
        let is_first = all.last().is_none_or(|last: &Lexeme| last.line != line);
        all.push(Lexeme { text: format!("{prefix}{}", &text[start..end]), line, is_first });
    };
    while let Some((start, c)) = chars.next() {
        let rest = &text[start..];
        let skip_to = |chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>, end: usize| {
            while chars.next_if(|(position, _)| *position < end).is_some() {}
        };
        let is_comment = match language {
            Language::Python => c == '#',
            Language::Braces => rest.starts_with("//"),
        };
        if c == '\n' {
            line += 1;
        } else if c.is_whitespace() {
        } else if is_comment {
            skip_to(&mut chars, start + rest.find('\n').unwrap_or(rest.len()));
        } else if language == Language::Braces && rest.starts_with("/*") {
            let end = start + rest.find("*/").map_or(rest.len(), |position| position + 2);
            line += text[start..end].matches('\n').count() as u32;
            skip_to(&mut chars, end);
        } else if matches!(c, '"' | '\'' | '`') {
            let (length, quotes) = quoted(rest, c, language);
            let (first, end) = (line, start + length);
            line += text[start..end].matches('\n').count() as u32;
            // The kind of quotes is formatting, so all quotes are normalized.
            push(start + quotes, end.max(start + 2 * quotes) - quotes, first, "\"");
            skip_to(&mut chars, end);
        } else if c.is_alphanumeric() || matches!(c, '_' | '$') {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(rest.len());
            push(start, start + end, line, "");
            skip_to(&mut chars, start + end);
        } else {
            push(start, start + c.len_utf8(), line, "");
        }
    }
    all
}

/// Returns the length of a quoted text, and of its quotes. A quote that starts no text, such as a lifetime's, has
/// length 1.
fn quoted(rest: &str, quote: char, language: Language) -> (usize, usize) {
    let triple: String = [quote; 3].iter().collect();
    if language == Language::Python && rest.starts_with(&triple) {
        return match rest[3..].find(&triple) {
            Some(position) => (position + 6, 3),
            None => (rest.len(), 0),
        };
    }
    let mut is_escaped = false;
    for (position, c) in rest.char_indices().skip(1) {
        match c {
            '\n' if quote != '`' => break,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            // The quote may belong to a second lifetime: 'a, 'b
            _ if c == quote && !(quote == '\'' && rest[1..position].contains([',', '>', ' ', ')']) && position > 4) => {
                return (position + 1, 1);
            }
            _ => {}
        }
    }
    (1, 0)
}

fn by_indentation(text: &str, tokens: &[Lexeme]) -> Outline {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: u32| {
        let line = lines.get(line as usize).copied().unwrap_or_default();
        line.len() - line.trim_start().len()
    };
    let mut outline = Outline::default();
    // The open blocks: the indentation, the function's index, and the name.
    let mut open: Vec<(usize, Option<usize>, String)> = Vec::new();
    let (mut depth, mut levels) = (0i32, vec![0usize]);
    for (i, token) in tokens.iter().enumerate() {
        if token.is_first && depth == 0 {
            let column = indent(token.line);
            while open.last().is_some_and(|(from, ..)| column <= *from) {
                open.pop();
            }
            while levels.last().is_some_and(|level| column < *level) {
                levels.pop();
            }
            if levels.last().is_none_or(|level| column > *level) {
                levels.push(column);
            }
            let word = |n: usize| tokens.get(i + n).map_or("", |t| t.text.as_str());
            let skip = usize::from(word(0) == "async");
            match word(skip) {
                "def" => {
                    let owner =
                        open.last().filter(|(_, function, _)| function.is_none()).map(|(.., name)| name.clone());
                    let name = word(skip + 1).to_owned();
                    open.push((column, Some(outline.functions.len()), name.clone()));
                    outline.functions.push(SourceFunction {
                        name,
                        owner,
                        lines: token.line..token.line + 1,
                        tokens: Vec::new(),
                    });
                }
                "class" => open.push((column, None, word(1).to_owned())),
                _ => {}
            }
        }
        let is_statement = token.is_first && depth == 0;
        depth += match token.text.as_str() {
            "(" | "[" | "{" => 1,
            ")" | "]" | "}" => -1,
            _ => 0,
        };
        let function = open.iter().rev().find_map(|(_, function, _)| *function);
        let tokens_of_scope = match function {
            Some(function) => {
                let function = &mut outline.functions[function];
                function.lines.end = token.line + 1;
                &mut function.tokens
            }
            None => &mut outline.outside,
        };
        if is_statement {
            // The nesting depth of a statement is part of its meaning.
            let level =
                levels.len() - open.iter().filter(|(_, function, _)| function.is_none()).count().min(levels.len());
            tokens_of_scope.push(Lexeme { text: format!("\n{level}"), line: token.line, is_first: true });
        }
        tokens_of_scope.push(token.clone());
    }
    outline
}

/// An open brace: the count of open parentheses before it, and the function or owner whose body it begins.
struct Brace {
    parentheses: u32,
    function: Option<usize>,
    owner: Option<String>,
}

fn by_braces(tokens: &[Lexeme]) -> Outline {
    let mut outline = Outline::default();
    let mut function_of: Vec<Option<usize>> = vec![None; tokens.len()];
    let mut open: Vec<Brace> = Vec::new();
    let (mut parentheses, mut from) = (0u32, 0usize);
    for (i, token) in tokens.iter().enumerate() {
        let inside = open.iter().rev().find_map(|brace| brace.function);
        function_of[i] = inside;
        match token.text.as_str() {
            "(" | "[" => parentheses += 1,
            ")" | "]" => parentheses = parentheses.saturating_sub(1),
            ";" if parentheses == 0 => from = i + 1,
            "{" => {
                let start = header_start(tokens, from, i);
                let header = &tokens[start..i];
                let mut brace = Brace { parentheses, function: None, owner: None };
                if parentheses == 0 {
                    match defined(header, inside.is_some()) {
                        Some(Defined::Function { name, owner }) => {
                            let outer = open.iter().rev().find_map(|brace| brace.owner.clone());
                            let lines = header.first().map_or(token.line, |t| t.line)..token.line + 1;
                            let number = outline.functions.len();
                            function_of[start..=i].fill(Some(number));
                            brace.function = Some(number);
                            let owner = owner.or(outer);
                            outline.functions.push(SourceFunction { name, owner, lines, tokens: Vec::new() });
                        }
                        Some(Defined::Owner(owner)) => brace.owner = Some(owner),
                        None => {}
                    }
                }
                open.push(brace);
                (parentheses, from) = (0, i + 1);
            }
            "}" => {
                if let Some(brace) = open.pop() {
                    parentheses = brace.parentheses;
                    if let Some(function) = brace.function {
                        outline.functions[function].lines.end = token.line + 1;
                    }
                }
                from = i + 1;
            }
            _ => {}
        }
    }
    for (token, function_of) in tokens.iter().zip(function_of) {
        match function_of {
            Some(function) => outline.functions[function].tokens.push(token.clone()),
            None => outline.outside.push(token.clone()),
        }
    }
    outline
}

/// Returns the index at which the header of a brace begins: the last line that begins with a name outside of
/// parentheses.
fn header_start(tokens: &[Lexeme], from: usize, brace: usize) -> usize {
    let (mut depth, mut start, mut is_bound) = (0i32, from, false);
    for (i, token) in tokens.iter().enumerate().take(brace).skip(from) {
        let may_begin = !is_bound && (token.is_name() || token.text == "*" || token.text == "~");
        is_bound |= depth == 0 && token.text == "where";
        if depth == 0 && token.is_first && may_begin && !AFTER_SIGNATURE.contains(&token.text.as_str()) {
            start = i;
        }
        depth += match token.text.as_str() {
            "(" | "[" => 1,
            ")" | "]" => -1,
            _ => 0,
        };
    }
    start
}

enum Defined {
    Function { name: String, owner: Option<String> },
    Owner(String),
}

fn defined(header: &[Lexeme], is_inside: bool) -> Option<Defined> {
    let text = |i: usize| header.get(i).map_or("", |t| t.text.as_str());
    let position = |words: &[&str]| header.iter().position(|t| words.contains(&t.text.as_str()));
    let function = |name: &str, owner: Option<String>| Some(Defined::Function { name: name.to_owned(), owner });
    let assigned = |before: usize| {
        let sign = header[..before].iter().rposition(|t| t.text == "=" || t.text == ":")?;
        let name = header[..sign].iter().find(|t| {
            t.is_name() && !["const", "let", "var", "export", "exports", "module", "static"].contains(&t.text.as_str())
        });
        // Go's `x := func() {` belongs to the outer function.
        name.filter(|_| text(sign + 1) != "=" && text(sign) != ":" || text(sign + 1) != "=").map(|t| t.text.clone())
    };
    // The parenthesis of `pub(crate)` starts no arguments.
    let parenthesis = (0..header.len()).find(|&i| text(i) == "(" && (i == 0 || text(i - 1) != "pub"));
    if let Some(keyword) = position(&DEFINES).filter(|keyword| parenthesis.is_none_or(|p| *keyword < p)) {
        // A Go method has its receiver before the name.
        if text(keyword + 1) == "(" {
            let end = header.iter().skip(keyword).position(|t| t.text == ")").map(|n| keyword + n)?;
            let name_token =
                header.get(end + 1).filter(|t| t.is_name() && !text(end + 2).is_empty() && text(keyword) == "func");
            return match name_token {
                Some(name) if ["(", "["].contains(&text(end + 2)) => {
                    let receiver =
                        header[keyword..end].iter().take_while(|t| t.text != "[").filter(|t| t.is_name()).last();
                    function(&name.text, receiver.map(|t| t.text.clone()))
                }
                _ if text(keyword) == "function" => assigned(keyword).and_then(|name| function(&name, None)),
                _ => None,
            };
        }
        let name = keyword + 1 + usize::from(text(keyword + 1) == "*");
        return header.get(name).filter(|t| t.is_name()).and_then(|t| function(&t.text, None));
    }
    if let Some(keyword) = position(&OWNERS).filter(|keyword| parenthesis.is_none_or(|p| *keyword < p) && !is_inside) {
        let names =
            header[keyword + 1..].iter().take_while(|t| t.text != "where" && t.text != ":" && t.text != "extends");
        let names: Vec<&Lexeme> = names.collect();
        let from = names.iter().position(|t| t.text == "for").map_or(0, |for_index| for_index + 1);
        let mut depth = 0;
        let mut candidates = names[from..].iter().filter(|t| {
            depth += i32::from(t.text == "<") - i32::from(t.text == ">");
            depth == 0 && t.is_name()
        });
        let name = if text(keyword) == "impl" { candidates.next_back() } else { candidates.next() };
        return name.map(|t| Defined::Owner(t.text.clone()));
    }
    if let Some(arrow) = header.windows(2).position(|two| two[0].text == "=" && two[1].text == ">") {
        return assigned(arrow).and_then(|name| function(&name, None));
    }
    let name_index = parenthesis?.checked_sub(1)?;
    let name = header.get(name_index).filter(|t| t.is_name() && !CONTROL.contains(&t.text.as_str()))?;
    let is_value =
        header[..name_index].iter().any(|t| ["=", "return", "new", "."].contains(&t.text.as_str()) || t.is_string());
    if is_inside || is_value || CONTROL.contains(&text(0)) {
        return None;
    }
    // A C++ method, `Type::method(...)`.
    let owner = (name_index >= 3 && text(name_index - 1) == ":").then(|| text(name_index - 3).to_owned());
    function(&name.text, owner)
}

/// Returns the tokens that comparisons use, without tokens that formatters add.
pub(super) fn essence(tokens: &[Lexeme]) -> Vec<&Lexeme> {
    let closes =
        |t: Option<&Lexeme>| t.is_none_or(|t| [")", "]", "}"].contains(&t.text.as_str()) || t.text.starts_with('\n'));
    let kept = |(i, t): &(usize, &Lexeme)| t.text != ";" && !(t.text == "," && closes(tokens.get(i + 1)));
    tokens.iter().enumerate().filter(kept).map(|(_, t)| t).collect()
}

/// Returns the called names, once per call.
pub(super) fn calls(tokens: &[Lexeme]) -> impl Iterator<Item = &str> {
    call_lines(tokens).map(|(_, name)| name)
}

/// Returns the called names with their lines, starting at 0.
pub(super) fn call_lines(tokens: &[Lexeme]) -> impl Iterator<Item = (u32, &str)> {
    let is_called = |i: usize| {
        let next = |n: usize| tokens.get(i + n).map_or("", |t| t.text.as_str());
        // Rust macros, and functions with explicit types.
        next(1) == "(" || next(1) == "!" && next(2) == "(" || next(1) == ":" && next(2) == ":" && next(3) == "<"
    };
    let is_defined = |i: usize| {
        i.checked_sub(1).is_some_and(|position| {
            let before = tokens[position].text.as_str();
            DEFINES.contains(&before) || before == "def"
        })
    };
    tokens.iter().enumerate().filter_map(move |(i, t)| {
        let is_call = t.is_name() && !CONTROL.contains(&t.text.as_str()) && is_called(i) && !is_defined(i);
        is_call.then_some((t.line, t.text.as_str()))
    })
}

/// Returns the number of loop keywords.
pub(super) fn loops(tokens: &[Lexeme]) -> usize {
    tokens.iter().filter(|t| LOOPS.contains(&t.text.as_str())).count()
}

#[cfg(test)]
mod tests {
    use super::{Language, Outline, calls, essence, language};

    fn functions_of(text: &str, path: &str) -> Vec<String> {
        let outline = Outline::new(text, language(path).unwrap_or(Language::Braces));
        let one = |f: &super::SourceFunction| {
            let owner = f.owner.as_ref().map_or_else(String::new, |o| format!("{o}."));
            format!("{owner}{} {}-{}", f.name, f.lines.start + 1, f.lines.end)
        };
        outline.functions.iter().map(one).collect()
    }

    #[test]
    fn functions_are_found_in_many_languages() {
        let go = "package a\n\nvar x = map[string]int{\"}\": 1}\n\n// Sum {\nfunc (l *List[T]) Sum(f func(int) int) int {\n\
                  \tg := func() { f(1) }\n\tfor i := range l.x {\n\t}\n\treturn 1\n}\nfunc one() { two() }\ntype T struct {\n\ta int\n}\n";
        assert_eq!(functions_of(go, "a.go"), ["List.Sum 6-11", "one 12-12"]);
        let rust = "use a::b;\nimpl<T> Shape for Box<T>\nwhere\n    T: X,\n{\n    pub(crate) fn area<'a>(&'a self, x: &'a str) -> f64\n    \
                    where\n        T: Y,\n    {\n        let f = |x| { x };\n        1.0\n    }\n}\nfn main() {\n    \
                    run(\"{\");\n}\n";
        assert_eq!(functions_of(rust, "a.rs"), ["Box.area 6-12", "main 14-16"]);
        let js = "const a = require('x')\nclass Shop {\n  total(cart) {\n    return cart.map((x) => { return x })\n  }\n}\n\
                  const tax = (x) => {\n  return x\n}\nexports.run = function () {\n}\nasync function go(x) {\n  if (x) {\n  }\n}\n";
        assert_eq!(functions_of(js, "a.mjs"), ["Shop.total 3-5", "tax 7-9", "run 10-11", "go 12-15"]);
        let c =
            "#include <x.h>\nstatic int\nsum(int *a, int n)\n{\n  for (;;) { }\n}\nvoid Shop::pay(int x) const {\n}\n";
        assert_eq!(functions_of(c, "a.cc"), ["sum 3-6", "Shop.pay 7-8"]);
        let python = "import x\n\nclass Shop:\n    def pay(self):\n        def inner():\n            pass\n        return (\n  1)\n\n\
                      async def run():\n    '''def no():'''\n    pass\nx = 1\n";
        assert_eq!(functions_of(python, "a.py"), ["Shop.pay 4-8", "inner 5-6", "run 10-12"]);
    }

    #[test]
    fn formatting_and_comments_do_not_count_as_a_change() {
        let words = |text: &str, path: &str| {
            let outline = Outline::new(text, language(path).unwrap_or(Language::Braces));
            let all = outline.functions.iter().flat_map(|f| essence(&f.tokens).into_iter().map(|t| t.text.clone()));
            all.collect::<Vec<_>>()
        };
        let (a, b) = ("fn f(a: u8) { g(a, b); }", "// x\nfn f(\n    a: u8,\n) {\n    g(a, /* y */ b)\n}");
        assert_eq!(words(a, "a.rs"), words(b, "a.rs"));
        let (a, b) = (
            "def f(a):\n  if a:\n    g(a, 'x')\n  h()\n",
            "def f(a):  # x\n    if a:\n        g(\n  a,\n  \"x\",\n  )\n    h()\n",
        );
        assert_eq!(words(a, "a.py"), words(b, "a.py"));
        // A statement that moves into the block is a change.
        assert_ne!(words(a, "a.py"), words("def f(a):\n  if a:\n    g(a, 'x')\n    h()\n", "a.py"));
        assert_ne!(words("fn f() { g(1) }", "a.rs"), words("fn f() { g(2) }", "a.rs"));
    }

    #[test]
    fn calls_are_names_before_parentheses() {
        let outline = Outline::new("fn f() { if (a) { b(c.d(), e!(1)) } }", Language::Braces);
        assert_eq!(calls(&outline.functions[0].tokens).collect::<Vec<_>>(), ["b", "d", "e"]);
    }
}

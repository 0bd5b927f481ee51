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
/// Words that continue a signature on a separate line, or begin one: `const` of a method, or of a returned type.
const AFTER_METHOD: [&str; 5] = ["const", "volatile", "override", "final", "requires"];
/// Words with parentheses that belong to a definition in C, C++ or Rust, but do not name the function.
const ATTRIBUTES: [&str; 12] = [
    "__attribute__",
    "__attribute",
    "__declspec",
    "__asm__",
    "__asm",
    "alignas",
    "_Alignas",
    "explicit",
    "noexcept",
    "decltype",
    "requires",
    "pub",
];
/// Words that may precede the returned type. A macro with arguments at this place does not name the function.
const SPECIFIERS: [&str; 12] = [
    "static",
    "inline",
    "extern",
    "public",
    "private",
    "protected",
    "final",
    "virtual",
    "constexpr",
    "const",
    "friend",
    "__inline",
];

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
    // The index of the statement after the last decorators, and whether these opened its function.
    let (mut after, mut is_opened) = (0usize, false);
    for (i, token) in tokens.iter().enumerate() {
        if token.is_first && depth == 0 {
            let column = indent(token.line);
            // Decorators and their `def` have the same indentation.
            while !(is_opened && i <= after) && open.last().is_some_and(|(from, ..)| column <= *from) {
                open.pop();
            }
            while levels.last().is_some_and(|level| column < *level) {
                levels.pop();
            }
            if levels.last().is_none_or(|level| column > *level) {
                levels.push(column);
            }
            // A decorator belongs to the function that follows it.
            let mut header = i;
            if token.text == "@" && (after == 0 || i > after) {
                after = after_decorators(tokens, i);
                (header, is_opened) = (after, false);
            }
            let word = |n: usize| tokens.get(header + n).map_or("", |t| t.text.as_str());
            let skip = usize::from(word(0) == "async");
            match word(skip) {
                "def" if is_opened && header == after => {}
                "def" => {
                    is_opened |= header != i;
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
                "class" if header == i => open.push((column, None, word(1).to_owned())),
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

/// Returns the index of the first statement after the decorators that begin at a token.
fn after_decorators(tokens: &[Lexeme], start: usize) -> usize {
    let mut depth = 0i32;
    for (i, token) in tokens.iter().enumerate().skip(start) {
        if depth == 0 && token.is_first && token.text != "@" {
            return i;
        }
        depth += match token.text.as_str() {
            "(" | "[" | "{" => 1,
            ")" | "]" | "}" => -1,
            _ => 0,
        };
    }
    tokens.len()
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

/// Returns the index at which the header of a brace begins: the last line that begins with a name or an attribute
/// outside of parentheses, and the lines before it that consist of attributes.
fn header_start(tokens: &[Lexeme], from: usize, brace: usize) -> usize {
    let (mut depth, mut start, mut is_bound) = (0i32, from, false);
    // The last arguments. A line after them continues the signature.
    let opens_arguments = |i: &usize| {
        tokens[*i].text == "(" && !i.checked_sub(1).is_some_and(|name| ATTRIBUTES.contains(&tokens[name].text.as_str()))
    };
    let last_arguments = (from..brace).rev().find(opens_arguments).unwrap_or(from);
    // JavaScript: `const f = x => {`
    let is_assigned = tokens[last_arguments..brace].iter().any(|t| t.text == "=");
    // The attributes before the next token: their first and their exclusive last index.
    let mut attributes: Option<Range<usize>> = None;
    for (i, token) in tokens.iter().enumerate().take(brace).skip(from) {
        let is_inside_attribute = attributes.as_ref().is_some_and(|range| i < range.end);
        if !is_inside_attribute
            && depth == 0
            && let Some(end) = attribute_end(&tokens[..brace], i)
        {
            let first = attributes.take().filter(|range| range.end == i).map_or(i, |range| range.start);
            // An attribute in the middle of a line, or after the arguments, belongs to the header that began before.
            if first != i || token.is_first && !AFTER_SIGNATURE.contains(&token.text.as_str()) && !is_bound {
                attributes = Some(first..end);
            }
        }
        let is_continued = |word: &str| {
            let is_after_arguments = i > last_arguments && last_arguments > from && !is_assigned;
            AFTER_SIGNATURE.contains(&word) || AFTER_METHOD.contains(&word) && is_after_arguments
        };
        let may_begin = !is_bound && (token.is_name() || token.text == "*" || token.text == "~");
        is_bound |= depth == 0 && token.text == "where";
        match &attributes {
            Some(range) if i < range.end => {}
            // The first token after attributes.
            Some(range) if i == range.end => start = range.start,
            _ if depth == 0 && token.is_first && may_begin && !is_continued(&token.text) => start = i,
            _ => {}
        }
        depth += match token.text.as_str() {
            "(" | "[" => 1,
            ")" | "]" => -1,
            _ => 0,
        };
    }
    start
}

/// Returns the exclusive end of the attribute that begins at a token: `__attribute__((noinline))`, `[[gnu::noinline]]`,
/// `#[inline(never)]`, `@Fork(2)`. Returns `None` for any other token.
fn attribute_end(tokens: &[Lexeme], start: usize) -> Option<usize> {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text.as_str());
    match text(start) {
        "#" if text(start + 1) == "[" => group_end(tokens, start + 1),
        "#" if text(start + 1) == "!" && text(start + 2) == "[" => group_end(tokens, start + 2),
        "[" if text(start + 1) == "[" => group_end(tokens, start),
        "@" if tokens.get(start + 1)?.is_name() && text(start + 1) != "interface" => {
            let mut end = start + 2;
            while text(end) == "." && tokens.get(end + 1).is_some_and(Lexeme::is_name) {
                end += 2;
            }
            Some(if text(end) == "(" { group_end(tokens, end)? } else { end })
        }
        word if ATTRIBUTES.contains(&word) && text(start + 1) == "(" => {
            let end = group_end(tokens, start + 1)?;
            // Functions of other languages may have these names.
            let is_named =
                start.checked_sub(1).is_some_and(|i| [".", ")"].contains(&text(i)) || DEFINES.contains(&text(i)));
            let is_function =
                ["requires", "explicit"].contains(&word) && (is_named || !tokens.get(end).is_some_and(Lexeme::is_name));
            (!is_function).then_some(end)
        }
        _ => None,
    }
}

/// Returns the exclusive end of the group of parentheses or brackets that opens at a token. Returns `None` if the group
/// does not end.
fn group_end(tokens: &[Lexeme], start: usize) -> Option<usize> {
    let mut depth = 0u32;
    for (i, token) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(i + 1);
        }
    }
    None
}

/// Returns the tokens of a header without attributes, without the parameters of a template, and without a macro with
/// arguments in place of a returned type.
fn without_attributes(header: &[Lexeme]) -> Vec<&Lexeme> {
    let text = |i: usize| header.get(i).map_or("", |t| t.text.as_str());
    let (mut kept, mut i) = (Vec::with_capacity(header.len()), 0);
    while i < header.len() {
        if let Some(end) = attribute_end(header, i) {
            // `decltype(x)` is a returned type, and `pub` a keyword.
            if matches!(text(i), "decltype" | "pub") {
                kept.push(&header[i]);
            }
            i = end;
        } else if text(i) == "template" && text(i + 1) == "<" {
            let mut depth = 0i32;
            let end = (i + 1..header.len()).find(|&end| {
                depth += i32::from(text(end) == "<") - i32::from(text(end) == ">");
                depth == 0
            });
            i = end.map_or(header.len(), |end| end + 1);
        } else {
            kept.push(&header[i]);
            i += 1;
        }
    }
    // `API(int) price(int k) {`
    let macro_index = kept.iter().position(|t| !SPECIFIERS.contains(&t.text.as_str())).unwrap_or(0);
    let macro_end = kept.get(macro_index + 1).filter(|t| t.text == "(").and_then(|_| {
        let mut depth = 0i32;
        kept.iter().enumerate().skip(macro_index + 1).find_map(|(i, t)| {
            depth += i32::from(t.text == "(") - i32::from(t.text == ")");
            (depth == 0).then_some(i + 1)
        })
    });
    if let Some(end) = macro_end {
        let has_name = kept.get(macro_index).is_some_and(|t| t.is_name() && !is_word_of_syntax(&t.text));
        let rest = &kept[end..];
        // A definition has a type and a name here. A continuation such as `const` or `throws` is a single name.
        let names = rest.iter().take_while(|t| t.is_name() || ["*", "&"].contains(&t.text.as_str())).count();
        let is_defined = rest.get(names).is_some_and(|t| t.text == "(")
            && rest.first().is_some_and(|t| !AFTER_SIGNATURE.contains(&t.text.as_str()) && !is_word_of_syntax(&t.text));
        // By convention, only macros are in capitals: `Shop(int k) NOEXCEPT_IF(x)` is a constructor.
        let is_macro = |t: Option<&&Lexeme>| t.is_some_and(|t| !t.text.contains(|c: char| c.is_lowercase()));
        let is_defined = is_defined && is_macro(kept.get(macro_index)) && !is_macro(rest.get(names.saturating_sub(1)));
        if has_name && names > 0 && is_defined {
            kept.drain(macro_index..end);
        }
    }
    kept
}

fn is_word_of_syntax(word: &str) -> bool {
    CONTROL.contains(&word) || DEFINES.contains(&word) || OWNERS.contains(&word)
}

enum Defined {
    Function { name: String, owner: Option<String> },
    Owner(String),
}

fn defined(header: &[Lexeme], is_inside: bool) -> Option<Defined> {
    let header = without_attributes(header);
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
        let names: Vec<&&Lexeme> = names.collect();
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
    #![allow(clippy::unwrap_used)]

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

    /// A commit to a function that is not found would be denied.
    #[test]
    fn attributes_with_arguments_do_not_hide_the_function() {
        for (path, header, expected) in [
            ("a.c", "__attribute__((noinline)) static int price(int k) {", "price"),
            ("a.c", "static __attribute__((noinline)) int price(int k) {", "price"),
            ("a.c", "static int __attribute__((noinline, noclone)) price(int k)\n{", "price"),
            ("a.c", "static int __attribute((noinline)) price(int k) {", "price"),
            ("a.c", "__attribute__((noinline))\nint price(int k)\n{", "price"),
            ("a.c", "__attribute__((noinline)) int\nprice(int k)\n{", "price"),
            ("a.c", "[[gnu::noinline]] int price(int k) {", "price"),
            ("a.c", "__declspec(noinline) int price(int k) {", "price"),
            ("a.c", "API(int) price(int k) {", "price"),
            ("a.c", "extern API(int) price(int k) {", "price"),
            ("a.c", "API(int) const char *price(int k) {", "price"),
            ("a.c", "int price(int k) NONNULL(1) {", "price"),
            ("a.cc", "Shop(int k) NOEXCEPT_IF(x) : a(k) {", "Shop"),
            ("a.rs", "pub fn requires(mut self) -> Self {", "requires"),
            ("a.js", "const a = require('b')\nconst price = k => {", "price"),
            ("a.cc", "alignas(64) static int price(int k) {", "price"),
            ("a.cc", "explicit(true) Shop(int k) : a(k), b(k) {", "Shop"),
            ("a.cc", "int price(int k) noexcept(true) {", "price"),
            ("a.cc", "int price(int k)\n    const noexcept(true)\n    override\n{", "price"),
            ("a.cc", "auto price(int k) noexcept -> int {", "price"),
            ("a.cc", "auto price(int k)\n    -> decltype(k)\n{", "price"),
            ("a.cc", "decltype(auto) price(int k) {", "price"),
            ("a.cc", "template <typename T = int> requires (sizeof(T) > 2) T price(T k) {", "price"),
            ("a.cc", "template <class T = int>\n[[nodiscard(\"x\")]] T price(T k) {", "price"),
            ("a.rs", "#[inline(never)] fn price(k: u8) -> u8 {", "price"),
            ("a.rs", "#[inline(never)] #[cfg(any(a, b))] pub(crate) fn price(k: u8) -> u8 {", "price"),
            ("a.rs", "#[inline(never)]\npub fn price(k: u8) -> u8 {", "price"),
            ("A.java", "@Fork(2) public int price(int k) {", "price"),
            ("A.java", "@Fork(value = 2, args = \"x\") @Slow int price(int k) throws E {", "price"),
            ("A.java", "@org.junit.Test(timeout = 1)\npublic int price(int k) {", "price"),
            ("a.kt", "@Test(timeout = 1) fun price(k: Int): Int {", "price"),
            ("a.ts", "@log({ level: 1 }) price(k: number) {", "price"),
            ("a.py", "@cache(size=(1,\n  2))\n@b\ndef price(k):", "price"),
        ] {
            let is_python = path == "a.py";
            let ends = if is_python {
                ["x = 1\n", "\n    return k + 8\n"]
            } else {
                ["#define N (4)\n", "\n  return k + 8;\n}\n"]
            };
            let text = format!("{}{header}{}", ends[0], ends[1]);
            let outline = Outline::new(&text, language(path).unwrap());
            let found: Vec<_> = outline.functions.iter().map(|f| (f.name.as_str(), f.lines.end)).collect();
            assert_eq!(found, [(expected, text.lines().count() as u32)], "{text}");
            assert!(outline.functions[0].tokens.iter().any(|t| t.text == "8"), "{text}");
        }
        // These look like an attribute or a macro, but are functions.
        assert_eq!(
            functions_of("int f(int a) {\n}\nint main() {\n  if (f(1)) {\n  }\n}\n", "a.c"),
            ["f 1-2", "main 3-6"]
        );
        let python = "class A:\n    @a\n    def f(self):\n        @b\n        def g():\n            pass\n        g()\n\n@c\nclass B:\n    \
                      @d\n    async def h(self):\n        pass\n@e\ndef i():\n    pass\n";
        assert_eq!(functions_of(python, "a.py"), ["A.f 2-7", "g 4-6", "B.h 11-13", "i 14-16"]);
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

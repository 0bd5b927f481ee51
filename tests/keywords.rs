//! The docstrings of Python's keywords, which are generated from the engine's tables of options.

use std::fmt::Write;
use std::path::Path;

use pprofdiff::Query;
use pprofdiff::loading::Loading;
use pprofdiff::options::{Heading, OptionKind, OptionRow};

#[path = "../crates/pprofdiff-python/src/described.rs"]
mod described;
#[allow(dead_code)]
#[path = "../crates/pprofdiff-python/src/keywords.rs"]
mod spelled_keywords;

/// The maximum width of a line in a docstring.
const WIDTH: usize = 104;

/// Wraps a list item. Lines after the first are indented below its text.
fn wrap(item: &str) -> String {
    let (mut wrapped, mut width) = (String::new(), 0);
    for word in item.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            wrapped.push_str("\n ");
            width = 1;
        }
        if width > 0 {
            wrapped.push(' ');
            width += 1;
        }
        wrapped.push_str(word);
        width += length;
    }
    wrapped
}

/// Returns an option as an item in the list of a docstring.
fn item<T>(option: &OptionRow<T>) -> String {
    wrap(&format!("- `{}`: {}", option.name, option.description(described::in_docstring)))
}

/// Returns the macros for one group of options: the list of a docstring, and the keywords of a signature.
fn macros<T: 'static>(name: &str, options: &[OptionRow<T>]) -> String {
    let list: String = options.iter().map(|option| format!("\n{}", item(option))).collect();
    let keywords: String = options.iter().map(|option| format!(", {}=None", option.name)).collect();
    let mut text = String::new();
    for (kind, content) in [("docs", list), ("keywords", keywords)] {
        write!(text, "\nmacro_rules! {name}_{kind} {{\n    () => {{\n        r#\"{content}\"#\n    }};\n}}\n").unwrap();
    }
    text
}

#[test]
fn docstrings_equal_the_engines_tables() {
    let mut text =
        "//! The lists of options in docstrings and signatures: `UPDATE_GOLDENS=1` with the test `keywords::` \
                    writes them.\n"
            .to_owned();
    let (filters, options): (Vec<_>, Vec<_>) = Query::options().partition(|option| option.heading == Heading::Filters);
    text.push_str(&macros("query", &options));
    text.push_str(&macros("filter", &filters));
    text.push_str(&macros("loading", &Loading::options().collect::<Vec<_>>()));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pprofdiff-python/src/docstrings.rs");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == text, "{} differs; UPDATE_GOLDENS=1 with the test keywords:: writes it", path.display());
}

#[test]
fn each_interface_spells_options_and_types_in_its_own_way() {
    let option = |name: &str| Loading::option(name).unwrap();
    let typed = option("split_at").description(pprofdiff_shell::typed_option);
    assert!(typed.contains("Short for --base-time ..AT and --new-time AT.. together."), "{typed}");
    let item = item(&option("split_at"));
    assert!(item.contains("`base_time=\"..AT\"` and `new_time=\"AT..\"`"), "{item}");
    let annotation = |name: &str| described::annotation(&Query::option(name).unwrap());
    assert_eq!(annotation("granularity"), "Granularity | None");
    assert_eq!(annotation("normalize"), "Literal[\"total\", \"duration\"] | float | None");
    assert_eq!(annotation("hide_below"), "float | None");
    assert_eq!(described::annotation(&option("inflated_limit")), "int | None");
    assert_eq!(described::annotation(&option("input_format")), "str | None");
    assert_eq!(
        described::about(&Query::option("ignore").unwrap()),
        "Drop samples with a matching frame; wins over `focus`"
    );
}

#[test]
fn texts_of_options_are_neutral() {
    fn check<T: 'static>(options: impl Iterator<Item = OptionRow<T>>, names: &[&str]) {
        for option in options {
            let text = option.description(|name, _| {
                assert!(names.contains(&name), "{} mentions an unknown option {name}", option.name);
                String::new()
            });
            let bare = text
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .find(|word| word.contains('_') && names.contains(word));
            assert!(!text.contains("--") && !text.contains('\n') && bare.is_none(), "{}: {text}", option.name);
            assert!((option.kind)() == OptionKind::Flag || !option.value_name.is_empty(), "{}", option.name);
        }
    }
    let names = Query::options().map(|o| o.name).chain(Loading::options().map(|o| o.name)).chain(["sort"]);
    let names: Vec<&str> = names.collect();
    check(Query::options(), &names);
    check(Loading::options(), &names);
}

#[test]
fn options_of_messages_become_keywords_and_other_words_stay() {
    for (text, expected) in [
        ("the names are in that binary (--binary)", "the names are in that binary (binary=)"),
        ("name them with --base-binary and --new-binary", "name them with base_binary= and new_binary="),
        ("compare cpu, or use --normalize total", "compare cpu, or use normalize=\"total\""),
        ("choose one with --input-type cpu/ns", "choose one with input_type=\"cpu/ns\""),
        ("if it is known, give --ops", "if it is known, give ops="),
        ("my--binary, perf script --itrace, --binary=x", "my--binary, perf script --itrace, --binary=x"),
        ("--focus on some frames", "focus= on some frames"),
        ("to rank them, pass --sample-type alloc_space", "to rank them, pass sample_type=\"alloc_space\""),
        ("pass --sample-type 'Freed memory' or none", "pass sample_type=\"Freed memory\" or none"),
        ("pass one, such as --name orders", "pass one, such as name=\"orders\""),
        ("it does not fail (--same-code fail); its data", "it does not fail (same_code=\"fail\"); its data"),
    ] {
        assert_eq!(spelled_keywords::keywords(text), expected);
    }
}

//! The comparison of a function's code in two builds. Go's linker can place functions in a random order (`-randlayout`),
//! so that two builds of one program have the same instructions at other addresses. GNU objdump judges whether
//! instructions are the same. Edits that keep a function's size, and edits of the constants that a function reads, must
//! never be overlooked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use pprofdiff::binary::{Binary, Code, CodeComparison, Memory};
use regex::Regex;

use crate::tools::have;

/// Creates an empty folder for programs.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("same-code-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A Go program that uses interfaces, maps, text, floating-point constants and jump tables.
const GO: &str = r#"package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type shape interface{ area() float64 }
type square struct{ side float64 }
type circle struct{ radius float64 }

//go:noinline
func (s square) area() float64 { return s.side * s.side }
//go:noinline
func (c circle) area() float64 { return 3.14159 * c.radius * c.radius }

//go:noinline
func name(i int) string {
	switch i % 9 {
	case 0:
		return "zero"
	case 1:
		return "one"
	case 2:
		return "two"
	case 3:
		return "three"
	case 4:
		return "four"
	case 5:
		return "five"
	case 6:
		return "six"
	case 7:
		return "seven"
	}
	return "many"
}

func main() {
	var all []shape
	for i := range len(os.Args) * 100 {
		if i%2 == 0 {
			all = append(all, square{float64(i)})
		} else {
			all = append(all, circle{float64(i)})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].area() > all[j].area() })
	counts := map[string]int{}
	for i := range all {
		counts[name(i)] += i
	}
	var text strings.Builder
	for key, count := range counts {
		fmt.Fprintf(&text, "%s=%d ", key, count)
	}
	fmt.Println(text.String(), len(all))
}
"#;

/// Builds a Go program with the functions in a random order.
fn go_build(folder: &Path, source: &str, name: &str, architecture: &str, seed: u32) -> PathBuf {
    std::fs::write(folder.join("main.go"), source).unwrap();
    let layout = format!("-ldflags=-randlayout={seed}");
    let mut go = Command::new("go");
    go.args(["build", &layout, "-o", name, "main.go"]).current_dir(folder);
    run(go.envs([("GOOS", "linux"), ("GOARCH", architecture), ("CGO_ENABLED", "0")]));
    folder.join(name)
}

fn code<'m>(binary: &Path, memory: &'m Memory) -> Code<'m> {
    Binary::open(binary).unwrap().code(&[], memory).unwrap()
}

/// Compares each function with the function of the same name. Instructions are paired in order. Functions with other
/// numbers of instructions are not aligned, so that their change is unknown.
fn compare<'m>(base: &Code<'m>, new: &Code<'m>) -> BTreeMap<String, CodeComparison> {
    let pairs = base.functions().filter_map(|f| Some((f, new.find(base.origin(f))?)));
    let align = |b: &[&str], n: &[&str]| {
        (b.len() == n.len()).then(|| (0..b.len() as u32).map(|i| (Some(i), Some(i))).collect())
    };
    let compared = pairs.map(|(f, g)| (base.name(f), base.compare(f, new, g, align)));
    compared.map(|(name, change)| (String::from_utf8_lossy(&name).into_owned(), change)).collect()
}

fn is_same(change: CodeComparison) -> bool {
    matches!(change, CodeComparison::Identical | CodeComparison::Relocated)
}

#[test]
fn functions_in_another_order_are_relocated() {
    let folder = folder("order");
    for architecture in ["amd64", "arm64"] {
        let memory = Memory::default();
        let programs = [1, 2].map(|seed| go_build(&folder, GO, &format!("{architecture}-{seed}"), architecture, seed));
        let [base, new] = programs.each_ref().map(|program| code(program, &memory));
        let changes = compare(&base, &new);
        assert!(changes.len() > 1500, "{}", changes.len());
        let changed: Vec<_> = changes.iter().filter(|(_, c)| matches!(c, CodeComparison::Changed { .. })).collect();
        assert!(changed.is_empty(), "{architecture}: {changed:?}");
        let unknown = changes.values().filter(|change| matches!(change, CodeComparison::Unknown(_))).count();
        assert!(unknown * 50 < changes.len(), "{architecture}: {unknown} of {} are unknown", changes.len());
        assert_eq!(changes["main.name"], CodeComparison::Relocated, "{architecture}");
        // A function without addresses keeps its bytes.
        assert_eq!(changes["main.square.area"], CodeComparison::Identical, "{architecture}");
    }
}

/// Returns the instructions of each function, without addresses and padding. Branches and calls keep the symbol, except
/// for the function's own.
fn objdump(binary: &Path) -> BTreeMap<String, Vec<String>> {
    static ADDRESS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b[0-9a-f]+ (<[^+>]+(?:\+0x[0-9a-f]+)?>)").unwrap());
    static RELATIVE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"-?0x[0-9a-f]+\(%rip\).*").unwrap());
    let mut objdump = Command::new("x86_64-linux-gnu-objdump");
    let listing = run(objdump.args(["-d", "-w", "--no-show-raw-insn", "-j", ".text"]).arg(binary));
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in listing.lines() {
        if let Some((_, title)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            title.clone_into(&mut name);
        } else if let Some((_, text)) = line.split_once(":\t") {
            let text = RELATIVE.replace(ADDRESS.replace(text, "$1").trim(), "(%rip)").into_owned();
            let is_padding = text.starts_with("nop") || text.starts_with("int3") || text.contains("xchg   %ax,%ax");
            functions.entry(name.clone()).or_default().extend((!is_padding).then_some(text));
        }
    }
    functions
}

/// The edited program differs in two functions. Their callers and the functions with moved data are the same.
#[test]
fn gnu_objdump_agrees_about_the_same_functions() {
    if !have("x86_64-linux-gnu-objdump", "--version", "binutils-x86-64-linux-gnu", "gnu_objdump_agrees") {
        return;
    }
    let folder = folder("objdump");
    let edited = GO.replace("* c.radius * c.radius", "* c.radius * c.radius + 1").replace("%s=%d ", "%s=%d, ");
    let programs = [go_build(&folder, GO, "base", "amd64", 3), go_build(&folder, &edited, "edited", "amd64", 4)];
    let memory = Memory::default();
    let [base, new] = programs.each_ref().map(|program| code(program, &memory));
    let [old_texts, new_texts] = programs.each_ref().map(|program| objdump(program));
    let (mut same, mut different) = (0, Vec::new());
    for (name, change) in compare(&base, &new) {
        let (Some(old), Some(new)) = (old_texts.get(&name), new_texts.get(&name)) else { continue };
        match (is_same(change), old == new) {
            (true, true) => same += 1,
            (true, false) => panic!("{name} is {change:?}\n{old:#?}\n{new:#?}"),
            (false, false) => different.push(name),
            // The judge does not compare constants.
            (false, true) => {}
        }
    }
    assert!(same > 1500, "{same}");
    assert!(different.contains(&"main.circle.area".to_owned()), "{different:?}");
    assert!(different.len() < 10, "{different:?}");
}

/// Like [`objdump`], as `go tool objdump` shows the instructions. It shows the symbols of calls, but not always those of
/// data, and it cannot decode the instructions of AVX-512.
fn go_objdump(binary: &Path) -> BTreeMap<String, Vec<String>> {
    static JUMP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(J\w+|LOOP\w*) 0x[0-9a-f]+$").unwrap());
    static DATA: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?:\S*\[.*\]\S*|[^ ,]+)\((?:IP|SB)\)").unwrap());
    let listing = run(Command::new("go").args(["tool", "objdump"]).arg(binary));
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in listing.lines() {
        if let Some(title) = line.strip_prefix("TEXT ") {
            title.split("(SB) ").next().unwrap_or_default().clone_into(&mut name);
        } else if let Some(text) = line.trim().rsplit('\t').next().filter(|text| !text.is_empty()) {
            let text = JUMP.replace(text, "$1");
            let text =
                if text.starts_with("CALL") { text } else { DATA.replace_all(&text, "(IP)").into_owned().into() };
            let is_padding = ["NOP", "INT $0x3", "XCHG AX, AX"].iter().any(|start| text.starts_with(start));
            functions.entry(name.clone()).or_default().extend((!is_padding).then(|| text.into_owned()));
        }
    }
    functions.retain(|name, _| !name.starts_with("expandAVX512"));
    functions
}

#[test]
fn the_disassembler_of_go_agrees_about_the_same_functions() {
    let folder = folder("go-objdump");
    let edited = GO.replace("3.14159 * c.radius", "c.radius * c.radius").replace("i%2 == 0", "i%2 == 1");
    let programs = [go_build(&folder, GO, "base", "amd64", 7), go_build(&folder, &edited, "edited", "amd64", 8)];
    let memory = Memory::default();
    let [base, new] = programs.each_ref().map(|program| code(program, &memory));
    let [old_texts, new_texts] = programs.each_ref().map(|program| go_objdump(program));
    let (mut same, mut different) = (0, Vec::new());
    for (name, change) in compare(&base, &new) {
        let (Some(old), Some(new)) = (old_texts.get(&name), new_texts.get(&name)) else { continue };
        match (is_same(change), old == new) {
            (true, true) => same += 1,
            (true, false) => panic!("{name} is {change:?}\n{old:#?}\n{new:#?}"),
            (false, false) => different.push(name),
            (false, true) => {}
        }
    }
    assert!(same > 1500, "{same}");
    assert!(
        ["main.main", "main.circle.area"].iter().all(|name| different.contains(&(*name).to_owned())),
        "{different:?}"
    );
    assert!(different.len() < 10, "{different:?}");
}

/// A C program with a function for each way to refer to data.
const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const int table[64] = {7, 11, 13, 17, 19, 23, 29, 31, 37, 41};
static int calls;
static int limits[4] = {10, 20, 30, 40};
__attribute__((noinline)) static int step(int x) { return x * 3 + 1; }
__attribute__((noinline)) static int leap(int x) { return x * 5 + 1; }
__attribute__((noinline)) double scale(double x) { return x * 1.25 + 0.5; }
__attribute__((noinline)) int pick(int k) { return table[k & 63]; }
__attribute__((noinline)) int limit(int k) { return limits[k & 3]; }
__attribute__((noinline)) int sum(const int *v, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) { if (v[i] > 100) s += v[i]; }
    return s;
}
__attribute__((noinline)) int walk(int n) { int x = n; for (int i = 0; i < n; i++) x = step(x); return x; }
__attribute__((noinline)) void say(int k) { calls++; printf("value %d\n", k); }
__attribute__((noinline)) int choose(int k) {
    switch (k) {
    case 0: return puts("a");
    case 1: return puts("bb");
    case 2: return printf("%d\n", k);
    case 3: return abs(k - 9);
    case 4: calls++; return 7;
    case 5: return (int)strlen(getenv("HOME"));
    case 6: exit(3);
    }
    return 0;
}
int main(int c, char **v) {
    int n = atoi(v[c - 1]), *all = calloc(n, sizeof *all);
    if (n > 999) limits[n & 3] = c;
    say(pick(n) + limit(n) + sum(all, n) + walk(n) + choose(n) + leap(n));
    return (int)scale(n);
}
"#;

fn gcc(folder: &Path, source: &str, name: &str, options: &[&str]) -> PathBuf {
    // Functions that are local to a file are found by the file's name.
    std::fs::write(folder.join("main.c"), source).unwrap();
    run(Command::new("gcc").args(["-O2", "-o", name, "main.c"]).args(options).current_dir(folder));
    folder.join(name)
}

/// One edit of the program per function, without a new instruction: a constant in the code and in the data, a text, a
/// condition, a callee, the order of a jump table, and the initial values of a variable.
const EDITS: [(&str, &str, &str); 10] = [
    ("limit", "20, 30", "20, 31"),
    ("scale", "1.25", "1.26"),
    ("pick", "19, 23", "19, 25"),
    ("pick", "k & 63", "k & 31"),
    ("sum", "> 100", "> 101"),
    ("sum", "v[i] > 100", "v[i] < 100"),
    ("walk", "step(x); return", "leap(x); return"),
    ("say", "value %d", "valve %d"),
    (
        "choose",
        "case 3: return abs(k - 9);\n    case 4: calls++; return 7;",
        "case 4: return abs(k - 9);\n    case 3: calls++; return 7;",
    ),
    ("choose", "bb", "bc"),
];

#[test]
fn edits_that_keep_the_size_are_found() {
    if !have("gcc", "--version", "gcc", "edits_that_keep_the_size_are_found") {
        return;
    }
    let folder = folder("edits");
    // Another function before all others moves the code, and a text moves the constants.
    let moved =
        C.replace("static int calls;", "int unused(int x) { puts(\"moved\"); return x * x; }\nstatic int calls;");
    for options in [&[][..], &["-no-pie", "-fno-pie"], &["-fno-plt"]] {
        let memory = Memory::default();
        let base = gcc(&folder, C, "base", options);
        let base = code(&base, &memory);
        let relocated = gcc(&folder, &moved, "moved", options);
        let same = compare(&base, &code(&relocated, &memory));
        for name in ["step", "scale", "pick", "limit", "sum", "walk", "say", "choose", "main"] {
            assert!(is_same(same[name]), "{options:?}: {name} is {:?}", same[name]);
        }
        for (function, from, to) in EDITS {
            assert!(moved.contains(from), "{from}");
            let edited = gcc(&folder, &moved.replace(from, to), "edited", options);
            let changes = compare(&base, &code(&edited, &memory));
            assert!(!is_same(changes[function]), "{options:?}: {function} with {to} is {:?}", changes[function]);
            let others = ["step", "scale", "pick", "limit", "sum", "walk", "say", "choose"]
                .into_iter()
                .filter(|f| *f != function);
            // A function that is no longer called is removed.
            let wrong: Vec<_> = others.filter(|f| changes.get(*f).is_some_and(|change| !is_same(*change))).collect();
            assert!(wrong.is_empty(), "{options:?}: {to} changed {wrong:?}");
        }
    }
}

/// A program whose function `f` keeps its bytes, or differs only in a number that may be an address, while `edit` changes
/// what it refers to.
struct Doubt {
    name: &'static str,
    source: String,
    /// Moves code and data without a change.
    moved: (&'static str, &'static str),
    edit: &'static [(&'static str, &'static str)],
    options: &'static [&'static str],
    /// True if the function of the moved program is known to be the same.
    is_known: bool,
}

/// Returns a program with the function `f` and data in the syntax of GNU as.
fn assembly(f: &str, data: &str) -> String {
    let text = format!(
        ".text; .globl f; .type f,@function; f: {f}; .size f,.-f; {data}; .text; .globl g; .type g,@function; \
         g: add $1,%rax; ret; .size g,.-g"
    );
    format!("__asm__(\"{}\");\nint main(void) {{ return 0; }}\n", text.replace('"', "\\\""))
}

/// Returns the code of a switch with six cases. The last comparison before the jump is of another register than the index.
fn switch() -> String {
    let cases: String = (0..6).map(|i| format!(".L{i}: mov ${i},%eax; ret; ")).collect();
    let entries: Vec<String> = (0..6).map(|i| format!(".L{i}-.LT")).collect();
    let f = "cmp $5,%edi; ja .Ld; mov %edi,%edi; and $1,%esi; lea .LT(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; \
             add %rdx,%rax; jmp *%rax; ";
    let data = format!(".section .rodata; .p2align 2; .LT: .long {}", entries.join(", "));
    assembly(&format!("{f}{cases}.Ld: xor %eax,%eax; ret"), &data)
}

const THREAD_LOCALS: &str = ".section .tdata,\"awT\",@progbits; .globl x; .type x,@object; x: .quad 1; .size x,8";
/// With these variables, `x` starts at -16 instead of -8.
const MORE_THREAD_LOCALS: &str = "x: .quad 1; .size x,8; .globl y; .type y,@object; y: .quad 2; .size y,8";

/// A function before all others moves the code of C programs.
const BEFORE_MAIN: (&str, &str) =
    ("int main", "__attribute__((noinline)) int unused(int x) { return x * x; }\nint main");
/// A function and a constant before the others.
const BEFORE_F: (&str, &str) =
    (".text; .globl f;", ".section .rodata; .quad 77, 78; .text; nop; ret; .p2align 5; .globl f;");

fn doubts() -> Vec<Doubt> {
    let c = |parts: &str| format!("{parts}\nint main(int c, char **v) {{ return (int)f(c); }}\n");
    let f = "__attribute__((noinline))";
    vec![
        Doubt {
            name: "another thread-local variable at the same offset",
            source: c(&format!("__thread long first = 1; {f} long f(long p) {{ return first * 3 + p; }}")),
            moved: ("__thread long first = 1;", "__thread long before = 3, first = 1, after = 2;"),
            edit: &[("first", "other")],
            options: &[],
            is_known: true,
        },
        Doubt {
            name: "the address of another thread-local variable",
            source: format!(
                "__thread long first = 1; {f} long *f(void) {{ return &first; }}
                 int main(int c, char **v) {{ return (int)*f(); }}"
            ),
            moved: BEFORE_MAIN,
            edit: &[("first", "other")],
            options: &[],
            is_known: true,
        },
        Doubt {
            name: "another thread-local variable of a library",
            source: c(&format!("static __thread long first = 1; {f} long f(long p) {{ return first++ * 3 + p; }}")),
            moved: BEFORE_MAIN,
            edit: &[("first", "other")],
            options: &["-shared", "-fPIC", "-ftls-model=initial-exec"],
            is_known: false,
        },
        Doubt {
            name: "another local thread-local variable of a library",
            source: c(&format!(
                "static __thread long first = 1, second = 2;
                 {f} long f(long p) {{ first += p; second += first; return second; }}"
            )),
            moved: BEFORE_MAIN,
            edit: &[("first", "other")],
            options: &["-shared", "-fPIC", "-ftls-model=local-dynamic"],
            is_known: false,
        },
        Doubt {
            name: "a place on the stack, at the offsets of a thread-local variable",
            source: assembly("mov %rdi,-0x8(%rsp); mov -0x8(%rsp),%rax; ret", THREAD_LOCALS),
            moved: BEFORE_F,
            edit: &[("-0x8(", "-0x10("), ("x: .quad 1; .size x,8", MORE_THREAD_LOCALS)],
            options: &[],
            is_known: true,
        },
        Doubt {
            name: "a number that may be the offset of a thread-local variable",
            source: assembly("lea -0x8(%rdi),%rax; ret", THREAD_LOCALS),
            moved: BEFORE_F,
            edit: &[("-0x8(", "-0x10("), ("x: .quad 1; .size x,8", MORE_THREAD_LOCALS)],
            options: &[],
            is_known: true,
        },
        Doubt {
            name: "an array behind a table of pointers",
            source: c(&format!(
                "static const int a[8] = {{1, 2, 3, 4}}, b[8] = {{3, 3, 3}};
                 static const int *const tab[2] = {{a, b}};
                 {f} int f(int i) {{ return tab[i & 1][i & 7]; }}"
            )),
            moved: BEFORE_MAIN,
            edit: &[("2, 3, 4", "2, 3, 5")],
            options: &[],
            is_known: true,
        },
        Doubt {
            name: "a constant after an equal text",
            source: assembly(
                "lea .LS(%rip),%rax; jmp g",
                ".section .rodata; .p2align 3; .LS: .asciz \"name\"; .p2align 3; .fill 24,4,7; .long 5",
            ),
            moved: BEFORE_F,
            edit: &[(".long 5", ".long 6")],
            options: &[],
            is_known: true,
        },
        Doubt {
            name: "a number after an equal text",
            source: assembly(
                "lea .LS(%rip),%rax; jmp g",
                ".section .rodata; .p2align 3; .LS: .asciz \"name\"; .p2align 3; .long 3, 5",
            ),
            moved: BEFORE_F,
            edit: &[(".long 3, 5", ".long 3, 6")],
            options: &[],
            is_known: true,
        },
        Doubt {
            name: "the order of a jump table",
            source: switch(),
            moved: BEFORE_F,
            edit: &[(".L4-.LT, .L5-.LT", ".L5-.LT, .L4-.LT")],
            options: &[],
            is_known: true,
        },
        Doubt {
            name: "the start of a large variable",
            source: format!(
                "int big[20000] = {{1, 2, 3}}; {f} int f(int i) {{ return big[i]; }}
                 int main(int c, char **v) {{ big[c] = c; return f(c); }}"
            ),
            moved: BEFORE_MAIN,
            edit: &[("1, 2, 3", "1, 2, 4")],
            options: &[],
            is_known: false,
        },
        Doubt {
            name: "another variable of a program with a fixed address",
            source: format!(
                "int first[9]; {f} int f(int i) {{ return first[i]; }}
                 int main(int c, char **v) {{ first[c & 7] = c; return f(c & 7); }}"
            ),
            moved: ("int first[9];", "int before[9] = {1}, first[9], after[9];"),
            edit: &[("first", "other")],
            options: &["-no-pie", "-fno-pie"],
            is_known: true,
        },
        Doubt {
            name: "a table of functions in another order",
            source: c(&format!(
                "static int one(int x) {{ return x + 1; }} static int two(int x) {{ return x * 7; }}
                 int (*table[2])(int) = {{one, two}}; {f} int f(int i) {{ return table[i & 1](i); }}"
            )),
            moved: BEFORE_MAIN,
            edit: &[("{one, two}", "{two, one}")],
            options: &[],
            is_known: true,
        },
    ]
}

/// Each of these edits was once missed.
#[test]
#[cfg(target_arch = "x86_64")]
fn edits_of_what_a_function_refers_to_are_found() {
    if !have("gcc", "--version", "gcc", "edits_of_what_a_function_refers_to_are_found") {
        return;
    }
    let folder = folder("doubts");
    for Doubt { name, source, moved, edit, options, is_known } in doubts() {
        let edited = edit.iter().fold(source.clone(), |source, (from, to)| {
            assert!(source.contains(from), "{name}: {from} is not in {source}");
            source.replace(from, to)
        });
        let others = [source.replace(moved.0, moved.1), edited];
        assert!(others[0] != source, "{name}");
        let memory = Memory::default();
        let base = gcc(&folder, &source, "base", options);
        let base = code(&base, &memory);
        let [moved, edited] = others.map(|source| {
            let new = gcc(&folder, &source, "new", options);
            compare(&base, &code(&new, &memory))["f"]
        });
        assert!(!is_same(edited), "{name}: {edited:?}");
        let is_certain =
            ["the order of a jump table", "a place on the stack"].iter().any(|start| name.starts_with(start));
        assert!(!is_certain || matches!(edited, CodeComparison::Changed { .. }), "{name}: {edited:?}");
        assert_eq!(is_same(moved), is_known, "{name}, moved: {moved:?}");
    }
}

/// The function calls `help` of its own file, and then `help` of another file, which has the same name.
#[test]
fn local_functions_of_one_name_are_not_the_same() {
    if !have("gcc", "--version", "gcc", "local_functions_of_one_name_are_not_the_same") {
        return;
    }
    let folder = folder("local");
    let help = |result: &str| {
        format!("__attribute__((noinline, noclone)) static int help(int x) {{ __asm__(\"\"); return {result}; }}\n")
    };
    let f = "__attribute__((noinline)) int f(int x) { return help(x) * 3; }\n";
    let (one, two) = (
        help("x + 1") + "int one(int x) { return help(x); }\n",
        help("x * 7") + "int two(int x) { return help(x); }\n",
    );
    std::fs::write(folder.join("two.c"), "").unwrap();
    let main = "int f(int), one(int), two(int); int main(int c, char **v) { return f(c) + one(c) + two(c); }\n";
    let build = |name: &str, sources: [String; 2]| {
        for (file, source) in ["one.c", "two.c"].iter().zip(sources) {
            std::fs::write(folder.join(file), source).unwrap();
        }
        gcc(&folder, main, name, &["one.c", "two.c"])
    };
    let memory = Memory::default();
    let base = build("base", [one.clone() + f, two.clone()]);
    let base = code(&base, &memory);
    let moved = build("moved", [format!("int before(int x) {{ return x * x; }}\n{one}{f}"), two.clone()]);
    let moved = compare(&base, &code(&moved, &memory))["f"];
    let other = build("other", [one, two + f]);
    let other = compare(&base, &code(&other, &memory))["f"];
    assert!(is_same(moved) && !is_same(other), "{moved:?} {other:?}");
}

/// The number of elements of a slice is less than its number of bytes.
#[test]
fn elements_of_a_slice_are_compared_to_its_end() {
    let folder = folder("slice");
    let source = "#[inline(never)]\nfn sum(x: &[u32]) -> u32 { std::hint::black_box(x).iter().sum() }
        #[inline(never)]\nfn caller() -> u32 { sum(&[1, 2, 3, 4]) + sum(&[7, 8]) }
        fn main() { println!(\"{}\", caller()); }\n";
    let build = |name: &str, source: &str| {
        std::fs::write(folder.join("main.rs"), source).unwrap();
        run(Command::new("rustc").args(["--edition=2021", "-O", "-o", name, "main.rs"]).current_dir(&folder));
        folder.join(name)
    };
    let memory = Memory::default();
    let base = build("base", source);
    let base = code(&base, &memory);
    let caller = |code: &Code<'_>| code.functions().find(|&f| code.name(f).ends_with(b"caller")).unwrap();
    let verdict = |name: &str, source: &str| {
        let new = build(name, source);
        let new = code(&new, &memory);
        base.compare(caller(&base), &new, caller(&new), |_, _| None)
    };
    let moved = verdict("moved", &source.replace("println!(", "println!(\"moved\"); println!("));
    let edited = verdict("edited", &source.replace("2, 3, 4", "2, 3, 77"));
    assert!(is_same(moved) && !is_same(edited), "{moved:?} {edited:?}");
}

/// Returns a library of Mach-O for x86-64 that starts at address 0, as such libraries do. Its function `f` loads the address
/// of the variable `limits`, which ends at the symbol `end` if this is higher.
fn mach_o_library(limits: [u64; 4], function_offset: u32, end: u64) -> Vec<u8> {
    const DATA: u64 = 0x1000;
    let name = |text: &str| {
        let mut bytes = [0u8; 16];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        bytes
    };
    let words = |all: &[u32]| all.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let longs = |all: &[u64]| all.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    // A segment with one section: its names, the start of the segment, the section's range, and the protection.
    let segment = |names: [&str; 2], start: u64, section: u64, size: u64, protection: u32| {
        let flags = if protection == 5 { 0x8000_0400 } else { 0 }; // instructions
        let head = [words(&[0x19, 72 + 80]), name(names[0]).to_vec(), longs(&[start, DATA, start, DATA])].concat();
        let section = [longs(&[section, size]), words(&[section as u32, 4, 0, 0, flags, 0, 0, 0])].concat();
        let counts = words(&[protection, protection, 1, 0]);
        [head, counts, name(names[1]).to_vec(), name(names[0]).to_vec(), section].concat()
    };
    let function = u64::from(function_offset);
    let code = [&[0x48, 0x8d, 0x05][..], &(DATA as u32 - function_offset - 7).to_le_bytes(), &[0xc3]].concat();
    let texts = b"\0_f\0_limits\0_end\0_g\0";
    let symbol = |text: u32, section: u32, value: u64| [words(&[text, 0xf | section << 8]), longs(&[value])].concat();
    let symbols =
        [symbol(1, 1, function), symbol(4, 2, DATA), symbol(12, 2, end), symbol(17, 1, function + 8)].concat();
    let commands = [
        [words(&[0xd, 32, 24, 0, 0, 0]), b"libf.so\0".to_vec()].concat(),
        segment(["__TEXT", "__text"], 0, function, code.len() as u64, 5),
        segment(["__DATA", "__data"], DATA, DATA, 40, 3),
        words(&[2, 24, 2 * DATA as u32, 4, 2 * DATA as u32 + symbols.len() as u32, texts.len() as u32]),
    ]
    .concat();
    let header = words(&[0xfeed_facf, 0x0100_0007, 3, 6, 4, commands.len() as u32, 0x85, 0]);
    let mut file = vec![0; 2 * DATA as usize];
    let mut put = |place: usize, bytes: &[u8]| file[place..place + bytes.len()].copy_from_slice(bytes);
    put(0, &[header, commands].concat());
    put(function_offset as usize, &code);
    put(DATA as usize, &longs(&limits));
    [file, symbols, texts.to_vec()].concat()
}

/// Small numbers are addresses in such a library, but they are no pointers.
#[test]
fn small_numbers_in_a_library_of_mach_o_are_compared() {
    let folder = folder("mach-o");
    let memory = Memory::default();
    let library = |name: &str, limits: [u64; 4], function: u32, end: u64| {
        std::fs::write(folder.join(name), mach_o_library(limits, function, end)).unwrap();
        code(&folder.join(name), &memory)
    };
    let base = library("base", [10, 20, 30, 40], 0x800, 0x1020);
    assert_eq!(compare(&base, &library("moved", [10, 20, 30, 40], 0x840, 0x1020))["f"], CodeComparison::Relocated);
    let edited = compare(&base, &library("edited", [10, 20, 31, 40], 0x800, 0x1020))["f"];
    assert!(!is_same(edited), "{edited:?}");
    // The size of the last variable is unknown.
    let [base, edited] = [30, 31].map(|limit| library("last", [10, 20, limit, 40], 0x800, 0x900));
    let edited = compare(&base, &edited)["f"];
    assert!(!is_same(edited), "{edited:?}");
}

/// Also the start code of C, which refers to the ends of sections and to the description of stack frames.
#[test]
fn no_function_of_a_moved_program_is_changed() {
    if !have("gcc", "--version", "gcc", "no_function_of_a_moved_program_is_changed") {
        return;
    }
    let folder = folder("start");
    let moved =
        C.replace("static int calls;", "int unused(int x) { puts(\"moved\"); return x * x; }\nstatic int calls;");
    for options in [&[][..], &["-no-pie", "-fno-pie"], &["-static"]] {
        let memory = Memory::default();
        let programs = [("base", C), ("moved", &moved)].map(|(name, source)| gcc(&folder, source, name, options));
        let [base, new] = programs.each_ref().map(|program| code(program, &memory));
        let changes = compare(&base, &new);
        let changed: Vec<_> = changes.iter().filter(|(_, c)| matches!(c, CodeComparison::Changed { .. })).collect();
        assert!(changed.is_empty(), "{options:?}: {changed:?}");
        assert!(is_same(changes["_init"]), "{options:?}: {:?}", changes["_init"]);
    }
}

/// A truncated or changed binary gives an answer or an error.
#[test]
fn damaged_binaries_are_compared_without_a_panic() {
    let folder = folder("damaged");
    let program = go_build(&folder, GO, "base", "amd64", 5);
    let good = std::fs::read(&program).unwrap();
    let memory = Memory::default();
    let base = code(&program, &memory);
    let mut state = 88_172_645_463_325_252u64;
    let mut random = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % n
    };
    let mut compared = 0;
    for i in 0..12 {
        let mut bytes = good.clone();
        for _ in 0..1 + random(50) {
            // The headers are at the beginning and the end.
            let place = [random(good.len()), random(0x400), good.len() - 1 - random(0x2000)][i % 3];
            bytes[place] = random(256) as u8;
        }
        if i % 5 == 0 {
            bytes.truncate(random(good.len()));
        }
        let damaged = folder.join("damaged");
        std::fs::write(&damaged, bytes).unwrap();
        let Ok(binary) = Binary::open(&damaged) else { continue };
        let Ok(new) = binary.code(&[], &memory) else { continue };
        compared += compare(&base, &new).len();
        compared += compare(&new, &base).len();
    }
    assert!(compared > 5000, "{compared}");
}

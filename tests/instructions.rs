//! Compares the instruction decoders with other disassemblers on code that Go compiles during the test: GNU objdump for
//! x86-64 (Go's own does not support AVX), Go's objdump for arm64. The instruction boundaries must always be equal.
//! Operations and operands must be equal except for the spelling differences listed in the functions below.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use pprofdiff::binary::instructions::{Architecture, decode};
use regex::{Captures, Regex};

use crate::tools::have;

/// An instruction in the listing of a disassembler.
struct ListedInstruction {
    address: u64,
    bytes: Vec<u8>,
    text: String,
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}; install Go 1.24 or later"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn go_build(architecture: &str, package: &str, file: &Path) {
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(file).arg(package).current_dir(file.parent().unwrap());
    output(go.envs([("GOOS", "linux"), ("GOARCH", architecture), ("CGO_ENABLED", "0")]));
}

/// Creates an empty folder for output.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("instructions-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| hex(&String::from_iter(pair)) as u8).collect()
}

/// Converts numbers of arm64 listings to decimal, because each disassembler writes them in another base.
fn in_decimals(text: &str) -> String {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"#(-?)([0-9][0-9a-fx.e+-]*)").unwrap());
    let number = |c: &Captures<'_>| match c[2].strip_prefix("0x") {
        Some(digits) => format!("#{}{}", &c[1], hex(digits)),
        None => format!("#{}{}", &c[1], c[2].parse::<f64>().unwrap()),
    };
    NUMBER.replace_all(text, number).into_owned()
}

/// Decodes the bytes of a listing and compares the result. `spelled` converts the disassembler's text to our spelling.
/// Returns the number of compared instructions, and the number of instructions that the disassembler does not know.
/// Only the boundaries of unknown instructions are compared.
fn compare(
    architecture: Architecture,
    listed: &[ListedInstruction],
    spelled: impl Fn(&ListedInstruction) -> String,
) -> (usize, usize) {
    let mut differences: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let (mut compared, mut unknown) = (0, 0);
    let joined = |a: &ListedInstruction, b: &ListedInstruction| a.address + a.bytes.len() as u64 == b.address;
    for run in listed.chunk_by(joined) {
        let code: Vec<u8> = run.iter().flat_map(|listed| &listed.bytes).copied().collect();
        let mut theirs = run.iter();
        decode(architecture, run[0].address, &code, |ours| {
            let theirs = theirs.next().unwrap();
            let place = format!("{:#x}: {}", theirs.address, theirs.text);
            let text = match architecture {
                Architecture::X86_64 => ours.named(|_| None),
                // Go does not resolve the address that two instructions build together.
                Architecture::Arm64 => ours.to_string(),
            };
            assert_eq!((theirs.address, theirs.bytes.len()), (ours.address, ours.len.into()), "{place} is not {text}");
            if theirs.text == "?" {
                unknown += 1;
                return;
            }
            compared += 1;
            let spelled = spelled(theirs);
            if in_decimals(&spelled) != in_decimals(&text) {
                let operation = spelled.split(' ').next().unwrap().to_owned();
                differences.entry(operation).or_insert((0, format!("{place} is not {text}"))).0 += 1;
            }
        });
        assert!(theirs.next().is_none());
    }
    assert!(differences.is_empty(), "{differences:#?}");
    (compared, unknown)
}

/// Returns a function that applies these replacements in order.
fn replacing(table: &[(&str, &'static str)]) -> impl Fn(&str) -> String + use<> {
    let table: Vec<_> = table.iter().map(|&(pattern, by)| (Regex::new(pattern).unwrap(), by)).collect();
    move |text| table.iter().fold(text.to_owned(), |text, (pattern, by)| pattern.replace_all(&text, *by).into_owned())
}

#[test]
fn x86_64_instructions_equal_gnu_objdump() {
    if !have(
        "x86_64-linux-gnu-objdump",
        "--version",
        "binutils-x86-64-linux-gnu",
        "x86_64_instructions_equal_gnu_objdump",
    ) {
        return;
    }
    let folder = folder("x86-64");
    std::fs::write(folder.join("main.go"), "package main\n\nfunc main() { println() }\n").unwrap();
    go_build("amd64", "main.go", &folder.join("program"));
    let mut objdump = Command::new("x86_64-linux-gnu-objdump");
    let listing = output(objdump.args(["-d", "-w", "-j", ".text"]).arg(folder.join("program")));
    std::fs::remove_dir_all(&folder).unwrap();
    let line = |line: &str| {
        let [address, code, text] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
        let address = hex(address.trim().trim_end_matches(':'));
        Some(ListedInstruction { address, bytes: bytes(code), text: text.trim().to_owned() })
    };
    let listed: Vec<ListedInstruction> = listing.lines().filter_map(line).collect();

    let spelled = replacing(&[
        // Names of branch targets.
        (r"\s*<.*>$", ""),
        (r"\s+", " "),
        (r" # ", "  # "),
        // Prefixes without effect, as in padding, and default segments.
        (r"^((data16|cs|ds|es|ss|rex[.A-Z]*) )+", ""),
        (r"%[de]s:\((%rsi|%rdi)\)", "($1)"),
        (r",1\)", ")"),
        (r"^((?:sh|sa|ro|rc)[lr][bwlq]?) ([^,]+|[^,]*\([^)]*\))(  #.*)?$", "$1 $$0x1,$2$3"),
        (r"^(call|jmp|push) (.*\()", "${1}q $2"),
    ]);
    let doubled = Regex::new(r"^(imul \$\w+),(%\w+),(%\w+)$").unwrap();
    let once = |c: &Captures<'_>| if c[2] == c[3] { format!("{},{}", &c[1], &c[2]) } else { c[0].to_owned() };
    let spelled = |listed: &ListedInstruction| doubled.replace(&spelled(&listed.text), once).into_owned();
    let (compared, unknown) = compare(Architecture::X86_64, &listed, spelled);
    assert!(compared > 50_000 && unknown == 0, "{compared} and {unknown}");
}

#[test]
fn arm64_instructions_equal_go_objdump() {
    // Packages with floating point, vectors and atomics that compile quickly.
    let packages = ["math", "internal/bytealg", "internal/chacha8rand", "internal/runtime/atomic", "internal/strconv"];
    let spelled = replacing(&[
        (r"\s*,\s*", ", "),
        (r"\b([cb]\w*\b.*)\bcs\b", "${1}hs"),
        (r"\b([cb]\w*\b.*)\bcc\b", "${1}lo"),
        (r"^orr (\w+), [wx]zr, #", "mov $1, #"),
        (r"^dup (\S+), (v\d+\.\w\[)", "mov $1, $2"),
    ]);
    let target = Regex::new(r"\.\+0x(\w+)$").unwrap();
    let group = Regex::new(r"\{v(\d+)(\.\w+)-v(\d+)\.\w+\}").unwrap();
    let each = |c: &Captures<'_>| {
        let [first, last]: [u32; 2] = [&c[1], &c[3]].map(|n| n.parse().unwrap());
        let registers: Vec<String> = (first..=last).map(|n| format!("v{n}{}", &c[2])).collect();
        format!("{{{}}}", registers.join(", "))
    };
    let spelled = |listed: &ListedInstruction| {
        let from = if listed.text.starts_with("adrp") { listed.address & !0xfff } else { listed.address };
        let absolute = |c: &Captures<'_>| format!("{:x}", from.wrapping_add(hex(&c[1])));
        let text = target.replace(&listed.text, absolute).into_owned();
        spelled(&group.replace(&text, each))
    };
    let folder = folder("arm64");
    let (mut compared, mut unknown) = (0, 0);
    for package in packages {
        let archive = folder.join("package.a");
        go_build("arm64", package, &archive);
        let listing = output(Command::new("go").args(["tool", "objdump", "-gnu"]).arg(&archive));
        let line = |line: &str| {
            let mut columns = line.split('\t').filter(|column| !column.is_empty());
            let (_, address, code, text) = (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
            let text = text.split_once("// ").map_or("?", |(_, text)| text.trim()).to_owned();
            // Instruction words are shown as numbers.
            let bytes = bytes(code).into_iter().rev().collect();
            Some(ListedInstruction { address: hex(address.strip_prefix("0x")?), bytes, text })
        };
        let listed: Vec<ListedInstruction> = listing.lines().filter_map(line).collect();
        let counts = compare(Architecture::Arm64, &listed, spelled);
        (compared, unknown) = (compared + counts.0, unknown + counts.1);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(compared > 10_000 && unknown < compared / 5, "{compared} and {unknown}");
}

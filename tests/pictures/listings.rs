//! Tests of listings: aligned source lines of both sides, with their costs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use pprofdiff::list::{LineChange, Listing, SourceCode, SourceText};
use pprofdiff::proto::{Function, Line, Location, Sample, ValueType};
use pprofdiff::{Diff, Granularity, Profile, Query, proto};

use super::pair;
use crate::oracle;

/// The sources of the story: the version in the repository, and the version with the branch's patch.
struct Story {
    patch: String,
}

/// For each line of the new text: its content, and its number in the old text if it existed there.
type Patched = Vec<(String, Option<i64>)>;

impl Story {
    fn new() -> Story {
        Story { patch: std::fs::read_to_string(Story::dir().join("../branch.patch")).unwrap() }
    }

    fn dir() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/producers/story/logmill")
    }

    fn main(path: &str) -> Option<String> {
        std::fs::read_to_string(Story::dir().join(path.strip_prefix("logmill/")?)).ok()
    }

    /// Applies the patch by hand, so that the patch determines which lines correspond.
    fn branch(&self, path: &str) -> Option<Patched> {
        let old = Story::main(path)?;
        let mut old = old.lines().zip(1i64..).peekable();
        let mut new: Patched = Vec::new();
        let header = format!("+++ b/{}", path.strip_prefix("logmill/")?);
        let hunks = self.patch.lines().skip_while(|l| **l != header).skip(1).take_while(|l| !l.starts_with("--- a/"));
        for l in hunks {
            if let Some(range) = l.strip_prefix("@@ -") {
                let start: i64 = range.split(',').next().unwrap().parse().unwrap();
                while old.peek().is_some_and(|(_, n)| *n < start) {
                    let (text, n) = old.next().unwrap();
                    new.push((text.to_owned(), Some(n)));
                }
                continue;
            }
            match l.split_at_checked(1) {
                Some(("+", text)) => new.push((text.to_owned(), None)),
                Some(("-", text)) => assert_eq!(old.next().unwrap().0, text),
                context => {
                    let (text, n) = old.next().unwrap();
                    assert_eq!(text, context.map_or("", |c| c.1));
                    new.push((text.to_owned(), Some(n)));
                }
            }
        }
        new.extend(old.map(|(text, n)| (text.to_owned(), Some(n))));
        Some(new)
    }
}

impl SourceCode for Story {
    fn find(&self, base: bool, path: &str) -> Option<SourceText> {
        let text = match base {
            true => Story::main(path)?,
            false => self.branch(path)?.into_iter().map(|(text, _)| text + "\n").collect(),
        };
        Some(SourceText::new(format!("{}:{path}", if base { "main" } else { "branch" }), text))
    }
}

/// Returns flat and cum of each line with cost on one side, by function, file and line, without sources.
fn costs(listing: &Listing) -> BTreeMap<(String, Option<String>, i64), (i64, i64)> {
    let lines = listing.routines.iter().flat_map(|r| r.lines.iter().map(move |l| (r, l)));
    lines.map(|(r, l)| ((r.name.clone(), r.file.clone(), l.new.unwrap()), (l.flat.new, l.cum.new))).collect()
}

#[test]
fn a_moved_statement_is_aligned_with_its_old_cost() {
    let (diff, story, query) = (pair("story-cpu"), Story::new(), Query::default());
    let one = |profile| costs(&Diff::of_profile(profile).unwrap().list(&query, "^logmill/", &()).unwrap());
    let (base, new) = (one(diff.base().next().unwrap()), one(diff.new_side().next().unwrap()));
    let listing = diff.list(&query, "^logmill/", &story).unwrap();
    let (mut moved, mut flat_sum) = (0, (0, 0));
    for r in &listing.routines {
        let file = r.file.clone().unwrap();
        // Inlined library functions have no source here.
        let lines = story.branch(&file);
        let is_of_lines = |note: &String| !note.starts_with("inlined");
        assert!(!r.notes.iter().any(is_of_lines) || lines.is_none(), "{:?}", r.notes);
        for l in &r.lines {
            let cost = |side: &BTreeMap<_, (i64, i64)>, n: Option<i64>| {
                n.and_then(|n| side.get(&(r.name.clone(), r.file.clone(), n)).copied()).unwrap_or_default()
            };
            let (b, n) = (cost(&base, l.base), cost(&new, l.new));
            assert_eq!(((l.flat.base, l.cum.base), (l.flat.new, l.cum.new)), (b, n), "{} {l:?}", r.name);
            if let (Some(n), Some(lines)) = (l.new, &lines) {
                // Lines that the patch keeps must be aligned. Empty lines and braces can be aligned in several ways.
                let (text, was) = &lines[n as usize - 1];
                assert_eq!(l.text.as_deref(), Some(text.as_str()));
                if text.trim().len() > 1 {
                    assert_eq!(l.base, *was, "{file}:{n} {text}");
                }
            }
            let change = match (l.base, l.new) {
                // Without a source, the change of a line is unknown.
                _ if lines.is_none() => LineChange::Unknown,
                (None, _) => LineChange::Inserted,
                (_, None) => LineChange::Deleted,
                _ => LineChange::Same,
            };
            assert_eq!(l.change, change);
            moved += usize::from(
                l.base.is_some() && l.new.is_some() && l.base != l.new && l.cum.base != 0 && l.cum.new != 0,
            );
            flat_sum = (flat_sum.0 + l.flat.base, flat_sum.1 + l.flat.new);
        }
        let sum = |f: fn(&pprofdiff::list::ListedLine) -> i64| r.lines.iter().map(f).sum::<i64>();
        assert_eq!((r.flat.base, r.flat.new), (sum(|l| l.flat.base), sum(|l| l.flat.new)), "{}", r.name);
    }
    assert!(moved >= 5, "only {moved} lines moved and have samples on both sides");
    let all = |side: &BTreeMap<_, (i64, i64)>| side.values().map(|(flat, _)| flat).sum::<i64>();
    assert_eq!(flat_sum, (all(&base), all(&new)), "some cost is lost");
}

#[test]
fn a_routine_has_the_cost_of_its_function() {
    for name in oracle::pairs() {
        let diff = pair(&name);
        let view = diff.measure(&Query::default().with_granularity(Granularity::FileFunctions)).unwrap();
        let top = view.top(pprofdiff::Sort::Cum);
        let mut expected: Vec<_> = top
            .rows
            .iter()
            .filter(|r| !(top.frames.name(r.frame).starts_with('[') || top.frames.name(r.frame) == "<unknown>"))
            .map(|r| {
                (
                    top.frames.name(r.frame),
                    top.frames.file(r.frame),
                    r.flat.base,
                    r.flat.new,
                    r.cum.base,
                    r.cum.new,
                    r.status,
                )
            })
            .collect();
        let listing = diff.list(&Query::default(), ".", &()).unwrap();
        let mut ours: Vec<_> = listing
            .routines
            .iter()
            .map(|r| (r.name.clone(), r.file.clone(), r.flat.base, r.flat.new, r.cum.base, r.cum.new, r.status))
            .collect();
        // If the builds name the file of a function differently, it is one routine here, but two rows in the table.
        let two_files: BTreeSet<String> = expected
            .iter()
            .filter(|a| !ours.iter().any(|b| (&a.0, &a.1) == (&b.0, &b.1)))
            .map(|a| a.0.clone())
            .collect();
        assert!(two_files.len() < 3, "{name}: {two_files:?}");
        expected.retain(|r| !two_files.contains(&r.0) && r.0 != "Non JS threads activity");
        ours.retain(|r| !two_files.contains(&r.0) && r.0 != "Non JS threads activity");
        let key = |r: &(String, Option<String>, i64, i64, i64, i64, pprofdiff::Status)| (r.0.clone(), r.1.clone());
        expected.sort_by_key(key);
        ours.sort_by_key(key);
        assert_eq!(ours, expected, "{name}");
    }
}

/// A text for one side only, sources of another build, and a moved file: no cost is lost, and a note explains it.
#[test]
fn the_largest_changes_are_listed_with_their_sources() {
    let (diff, story, query) = (pair("story-cpu"), Story::new(), Query::default());
    let all = diff.list(&query, ".", &story).unwrap().routines;
    let with: Vec<_> = all.iter().filter(|r| r.places != (None, None)).cloned().collect();
    assert!(with.len() > 5 && with.len() < all.len() && all[..with.len()].iter().any(|r| r.places == (None, None)));
    for w in with.windows(2) {
        assert!(w[0].cum.delta().abs() >= w[1].cum.delta().abs());
    }
    for n in [0, 1, 5, usize::MAX] {
        let listed = diff.list_with_sources(&query, n, &story).unwrap().routines;
        let key = |r: &pprofdiff::list::Routine| (r.name.clone(), r.file.clone(), r.cum, r.lines.clone());
        assert!(listed.iter().map(key).eq(with.iter().take(n).map(key)));
    }
    assert!(diff.list_with_sources(&query, 9, &()).unwrap().routines.is_empty());
}

/// The texts of every file on the base side and on the new side.
struct GivenSources(Option<Arc<str>>, Option<Arc<str>>);

impl GivenSources {
    fn new(base: Option<&str>, new: Option<&str>) -> GivenSources {
        GivenSources(base.map(Arc::from), new.map(Arc::from))
    }
}

impl SourceCode for GivenSources {
    fn find(&self, base: bool, path: &str) -> Option<SourceText> {
        let text = if base { self.0.clone() } else { self.1.clone() }?;
        Some(SourceText::new(format!("{base}:{path}"), text))
    }
}

/// Builds a profile of functions: name, file, first line (0 if unknown), and lines with their costs.
fn profile_of(functions: &[(&str, &str, i64, &[(i64, i64)])]) -> Arc<Profile> {
    let mut p = proto::Profile {
        string_table: ["", "cpu", "ns"].iter().map(|s| s.as_bytes().to_vec()).collect(),
        sample_type: vec![ValueType { r#type: 1, unit: 2 }],
        ..Default::default()
    };
    for (name, filename, start_line, lines) in functions {
        let function_id = p.function.len() as u64 + 1;
        p.string_table.extend([name.as_bytes().to_vec(), filename.as_bytes().to_vec()]);
        let (name, filename) = (p.string_table.len() as i64 - 2, p.string_table.len() as i64 - 1);
        p.function.push(Function { id: function_id, name, filename, start_line: *start_line, ..Default::default() });
        for &(line, value) in *lines {
            let id = p.location.len() as u64 + 1;
            p.location.push(Location { id, line: vec![Line { function_id, line, column: 0 }], ..Default::default() });
            p.sample.push(Sample { location_id: vec![id], value: vec![value], label: vec![] });
        }
    }
    Arc::new(p.load("made up").unwrap())
}

/// A line of a listing: its numbers (0 for none), text (`-` for none), and flat of both sides.
type ShownLine = (i64, i64, String, i64, i64);

/// Returns the only function of a listing with its lines.
fn only_routine(diff: &Diff, sources: &dyn SourceCode) -> (pprofdiff::list::Routine, Vec<ShownLine>) {
    let listing = diff.list(&Query::default(), ".", sources).unwrap();
    let [r] = &listing.routines[..] else { panic!("{:?}", listing.routines) };
    let shown_line = |l: &pprofdiff::list::ListedLine| {
        let text = l.text.as_deref().unwrap_or("-").to_owned();
        (l.base.unwrap_or_default(), l.new.unwrap_or_default(), text, l.flat.base, l.flat.new)
    };
    let lines: Vec<ShownLine> = r.lines.iter().map(shown_line).collect();
    let sums = (lines.iter().map(|l| l.3).sum::<i64>(), lines.iter().map(|l| l.4).sum::<i64>());
    assert_eq!(sums, (r.flat.base, r.flat.new), "some cost is lost");
    (r.clone(), lines)
}

fn shown_line(base: i64, new: i64, text: &str, b: i64, n: i64) -> ShownLine {
    (base, new, text.to_owned(), b, n)
}

#[test]
fn without_sources_statements_of_a_moved_function_are_aligned() {
    let f = |start: i64, lines: &[(i64, i64)]| profile_of(&[("f", "f.go", start, lines)]);
    let pair = |base: &Arc<Profile>, new: &Arc<Profile>| {
        Diff::new(std::slice::from_ref(base), std::slice::from_ref(new)).unwrap()
    };
    // The function is two lines further down, and has a line with samples that the base lacks.
    let (base, new) = (f(66, &[(67, 345), (70, 5)]), f(68, &[(67, 93), (69, 1920), (72, 6)]));
    let moved = [shown_line(65, 67, "-", 0, 93), shown_line(67, 69, "-", 345, 1920), shown_line(70, 72, "-", 5, 6)];
    let (r, lines) = only_routine(&pair(&base, &new), &());
    assert_eq!(lines, moved);
    let offset = "lines are paired by their offset from the function's first line (66 -> 68)";
    assert_eq!(r.notes, [format!("no source of either side: {offset}")]);

    // With the text of one side, its lines are shown, and aligned in the same way.
    let text: String = (1..=80).map(|n| format!("line {n}\n")).collect();
    for (given, note) in [
        (GivenSources::new(None, Some(&text)), "no source of the base"),
        (GivenSources::new(Some(&text), None), "no source of the new side"),
    ] {
        let (r, lines) = only_routine(&pair(&base, &new), &given);
        assert_eq!(r.notes, [format!("{note}: {offset}")]);
        let with_cost: Vec<_> = lines.iter().filter(|l| l.3 + l.4 != 0).map(|l| (l.0, l.1, l.3, l.4)).collect();
        assert_eq!(with_cost, moved.each_ref().map(|l| (l.0, l.1, l.3, l.4)));
        let line_number = |l: &ShownLine| if given.0.is_some() { l.0 } else { l.1 };
        assert!(lines.iter().all(|l| l.1 - l.0 == 2 && l.2 == format!("line {}", line_number(l))), "{lines:?}");
        assert_eq!(lines.len(), 77 - 67 + 1);
    }

    // If the first line of the function is unknown, the offset of its first sampled line is used, provided that more
    // lines then match.
    let by_first = |base: &[(i64, i64)], new: &[(i64, i64)]| only_routine(&pair(&f(0, base), &f(66, new)), &());
    let (r, lines) = by_first(&[(67, 3), (70, 5)], &[(69, 4), (72, 6)]);
    assert_eq!(lines, [shown_line(67, 69, "-", 3, 4), shown_line(70, 72, "-", 5, 6)]);
    assert!(r.notes[0].ends_with("by their offset from the first line with samples (67 -> 69)"), "{:?}", r.notes);
    let (r, lines) = by_first(&[(67, 3), (70, 5)], &[(70, 4), (72, 6), (0, 7)]);
    let numbers = [shown_line(67, 67, "-", 3, 0), shown_line(70, 70, "-", 5, 4), shown_line(72, 72, "-", 0, 6)];
    assert_eq!((&lines[..3], r.notes[0].ends_with("by their numbers")), (&numbers[..], true), "{:?}", r.notes);
    assert_eq!(lines[3].4, 7);

    // Extreme line numbers, and a function on one side only: nothing can be aligned.
    let (_, lines) = only_routine(&pair(&f(1, &[(i64::MAX, 3), (i64::MIN, 2)]), &f(9, &[(i64::MAX, 4)])), &());
    assert_eq!(lines.len(), 3, "{lines:?}");
    let nothing = profile_of(&[("f", "f.go", 1, &[])]);
    let (r, lines) = only_routine(&pair(&nothing, &new), &());
    assert_eq!((&r.notes[..], lines[0].0), (&["no source of either side".to_owned()][..], 0));
}

#[test]
fn too_different_sources_are_not_aligned_and_a_note_says_so() {
    let text = |shift: u32, n: u32| -> Arc<str> {
        let line = |i: u32| format!("{}\n", i.wrapping_mul(2_654_435_761) >> 8);
        (0..n).map(|i| line(i * 2 + shift)).collect::<String>().into()
    };
    let f = |start: i64| profile_of(&[("f", "f.go", start, &[(start + 1, 3), (start + 4, 5)])]);
    let diff = Diff::new(&[f(10)], &[f(30_010)]).unwrap();
    // Only the different part counts, not the common prefix and suffix.
    let same: String = "same\n".repeat(60_000);
    let few = GivenSources::new(Some(&format!("{same}a\n{same}")), Some(&format!("{same}b\n{same}")));
    assert!(only_routine(&diff, &few).0.notes.is_empty());
    let (r, lines) = only_routine(&diff, &GivenSources(Some(text(0, 60_000)), Some(text(1, 60_000))));
    let note = "the sources differ in too many lines to be compared: \
                lines are paired by their offset from the function's first line (10 -> 30010)";
    assert_eq!(r.notes, [note]);
    assert!(lines.iter().all(|l| l.1 - l.0 == 30_000 && l.2 != "-"), "{lines:?}");
    assert_eq!(lines.iter().filter(|l| l.3 != 0).map(|l| (l.3, l.4)).collect::<Vec<_>>(), [(3, 3), (5, 5)]);
}

/// The limit applies to a whole listing. A limit per file would let many files take a multiple of the time.
#[test]
fn the_alignment_limit_applies_to_all_files_of_a_listing() {
    struct Files;
    impl SourceCode for Files {
        fn find(&self, base: bool, path: &str) -> Option<SourceText> {
            let n: u32 = path.strip_suffix(".go")?.parse().ok()?;
            let text: String = (0..n).map(|i| format!("{}\n", i * 2 + u32::from(base))).collect();
            Some(SourceText::new(path, text))
        }
    }
    // In the order of the listing, the first file uses most of the budget. The second file exceeds the rest, but the
    // third fits.
    let side = profile_of(&[
        ("first", "49000.go", 1, &[(2, 9)]),
        ("second", "20000.go", 1, &[(2, 5)]),
        ("third", "5000.go", 1, &[(2, 3)]),
    ]);
    let diff = Diff::new(&[profile_of(&[])], &[side]).unwrap();
    let listing = diff.list(&Query::default(), ".", &Files).unwrap();
    let is_cut = |r: &pprofdiff::list::Routine| r.notes.iter().any(|n| n.contains("differ in too many lines"));
    let cut: Vec<(&str, bool)> = listing.routines.iter().map(|r| (&*r.name, is_cut(r))).collect();
    assert_eq!(cut, [("first", false), ("second", true), ("third", false)]);
}

/// Functions may overlap. Showing all lines of each could take functions times lines.
#[test]
fn the_source_lines_of_a_listing_are_limited() {
    let names: Vec<String> = (0..400).map(|i| format!("f{i}")).collect();
    let functions: Vec<_> = names.iter().map(|n| (&**n, "f.go", 1, &[(2, 1), (9_999, 1)][..])).collect();
    let p = profile_of(&functions);
    let text: String = "a line of a source\n".repeat(10_000);
    let diff = Diff::new(std::slice::from_ref(&p), std::slice::from_ref(&p)).unwrap();
    let given = GivenSources::new(Some(&text), Some(&text));
    let routines = diff.list(&Query::default(), ".", &given).unwrap().routines;
    let whole = routines.iter().filter(|r| r.lines.len() > 9_000).count();
    assert!((5..100).contains(&whole), "{whole}");
    for r in &routines {
        let is_cut = r.notes.iter().any(|n| n.contains("omitted"));
        assert!(is_cut == (r.lines.len() == 2) && r.flat == pprofdiff::Pair { base: 2, new: 2 });
    }
}

#[test]
fn a_function_with_a_renamed_file_is_one_routine() {
    let side = |files: &[(&'static str, &'static str)]| {
        let functions: Vec<_> = files.iter().map(|&(name, file)| (name, file, 1, &[(2, 1)][..])).collect();
        profile_of(&functions)
    };
    let base = side(&[
        ("renamed", "old.go"),
        ("twice", "a/x.c"),
        ("twice", "a/y.c"),
        ("twice", "a/z.c"),
        ("many", "p.c"),
        ("many", "q.c"),
        ("stays", "s.c"),
    ]);
    let new = side(&[
        ("renamed", "sub/new.go"),
        ("twice", "b/y.c"),
        ("twice", "b/w.c"),
        ("twice", "a/z.c"),
        ("many", "r.c"),
        ("many", "t.c"),
        ("stays", "s.c"),
    ]);
    let diff = Diff::new(&[base], &[new]).unwrap();
    let listing = diff.list(&Query::default(), ".", &()).unwrap();
    let mut rows: Vec<String> = listing
        .routines
        .iter()
        .map(|r| {
            let from = r.notes.iter().find_map(|n| n.strip_prefix("in the base, its file is ")).unwrap_or("");
            format!("{} {} {}{}", r.name, r.file.as_deref().unwrap_or(""), r.flat.base * 10 + r.flat.new, from)
        })
        .collect();
    rows.sort();
    let expected = [
        "many p.c 10",
        "many q.c 10",
        "many r.c 1",
        "many t.c 1",
        "renamed sub/new.go 11old.go",
        "stays s.c 11",
        "twice a/z.c 11",
        "twice b/w.c 11a/x.c",
        "twice b/y.c 11a/y.c",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn listings_warn_about_unreliable_lines() {
    let side = |file: &str, lines: &[(i64, i64)]| profile_of(&[("f", file, 2, lines)]);
    let diff = Diff::new(&[side("v1/f.go", &[(3, 10), (4, 1)])], &[side("v2/f.go", &[(4, 20), (9, 2)])]).unwrap();
    let listed = |sources: &dyn SourceCode| {
        let (r, lines) = only_routine(&diff, sources);
        assert_eq!((r.flat.base, r.flat.new, r.file.as_deref()), (11, 22, Some("v2/f.go")));
        assert_eq!(r.notes[0], "in the base, its file is v1/f.go");
        (lines, r.notes[1..].join("; "))
    };
    let (lines, notes) = listed(&());
    assert_eq!(lines, [shown_line(3, 3, "-", 10, 0), shown_line(4, 4, "-", 1, 20), shown_line(9, 9, "-", 0, 2)]);
    assert_eq!(notes, "no source of either side: lines are paired by their numbers");

    // The new text has one more line at the start, so line 3 of the base is its line 4. It has no line 9.
    let (lines, notes) = listed(&GivenSources::new(Some("a\nfunc f\n  work\n}"), Some("// new\na\nfunc f\nwork\n}")));
    let expected = [
        shown_line(1, 2, "a", 0, 0),
        shown_line(2, 3, "func f", 0, 0),
        shown_line(3, 4, "work", 10, 20),
        shown_line(4, 5, "}", 1, 0),
        shown_line(0, 9, "-", 0, 2),
    ];
    assert_eq!(lines, expected);
    assert!(notes.contains("not the source of this build"), "{notes}");

    let (lines, notes) = listed(&GivenSources::new(None, Some("a\nfunc f\nwork\n}")));
    assert!(
        lines.contains(&shown_line(3, 3, "work", 10, 0)) && lines.contains(&shown_line(4, 4, "}", 1, 20)),
        "{lines:?}"
    );
    assert!(notes.starts_with("no source of the base"), "{notes}");
}

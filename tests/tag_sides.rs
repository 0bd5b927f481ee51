//! Tests of `base_tagfocus` and `new_tagfocus`, which compare two labels of one profile. The result must equal the diff
//! of the two profiles that `go tool pprof -tagfocus` writes for each label.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use pprofdiff::{Diff, LoadOptions, Normalize, Profile, Query, Sort};
use pprofdiff_explain::ExplainOptions;

use crate::{golibrary, oracle};

const PROFILE: &str = "go-labels-cpu.new.pb.gz";

fn whole() -> Arc<Profile> {
    Arc::new(pprofdiff::open(oracle::corpus().join(PROFILE), &LoadOptions::default()).unwrap())
}

/// Returns the profile that pprof writes for the samples with this label.
fn written_by_pprof(tagfocus: &str, name: &str) -> Arc<Profile> {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tag-sides");
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.join(name);
    let output = Command::new(golibrary::tool_pprof())
        .args(["-proto", "-symbolize=none", "-tagfocus", tagfocus, "-output"])
        .args([&out, &oracle::corpus().join(PROFILE)])
        .env("PPROF_TMPDIR", &folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Arc::new(pprofdiff::open(&out, &LoadOptions::default()).unwrap())
}

fn rows(diff: &Diff, query: &Query) -> (i64, i64, BTreeMap<String, [i64; 4]>) {
    let top = diff.measure(query).unwrap().top(Sort::Flat);
    let row = |row: &pprofdiff::TopRow| {
        (top.frames.name(row.frame), [row.flat.base, row.flat.new, row.cum.base, row.cum.new])
    };
    let total = top.summary.total;
    (total.base, total.new, top.rows.iter().map(row).filter(|(_, values)| *values != [0; 4]).collect())
}

fn of_labels(base: &str, new: &str) -> Query {
    let mut query = Query::default();
    query.filters = query.filters.with("base_tagfocus", base).unwrap().with("new_tagfocus", new).unwrap();
    query
}

#[test]
fn two_labels_of_one_profile_compare_like_the_profiles_that_pprof_writes() {
    let (base, new) = ("endpoint=^/walk$", "endpoint=^/sum$");
    let apart = Diff::new(&[written_by_pprof(base, "base.pb.gz")], &[written_by_pprof(new, "new.pb.gz")]).unwrap();
    // The same file on both sides. On one side it would count as a repeated run.
    let together = Diff::new(&[whole()], &[whole()]).unwrap();
    for normalize in [Normalize::None, Normalize::Total] {
        let query = of_labels(base, new).with_normalize(normalize);
        let (expected, actual) = (rows(&apart, &Query::default().with_normalize(normalize)), rows(&together, &query));
        assert_eq!((actual.0, actual.1), (expected.0, expected.1), "totals are those of the labels");
        assert!(expected.0 > 0 && expected.1 > 0 && expected.2.len() > 5);
        oracle::assert_same(&actual.2, &expected.2, "rows");
    }
    // Other filters apply to the selected samples.
    let mut query = of_labels(base, new);
    query.filters = query.filters.with("focus", "main").unwrap();
    let mut plain = Query::default();
    plain.filters = plain.filters.with("focus", "main").unwrap();
    assert_eq!(rows(&together, &query), rows(&apart, &plain));
    // Explanations and written diffs use the same samples.
    let options = ExplainOptions::default();
    let explained = |diff: &Diff, query: &Query| pprofdiff_explain::explain(diff, query, &[], &options).unwrap().total;
    assert_eq!(explained(&together, &of_labels(base, new)), explained(&apart, &Query::default()));
    let written = Arc::new(together.to_profile(&of_labels(base, new)).unwrap());
    let written = Diff::of_profile(&written).unwrap();
    assert_eq!(rows(&written, &Query::default()), rows(&apart, &Query::default()));
    // Each side of a written diff can be filtered by labels, too.
    let whole_diff = Diff::of_profile(&Arc::new(together.to_profile(&Query::default()).unwrap())).unwrap();
    assert_eq!(rows(&whole_diff, &of_labels(base, new)), rows(&apart, &Query::default()));
}

#[test]
fn one_side_can_be_filtered_alone_and_an_unmatched_label_is_a_warning() {
    let diff = Diff::new(&[whole()], &[whole()]).unwrap();
    let mut query = Query::default();
    query.filters = query.filters.with("new_tagfocus", "endpoint=/sum").unwrap();
    let (base, new, _) = rows(&diff, &query);
    assert!(base > new && new > 0 && Some(base) == whole().total(1), "{base} {new}");
    let measure = diff.measure(&of_labels("endpoint=nowhere", "endpoint=/sum")).unwrap();
    let warnings = &measure.summary().warnings;
    assert_eq!(warnings.iter().filter(|w| w.contains("matched nothing")).count(), 1, "{warnings:?}");
    assert!(warnings.contains(&"base_tagfocus \"endpoint=nowhere\" matched nothing".to_owned()), "{warnings:?}");
    let single = Diff::of_profile(&whole()).unwrap().measure(&of_labels("a", "b")).err().unwrap();
    assert!(single.to_string().contains("there is only one profile"), "{single}");
    assert!(diff.measure(&of_labels("a=(", "b")).is_err());
}

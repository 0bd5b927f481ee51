//! The lists of options in docstrings and signatures: `UPDATE_GOLDENS=1` with the test `keywords::` writes them.

macro_rules! query_docs {
    () => {
        r#"
- `sample_type`: Sample type, such as cpu or alloc_space. Defaults to the profile's own. Several are
  shown side by side in tables; if one of two is a count, the ratio is shown too.
- `granularity`: Unit of a row: functions, filefunctions, files, lines, addresses. Defaults to
  functions.
- `noinlines`: Count inlined functions as part of their caller.
- `all_frames`: Keep frames that a profile marks to be dropped. These frames match its drop_frames but
  not its keep_frames, such as frames of an allocator.
- `match`: How names of functions are matched: auto, exact, stable, canonical, moved. exact compares
  whole names, as pprof does. stable ignores numbers of a run or a build: addresses, hashes, generated
  classes. auto is exact for two profiles, and stable in checks, series and tables of runs. canonical
  also ignores clones, closures and generic instances. moved also matches renamed functions, and counts
  functions that one side inlines as part of their callers, as explain does.
- `trim_path`: Cut these prefixes off the paths of files. Versions of folders (y@v1.2.3) are cut as
  well, so that files of two checkouts match.
- `normalize`: Scale the new side by total, duration or a factor. total makes both totals equal,
  duration compares rates; a factor is a number such as 0.5, or a quotient such as 1000/3000.
- `unit`: Show values in this unit, such as ms or MB. auto chooses a unit for each value. By default, a
  column has one unit. JSON and CSV always use the profile's own unit.
- `mean`: Divide values of one profile by its first sample type, a count. Delays become the mean delay,
  and heap sizes become bytes per object.
- `drop_negative`: Hide frames whose cost fell. These are frames with a lower flat, or with a lower cum
  and an unchanged flat.
- `hide_below`: Hide frames that are below this percent of the total on both sides. The limit applies to
  the cost that rows are sorted by: flat, or cum with `sort="cum"`.
- `relative_percentages`: Compute percentages of the filtered total. By default, they refer to the whole
  profile."#
    };
}

macro_rules! query_keywords {
    () => {
        r#", sample_type=None, granularity=None, noinlines=None, all_frames=None, match=None, trim_path=None, normalize=None, unit=None, mean=None, drop_negative=None, hide_below=None, relative_percentages=None"#
    };
}

macro_rules! filter_docs {
    () => {
        r#"
- `tagroot`: Add the values of these labels as frames at the root.
- `tagleaf`: Add the values of these labels as frames at the leaf.
- `focus`: Keep only samples with a matching frame.
- `ignore`: Drop samples with a matching frame; wins over `focus`.
- `hide`: Remove matching frames; their cost moves to the caller.
- `show`: Remove the frames that do not match.
- `show_from`: Drop frames above the root-most match, and samples without a match.
- `tagfocus`: Keep only samples with this label: key=RE, RE, bytes=1kb:1mb.
- `base_tagfocus`: Restrict the base to samples with this label, as in `tagfocus`; totals change too.
- `new_tagfocus`: Restrict the new side to samples with this label, as in `tagfocus`; totals change too.
- `tagignore`: Drop samples with this label.
- `tagshow`: Show only labels with a matching key, in views of labels.
- `taghide`: Hide labels with a matching key.
- `prune_from`: Drop frames below the leaf-most match."#
    };
}

macro_rules! filter_keywords {
    () => {
        r#", tagroot=None, tagleaf=None, focus=None, ignore=None, hide=None, show=None, show_from=None, tagfocus=None, base_tagfocus=None, new_tagfocus=None, tagignore=None, tagshow=None, taghide=None, prune_from=None"#
    };
}

macro_rules! loading_docs {
    () => {
        r#"
- `input_format`: The format of all profiles. Detected from the content of each profile by default.
- `input_type`: Sample type of profiles that don't state it, such as folded stacks. Written as
  cpu/nanoseconds; defaults to samples/count.
- `binary`: Binary or folder for names and instructions of addresses. Folders are searched like those in
  PPROF_BINARY_PATH, which are searched last. If several builds match, the binary with the profile's
  build id is used.
- `base_binary`: Binary or folder for the base only.
- `new_binary`: Binary or folder for the new side only.
- `demangle`: How names are demangled: default, templates, full, none, off. Like pprof's
  -symbolize=demangle=HOW: the default omits parameters and template arguments. off keeps the names in
  the profile.
- `time`: Part of each recording to read, such as 10s..25s. Either end may be missing. Times count from
  the start of the recording. If the format has them, an end may also be a moment (2026-11-25T10:00:00Z)
  or the name of an event (..GarbageCollection); the first event of that name counts.
- `base_time`: Part of each recording to read, for the base only. One recording may serve as both sides.
- `new_time`: Part of each recording to read, for the new side only.
- `split_at`: Compare the part before a time or event with the part after it. Short for
  `base_time="..AT"` and `new_time="AT.."` together. One recording may serve as both sides.
- `any_build`: Use binaries even if their build ids differ from the profiles'.
- `inflated_limit`: Maximum bytes that a profile may inflate to. Defaults to the environment variable
  PPROFDIFF_MAX_INFLATED, or 2 GiB; at most 4 GiB minus one. Also limits the size of a URL's answer."#
    };
}

macro_rules! loading_keywords {
    () => {
        r#", input_format=None, input_type=None, binary=None, base_binary=None, new_binary=None, demangle=None, time=None, base_time=None, new_time=None, split_at=None, any_build=None, inflated_limit=None"#
    };
}

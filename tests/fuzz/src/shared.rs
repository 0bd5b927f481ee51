//! Helpers for the fuzz targets: options from bytes, valid profiles from bytes, and every view in every format.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};

use pprofdiff::flame::FlameOptions;
use pprofdiff::graph::{GraphOptions, Rank};
use pprofdiff::list::SourceText;
use pprofdiff::proto::{Label, Profile};
use pprofdiff::{Compression, Diff, Filters, Granularity, LoadOptions, Measure, Normalize, Query, Sort, WriteOptions};
use pprofdiff_explain::ExplainOptions;
use pprofdiff_page::PageOptions;
use pprofdiff_report::{
    self as report, CsvOptions, Report, Table, TextOptions, dot, listing_html, listing_json, listing_text, svg,
};
use prost::Message;

/// Small enough that decompression bombs are fast, large enough for every seed.
pub static LIMIT: LazyLock<LoadOptions> = LazyLock::new(|| {
    let options = LoadOptions::default().with_inflated_limit(8 << 20);
    options.unwrap_or_else(|e| panic!("{e}"))
});

/// Writes the uncompressed message.
pub const BARE: WriteOptions = WriteOptions::new().with_compression(Compression::None);

/// Takes choices from the start of the input, and zeros at its end.
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Returns a short text, or `None`.
    fn text(&mut self) -> Option<String> {
        let n = usize::from(self.byte());
        if n < 128 {
            return None;
        }
        let (text, rest) = self.0.split_at((n - 128).min(self.0.len()));
        self.0 = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// Returns the rest of the input in about `n` parts.
    pub fn parts(&mut self, n: usize) -> Vec<&'a [u8]> {
        let mut parts = Vec::new();
        for _ in 1..n {
            let len = usize::from(self.byte()) << 8 | usize::from(self.byte());
            let (part, rest) = self.0.split_at(len.min(self.0.len()));
            parts.push(part);
            self.0 = rest;
        }
        parts.push(self.0);
        parts
    }

    pub fn query(&mut self) -> Query {
        let filters = match self.byte() {
            0..128 => Filters::default(),
            _ => self.filters(),
        };
        let normalize = match self.byte() % 8 {
            1 => Normalize::Total,
            2 => Normalize::Duration,
            3 => Normalize::Factor(f64::from_bits(u64::from_le_bytes(std::array::from_fn(|_| self.byte())))),
            4 => Normalize::Factor(f64::from(self.byte()) / 16.0),
            _ => Normalize::None,
        };
        let mut query = Query::default().with_filters(filters).with_normalize(normalize);
        query.sample_type = match self.byte() {
            0..192 => None,
            n => Some((n - 192).to_string()),
        };
        query.granularity = Granularity::ALL[usize::from(self.byte()) % Granularity::ALL.len()].1;
        query.no_inlines = self.flag();
        query.trim_path = self.text().into_iter().collect();
        query
    }

    pub fn filters(&mut self) -> Filters {
        let mut filters = Filters::default();
        for filter in Filters::ALL {
            filter.set(&mut filters, self.text());
        }
        filters
    }
}

/// Repairs a profile so that it is valid. Random changes to a real message almost always break a reference, so code
/// after loading would never be reached. Returns `None` for bytes that are not a message.
pub fn repair(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut p = Profile::decode(bytes).ok()?;
    if p.string_table.is_empty() {
        p.string_table.push(Vec::new());
    }
    p.string_table[0].clear();
    let n = p.string_table.len() as i64;
    let string = |index: &mut i64| *index = index.rem_euclid(n);
    for t in p.sample_type.iter_mut().chain(p.period_type.as_mut()) {
        string(&mut t.r#type);
        string(&mut t.unit);
    }
    for index in [&mut p.drop_frames, &mut p.keep_frames, &mut p.default_sample_type, &mut p.doc_url] {
        string(index);
    }
    p.comment.iter_mut().for_each(string);
    let distinct = |ids: Vec<&mut u64>| {
        let mut seen = std::collections::HashSet::new();
        for id in ids {
            while *id == 0 || !seen.insert(*id) {
                *id = id.wrapping_add(1);
            }
        }
    };
    distinct(p.mapping.iter_mut().map(|m| &mut m.id).collect());
    distinct(p.function.iter_mut().map(|f| &mut f.id).collect());
    distinct(p.location.iter_mut().map(|l| &mut l.id).collect());
    for m in &mut p.mapping {
        string(&mut m.filename);
        string(&mut m.build_id);
    }
    for f in &mut p.function {
        string(&mut f.name);
        string(&mut f.system_name);
        string(&mut f.filename);
    }
    let id_mapper = |ids: Vec<u64>| move |id: u64| if ids.contains(&id) { id } else { ids[id as usize % ids.len()] };
    if p.function.is_empty() {
        p.location.iter_mut().for_each(|l| l.line.clear());
    } else {
        let function = id_mapper(p.function.iter().map(|f| f.id).collect());
        p.location.iter_mut().flat_map(|l| &mut l.line).for_each(|l| l.function_id = function(l.function_id));
    }
    if p.location.is_empty() {
        p.sample.iter_mut().for_each(|s| s.location_id.clear());
    } else {
        let location = id_mapper(p.location.iter().map(|l| l.id).collect());
        p.sample.iter_mut().flat_map(|s| &mut s.location_id).for_each(|id| *id = location(*id));
    }
    if p.sample_type.is_empty() {
        p.sample.clear();
    }
    let limit = i64::MAX / (2 * p.sample.len().max(1) as i64);
    for s in &mut p.sample {
        s.value.resize(p.sample_type.len(), 1);
        s.value.iter_mut().for_each(|v| *v = (*v).clamp(-limit, limit));
        for Label { key, str, num_unit, .. } in &mut s.label {
            [key, str, num_unit].into_iter().for_each(string);
        }
    }
    Some(p.encode_to_vec())
}

/// Loads an input unchanged, or repaired.
pub fn load(name: &str, bytes: &[u8]) -> Option<Arc<pprofdiff::Profile>> {
    let loaded = pprofdiff::from_bytes(name, bytes, &LIMIT);
    let loaded = loaded.ok().or_else(|| repair(bytes).map(|message| load_repaired(name, &message)));
    loaded.map(Arc::new)
}

fn load_repaired(name: &str, message: &[u8]) -> pprofdiff::Profile {
    match pprofdiff::from_bytes(name, message, &LIMIT) {
        Ok(profile) => profile,
        Err(e) => panic!("a valid profile does not load: {e}"),
    }
}

/// Computes one of the views of a diff, in every format. An error is accepted, a panic is not.
pub fn compute_view(diff: &Diff, choices: &mut Choices<'_>) {
    let (query, operation) = (choices.query(), choices.byte());
    let Ok(view) = pprofdiff_explain::measure(diff, &query) else { return };
    let sort = if choices.flag() { Sort::Cum } else { Sort::Flat };
    let limit = usize::from(choices.byte());
    let fraction = f64::from(choices.byte()) / 255.0;
    let mut out = Vec::new();
    match operation % 11 {
        0 => {
            let top = view.top(sort);
            let total: i128 = top.rows.iter().map(|r| i128::from(r.flat.base)).sum();
            assert!(total.unsigned_abs() <= i64::MAX as u128, "the flat values add up to more than the total");
            table(&Table::top(&top, limit));
            table(&Table::top(&top, usize::MAX));
        }
        1 => {
            let pattern = choices.text();
            if let Ok(edges) = view.edges(pattern.as_deref(), sort) {
                table(&if pattern.is_some() { Table::peek(&edges) } else { Table::tree(&edges) });
            }
        }
        2 => {
            let stacks = view.stacks(choices.flag());
            table(&Table::stacks(&stacks, limit));
            expect_written(report::folded(&stacks, &mut out));
            expect_written(report::speedscope(&stacks, &mut out));
            serde_json(&out[out.iter().position(|&b| b == b'{').unwrap_or(0)..]);
        }
        3 => table(&Table::labels(&view.labels())),
        4 => {
            let rank = [Rank::Entropy, Rank::Flat, Rank::Cum][limit % 3];
            // Graph layout is slow, so pictures have few nodes.
            let options = GraphOptions::default()
                .with_node_count(1 + limit % 24)
                .with_node_fraction(fraction)
                .with_edge_fraction(0.0)
                .with_rank(rank);
            let Ok(graph) = view.graph(&options) else { return };
            expect_written(dot(&graph, &mut out));
            let _ = svg(&graph);
        }
        5 => {
            let inverted = choices.flag();
            let flame = view.flame(&FlameOptions::default().with_inverted(inverted).with_min_width(fraction / 8.0));
            let root = flame.nodes.first();
            assert!(
                flame.nodes.iter().all(|n| root.is_some_and(|r| n.width.max <= r.width.max)),
                "wider than the root"
            );
        }
        6 => {
            let options = PageOptions { max_frames: limit, only_flame: choices.flag(), ..PageOptions::default() };
            let text = UniformSources(limit);
            let sources = choices.flag().then_some(&text as &dyn pprofdiff::list::SourceCode);
            let _ = pprofdiff_page::page(diff, &query, &options, sources);
        }
        7 => {
            let pattern = choices.text().unwrap_or_else(|| ".".to_owned());
            if let Ok(listing) = diff.list(&query, &pattern, &UniformSources(limit)) {
                expect_written(listing_text(
                    &listing,
                    &mut out,
                    TextOptions { color: choices.flag(), brief: choices.flag(), width: choices.flag().then_some(60) },
                ));
                expect_written(listing_json(&listing, &mut out));
                listing_html(&listing);
            }
        }
        8 => {
            let Ok(profile) = diff.to_profile(&query) else { return };
            let bytes = profile.to_bytes(&BARE).unwrap_or_default();
            let again = Arc::new(load_repaired("written", &bytes));
            let again = Diff::of_profile(&again);
            assert!(again.is_ok(), "a written diff does not open: {:?}", again.err());
        }
        9 => {
            let options = ExplainOptions::default().with_min_effect(fraction / 2.0);
            let query = query.with_normalize(Normalize::None).with_granularity(Granularity::Functions);
            let Ok(e) = pprofdiff_explain::explain(diff, &query, &[], &options) else { return };
            assert!(e.causes.iter().all(|c| c.delta.is_finite() && c.score.is_finite()), "{:?}", e.causes);
            let report = Report::Explain(Box::new(e));
            for format in ["text", "markdown", "json"] {
                let format = report::Registry::standard().format(format).expect("a format");
                expect_written(format.write(&report, &mut out, Default::default()));
            }
        }
        _ => {
            report::info_json(diff);
            expect_written(report::info(diff, &mut out));
            Table::labels(&view.labels()).summary_json();
            read_every_frame(&view);
        }
    }
}

fn read_every_frame(view: &Measure) {
    let frames = view.frames();
    for f in 0..frames.len() as u32 {
        black_box((
            frames.name(f),
            frames.file(f),
            frames.line(f),
            frames.address(f),
            frames.mapping(f),
            frames.label(f),
        ));
    }
}

/// Writes a table in every format.
pub fn table(table: &report::Table) {
    let mut out = Vec::new();
    expect_written(table.write_text(&mut out, TextOptions::default()));
    expect_written(table.write_csv(&mut out, CsvOptions { quote_formulas: true }));
    expect_written(table.write_markdown(&mut out));
    table.to_html(20);
    out.clear();
    expect_written(table.write_json(&mut out));
    serde_json(&out);
    let _ = table.head(3);
}

fn expect_written(result: std::io::Result<()>) {
    assert!(result.is_ok(), "writing into memory failed: {result:?}");
}

fn serde_json(text: &[u8]) {
    let parsed: Result<serde_json::Value, _> = serde_json::from_slice(text);
    assert!(parsed.is_ok(), "no JSON: {parsed:?}");
}

/// Source files that all have this number of lines.
struct UniformSources(usize);

impl pprofdiff::list::SourceCode for UniformSources {
    fn find(&self, _: bool, path: &str) -> Option<SourceText> {
        (!path.is_empty()).then(|| SourceText::new(path, "x = 1;\n".repeat(self.0)))
    }
}

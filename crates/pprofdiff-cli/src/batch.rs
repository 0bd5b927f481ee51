//! `pprofdiff batch`: compares many pairs on all cores, with results in order and bounded memory. A failed pair is
//! reported and does not stop the batch. Files without a partner are reported as well, but have their own exit code,
//! because services come and go between two builds of a healthy fleet.
//!
//! Ctrl-C stops the batch and keeps the finished pairs, because the batch may have run for hours. With `--rank`, Ctrl-C
//! discards them, because a ranking needs all pairs.

use pprofdiff::input::{BatchItem, manifest_pairs};
use pprofdiff::recording::Recording;
use pprofdiff::text::{redacted, sanitize};
use pprofdiff::{Cancellation, Diff, Error, LoadOptions, Query, Source, batch};
use pprofdiff_report::{EachWriter, PairsText, Report, Table, View, pair_causes};
use pprofdiff_series::fleet::Fleet;
use pprofdiff_shell::terminal::Progress;
use pprofdiff_shell::{Failure, Outputs, Result, error_line, say, write_to};
#[cfg(feature = "store")]
use pprofdiff_store::{StoreSelection, store_pairs};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use crate::args::{BatchArgs, MORE};
use crate::{Inputs, REGISTRY, bucket, fetch, sides};

type PairStream = (Box<dyn Iterator<Item = BatchItem> + Send>, Option<u64>);

/// The exit code if every pair with two sides was compared, but some files lack a partner. `diff -r` has the same code
/// for files that only one of its folders has.
const NO_PARTNER: u8 = 1;

/// The parts of a pair that messages and tables need after the pool has taken its profiles.
struct PairInfo {
    keys: Vec<(String, String)>,
    lacks_partner: bool,
    /// The pair in an error message: its keys or else its name, and its files.
    shown: String,
}

impl PairInfo {
    fn new(pair: &BatchItem) -> PairInfo {
        // The name of a pair of patterns has the texts of all its wildcards.
        let is_unnamed = |(name, _): &(String, String)| name.starts_with("key_");
        let name = match pair.keys.is_empty() || pair.keys.iter().any(is_unnamed) {
            true => pair.name.clone(),
            false => pair.keys.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
        };
        let files = |side: &[Source]| match side {
            [] => String::new(),
            [one] => one.name(),
            [first, rest @ ..] => format!("{} and {} more", first.name(), rest.len()),
        };
        let sides = pair.sides.as_ref().map(|(base, new)| format!(" ({} -> {})", files(base), files(new)));
        let shown = sanitize(&format!("pair {name}{}", sides.unwrap_or_default())).into_owned();
        PairInfo { keys: pair.keys.clone(), lacks_partner: pair.lacks_partner, shown }
    }

    /// Returns the line about an error of the pair.
    fn error_line(&self, error: &Error) -> String {
        format!("{}: {}", self.shown, error_line(error))
    }
}

/// The numbers of pairs that were compared, failed, and lack a partner.
#[derive(Default)]
struct Outcomes {
    done: u64,
    failed: u64,
    without_partner: u64,
}

impl Outcomes {
    /// Counts a pair.
    fn count(&mut self, info: &PairInfo, failed: bool) {
        self.done += 1;
        self.without_partner += u64::from(info.lacks_partner);
        self.failed += u64::from(failed && !info.lacks_partner);
    }

    /// Returns the exit code of a batch that is complete, and reports pairs that could not be compared.
    fn exit_code(&self) -> Result<u8> {
        let Outcomes { done, failed, without_partner } = *self;
        let lack = match without_partner {
            1 => "1 lacks a partner".to_owned(),
            n => format!("{n} lack a partner"),
        };
        match (failed, without_partner) {
            (0, 0) => Ok(0),
            (_, 0) => Err(Failure::Message(format!("{failed} of {done} pairs failed"))),
            (0, _) if without_partner < done => {
                say(&format!("of {done} pairs, {lack} on the other side; all others were compared"));
                Ok(NO_PARTNER)
            }
            (0, _) => Err(Failure::Message(format!(
                "none of {done} files has a partner on the other side, so nothing was compared"
            ))),
            _ => Err(Failure::Message(format!("{failed} of {done} pairs failed, and {lack} on the other side"))),
        }
    }
}

/// Returns the pairs, and a channel with the parts of each that are needed after it was compared.
fn with_infos(
    pairs: impl Iterator<Item = BatchItem> + Send,
) -> (impl Iterator<Item = BatchItem> + Send, Receiver<PairInfo>) {
    let (sender, infos) = channel();
    // Sending fails only if the batch was dropped.
    let pairs = pairs.inspect(move |pair| drop(sender.send(PairInfo::new(pair))));
    (pairs, infos)
}

/// Compares the pairs. If `work` is stopped, writes the pairs that are finished. Returns the exit code.
pub fn run(args: &BatchArgs, work: &Cancellation) -> Result<u8> {
    let inputs = Inputs::new(&args.load, Outputs::new(args.output.path()))?;
    let (options, outputs) = (inputs.options.clone(), inputs.outputs.clone());
    let (format, pool) = (args.output.format()?, pool()?);
    // Refuses a format before files are listed.
    let writer = match args.rank {
        true => REGISTRY.check_ranking(format).map(|()| None)?,
        false => Some(EachWriter::new(format, args.output.style(), &REGISTRY)?),
    };
    // Grouping by labels loads the files to read their labels, so it runs on all cores.
    let (pairs, count) = pool.install(|| work.run(|| pairs(args, inputs, args.allow_urls)))??;
    let Some(mut writer) = writer else {
        return rank(args, work, pool, (pairs, count), options, &outputs);
    };
    let table = table(args, writer.limit())?;
    let progress = Progress::new(count, "pairs");
    let mut outcomes = Outcomes::default();
    let (pairs, infos) = with_infos(pairs);
    let mut within = args.output.within.budget.map(|tokens| PairsText::new(tokens, MORE));
    write_to(args.output.path(), |out| {
        let mut results = batch::map(pool, pairs, options, table);
        while let Ok(Some((name, result))) = work.run(|| results.next()) {
            // A manifest is read while earlier pairs are compared, so an input that is also the output may be found
            // only now.
            if let Some(why) = outputs.refusal() {
                return Err(io::Error::other(why));
            }
            let Ok(info) = infos.try_recv() else { break };
            outcomes.count(&info, result.is_err());
            progress.suspend(|| {
                if let Err(e) = &result {
                    say(&info.error_line(e));
                }
                match &mut within {
                    Some(within) => {
                        let mut pair = Vec::new();
                        writer.write(&name, &info.keys, result.as_ref(), &mut pair)?;
                        within.push(&String::from_utf8_lossy(&pair));
                        Ok(())
                    }
                    None => writer.write(&name, &info.keys, result.as_ref(), out),
                }
            })?;
            progress.advance();
        }
        writer.finish(out)?;
        within.map_or(Ok(()), |within| out.write_all(within.finish(Some(outcomes.done)).as_bytes()))
    })?;
    progress.finish();
    if work.is_stopped() && count.is_none_or(|count| outcomes.done < count) {
        let all = count.map_or_else(String::new, |count| format!(" of {count}"));
        let (done, failed) = (outcomes.done, outcomes.failed + outcomes.without_partner);
        say(&format!("interrupted; wrote {done}{all} pairs, {failed} of them failed"));
        return Ok(130);
    }
    outcomes.exit_code()
}

/// Compares all pairs, then ranks them.
fn rank(
    args: &BatchArgs,
    work: &Cancellation,
    pool: Arc<rayon::ThreadPool>,
    (pairs, count): PairStream,
    options: LoadOptions,
    outputs: &Outputs,
) -> Result<u8> {
    let format = args.output.format()?;
    let query = args.query.request(View::default()).of_one_type()?.clone();
    let progress = Progress::new(count, "pairs");
    let sum = args.sum;
    let causes_of = move |query: Query| move |diff| pair_causes(&added(diff, sum), &query);
    let (pairs, infos) = with_infos(pairs);
    // The sources of the pairs, which may have to be measured again in the sample type of most pairs.
    let (sender, sources) = channel();
    let is_default = query.sample_type.is_none();
    let pairs = pairs.inspect(move |pair| {
        let again = |side: &[Source]| side.iter().map(Source::clone).collect::<Vec<_>>();
        let sides = pair.sides.as_ref().ok().filter(|_| is_default).map(|(base, new)| (again(base), again(new)));
        drop(sender.send(sides));
    });
    let mut results = batch::map(pool.clone(), pairs, options.clone(), causes_of(query.clone()));
    let (mut fleet, mut outcomes) = (Fleet::default(), Outcomes::default());
    let mut kept: Vec<(String, Option<(Vec<Source>, Vec<Source>)>, PairInfo)> = Vec::new();
    while let Ok(Some((name, causes))) = work.run(|| results.next()) {
        // A manifest is read while earlier pairs are compared, so an input that is also the output may be found only
        // now.
        if let Some(why) = outputs.refusal() {
            return Err(Failure::Message(why.to_owned()));
        }
        let (Ok(info), Ok(sides)) = (infos.try_recv(), sources.try_recv()) else { break };
        outcomes.count(&info, causes.is_err());
        if let Err(e) = &causes {
            progress.suspend(|| say(&info.error_line(e)));
        }
        fleet.push_with_keys(&name, info.keys.iter().cloned().collect(), causes);
        kept.push((name, sides, info));
        progress.advance();
    }
    progress.finish();
    let done = fleet.len();
    // A ranking of some pairs could be wrong about which causes are rare or shared.
    if work.is_stopped() && count.is_none_or(|count| (done as u64) < count) {
        say(&format!("interrupted after {done} pairs; no ranking is written, because it needs all pairs"));
        return Ok(130);
    }
    let again = fleet.to_measure_again();
    if let Some(sample_type) = fleet.sample_type().filter(|_| !again.is_empty()).map(str::to_owned) {
        let pair = |&position: &usize| {
            let (name, sides, _) = kept.get_mut(position)?;
            let (base, new) = sides.take()?;
            Some((position, BatchItem::new(name.clone(), base, new)))
        };
        let (positions, pairs): (Vec<usize>, Vec<BatchItem>) = again.iter().filter_map(pair).unzip();
        let query = query.with_sample_type(sample_type);
        let mut results = batch::map(pool, pairs, options, causes_of(query));
        for position in positions {
            let Ok(Some((_, causes))) = work.run(|| results.next()) else { return Ok(130) };
            if let (Err(e), Some((_, _, info))) = (&causes, kept.get(position)) {
                say(&info.error_line(e));
            }
            fleet.replace(position, causes);
        }
    }
    let mut ranking = fleet.ranking(args.fdr)?;
    // Pairs that lack the sample type of the ranking are among the failed pairs.
    outcomes.failed = (ranking.failed.len() as u64).saturating_sub(outcomes.without_partner);
    ranking.rows = args.ranked_rows();
    let report = Report::Ranking(Box::new(ranking));
    write_to(args.output.path(), |out| args.output.write(format, &report, &[], out).map(drop))?;
    outcomes.exit_code()
}

/// Adds up the files of each side if `sum` is set.
fn added(diff: Diff, sum: bool) -> Diff {
    if sum { diff.summed() } else { diff }
}

fn pool() -> Result<Arc<rayon::ThreadPool>> {
    let threads = rayon::ThreadPoolBuilder::new().build();
    Ok(Arc::new(threads.map_err(|e| Failure::Message(format!("can't start threads: {e}")))?))
}

/// Returns the function that turns a pair into a table. The table has `usual` rows unless `-n` is given.
pub fn table(
    args: &BatchArgs,
    usual: Option<usize>,
) -> Result<impl Fn(Diff) -> pprofdiff::Result<Table> + Send + Sync + 'static> {
    let (request, sum) = (args.query.request(args.view(usual)), args.sum);
    Ok(move |diff: Diff| {
        let report = request.answer(&added(diff, sum))?;
        report.table().map(|table| table.into_owned()).ok_or_else(|| Error::query("batch needs a view with a table"))
    })
}

/// Resolves the sources of a pair.
fn resolve(mut pair: BatchItem, inputs: &Inputs, allow_urls: bool) -> BatchItem {
    let resolve_side =
        |side: Vec<Source>| side.into_iter().map(|s| inputs.resolve(s, allow_urls)).collect::<Result<Vec<_>, _>>();
    pair.sides = pair.sides.and_then(|(base, new)| Ok((resolve_side(base)?, resolve_side(new)?)));
    pair
}

/// Resolves the pairs of a manifest lazily, one at a time.
fn listed(
    pairs: impl Iterator<Item = BatchItem> + Send,
    inputs: Inputs,
    allow_urls: bool,
) -> impl Iterator<Item = BatchItem> + Send {
    pairs.map(move |pair| resolve(pair, &inputs, allow_urls))
}

/// Returns true if a file starts with bytes that no text has, as a profile does.
fn is_binary(path: &Path) -> Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(512).read_to_end(&mut start)?;
    // The last character may be cut off.
    let is_text = match std::str::from_utf8(&start) {
        Ok(_) => true,
        Err(e) => e.error_len().is_none(),
    };
    Ok(!is_text || start.contains(&0))
}

/// Returns the pairs that the arguments name, and their number if it is known in advance.
pub fn pairs(args: &BatchArgs, inputs: Inputs, allow_urls: bool) -> Result<PairStream> {
    let is_url = |text: &String| fetch::url(Path::new(text)).is_some_and(|url| !bucket::is_pattern(url));
    let is_side = |text: &String| sides::is_side(Path::new(text));
    let all = |pairs: Vec<BatchItem>, inputs: &Inputs| -> Result<PairStream> {
        let pairs: Vec<BatchItem> = pairs.into_iter().map(|pair| resolve(pair, inputs, true)).collect();
        if let Some(why) = inputs.outputs.refusal() {
            return Err(Failure::Message(why.to_owned()));
        }
        let count = pairs.len() as u64;
        Ok((Box::new(pairs.into_iter()), Some(count)))
    };
    match args.pairs.as_slice() {
        [manifest] if args.groups().is_some() && Path::new(manifest).is_file() => {
            inputs.outputs.check_input(Path::new(manifest))?;
            let finder = inputs.finder();
            let pairs = args
                .groups()
                .map_or(Ok(Vec::new()), |groups| finder.group_pairs(manifest, &groups, &inputs.options))?;
            let count = pairs.len() as u64;
            Ok((Box::new(listed(pairs.into_iter(), inputs, allow_urls)), Some(count)))
        }
        [pattern] if let Some(groups) = args.groups() => {
            all(inputs.finder().group_pairs(pattern, &groups, &inputs.options)?, &inputs)
        }
        _ if args.groups().is_some() => {
            Err(Failure::Message("--group needs one pattern, or one manifest file".to_owned()))
        }
        [url] if is_url(url) => {
            Err(Failure::Message(format!("{url}: a manifest must be a local file; a pair is BASE and NEW")))
        }
        [dir] if Recording::is_in(Path::new(dir)) => {
            let [base, new] = Recording::read_sides(Path::new(dir))?.map(|side| side.into_iter().map(Source::Path));
            let pair = BatchItem::new(dir.clone(), base.collect(), new.collect());
            Ok((Box::new(std::iter::once(pair)), Some(1)))
        }
        [manifest] => {
            let manifest = Path::new(manifest);
            if manifest.is_dir() || !manifest.exists() && manifest.as_os_str() != "-" {
                return Err(Failure::Message(format!(
                    "{}: there is no such manifest file; give two folders or two patterns, or one pattern with --group, \
                     --base and --new (see pprofdiff batch --help)",
                    manifest.display()
                )));
            }
            inputs.outputs.check_input(manifest)?;
            if is_binary(manifest)? {
                let name = manifest.display();
                return Err(Failure::Message(format!(
                    "{name}: this is not a manifest but a binary file; to compare a pair: pprofdiff batch BASE NEW"
                )));
            }
            Ok((Box::new(listed(manifest_pairs(manifest)?, inputs, allow_urls)), None))
        }
        #[cfg(feature = "store")]
        [base, new]
            if let [Ok(Some(base)), Ok(Some(new))] = [base, new].map(|name| StoreSelection::named(Path::new(name))) =>
        {
            all(store_pairs(&base, &new)?, &inputs)
        }
        [base, new] if [base, new].into_iter().any(|name| is_url(name) || is_side(name)) => {
            let side = |name: &String| inputs.sources([&PathBuf::from(name)]);
            let pair = BatchItem::new(redacted(new).into_owned(), side(base)?, side(new)?);
            Ok((Box::new(std::iter::once(pair)), Some(1)))
        }
        [base, new] => all(inputs.finder().pairs(base, new)?, &inputs),
        _ => Err(Failure::Message("give two directories, two patterns or a manifest".to_owned())),
    }
}

//! `pprofdiff batch`: compares many pairs on all cores, with results in order and bounded memory. A failed pair is
//! reported and does not stop the batch.
//!
//! Ctrl-C stops the batch and keeps the finished pairs, because the batch may have run for hours. With `--rank`, Ctrl-C
//! discards them, because a ranking needs all pairs.

use pprofdiff::input::{BatchItem, manifest_pairs};
use pprofdiff::recording::Recording;
use pprofdiff::text::redacted;
use pprofdiff::{Cancellation, Diff, Error, LoadOptions, Source, batch};
use pprofdiff_report::{EachWriter, Report, Table, View, pair_causes};
use pprofdiff_series::fleet::Fleet;
use pprofdiff_shell::terminal::Progress;
use pprofdiff_shell::{Failure, Outputs, Result, error_line, say, write_to};
#[cfg(feature = "store")]
use pprofdiff_store::{StoreSelection, store_pairs};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::BatchArgs;
use crate::{Inputs, REGISTRY, bucket, fetch, sides};

type PairStream = (Box<dyn Iterator<Item = BatchItem> + Send>, Option<u64>);

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
    let (mut done, mut failed) = (0_u64, 0_u64);
    write_to(args.output.path(), |out| {
        let mut results = batch::map(pool, pairs, options, table);
        while let Ok(Some((name, result))) = work.run(|| results.next()) {
            // A manifest is read while earlier pairs are compared, so an input that is also the output may be found
            // only now.
            if let Some(why) = outputs.refusal() {
                return Err(io::Error::other(why));
            }
            done += 1;
            progress.suspend(|| match result {
                Ok(table) => writer.write(&name, Ok(&table), out),
                Err(e) => {
                    failed += 1;
                    say(&error_line(&e));
                    writer.write(&name, Err(&e), out)
                }
            })?;
            progress.advance();
        }
        Ok(())
    })?;
    progress.finish();
    if work.is_stopped() && count.is_none_or(|count| done < count) {
        let all = count.map_or_else(String::new, |count| format!(" of {count}"));
        say(&format!("interrupted; wrote {done}{all} pairs, {failed} of them failed"));
        return Ok(130);
    }
    match failed {
        0 => Ok(0),
        _ => Err(Failure::Message(format!("{failed} of {done} pairs failed"))),
    }
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
    let mut results = batch::map(pool, pairs, options, move |diff| pair_causes(&added(diff, sum), &query));
    let mut fleet = Fleet::default();
    while let Ok(Some((name, causes))) = work.run(|| results.next()) {
        // A manifest is read while earlier pairs are compared, so an input that is also the output may be found only
        // now.
        if let Some(why) = outputs.refusal() {
            return Err(Failure::Message(why.to_owned()));
        }
        if let Err(e) = &causes {
            progress.suspend(|| say(&error_line(e)));
        }
        fleet.push(&name, causes);
        progress.advance();
    }
    progress.finish();
    let (failed, done) = (fleet.failed(), fleet.len());
    // A ranking of some pairs could be wrong about which causes are rare or shared.
    if work.is_stopped() && count.is_none_or(|count| (done as u64) < count) {
        say(&format!("interrupted after {done} pairs; no ranking is written, because it needs all pairs"));
        return Ok(130);
    }
    let mut ranking = fleet.ranking(args.fdr)?;
    ranking.rows = args.ranked_rows();
    let report = Report::Ranking(Box::new(ranking));
    write_to(args.output.path(), |out| format.write(&report, out, args.output.style()))?;
    match failed {
        0 => Ok(0),
        _ => Err(Failure::Message(format!("{failed} of {done} pairs failed"))),
    }
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
    let is_side = |text: &String| matches!(sides::named(Path::new(text)), Ok(Some(_)));
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

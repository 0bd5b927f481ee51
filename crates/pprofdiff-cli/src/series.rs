//! `pprofdiff series`: frames along a history of builds, or many builds against one base. What fails is said and stops
//! nothing.

use pprofdiff::Source;
use pprofdiff::input::sort_builds;
use pprofdiff::series::{Against, Order, Series, SeriesOptions};
use pprofdiff::text::harmless;
use pprofdiff_report::explain_line;

use crate::args::{SeriesArgs, SeriesOrder};
use crate::terminal::Progress;
use crate::{Failure, Inputs, Result, explain, is_pattern, one_stdin, say, told, write_to};

pub fn run(args: &SeriesArgs) -> Result<()> {
    let format = args.output.format()?;
    if args.explain && format.name != "text" {
        return Err(Failure::Message("--explain closes a table for people (--format text)".to_owned()));
    }
    let request = args.query.request(args.ask(format))?.for_format(format)?;
    let query = request.of_one_type()?;
    let inputs = Inputs::new(&args.load)?;
    let builds = builds(args, &inputs)?;
    let progress = Progress::new(Some(builds.len() as u64), "builds");
    let against = if args.base.is_some() { Against::First } else { Against::Previous };
    let order = if args.order == SeriesOrder::Key { Order::Key } else { Order::Given };
    let options = SeriesOptions::default().with_load(inputs.options.clone()).with_against(against).with_order(order);
    let series = Series::load(builds.into_iter().inspect(|_| progress.advance()), query, &options);
    progress.finish();
    let series = series?;
    for (_, error) in series.errors() {
        say(&told(error));
    }
    let report = request.answer_series(&series)?;
    let closing = if args.explain { why(&series, args, &inputs)? } else { None };
    write_to(args.output.path(), |out| {
        (format.write)(&report, out, args.output.style())?;
        closing.map_or(Ok(()), |line| writeln!(out, "\n{line}"))
    })?;
    match series.errors().len() {
        0 => Ok(()),
        failed => Err(Failure::Message(format!("{failed} of {} builds failed", series.builds.all.len()))),
    }
}

/// Builds on either side of a step that are taken for runs of one program.
const RUNS: usize = 3;

/// Why the build with the largest step differs from those before it, in a line.
fn why(series: &Series, args: &SeriesArgs, inputs: &Inputs) -> Result<Option<String>> {
    let Some(build) = series.largest_step(args.sort.into()) else { return Ok(None) };
    let explanation = series.explain(build, RUNS, &inputs.options, &explain::own_runtime(None)?)?;
    let line = explain_line(&explanation).unwrap_or_else(|| "these samples can't tell".to_owned());
    Ok(Some(format!("explain: {}: {line}", harmless(&series.builds.all[build].key))))
}

/// The builds that the arguments name, the base before them.
fn builds(args: &SeriesArgs, inputs: &Inputs) -> Result<Vec<(String, Source)>> {
    one_stdin(args.builds.iter().chain(&args.base))?;
    let mut builds = match args.builds.as_slice() {
        [one] if is_pattern(one) && args.order == SeriesOrder::Given => {
            return Err(Failure::Message("files of a pattern are in no given order; name the files".to_owned()));
        }
        files => inputs.named(files)?,
    };
    if args.order == SeriesOrder::Key {
        sort_builds(&mut builds);
    }
    if let Some(base) = &args.base {
        builds.insert(0, ("base".to_owned(), inputs.source(base)?));
    }
    Ok(builds)
}

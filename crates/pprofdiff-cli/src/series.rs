//! `pprofdiff series`: follows frames along a history of builds, or compares many builds with one base. A failed build
//! is reported and does not stop the others.

use pprofdiff::Source;
use pprofdiff::input::sort_builds;
use pprofdiff::text::sanitize;
use pprofdiff_report::{
    Form, Format, GivenOptions, INCONCLUSIVE, RUNS, Report, Request, Takes, View, explain_line, failed_builds,
};
use pprofdiff_series::{Against, BuildOrder, FEWEST_BUILDS, Series, SeriesOptions};
use pprofdiff_shell::terminal::Progress;
use pprofdiff_shell::{Failure, Outputs, Result, error_line, say, write_to};

use crate::args::{SeriesArgs, SeriesOrder, SeriesRows};
use crate::{Inputs, REGISTRY, explain, is_pattern, one_stdin};

pub fn run(args: &SeriesArgs) -> Result<()> {
    let format = args.output.format()?;
    let inputs = Inputs::without_base(&args.load, Outputs::new(args.output.path()))?;
    let builds = builds(args, &inputs)?;
    let progress = Progress::new(Some(builds.len() as u64), "builds");
    let count = builds.len();
    let series = load(args, &inputs, format, count, builds.into_iter().inspect(|_| progress.advance()));
    progress.finish();
    let series = series?;
    let failed = failed_builds(&series.builds);
    if failed.len() == series.errors().len() {
        series.errors().iter().for_each(|(_, error)| say(&error_line(error)));
    } else {
        failed.iter().for_each(|line| say(line));
    }
    let (report, closing) = answer(args, &inputs, format, &series)?;
    let closing = if closing { cause_line(&series, args, &inputs)? } else { None };
    write_to(args.output.path(), |out| {
        format.write(&report, out, args.output.style())?;
        closing.map_or(Ok(()), |line| writeln!(out, "\n{line}"))
    })?;
    match series.errors().len() {
        0 => Ok(()),
        failed => Err(Failure::Message(format!("{failed} of {} builds failed", series.builds.all.len()))),
    }
}

/// Loads the builds. `count` is their number.
pub fn load(
    args: &SeriesArgs,
    inputs: &Inputs,
    format: &Format,
    count: usize,
    builds: impl Iterator<Item = (String, Source)>,
) -> Result<Series> {
    // Rejects unsupported options before a profile is loaded. The default kind of rows depends on the number of builds.
    let (request, _) = request(args, args.base.is_none() && count >= FEWEST_BUILDS, format)?;
    let query = request.of_one_type()?.clone();
    let against = if args.base.is_some() { Against::First } else { Against::Previous };
    let order = if args.order == SeriesOrder::Key { BuildOrder::Key } else { BuildOrder::Given };
    let options = SeriesOptions::default().with_load(inputs.options.clone()).with_against(against).with_order(order);
    #[cfg(feature = "store")]
    let options = options.with_known(&pprofdiff_series::StoreColumns);
    Ok(Series::load(builds, &query, &options)?)
}

/// Returns the report about the builds, and whether a line with the cause of the largest change follows it.
pub fn answer(args: &SeriesArgs, inputs: &Inputs, format: &Format, series: &Series) -> Result<(Report, bool)> {
    let (request, closing) = request(args, series.is_history(), format)?;
    Ok((request.answer_series(series, &inputs.options)?, closing))
}

/// Returns the request, and whether a line with the cause of the largest change follows its answer. `is_history` is false
/// for fewer than six builds, and for builds that are compared with one base; such builds show movers by default.
fn request(args: &SeriesArgs, is_history: bool, format: &Format) -> Result<(Request, bool)> {
    let (sort, limit) = (args.shown.sort(), None);
    let rows = args.rows.unwrap_or(if is_history { SeriesRows::Shifts } else { SeriesRows::Movers });
    let view = match rows {
        SeriesRows::Shifts => {
            let explain = args.explain.then(|| explain::own_runtime(None)).transpose()?;
            View::Shifts { sort, limit, explain }
        }
        SeriesRows::Movers => View::Movers { sort, limit },
        SeriesRows::Steps => View::Steps { sort, limit },
        SeriesRows::Values => View::Values { dense: args.dense, limit },
    };
    let options = [(Takes::Dense, args.dense), (Takes::Explain, args.explain)];
    let given = GivenOptions::new(args.shown.n, &options);
    let closes = args.explain && !view.spec().takes.contains(&Takes::Explain) && format.form == Form::Text;
    Ok((args.query.request(view).for_output(format, &REGISTRY, &given)?, closes))
}

/// Explains in one line how the builds after the largest change differ from the builds before it.
fn cause_line(series: &Series, args: &SeriesArgs, inputs: &Inputs) -> Result<Option<String>> {
    let Some(point) = series.largest_change(args.shown.sort(), RUNS) else { return Ok(None) };
    let explanation = series.explain(&point, &inputs.options, &explain::own_runtime(None)?)?;
    let line = explain_line(&explanation).unwrap_or_else(|| INCONCLUSIVE.to_owned());
    Ok(Some(format!("explain: {}: {line}", sanitize(&series.builds.all[point.build].key))))
}

/// Returns the builds in the arguments in the requested order, with the base first.
fn builds(args: &SeriesArgs, inputs: &Inputs) -> Result<Vec<(String, Source)>> {
    one_stdin(args.builds.iter().chain(&args.base))?;
    let mut builds = match args.builds.as_slice() {
        [one] if is_pattern(one) && args.order == SeriesOrder::Given => {
            return Err(Failure::Message(
                "--order given needs a list of files, because the files of a pattern have no order".to_owned(),
            ));
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

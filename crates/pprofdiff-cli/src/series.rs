//! `pprofdiff series`: frames along a history of builds, or many builds against one base. What fails is said and stops
//! nothing.

use pprofdiff::Source;
use pprofdiff::input::sort_builds;
use pprofdiff::series::{Against, Order, Series, SeriesOptions};

use crate::args::{SeriesArgs, SeriesOrder};
use crate::terminal::Progress;
use crate::{Failure, Inputs, Result, is_pattern, one_stdin, say, told, write_to};

pub fn run(args: &SeriesArgs) -> Result<()> {
    let format = args.output.format()?;
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
    write_to(args.output.path(), |out| (format.write)(&report, out, args.output.style()))?;
    match series.errors().len() {
        0 => Ok(()),
        failed => Err(Failure::Message(format!("{failed} of {} builds failed", series.builds.all.len()))),
    }
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

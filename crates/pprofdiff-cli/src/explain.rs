//! `pprofdiff explain`: writes the causes and, with --exit-code, exits with the verdict.

use std::path::Path;

use pprofdiff::Diff;
use pprofdiff::recording::Recording;
use pprofdiff_explain::ExplainOptions;
use pprofdiff_report::{Format, Report, View, explain_exit_code};
use pprofdiff_shell::{Failure, Outputs, Result, git, operations, write_to};

use crate::args::ExplainArgs;
use crate::check::config;
use crate::input::Inputs;
use crate::next_step::{AnsweredCommand, suggest_next};
use crate::{REGISTRY, open_with};

pub fn run(args: &ExplainArgs) -> Result<u8> {
    let (report, _, format) = answer(args)?;
    let code = match &report {
        Report::Explain(explanation) if args.exit_code => explain_exit_code(explanation),
        _ => 0,
    };
    let mut left = 0;
    match write_to(args.output.path(), |out| args.output.write(format, &report, &[], out).map(|tokens| left = tokens)) {
        Ok(()) => {
            let (input, load, query) = (&args.input, &args.load, &args.query.request(View::default()).query);
            let asked = AnsweredCommand { verb: "explain", regex: None, input, query, load, has_sources: false };
            suggest_next(&asked, &report, format, &args.output, left);
            Ok(code)
        }
        // The exit code has the verdict even if the reader of the output stops early (`| head`).
        Err(Failure::ClosedPipe) => Ok(code),
        Err(e) => Err(e),
    }
}

/// Returns the explanation with the commits of its causes, the comparison, and the output format.
pub fn answer(args: &ExplainArgs) -> Result<(Report, Diff, &'static Format)> {
    let format = args.output.format()?;
    let options = options(args)?;
    // Rejects unsupported options before a profile is loaded.
    let ask = |options| Ok::<_, Failure>(args.query.request(View::Explain(options)).for_format(format, &REGISTRY)?);
    ask(options.clone())?;
    let commits = git::commits(args.git.range.as_deref())?;
    let (mut noise_runs, mut heap, mut has_sides) = (0, None, false);
    let diff =
        open_with(&args.input, &args.load, Outputs::new(args.output.path()), args.query.sample_type(), |inputs| {
            has_sides = true;
            if let [base, new] = args.with.as_slice() {
                heap = Some(heaps(inputs, base, new)?);
            }
            let noise = inputs.named(&args.noise)?;
            noise_runs = noise.len();
            Ok(noise.into_iter().map(|(_, source)| source).collect())
        })?;
    for (option, is_given) in [("--noise", !args.noise.is_empty()), ("--with", !args.with.is_empty())] {
        if is_given && !has_sides {
            let message =
                format!("{option} needs the profiles of both sides; a written diff has only their difference");
            return Err(Failure::Message(message));
        }
    }
    let mut options = options.with_noise_runs(noise_runs);
    if let Some(heap) = heap {
        options = options.with_heap(heap);
    }
    let request = ask(options)?;
    let mut report = request.answer(&diff)?;
    if let (Report::Explain(explanation), Some(commits)) = (&mut report, &commits) {
        commits.rank(&diff, &request.query, explanation)?;
    }
    Ok((report, diff, format))
}

/// Loads the heap profiles of both sides. Each is a file, or a pattern for several runs.
fn heaps(inputs: &Inputs, base: &Path, new: &Path) -> Result<Diff> {
    let side = |path: &Path| {
        let sources = inputs.named(&[path.to_owned()])?.into_iter().map(|(_, source)| source);
        Ok::<Vec<_>, Failure>(sources.collect())
    };
    Ok(Diff::load(&side(base)?, &side(new)?, &inputs.options)?)
}

/// Returns the options from the arguments and the configuration. Without `--ops` and `--ops-from`, a folder of runs
/// provides the number of operations.
pub fn options(args: &ExplainArgs) -> Result<ExplainOptions> {
    let recording = match args.input.files.as_slice() {
        [dir] if Recording::is_in(dir) => Some(Recording::read(dir)?),
        _ => None,
    };
    let mut options = own_runtime(args.config.as_deref())?.with_undecided_total(args.undecided_total);
    // Counts show much smaller changes than times, so the default is the `--effect` of the benchmark.
    let counted_effect = || recording.as_ref().filter(|recording| !recording.counter.is_empty()).map(|r| r.effect);
    if let Some(effect) = args.min_effect.or_else(counted_effect) {
        options = options.with_min_effect(effect);
    }
    options.ops = match args.ops_from.as_slice() {
        [base, new] => Some(operations::from_files(base, new)?),
        _ => args.ops.or_else(|| recording.as_ref()?.operations()),
    };
    Ok(options)
}

/// Returns the options that a configuration file sets for the program's own runtime: the file in `named`, or else the
/// default file if it exists.
pub fn own_runtime(named: Option<&Path>) -> Result<ExplainOptions> {
    let Some((name, text)) = config(named)? else { return Ok(ExplainOptions::default()) };
    ExplainOptions::default().with_config(&text).map_err(|e| Failure::Message(format!("{name}: {e}")))
}

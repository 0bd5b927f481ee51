//! `pprofdiff explain`: causes out, and on request the verdict as the exit code.

use pprofdiff::explain::ExplainOptions;
use pprofdiff_report::{Ask, Report, Style, explain_exit_code};

use crate::args::ExplainArgs;
use crate::check::config;
use crate::{Failure, Result, open_with, write_to};

pub fn run(args: &ExplainArgs) -> Result<u8> {
    let format = args.output.format()?;
    let mut options = ExplainOptions::default().with_min_effect(args.min_effect);
    options.ops = args.ops;
    if let Some((name, text)) = config(args.config.as_deref())? {
        options = options.with_config(&text).map_err(|e| Failure::Message(format!("{name}: {e}")))?;
    }
    // What can't be asked is said before a profile is loaded.
    let ask = |options| Ok::<_, Failure>(args.query.request(Ask::Explain(options))?.for_format(format)?);
    ask(options.clone())?;
    let mut noise_runs = 0;
    let diff = open_with(&args.input, |inputs| {
        let noise = inputs.named(&args.noise)?;
        noise_runs = noise.len();
        Ok(noise.into_iter().map(|(_, source)| source).collect())
    })?;
    let report = ask(options.with_noise_runs(noise_runs))?.answer(&diff)?;
    let code = match &report {
        Report::Explain(explanation) if args.exit_code => explain_exit_code(explanation.verdict),
        _ => 0,
    };
    let style = Style { budget: args.budget, ..args.output.style() };
    match write_to(args.output.path(), |out| (format.write)(&report, out, style)) {
        // Who stops reading (`| head`) still wants the verdict.
        Ok(()) | Err(Failure::ClosedPipe) => Ok(code),
        Err(e) => Err(e),
    }
}

//! `pprofdiff explain`: causes out, and on request the verdict as the exit code.

use pprofdiff::explain::ExplainOptions;
use pprofdiff_report::{Ask, Report, explain_exit_code};

use crate::args::ExplainArgs;
use crate::{Failure, Result, open, write_to};

pub fn run(args: &ExplainArgs) -> Result<u8> {
    let format = args.output.format()?;
    let mut options = ExplainOptions::default().with_min_effect(args.min_effect);
    options.ops = args.ops;
    let request = args.query.request(Ask::Explain(options))?.for_format(format)?;
    let report = request.answer(&open(&args.input)?)?;
    let code = match &report {
        Report::Explain(explanation) if args.exit_code => explain_exit_code(explanation.verdict),
        _ => 0,
    };
    match write_to(args.output.path(), |out| (format.write)(&report, out, args.output.style())) {
        // Who stops reading (`| head`) still wants the verdict.
        Ok(()) | Err(Failure::ClosedPipe) => Ok(code),
        Err(e) => Err(e),
    }
}

//! `pprofdiff check`, for CI. Rules from the command line and the configuration, findings out, a verdict as
//! the exit code.

use std::path::Path;

use pprofdiff::check::How;
use pprofdiff_report::{Ask, CheckOptions, Format, Report, exit_code};

use crate::args::CheckArgs;
use crate::{Failure, Result, open, write_to};

/// Read if it is there and no other is named.
const CONFIG: &str = "pprofdiff.toml";

pub fn run(args: &CheckArgs) -> Result<u8> {
    let format = args.output.format()?;
    let request = args.query.request(Ask::Check(options(args)?))?.for_format(format)?;
    let reports = args.report.iter().map(|path| {
        let format = Format::of_path(path)?;
        request.for_format(format)?;
        Ok((path, format))
    });
    let reports = reports.collect::<Result<Vec<_>>>()?;
    if let [_] = args.input.files.as_slice() {
        return Err(Failure::Message("a check needs BASE and NEW".to_owned()));
    }
    let diff = open(&args.input)?;
    let report = request.answer(&diff)?;
    for (path, format) in reports {
        write_to(Some(path), |out| (format.write)(&report, out, Default::default()))?;
    }
    let verdict = match &report {
        Report::Check(check) => exit_code(check.verdict),
        _ => 2,
    };
    match write_to(args.output.path(), |out| (format.write)(&report, out, args.output.style())) {
        // Who stops reading (`| head`) still wants the verdict.
        Ok(()) | Err(Failure::ClosedPipe) => Ok(verdict),
        Err(e) => Err(e),
    }
}

/// The configuration that is named, or that is there: its name and text.
pub fn config(named: Option<&Path>) -> Result<Option<(String, String)>> {
    let Some(path) = named.or_else(|| Some(Path::new(CONFIG)).filter(|path| path.exists())) else { return Ok(None) };
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((name, text))),
        Err(e) => Err(Failure::Message(format!("{name}: {e}"))),
    }
}

/// What the arguments and the configuration say, which is checked before a profile is loaded.
fn options(args: &CheckArgs) -> Result<CheckOptions> {
    let mut options = CheckOptions::default();
    if let Some((name, text)) = config(args.config.as_deref())? {
        options.config = Some(text);
        options.rules().map_err(|e| Failure::Message(format!("{name}: {e}")))?;
    }
    (options.fail_on, options.floor) = (args.fail_on.clone(), args.floor.clone());
    options.how =
        How::default().with_strict(args.strict).with_paired(args.paired).with_require_power(args.require_power);
    options.rules()?;
    Ok(options)
}

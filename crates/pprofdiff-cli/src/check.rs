//! `pprofdiff check`, for CI. Rules from the command line and the configuration, findings out, a verdict as
//! the exit code.

use std::io::{self, Write};
use std::path::Path;

use pprofdiff::check::{Check, Rules};
use pprofdiff_report::{TextOptions, check_github, check_json, check_markdown, check_text, exit_code};

use crate::args::{CheckArgs, CheckFormat};
use crate::{Failure, Result, color_wanted, open, write_to};

/// Read if it is there and no other is named.
const CONFIG: &str = "pprofdiff.toml";

pub fn run(args: &CheckArgs) -> Result<u8> {
    let rules = rules(args)?;
    if let [_] = args.input.files.as_slice() {
        return Err(Failure::Message("a check needs BASE and NEW".to_owned()));
    }
    let diff = open(&args.input)?;
    let check = rules.check(&diff)?;
    for path in &args.report {
        let format = match path.extension().and_then(|e| e.to_str()) {
            Some("json") => CheckFormat::Json,
            Some("md") => CheckFormat::Markdown,
            _ => CheckFormat::Text,
        };
        write_to(Some(path), |out| write(&check, format, false, out))?;
    }
    let output = args.output.as_deref();
    let color = output.is_none() && color_wanted();
    match write_to(output, |out| write(&check, args.format, color, out)) {
        // Who stops reading (`| head`) still wants the verdict.
        Ok(()) | Err(Failure::ClosedPipe) => Ok(exit_code(check.verdict)),
        Err(e) => Err(e),
    }
}

fn write(check: &Check, format: CheckFormat, color: bool, out: &mut dyn Write) -> io::Result<()> {
    match format {
        CheckFormat::Text => check_text(check, out, TextOptions { color }),
        CheckFormat::Json => check_json(check, out),
        CheckFormat::Markdown => check_markdown(check, out),
        CheckFormat::Github => check_github(check, out),
    }
}

fn rules(args: &CheckArgs) -> Result<Rules> {
    let config = args.config.as_deref().or_else(|| Some(Path::new(CONFIG)).filter(|path| path.exists()));
    let mut rules = match config {
        Some(path) => {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|e| Failure::Message(format!("{name}: {e}")))?;
            Rules::from_toml(&text).map_err(|e| Failure::Message(format!("{name}: {e}")))?
        }
        None => Rules::default(),
    };
    args.fail_on.iter().try_for_each(|rule| rules.fail_on(rule))?;
    if let Some(floor) = &args.floor {
        rules.set_floor(floor)?;
    }
    if let Some(sample_type) = &args.sample_type {
        rules.set_sample_type(sample_type);
    }
    rules.set_normalize(args.normalize.unwrap_or_default());
    Ok(rules)
}

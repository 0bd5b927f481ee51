//! The one place that refuses a combination of a view, a format and options. It asks the row of the view
//! ([`ViewSpec`]) and the form of the format, so that every interface refuses the same combinations, before it reads
//! any input.

use crate::format::Format;
use crate::registry::Registry;
use crate::request::Request;
use crate::view::{Form, RowLimit, Takes, View, ViewInput, ViewSpec};
use pprofdiff::{Error, Result};

/// The options of a caller that a view or a format may refuse, besides those of the query.
#[derive(Debug, Clone, Default)]
pub struct GivenOptions {
    /// The maximum number of rows; 0 shows all.
    pub rows: Option<usize>,
    /// The other options that are given.
    pub takes: Vec<Takes>,
    /// The maximum number of tokens. It replaces the format's default maximum number of rows, because it decides how
    /// many rows fit.
    pub budget: Option<usize>,
}

impl GivenOptions {
    /// Creates the options: a maximum number of rows, and for each other option whether it is given.
    pub fn new(rows: Option<usize>, options: &[(Takes, bool)]) -> GivenOptions {
        let takes = options.iter().filter(|(_, is_given)| *is_given).map(|(option, _)| *option).collect();
        GivenOptions { rows, takes, budget: None }
    }

    /// Sets the maximum number of tokens.
    pub fn with_budget(self, budget: Option<usize>) -> GivenOptions {
        GivenOptions { budget, ..self }
    }
}

impl Takes {
    /// Returns the error for a view with this descriptor that cannot use the option.
    pub fn refusal(self, spec: &ViewSpec) -> Error {
        let name = spec.name;
        Error::naming_options(&match self {
            Takes::CallTree => "`call_tree` is for call graphs: `format=dot`, svg or callgrind".to_owned(),
            Takes::Sources => "source lines need ``list``, or a page (`format=html`)".to_owned(),
            Takes::Dense => "`dense` needs `rows=values`".to_owned(),
            Takes::Explain if spec.input == ViewInput::Builds => {
                "`explain` needs `format=text`, or rows that are lasting changes (`rows=shifts`)".to_owned()
            }
            Takes::Explain => "`explain` needs a table of two sides in `format=text`".to_owned(),
            Takes::Sort => format!("{name} does not support `sort`"),
            Takes::Labels => format!("{name} does not support `labels`"),
        })
    }
}

impl Request {
    /// Returns the view's name for error messages, with the options that can prevent a format from showing the view.
    fn describe_view(&self) -> String {
        let spec = self.view.spec();
        let suffix = match (spec.narrowed)(&self.view) {
            Some(suffix) if !suffix.is_empty() => suffix,
            _ if self.query.extra_sample_types.is_empty() => "",
            _ => " of several sample types",
        };
        format!("{}{suffix}", spec.name)
    }

    /// Returns the request that `format` answers instead of this one, which is usually the same. Some formats show
    /// another view of the same query: a format of call graphs shows the graph instead of the table of frames.
    ///
    /// # Errors
    /// Fails if the format cannot show this view. The error lists the formats of `registry` that can.
    pub fn for_format(&self, format: &Format, registry: &Registry) -> Result<Request> {
        match format.shows(self) {
            Some(request) => Ok(request),
            None => {
                let can = registry.formats().iter().filter(|f| f.shows(self).is_some());
                let can: Vec<&str> = can.map(|f| f.name).collect();
                let (format, view) = (format.name, self.describe_view());
                Err(Error::query(format!("{view} can't be written as {format}; supported formats: {}", can.join(", "))))
            }
        }
    }

    /// Returns the request that `format` answers instead of this one, like [`Request::for_format`], with the maximum
    /// number of rows in `given`, or else the format's. The view of this request must not have a limit yet.
    ///
    /// # Errors
    /// Fails if the format cannot show this view, and if the format or the view refuses an option in `given` or in the
    /// query.
    pub fn for_output(&self, format: &Format, registry: &Registry, given: &GivenOptions) -> Result<Request> {
        let mut request = self.for_format(format, registry)?;
        let spec = request.view.spec();
        if given.budget.is_some() {
            format.check_budget()?;
        }
        let is_limited = !format.form.is_whole();
        match spec.limit {
            _ if given.rows.is_none() => {}
            _ if !is_limited => {
                let message = format!("`n` limits rows, but {} is always written whole", format.name);
                return Err(Error::naming_options(&message));
            }
            RowLimit::Refused(instead) => {
                return Err(Error::naming_options(&format!("`n` limits rows; {instead}")));
            }
            _ => {}
        }
        // The line of an explanation can follow any text.
        let is_used =
            |option: &Takes| spec.takes.contains(option) || *option == Takes::Explain && format.form == Form::Text;
        if let Some(refused) = given.takes.iter().find(|option| !is_used(option)) {
            return Err(refused.refusal(spec));
        }
        // A series checks its query when it loads the builds.
        if spec.input != ViewInput::Builds {
            request.check_query()?;
        }
        if is_limited {
            // A row takes at least one token.
            request.view.limit_rows(given.rows, given.budget.or(format.limit));
        }
        Ok(request)
    }
}

impl View {
    /// Limits the rows of the view to `rows`, where 0 shows all, or else to `usual` if the view limits rows by default.
    fn limit_rows(&mut self, rows: Option<usize>, usual: Option<usize>) {
        let max_rows = match self.spec().limit {
            RowLimit::Rows => rows.or(usual),
            RowLimit::Functions => rows,
            RowLimit::Nodes => {
                if let (View::Graph(options), Some(rows)) = (self, rows) {
                    options.node_count = rows;
                }
                return;
            }
            RowLimit::None | RowLimit::Refused(_) => return,
        };
        if let Some(limit) = self.limit_mut() {
            *limit = max_rows.filter(|&rows| rows > 0);
        }
    }
}

impl Format {
    /// Rejects a token budget for formats other than text and Markdown. Other formats are data, which programs read.
    ///
    /// # Errors
    /// Fails for all formats but text and Markdown.
    pub fn check_budget(&self) -> Result<()> {
        let name = self.name;
        match self.form {
            Form::Text | Form::Prose => Ok(()),
            Form::Rows => Err(Error::naming_options(&format!(
                "`budget` shortens text and Markdown, and {name} is data; limit its rows with `n`"
            ))),
            _ => Err(Error::naming_options(&format!(
                "`budget` shortens text and Markdown, but {name} is always written whole"
            ))),
        }
    }

    /// Returns the request that the format answers instead of `request`, or `None` if the format cannot show it.
    /// Pictures show one sample type, and only forms of rows show the options that narrow a table.
    pub fn shows(&self, request: &Request) -> Option<Request> {
        let spec = request.view.spec();
        let is_plain = request.query.extra_sample_types.is_empty() && (spec.narrowed)(&request.view).is_none();
        let is_shown = spec.forms.contains(&self.form)
            && (is_plain || !self.form.is_picture())
            && !(self.form.is_whole() && request.view.limit().is_some());
        is_shown.then(|| (self.asks)(request))
    }
}

/// The formats of several histories.
const HISTORY_FORMATS: [&str; 4] = ["text", "json", "csv", "markdown"];

impl Registry {
    /// Rejects a format that does not show a ranking of many pairs.
    ///
    /// # Errors
    /// Fails with the formats that do.
    pub fn check_ranking(&self, format: &Format) -> Result<()> {
        let spec = crate::view::RANKING;
        if spec.forms.contains(&format.form) {
            return Ok(());
        }
        let can: Vec<&str> = self.formats().iter().filter(|f| spec.forms.contains(&f.form)).map(|f| f.name).collect();
        let can = match can.split_last() {
            Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            _ => can.concat(),
        };
        Err(Error::query(format!("a ranking is written as {can}, not {}", format.name)))
    }

    /// Rejects a format that does not show several histories.
    ///
    /// # Errors
    /// Fails with the formats that do.
    pub fn check_histories(&self, format: &Format) -> Result<()> {
        match HISTORY_FORMATS.contains(&format.name) {
            true => Ok(()),
            false => Err(Error::query(format!(
                "several histories are written as {} or {}, not {}; for one of them, select its files with the pattern",
                HISTORY_FORMATS[..3].join(", "),
                HISTORY_FORMATS[3],
                format.name
            ))),
        }
    }
}

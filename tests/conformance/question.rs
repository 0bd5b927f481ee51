//! A question for both tools, with the arguments for each.

/// The grouping of frames. Both tools use the same five names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    Functions,
    FileFunctions,
    Files,
    Lines,
    Addresses,
}

impl Granularity {
    pub const ALL: [Granularity; 5] = [
        Granularity::Functions,
        Granularity::FileFunctions,
        Granularity::Files,
        Granularity::Lines,
        Granularity::Addresses,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Granularity::Functions => "functions",
            Granularity::FileFunctions => "filefunctions",
            Granularity::Files => "files",
            Granularity::Lines => "lines",
            Granularity::Addresses => "addresses",
        }
    }
}

/// An option under pprof's name (`show_from`), with its value, or without for a switch.
#[derive(Clone, Debug)]
pub struct Choice {
    pub name: &'static str,
    pub value: Option<String>,
}

impl Choice {
    pub fn switch(name: &'static str) -> Choice {
        Choice { name, value: None }
    }

    pub fn new(name: &'static str, value: impl Into<String>) -> Choice {
        Choice { name, value: Some(value.into()) }
    }
}

#[derive(Clone, Debug)]
pub struct Question {
    pub sample_type: String,
    /// The unit of the file, or the finer one of two files. pprof prints in this unit, so that it does not scale.
    pub unit: String,
    pub granularity: Granularity,
    pub choices: Vec<Choice>,
}

impl Question {
    pub fn asks_for(&self, option: &str) -> bool {
        self.choices.iter().any(|choice| choice.name == option)
    }

    pub fn to_pprof_args(&self) -> Vec<String> {
        let mut words = vec![
            format!("-sample_index={}", self.sample_type),
            format!("-unit={}", self.unit),
            format!("-{}", self.granularity.name()),
        ];
        words.extend(self.choices.iter().map(|choice| match &choice.value {
            Some(value) => format!("-{}={value}", choice.name),
            None => format!("-{}", choice.name),
        }));
        words
    }

    pub fn to_our_args(&self) -> Vec<String> {
        let mut words =
            vec![format!("--sample-type={}", self.sample_type), format!("--granularity={}", self.granularity.name())];
        words.extend(self.choices.iter().map(|choice| {
            let name = choice.name.replace('_', "-");
            match &choice.value {
                Some(value) => format!("--{name}={value}"),
                None => format!("--{name}"),
            }
        }));
        words
    }
}

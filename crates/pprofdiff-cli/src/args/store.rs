//! The arguments of `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::table::LoadArgs;

#[derive(Args)]
#[command(after_help = STORE_EXAMPLES, arg_required_else_help = true)]
pub struct StoreArgs {
    #[command(subcommand)]
    pub verb: StoreVerb,
}

#[derive(Subcommand)]
pub enum StoreVerb {
    /// Add profiles; adding a stored profile again changes nothing
    Add(Box<StoreAddArgs>),
    /// List the keys of the stored profiles
    List {
        /// Store, or a selection of its keys: STORE/service=api
        #[arg(value_name = "STORE")]
        store: PathBuf,
    },
    /// Merge many small files into few, and remove leftovers of interrupted writes
    Compact {
        #[arg(value_name = "STORE")]
        store: PathBuf,
    },
}

#[derive(Args)]
pub struct StoreAddArgs {
    /// Directory of the store; created if it does not exist
    #[arg(value_name = "STORE")]
    pub store: PathBuf,
    /// Profiles: files and URLs, or one pattern (quoted); several patterns if a --key has placeholders
    #[arg(value_name = "PROFILE", required = true)]
    pub profiles: Vec<PathBuf>,
    /// Key of the profiles; in VALUE, {1} is the text that the first * of the pattern matched, and {service} the value
    /// of the label "service"
    #[arg(long, value_name = "NAME=VALUE", value_parser = key, required = true)]
    pub key: Vec<(String, String)>,
    #[command(flatten)]
    pub load: LoadArgs,
}

fn key(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as service=api")?;
    Ok((name.to_owned(), value.to_owned()))
}

const STORE_EXAMPLES: &str = "\
Examples:
  pprofdiff store add fleet cpu.pb.gz --key service=api --key build=123
  pprofdiff store add fleet 'prof/*/*/cpu.pb.gz' --key service={1} --key build={2}
  pprofdiff store list fleet/service=api
  pprofdiff fleet/service=api/build=122 fleet/service=api/build=123     keys select profiles, as file names do
  pprofdiff batch fleet/build=122 fleet/build=123 --rank                all services of two builds
  pprofdiff series fleet/service=api                                    the builds of one service, in order";

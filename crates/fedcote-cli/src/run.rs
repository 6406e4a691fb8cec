//! `fedcote run`.

use crate::error::Error;

/// (in the making)
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> Result<(), Error> {
    Err(Error::work("run is not built yet"))
}

//! `fedcote network`.

use crate::error::Error;

/// (in the making)
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> Result<(), Error> {
    Err(Error::work("network is not built yet"))
}

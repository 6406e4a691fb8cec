//! `fedcote evaluate`.

use crate::error::Error;

/// (in the making)
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> Result<(), Error> {
    Err(Error::work("evaluate is not built yet"))
}

//! `fedcote network import`: traces of others.

use std::path::PathBuf;

use clap::ValueEnum as _;
use fedcote_radio::import::{Format, Request, import};

use crate::arguments::{number, whole};
use crate::error::Error;

/// Turn a trace of others into one of this program, for network.kind = "trace"
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fedcote network import fedscale client_behave_trace client_device_capacity --deadline 300 --out trace.csv
  fedcote network import bandwidth traces/*.log --bits 17657152 --deadline 30 --slot 60 --out trace.csv
  fedcote run --set network.kind=trace --set network.file=trace.csv --set clients=20

A pickle is read without running what is in it.
Exit status: 0 done, 1 the work failed, 2 the request was wrong.")]
pub struct Args {
    /// Whose trace it is
    #[arg(value_enum)]
    format: FormatName,
    /// Its files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Seconds from the start of a round to the end of the upload
    #[arg(long, value_name = "S", default_value_t = 60.0, allow_negative_numbers = true, value_parser = number)]
    deadline: f64,
    /// Bits of the model that is sent, for `bandwidth` and the capacities of `fedscale` [default: 763520, that of 23,860 parameters]
    #[arg(long, value_name = "B", allow_negative_numbers = true, value_parser = number)]
    bits: Option<f64>,
    /// Seconds from the start of one round to that of the next
    #[arg(long, value_name = "S", default_value_t = 600.0, allow_negative_numbers = true, value_parser = number)]
    slot: f64,
    /// Rounds to write
    #[arg(long, value_name = "R", default_value_t = 100, value_parser = whole::<u32>(1..=u32::MAX.into()))]
    rounds: u32,
    /// Clients to write; with more than the trace has, some share one, at other times of it [default: as many as it has]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=100_000_000))]
    clients: Option<u64>,
    /// Seconds of computing in a round, for `flash` and `bandwidth` [default: 0]
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = number)]
    compute: Option<f64>,
    /// Samples that a client trains on in a round, for the capacities of `fedscale` [default: 640]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number)]
    samples: Option<f64>,
    /// Starts of a round to try, spread over its slot; a failure is the share of them that fails
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=100_000))]
    starts: u32,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    /// FedScale's pickles: `client_behave_trace`, `client_device_capacity`, or both
    Fedscale,
    /// FLASH's `state_traces.json`
    Flash,
    /// Lines of `seconds Mbit/s`, one file per client
    Bandwidth,
    /// Lines of `client,on,off`, in seconds
    Intervals,
}

impl Args {
    /// Refuses what the format does not use.
    fn check_effect(&self) -> Result<(), Error> {
        use FormatName::{Bandwidth, Fedscale, Flash};
        let given = [
            ("bits", self.bits, &[Fedscale, Bandwidth][..]),
            ("compute", self.compute, &[Flash, Bandwidth]),
            ("samples", self.samples, &[Fedscale]),
        ];
        let idle = |(_, value, formats): &(&str, Option<f64>, &[FormatName])| {
            value.is_some() && !formats.contains(&self.format)
        };
        match given.into_iter().find(idle) {
            None => Ok(()),
            Some((name, ..)) => {
                let format = self.format.to_possible_value();
                let format = format.as_ref().map_or("this format", |format| format.get_name());
                Err(Error::request(format!("--{name}: has no effect on {format}: leave it out")))
            }
        }
    }
}

pub fn run(args: &Args) -> Result<(), Error> {
    args.check_effect()?;
    args.out.as_ref().map_or(Ok(()), |file| crate::output::file("--out", file))?;
    let format = match args.format {
        FormatName::Fedscale => Format::Fedscale,
        FormatName::Flash => Format::Flash,
        FormatName::Bandwidth => Format::Bandwidth,
        FormatName::Intervals => Format::Intervals,
    };
    let default = Request::default();
    let request = Request {
        clients: args.clients.map(|clients| clients as usize),
        rounds: args.rounds,
        slot: args.slot,
        deadline: args.deadline,
        bits: args.bits.unwrap_or(default.bits),
        compute: args.compute.unwrap_or(default.compute),
        samples: args.samples.unwrap_or(default.samples),
        starts: args.starts,
    };
    let text = import(format, &args.files, &request).map_err(|error| match error {
        fedcote_radio::Error::Setting(error) => Error::request(format!("--{error}")),
        other => Error::request(other),
    })?;
    match &args.out {
        None => crate::output::print(&text),
        Some(file) => fedcote_support::write(file, text.as_bytes()).map_err(Error::work),
    }
}

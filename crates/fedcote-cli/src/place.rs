//! Where runs are computed: on this machine, or on a cluster.

use fedcote_sim::remote::Remote;

use crate::arguments::whole;
use crate::error::Error;
use crate::extensions::{Ray, Session};

/// Where runs are computed.
#[derive(clap::Args)]
pub struct Place {
    /// Compute on a cluster of Ray instead of this machine's threads; needs the Python package:
    /// pip install 'fedcote[ray]'
    #[arg(long, value_name = "ray", value_parser = ["ray"], hide_possible_values = true)]
    #[arg(conflicts_with = "threads")]
    on: Option<String>,
    /// The cluster: HOST:PORT, `auto` for one that this machine belongs to, `local` to start one for this command
    /// [default: auto]
    #[arg(long, value_name = "ADDRESS", requires = "on")]
    address: Option<String>,
    /// Processors that a run gets on the cluster [default: 1]
    #[arg(long, value_name = "N", requires = "on", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u16>(1..=1024))]
    cpus_per_run: Option<u16>,
    /// Rounds that a task of the cluster computes, and that are lost with a node [default: checkpoint_every]
    #[arg(long, value_name = "R", requires = "on", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u32>(1..=u32::MAX.into()))]
    rounds_per_task: Option<u32>,
}

impl Place {
    /// The cluster, connected; nothing for this machine.
    pub fn connect(&self, session: &Session) -> Result<Option<Box<dyn Remote>>, Error> {
        if self.on.is_none() {
            return Ok(None);
        }
        let Some(connect) = &session.extensions.ray else {
            return Err(Error::request(
                "--on ray needs the Python package: pip install 'fedcote[ray]', then call the `fedcote` that it installs",
            ));
        };
        let ray = Ray {
            address: self.address.clone(),
            cpus_per_run: self.cpus_per_run.unwrap_or(1).into(),
            rounds_per_task: self.rounds_per_task,
        };
        Ok(Some(connect(&ray)?))
    }

    /// The flags as given, to repeat the command.
    pub fn words(&self) -> Vec<String> {
        let given = [
            ("--on", self.on.clone()),
            ("--address", self.address.clone()),
            ("--cpus-per-run", self.cpus_per_run.map(|cpus| cpus.to_string())),
            ("--rounds-per-task", self.rounds_per_task.map(|rounds| rounds.to_string())),
        ];
        let words = given.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        words.flatten().collect()
    }
}

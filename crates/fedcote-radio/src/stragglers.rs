//! Clients that are late: compute time and upload against the limit of a round.

use fedcote::random::Stream;
use rand_distr::{Distribution, Exp1, StandardNormal};

use crate::config::{ComputeTime, NetworkConfig, PerClient};
use crate::link::outage;

/// Lateness of clients whose compute time is random.
#[derive(Debug, Clone)]
pub(crate) struct Lateness {
    compute: ComputeTime,
    mean: PerClient,
    spread: f64,
    /// What the upload leaves for computing.
    time: f64,
}

impl Lateness {
    /// None when nobody computes for any time.
    pub(crate) fn new(config: &NetworkConfig) -> Option<Self> {
        let stragglers = &config.stragglers;
        (stragglers.compute != ComputeTime::None).then(|| Self {
            compute: stragglers.compute,
            mean: stragglers.mean_seconds.clone(),
            spread: stragglers.spread,
            time: config.limit_seconds().unwrap_or(f64::INFINITY) - config.deadline_seconds,
        })
    }

    /// The mean of the logarithm of a log-normal time with this mean: ln m − s²/2.
    fn location(&self, client: usize) -> f64 {
        self.mean.get(client).ln() - 0.5 * self.spread * self.spread
    }

    /// The probability to be late: exp(−t/m), or 1 − Φ((ln t − μ)/s).
    pub(crate) fn failure(&self, client: usize) -> f64 {
        match self.compute {
            ComputeTime::None => 0.0,
            ComputeTime::Exponential => (-self.time / self.mean.get(client)).exp(),
            ComputeTime::LogNormal => outage(self.time.ln() - self.location(client), self.spread),
        }
    }

    /// The mean compute time of a client.
    pub(crate) fn mean_seconds(&self, client: usize) -> f64 {
        self.mean.get(client)
    }

    /// How long one computation takes, and whether that is in time.
    pub(crate) fn compute(&self, client: usize, stream: &mut Stream) -> (f64, bool) {
        let seconds = match self.compute {
            ComputeTime::None => 0.0,
            ComputeTime::Exponential => {
                let unit: f64 = Exp1.sample(stream);
                self.mean.get(client) * unit
            }
            ComputeTime::LogNormal => {
                let unit: f64 = StandardNormal.sample(stream);
                (self.location(client) + self.spread * unit).exp()
            }
        };
        (seconds, seconds < self.time)
    }
}

//! Variants: the scenarios of the paper's evaluation, each with a folder name that can be read.

use std::fmt;
use std::str::FromStr;

use fedcote_sim::Scenario;

use crate::error::Error;

/// Which network the clients are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Network {
    /// The paper's link parameters as printed
    Literal,
    /// The same with extra loss outdoors, on one placement that loses no label, both fitted to FedAvg's accuracy
    Calibrated,
    /// The same loss, every seed with its own placement: most of them lose labels
    Harsh,
}

impl Network {
    /// The names of all, as the user types them.
    pub const NAMES: [&str; 3] = ["literal", "calibrated", "harsh"];
}

impl FromStr for Network {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name, &[Self::Literal, Self::Calibrated, Self::Harsh])
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Literal => "literal",
            Self::Calibrated => "calibrated",
            Self::Harsh => "harsh",
        })
    }
}

/// What is learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// MNIST with 784×30×10
    Mnist,
    /// CIFAR-10 with ResNet-20 (bring the data)
    Cifar10,
}

impl Task {
    /// The names of all, as the user types them.
    pub const NAMES: [&str; 2] = ["mnist", "cifar10"];
}

impl FromStr for Task {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name, &[Self::Mnist, Self::Cifar10])
    }
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Mnist => "mnist",
            Self::Cifar10 => "cifar10",
        })
    }
}

/// The one of `all` that is displayed as `name`.
fn named<T: fmt::Display + Copy>(name: &str, all: &[T]) -> Result<T, String> {
    let found = all.iter().copied().find(|one| one.to_string() == name);
    found.ok_or_else(|| {
        let known: Vec<String> = all.iter().map(T::to_string).collect();
        format!("expected one of {}, found `{name}`", known.join(", "))
    })
}

/// How clients share the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Share {
    /// Shuffled and dealt.
    Iid,
    /// Two labels per client: the paper's non-i.i.d. case.
    Pairs,
    /// One label per client.
    OneLabel,
    /// A Dirichlet mix per client; the concentration in tenths.
    Dirichlet(u8),
}

/// Keys of a scenario, and what tells its folder from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setting {
    pub slug: &'static str,
    pub keys: &'static [&'static str],
}

/// One scenario of the evaluation, apart from schemes and seeds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variant {
    pub network: Network,
    pub task: Task,
    pub share: Share,
    /// The paper's u, in tenths.
    pub unbalance: u8,
    /// K.
    pub selected: u64,
    /// Clients walk.
    pub walking: bool,
    /// Evaluated after every round.
    pub every_round: bool,
    /// The training loss is worked out after every round.
    pub every_loss: bool,
    /// Keys beside those above.
    pub setting: Option<Setting>,
    /// Loss outdoors in tenths of a dB, instead of the network's own.
    pub excess: Option<u16>,
    /// The seed of the placement, instead of the network's own.
    pub placement: Option<u64>,
    /// FedAWE's protocol with this pattern of availability, instead of the network and the shares above.
    pub rivals: Option<&'static str>,
    /// Rounds, if not the paper's.
    pub rounds: Option<u32>,
}

impl Variant {
    /// Balanced, K = 10, standing clients who tell how often they fail.
    pub fn new(network: Network, task: Task, share: Share, rounds: Option<u32>) -> Self {
        Self {
            network,
            task,
            share,
            unbalance: 5,
            selected: 10,
            walking: false,
            every_round: false,
            every_loss: false,
            setting: None,
            excess: None,
            placement: None,
            rivals: None,
            rounds,
        }
    }

    /// The folder's name: everything that makes the variant differ from another.
    pub fn slug(&self) -> String {
        if let Some(pattern) = self.rivals {
            return format!("fedawe-{}-{pattern}", self.task) + &self.rest();
        }
        let mut slug = match self.excess {
            Some(excess) => format!("excess{}-{}", tenths(excess), self.task),
            None => format!("{}-{}", self.network, self.task),
        };
        slug += &match self.share {
            Share::Iid => "-iid".to_owned(),
            Share::Pairs => "-pairs".to_owned(),
            Share::OneLabel => "-one-label".to_owned(),
            Share::Dirichlet(concentration) => {
                format!("-dirichlet{}", tenths(concentration.into()))
            }
        };
        slug += &format!("-u{}-k{}", tenths(self.unbalance.into()), self.selected);
        for (is, name) in [
            (self.walking, "-walking"),
            (self.every_round, "-every-round"),
            (self.every_loss, "-every-loss"),
        ] {
            if is {
                slug += name;
            }
        }
        if let Some(placement) = self.placement {
            slug += &format!("-placement{placement}");
        }
        slug + &self.rest()
    }

    /// The end of the folder's name.
    fn rest(&self) -> String {
        let setting = self.setting.map_or(String::new(), |setting| format!("-{}", setting.slug));
        setting + &self.rounds.map_or(String::new(), |rounds| format!("-r{rounds}"))
    }

    /// The scenario for these schemes and seeds.
    pub fn scenario(&self, schemes: &[String], seeds: &[u64]) -> Result<Scenario, Error> {
        if let Some(pattern) = self.rivals {
            return self.rivalry(pattern, schemes, seeds);
        }
        let preset = match (self.task, self.network) {
            (Task::Mnist, Network::Literal) => "paper-literal",
            (Task::Mnist, Network::Calibrated) => "paper-calibrated",
            (Task::Mnist, Network::Harsh) => "paper-harsh",
            (Task::Cifar10, _) => "cifar10",
        };
        let mut set = vec![
            format!("selected={}", self.selected),
            format!("seeds={seeds:?}"),
            format!("schemes={schemes:?}"),
        ];
        let partition = match self.share {
            Share::Iid => "iid",
            Share::Pairs => "label-pairs",
            Share::OneLabel => "one-label",
            Share::Dirichlet(_) => "dirichlet",
        };
        set.push(format!("data.partition={partition}"));
        if let Share::Dirichlet(concentration) = self.share {
            set.push(format!("data.concentration={}", tenths(concentration.into())));
        }
        if self.unbalance != 5 {
            set.push(format!("data.unbalance={}", tenths(self.unbalance.into())));
        }
        if self.walking {
            set.push("network.mobility=walk".into());
        }
        if self.every_round || self.every_loss {
            set.push("evaluate_every=1".into());
        }
        if !self.every_loss {
            // Only figure 9 shows the loss on its way.
            set.push("train_loss_every=50".into());
        }
        for key in self.setting.iter().flat_map(|setting| setting.keys) {
            set.push((*key).to_owned());
        }
        match (self.excess, self.network, self.task) {
            (Some(excess), ..) => {
                set.push(format!("network.outdoor_excess_loss_db={}", tenths(excess)));
            }
            (None, Network::Literal, Task::Cifar10) => {
                set.push("network.outdoor_excess_loss_db=0.0".into());
            }
            _ => {}
        }
        if let Some(placement) = self.placement {
            set.push(format!("network.placement={placement}"));
        }
        if let Some(rounds) = self.rounds {
            set.push(format!("rounds={rounds}"));
            if self.task == Task::Cifar10 {
                // The paper lowers the rate after six tenths of its rounds.
                let from = (u64::from(rounds) * 6 / 10).max(1) + 1;
                set.push(format!("training.rate_changes=[[{from}, 0.01]]"));
            }
        }
        for scheme in schemes {
            set.extend(parameters(scheme));
        }
        let mut scenario = Scenario::load(preset, &set)?;
        if self.placement.is_none() && self.network != Network::Calibrated {
            // The preset of CIFAR-10 fixes one.
            scenario.network.placement = None;
        }
        Ok(scenario)
    }

    /// FedAWE's protocol.
    fn rivalry(&self, pattern: &str, schemes: &[String], seeds: &[u64]) -> Result<Scenario, Error> {
        let preset = match self.task {
            Task::Mnist => "fedawe-mnist",
            Task::Cifar10 => "fedawe",
        };
        let mut set = vec![
            format!("seeds={seeds:?}"),
            format!("schemes={schemes:?}"),
            format!("network.availability.pattern={pattern}"),
        ];
        set.extend(self.setting.iter().flat_map(|s| s.keys).map(|key| (*key).to_owned()));
        set.extend(self.rounds.map(|rounds| format!("rounds={rounds}")));
        set.extend(schemes.iter().flat_map(|scheme| parameters(scheme)));
        Ok(Scenario::load(preset, &set)?)
    }

    /// The rounds of its runs.
    pub fn rounds(&self) -> Result<u32, Error> {
        Ok(self.scenario(&["fedavg".to_owned()], &[1])?.general.rounds)
    }

    /// What is special about it, in words.
    pub fn words(&self) -> String {
        if let Some(pattern) = self.rivals {
            return pattern.replace('-', " ");
        }
        let share = match self.share {
            Share::Iid => "i.i.d.".to_owned(),
            Share::Pairs => "two labels per client".to_owned(),
            Share::OneLabel => "one label per client".to_owned(),
            Share::Dirichlet(tenth) => format!("Dirichlet {}", tenths(tenth.into())),
        };
        let unbalance = match self.unbalance {
            5 => String::new(),
            tenth => format!(", u = {}", tenths(tenth.into())),
        };
        share + &unbalance + if self.walking { ", walking" } else { "" }
    }
}

/// `value`/10 as a decimal number.
pub fn tenths(value: u16) -> String {
    format!("{}.{}", value / 10, value % 10)
}

/// The overrides that define a scheme which is a named one with a parameter.
fn parameters(scheme: &str) -> Vec<String> {
    let of = |base: &str, keys: &[&str]| {
        let base = std::iter::once(format!("base={base}"));
        let all = base.chain(keys.iter().map(|key| (*key).to_owned()));
        all.map(|key| format!("scheme.{scheme}.{key}")).collect()
    };
    if let Some(k_apx) = scheme.strip_prefix("fedcote-ii-") {
        return match k_apx.strip_suffix("-covered") {
            Some(k_apx) => of("fedcote-ii", &[&format!("k_apx={k_apx}"), "coverage=true"]),
            None => of("fedcote-ii", &[&format!("k_apx={k_apx}")]),
        };
    }
    match scheme {
        "scaffold-printed" => of("scaffold", &["control=printed"]),
        "scaffold-trained" => of("scaffold", &["advance=trained"]),
        "scaffold-trained-printed" => of("scaffold", &["advance=trained", "control=printed"]),
        "tf-aggregation-renormalised" => of("tf-aggregation", &["renormalised=true", "retry=true"]),
        "newt-previous" => of("newt", &["differences=previous"]),
        "power-of-choice-own" => of("power-of-choice", &["loss=own"]),
        "fedyogi-gamma" => of("fedyogi", &["server_rate=0.05"]),
        "fedprox-mean" => of("fedprox", &["aggregation=mean"]),
        "fedcote-printed" => of("fedcote-gradient", &["solver=printed"]),
        "fedcote-systematic" => of("fedcote", &["draws=systematic"]),
        "fedcote-systematic-matched" => of("fedcote-matched", &["draws=systematic"]),
        "fedcote-memory-appearance" => of("fedcote-memory", &["aim=appearance"]),
        "fedcote-memory-85" => of("fedcote-memory", &["threshold=0.85"]),
        "fedcote-memory-99" => of("fedcote-memory", &["threshold=0.99"]),
        "fedcote-memory-all" => of("fedcote-memory", &["threshold=1.0"]),
        "fedcote-memory-labels" => of("fedcote-control", &["memory=labels", "correction=none"]),
        "fedcote-control-labels" => of("fedcote-control", &["memory=labels"]),
        "fedcote-control-full" => of("fedcote-control", &["correction=full"]),
        "fedcote-control-auto" => of("fedcote-control", &["server_rate=auto"]),
        "scaffold-rate-2" => of("scaffold", &["server_rate=2.0"]),
        "ideal-scaffold" => of("scaffold", &["failures=none"]),
        "ideal-control" => of("fedcote-control", &["failures=none"]),
        "fedcote-scaffold" => of("fedcote", &["local=scaffold"]),
        "fedcote-uncovered" => of("fedcote", &["coverage=false"]),
        "fedcote-gradient-covered" => of("fedcote-gradient", &["coverage=true"]),
        "ideal-systematic" => of("ideal", &["draws=systematic"]),
        "fedawe-unclipped" => of("fedawe", &["clip=0.0"]),
        "ideal-memory" => of("ideal", &["aggregation=memory"]),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in Network::NAMES {
            assert_eq!(name.parse::<Network>().unwrap().to_string(), name);
        }
        for name in Task::NAMES {
            assert_eq!(name.parse::<Task>().unwrap().to_string(), name);
        }
        let refused = "mnits".parse::<Task>().unwrap_err();
        assert_eq!(refused, "expected one of mnist, cifar10, found `mnits`");
    }

    #[test]
    fn every_difference_is_in_the_name_and_in_the_scenario() {
        let plain = Variant::new(Network::Calibrated, Task::Mnist, Share::Pairs, None);
        assert_eq!(plain.slug(), "calibrated-mnist-pairs-u0.5-k10");
        let others = [
            Variant { network: Network::Literal, ..plain.clone() },
            Variant { share: Share::Iid, ..plain.clone() },
            Variant { share: Share::Dirichlet(3), ..plain.clone() },
            Variant { share: Share::Dirichlet(1), ..plain.clone() },
            Variant { unbalance: 9, ..plain.clone() },
            Variant { selected: 20, ..plain.clone() },
            Variant { walking: true, ..plain.clone() },
            Variant { every_round: true, ..plain.clone() },
            Variant { every_loss: true, ..plain.clone() },
            Variant { setting: Some(crate::beyond::ESTIMATED), ..plain.clone() },
            Variant { excess: Some(195), ..plain.clone() },
            Variant { placement: Some(4), ..plain.clone() },
            Variant { network: Network::Harsh, ..plain.clone() },
            Variant { rounds: Some(20), ..plain.clone() },
            Variant { rivals: Some("sine"), ..plain.clone() },
            Variant { rivals: Some("staircase"), ..plain.clone() },
            Variant { task: Task::Cifar10, ..plain.clone() },
        ];
        let schemes = ["fedavg", "fedcote-ii-2", "ideal-memory"].map(str::to_owned);
        let mut seen = vec![(plain.slug(), plain.scenario(&schemes, &[1]).unwrap().to_toml())];
        for other in others {
            let (slug, scenario) =
                (other.slug(), other.scenario(&schemes, &[1]).unwrap().to_toml());
            assert!(seen.iter().all(|(name, text)| *name != slug && *text != scenario), "{slug}");
            seen.push((slug, scenario));
        }
    }

    /// The paper: 10,000 rounds, from 6,001 on at a tenth of the rate.
    #[test]
    fn the_schedule_of_cifar10_is_scaled_with_the_rounds() {
        let rates = |rounds| {
            let variant = Variant::new(Network::Calibrated, Task::Cifar10, Share::Pairs, rounds);
            let scenario = variant.scenario(&["fedavg".to_owned()], &[1]).unwrap();
            (scenario.general.rounds, scenario.training.rate_changes)
        };
        assert_eq!(rates(None), (10_000, vec![(6001, 0.01)]));
        assert_eq!(rates(Some(1000)), (1000, vec![(601, 0.01)]));
    }
}

//! How training samples are divided among clients.
//!
//! Every scheme assigns every sample to exactly one client and leaves no client empty, or refuses and says
//! what would fit. Clients are numbered from 0 here, from 1 in the paper; `unbalance` is the paper's u, the
//! share that goes to its even-numbered clients, which are 1, 3, 5, … here.

use fedcote::random::{Key, Purpose, Stream};
use rand::{RngExt, seq::SliceRandom};
use rand_distr::{Distribution, Gamma};

use crate::{
    Error,
    data::{DataSpec, PartitionKind},
};

/// Which samples each client holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Where each client's samples start, and the end.
    starts: Vec<u32>,
    samples: Vec<u32>,
}

impl Partition {
    /// The samples of a client, in increasing order.
    pub fn client(&self, client: usize) -> &[u32] {
        &self.samples[self.starts[client] as usize..self.starts[client + 1] as usize]
    }

    /// The number of clients.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no clients. A partition that [`partition`] made has at least one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many samples of each class each client holds: clients × classes.
    pub fn label_counts(&self, labels: &[u8], classes: usize) -> Vec<u32> {
        let mut counts = vec![0; self.len() * classes];
        for (client, counts) in counts.chunks_exact_mut(classes).enumerate() {
            for &sample in self.client(client) {
                counts[usize::from(labels[sample as usize])] += 1;
            }
        }
        counts
    }

    /// The partition in which client i holds the next `sizes[i]` of these samples.
    fn cut(sizes: &[usize], mut samples: Vec<u32>) -> Self {
        let mut starts = Vec::with_capacity(sizes.len() + 1);
        let mut start = 0;
        starts.push(0);
        for &size in sizes {
            samples[start..start + size].sort_unstable();
            start += size;
            starts.push(start as u32);
        }
        Self { starts, samples }
    }
}

/// Divides the samples with these labels among clients.
///
/// - `iid`: shuffled, then dealt.
/// - `label-pairs`: labels 2g and 2g + 1 belong to the g-th of equal blocks of consecutive clients (with ten
///   labels and twenty clients, clients 4g + 1 to 4g + 4), who share them shuffled.
/// - `one-label`: the same with one label per block.
/// - `dirichlet`: each client draws a label mix from a symmetric Dirichlet distribution of parameter
///   `concentration`, then its samples by that mix from what is left; clients choose in random order
///   (Hsu, Qi and Brown, 2019).
/// - `dirichlet-cut`: each client draws a label mix in the same way, and the samples of a label, in their order, are cut
///   among all clients in proportion to its share in their mixes (FedAU, FedAWE): clients differ in size.
/// - `shards`: samples sorted by label, cut into `shards_per_client` equal shards per client, dealt
///   (McMahan et al., 2017).
///
/// In the first four, sizes are equal up to rounding, or unequal by `unbalance`.
///
/// # Errors
///
/// When a setting cannot work, or a client would be left without samples.
///
/// # Panics
///
/// When a label is not below `classes`.
pub fn partition<Label: Copy + Into<usize>>(
    spec: &DataSpec,
    labels: &[Label],
    classes: usize,
    clients: usize,
    seed: u64,
) -> Result<Partition, Error> {
    spec.check()?;
    if clients == 0 || clients > u32::MAX as usize {
        return Err(Error::setting("clients", "must be at least 1, and below 2^32"));
    }
    if labels.len() > u32::MAX as usize {
        return Err(Error::setting("data.samples", "more than 2^32 samples cannot be divided"));
    }
    let unbalance = spec.unbalance.unwrap_or(0.5);
    let mut stream = Key::new(seed, Purpose::Partition).stream();
    match spec.partition {
        PartitionKind::Iid => {
            let mut samples: Vec<u32> = (0..labels.len() as u32).collect();
            samples.shuffle(&mut stream);
            Ok(Partition::cut(&sizes(samples.len(), 0, clients, unbalance)?, samples))
        }
        PartitionKind::LabelPairs => blocks(labels, classes, 2, clients, unbalance, &mut stream),
        PartitionKind::OneLabel => blocks(labels, classes, 1, clients, unbalance, &mut stream),
        PartitionKind::Dirichlet => {
            let sizes = sizes(labels.len(), 0, clients, unbalance)?;
            let mixes = Mixes::new(spec.concentration.unwrap_or(0.5), classes)?;
            Ok(dirichlet(by_label(labels, classes), &sizes, mixes, &mut stream))
        }
        PartitionKind::DirichletCut => {
            let mixes = Mixes::new(spec.concentration.unwrap_or(0.5), classes)?;
            dirichlet_cut(&by_label(labels, classes), clients, mixes, &mut stream)
        }
        PartitionKind::Shards => {
            shards(labels, classes, clients, spec.shards_per_client.unwrap_or(2), &mut stream)
        }
    }
}

/// How many of `samples` each of the clients `first..end` gets; at least one each.
fn sizes(samples: usize, first: usize, end: usize, unbalance: f64) -> Result<Vec<usize>, Error> {
    let favoured = |client: usize| client % 2 == 1;
    let many = (first..end).filter(|&client| favoured(client)).count();
    let few = end - first - many;
    let share = |client| match (few, many) {
        // A block without clients of one kind belongs to the other.
        (0, _) | (_, 0) => 1.0 / (end - first) as f64,
        _ if favoured(client) => unbalance / many as f64,
        _ => (1.0 - unbalance) / few as f64,
    };
    let mut sizes = Vec::with_capacity(end - first);
    let (mut sum, mut given) = (0.0, 0);
    for client in first..end {
        sum += share(client);
        // Cutting at rounded running sums keeps every size within one of its share, and their sum exact.
        let until =
            if client + 1 == end { samples } else { (samples as f64 * sum).round() as usize };
        let size = until.saturating_sub(given);
        if size == 0 {
            let least = (1.0 / share(first).min(share(end - 1))).ceil();
            let reason = format!(
                "client {} would have no samples: {samples} for {} clients; at least {least} samples, fewer \
                 clients or an unbalance nearer 0.5 would fit",
                client + 1,
                end - first
            );
            return Err(Error::setting("data.partition", reason));
        }
        sizes.push(size);
        given = until;
    }
    Ok(sizes)
}

/// Sample numbers by label.
fn by_label<Label: Copy + Into<usize>>(labels: &[Label], classes: usize) -> Vec<Vec<u32>> {
    let mut pools = vec![Vec::new(); classes];
    for (sample, &label) in (0..).zip(labels) {
        pools[label.into()].push(sample);
    }
    pools
}

/// Consecutive clients share `width` consecutive labels.
fn blocks<Label: Copy + Into<usize>>(
    labels: &[Label],
    classes: usize,
    width: usize,
    clients: usize,
    unbalance: f64,
    stream: &mut Stream,
) -> Result<Partition, Error> {
    let blocks = classes.div_ceil(width);
    if clients < blocks {
        let reason =
            format!("{classes} labels need at least {blocks} clients so that none is left out");
        return Err(Error::setting("data.partition", reason));
    }
    let mut all_sizes = Vec::with_capacity(clients);
    let mut samples = Vec::with_capacity(labels.len());
    for (block, pools) in by_label(labels, classes).chunks(width).enumerate() {
        let mut pool = pools.concat();
        pool.shuffle(stream);
        let (first, end) = (block * clients / blocks, (block + 1) * clients / blocks);
        all_sizes.extend(sizes(pool.len(), first, end, unbalance)?);
        samples.extend(pool);
    }
    Ok(Partition::cut(&all_sizes, samples))
}

/// Label mixes drawn from a symmetric Dirichlet distribution.
struct Mixes {
    gamma: Gamma<f64>,
    mix: Vec<f64>,
}

impl Mixes {
    fn new(concentration: f64, classes: usize) -> Result<Self, Error> {
        let gamma = Gamma::new(concentration, 1.0);
        let gamma =
            gamma.map_err(|error| Error::setting("data.concentration", error.to_string()))?;
        Ok(Self { gamma, mix: vec![0.0; classes] })
    }

    /// A mix, not normalised.
    fn draw(&mut self, stream: &mut Stream) -> &mut [f64] {
        self.mix.fill_with(|| self.gamma.sample(stream));
        if !self.mix.iter().any(|&weight| weight > f64::MIN_POSITIVE) {
            // All underflowed. One weight then dwarfs the others, each with the same probability.
            let only = stream.random_range(0..self.mix.len());
            self.mix[only] = 1.0;
        }
        &mut self.mix
    }
}

fn dirichlet(
    mut pools: Vec<Vec<u32>>,
    sizes: &[usize],
    mut mixes: Mixes,
    stream: &mut Stream,
) -> Partition {
    pools.iter_mut().for_each(|pool| pool.shuffle(stream));
    let mut starts = vec![0; sizes.len()];
    let mut start = 0;
    for (place, &size) in starts.iter_mut().zip(sizes) {
        *place = start;
        start += size;
    }
    let mut order: Vec<u32> = (0..sizes.len() as u32).collect();
    order.shuffle(stream);
    let mut samples = vec![0; start];
    for client in order {
        let client = client as usize;
        let mix = mixes.draw(stream);
        for sample in &mut samples[starts[client]..starts[client] + sizes[client]] {
            *sample = take(&mut pools, mix, stream);
        }
    }
    Partition::cut(sizes, samples)
}

/// Every label's samples, cut at the rounded running sums of its shares in the clients' mixes.
fn dirichlet_cut(
    pools: &[Vec<u32>],
    clients: usize,
    mut mixes: Mixes,
    stream: &mut Stream,
) -> Result<Partition, Error> {
    let mixes: Vec<Vec<f64>> = (0..clients)
        .map(|_| {
            let mix = mixes.draw(stream);
            let total: f64 = mix.iter().sum();
            mix.iter().map(|weight| weight / total).collect()
        })
        .collect();
    let mut own = vec![Vec::new(); clients];
    for (label, pool) in pools.iter().enumerate() {
        let total: f64 = mixes.iter().map(|mix| mix[label]).sum();
        let (mut sum, mut given) = (0.0, 0);
        for (client, own) in own.iter_mut().enumerate() {
            // A label that no mix has goes to everyone.
            let even = 1.0 / clients as f64;
            sum += if total > 0.0 { mixes[client][label] / total } else { even };
            let until = match client + 1 == clients {
                true => pool.len(),
                false => ((pool.len() as f64 * sum).round() as usize).clamp(given, pool.len()),
            };
            own.extend_from_slice(&pool[given..until]);
            given = until;
        }
    }
    if let Some(client) = own.iter().position(Vec::is_empty) {
        let reason = format!(
            "client {} would have no samples; fewer clients, another seed or a larger concentration would fit",
            client + 1
        );
        return Err(Error::setting("data.partition", reason));
    }
    let sizes: Vec<usize> = own.iter().map(Vec::len).collect();
    Ok(Partition::cut(&sizes, own.concat()))
}

/// A sample of a label drawn from the mix, among labels that are left.
fn take(pools: &mut [Vec<u32>], mix: &mut [f64], stream: &mut Stream) -> u32 {
    loop {
        let total: f64 = mix.iter().sum();
        if total <= 0.0 {
            // The client's labels are used up: what is left, in proportion.
            mix.iter_mut().zip(&*pools).for_each(|(weight, pool)| *weight = pool.len() as f64);
            continue;
        }
        let mut point = stream.random::<f64>() * total;
        // Rounding may carry the point past the end: the last label with a weight stands in.
        let mut chosen = 0;
        for (label, &weight) in mix.iter().enumerate().filter(|&(_, &weight)| weight > 0.0) {
            chosen = label;
            point -= weight;
            if point < 0.0 {
                break;
            }
        }
        match pools[chosen].pop() {
            Some(sample) => return sample,
            None => mix[chosen] = 0.0,
        }
    }
}

fn shards<Label: Copy + Into<usize>>(
    labels: &[Label],
    classes: usize,
    clients: usize,
    shards_per_client: usize,
    stream: &mut Stream,
) -> Result<Partition, Error> {
    let count = clients.checked_mul(shards_per_client).filter(|&count| count <= labels.len());
    let Some(count) = count else {
        let most = labels.len() / shards_per_client;
        let reason = format!("{} samples make shards for at most {most} clients", labels.len());
        return Err(Error::setting("data.shards_per_client", reason));
    };
    let sorted = by_label(labels, classes).concat();
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.shuffle(stream);
    let start = |shard: usize| (shard as u64 * labels.len() as u64 / count as u64) as usize;
    let mut samples = Vec::with_capacity(labels.len());
    let mut sizes = Vec::with_capacity(clients);
    for dealt in order.chunks_exact(shards_per_client) {
        let before = samples.len();
        for &shard in dealt {
            samples.extend_from_slice(&sorted[start(shard as usize)..start(shard as usize + 1)]);
        }
        sizes.push(samples.len() - before);
    }
    Ok(Partition::cut(&sizes, samples))
}

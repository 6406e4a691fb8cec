//! Partitions: invariants for any size, and the paper's tables.

use fedcote_learn::{
    Partition,
    data::{DataSpec, PartitionKind},
    partition,
};
use proptest::prelude::*;

fn spec(partition: PartitionKind) -> DataSpec {
    DataSpec { partition, ..DataSpec::default() }
}

/// Every sample belongs to exactly one client, and no client is empty.
fn check(partition: &Partition, samples: usize, clients: usize) {
    assert_eq!(partition.len(), clients);
    let mut owners = vec![0; samples];
    for client in 0..clients {
        let own = partition.client(client);
        assert!(!own.is_empty(), "client {client} is empty");
        assert!(own.is_sorted());
        own.iter().for_each(|&sample| owners[sample as usize] += 1);
    }
    assert!(owners.iter().all(|&count| count == 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_sample_has_one_owner_and_every_owner_a_sample(
        labels in prop::collection::vec(0_u8..7, 1..600),
        clients in 1_usize..80,
        unbalance in prop_oneof![Just(0.5), 0.01..0.99],
        concentration in 1e-3..10.0,
        shards_per_client in 1_usize..5,
        kind in 0_usize..6,
        seed in 0_u64..1_000,
    ) {
        use PartitionKind::*;
        let mut spec = spec([Iid, LabelPairs, OneLabel, Dirichlet, Shards, DirichletCut][kind]);
        match spec.partition {
            Shards => spec.shards_per_client = Some(shards_per_client),
            Dirichlet | DirichletCut => spec.concentration = Some(concentration),
            _ => {}
        }
        if !matches!(spec.partition, Shards | DirichletCut) {
            spec.unbalance = Some(unbalance);
        }
        match partition(&spec, &labels, 7, clients, seed) {
            Ok(result) => {
                check(&result, labels.len(), clients);
                prop_assert_eq!(&result, &partition(&spec, &labels, 7, clients, seed).unwrap());
                let counts = result.label_counts(&labels, 7);
                for client in 0..clients {
                    let held = counts[client * 7..][..7].iter().filter(|&&count| count > 0).count();
                    match spec.partition {
                        LabelPairs => prop_assert!(held <= 2),
                        OneLabel => prop_assert_eq!(held, 1),
                        _ => {}
                    }
                }
                if matches!(spec.partition, Iid | Dirichlet) {
                    // Sizes are within one of their shares.
                    let many = clients / 2;
                    for client in 0..clients {
                        let share = match (clients, client % 2) {
                            (1, _) => 1.0,
                            (_, 1) => unbalance / many as f64,
                            _ => (1.0 - unbalance) / (clients - many) as f64,
                        };
                        let off = result.client(client).len() as f64 - share * labels.len() as f64;
                        prop_assert!(off.abs() <= 1.0 + 1e-9, "{off}");
                    }
                }
            }
            // Refused only when it cannot fit: plenty of every label for everybody always fits.
            Err(error) => {
                let fewest = (0..7).map(|label| labels.iter().filter(|&&own| own == label).count()).min();
                let rarest = unbalance.min(1.0 - unbalance);
                let shards = clients * shards_per_client <= labels.len();
                let room = fewest.unwrap() as f64 * rarest >= clients as f64;
                let cut = spec.partition == DirichletCut;
                prop_assert!(!room || clients < 7 || cut || (spec.partition == Shards && !shards), "{error}");
            }
        }
    }
}

/// Ten labels of 600 samples each.
fn balanced() -> Vec<u8> {
    (0..6_000).map(|sample| (sample % 10) as u8).collect()
}

/// Labels are cut, not dealt: what a client has of a label are neighbours, and clients differ in size.
#[test]
fn a_cut_goes_through_every_label_in_order() {
    let labels = balanced();
    let spec = DataSpec { concentration: Some(0.1), ..spec(PartitionKind::DirichletCut) };
    let result = partition(&spec, &labels, 10, 100, 1).unwrap();
    check(&result, labels.len(), 100);
    let mut ends = [0; 10];
    for client in 0..100 {
        for &sample in result.client(client) {
            let label = usize::from(labels[sample as usize]);
            // Sample s of 0, 1, 2, … is the (s / 10)-th of its label.
            assert_eq!(sample as usize / 10, ends[label], "client {client}");
            ends[label] += 1;
        }
    }
    assert_eq!(ends, [600; 10]);
    let sizes: Vec<usize> = (0..100).map(|client| result.client(client).len()).collect();
    let (most, least) = (sizes.iter().max().unwrap(), sizes.iter().min().unwrap());
    assert!(most - least > 10, "{sizes:?}");
    // With a huge concentration all mixes are alike: six samples of every label for everyone.
    let even = DataSpec { concentration: Some(1e6), ..spec };
    let result = partition(&even, &labels, 10, 100, 1).unwrap();
    assert!((0..100).all(|client| result.client(client).len().abs_diff(60) <= 10));
}

/// Clients 2c − 1 and 2c hold label c, 1/100 and 9/100 of all samples when unbalanced: the paper's table.
#[test]
fn one_label_a_client_as_in_the_papers_appendix() {
    let labels = balanced();
    for (unbalance, odd, even) in [(0.5, 300, 300), (0.9, 60, 540)] {
        let spec = DataSpec { unbalance: Some(unbalance), ..spec(PartitionKind::OneLabel) };
        let counts = partition(&spec, &labels, 10, 20, 1).unwrap().label_counts(&labels, 10);
        for (client, counts) in (1..).zip(counts.chunks(10)) {
            let mut expected = [0; 10];
            expected[(client - 1) / 2] = if client % 2 == 1 { odd } else { even };
            assert_eq!(counts, expected, "client {client}");
        }
    }
}

/// Clients 4g + 1 to 4g + 4 share labels 2g and 2g + 1; u of them goes to even numbers.
#[test]
fn two_labels_a_client_as_in_the_paper() {
    let labels = balanced();
    for (unbalance, odd, even) in [(0.5, 300, 300), (0.9, 60, 540), (0.1, 540, 60)] {
        let spec = DataSpec { unbalance: Some(unbalance), ..spec(PartitionKind::LabelPairs) };
        let counts = partition(&spec, &labels, 10, 20, 1).unwrap().label_counts(&labels, 10);
        for (client, counts) in (1..=20).zip(counts.chunks(10)) {
            let own = 2 * ((client - 1) / 4);
            assert_eq!(counts.iter().sum::<u32>(), if client % 2 == 1 { odd } else { even });
            assert_eq!(counts[own] + counts[own + 1], counts.iter().sum::<u32>());
            assert!(counts[own] > 0 && counts[own + 1] > 0);
        }
    }
}

#[test]
fn dirichlet_mixes_go_from_one_label_to_all() {
    let labels = balanced();
    // The expected Σ q² of a symmetric Dirichlet of C labels is (α + 1)/(C α + 1).
    for alpha in [0.05, 0.5, 5.0, 500.0] {
        let spec = DataSpec { concentration: Some(alpha), ..spec(PartitionKind::Dirichlet) };
        let mut sum = 0.0;
        let seeds = 20;
        for seed in 0..seeds {
            let counts = partition(&spec, &labels, 10, 20, seed).unwrap().label_counts(&labels, 10);
            // Half of the clients choose before anything can run out; order is random, so look at all and allow
            // for what the late ones could not have.
            for counts in counts.chunks(10) {
                // 300 draws: E Σ n(n−1) / (300 · 299) = E Σ q².
                let pairs: u32 = counts.iter().map(|&n| n * n.saturating_sub(1)).sum();
                sum += f64::from(pairs) / (300.0 * 299.0) / 20.0 / seeds as f64;
            }
        }
        let expected = (alpha + 1.0) / (10.0 * alpha + 1.0);
        assert!((sum / expected - 1.0).abs() < 0.15, "α {alpha}: {sum} against {expected}");
    }
}

#[test]
fn shards_hold_few_labels() {
    let labels = balanced();
    let result = partition(&spec(PartitionKind::Shards), &labels, 10, 100, 4).unwrap();
    for counts in result.label_counts(&labels, 10).chunks(10) {
        assert_eq!(counts.iter().sum::<u32>(), 60);
        assert!(counts.iter().filter(|&&count| count > 0).count() <= 2);
    }
}

#[test]
fn a_million_clients() {
    let labels: Vec<u8> = (0..3_000_000_u32).map(|sample| (sample % 10) as u8).collect();
    use PartitionKind::*;
    for kind in [Iid, LabelPairs, OneLabel, Dirichlet, Shards] {
        check(&partition(&spec(kind), &labels, 10, 1_000_000, 1).unwrap(), labels.len(), 1_000_000);
    }
}

#[test]
fn refusals_say_what_would_fit() {
    let labels = balanced();
    let refusal = |spec: &DataSpec, clients| {
        partition(spec, &labels, 10, clients, 1).unwrap_err().to_string()
    };
    use PartitionKind::*;
    assert_eq!(refusal(&spec(Iid), 0), "clients: must be at least 1, and below 2^32");
    assert_eq!(
        refusal(&spec(LabelPairs), 4),
        "data.partition: 10 labels need at least 5 clients so that none is left out"
    );
    assert_eq!(
        refusal(&spec(OneLabel), 9),
        "data.partition: 10 labels need at least 10 clients so that none is left out"
    );
    assert_eq!(
        refusal(&spec(Iid), 7_000),
        "data.partition: client 4 would have no samples: 6000 for 7000 clients; at least 7000 samples, fewer \
         clients or an unbalance nearer 0.5 would fit"
    );
    assert_eq!(
        refusal(&spec(Shards), 3_001),
        "data.shards_per_client: 6000 samples make shards for at most 3000 clients"
    );
    let missing = partition(&spec(OneLabel), &[0_u8, 0, 2, 2], 3, 3, 1).unwrap_err().to_string();
    assert!(
        missing.starts_with("data.partition: client 2 would have no samples: 0 for 1 clients"),
        "{missing}"
    );
}

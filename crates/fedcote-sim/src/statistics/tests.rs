use fedcote::random::{Key, Purpose};
use rand::RngExt;

use super::*;

/// `python -c "from scipy.stats import t; print(t.ppf(0.5 + C / 2, N))"`, scipy 1.17.1.
#[test]
fn quantiles_are_those_of_scipy() {
    for (confidence, freedom, expected) in [
        (0.95, 1, 12.706204736174694),
        (0.95, 2, 4.302652729749462),
        (0.95, 3, 3.1824463052837078),
        (0.95, 4, 2.7764451051977934),
        (0.95, 9, 2.262157162798205),
        (0.95, 10, 2.228138851986274),
        (0.95, 29, 2.045229642132703),
        (0.95, 100, 1.9839715185235518),
        (0.95, 999, 1.9623414611334493),
        (0.9, 4, 2.1318467863266495),
        (0.99, 1, 63.656741162871526),
        (0.99, 100, 2.6258905214380173),
    ] {
        let found = quantile(confidence, freedom);
        assert!((found / expected - 1.0).abs() < 1e-10, "{confidence} {freedom}: {found}");
    }
}

/// Another way to the same number: the density, integrated by Simpson's rule up to the quantile.
#[test]
fn the_density_up_to_the_quantile_holds_the_confidence() {
    for freedom in 1..=40 {
        let end = quantile(CONFIDENCE, freedom);
        let n = freedom as f64;
        // Without its constant, which the whole integral gives; beyond the quantile in x = 1/t.
        let density = |t: f64| (1.0 + t * t / n).powf(-0.5 * (n + 1.0));
        let beyond =
            |x: f64| if x == 0.0 { f64::from(freedom == 1) } else { density(1.0 / x) / (x * x) };
        let simpson = |end: f64, of: &dyn Fn(f64) -> f64| {
            let steps = 4000;
            let width = end / f64::from(steps);
            let at = |step: i32| of(width * f64::from(step));
            let inner: f64 = (1..steps).map(|i| f64::from(2 + 2 * (i % 2)) * at(i)).sum();
            width / 3.0 * (at(0) + inner + at(steps))
        };
        let (inside, outside) = (simpson(end, &density), simpson(1.0 / end, &beyond));
        let found = inside / (inside + outside);
        assert!((found - CONFIDENCE).abs() < 1e-7, "{freedom}: {found}");
    }
}

/// `scipy.stats.ttest_rel(a, b).confidence_interval(0.95)`, scipy 1.17.1.
#[test]
fn paired_intervals_are_those_of_scipy() {
    let one = [0.9148, 0.9011, 0.9262, 0.8973, 0.9205];
    let two = [0.8147, 0.9032, 0.8764, 0.8911, 0.8420];
    let by_seed = |values: &[f64]| (1..).zip(values.iter().copied()).collect();
    let found = Difference::between(&by_seed(&one), &by_seed(&two)).unwrap();
    assert!((found.mean - 0.0465).abs() < 1e-15);
    assert!((found.low.unwrap() - -0.008659447008613722).abs() < 1e-13, "{found:?}");
    assert!((found.high.unwrap() - 0.10165944700861373).abs() < 1e-13, "{found:?}");
    assert_eq!((found.above, found.below, found.seeds, found.separable), (4, 1, 5, false));
    let found = Difference::between(&by_seed(&one[..2]), &by_seed(&[0.8147, 0.8032])).unwrap();
    assert!((found.low.unwrap() - 0.08502317479020795).abs() < 1e-13, "{found:?}");
    assert!(found.separable && found.above == 2);
}

#[test]
fn only_seeds_that_both_have_are_paired_and_one_seed_has_no_interval() {
    let one = BTreeMap::from([(1, 0.5), (3, 0.7)]);
    let two = BTreeMap::from([(2, 0.1), (3, 0.75)]);
    let found = Difference::between(&one, &two).unwrap();
    assert_eq!((found.seeds, found.low, found.high), (1, None, None));
    assert!(!found.separable && found.below == 1);
    assert_eq!(Difference::between(&one, &BTreeMap::from([(2, 0.1)])), None);
}

/// Runs of two schemes with a known difference, and with much more in common than apart: the interval contains the true
/// difference in about 95 of 100 comparisons, and is far shorter than one without pairs.
#[test]
fn the_interval_contains_the_known_difference_as_often_as_it_says() {
    let mut stream = Key::new(1, Purpose::Test).stream();
    let mut normal = || {
        // Box and Muller.
        let (one, two): (f64, f64) = (stream.random(), stream.random());
        (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    };
    for seeds in [2, 3, 5, 10] {
        let (truth, comparisons) = (0.02, 10_000);
        let mut inside = 0;
        let mut separable_of_equals = 0;
        for _ in 0..comparisons {
            let mut run = |mean: f64, common: &[f64]| -> BTreeMap<u64, f64> {
                (0..).zip(common.iter().map(|common| mean + common + 0.01 * normal())).collect()
            };
            let common = vec![0.0; seeds];
            let (one, two, three) =
                (run(0.9 + truth, &common), run(0.9, &common), run(0.9, &common));
            let found = Difference::between(&one, &two).unwrap();
            inside += usize::from(found.low.unwrap() <= truth && truth <= found.high.unwrap());
            separable_of_equals +=
                usize::from(Difference::between(&two, &three).unwrap().separable);
        }
        let share = |count: usize| count as f64 / f64::from(comparisons);
        assert!((0.93..=0.97).contains(&share(inside)), "{seeds} seeds: {}", share(inside));
        assert!((0.03..=0.07).contains(&share(separable_of_equals)), "{seeds} seeds");
    }
}

#[test]
fn what_the_seeds_have_in_common_cancels() {
    let difficulty = [0.0, -0.3, 0.2, -0.1, 0.25];
    let with = |gain: f64| (0..).zip(difficulty.iter().map(|d| 0.6 + d + gain)).collect();
    let (one, two): (BTreeMap<u64, f64>, BTreeMap<u64, f64>) = (with(0.011), with(0.0));
    let found = Difference::between(&one, &two).unwrap();
    assert!(found.separable && (found.mean - 0.011).abs() < 1e-12, "{found:?}");
}

fn run(accuracy: f64) -> RunSummary {
    let mut run = RunSummary::so_far(10, 0.9, None, Some(10), &[]);
    (run.tail_accuracy, run.seconds) = (Some(accuracy), Some(1.0));
    run
}

fn runs(accuracies: &[f64]) -> Vec<(u64, RunSummary)> {
    (1..).zip(accuracies.iter().map(|&accuracy| run(accuracy))).collect()
}

fn leading(all: &[Runs]) -> Vec<String> {
    let leads = |scheme: &SchemeSummary| scheme.leads.contains(&"tail_accuracy".to_owned());
    let found = summaries(all, Some(all[0].0)).into_iter().filter(leads);
    found.map(|scheme| scheme.name).collect()
}

#[test]
fn those_lead_that_no_other_is_separably_better_than() {
    let fedavg = ("fedavg", false, runs(&[0.80, 0.82, 0.81]));
    let fedcote = ("fedcote", false, runs(&[0.90, 0.91, 0.905]));
    let memory = ("memory", false, runs(&[0.902, 0.908, 0.907]));
    let ideal = ("ideal", true, runs(&[0.95, 0.96, 0.955]));
    let all = [fedavg.clone(), fedcote.clone(), memory.clone(), ideal];
    assert_eq!(leading(&all), ["fedcote", "memory"]);
    // Two that cannot be told apart: neither leads.
    assert_eq!(leading(&[fedcote.clone(), memory]), [""; 0]);
    // One seed says nothing.
    let first = |(name, reference, runs): &Runs<'static>| (*name, *reference, runs[..1].to_vec());
    assert_eq!(leading(&[first(&fedavg), first(&fedcote)]), [""; 0]);
    // A run that has not ended is no pair.
    let mut begun = fedcote;
    begun.2.iter_mut().skip(1).for_each(|(_, run)| run.seconds = None);
    let found = summaries(&[fedavg, begun], Some("fedavg"));
    assert_eq!(found[1].differences["tail_accuracy"].seeds, 1);
    assert_eq!(found[1].tail_accuracy.map(|of| (of.mean * 1e3).round()), Some(905.0));
}

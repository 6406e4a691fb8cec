//! The selection benchmark: closed form against enumeration, exact solves from twenty clients to a million, exact
//! against gradient. Prints tables; asserts nothing, since timings depend on the machine.

use std::hint::black_box;
use std::time::Instant;

use fedcote::appearance::{AppearanceModel, Systematic};
use fedcote::divergence::{label_divergence, weight_divergence};
use fedcote::draw::label_order;
use fedcote::random::{Key, Purpose};
use fedcote::{
    Federation, FederationSpec, Groups, Method, Options, Uploads, appearance, enumeration,
    evaluate, select,
};
use rand::RngExt;

fn main() {
    closed_form_against_enumeration();
    exact_against_gradient();
    together();
    growth();
    systematic();
    println!("\npeak memory of the whole run: {:.0} MB", peak_megabytes());
}

/// The shortest of `repeats` runs, in seconds.
fn best<T>(repeats: usize, mut work: impl FnMut() -> T) -> f64 {
    (0..repeats)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// Two labels a client, Dirichlet-like sizes, failures up to 0.95: some clients are above the threshold.
fn federation(clients: usize) -> Federation {
    const CLASSES: usize = 10;
    let mut stream = Key::new(1, Purpose::Test).stream();
    let mut counts = vec![0.0; clients * CLASSES];
    for (client, row) in counts.chunks_exact_mut(CLASSES).enumerate() {
        let first = client % CLASSES;
        row[first] = f64::from(stream.random_range(100..3000));
        row[(first + 1 + stream.random_range(0..3)) % CLASSES] =
            f64::from(stream.random_range(100..3000));
    }
    let failure = (0..clients).map(|_| 0.95 * stream.random::<f64>()).collect();
    FederationSpec { ids: None, classes: CLASSES, counts, failure }.check().expect("valid")
}

fn closed_form_against_enumeration() {
    let federation = federation(20);
    let (weights, failure) = (federation.weights(), federation.failure());
    let repeats = 10_000;
    let series = best(20, || {
        for _ in 0..repeats {
            black_box(appearance::appearance(black_box(weights), failure, 10)).expect("valid");
        }
    }) / f64::from(repeats);
    let listed = best(1, || enumeration::appearance(weights, failure, 10));
    println!("one evaluation of the effective appearance, 20 clients, 10 draws");
    println!("  enumeration of {:.0} multisets  {listed:>12.3} s", enumeration::multisets(20, 10));
    println!("  closed form                       {:>12.3} µs", series * 1e6);
    println!("  ratio                             {:>12.0}", listed / series);
}

/// Clients that fail together: every client is in one of the groups.
fn together() {
    println!("\nclients that fail together, whole exact solves");
    println!(
        "  {:>8} {:>6} {:>7} {:>12} {:>12}",
        "clients", "draws", "groups", "time", "optimality"
    );
    for (clients, selected, count, repeats) in [(20, 10, 4, 20), (50, 20, 8, 5), (1000, 100, 8, 1)]
    {
        let down: Vec<f64> = (0..count).map(|group| 0.05 * (group + 1) as f64).collect();
        let groups = Groups::new(down, (0..clients).map(|client| Some(client % count)));
        let groups = groups.expect("valid");
        let mut federation = federation(clients);
        let overall = groups.overall(federation.failure()).expect("valid");
        federation.set_failure(overall).expect("valid");
        let federation = federation.with_groups(groups).expect("valid");
        let solve = || select(&federation, selected, &Options::new()).expect("valid");
        let (time, solution) = (best(repeats, solve), solve());
        println!(
            "  {clients:>8} {selected:>6} {count:>7} {:>9.2} ms {:>12.1e}",
            1e3 * time,
            solution.optimality
        );
    }
}

fn exact_against_gradient() {
    let federation = federation(20);
    println!("\nwhole solves, 20 clients, 10 labels, 10 draws");
    println!(
        "  {:<24} {:>12} {:>16} {:>16} {:>12}",
        "method", "time", "label div.", "joint (κ=1000)", "optimality"
    );
    let exact = |kappa| Method::Exact { kappa, efficiency: 0.0 };
    let fewer = Method::Gradient { k_apx: Some(4), max_steps: 2000, tolerance: 1e-10 };
    for (name, method, repeats) in [
        ("exact", Method::EXACT, 200),
        ("exact, κ = 1e9", exact(1e9), 200),
        ("gradient", Method::GRADIENT, 5),
        ("gradient, K_apx = 4", fewer, 5),
    ] {
        let options = Options::new().with_method(method);
        let time = best(repeats, || select(&federation, 10, &options).expect("valid"));
        let solution = select(&federation, 10, &options).expect("valid");
        let joint = 1000.0 * label_divergence(&federation, &solution.appearance)
            + weight_divergence(&federation, &solution.appearance);
        println!(
            "  {name:<24} {:>9.1} µs {:>16.3e} {joint:>16.6} {:>12.1e}",
            time * 1e6,
            solution.label_divergence,
            solution.optimality
        );
    }
    let fedavg = evaluate(&federation, 10, federation.weights()).expect("valid");
    let joint = 1000.0 * fedavg.label_divergence + fedavg.weight_divergence;
    println!(
        "  {:<24} {:>12} {:>16.3e} {joint:>16.6}",
        "FedAvg, s = p", "", fedavg.label_divergence
    );
}

/// The exact appearance of systematic draws among a million clients.
fn systematic() {
    println!("\nsystematic draws, one evaluation of the exact appearance, 1000000 clients");
    println!("   draws       time  processor   sum - 1   closed form's largest error");
    let clients = 1_000_000;
    let federation = federation(clients);
    let order = label_order(federation.all_labels(), clients, 10).expect("valid");
    let (failure, selection) = (federation.failure(), federation.weights());
    for selected in [10, 100, 1000] {
        let model = Systematic {
            failure,
            selected,
            order: &order,
            uploads: Uploads::PerDraw,
            groups: None,
        };
        let mut exact = vec![0.0; clients];
        let processor = processor_seconds();
        let time = best(3, || model.appearance(selection, &mut exact).expect("valid"));
        let processor = (processor_seconds() - processor) / 3.0;
        let closed = appearance::appearance(selection, failure, selected).expect("valid");
        let errors = closed.iter().zip(&exact).map(|(closed, exact)| (closed / exact - 1.0).abs());
        let (sum, worst) = (exact.iter().sum::<f64>(), errors.fold(0.0, f64::max));
        println!(
            "  {selected:>6} {time:>8.2} s {processor:>8.2} s {:>9.1e} {:>27.1} %",
            sum - 1.0,
            100.0 * worst
        );
    }
}

fn growth() {
    println!("\nexact solve, 10 labels, 1000 draws");
    println!(
        "  {:>9} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "clients", "time", "× before", "processor", "optimality", "memory"
    );
    let mut before = None;
    for exponent in 2..=6 {
        let clients = 10usize.pow(exponent);
        let federation = federation(clients);
        let repeats = (1_000_000 / clients).clamp(10, 1000);
        let options = Options::default();
        let processor = processor_seconds();
        let time = best(repeats, || select(&federation, 1000, &options).expect("valid"));
        // On a busy machine this tells what the work costs when the time does not.
        let processor = (processor_seconds() - processor) / repeats as f64;
        let solution = select(&federation, 1000, &options).expect("valid");
        let ratio = before.map_or(String::new(), |before: f64| format!("{:.1}", time / before));
        println!(
            "  {clients:>9} {:>9.3} ms {ratio:>12} {:>9.3} ms {:>12.1e} {:>9.0} MB",
            time * 1e3,
            processor * 1e3,
            solution.optimality,
            peak_megabytes()
        );
        before = Some(time);
    }
}

/// Processor time of this process so far, all threads together, to a hundredth of a second; zero where
/// the kernel does not say.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses come state and numbers; user and system time are the 12th and 13th.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The most memory this process has had, from the kernel's account of it; zero where there is none.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let kilobytes = line.split_whitespace().nth(1).and_then(|value| value.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}

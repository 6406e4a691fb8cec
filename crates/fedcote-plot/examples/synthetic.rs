//! Writes a run folder with made-up but plausible numbers, to look at figures without training anything.
//!
//! `cargo run -p fedcote-plot --example synthetic -- DIR [SCHEMES SEEDS ROUNDS CLIENTS]`

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

use fedcote::random::{Key, Purpose};
use rand::RngExt;

/// Name, final accuracy, how fast it gets there, how much it swings, whether it corrects failures.
const SCHEMES: [(&str, f64, f64, f64, bool); 12] = [
    ("fedavg", 0.815, 45.0, 0.035, false),
    ("fedcote", 0.912, 40.0, 0.012, true),
    ("ideal", 0.921, 36.0, 0.010, false),
    ("fedcote-ii", 0.905, 42.0, 0.014, true),
    ("power-of-choice", 0.765, 60.0, 0.060, false),
    ("newt", 0.742, 55.0, 0.055, false),
    ("gs", 0.850, 50.0, 0.025, false),
    ("tf-aggregation", 0.70, 70.0, 0.090, true),
    ("fednova", 0.812, 48.0, 0.034, false),
    ("fedyogi", 0.832, 65.0, 0.028, false),
    ("fedprox", 0.806, 46.0, 0.036, false),
    ("scaffold", 0.58, 80.0, 0.110, false),
];

/// Size of a made-up run folder.
pub struct Size {
    pub schemes: usize,
    pub seeds: u64,
    pub rounds: u32,
    pub clients: usize,
    pub evaluate_every: u32,
}

/// Writes the folder.
pub fn write(out: &Path, size: &Size) -> io::Result<()> {
    let Size { schemes, seeds, rounds, clients, .. } = *size;
    for scheme in &SCHEMES[..schemes.min(SCHEMES.len())] {
        for seed in 1..=seeds {
            write_run(&out.join(scheme.0).join(seed.to_string()), scheme, seed, size)?;
        }
    }
    let names: Vec<String> = SCHEMES.iter().take(schemes).map(|s| format!("\"{}\"", s.0)).collect();
    let seeds: Vec<String> = (1..=seeds).map(|seed| seed.to_string()).collect();
    fs::write(
        out.join("scenario.toml"),
        format!(
            "rounds = {rounds}\nclients = {clients}\nselected = 10\nseeds = [{}]\nschemes = [{}]\n\n[data]\nset = \"mnist\"\n\
             partition = \"label-pairs\"\n\n[network]\nkind = \"radio\"\noutdoor_excess_loss_db = 22.0\n",
            seeds.join(", "),
            names.join(", ")
        ),
    )
}

fn write_run(
    folder: &Path,
    scheme: &(&str, f64, f64, f64, bool),
    seed: u64,
    size: &Size,
) -> io::Result<()> {
    let &(name, level, speed, swing, corrects) = scheme;
    let count = size.clients;
    fs::create_dir_all(folder)?;
    let mut place = Key::new(seed, Purpose::Placement).stream();
    let failure: Vec<f64> = (0..count)
        .map(|client| {
            let luck: f64 = place.random();
            if name == "ideal" {
                0.0
            } else if client < count * 2 / 5 {
                0.02 * luck
            } else {
                luck.powf(0.8) * 0.95
            }
        })
        .collect();
    let weight = 1.0 / count as f64;
    let raw: Vec<f64> = failure
        .iter()
        .map(|e| if corrects { weight / (1.0 - e).max(0.08) } else { weight })
        .collect();
    let total: f64 = raw.iter().sum();
    let selection: Vec<f64> = raw.iter().map(|s| s / total).collect();
    let arriving: f64 = selection.iter().zip(&failure).map(|(s, e)| s * (1.0 - e)).sum();
    let labels = |client: usize| -> Vec<f64> {
        (0..10).map(|c| if c / 2 == client * 5 / count { 0.5 } else { 0.0 }).collect()
    };
    let standards = ["wifi24", "wifi5", "4g", "5g"];
    let clients: Vec<serde_json::Value> = (0..count)
        .map(|client| {
            let (x, y): (f64, f64) = (place.random(), place.random());
            let indoor = client < count * 2 / 5;
            let (x, y) = if indoor { (20.0 + 20.0 * x, 20.0 * y - 10.0) } else { (280.0 * (x - 0.5), 280.0 * (y - 0.5)) };
            let mut value = serde_json::json!({
                "id": (client + 1).to_string(), "weight": weight, "failure": failure[client],
                "labels": labels(client), "x": x, "y": y, "standard": standards[client % 4], "indoor": indoor,
            });
            // Some schemes choose clients by what they have seen, not by a probability.
            if !matches!(name, "power-of-choice" | "newt" | "gs") {
                value["selection"] = selection[client].into();
                value["appearance"] = (selection[client] * (1.0 - failure[client]) / arriving).into();
            }
            value
        })
        .collect();
    let file =
        serde_json::json!({"classes": 10, "global_labels": vec![0.1; 10], "clients": clients});
    fs::write(folder.join("clients.json"), file.to_string())?;

    let mut text = String::new();
    let mut drift = 0.0;
    for round in 1..=size.rounds {
        let mut draw = Key::new(seed, Purpose::Selection).round(round).stream();
        let mut noise =
            Key::new(seed, Purpose::Test).round(round).client(name.len() as u64).stream();
        let mut selected = vec![0u32; count];
        let mut arrived = vec![0u32; count];
        for _ in 0..10 {
            let mut at: f64 = draw.random();
            let client = selection
                .iter()
                .position(|s| {
                    at -= s;
                    at < 0.0
                })
                .unwrap_or(count - 1);
            selected[client] += 1;
            arrived[client] += u32::from(draw.random::<f64>() >= failure[client]);
        }
        let pairs = |copies: &[u32]| -> Vec<(usize, u32)> {
            copies.iter().copied().enumerate().filter(|pair| pair.1 > 0).collect()
        };
        let mut line = serde_json::json!({
            "round": round, "selected": pairs(&selected), "arrived": pairs(&arrived), "attempts": 1,
            "label_divergence_wanted": if corrects { 1e-7 } else { 0.21 },
            "label_divergence_realised": 0.1 + 0.3 * noise.random::<f64>(),
        });
        drift = 0.7 * drift + swing * (noise.random::<f64>() - 0.5) * 2.0;
        if round % size.evaluate_every == 0 || round == size.rounds {
            let risen = 1.0 - (-f64::from(round) / speed).exp();
            let accuracy = (0.1 + (level - 0.1) * risen + drift * risen).clamp(0.05, 0.99);
            line["test_accuracy"] = accuracy.into();
            line["train_loss"] = (2.3 * (1.0 - accuracy).powf(1.1)).into();
            line["test_loss"] = (2.35 * (1.0 - accuracy).powf(1.05)).into();
        }
        let _ = writeln!(text, "{line}");
        if name == "scaffold" && seed == 2 && round == 83 {
            let _ = writeln!(text, "{{\"diverged_at\":83}}");
            break;
        }
    }
    fs::write(folder.join("metrics.jsonl"), text)
}

#[allow(dead_code)]
fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let out = arguments.next().unwrap_or_else(|| "synthetic".into());
    let mut number =
        |default: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (schemes, seeds, rounds, clients) = (number(12), number(5), number(500), number(20));
    let size = Size {
        schemes: schemes as usize,
        seeds,
        rounds: rounds as u32,
        clients: clients as usize,
        evaluate_every: 1,
    };
    write(Path::new(&out), &size)
}

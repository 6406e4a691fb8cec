//! A running federation: clients come and go, nobody knows who fails, the server restarts half-way.
//!
//! `cargo run -p fedcote --example online`

use fedcote::rand::RngExt;
use fedcote::random::{Key, Purpose};
use fedcote::{Options, Selector, Uploads};

/// What the server does not know: how often each client's upload fails.
const FAILURE: [f64; 6] = [0.05, 0.1, 0.2, 0.5, 0.7, 0.9];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One upload per client, however often it is drawn; the draws are its weight in the average.
    let options = Options::new().with_uploads(Uploads::PerClient).with_exploration(0.05);
    let mut selector = Selector::new(1, "beta".parse()?, options)?;
    for client in 0..FAILURE.len() {
        let number = selector.join();
        // Two of three labels each; the last client does not tell.
        let mut labels = [0.0; 3];
        labels[client % 3] = 80.0;
        labels[(client + 1) % 3] = 20.0;
        if client + 1 < FAILURE.len() {
            selector.set_labels(number, &labels)?;
        }
    }

    let mut network = Key::new(1, Purpose::Upload).stream();
    for round in 1..=200 {
        // Client 0 is there every other round only.
        let available: Vec<u32> = (0..6).filter(|&client| client > 0 || round % 2 == 0).collect();
        let mut drawn = selector.select(&available, 4)?;
        loop {
            let mut arrived = Vec::new();
            for &(client, count) in &drawn {
                let through = network.random::<f64>() >= FAILURE[client as usize];
                selector.observe(client, through)?;
                if through {
                    arrived.push((client, f64::from(count)));
                }
            }
            if !arrived.is_empty() {
                // Here the server would average the updates by these weights.
                if round % 50 == 0 {
                    let divergence = selector.label_divergence(&arrived)?;
                    println!(
                        "round {round}: {arrived:?} arrived, label divergence {divergence:.3}"
                    );
                }
                break;
            }
            drawn = selector.select_again(&available, 4)?;
        }
        #[cfg(feature = "serde")]
        if round == 100 {
            // Save, stop, start again: the draws are what they would have been.
            let saved = serde_json::to_string(&selector)?;
            selector = serde_json::from_str(&saved)?;
            println!("restarted from {} bytes", saved.len());
        }
    }
    for (client, failure) in (0..).zip(FAILURE) {
        println!("client {client}: fails {failure:.2}, estimated {:.2}", selector.failure(client)?);
    }
    Ok(())
}

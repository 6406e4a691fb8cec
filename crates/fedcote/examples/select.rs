//! One selection: whom to ask how often, before anything is running.
//!
//! `cargo run -p fedcote --example select`

use fedcote::random::{Key, Purpose};
use fedcote::{FederationSpec, Options, draw::Alias, evaluate, select};

fn main() -> Result<(), fedcote::Error> {
    // Four phones, two labels; those that hold the second label have poor links.
    let names = ["phone-1", "phone-2", "phone-3", "phone-4"];
    let federation = FederationSpec {
        ids: Some(names.map(String::from).to_vec()),
        classes: 2,
        counts: vec![300.0, 0.0, 250.0, 50.0, 0.0, 300.0, 20.0, 280.0],
        failure: vec![0.05, 0.2, 0.7, 0.9],
    }
    .check()?;
    let selected = 4;
    let solution = select(&federation, selected, &Options::new())?;

    println!("{:<9} {:>7} {:>9} {:>10}", "client", "failure", "selection", "appearance");
    for client in 0..federation.len() {
        println!(
            "{:<9} {:>7.2} {:>9.4} {:>10.4}",
            federation.id(client),
            federation.failure()[client],
            solution.selection[client],
            solution.appearance[client]
        );
    }
    let by_weight = evaluate(&federation, selected, federation.weights())?;
    println!(
        "label divergence {:.1e}, by weight {:.1e}; {:.2} of {selected} uploads arrive on average",
        solution.label_divergence, by_weight.label_divergence, solution.expected_arrivals
    );
    for warning in &solution.warnings {
        println!("warning: {warning}");
    }

    // The draws of round 1, the same whenever seed and round are the same.
    let mut stream = Key::new(42, Purpose::Selection).round(1).stream();
    for (client, count) in Alias::new(&solution.selection)?.draws(selected, &mut stream)? {
        println!("ask {} for {count} upload(s)", federation.id(client as usize));
    }
    Ok(())
}

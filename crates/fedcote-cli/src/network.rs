//! `fedcote network`: positions and failure probabilities of clients.

use std::io::{self, Write};
use std::path::PathBuf;

use fedcote_plot::map::{self, Map};
use fedcote_radio::{Layout, Network, Place};
use fedcote_sim::Scenario;
use serde::Serialize;

use crate::arguments::{MAX_SEED, whole};
use crate::error::Error;
use crate::table::{Align, Table, styled};

/// Rows of the table before the rest is only counted.
const ROWS: usize = 40;
/// The paper's ε_th: clients that fail more often are left out by default.
const THRESHOLD: f64 = 0.85;

/// Show the network of a scenario: positions and failure probabilities of its clients
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fedcote network paper-calibrated
  fedcote network paper-dynamic --round 200 --svg map.svg
  fedcote network mine.toml --set network.outdoor_excess_loss_db=10 --json

Exit status: 0 done, 1 the work failed, 2 the request was wrong.")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// A preset's name or a TOML file
    #[arg(default_value = "quickstart")]
    scenario: String,
    /// The round to look at; 0 is the start
    #[arg(long, value_name = "R", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u32>(0..=u32::MAX.into()))]
    round: u32,
    /// The seed that places the clients [default: the scenario's first]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(0..=MAX_SEED))]
    seed: Option<u64>,
    /// Set a key of the scenario, as in network.rayleigh=true (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Draw a map into this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Turn a trace of others into one of this program, for network.kind = "trace"
    Import(crate::import::Args),
}

/// A client in the JSON document; a network without places has only failures.
#[derive(Serialize)]
struct Row<'a> {
    id: String,
    #[serde(flatten)]
    place: Option<RowPlace<'a>>,
    failure: f64,
}

#[derive(Serialize)]
struct RowPlace<'a> {
    standard: &'a str,
    x: f64,
    y: f64,
    indoor: bool,
    distance: f64,
    margin_db: f64,
}

#[derive(Serialize)]
struct Document<'a> {
    round: u32,
    seed: u64,
    rate_bps: f64,
    clients: Vec<Row<'a>>,
}

pub fn run(args: Args) -> Result<(), Error> {
    if let Some(Action::Import(args)) = args.action {
        return crate::import::run(&args);
    }
    args.svg.as_ref().map_or(Ok(()), |file| crate::output::file("--svg", file))?;
    let scenario = Scenario::load(&args.scenario, &args.set).map_err(Error::from)?;
    let parameters = scenario.model_parameters().map_err(Error::from)?;
    let seed = args.seed.or(scenario.general.seeds.first().copied()).unwrap_or(1);
    if let (Some(_), Some(placement)) = (args.seed, scenario.network.placement) {
        return Err(Error::request(format!(
            "--seed: has no effect here: network.placement = {placement} places the clients"
        )));
    }
    let (config, clients) = (&scenario.network_of(parameters), scenario.general.clients);
    let network =
        Network::new(config, clients, parameters, seed, &scenario.base).map_err(Error::request)?;

    let rows = rows(&network, args.round);
    if let Some(file) = &args.svg {
        let layout = network.layout().ok_or_else(|| {
            Error::request("--svg: this network has no places to draw: its kind is not \"radio\"")
        })?;
        let title = format!("{}, round {}, seed {seed}", args.scenario, args.round);
        let drawing = map::map(&plan(layout, &network.positions(args.round), args.round, title));
        fedcote_support::write(file, drawing.document().as_bytes()).map_err(Error::work)?;
    }

    crate::output::write(|mut out| {
        if args.json {
            let document =
                Document { round: args.round, seed, rate_bps: network.rate_bps(), clients: rows };
            serde_json::to_writer(&mut out, &document)?;
            writeln!(out)
        } else {
            table(&rows, network.rate_bps(), out)
        }
    })
}

fn rows(network: &Network, round: u32) -> Vec<Row<'_>> {
    let mut failures = Vec::new();
    network.failures(round, &mut failures);
    let mut places = network.positions(round).into_iter();
    let row = |(client, failure): (usize, f64)| Row {
        id: (client + 1).to_string(),
        place: places.next().map(
            |Place { standard, x, y, indoor, distance, margin_db, .. }| RowPlace {
                standard,
                x,
                y,
                indoor,
                distance,
                margin_db,
            },
        ),
        failure,
    };
    failures.into_iter().enumerate().map(row).collect()
}

fn table(rows: &[Row], rate_bps: f64, out: &mut impl Write) -> io::Result<()> {
    let places = rows.iter().any(|row| row.place.is_some());
    let mut columns = vec![("client", Align::Right)];
    if places {
        columns.extend([
            ("standard", Align::Left),
            ("place", Align::Left),
            ("distance", Align::Right),
            ("margin", Align::Right),
        ]);
    }
    columns.push(("failure", Align::Right));
    let mut table = Table::new(columns);
    for Row { id, place, failure } in rows.iter().take(ROWS) {
        let mut cells = vec![id.clone()];
        if let Some(place) = place {
            cells.extend([
                place.standard.to_owned(),
                if place.indoor { "indoors" } else { "outdoors" }.to_owned(),
                format!("{:.1} m", place.distance),
                format!("{:.1} dB", place.margin_db),
            ]);
        }
        cells.push(format!("{failure:.4}"));
        table.push(cells);
    }
    out.write_all(table.render(styled()).as_bytes())?;
    if rows.len() > ROWS {
        writeln!(out, "… and {} more (--json prints all)", rows.len() - ROWS)?;
    }
    let mean = rows.iter().map(|row| row.failure).sum::<f64>() / rows.len() as f64;
    let excluded = rows.iter().filter(|row| row.failure > THRESHOLD).count();
    writeln!(
        out,
        "\nUploads at {:.3} Mbit/s. Mean failure {mean:.3}; {excluded} of {} clients fail with more than {THRESHOLD}.",
        rate_bps / 1e6,
        rows.len(),
    )
}

/// What the map needs of a network.
fn plan(layout: &dyn Layout, places: &[Place], round: u32, title: String) -> Map {
    let area = layout.area();
    let mut standards: Vec<&str> = Vec::new();
    let clients = places
        .iter()
        .map(|place| {
            let known = standards.iter().position(|name| *name == place.standard);
            let standard = known.unwrap_or_else(|| {
                standards.push(place.standard);
                standards.len() - 1
            });
            // Of a long way only the last legs: older ones would cover the map.
            let mut route = layout.route(round, place.client);
            let route = route.split_off(route.len().saturating_sub(4));
            map::Client {
                name: (place.client + 1).to_string(),
                standard,
                at: (place.x, place.y),
                indoor: place.indoor,
                failure: place.failure,
                route: route.into_iter().map(|point| (point.x, point.y)).collect(),
            }
        })
        .collect();
    let stations = layout.stations().into_iter().map(|(name, at)| map::Station {
        name: match name {
            "base_station" => "base station".to_owned(),
            "access_point" => "access point".to_owned(),
            other => other.to_owned(),
        },
        at: (at.x, at.y),
        indoor: area.indoors(at),
    });
    Map {
        title,
        radius: area.radius,
        building: [area.centre.x, area.centre.y, area.width, area.depth],
        stations: stations.collect(),
        standards: standards.into_iter().map(display_name).collect(),
        clients,
    }
}

fn display_name(standard: &str) -> String {
    match standard {
        "wifi24" => "Wi-Fi 2.4 GHz",
        "wifi5" => "Wi-Fi 5 GHz",
        "4g" => "4G",
        "5g" => "5G",
        other => other,
    }
    .to_owned()
}

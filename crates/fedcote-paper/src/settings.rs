//! Tables 2 and 3: the settings that the runs really have.

use fedcote_plot::tables::{Better, Cell, Column, Digits, Row, Table};
use fedcote_radio::Standard;

use crate::document::Document;
use crate::error::Error;
use crate::request::Request;
use crate::selection::world;
use crate::variant::Share;

const STANDARDS: [(&str, &str); 4] =
    [("wifi24", "Wi-Fi 2.4 GHz"), ("wifi5", "Wi-Fi 5 GHz"), ("4g", "4G"), ("5g", "5G")];

/// Table 2: which client has which standard.
pub fn standards(title: String, request: &Request) -> Result<Document, Error> {
    let world = world(&request.variant(Share::Pairs), 1)?;
    let places = world.network.positions(1);
    let row = |(name, shown): (&str, &str)| {
        let own = places.iter().filter(|place| place.standard == name);
        let own: Vec<String> = own.map(|place| (place.client + 1).to_string()).collect();
        Row { name: shown.to_owned(), cells: vec![Cell::Text(own.join(", "))], apart: false }
    };
    let table = Table {
        title: String::new(),
        corner: "standard".into(),
        columns: vec![Column::new("clients", Better::Neither, Digits::Fixed(0))],
        rows: STANDARDS.map(row).into(),
    };
    let indoor: Vec<String> = places
        .iter()
        .filter(|place| place.indoor)
        .map(|place| (place.client + 1).to_string())
        .collect();
    let text = format!(
        "Indoors before the first round, seed {}: clients {}.",
        world.seed,
        indoor.join(", ")
    );
    Ok(Document { title, text: vec![text], tables: vec![("", table)], ..Default::default() })
}

/// Table 3: the parameters of each standard.
pub fn links(title: String, request: &Request) -> Result<Document, Error> {
    let scenario = request.variant(Share::Pairs).scenario(&["fedavg".to_owned()], &[1])?;
    let presets = STANDARDS.map(|(name, shown)| (shown, Standard::preset(name)));
    let standards: Vec<(&str, Standard)> =
        presets.into_iter().filter_map(|(shown, standard)| Some((shown, standard?))).collect();
    let number = |name: &str, value: &dyn Fn(&Standard) -> f64| Row {
        name: name.to_owned(),
        cells: standards.iter().map(|(_, standard)| Cell::Number(value(standard))).collect(),
        apart: false,
    };
    let shadowing = |standard: &Standard| {
        let range = |range: &fedcote_radio::ShadowingRange| match range.to_m.is_finite() {
            true => format!("{} up to {} m", range.sigma_db, range.to_m),
            false => format!("{} beyond", range.sigma_db),
        };
        standard.shadowing.iter().map(range).collect::<Vec<_>>().join(", ")
    };
    let mut rows = vec![
        number("bandwidth (MHz)", &|standard| standard.bandwidth_hz / 1e6),
        number("power (dBm)", &|standard| standard.power_dbm),
        number("carrier (GHz)", &|standard| standard.carrier_hz / 1e9),
        number("noise density (dBm/Hz)", &|standard| standard.noise_dbm_per_hz),
        number("reference distance (m)", &|standard| standard.reference_m),
        number("path loss exponent", &|standard| standard.exponent),
        number("loss of a wall (dB)", &|standard| standard.wall_loss_db),
    ];
    rows.push(Row {
        name: "deviation of shadowing (dB)".into(),
        cells: standards.iter().map(|(_, standard)| Cell::Text(shadowing(standard))).collect(),
        apart: false,
    });
    let table = Table {
        title: String::new(),
        corner: "parameter".into(),
        columns: standards
            .iter()
            .map(|(name, _)| Column::new(name, Better::Neither, Digits::Significant(3)))
            .collect(),
        rows,
    };
    let network = &scenario.network;
    let text = format!(
        "The same for everyone: a deadline of {} s, {} dB more loss outdoors (the paper has none), {} m between base \
         station and access point; clients that fail with more than 0.85 are not selected.",
        network.deadline_seconds, network.outdoor_excess_loss_db, network.separation_m
    );
    Ok(Document { title, text: vec![text], tables: vec![("", table)], ..Default::default() })
}

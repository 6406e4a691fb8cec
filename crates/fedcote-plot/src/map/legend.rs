//! What shapes, colours and lines mean.

use super::{BOUNDS, Map, SIDE, marks};
use crate::svg::{Anchor, Svg};
use crate::theme::STEPS;

/// An upper bound of the legend's height.
pub fn height(map: &Map) -> f64 {
    let standards = map.standards.len().div_ceil(2) as f64;
    // Scale and standards, then stations, walkers and the remark on those not shown.
    59.0 + 22.0 * standards + 26.0 * (map.stations.len() as f64 + 2.0)
}

/// Draws the legend with its upper left corner here.
pub fn draw(svg: &mut Svg, map: &Map, x: f64, y: f64, every: usize) {
    let mut y = y;
    svg.text(x, y, Anchor::Start, "name", "Failure probability");
    y += 9.0;
    let size = SIDE / STEPS as f64;
    for step in 0..STEPS {
        svg.rect(x + step as f64 * size, y, size, 12.0, &format!("pin f{step}"));
    }
    for (index, bound) in BOUNDS.iter().enumerate() {
        let anchor = match index {
            0 => Anchor::Start,
            STEPS => Anchor::End,
            _ => Anchor::Middle,
        };
        svg.text(x + index as f64 * size, y + 25.0, anchor, "tick", &bound.to_string());
    }
    y += 50.0;

    let column = SIDE / 2.0;
    for (index, name) in map.standards.iter().enumerate() {
        let (left, row) = (x + (index % 2) as f64 * column, y + (index / 2) as f64 * 22.0);
        marks::client(svg, index, (left + 7.0, row - 4.0), 6.0, "hollow ink");
        svg.text(left + 20.0, row, Anchor::Start, "name", name);
    }
    y += map.standards.len().div_ceil(2) as f64 * 22.0 + 6.0;

    for station in &map.stations {
        marks::station(svg, (x + 9.0, y - 3.0), station.indoor);
        svg.text(x + 26.0, y, Anchor::Start, "name", &station.name);
        y += 26.0;
    }
    if map.clients.iter().any(|client| !client.route.is_empty()) {
        svg.line(x, y - 4.0, x + 19.0, y - 4.0, "line thin d1 muted");
        svg.text(x + 26.0, y, Anchor::Start, "name", "way of a walking client");
        y += 26.0;
    }
    if every > 1 {
        let text = format!("one client in {every} is shown");
        svg.text(x, y, Anchor::Start, "note", &text);
    }
}

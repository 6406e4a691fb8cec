//! The shapes of clients and stations.

use std::f64::consts::TAU;

use crate::svg::Svg;

/// Corners of a regular polygon, the first one turned by a share of a full turn from the top; about as large
/// as a disc of that radius.
fn polygon((x, y): (f64, f64), radius: f64, corners: usize, turn: f64) -> Vec<(f64, f64)> {
    let size = TAU / corners as f64;
    // Equal areas look equally large: π r² = ½ n R² sin(2π/n).
    let radius = radius * (TAU / (corners as f64 * size.sin())).sqrt();
    (0..corners)
        .map(|corner| {
            let (sin, cos) = (corner as f64 * size + turn * TAU).sin_cos();
            (x + radius * sin, y - radius * cos)
        })
        .collect()
}

/// A client of the standard with this number.
pub fn client(svg: &mut Svg, standard: usize, at: (f64, f64), radius: f64, class: &str) {
    match standard % 8 {
        0 => svg.circle(at.0, at.1, radius, class),
        1 => svg.polygon(&polygon(at, radius, 4, 0.125), class),
        2 => svg.polygon(&polygon(at, radius, 3, 0.0), class),
        3 => svg.polygon(&polygon(at, radius, 4, 0.0), class),
        4 => svg.polygon(&polygon(at, radius, 3, 0.5), class),
        5 => svg.polygon(&polygon(at, radius, 6, 0.0), class),
        6 => svg.polygon(&polygon(at, radius, 3, 0.25), class),
        _ => svg.polygon(&polygon(at, radius, 5, 0.0), class),
    }
}

/// A station: waves over a mast, or, in the building, a fan of waves.
pub fn station(svg: &mut Svg, (x, y): (f64, f64), indoor: bool) {
    if indoor {
        svg.circle(x, y + 4.0, 2.0, "fill ink");
        for radius in [6.0, 11.0] {
            let reach = radius * 0.77;
            let rise = radius * 0.64;
            let (left, right, top) = (x - reach, x + reach, y + 4.0 - rise);
            svg.path(
                &format!("M{left:.1} {top:.1}A{radius} {radius} 0 0 1 {right:.1} {top:.1}"),
                "line ink",
            );
        }
    } else {
        let top = y - 8.0;
        svg.path(
            &format!(
                "M{:.1} {:.1}L{x:.1} {top:.1}L{:.1} {:.1}",
                x - 5.0,
                y + 8.0,
                x + 5.0,
                y + 8.0
            ),
            "line ink",
        );
        svg.line(x - 2.8, y + 1.0, x + 2.8, y + 1.0, "line thin ink");
        svg.circle(x, top, 2.0, "fill ink");
        for radius in [5.0, 9.0] {
            let (reach, rise) = (radius * 0.77, radius * 0.64);
            for side in [-1.0, 1.0] {
                let (edge, sweep) = (x + side * reach, if side > 0.0 { 1 } else { 0 });
                let (upper, lower) = (top - rise, top + rise);
                svg.path(
                    &format!(
                        "M{edge:.1} {upper:.1}A{radius} {radius} 0 0 {sweep} {edge:.1} {lower:.1}"
                    ),
                    "line thin ink",
                );
            }
        }
    }
}

//! Names beside marks, where they cover least.

use crate::font;
use crate::svg::{Anchor, Area, Svg};
use crate::theme;

const HEIGHT: f64 = 10.0;

fn overlap(a: &Area, b: &Area) -> f64 {
    let wide = a.right().min(b.right()) - a.x.max(b.x);
    let high = a.bottom().min(b.bottom()) - a.y.max(b.y);
    wide.max(0.0) * high.max(0.0)
}

fn around((x, y): (f64, f64), reach: f64) -> Area {
    Area { x: x - reach, y: y - reach, width: 2.0 * reach, height: 2.0 * reach }
}

/// Puts each name on that side of its mark where it covers least of the other marks and names.
pub fn draw(
    svg: &mut Svg,
    within: &Area,
    places: &[(f64, f64)],
    stations: &[(f64, f64)],
    names: &[&str],
    radius: f64,
) {
    let style = theme::text("tick");
    let mut taken: Vec<Area> = places.iter().map(|&place| around(place, radius + 1.0)).collect();
    taken.extend(stations.iter().map(|&place| around(place, 12.0)));
    for (&(x, y), name) in places.iter().zip(names) {
        let width = font::width(name, style);
        let cost = |&(right, down): &(f64, f64)| {
            // Corners are nearer than sides by the roundness of the mark.
            let gap = radius + if right != 0.0 && down != 0.0 { -0.5 } else { 2.5 };
            let (middle_x, middle_y) =
                (x + right * (gap + width / 2.0), y + down * (gap + HEIGHT / 2.0));
            let area = Area {
                x: middle_x - width / 2.0,
                y: middle_y - HEIGHT / 2.0,
                width,
                height: HEIGHT,
            };
            let covered: f64 = taken.iter().map(|other| overlap(&area, other)).sum();
            let outside = width * HEIGHT - overlap(&area, within);
            (covered + 2.0 * outside, area)
        };
        let sides = [
            (1.0, 0.0),
            (-1.0, 0.0),
            (0.0, -1.0),
            (0.0, 1.0),
            (1.0, -1.0),
            (1.0, 1.0),
            (-1.0, -1.0),
            (-1.0, 1.0),
        ];
        let Some((_, area)) = sides.iter().map(cost).min_by(|a, b| a.0.total_cmp(&b.0)) else {
            continue;
        };
        svg.text(area.x + width / 2.0, area.bottom() - 1.0, Anchor::Middle, "tick halo", name);
        taken.push(area);
    }
}

//! The cell, the building in it, and where clients stand.
//!
//! The base station is the origin, x points east, y north. The cell is a disc around the base station,
//! the building a rectangle whose middle, with the access point, lies `separation_m` to the east.

use fedcote::random::Stream;
use rand::RngExt;

use crate::config::NetworkConfig;

/// A point of the plane, in metres.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    /// East of the base station.
    pub x: f64,
    /// North of the base station.
    pub y: f64,
}

impl Point {
    /// The distance to another point.
    pub fn distance(self, other: Point) -> f64 {
        // Not hypot: metres do not overflow, and this is several times faster.
        ((self.x - other.x).powi(2) + (self.y - other.y).powi(2)).sqrt()
    }

    /// The point at this share of the way to another.
    pub(crate) fn towards(self, other: Point, share: f64) -> Point {
        Point { x: self.x + share * (other.x - self.x), y: self.y + share * (other.y - self.y) }
    }
}

/// The cell and its building.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    /// The radius of the cell.
    pub radius: f64,
    /// The middle of the building.
    pub centre: Point,
    /// East to west extent of the building.
    pub width: f64,
    /// North to south extent of the building.
    pub depth: f64,
}

impl Area {
    pub(crate) fn new(config: &NetworkConfig) -> Self {
        Self {
            radius: config.cell_radius_m,
            centre: Point { x: config.separation_m, y: 0.0 },
            width: config.building_width_m,
            depth: config.building_depth_m,
        }
    }

    /// Whether a point lies in the building (its walls included).
    pub fn indoors(&self, point: Point) -> bool {
        (point.x - self.centre.x).abs() <= 0.5 * self.width
            && (point.y - self.centre.y).abs() <= 0.5 * self.depth
    }

    /// A uniform point of the building.
    pub(crate) fn draw_indoors(&self, stream: &mut Stream) -> Point {
        Point {
            x: self.centre.x + self.width * (stream.random::<f64>() - 0.5),
            y: self.centre.y + self.depth * (stream.random::<f64>() - 0.5),
        }
    }

    /// A uniform point of the cell outside the building. The building fits into the cell, so that it
    /// takes at most 2/π of it and rejection ends soon.
    pub(crate) fn draw_outdoors(&self, stream: &mut Stream) -> Point {
        loop {
            let x = 2.0 * stream.random::<f64>() - 1.0;
            let y = 2.0 * stream.random::<f64>() - 1.0;
            let point = Point { x: self.radius * x, y: self.radius * y };
            if x * x + y * y <= 1.0 && !self.indoors(point) {
                return point;
            }
        }
    }

    /// A uniform point of the cell's edge.
    pub(crate) fn draw_edge(&self, stream: &mut Stream) -> Point {
        let (sin, cos) = (std::f64::consts::TAU * stream.random::<f64>()).sin_cos();
        Point { x: self.radius * cos, y: self.radius * sin }
    }
}

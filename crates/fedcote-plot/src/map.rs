//! The map of a network: cell, building, stations, and the clients coloured by how often they fail.
//!
//! A building that is small against the cell is shown a second time, enlarged, with the clients in it.

mod labels;
mod legend;
mod marks;

use crate::svg::{Anchor, Area, Svg};

/// A network at one moment. Lengths are metres, x to the east, y to the north, the cell around the origin.
#[derive(Clone, Debug)]
pub struct Map {
    /// What is shown.
    pub title: String,
    /// The radius of the cell.
    pub radius: f64,
    /// The building: middle x and y, width, depth.
    pub building: [f64; 4],
    /// The stations.
    pub stations: Vec<Station>,
    /// The names of the standards; a client says which by index.
    pub standards: Vec<String>,
    /// The clients.
    pub clients: Vec<Client>,
}

/// A base station or an access point.
#[derive(Clone, Debug)]
pub struct Station {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub at: (f64, f64),
    /// Whether it is in the building.
    pub indoor: bool,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// Which of the map's standards it uses.
    pub standard: usize,
    /// Where it is.
    pub at: (f64, f64),
    /// Whether it is in the building.
    pub indoor: bool,
    /// The probability that its upload fails.
    pub failure: f64,
    /// The corners of its way; empty for a client that stands.
    pub route: Vec<(f64, f64)>,
}

/// Where the steps of the colour scale begin and the last one ends.
const BOUNDS: [f64; 7] = [0.0, 0.01, 0.1, 0.35, 0.6, 0.85, 1.0];
/// More clients than this are thinned out: nobody can tell them apart, and files stay small.
const MOST: usize = 4000;
/// Up to so many clients are labelled with their names.
const LABELLED: usize = 60;

const MARGIN: f64 = 16.0;
const TOP: f64 = 40.0;
const SIZE: f64 = 520.0;
const SIDE: f64 = 216.0;
const NARROW: f64 = 340.0;

/// A part of the plane and where it is drawn.
struct View {
    area: Area,
    /// The middle, in metres.
    middle: (f64, f64),
    /// Pixels per metre.
    scale: f64,
}

impl View {
    /// Shows `extent` metres across in a square.
    fn new(area: Area, middle: (f64, f64), extent: f64) -> Self {
        Self { area, middle, scale: area.width / extent }
    }

    fn pixel(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            self.area.x + self.area.width / 2.0 + (x - self.middle.0) * self.scale,
            self.area.y + self.area.height / 2.0 - (y - self.middle.1) * self.scale,
        )
    }

    fn shows(&self, point: (f64, f64)) -> bool {
        let (x, y) = self.pixel(point);
        (self.area.x..=self.area.right()).contains(&x)
            && (self.area.y..=self.area.bottom()).contains(&y)
    }

    fn building(&self, svg: &mut Svg, [x, y, width, depth]: [f64; 4]) {
        let (left, top) = self.pixel((x - width / 2.0, y + depth / 2.0));
        let size = (width * self.scale, depth * self.scale);
        svg.rect(left, top, size.0, size.1, "indoor");
        svg.rect(left, top, size.0, size.1, "line thin ink");
    }

    /// The part of a leg that is in view (Liang and Barsky).
    fn clip(&self, from: (f64, f64), to: (f64, f64)) -> Option<[(f64, f64); 2]> {
        let (from, to) = (self.pixel(from), self.pixel(to));
        let (way_x, way_y) = (to.0 - from.0, to.1 - from.1);
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        for (way, room) in [
            (-way_x, from.0 - self.area.x),
            (way_x, self.area.right() - from.0),
            (-way_y, from.1 - self.area.y),
            (way_y, self.area.bottom() - from.1),
        ] {
            if way == 0.0 && room < 0.0 {
                return None;
            } else if way < 0.0 {
                enter = enter.max(room / way);
            } else if way > 0.0 {
                leave = leave.min(room / way);
            }
        }
        let at = |share: f64| (from.0 + share * way_x, from.1 + share * way_y);
        (enter < leave).then(|| [at(enter), at(leave)])
    }

    /// A bar of a round length, about a fifth of the view.
    fn scale_bar(&self, svg: &mut Svg, x: f64, y: f64) {
        let wanted = self.area.width / self.scale / 5.0;
        let power = 10f64.powf(wanted.log10().floor());
        let metres =
            [5.0, 2.0, 1.0].map(|step| step * power).into_iter().find(|&length| length <= wanted);
        let metres = metres.unwrap_or(power);
        let end = x + metres * self.scale;
        svg.line(x, y, end, y, "line ink");
        svg.line(x, y - 3.0, x, y + 3.0, "line ink");
        svg.line(end, y - 3.0, end, y + 3.0, "line ink");
        let text = if metres >= 1000.0 {
            format!("{} km", metres / 1000.0)
        } else {
            format!("{metres} m")
        };
        svg.text(end + 7.0, y + 4.0, Anchor::Start, "tick halo", &text);
    }
}

/// The step of the colour scale for a failure probability.
fn step(failure: f64) -> usize {
    BOUNDS[1..6].iter().filter(|&&bound| failure > bound).count()
}

/// Draws the map, the enlarged building and the legend beside it.
pub fn map(map: &Map) -> Svg {
    let area = Area { x: MARGIN, y: TOP, width: SIZE, height: SIZE };
    draw_in(map, area, (SIZE + 2.0 * MARGIN, TOP))
}

/// Draws the map for a phone: the enlarged building and the legend below it.
pub fn narrow(map: &Map) -> Svg {
    let area = Area { x: 0.0, y: TOP, width: NARROW, height: NARROW };
    draw_in(map, area, (0.0, TOP + NARROW + MARGIN))
}

/// The cell in an area, the rest from the corner `(left, top)` downwards.
fn draw_in(map: &Map, area: Area, (left, top): (f64, f64)) -> Svg {
    let [east, north, long, deep] = map.building;
    let extent = 1.25 * long.max(deep);
    let side = Area { x: left, y: top + 20.0, width: SIDE, height: SIDE };
    let inset =
        (long.max(deep) < 0.35 * map.radius).then(|| View::new(side, (east, north), extent));
    let below = if inset.is_some() { side.bottom() + 24.0 } else { top + 8.0 };

    let width = area.right().max(left + SIDE) + area.x;
    let height = (area.bottom() + MARGIN).max(below + legend::height(map));
    let mut svg = Svg::new(width, height, &map.title, &describe(map));
    svg.text(area.x, 24.0, Anchor::Start, "head", &map.title);

    let whole = View::new(area, (0.0, 0.0), 2.0 * map.radius);
    let (x, y) = whole.pixel((0.0, 0.0));
    svg.circle(x, y, map.radius * whole.scale, "outdoor");
    svg.circle(x, y, map.radius * whole.scale, "axis");
    whole.building(&mut svg, map.building);

    // The many are thinned out evenly, so that the picture keeps its shares.
    let every = map.clients.len().div_ceil(MOST).max(1);
    let shown: Vec<&Client> = map.clients.iter().step_by(every).collect();
    let in_inset = |at: (f64, f64)| inset.as_ref().is_some_and(|inset| inset.shows(at));

    routes(&mut svg, &whole, &shown);
    // Beside each other they are connected; below, the lines would cross the map.
    if let Some(inset) = inset.as_ref().filter(|inset| inset.area.x > area.right()) {
        connect(&mut svg, &whole, inset, map.building);
    }
    let outside = |at: (f64, f64)| !in_inset(at);
    draw(&mut svg, &whole, map, &shown, outside);
    whole.scale_bar(&mut svg, area.x + 4.0, area.bottom() - 6.0);

    if let Some(inset) = &inset {
        svg.text(side.x, top + 10.0, Anchor::Start, "name", "The building, enlarged");
        svg.rect(side.x, side.y, side.width, side.height, "outdoor");
        inset.building(&mut svg, map.building);
        routes(&mut svg, inset, &shown);
        svg.rect(side.x, side.y, side.width, side.height, "axis");
        draw(&mut svg, inset, map, &shown, in_inset);
        inset.scale_bar(&mut svg, side.x + 8.0, side.bottom() - 8.0);
    }
    legend::draw(&mut svg, map, side.x, below, every);
    svg
}

/// Stations, clients and their names, where `here` says so.
fn draw(
    svg: &mut Svg,
    view: &View,
    map: &Map,
    shown: &[&Client],
    here: impl Fn((f64, f64)) -> bool,
) {
    let stations: Vec<&Station> = map.stations.iter().filter(|station| here(station.at)).collect();
    let clients: Vec<&Client> = shown.iter().copied().filter(|client| here(client.at)).collect();
    let radius = if shown.len() <= LABELLED {
        6.0
    } else {
        (90.0 / (shown.len() as f64).sqrt()).clamp(1.6, 5.5)
    };
    for client in &clients {
        let fine = if radius < 3.0 { " fine" } else { "" };
        let class = format!("pin f{}{fine}", step(client.failure));
        let mark = |svg: &mut Svg| {
            marks::client(svg, client.standard, view.pixel(client.at), radius, &class)
        };
        if shown.len() <= 1000 {
            svg.client(&client.name, &tooltip(map, client), mark);
        } else {
            mark(svg);
        }
    }
    for station in &stations {
        marks::station(svg, view.pixel(station.at), station.indoor);
    }
    if shown.len() <= LABELLED {
        let places: Vec<_> = clients.iter().map(|client| view.pixel(client.at)).collect();
        let stations: Vec<_> = stations.iter().map(|station| view.pixel(station.at)).collect();
        let names: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
        labels::draw(svg, &view.area, &places, &stations, &names, radius);
    }
}

fn tooltip(map: &Map, client: &Client) -> String {
    let standard = map.standards.get(client.standard).map_or("", String::as_str);
    let place = if client.indoor { "indoors" } else { "outdoors" };
    format!("client {}: {standard}, {place}, failure {:.3}", client.name, client.failure)
}

fn routes(svg: &mut Svg, view: &View, clients: &[&Client]) {
    for client in clients {
        for (index, leg) in client.route.windows(2).enumerate() {
            // The way back along the same leg would fill the gaps between the dashes.
            let back = index > 0 && client.route[index - 1] == leg[1];
            if let Some(leg) = view.clip(leg[0], leg[1]).filter(|_| !back) {
                svg.polyline(&leg, "line thin d1 route muted");
            }
        }
    }
}

/// Two lines from the building to its enlargement.
fn connect(svg: &mut Svg, whole: &View, inset: &View, [x, y, width, depth]: [f64; 4]) {
    for (north, corner) in [(0.5, inset.area.y), (-0.5, inset.area.bottom())] {
        let (left, top) = whole.pixel((x + width / 2.0, y + north * depth));
        svg.line(left, top, inset.area.x, corner, "axis");
    }
}

fn describe(map: &Map) -> String {
    let count = |test: &dyn Fn(&&Client) -> bool| map.clients.iter().filter(test).count();
    let indoors = count(&|client| client.indoor);
    let mut text = format!(
        "Map of a cell of {} metres radius with a building of {} by {} metres. {} clients, {} indoors, {} outdoors.",
        map.radius,
        map.building[2],
        map.building[3],
        map.clients.len(),
        indoors,
        map.clients.len() - indoors,
    );
    for (index, name) in map.standards.iter().enumerate() {
        let failures: Vec<f64> =
            map.clients.iter().filter(|c| c.standard == index).map(|c| c.failure).collect();
        if !failures.is_empty() {
            let mean = failures.iter().sum::<f64>() / failures.len() as f64;
            let most = failures.iter().copied().fold(0.0, f64::max);
            text += &format!(
                " {name}: {} clients, mean failure {mean:.2}, highest {most:.2}.",
                failures.len()
            );
        }
    }
    let moving = count(&|client| !client.route.is_empty());
    if moving > 0 {
        text += &format!(" {moving} clients move along the dashed lines.");
    }
    text
}

#[cfg(test)]
mod tests;

//! Failures of wireless links: geometry and mobility give distances, standards give margins.

use fedcote::SettingError;
use fedcote::random::{Key, Purpose, Stream};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rayon::prelude::*;

use crate::config::{Mobility, NetworkConfig};

use crate::fading::{Rayleigh, Variation};
use crate::geometry::{Area, Point};
use crate::mobility::{Walk, Waypoint, movers, route_key};
use crate::network::{Layout, Place, Source, Upload};
use crate::standard::Standard;

/// A standard with its station.
#[derive(Debug)]
struct Service {
    standard: Standard,
    station: Point,
    height: f64,
    indoors: bool,
    /// The margin over the reference distance, before anything else is lost.
    reference_margin_db: f64,
    /// For each shadowing range.
    variation: Vec<Variation>,
}

#[derive(Debug)]
enum Movement {
    Stand,
    Walk(Walk),
    Waypoint(Waypoint),
}

#[derive(Debug)]
struct Client {
    start: Point,
    movement: Movement,
}

/// A client's link at one moment.
struct Link<'a> {
    service: &'a Service,
    indoor: bool,
    distance: f64,
    /// Of wall and excess.
    extra_loss_db: f64,
}

impl Link<'_> {
    fn margin_db(&self) -> f64 {
        let distance_loss_db = self.service.standard.distance_loss_db(self.distance);
        self.service.reference_margin_db - distance_loss_db - self.extra_loss_db
    }

    fn outage(&self, margin_db: f64) -> f64 {
        let range = self.service.standard.range(self.distance);
        self.service.variation[range].outage(margin_db)
    }
}

/// Wireless clients in a cell.
#[derive(Debug)]
pub(crate) struct Radio {
    area: Area,
    services: Vec<Service>,
    /// The services of clients 0, 1, …, repeated.
    order: Vec<usize>,
    clients: Vec<Client>,
    seed: u64,
    rate_bps: f64,
    excess_db: f64,
    device_height: f64,
    speed: f64,
    round_seconds: f64,
    fades: bool,
    /// Transmissions of an upload, at most.
    transmissions: u32,
}

impl Radio {
    /// From a configuration that has been checked.
    pub(crate) fn new(
        config: &NetworkConfig,
        clients: usize,
        rate_bps: f64,
        seed: u64,
    ) -> Result<Self, SettingError> {
        // Places and ways have a seed of their own; uploads have the key that they are asked about with.
        let seed = config.placement.unwrap_or(seed);
        let area = Area::new(config);
        let standards = config.used_standards()?;
        let order = config
            .standard_order
            .iter()
            .map(|name| standards.iter().position(|standard| standard.name == *name))
            .collect::<Option<Vec<usize>>>()
            .unwrap_or_default();
        let services = standards
            .into_iter()
            .map(|standard| {
                let (station, height) = config.station(&standard)?;
                let variation = standard
                    .shadowing
                    .iter()
                    .map(|range| match config.rayleigh {
                        true => Variation::Fading(Rayleigh::new(range.sigma_db)),
                        false => Variation::Shadowing(range.sigma_db),
                    })
                    .collect();
                let reference = standard.link(standard.reference_m, 0.0);
                Ok(Service {
                    indoors: area.indoors(station),
                    station,
                    height,
                    reference_margin_db: reference.margin_db(rate_bps),
                    variation,
                    standard,
                })
            })
            .collect::<Result<Vec<_>, SettingError>>()?;

        let indoor = share_of(config.indoor_share, clients);
        let moving = match config.mobility {
            Mobility::None => vec![false; clients],
            _ => movers(clients, share_of(config.moving_share, clients), seed),
        };
        let clients = (0..clients)
            .into_par_iter()
            .map(|client| {
                let mut stream = Key::new(seed, Purpose::Placement).client(client as u64).stream();
                let start = match &config.positions {
                    Some(positions) => Point { x: positions[client][0], y: positions[client][1] },
                    None if client < indoor => area.draw_indoors(&mut stream),
                    None => area.draw_outdoors(&mut stream),
                };
                let movement = match config.mobility {
                    Mobility::Walk if moving[client] => Movement::Walk(Walk::new(
                        start,
                        &area,
                        &mut route_key(seed, client).stream(),
                    )),
                    Mobility::Waypoint if moving[client] => Movement::Waypoint(Waypoint {
                        indoor_share: config.indoor_share,
                        speed: config.speed_m_per_s,
                        pause: config.pause_seconds,
                    }),
                    _ => Movement::Stand,
                };
                Client { start, movement }
            })
            .collect();

        Ok(Self {
            area,
            services,
            order,
            clients,
            seed,
            rate_bps,
            excess_db: config.outdoor_excess_loss_db,
            device_height: config.device_height_m,
            speed: config.speed_m_per_s,
            round_seconds: config.seconds_between_rounds(),
            fades: config.rayleigh,
            transmissions: config.retransmissions + 1,
        })
    }

    /// The probability that all transmissions of an upload fail, from that of one.
    fn lost(&self, outage: f64) -> f64 {
        if self.transmissions == 1 { outage } else { outage.powf(self.transmissions.into()) }
    }

    fn service(&self, client: usize) -> &Service {
        &self.services[self.order[client % self.order.len()]]
    }

    /// Where a client is in a round.
    fn locate(&self, round: u32, client: usize) -> Point {
        let seconds = f64::from(round) * self.round_seconds;
        let Client { start, movement } = &self.clients[client];
        match movement {
            Movement::Stand => *start,
            Movement::Walk(walk) => walk.after(self.speed * seconds),
            Movement::Waypoint(waypoint) => {
                waypoint.after(seconds, *start, &self.area, route_key(self.seed, client), |_| ())
            }
        }
    }

    fn link(&self, client: usize, point: Point) -> Link<'_> {
        let service = self.service(client);
        let indoor = self.area.indoors(point);
        let below = service.height - self.device_height;
        let wall_db = if indoor != service.indoors { service.standard.wall_loss_db } else { 0.0 };
        let excess_db = if indoor { 0.0 } else { self.excess_db };
        Link {
            service,
            indoor,
            distance: (service.station.distance(point).powi(2) + below * below).sqrt(),
            extra_loss_db: wall_db + excess_db,
        }
    }
}

/// The number of clients that is this share of all.
fn share_of(share: f64, clients: usize) -> usize {
    (share * clients as f64).round() as usize
}

impl Source for Radio {
    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn failure(&self, round: u32, client: usize) -> f64 {
        let link = self.link(client, self.locate(round, client));
        self.lost(link.outage(link.margin_db()))
    }

    fn arrives(&self, round: u32, client: usize, stream: &mut Stream) -> bool {
        self.upload(round, client, stream).arrived
    }

    /// Draws shadowing, and fading if there is any, and compares capacity with rate, for one transmission after the other.
    fn upload(&self, round: u32, client: usize, stream: &mut Stream) -> Upload {
        let link = self.link(client, self.locate(round, client));
        let standard = &link.service.standard;
        let budget = standard.link(link.distance, link.extra_loss_db);
        let mut upload = Upload { transmissions: 0, failed: 0, ..Upload::known_by_arrival(false) };
        while !upload.arrived && upload.failed < self.transmissions {
            let unit: f64 = StandardNormal.sample(stream);
            let mut gain_db = standard.sigma_db(link.distance) * unit;
            if self.fades {
                let fading: f64 = Exp1.sample(stream);
                gain_db += 10.0 * fading.log10();
            }
            upload.arrived = budget.capacity_bps(gain_db) > self.rate_bps;
            upload.failed += u32::from(!upload.arrived);
            upload.transmissions += 1;
            upload.margin_db = Some(link.margin_db() + gain_db);
        }
        upload
    }

    fn transmit_watts(&self, client: usize) -> Option<f64> {
        Some(10f64.powf((self.service(client).standard.power_dbm - 30.0) / 10.0))
    }

    fn moves(&self) -> bool {
        self.clients.iter().any(|client| !matches!(client.movement, Movement::Stand))
    }

    fn layout(&self) -> Option<&dyn Layout> {
        Some(self)
    }
}

impl Layout for Radio {
    fn place(&self, round: u32, client: usize) -> Place<'_> {
        let point = self.locate(round, client);
        let link = self.link(client, point);
        let margin_db = link.margin_db();
        Place {
            client,
            standard: &link.service.standard.name,
            x: point.x,
            y: point.y,
            indoor: link.indoor,
            distance: link.distance,
            margin_db,
            failure: self.lost(link.outage(margin_db)),
        }
    }

    fn route(&self, round: u32, client: usize) -> Vec<Point> {
        let Client { start, movement } = &self.clients[client];
        match movement {
            Movement::Stand => Vec::new(),
            Movement::Walk(walk) => walk.route(),
            Movement::Waypoint(waypoint) => {
                let mut corners = Vec::new();
                let seconds = f64::from(round) * self.round_seconds;
                let key = route_key(self.seed, client);
                waypoint.after(seconds, *start, &self.area, key, |point| corners.push(point));
                corners
            }
        }
    }

    fn area(&self) -> Area {
        self.area
    }

    fn stations(&self) -> Vec<(&str, Point)> {
        let mut stations: Vec<(&str, Point)> = Vec::new();
        for service in &self.services {
            let name = service.standard.station.as_str();
            if !stations.iter().any(|station| station.0 == name) {
                stations.push((name, service.station));
            }
        }
        stations
    }
}

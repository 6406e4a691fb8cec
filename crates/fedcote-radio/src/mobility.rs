//! Where a moving client is after a time: computed from the seed, never stepped.

use fedcote::random::{Key, Purpose, Stream};
use rand::{Rng, RngExt};
use rayon::prelude::*;

use crate::geometry::{Area, Point};

/// The clients that move: the `count` clients whose own random numbers are smallest, so that exactly the
/// wanted share moves and the choice does not depend on index or standard.
pub(crate) fn movers(clients: usize, count: usize, seed: u64) -> Vec<bool> {
    let rank = |client| (key(seed, client).stream().next_u64(), client);
    let mut order: Vec<(u64, usize)> = (0..clients).into_par_iter().map(rank).collect();
    if count > 0 && count < clients {
        order.select_nth_unstable(count - 1);
    }
    let mut moves = vec![false; clients];
    order[..count].iter().for_each(|&(_, client)| moves[client] = true);
    moves
}

/// Copy 0 says who moves, copy 1 where to.
fn key(seed: u64, client: usize) -> Key {
    Key::new(seed, Purpose::Mobility).client(client as u64)
}

/// The key of what draws where a client goes.
pub(crate) fn route_key(seed: u64, client: usize) -> Key {
    key(seed, client).copy(1)
}

/// The paper's walk: to and fro between a point indoors and a point of the cell's edge. Who starts
/// indoors sets out for the edge, who starts outdoors first goes in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Walk {
    start: Point,
    /// Where the first leg ends.
    first: Point,
    /// Where the second ends; from then on between the two.
    second: Point,
}

impl Walk {
    pub(crate) fn new(start: Point, area: &Area, stream: &mut Stream) -> Self {
        let edge = area.draw_edge(stream);
        if area.indoors(start) {
            Self { start, first: edge, second: start }
        } else {
            let inside = area.draw_indoors(stream);
            Self { start, first: inside, second: edge }
        }
    }

    /// The position after walking this far.
    pub(crate) fn after(&self, way: f64) -> Point {
        let approach = self.start.distance(self.first);
        if way < approach {
            return self.start.towards(self.first, way / approach);
        }
        let leg = self.first.distance(self.second);
        let beyond = (way - approach) % (2.0 * leg);
        self.first
            .towards(self.second, if beyond <= leg { beyond / leg } else { 2.0 - beyond / leg })
    }

    /// The corners of the route.
    pub(crate) fn route(&self) -> Vec<Point> {
        vec![self.start, self.first, self.second]
    }
}

/// Legs, on average, after which a walk by waypoints begins anew at a random waypoint: so the position in any round,
/// however late, takes about so many steps at most. Walks that a simulation sees are shorter than the first of these
/// stretches (4,096 legs in a cell of 500 m are two weeks of walking).
const LEGS: f64 = 4096.0;

/// Random waypoint: straight to a random point, a pause, and on to the next. A point is indoors with
/// probability `indoor_share`, else uniform outdoors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Waypoint {
    pub(crate) indoor_share: f64,
    pub(crate) speed: f64,
    pub(crate) pause: f64,
}

impl Waypoint {
    /// The position of a client after a time; `corner` hears of every waypoint since its walk last began anew, up to the
    /// one that comes next.
    pub(crate) fn after(
        &self,
        seconds: f64,
        start: Point,
        area: &Area,
        key: Key,
        mut corner: impl FnMut(Point),
    ) -> Point {
        let stretch = LEGS * self.mean_leg_seconds(area);
        let (mut here, mut left) = (start, seconds);
        let mut stream = key.stream();
        if seconds >= stretch {
            left = seconds % stretch;
            let number = (seconds / stretch) as u64;
            stream = key.round((number >> 32) as u32).attempt(number as u32).stream();
            here = self.draw(area, &mut stream);
        }
        let stream = &mut stream;
        corner(here);
        loop {
            let next = self.draw(area, stream);
            corner(next);
            let leg = here.distance(next) / self.speed;
            if left < leg {
                return here.towards(next, left / leg);
            }
            left -= leg;
            if left < self.pause {
                return next;
            }
            left -= self.pause;
            here = next;
        }
    }

    /// The next waypoint.
    fn draw(&self, area: &Area, stream: &mut Stream) -> Point {
        if stream.random::<f64>() < self.indoor_share {
            area.draw_indoors(stream)
        } else {
            area.draw_outdoors(stream)
        }
    }

    /// About how long a leg takes, pause included: points in the building are a third of its diagonal apart, others
    /// about a radius.
    fn mean_leg_seconds(&self, area: &Area) -> f64 {
        let both_indoors = self.indoor_share * self.indoor_share;
        let way =
            both_indoors * area.width.hypot(area.depth) / 3.0 + (1.0 - both_indoors) * area.radius;
        way / self.speed + self.pause
    }
}

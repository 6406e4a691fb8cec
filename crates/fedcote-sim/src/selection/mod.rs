//! Whom the server asks in a round.

mod drawing;
mod fedcote_selection;
mod gs;
mod newt;
mod power_of_choice;
mod tf;
mod weights;

pub use fedcote_selection::Fedcote;
pub use gs::Gs;
pub use newt::Newt;
pub use power_of_choice::PowerOfChoice;
pub use tf::Tf;
pub use weights::Weights;

use crate::part::Selection;
use crate::scheme::{Scheme, SelectionKind};
use crate::world::World;

/// The selection of a scheme.
pub fn build(scheme: &Scheme, world: &World) -> Box<dyn Selection> {
    let config = &scheme.config;
    let server = &world.scenario.server;
    match scheme.selection {
        SelectionKind::Weights => Box::new(Weights::new(scheme, server.uploads)),
        SelectionKind::PowerOfChoice => Box::new(PowerOfChoice { candidates: config.candidates }),
        SelectionKind::Newt => Box::new(Newt::new(world.task.len())),
        SelectionKind::Gs => Box::new(Gs::default()),
        SelectionKind::TfAggregation => Box::new(Tf::new(scheme, server.uploads)),
        SelectionKind::Fedcote => Box::new(Fedcote::new(scheme, server)),
    }
}

//! Parts of schemes that the program around the simulator provides, in place of the built-in ones.

use std::sync::Arc;

use crate::Error;
use crate::part::{Aggregation, LocalUpdate, Selection};
use crate::scheme::Scheme;
use crate::world::World;

/// What a scheme of one's own replaces; nothing stays as the scheme's table says.
#[derive(Default)]
pub struct OwnParts {
    /// Whom to ask.
    pub selection: Option<Box<dyn Selection>>,
    /// What a client does.
    pub local: Option<Box<dyn LocalUpdate>>,
    /// What becomes of what arrived.
    pub aggregation: Option<Box<dyn Aggregation>>,
}

/// Where they come from.
pub trait OwnSchemes: Send + Sync {
    /// The parts of a scheme whose table has the key `python`, for one run.
    ///
    /// # Errors
    ///
    /// When they cannot be made.
    fn parts(&self, scheme: &Scheme, world: &World) -> Result<OwnParts, Error>;
}

/// The parts that a scheme replaces in a world.
pub(crate) fn parts(scheme: &Scheme, world: &Arc<World>) -> Result<OwnParts, Error> {
    match (&scheme.python, &world.own_schemes) {
        (None, _) => Ok(OwnParts::default()),
        (Some(_), Some(own)) => own.parts(scheme, world),
        (Some(_), None) => Err(missing(format!("scheme.{}.python", scheme.name))),
    }
}

/// The refusal of what only Python can provide.
pub fn missing(place: String) -> Error {
    let reason = "needs Python: install the Python package (`pip install fedcote`) and use its \
                  command, `python -m fedcote`";
    Error::Scenario { place, reason: reason.to_owned() }
}

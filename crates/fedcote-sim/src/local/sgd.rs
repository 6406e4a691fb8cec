//! Plain mini-batch SGD: E steps of w ← w − γ ∇F_i(w; ξ).

use crate::part::{LocalUpdate, State};

/// Plain mini-batch SGD.
pub struct Sgd;

impl LocalUpdate for Sgd {}

impl State for Sgd {}

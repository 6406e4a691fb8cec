//! Part of FedCote.
#![deny(missing_docs)]

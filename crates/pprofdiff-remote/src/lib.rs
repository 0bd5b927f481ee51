//! Fetches profiles from other machines: over http and https, from continuous profilers, and from object stores.
//!
//! An address goes in, and the bytes of a profile come out, with the secrets of the addresses, which errors must hide.
//! This crate does not decide which inputs are addresses, and it loads no profiles: a [`Fetcher`] only knows timeouts,
//! limits, redirects and credentials.

mod http;
mod objects;

pub use http::Fetcher;

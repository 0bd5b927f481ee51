//! The session as a browser's worker sees it: JSON and bytes in and out, errors as JavaScript's.
//!
//! There are no threads: they need headers of isolation, which most file servers do not send.

use pprofdiff::{Error, LoadOptions, Source};
use serde::de::DeserializeOwned;
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::session::{Session, choices};

/// Most bytes that a profile may inflate to: a quarter of what a module of 32 bits can have, since there are two sides,
/// and what is worked out of them.
const INFLATED_LIMIT: u64 = 1 << 30;

/// What can be asked, as JSON.
#[wasm_bindgen(js_name = choices)]
pub fn choices_json() -> String {
    choices().to_string()
}

/// See [`Session`].
#[wasm_bindgen]
pub struct Engine(Session);

#[wasm_bindgen]
impl Engine {
    /// An engine without files.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Engine {
        Engine(Session::new(LoadOptions::default().with_inflated_limit(INFLATED_LIMIT).unwrap_or_default()))
    }

    /// See [`Session::add`].
    pub fn add(&mut self, name: String, bytes: Vec<u8>) -> Result<usize, JsError> {
        self.0.add(Source::Bytes(name, bytes)).map_err(to_js_error)
    }

    /// See [`Session::read`].
    pub fn read(&self, file: usize) -> Result<(), JsError> {
        self.0.read(file).map_err(to_js_error)
    }

    /// See [`Session::compare`].
    pub fn compare(&mut self, sides: &str) -> Result<String, JsError> {
        self.0.compare(&parsed(sides)?).map(|known| known.to_string()).map_err(to_js_error)
    }

    /// See [`Session::answer`].
    pub fn answer(&mut self, question: &str, format: &str) -> Result<Vec<u8>, JsError> {
        self.0.answer(&parsed(question)?, format).map_err(to_js_error)
    }
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, JsError> {
    serde_json::from_str(text).map_err(|e| JsError::new(&e.to_string()))
}

fn to_js_error(e: Error) -> JsError {
    JsError::new(&e.to_string())
}

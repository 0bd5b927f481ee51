//! The session's interface for a web worker. Arguments and results are JSON and bytes, and errors are JavaScript
//! errors.
//!
//! The module uses no threads, because they need isolation headers that most file servers do not send.

use pprofdiff::{Error, LoadOptions, Source};
use serde::de::DeserializeOwned;
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::session::{Session, choices};

/// The maximum size of an inflated profile: a quarter of the memory of a 32-bit module. The two sides and the results
/// derived from them need the rest.
const INFLATED_LIMIT: u64 = 1 << 30;

/// Returns the choices of the page as JSON.
#[wasm_bindgen(js_name = choices)]
pub fn choices_json() -> String {
    choices().to_string()
}

/// The engine in JavaScript; see [`Session`].
#[wasm_bindgen]
pub struct Engine(Session);

#[wasm_bindgen]
impl Engine {
    /// Creates an engine without files.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Engine {
        Engine(Session::new(LoadOptions::default().with_inflated_limit(INFLATED_LIMIT).unwrap_or_default()))
    }

    /// Adds a file; see [`Session::add`].
    pub fn add(&mut self, name: String, bytes: Vec<u8>) -> Result<usize, JsError> {
        self.0.add(Source::Bytes(name, bytes)).map_err(to_js_error)
    }

    /// Reads a file; see [`Session::read`].
    pub fn read(&self, file: usize) -> Result<(), JsError> {
        self.0.read(file).map_err(to_js_error)
    }

    /// Sets the sides; see [`Session::compare`].
    pub fn compare(&mut self, sides: &str) -> Result<String, JsError> {
        self.0.compare(&parsed(sides)?).map(|comparison| comparison.to_string()).map_err(to_js_error)
    }

    /// Answers a question; see [`Session::answer`].
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

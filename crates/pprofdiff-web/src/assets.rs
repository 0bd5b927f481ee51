//! The files of the page around the report. `pprofdiff serve` and a static file server use the same files; only the
//! engine differs, which is either the server or a web worker.

use pprofdiff_page::{page_hashes, page_style};

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// The path, relative to the page's address.
    pub name: &'static str,
    /// The content type for HTTP responses.
    pub content_type: &'static str,
    /// The content of the file.
    pub content: &'static [u8],
}

const fn asset(name: &'static str, content_type: &'static str, content: &'static [u8]) -> Asset {
    Asset { name, content_type, content }
}

/// The page's files except [`index`] and [`style`].
pub const ASSETS: &[Asset] = &[
    asset("app.js", "text/javascript; charset=utf-8", include_bytes!("page/app.js")),
    asset("engine.js", "text/javascript; charset=utf-8", include_bytes!("page/engine.js")),
    asset("example/main.pb.gz", "application/octet-stream", include_bytes!("page/example/main.pb.gz")),
    asset("example/branch.pb.gz", "application/octet-stream", include_bytes!("page/example/branch.pb.gz")),
];

/// The scripts for a static file server: the web worker that runs the engine, and the service worker that keeps the
/// page available offline. The service worker is a template with placeholders for the version and the list of files.
pub const WORKER: [&str; 2] = [include_str!("page/worker.js"), include_str!("page/sw.js")];

/// The engine that answers the page's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEngine {
    /// The WebAssembly module in a web worker.
    Worker,
    /// The server that sent the page.
    Server,
}

/// Returns the style sheet: the report's style and the style of the page around it.
pub fn style() -> String {
    page_style().to_owned() + include_str!("page/style.css")
}

/// Returns the page itself. Its content security policy allows the page's own files and the framed report with its
/// single script. Everything else is neither loaded nor sent.
pub fn index(engine: PageEngine) -> String {
    let [script, style] = page_hashes();
    let (name, compiles, promise) = match engine {
        PageEngine::Worker => {
            ("worker", " 'wasm-unsafe-eval'", "Nothing is uploaded: the profiles stay in this browser.")
        }
        PageEngine::Server => ("server", "", "The profiles stay on this machine: pprofdiff serve reads them."),
    };
    let policy = format!(
        "default-src 'none'; script-src 'self' '{script}'{compiles}; style-src 'self' '{style}'; img-src data:; \
         connect-src 'self'; worker-src 'self'; frame-src blob:; base-uri 'none'; form-action 'none'"
    );
    let page = include_str!("page/index.html");
    page.replace("{policy}", &policy).replace("{engine}", name).replace("{promise}", promise)
}

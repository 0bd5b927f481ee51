//! The page's files: what surrounds the report. Those of `pprofdiff serve` and those of a file server are the same, but
//! for the engine, which is the server or a worker.

use pprofdiff_report::{page_hashes, page_style};

/// One of the page's files.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Below the page's address.
    pub name: &'static str,
    /// Its type, for who serves it.
    pub content_type: &'static str,
    /// What it holds.
    pub content: &'static [u8],
}

const fn asset(name: &'static str, content_type: &'static str, content: &'static [u8]) -> Asset {
    Asset { name, content_type, content }
}

/// The files besides [`index`] and [`style`].
pub const ASSETS: &[Asset] = &[
    asset("app.js", "text/javascript; charset=utf-8", include_bytes!("page/app.js")),
    asset("engine.js", "text/javascript; charset=utf-8", include_bytes!("page/engine.js")),
    asset("example/main.pb.gz", "application/octet-stream", include_bytes!("page/example/main.pb.gz")),
    asset("example/branch.pb.gz", "application/octet-stream", include_bytes!("page/example/branch.pb.gz")),
];

/// The thread of the engine in a browser, and what keeps the page there: a template, with marks for the version and the
/// list of files.
pub const WORKER: [&str; 2] = [include_str!("page/worker.js"), include_str!("page/sw.js")];

/// What answers the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The module, in a worker of the page.
    Worker,
    /// The server that the page comes from.
    Server,
}

/// The style: the report's, and what is around it.
pub fn style() -> String {
    page_style().to_owned() + include_str!("page/style.css")
}

/// The page itself. Its policy allows its own files and the report, which is framed and may run its one script; nothing
/// else is loaded or sent.
pub fn index(engine: Engine) -> String {
    let [script, style] = page_hashes();
    let (name, compiles, promise) = match engine {
        Engine::Worker => ("worker", " 'wasm-unsafe-eval'", "Nothing is uploaded: the profiles stay in this browser."),
        Engine::Server => ("server", "", "The profiles stay on this machine: pprofdiff serve reads them."),
    };
    let policy = format!(
        "default-src 'none'; script-src 'self' '{script}'{compiles}; style-src 'self' '{style}'; img-src data:; \
         connect-src 'self'; worker-src 'self'; frame-src blob:; base-uri 'none'; form-action 'none'"
    );
    let page = include_str!("page/index.html");
    page.replace("{policy}", &policy).replace("{engine}", name).replace("{promise}", promise)
}

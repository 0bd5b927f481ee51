//! The server behind `pprofdiff serve`: serves the page, with this process as its engine.
//!
//! The server accepts connections only from this machine, at an address that contains a secret. A malicious page in the
//! same browser can still send requests to it. Three checks reject such requests: the path must contain the secret, the
//! Host header must be this address (which prevents DNS rebinding), and the Origin header, if present, must be this
//! page. The server reads only the paths and URLs on its command line; the page uploads the content of other files.
//!
//! `--open` starts the browser with a private file that redirects to the address, because other users can read the
//! arguments of a process.
//!
//! Each tab has its own sessions, under names that the tab chooses. A tab's first session has the files of the command
//! line. A bad file therefore affects only one session, and a late answer can't be mistaken for the answer to another
//! request. A closed tab sends no message, so the server keeps only the most recently used sessions. Sessions share the
//! profiles of the command line.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pprofdiff::output::PrivateFile;
use pprofdiff::{Cancellation, Source};
use pprofdiff_shell::{Failure, Result, say, terminal};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{ASSETS, PageEngine, Question, Session, choices, index, style};

/// The address and the limits of the server.
#[derive(Debug, Clone, Copy)]
pub struct ServeOptions {
    /// The port on 127.0.0.1, or 0 for any free port.
    pub port: u16,
    /// True if the browser is started.
    pub open: bool,
    /// The maximum size of an uploaded file in bytes.
    pub limit: usize,
}

/// Serves the page until the process ends. Each tab starts from `session`.
///
/// # Errors
/// Fails if the port is not available, or if the browser cannot be started.
pub fn serve(session: Session, options: ServeOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", options.port)).await.map_err(|e| {
            Failure::Message(format!("can't listen on 127.0.0.1:{} ({e}); try another --port", options.port))
        })?;
        let port = listener.local_addr()?.port();
        let server = Arc::new(PageServer {
            hosts: ["127.0.0.1", "localhost"].map(|host| match port {
                // Browsers omit the default port.
                80 => host.to_owned(),
                port => format!("{host}:{port}"),
            }),
            secret: secret(),
            limit: options.limit,
            first: session,
            opened: Mutex::default(),
            sessions: Mutex::default(),
            pool: rayon::ThreadPoolBuilder::new().build().ok(),
        });
        let address = format!("http://{}/{}/", server.hosts[0], server.secret);
        say(&format!("{address} (stop with Ctrl-C)"));
        if options.open {
            let page = PrivateFile::new(".html", redirect(&address).as_bytes())?;
            let opened = terminal::open_page(page.path());
            *server.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(page);
            opened?;
            let server = server.clone();
            tokio::spawn(async move {
                tokio::time::sleep(OPENED_TIMEOUT).await;
                server.forget_opened();
            });
        }
        loop {
            // A failed connection, or too many connections, must not stop the server.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let server = server.clone();
            tokio::spawn(async move {
                let service = service_fn(|request| server.clone().answer(request));
                // A browser that disconnects in the middle of an answer is not an error.
                let mut connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

/// The time that a browser has to load the page after `--open` starts it.
const OPENED_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a page that redirects a browser to `address`. The address is a secret, and every user of the machine can
/// read the arguments of a process. The browser therefore gets the file of this page, which only this user can read.
fn redirect(address: &str) -> String {
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<title>pprofdiff</title>\n\
         <p><a href=\"{address}\">pprofdiff serve</a></p>\n"
    )
}

/// Returns 128 random bits as hexadecimal digits. The keys of hashers come from the system's random source.
fn secret() -> String {
    let part = || RandomState::new().hash_one(0u8);
    format!("{:016x}{:016x}", part(), part())
}

struct PageServer {
    /// The values of the Host header that name this server.
    hosts: [String; 2],
    secret: String,
    /// The maximum size of an uploaded file: the limit for inflated profiles.
    limit: usize,
    /// The session with the files of the command line, from which each tab starts.
    first: Session,
    sessions: Mutex<Sessions>,
    /// The redirect page of `--open`, until the browser has loaded the address or [`OPENED_TIMEOUT`] has passed.
    opened: Mutex<Option<PrivateFile>>,
    pool: Option<rayon::ThreadPool>,
}

/// The maximum number of sessions, because closed tabs are not reported.
const MAX_SESSIONS: usize = 32;
/// The maximum length of a session's name.
const MAX_NAME_BYTES: usize = 64;

/// The sessions by name. The most recently used session comes last.
#[derive(Default)]
struct Sessions(Vec<(String, Arc<Mutex<Session>>)>);

impl Sessions {
    fn find(&mut self, name: &str) -> Option<Arc<Mutex<Session>>> {
        let position = self.0.iter().position(|(session_name, _)| session_name == name)?;
        self.0[position..].rotate_left(1);
        self.0.last().map(|(_, session)| session.clone())
    }

    fn begin(&mut self, name: &str, session: Session) -> Arc<Mutex<Session>> {
        self.end(name);
        if self.0.len() >= MAX_SESSIONS {
            self.0.remove(0);
        }
        let session = Arc::new(Mutex::new(session));
        self.0.push((name.to_owned(), session.clone()));
        session
    }

    fn end(&mut self, name: &str) {
        self.0.retain(|(session_name, _)| session_name != name);
    }
}

/// Stops work when the connection that waits for its answer is dropped.
struct StopWhenDropped(Cancellation);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// An answer with its content type, or an error with its HTTP status.
type PageAnswer = Result<(&'static str, Vec<u8>), (StatusCode, String)>;

#[derive(Deserialize)]
struct AnswerRequest {
    question: Question,
    format: String,
}

impl PageServer {
    async fn answer(self: Arc<PageServer>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (status, (content_type, content)) = match self.answer_to(request).await {
            Ok(answer) => (StatusCode::OK, answer),
            Err((status, why)) => (status, ("text/plain; charset=utf-8", why.into_bytes())),
        };
        let mut response = Response::new(Full::new(Bytes::from(content)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            // The address contains the secret.
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-frame-options", "DENY"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Ok(response)
    }

    async fn answer_to(self: Arc<PageServer>, request: Request<Incoming>) -> PageAnswer {
        let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
        let is_host = |host: &str| self.hosts.iter().any(|allowed| allowed == host);
        if !header(HOST).is_some_and(is_host) {
            return Err((StatusCode::MISDIRECTED_REQUEST, "the Host header does not name this server".to_owned()));
        }
        if header(ORIGIN).is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(is_host)) {
            return Err((StatusCode::FORBIDDEN, "requests from other pages are not allowed".to_owned()));
        }
        let missing = || {
            (
                StatusCode::NOT_FOUND,
                "not found; use the address that pprofdiff serve printed, which contains a secret".to_owned(),
            )
        };
        let path = request.uri().path().strip_prefix('/').and_then(|path| path.split_once('/')).ok_or_else(missing)?;
        // This comparison is not constant-time. Differences of nanoseconds cannot be measured over HTTP.
        let (_, name) = Some(path).filter(|(secret, _)| *secret == self.secret).ok_or_else(missing)?;
        self.forget_opened();
        if request.method() == Method::GET {
            return self.file(name).ok_or_else(missing);
        }
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and POST".to_owned()));
        }
        let operation = name.to_owned();
        let file = request.uri().query().and_then(|query| query.strip_prefix("name=")).map(decoded);
        let body = Limited::new(request.into_body(), self.limit).collect().await;
        let body = body.map_err(|e| (StatusCode::PAYLOAD_TOO_LARGE, e.to_string()))?.to_bytes();
        // hyper drops `stopping` with this future if the browser closes the connection. The page does so to cancel a
        // request.
        let stopping = StopWhenDropped(Cancellation::new());
        let work = stopping.0.clone();
        let done = tokio::task::spawn_blocking(move || self.operate(&operation, file, body, &work)).await;
        done.unwrap_or_else(|e| Err((StatusCode::INTERNAL_SERVER_ERROR, e.to_string())))
    }

    /// Performs an operation of the page. The operations have the same names as in the page's worker.
    fn operate(&self, path: &str, file: Option<String>, body: Bytes, work: &Cancellation) -> PageAnswer {
        if path == "choices" {
            return as_json(&choices());
        }
        let Some((name, operation)) = path.split_once('/') else { return Err(unknown(path)) };
        if name.len() > MAX_NAME_BYTES {
            return Err((StatusCode::BAD_REQUEST, "the session's name is too long".to_owned()));
        }
        let session = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            match (operation, sessions.find(name)) {
                ("end", _) => {
                    sessions.end(name);
                    return as_json(&Value::Null);
                }
                ("begin", _) => {
                    sessions.begin(name, self.first.fork_empty());
                    return as_json(&Value::Null);
                }
                (_, Some(session)) => session,
                ("state", None) => sessions.begin(name, self.first.fork()),
                (_, None) => {
                    let why = format!(
                        "pprofdiff serve keeps the files of the {MAX_SESSIONS} most recently used tabs, and dropped \
                         those of this tab; reload to see the files of the command line"
                    );
                    return Err((StatusCode::GONE, why));
                }
            }
        };
        // Locks the session before work moves to the pool. A pool thread that waits for another thread may execute
        // other requests meanwhile, and would deadlock on a lock that it holds itself.
        let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = &mut *session;
        let answer = || work.run(|| operate(session, operation, file, body));
        let answer = match &self.pool {
            Some(pool) => pool.install(answer),
            None => answer(),
        };
        answer.unwrap_or_else(|e| Err((StatusCode::SERVICE_UNAVAILABLE, e.to_string())))
    }

    /// Removes the redirect page of `--open`.
    fn forget_opened(&self) {
        drop(self.opened.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Returns a file of the page.
    fn file(&self, name: &str) -> Option<(&'static str, Vec<u8>)> {
        Some(match name {
            "" => ("text/html; charset=utf-8", index(PageEngine::Server).into_bytes()),
            "style.css" => ("text/css; charset=utf-8", style().into_bytes()),
            name => ASSETS.iter().find(|asset| asset.name == name).map(|a| (a.content_type, a.content.to_vec()))?,
        })
    }
}

fn operate(session: &mut Session, operation: &str, file: Option<String>, body: Bytes) -> PageAnswer {
    let unprocessable = |e: pprofdiff::Error| (StatusCode::UNPROCESSABLE_ENTITY, e.to_string());
    let value: Value = match operation {
        "state" => json!({"files": session.names(), "sides": session.sides()}),
        "add" => {
            let source = Source::Bytes(file.unwrap_or_else(|| "profile".to_owned()), body.into());
            session.add(source).map_err(unprocessable)?.into()
        }
        "read" => session.read(parsed(&body)?).map(|()| Value::Null).map_err(unprocessable)?,
        "compare" => session.compare(&parsed(&body)?).map_err(unprocessable)?,
        "answer" => {
            let AnswerRequest { question, format } = parsed(&body)?;
            return Ok(("application/octet-stream", session.answer(&question, &format).map_err(unprocessable)?));
        }
        other => return Err(unknown(other)),
    };
    as_json(&value)
}

fn as_json(value: &Value) -> PageAnswer {
    Ok(("application/json", value.to_string().into_bytes()))
}

fn unknown(operation: &str) -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, format!("unknown operation {operation:?}"))
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(body).map_err(|e| (StatusCode::BAD_REQUEST, e.to_string()))
}

/// Decodes a text that the page encoded with `encodeURIComponent`.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

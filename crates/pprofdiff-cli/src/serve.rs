//! `pprofdiff serve`: the page of pprofdiff-web, with this process as its engine.
//!
//! It listens on this machine only, under an address that holds a secret. A page of somebody else's that a browser has
//! open can send requests here all the same: it does not know the secret, and besides a request must name this host (so
//! that no other name can be made to lead here) and, where it says which page sends it, this page. Paths and URLs are read
//! if the command line names them; the page sends contents.
//!
//! `--open` starts the browser with a private file that redirects to the address, because other users can read the arguments
//! of a process.
//!
//! Each tab has sessions of its own, under names that it makes; the first has the files of the command line.
//! So a bad file closes nothing, tabs share nothing, and no answer that comes late is taken for another's. Nobody hears
//! of a tab that is closed: the sessions that were used last are kept, and share the command line's profiles.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pprofdiff::output::PrivateFile;
use pprofdiff::recording::Recording;
use pprofdiff::{Source, Work};
use pprofdiff_web::{ASSETS, Engine, Question, Session, Sides, choices, index, style};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::args::ServeArgs;
use crate::outputs::Outputs;
use crate::{Failure, Inputs, Result, one_stdin, say, terminal};

/// Serves until it is ended.
pub fn run(args: &ServeArgs) -> Result<()> {
    let inputs = Inputs::without_base(&args.load, Outputs::default())?;
    let mut session = Session::new(inputs.options.clone());
    let recorded = match args.sides.files.as_slice() {
        [dir] if Recording::is_in(dir) => Some(Recording::read_sides(dir)?),
        _ => None,
    };
    let (base, new) = if let Some([base, new]) = &recorded {
        (base.iter().collect(), new.iter().collect())
    } else if args.sides.base.is_empty() && args.sides.new.is_empty() {
        match args.sides.files.as_slice() {
            [base, new] => (vec![base], vec![new]),
            files => (Vec::new(), files.iter().collect()),
        }
    } else {
        (args.sides.base.iter().collect(), args.sides.new.iter().collect())
    };
    one_stdin(base.iter().chain(&new).copied())?;
    let is_alone = base.is_empty();
    let mut add = |side: Vec<&PathBuf>| -> Result<Vec<usize>> {
        // One side of runs alone is a profile; beside another it is its runs.
        let sources =
            if is_alone { side.iter().map(|path| inputs.source(path)).collect() } else { inputs.sources(side) };
        sources?.into_iter().map(|source| Ok(session.add(source)?)).collect()
    };
    let (base, new) = (add(base)?, add(new)?);
    let named = !new.is_empty();
    if named {
        session.plan(match base.is_empty() && new.len() > 1 {
            true => Sides::Series(new),
            false => Sides::Diff { base, new },
        });
    }
    let limit = usize::try_from(inputs.options.inflated_limit).unwrap_or(usize::MAX);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", args.port)).await.map_err(|e| {
            Failure::Message(format!("127.0.0.1:{} can't be listened on ({e}); another --port, perhaps", args.port))
        })?;
        let port = listener.local_addr()?.port();
        let server = Arc::new(Server {
            hosts: ["127.0.0.1", "localhost"].map(|host| match port {
                // Browsers leave it out.
                80 => host.to_owned(),
                port => format!("{host}:{port}"),
            }),
            secret: secret(),
            limit,
            first: session,
            opened: Mutex::default(),
            sessions: Mutex::default(),
            pool: rayon::ThreadPoolBuilder::new().build().ok(),
        });
        let address = format!("http://{}/{}/", server.hosts[0], server.secret);
        say(&format!("{address} (Ctrl-C ends it)"));
        if args.open {
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
            // A client that is gone again, or too many of them, end no server.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let server = server.clone();
            tokio::spawn(async move {
                let service = service_fn(|request| server.clone().answer(request));
                // A browser that goes away in the middle of an answer is no error.
                let mut connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

/// The time that a browser has to load the page after `--open` starts it.
const OPENED_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a page that redirects a browser to `address`. The address is a secret, and every user of the machine can read the
/// arguments of a process. The browser therefore gets the file of this page, which only this user can read.
fn redirect(address: &str) -> String {
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<title>pprofdiff</title>\n\
         <p><a href=\"{address}\">pprofdiff serve</a></p>\n"
    )
}

/// 128 random bits: hashers have keys from the system's random source.
fn secret() -> String {
    let part = || RandomState::new().hash_one(0u8);
    format!("{:016x}{:016x}", part(), part())
}

struct Server {
    /// What the address can be called.
    hosts: [String; 2],
    secret: String,
    /// Bytes of a file that the page sends: as many as it may inflate to.
    limit: usize,
    /// That of the command line's files, with which each tab begins.
    first: Session,
    sessions: Mutex<Sessions>,
    /// The redirect page of `--open`, until the browser has loaded the address.
    opened: Mutex<Option<PrivateFile>>,
    pool: Option<rayon::ThreadPool>,
}

/// Most sessions that are kept: nobody hears of a tab that is closed.
const MAX_SESSIONS: usize = 32;
/// Most bytes of a session's name.
const MAX_NAME_BYTES: usize = 64;

/// What tabs are doing, by the names that they give it; the one that was used last comes last.
#[derive(Default)]
struct Sessions(Vec<(String, Arc<Mutex<Session>>)>);

impl Sessions {
    fn find(&mut self, name: &str) -> Option<Arc<Mutex<Session>>> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        self.0[at..].rotate_left(1);
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
        self.0.retain(|(known, _)| known != name);
    }
}

/// Stops work whose answer nobody waits for any more.
struct StopWhenDropped(Work);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// An answer: its type and content, or what is wrong with the question.
type Answer = Result<(&'static str, Vec<u8>), (StatusCode, String)>;

#[derive(Deserialize)]
struct Asked {
    question: Question,
    format: String,
}

impl Server {
    async fn answer(self: Arc<Server>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
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
            // The address is the secret.
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-frame-options", "DENY"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Ok(response)
    }

    async fn answer_to(self: Arc<Server>, request: Request<Incoming>) -> Answer {
        let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
        let is_host = |host: &str| self.hosts.iter().any(|own| own == host);
        if !header(HOST).is_some_and(is_host) {
            return Err((StatusCode::MISDIRECTED_REQUEST, "this is no other host".to_owned()));
        }
        if header(ORIGIN).is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(is_host)) {
            return Err((StatusCode::FORBIDDEN, "another page has no business here".to_owned()));
        }
        let missing = || (StatusCode::NOT_FOUND, "pprofdiff serve has printed its address, with a secret".to_owned());
        let path = request.uri().path().strip_prefix('/').and_then(|path| path.split_once('/')).ok_or_else(missing)?;
        // Who can guess 128 bits by how long this takes has no need to.
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
        // A browser that goes, or that asks for something else instead, drops this.
        let stopping = StopWhenDropped(Work::new());
        let work = stopping.0.clone();
        let done = tokio::task::spawn_blocking(move || self.operate(&operation, file, body, &work)).await;
        done.unwrap_or_else(|e| Err((StatusCode::INTERNAL_SERVER_ERROR, e.to_string())))
    }

    /// What the page asks of its engine: as the worker's operations.
    fn operate(&self, path: &str, file: Option<String>, body: Bytes, work: &Work) -> Answer {
        if path == "choices" {
            return as_json(&choices());
        }
        let Some((name, operation)) = path.split_once('/') else { return Err(unknown(path)) };
        if name.len() > MAX_NAME_BYTES {
            return Err((StatusCode::BAD_REQUEST, "that is no session's name".to_owned()));
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
                        "pprofdiff serve keeps the files of the {MAX_SESSIONS} tabs that were used last, and these no \
                         more; reload to see those of the command line"
                    );
                    return Err((StatusCode::GONE, why));
                }
            }
        };
        // Before the pool's threads take part: one that waits for another helps with other requests meanwhile, and would
        // wait for what it holds itself.
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

    /// A file of the page.
    fn file(&self, name: &str) -> Option<(&'static str, Vec<u8>)> {
        Some(match name {
            "" => ("text/html; charset=utf-8", index(Engine::Server).into_bytes()),
            "style.css" => ("text/css; charset=utf-8", style().into_bytes()),
            name => ASSETS.iter().find(|asset| asset.name == name).map(|a| (a.content_type, a.content.to_vec()))?,
        })
    }
}

fn operate(session: &mut Session, operation: &str, file: Option<String>, body: Bytes) -> Answer {
    let told = |e: pprofdiff::Error| (StatusCode::UNPROCESSABLE_ENTITY, e.to_string());
    let known: Value = match operation {
        "state" => json!({"files": session.names(), "sides": session.sides()}),
        "add" => {
            let source = Source::Bytes(file.unwrap_or_else(|| "profile".to_owned()), body.into());
            session.add(source).map_err(told)?.into()
        }
        "read" => session.read(parsed(&body)?).map(|()| Value::Null).map_err(told)?,
        "compare" => session.compare(&parsed(&body)?).map_err(told)?,
        "answer" => {
            let Asked { question, format } = parsed(&body)?;
            return Ok(("application/octet-stream", session.answer(&question, &format).map_err(told)?));
        }
        other => return Err(unknown(other)),
    };
    as_json(&known)
}

fn as_json(known: &Value) -> Answer {
    Ok(("application/json", known.to_string().into_bytes()))
}

fn unknown(operation: &str) -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, format!("there is no operation {operation:?}"))
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(body).map_err(|e| (StatusCode::BAD_REQUEST, e.to_string()))
}

/// A part of an address as it was before `encodeURIComponent`.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

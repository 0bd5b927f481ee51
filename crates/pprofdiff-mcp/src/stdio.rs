//! A transport that reads and writes messages as lines. The transport of rmcp does not answer a line that is not JSON,
//! so a client could wait forever. This transport answers it as JSON-RPC requires.

use std::io::{self, BufRead, Read, Write};

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The maximum length of a line in bytes.
const MAX_LINE_BYTES: usize = 16 << 20;

type ClientMessage = RxJsonRpcMessage<RoleServer>;

/// The transport. Contains the receiver for the messages that a thread reads from standard input.
pub struct Stdio(mpsc::Receiver<ClientMessage>);

impl Stdio {
    pub fn new() -> Stdio {
        let (sender, receiver) = mpsc::channel(1);
        // Uses a separate thread, because a read of standard input can't be cancelled. The thread ends with the
        // process.
        std::thread::spawn(move || read_messages(&sender));
        Stdio(receiver)
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = serde_json::to_vec(&message);
        async move {
            let line = line?;
            tokio::task::spawn_blocking(move || write_line(line)).await.map_err(io::Error::other)?
        }
    }

    async fn receive(&mut self) -> Option<ClientMessage> {
        self.0.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.close();
        Ok(())
    }
}

/// Forwards messages, and answers invalid lines, until the client or the server has gone.
fn read_messages(sender: &mpsc::Sender<ClientMessage>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line);
        let is_whole = line.ends_with(b"\n");
        if read.is_err() || !is_whole && line.len() <= MAX_LINE_BYTES {
            return;
        }
        let parsed = if is_whole {
            parse(&line)
        } else {
            if input.skip_until(b'\n').is_err() {
                return;
            }
            let why = format!("a message can have at most {MAX_LINE_BYTES} bytes");
            Err(refusal(ErrorCode::INVALID_REQUEST, &why, None))
        };
        let goes_on = match parsed {
            Ok(Some(message)) => sender.blocking_send(message).is_ok(),
            Ok(None) => true,
            Err(refusal) => write_line(refusal.to_string().into_bytes()).is_ok(),
        };
        if !goes_on {
            return;
        }
    }
}

/// Returns the message of a line, `None` if the line needs no answer, or an error response for an invalid line.
fn parse(line: &[u8]) -> Result<Option<ClientMessage>, Value> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_slice(line).map_err(|e| {
        let why = format!("this line is not JSON ({e}); a message is a line of JSON");
        refusal(ErrorCode::PARSE_ERROR, &why, None)
    })?;
    let e = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(e) => e,
    };
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    match (value.get("method").and_then(Value::as_str), id, value.get("id")) {
        // A message with a method but without an id is a notification, which never gets a response, even if it is
        // invalid.
        (Some(_), None, None) => Ok(None),
        (Some(method), Some(id), _) if value["jsonrpc"] == "2.0" => {
            Err(refusal(ErrorCode::INVALID_PARAMS, &format!("the parameters of {method} are wrong: {e}"), Some(id)))
        }
        _ => Err(refusal(ErrorCode::INVALID_REQUEST, &format!("this is not a message of JSON-RPC 2.0: {e}"), None)),
    }
}

fn refusal(code: ErrorCode, message: &str, id: Option<RequestId>) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Writes a line while it holds the lock of standard output, because several threads write.
fn write_line(mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

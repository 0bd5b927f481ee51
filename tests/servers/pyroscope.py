#!/usr/bin/env python3
"""Compares the answers of a real Pyroscope to `pyroscope://` with the profiles that were sent to it.

    tests/servers/pyroscope.py PPROFDIFF PYROSCOPE [--write]

PPROFDIFF and PYROSCOPE are the two commands. `build_pyroscope` builds version 1.6; version 2.0 works, too. The server
only listens on the loopback interface, uses a temporary folder, and sends no statistics. With --write, its answers are
recorded in `tests/corpus/servers/`, where `tests/servers.rs` replays them."""

import argparse
import gzip
import http.server
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
# The pairs, and the sample types to request from each.
PAIRS = {"story-cpu": ["cpu", "samples"], "go-heap": ["alloc_space", "inuse_objects"]}
VERSIONS = {"base": "v1", "new": "v2"}
HOUR = 3600


class Pyroscope:
    """A server that this script starts, with its data in a folder."""

    def __init__(self, command: str, folder: Path) -> None:
        ports = [4141, 9095, 7947, 9099]
        local = "127.0.0.1"
        rings = [
            "compactor.ring",
            "distributor.ring",
            "overrides-exporter.ring",
            "query-frontend",
            "query-scheduler.ring",
        ]
        args = [f"-{ring}.instance-addr={local}" for ring in [*rings, "store-gateway.sharding-ring"]]
        args += [f"-{part}.lifecycler.addr={local}" for part in ["ingester", "segment-writer"]]
        args += [f"-server.http-listen-address={local}", f"-server.http-listen-port={ports[0]}"]
        args += [f"-server.grpc-listen-address={local}", f"-server.grpc-listen-port={ports[1]}"]
        args += [f"-memberlist.bind-addr={local}", f"-memberlist.bind-port={ports[2]}"]
        args += [f"-memberlist.advertise-addr={local}"]
        args += [f"-metastore.raft.{kind}-address={local}:{ports[3]}" for kind in ["bind", "advertise"]]
        # Data are available as soon as they are sent, and nothing leaves this machine.
        args += ["-architecture.storage=v2", "-self-profiling.disable-push=true", "-usage-stats.enabled=false"]
        args += ["-tracing.enabled=false", f"-pyroscopedb.data-path={folder}/data"]
        args += [f"-storage.filesystem.dir={folder}/shared"]
        # Servers before 2.0 do not have the new storage and its options.
        known = subprocess.run([command, "-help-all"], capture_output=True, text=True).stdout
        self.is_older = "architecture.storage" not in known
        args = [arg for arg in args if re.search(rf"^  {arg.partition('=')[0]}\b", known, re.MULTILINE)]
        self.url = f"http://{local}:{ports[0]}"
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([command, *args], cwd=folder, stdout=log, stderr=log)

    def wait(self) -> None:
        """Waits until the server is ready, which takes a minute."""
        for _ in range(300):
            if self.process.poll() is not None:
                sys.exit(f"Pyroscope ended: {self.log.read_text()[-1000:]}")
            try:
                with urllib.request.urlopen(f"{self.url}/ready", timeout=10):
                    return
            except OSError:
                time.sleep(1)
        sys.exit("Pyroscope does not become ready")

    def send(self, profile: bytes, version: str, moment: int) -> None:
        """Sends a profile of the service `shop`. Profiles must be from the last hour, so an appended field overrides
        the time."""
        profile = gzip.decompress(profile) + b"\x48" + varint(moment * 10**9)
        query = {
            "name": f"shop{{version={version},zone=eu west}}",
            "format": "pprof",
            "from": moment,
            "until": moment + 10,
        }
        url = f"{self.url}/ingest?{urllib.parse.urlencode(query)}"
        for _ in range(60):
            try:
                urllib.request.urlopen(urllib.request.Request(url, data=profile, method="POST"), timeout=60).close()
                return
            except urllib.error.HTTPError as error:
                said = error.read().decode()
            # An older server reports that it is ready before its components have found each other.
            if "empty ring" not in said:
                break
            time.sleep(1)
        sys.exit(f"Pyroscope takes no profile of {version}: {said}")


def varint(number: int) -> bytes:
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


class Recorder(http.server.BaseHTTPRequestHandler):
    """Forwards requests to Pyroscope, and records its answers."""

    server: "Proxy"

    def do_POST(self) -> None:
        question = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name: self.headers[name] for name in ["Content-Type", "Accept-Encoding"]}
        request = urllib.request.Request(self.server.to + self.path, data=question, headers=headers)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            body, kind = answer.read(), answer.headers["Content-Type"]
        self.server.kept.append((self.path, question, answer.status, kind, body))
        self.send_response(answer.status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Proxy(http.server.ThreadingHTTPServer):
    def __init__(self, to: str) -> None:
        super().__init__(("127.0.0.1", 0), Recorder)
        self.to = to
        self.kept: list[tuple[str, bytes, int, str, bytes]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


def run(command: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([command, *args], capture_output=True, text=True)


def table(command: str, *args: str) -> tuple[int, dict[str, tuple[int, int]]]:
    """Returns the total, and flat and cumulative values by function."""
    done = run(command, "top", *args, "--format", "json", "-n", "0")
    if done.returncode:
        sys.exit(done.stderr)
    report = json.loads(done.stdout)
    rows: dict[str, tuple[int, int]] = {}
    for row in report["rows"]:
        # Pyroscope omits Go's type parameters. Before 2.0 it replaced them with dots.
        name = re.sub(r"\[(go\.shape\..*|\.\.\.)\]", "", row["name"])
        flat, cum = rows.get(name, (0, 0))
        rows[name] = (flat + row["flat"], max(cum, row["cum"]))
    return report["total"], {name: values for name, values in rows.items() if values != (0, 0)}


def main() -> None:
    parser = argparse.ArgumentParser(description="See this file's first lines.")
    parser.add_argument("pprofdiff")
    parser.add_argument("pyroscope")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Pyroscope(args.pyroscope, Path(folder))
        try:
            server.wait()
            compare(args.pprofdiff, server, args.write)
        finally:
            server.process.terminate()
            server.process.wait(60)


def compare(command: str, server: Pyroscope, write: bool) -> None:
    now = int(time.time())
    for pair in PAIRS:
        for side, version in VERSIONS.items():
            profile = (CORPUS / f"{pair}.{side}.pb.gz").read_bytes()
            server.send(profile, version, now - 600 if side == "base" else now - 300)
    time.sleep(5)
    proxy = Proxy(server.url)
    place = f"pyroscope://127.0.0.1:{proxy.server_port}"
    window = f"from={now - HOUR}&until={now}"
    compared = 0
    for pair, types in PAIRS.items():
        for kind in types:
            for side, version in VERSIONS.items():
                # Blanks, commas, braces and both kinds of quotes.
                selector = f'{{service_name="shop", version=~"{version}|x{{2,3}}",zone!=`a "b"`}}'
                of_file = table(command, str(CORPUS / f"{pair}.{side}.pb.gz"), "--sample-type", kind)
                of_server = table(command, f"{place}/{selector}?type={kind}&{window}")
                if of_file[0] != of_server[0]:
                    sys.exit(f"{pair} {kind} {side}: {of_server[0]} instead of {of_file[0]}")
                # Recursion may count only once in both. If names were joined, a cumulative value may be larger.
                names = of_file[1].keys() | of_server[1].keys()
                flats = {name: [side[1].get(name, (None, 0))[0] for side in (of_file, of_server)] for name in names}
                other = {name: both for name, both in flats.items() if both[0] != both[1]}
                if other:
                    sys.exit(f"{pair} {kind} {side}: other values of {other}")
                compared += len(of_file[1])
    labels = run(command, "labels", f"{place}?{window}", "--format", "csv").stdout
    for row in ["service_name,shop", "version,v1", "version,v2", "zone,eu west"]:
        if row not in labels:
            sys.exit(f"no {row} in the labels: {labels}")
    refused = {
        f'{{service_name="none"}}?type=cpu&{window}': "matches no profile",
        f"{{service_name=shop}}?type=cpu&{window}": "the server answers 400: failed to parse label selector",
        f'{{service_name="shop"}}?type=process_cpu&{window}': "matches several types; write one of process_cpu:cpu:",
        f'{{service_name="none"}}?type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&{window}': "no profile of the type",
        f"{{}}?type=cpu&from={now - 30 * 24 * HOUR}&until={now}": "exceeds the limit",
    }
    unexpected = []
    for query, words in refused.items():
        done = run(command, "top", f"{place}/{query}")
        # An older server gives a generic error for an invalid query.
        is_said = words in done.stderr or (server.is_older and "the server answers 500" in done.stderr)
        if done.returncode != 2 or not is_said:
            unexpected.append(f"{query}: {done.stderr}")
    if unexpected:
        sys.exit("\n".join(unexpected))
    print(f"{compared} rows of {sum(map(len, PAIRS.values())) * 2} profiles are those of their files")
    if write:
        keep(proxy, now)


def keep(proxy: Proxy, now: int) -> None:
    folder = CORPUS / "servers"
    folder.mkdir(exist_ok=True)
    exchanges: list[dict[str, object]] = []
    for path, question, status, kind, body in proxy.kept:
        exchange: dict[str, object] = {"path": path, "question": question.hex(), "status": status, "content_type": kind}
        if any(known["question"] == exchange["question"] and known["path"] == path for known in exchanges):
            continue
        plain = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        if path.endswith("SelectMergeProfile") and status == 200 and plain:
            name = f"pyroscope-{len(exchanges)}.pb.gz"
            (folder / name).write_bytes(gzip.compress(plain, mtime=0))
            exchange["file"] = name
        else:
            exchange["answer"] = plain.decode()
        exchanges.append(exchange)
    written = {"from": now - HOUR, "until": now, "exchanges": exchanges}
    (folder / "pyroscope.json").write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()

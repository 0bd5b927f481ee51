"""Tests of profiles from servers. The server runs in this process, so a call that keeps the GIL would deadlock."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pprofdiff

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
RECORDED = json.loads((CORPUS / "servers" / "pyroscope.json").read_text())


class Pyroscope(http.server.BaseHTTPRequestHandler):
    """Replays the recorded answers of a real Pyroscope, see tests/servers.rs."""

    def do_POST(self) -> None:
        question = self.rfile.read(int(self.headers["Content-Length"])).hex()
        for exchange in RECORDED["exchanges"]:
            if (exchange["path"], exchange["question"]) == (self.path, question):
                break
        else:
            exchange = {"status": 500, "content_type": "text/plain", "answer": "not recorded"}
        file = exchange.get("file")
        body = (CORPUS / "servers" / file).read_bytes() if file else exchange["answer"].encode()
        self.send_response(exchange["status"])
        self.send_header("Content-Type", exchange["content_type"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ["http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY", "PPROFDIFF_TOKEN"]:
        monkeypatch.delenv(name, raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pyroscope) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"pyroscope://127.0.0.1:{server.server_port}"
        server.shutdown()


def window() -> str:
    return f"from={RECORDED['from']}&until={RECORDED['until']}"


def address(place: str, version: str) -> str:
    selector = f'{{service_name="shop", version=~"{version}|x{{2,3}}",zone!=`a "b"`}}'
    return f"{place}/{selector}?type=cpu&{window()}"


def test_server_addresses_work_wherever_urls_do(place: str) -> None:
    base, new = address(place, "v1"), address(place, "v2")
    files = [CORPUS / f"story-cpu.{side}.pb.gz" for side in ("base", "new")]
    totals = [pprofdiff.load(file).top(sample_type="cpu").summary["total"] for file in files]
    loaded = [pprofdiff.load(url) for url in (base, new)]
    assert [p.top().summary["total"] for p in loaded] == totals
    diff = pprofdiff.diff(base, [new, files[1]])
    assert diff.base[0].name == base
    results: list[Any] = pprofdiff.batch([(base, new)]).tables(3)
    assert [r.error for r in results] == [None]


def test_labels_lists_the_series_of_a_server(place: str) -> None:
    rows = pprofdiff.load(f"{place}?{window()}").labels().to_dicts()
    assert {"v1", "v2"} <= {row["value"] for row in rows if row["key"] == "version"}


def test_server_errors_are_pprof_errors(place: str) -> None:
    with pytest.raises(pprofdiff.PprofError, match="the selector needs a slash before it"):
        pprofdiff.load('pyroscope://localhost{a="b"}')
    with pytest.raises(OSError, match="the server answers 400: failed to parse label selector"):
        pprofdiff.load(f"{place}/{{service_name=shop}}?type=cpu&{window()}")
    with pytest.raises(pprofdiff.PprofError, match="matches no profile from 20"):
        pprofdiff.load(f'{place}/{{service_name="none"}}?type=cpu&{window()}')
    with pytest.raises(OSError, match="refused"):
        pprofdiff.load("pyroscope://127.0.0.1:1")

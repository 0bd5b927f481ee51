"""Tests of the page that compares dropped files, in a browser: with real drops, and with the files of `serve`."""

import contextlib
import functools
import gzip
import http.server
import os
import re
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, BrowserContext, FileChooser, Page, expect

import pprofdiff
from conftest import pair
from web_page import BUILDS, COMMAND, FOLDER, command, drop, story_files, total

# ------------------------------------------------------------------------------------------------------ in a browser


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A simple silent file server."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Places(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A server that records the requests for the page."""

    daemon_threads = True


@pytest.fixture
def address() -> Iterator[str]:
    """Serves the page from a file server."""
    if not FOLDER.exists():
        pytest.skip("the page is missing (crates/pprofdiff-web/make)")
    with Places(("127.0.0.1", 0), functools.partial(Quiet, directory=str(FOLDER))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Runs `pprofdiff serve` with arguments, and returns its address."""
    running = []

    def started(*arguments: str | Path) -> str:
        process = subprocess.Popen([COMMAND, "serve", *arguments], stderr=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stderr
        line = process.stderr.readline()
        match = re.search(r"http://\S+", line)
        assert match, line
        return match.group()

    yield started
    for process in running:
        with process:
            process.kill()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages. At the end, it fails if the console has messages or a page sent data to other hosts."""
    messages: list[str] = []
    contexts: list[BrowserContext] = []

    def opened(address: str, **options: Any) -> Page:
        context = chromium.new_context(**({"viewport": {"width": 1300, "height": 900}} | options))
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on(
            "request", lambda r: messages.append(r.url) if not r.url.startswith((origin, "blob:", "data:")) else None
        )
        origin = re.match(r"http://[^/]+", address)[0]  # type: ignore[index]
        page.goto(address)
        page.locator("html[data-ready]").wait_for()
        return page

    opened.said = messages  # type: ignore[attr-defined]
    yield opened
    for context in contexts:
        context.close()
    assert messages == []


def test_two_dropped_profiles_are_compared(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(address)
    drop(page, story_files(tmp_path))
    report = page.frame_locator("#report")
    expect(report.locator("#why")).to_contain_text("names.canonical")
    assert page.locator("#base .names").inner_text() == "story-cpu.base.pb.gz"
    html = pprofdiff.diff(*pair("story-cpu")).to_html()
    assert re.search(r"<title>(.*?)</title>", html)[1].endswith("pprofdiff")  # type: ignore[index]
    before = total(page)
    # A changed filter asks the engine again.
    page.get_by_role("button", name="Filter").click()
    report.locator("#type").select_option("0")
    chosen = report.locator("#type option:checked").inner_text()
    assert not any("_" in caption for caption in page.locator("#question .caption").all_inner_texts())
    page.locator("[name=focus]").fill("tableInsensitive")
    page.locator("[name=focus]").press("Enter")
    expect(report.locator("#notes")).to_contain_text("focus=tableInsensitive")
    assert report.locator("#type option:checked").inner_text() == chosen == "samples (count)"
    page.locator("#swap").click()
    expect(page.locator("#base .names")).to_have_text("story-cpu.new.pb.gz")
    page.locator("[name=focus]").fill("")
    page.locator("[name=focus]").press("Enter")
    expect(report.locator("#notes")).not_to_contain_text("focus")
    assert total(page) != before
    assert page.title().startswith("story-cpu.new.pb.gz → story-cpu.base.pb.gz")


def test_one_file_then_a_pair_then_a_series(address: str, visit: Callable[..., Page]) -> None:
    page = visit(address)
    base, new = pair("go-heap")
    drop(page, [base])
    total(page)
    expect(page.locator("#base")).to_be_hidden()
    drop(page, [new], "new")
    expect(page.locator("#base .names")).to_have_text(base.name)
    drop(page, BUILDS)
    expect(page.frame_locator("#report").locator("#courses")).to_be_visible()
    expect(page.locator("#new .caption")).to_have_text(f"{len(BUILDS)} builds")


def test_builds_with_two_names_need_a_choice(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    names = [f"{name}-{i}.pb.gz" for name in ("branch", "main") for i in (1, 2, 3)]
    for i, name in enumerate(names):
        shutil.copy(BUILDS[i], tmp_path / name)
        os.utime(tmp_path / name, (1_000_000 - i, 1_000_000 - i))
    files = [tmp_path / name for name in names]
    page = visit(address)
    drop(page, files)
    asked = page.get_by_role("group", name="How to compare the builds")
    no_order = "branch-1.pb.gz to branch-3.pb.gz and main-1.pb.gz to main-3.pb.gz have no order between them"
    expect(asked).to_contain_text(no_order)
    asked.get_by_role("button", name="base: main-1").click()
    expect(page.locator("#base .names")).to_have_text(", ".join(names[3:]))
    expect(page.locator("#new .names")).to_have_text(", ".join(names[:3]))
    total(page)
    expect(asked).to_be_hidden()
    drop(page, files)
    asked.get_by_role("button", name="one history, oldest file first").click()
    expect(page.frame_locator("#report").locator("#courses")).to_be_visible()
    expect(page.locator("#new .names")).to_have_text(", ".join(reversed(names)))
    expect(asked).to_be_hidden()


def test_a_broken_file_is_reported_and_keeps_the_page(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    broken = tmp_path / "broken.pb.gz"
    broken.write_bytes(pair("go-heap")[0].read_bytes()[:900])
    page = visit(address)
    drop(page, [broken, pair("go-heap")[1]])
    with pytest.raises(pprofdiff.PprofError) as e:
        pprofdiff.load(broken)
    expect(page.get_by_role("alert")).to_have_text(str(e.value).replace(str(tmp_path) + "/", ""))
    drop(page, story_files(tmp_path))
    total(page)
    expect(page.get_by_role("alert")).to_be_hidden()
    # Dropped on a side of an open report, which stays open with its names.
    drop(page, [broken], "new")
    expect(page.get_by_role("alert")).to_contain_text("broken.pb.gz")
    expect(page.locator("#new .names")).to_have_text("story-cpu.new.pb.gz")
    with page.expect_download() as saved:
        page.locator("#format").select_option("csv")
        page.locator("#save").click()
    assert b"names.canonical" in saved.value.path().read_bytes()
    expect(page.get_by_role("alert")).to_contain_text("broken.pb.gz")


def test_saved_files_equal_those_of_the_command(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(address)
    drop(page, story_files(tmp_path))
    total(page)
    for format, ending in [("csv", "csv"), ("html", "html"), ("svg", "svg"), ("pprof", "pb.gz")]:
        with page.expect_download() as saved:
            page.locator("#format").select_option(format)
            page.locator("#save").click()
        assert saved.value.suggested_filename == f"pprofdiff.{ending}"
        words = ["--quote-formulas"] if format == "csv" else []
        names = ["story-cpu.base.pb.gz", "story-cpu.new.pb.gz"]
        _, out, err = command("diff", *names, "--format", format, *words, cwd=tmp_path)
        saved_bytes = saved.value.path().read_bytes()
        if format == "pprof":  # The two use different compression libraries.
            saved_bytes, out = gzip.decompress(saved_bytes), gzip.decompress(out)
        assert saved_bytes == out, err


def test_a_link_contains_the_view_but_no_data(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(address)
    drop(page, story_files(tmp_path))
    total(page)
    page.get_by_role("button", name="Filter").click()
    page.locator("[name=granularity]").select_option("files")
    report = page.frame_locator("#report")
    expect(report.locator("#notes")).to_contain_text("granularity=files")
    report.locator("#inverted").click()
    page.wait_for_function("() => location.hash.includes('inverted')")
    link = page.url
    assert "story" not in link
    assert len(link) < 200
    other = visit(link)
    expect(other.locator("#linked")).to_contain_text("granularity=files")
    drop(other, story_files(tmp_path))
    report = other.frame_locator("#report")
    expect(report.locator("#notes")).to_contain_text("granularity=files")
    expect(report.locator("#inverted")).to_have_attribute("aria-pressed", "true")


def test_the_page_works_offline_after_the_first_visit(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(address)
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
    page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    page.context.set_offline(True)
    page.reload()
    page.locator("html[data-ready]").wait_for()
    drop(page, story_files(tmp_path))
    assert "cpu" in page.frame_locator("#report").locator("#type").inner_text()
    visit.said.clear()  # type: ignore[attr-defined]


def test_the_page_works_without_a_mouse(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(address)
    choosers: list[FileChooser] = []
    page.on("filechooser", lambda chooser: choosers.append(chooser))
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.id") == "zone":
            break
    page.keyboard.press("Enter")
    while not choosers:
        page.wait_for_timeout(50)
    choosers[0].set_files(story_files(tmp_path))
    total(page)
    assert page.frame_locator("#report").locator("#table tbody tr").count() > 10


def test_outdated_work_is_cancelled(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(address)
    drop(page, story_files(tmp_path))
    total(page)
    page.get_by_role("button", name="Filter").click()
    # Changes the filter repeatedly without waiting. The result of the last change is shown.
    for value in ["runtime", "main", "regexp"]:
        page.locator("[name=focus]").fill(value)
        page.locator("[name=focus]").press("Enter")
    expect(page.frame_locator("#report").locator("#notes")).to_contain_text("focus=regexp")
    # Cancelled during saving: nothing is saved, and the next request uses the same two files.
    page.evaluate("() => { document.getElementById('save').click(); document.getElementById('cancel').click(); }")
    page.locator("[name=focus]").fill("")
    page.locator("[name=focus]").press("Enter")
    report = page.frame_locator("#report")
    expect(report.locator("#notes")).not_to_contain_text("focus")
    assert report.locator(".side .path").all_text_contents() == ["story-cpu.base.pb.gz", "story-cpu.new.pb.gz"]
    expect(page.get_by_role("alert")).to_be_hidden()


def test_an_invalid_filter_can_be_corrected(address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(address + "#sample_type=inuse_space&focus=(")
    drop(page, story_files(tmp_path))
    expect(page.get_by_role("alert")).to_contain_text("regular expression")
    page.get_by_role("button", name="Filter").click()
    page.locator("[name=focus]").fill("")
    page.locator("[name=focus]").press("Enter")
    expect(page.frame_locator("#report").locator("#why")).to_contain_text("names.canonical")
    page.locator("[name=focus]").fill("logmill")
    page.locator("[name=focus]").press("Enter")
    expect(page.frame_locator("#report").locator("#notes")).to_contain_text("focus=logmill")
    page.go_back()
    assert page.url == "about:blank"  # Reports do not add history entries.
    visit.said.clear()  # type: ignore[attr-defined]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone(scheme: Any, address: str, visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit(address, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    drop(page, story_files(tmp_path))
    total(page)
    page.get_by_role("button", name="Filter").click()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


# ------------------------------------------------------------------------------------------------------------- served


def test_serve_shows_the_files_of_the_command_line(
    served: Callable[..., str], visit: Callable[..., Page], tmp_path: Path
) -> None:
    base, new = pair("story-cpu")
    page = visit(served(base, new))
    expect(page.frame_locator("#report").locator("#why")).to_contain_text("names.canonical")
    drop(page, [pair("go-heap")[1]])
    expect(page.locator("#new .names")).to_have_text("go-heap.new.pb.gz")
    expect(page.frame_locator("#report").locator("#type")).to_contain_text("inuse")
    page.reload()
    expect(page.frame_locator("#report").locator("#type")).to_contain_text("inuse")
    page.get_by_role("button", name="Filter").click()
    for value in ["a", "b", "main"]:
        page.locator("[name=focus]").fill(value)
        page.locator("[name=focus]").press("Enter")
    expect(page.frame_locator("#report").locator("#notes")).to_contain_text("focus=main")


def ask_filter(page: Page, value: str, name: str = "focus") -> None:
    """Sets a filter, and waits until the report uses it."""
    if page.locator("#question").is_hidden():
        page.get_by_role("button", name="Filter").click()
    page.locator(f"[name={name}]").fill(value)
    page.locator(f"[name={name}]").press("Enter")
    expect(page.frame_locator("#report").locator("#notes")).to_contain_text(f"{name}={value}")


def paths(page: Page) -> list[str]:
    """Returns the files of the report."""
    total(page)
    shown = page.frame_locator("#report").locator(".side .path").all_text_contents()
    return [Path(name).name for name in shown]


STORY = ["story-cpu.base.pb.gz", "story-cpu.new.pb.gz"]
HEAP = ["go-heap.base.pb.gz", "go-heap.new.pb.gz"]


def test_tabs_of_serve_are_independent(served: Callable[..., str], visit: Callable[..., Page]) -> None:
    page = visit(served(*pair("story-cpu")))
    total(page)
    other = page.context.new_page()
    other.goto(page.url)
    other.locator("html[data-ready]").wait_for()
    total(other)
    drop(other, list(pair("go-heap")))
    expect(other.frame_locator("#report").locator("#type")).to_contain_text("inuse")
    assert paths(other) == HEAP
    page.bring_to_front()
    ask_filter(page, "tableInsensitive")
    assert paths(page) == STORY
    # After a reload, each tab has its own files. A duplicated tab becomes independent, too.
    page.reload()
    assert paths(page) == STORY
    other.reload()
    assert paths(other) == HEAP
    with other.expect_popup() as popup:
        other.evaluate("() => { window.open(location.href); }")
    assert paths(popup.value) == STORY


def test_files_that_cannot_be_opened_keep_the_open_report(
    served: Callable[..., str], visit: Callable[..., Page], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.pb.gz"
    broken.write_bytes(pair("go-heap")[0].read_bytes()[:900])
    page = visit(served(*pair("story-cpu")))
    for message, files, place in [
        ("broken", [broken], ""),
        ("broken", [broken, pair("go-heap")[0]], ""),
        ("sample type", [pair("go-heap")[0], pair("story-cpu")[0]], ""),
        ("sample type", [pair("go-heap")[0]], "new"),
        ("broken", [broken, broken, broken], ""),
    ]:
        assert paths(page) == STORY
        drop(page, files, place)
        expect(page.get_by_role("alert")).to_contain_text(message)
        expect(page.locator("#new .names")).to_contain_text(STORY[1])
        assert page.locator("#report").is_visible()
        ask_filter(page, "main")
        assert paths(page) == STORY
        expect(page.get_by_role("alert")).to_be_hidden()
        page.locator("[name=focus]").fill("")
        page.locator("[name=focus]").press("Enter")
        expect(page.frame_locator("#report").locator("#notes")).not_to_contain_text("focus")
    page.reload()
    assert paths(page) == STORY
    visit.said.clear()  # type: ignore[attr-defined]  # the browser says that the server refused them


def test_a_new_tab_has_the_files_of_the_command_line(served: Callable[..., str], visit: Callable[..., Page]) -> None:
    page = visit(served(*pair("story-cpu")))
    drop(page, list(pair("go-heap")))
    expect(page.frame_locator("#report").locator("#type")).to_contain_text("inuse")
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#start")).to_be_visible()
    page.reload()
    assert paths(page) == STORY
    page.get_by_role("button", name="Close").click()
    drop(page, list(pair("go-heap")))
    assert paths(page) == HEAP


def test_a_link_of_serve_works_in_another_tab(served: Callable[..., str], visit: Callable[..., Page]) -> None:
    page = visit(served(*pair("story-cpu")))
    total(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask_filter(page, "tableInsensitive")
    page.frame_locator("#report").locator("#inverted").click()
    page.wait_for_function("() => location.hash.includes('inverted')")
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#link")).to_have_text("Copied")
    link = page.evaluate("() => navigator.clipboard.readText()")
    other = visit(link)
    expect(other.frame_locator("#report").locator("#notes")).to_contain_text("focus=tableInsensitive")
    expect(other.frame_locator("#report").locator("#inverted")).to_have_attribute("aria-pressed", "true")
    assert total(other) == total(page)


def test_the_total_follows_the_focus(served: Callable[..., str], visit: Callable[..., Page]) -> None:
    page = visit(served(*pair("story-cpu")))
    assert total(page) == "1.90s → 2.93s +1.03s +54.2%"
    ask_filter(page, "tableInsensitive")
    kept = pprofdiff.diff(*pair("story-cpu")).filter(focus="tableInsensitive").top(relative_percentages=True).summary
    assert [kept["total_base"], kept["total_new"]] == [440_000_000, 1_820_000_000]
    assert total(page) == "0.44s → 1.82s +1.38s x4.14 of 1.90s → 2.93s before filters"


def test_serve_answers_only_its_own_page(served: Callable[..., str]) -> None:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    address = served(*pair("story-cpu"))
    origin, secret = re.match(r"(http://127.0.0.1:\d+)/([0-9a-f]{32})/$", address).groups()  # type: ignore[union-attr]

    def status(url: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> int:
        with contextlib.ExitStack() as stack:
            try:
                answer = stack.enter_context(urlopen(Request(url, body, headers or {})))
            except HTTPError as e:
                with e:
                    return e.code
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            return cast(int, answer.status)

    assert status(address) == 200
    assert status(address + "tab/state", body=b"null") == 200
    assert status(address + "tab/state", {"Origin": origin}, b"null") == 200
    assert status(address + "tab/state", {"Origin": "http://example.org"}, b"null") == 403
    assert status(address + "tab/state", {"Origin": "null"}, b"null") == 403
    assert status(address, {"Host": "example.org"}) == 421
    assert status(f"{origin}/") == status(f"{origin}/{'0' * 32}/") == status(f"{origin}/{secret}") == 404
    assert status(address + "../../etc/passwd") == status(address + "app.rs") == 404
    assert status(address + "tab/read", body=b"7") == 422
    assert status(address + "tab/answer", body=b"{") == 400
    assert status(address + "tab/nothing", body=b"null") == 404
    assert status(address + "nothing", body=b"null") == 404
    # The sessions of the 32 most recently used tabs are kept.
    for n in range(32):
        assert status(address + f"tab{n}/state", body=b"null") == 200
        assert status(address + "tab0/read", body=b"0") == 200
    assert status(address + "tab/read", body=b"0") == 410
    assert status(address + "tab1/read", body=b"0") == 200
    assert status(address + "other/begin", body=b"null") == 200
    assert status(address + "other/read", body=b"0") == 422
    assert status(address + "tab2/read", body=b"0") == 410
    assert status(address + "tab1/end", body=b"null") == 200
    assert status(address + "tab1/read", body=b"0") == 410
    assert status(address + "a" * 65 + "/state", body=b"null") == 400

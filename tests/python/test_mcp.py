"""Tests of `pprofdiff mcp` with the official Python client, against the command that cargo builds."""

import asyncio
import http.server
import json
import os
import re
import shlex
import string
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest
import quicktok
from mcp import Client, MCPError, StdioServerParameters

from conftest import CORPUS, pair, profile

ROOT = CORPUS.parents[1]
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/pprofdiff"
STORY = {"base": ["tests/corpus/story-cpu.base.pb.gz"], "new": ["tests/corpus/story-cpu.new.pb.gz"]}
WHOLE = 100_000  # A budget in tokens that is large enough for everything.

# Vocabularies of several vendors: digits one by one or in threes, and few or many words of code.
VOCABULARIES = [quicktok.get_encoding(name) for name in ("cl100k_base", "o200k_base", "llama3", "qwen3")]

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built (cargo build)")


def session(talk: Callable[[Client], Awaitable[None]], *options: str, mode: str = "auto") -> None:
    """Starts a server, and runs a client function with it."""

    failures: list[Exception] = []

    async def run() -> None:
        server = StdioServerParameters(command=str(COMMAND), args=["mcp", *options], cwd=ROOT)
        async with Client(server, mode=mode, read_timeout_seconds=60) as client:
            try:
                await talk(client)
            except Exception as failure:  # Unpacks exception groups, so that pytest shows the exception.
                failures.append(failure)

    asyncio.run(run())
    if failures:
        raise failures[0]


async def say(client: Client, tool: str, **arguments: Any) -> str:
    """Returns the answer to a call."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    (content,) = result.content
    return content.text


async def refuse(client: Client, tool: str, **arguments: Any) -> str:
    """Returns the error of a call that must be refused."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content[0].text
    (content,) = result.content
    assert "\n" not in content.text.rstrip()
    return content.text


def command(*arguments: str) -> str:
    """Returns the output of the command, without the last line about omitted rows."""
    return subprocess.run([COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def next_step(answer: str) -> tuple[str, dict[str, Any], list[str]]:
    """Returns the suggested call and command at the end of an answer."""
    last = answer.splitlines()[-1]
    match = re.fullmatch(r"Next: (\w+) (\{.*\}) or in a shell: pprofdiff (.*)", last)
    assert match, last
    return match[1], json.loads(match[2]), shlex.split(match[3])


def without_next(answer: str) -> str:
    lines = answer.splitlines()
    assert lines[-1].startswith("Next: "), lines[-1]
    return "\n".join(lines[:-1]).strip()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_accept_the_options_of_the_verbs(mode: str):
    view = "sample_type normalize focus ignore show tagfocus"
    takes = {
        "load": "base new input_format time base_time new_time split_at",
        "explain": f"diff ops {view}".replace(" normalize", ""),
        "top": f"diff sort significant granularity {view}".replace("focus", "hide_below focus", 1),
        "peek": f"diff regex {view}",
        "list": f"diff regex base_source new_source source_path {view}",
        "check": f"diff fail_on floor strict same_code {view}",
        "series": "builds base rows sort sample_type focus",
        "batch": "pairs view sort sample_type focus",
    }

    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(takes)
        described = {}
        for tool in tools:
            schema = tool.input_schema
            jsonschema.Draft202012Validator.check_schema(schema)
            assert list(schema["properties"]) == [*takes[tool.name].split(), "budget"]
            assert tool.description
            # Only the first use of an option has a description.
            for option, property_ in schema["properties"].items():
                if "description" in property_:
                    described[option] = property_["description"]
                assert option in described
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
        assert tools[2].input_schema["properties"]["sort"]["enum"] == ["flat", "cum"]
        assert "[TYPE:]total>LIMIT" in tools[5].description
        # The tools are always in the context of an agent, so they must be short.
        schemas = json.dumps(
            [tool.model_dump(exclude_none=True, by_alias=True) for tool in tools], separators=(",", ":")
        )
        sizes = [len(vocabulary.encode_ordinary(schemas)) for vocabulary in VOCABULARIES]
        assert max(len(schemas) // 4, *sizes) <= 1600, (len(schemas), sizes)

    session(talk, mode=mode)


def test_the_suggested_call_and_command_give_the_same_answer():
    async def talk(client: Client) -> None:
        answer = await say(client, "load", **STORY)
        assert without_next(answer) == "diff d1\n" + command("info", *STORY["base"], *STORY["new"]).strip()
        seen = []
        while len(seen) < 6:
            tool, arguments, words = next_step(answer)
            seen.append(tool)
            if tool == "check":
                break
            answer = await say(client, tool, **arguments, budget=WHOLE)
            rows = ["-n", "0"] if tool in ("top", "peek", "list") else []
            output = command(*words, *rows).strip()
            # Folders of sources are named like the arguments of the tool.
            output = re.sub(r"--(base|new)-source DIR", r"\1_source", output).replace(
                "--source-path DIR", "source_path"
            )
            output = re.sub(r"; (no folder was|only these were) searched.*$", "", output)
            assert without_next(answer) == output
        assert seen == ["explain", "peek", "list", "list", "check"]
        answer = await say(client, tool, **arguments)
        done = subprocess.run([COMMAND, *words], cwd=ROOT, capture_output=True, text=True)
        assert without_next(answer) == done.stdout.strip()
        assert done.returncode == 1
        assert next_step(answer)[0] == "explain"

    session(talk)


def test_suggested_calls_keep_the_options():
    async def talk(client: Client) -> None:
        await say(client, "load", **STORY)
        asked = {"sort": "cum", "sample_type": "cpu", "focus": "logmill/", "show": "logmill/"}
        answer = await say(client, "top", diff="d1", **asked, budget=WHOLE)
        assert (
            without_next(answer)
            == command(
                "top",
                *STORY["base"],
                *STORY["new"],
                *(f"--{n.replace('_', '-')}={v}" for n, v in asked.items()),
                "-n",
                "0",
            ).strip()
        )
        tool, arguments, words = next_step(answer)
        assert (tool, arguments.pop("regex")) == ("peek", r"^logmill/names\.compare$")
        assert arguments == {"diff": "d1", "sample_type": "cpu", "focus": "logmill/", "show": "logmill/"}
        assert "--focus=logmill/" in words

    session(talk)


def test_the_documentation_shows_the_current_answers():
    page = ROOT / "docs/agents.md"
    documented = page.read_text()

    async def talk(client: Client) -> None:
        fresh = documented
        for block in re.findall(r"```text\n(> .*?)```", documented, re.DOTALL):
            call = block.splitlines()[0]
            tool, arguments = call.removeprefix("> ").split(" ", 1)
            answer = await say(client, tool, **json.loads(arguments))
            fresh = fresh.replace(block, f"{call}\n{answer}")
        if os.environ.get("UPDATE_GOLDENS"):
            page.write_text(fresh)
        else:
            assert fresh == documented, "UPDATE_GOLDENS=1 accepts what is new"

    session(talk)


CALLS = [
    ("explain", {}),
    ("top", {"sort": "cum"}),
    ("peek", {"regex": "."}),
    ("peek", {"regex": "^main"}),
    ("list", {"regex": "."}),
    ("check", {"fail_on": ["total>+5%", "cum:any>+1%", "flat:any>+1%"]}),
    ("load", {}),
]


def below(folder: Path, name: str) -> tuple[str, str]:
    """Copies a pair of the corpus into folders with `mktemp` names or longer, which take more tokens than any row."""
    random = Random(name)
    for length in (14, 10, 60, 40):
        folder /= "".join(random.choices(string.ascii_letters + string.digits + "._", k=length)).replace(".", "x", 1)
    folder.mkdir(parents=True)
    for file in pair(name):
        (folder / file.name).symlink_to(file)
    base, new = (str(folder / file.name) for file in pair(name))
    return base, new


@pytest.mark.parametrize("is_below", [False, True], ids=["", "below-long-folders"])
@pytest.mark.parametrize("name", ["story-cpu", "cpp-cpu", "cpp-heap", "go-labels-cpu"])
def test_no_answer_exceeds_its_token_budget(tmp_path: Path, name: str, is_below: bool):
    base, new = below(tmp_path, name) if is_below else map(str, pair(name))

    async def talk(client: Client) -> None:
        await say(client, "load", base=[base], new=[new])
        for tool, arguments in CALLS:
            named = {"base": [base], "new": [new]} if tool == "load" else {"diff": "d1"}
            whole = await say(client, tool, **named, **arguments, budget=WHOLE)
            lines = 0
            for budget in [100, 150, 250, 400, 700, 1000, 2000, 4000, 8000]:
                answer = await say(client, tool, **named, **arguments, budget=budget)
                for vocabulary in VOCABULARIES:
                    assert len(vocabulary.encode_ordinary(answer)) <= budget, (tool, budget, answer)
                assert answer.splitlines()[-1].startswith("Next: ")
                shown = len(answer.splitlines())
                assert shown >= lines, (tool, budget, base)
                lines = shown
                is_whole = "more: ask with a larger budget" not in answer and "..." not in answer
                # If file names take most of a budget, source lines are shown without growth.
                if is_whole and tool != "load" and not (is_below and tool == "list"):
                    # A small budget may shorten the text above the rows.
                    rows = without_next(answer).split("\n\n", 1)[-1]
                    if tool == "check":  # a small budget moves the verdict to the first line
                        assert set(rows.splitlines()) <= set(whole.splitlines())
                    else:
                        assert without_next(whole).endswith(rows)
            # The answer must not be too short: it uses a third of a large budget, or is complete.
            for budget in [2000, 4000, 8000]:
                answer = await say(client, tool, **named, **arguments, budget=budget)
                used = max(len(vocabulary.encode_ordinary(answer)) for vocabulary in VOCABULARIES)
                assert used > budget // 3 or "more: ask" not in answer, (tool, budget, used)

    session(talk)


def test_the_smallest_rows_are_omitted_and_counted():
    async def talk(client: Client) -> None:
        await say(client, "load", **STORY)
        whole = without_next(await say(client, "top", diff="d1", budget=WHOLE))
        rows = whole.split("frame\n", 1)[1].splitlines()
        short = await say(client, "top", diff="d1", budget=800)
        left = re.search(r"^(\d+) frames more: ask with a larger budget$", short, re.MULTILINE)
        shown = short.split("frame\n", 1)[1].split(left[0])[0].splitlines()
        assert 3 < len(shown) == len(rows) - int(left[1])
        assert [row.split()[-1] for row in shown] == [row.split()[-1] for row in rows[: len(shown)]]
        # For one frame: the callers and callees with the largest change, and the frame itself.
        peek = await say(client, "peek", diff="d1", regex=r"^main\.run$", budget=400)
        assert "main.run " in peek
        assert re.search(r"^\d+ edges? more", peek, re.MULTILINE)
        # For one function: the most expensive lines.
        listing_arguments = {"regex": "tableInsensitive", "source_path": "tests/producers/story"}
        whole = without_next(await say(client, "list", diff="d1", **listing_arguments, budget=WHOLE)).splitlines()
        short = await say(client, "list", diff="d1", **listing_arguments, budget=800)
        assert re.search(r"^\d+ lines more", short, re.MULTILINE)
        (dearest,) = [line for line in whole if "names.Same" in line]
        assert dearest in short.splitlines()

    session(talk)


@pytest.mark.parametrize("name", ["story-cpu", "go-labels-cpu"])
def test_a_small_budget_still_has_rows(name: str):
    base, new = map(str, pair(name))

    def rows(answer: str) -> int:
        """Returns the number of lines below the headings."""
        lines = without_next(answer).splitlines()
        below = [i for i, line in enumerate(lines) if re.search(" (frame|source)$", line)]
        assert below, answer
        return len([line for line in lines[below[0] + 1 :] if line and "more: ask" not in line])

    async def talk(client: Client) -> None:
        await say(client, "load", base=[base], new=[new])
        for tool, arguments, fewest in [
            ("top", {}, 2),
            ("top", {"sort": "cum"}, 2),
            ("peek", {"regex": "."}, 2),
            ("list", {"regex": "."}, 1),
        ]:
            answer = await say(client, tool, diff="d1", **arguments, budget=300)
            assert rows(answer) >= fewest, answer
            assert re.search(r"^\w+ \(\w+\): .* -> ", answer, re.MULTILINE), answer

    session(talk)


def test_series_and_batches_are_tools(tmp_path: Path):
    costs = [100, 101, 99, 100, 102, 100, 180, 181, 179, 180]
    for build, cost in enumerate(costs):
        content = profile([(["main", "parse"], cost, {}), (["main", "other"], 100, {})])
        (tmp_path / f"build-{build}.pb").write_bytes(content)
    for side, cost in [("main", 100), ("branch", 150)]:
        (tmp_path / side).mkdir()
        for name in ["a.pb", "b.pb"]:
            (tmp_path / side / name).write_bytes(profile([(["main", "parse"], cost, {})]))
    (tmp_path / "main" / "alone.pb").write_bytes(b"")
    pattern, sides = str(tmp_path / "build-*.pb"), [str(tmp_path / "main"), str(tmp_path / "branch")]

    async def talk(client: Client) -> None:
        for tool, arguments, words in [
            ("series", {"builds": [pattern]}, ["series", pattern]),
            ("series", {"builds": [pattern], "rows": "movers"}, ["series", "--rows=movers", pattern]),
        ]:
            answer = await say(client, tool, **arguments)
            assert without_next(answer) == command(*words, "-n", "0").strip()
            # The suggested next step loads the builds around the change.
            step, loaded, _ = next_step(answer)
            assert (step, loaded) == (
                "load",
                {"base": [str(tmp_path / "build-5.pb")], "new": [str(tmp_path / "build-6.pb")]},
            )
        assert "parse" in await say(client, "peek", diff=(await say(client, step, **loaded)).split()[1], regex="parse")
        answer = await say(client, "batch", pairs=sides)
        done = subprocess.run([COMMAND, "batch", *sides], cwd=ROOT, capture_output=True, text=True)
        assert [line for line in without_next(answer).splitlines() if not line.startswith("alone.pb")] == [
            line for line in done.stdout.strip().splitlines() if not line.startswith("alone.pb")
        ]
        assert re.search(r"^alone.pb  failed: .*alone.pb", answer, re.MULTILINE)
        assert next_step(answer)[:2] == (
            "load",
            {"base": [str(tmp_path / "main/a.pb")], "new": [str(tmp_path / "branch/a.pb")]},
        )
        for tool, arguments in [("series", {"builds": [pattern], "rows": "steps"}), ("batch", {"pairs": sides})]:
            for budget in [100, 150, 250, 400]:
                answer = await say(client, tool, **arguments, budget=budget)
                assert all(len(v.encode_ordinary(answer)) <= budget for v in VOCABULARIES)
                assert answer.splitlines()[-1].startswith("Next: ")
        assert "1 of 3 pairs" in await say(client, "batch", pairs=sides, budget=200)
        # batch accepts the same files as load, which refuses pipes.
        os.mkfifo(tmp_path / "main" / "fifo.pb")
        os.mkfifo(tmp_path / "branch" / "fifo.pb")
        assert re.search("fifo.pb  failed: .*a pipe or device", await say(client, "batch", pairs=sides))
        assert "a pipe or a device" in await refuse(client, "batch", pairs=["/dev/stdin"])
        assert "a pipe or a device" in await refuse(client, "series", builds=["/dev/stdin", pattern.replace("*", "0")])
        urls = [{"builds": ["http://localhost:1/x"]}, {"builds": [pattern], "base": "http://localhost:1/x"}]
        for url in [*urls, {"builds": ["s3://bucket/*.pb.gz"]}]:
            assert "--allow-urls" in await refuse(client, "series", **url)
        for side in ("http://localhost:1/x", "s3://bucket/*.pb.gz"):
            assert "--allow-urls" in await refuse(client, "batch", pairs=[side, side])

    session(talk)


def test_series_accepts_builds_of_a_store(tmp_path: Path):
    store = str(tmp_path / "store")
    for build in range(1, 5):
        file = tmp_path / f"{build}.pb"
        file.write_bytes(profile([(["main", "parse"], 100 + 50 * (build > 2), {}), (["main", "other"], 100, {})]))
        command("store", "add", store, str(file), "--key", "service=api", "--key", f"build={build}")
    builds = f"{store}/service=api"

    async def talk(client: Client) -> None:
        for rows in ("movers", "values"):
            answer = await say(client, "series", builds=builds, rows=rows)
            assert without_next(answer) == command("series", f"--rows={rows}", builds, "-n", "0").strip()
        # The arguments for load are the builds around the change.
        step, loaded, _ = next_step(answer)
        assert step == "load"
        assert "build=3" in loaded["new"][0]
        assert (await say(client, step, **loaded)).startswith("diff d1\n")
        base = f"{builds}/build=1"
        answer = await say(client, "series", builds=[f"{builds}/build=3", f"{builds}/build=4"], base=base)
        assert "parse" in answer
        assert "build=9" in await refuse(client, "series", builds=f"{builds}/build=9")

    session(talk)


def test_errors_equal_those_of_the_command():
    def refused(*arguments: str) -> str:
        done = subprocess.run([COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 2
        return done.stderr.removeprefix("pprofdiff: ").removesuffix("; see pprofdiff --help\n").strip()

    async def talk(client: Client) -> None:
        both = [*STORY["base"], *STORY["new"]]
        assert await refuse(client, "load", new=["none.pb.gz"]) == refused("info", "none.pb.gz")
        assert await refuse(client, "top", diff="d1") == (
            'unknown diff "d1" (nothing is loaded; the last 8 diffs stay loaded): load it with the tool load'
        )
        await say(client, "load", **STORY)
        for tool, arguments, words in [
            ("peek", {"regex": "("}, ["peek", "("]),
            ("peek", {"regex": "no such frame"}, ["peek", "no such frame"]),
            ("top", {"sample_type": "space"}, ["top", "--sample-type=space"]),
            ("top", {"sort": "size"}, ["top", "--sort=size"]),
            ("check", {"fail_on": ["total"]}, ["check", "--fail-on=total"]),
            ("explain", {"ops": "3"}, ["explain", "--ops=3"]),
        ]:
            assert await refuse(client, tool, diff="d1", **arguments) == refused(*words, *both)
        # Arguments that a tool does not accept: an option of the command line, and values of wrong types.
        for tool, arguments, why in [
            ("top", {"output": "/tmp/x"}, 'top does not support "output"; it supports diff, budget, sort'),
            ("top", {"focus": {"a": 1}}, "focus must be of type string, not "),
            ("top", {"focus": ["a", "b"]}, "focus must be of type string, not "),
            ("top", {"significant": "yes"}, "significant must be of type boolean, not "),
            ("check", {"fail_on": [["total>+5%"]]}, "fail_on must be of type array, not "),
            ("top", {"budget": 99}, "budget must be a number of tokens, at least 100, not 99"),
            ("top", {"diff": 1}, "diff must be a name that load returned, not 1"),
            ("load", {"diff": "d1", "new": both}, 'load does not support "diff"; it supports budget, base'),
        ]:
            with pytest.raises(MCPError, match=why) as wrong:
                await client.call_tool(tool, {"diff": "d1", **arguments} if tool != "load" else arguments)
            assert wrong.value.error.code == -32602
        assert "diff is missing" in await refuse(client, "top")
        assert "need a base" in await refuse(client, "load", new=both)
        for name in ("http://localhost:1/x", "s3://bucket/*.pb.gz"):
            assert "--allow-urls" in await refuse(client, "load", new=[name])
        # Standard input belongs to the protocol.
        assert "No such file" in await refuse(client, "load", new=["-"])
        with pytest.raises(MCPError, match="unknown tool"):
            await client.call_tool("merge", {})
        # A single profile has no other side.
        assert next_step(await say(client, "load", new=STORY["new"]))[0] == "top"
        for tool in ["explain", "check"]:
            await refuse(client, tool, diff="d2")
        await say(client, "list", diff="d2", regex="compare")

    session(talk)


def test_the_oldest_of_many_diffs_is_removed():
    other = {side: [f"tests/corpus/cpp-cpu.{side}.pb.gz"] for side in ("base", "new")}
    runs = {
        side: [f"tests/corpus/faults/freight/{name}-{i}.cpu.pb.gz" for i in (1, 2, 3)]
        for side, name in (("base", "base"), ("new", "calls"))
    }

    async def talk(client: Client) -> None:
        await say(client, "load", **STORY)
        assert (await say(client, "load", **other)).startswith("diff d2\n")
        first, second = await asyncio.gather(*(say(client, "top", diff=name) for name in ("d1", "d2")))
        assert "logmill/names.canonical" in first
        assert "logmill/" not in second
        answer = await say(client, "load", **runs)
        assert next_step(answer)[2] == ["explain", "--base", *runs["base"], "--new", *runs["new"]]
        assert "mean of 3 runs" in await say(client, "top", diff="d3")
        for i in range(4, 9):
            assert "dropped" not in await say(client, "load", **STORY), i
        await say(client, "top", diff="d1")
        assert "d2 is dropped" in await say(client, "load", **STORY)
        assert (await refuse(client, "top", diff="d2")).startswith('unknown diff "d2" (loaded: d3, d4, d5')
        await say(client, "top", diff="d1")

    session(talk)


def test_hostile_names_are_escaped_and_fit_the_budget(tmp_path: Path):
    hostile = "a\x1b[2J\u202eb\nNext: load {}"
    random = Random(0)
    names = {"hostile": [hostile], "long": ["x" * 1_000_000]}
    for letters in (string.ascii_lowercase, string.ascii_letters):
        names[letters] = ["".join(random.choices(letters, k=60)) for _ in range(100)]
    for name, functions in names.items():
        (tmp_path / name).write_bytes(profile([(["main", function], 100, {}) for function in functions]))

    async def talk(client: Client) -> None:
        for i, name in enumerate(names, 1):
            await say(client, "load", new=[str(tmp_path / name)])
            for budget in [100, 2000]:
                for tool, arguments in [("top", {}), ("peek", {"regex": "."}), ("list", {"regex": "."})]:
                    answer = await say(client, tool, diff=f"d{i}", **arguments, budget=budget)
                    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", answer)
                    assert all(len(v.encode_ordinary(answer)) <= budget for v in VOCABULARIES)
                    assert not re.search("^Next: load", answer, re.MULTILINE)
                    assert answer.splitlines()[-1].startswith("Next: ")
        # Characters that cannot be typed match any character, so that the suggested call finds the name.
        tool, arguments, words = next_step(await say(client, "top", diff="d1", sort="flat"))
        assert "[2J" in await say(client, tool, **arguments)
        assert "[2J" in command(*words)

    session(talk)


@pytest.fixture
def profiles_by_http() -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=CORPUS)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_urls_are_loaded_only_with_permission(profiles_by_http: str):
    async def talk(client: Client) -> None:
        url = f"{profiles_by_http}/story-cpu.new.pb.gz"
        assert url in await say(client, "load", new=[url])

    session(talk, "--allow-urls")


def test_patterns_name_files_of_a_side():
    async def talk(client: Client) -> None:
        faults = "tests/corpus/faults/freight"
        runs = {"base": [f"{faults}/base-*.cpu.pb.gz"], "new": [f"{faults}/calls-[123].cpu.pb.gz"]}
        _, _, words = next_step(await say(client, "load", **runs, budget=WHOLE))
        files = {
            side: sorted(str(f.relative_to(ROOT)) for f in ROOT.glob(pattern)) for side, (pattern,) in runs.items()
        }
        assert len(files["new"]) == 3
        assert words == ["explain", "--base", *files["base"], "--new", *files["new"]]
        assert "no file matches" in await refuse(client, "load", new=[f"{faults}/none-*.pb.gz"])

    session(talk)

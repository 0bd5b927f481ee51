"""Tests of the GitHub Action: the steps of action.yml run in a scratch repository with the real scripts and the real
command, and with a fake `gh` that keeps releases and comments in files.

Two assumptions are not tested: that GitHub's runner evaluates expressions like this one, and that its API answers like
the fake `gh`."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import cmarkgfm
import cmarkgfm.cmark
import pytest
import yaml

from action_runner import ACTION, COMMAND, NOTHING_FAILS, ROOT, RUNS, STEPS, VERSION, Runner
from conftest import pair, profile


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    assert COMMAND.exists(), f"{COMMAND} is not built"
    return Runner(tmp_path)


@pytest.fixture
def installed(runner: Runner) -> Runner:
    """A machine with the command installed, and the profiles of the story."""
    (runner.fake / "bin" / "pprofdiff").symlink_to(COMMAND)
    base, new = pair("story-cpu")
    runner.put(base=base, new=new)
    return runner


def text_of(markdown: str) -> str:
    """Returns the text outside code, where GitHub looks for mentions and issues."""
    # Raw HTML is kept, so that unescaped text is found.
    html = cmarkgfm.github_flavored_markdown_to_html(markdown, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE)
    return re.sub(r"<code>.*?</code>|<pre>.*?</pre>", "", html, flags=re.DOTALL)


STORY = {"base": "base.pb.gz", "new": "new.pb.gz"}
FAILS = {**STORY, "rules": "flat:regex=canonical>+10%"}


def test_a_regression_fails_and_is_reported_in_every_output(runner: Runner):
    base, new = pair("story-cpu")
    runner.put(base=base, new=new)
    done = runner.run(**FAILS)
    assert (done.failed, done.outputs["outcome"]) == (["Check"], "fail")
    # One annotation, for the failing rule, at its cause.
    start = "::error file=logmill/names/names.go,line=19,title=fail flat%3Aregex=canonical"
    assert [line for line in done.log.splitlines() if line.startswith(start)]
    # The summary and the comment contain the verdict, the causes, the largest changes, and the link to the page.
    [comment] = runner.comments()
    assert done.summary == comment["body"]
    for part in ["### pprofdiff: fail: a limit is exceeded", "Why:\n- ", "What moved most", "/artifacts/2)"]:
        assert part in comment["body"]
    cause = r"`logmill/names.compare` \(names\.go:19\) now calls `logmill/names.canonical`: \+1\.39s"
    assert re.search(cause, comment["body"])
    assert re.search(r"\| `logmill/names.canonical` \| `added` \| 0 \|.*\| 1\.39s \|", comment["body"])
    # Artifacts.
    files = done.artifacts["pprofdiff"]
    assert sorted(files) == ["diff.pb.gz", "findings.md", "report.html"]
    assert b"names.canonical" in files["report.html"]
    assert Path(done.outputs["report"]).read_bytes() == files["report.html"]
    assert Path(done.outputs["markdown"]).read_bytes() == files["findings.md"]
    # Both steps used one download of the archive.
    shutil.rmtree(runner.fake / "release")
    assert runner.run(**FAILS).outputs["outcome"] == "fail"


@pytest.mark.parametrize(
    ("rules", "outcome", "annotation"),
    [
        ("total>+500%", "pass", None),
        ("flat:regex=compare>+5%", "inconclusive", "::warning title=inconclusive flat%3Aregex=compare>+5%25::"),
        ("flat:regex=nothing>+5%", "unmatched", "::error title=pprofdiff::the rule "),
        ("\n  total>+500%\r\n\n  flat:regex=canonical>+10% \n", "fail", "::error file=logmill/names/names.go,line=19,"),
        ("total", "error", "::error title=pprofdiff::pprofdiff: "),
        ("", "error", "::error title=pprofdiff::pprofdiff: there are no rules to check"),
    ],
)
def test_each_outcome_has_its_annotation_and_comment(
    installed: Runner, rules: str, outcome: str, annotation: str | None
):
    done = installed.run(**STORY, rules=rules, version="installed")
    assert (done.outputs["outcome"], not done.failed) == (outcome, outcome in NOTHING_FAILS)
    annotations = [line for line in done.log.splitlines() if line.startswith("::")]
    assert [line.startswith(annotation or "no") for line in annotations] == ([True] if annotation else [])
    assert f"pprofdiff: {outcome}" in installed.comments()[0]["body"]
    # The cause and the page are part of every outcome but an error.
    if outcome != "error":
        assert "now calls" in done.summary
        assert "report.html" in done.artifacts["pprofdiff"]


def test_errors_name_the_remedy(installed: Runner):
    for inputs, message in [
        ({"base": "none.pb.gz"}, "none.pb.gz: No such file"),
        ({"base": "none-*.pb.gz"}, "base: no file matches none-*.pb.gz"),
        ({"base": ""}, "base: no profile is given, and no baseline folder"),
        ({"new": " \n"}, "new: no profile is given"),
        ({"config": "none.toml"}, "none.toml: No such file"),
        ({"arguments": "--worst"}, "unexpected argument '--worst'"),
        ({"same-code": "never"}, "invalid value 'never' for '--same-code <OUTCOME>'"),
        ({"baseline": "store", "base": "", "store": "yes"}, "store must be true or false, not yes"),
        ({"comment": "yes"}, "comment must be true or false, not yes"),
        ({"name": ".."}, "name must consist of letters"),
        ({"version": "new"}, "version must be a release such as 0.1.0, or installed, not new"),
    ]:
        done = installed.run(**{**STORY, "rules": "total>+500%", "version": "installed", **inputs})
        errors = [line for line in done.log.splitlines() if line.startswith("::error title=pprofdiff::")]
        assert len(errors) == 1, done.log
        assert message in errors[0].replace("%25", "%")
        assert done.failed


def test_the_comment_is_updated(installed: Runner):
    store = installed.fake / "comments.json"
    marked = "<!-- pprofdiff:pprofdiff -->\nof a stranger"
    others = [{"id": f"IC_{i}", "author": "others", "body": marked} for i in range(4)]
    store.write_text(json.dumps([*others, {"id": "IC_4", "author": "us", "body": "of another workflow"}]))
    failing, passing = FAILS, {**STORY, "rules": "total>+500%"}
    installed.run(**failing, version="installed")
    assert [c["body"].split("\n")[1] for c in installed.comments()[5:]] == ["### pprofdiff: fail: a limit is exceeded"]
    installed.run(**passing, version="installed")
    # Another use in the same workflow has its own comment, which contains its name.
    installed.run(**failing, version="installed", name="heap")
    bodies = [c["body"].split("\n") for c in installed.comments()]
    assert [body[1] for body in bodies[:4]] == ["of a stranger"] * 4
    assert bodies[4] == ["of another workflow"]
    assert bodies[5][:2] == ["<!-- pprofdiff:pprofdiff -->", "### pprofdiff: pass: within all limits"]
    assert bodies[6][:2] == ["<!-- pprofdiff:heap -->", "### pprofdiff heap: fail: a limit is exceeded"]
    assert len(bodies) == 7
    # Markdown escapes the name.
    installed.run(**failing, version="installed", name="my_heap")
    body = installed.comments()[-1]["body"].split("\n")
    assert body[:2] == ["<!-- pprofdiff:my_heap -->", "### pprofdiff my\\_heap: fail: a limit is exceeded"]


def test_the_name_is_the_name_of_the_check(installed: Runner):
    rules = "total>+500%"
    for name, expected in [("heap", "pprofdiff/heap/"), ("pprofdiff", None)]:
        report = installed.work / f"{name}.sarif"
        arguments = f"--report {report}"
        installed.run(**STORY, rules=rules, version="installed", name=name, arguments=arguments)
        run = json.loads(report.read_text())["runs"][0]
        assert run.get("automationDetails", {}).get("id") == expected
    # A name in the arguments takes precedence.
    arguments = f"--name cart --report {report}"
    installed.run(**STORY, rules=rules, version="installed", name="heap", arguments=arguments)
    assert json.loads(report.read_text())["runs"][0]["automationDetails"]["id"] == "pprofdiff/cart/"


def test_no_comment_unless_requested(installed: Runner):
    installed.run(**FAILS, version="installed", comment="false")
    installed.on("push", "refs/heads/trunk")
    done = installed.run(**FAILS, version="installed")
    assert not installed.comments()
    assert "now calls" in done.summary


def test_a_read_only_token_is_a_warning(installed: Runner):
    (installed.fake / "read-only").touch()
    done = installed.run(**STORY, rules="total>+500%", version="installed")
    assert not done.failed
    [warning] = [line for line in done.log.splitlines() if line.startswith("::")]
    assert warning.startswith("::warning title=pprofdiff::can't write the comment")
    assert "HTTP 403" in warning
    assert "pull-requests: write" in warning
    assert "now calls" in done.summary


def test_runs_are_found_by_patterns(installed: Runner):
    for i in (1, 2, 3):
        installed.put(**{f"main_{i}": RUNS / f"base-{i}.cpu.pb.gz", f"same_{i}": RUNS / f"equal-{i}.cpu.pb.gz"})
        (installed.work / f"-r{i}[x].pb").write_bytes((RUNS / f"added-{i}.cpu.pb.gz").read_bytes())
    (installed.work / "limits.toml").write_text("[check]\nrules = ['total>+5%']\n")
    fixed = {
        "base": "main *.pb.gz",
        "config": "limits.toml",
        "version": "installed",
        "arguments": "--paired\n --floor 2%",
    }
    done = installed.run(**fixed, new="same 1.pb.gz\n same [23].pb.gz \n")
    assert done.outputs["outcome"] == "pass", done.log
    # A file name may look like a pattern or an option.
    done = installed.run(**fixed, new="-r1[x].pb\n-r[23]*")
    assert done.outputs["outcome"] == "inconclusive", done.log
    assert "4.62s (3.67s to 4.77s, 3 runs)" in done.summary
    done = installed.run(**fixed, new="same 1.pb.gz")
    assert "paired runs need the same number of runs on both sides, not 3 and 1" in done.log


def test_the_table_has_the_requested_sample_type(installed: Runner):
    base, new = pair("go-heap")
    installed.put(base=base, new=new)
    rules = {**STORY, "rules": "total>+500%", "version": "installed"}
    assert "**inuse\\_space**" in installed.run(**rules).summary
    assert "**alloc\\_objects**" in installed.run(**rules, arguments="--sample-type alloc_objects").summary


def test_a_baseline_is_filled_by_the_default_branch(installed: Runner):
    rules = "cum:regex=names.compare>+10%"
    inputs = {"new": "new.pb.gz", "baseline": "base line", "rules": rules, "version": "installed"}
    stored = installed.work / "base line"
    # The first pull request has no baseline yet, which is not an error.
    done = installed.run(**inputs)
    assert (done.outputs["outcome"], done.failed, done.outputs["report"]) == ("none", [], "")
    assert "::warning title=pprofdiff::base line has no profile to compare with yet" in done.log
    assert "nothing is compared" in installed.comments()[0]["body"]
    # Neither branches nor events that may run foreign code on the default branch store a profile.
    for event, ref in [("push", "refs/heads/topic"), ("pull_request_target", "refs/heads/trunk")]:
        installed.on(event, ref)
        assert installed.run(**inputs).outputs["outcome"] == "none"
        assert not stored.exists()
    good = pair("story-cpu")[0]
    installed.on("push", "refs/heads/trunk", "feed")
    for _ in range(2):
        installed.put(new=good)
        assert installed.run(**inputs).outputs["outcome"] == "pass"
    entries = [json.loads(file.read_text()) for file in stored.glob("*.json")]
    assert [(e["branch"], e["commit"]) for e in entries] == [("trunk", "feed")] * 2
    # The page and the table exist even without a file for the base.
    installed.put(new=pair("story-cpu")[1])
    installed.on("pull_request", "refs/pull/7/merge")
    done = installed.run(**inputs)
    assert done.outputs["outcome"] == "fail"
    assert "`logmill/names.compare` (names.go:19) now calls `logmill/names.canonical`" in done.summary
    assert "What moved most" in done.summary
    assert b"names.canonical" in done.artifacts["pprofdiff"]["report.html"]
    assert len(list(stored.glob("*.json"))) == 2
    # Another branch has no baseline.
    done = installed.run(**inputs, arguments="--branch topic")
    assert done.outputs["outcome"] == "error"
    assert "no profile of branch topic" in done.log


def test_bench_runs_both_sides_and_annotates_the_lines_of_the_commit(installed: Runner):
    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        return subprocess.run(
            ["git", *who, *words], cwd=installed.work, check=True, capture_output=True, text=True
        ).stdout

    def commit(cost: int, body: str) -> str:
        (installed.work / "cost").write_text(f"{cost}\n")
        (installed.work / "shop").mkdir(exist_ok=True)
        (installed.work / "shop" / "email.go").write_text(
            f"package shop\n\nfunc validate(x int) int {{\n\t{body}\n}}\n"
        )
        git("add", "-A")
        git("commit", "-qm", f"cost {cost}")
        return git("rev-parse", "HEAD").strip()

    git("init", "-q")
    write = "printf 'main;shop.validate %s\\nmain;shop.load 9000\\n' $(cat cost) > \"$PPROFDIFF_PROFILE\"\n"
    (installed.work / "run.sh").write_text(write)
    base, new = commit(4000, "return x"), commit(9000, "return slow(x)")
    installed.event["pull_request"] |= {"base": {"sha": base}, "head": {"sha": new}}
    installed.environment["GITHUB_EVENT_NAME"] = "pull_request"
    inputs = {"bench": "sh 'run.sh'", "build": "test -f cost", "rules": "total>+5%", "version": "installed"}
    done = installed.run(**inputs)
    assert (done.failed, done.outputs["outcome"]) == (["Check"], "fail"), done.log
    assert re.search(r"^::notice file=shop/email.go,line=4,endLine=4,title=\w+ cost 9000::", done.log, re.MULTILINE), (
        done.log
    )
    assert "report.html" in done.artifacts["pprofdiff"]
    assert "cost 9000" in installed.comments()[0]["body"]
    # The same with existing profiles.
    installed.put(
        base=b"main;shop.validate 4000\nmain;shop.load 9000\n", new=b"main;shop.validate 9000\nmain;shop.load 9000\n"
    )
    done = installed.run(**STORY, rules="total>+500%", git=f"{base}..{new}", version="installed")
    assert re.search(r"^::notice file=shop/email.go,line=4", done.log, re.MULTILINE), done.log
    for wrong, message in [
        ({"rules": ""}, "no limit is given"),
        ({"new": "a"}, "bench records the profiles itself"),
        ({"same-code": "fail"}, "same-code: set same_code in pprofdiff.toml for bench"),
        ({"git": "x"}, "needs a range"),
    ]:
        assert (
            f"::error title=pprofdiff::pprofdiff: {message}" in (log := installed.run(**{**inputs, **wrong}).log)
            or message in log
        )


def test_a_comment_is_placed_on_the_lines_of_the_commit(installed: Runner):
    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        done = subprocess.run(["git", *who, *words], cwd=installed.work, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(*body: str) -> str:
        source = installed.work / "shop" / "e, mail.go"
        source.parent.mkdir(exist_ok=True)
        lines = "".join(f"\t{line}\n" for line in body)
        source.write_text(f"package shop\n\nfunc validate(x int) int {{\n{lines}}}\n")
        git("add", "shop")
        git("commit", "-qm", "validate, @octocat")
        return git("rev-parse", "HEAD")

    def shown(*lines: int) -> None:
        (installed.fake / "shown.json").write_text(json.dumps(lines))

    git("init", "-q")
    base, new = commit("return x"), commit("x = slow(x)", "return x + 1")
    installed.put(
        base=b"main;shop.validate 4000\nmain;shop.load 9000\n", new=b"main;shop.validate 9000\nmain;shop.load 9000\n"
    )
    of_range = {**STORY, "rules": "total>+500%", "git": f"{base}..{new}", "version": "installed"}
    shown(4, 5)
    store = installed.fake / "lines.json"
    marker = f"<!-- pprofdiff:pprofdiff:{new}:4-5 -->"
    others = [{"id": f"o{i}", "author": "others", "of": 1, "body": f"{marker}\nof a stranger"} for i in range(3)]
    store.write_text(json.dumps(others))
    installed.run(**of_range)
    *kept, one = installed.comments("lines")
    assert kept == others
    assert (one["commit_id"], one["path"]) == (new, "shop/e, mail.go")
    assert (one["start_line"], one["line"]) == (4, 5)
    first, headline, _, cause = one["body"].rstrip().split("\n")
    assert (first, headline) == (marker, "pprofdiff: this reaches a cause of the difference.")
    assert cause.startswith("- `shop.validate` itself costs more"), cause
    assert "@octocat" not in text_of(one["body"])
    # A second run replaces the comment. Another use in the workflow keeps its own.
    store.write_text(json.dumps([*others, {**one, "body": f"{marker}\nold", "of": 2}]))
    installed.run(**of_range)
    assert [(c["id"], c["body"]) for c in installed.comments("lines")[3:]] == [(one["id"], one["body"])]
    installed.run(**of_range, name="heap")
    assert len(installed.comments("lines")) == 5
    # An outdated comment is deleted, unless it has replies.
    store.write_text(json.dumps([*others, one, {**one, "id": "answered", "of": 2}]))
    installed.put(new=b"main;shop.validate 4000\nmain;shop.load 9000\n")
    installed.run(**of_range)
    assert [c["id"] for c in installed.comments("lines")] == ["o0", "o1", "o2", "answered"]
    # The pull request shows only the first line, or none of the lines.
    installed.put(new=b"main;shop.validate 9000\nmain;shop.load 9000\n")
    for lines, expected in [((4,), [(None, 4)]), ((), [])]:
        store.write_text("[]")
        shown(*lines)
        done = installed.run(**of_range)
        assert [(c["start_line"], c["line"]) for c in installed.comments("lines")] == expected
        assert "::warning" not in done.log, done.log
    # No comment without a range, or if it is disabled.
    shown(4, 5)
    installed.run(**{**of_range, "git": ""})
    installed.run(**of_range, comment="false")
    assert installed.comments("lines") == []
    # If GitHub refuses the comment, there is a warning.
    (installed.fake / "no-lines").touch()
    done = installed.run(**of_range)
    [warning] = [line for line in done.log.splitlines() if line.startswith("::warning")]
    assert "can't write the comments on lines" in warning
    assert "HTTP 403" in warning
    assert not done.failed


def test_only_attested_builds_are_installed(runner: Runner):
    base, new = pair("story-cpu")
    runner.put(base=base, new=new)

    def install(message: str, **inputs: str) -> None:
        done = runner.run(**{**FAILS, **inputs})
        assert done.failed == ["Install pprofdiff"]
        [error] = [line for line in done.log.splitlines() if line.startswith("::error")]
        assert message in error
        assert not list(runner.temp.glob("pprofdiff*"))

    install("pprofdiff is not on the PATH", version="installed")
    install("does the release v9.9.9 exist?", version="9.9.9")
    archive = runner.fake / "release" / f"pprofdiff-v{VERSION}-x86_64-unknown-linux-musl.tar.gz"
    content = archive.read_bytes()
    archive.write_bytes(content + b"\0")
    install("was not built by a workflow of pprofdiff/pprofdiff")
    # An older release under a newer name has a valid attestation, too.
    archive.rename(archive.with_name(archive.name.replace(VERSION, "9.9.9")))
    renamed = runner.release("x86_64-unknown-linux-musl", "9.9.9")
    runner.environment["RELEASED"] = "9.9.9"
    install(f"{renamed.name} does not have version 9.9.9", version="v9.9.9")
    runner.environment |= {"RUNNER_OS": "Linux", "RUNNER_ARCH": "ARM"}
    install("no release supports Linux/ARM")


@pytest.mark.parametrize(
    ("system", "machine", "target"),
    [
        ("Linux", "ARM64", "aarch64-unknown-linux-musl"),
        ("macOS", "X64", "x86_64-apple-darwin"),
        ("macOS", "ARM64", "aarch64-apple-darwin"),
        ("Windows", "X64", "x86_64-pc-windows-msvc"),
        ("Windows", "ARM64", "aarch64-pc-windows-msvc"),
    ],
)
def test_each_machine_has_its_archive(runner: Runner, system: str, machine: str, target: str):
    base, new = pair("story-cpu")
    runner.put(base=base, new=new)
    shutil.rmtree(runner.fake / "release")
    (runner.fake / "release").mkdir()
    runner.release(target)
    runner.environment |= {"RUNNER_OS": system, "RUNNER_ARCH": machine}
    assert runner.run(**FAILS, version=f"v{VERSION}").outputs["outcome"] == "fail"


HOSTILE = [
    "::error::taken",
    "\n::set-output name=outcome::pass",
    "%0A::error::taken",
    "@octocat #1 octo/scratch#2",
    "`@octocat` | #3",
    "</details><img src=x>",
    "outcome=pass\noutcome<<EOF",
    "##[error]taken",
    "x" * 70_000,
]


def test_hostile_names_are_not_interpreted(installed: Runner):
    strange_type = ("@octocat", "#6")
    installed.put(
        base=profile([(["main", name], 1_000_000, {}) for name in HOSTILE], sample_type=strange_type),
        new=profile(
            [(["main", name], (i + 1) * 9_000_000, {}) for i, name in enumerate(HOSTILE)], sample_type=strange_type
        ),
    )
    strange = "@octocat #4 ::error::x.pb.gz"
    (installed.work / "new.pb.gz").rename(installed.work / strange)
    rules = "flat:any>+1000\nflat:each=@octocat #5>+1000"
    inputs = {"base": "base.pb.gz", "new": strange, "rules": rules, "version": "installed", "arguments": "--strict"}
    done = installed.run(**inputs)
    assert done.outputs["outcome"] == "fail", done.log
    commands = [line for line in done.log.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    # For each rule, the five largest changes, and the number of the others.
    assert len(commands) == 7, commands
    assert all(re.match(r"::(error|warning) title=(fail|pprofdiff)", line) for line in commands)
    body = installed.comments()[0]["body"]
    assert len(body) < 65_536
    shown = text_of(body)
    assert not re.search(r"@octocat|#\d|<img", shown), shown
    # Errors quote inputs.
    strange = "none @octocat\n::error::taken"
    for wrong in ({"config": strange}, {"store": strange, "base": "", "baseline": "store"}):
        done = installed.run(**{**inputs, **wrong})
        assert done.outputs["outcome"] == "error"
        assert all(line.startswith("::error title=pprofdiff::") for line in done.log.splitlines() if "::" in line[:3])
        assert "@octocat" not in text_of(installed.comments()[0]["body"])
    # A missing file with such a name.
    done = installed.run(**{**inputs, "new": "none @octocat\n::error::taken"})
    assert not re.search(r"@octocat", text_of(installed.comments()[0]["body"]))
    assert all(line.startswith("::error title=pprofdiff::") for line in done.log.splitlines() if "::" in line[:3])


@pytest.mark.skipif(shutil.which("go") is None, reason="no go")
def test_workflows_are_valid(tmp_path: Path):
    """actionlint checks only the inputs and outputs of action.yml, so its steps are copied to a workflow, next to the
    examples."""
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    shutil.copy(ROOT / "action.yml", tmp_path)
    inputs = {name: {"type": "string"} for name in ACTION["inputs"]}
    jobs = {"action": {"runs-on": "ubuntu-latest", "steps": STEPS}}
    workflow = {"name": "action", "on": {"workflow_call": {"inputs": inputs}}, "jobs": jobs}
    (workflows / "action.yml").write_text(yaml.safe_dump(workflow))
    examples = re.findall(r"```yaml\n(name:.*?)```", (ROOT / "docs" / "check.md").read_text(), re.DOTALL)
    assert len(examples) >= 2
    for number, example in enumerate(examples):
        # The first form is of the release, and the second uses a clone, see release/steps.toml.
        here = example.replace(f"pprofdiff/pprofdiff@v{VERSION}\n", "./\n").replace("./.pprofdiff\n", "./\n")
        assert "uses: ./\n" in here
        (workflows / f"{number}.yml").write_text(here)
    # Runs actionlint from source, because its wheel would download a binary.
    lint = ["go", "run", "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"]
    done = subprocess.run(lint, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_scripts_contain_no_expressions():
    for step in STEPS:
        assert "${{" not in step.get("run", ""), "what an input says would be run"
    # Every input is used, and every script gets exactly the variables that it reads.
    everything = json.dumps(STEPS)
    assert [name for name in ACTION["inputs"] if f"inputs.{name} " not in everything] == []
    annotate = (ROOT / "action" / "annotate").read_text()
    own_names = re.compile(r"^(GITHUB_(?!TOKEN)|RUNNER_|BASH_REMATCH$|IFS$)")
    for step in STEPS:
        if "run" not in step:
            continue
        script = (ROOT / "action" / step["run"].split("/")[-1].rstrip('"')).read_text() + annotate
        code = re.sub(r"^\s*#.*$", "", script, flags=re.MULTILINE)
        read = {name for name in re.findall(r"\$\{?([A-Z][A-Z_]+)", code) if not own_names.match(name)}
        assert read == set(step["env"]) - {"GH_TOKEN"}  # The variable is read by gh.

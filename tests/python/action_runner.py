"""Emulates a GitHub runner for the tests of the action: runs the steps of action.yml in a scratch repository, with the
real scripts and the real command, and with a fake `gh` that keeps releases and comments in files."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from conftest import CORPUS

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "debug" / "pprofdiff"
RUNS = CORPUS / "faults" / "maptiles"
# The outcomes for which no step fails.
NOTHING_FAILS = {"pass", "inconclusive", "none"}

GH = r'''#!{python}
"""gh with a release (assets in $FAKE/release) and a pull request (comments in $FAKE/comments.json, those on lines in
$FAKE/lines.json, each with how many its thread has)."""
import hashlib, json, os, pathlib, sys
import jq

fake = pathlib.Path(os.environ["FAKE"])
arguments = sys.argv[1:]
assert os.environ["GH_TOKEN"] == "the token"

def fields(known):
    """The options, of which -f and -F are fields; each of the others takes a value, or None."""
    found, rest = {}, iter(arguments)
    for word in rest:
        if word in ("-f", "-F"):
            name, value = next(rest).split("=", 1)
            if word == "-F" and value.startswith("@"):
                value = pathlib.Path(value[1:]).read_text()
            elif word == "-F" and value.isdigit():
                value = int(value)
            found[name] = value
        elif word in known:
            found[word] = next(rest) if known[word] else True
        else:
            found.setdefault("", []).append(word)
    return found

def fail(text):
    print("gh: " + text, file=sys.stderr)
    sys.exit(1)

def page(comments, cursor, lines):
    """Returns two comments per page, although 100 are requested."""
    at = int(cursor or 0)
    nodes = [{"id": c["id"], "viewerDidAuthor": c["author"] == "us", "body": c["body"]} for c in comments[at:at + 2]]
    if lines:
        nodes = [{"comments": {"totalCount": c["of"], "nodes": [n]}} for c, n in zip(comments[at:at + 2], nodes)]
    info = {"hasNextPage": at + 2 < len(comments), "endCursor": str(at + 2)}
    kind = "reviewThreads" if lines else "comments"
    return {"data": {"repository": {"pullRequest": {kind: {"nodes": nodes, "pageInfo": info}}}}}, info

kind = arguments[:2]
if kind == ["release", "download"]:
    given = fields({"--repo": 1, "--pattern": 1})
    asset = fake / "release" / given["--pattern"]
    if given != {"": ["release", "download", "v" + os.environ["RELEASED"]], "--repo": "pprofdiff/pprofdiff",
                 "--pattern": asset.name} or not asset.exists():
        fail("release not found")
    pathlib.Path(asset.name).write_bytes(asset.read_bytes())
elif kind == ["attestation", "verify"]:
    given = fields({"--repo": 1})
    digest = hashlib.sha256(pathlib.Path(given[""][2]).read_bytes()).hexdigest()
    if given["--repo"] != "pprofdiff/pprofdiff" or digest not in (fake / "attested").read_text().split():
        fail("no attestations found")
elif kind[0] == "api":
    given = fields({"--paginate": 0, "--jq": 1, "--method": 1})
    lines = "eview" in given.get("query", "") or given[""][1].endswith("pulls/7/comments")
    store = fake / ("lines.json" if lines else "comments.json")
    comments = json.loads(store.read_text()) if store.exists() else []
    if kind == ["api", "graphql"] and given["query"].startswith("query"):
        assert (given["owner"], given["repository"], given["number"]) == ("octo", "scratch", 7), given
        info = {"hasNextPage": True, "endCursor": None}
        while info["hasNextPage"]:
            answer, following = page(comments, info["endCursor"], lines)
            for text in jq.compile(given["--jq"]).input_value(answer):
                print(text)
            info = following if "--paginate" in given else {"hasNextPage": False}
        sys.exit()
    if (fake / "read-only").exists() or lines and (fake / "no-lines").exists():
        fail("Resource not accessible by integration (HTTP 403)")
    if kind == ["api", "graphql"] and "deletePullRequestReviewComment(input: {id: $id})" in given["query"]:
        store.write_text(json.dumps([c for c in comments if c["id"] != given["id"]]))
        sys.exit()
    if kind == ["api", "graphql"] and lines:
        update = "updatePullRequestReviewComment(input: {pullRequestReviewCommentId: $id, body: $body})"
        assert update in given["query"]
        next(c for c in comments if c["id"] == given["id"])["body"] = given["body"]
    elif lines:
        assert given[""] == ["api", "repos/octo/scratch/pulls/7/comments"] and given["--method"] == "POST", given
        assert given["side"] == "RIGHT" and given.get("start_side", "RIGHT") == "RIGHT"
        # The pull request shows only some lines of the file.
        at = range(given.get("start_line", given["line"]), given["line"] + 1)
        if not set(at) <= set(json.loads((fake / "shown.json").read_text())):
            fail("Validation Failed (HTTP 422)")
        of = {name: given.get(name) for name in ("body", "commit_id", "path", "start_line", "line")}
        comments.append({"id": f"PRRC_{len(comments)}", "author": "us", "of": 1, **of})
    elif kind == ["api", "graphql"]:
        assert "updateIssueComment(input: {id: $id, body: $body})" in given["query"]
        next(c for c in comments if c["id"] == given["id"])["body"] = given["body"]
    else:
        assert given[""] == ["api", "repos/octo/scratch/issues/7/comments"] and given["--method"] == "POST", given
        comments.append({"id": f"IC_{len(comments)}", "author": "us", "body": given["body"]})
    if len(given["body"]) > 65536:
        fail("Body is too long (maximum is 65536 characters) (HTTP 422)")
    store.write_text(json.dumps(comments))
    print("{}")
else:
    fail("unknown command " + " ".join(arguments))
'''


def tree(expression: str, context: dict) -> str:
    """Evaluates an expression of the kind that action.yml uses: a property, or nothing."""
    value: object = context
    for name in expression.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def evaluated(text: object, context: dict) -> str:
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: tree(match[1], context), str(text))


def runs_now(step: dict, failed: bool, context: dict) -> bool:
    condition = step.get("if")
    if condition is None:
        return not failed
    status, name = re.fullmatch(r"\$\{\{ (!cancelled\(\)) && ([\w.-]+) \}\}", condition).groups()
    return bool(status and tree(name, context))


@dataclass
class Result:
    """The results of a run of the action."""

    outputs: dict[str, str]
    log: str = ""
    summary: str = ""
    failed: list[str] = field(default_factory=list)
    artifacts: dict[str, dict[str, bytes]] = field(default_factory=dict)


class Runner:
    """A job on a machine, whose scratch repository is `work`. The machine is kept from step to step."""

    def __init__(self, home: Path) -> None:
        self.fake, self.work, self.temp = (home / name for name in ("fake", "work", "temp dir"))
        bin_ = self.fake / "bin"
        for folder in (bin_, self.work, self.temp, self.fake / "release"):
            folder.mkdir(parents=True)
        (self.fake / "attested").write_text("")
        (bin_ / "gh").write_text(GH.replace("{python}", sys.executable))
        (bin_ / "gh").chmod(0o755)
        self.paths = [str(bin_)]
        self.environment = {"RUNNER_OS": "Linux", "RUNNER_ARCH": "X64", "RELEASED": VERSION}
        self.event = {"repository": {"default_branch": "trunk"}, "pull_request": {"number": 7}}
        self.on("pull_request", "refs/pull/7/merge")
        self.release("x86_64-unknown-linux-musl")

    def on(self, event: str, ref: str, sha: str = "c0ffee") -> None:
        self.environment |= {"GITHUB_EVENT_NAME": event, "GITHUB_REF": ref, "GITHUB_SHA": sha}
        if event != "pull_request":
            self.event.pop("pull_request", None)

    def release(self, target: str, version: str = VERSION) -> Path:
        """Creates a release archive with the command, and attests it."""
        name = f"pprofdiff-v{version}-{target}"
        archive = self.fake / "release" / (name + (".zip" if "windows" in target else ".tar.gz"))
        # A script replaces the program, because its debug symbols take half a gigabyte.
        program = f'#!/bin/sh\nexec "{COMMAND}" "$@"\n'.encode()
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive, "w") as out:
                info = zipfile.ZipInfo(f"{name}/pprofdiff")
                info.external_attr = 0o100755 << 16
                out.writestr(info, program)
        else:
            with tarfile.open(archive, "w:gz") as out:
                (self.fake / "pprofdiff").write_bytes(program)
                (self.fake / "pprofdiff").chmod(0o755)
                out.add(self.fake / "pprofdiff", f"{name}/pprofdiff")
        with (self.fake / "attested").open("a") as attested:
            attested.write(hashlib.sha256(archive.read_bytes()).hexdigest() + "\n")
        return archive

    def comments(self, kind: str = "comments") -> list[dict[str, str]]:
        store = self.fake / f"{kind}.json"
        return json.loads(store.read_text()) if store.exists() else []

    def run(self, **inputs: str) -> Result:
        """Runs the action with these inputs."""
        unknown = set(inputs) - set(ACTION["inputs"])
        assert not unknown
        github = {"token": "the token", "event": self.event}
        given = {k: evaluated(v.get("default", ""), {"github": github}) for k, v in ACTION["inputs"].items()} | inputs
        steps: dict[str, dict] = {}
        context = {"inputs": given, "github": github, "steps": steps}
        result = Result({})
        for number, step in enumerate(STEPS):
            if not runs_now(step, bool(result.failed), context):
                continue
            outputs: dict[str, str] = {}
            if "uses" in step:
                assert re.fullmatch(r"actions/upload-artifact@v\d+", step["uses"])
                with_ = {k: evaluated(v, context) for k, v in step["with"].items()}
                files = Path(with_["path"]).iterdir()
                result.artifacts[with_["name"]] = {file.name: file.read_bytes() for file in files}
                outputs["artifact-url"] = f"https://github.com/octo/scratch/actions/runs/1/artifacts/{number}"
            else:
                outputs = self.shell(step, context, number, result)
            if "id" in step:
                steps[step["id"]] = {"outputs": outputs}
        result.outputs = {k: evaluated(v["value"], context) for k, v in ACTION["outputs"].items()}
        return result

    def shell(self, step: dict, context: dict, number: int, result: Result) -> dict[str, str]:
        assert step["shell"] == "bash"
        files = {name: self.temp / f"{name.lower()}_{number}" for name in ("OUTPUT", "PATH", "STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        environment = {
            "HOME": str(self.work),
            "LANG": "C.UTF-8",
            "FAKE": str(self.fake),
            "PATH": os.pathsep.join([*self.paths, "/usr/local/bin", "/usr/bin", "/bin"]),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_REPOSITORY": "octo/scratch",
            "RUNNER_TEMP": str(self.temp),
            **{f"GITHUB_{name}": str(file) for name, file in files.items()},
            **self.environment,
            **{k: evaluated(v, context) for k, v in step.get("env", {}).items()},
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=self.work, env=environment, stdout=-1, stderr=-2, text=True, timeout=120)
        result.log += done.stdout
        result.summary += files["STEP_SUMMARY"].read_text()
        if done.returncode:
            result.failed.append(step["name"])
        self.paths[:0] = files["PATH"].read_text().splitlines()
        return dict(line.split("=", 1) for line in files["OUTPUT"].read_text().splitlines())

    def put(self, **files: Path | bytes) -> None:
        """Writes files to the scratch repository. `_` in their names stands for a space."""
        for name, content in files.items():
            path = self.work / f"{name.replace('_', ' ')}.pb.gz"
            path.write_bytes(content if isinstance(content, bytes) else content.read_bytes())

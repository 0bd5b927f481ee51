"""Tests on several machines: Ray on two nodes, files in S3 with threads, Dask and Ray, and the example programs of
docs/bulk.md.

They only run if PPROFDIFF_CLUSTERS is set, as in .ci/nightly; otherwise conftest.py ignores this file. Ray and the S3
emulator are large to install (`pip install --group nightly`) and slow to start. test_executors.py tests Dask alone."""

import concurrent.futures
import http.server
import json
import logging
import os
import re
import subprocess
import sys
import threading
import urllib.parse
import warnings
from collections.abc import Iterator
from pathlib import Path

import boto3
import botocore.auth
import botocore.awsrequest
import botocore.credentials
import distributed
import pytest
import ray
import ray.cluster_utils
from moto.server import ThreadedMotoServer

import pprofdiff
from conftest import PAIRS, pair
from test_executors import dask_ends

# Ray, Dask and the server leave processes, pipes and sockets to the garbage collector, and use deprecated functions.
pytestmark = [pytest.mark.filterwarnings("ignore")]

BUCKET = "profiles"
TIMEOUT = 60


@pytest.fixture(scope="module", autouse=True)
def s3() -> Iterator[None]:
    """Starts an S3 server with the corpus in a bucket: main/NAME/cpu.pb.gz, branch/NAME/cpu.pb.gz, and secret/, which
    denies access.

    It must start before all clusters, because their workers inherit the environment of this process."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        for name in PAIRS:
            for side, path in zip(("main", "branch"), pair(name), strict=True):
                client.upload_file(str(path), BUCKET, f"{side}/{name}/cpu.pb.gz")
        client.upload_file(str(pair("go-mutex")[0]), BUCKET, "secret/cpu.pb.gz")
        denied = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{BUCKET}/secret/*",
        }
        client.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [denied]}))
        yield
    server.stop()


@pytest.fixture(scope="module")
def nodes(s3: None) -> Iterator[ray.cluster_utils.Cluster]:
    """Starts two Ray nodes with one CPU each. This program connects to the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = ray.cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()


@pytest.fixture
def connected(nodes: ray.cluster_utils.Cluster) -> Iterator[ray.cluster_utils.Cluster]:
    ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()


@pytest.fixture(scope="module")
def dask(s3: None) -> Iterator[distributed.Client]:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(**options, silence_logs="CRITICAL") as cluster,
            distributed.Client(cluster) as client,
        ):
            client.wait_for_workers(2, timeout=TIMEOUT)
            yield client


def test_a_dask_executor_reports_missing_pairs_if_its_cluster_ends():
    dask_ends(lambda client: client.get_executor())


@pytest.fixture(params=["threads", "Dask", "Ray"])
def executor(request: pytest.FixtureRequest) -> Iterator[object]:
    if request.param == "threads":
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            yield threads
    elif request.param == "Dask":
        yield request.getfixturevalue("dask")
    else:
        request.getfixturevalue("connected")
        yield ray


class Side(os.PathLike):
    """A profile's path that evaluates an expression in the worker that unpickles it."""

    def __init__(self, expression: str) -> None:
        self.expression = expression

    def __fspath__(self) -> str:
        raise NotImplementedError("only where it was sent")

    def __reduce__(self) -> tuple:
        return eval, (self.expression,)


DIES = "__import__('os').kill(__import__('os').getpid(), 9)"


def answers(pairs: list, executor: object) -> list[str | type]:
    """Returns the table of each pair as CSV, which does not contain file names, or the type of its error."""
    results = list(pprofdiff.batch(pairs, executor=executor).tables(granularity="lines", sort="cum"))
    assert [r.pair for r in results] == pairs
    return [type(r.error) if r.table is None else r.table.to_csv() for r in results]


def test_ray_gives_the_same_results_on_both_nodes(connected: ray.cluster_utils.Cluster, tmp_path: Path):
    base, new = pair("go-mutex")
    bad = [("none", new), (b"\xff", new), 3, ([], new), pprofdiff.Pair(None, None, "alone", error=ValueError("none"))]
    good = [*map(pair, PAIRS), (base.read_bytes(), [new, str(new)])]
    pairs = [*good, *bad, *good * 30]
    assert answers(pairs, ray) == answers(pairs, None)
    # Each worker writes its node's id to a folder.
    where = f"(__import__('pathlib').Path({str(tmp_path)!r}) / __import__('ray').get_runtime_context().get_node_id())"
    leaves = Side(f"({where}.touch(), {str(base)!r})[1]")
    assert set(answers([(leaves, new)] * 1000, ray)) == {*answers([(base, new)], None)}
    assert {path.name for path in tmp_path.iterdir()} == {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def test_ray_returns_diffs(connected: ray.cluster_utils.Cluster):
    (result,) = pprofdiff.batch([pair("go-mutex")], executor=ray)
    assert result.diff.top().to_json() == pprofdiff.diff(*pair("go-mutex")).top().to_json()


def test_ray_loses_no_pair_if_a_worker_is_killed(connected: ray.cluster_utils.Cluster, tmp_path: Path):
    base, new = pair("go-mutex")
    once = tmp_path / "once"
    dies_once = f"({DIES} if not {once!r}.exists() and not {once!r}.touch() else {str(base)!r})"
    dies_once = dies_once.replace(repr(once), f"__import__('pathlib').Path({str(once)!r})")
    pairs = [(str(base), new)] * 1000
    pairs[500] = (Side(dies_once), new)
    results = answers(pairs, ray)
    assert once.exists()
    assert set(results) == {*answers([(base, new)], None)}


def test_a_pair_that_kills_every_worker_is_an_error(connected: ray.cluster_utils.Cluster):
    base, new = pair("go-mutex")
    pairs = [(str(base), new)] * 300
    pairs[200] = (Side(DIES), new)
    results = answers(pairs, ray)
    lost = [i for i, answer in enumerate(results) if isinstance(answer, type)]
    # The other pairs of its task are lost as well, but no pairs of other tasks.
    assert 200 in lost
    assert lost == [*range(lost[0], lost[-1] + 1)]
    assert len(lost) <= 64
    assert {results[i] for i in lost} == {ray.exceptions.WorkerCrashedError}


def test_ray_loses_no_pair_if_a_node_is_lost(connected: ray.cluster_utils.Cluster):
    third = connected.add_node(num_cpus=1)
    connected.wait_for_nodes()
    base, new = map(str, pair("story-cpu"))
    done = []
    for result in pprofdiff.batch([(base, new)] * 3000, executor=ray).tables():
        assert result.error is None, result.error
        done.append(result.table.to_json())
        if len(done) == 500:
            connected.remove_node(third, allow_graceful=False)
    assert (len(done), len(set(done))) == (3000, 1)


def test_ray_reports_missing_pairs_after_a_shutdown(connected: ray.cluster_utils.Cluster):
    pairs = [pair("story-cpu")] * 2000
    results = []
    for result in pprofdiff.batch(pairs, executor=ray).tables(1):
        results.append(result)
        if len(results) == 100:
            ray.shutdown()
    assert len(results) == len(pairs)
    assert {type(r.error) for r in results} == {type(None), ConnectionError}
    assert not ray.is_initialized()
    with pytest.raises(pprofdiff.PprofError, match=r"ray\.init"):
        pprofdiff.batch(pairs, executor=ray)


def test_an_abandoned_batch_cancels_its_tasks(connected: ray.cluster_utils.Cluster):
    results = pprofdiff.batch(iter(lambda: pair("story-cpu"), None), executor=ray).tables(1)
    for _ in range(100):
        assert next(results).error is None
    del results
    assert answers([pair("go-mutex")], ray) == answers([pair("go-mutex")], None)


def test_files_in_s3_give_the_same_results_as_on_disk(executor: object):
    urls = [(f"s3://{BUCKET}/main/{name}/cpu.pb.gz", f"s3://{BUCKET}/branch/{name}/cpu.pb.gz") for name in PAIRS]
    assert answers(urls * 5, executor) == answers(list(map(pair, PAIRS)) * 5, None)


def test_missing_or_denied_keys_are_errors_of_their_pairs(executor: object):
    good = f"s3://{BUCKET}/main/go-mutex/cpu.pb.gz"
    pairs = [(good, good), (good, f"s3://{BUCKET}/none"), (f"s3://{BUCKET}/secret/cpu.pb.gz", good), (good, good)]
    results = pprofdiff.batch(pairs, executor=executor).collect()
    assert [type(r.error) for r in results] == [type(None), FileNotFoundError, PermissionError, type(None)]


def command(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the package's command."""
    words = [sys.executable, "-m", "pprofdiff", *args]
    return subprocess.run(words, capture_output=True, text=True, env=os.environ | environment)


def test_the_command_compares_objects_in_s3():
    sides = [f"s3://{BUCKET}/{side}/*/cpu.pb.gz" for side in ("main", "branch")]
    done = command("batch", *sides, "-n", "3", "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    for line, name in zip(map(json.loads, done.stdout.splitlines()), sorted(PAIRS), strict=True):
        table = pprofdiff.diff(*pair(name)).top(3)
        assert line["pair"] == name
        assert [(row["name"], row["flat_base"], row["flat_new"]) for row in line["rows"]] == [
            (row["name"], row["flat_base"], row["flat_new"]) for row in table.to_dicts()
        ]
    keys = ("--group", "side={1},name={2}", "--base", "side=main", "--new", "side=branch")
    done = command("batch", f"s3://{BUCKET}/*/*/cpu.pb.gz", *keys, "-n", "1", "--format", "jsonl")
    assert [json.loads(line)["pair"] for line in done.stdout.splitlines()] == sorted(PAIRS)
    denied = command("top", f"s3://{BUCKET}/secret/cpu.pb.gz")
    assert denied.returncode == 2
    assert f"s3://{BUCKET}/secret/cpu.pb.gz: the server answers 403" in denied.stderr


@pytest.mark.parametrize("token", ["", "to/ken=+"])
def test_the_command_signs_requests_like_the_library_of_aws(token: str):
    asked: list[str] = []

    class Keeping(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"http://{self.headers['Host']}{self.path}")
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Keeping) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{server.server_port}", "AWS_REGION": "eu-south-2"}
        environment |= {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "se/cr+et"}
        environment |= {"AWS_SESSION_TOKEN": token} if token else {}
        for address in ("s3://a.b-c/plain", "s3://a.b-c/d/e f+g&h=~(é)%2F.pb.gz", "s3://a.b-c/d/*"):
            assert command("series", address, **environment).returncode == 2
        server.shutdown()
    assert len(asked) == 3
    for url in asked:
        address, query = url.split("?")
        words = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
        given = words.pop("X-Amz-Signature")
        signer = botocore.auth.S3SigV4QueryAuth(
            botocore.credentials.Credentials("AKID", "se/cr+et", token or None),
            "s3",
            "eu-south-2",
            words["X-Amz-Expires"],
        )
        parameters = {name: value for name, value in words.items() if not name.startswith("X-Amz-")}
        request = botocore.awsrequest.AWSRequest("GET", f"{address}?{urllib.parse.urlencode(parameters)}")
        request.context["timestamp"] = words["X-Amz-Date"]
        signer._modify_request_before_signing(request)
        assert signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request) == given


def programs() -> list[str]:
    """Returns the Python programs in the section of docs/bulk.md about several machines."""
    page = (Path(__file__).parents[2] / "docs/bulk.md").read_text()
    section = page[page.index("## On a cluster") : page.index("## What it costs")]
    return re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)


def of_spark(program: str, names: dict) -> None:
    """Runs a program with a DataFrame of the pairs in a temporary Spark session with two cores."""
    from pyspark.sql import SparkSession  # Imported here, because the import is slow.

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        pairs = [tuple(map(str, sides)) for sides in names["pairs"]]
        names["frame"] = spark.createDataFrame(pairs, "base string, new string")
        exec(program, names)
        rows = names["results"].collect()
    finally:
        spark.stop()
    expected = pprofdiff.diff(*names["pairs"][0]).top(10).to_dicts()
    valid_rows = sorted((row for row in rows if row.error is None), key=lambda row: row.name)
    assert [(row.name, row.flat_base, row.flat_new) for row in valid_rows] == sorted(
        (row["name"], row["flat_base"], row["flat_new"]) for row in expected
    )
    assert ["none" in row.error for row in rows if row.error is not None] == [True]


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.split("\n")[0])
def test_programs_of_the_documentation(
    program: str, nodes: ray.cluster_utils.Cluster, dask: distributed.Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)  # Ray reads this variable for the address "auto".
    program = program.replace("tcp://scheduler:8786", dask.scheduler.address)
    names: dict = {"pprofdiff": pprofdiff, "pairs": [pair("go-mutex"), ("none", "none")]}
    if "mapInArrow" in program:
        of_spark(program, names)
        return
    try:
        exec(program, names)
    finally:
        ray.shutdown()
    results = names["results"]
    assert [r.error is None for r in results] == ([True] * len(PAIRS) if "s3" in program else [True, False])

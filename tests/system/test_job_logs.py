"""Logs of jobs: what processors log on members, in Python, over HTTP and in the command line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import httpx
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import secateur
from secateur.cli.app import app
from secateur.cluster import Cluster
from secateur.connectors import collect, logger_sink, table_source
from secateur.dag import Processor
from secateur.engine.processors import map_batches
from secateur.errors import JobFailedError, UnknownJobError
from secateur.server import HttpServer


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as running, running.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 12")
        conn.table("t").load(pa.table({"k": range(600), "v": range(600)}))
        yield running


@pytest.fixture
def conn(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as opened:
        yield opened


class Talks(Processor):
    """Logs in each of its calls, on the event loop, or in a thread if it says so."""

    def __init__(self, *, cooperative: bool) -> None:
        self.cooperative = cooperative
        self._offload: object = None

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if batch.num_rows:
            self.context.logger.info("%d rows", batch.num_rows)
        return self.outbox.offer(batch)

    def complete(self) -> bool:
        if self._offload is None:
            self._offload = self.context.offload(lambda: logging.getLogger("of.user").warning("in the background"))
        if not self._offload.done():  # type: ignore[attr-defined]
            return False
        self.context.logger.debug("too quiet")
        return True

    def close(self) -> None:
        self.context.logger.info("closed")


def dag_of(stage: object) -> secateur.DAG:
    dag = secateur.DAG()
    dag.new_vertex("read", table_source("t"))
    dag.new_vertex("stage", stage, local_parallelism=1)  # type: ignore[arg-type]
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "stage"))
    dag.edge(secateur.between("stage", "result").all_to_one().distributed())
    return dag


@pytest.mark.parametrize("cooperative", [True, False], ids=["on the loop", "in a thread"])
@pytest.mark.parametrize("light", [True, False], ids=["light", "on record"])
def test_what_processors_log_is_told_by_member_and_vertex(
    cluster: Cluster, conn: secateur.Connection, cooperative: bool, light: bool
) -> None:
    def stage() -> Talks:
        return Talks(cooperative=cooperative)

    job = conn.submit(dag_of(stage), light=light)
    assert job.result().num_rows == 600
    log = job.logs()
    members = {member.id for member in cluster.members()}
    assert {line.member for line in log} == members
    assert {line.vertex for line in log} == {"stage"}
    assert {(line.level, line.logger, line.attempt) for line in log} == {
        ("INFO", "secateur.job", 1),
        ("WARNING", "of.user", 1),
    }
    for member in members:
        said = [line.message for line in log if line.member == member]
        assert said[-2:] == ["in the background", "closed"]
        assert sum(int(text.removesuffix(" rows")) for text in said[:-2]) == sum(
            row.rows for row in cluster.members() if row.id == member
        )
    assert [line.time for line in log] == sorted(line.time for line in log)
    assert (log.dropped, log.silent) == (0, ())
    assert "of.user" not in str(log)
    assert " WARNING m1 stage: in the background" in str(log)


def test_a_failure_is_logged_with_its_traceback(conn: secateur.Connection) -> None:
    def broken(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("no such luck")

    job = conn.submit(dag_of(map_batches(broken)))
    with pytest.raises(JobFailedError, match="no such luck"):
        job.result()
    errors = [line for line in job.logs() if line.level == "ERROR"]
    assert errors
    assert errors[0].vertex == "stage"
    assert 'raise ValueError("no such luck")' in errors[0].message


def test_statements_and_other_jobs_have_no_lines_of_it(conn: secateur.Connection) -> None:
    job = conn.submit(dag_of(lambda: Talks(cooperative=True)))
    job.result()
    quiet = conn.submit(dag_of(map_batches(lambda batch: batch)))
    quiet.result()
    before = len(job.logs())
    conn.execute("SELECT v % 7, count(*) FROM t GROUP BY ALL").fetchall()
    assert len(job.logs()) == before > 0
    assert len(quiet.logs()) == 0


def test_a_member_that_is_gone_is_named_or_not_asked(cluster: Cluster, conn: secateur.Connection) -> None:
    job = conn.submit(dag_of(lambda: Talks(cooperative=True)))
    job.result()
    cluster.kill_member("m2")
    log = job.logs()
    assert {line.member for line in log} == {"m1", "m3"}
    assert set(log.silent) <= {"m2"}


def test_http_and_the_command_line_say_the_same(cluster: Cluster, conn: secateur.Connection) -> None:
    job = conn.submit(dag_of(lambda: Talks(cooperative=False)), secateur.JobConfig(name="talk"))
    job.result()
    log = job.logs()
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with HttpServer(cluster.address) as server, httpx.Client(base_url=server.url, headers=headers) as http:
        told = http.get(f"/api/v1/jobs/{job.job_id}/logs").json()
        assert http.get("/api/v1/jobs/talk/logs").json() == told
        some = http.get(f"/api/v1/jobs/{job.job_id}/logs", params={"limit": 2}).json()
        assert http.get("/api/v1/jobs/none/logs").status_code == 404
        assert http.get(f"/api/v1/jobs/{job.job_id}/logs", params={"limit": 0}).status_code == 422
        sql = http.post("/api/v1/jobs", json={"sql": "SELECT count(*) FROM t"}).json()["id"]
        assert http.get(f"/api/v1/jobs/{sql}/logs").json() == {"items": [], "dropped": 0, "silent": []}
    assert [(item["member"], item["message"]) for item in told["items"]] == [
        (line.member, line.message) for line in log
    ]
    assert told["items"][0]["time"].endswith("Z")
    assert (some["items"], some["dropped"]) == (told["items"][:2], len(log) - 2)

    words = ["--address", cluster.address, "--token", cluster.token or ""]
    shown = CliRunner().invoke(app, ["jobs", "logs", "talk", *words])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == f"{log}\n"
    as_json = json.loads(CliRunner().invoke(app, ["jobs", "logs", job.job_id, "--json", *words]).stdout)
    assert [line["message"] for line in as_json] == [line.message for line in log]
    assert CliRunner().invoke(app, ["jobs", "logs", "none", *words]).exit_code == 1
    assert "talk" in CliRunner().invoke(app, ["jobs", *words]).stdout


def test_the_rows_of_a_logger_sink_are_in_the_log_of_its_job(conn: secateur.Connection) -> None:
    dag = secateur.DAG()
    dag.new_vertex("read", table_source("t", keys=[{"k": 7}]))
    dag.new_vertex("write", logger_sink())
    dag.edge(secateur.between("read", "write"))
    job = conn.submit(dag)
    job.result()
    (line,) = job.logs()
    assert (line.vertex, line.logger) == ("write", "secateur.job")
    assert line.message.endswith("{'k': 7, 'v': 7}")


def test_an_unknown_job_has_no_log(conn: secateur.Connection) -> None:
    with pytest.raises(UnknownJobError):
        conn.job("none").logs()

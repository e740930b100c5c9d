"""Spans of OpenTelemetry: statement, plan, member and kernel, in one process and over the processes of Ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, Sampler, SamplingResult
from span_files import FOLDER

import secateur
from secateur.connectors import collect
from secateur.errors import DataError, InterfaceError, ProgrammingError
from secateur.processors import count_rows

HERE = Path(__file__).parent
ONE = "SELECT sum(v) FROM o WHERE k = ?"
FEW = "SELECT v FROM o WHERE k IN (?, ?, ?, ?)"
ALL = "SELECT k, sum(v) FROM o GROUP BY k"


class UntilOff(Sampler):
    """Samples everything until it is turned off."""

    is_on = True

    def should_sample(
        self,
        parent_context: Any,
        trace_id: int,
        name: str,
        kind: Any = None,
        attributes: Any = None,
        *_: Any,
        **__: Any,
    ) -> SamplingResult:
        return SamplingResult(Decision.RECORD_AND_SAMPLE if self.is_on else Decision.DROP, attributes)

    def get_description(self) -> str:
        return "until it is turned off"


@pytest.fixture(scope="module")
def exporter() -> Iterator[InMemorySpanExporter]:
    """The spans of this process. A process has one provider for ever: later tests find one that samples nothing."""
    kept, sampler = InMemorySpanExporter(), UntilOff()
    provider = TracerProvider(ParentBased(sampler))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    yield kept
    sampler.is_on = False


@pytest.fixture(scope="module")
def traced(exporter: InMemorySpanExporter) -> Iterator[secateur.Connection]:
    with secateur.start(members=3, runtime="embedded") as running, running.connect() as conn:
        fill(conn)
        yield conn


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


def fill(conn: secateur.Connection) -> None:
    conn.execute(
        "CREATE TABLE o (k VARCHAR, id BIGINT, v BIGINT, PRIMARY KEY (k, id)) PARTITION BY HASH (k) PARTITIONS 32"
    )
    keys = [f"C{number % 50}" for number in range(2000)]
    conn.table("o").load(pa.table({"k": keys, "id": list(range(2000)), "v": list(range(2000))}))


class Tree:
    """The spans of one statement; a name alone is what a span without children is compared with."""

    def __init__(self, spans: list[Any]) -> None:
        self.spans = spans
        self.ids = {span["id"]: span for span in spans}

    def below(self, parent: str | None) -> list[Any]:
        return [span for span in self.spans if span["parent"] == parent]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span["name"] == f"secateur.{name}"]

    def parents_of(self, name: str) -> set[str]:
        return {self.ids[span["parent"]]["name"].removeprefix("secateur.") for span in self.named(name)}


def plain(span: ReadableSpan) -> dict[str, Any]:
    assert span.context is not None
    assert span.attributes is not None
    return {
        "name": span.name,
        "id": span.context.span_id,
        "trace": span.context.trace_id,
        "parent": None if span.parent is None else span.parent.span_id,
        "attributes": dict(span.attributes),
        "is_error": not span.status.is_ok,
    }


def tree(exporter: InMemorySpanExporter, *, kernels: int) -> Tree:
    """All spans, once those of the members are there: they end when the answer is sent, the client's perhaps before."""

    def made() -> list[dict[str, Any]]:
        found = [plain(span) for span in exporter.get_finished_spans()]
        roots = [span["trace"] for span in found if span["parent"] is None]
        return [span for span in found if span["trace"] in roots]  # others are of what was done before

    eventually(
        lambda: (
            bool(made())
            and sum(span["name"] == "secateur.kernel" for span in made()) >= kernels
            and {span["parent"] for span in made()} <= {None, *(span["id"] for span in made())}
        ),
        "spans are missing",
    )
    return Tree(made())


def test_a_new_statement_is_planned_asked_of_one_member_and_answered_by_a_kernel(
    traced: secateur.Connection, spans: InMemorySpanExporter
) -> None:
    traced.execute(ONE + " AND v >= 0", ["C1"]).fetchall()
    found = tree(spans, kernels=1)
    (statement,) = found.below(None)
    assert statement["name"] == "secateur.statement"
    assert statement["attributes"] == {
        "db.system.name": "secateur",
        "db.query.text": ONE + " AND v >= 0",
        "secateur.execution": "local",
        "secateur.partitions_read": 1,
        "secateur.partitions_total": 32,
        "secateur.members_touched": 1,
        "secateur.members_total": 3,
        "secateur.plan_cached": False,
        "secateur.topology_version": statement["attributes"]["secateur.topology_version"],
    }
    plan, member = found.below(statement["id"])
    assert [plan["name"], member["name"]] == ["secateur.plan", "secateur.member"]
    assert member["attributes"]["secateur.operation"] == "execute"
    (kernel,) = found.named("kernel")
    assert kernel["parent"] == member["id"]
    assert (kernel["attributes"]["secateur.kernel"], kernel["attributes"]["secateur.rows"]) == ("arrow", 1)
    assert len({span["trace"] for span in found.spans}) == 1


def test_what_is_no_text_is_the_same_error_as_without_traces(
    traced: secateur.Connection, spans: InMemorySpanExporter
) -> None:
    cursor = traced.cursor()
    for call in (lambda: cursor.execute(None), lambda: cursor.executemany(7, [])):  # type: ignore[arg-type]
        with pytest.raises(InterfaceError, match="a statement is text, not a"):
            call()
    assert not spans.get_finished_spans()


@pytest.mark.smoke
def test_a_known_plan_is_not_planned_again(traced: secateur.Connection, spans: InMemorySpanExporter) -> None:
    traced.execute(ONE, ["C2"]).fetchall()
    tree(spans, kernels=1)
    spans.clear()
    traced.execute(ONE, ["C2"]).fetchall()
    assert [span["name"] for span in tree(spans, kernels=1).spans if span["name"] != "secateur.kernel"] == [
        "secateur.member",
        "secateur.statement",
    ]


def test_each_owner_of_a_few_keys_and_each_participant_of_a_job_has_a_span(
    traced: secateur.Connection, spans: InMemorySpanExporter
) -> None:
    few = traced.execute(FEW, ["C1", "C2", "C3", "C4"])
    assert few.stats is not None
    assert few.stats.execution == "scatter"
    found = tree(spans, kernels=few.stats.members_touched)
    (statement,) = found.below(None)
    assert len({span["attributes"]["secateur.member"] for span in found.named("member")}) == few.stats.members_touched
    assert {span["parent"] for span in found.named("member")} == {statement["id"]}
    assert found.parents_of("kernel") == {"member"}

    spans.clear()
    everything = traced.execute(ALL)
    assert everything.stats is not None
    assert everything.stats.execution == "distributed"
    found = tree(spans, kernels=3)
    (coordinator,) = (span for span in found.named("member") if span["attributes"]["secateur.operation"] == "execute")
    others = [span for span in found.named("member") if span["attributes"]["secateur.operation"] == "start_run"]
    assert [span["parent"] for span in others] == [coordinator["id"]] * 2
    assert {span["attributes"]["secateur.member"] for span in (coordinator, *others)} == {"m1", "m2", "m3"}
    assert {span["parent"] for span in found.named("kernel")} == {coordinator["id"], *(span["id"] for span in others)}


def test_rows_of_duckdb_that_come_in_parts_are_one_kernel_span(
    traced: secateur.Connection, spans: InMemorySpanExporter
) -> None:
    many = "SELECT list_sum([a.v, b.v]) AS s FROM o a, o b WHERE a.k = 'C1' AND b.k = 'C1'"
    rows = traced.execute(many).fetchall()
    found = tree(spans, kernels=1)
    (kernel,) = (span for span in found.named("kernel") if span["attributes"]["secateur.kernel"] == "duckdb")
    assert kernel["attributes"]["secateur.rows"] == len(rows) == 1600


def test_a_change_shows_the_copy_that_it_waits_for(traced: secateur.Connection, spans: InMemorySpanExporter) -> None:
    traced.execute("UPDATE o SET v = v WHERE k = 'C9'")
    found = tree(spans, kernels=1)
    (copied,) = (span for span in found.named("member") if span["attributes"]["secateur.operation"] == "write_copy")
    assert found.ids[copied["parent"]]["attributes"]["secateur.operation"] == "change_one_partition"


def test_an_error_marks_the_spans_that_it_ended(traced: secateur.Connection, spans: InMemorySpanExporter) -> None:
    with pytest.raises(DataError):
        traced.execute("SELECT CAST(k AS BIGINT) FROM o WHERE k = 'C7'")
    found = tree(spans, kernels=1)
    assert {span["name"] for span in found.spans if span["is_error"]} == {
        "secateur.statement",
        "secateur.member",
        "secateur.kernel",
    }


def test_a_statement_is_below_the_span_of_its_caller_and_not_sampled_with_it(
    traced: secateur.Connection, spans: InMemorySpanExporter
) -> None:
    with trace.get_tracer("application").start_as_current_span("request") as request:
        traced.execute(ONE, ["C1"]).fetchall()
    found = tree(spans, kernels=1)
    assert found.named("statement")[0]["parent"] == request.get_span_context().span_id
    spans.clear()
    unsampled = trace.NonRecordingSpan(trace.SpanContext(7, 7, is_remote=True, trace_flags=trace.TraceFlags(0)))
    with trace.use_span(unsampled):
        assert traced.execute(ONE, ["C1"]).fetchall()
        assert len(traced.execute(ALL).fetchall()) >= 50  # by the tasks that traced statements have left behind
        assert traced.table("o").get(k="C1", id=1)
        traced.submit(count_by_key()).result()
    assert spans.get_finished_spans() == ()


def test_reads_and_writes_by_key_are_spans_of_their_own(
    traced: secateur.Connection, spans: InMemorySpanExporter
) -> None:
    table = traced.table("o")
    calls = [
        ("get", None, lambda: table.get(k="C1", id=1), {"get_rows"}),
        ("get", 3, lambda: table.get_many([("C1", 1), ("C2", 2), ("C3", 3)]), {"get_rows"}),
        ("put", None, lambda: table.put({"k": "C1", "id": 9001, "v": 1}), {"write_rows", "write_copy"}),
        ("delete", None, lambda: table.delete(k="C1", id=9001), {"write_rows", "write_copy"}),
    ]
    for operation, count, call, asked in calls:
        spans.clear()
        call()
        found = tree(spans, kernels=0)
        (root,) = found.below(None)
        assert root["name"] == f"secateur.{operation}"
        known = {"db.system.name": "secateur", "db.operation.name": operation, "db.collection.name": "o"}
        assert root["attributes"] == known | ({} if count is None else {"db.operation.batch.size": count})
        assert {span["attributes"]["secateur.operation"] for span in found.named("member")} == asked
    spans.clear()
    with pytest.raises(DataError):
        table.get(k="C1", id="no number")
    (failed,) = (span for span in spans.get_finished_spans() if span.name == "secateur.get")
    assert plain(failed)["is_error"]


def test_a_load_is_a_span_with_what_its_threads_send(traced: secateur.Connection, spans: InMemorySpanExporter) -> None:
    keys = list(range(10_000, 10_400))
    traced.table("o").load(pa.table({"k": [f"L{key}" for key in keys], "id": keys, "v": keys}))
    found = tree(spans, kernels=0)
    (load,) = found.below(None)
    assert (load["name"], load["attributes"]["secateur.rows"]) == ("secateur.load", 400)
    staged = [span for span in found.named("member") if span["attributes"]["secateur.operation"] == "stage_rows"]
    assert {span["attributes"]["secateur.member"] for span in staged} == {"m1", "m2", "m3"}
    assert {span["parent"] for span in staged} == {load["id"]}
    assert "publish_load" in {span["attributes"]["secateur.operation"] for span in found.named("controller")}


def count_by_key() -> secateur.Pipeline:
    rows = secateur.Pipeline().read_table("o").key_by("k")
    return rows.aggregate(rows=count_rows()).write_to(collect())


def test_a_job_on_record_has_a_span_for_as_long_as_it_runs(
    traced: secateur.Connection, spans: InMemorySpanExporter
) -> None:
    job = traced.submit(count_by_key())
    assert job.result().num_rows
    eventually(lambda: any(span.name == "secateur.job" for span in spans.get_finished_spans()), "the job has no span")
    found = tree(spans, kernels=0)
    (submitted,) = found.named("submit")
    (ran,) = found.named("job")
    assert submitted["attributes"]["secateur.job"] == ran["attributes"]["secateur.job"] == job.job_id
    assert ran["trace"] == submitted["trace"]
    parts = [span for span in found.named("member") if span["attributes"].get("secateur.operation") == "start_run"]
    assert {span["parent"] for span in parts} == {ran["id"]}
    members = {span["attributes"]["secateur.member"] for span in (ran, *parts)}
    assert members == {"m1", "m2", "m3"}


def test_a_light_job_is_below_the_span_of_its_caller(traced: secateur.Connection, spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("application").start_as_current_span("request") as request:
        job = traced.submit(count_by_key(), light=True)
        job.result()
    found = tree(spans, kernels=0)
    (ran,) = found.named("job")
    assert ran["parent"] == request.get_span_context().span_id
    assert ran["attributes"]["secateur.job"] == job.job_id
    (asked,) = found.below(ran["id"])
    assert asked["attributes"]["secateur.operation"] == "submit_job"


@pytest.mark.ray
@pytest.mark.slow
def test_processes_of_ray_make_spans_of_the_same_trace(
    exporter: InMemorySpanExporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parents[1])]))
    with secateur.start(members=3, tracing="span_files:configure") as cluster, cluster.connect() as conn:
        fill(conn)
        exporter.clear()
        conn.execute(ALL).fetchall()
        (statement,) = (plain(span) for span in exporter.get_finished_spans())

        def written() -> list[dict[str, Any]]:
            lines = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
            made = [json.loads(line) for line in lines]
            number = f"0x{statement['trace']:032x}"
            return [span for span in made if span["context"]["trace_id"] == number]

        eventually(
            lambda: (
                sum(span["name"] == "secateur.kernel" for span in written()) >= 3
                and sum(span["name"] == "secateur.member" for span in written()) >= 3
            ),
            "spans of the members are missing",
        )
        spans = written()
    ids = {span["context"]["span_id"]: span for span in spans} | {f"0x{statement['id']:016x}": {"name": "statement"}}
    assert {span["parent_id"] for span in spans} <= ids.keys()
    roots = [span["name"] for span in spans if ids[span["parent_id"]]["name"] == "statement"]
    assert sorted(roots) == ["secateur.member", "secateur.plan"]
    members = {span["attributes"]["secateur.member"] for span in spans if span["name"] == "secateur.member"}
    assert members == {"m1", "m2", "m3"}
    kernels = {ids[span["parent_id"]]["attributes"]["secateur.member"] for span in spans if "kernel" in span["name"]}
    assert kernels == {"m1", "m2", "m3"}


def test_without_the_library_everything_works_and_servers_take_no_traces() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None  # as where it is not installed
import secateur
from secateur import tracing
with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
    assert conn.execute("SELECT 1").fetchall() == [(1,)]
print(tracing.is_installed(), tracing.is_configured())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("False False", "")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("configure", 'as "module:function"', id="no module"),
        pytest.param("a:b:c", 'as "module:function"', id="two colons"),
    ],
)
def test_the_function_that_configures_processes_is_named_by_its_module(name: str, says: str) -> None:
    with pytest.raises(ProgrammingError, match=says):
        secateur.start(members=1, runtime="embedded", tracing=name)

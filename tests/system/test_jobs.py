"""Jobs that a user submits: a DAG with functions, run where its partitions live."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect, function_sink, table_source
from secateur.dag import Param, Processor, lazy_total_parallelism_one
from secateur.engine.processors import filter_rows, map_batches
from secateur.errors import DagError, DeadlineError, JobCancelledError, JobFailedError, SerializationError

ROWS = pa.table(
    {
        "user_id": pa.array([i % 50 for i in range(2000)]),
        "event_id": pa.array(range(2000)),
        "value": pa.array([i % 7 for i in range(2000)]),
    }
)


@pytest.fixture(scope="module")
def events(cluster: Cluster) -> Iterator[str]:
    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE events (user_id BIGINT, event_id BIGINT, value BIGINT, PRIMARY KEY (user_id, event_id))"
            " PARTITION BY HASH (user_id) PARTITIONS 17"
        )
        conn.table("events").load(ROWS)
        yield "events"
        conn.execute("DROP TABLE events")


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", pc.multiply(batch["value"], 2))


def job_of(source: secateur.DAG, stage: object) -> secateur.DAG:
    source.new_vertex("stage", stage)  # type: ignore[arg-type]
    source.new_vertex("result", collect())
    source.edge(secateur.between("read", "stage"))
    source.edge(secateur.between("stage", "result").all_to_one().distributed())
    return source


def reading(**options: object) -> secateur.DAG:
    dag = secateur.DAG()
    dag.new_vertex("read", table_source("events", **options))  # type: ignore[arg-type]
    return dag


@pytest.mark.smoke
def test_a_job_runs_where_its_key_lives(cluster: Cluster, conn: secateur.Connection, events: str) -> None:
    table = conn.table(events)
    partition = table.partition_of({"user_id": 7})
    dag = job_of(reading(keys=[{"user_id": Param(0)}]), map_batches(doubled))
    before = {member.id: member.frames_received for member in cluster.members()}
    job = conn.submit(dag, secateur.JobConfig(required_partitions={events: frozenset({partition})}), [7])
    rows = job.result(timeout_s=30)
    after = {member.id: member.frames_received for member in cluster.members()}
    assert sorted(rows.column("value").to_pylist()) == sorted(2 * (i % 7) for i in range(2000) if i % 50 == 7)
    assert job.status is secateur.JobStatus.COMPLETED
    assert job.members_touched == [table.owner_of(partition)]
    assert {member for member in after if after[member] > before[member]} == {table.owner_of(partition)}
    assert {entry["vertex"] for entry in job.metrics()} == {"read", "stage", "result"}


@pytest.mark.parametrize("light", [False, True], ids=["on record", "light"])
@pytest.mark.parametrize("combiner", [False, True], ids=["map", "lazy combiner"])
def test_sources_that_say_what_they_need_are_enough(
    cluster: Cluster, conn: secateur.Connection, events: str, light: bool, combiner: bool
) -> None:
    """Without required partitions in the config, and however often it is asked: whoever owns the key coordinates, and
    nobody else hears of the job.
    """
    owner = conn.table(events).owner_of(conn.table(events).partition_of({"user_id": 7}))
    stage = map_batches(doubled)
    dag = job_of(
        reading(keys=[{"user_id": Param(0)}]),
        lazy_total_parallelism_one(stage, events, {"user_id": Param(0)}) if combiner else stage,
    ).freeze()
    before = {member.id: member.frames_received for member in cluster.members()}
    for _ in range(4):
        job = (
            conn.submit(dag, secateur.JobConfig(), [7], light=True)
            if light
            else conn.submit(dag, secateur.JobConfig(), [7])
        )
        assert job.result(timeout_s=30).num_rows == 40
        assert job.members_touched == [owner]
    assert [member.id for member in cluster.members() if member.frames_received > before[member.id]] == [owner]


def test_a_member_that_an_edge_names_takes_part(conn: secateur.Connection, events: str) -> None:
    owner = conn.table(events).owner_of(conn.table(events).partition_of({"user_id": 7}))
    other = next(member for member in ("m1", "m2", "m3") if member != owner)
    dag = reading(keys=[{"user_id": 7}])
    dag.new_vertex("there", map_batches(doubled))
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "there").distribute_to(other)).edge(
        secateur.between("there", "result").distributed()
    )
    for _ in range(4):
        job = conn.submit(dag, secateur.JobConfig())
        assert job.result(timeout_s=30).num_rows == 40
        assert job.members_touched == sorted([owner, other])


def test_what_a_source_needs_is_looked_up_anew_when_it_was_another_table(
    conn: secateur.Connection, table_name: str
) -> None:
    """The session may know an older table of that name."""
    dag = secateur.DAG()
    dag.new_vertex("read", table_source(table_name, keys=[{"k": 1}]))
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "result").distributed())
    conn.execute(f"CREATE TABLE {table_name} (a BIGINT, b BIGINT, PRIMARY KEY (a))")
    conn._session.known_table(table_name)
    with secateur.connect(conn.address) as other:
        other.execute(f"DROP TABLE {table_name}")
        other.execute(f"CREATE TABLE {table_name} (k BIGINT, PRIMARY KEY (k))")
        other.execute(f"INSERT INTO {table_name} VALUES (1), (2)")
    assert conn.submit(dag, secateur.JobConfig()).result(timeout_s=30).to_pylist() == [{"k": 1}]


def test_a_job_over_the_whole_table_runs_everywhere(conn: secateur.Connection, events: str) -> None:
    job = conn.submit(job_of(reading(), filter_rows(lambda batch: pc.equal(batch["value"], 3))), secateur.JobConfig())
    assert job.result(timeout_s=30).num_rows == sum(i % 7 == 3 for i in range(2000))
    assert job.members_touched == ["m1", "m2", "m3"]


class Nothing(Processor):
    """A source that never knew its columns."""


@pytest.mark.parametrize("light", [False, True], ids=["on record", "light"])
def test_results_without_rows(conn: secateur.Connection, events: str, light: bool) -> None:
    """An empty table, with its columns if anybody knew them, however the rows would have come."""

    def result(dag: secateur.DAG) -> pa.Table:
        job = conn.submit(dag, secateur.JobConfig(), light=True) if light else conn.submit(dag, secateur.JobConfig())
        return job.result(timeout_s=30)

    def none_of(source: object, *, partitioned: bool = True) -> secateur.DAG:
        dag = secateur.DAG()
        dag.new_vertex("read", source)  # type: ignore[arg-type]
        dag.new_vertex("stage", filter_rows(lambda batch: pc.equal(batch["value"], 99)))
        dag.new_vertex("result", collect())
        edge = secateur.between("read", "stage")
        dag.edge(edge.partitioned("user_id").distributed() if partitioned else edge).edge(
            secateur.between("stage", "result").distributed()
        )
        return dag

    columns = ["user_id", "event_id", "value"]
    assert (result(none_of(table_source(events))).num_rows, result(none_of(table_source(events))).schema.names) == (
        0,
        columns,
    )
    assert result(none_of(table_source(events, keys=[{"user_id": 99}]))).schema.names == columns
    assert result(none_of(table_source(events, keys=[]))).schema.names == columns
    assert result(none_of(Nothing)).shape == (0, 0)


def test_the_result_of_a_job_that_collects_nothing_is_its_end(conn: secateur.Connection, events: str) -> None:
    dag = reading()
    dag.new_vertex("sink", function_sink(lambda batch: None))
    dag.edge(secateur.between("read", "sink"))
    job = conn.submit(dag, secateur.JobConfig())
    assert (job.result(timeout_s=30).shape, job.results(), job.status) == ((0, 0), {}, secateur.JobStatus.COMPLETED)


def test_batches_of_different_columns_are_no_result(conn: secateur.Connection, events: str) -> None:
    def renamed(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.rename_columns([f"{name}_{batch['user_id'][0]}" for name in batch.schema.names])

    with pytest.raises(
        DagError,
        match=(
            r"batches of different columns arrived: .*; select the same ones upstream \(vertex 'result' on member m\d\)"
        ),
    ):
        conn.submit(job_of(reading(), map_batches(renamed)), secateur.JobConfig()).result(timeout_s=30)


def test_an_exception_of_the_user_names_vertex_and_member(conn: secateur.Connection, events: str) -> None:
    def broken(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("no such model")

    job = conn.submit(job_of(reading(), map_batches(broken)), secateur.JobConfig())
    with pytest.raises(
        JobFailedError,
        match=r"vertex 'stage' on member m\d failed in process\(ordinal 0, \d+ rows\): ValueError: no such model",
    ) as caught:
        job.result(timeout_s=30)
    assert "in broken" in caught.value.details["traceback"]
    assert 'raise ValueError("no such model")' in caught.value.details["traceback"]
    (note,) = caught.value.__notes__
    assert note.startswith("where it was raised, on member m")
    assert note.endswith("ValueError: no such model")
    frames = [line for line in note.splitlines() if line.lstrip().startswith("File ")]
    assert [frame.rpartition(", in ")[2] for frame in frames] == ["broken"]  # none of ours
    assert job.status is secateur.JobStatus.FAILED


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
def test_what_would_end_a_process_ends_the_job_alone(
    conn: secateur.Connection, events: str, raised: BaseException
) -> None:
    def leaves(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise raised

    job = conn.submit(job_of(reading(), map_batches(leaves)), secateur.JobConfig())
    with pytest.raises(JobFailedError, match=f"failed in process.*{type(raised).__name__}"):
        job.result(timeout_s=30)
    assert conn.execute("SELECT 1").fetchall() == [(1,)]


class Endless(Processor):
    def complete(self) -> bool:
        return False


def test_an_endless_job_can_be_waited_for_and_cancelled(conn: secateur.Connection) -> None:
    dag = secateur.DAG()
    dag.new_vertex("read", Endless)
    job = conn.submit(job_of(dag, map_batches(doubled)), secateur.JobConfig())
    with pytest.raises(DeadlineError, match="has not ended within"):
        job.result(timeout_s=0.05)
    assert job.status is secateur.JobStatus.RUNNING
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.result(timeout_s=30)
    assert job.status is secateur.JobStatus.CANCELLED
    assert conn.execute("SELECT 1").fetchall() == [(1,)]


def test_a_deadline_ends_a_job(conn: secateur.Connection) -> None:
    dag = secateur.DAG()
    dag.new_vertex("read", Endless)
    job = conn.submit(job_of(dag, map_batches(doubled)), secateur.JobConfig(timeout_s=0.1))
    with pytest.raises(DeadlineError, match="longer than its deadline"):
        job.result(timeout_s=30)


def test_what_cannot_travel_is_refused_at_submit(conn: secateur.Connection) -> None:
    lock = threading.Lock()
    dag = job_of(reading(), map_batches(lambda batch: (lock, batch)[1]))
    with pytest.raises(SerializationError, match="vertex 'stage'"):
        conn.submit(dag, secateur.JobConfig())


def test_an_unfinished_dag_is_refused_at_submit(conn: secateur.Connection) -> None:
    dag = secateur.DAG()
    with pytest.raises(DagError):
        conn.submit(dag, secateur.JobConfig())


def test_code_is_refused_where_it_is_not_allowed() -> None:
    with secateur.start(members=1, runtime="embedded", allow_code=False) as cluster, cluster.connect() as conn:
        dag = secateur.DAG()
        dag.new_vertex("read", Endless)
        with pytest.raises(SerializationError, match="allow_code=True"):
            conn.submit(job_of(dag, map_batches(doubled)), secateur.JobConfig())
        light = conn.submit(dag, secateur.JobConfig(), light=True)
        with pytest.raises(SerializationError, match="allow_code=True"):
            light.result(timeout_s=30)

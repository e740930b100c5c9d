"""Where jobs run, as their users see it: before they run, while they do, and afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import secateur
from secateur.client import ResolvedPlan
from secateur.cluster import Cluster
from secateur.connectors import collect, generator_source, table_source
from secateur.dag import Processor, ProcessorContext
from secateur.engine.processors import map_batches
from secateur.errors import DagError, UnknownTableError

ROWS = pa.table({"user_id": [i % 50 for i in range(1000)], "event_id": list(range(1000))})


@pytest.fixture(scope="module")
def events(cluster: Cluster) -> Iterator[str]:
    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE planned (user_id BIGINT, event_id BIGINT, PRIMARY KEY (user_id, event_id)) PARTITION BY HASH"
            " (user_id) PARTITIONS 17"
        )
        conn.table("planned").load(ROWS)
        yield "planned"
        conn.execute("DROP TABLE planned")


def counting(source: object) -> secateur.DAG:
    """read -> stage (by key, over the participants) -> collect."""
    dag = secateur.DAG()
    dag.new_vertex("read", source, 2)  # type: ignore[arg-type]
    dag.new_vertex("stage", map_batches(lambda batch: batch))
    dag.new_vertex("collect", collect())
    dag.edge(secateur.between("read", "stage").partitioned("user_id").distributed())
    dag.edge(secateur.between("stage", "collect").all_to_one().distributed())
    return dag


def test_a_plan_without_a_run(cluster: Cluster, conn: secateur.Connection, events: str) -> None:
    table = conn.table(events)
    partition = table.partition_of({"user_id": 7})
    owner = table.owner_of(partition)
    before = {member.id: member.frames_received for member in cluster.members()}
    plan = conn.plan(counting(table_source(events, keys=[{"user_id": 7}])), secateur.JobConfig())
    after = {member.id: member.frames_received for member in cluster.members()}
    assert (plan.coordinator, plan.participants, plan.start_messages) == (owner, (owner,), 0)
    assert plan.skipped == tuple(member for member in ("m1", "m2", "m3") if member != owner)
    assert plan.vertex("read").placed[0].partitions == (partition,)
    assert plan.vertex("read").placed[0].processors == 1  # of two that were asked for: there is one partition
    assert {member for member in after if after[member] > before[member]} == {owner}
    assert conn.plan(counting(table_source(events, keys=[{"user_id": 7}])), secateur.JobConfig()) == plan


def test_a_plan_over_everything(conn: secateur.Connection, events: str) -> None:
    plan = conn.plan(counting(table_source(events)), secateur.JobConfig())
    table = conn.table(events)
    assert (plan.participants, plan.skipped, plan.start_messages) == (("m1", "m2", "m3"), (), 2)
    for placed in plan.vertex("read").placed:
        assert placed.partitions == tuple(
            partition for partition in range(17) if table.owner_of(partition) == placed.member
        )
    assert sum(target.routing_partitions or 0 for target in plan.edges[0].targets) == 271
    assert plan.edges[1].targets[0].routing_partitions is None


def test_required_partitions_and_no_pruning(conn: secateur.Connection, events: str) -> None:
    partition = conn.table(events).partition_of({"user_id": 7})
    source = table_source(events, partitions=[partition])
    assert (
        len(
            conn.plan(
                counting(source), secateur.JobConfig(required_partitions={events: frozenset({partition})})
            ).participants
        )
        == 1
    )
    assert len(conn.plan(counting(source), secateur.JobConfig(member_pruning=False)).participants) == 3


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        pytest.param(lambda: table_source("no_such_table"), UnknownTableError, "no_such_table", id="no-such-table"),
        pytest.param(
            lambda: generator_source(lambda context: iter(())),
            DagError,
            "does not say which partitions",
            id="an-unrestricted-source",
        ),
    ],
)
def test_a_job_that_cannot_start_has_no_plan(
    conn: secateur.Connection, events: str, source: object, error: type[Exception], words: str
) -> None:
    config = secateur.JobConfig(required_partitions={events: frozenset({1})})
    with pytest.raises(error, match=words):
        conn.plan(counting(source()), config)  # type: ignore[operator]


def test_the_plan_of_a_job_has_what_it_did(conn: secateur.Connection, events: str) -> None:
    job = conn.submit(counting(table_source(events)), secateur.JobConfig())
    assert job.result(timeout_s=30).num_rows == 1000
    plan = job.plan()
    assert isinstance(plan, ResolvedPlan)
    assert list(plan.participants) == job.members_touched
    assert [edge.rows for edge in plan.edges] == [1000, 1000]
    assert sum(placed.rows_out or 0 for placed in plan.vertex("read").placed) == 1000
    assert "1,000 rows" in plan.to_mermaid()
    assert conn.job(job.job_id).plan() == plan


def test_the_plan_of_a_job_that_runs(conn: secateur.Connection) -> None:
    def ticks(context: ProcessorContext) -> Iterator[dict[str, int]]:
        while True:
            yield {"user_id": context.global_index}

    job = conn.submit(counting(generator_source(ticks)), secateur.JobConfig())
    try:
        while (plan := job.plan()) is None or not plan.edges[0].rows:
            assert not job.status.is_final
        assert plan.participants == ("m1", "m2", "m3")
    finally:
        job.cancel()
    ended = job.plan()
    assert ended is not None
    assert ended.participants == plan.participants


def test_a_job_that_never_started_has_no_plan(conn: secateur.Connection) -> None:
    dag = secateur.DAG()
    dag.new_vertex("nothing", Processor)
    dag.new_vertex("to nobody", collect())
    dag.edge(secateur.between("nothing", "to nobody"))  # local, but the sink runs at one member
    job = conn.submit(dag, secateur.JobConfig())
    with pytest.raises(DagError, match="make the edge distributed"):
        job.result(timeout_s=30)
    assert job.plan() is None

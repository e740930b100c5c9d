"""What befalls jobs: a source that never ends, a dead process, a partition that is not where it was; and that nothing
is left behind.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect, table_source
from secateur.dag import Processor
from secateur.engine.processors import map_batches
from secateur.errors import DeadlineError, JobCancelledError, JobFailedError, TopologyChangedError

CANCEL_S = 0.2


class Endless(Processor):
    """Never completes; idle."""

    def complete(self) -> bool:
        return False


class Flood(Processor):
    """Never completes, and always has one batch more."""

    def complete(self) -> bool:
        self.outbox.offer(pa.RecordBatch.from_pydict({"n": list(range(1000))}))
        return False


class BlockingFlood(Flood):
    """The same in a thread of its own, where offering waits for room."""

    cooperative = False


class Deaf(Processor):
    """A consumer that takes nothing."""

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return False


class Broken(Processor):
    def complete(self) -> bool:
        raise ValueError("no such model")


class OneRow(Processor):
    def complete(self) -> bool:
        return self.outbox.offer(pa.RecordBatch.from_pydict({"n": [1]}))


class WaitsForFile(Processor):
    """Offers one row once a file exists."""

    def __init__(self, path: str) -> None:
        self._path = path

    def complete(self) -> bool:
        return Path(self._path).exists() and self.outbox.offer(
            pa.RecordBatch.from_pydict({"member": [self.context.member]})
        )


class HoldsUntilFile(WaitsForFile):
    """Passes on what it gets once a file exists."""

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return Path(self._path).exists() and self.outbox.offer(batch)

    def complete(self) -> bool:
        return True


def dag_of(source: Callable[[], Processor], sink: Callable[[], Processor] | None = None) -> secateur.DAG:
    dag = secateur.DAG()
    dag.new_vertex("read", source)
    dag.new_vertex("result", sink or collect())
    dag.edge(secateur.between("read", "result").all_to_one().distributed())
    return dag


def running(job: secateur.Job) -> None:
    eventually(lambda: job.status is secateur.JobStatus.RUNNING, f"{job.info}")


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster:
        yield cluster


def threads_of_jobs() -> list[str]:
    """Without the pools of the kernels, which grow up to their bound."""
    return [thread.name for thread in threading.enumerate() if "kernel" not in thread.name]


def create(conn: secateur.Connection, name: str) -> None:
    conn.execute(f"CREATE TABLE {name} (id BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 13 BACKUPS 1")
    conn.table(name).load(pa.table({"id": pa.array(range(100))}))


@pytest.mark.parametrize("light", [False, True], ids=["on record", "light"])
@pytest.mark.parametrize(
    ("source", "sink"),
    [
        pytest.param(Endless, None, id="idle source"),
        pytest.param(Flood, Deaf, id="source without end and a consumer that stopped reading"),
        pytest.param(BlockingFlood, Deaf, id="the same in threads"),
    ],
)
def test_cancel_takes_200_ms_at_most(
    conn: secateur.Connection, source: type[Processor], sink: type[Processor] | None, light: bool
) -> None:
    taken_s = []
    for _ in range(3):  # the machine may be busy with something else
        job = (
            conn.submit(dag_of(source, sink), secateur.JobConfig(), light=True)
            if light
            else conn.submit(dag_of(source, sink), secateur.JobConfig())
        )
        with pytest.raises(DeadlineError, match="it goes on"):
            job.result(timeout_s=0.1)
        start_s = time.perf_counter()
        job.cancel()
        taken_s.append(time.perf_counter() - start_s)
        with pytest.raises(JobCancelledError):
            job.result()
        assert job.status is secateur.JobStatus.CANCELLED
    assert min(taken_s) < CANCEL_S


def test_a_deadline_ends_a_job_whose_consumer_stopped_reading(conn: secateur.Connection) -> None:
    job = conn.submit(dag_of(Flood, Deaf), secateur.JobConfig(timeout_s=0.2))
    with pytest.raises(DeadlineError, match="longer than its deadline"):
        job.result(timeout_s=30)


def test_a_pruned_member_that_dies_does_not_disturb_the_job(mortal: Cluster, tmp_path: Path) -> None:
    signal = str(tmp_path / "go")
    with mortal.connect() as conn:
        create(conn, "t")
        table = conn.table("t")
        partition = table.partition_of({"id": 5})
        owner = table.owner_of(partition)
        dag = secateur.DAG()
        dag.new_vertex("read", table_source("t", keys=[{"id": 5}]))
        dag.new_vertex("stage", lambda: HoldsUntilFile(signal))
        dag.new_vertex("result", collect())
        dag.edge(secateur.between("read", "stage"))
        dag.edge(secateur.between("stage", "result").all_to_one().distributed())
        job = conn.submit(dag, secateur.JobConfig(required_partitions={"t": frozenset({partition})}))
        running(job)
        mortal.kill_member(next(member for member in ("m1", "m2", "m3") if member != owner))
        Path(signal).touch()
        assert job.result(timeout_s=30).column("id").to_pylist() == [5]
        assert (job.info.attempt, job.members_touched) == (1, [owner])


@pytest.mark.smoke
def test_a_partition_that_moves_under_a_job_begins_it_again(
    conn: secateur.Connection, table_name: str, tmp_path: Path
) -> None:
    create(conn, table_name)
    moved = str(tmp_path / "moved")

    def moved_once(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not Path(moved).exists():
            Path(moved).touch()
            raise TopologyChangedError("partition 3 has moved")
        return batch

    dag = secateur.DAG()
    dag.new_vertex("read", table_source(table_name))
    dag.new_vertex("stage", map_batches(moved_once))
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "stage"))
    dag.edge(secateur.between("stage", "result").all_to_one().distributed())
    job = conn.submit(dag, secateur.JobConfig())
    assert sorted(job.result(timeout_s=30).column("id").to_pylist()) == list(range(100))
    assert job.info.attempt == 2


@pytest.mark.parametrize("runtime", ["embedded", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def test_a_scan_whose_owner_is_killed_reads_the_copies(runtime: str, tmp_path: Path) -> None:
    """Partitions move to their backups in the middle of a scan; the job begins again there, and has each row once."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    signal = tmp_path / "go"
    try:
        with secateur.start(members=3, runtime=runtime, replace_members=False) as cluster, cluster.connect() as conn:  # type: ignore[arg-type]
            create(conn, "t")
            dag = secateur.DAG()
            dag.new_vertex("read", table_source("t"))
            dag.new_vertex("stage", lambda: HoldsUntilFile(str(signal)))
            dag.new_vertex("result", collect())
            dag.edge(secateur.between("read", "stage")).edge(secateur.between("stage", "result").distributed())
            job = conn.submit(dag, secateur.JobConfig())
            running(job)
            coordinator = str(job.info.coordinator)
            victim = next(member for member in ("m1", "m2", "m3") if member != coordinator)
            cluster.kill_member(victim)
            eventually(lambda: job.info.attempt > 1, "it has not begun again")
            signal.touch()
            assert sorted(job.result(timeout_s=60)["id"].to_pylist()) == list(range(100))
            assert job.members_touched == sorted({"m1", "m2", "m3"} - {victim})
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.mark.parametrize("runtime", ["embedded", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def test_a_process_killed_in_the_middle_of_a_job(runtime: str, tmp_path: Path) -> None:
    """The job begins again on the members that are left, and its rows are those of one whole run."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    signal = tmp_path / "go"
    try:
        with secateur.start(members=3, runtime=runtime, replace_members=False) as cluster, cluster.connect() as conn:  # type: ignore[arg-type]
            job = conn.submit(dag_of(lambda: WaitsForFile(str(signal))), secateur.JobConfig(name="survivor"))
            fragile = conn.submit(dag_of(lambda: WaitsForFile(str(signal))), secateur.JobConfig(on_member_lost="fail"))
            running(job)
            running(fragile)
            victim = str(job.info.coordinator)
            cluster.kill_member(victim)
            with pytest.raises(secateur.OperationalError, match=victim):
                fragile.result(timeout_s=30)
            eventually(lambda: job.info.attempt > 1, "it has not begun again")
            signal.touch()
            rows = conn.job("survivor").result(timeout_s=60)
            assert sorted(rows.column("member").to_pylist()) == sorted({"m1", "m2", "m3"} - {victim})
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_nothing_is_left_of_jobs_whatever_became_of_them(mortal: Cluster) -> None:
    runtime = mortal._runtime
    members, loop = list(runtime._members.values()), runtime._loop  # type: ignore[attr-defined]

    async def tasks() -> int:
        return len(asyncio.all_tasks())

    def ends() -> Iterator[
        tuple[type[Processor], type[Processor] | None, secateur.JobConfig, type[secateur.Error] | None]
    ]:
        yield OneRow, None, secateur.JobConfig(), None
        yield Broken, None, secateur.JobConfig(), JobFailedError
        yield BlockingFlood, Deaf, secateur.JobConfig(timeout_s=0.05), DeadlineError
        yield Flood, Deaf, secateur.JobConfig(), JobCancelledError

    def run_all(conn: secateur.Connection) -> None:
        for source, sink, config, expected in ends():
            for job in (
                conn.submit(dag_of(source, sink), config),
                conn.submit(dag_of(source, sink), config, light=True),
            ):
                if expected is JobCancelledError:
                    job.cancel()
                if expected is None:
                    assert job.result(timeout_s=30).num_rows == 3
                else:
                    with pytest.raises(expected):
                        job.result(timeout_s=30)

    with mortal.connect() as conn:
        run_all(conn)  # opens connections and pools
        eventually(lambda: loop.run(tasks()) <= loop.run(tasks()), "")
        eventually(lambda: not any(member._engine.runtime._unclosed for member in members), "executions are left")
        threads, before = len(threads_of_jobs()), loop.run(tasks())
        for _ in range(5):
            run_all(conn)
        eventually(
            lambda: (
                not any(
                    member._engine.runtime.running_executions
                    or member._engine.runtime.jobs
                    or member._engine.runtime._unclosed
                    for member in members
                )
            ),
            "executions are left",
        )
        eventually(
            lambda: (
                not any(member._engine.attempts._running or member._engine.attempts._background for member in members)
            ),
            "attempts are left",
        )
        eventually(lambda: not runtime._controller._jobs._background, "the controller still follows jobs")  # type: ignore[attr-defined]
        eventually(lambda: loop.run(tasks()) <= before, "tasks are left")
        eventually(lambda: len(threads_of_jobs()) <= threads, "threads are left")
        assert all(job.status.is_final for job in conn.jobs())


@pytest.mark.parametrize("light", [False, True], ids=["on record", "light"])
def test_metrics_are_read_while_the_job_runs(conn: secateur.Connection, light: bool) -> None:
    job = (
        conn.submit(dag_of(Flood, Deaf), secateur.JobConfig(), light=True)
        if light
        else conn.submit(dag_of(Flood, Deaf), secateur.JobConfig())
    )

    def everybody_is_stuck() -> bool:
        reads = [entry for entry in job.metrics() if entry["vertex"] == "read"]
        return {entry["member"] for entry in reads if entry["rows_out"]} == {"m1", "m2", "m3"}

    eventually(everybody_is_stuck, "not every member is seen")
    (sink,) = [entry for entry in job.metrics() if entry["vertex"] == "result"]
    assert (sink["batches_in"], sink["rows_in"], sink["tasklets"][0]["rows_in"], sink["inputs"][0]["edge"]) == (
        1,
        1000,
        1000,
        "'read'[0] -> 'result'[0]",
    )
    job.cancel()
    if not light:
        assert {entry["member"] for entry in job.metrics()} == {"m1", "m2", "m3"}

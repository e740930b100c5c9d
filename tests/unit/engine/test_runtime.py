"""Jobs over several members: routing, pruning by what is sent, failure, cancellation, flow control. All in memory, on one loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors.batches import batch_source
from secateur.connectors.collect import collect
from secateur.connectors.table import table_source
from secateur.dag import DAG, Edge, EdgeConfig, Emitter, JobConfig, OnMembers, Param, Placement, Processor, ProcessorMetaSupplier, ProcessorSupplier, between
from secateur.dag.supplier import FactorySupplier
from secateur.engine.processors import filter_rows, map_batches
from secateur.engine.services import EngineLimits
from secateur.engine.testing import LocalCluster, until
from secateur.errors import (
    DagError,
    DataError,
    DeadlineError,
    InterfaceError,
    JobCancelledError,
    JobFailedError,
    LimitExceededError,
    MemberLostError,
    ProtocolError,
    SerializationError,
    TopologyChangedError,
    UnknownTableError,
)
from secateur.partitioning.table import TableDef

RunTest = Callable[[Any], Any]

PATIENT = EngineLimits(slice_s=5.0)
"""No turn of the loop is cut short, so that the number of messages does not depend on the speed of the machine."""


class Numbers(Processor):
    """Offers 0 to count - 1, ``rows`` in a batch, with the member that made them."""

    def __init__(self, count: int, rows: int = 1) -> None:
        self._count = count
        self._rows = rows
        self._emitter: Emitter | None = None

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for start in range(0, self._count, self._rows):
            xs = range(start, min(start + self._rows, self._count))
            yield pa.record_batch({"x": pa.array(xs, pa.int64()), "made": [f"{self.context.member}.{self.context.local_index}"] * len(xs)})

    def complete(self) -> bool:
        self._emitter = self._emitter or Emitter(self.outbox, self._batches())
        return self._emitter.emit()


class Stamp(Processor):
    """Adds the member and processor that saw the rows."""

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        seen = f"{self.context.member}.{self.context.local_index}"
        return self.outbox.offer(batch.append_column("seen", pa.array([seen] * batch.num_rows)))


class Place(ProcessorMetaSupplier):
    """Runs processors on some members."""

    def __init__(self, make: Callable[[], Processor], *members: str) -> None:
        self._make = make
        self._members = members

    def placement(self) -> Placement:
        return OnMembers(self._members, parallelism_max=8)

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: FactorySupplier(self._make) for member in members}


class Gated(Processor):
    """A sink in a thread that takes nothing until the gate opens."""

    cooperative = False
    gate = threading.Event()
    waiting = threading.Event()

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self.waiting.set()
        return self.gate.wait(10)


class Forever(Processor):
    """A source that never ends."""

    def complete(self) -> bool:
        self.outbox.offer(pa.record_batch({"x": [1]}))
        return False


def pipeline(source: Any, edge: Callable[[Edge], Edge], middle: Any = Stamp, *, parallelism: int = 2) -> DAG:
    dag = DAG()
    dag.new_vertex("source", source, parallelism)
    dag.new_vertex("middle", middle, parallelism)
    dag.new_vertex("out", collect())
    return dag.edge(edge(between("source", "middle"))).edge(between("middle", "out").all_to_one().distributed())


def deliveries(run: RunTest, edge: Callable[[Edge], Edge], *, count: int = 12, sources: tuple[str, ...] = ("m1", "m2")) -> list[dict[str, Any]]:
    async def main() -> list[dict[str, Any]]:
        async with LocalCluster(3) as cluster:
            result = await cluster.run(pipeline(Place(lambda: Numbers(count), *sources), edge))
            assert result.members_touched == tuple(sorted({"m1", *sources}))
            return result.table().to_pylist()

    return run(main())


def test_local_unicast_stays_on_the_member_and_deals_in_turn(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e)
    assert all(row["made"].split(".")[0] == row["seen"].split(".")[0] for row in rows)
    assert Counter(row["seen"] for row in rows) == {"m1.0": 12, "m1.1": 12, "m2.0": 12, "m2.1": 12}


def test_isolated_pairs_processors(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.isolated())
    assert all(row["made"] == row["seen"] for row in rows)
    assert [row["x"] for row in rows if row["seen"] == "m2.1"] == list(range(12))


def test_distributed_unicast_delivers_each_batch_once(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.distributed())
    assert Counter(row["x"] for row in rows) == dict.fromkeys(range(12), 4)
    assert {row["seen"] for row in rows} == {"m1.0", "m1.1", "m2.0", "m2.1"}


def test_distributed_partitioned_brings_equal_keys_together(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.partitioned("x").distributed(), count=40)
    where: dict[int, set[str]] = {}
    for row in rows:
        where.setdefault(row["x"], set()).add(row["seen"])
    assert Counter(row["x"] for row in rows) == dict.fromkeys(range(40), 4)
    assert all(len(seen) == 1 for seen in where.values())
    assert {seen for places in where.values() for seen in places} == {"m1.0", "m1.1", "m2.0", "m2.1"}


def test_local_partitioned_brings_equal_keys_of_a_member_together(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.partitioned("x"), count=40)
    assert Counter((row["x"], row["seen"].split(".")[0]) for row in rows) == {(x, m): 2 for x in range(40) for m in ("m1", "m2")}
    assert len({(row["x"], row["seen"]) for row in rows}) == 80


def test_distributed_broadcast_reaches_every_processor(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.broadcast().distributed())
    assert Counter(row["seen"] for row in rows) == dict.fromkeys(["m1.0", "m1.1", "m2.0", "m2.1"], 48)


def test_distributed_fan_out_reaches_one_processor_of_each_member(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.fan_out().distributed())
    assert Counter((row["made"], row["x"], row["seen"].split(".")[0]) for row in rows) == {
        (f"{m}.{i}", x, to): 1 for m in ("m1", "m2") for i in range(2) for x in range(12) for to in ("m1", "m2")
    }


def test_all_to_one_meets_in_one_processor(run: RunTest) -> None:
    assert len({row["seen"] for row in deliveries(run, lambda e: e.all_to_one("k").distributed())}) == 1


def test_distribute_to_goes_there_and_nowhere_else(run: RunTest) -> None:
    rows = deliveries(run, lambda e: e.distribute_to("m2"))
    assert {row["seen"] for row in rows} == {"m2.0", "m2.1"}
    assert len(rows) == 48


def test_a_batch_without_rows_travels(run: RunTest) -> None:
    empty = pa.schema([("u", pa.uuid()), ("x", pa.int64())]).empty_table()
    dag = DAG()
    dag.new_vertex("source", batch_source(empty))
    dag.new_vertex("there", Place(lambda: map_batches(lambda b: b).get(1)[0], "m2"))
    dag.new_vertex("out", collect())
    dag.edge(between("source", "there").distributed()).edge(between("there", "out").distributed())

    async def main() -> pa.Schema:
        async with LocalCluster(2) as cluster:
            return (await cluster.run(dag)).table().schema

    assert run(main()) == empty.schema


def read_by_key(*, window: int = 1 << 20) -> DAG:
    dag = DAG()
    dag.new_vertex("scan", table_source("orders", keys=[{"customer": "C7"}]))
    dag.new_vertex("big", filter_rows(lambda b: pa.compute.greater(b.column("amount"), 36.0)))
    dag.new_vertex("out", collect())
    config = EdgeConfig(window_bytes_max=window)
    return dag.edge(between("scan", "big")).edge(between("big", "out").all_to_one().distributed().with_config(config))


@pytest.mark.parametrize("members", [2, 5, 16])
def test_a_pruned_job_sends_the_same_messages_whatever_the_size_of_the_cluster(run: RunTest, orders: TableDef, order_rows: pa.Table, members: int) -> None:
    async def main() -> None:
        async with LocalCluster(members, limits=PATIENT) as cluster:
            cluster.create_table(orders, order_rows)
            owner = cluster.topology.ownership(orders.scheme.affinity_group()).primary(orders.scheme.partition_of({"customer": "C7"}))
            other = next(member for member in cluster.runtimes if member != owner)
            result = await cluster.run(read_by_key(), coordinator=other)
            assert result.table().column("amount").to_pylist() == [37.0, 38.0, 39.0]
            assert result.members_touched == tuple(sorted([owner, other]))
            assert [(m.sender, m.receiver, m.op) for m in cluster.network.sent] == [
                (other, owner, "job_start"),
                (owner, other, "exchange"),
                (owner, other, "job_done"),
            ]

    run(main())


def test_a_job_that_one_member_can_run_sends_nothing(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            owner = cluster.topology.ownership(orders.scheme.affinity_group()).primary(orders.scheme.partition_of({"customer": "C7"}))
            result = await cluster.run(read_by_key(), coordinator=owner)
            assert (result.table().num_rows, result.members_touched, cluster.network.sent) == (3, (owner,), [])

    run(main())


def test_full_deployment_reaches_everybody(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    async def main() -> None:
        async with LocalCluster(4) as cluster:
            cluster.create_table(orders, order_rows)
            dag = DAG()
            dag.new_vertex("scan", table_source("orders", keys=[{"customer": "C7"}]))
            dag.new_vertex("pass", map_batches(lambda b: b))
            dag.new_vertex("out", collect())
            dag.edge(between("scan", "pass").distributed()).edge(between("pass", "out").all_to_one().distributed())
            result = await cluster.run(dag, JobConfig(member_pruning=False))
            assert result.table().num_rows == 5
            assert result.members_touched == ("m1", "m2", "m3", "m4")
            assert cluster.received(["job_start"]) == {"m1": 0, "m2": 1, "m3": 1, "m4": 1}

    run(main())


def test_a_dag_runs_many_times_and_at_once(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    dag = DAG()
    dag.new_vertex("scan", table_source("orders", keys=[{"customer": Param("c")}]))
    dag.new_vertex("out", collect())
    dag.edge(between("scan", "out").all_to_one().distributed())

    async def main() -> list[set[str]]:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            results = await asyncio.gather(*(cluster.run(dag, params={"c": f"C{i}"}, coordinator=f"m{1 + i % 3}") for i in range(200)))
            assert all(runtime.running_executions == 0 and not runtime.jobs for runtime in cluster.runtimes.values())
            return [set(result.table().column("customer").to_pylist()) for result in results]

    assert run(main()) == [{f"C{i}"} for i in range(200)]


def test_data_that_arrive_before_the_start_are_kept_and_delivered(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.network.hold(lambda message: message.op == "job_start" and message.receiver == "m3")
            dag = pipeline(Place(lambda: Numbers(50), "m2"), lambda e: e.distribute_to("m3"))
            job = await cluster.runtimes["m1"].start_light_job(dag, JobConfig(), (), cluster.topology)
            await until(lambda: bool(any(message.receiver == "m3" and message.op == "exchange" and message.header["last"] for message in cluster.network.sent)))
            await asyncio.sleep(0)
            assert not job.done
            cluster.network.release()
            assert Counter((await job.result()).table().column("x").to_pylist()) == dict.fromkeys(range(50), 2)

    run(main())


def test_early_data_are_bounded(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3, limits=EngineLimits(early_bytes_max=100, cancel_wait_s=0.05)) as cluster:
            cluster.network.hold(lambda message: message.op == "job_start" and message.receiver == "m3")
            await cluster.run(pipeline(Place(lambda: Numbers(50), "m2"), lambda e: e.distribute_to("m3")), JobConfig(timeout_s=10))

    with pytest.raises(LimitExceededError, match="member m3 holds more than 100 bytes of rows for jobs that have not started"):
        run(main())


def test_a_slow_consumer_on_another_member_bounds_what_is_sent(run: RunTest) -> None:
    window = 4096
    Gated.gate.clear()
    Gated.waiting.clear()
    dag = DAG()
    dag.new_vertex("source", Place(lambda: Numbers(5_000, rows=10), "m1"))
    dag.new_vertex("slow", Place(Gated, "m2"))
    dag.edge(between("source", "slow").distribute_to("m2").with_config(EdgeConfig(queue_batches_max=2, window_bytes_max=window)))

    async def main() -> None:
        async with LocalCluster(2) as cluster:
            job = await cluster.runtimes["m1"].start_light_job(dag, JobConfig(), (), cluster.topology)
            await until(lambda: bool(Gated.waiting.is_set()))
            for _ in range(300):
                await asyncio.sleep(0)
            sent = sum(size for m in cluster.network.sent if m.op == "exchange" for _, _, size in m.header.get("pieces", ()))
            assert 0 < sent <= window
            Gated.gate.set()
            result = await job.result()
            (slow,) = [m for m in result.metrics if m.vertex == "slow"]
            assert slow.rows_in == 5_000

    run(main())


def test_a_failing_processor_ends_the_job_everywhere(run: RunTest) -> None:
    class Bad(Processor):
        def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
            raise ValueError("no such thing")

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            dag = DAG()
            dag.new_vertex("source", Place(Forever, "m1", "m2"))
            dag.new_vertex("bad", Place(Bad, "m3"))
            dag.edge(between("source", "bad").distribute_to("m3"))
            with pytest.raises(JobFailedError, match=r"vertex 'bad' on member m3 failed in process\(ordinal 0, 1 rows\): ValueError: no such thing") as caught:
                await cluster.run(dag)
            assert caught.value.details["vertex"] == "bad"
            assert caught.value.details["member"] == "m3"
            assert "no such thing" in caught.value.details["traceback"]
            assert [runtime.running_executions for runtime in cluster.runtimes.values()] == [0, 0, 0]

    run(main())


def test_a_failure_in_the_start_of_one_member_ends_the_job(run: RunTest) -> None:
    class OnlyHere(ProcessorSupplier):
        def init(self, context: Any) -> None:
            if context.member == "m2":
                raise DataError("m2 has no model")

        def get(self, count: int) -> Sequence[Processor]:
            return [Forever() for _ in range(count)]

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            dag = DAG()
            dag.new_vertex("source", OnlyHere())
            with pytest.raises(DataError, match=r"m2 has no model \(vertex 'source' on member m2\)"):
                await cluster.run(dag)
            assert [runtime.running_executions for runtime in cluster.runtimes.values()] == [0, 0, 0]

    run(main())


@pytest.mark.parametrize("when", ["start", "running"])
def test_a_lost_member_fails_the_job_and_is_named(run: RunTest, when: str) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            if when == "start":
                cluster.network.lose("m3")
            job = await cluster.runtimes["m1"].start_light_job(pipeline(Place(Forever, "m2", "m3"), lambda e: e), JobConfig(), (), cluster.topology)
            if when == "running":
                await until(lambda: bool(cluster.runtimes["m3"].running_executions))
                cluster.network.lose("m3")
                cluster.runtimes["m1"].member_lost("m3")
            with pytest.raises(MemberLostError, match="member m3 was lost while it took part in the job") as caught:
                await job.result()
            assert caught.value.details["member"] == "m3"
            assert [cluster.runtimes[m].running_executions for m in ("m1", "m2")] == [0, 0]
            cluster.runtimes["m3"].member_lost("m1")  # the other side sees it as well
            assert cluster.runtimes["m3"].running_executions == 0

    run(main())


def test_a_connection_between_two_participants_that_breaks_fails_the_job(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            broken = cluster.network.carry

            async def carry(sender: str, receiver: str, header: dict[str, Any], payload: Any) -> None:
                if (sender, receiver) == ("m2", "m3"):
                    raise MemberLostError("connection reset", member="m3")
                await broken(sender, receiver, header, payload)

            cluster.network.carry = carry  # type: ignore[method-assign]
            with pytest.raises(MemberLostError, match=r"member m3 was lost.*connection reset"):
                await cluster.run(pipeline(Place(lambda: Numbers(5), "m2"), lambda e: e.distribute_to("m3")))

    run(main())


def test_a_pruned_member_that_is_lost_does_not_disturb_the_job(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            owner = cluster.topology.ownership(orders.scheme.affinity_group()).primary(orders.scheme.partition_of({"customer": "C7"}))
            coordinator, pruned = [member for member in cluster.runtimes if member != owner]
            cluster.network.lose(pruned)
            job = await cluster.runtimes[coordinator].start_light_job(read_by_key(), JobConfig(), (), cluster.topology)
            cluster.runtimes[coordinator].member_lost(pruned)
            assert (await job.result()).table().num_rows == 3

    run(main())


def test_a_message_that_is_lost_without_a_word_is_noticed(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2, limits=EngineLimits(frame_bytes_max=1)) as cluster:
            carry = cluster.network.carry

            async def forgetful(sender: str, receiver: str, header: dict[str, Any], payload: Any) -> None:
                if header.get("seq") != 0:
                    await carry(sender, receiver, header, payload)

            cluster.network.carry = forgetful  # type: ignore[method-assign]
            dag = DAG()
            dag.new_vertex("source", Place(lambda: Numbers(100, rows=50), "m2"))
            dag.new_vertex("out", collect())
            dag.edge(between("source", "out").distributed())
            with pytest.raises(ProtocolError, match="message 1 arrived where message 0 was expected; one was lost or repeated"):
                await cluster.run(dag)

    run(main())


def test_cancel_ends_a_source_that_never_ends(run: RunTest) -> None:
    async def main() -> float:
        async with LocalCluster(3) as cluster:
            job = await cluster.runtimes["m1"].start_light_job(pipeline(Place(Forever, "m1", "m2", "m3"), lambda e: e), JobConfig(), (), cluster.topology)
            await until(lambda: bool(all(runtime.running_executions for runtime in cluster.runtimes.values())))
            begun = time.perf_counter()
            job.cancel("enough")
            with pytest.raises(JobCancelledError, match=rf"job {job.job_id} was cancelled: enough"):
                await job.result()
            took = time.perf_counter() - begun
            assert [runtime.running_executions for runtime in cluster.runtimes.values()] == [0, 0, 0]
            job.cancel()  # nothing happens
            return took

    assert run(main()) < 0.2


def test_cancel_does_not_wait_for_a_call_that_does_not_return(run: RunTest) -> None:
    gate, entered = threading.Event(), threading.Event()
    closed = threading.Event()

    class Stuck(Processor):
        cooperative = False

        def complete(self) -> bool:
            entered.set()
            gate.wait(10)
            return True

        def close(self) -> None:
            closed.set()

    async def main() -> float:
        async with LocalCluster(1) as cluster:
            dag = DAG()
            dag.new_vertex("stuck", Stuck)
            job = await cluster.runtimes["m1"].start_light_job(dag, JobConfig(), (), cluster.topology)
            await until(lambda: bool(entered.is_set()))
            begun = time.perf_counter()
            job.cancel()
            with pytest.raises(JobCancelledError):
                await job.result()
            took = time.perf_counter() - begun
            assert not closed.is_set()
            gate.set()
            return took

    assert run(main()) < 0.2
    assert closed.wait(10)


def test_a_waiter_that_goes_away_takes_its_job_with_it(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            waiter = asyncio.get_running_loop().create_task(cluster.run(pipeline(Place(Forever, "m1", "m2"), lambda e: e)))
            await until(lambda: bool(cluster.runtimes["m2"].running_executions))
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
            await until(lambda: not (cluster.runtimes["m2"].running_executions or cluster.runtimes["m1"].jobs))

    run(main())


def test_a_deadline_says_who_was_still_running(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            with pytest.raises(DeadlineError, match=r"took longer than its deadline of 0.05 s; still running on m1, m2"):
                await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e), JobConfig(timeout_s=0.05))
            assert cluster.runtimes["m2"].running_executions == 0

    run(main())


def test_a_participant_that_never_answers_a_cancel_is_given_up(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2, limits=EngineLimits(cancel_wait_s=0.05)) as cluster:
            cluster.network.hold(lambda message: message.receiver == "m2")
            with pytest.raises(DeadlineError, match="still running on m1, m2"):
                await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e), JobConfig(timeout_s=0.05))
            assert not cluster.runtimes["m1"].jobs

    run(main())


def test_results_are_bounded(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            await cluster.run(pipeline(Place(Forever, "m1", "m2"), lambda e: e, map_batches(lambda b: b)), JobConfig(result_bytes_max=1000))

    with pytest.raises(LimitExceededError, match=r"larger than 1,000 bytes.*\(vertex 'out' on member m1\)"):
        run(main())


def test_a_member_runs_only_so_many_jobs(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3, limits=EngineLimits(executions_max=1)) as cluster:
            first = await cluster.runtimes["m1"].start_light_job(pipeline(Place(Forever, "m2"), lambda e: e), JobConfig(), (), cluster.topology)
            await until(lambda: bool(cluster.runtimes["m2"].running_executions))
            for coordinator, full in (("m3", "m2"), ("m1", "m1")):
                with pytest.raises(LimitExceededError, match=f"member {full} already runs 1 jobs"):
                    await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e), coordinator=coordinator)
            assert not first.done
            first.cancel()

    run(main())


def test_code_is_refused_where_it_is_not_allowed(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2, allow_code=False) as cluster:
            with pytest.raises(SerializationError, match="vertex 'source': FactorySupplier is code"):
                await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e))
            cluster.runtimes["m1"].services = replace(cluster.runtimes["m1"].services, allow_code=True)
            with pytest.raises(SerializationError, match="vertex 'source' carries code, and this member accepts none"):
                await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e))
            assert cluster.network.sent[-1].op in ("job_done", "job_cancel")

    run(main())


def test_what_cannot_be_built_starts_nothing(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            for source, error in ((table_source("nobody"), UnknownTableError), (Place(Forever, "m9"), DagError)):
                with pytest.raises(error):
                    await cluster.run(pipeline(source, lambda e: e))
            assert cluster.network.sent == []
            assert not cluster.runtimes["m1"].jobs

    run(main())


def test_a_partition_that_has_moved_fails_with_an_error_that_may_be_retried(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            stale = cluster.topology
            moved = {**stale.owners}
            group = orders.scheme.affinity_group()
            owners = moved[group].owners.copy()
            owners[0] = (owners[0] + 1) % 3
            moved[group] = replace(moved[group], owners=owners)
            cluster.topology = replace(stale, owners=moved)
            with pytest.raises(TopologyChangedError) as caught:
                await cluster.run(read_by_key())
            assert caught.value.retry_safe
            assert caught.value.details["vertex"] == "scan"

    run(main())


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"op": "select", "job": "j", "from": "m2"}, id="unknown op"),
        pytest.param({"op": "exchange"}, id="no job"),
    ],
)
def test_messages_that_are_not_ours_harm_no_job(run: RunTest, header: dict[str, Any]) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            job = await cluster.runtimes["m1"].start_light_job(pipeline(Place(Forever, "m1"), lambda e: e), JobConfig(), (), cluster.topology)
            with pytest.raises(ProtocolError):
                cluster.runtimes["m1"].on_message(header, b"")
            assert not job.done
            job.cancel()

    run(main())


@pytest.mark.parametrize("plan", [pytest.param(b"", id="nothing"), pytest.param(b"\x93\x01\x02\x03", id="numbers"), pytest.param(b"\xc1", id="no msgpack")])
def test_a_start_that_cannot_be_read_is_answered(run: RunTest, plan: bytes) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            cluster.runtimes["m2"].on_message({"op": "job_start", "job": "j", "from": "m1"}, plan)
            await until(lambda: bool(cluster.network.sent))
            (answer,) = cluster.network.sent
            assert (answer.receiver, answer.op, answer.header["failure"]["error"]) == ("m1", "job_done", "ProtocolError")

    run(main())


def test_rows_for_an_edge_that_does_not_lead_here_fail_the_job(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            job = await cluster.runtimes["m1"].start_light_job(pipeline(Place(Forever, "m1"), lambda e: e), JobConfig(), (), cluster.topology)
            cluster.runtimes["m1"].on_message({"op": "exchange", "job": job.job_id, "from": "m2", "edge": 0, "seq": 0, "pieces": [], "last": True}, b"")
            with pytest.raises(ProtocolError, match="member m2 sent rows of edge 0, which does not lead from there to m1"):
                await job.result()

    run(main())


def test_stragglers_of_a_job_that_has_ended_are_dropped(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            result = await cluster.run(pipeline(Place(lambda: Numbers(1), "m1"), lambda e: e))
            runtime = cluster.runtimes["m1"]
            runtime.on_message({"op": "exchange", "job": result.job_id, "from": "m2", "edge": 0, "seq": 0, "pieces": [], "last": True}, b"")
            runtime.on_message({"op": "job_done", "job": result.job_id, "from": "m2", "failure": None, "metrics": []}, b"")
            runtime.on_message({"op": "job_cancel", "job": result.job_id, "from": "m2", "failure": {"error": "DataError", "message": "x", "details": {}}}, b"")
            assert runtime.running_executions == 0

    run(main())


def test_closing_a_member_ends_its_jobs_and_starts_no_more(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            job = await cluster.runtimes["m1"].start_light_job(pipeline(Place(Forever, "m1", "m2"), lambda e: e), JobConfig(), (), cluster.topology)
            await cluster.runtimes["m1"].close()
            with pytest.raises(JobCancelledError, match="member m1 is shutting down"):
                await job.result()
            with pytest.raises(JobCancelledError, match="starts no more jobs"):
                await cluster.run(pipeline(Place(Forever, "m1"), lambda e: e))
            await until(lambda: not (cluster.runtimes["m2"].running_executions))

    run(main())


def test_metrics_count_what_went_in_and_out(run: RunTest) -> None:
    async def main() -> dict[tuple[str, str], tuple[int, ...]]:
        async with LocalCluster(2) as cluster:
            result = await cluster.run(pipeline(Place(lambda: Numbers(30, rows=10), "m1", "m2"), lambda e: e, parallelism=1))
            assert replace(result, tables={}).table().shape == (0, 0)
            with pytest.raises(InterfaceError, match=r"has 2 results \(a, b\)"):
                replace(result, tables={"a": pa.table({}), "b": pa.table({})}).table()
            assert all(m.busy_s > 0 for m in result.metrics)
            return {(m.vertex, m.member): (m.processors, m.batches_in, m.rows_in, m.batches_out, m.rows_out) for m in result.metrics}

    assert run(main()) == {
        ("source", "m1"): (1, 0, 0, 3, 30),
        ("source", "m2"): (1, 0, 0, 3, 30),
        ("middle", "m1"): (1, 3, 30, 3, 30),
        ("middle", "m2"): (1, 3, 30, 3, 30),
        ("out", "m1"): (1, 6, 60, 0, 0),
    }


def test_slow_starts_do_not_hold_the_loop(run: RunTest) -> None:
    gate = threading.Event()
    beats = 0

    class Model(ProcessorSupplier):
        def init(self, context: Any) -> None:
            assert gate.wait(10)

        def get(self, count: int) -> Sequence[Processor]:
            return [Numbers(3) for _ in range(count)]

    async def main() -> int:
        nonlocal beats
        async with LocalCluster(1) as cluster:
            job = await cluster.runtimes["m1"].start_light_job(pipeline(Model(), lambda e: e, parallelism=1), JobConfig(), (), cluster.topology)
            for _ in range(50):
                await asyncio.sleep(0)
                beats += 1
            assert not job.done
            gate.set()
            return (await job.result()).table().num_rows

    assert run(main()) == 3
    assert beats == 50


def test_cancel_during_a_slow_start(run: RunTest) -> None:
    gate = threading.Event()
    closed: list[str] = []

    class Model(ProcessorSupplier):
        def init(self, context: Any) -> None:
            assert gate.wait(10)

        def get(self, count: int) -> Sequence[Processor]:
            return [Numbers(3) for _ in range(count)]

        def close(self, error: BaseException | None) -> None:
            closed.append(type(error).__name__)

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            job = await cluster.runtimes["m1"].start_light_job(pipeline(Model(), lambda e: e), JobConfig(), (), cluster.topology)
            job.cancel()
            with pytest.raises(JobCancelledError):
                await job.result()
            assert closed == []  # init is still running: nothing may be closed under it
            gate.set()

    run(main())
    assert closed == ["JobCancelledError"]

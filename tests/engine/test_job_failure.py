"""The first cause ends a job everywhere: failing processors, lost members and messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from secateur.connectors import collect, table_source
from secateur.dag import DAG, JobConfig, Processor, ProcessorSupplier, between
from secateur.engine_limits import EngineLimits
from secateur.errors import (
    DagError,
    DataError,
    JobFailedError,
    MemberLostError,
    ProtocolError,
    SerializationError,
    TopologyChangedError,
    UnknownTableError,
    UnreachableError,
)
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology import Ownership
from secateur.protocol import CancelRun, EndRun, ExchangeRows, MessagesLost, Notice, StartRun
from secateur.testing import LocalCluster
from secateur.testing.local_cluster import until
from small_jobs import Forever, Numbers, Place, pipeline, read_by_key

RunTest = Callable[[Any], Any]


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
            with pytest.raises(
                JobFailedError,
                match=r"vertex 'bad' on member m3 failed in process\(ordinal 0, 1 rows\): ValueError: no such thing",
            ) as caught:
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
            job = await cluster.runtimes["m1"].start_job(
                pipeline(Place(Forever, "m2", "m3"), lambda e: e), JobConfig(), (), cluster.topology
            )
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

            async def carry(sender: str, receiver: str, notice: Notice, payload: Any) -> None:
                if (sender, receiver) == ("m2", "m3"):
                    raise MemberLostError("connection reset", member="m3")
                await broken(sender, receiver, notice, payload)

            cluster.network.carry = carry  # type: ignore[method-assign]
            with pytest.raises(MemberLostError, match=r"member m3 was lost.*connection reset"):
                await cluster.run(pipeline(Place(lambda: Numbers(5), "m2"), lambda e: e.distribute_to("m3")))

    run(main())


@pytest.mark.parametrize(
    ("lost", "sender", "receiver"),
    [
        pytest.param(StartRun, "m1", "m2", id="the start"),
        pytest.param(EndRun, "m2", "m1", id="the end"),
        pytest.param(ExchangeRows, "m2", "m3", id="rows"),
    ],
)
def test_a_message_that_is_lost_with_its_connection_fails_the_job(
    run: RunTest, lost: type[Notice], sender: str, receiver: str
) -> None:
    """Only the sender learns of it, after it has sent: the receiver's end of the connection looks whole."""

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            network, carry, is_whole = cluster.network, cluster.network.carry, True
            is_known = False

            async def carried(source: str, target: str, notice: Notice, payload: Any) -> None:
                nonlocal is_whole
                # Rows may go in several messages; behind a lost one, none arrives over the same connection.
                if not is_known and isinstance(notice, lost) and (source, target) == (sender, receiver):
                    is_whole = False
                    return
                await carry(source, target, notice, payload)

            network.carry = carried  # type: ignore[method-assign]
            dag = pipeline(Place(lambda: Numbers(5), "m2"), lambda e: e.distribute_to("m3"))
            job = await cluster.runtimes["m1"].start_job(dag, JobConfig(), (), cluster.topology)
            await until(lambda: not is_whole)
            for _ in range(100):  # everything else goes its way
                await asyncio.sleep(0)
            assert not job.done
            is_known = True
            cluster.runtimes[sender].connection_lost(receiver, MemberLostError("connection reset"))
            with pytest.raises(MemberLostError, match="was lost while it took part in the job") as caught:
                await job.result()
            assert caught.value.details["member"] in {sender, receiver}
            await until(lambda: not any(runtime.running_executions for runtime in cluster.runtimes.values()))

    run(main())


def test_who_cannot_be_told_that_messages_were_lost_is_told_later(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            network, carry, tries = cluster.network, cluster.network.carry, 0

            async def carried(sender: str, receiver: str, notice: Notice, payload: Any) -> None:
                nonlocal tries
                if receiver == "m1":
                    tries += 1
                    if tries <= 4:
                        raise UnreachableError("connection refused")
                await carry(sender, receiver, notice, payload)

            network.carry = carried  # type: ignore[method-assign]
            dag = pipeline(Place(lambda: Numbers(1), "m2"), lambda e: e.distribute_to("m2"))
            with pytest.raises(MemberLostError, match="m2 was lost while it took part in the job: its connect"):
                await cluster.run(dag)  # m2 could not say how it has ended
            assert tries >= 5
            told = [message for message in network.sent if message.receiver == "m1"]
            assert isinstance(told[0].notice, MessagesLost), "before anything else"

    run(main())


@pytest.mark.parametrize("is_known", [True, False])
def test_a_member_that_has_left_is_told_nothing(run: RunTest, *, is_known: bool) -> None:
    async def left(*_: Any) -> None:
        raise MemberLostError("member m2 has left the cluster", has_left=True)

    async def main() -> None:
        async with LocalCluster(2) as cluster:
            cluster.network.lose("m2")
            if not is_known:  # the connection says so before the news of the loss has come
                cluster.network.carry = left  # type: ignore[method-assign]
            cluster.runtimes["m1"].connection_lost("m2", MemberLostError("connection reset"))
            await asyncio.sleep(0)
            if is_known:
                cluster.runtimes["m1"].member_lost("m2")
            await until(lambda: all(task.get_name() != "secateur-outgoing-m2" for task in asyncio.all_tasks()))
            assert cluster.network.sent == []

    run(main())


def test_a_message_that_is_lost_without_a_word_is_noticed(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2, limits=EngineLimits(frame_bytes_max=1)) as cluster:
            carry = cluster.network.carry

            async def forgetful(sender: str, receiver: str, notice: Notice, payload: Any) -> None:
                if not isinstance(notice, ExchangeRows) or notice.sequence != 0:
                    await carry(sender, receiver, notice, payload)

            cluster.network.carry = forgetful  # type: ignore[method-assign]
            dag = DAG()
            dag.new_vertex("source", Place(lambda: Numbers(100, rows=50), "m2"))
            dag.new_vertex("out", collect())
            dag.edge(between("source", "out").distributed())
            with pytest.raises(
                ProtocolError, match="message 1 arrived where message 0 was expected; one was lost or repeated"
            ):
                await cluster.run(dag)

    run(main())


def test_a_partition_that_has_moved_fails_with_an_error_that_may_be_retried(
    run: RunTest, orders: TableDef, order_rows: pa.Table
) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            stale = cluster.topology
            moved = {**stale.owners}
            group = orders.scheme.affinity_group()
            owners = moved[group].owners.copy()
            owners[0] = (owners[0] + 1) % 3
            moved[group] = Ownership.of(moved[group].members, owners)
            cluster.topology = structs.replace(stale, owners=moved)
            with pytest.raises(TopologyChangedError) as caught:
                await cluster.run(read_by_key())
            assert caught.value.retry_safe
            assert caught.value.details["vertex"] == "scan"

    run(main())


def test_code_is_refused_where_it_is_not_allowed(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(2, allow_code=False) as cluster:
            with pytest.raises(SerializationError, match="vertex 'source': FactorySupplier is code"):
                await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e))
            cluster.runtimes["m1"].services = replace(cluster.runtimes["m1"].services, allow_code=True)
            with pytest.raises(SerializationError, match="vertex 'source' carries code, and this member accepts none"):
                await cluster.run(pipeline(Place(Forever, "m2"), lambda e: e))
            assert isinstance(cluster.network.sent[-1].notice, (EndRun, CancelRun))

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

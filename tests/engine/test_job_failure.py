"""The first cause ends a job everywhere: failing processors, lost members and messages."""

from __future__ import annotations

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
)
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology import Ownership
from secateur.protocol import CancelRun, EndRun, ExchangeRows, Notice
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

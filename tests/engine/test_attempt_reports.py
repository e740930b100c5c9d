"""A member that coordinated an attempt of a job reports its end, whatever becomes of the first report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from secateur.cluster.member import MemberAttempts
from secateur.connectors import collect
from secateur.dag import DAG, JobConfig, Processor, between
from secateur.errors import LimitExceededError
from secateur.protocol import Acknowledged, Operation, ReportJobEnded, Role, RunAttempt
from secateur.testing import LocalCluster
from secateur.wire import Answer, PeerInfo, Request

RunTest = Callable[[Any], Any]


class OneRow(Processor):
    """Offers one row."""

    def complete(self) -> bool:
        return self.outbox.offer(pa.record_batch({"x": pa.array([1], pa.int64())}))


class Controller:
    """Takes no report with metrics, and remembers all."""

    def __init__(self) -> None:
        self.reports: list[ReportJobEnded] = []
        self.heard = asyncio.Event()

    async def request(self, report: ReportJobEnded) -> Answer[Acknowledged]:
        self.reports.append(report)
        if report.metrics:
            raise LimitExceededError("a header of 20,000,000 bytes is more than is allowed")
        self.heard.set()
        return Answer(Acknowledged(), ())


def test_an_end_whose_report_cannot_be_sent_is_reported_without_its_metrics(run: RunTest) -> None:
    dag = DAG()
    dag.new_vertex("read", OneRow)
    dag.new_vertex("take", collect())
    dag.edge(between("read", "take"))

    async def main() -> list[ReportJobEnded]:
        async with LocalCluster(1) as cluster:
            controller: Any = Controller()
            attempts = MemberAttempts(cluster.runtimes["m1"], controller, lambda: cluster.topology)
            peer = PeerInfo(1, "test", "controller", True, Role.CONTROLLER)
            asked = RunAttempt("job", 1, JobConfig(), [])
            payload = memoryview(dag.freeze().encoded())
            await attempts.run(Request(Operation.RUN_ATTEMPT, asked, payload, peer))
            async with asyncio.timeout(10):
                await controller.heard.wait()
            await attempts.close()
            return list(controller.reports)

    first, second = run(main())
    assert first.failure is None
    assert second.failure is not None
    assert (second.job, second.attempt, second.member, second.metrics) == ("job", 1, "m1", [])
    assert "its report could not be sent: a header of 20,000,000 bytes" in second.failure.to_error().message

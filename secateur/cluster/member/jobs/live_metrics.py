"""The metrics of a running job, which its coordinator collects from the participants."""

from __future__ import annotations

import asyncio

from secateur.cluster.peers import Peers
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.errors import Error
from secateur.protocol.jobs import GetJobCounters, RunCounters
from secateur.protocol.metrics import VertexMetrics
from secateur.wire import Reply, Request


class LiveMetrics:
    """Collects at the coordinator, and at the participants answers ``get_job_counters``.

    Lives on the member's event loop.

    Args:
        runtime: The member's engine.
        peers: The way to the other members.
    """

    def __init__(self, runtime: JobRuntime, peers: Peers) -> None:
        self._runtime = runtime
        self._peers = peers

    async def of(self, job: RunningJob) -> list[VertexMetrics]:
        """One entry for each vertex and member.

        A participant that cannot be asked has none: it is about to fail the job.

        Costs one round trip to each participant that still runs, all at once.
        """
        live = await asyncio.gather(*(self._counters_of(member, job.job_id) for member in job.running_members))
        ended = job.metrics  # read last: who ended meanwhile is in it
        known = {(entry.vertex, entry.member) for entry in ended}
        return [*ended, *(entry for entries in live for entry in entries if (entry.vertex, entry.member) not in known)]

    def counters(self, request: Request[GetJobCounters]) -> Reply[RunCounters]:
        """The counters of a job on this member so far; empty when the job does not run here."""
        return Reply(RunCounters(list(self._runtime.metrics(request.message.job))))

    async def _counters_of(self, member: str, job_id: str) -> list[VertexMetrics]:
        if member == self._runtime.member_id:
            return self._runtime.metrics(job_id)
        try:
            answer = await self._peers.call(member, GetJobCounters(job_id))
        except Error:
            return []
        return answer.metrics

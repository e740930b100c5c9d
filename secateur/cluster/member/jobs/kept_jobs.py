"""Keeps the jobs on record that a controller which starts anew asks for; on disk if the member has one.

Jobs are not in the record of the cluster: their DAGs may be large, and they change far more often than the catalog.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from secateur.cluster.member.jobs.job_files import JobFiles
from secateur.cluster.peers import Peers
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.errors import Error, UnknownJobError
from secateur.protocol import jobs
from secateur.protocol.message import Acknowledged
from secateur.protocol.metrics import VertexMetrics
from secateur.wire import Handled, Reply, Request


class KeptJobsOfMember:
    """Answers ``keep_job``, ``list_kept_jobs`` and ``get_kept_job``. Lives on the member's event loop.

    Args:
        files: The files on its disk; None for a member without a data directory.
        ended_max: Jobs that are kept after their end; the controller remembers as many.
    """

    def __init__(self, files: JobFiles | None = None, ended_max: int = jobs.ENDED_JOBS_MAX) -> None:
        self._files = files
        self._ended_max = ended_max
        self._running: dict[str, tuple[jobs.KeptJob, bytes]] = {}
        self._ended: OrderedDict[str, jobs.KeptJob] = OrderedDict()

    async def recover(self) -> None:
        """Have the jobs that are on disk.

        Raises:
            DiskError: They cannot be read.
        """
        if self._files is not None:
            found = await self._files.read()
            for job, dag in sorted(found, key=lambda kept: kept[0].state.ended_s or 0.0):
                self._take(job, dag)

    async def forget(self) -> None:
        """Drop all jobs: the controller sends those that there are to a member that it lets in.

        Raises:
            DiskError: They stay on disk.
        """
        self._running.clear()
        self._ended.clear()
        if self._files is not None:
            await self._files.clear()

    def keep(self, request: Request[jobs.KeepJob]) -> Handled:
        """Keep a job, unless a newer version of it is here."""
        job = request.message.job
        job_id = job.state.job_id
        known, dag = self._running.get(job_id, (self._ended.get(job_id), b""))
        if known is not None and known.version >= job.version:
            return Reply(Acknowledged())
        dropped = self._take(job, bytes(request.payload) or dag)
        return Reply(Acknowledged()) if self._files is None else self._keep_durably(job_id, dropped, self._files)

    async def _keep_durably(self, job_id: str, dropped: list[str], files: JobFiles) -> Reply[Acknowledged]:
        """Return once a job is on disk, in the version that is here now."""
        job, dag = self._running.get(job_id, (self._ended.get(job_id), b""))
        if job is not None:
            await files.write(job, dag)
        for other in dropped:
            await files.remove(other)
        return Reply(Acknowledged())

    def _take(self, job: jobs.KeptJob, dag: bytes) -> list[str]:
        """Keep a job in memory; returns the ended jobs that are forgotten for it."""
        job_id, dropped = job.state.job_id, []
        if job.state.ended_s is None:
            self._running[job_id] = job, dag
        else:
            self._running.pop(job_id, None)
            self._ended[job_id] = job
            while len(self._ended) > self._ended_max:
                dropped.append(self._ended.popitem(last=False)[0])
        return dropped

    def versions(self, _: Request[jobs.ListKeptJobs]) -> Reply[jobs.KeptJobs]:
        """The versions of all jobs."""
        running = {job_id: job.version for job_id, (job, _) in self._running.items()}
        return Reply(jobs.KeptJobs(running | {job_id: job.version for job_id, job in self._ended.items()}))

    def get(self, request: Request[jobs.GetKeptJob]) -> Reply[jobs.KeptJob]:
        """One job, with its DAG.

        Raises:
            UnknownJobError: It is not kept here.
        """
        job_id = request.message.job
        job, dag = self._running.get(job_id, (self._ended.get(job_id), b""))
        if job is None:
            raise UnknownJobError(f"this member keeps no job {job_id}")
        return Reply(job, dag)


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

    def counters(self, request: Request[jobs.GetJobCounters]) -> Reply[jobs.RunCounters]:
        """The counters of a job on this member so far; empty when the job does not run here."""
        return Reply(jobs.RunCounters(list(self._runtime.metrics(request.message.job))))

    async def _counters_of(self, member: str, job_id: str) -> list[VertexMetrics]:
        if member == self._runtime.member_id:
            return self._runtime.metrics(job_id)
        try:
            answer = await self._peers.call(member, jobs.GetJobCounters(job_id))
        except Error:
            return []
        return answer.metrics

"""Keeps the jobs on record that a controller which starts anew asks for; on disk if the member has one.

Jobs are not in the record of the cluster: their DAGs may be large, and they change far more often than the catalog.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import xxhash

from secateur.cluster.peers import Peers
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.errors import DiskError, Error, UnknownJobError
from secateur.protocol import jobs
from secateur.protocol.codec import decode, encode
from secateur.protocol.jobs import KeptJob
from secateur.protocol.message import Acknowledged
from secateur.protocol.metrics import VertexMetrics
from secateur.storage.log.disk import Disk
from secateur.wire import Handled, Reply, Request

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PREFIX: Final = "job-"
_CHECKSUM_BYTES: Final = 8


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

    def counters(self, request: Request[jobs.GetJobCounters]) -> Reply[jobs.JobMetrics]:
        """The counters of a job on this member so far; empty when the job does not run here."""
        return Reply(jobs.JobMetrics(list(self._runtime.metrics(request.message.job))))

    async def _counters_of(self, member: str, job_id: str) -> list[VertexMetrics]:
        if member == self._runtime.member_id:
            return self._runtime.metrics(job_id)
        try:
            answer = await self._peers.call(member, jobs.GetJobCounters(job_id))
        except Error:
            return []
        return answer.metrics


class _Content(msgspec.Struct, frozen=True, array_like=True):
    """A file: the encoded job, and its DAG."""

    job: bytes
    dag: bytes


class JobFiles:
    """Keeps a file for each job on record, which is replaced whenever the job changes.

    They are apart from the log, because a job is a few kilobytes that change a few times, and its DAG may be large.
    Lives on the member's event loop; files are read and written in threads, one after the other.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._turn = asyncio.Lock()

    async def read(self) -> list[tuple[KeptJob, bytes]]:
        """All jobs with their DAGs. A file that is damaged is left out: another member has the job as well.

        Raises:
            DiskError: The disk cannot be read.
        """
        return await self._work(self._read)

    async def write(self, job: KeptJob, dag: bytes) -> None:
        """Have a job on disk, in place of an earlier version of it.

        Raises:
            DiskError: The disk is full or fails.
        """
        await self._work(lambda: self._disk.replace(_file_of(job.state.job_id), _written(job, dag)))

    async def remove(self, job_id: str) -> None:
        """Forget a job.

        Raises:
            DiskError: The disk fails.
        """
        await self._work(lambda: self._disk.remove(_file_of(job_id)))

    async def clear(self) -> None:
        """Forget all jobs.

        Raises:
            DiskError: The disk fails.
        """
        await self._work(self._clear)

    async def _work(self, work: Callable[[], T]) -> T:
        async with self._turn:
            try:
                return await asyncio.get_running_loop().run_in_executor(None, work)
            except OSError as error:
                raise DiskError(
                    f"the jobs on record could not be kept in {self._disk.path}: {error}", path=self._disk.path
                ) from error

    def _read(self) -> list[tuple[KeptJob, bytes]]:
        found = []
        for name in self._disk.list():
            if name.startswith(_PREFIX):
                data = self._disk.read(name)
                checksum, encoded = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
                if checksum != xxhash.xxh3_64_digest(encoded):
                    _log.warning("%s/%s is damaged: its job is taken from other members", self._disk.path, name)
                    continue
                content = decode(encoded, _Content)
                found.append((decode(content.job, KeptJob), content.dag))
        return found

    def _clear(self) -> None:
        for name in self._disk.list():
            if name.startswith(_PREFIX):
                self._disk.remove(name)


def _file_of(job_id: str) -> str:
    """The name of the file of a job, whose id a client has chosen."""
    return f"{_PREFIX}{xxhash.xxh3_128_hexdigest(job_id.encode())}"


def _written(job: KeptJob, dag: bytes) -> bytes:
    encoded = encode(_Content(encode(job), dag))
    return xxhash.xxh3_64_digest(encoded) + encoded

"""What a member keeps of jobs on record, for a controller that starts anew."""

from __future__ import annotations

from collections import OrderedDict

from secateur.errors import UnknownJobError
from secateur.protocol.jobs import ENDED_JOBS_MAX, GetKeptJob, KeepJob, KeptJob, KeptJobs, ListKeptJobs
from secateur.protocol.message import Acknowledged
from secateur.wire import Reply, Request

__all__ = ["KeptJobsOfMember"]


class KeptJobsOfMember:
    """Answers ``keep_job``, ``list_kept_jobs`` and ``get_kept_job``. Lives on the member's event loop.

    Args:
        ended_max: Jobs that are kept after their end; the controller remembers as many.
    """

    def __init__(self, ended_max: int = ENDED_JOBS_MAX) -> None:
        self._ended_max = ended_max
        self._running: dict[str, tuple[KeptJob, bytes]] = {}
        self._ended: OrderedDict[str, KeptJob] = OrderedDict()

    def keep(self, request: Request[KeepJob]) -> Reply[Acknowledged]:
        """Keep a job, unless a newer version of it is here."""
        job = request.message.job
        job_id = job.state.job_id
        known, dag = self._running.get(job_id, (self._ended.get(job_id), b""))
        if known is not None and known.version >= job.version:
            return Reply(Acknowledged())
        if job.state.ended_s is None:
            self._running[job_id] = job, bytes(request.payload) or dag
        else:
            self._running.pop(job_id, None)
            self._ended[job_id] = job
            while len(self._ended) > self._ended_max:
                self._ended.popitem(last=False)
        return Reply(Acknowledged())

    def versions(self, _: Request[ListKeptJobs]) -> Reply[KeptJobs]:
        """The versions of all jobs."""
        running = {job_id: job.version for job_id, (job, _) in self._running.items()}
        return Reply(KeptJobs(running | {job_id: job.version for job_id, job in self._ended.items()}))

    def get(self, request: Request[GetKeptJob]) -> Reply[KeptJob]:
        """One job, with its DAG.

        Raises:
            UnknownJobError: It is not kept here.
        """
        job_id = request.message.job
        job, dag = self._running.get(job_id, (self._ended.get(job_id), b""))
        if job is None:
            raise UnknownJobError(f"this member keeps no job {job_id}")
        return Reply(job, dag)

"""Jobs of a connection on an event loop."""

from __future__ import annotations

from secateur.aio.proxy import Proxy, awaited
from secateur.client.jobs import job
from secateur.client.jobs.job_status import JobStatus


class AsyncJob(Proxy[job.Job]):
    """A job on record. As :class:`secateur.Job`, with methods that are awaited.

    To cancel the task that waits for it does not cancel the job.
    """

    @property
    def job_id(self) -> str:
        """Unique in the cluster."""
        return self._blocking.job_id

    async def status(self) -> JobStatus:
        """The status of the job."""
        return await self._waits.run(lambda: self._blocking.status)

    async def info(self) -> job.JobInfo:
        """The status of the job with attempt, coordinator and times."""
        return await self._waits.run(lambda: self._blocking.info)

    async def members_touched(self) -> list[str]:
        """Wait for the job and return the members of its successful attempt, by id; none after a failure."""
        return await self._waits.run(lambda: self._blocking.members_touched)

    result = awaited(job.Job.result)
    results = awaited(job.Job.results)
    metrics = awaited(job.Job.metrics)
    logs = awaited(job.Job.logs)
    plan = awaited(job.Job.plan)
    cancel = awaited(job.Job.cancel)

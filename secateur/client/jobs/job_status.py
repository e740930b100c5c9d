"""The status of a job."""

from __future__ import annotations

from enum import StrEnum


class JobStatus(StrEnum):
    """The status of a job; the last three are final.

    A light job is only ever ``running`` or in a final status.
    """

    NOT_RUNNING = "not_running"
    """Accepted; no member has been asked to run it yet."""
    STARTING = "starting"
    """The coordinator is building its plan."""
    RUNNING = "running"
    RESTARTING = "restarting"
    """A member was lost or partitions moved; it is about to begin again, from the beginning."""
    COMPLETING = "completing"
    """The coordinator was asked to stop the job and has not yet reported that it has stopped."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the status will not change any more."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)

"""The status and the result rows of a job."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa

from secateur.errors import InterfaceError
from secateur.protocol.jobs import FinishedJob, JobSinks
from secateur.wire import Answer, decode_table


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


def read_results(answer: Answer[FinishedJob] | Answer[JobSinks]) -> dict[str, pa.Table]:
    """The rows of each result sink, from a member's answer."""
    return {
        name: decode_table(part, ranges=False) for name, part in zip(answer.message.sinks, answer.parts, strict=False)
    }


def only_result(job_id: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of the only result sink; a table without rows and columns if there is none.

    Raises:
        InterfaceError: There are several.
    """
    if len(tables) > 1:
        raise InterfaceError(
            f"job {job_id} has {len(tables)} results ({', '.join(tables)}): results() has all of them, by the name of"
            " the vertex"
        )
    return next(iter(tables.values()), pa.table({}))

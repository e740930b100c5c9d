"""The result rows of a job, by the names of the vertices that collected them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from secateur.errors import InterfaceError
from secateur.protocol.jobs import FinishedJob, JobSinks
from secateur.wire import Answer, decode_table


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

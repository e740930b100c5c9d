"""The result of one run of a planned query, and its cost."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from secateur.client.execution.result_stream import ResultStream
from secateur.client.execution.routing import ExecutionMode
from secateur.protocol.profile import RunProfile
from secateur.protocol.steps import NarrowedScans, StepResult
from secateur.wire import ShortTable

__all__ = ["RunOutcome"]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """A result, and who did what for it.

    Attributes:
        result: The rows.
        execution: How much of the cluster it needed.
        members: The members that received a frame for it.
        partitions_read: Over all scans.
        partitions_total: Partitions of all scanned tables.
        members_total: Members of the cluster.
        topology_version: The topology that its members answered from.
        profile: The profile of the run, if it was requested; the rows may not be in ``result`` then.
        rest: The rows behind those of ``result``, which come as they are read; None when that is all.
        steps: The result of each step of a query in steps, in their order.
        narrowed: The effect of the found values on a query in steps that is profiled; None where the rest did not run
            with them.
    """

    result: pa.Table | ShortTable
    execution: ExecutionMode
    members: tuple[str, ...]
    partitions_read: int
    partitions_total: int
    members_total: int
    topology_version: int
    rest: ResultStream | None = None
    profile: RunProfile | None = None
    steps: tuple[StepResult, ...] = ()
    narrowed: NarrowedScans | None = None

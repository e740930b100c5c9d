"""The result of one run of a planned query, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.client.execution.result_stream import ResultStream
from secateur.client.execution.routing import ExecutionMode
from secateur.client.execution.run_profile import combined_profile
from secateur.protocol.profile import RunProfile
from secateur.wire import ShortTable

__all__ = ["NarrowedScans", "ReadRequirements", "RunOutcome", "StepResult", "combined_outcome"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The values that a step of a query found.

    Attributes:
        values: The number of values.
        used: Whether the rest ran with them; it did not where they were too many, could not be sent, or had changed.
    """

    values: int
    used: bool


@dataclass(frozen=True, slots=True)
class ReadRequirements:
    """The partitions and members that a query has to read.

    Attributes:
        partitions: The number of partitions over all scans.
        members: The number of their owners.
    """

    partitions: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NarrowedScans:
    """The reading requirements of a query without and with the values found at run time.

    Attributes:
        before: The requirements of the whole query without these values.
        after: The requirements of the rest of the query with them.
    """

    before: ReadRequirements
    after: ReadRequirements


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
        published: The last publication of each replicated table that a run under a mark read, by table id.
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
    published: tuple[tuple[int, int], ...] = ()
    steps: tuple[StepResult, ...] = ()
    narrowed: NarrowedScans | None = None


def combined_outcome(outcomes: Sequence[RunOutcome]) -> RunOutcome:
    """Combine several runs: the result of the last, and the cost of all.

    The mode is local when one member did everything, none when no member was asked.
    """
    last = outcomes[-1]
    members = {member for outcome in outcomes for member in outcome.members}
    whole = len(members) == 1 and all(outcome.execution is not ExecutionMode.DISTRIBUTED for outcome in outcomes)
    return RunOutcome(
        result=last.result,
        execution=ExecutionMode.NONE if not members else ExecutionMode.LOCAL if whole else ExecutionMode.DISTRIBUTED,
        members=tuple(sorted(members)),
        partitions_read=sum(outcome.partitions_read for outcome in outcomes),
        partitions_total=sum(outcome.partitions_total for outcome in outcomes),
        members_total=last.members_total,
        topology_version=last.topology_version,
        rest=last.rest,
        profile=(
            None
            if last.profile is None
            else combined_profile([outcome.profile for outcome in outcomes if outcome.profile is not None])
        ),
        steps=tuple(step for outcome in outcomes for step in outcome.steps),
        narrowed=last.narrowed,
    )

"""The bounds of what is retried while the cluster changes: for how long, after which errors, at what cost.

:mod:`~secateur.client.execution.execute` retries a statement or a load.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from secateur.errors import (
    Error,
    MemberLostError,
    PartitionLostError,
    TopologyChangedError,
    UnknownTableError,
    UnreachableError,
)

RETRY_S: Final = 10.0
"""Seconds for which a statement is tried again; the cluster notices the loss of a member sooner."""
CONTROLLER_WAIT_S: Final = 20.0
"""Seconds that a request waits for a controller that is being started anew: a process has to start for it."""
CONNECT_TIMEOUT_S: Final = 10.0
"""Seconds that a first connection waits for the controller: fewer, since the address may be a wrong one."""
REFUSED_S: Final = 1.5
"""Seconds that a refused connection is tried again where this process has never found a cluster: most often, none is
there."""
MOVED: Final = (TopologyChangedError, MemberLostError, UnreachableError, PartitionLostError, UnknownTableError)
"""The errors of a member that may mean that partitions have moved to other members."""


def is_final(error: Error) -> bool:
    """Whether an error means that the statement cannot go on: the controller is gone, and was waited for."""
    return isinstance(error, UnreachableError) and (not error.retry_safe or "is_controller" in error.details)


LOST_MEMBERS_MAX: Final = 2
"""Members that one statement or job may cost."""


def cost_too_many(what: str, members: list[str]) -> MemberLostError:
    """Return the error of work that has cost so many members that it is not retried."""
    named = " and ".join(members)
    return MemberLostError(
        f"members {named} ended while they ran this {what}, so no other member tries it: it may use too"
        f" much memory. Read the logs of {named} before you repeat it, ask for less at a time, or start the"
        " cluster with a smaller kernel_memory_bytes_max",
        members=list(members),
    )


_STATEMENTS_MAX: Final = 512
_LEFT_OUT_MAX: Final = 63


class PlanBackoff:
    """The back-off of each statement of a member, or of a connection whose threads may share it.

    A dynamic filter does not pay when it finds more keys than expected, or when the rows change so often that they have
    changed before the keys are used. Asking the owners of a few partitions without a job does not pay when these have
    many rows. Trying again costs a round trip or a query, so it is done half as often each time, and as before once it
    has paid. Each member learns for itself, and so does each client that asks the owners.

    Args:
        statements_max: How many statements are remembered.
    """

    def __init__(self, statements_max: int = _STATEMENTS_MAX) -> None:
        self._statements_max = statements_max
        # By id of the plan: how often it did not pay, and how many executions are still to be skipped.
        self._unlucky: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def is_due(self, plan_id: str) -> bool:
        """Whether this execution of a statement is to try it."""
        failures, left_out = self._unlucky.get(plan_id, (0, 0))
        if left_out:
            self._unlucky[plan_id] = failures, left_out - 1
        return not left_out

    def note(self, plan_id: str, *, used: bool) -> None:
        """It was tried for a statement: whether that paid."""
        failures, _ = self._unlucky.pop(plan_id, (0, 0))
        if not used:
            self._unlucky[plan_id] = failures + 1, min(2**failures, _LEFT_OUT_MAX)
            if len(self._unlucky) > self._statements_max:
                self._unlucky.popitem(last=False)

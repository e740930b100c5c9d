"""Back-off for ways to run a statement that did not pay: it runs in another way for a while.

A dynamic filter does not pay when it finds more keys than expected, or when the rows change so often that they have
changed before the keys are used. Asking the owners of a few partitions without a job does not pay when these have many
rows. Trying again costs a round trip or a query, so it is done half as often each time, and as before once it has paid.
Each member learns for itself, and so does each client that asks the owners.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_STATEMENTS_MAX: Final = 512
_LEFT_OUT_MAX: Final = 63


class PlanBackoff:
    """The back-off of each statement of a member, or of a connection whose threads may share it.

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

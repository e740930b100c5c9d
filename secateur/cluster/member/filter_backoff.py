"""Back-off for dynamic filters that did not pay: such statements run without them for a while.

A dynamic filter does not pay when it finds more keys than expected, or when the rows change so often that they have
changed before the keys are used. Trying again costs a query, so it is done half as often each time, and as before once
it has paid. Each member learns for itself.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

__all__ = ["FilterBackoff"]

_STATEMENTS_MAX: Final = 512
_LEFT_OUT_MAX: Final = 63


class FilterBackoff:
    """The back-off of each statement that a member coordinates. Lives on its event loop.

    Args:
        statements_max: How many statements are remembered.
    """

    def __init__(self, statements_max: int = _STATEMENTS_MAX) -> None:
        self._statements_max = statements_max
        # By id of the plan: how often it did not pay, and how many executions are still to be skipped.
        self._unlucky: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def is_due(self, plan_id: str) -> bool:
        """Whether keys are to be found first for this execution of a statement."""
        failures, left_out = self._unlucky.get(plan_id, (0, 0))
        if left_out:
            self._unlucky[plan_id] = failures, left_out - 1
        return not left_out

    def note(self, plan_id: str, *, used: bool) -> None:
        """Keys were found for a statement."""
        failures, _ = self._unlucky.pop(plan_id, (0, 0))
        if not used:
            self._unlucky[plan_id] = failures + 1, min(2**failures, _LEFT_OUT_MAX)
            if len(self._unlucky) > self._statements_max:
                self._unlucky.popitem(last=False)

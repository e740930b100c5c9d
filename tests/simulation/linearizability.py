"""Decides whether a history of one register is linearizable.

Source: J. Wing, C. Gong, "Testing and verifying concurrent objects", 1993, with the memory of G. Lowe, "Testing for
linearizability", 2017: what was linearized and the value that it left are looked at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["Call", "is_linearizable", "shown"]

Value = int | None

_STATES_MAX: Final = 300_000
"""So many take some ten seconds."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a register, whose values are numbers, or None for a row that is not there.

    Attributes:
        began_s: When it was made.
        ended_s: When its answer came; ``math.inf`` for one that has failed: it may take effect at any later moment, or
            never.
        kind: What it does.
        value: What it wrote, or what a read gave.
        expected: What a conditional write wanted to find.
        has_changed: Whether a conditional write says that it has written.
    """

    began_s: float
    ended_s: float
    kind: Literal["read", "write", "write if"]
    value: Value
    expected: Value = None
    has_changed: bool = True

    def apply(self, value: Value) -> tuple[bool, Value]:
        """Whether it may answer as it did while the register has this value, and the value that it leaves."""
        match self.kind:
            case "read":
                return value == self.value, value
            case "write":
                return True, self.value
            case "write if":
                if self.ended_s == math.inf:
                    return True, self.value if value == self.expected else value
                return self.has_changed == (value == self.expected), self.value if self.has_changed else value


def is_linearizable(calls: list[Call], first: Value) -> bool:
    """Whether the calls could have been made one after the other, each between its begin and its end.

    Args:
        calls: The history; reads that failed are left out.
        first: The value before all of them.

    Returns:
        False only if they could not. Deciding takes exponential time in the calls that were under way at once; after
        :data:`_STATES_MAX` steps the history counts as one that could.
    """
    ordered = sorted(_that_matter(calls), key=lambda call: call.began_s)
    by_end = sorted(range(len(ordered)), key=lambda number: ordered[number].ended_s)
    certain = sum(1 << number for number, call in enumerate(ordered) if call.ended_s < math.inf)
    everything = (1 << len(ordered)) - 1
    seen: set[tuple[int, Value]] = set()
    stack: list[tuple[int, Value]] = [(0, first)]
    while stack and len(seen) < _STATES_MAX:
        state = stack.pop()
        if state in seen:
            continue
        seen.add(state)
        done, value = state
        if done & certain == certain:
            return True
        rest = everything & ~done
        earliest_end_s = next(ordered[number].ended_s for number in by_end if rest >> number & 1)
        following: list[tuple[int, Value]] = []
        doubtful: list[tuple[int, Value]] = []
        for number in range((rest & -rest).bit_length() - 1, len(ordered)):
            call = ordered[number]
            if call.began_s > earliest_end_s:
                break
            if not rest >> number & 1:
                continue
            may, after = call.apply(value)
            if may and call.kind == "read":  # it changes nothing, so it may as well come now
                following, doubtful = [(done | 1 << number, after)], []
                break
            if may:
                (following if call.ended_s < math.inf else doubtful).append((done | 1 << number, after))
        stack += doubtful
        stack += reversed(following)  # those that have been made first, as they probably were
    return bool(stack)


def shown(calls: Sequence[Call]) -> str:
    """A history, a line for each call, in the order in which they began."""
    return "".join(
        f"\n    {call.began_s:8.4f} to {call.ended_s:8.4f}  {call.kind} {call.value}"
        + (f" if {call.expected}: {call.has_changed}" if call.kind == "write if" else "")
        for call in sorted(calls, key=lambda call: call.began_s)
    )


def _that_matter(calls: Sequence[Call]) -> Sequence[Call]:
    """Leave out calls that have failed and whose values nobody has seen: they may as well not have been made.

    That is not so where a conditional write found another value than it expected, which may have been theirs.
    """
    if any(call.kind == "write if" and call.ended_s < math.inf and not call.has_changed for call in calls):
        return calls
    seen = {call.value for call in calls if call.kind == "read"}
    seen |= {call.expected for call in calls if call.kind == "write if"}
    return [call for call in calls if call.ended_s < math.inf or call.value in seen]

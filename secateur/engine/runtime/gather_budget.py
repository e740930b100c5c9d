"""Bounds the rows that the stages of a job hold on one member: a statement that is too large fails, not its member."""

from __future__ import annotations

from secateur.errors import LimitExceededError


class GatherBudget:
    """Bytes that the stages of a job hold on a member. Used on the event loop.

    They are rows gathered for a kernel call, or made by one and not passed on yet.

    Args:
        bytes_max: How many there may be.
    """

    __slots__ = ("_bytes_max", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.held_bytes = 0

    def take(self, size: int) -> None:
        """Keep ``size`` more bytes.

        Raises:
            LimitExceededError: They are too many.
        """
        self.held_bytes += size
        if self.held_bytes > self._bytes_max:
            raise LimitExceededError(
                f"the statement gathers more rows than one member may hold for it: {self.held_bytes:,} bytes, the limit"
                f" is {self._bytes_max:,}; select fewer columns, filter or aggregate before the join, partition the"
                " tables by the columns they are joined on, or raise gathered_bytes_max"
            )

    def give_back(self, size: int) -> None:
        """``size`` bytes are not kept any more."""
        self.held_bytes -= size

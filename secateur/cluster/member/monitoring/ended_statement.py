"""A statement that has ended, as the log of a member keeps it: a tuple, because one is made for each statement."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from secateur.protocol.query import Executed

__all__ = ["EndedStatement", "how_it_ran"]

EndedStatement: TypeAlias = tuple[int, str, bool, float, float, msgspec.Struct | None, str | None]
"""Number, id of the plan, whether it was pruned, seconds since the epoch, seconds that it took, what the answer says,
and what went wrong."""


def how_it_ran(said: msgspec.Struct | None) -> str:
    """The way in which a statement ran, by its answer: as in ``secateur.latencies``."""
    match said:
        case None:
            return "failed"
        case Executed():
            return said.execution
        case _:
            return "change"

"""A statement that has ended, as the log of a member keeps it: a tuple, because one is made for each statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from secateur.protocol.query import Executed

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


def has_read_all(said: Executed) -> bool:
    """Whether a query has read all of several partitions."""
    return said.partitions_read == said.partitions_total > 1


def other_members(queries: Iterable[Executed]) -> int:
    """The members that took part beside this one, added up: an answer that names none is this one's alone."""
    return sum(len(said.members) - 1 for said in queries if said.members)

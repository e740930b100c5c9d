"""Requests that bring many executions of one plan, or many writes, to a member: one frame for all it answers at once.

Each execution or write is one of its own, as if it had come in a frame of its own. A member answers the first of them,
as many as it can answer without waiting, and leaves the rest undone: whoever asked executes those otherwise. So neither
errors nor long answers travel here.
"""

from __future__ import annotations

from typing import Any

import msgspec

from secateur.protocol.message import Message
from secateur.protocol.query import Executed


class ExecutedMany(msgspec.Struct, frozen=True, array_like=True):
    """The answers of the first executions, in their order; all rows are ``values``."""

    answers: list[Executed]


class ExecuteMany(Message[ExecutedMany], frozen=True, array_like=True):
    """Run a plan once for each set of parameters, with pruning.

    Attributes:
        plan: Its id.
        params: For each execution the values of the parameters, in order.
    """

    plan: str
    params: list[list[Any]]


class ChangedMany(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of the first changes, in their order.

    Attributes:
        rows: For each of them the rows changed; it is acknowledged.
        unconfirmed: So many changes behind these were made, but not confirmed by all copies.
    """

    rows: list[int]
    unconfirmed: int = 0


class ChangeMany(Message[ChangedMany], frozen=True, array_like=True):
    """Carry out changes of one row each, one after the other; each is visible at once.

    Attributes:
        plan: The id of the plan of their query.
        params: For each change the values of the parameters, in order.
        operation: As in :class:`~secateur.protocol.changes.ChangeOnePartition`.
        change_id: The id of the change number ``n``, from 0 on, is :meth:`id_of` that number; under an id that was used
            before nothing is changed again.
    """

    plan: str
    params: list[list[Any]]
    operation: str
    change_id: str

    def id_of(self, number: int) -> str:
        """The id of one of the changes."""
        return f"{self.change_id}.{number}"


class WriteMany(Message[ChangedMany], frozen=True, array_like=True):
    """Write rows of several partitions of one table; those of each partition are visible at once.

    Attributes:
        table_id: The table.
        mode: As in :class:`~secateur.protocol.changes.WriteRows`.
        change_id: As in :class:`ChangeMany`, of the writes by their numbers.
        writes: The partition of each, and its rows as the payload of a ``WriteRows`` has them.
    """

    table_id: int
    mode: str
    change_id: str
    writes: list[tuple[int, bytes]]

    def id_of(self, number: int) -> str:
        """The id of one of the writes."""
        return f"{self.change_id}.{number}"

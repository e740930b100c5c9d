"""Reads, and what a rung of the client's ladder is: one of the ways in which a client has a SELECT answered.

Each rung is a file, and a function that returns None where the next rung is to be asked:

* :mod:`~secateur.client.execution.serving_calls`: a known plan, compiled into one function;
* :mod:`~secateur.client.execution.no_rows`: no partition can match, mode *none*;
* :mod:`~secateur.client.execution.scatter`: a few owners are asked once each, mode *scatter*;
* :mod:`~secateur.client.execution.member_reads`: one member has all that is read, mode *local*, or coordinates the
  others, mode *distributed*.

:func:`~secateur.client.execution.select.run_select` chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple, TypeAlias

import msgspec

from secateur.client.dbapi.rows import Rows
from secateur.client.dbapi.stats import QueryStats, UnreadStats
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.routing import StatementRoute
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.metrics import RunProfile
from secateur.protocol.query_parts import NarrowedScans
from secateur.protocol.statements import SelectStatement

Served: TypeAlias = tuple[Rows, QueryStats | UnreadStats]
"""The rows of an execution, and what it has cost."""


class RunOptions(Enum):
    """The options of one run of a query."""

    ROWS = auto()
    """All rows at once."""
    ROWS_IN_PARTS = auto()
    """The rows; those beyond the first few megabytes may come later, as they are read.

    Until the first of them are here the run may be repeated, and never
    afterwards."""
    PROFILE = auto()
    """The profile of the run, without its rows."""
    ROWS_AND_PROFILE = auto()
    """Both, as for the query of an ``INSERT ... SELECT`` that is profiled."""

    @property
    def is_profiled(self) -> bool:
        """Whether a member measures the run: then no client answers it by itself."""
        return self is RunOptions.PROFILE or self is RunOptions.ROWS_AND_PROFILE


class PlacedRead(msgspec.Struct, frozen=True):
    """One attempt at a query, placed.

    Attributes:
        call: The call.
        params: The parameters of the plan.
        pruning: Whether partitions that cannot match are left out.
        wanted: The options of the run.
        topology: The owners.
        route: Where its partitions are.
    """

    call: StatementCall[SelectStatement]
    params: Sequence[Any]
    pruning: bool
    wanted: RunOptions
    topology: Topology
    route: StatementRoute

    def member(self) -> str:
        """The member to ask, of those that can be asked the one whose turn it is."""
        members = self.route.members
        return members[self.call.session.turn() % len(members)] if len(members) > 1 else members[0]


class SelectResult(NamedTuple):
    """What a rung has found.

    Attributes:
        rows: The rows; none of them for a run that is profiled without.
        cost: Members, partitions and rows that the run touched.
        profile: The profile of the run, if it was requested.
        narrowed: The effect of values found in steps, for a run that is profiled.
    """

    rows: Rows
    cost: QueryStats | UnreadStats
    profile: RunProfile | None = None
    narrowed: NarrowedScans | None = None

    @property
    def stats(self) -> QueryStats:
        """The cost, read."""
        return self.cost if isinstance(self.cost, QueryStats) else self.cost.read()

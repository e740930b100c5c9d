"""Executions of one plan that go to their members together: one frame to each member for many of them.

A member answers the first executions of a frame, as many as it can at once; those left over are executed one by one, or
go into another frame. What one execution is does not change by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from secateur.client.execution.routing import ExecutionMode, choose_route
from secateur.client.session import Session
from secateur.protocol.statements import SelectStatement

P = TypeVar("P")
R = TypeVar("R")

_SETS_PER_FRAME: Final = 256
"""A member answers so many in some ten milliseconds."""


class MemberBatch(msgspec.Struct, Generic[P], frozen=True):
    """Executions for one member.

    Attributes:
        member: The member.
        positions: The name that the caller has for each, in order.
        params: For each the parameters of the plan.
        alone: How many are executed one by one where an answer ends; doubles with each frame without an answer.
    """

    member: str
    positions: list[P]
    params: list[list[Any]]
    alone: int = 1

    def add(self, position: P, params: Sequence[Any]) -> None:
        """Add an execution."""
        self.positions.append(position)
        self.params.append(list(params))

    @property
    def is_full(self) -> bool:
        """Whether there are as many as one frame takes."""
        return len(self.positions) >= _SETS_PER_FRAME

    def behind(self, answered: int, until: int) -> MemberBatch[P]:
        """The executions from ``until`` on, after those before were answered in the frame or executed one by one."""
        alone = 1 if answered else 2 * self.alone
        return MemberBatch(self.member, self.positions[until:], self.params[until:], alone)


def only_member(session: Session, statement: SelectStatement, params: Sequence[Any]) -> str | None:
    """A member that has all that an execution reads; None where several have it together, and where nothing is read.

    Raises:
        UnknownRangesError, UnknownOwnersError: As :meth:`~secateur.client.session.Session.when_known` expects them.
    """
    topology = session.topology
    route = choose_route(statement, params, topology, pruning=True)
    if route.execution_mode is not ExecutionMode.LOCAL or not route.members:
        return None
    topology.check_live(route.members)
    return route.members[session.turn() % len(route.members)]

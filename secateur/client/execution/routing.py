"""Routes a statement to a member in one of the execution modes, from its partition trees and the known owners.

Only an owner coordinates a distributed statement: otherwise a member without data would take part in every statement of
its clients (Hazelcast issue 24813).

Source: Apache Ignite IEP-24, "Thin Clients": the client evaluates the partition tree and goes straight to the owning
node.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

import msgspec

from secateur.partitioning.pruning.operand import not_quick
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.statements import RoutedScan, SelectStatement


class ExecutionMode(StrEnum):
    """The part of the cluster that a statement needs, as EXPLAIN and results name it."""

    NONE = "none"
    """The client answers: no partition can match, or no table is read."""
    LOCAL = "local"
    """One member has everything."""
    SCATTER = "scatter"
    """A few partitions are on several members: the client, or one of them, asked each once and combined their rows."""
    DISTRIBUTED = "distributed"
    """Several members have something; one of them coordinates a job."""

    def __repr__(self) -> str:
        return repr(self.value)


class StatementRoute(msgspec.Struct, frozen=True):
    """The route of a statement.

    Attributes:
        execution_mode: How much of the cluster it needs, as far as this client knows.
        members: Any of these may be asked; none for :attr:`ExecutionMode.NONE`.
        partitions: The partitions of the only scan of a distributed statement; None for every other one.
    """

    execution_mode: ExecutionMode
    members: tuple[str, ...]
    partitions: Sequence[int] | None = None


_NOWHERE: Final = StatementRoute(ExecutionMode.NONE, ())


def choose_route(
    statement: SelectStatement,
    params: Sequence[Any],
    topology: Topology,
    *,
    pruning: bool,
) -> StatementRoute:
    """Evaluate the partition trees and find the owners.

    Args:
        statement: The statement.
        params: Its parameters in order, plain.
        topology: The owners.
        pruning: Whether to leave out partitions that cannot match.

    Raises:
        TopologyChangedError: The topology does not know a table of the statement: one of them is out of date.

    Cost: 4 microseconds for one scan with one key.
    """
    if not statement.scans:
        return StatementRoute(ExecutionMode.LOCAL, topology.member_ids) if statement.empty is None else _NOWHERE
    owners: set[str] = set()
    empty = True
    last: Sequence[int] = ()
    for scan in statement.scans:
        last = partitions_of(scan, params) if pruning else scan.tree.live_ids()
        if len(last):
            empty = False
            if not scan.replicated:
                owners |= topology.ownership(scan.group).owners_of(last)
    if empty:
        # Without a stored answer, any member can compute the answer over no rows.
        return (
            _NOWHERE
            if statement.empty is not None
            else StatementRoute(ExecutionMode.LOCAL, _any_owners(statement.scans, topology))
        )
    if not owners:
        return StatementRoute(ExecutionMode.LOCAL, topology.member_ids)
    if len(owners) == 1:
        return StatementRoute(ExecutionMode.LOCAL, tuple(owners))
    return StatementRoute(ExecutionMode.DISTRIBUTED, tuple(sorted(owners)), last if len(statement.scans) == 1 else None)


def partitions_of(scan: RoutedScan, params: Sequence[Any]) -> Sequence[int]:
    """The partitions that a scan needs for these parameters.

    Members compute expressions of parameters in any case. A client that has the same DuckDB does so as well, to ask the
    owners at once; any other asks a member that may have to ask them.

    Raises:
        ParameterError: There are fewer parameters than the statement has.
    """
    tree = scan.tree
    return tree.bind(_with_values(scan, params) if tree.expressions else params).ids


def _with_values(scan: RoutedScan, params: Sequence[Any]) -> Sequence[Any]:
    if not not_quick(scan.tree.expressions, params):
        return params
    try:
        from secateur.duckdb_expressions import VERSION, complete  # takes 60 ms to load, with DuckDB
    except ImportError:
        return params
    return complete(params, scan.tree.expressions) if scan.duckdb == VERSION else params


def choose_coordinator(
    statement: SelectStatement, first: Sequence[RoutedScan], params: Sequence[Any], topology: Topology
) -> StatementRoute:
    """Choose the members that may coordinate a statement in steps: the owners of what its first step reads.

    A statement reads that in any case. Where its first step reads nothing, or only replicated tables, any owner of what
    the whole statement reads may coordinate it.

    Args:
        statement: The statement.
        first: The scans of its first step.
        params: As for :func:`choose_route`.
        topology: The owners.

    Raises:
        TopologyChangedError: As :func:`choose_route`.
    """
    owners: set[str] = set()
    for scan in first:
        ids = partitions_of(scan, params)
        if len(ids) and not scan.replicated:
            owners |= topology.ownership(scan.group).owners_of(ids)
    if owners:
        return StatementRoute(ExecutionMode.DISTRIBUTED, tuple(sorted(owners)))
    return choose_route(statement, params, topology, pruning=True)


def _any_owners(scans: Sequence[RoutedScan], topology: Topology) -> tuple[str, ...]:
    owners = {member for scan in scans if not scan.replicated for member in topology.ownership(scan.group).members}
    return tuple(member for member in topology.member_ids if member in owners) or topology.member_ids


P = TypeVar("P")
R = TypeVar("R")

_SETS_PER_FRAME: Final = 256
"""A member answers so many in some ten milliseconds."""


class MemberBatch(msgspec.Struct, Generic[P], frozen=True):
    """Executions for one member.

    A member answers the first executions of a frame, as many as it can at once; those left over are executed one by
    one, or go into another frame. What one execution is does not change by that.

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

"""Routes: how rows travel from one step of a pipeline to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from secateur.dag.edge import Edge

Route = Callable[[Edge], Edge]
"""Configures an edge that is local and unicast so far."""
FIRST: Final = -1
"""The priority of an edge that is drained before the others."""


def is_local(edge: Edge) -> Edge:
    """The route of rows that stay where they are."""
    return edge


def to_one(edge: Edge) -> Edge:
    """All rows to one processor of the job."""
    return edge.all_to_one().distributed()


def anywhere(edge: Edge) -> Edge:
    """The rows by turns to the processors of all members."""
    return edge.distributed()


def to_all_first(edge: Edge) -> Edge:
    """All rows to every processor, before those of the other edges."""
    return edge.broadcast().distributed().with_priority(FIRST)


def to_owners(table: str) -> Route:
    """A route to the owners of the partitions of a table."""
    return lambda edge: edge.partitioned(table=table).distributed()


def by_key(columns: Sequence[str], priority: int = 0) -> Route:
    """A route to the owner of the key's partition."""
    return lambda edge: edge.partitioned(*columns).distributed().with_priority(priority)

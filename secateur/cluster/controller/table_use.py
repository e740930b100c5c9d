"""Asks all members something about a table while none of them lets a write to it in: whether it was ever used.

A table that was created for rows is to go again if these do not come, unless somebody else has begun to use it. A write
of one partition goes to its owner, past the controller, so the members are asked; and so that none comes in between the
answer and the drop, each closes its latch for writes first, as for a change of several partitions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from secateur.cluster.controller.cluster_state import ClusterState, answers_of
from secateur.cluster.write_latch import renewed
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.changes import AbortStagedLoad, CloseForChange, HoldLoad, TwoPhaseKind


@asynccontextmanager
async def closed(state: ClusterState, table: TableDef) -> AsyncIterator[bool]:
    """While open, no member lets a write to a table in; yields whether there never was one, and no load has rows of it.

    Costs one round trip to all members at once, and another at the end. To be called while no load of the table is
    published.

    Raises:
        Error: A member could not be asked.
    """
    members, holder = state.topology.member_ids, uuid4().hex
    async with renewed(state, members, HoldLoad(holder, TwoPhaseKind.LOAD)):
        try:
            # All are waited for: one that was still to come would close a latch that was opened before.
            closing = CloseForChange(holder, table.table_id)
            uses = answers_of(await state.call_all(lambda _: closing, members))
            yield all(use.is_unused for use in uses)
        finally:
            await state.call_all(lambda _: AbortStagedLoad(holder), members)


@asynccontextmanager
async def closed_if_unused(state: ClusterState, table: TableDef) -> AsyncIterator[bool]:
    """While open, no member lets a write to a table in; yields whether there never was one, and none waits at a member.

    To be called while no load of the table is published, and the catalog does not change.

    Raises:
        Error: A member could not be asked.
    """
    if _is_referred_to(state, table) or _has_lost_owners(state, table):
        yield False
        return
    async with closed(state, table) as is_unused:
        yield is_unused


def _is_referred_to(state: ClusterState, table: TableDef) -> bool:
    """Whether there is an index or a view of the table."""
    name = table.name.casefold()
    views = state.catalog.views.values()
    return bool(table.indexes) or any(read.table.casefold() == name for view in views for read in view.reads)


def _has_lost_owners(state: ClusterState, table: TableDef) -> bool:
    """Whether partitions may have rows that no member of now knows of."""
    if table.replicated:
        return False
    live = table.scheme.live_partitions().tolist()
    owners = state.topology.ownership(table.scheme.affinity_group()).owners_of(live) if live else ()
    return not set(owners) <= set(state.topology.member_ids)

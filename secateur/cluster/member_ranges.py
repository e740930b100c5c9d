"""ALTER TABLE on one member: the two phases that :mod:`secateur.cluster.range_change` runs.

Where ranges are cut out of the catch-all, rows of them may be in it, and may be on their way into it. So the writes of the table wait from the check until the
member has taken the new ranges over; other changes stop nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from secateur.cluster.write_gate import WriteGate
from secateur.errors import SchemeError
from secateur.partitioning.table import TableDef
from secateur.storage.member_store import MemberStore
from secateur.storage.snapshot import PartitionSnapshot
from secateur.wire import Reply, Request, unpack

__all__ = ["MemberRanges", "check_catch_all", "cuts_catch_all"]


@dataclass(frozen=True, slots=True)
class _Change:
    table: TableDef
    partitions: tuple[int, ...]
    gate: WriteGate | None


class MemberRanges:
    """Answers ``alter_*`` requests. Lives on the member's event loop.

    Args:
        store: The partitions of this member.
        gate: Finds the gate of a table's writes by the table's id.
        executor: Threads for reading the catch-all.
        adopt: Called with the table once its ranges have changed.
    """

    def __init__(self, store: MemberStore, gate: Callable[[int], WriteGate], executor: Executor, adopt: Callable[[TableDef], None]) -> None:
        self._store = store
        self._gate = gate
        self._executor = executor
        self._adopt = adopt
        self._prepared: dict[int, _Change] = {}

    async def prepare(self, request: Request) -> Reply:
        """First phase.

        Raises:
            SchemeError: The catch-all has rows of a range that is to be added.
            UnknownTableError: The table is not here.
        """
        table = await asyncio.get_running_loop().run_in_executor(self._executor, _read, request.payload)
        partitions = tuple(request.args["partitions"])
        gate = self._gate(table.table_id) if cuts_catch_all(self._store.table(table.table_id), table) else None
        self._prepared[table.table_id] = _Change(table, partitions, gate)
        if gate is not None:
            await gate.close(_holder(table))
            rest = {number: self._store.partition(table.table_id, number).snapshot() for number in partitions if table.scheme.is_catch_all(number)}
            await asyncio.get_running_loop().run_in_executor(self._executor, check_catch_all, table, rest)
        return Reply()

    async def commit(self, request: Request) -> Reply:
        """Second phase: take the new ranges over."""
        change = self._prepared.get(request.args["table_id"])
        if change is not None and change.table.version == request.args["version"]:
            self._store.alter_table(change.table, change.partitions)
            self._adopt(change.table)
            await self._end(change.table.table_id)
        return Reply()

    async def abort(self, request: Request) -> Reply:
        """Forget a preparation; nothing happens when there is none."""
        await self._end(request.args["table_id"])
        return Reply()

    async def _end(self, table_id: int) -> None:
        change = self._prepared.pop(table_id, None)
        if change is not None and change.gate is not None:
            change.gate.open(_holder(change.table))


def _read(payload: bytes | memoryview) -> TableDef:
    """The table, resolved: with many ranges that takes its time, which the event loop does not have."""
    table = TableDef.from_wire(unpack(payload))
    table.scheme.resolve()
    return table


def _holder(table: TableDef) -> str:
    """By what name a change holds the gate."""
    return f"ranges of version {table.version}"


def cuts_catch_all(before: TableDef, after: TableDef) -> bool:
    """Whether ranges are added that take keys from a catch-all which stays."""
    old, new = before.scheme.range, after.scheme.range
    if old is None or new is None or old.catch_all is None or new.catch_all is None or old.catch_all.ordinal != new.catch_all.ordinal:
        return False
    return new.ordinals_used > old.ordinals_used


def check_catch_all(table: TableDef, rest: Mapping[int, PartitionSnapshot]) -> None:
    """Refuse ranges whose rows the catch-all has. Costs the partition function of its rows."""
    found = sum(int(np.count_nonzero(table.scheme.partitions_of(snapshot.table) != number)) for number, snapshot in rest.items())
    if found:
        raise SchemeError(
            f"table {table.name}: the DEFAULT PARTITION has {found} row{'s' if found > 1 else ''} of the ranges to be added, and rows do not move by "
            "themselves: nothing was changed. Read these rows, DELETE them, add the ranges, and load them again",
            table=table.name,
            rows=found,
        )

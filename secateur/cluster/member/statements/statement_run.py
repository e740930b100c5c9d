"""Describes one run of a statement at a member, beside its rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa
from msgspec import structs

from secateur.engine.sql.select_plan import PinnedScan, SelectPlan
from secateur.errors import DataChangedError, DataError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.query import Executed
from secateur.wire import Reply, ShortTable, encode_table


class StatementRun(msgspec.Struct, frozen=True):
    """The parts of an answer that describe the run, beside its rows."""

    plan: SelectPlan
    partitions: list[Sequence[int]]
    topology: Topology
    execution: str
    published: tuple[tuple[int, int], ...] = ()
    statistics_version: int = 0

    def executed(
        self, members: list[str] | None = None, rows: int = 0, values: Sequence[list[Any]] | None = None
    ) -> Executed:
        """The answer; without ``members``, this member alone worked for it."""
        read, total, execution = 0, 0, self.execution
        for ids, scan in zip(self.partitions, self.plan.scans, strict=True):
            read += len(ids)
            total += scan.tree.total
        if self.plan.reads_fetched_rows:
            fetched = [scan.fetched for scan in self.plan.scans if isinstance(scan, PinnedScan)]
            # Such a scan has counted as one partition, like that of a replicated table.
            read += sum(rows.partitions_read - 1 for rows in fetched)
            total += sum(rows.partitions_total - 1 for rows in fetched)
            readers = {member for rows in fetched for member in rows.members}
            if readers:
                members = sorted({*readers, *(members or ())})
            execution = "distributed" if len(readers) > 1 else execution
        version = self.topology.version
        published, statistics = self.published, self.statistics_version
        return Executed(execution, read, total, version, rows, values, members, False, published, (), statistics)

    def reply(self, result: pa.Table | ShortTable, members: list[str] | None = None) -> Reply[Executed]:
        """A whole answer."""
        if isinstance(result, ShortTable):
            return Reply(self.executed(members, result.num_rows, result.columns))
        return Reply(self.executed(members, result.num_rows), encode_table(result))


T = TypeVar("T")

_LOAD_WAIT_S: Final = 10.0
_LOAD_PAUSE_S: Final = 0.002


async def in_some_form(plan: SelectPlan, run: Callable[[SelectPlan], Awaitable[T]]) -> T:
    """Run the stages of a plan.

    If an error in the data need not be one of the statement, run other stages, in which it would be.
    """
    try:
        return await while_loads_end(lambda: run(plan))
    except DataError:
        if not plan.gathered:
            raise
        return await while_loads_end(lambda: run(structs.replace(plan, stages=plan.gathered, gathered=())))


async def while_loads_end(run: Callable[[], Awaitable[T]]) -> T:
    """Run, and run again while a load is published on some of the members, for about a round trip."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _LOAD_WAIT_S
    while True:
        try:
            return await run()
        except DataChangedError:
            if loop.time() > deadline_s:
                raise
            await asyncio.sleep(_LOAD_PAUSE_S)

"""Reads, and what a rung of the ladder is: one of the ways in which a member runs a read.

A read is one execution of a query whose partitions and owners are known. Each rung is a file:

* :mod:`~secateur.cluster.member.statements.local_reads`: this member has all partitions, mode *local*;
* :mod:`~secateur.cluster.member.statements.scattered_statements`: a few owners are asked once each, mode *scatter*;
* :mod:`~secateur.cluster.member.statements.distributed_statements`: a job over members, mode *distributed*.

Before a read is made, :mod:`~secateur.cluster.member.statements.serving_programs` may have answered the execution.
:class:`~secateur.cluster.member.statements.statements.StatementRunner` chooses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from secateur.cluster.member.admission.statement_admission import StatementAdmission
from secateur.engine.sql.row_stream import RowStream
from secateur.engine.sql.select_plan import PinnedScan, SelectPlan
from secateur.errors import DataChangedError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.metrics import StageWork
from secateur.protocol.query import Execute, Executed
from secateur.wire import PeerInfo, Reply, ShortTable, encode_table

T = TypeVar("T")

Waiting: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
Acknowledgements: TypeAlias = Callable[[Iterable[tuple[int, int]]], Waiting | None]
"""Gives what waits until the changes that readers of some partitions see now are acknowledged; None if they are."""

_LOAD_WAIT_S: Final = 10.0
_LOAD_PAUSE_S: Final = 0.002


class Read(msgspec.Struct, frozen=True):
    """One execution of a query, placed.

    Attributes:
        plan: The query.
        asked: The execution, with the values of the plan's expressions among its parameters.
        peer: The reader.
        partitions: For each scan, the partitions to read.
        topology: Their owners.
        is_here: Whether this member has all of them.
        statistics_version: The newest version of the statistics, for a plan that depends on them; else 0.
        is_profiled: Whether the run is measured: then no rung answers at once.
    """

    plan: SelectPlan
    asked: Execute
    peer: PeerInfo
    partitions: list[Sequence[int]]
    topology: Topology
    is_here: bool
    statistics_version: int
    is_profiled: bool

    def executed(self, found: Found, rows: int = 0, values: Sequence[list[Any]] | None = None) -> Executed:
        """The answer, with so many rows."""
        read, total, execution, members = 0, 0, found.execution, found.members
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
        version, statistics = self.topology.version, self.statistics_version
        return Executed(execution, read, total, version, rows, values, members, False, found.published, (), statistics)

    def reply(self, found: Found) -> Reply[Executed]:
        """The answer, with all of its rows, which are no stream."""
        rows = found.rows
        if isinstance(rows, ShortTable):
            return Reply(self.executed(found, rows.num_rows, rows.columns))
        assert isinstance(rows, pa.Table)
        return Reply(self.executed(found, rows.num_rows), encode_table(rows))


class Found(NamedTuple):
    """What a rung has found.

    Attributes:
        rows: The rows; a stream of them where the reader has said how much it has room for.
        execution: The mode: ``"local"``, ``"scatter"`` or ``"distributed"``.
        members: The members that took part; None for this one alone.
        published: As in :class:`~secateur.protocol.query.Executed`.
        work: The work of each member, once the rows are taken: from how many these are, and how many bytes.
    """

    rows: pa.Table | ShortTable | RowStream
    execution: str
    members: list[str] | None = None
    published: tuple[tuple[int, int], ...] = ()
    work: Callable[[int, int], Awaitable[Sequence[StageWork]]] | None = None


Deliver: TypeAlias = Callable[[Found], Awaitable[Reply[Any]]]
"""Makes the answer of what was found, while errors in the rows may still lead to another form of the query."""


class Taken(NamedTuple):
    """A read that a rung has taken.

    Attributes:
        admission: Where it waits for its turn, if it is a client's.
        run: Runs it; None if it is left to the next rung.
    """

    admission: StatementAdmission
    run: Callable[[Deliver], Awaitable[Reply[Any] | None]]


class Rung(Protocol):
    """One way to run reads."""

    def take(self, read: Read) -> Reply[Executed] | Taken | None:
        """Take a read, if it is one for this rung.

        Returns:
            The answer, if it could be given in this turn of the event loop; None where the next rung is to be asked.
        """
        ...


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


async def after(waiting: Waiting, answering: Reply[T] | Coroutine[Any, Any, Reply[T]]) -> Reply[T]:
    """An answer of rows that are read already, once the changes in them are acknowledged."""
    try:
        await waiting()
    except BaseException:
        if not isinstance(answering, Reply):
            answering.close()
        raise
    return answering if isinstance(answering, Reply) else await answering


def partitions_read(plan: SelectPlan, partitions: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """The partitions of members that a statement reads, by table and number."""
    for scan, ids in zip(plan.scans, partitions, strict=True):
        if not scan.is_fetched:
            for partition in (0,) if scan.replicated else ids:
                yield scan.table_id, partition

"""A query whose rows are read in pieces by many processes, all of them rows of one moment.

One process opens the snapshot (:func:`open_snapshot`): it prunes, and has every owner of a required partition keep the
rows. What it gets is a plain value. Any process with a session of its own reads pieces of it
(:class:`SnapshotReader`), in any order and repeatedly. It goes on elsewhere when a member is lost or has dropped the
snapshot, as long as the table is the same there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from secateur.client.dbapi.parameters import Parameters, plain_values, values_of
from secateur.client.execution.execute import StatementCall, StatementExecution, execute, planned
from secateur.client.execution.no_rows import check_nothing_new
from secateur.client.execution.retry_policy import MOVED
from secateur.client.execution.routing import partitions_of
from secateur.client.session import Prepared, Session
from secateur.errors import (
    DataChangedError,
    Error,
    ProgrammingError,
    TopologyChangedError,
)
from secateur.protocol import snapshots
from secateur.protocol.hello import Pruning
from secateur.protocol.query import Execute
from secateur.protocol.statements import SelectStatement
from secateur.wire import Answer, decode_table, decode_tables, encode_table

_FIRST_WORD: Final = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)
_WORDS_OF_QUERIES: Final = frozenset({"FROM", "PIVOT", "SELECT", "TABLE", "UNPIVOT", "VALUES", "WITH"})
_LOAD_WAIT_S: Final = 10.0
_LOAD_PAUSE_S: Final = 0.002
"""Members that are asked at the same time, so that few loads are published between the first and the last."""


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A partition of a snapshot.

    Attributes:
        member: The member that had it when the snapshot was opened.
        partition: Its number.
        published: The number of the last load of the table that is in its rows.
        version: The number of its last change.
        rows: Rows that the query looks at.
        nbytes: About as many bytes do their columns take.
    """

    member: str
    partition: int
    published: int
    version: int
    rows: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows of a query at one moment. A value that may be pickled; it holds nothing open by itself.

    Attributes:
        name: Its name at the members.
        sql: The query.
        params: Its parameters, plain.
        statement: Its plan.
        execution: How it is executed; the parameters are complete.
        parts: The partitions that have rows.
        taken_s: When it was opened, in seconds since 1970.
        lease_s: Seconds without a read after which members drop it.
        answer: All its rows, as an Arrow IPC stream, if they were so few that the member answered at once; then no
            member keeps it.
    """

    name: str
    sql: str
    params: list[Any] | dict[str, Any]
    statement: SelectStatement
    execution: Execute
    parts: tuple[SnapshotPart, ...]
    taken_s: float
    lease_s: float
    answer: bytes | None = None

    @property
    def members(self) -> tuple[str, ...]:
        """The members that keep rows of it."""
        return tuple(dict.fromkeys(part.member for part in self.parts))

    def only(self, parts: Sequence[SnapshotPart]) -> Snapshot:
        """The same snapshot for a reader of some of its parts."""
        return replace(self, parts=tuple(parts))


def prepared_query(session: Session, sql: str, params: Parameters) -> StatementCall[SelectStatement]:
    """Have a query planned.

    Raises:
        ProgrammingError: The statement is no query.
        Error: The planner refuses it.
    """
    first = _FIRST_WORD.match(sql)
    if first is None or first[1].upper() not in _WORDS_OF_QUERIES:  # the controller carries DDL out as it plans
        raise _no_query(sql)
    call = planned(session, sql, plain_values(params))
    return call.of(_query(call.statement, sql))


def open_snapshot(call: StatementCall[SelectStatement], *, lease_s: float, answer_bytes: int = 0) -> Snapshot | None:
    """Open a snapshot of the rows that a query reads, at the members that own required partitions and no others.

    All members have published the same loads, as for any statement; changes of single partitions after each other may
    be in the snapshot of one member and not yet in that of another. Only acknowledged changes are.

    Args:
        call: From :func:`prepared_query`.
        lease_s: Seconds without a read after which the members drop it; at most an hour.
        answer_bytes: If one member owns all required partitions, and the columns that the query reads of them take no
            more bytes than this, the snapshot has the ``answer``.

    Returns:
        The snapshot; None for a query that cannot be answered piece by piece, because it reads several tables, or
        groups, sorts or limits rows.

    Raises:
        Error: Members could not be reached, or the cluster changed, for longer than 10 s.

    Cost: one round trip to each of these members, at once.
    """
    return execute(_Opening(call, lease_s, answer_bytes))


def close_snapshot(session: Session, snapshot: Snapshot) -> None:
    """Have the members drop a snapshot now. Those that cannot be reached drop it later by themselves."""
    for member in snapshot.members:
        try:
            session.ask_member(member, snapshots.CloseSnapshot(snapshot.name))
        except Error:  # its lease ends
            continue


class SnapshotReader:
    """Reads pieces of a snapshot over a session. For one thread at a time.

    Args:
        session: The session.
        snapshot: The snapshot, with at least the parts that are read.
    """

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._session = session
        self._snapshot = snapshot
        self._members = {part.partition: part.member for part in snapshot.parts}

    def read(self, pieces: Sequence[snapshots.SnapshotPiece]) -> pa.Table:
        """The rows of the query in some pieces. One round trip for each member that has some.

        Raises:
            DataChangedError: A member has dropped the snapshot or was lost, and the table has changed since.
            Error: The query fails over these rows, or no member that has them could be reached for 10 s.
        """
        by_member: dict[str, list[snapshots.SnapshotPiece]] = {}
        for piece in pieces:
            by_member.setdefault(self._members[piece.partition], []).append(piece)
        tables = [table for member, asked in by_member.items() for table in self._read(member, asked)]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def _read(self, member: str, pieces: list[snapshots.SnapshotPiece]) -> list[pa.Table]:
        table = self._ask(member, pieces)
        if table is not None:
            return [table]
        by_partition: dict[int, list[snapshots.SnapshotPiece]] = {}
        for piece in pieces:
            by_partition.setdefault(piece.partition, []).append(piece)
        return [self._found(partition, some) for partition, some in by_partition.items()]

    def _found(self, partition: int, pieces: list[snapshots.SnapshotPiece]) -> pa.Table:
        """Pieces of a partition that is not where it was: another reader may have opened it again somewhere."""
        for member in self._session.refresh_topology().member_ids:
            table = self._ask(member, pieces)
            if table is not None:
                self._members[partition] = member
                return table
        (part,) = [part for part in self._snapshot.parts if part.partition == partition]
        member, table = execute(_OpeningAgain(self._session, self._snapshot, part, pieces))
        self._members[partition] = member
        return table

    def _ask(self, member: str, pieces: list[snapshots.SnapshotPiece]) -> pa.Table | None:
        """Pieces of a member; None if it does not have them."""
        try:
            answer = self._session.ask_member(member, snapshots.ReadSnapshot(self._snapshot.name, pieces))
        except MOVED:
            return None
        return decode_tables(answer.parts) if answer.message.is_open else None


class _SnapshotExecution(StatementExecution[SelectStatement, Any]):
    """A query of which rows are pinned; it changes nothing."""

    def of_this_kind(self, prepared: Prepared, because: Error) -> SelectStatement:
        return _query(prepared, self.call.sql)

    def given_up(self, error: Error) -> Error:
        error.safe_to_retry()
        return error

    def _owners(self, partitions: Sequence[int]) -> Mapping[str, Sequence[int]]:
        """The members to ask for some partitions of the table; for a replicated one, all members in turns."""
        (scan,) = self.call.statement.scans
        topology = self.session.topology
        if not scan.replicated:
            members: Mapping[str, Sequence[int]] = topology.primaries(scan.group, partitions)
        elif len(partitions):
            topology.check_any()
            members = {topology.member_ids[self.session.turn() % len(topology.member_ids)]: partitions}
        else:
            members = {}
        topology.check_live(members)
        return members

    def _open(
        self,
        name: str,
        execution: Execute,
        members: Mapping[str, Sequence[int]],
        lease_s: float,
        answer_bytes: int = 0,
    ) -> dict[str, Answer[snapshots.SnapshotOpened]]:
        """Pin partitions at their owners."""
        asked = [
            (member, snapshots.OpenSnapshot(name, execution, list(partitions), lease_s, answer_bytes))
            for member, partitions in members.items()
        ]
        return dict(zip(members, self.session.ask_members(asked), strict=True))


class _Opening(_SnapshotExecution):
    """Opens a snapshot."""

    def __init__(self, call: StatementCall[SelectStatement], lease_s: float, answer_bytes: int) -> None:
        super().__init__(call)
        self._lease_s = lease_s
        self._answer_bytes = answer_bytes

    def attempt(self) -> Snapshot | None:
        statement, session, call = self.call.statement, self.session, self.call
        if len(statement.scans) != 1:
            return None
        (scan,) = statement.scans
        pruning = session.pruning is not Pruning.OFF
        params = values_of(statement, call.params, call.started)
        partitions = partitions_of(scan, params) if pruning else scan.tree.live_ids()
        members = self._owners([0] if scan.replicated and len(partitions) else partitions)
        if not members:
            check_nothing_new(session, statement)
            # Over no rows, other queries than those that are answered row by row may have a row, as count(*) does.
            if statement.empty is None or decode_table(statement.empty, ranges=False).num_rows:
                return None
        execution = Execute(statement.plan_id, list(params), pruning)
        name, opened = self._open_alike(execution, members)
        if not all(answer.message.is_row_by_row for answer in opened.values()):
            return None
        parts = tuple(
            SnapshotPart(member, part.partition, part.published, part.version, part.rows, part.bytes)
            for member, answer in opened.items()
            for part in answer.message.partitions
        )
        rows = [part for answer in opened.values() if answer.message.is_answered for part in answer.parts]
        complete = bytes(encode_table(decode_tables(rows)) if len(rows) > 1 else rows[0]) if rows else None
        return Snapshot(name, call.sql, call.params, statement, execution, parts, time.time(), self._lease_s, complete)

    def _open_alike(
        self, execution: Execute, members: Mapping[str, Sequence[int]]
    ) -> tuple[str, dict[str, Answer[snapshots.SnapshotOpened]]]:
        """Open at all members between the same two publications."""
        end_s = time.monotonic() + _LOAD_WAIT_S
        answer_bytes = self._answer_bytes if len(members) == 1 else 0  # of several, all may have to keep their rows
        while True:
            name = uuid4().hex
            opened = self._open(name, execution, members, self._lease_s, answer_bytes)
            if len({answer.message.published for answer in opened.values()}) <= 1:
                return name, opened
            for member in members:
                self.session.ask_member(member, snapshots.CloseSnapshot(name))
            if time.monotonic() >= end_s:
                raise DataChangedError(
                    "loads are published so often that no moment was found between two of them:"
                    f" {self.call.sql!r} was tried for {_LOAD_WAIT_S:g} s; try again later"
                )
            self.session.sleep(_LOAD_PAUSE_S)


class _OpeningAgain(_SnapshotExecution):
    """Opens a partition of a snapshot again where it is now, if it is the same there, and reads pieces of it."""

    def __init__(
        self, session: Session, snapshot: Snapshot, part: SnapshotPart, pieces: Sequence[snapshots.SnapshotPiece]
    ) -> None:
        now_s = time.time()
        super().__init__(
            StatementCall(session, snapshot.sql, snapshot.params, snapshot.statement, True, time.perf_counter(), now_s)
        )
        self._snapshot = snapshot
        self._part = part
        self._pieces = pieces

    def attempt(self) -> tuple[str, pa.Table]:
        (scan,) = self.call.statement.scans
        snapshot = self._snapshot
        ((member, partitions),) = self._owners([self._part.partition]).items()
        execution = Execute(self.call.statement.plan_id, snapshot.execution.params, snapshot.execution.pruning)
        opened = self._open(snapshot.name, execution, {member: partitions}, snapshot.lease_s)[member]
        if not any(_is_same(self._part, found) for found in opened.message.partitions):
            raise DataChangedError(
                f"{scan.table} has changed since {time.strftime('%H:%M:%S', time.gmtime(snapshot.taken_s))} UTC, when"
                " this snapshot of it was opened, and a member that kept the rows of then was lost, or has dropped"
                f" them because nobody had read them for {snapshot.lease_s:g} s: read the table again",
                table=scan.table,
            )
        answer = self.session.ask_member(member, snapshots.ReadSnapshot(snapshot.name, list(self._pieces)))
        if not answer.message.is_open:
            raise TopologyChangedError(f"member {member} has dropped a snapshot as soon as it was opened")
        return member, decode_tables(answer.parts)


def _is_same(part: SnapshotPart, found: snapshots.PinnedPartition) -> bool:
    expected = part.partition, part.published, part.version, part.rows
    return (found.partition, found.published, found.version, found.rows) == expected


def _query(prepared: Prepared, sql: str) -> SelectStatement:
    if isinstance(prepared, SelectStatement):
        return prepared
    raise _no_query(sql)


def _no_query(sql: str) -> ProgrammingError:
    return ProgrammingError(f"only a query can be read, and this is none: {sql!r}")

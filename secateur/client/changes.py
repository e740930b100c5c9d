"""Follows the changes of a table: an iterator of Arrow batches, from a position on.

A position has one version for each partition (:mod:`secateur.storage.change_feed`). The owners of the partitions are
asked in turns; when one is lost or partitions move, the reader goes on at the new owner where it was.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Self, TypeVar

import msgspec
import pyarrow as pa

from secateur.client.execution.execute import Retryable, execute
from secateur.client.session import Session
from secateur.errors import Error, ParameterError, ProgrammingError, ProtocolError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.change_feed import EARLIEST, LATEST, BoundChanges, ReadChanges
from secateur.protocol.codec import decode, encode
from secateur.wire import decode_table

R = TypeVar("R")

_BATCH_BYTES: Final = 8 << 20
_PAUSE_MIN_S: Final = 0.01
_PAUSE_MAX_S: Final = 0.25
_EARLIEST: Final = "earliest"
_NEW_PARTITION: Final = 0
"""The version of a partition before its first change."""


class _Token(msgspec.Struct, frozen=True, array_like=True):
    table_id: int
    versions: dict[int, int]


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the changes of a table: those up to it were read. ``str()`` of it is text to keep.

    Attributes:
        table_id: The table, by the id with which it was created; another one that takes its name later has other
            changes.
        versions: By partition, the version of the last change that was read.
    """

    table_id: int
    versions: Mapping[int, int] = field(repr=False)

    def __str__(self) -> str:
        packed = encode(_Token(self.table_id, dict(sorted(self.versions.items()))))
        return base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text of a position.

        Raises:
            ParameterError: It is none.
        """
        try:
            packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            token = decode(packed, _Token)
        except (binascii.Error, ValueError, ProtocolError) as error:
            raise ParameterError(
                f"since={text!r} is no position: pass str(changes.position), 'earliest', or None for now"
            ) from error
        return cls(token.table_id, MappingProxyType(token.versions))


class Changes(Iterator[pa.RecordBatch]):
    """The changes of a table behind a position, as batches with the columns of the table and two more.

    ``_change_type`` is ``insert``, ``update_preimage``, ``update_postimage`` or ``delete``, as in Delta Lake's change
    data feed; ``_commit_version`` grows with every change of a partition. The changes of one partition come in the
    order in which they were made, those of one write or load together; those of different partitions have no order.

    Attributes:
        position: Behind the last batch. Changes that are made after this object was are behind its first position.
    """

    def __init__(self, session: Session, table: TableDef, since: Position | str | None, *, follow: bool) -> None:
        if not table.change_feed:
            raise ProgrammingError(
                f"table {table.name} has no change feed: create it WITH (change_feed = true)", table=table.name
            )
        self._session = session
        self._follow = follow
        self._pause_s = _PAUSE_MIN_S
        self._is_current = False
        if isinstance(since, str) and since != _EARLIEST:
            since = Position.parse(since)
        if isinstance(since, Position):
            if since.table_id != table.origin:
                raise ProgrammingError(
                    f"the position is one of another table: {table.name} was dropped and created again since; read it"
                    " again, and follow it from now",
                    table=table.name,
                )
            self._reading = ChangesReader(session, table, _NEW_PARTITION, dict(since.versions))
        else:
            self._reading = ChangesReader(session, table, LATEST if since is None else EARLIEST, {})
            execute(self._reading)
        self.position = self._reading.position

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        """The next batch. With ``follow``, waits for one.

        Raises:
            StopIteration: There are no more changes now; only without ``follow``.
            ChangesDroppedError: Some changes are not kept any more.
            ProgrammingError: The table was dropped.
            Error: The cluster cannot be reached.
        """
        while True:
            if self._is_current:
                self._is_current = False
                if not self._follow:
                    raise StopIteration
                self._session.sleep(self._pause_s)
                self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)
            self._session.check_open()
            batch, has_more = execute(self._reading)
            self.position = self._reading.position
            self._is_current = not has_more
            if batch is not None:
                self._pause_s = _PAUSE_MIN_S
                return batch


class _AskingOwners(Retryable[R]):
    """Asks the owners of the partitions of a table, again if these move."""

    def __init__(self, session: Session, table: TableDef) -> None:
        self.session = session
        self.table = table

    def shares(
        self, versions: Mapping[int, int], size_max: int, until: Mapping[int, int] | None
    ) -> Iterator[tuple[str, list[tuple[int, int]], int, list[tuple[int, int]]]]:
        """The members to ask, each with its partitions and their versions, its share of a size, and the last versions.

        Raises:
            PartitionLostError: A partition has no owner.
        """
        topology = self.session.topology_of(self.table)
        ownership = topology.ownership(self.table.scheme.affinity_group())
        asked: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for partition, version in versions.items():
            asked[ownership.primary(partition)].append((partition, version))
        topology.check_live(list(asked))
        share = max(1, size_max // max(1, len(asked)))
        for member, held in asked.items():
            yield member, held, share, [] if until is None else [(partition, until[partition]) for partition, _ in held]

    def prepare_again(self, because: Error) -> None:
        table = self.session.table(self.table.name)
        if table.origin != self.table.origin:
            raise ProgrammingError(f"table {table.name} was dropped while its changes were read", table=table.name)
        self.table = table


class ChangesBounder(_AskingOwners[Position]):
    """Finds out how far about so many changes reach: what :func:`execute` returns is the position behind them.

    Each partition with changes gets on, by one change at least; none is divided. So there may be more of them than
    wanted, and if most are in few partitions, fewer.

    About ``size_max`` are wanted, rows or bytes of them, behind the position ``after`` and up to ``until``; None for
    all.
    """

    def __init__(
        self,
        session: Session,
        table: TableDef,
        after: Position,
        size_max: int,
        *,
        in_rows: bool,
        until: Position | None = None,
    ) -> None:
        super().__init__(session, table)
        self._after = after
        self._size_max = size_max
        self._in_rows = in_rows
        self._until = until

    def attempt(self) -> Position:
        last = None if self._until is None else self._until.versions
        after = {
            partition: self._after.versions.get(partition, _NEW_PARTITION)
            for partition in self.table.scheme.live_partitions().tolist()
            if last is None or partition in last
        }
        asked = [
            (member, BoundChanges(self.table.table_id, versions, share, self._in_rows, until))
            for member, versions, share, until in self.shares(after, self._size_max, last)
        ]
        answers = self.session.ask_members(asked)
        reached = {partition: at for answer in answers for partition, at in answer.message.reached}
        return Position(self.table.origin, MappingProxyType(reached))


class ChangesReader(_AskingOwners[tuple[pa.RecordBatch | None, bool]]):
    """Asks the owner of every partition once: what :func:`execute` returns is a batch, and whether there is more.

    Versions go on only when all owners have answered, so it may be repeated.

    Args:
        session: Where.
        table: The table.
        start: The version of partitions that are not in ``versions``.
        versions: By partition, the version behind which to begin.
        until: By partition, the last version wanted; None for all partitions, and all that there is.

    Attributes:
        versions: By partition, up to where changes were read.
    """

    def __init__(
        self,
        session: Session,
        table: TableDef,
        start: int,
        versions: dict[int, int],
        until: Mapping[int, int] | None = None,
    ) -> None:
        super().__init__(session, table)
        self.versions = versions
        self._start = start
        self._until = until

    @property
    def is_done(self) -> bool:
        """Whether all that is wanted was read."""
        return self._until is not None and all(self.versions.get(key, -1) >= last for key, last in self._until.items())

    @property
    def position(self) -> Position:
        """Behind what was read."""
        return Position(self.table.origin, MappingProxyType(dict(self.versions)))

    def attempt(self) -> tuple[pa.RecordBatch | None, bool]:
        until = self._until
        wanted = (
            self.table.scheme.live_partitions().tolist()
            if until is None
            else [partition for partition, last in until.items() if self.versions.get(partition, -1) < last]
        )
        after = {partition: self.versions.get(partition, self._start) for partition in wanted}
        asked = [
            (member, ReadChanges(self.table.table_id, versions, share, last))
            for member, versions, share, last in self.shares(after, _BATCH_BYTES, until)
        ]
        answers = self.session.ask_members(asked)
        tables = [decode_table(answer.payload) for answer in answers if answer.message.rows]
        for answer in answers:
            self.versions.update(answer.message.reached)
        self._start = _NEW_PARTITION
        batch = pa.concat_tables(tables).combine_chunks().to_batches()[0] if tables else None
        return batch, any(answer.message.has_more for answer in answers)

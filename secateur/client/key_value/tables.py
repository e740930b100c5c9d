"""A table as reads and writes by key see it: its newest known definition, and what was worked out from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from secateur.client.key_value.row_keys import RowKeys
from secateur.client.session import Session
from secateur.errors import (
    DataError,
    DeadlineError,
    IntegrityError,
    MemberLostError,
    ProgrammingError,
    UnreachableError,
)
from secateur.partitioning.tables.table import TableDef

R = TypeVar("R")


class KeyTable:
    """One table in one session. Threads may share it: keys of a definition that is replaced stay what they are.

    Args:
        session: The connection.
        definition: The table, of a large scheme as much as the session knows.
    """

    __slots__ = ("_keys", "session")

    def __init__(self, session: Session, definition: TableDef) -> None:
        self.session = session
        self._keys = RowKeys(definition)

    @property
    def keys(self) -> RowKeys:
        """The newest definition that is known, and how its keys are read."""
        keys = self._keys
        if keys.definition.scheme.partial is not None:
            return RowKeys(replace(keys.definition))  # reads its reference again, which may have more ranges by now
        return keys

    def read(self, work: Callable[[RowKeys], R]) -> R:
        """Read what a user has given by the newest definition: again, if what is refused was read by an older one.

        Raises:
            Error: As ``work``; UnknownTableError: the table was dropped.
        """
        keys = self.keys
        try:
            return work(keys)
        except (ProgrammingError, DataError, IntegrityError):
            if not self.refresh(keys.definition):
                raise
            return work(self.keys)

    def owner(self, keys: RowKeys, partition: int) -> str:
        """The member that answers for a partition now.

        Raises:
            TopologyChangedError: The topology does not know the table.
            PartitionLostError: Every copy of it is lost.
            UnknownOwnersError: Its owners have to be fetched first.
        """
        if keys.group:
            return self.session.owner(keys.group, partition)
        topology = self.session.topology
        topology.check_any()
        members = topology.member_ids
        return members[self.session.turn() % len(members)]

    def refresh(self, used: TableDef, *, waits: bool = True) -> bool:
        """Fetch the definition again; whether it is another than the one used, which other threads may have replaced.

        Raises:
            UnknownTableError: The table was dropped.
            Error: The controller cannot be reached.
        """
        after = self.session.outlined_table(used.name, waits=waits)
        self._keys = RowKeys(after)
        return (used.table_id, used.version) != (after.table_id, after.version)

    def refresh_if_possible(self) -> None:
        """As :meth:`refresh`; without a controller no table changes, so the definition stays.

        Raises:
            Error: As :meth:`refresh`, but for a controller that cannot be reached; or the statement was cancelled.
        """
        try:
            self.refresh(self._keys.definition, waits=False)
        except (UnreachableError, MemberLostError, DeadlineError):
            self.session.check_control()

"""A table whose changes clients read: the changes are those that were made, each once and in the order of its key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import secateur
from call_log import CallLog, Kind, TableGroup
from machine import Process, machine
from secateur.errors import ChangesDroppedError

__all__ = ["FollowedTable"]

_KEYS: Final = 5


@dataclass
class _Follower:
    """What one client knows of the table by its changes up to a position.

    Attributes:
        position: At first the one right after the table was created.
        rows: What the changes lead to.
        is_late: Whether it lacks changes that are not kept any more, and has been told so.
    """

    position: str
    rows: dict[int, int] = field(default_factory=dict)
    is_late: bool = False


class FollowedTable(TableGroup):
    """A table with a change feed."""

    def __init__(self, log: CallLog, placement: str) -> None:
        super().__init__(log, placement)
        self._followers: dict[Process, _Follower] = {}
        self._first = ""

    def create(self, conn: secateur.Connection) -> None:
        """Make the table."""
        self._create(conn, "followed", "v", " WITH (change_feed = true)")
        self._first = str(conn.changes("followed").position)

    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do."""
        return [(self.upsert_followed, 2), (self.delete_followed, 1), (self.load_followed, 1), (self.follow, 4)]

    def read_back(self, conn: secateur.Connection) -> None:
        """Whoever has followed the changes has the rows of the table, and so has one who begins now."""
        self._followers[machine().current.process] = _Follower(self._first)
        for follower in self._followers.values():
            self._log.until_answered(lambda follower=follower: self._follow(conn, follower))
        self._log.until_answered(lambda: self._compare(conn))

    def upsert_followed(self, conn: secateur.Connection) -> bool:
        """A row comes, or has another value."""
        values = [self._log.world.random.randrange(_KEYS), self._log.next_value()]
        return self._log.execute(conn, "write followed", "INSERT OR REPLACE INTO followed VALUES (?, ?)", values)

    def delete_followed(self, conn: secateur.Connection) -> bool:
        """A row goes."""
        key = self._log.world.random.randrange(_KEYS)
        return self._log.execute(conn, "write followed", "DELETE FROM followed WHERE id = ?", [key])

    def load_followed(self, conn: secateur.Connection) -> bool:
        """All rows have another value."""
        values = [self._log.next_value() for _ in range(_KEYS)]
        with self._log.call("load followed") as answered:
            conn.table("followed").load({"id": list(range(_KEYS)), "v": values}, mode="upsert")
        return bool(answered)

    def follow(self, conn: secateur.Connection) -> bool:
        """Read what has changed since the last time."""
        return self._follow(conn, self._followers.setdefault(machine().current.process, _Follower(self._first)))

    def _follow(self, conn: secateur.Connection, follower: _Follower) -> bool:
        if follower.is_late:
            return True
        with self._log.call("follow") as answered:
            try:
                changes = conn.changes("followed", since=follower.position)
                for batch in changes:
                    for change in batch.to_pylist():
                        self._make(change, follower.rows)
                    follower.position = str(changes.position)
            except ChangesDroppedError as error:  # changes are in memory: all members have ended meanwhile
                follower.is_late = True
                if not self._log.world.disks and not self._log.may_lose:
                    self._log.world.violated(f"changes are not kept although nobody lost what members have: {error}")
        return bool(answered)

    def _make(self, change: dict[str, Any], rows: dict[int, int]) -> None:
        key, value, kind = change["id"], change["v"], change["_change_type"]
        is_new = kind in ("insert", "update_postimage")
        known = rows.pop(key, None)
        if known != (None if is_new else value):
            self._differs(f"{change} was read where the changes before it have left {known}")
        if is_new:
            rows[key] = value

    def _compare(self, conn: secateur.Connection) -> bool:
        with self._log.call("read followed") as answered:
            rows = dict(conn.execute("SELECT id, v FROM followed").fetchall())
            for follower in self._followers.values():
                if follower.rows != rows and not follower.is_late:
                    self._differs(f"the changes lead to {follower.rows}, and the table has {rows}")
        return bool(answered)

"""Ranges and tables that come and go while everything else does, too."""

from __future__ import annotations

import secateur
from call_log import CallLog, Kind, TableGroup

__all__ = ["Definitions"]


class Definitions(TableGroup):
    """A table whose ranges clients add and drop, and tables that they create, some of which stay.

    Args:
        log: Of all calls.
        backups: Of all tables.
    """

    def __init__(self, log: CallLog, backups: int) -> None:
        super().__init__(log, f"BACKUPS {backups}")
        self._range = 0
        self._tables = 0
        self._staying: list[str] = []

    def create(self, conn: secateur.Connection) -> None:
        """Make the table with ranges."""
        conn.execute(
            "CREATE TABLE ranged (day BIGINT, id BIGINT, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)"
            f" (PARTITION 0 <= VALUES < 10) {self._placement}"
        )

    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do."""
        return [(self.add_and_drop_range, 2), (self.create_table, 1)]

    def read_back(self, conn: secateur.Connection) -> None:
        """Tables that have stayed take rows, whatever happened while they were created."""
        for name in self._staying:
            self._log.until_answered(lambda name=name: self._fill(conn, name))

    def add_and_drop_range(self, conn: secateur.Connection) -> bool:
        """A range comes, has rows, and goes; others do the same with other ranges."""
        self._range += 1
        first = self._range * 10
        span, rows = f"{first} <= VALUES < {first + 10}", [(first + 1, 1), (first + 9, 2)]
        query, span_values = "SELECT day, id FROM ranged WHERE day BETWEEN ? AND ?", [first, first + 9]
        insert = "INSERT INTO ranged VALUES (?, 1), (?, 2)"
        if not self._log.execute(conn, "add range", f"ALTER TABLE ranged ADD PARTITION {span}", []):
            return False
        if not self._log.execute(conn, "insert", insert, [first + 1, first + 9]):
            return False
        self._log.check_rows(conn, query, span_values, rows)
        if not self._log.execute(conn, "drop range", f"ALTER TABLE ranged DROP PARTITION {span}", []):
            return False
        self._log.check_rows(conn, query, span_values, [])
        return True

    def create_table(self, conn: secateur.Connection) -> bool:
        """A table comes, has rows, and goes, unless it stays until the end."""
        self._tables += 1
        name = f"other_{self._tables}"
        placement = f"PARTITION BY HASH (id) PARTITIONS 3 {self._placement}"
        create = f"CREATE TABLE {name} (id BIGINT PRIMARY KEY) {placement}"
        if not self._log.execute(conn, "create table", create, []):
            return False
        self._fill(conn, name)
        if self._log.world.random.random() < 0.3:
            self._staying.append(name)
            return True
        return self._log.execute(conn, "drop table", f"DROP TABLE {name}", [])

    def _fill(self, conn: secateur.Connection, name: str) -> bool:
        """Rows of each partition come into a table, again if they are there."""
        insert = f"INSERT OR REPLACE INTO {name} VALUES (1), (2), (3), (4), (5)"
        if not self._log.execute(conn, "insert", insert, []):
            return False
        self._log.check_rows(conn, f"SELECT id FROM {name}", [], [(1,), (2,), (3,), (4,), (5,)])
        return True

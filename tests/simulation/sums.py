"""Rows of which clients know what they add up to: increments, none lost and none made twice, and transfers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import secateur
from call_log import CallLog, Kind, TableGroup

__all__ = ["Accounts", "Counters"]

_COUNTERS: Final = 4
_EXECUTIONS: Final = (3, 9)
_ACCOUNTS: Final = 12
_BALANCE: Final = 100


class Counters(TableGroup):
    """Rows that are incremented: each as often as was acknowledged, and at most as often as was tried."""

    def __init__(self, log: CallLog, placement: str, table: str = "counter") -> None:
        super().__init__(log, placement)
        self._table = table
        self._tried: dict[int, int] = defaultdict(int)
        self._acknowledged: dict[int, int] = defaultdict(int)

    def create(self, conn: secateur.Connection) -> None:
        """Make the table, with rows."""
        self._create(conn, self._table, "n")
        conn.table(self._table).load({"id": list(range(_COUNTERS)), "n": [0] * _COUNTERS})

    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do."""
        return [
            (self.increment, 8),
            (self.increment_on_conflict, 3),
            (self.increment_several, 2),
            (self.increment_returning, 2),
        ]

    def read_back(self, conn: secateur.Connection) -> None:
        """Read each counter."""
        for key in range(_COUNTERS):
            self._log.until_answered(lambda key=key: self.read(conn, key))

    def read(self, conn: secateur.Connection, key: int) -> bool:
        """A counter is what it must be."""
        at_least = self._acknowledged[key]
        with self._log.call("read counter") as answered:
            rows = conn.execute(f"SELECT n FROM {self._table} WHERE id = ?", [key]).fetchall()
            if len(rows) != 1 or not at_least <= rows[0][0] <= self._tried[key]:
                self._differs(
                    f"{self._table} {key} is {rows}: {at_least} increments were acknowledged, {self._tried[key]} tried"
                )
        return bool(answered)

    def increment(self, conn: secateur.Connection) -> bool:
        """One more, of a row that is there."""
        return self._add(conn, "increment", f"UPDATE {self._table} SET n = n + 1 WHERE id = ?")

    def increment_on_conflict(self, conn: secateur.Connection) -> bool:
        """One more, of a row that might not be there."""
        sql = f"INSERT INTO {self._table} (id, n) VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET n = n + excluded.n"
        return self._add(conn, "increment on conflict", sql)

    def increment_several(self, conn: secateur.Connection) -> bool:
        """Several executions of one statement, some of them about one row."""
        random = self._log.world.random
        keys = random.choices(range(_COUNTERS), k=random.choice(_EXECUTIONS))
        for key in keys:
            self._tried[key] += 1
        with self._log.call("increment several") as answered:
            conn.executemany(f"UPDATE {self._table} SET n = n + 1 WHERE id = ?", [[key] for key in keys])
            for key in keys:
                self._acknowledged[key] += 1
        return bool(answered)

    def increment_returning(self, conn: secateur.Connection) -> bool:
        """One more, and what that makes."""
        key = self._log.world.random.randrange(_COUNTERS)
        self._tried[key] += 1
        at_least = self._acknowledged[key] + 1
        with self._log.call("increment returning") as answered:
            rows = conn.execute(f"UPDATE {self._table} SET n = n + 1 WHERE id = ? RETURNING n", [key]).fetchall()
            self._acknowledged[key] += 1
            if len(rows) != 1 or not at_least <= rows[0][0] <= self._tried[key]:
                self._differs(
                    f"an increment of {self._table} {key} has made it {rows}: at least {at_least}, at most"
                    f" {self._tried[key]}"
                )
        return bool(answered)

    def _add(self, conn: secateur.Connection, kind: str, sql: str) -> bool:
        key = self._log.world.random.randrange(_COUNTERS)
        self._tried[key] += 1
        with self._log.call(kind) as answered:
            cursor = conn.execute(sql, [key])
            self._acknowledged[key] += 1
            self._log.check_count(kind, cursor.rowcount, 1)
        return bool(answered)


class Accounts(TableGroup):
    """Rows between which amounts are moved: their total never changes."""

    is_loaded = True

    def create(self, conn: secateur.Connection) -> None:
        """Make the table, with rows."""
        self._create(conn, "account", "amount")
        conn.table("account").load({"id": list(range(_ACCOUNTS)), "amount": [_BALANCE] * _ACCOUNTS})

    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do."""
        return [(self.transfer, 4), (self.total, 6)]

    def read_back(self, conn: secateur.Connection) -> None:
        """Add up once more."""
        self._log.until_answered(lambda: self.total(conn))

    def transfer(self, conn: secateur.Connection) -> bool:
        """Move an amount, perhaps to another partition."""
        one, other = self._log.world.random.sample(range(_ACCOUNTS), 2)
        with self._log.call("transfer") as answered:
            cursor = conn.execute(
                "UPDATE account SET amount = amount + CASE WHEN id = ? THEN 1 ELSE -1 END WHERE id IN (?, ?)",
                [one, one, other],
            )
            self._log.check_count("a transfer", cursor.rowcount, 2)
        return bool(answered)

    def total(self, conn: secateur.Connection) -> bool:
        """Add up all accounts."""
        with self._log.call("total") as answered:
            rows: list[Any] = conn.execute("SELECT count(*), sum(amount) FROM account").fetchall()
            if rows != [(_ACCOUNTS, _ACCOUNTS * _BALANCE)]:
                self._differs(f"the total of all accounts is {rows}")
        return bool(answered)

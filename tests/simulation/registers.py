"""Rows that clients read and write by key, in every way there is: each row is linearizable.

Of a call about several keys each row is judged by itself: such a read has them as they were at moments of their own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import secateur
from call_log import CallLog, Kind, TableGroup
from linearizability import Call, is_linearizable, shown
from machine import Process, machine

__all__ = ["KEYS", "Registers"]

KEYS: Final = 6


class Registers(TableGroup):
    """One table of an id and a value.

    Args:
        log: Of all calls.
        name: The table's.
        placement: Where its rows are, as in CREATE TABLE.
    """

    def __init__(self, log: CallLog, name: str, placement: str) -> None:
        super().__init__(log, placement)
        self.is_loaded = placement == "REPLICATED"
        self._name = name
        self._histories: dict[int, list[Call]] = defaultdict(list)
        self._keys: dict[Process, Sequence[int]] = {}

    def create(self, conn: secateur.Connection) -> None:
        """Make the table."""
        self._create(conn, self._name, "v")
        conn.execute(f"CREATE INDEX {self._name}_by_v ON {self._name} (v)")

    def confine(self, process: Process, keys: Sequence[int]) -> None:
        """Have a client use these keys only."""
        self._keys[process] = keys

    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do."""
        return [
            (self.read, 14),
            (self.get, 6),
            (self.read_several, 3),
            (self.get_several, 3),
            (self.execute_several, 3),
            (self.read_by_value, 2),
            (self.upsert, 8),
            (self.upsert_on_conflict, 4),
            (self.put, 6),
            (self.put_several, 2),
            (self.delete, 3),
            (self.delete_several, 1),
            (self.insert_if_absent, 3),
            (self.write_if, 8),
        ]

    def read_back(self, conn: secateur.Connection) -> None:
        """Read each key."""
        for key in range(KEYS):
            self._log.until_answered(lambda key=key: self.read(conn, key))
            self._log.until_answered(lambda key=key: self.get(conn, key))

    def check(self) -> Iterator[str]:
        """Judge the history of each key."""
        for key, calls in self._histories.items():
            if not is_linearizable(calls, None):
                yield f"row {key} of {self._name} is not linearizable:{shown(calls)}"

    # -- reads

    def read(self, conn: secateur.Connection, key: int | None = None) -> bool:
        """A row by SELECT."""
        return self._read("read", [self._key() if key is None else key], lambda keys: self._rows(conn, keys))

    def get(self, conn: secateur.Connection, key: int | None = None) -> bool:
        """A row without SQL."""

        def found(keys: list[int]) -> dict[int, int]:
            row = conn.table(self._name).get(keys[0])
            return {} if row is None else dict([row])

        return self._read("get", [self._key() if key is None else key], found)

    def read_several(self, conn: secateur.Connection) -> bool:
        """The rows of an IN list."""
        return self._read("read several", self._several(), lambda keys: self._rows(conn, keys))

    def get_several(self, conn: secateur.Connection) -> bool:
        """Several rows without SQL."""

        def found(keys: list[int]) -> dict[int, int]:
            rows = conn.table(self._name).get_many(keys)
            if [key for key, row in zip(keys, rows, strict=True) if row is not None and row[0] != key]:
                self._log.world.violated(f"get_many({keys}) of {self._name} answers {rows}")
            return dict(row for row in rows if row is not None)

        return self._read("get several", self._several(), found)

    def execute_several(self, conn: secateur.Connection) -> bool:
        """A query that is executed for several keys."""

        def found(keys: list[int]) -> dict[int, int]:
            rows: dict[int, int] = {}
            with conn.cursor() as cursor:
                cursor.executemany(f"SELECT id, v FROM {self._name} WHERE id = ?", [[key] for key in keys])
                for _ in keys:
                    rows.update(cursor.fetchall())
                    cursor.nextset()
            return rows

        return self._read("execute several", self._several(), found)

    def read_by_value(self, conn: secateur.Connection) -> bool:
        """The row that has a value, by an index; if there is none, nobody knows which one has lost it when."""
        key = self._key()
        known = [call.value for call in self._histories[key] if call.value is not None]
        if not known:
            return True
        began_s, value = self._log.world.now_s, known[-1]
        with self._log.call("read by value") as answered:
            rows = conn.execute(f"SELECT id, v FROM {self._name} WHERE v = ?", [value]).fetchall()
            if rows not in ([], [(key, value)]):
                self._log.world.violated(f"the rows of {self._name} with the value {value} are {rows}")
            elif rows:
                self._histories[key].append(Call(began_s, self._log.world.now_s, "read", value))
        return bool(answered)

    def _rows(self, conn: secateur.Connection, keys: list[int]) -> dict[int, int]:
        condition = "id = ?" if len(keys) == 1 else f"id IN ({', '.join('?' * len(keys))})"
        return dict(conn.execute(f"SELECT id, v FROM {self._name} WHERE {condition}", keys).fetchall())

    def _read(self, kind: str, keys: list[int], read: Callable[[list[int]], dict[int, int]]) -> bool:
        began_s = self._log.world.now_s
        with self._log.call(kind) as answered:
            rows = read(keys)
            if unasked := rows.keys() - set(keys):
                self._log.world.violated(f"{kind} of {keys} in {self._name} answers {sorted(unasked)}")
            for key in keys:
                self._histories[key].append(Call(began_s, self._log.world.now_s, "read", rows.get(key)))
        return bool(answered)

    # -- writes

    def upsert(self, conn: secateur.Connection) -> bool:
        """A row, whether there is one or not."""
        sql = f"INSERT OR REPLACE INTO {self._name} VALUES (?, ?)"
        return self._write("write", [self._key()], lambda rows: conn.execute(sql, list(*rows)))

    def upsert_on_conflict(self, conn: secateur.Connection) -> bool:
        """The same in the words of the SQL standard's MERGE and of PostgreSQL."""
        sql = f"INSERT INTO {self._name} VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET v = excluded.v"
        return self._write("write on conflict", [self._key()], lambda rows: conn.execute(sql, list(*rows)))

    def put(self, conn: secateur.Connection) -> bool:
        """A row without SQL."""
        return self._write("put", [self._key()], lambda rows: conn.table(self._name).put(*rows))

    def put_several(self, conn: secateur.Connection) -> bool:
        """Several rows without SQL."""
        return self._write("put several", self._several(), lambda rows: conn.table(self._name).put_many(rows))

    def delete(self, conn: secateur.Connection) -> bool:
        """A row goes."""
        sql = f"DELETE FROM {self._name} WHERE id = ?"
        return self._write("delete", [self._key()], lambda rows: conn.execute(sql, [rows[0][0]]), leaves_rows=False)

    def delete_several(self, conn: secateur.Connection) -> bool:
        """Several rows go, without SQL."""
        delete = conn.table(self._name).delete_many
        return self._write(
            "delete several", self._several(), lambda rows: delete([key for key, _ in rows]), leaves_rows=False
        )

    def insert_if_absent(self, conn: secateur.Connection) -> bool:
        """A row, unless there is one."""
        sql = f"INSERT INTO {self._name} VALUES (?, ?) ON CONFLICT DO NOTHING"
        key, value = self._key(), self._log.next_value()
        return self._write_if(key, value, None, lambda: conn.execute(sql, [key, value]))

    def write_if(self, conn: secateur.Connection) -> bool:
        """Another value for a row, if it has the one that is expected."""
        key, value = self._key(), self._log.next_value()
        known = [call.value for call in self._histories[key] if call.value is not None]
        expected = known[-1] if known and self._log.world.random.random() < 0.8 else 0
        sql = f"UPDATE {self._name} SET v = ? WHERE id = ? AND v = ?"
        return self._write_if(key, value, expected, lambda: conn.execute(sql, [value, key, expected]))

    def _write(
        self, kind: str, keys: list[int], write: Callable[[list[tuple[int, int]]], Any], *, leaves_rows: bool = True
    ) -> bool:
        rows = [(key, self._log.next_value()) for key in keys]
        began_s, ended_s = self._log.world.now_s, math.inf
        with self._log.call(kind) as answered:
            write(rows)
            ended_s = self._log.world.now_s
        for key, value in () if answered.says_unchanged else rows:
            self._histories[key].append(Call(began_s, ended_s, "write", value if leaves_rows else None))
        return bool(answered)

    def _write_if(self, key: int, value: int, expected: int | None, write: Callable[[], secateur.Cursor]) -> bool:
        began_s, ended_s, changed = self._log.world.now_s, math.inf, False
        with self._log.call("write if") as answered:
            count = write().rowcount
            changed, ended_s = count == 1, self._log.world.now_s
            self._log.check_count(f"write {value} if {expected}", count, 0, 1)
        if not answered.says_unchanged:
            self._histories[key].append(Call(began_s, ended_s, "write if", value, expected, changed))
        return bool(answered)

    def _key(self) -> int:
        return self._log.world.random.choice(self._keys[machine().current.process])

    def _several(self) -> list[int]:
        keys = self._keys[machine().current.process]
        return self._log.world.random.sample(keys, min(len(keys), 3))

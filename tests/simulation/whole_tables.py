"""Changes of all rows of a table, and loads: each is seen as a whole or not at all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

import secateur
from call_log import CallLog, Kind, TableGroup
from linearizability import Call, is_linearizable, shown
from secateur.client.execution import SnapshotReader, close_snapshot, open_snapshot, prepared_query
from secateur.protocol import SnapshotPiece

__all__ = ["Batches", "State"]

_ROWS: Final = 10
_BATCH_ROWS: Final = 9
_HISTORY_MAX: Final = 300
_LEASE_S: Final = 60.0
_PIECE_S: Final = 0.05


class State(TableGroup):
    """A table whose rows have one value, which statements and loads change: a register as well.

    Args:
        log: Of all calls.
        name: The table's.
        placement: Where its rows are, as in CREATE TABLE.
    """

    is_loaded = True

    def __init__(self, log: CallLog, name: str, placement: str) -> None:
        super().__init__(log, placement)
        self._name = name
        self._history: list[Call] = []

    def create(self, conn: secateur.Connection) -> None:
        """Make the table, with rows."""
        self._create(conn, self._name, "v")
        conn.table(self._name).load({"id": list(range(_ROWS)), "v": [0] * _ROWS})

    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do."""
        return [
            (self.set_state, 3),
            (self.load_state, 2),
            (self.merge_state, 1),
            (self.read_state, 6),
            (self.read_in_pieces, 1),
        ]

    def read_back(self, conn: secateur.Connection) -> None:
        """Read all rows once more, however many calls there were."""
        self._log.until_answered(lambda: self.read_state(conn, is_last=True))

    def check(self) -> Iterator[str]:
        """Judge the history."""
        if not is_linearizable(self._history, 0):
            yield f"the rows of {self._name} are not linearizable:{shown(self._history)}"

    def set_state(self, conn: secateur.Connection) -> bool:
        """A statement changes all rows."""
        value = self._log.next_value()
        return self._change(value, lambda: conn.execute(f"UPDATE {self._name} SET v = ?", [value]).rowcount)

    def load_state(self, conn: secateur.Connection) -> bool:
        """A load replaces all rows."""
        value, mode = self._log.next_value(), self._log.world.random.choice(("overwrite", "upsert"))
        rows = {"id": list(range(_ROWS)), "v": [value] * _ROWS}
        return self._change(value, lambda: conn.table(self._name).load(rows, mode=mode))

    def merge_state(self, conn: secateur.Connection) -> bool:
        """A statement reads the table and changes all rows."""
        value = self._log.next_value()
        merge = (
            f"MERGE INTO {self._name} USING (SELECT id, CAST(? AS BIGINT) AS new FROM {self._name}) AS s USING (id)"
            " WHEN MATCHED THEN UPDATE SET v = new"
        )
        return self._change(value, lambda: conn.execute(merge, [value]).rowcount)

    def read_state(self, conn: secateur.Connection, *, is_last: bool = False) -> bool:
        """All rows have one value."""
        began_s = self._log.world.now_s
        with self._log.call("read state") as answered:
            rows: list[Any] = conn.execute(f"SELECT count(*), min(v), max(v) FROM {self._name}").fetchall()
            count, least, most = rows[0]
            if count != _ROWS or least != most:
                self._differs(f"a change of all rows of {self._name} is seen in part: {rows}")
            elif len(self._history) < _HISTORY_MAX or is_last:
                self._history.append(Call(began_s, self._log.world.now_s, "read", least))
        return bool(answered)

    def read_in_pieces(self, conn: secateur.Connection) -> bool:
        """All rows of one moment, a partition after the other, as a connector reads them."""
        session, began_s = conn._session, self._log.world.now_s
        with self._log.call("read in pieces") as answered:
            snapshot = open_snapshot(prepared_query(session, f"SELECT id, v FROM {self._name}", ()), lease_s=_LEASE_S)
            opened_s = self._log.world.now_s
            assert snapshot is not None
            try:
                reader, values = SnapshotReader(session, snapshot), []
                for part in snapshot.parts:
                    time.sleep(self._log.world.random.expovariate(1 / _PIECE_S))
                    values += reader.read([SnapshotPiece(part.partition, 0, part.rows)])["v"].to_pylist()
            finally:
                close_snapshot(session, snapshot)
            if len(values) != _ROWS or len(set(values)) != 1:
                self._differs(f"a snapshot of {self._name} has the values {values}")
            elif len(self._history) < _HISTORY_MAX:
                self._history.append(Call(began_s, opened_s, "read", values[0]))
        return bool(answered)

    def _change(self, value: int, change: Callable[[], int]) -> bool:
        if len(self._history) >= _HISTORY_MAX:
            return False
        began_s, ended_s = self._log.world.now_s, math.inf
        with self._log.call("change state") as answered:
            count = change()
            ended_s = self._log.world.now_s
            self._log.check_count("a change of all rows", count, _ROWS)
        if not answered.says_unchanged:
            self._history.append(Call(began_s, ended_s, "write", value))
        return bool(answered)


class Batches(TableGroup):
    """Loads of new rows: every one that was acknowledged is there, each as a whole."""

    is_loaded = True

    def __init__(self, log: CallLog, placement: str) -> None:
        super().__init__(log, placement)
        self._batch = 0
        self._acknowledged: set[int] = set()

    def create(self, conn: secateur.Connection) -> None:
        """Make the table."""
        self._create(conn, "batches", "batch")

    def kinds(self) -> list[tuple[Kind, int]]:
        """What clients do."""
        return [(self.load_batch, 3), (self.insert_batch, 1), (self.read_batches, 4)]

    def read_back(self, conn: secateur.Connection) -> None:
        """Count once more."""
        self._log.until_answered(lambda: self.read_batches(conn))

    def load_batch(self, conn: secateur.Connection) -> bool:
        """Rows come by a load."""
        batch = self._next()
        rows = pa.table({"id": pa.array(_ids(batch), pa.int64()), "batch": pa.array([batch] * _BATCH_ROWS, pa.int64())})
        with self._log.call("load") as answered:
            count = conn.table("batches").load(rows)
            self._acknowledged.add(batch)
            self._log.check_count("a load", count, _BATCH_ROWS)
        return bool(answered)

    def insert_batch(self, conn: secateur.Connection) -> bool:
        """Rows come by one INSERT that is executed for each, whose rows become visible together."""
        batch = self._next()
        with self._log.call("insert several") as answered:
            cursor = conn.executemany("INSERT INTO batches VALUES (?, ?)", [[row, batch] for row in _ids(batch)])
            self._acknowledged.add(batch)
            self._log.check_count("an insertion of several rows", cursor.rowcount, _BATCH_ROWS)
        return bool(answered)

    def read_batches(self, conn: secateur.Connection) -> bool:
        """Count the rows of each."""
        expected = set(self._acknowledged)
        with self._log.call("read batches") as answered:
            counts = dict(conn.execute("SELECT batch, count(*) FROM batches GROUP BY batch").fetchall())
            if missing := expected - counts.keys():
                self._differs(f"acknowledged loads are missing: {sorted(missing)}")
            if unknown := [batch for batch in counts if not 0 < batch <= self._batch]:
                self._log.world.violated(f"there are rows that nobody has loaded: {sorted(unknown)}")
            if partial := {batch: count for batch, count in counts.items() if count != _BATCH_ROWS}:
                self._differs(f"loads of {_BATCH_ROWS} rows are seen in part: {partial}")
        return bool(answered)

    def _next(self) -> int:
        self._batch += 1
        return self._batch


def _ids(batch: int) -> list[int]:
    return [batch * 100 + row for row in range(_BATCH_ROWS)]

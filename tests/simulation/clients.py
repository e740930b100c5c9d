"""What the clients of a simulated cluster do, and what their answers must be."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

import secateur
from linearizability import Call, is_linearizable
from machine import Process, machine
from secateur.errors import OperationalError, PartitionLostError
from world import World

__all__ = ["PAUSE_S", "Workload"]

PAUSE_S: Final = 0.08

_KEYS: Final = 6
_COUNTERS: Final = 4
_ACCOUNTS: Final = 12
_BALANCE: Final = 100
_STATE_ROWS: Final = 10
_BATCH_ROWS: Final = 9
_CALL_S_MAX: Final = 25.0
_HISTORY_MAX: Final = 300


class Workload:
    """The tables, what several clients do with them, and the history of their calls.

    Args:
        world: The cluster.
        backups: Of all tables.
        one_key: Whether all clients are about one key.
        calls: What they do, by name, beside reading a row; none names everything.
        pause_s: How long they rest between two calls, on average.

    Attributes:
        may_lose: Whether so many members are lost that partitions may be: statements may then say so.
        errors: Calls that failed, counted by kind and class.
    """

    def __init__(
        self,
        world: World,
        backups: int,
        *,
        one_key: bool = False,
        calls: Collection[str] = (),
        pause_s: float = PAUSE_S,
    ) -> None:
        self.world = world
        self.backups = backups
        self._one_key = one_key
        self._calls = calls
        self._pause_s = pause_s
        self.may_lose = False
        self.is_over = False
        self.calls = 0
        self.errors: dict[str, int] = defaultdict(int)
        self.registers: dict[int, list[Call]] = defaultdict(list)
        self.states: list[Call] = []
        self.tried: dict[int, int] = defaultdict(int)
        self.acknowledged: dict[int, int] = defaultdict(int)
        self.batches_tried: set[int] = set()
        self.batches: set[int] = set()
        self.running = 0
        self.longest_s = 0.0
        self._hot = world.random.sample(range(_KEYS), 1 if one_key else world.random.choice((1, 2, 3)))
        self._keys: dict[Process, list[int]] = {}
        self._value = 0
        self._batch = 0
        self._range = 0
        self._tables = 0
        self._kept_tables: list[str] = []

    def create(self, conn: secateur.Connection) -> None:
        """Make the tables; before any fault."""
        draw = self.world.random
        for name, columns in (
            ("register", "id BIGINT, v BIGINT"),
            ("counter", "id BIGINT, n BIGINT"),
            ("account", "id BIGINT, amount BIGINT"),
            ("state", "id BIGINT, v BIGINT"),
            ("batches", "id BIGINT, batch BIGINT"),
        ):
            partitions = draw.choice((4, 5, 7))
            conn.execute(
                f"CREATE TABLE {name} ({columns}, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS {partitions}"
                f" BACKUPS {self.backups}"
            )
        conn.execute(
            "CREATE TABLE ranged (day BIGINT, id BIGINT, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)"
            f" (PARTITION 0 <= VALUES < 10) BACKUPS {self.backups}"
        )
        conn.table("counter").load({"id": list(range(_COUNTERS)), "n": [0] * _COUNTERS})
        conn.table("account").load({"id": list(range(_ACCOUNTS)), "amount": [_BALANCE] * _ACCOUNTS})
        conn.table("state").load({"id": list(range(_STATE_ROWS)), "v": [0] * _STATE_ROWS})

    def run(self, process: Process) -> None:
        """One client, until the workload is over: it has its own mixture of calls, and may rest for so long that it
        does not hear of new owners. Every other one only reads one key, and so needs only one member.
        """
        self.running += 1
        draw = self.world.random
        is_reader = draw.random() < 0.5
        has_one_key = is_reader or self._one_key
        self._keys[process] = self._hot[:1] if has_one_key else draw.choice((self._hot, list(range(_KEYS))))
        rests = draw.choice((0.0, 0.0, 0.1))
        conn = self._connected()
        kinds = self._kinds()
        weights = [weight if draw.random() < 0.6 and not is_reader else 0 for _, weight in kinds]
        weights[0] = max(weights[0], 1)
        if self._calls:
            weights = [float(kind.__name__.lstrip("_") in ("read", *self._calls)) for kind, _ in kinds]
        if self._one_key:
            weights = [1, *(0 if is_reader else weight for weight in (1, *[0] * (len(kinds) - 2)))]
        while not self.is_over:
            draw.choices([kind for kind, _ in kinds], weights)[0](conn)
            time.sleep(draw.uniform(0.5, 3.0) if draw.random() < rests else draw.expovariate(1 / self._pause_s))
        conn.close()
        self.running -= 1

    def run_each(self, process: Process) -> None:
        """One client that does everything that clients do, once."""
        self._keys[process] = list(range(_KEYS))
        conn = self._connected()
        for kind, _ in self._kinds():
            kind(conn)
        conn.close()

    def _kinds(self) -> list[tuple[Callable[[secateur.Connection], bool], int]]:
        """What a client does, and how often: less of what takes a processor for long, and so leaves fewer seeds."""
        return [
            (self._read, 30),
            (self._upsert, 16),
            (self._delete, 4),
            (self._write_if, 10),
            (self._increment, 12),
            (self._transfer, 4),
            (self._total, 6),
            (self._set_state, 3),
            (self._load_state, 2),
            (self._read_state, 6),
            (self._load_batch, 4),
            (self._read_batches, 4),
            (self._merge_state, 1),
            (self._add_and_drop_range, 2),
            (self._create_table, 1),
        ]

    def read_back(self, process: Process) -> None:
        """Read everything once more, after quiet: each read has to work soon."""
        self.running += 1
        conn = self._connected()
        for key in range(_KEYS):
            self._until_answered(lambda key=key: self._read(conn, key))
        for key in range(_COUNTERS):
            self._until_answered(lambda key=key: self._read_counter(conn, key))
        self._until_answered(lambda: self._total(conn))
        self._until_answered(lambda: self._read_state(conn))
        self._until_answered(lambda: self._read_batches(conn))
        for name in self._kept_tables:
            self._until_answered(lambda name=name: self._fill(conn, name))
        conn.close()
        self.running -= 1

    def check(self) -> None:
        """Judge the histories."""
        for key, calls in self.registers.items():
            if not is_linearizable(calls, None):
                self.world.violated(f"register {key} is not linearizable:{_shown(calls)}")
        if not is_linearizable(self.states, 0):
            self.world.violated(f"the state of all rows is not linearizable:{_shown(self.states)}")

    # -- one call each; True if it was answered

    def _read(self, conn: secateur.Connection, key: int | None = None) -> bool:
        key = self._key() if key is None else key
        began_s = self.world.now_s
        with self._call("read") as answered:
            rows = conn.execute("SELECT v FROM register WHERE id = ?", [key]).fetchall()
            self._record(key, Call(began_s, self.world.now_s, "read", rows[0][0] if rows else None))
        return bool(answered)

    def _upsert(self, conn: secateur.Connection) -> bool:
        key, value = self._key(), self._next_value()
        return self._write(
            key, value, "write", lambda: conn.execute("INSERT OR REPLACE INTO register VALUES (?, ?)", [key, value])
        )

    def _delete(self, conn: secateur.Connection) -> bool:
        key = self._key()
        return self._write(key, None, "write", lambda: conn.execute("DELETE FROM register WHERE id = ?", [key]))

    def _write(self, key: int, value: int | None, kind: Any, call: Callable[[], Any]) -> bool:
        began_s, ended_s = self.world.now_s, math.inf
        with self._call("write") as answered:
            call()
            ended_s = self.world.now_s
        self._record(key, Call(began_s, ended_s, kind, value))
        return bool(answered)

    def _write_if(self, conn: secateur.Connection) -> bool:
        key, value = self._key(), self._next_value()
        known = [call.value for call in self.registers[key] if call.value is not None]
        expected = known[-1] if known and self.world.random.random() < 0.8 else 0
        began_s, ended_s, changed = self.world.now_s, math.inf, False
        with self._call("write if") as answered:
            cursor = conn.execute("UPDATE register SET v = ? WHERE id = ? AND v = ?", [value, key, expected])
            ended_s, changed = self.world.now_s, cursor.rowcount == 1
        self._record(key, Call(began_s, ended_s, "write if", value, expected, changed))
        return bool(answered)

    def _increment(self, conn: secateur.Connection) -> bool:
        key = self.world.random.randrange(_COUNTERS)
        self.tried[key] += 1
        with self._call("increment") as answered:
            cursor = conn.execute("UPDATE counter SET n = n + 1 WHERE id = ?", [key])
            self.acknowledged[key] += 1
            if cursor.rowcount != 1:
                self.world.violated(f"an increment says that it has changed {cursor.rowcount} rows")
        return bool(answered)

    def _read_counter(self, conn: secateur.Connection, key: int) -> bool:
        at_least = self.acknowledged[key]
        with self._call("read counter") as answered:
            rows = conn.execute("SELECT n FROM counter WHERE id = ?", [key]).fetchall()
            if len(rows) != 1 or not at_least <= rows[0][0] <= self.tried[key]:
                self.world.violated(
                    f"counter {key} is {rows}: {at_least} increments were acknowledged, {self.tried[key]} tried"
                )
        return bool(answered)

    def _transfer(self, conn: secateur.Connection) -> bool:
        one, other = self.world.random.sample(range(_ACCOUNTS), 2)
        with self._call("transfer") as answered:
            cursor = conn.execute(
                "UPDATE account SET amount = amount + CASE WHEN id = ? THEN 1 ELSE -1 END WHERE id IN (?, ?)",
                [one, one, other],
            )
            # Members that come back from disk know that a change was made, but may not know of how many rows.
            if cursor.rowcount not in ((2, -1) if self.world.disks else (2,)):
                self.world.violated(f"a transfer says that it has changed {cursor.rowcount} rows")
        return bool(answered)

    def _total(self, conn: secateur.Connection) -> bool:
        with self._call("total") as answered:
            rows = conn.execute("SELECT count(*), sum(amount) FROM account").fetchall()
            if rows != [(_ACCOUNTS, _ACCOUNTS * _BALANCE)]:
                self.world.violated(f"the total of all accounts is {rows}")
        return bool(answered)

    def _set_state(self, conn: secateur.Connection) -> bool:
        value = self._next_value()
        return self._change_state(value, lambda: conn.execute("UPDATE state SET v = ?", [value]))

    def _load_state(self, conn: secateur.Connection) -> bool:
        value, mode = self._next_value(), self.world.random.choice(("overwrite", "upsert"))
        rows = {"id": list(range(_STATE_ROWS)), "v": [value] * _STATE_ROWS}
        return self._change_state(value, lambda: conn.table("state").load(rows, mode=mode))

    def _merge_state(self, conn: secateur.Connection) -> bool:
        value = self._next_value()
        merge = (
            "MERGE INTO state USING (SELECT id, CAST(? AS BIGINT) AS new FROM state) AS s USING (id)"
            " WHEN MATCHED THEN UPDATE SET v = new"
        )
        return self._change_state(value, lambda: conn.execute(merge, [value]))

    def _add_and_drop_range(self, conn: secateur.Connection) -> bool:
        """A range comes, has rows, and goes; others do the same with other ranges."""
        self._range += 1
        first = self._range * 10
        span, rows = f"{first} <= VALUES < {first + 10}", [(first + 1, 1), (first + 9, 2)]
        with self._call("add range") as answered:
            conn.execute(f"ALTER TABLE ranged ADD PARTITION {span}")
        if answered:
            answered = self._write_of(conn, "INSERT INTO ranged VALUES (?, 1), (?, 2)", [first + 1, first + 9])
        if answered:
            self._check_rows(conn, "SELECT day, id FROM ranged WHERE day BETWEEN ? AND ?", [first, first + 9], rows)
            with self._call("drop range") as answered:
                conn.execute(f"ALTER TABLE ranged DROP PARTITION {span}")
        if answered:
            self._check_rows(conn, "SELECT day, id FROM ranged WHERE day BETWEEN ? AND ?", [first, first + 9], [])
        return bool(answered)

    def _create_table(self, conn: secateur.Connection) -> bool:
        """A table comes, has rows, and goes, unless it stays until the end."""
        self._tables += 1
        name = f"other_{self._tables}"
        with self._call("create table") as answered:
            parts = f"PARTITION BY HASH (id) PARTITIONS 3 BACKUPS {self.backups}"
            conn.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY) {parts}")
        if answered:
            self._fill(conn, name)
        if answered and self.world.random.random() < 0.3:
            self._kept_tables.append(name)  # it has to take rows when everything is whole again
        elif answered:
            with self._call("drop table") as answered:
                conn.execute(f"DROP TABLE {name}")
        return bool(answered)

    def _fill(self, conn: secateur.Connection, name: str) -> bool:
        """Rows of each partition come into a table that a client has created, again if they are there."""
        answered = self._write_of(conn, f"INSERT OR REPLACE INTO {name} VALUES (1), (2), (3), (4), (5)", [])
        if answered:
            self._check_rows(conn, f"SELECT id FROM {name}", [], [(1,), (2,), (3,), (4,), (5,)])
        return bool(answered)

    def _write_of(self, conn: secateur.Connection, sql: str, values: list[Any]) -> list[bool]:
        with self._call("insert") as answered:
            conn.execute(sql, values)
        return answered

    def _check_rows(self, conn: secateur.Connection, sql: str, values: list[Any], expected: list[Any]) -> None:
        with self._call("read back"):
            if (rows := sorted(conn.execute(sql, values).fetchall())) != expected:
                self.world.violated(f"{sql} with {values} has the rows {rows}, not {expected}")

    def _change_state(self, value: int, change: Callable[[], Any]) -> bool:
        if len(self.states) >= _HISTORY_MAX:
            return False
        began_s, ended_s = self.world.now_s, math.inf
        with self._call("change state") as answered:
            change()
            ended_s = self.world.now_s
        self.states.append(Call(began_s, ended_s, "write", value))
        return bool(answered)

    def _read_state(self, conn: secateur.Connection) -> bool:
        began_s = self.world.now_s
        with self._call("read state") as answered:
            rows = conn.execute("SELECT count(*), min(v), max(v) FROM state").fetchall()
            count, least, most = rows[0]
            if count != _STATE_ROWS or least != most:
                self.world.violated(f"a change of all rows is seen in part: {rows}")
            elif len(self.states) < _HISTORY_MAX or self.is_over:
                self.states.append(Call(began_s, self.world.now_s, "read", least))
        return bool(answered)

    def _load_batch(self, conn: secateur.Connection) -> bool:
        self._batch += 1
        batch = self._batch
        self.batches_tried.add(batch)
        rows = pa.table(
            {
                "id": pa.array([batch * 100 + row for row in range(_BATCH_ROWS)], pa.int64()),
                "batch": pa.array([batch] * _BATCH_ROWS, pa.int64()),
            }
        )
        with self._call("load") as answered:
            conn.table("batches").load(rows)
            self.batches.add(batch)
        return bool(answered)

    def _read_batches(self, conn: secateur.Connection) -> bool:
        expected = set(self.batches)
        with self._call("read batches") as answered:
            counts = dict(conn.execute("SELECT batch, count(*) FROM batches GROUP BY batch").fetchall())
            if missing := expected - counts.keys():
                self.world.violated(f"acknowledged loads are missing: {sorted(missing)}")
            if unknown := counts.keys() - self.batches_tried:
                self.world.violated(f"there are rows that nobody has loaded: {sorted(unknown)}")
            if partial := {batch: count for batch, count in counts.items() if count != _BATCH_ROWS}:
                self.world.violated(f"loads of {_BATCH_ROWS} rows are seen in part: {partial}")
        return bool(answered)

    # -- what they share

    def _key(self) -> int:
        return self.world.random.choice(self._keys[machine().current.process])

    def _next_value(self) -> int:
        self._value += 1
        return self._value

    def _record(self, key: int, call: Call) -> None:
        if len(self.registers[key]) < _HISTORY_MAX or call.kind != "read" or self.is_over:
            self.registers[key].append(call)

    def _connected(self) -> secateur.Connection:
        while True:
            try:
                return self.world.connect()
            except OperationalError:
                time.sleep(0.2)

    def _until_answered(self, call: Callable[[], bool]) -> None:
        end_s = self.world.now_s + 20
        while not call():
            if self.may_lose:
                return
            if self.world.now_s > end_s:
                self.world.violated(f"a call does not work for 20 s after everything is whole again: {self.last_error}")
                return
            time.sleep(0.3)

    @contextmanager
    def _call(self, kind: str) -> Iterator[list[bool]]:
        answered: list[bool] = []
        began_s = self.world.now_s
        self.calls += 1
        try:
            yield answered
            answered.append(True)
        except OperationalError as error:
            self._failed(kind, error)
            if isinstance(error, PartitionLostError) and not self.may_lose:
                self.world.violated(f"{kind}: {type(error).__name__}: {error}")
        except secateur.Error as error:
            self._failed(kind, error)
            self.world.violated(f"{kind} failed for good: {type(error).__name__}: {error}")
        took_s = self.world.now_s - began_s
        self.longest_s = max(self.longest_s, took_s)
        if took_s > _CALL_S_MAX:
            self.world.violated(f"{kind} took {took_s:.1f} s")

    def _failed(self, kind: str, error: secateur.Error) -> None:
        self.last_error = f"{type(error).__name__}: {error}"
        self.errors[f"{kind}: {type(error).__name__}{'' if error.retry_safe else ', not retryable'}"] += 1


def _shown(calls: list[Call]) -> str:
    return "".join(
        f"\n    {call.began_s:8.4f} to {call.ended_s:8.4f}  {call.kind} {call.value}"
        + (f" if {call.expected}: {call.has_changed}" if call.kind == "write if" else "")
        for call in sorted(calls, key=lambda call: call.began_s)
    )

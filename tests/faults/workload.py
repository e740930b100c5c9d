"""One client of the mixed load, a process of its own: it writes, changes, reads and loads, and checks every answer
while members fail.

What it asks for is what a lost, repeated, stale or partial change would show in:

- ``register``: upserts of growing values, one writer a key; every client reads every key and holds the answer against
  the shared ledger,
- ``counter``: ``n = n + 1``, so a change that is made twice, or acknowledged and lost, shows,
- ``account``: changes of two rows that keep the sum, which every client asks for,
- ``batches``: loads of 500 rows, of which every count sees all or none,
- ``fixed``: rows that nobody changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa

import secateur
from ledger import Ledger
from secateur.errors import Error, MemberLostError, UnreachableError

ACCOUNTS = 200
BALANCE = 1_000
BATCH_ROWS = 500
CLIENTS = 4
FIXED_ROWS = 20_000
KEYS_PER_CLIENT = 60
KEYS = CLIENTS * KEYS_PER_CLIENT
COUNTERS_PER_CLIENT = 10
COUNTERS = CLIENTS * COUNTERS_PER_CLIENT

READ = "SELECT v FROM register WHERE id = ?"
READ_COUNTER = "SELECT n FROM counter WHERE id = ?"
UPSERT = "INSERT OR REPLACE INTO register VALUES (?, ?, ?)"
INCREMENT = "UPDATE counter SET n = n + 1 WHERE id = ?"
TRANSFER = "UPDATE account SET amount = amount + CASE WHEN id = ? THEN 1 ELSE -1 END WHERE id IN (?, ?)"
TOTAL = "SELECT count(*), sum(amount) FROM account"
COUNT_BATCHES = "SELECT batch, count(*) FROM batches GROUP BY batch"
COUNT_FIXED = "SELECT count(*), sum(id) FROM fixed"


@dataclass
class Call:
    """One call of the client's library.

    Attributes:
        kind: What it asked for.
        began_s: When it began, in seconds since the epoch.
        took_s: How long it took.
        error: How it failed; empty if it did not.
        key: The table and key that it read or wrote; empty for a call over several keys.
    """

    kind: str
    began_s: float
    took_s: float
    error: str = ""
    key: str = ""


@dataclass
class Report:
    """What one client met: every call, and a sentence for each wrong answer."""

    calls: list[Call] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    is_complete: bool = False


class Client:
    """Runs the operations of one client at random until its time is up, then reads back everything that it wrote."""

    def __init__(self, address: str, number: int, folder: Path, seed: int) -> None:
        self._conn = secateur.connect(address)
        self._number = number
        self._random = random.Random(f"{seed} client {number}")
        self._registers = Ledger(folder / "register", KEYS)
        self._counters = Ledger(folder / "counter", COUNTERS)
        self._batches = 0
        self._loaded: set[int] = set()
        self.report = Report()
        self._conn.execute(
            READ_COUNTER, [0]
        ).fetchall()  # its plan is known from now on, and needs no controller when it is read back

    def run(self, seconds: float) -> None:
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._read, 40),
            (self._upsert, 25),
            (self._increment, 10),
            (self._read_text, 3),
            (self._transfer, 3),
            (self._total, 3),
            (self._load, 2),
            (self._count_batches, 2),
            (self._count_fixed, 2),
        ]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]()

    def read_back(self) -> None:
        """All keys of this client, by texts that it has used: that needs no controller."""
        for key in self._own_keys():
            self._check_register(key, "read back")
        for key in self._own_counters():
            with self._timed("read back", f"counter {key}"):
                rows = self._conn.execute(READ_COUNTER, [key]).fetchall()
                found, tried, acknowledged = rows[0][0], self._counters.tried[key], self._counters.acknowledged[key]
                if not acknowledged <= found <= tried:
                    self._wrong(f"counter {key} is {found}: {acknowledged} increments were acknowledged, {tried} tried")

    def _read(self) -> None:
        self._check_register(self._random.randrange(KEYS), "read")

    def _read_text(self) -> None:
        key = self._random.randrange(KEYS)
        self._check_register(
            key, "new text", f"SELECT v FROM register WHERE id = {key} AND v >= {-self._random.randrange(1 << 40)}"
        )

    def _check_register(self, key: int, kind: str, text: str | None = None) -> None:
        at_least = int(self._registers.acknowledged[key])
        with self._timed(kind, f"register {key}"):
            rows = (self._conn.execute(READ, [key]) if text is None else self._conn.execute(text)).fetchall()
            found = rows[0][0] if rows else 0
            at_most = int(self._registers.tried[key])
            if not at_least <= found <= at_most:
                self._wrong(
                    f"{kind} of key {key} gave {found}: {at_least} was acknowledged before, {at_most} is the last value"
                    " tried"
                )

    def _upsert(self) -> None:
        key = self._random.choice(self._own_keys())
        value = int(self._registers.tried[key]) + 1
        self._registers.tried[key] = value
        with self._timed("upsert", f"register {key}"):
            self._conn.execute(UPSERT, [key, value, "x" * 20])
            self._registers.acknowledged[key] = value

    def _increment(self) -> None:
        key = self._random.choice(self._own_counters())
        self._counters.tried[key] += 1
        with self._timed("increment", f"counter {key}"):
            self._conn.execute(INCREMENT, [key])
            self._counters.acknowledged[key] += 1

    def _transfer(self) -> None:
        one, other = self._random.sample(range(ACCOUNTS), 2)
        with self._timed("transfer"):
            self._conn.execute(TRANSFER, [one, one, other])

    def _total(self) -> None:
        self._check("total", TOTAL, [(ACCOUNTS, ACCOUNTS * BALANCE)])

    def _count_fixed(self) -> None:
        self._check("count", COUNT_FIXED, [(FIXED_ROWS, FIXED_ROWS * (FIXED_ROWS - 1) // 2)])

    def _load(self) -> None:
        batch = self._number * 1_000_000 + self._batches
        self._batches += 1
        rows = pa.table(
            {"batch": pa.repeat(pa.scalar(batch, pa.int64()), BATCH_ROWS), "n": pa.array(range(BATCH_ROWS), pa.int64())}
        )
        with self._timed("load"):
            self._conn.table("batches").load(rows)
            self._loaded.add(batch)

    def _count_batches(self) -> None:
        expected = set(self._loaded)
        with self._timed("count batches"):
            counts = dict(self._conn.execute(COUNT_BATCHES).fetchall())
            if missing := expected - counts.keys():
                self._wrong(f"{len(missing)} acknowledged loads are missing, such as {min(missing)}")
            if partial := {batch: count for batch, count in counts.items() if count != BATCH_ROWS}:
                self._wrong(f"loads of {BATCH_ROWS} rows are seen in part: {dict(list(partial.items())[:3])}")

    def _check(self, kind: str, text: str, expected: list[tuple[int, int]]) -> None:
        with self._timed(kind):
            rows = self._conn.execute(text).fetchall()
            if rows != expected:
                self._wrong(f"{text} gave {rows}, not {expected}")

    def _own_keys(self) -> range:
        return range(self._number * KEYS_PER_CLIENT, (self._number + 1) * KEYS_PER_CLIENT)

    def _own_counters(self) -> range:
        return range(self._number * COUNTERS_PER_CLIENT, (self._number + 1) * COUNTERS_PER_CLIENT)

    @contextlib.contextmanager
    def _timed(self, kind: str, key: str = "") -> Iterator[None]:
        call = Call(kind, time.time(), 0.0, key=key)
        began = time.monotonic()
        try:
            yield
        except Error as error:
            call.error = f"{type(error).__name__}(retry_safe={getattr(error, 'retry_safe', None)}): {error}"[:300]
            if isinstance(error, MemberLostError | UnreachableError):
                time.sleep(0.02)  # a closed loop of refused calls would only measure the loop
        finally:
            call.took_s = time.monotonic() - began
            self.report.calls.append(call)

    def _wrong(self, sentence: str) -> None:
        self.report.wrong.append(f"{time.time():.3f} {sentence}")


def main() -> None:
    """``workload.py FOLDER NUMBER SECONDS SEED``; the address and the token are in the environment."""
    folder, number, seconds, seed = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    client = Client(os.environ["SECATEUR_ADDRESS"], number, folder, seed)
    client.run(seconds)
    client.read_back()
    client.report.is_complete = True
    (folder / f"report-{number}.json").write_text(json.dumps(asdict(client.report)))


if __name__ == "__main__":
    main()

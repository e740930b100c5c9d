"""What the clients of a simulated cluster do: each has its own mixture of calls to several tables."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Final

import secateur
from call_log import CallLog, Kind, TableGroup
from definitions import Definitions
from feeds import FollowedTable
from machine import Process
from registers import KEYS, Registers
from secateur.errors import OperationalError
from sums import Accounts, Counters
from whole_tables import Batches, State
from world import World

__all__ = ["PAUSE_S", "Workload"]

PAUSE_S: Final = 0.08

_PARTITIONS: Final = (4, 5, 7)
_REPLICATED_SHARE: Final = 0.2
"""How often clients use a replicated table, in proportion to one that is partitioned."""


class Workload:
    """The tables, and what several clients do with them.

    Args:
        world: The cluster.
        backups: Of all tables.
        one_key: Whether all clients are about one key.
        calls: What they do, by name, beside reading a row; none names everything.
        pause_s: How long they rest between two calls, on average.

    Attributes:
        log: Of all calls.
        is_over: Set to have clients end.
        running: How many clients there are.
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
        self.log = CallLog(world)
        self.is_over = False
        self.running = 0
        self._one_key = one_key
        self._calls = calls
        self._pause_s = pause_s
        self._hot = world.random.sample(range(KEYS), 1 if one_key else world.random.choice((1, 2, 3)))
        placements = iter(
            [
                f"PARTITION BY HASH (id) PARTITIONS {world.random.choice(_PARTITIONS)} BACKUPS {backups}"
                for _ in range(6)
            ]
        )
        self._registers = Registers(self.log, "register", next(placements))
        self._replicated = Registers(self.log, "everywhere", "REPLICATED")
        self._groups: list[TableGroup] = [
            self._registers,
            Counters(self.log, next(placements)),
            Accounts(self.log, next(placements)),
            State(self.log, "state", next(placements)),
            Batches(self.log, next(placements)),
            FollowedTable(self.log, next(placements)),
            Definitions(self.log, backups),
            self._replicated,  # the last one: its calls have the names of those of the first
        ]

    def create(self, conn: secateur.Connection) -> None:
        """Make the tables; before any fault."""
        for group in self._groups:
            group.create(conn)

    def run(self, process: Process) -> None:
        """One client, until the workload is over: it has its own mixture of calls, and may rest for so long that it
        does not hear of new owners. Every other one only reads one key, and so needs only one member.
        """
        self.running += 1
        draw = self.world.random
        is_reader = draw.random() < 0.5
        has_one_key = is_reader or self._one_key
        self._confine(process, self._hot[:1] if has_one_key else draw.choice((self._hot, list(range(KEYS)))))
        rests = draw.choice((0.0, 0.0, 0.1))
        conn = self._connected()
        kinds, weights = self._mixture(is_reader=is_reader)
        while not self.is_over:
            draw.choices(kinds, weights)[0](conn)
            time.sleep(draw.uniform(0.5, 3.0) if draw.random() < rests else draw.expovariate(1 / self._pause_s))
        conn.close()
        self.running -= 1

    def run_each(self, process: Process) -> None:
        """One client that does everything that clients do, once."""
        self._confine(process, list(range(KEYS)))
        conn = self._connected()
        for group in self._groups:
            for kind, _ in group.kinds():
                kind(conn)
        conn.close()

    def read_back(self, process: Process) -> None:
        """Read everything once more, after quiet: each call has to work soon."""
        self.running += 1
        conn = self._connected()
        for group in self._groups:
            group.read_back(conn)
        conn.close()
        self.running -= 1

    def check(self) -> None:
        """Judge the histories."""
        for group in self._groups:
            for sentence in group.check():
                self.world.violated(sentence)

    def _mixture(self, *, is_reader: bool) -> tuple[list[Kind], list[float]]:
        """What one client does, and how often."""
        named = {kind.__name__: kind for group in self._groups[:-1] for kind, _ in group.kinds()}
        if self._calls:
            only: tuple[str, ...] = ("read", *self._calls)
        elif self._one_key:
            only = ("read",) if is_reader else ("read", "upsert")
        else:
            only = ("read", "get") if is_reader else ()
        if only:
            return [named[name] for name in only], [1.0] * len(only)
        weights: dict[Kind, float] = {kind: weight for group in self._groups for kind, weight in group.kinds()}
        weights.update((kind, weight * _REPLICATED_SHARE) for kind, weight in self._replicated.kinds())
        chosen = [kind for kind in weights if self.world.random.random() < 0.6] or list(weights)
        return chosen, [weights[kind] for kind in chosen]

    def _confine(self, process: Process, keys: list[int]) -> None:
        self._registers.confine(process, keys)
        self._replicated.confine(process, keys)

    def _connected(self) -> secateur.Connection:
        while True:
            try:
                return self.world.connect()
            except OperationalError:
                time.sleep(0.2)

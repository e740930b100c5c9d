"""What the clients of a simulated cluster do: each has its own mixture of calls to several tables."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Final

import secateur
from alterations import Altered
from call_log import CallLog, Kind, TableGroup
from cancellations import CancellableConnection, Cancellations
from definitions import Definitions
from feeds import FollowedTable
from machine import Process
from registers import KEYS, Registers
from secateur.errors import OperationalError
from sums import Accounts, Counters
from whole_tables import Batches, State
from world import World

__all__ = ["GROUPS", "PAUSE_S", "Workload"]

PAUSE_S: Final = 0.08
GROUPS: Final = (
    "registers",
    "counters",
    "accounts",
    "state",
    "batches",
    "followed",
    "definitions",
    "replicated",
    "altered",
)
"""The tables that there may be, by the promise that they are about."""

_PARTITIONS: Final = (4, 5, 7)
_REPLICATED_SHARE: Final = 0.2
"""How often clients use a replicated table, in proportion to one that is partitioned."""


class Workload:
    """The tables, and what several clients do with them.

    Args:
        world: The cluster.
        backups: Of all tables.
        one_key: Whether all clients are about one key.
        groups: Which of :data:`GROUPS` there are.
        calls: What they do, by name, beside reading a row; none names everything.
        pause_s: How long they rest between two calls, on average.
        cancelled_share: How many of their calls are ended early.

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
        groups: Collection[str] = GROUPS,
        calls: Collection[str] = (),
        pause_s: float = PAUSE_S,
        cancelled_share: float = 0.0,
    ) -> None:
        self.world = world
        self.log = CallLog(world)
        self.is_over = False
        self.running = 0
        self._one_key = one_key
        self._calls = calls
        self._pause_s = pause_s
        self._cancellations = Cancellations(self.log, cancelled_share) if cancelled_share else None
        self._hot = world.random.sample(range(KEYS), 1 if one_key else world.random.choice((1, 2, 3)))
        placements = iter(
            [
                f"PARTITION BY HASH (id) PARTITIONS {world.random.choice(_PARTITIONS)} BACKUPS {backups}"
                for _ in range(7)
            ]
        )
        made: dict[str, TableGroup] = {
            "registers": Registers(self.log, "register", next(placements)),
            "counters": Counters(self.log, next(placements)),
            "accounts": Accounts(self.log, next(placements)),
            "state": State(self.log, "state", next(placements)),
            "batches": Batches(self.log, next(placements)),
            "followed": FollowedTable(self.log, next(placements)),
            "definitions": Definitions(self.log, backups),
            "replicated": Registers(self.log, "everywhere", "REPLICATED"),
            "altered": Altered(self.log, next(placements)),
        }
        self._groups = {name: group for name, group in made.items() if name in groups}
        names = {kind.__name__ for group in self._groups.values() for kind, _ in group.kinds()}
        for call in calls:
            if call not in names:
                raise ValueError(f"no group has the call {call!r}")
        self._with_keys = [group for group in self._groups.values() if isinstance(group, Registers)]

    def create(self, conn: secateur.Connection) -> None:
        """Make the tables; before any fault."""
        for group in self._groups.values():
            group.create(conn)

    def run(self, process: Process) -> None:
        """One client, until the workload is over: it has its own mixture of calls, and may rest for so long that it
        does not hear of new owners. Every other one only reads one key, and so needs only one member.
        """
        self.running += 1
        draw = self.world.random
        is_reader = draw.random() < 0.5 and bool(self._with_keys)
        has_one_key = is_reader or self._one_key
        self._confine(process, self._hot[:1] if has_one_key else draw.choice((self._hot, list(range(KEYS)))))
        rests = draw.choice((0.0, 0.0, 0.1))
        conn, cancellations = self._connected(), self._cancellations
        kinds, weights = self._mixture(is_reader=is_reader)
        while not self.is_over:
            kind = draw.choices(kinds, weights)[0]
            if cancellations is None:
                kind(conn)
            else:
                cancellations.call(conn, kind)
            time.sleep(draw.uniform(0.5, 3.0) if draw.random() < rests else draw.expovariate(1 / self._pause_s))
        conn.close()
        self.running -= 1

    def run_each(self, process: Process) -> None:
        """One client that does everything that clients do, once."""
        self._confine(process, list(range(KEYS)))
        conn = self._connected()
        for group in self._groups.values():
            for kind, _ in group.kinds():
                kind(conn)
        conn.close()

    def read_back(self, process: Process) -> None:
        """Read everything once more, after quiet: each call has to work soon."""
        self.running += 1
        conn = self._connected()
        for group in self._groups.values():
            group.read_back(conn)
        conn.close()
        self.running -= 1

    def check(self) -> None:
        """Judge the histories."""
        for group in self._groups.values():
            for sentence in group.check():
                self.world.differs(sentence, is_loaded=group.is_loaded)

    def _mixture(self, *, is_reader: bool) -> tuple[list[Kind], list[float]]:
        """What one client does, and how often."""
        weights: dict[Kind, float] = {}
        for name, group in self._groups.items():
            share = _REPLICATED_SHARE if name == "replicated" and len(self._groups) > 1 else 1.0
            weights.update((kind, weight * share) for kind, weight in group.kinds())
        if only := self._only(is_reader=is_reader):
            chosen = [kind for kind in weights if kind.__name__ in only]
            return chosen, [1.0] * len(chosen)
        chosen = [kind for kind in weights if self.world.random.random() < 0.6] or list(weights)
        return chosen, [weights[kind] for kind in chosen]

    def _only(self, *, is_reader: bool) -> Collection[str]:
        """The names of the calls that a client is confined to; none if it is not."""
        if self._calls:
            return ("read", *self._calls)
        if self._one_key:
            return ("read",) if is_reader else ("read", "upsert")
        return ("read", "get") if is_reader else ()

    def _confine(self, process: Process, keys: list[int]) -> None:
        for group in self._with_keys:
            group.confine(process, keys)

    def _connected(self) -> CancellableConnection:
        while True:
            try:
                return CancellableConnection(self.world.connect(), self.world)
            except OperationalError:
                time.sleep(0.2)

"""Counts the uses of a table's partitions within the last minute: the difference of what members have counted.

Members count since they have a partition. What happened before a page was first opened is in no difference, and a
partition that has moved begins anew at its new owner.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from secateur.server.dashboard.readings import Reading

_WINDOW_S: Final = 60.0
_STEP_S: Final = 5.0
"""What happened within it is forgotten at once."""
_KEPT_MAX: Final = 16
"""Tables, and pages of large ones. One that nobody has looked at for long begins anew."""


class Uses(NamedTuple):
    """The uses of a partition.

    Attributes:
        reads: Reads of statements and jobs, and look-ups of keys.
        writes: Changes.
    """

    reads: int
    writes: int

    @property
    def hits(self) -> int:
        """Both together."""
        return self.reads + self.writes


_NONE: Final = Uses(0, 0)


@dataclass(frozen=True, slots=True)
class HeatOfTable:
    """The uses of the partitions of a table.

    Attributes:
        window_s: Within so many seconds; None while there is nothing to compare with.
        uses: By partition, for those that were used.
    """

    window_s: float | None
    uses: Mapping[int, Uses]

    def of(self, partition: int) -> Uses:
        """Returns the uses of one partition."""
        return self.uses.get(partition, _NONE)

    def hottest(self, count: int) -> list[tuple[int, Uses]]:
        """The partitions with most hits, and their uses."""
        return sorted(self.uses.items(), key=lambda one: (-one[1].hits, one[0]))[:count]


@dataclass(slots=True)
class _Step:
    seconds: float = 0.0
    uses: dict[int, Uses] = field(default_factory=dict)


@dataclass(slots=True)
class _Watched:
    reading: Reading
    steps: deque[_Step] = field(default_factory=deque)


class PartitionHeat:
    """Compares readings of ``secateur.partitions``. Thread-safe."""

    def __init__(self) -> None:
        self._watched: OrderedDict[tuple[str, int], _Watched] = OrderedDict()
        self._lock = threading.Lock()

    def within_a_minute(self, table: str, first: int, reading: Reading) -> HeatOfTable:
        """The uses of some partitions of a table within the last minute.

        Args:
            table: The table.
            first: Tells apart pages of a large one.
            reading: Its rows, the newest that there are.
        """
        with self._lock:
            watched = self._watched.get((table, first))
            if watched is None or reading.read_s - watched.reading.read_s > _WINDOW_S:
                watched = self._watched[table, first] = _Watched(reading)
                while len(self._watched) > _KEPT_MAX:
                    self._watched.popitem(last=False)
            self._watched.move_to_end((table, first))
            if reading.read_s > watched.reading.read_s:
                _add(watched, reading)
            return _sum(watched.steps)


def _add(watched: _Watched, reading: Reading) -> None:
    before = {row["partition"]: row for row in watched.reading.rows}
    if not watched.steps or watched.steps[-1].seconds >= _STEP_S:
        watched.steps.append(_Step())
    step = watched.steps[-1]
    step.seconds += reading.read_s - watched.reading.read_s
    for row in reading.rows:
        known = before.get(row["partition"])
        if known is None or known["primary_member"] != row["primary_member"]:
            continue
        reads, writes = row["reads"] - known["reads"], row["writes"] - known["writes"]
        if (reads or writes) and reads >= 0 and writes >= 0:  # a member that began anew has counted less
            old = step.uses.get(row["partition"], _NONE)
            step.uses[row["partition"]] = Uses(old.reads + reads, old.writes + writes)
    watched.reading = reading
    while len(watched.steps) > 1 and sum(one.seconds for one in watched.steps) > _WINDOW_S:
        watched.steps.popleft()


def _sum(steps: deque[_Step]) -> HeatOfTable:
    found: dict[int, Uses] = {}
    for step in steps:
        for partition, uses in step.uses.items():
            old = found.get(partition, _NONE)
            found[partition] = Uses(old.reads + uses.reads, old.writes + uses.writes)
    return HeatOfTable(sum(step.seconds for step in steps) or None, found)

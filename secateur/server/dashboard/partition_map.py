"""The partition map of a table: a cell for each partition, its owner by colour.

The shade of a cell is its size, or how often it was used; then its height says that too, so that it is seen without
telling colours apart.

Counts the uses of a table's partitions within the last minute: the difference of what members have counted.

Members count since they have a partition. What happened before a page was first opened is in no difference, and a
partition that has moved begins anew at its new owner.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

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


_CELL: Final = 18
_GAP: Final = 2
_COLUMNS_MAX: Final = 50
_GOLDEN_ANGLE: Final = 137.508
"""Neighbouring members get distant hues, however many there are."""
_FIRST_HUE: Final = 150
_FAINTEST: Final = 0.25
_LOWEST: Final = 2


@dataclass(frozen=True, slots=True)
class MapCell:
    """A partition.

    Attributes:
        x: Pixels from the left.
        y: Pixels from the top.
        color: That of its owner; None if no member has a copy.
        height: Pixels: all the same, or from 2 for one that was not used to that of the hottest.
        shade: From 0.25 for an empty one to 1 for the largest, or the hottest.
        is_incomplete: Whether a backup is missing.
        title: Everything in words.
    """

    x: int
    y: int
    height: int
    color: str | None
    shade: float
    is_incomplete: bool
    title: str


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """The map.

    Attributes:
        width: Pixels.
        height: Pixels.
        cells: The partitions, in their order.
        owners: Members with their colour and the number of partitions that they own.
        incomplete: Partitions that lack a backup.
        lost: Partitions of which no member has a copy.
        size: The side of a cell in pixels.
    """

    width: int
    height: int
    cells: tuple[MapCell, ...]
    owners: tuple[tuple[str, str, int], ...]
    incomplete: int
    lost: int
    size: int = _CELL


def draw_partition_map(
    rows: Sequence[Mapping[str, Any]],
    members: Sequence[str],
    only: str | None = None,
    heat: HeatOfTable | None = None,
) -> PartitionMap:
    """Draw the map of a table.

    Args:
        rows: Its rows of ``secateur.partitions``, in the order of the partitions.
        members: The ids of all members, which give a member the same colour in all maps.
        only: The member whose partitions are shown; others are faint. None for all.
        heat: How often they were used, to be shown in place of their sizes; None for the sizes.
    """
    owned = dict.fromkeys(members, 0)
    for row in rows:
        if row["primary_member"] is not None:
            owned[row["primary_member"]] = owned.get(row["primary_member"], 0) + 1
    colors = {member: _color(number) for number, member in enumerate(owned)}
    sizes = [row["bytes"] if heat is None else heat.of(row["partition"]).hits for row in rows]
    largest = max(sizes, default=0)
    columns = min(_COLUMNS_MAX, max(1, math.ceil(math.sqrt(len(rows) * 2.5))))
    step = _CELL + _GAP
    heights = [_CELL if heat is None else _height(size, largest) for size in sizes]
    cells = tuple(
        MapCell(
            number % columns * step + 1,
            number // columns * step + 1 + _CELL - height,
            height,
            colors.get(row["primary_member"]),
            0.06 if only not in (None, row["primary_member"]) else _shade(size, largest),
            row["copies_missing"] > 0,
            _title(row, heat),
        )
        for number, (row, size, height) in enumerate(zip(rows, sizes, heights, strict=True))
    )
    lines = math.ceil(len(rows) / columns)
    return PartitionMap(
        columns * step,
        lines * step,
        cells,
        tuple((member, colors[member], count) for member, count in owned.items()),
        sum(row["copies_missing"] > 0 for row in rows),
        sum(row["primary_member"] is None and row["copies_missing"] > 0 for row in rows),
    )


def _color(number: int) -> str:
    return f"hsl({(_FIRST_HUE + number * _GOLDEN_ANGLE) % 360:.0f} 55% {42 + number % 3 * 6}%)"


def _shade(size: int, largest: int) -> float:
    """By the square root: half the bytes is not half as dark, but still seen."""
    return round(_FAINTEST + (1 - _FAINTEST) * math.sqrt(size / largest), 2) if largest else _FAINTEST


def _height(size: int, largest: int) -> int:
    return _LOWEST + round((_CELL - _LOWEST) * math.sqrt(size / largest)) if largest else _LOWEST


def _title(row: Mapping[str, Any], heat: HeatOfTable | None) -> str:
    owner = row["primary_member"] or ("every member" if row["copies_missing"] == 0 else "no owner")
    missing = f", {row['copies_missing']} missing" if row["copies_missing"] else ""
    within = f" {row['range']}" if row["range"] else ""
    said = f"{row['rows']:,} rows"
    if heat is not None:
        uses = heat.of(row["partition"])
        said = f"{uses.reads:,} reads, {uses.writes:,} writes"
    return f"p{row['partition']}{within}: {owner}, {said}{missing}"

"""The partition map of a table: a cell for each partition, its owner by colour.

The shade of a cell is its size, or how often it was used; then its height says that too, so that it is seen without
telling colours apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from secateur.server.dashboard.partition_heat import HeatOfTable

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

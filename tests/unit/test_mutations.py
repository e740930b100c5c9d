"""The faults of ``tests/mutations`` can still be planted: what ``make mutations`` measures is the product of today."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from planted import PLANTED

ROOT = Path(__file__).parents[2]

ROOMS = {
    *("partitioning", "protocol", "wire", "dag", "client", "storage", "engine", "connectors", "pipeline", "planner"),
    *("cluster/controller", "cluster/member", "server", "cli"),
}


def test_each_text_stands_once_in_its_file() -> None:
    stale = []
    for mutation in PLANTED:
        try:
            planted = mutation.planted_in((ROOT / "secateur" / mutation.file).read_text(encoding="utf-8"))
        except (LookupError, OSError) as error:
            stale.append(str(error))
        else:
            ast.parse(planted)
    assert not stale


def test_each_fault_has_a_name_of_its_own_and_every_room_has_two() -> None:
    names = Counter(mutation.name for mutation in PLANTED)
    assert len(PLANTED) == 68
    assert [name for name, count in names.items() if count > 1] == []
    rooms = Counter(mutation.room for mutation in PLANTED)
    assert {room: rooms[room] for room in ROOMS if rooms[room] < 2} == {}

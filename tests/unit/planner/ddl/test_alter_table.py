from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from secateur.partitioning.schemes import (
    AddRange,
    DropNamed,
    DropRange,
    HashComponent,
    RangeChange,
    RangeSpec,
    catch_all,
    single_value,
)
from secateur.planner import AlterTable


@pytest.fixture
def alter(context: Any) -> Callable[[str], tuple[RangeChange, ...]]:
    context.create(
        "CREATE TABLE days (n INT, id INT, PRIMARY KEY (n, id)) PARTITION BY HASH (id) PARTITIONS 2, RANGE (n)"
        " (PARTITION one 1 <= VALUES < 2, PARTITION 2 <= VALUES < 3, PARTITION VALUE = 9, DEFAULT PARTITION rest)"
    )
    context.create("CREATE TABLE pairs (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY RANGE (a, b) SPLIT AT ((1, 1))")

    def prepare(sql: str) -> tuple[RangeChange, ...]:
        statement = context.prepare(sql)
        assert isinstance(statement, AlterTable)
        return statement.changes

    return prepare


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param("ADD PARTITION 3 <= VALUES < 4", [AddRange(RangeSpec((3,), (4,)))], id="add"),
        pytest.param(
            "ADD PARTITION three 3 <= VALUES < 4 NO HASH",
            [AddRange(RangeSpec((3,), (4,), "three", ()))],
            id="add without hash",
        ),
        pytest.param(
            "add partition 3 <= values < 4 hash (id) partitions 8 seed 5",
            [AddRange(RangeSpec((3,), (4,), None, (HashComponent(("id",), 8, 5),)))],
            id="a busy month gets more buckets",
        ),
        pytest.param("ADD PARTITION VALUE = 7", [AddRange(single_value((7,)))], id="add a value"),
        pytest.param("DROP PARTITION one", [DropNamed("one")], id="drop by name"),
        pytest.param('DROP PARTITION "ONE"', [DropNamed("ONE")], id="drop by quoted name"),
        pytest.param("DROP PARTITION 2 <= VALUES < 3", [DropRange(RangeSpec((2,), (3,)))], id="drop by bounds"),
        pytest.param(
            "DROP PARTITION one 1 <= VALUES < 2", [DropRange(RangeSpec((1,), (2,), "one"))], id="drop by both"
        ),
        pytest.param("DROP PARTITION VALUE = 9", [DropRange(single_value((9,)))], id="drop by value"),
        pytest.param("DROP DEFAULT PARTITION", [DropRange(catch_all())], id="drop the catch-all"),
        pytest.param(
            "DROP DEFAULT PARTITION, ADD DEFAULT PARTITION",
            [DropRange(catch_all()), AddRange(catch_all())],
            id="a new catch-all",
        ),
        pytest.param(
            "DROP PARTITION one, ADD PARTITION 0 <= VALUES < 2, DROP PARTITION rest",
            [DropNamed("one"), AddRange(RangeSpec((0,), (2,))), DropNamed("rest")],
            id="several",
        ),
    ],
)
def test_changes(alter: Callable[[str], tuple[RangeChange, ...]], changes: str, expected: list[RangeChange]) -> None:
    assert alter(f"ALTER TABLE Days {changes}") == tuple(expected)

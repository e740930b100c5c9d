"""Every statement of ``hostile/*.sql`` and condition of ``hostile/conditions.txt``, one a line, over the tables of
``conftest.py``.

Each is planned, pruned, run whole and in parts, and compared with DuckDB.

They are what an adversary tried: shadowed names, joins that hide or merge columns, filters above operators that they
must not pass, constants in every spelling, comparisons across types. Those that were wrong once are told apart in
``test_dialect_traps.py``.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from worlds import World, check

STATEMENTS = [
    pytest.param(line, id=f"{path.stem}:{number}")
    for path in sorted((Path(__file__).parent / "hostile").glob("*.sql"))
    for number, line in enumerate(path.read_text().splitlines(), 1)
    if line and not line.startswith("--")
]


CONDITIONS = (Path(__file__).parent / "hostile" / "conditions.txt").read_text().splitlines()


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.sampled(one_in=5)
def test_the_pruned_answer_equals_duckdbs(world: World, sql: str) -> None:
    assert check(world, sql, (), random.Random(1)), f"DuckDB refuses {sql}"


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.sampled(one_in=8)
def test_a_condition_on_either_side_of_an_outer_join(world: World, condition: str) -> None:
    """Conditions in three-valued logic: of a scan alone, and of the side that an outer join extends with NULL."""
    assert check(world, f"SELECT count(*), sum(y.v) FROM t y WHERE {condition}", (), random.Random(1))
    for kind in ("LEFT JOIN", "FULL JOIN"):
        source = f"(SELECT * FROM t WHERE c <> DATE '2024-01-03') x {kind} t y ON x.a = y.a + 2 AND x.b = y.b"
        assert check(
            world, f"SELECT count(*), sum(x.v), sum(y.v) FROM {source} WHERE {condition}", (), random.Random(1)
        )


@pytest.mark.parametrize(
    ("where", "params"),
    [
        ("mixed WHERE id > $1", ["B0000000-0000-0000-0000-000000000000"]),
        ("mixed WHERE id < $1", ["B0000000-0000-0000-0000-000000000000"]),
        ("mixed WHERE id = $1", ["A0000000-0000-0000-0000-000000000000"]),
        ("mixed WHERE f = $1", ["true"]),
        ("mixed WHERE f = $1", [1]),
        ("mixed WHERE f = $1", [2]),
        ("mixed WHERE f = $1", [1.0]),
        ("mixed WHERE n = $1", ["0.250"]),
        ("mixed WHERE n = $1", ["0.254"]),
        ("mixed WHERE n = $1", [0.25]),
        ("t WHERE a < $1", [float("nan")]),
        ("t WHERE a < $1", [float("inf")]),
        ("t WHERE a < $1", [2**63]),
        ("t WHERE a > $1", [-(2**127)]),
        ("t WHERE a IN ($1, $2)", ["1", 2.0]),
        ("t WHERE a IN ($1, $2)", [True, 2]),
        ("t WHERE a IN ($1, $2)", [True, 2.0]),
        ("numbers WHERE n = $1", [Decimal("0.250")]),
        ("numbers WHERE n = $1", [Decimal("0.255")]),
        ("numbers WHERE n < $1", [Decimal("NaN")]),
        ("numbers WHERE n = $1", ["0.255"]),
        ("numbers WHERE n < $1", ["0.505"]),
        ("numbers WHERE n >= $1", ["0.495"]),
        ("numbers WHERE n = $1", [True]),
        ("numbers WHERE n IN ($1, $2)", [Decimal("0.25"), 1]),
        ("numbers WHERE s = $1", [Decimal(1)]),
        ("numbers WHERE s = $1", [300]),
        ("numbers WHERE s = $1", ["1"]),
        ("numbers WHERE s = $1", ["1.6"]),
        ("instants WHERE x = $1", [b"a"]),
        ("instants WHERE x = $1", [bytearray(b"a")]),
        ("instants WHERE x = $1", ["a"]),
        ("instants WHERE ts = $1", [datetime(2023, 12, 31, 7)]),
        ("instants WHERE ts = $1", [datetime(2023, 12, 31, 9, tzinfo=timezone(timedelta(hours=2)))]),
        ("instants WHERE z = $1", [datetime(2023, 12, 31, 9, tzinfo=timezone(timedelta(hours=2)))]),
        ("instants WHERE z = $1", [datetime(2023, 12, 31, 7, tzinfo=UTC)]),
        ("instants WHERE z = $1", [datetime(2023, 12, 31, 7)]),
        ("instants WHERE ts >= $1", [date(2024, 1, 1)]),
        ("instants WHERE ts = $1", ["2023-12-31 07:00:00"]),
        ("instants WHERE ts >= $1", ["2023-12-31 07:00:00+02"]),
        ("instants WHERE z >= $1", ["2023-12-31 07:00:00+02"]),
    ],
)
def test_parameters_of_other_types_than_the_column(world: World, where: str, params: list[Any]) -> None:
    assert check(world, f"SELECT count(*) FROM {where}", params, random.Random(1))

"""Pruning is sound over key columns of every kind: what :mod:`predicates` draws for integers, texts and dates, here for
booleans, instants with and without a zone, and decimals.

``SECATEUR_PRUNING_WORLDS`` and ``SECATEUR_PRUNING_SEED`` mean what they mean in ``test_pruning``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from extremes import BEYOND_INSTANTS, BEYOND_SPELLED, now_and_then
from worlds import World, check

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
FIRST_SEED = int(os.environ.get("SECATEUR_PRUNING_SEED", "0"))
STATEMENTS_PER_WORLD = 12
BINDINGS_PER_STATEMENT = 3

INSTANTS = [datetime(2024, 1, 1) + timedelta(hours=6 * step) for step in range(-6, 12)]
AMOUNTS = [Decimal(f"{cents}e-2") for cents in (-150, -1, 0, 50, 100, 150, 250, 999, 999_999, -999_999)]
# No value overflows when one is added or its sign changes: whether DuckDB evaluates that before another conjunct
# refuses the row is its own business.
TINIES = [-127, -3, 0, 1, 2, 126]
SCHEMES = [
    "HASH (f) PARTITIONS 2, HASH (t) PARTITIONS 5",
    "HASH (t, f) PARTITIONS 7",
    "HASH (m) PARTITIONS 6, RANGE (ts) SPLIT AT (TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 12:00:00')",
    "HASH (ts) PARTITIONS 5, RANGE (t) (PARTITION VALUES < 0, PARTITION VALUE = 1, PARTITION 2 <= VALUES)",
    "RANGE (m, t) SPLIT AT ((0, 0), (1.5, 2))",
    "HASH (tz) PARTITIONS 11",
    "HASH (f) PARTITIONS 2, RANGE (tz, t) SPLIT AT ((TIMESTAMPTZ '0001-01-01', 1), (TIMESTAMPTZ '2024-01-01', 0))",
    "RANGE (f, ts) SPLIT AT ((false, TIMESTAMP '2024-01-01 00:00:00'), (true, TIMESTAMP '2024-01-02 00:00:00'))",
]


class KeyPredicates:
    """Random predicates over the columns ``f BOOLEAN, t TINYINT, ts TIMESTAMP, tz TIMESTAMPTZ, m DECIMAL(6, 2), v
    BIGINT``.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.makers: list[Callable[[], Any]] = []

    def predicate(self, depth: int) -> str:
        rng = self.rng
        match rng.choice(["leaf", "AND", "OR", "NOT", "IS"]) if depth else "leaf":
            case "NOT":
                return f"NOT ({self.predicate(depth - 1)})"
            case "IS":
                return (
                    f"({self.predicate(depth - 1)}) IS"
                    f" {rng.choice(['TRUE', 'FALSE', 'NULL', 'NOT TRUE', 'NOT FALSE', 'NOT NULL'])}"
                )
            case "leaf":
                return self.leaf()
            case word:
                return f"({self.predicate(depth - 1)} {word} {self.predicate(depth - 1)})"

    def leaf(self) -> str:
        rng = self.rng
        column = rng.choice(["f", "t", "ts", "tz", "m", "v"])
        name = rng.choice(
            {
                "t": ["t", "t", "t + 1", "-(t)", "CAST(t AS INTEGER)", "CAST(t AS BIGINT) - 1"],
                "ts": self.truncations(),
                "tz": ["tz", "tz", "tz", "tz::DATE", "date_trunc('day', tz)", "tz::TIMESTAMP"],
                "f": ["f", "(f)"],
            }.get(column, [column])
        )
        value = lambda: self.value(column)  # noqa: E731
        match rng.choice(["compare", "compare", "IN", "NOT IN", "BETWEEN", "DISTINCT", "bare", "row", "equal"]):
            case "IN":
                return f"{name} IN ({value()}, {value()})"
            case "NOT IN":
                return f"{name} NOT IN ({value()}, {value()})"
            case "BETWEEN":
                return f"{name} {rng.choice(['', 'NOT '])}BETWEEN {value()} AND {value()}"
            case "DISTINCT":
                return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {value()}"
            case "bare":
                return rng.choice(
                    ["f", "NOT f", "f = (t > 1)", "f IS NULL", "(t <> 1) = TRUE", "f = TRUE", "f <> FALSE"]
                )
            case "row":
                row = rng.sample(["f", "t", "ts", "tz", "m"], 2)
                return (
                    f"({', '.join(row)}) {rng.choice(['=', '<>', '<', '<=', '>', '>='])}"
                    f" ({', '.join(map(self.value, row))})"
                )
            case "equal":
                return f"(t = v AND v {rng.choice(['=', '<', '>='])} {self.value('v')})"
            case _:
                return f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {value()}"

    def truncations(self) -> list[str]:
        return [
            "ts",
            "ts",
            "CAST(ts AS DATE)",
            *(f"date_trunc('{unit}', ts)" for unit in ("hour", "day", "week", "month", "year")),
        ]

    def value(self, column: str) -> str:
        rng = self.rng
        if rng.random() < 0.3:
            self.makers.append(self.maker(column))
            return f"${len(self.makers)}"
        if rng.random() < 0.05:
            return rng.choice(["NULL", "CAST(NULL AS INTEGER)", "CAST(NULL AS DOUBLE)"])
        match column:
            case "f":
                return rng.choice(["TRUE", "FALSE", "1 = 1", "'true'"])
            case "t" | "v":
                return rng.choice([*map(str, TINIES), "1.5", "2.0", "300", "'1'", "1e0"])
            case "m":
                return rng.choice(
                    [*map(str, AMOUNTS), "0.505", "1", "'1.5'", "1.5e0", "CAST(1.5 AS DECIMAL(6,2))", "99999.5"]
                )
            case _:
                instant = now_and_then(rng, list(map(str, INSTANTS)), BEYOND_SPELLED)
                return rng.choice(
                    [
                        f"TIMESTAMP '{instant}'",
                        f"TIMESTAMPTZ '{instant}'",
                        f"'{instant}'",
                        f"'{instant}'::DATE",
                        f"TIMESTAMP '{instant}' + INTERVAL 1 HOUR",
                        f"'{instant}'::TIMESTAMPTZ - INTERVAL 6 HOURS",
                    ]
                )

    def maker(self, column: str) -> Callable[[], Any]:
        """A parameter keeps to one Python type, as a prepared statement does."""
        rng = self.rng
        choices: dict[str, list[list[Any]]] = {
            "f": [[True, False, None], ["true", "false"], [0, 1]],
            "t": [[*TINIES, 300, None], [1.0, 2.5], [Decimal("1.0"), Decimal("1.5")], ["1", "2"]],
            "v": [[*TINIES, None]],
            "m": [[*AMOUNTS, None], [0, 1, 2], [Decimal("0.505"), Decimal("1.5")], [1.5, 0.0]],
            "ts": [
                [*INSTANTS, None, datetime.min, datetime.max],
                [*(instant.date() for instant in INSTANTS), date.min, date.max],
                [*map(str, INSTANTS), *BEYOND_SPELLED],
                [instant.replace(tzinfo=UTC) for instant in (*INSTANTS, datetime.min, datetime.max)],
            ],
        }
        values = rng.choice(choices["ts" if column == "tz" else column])
        return lambda: rng.choice(values)


def _rows(rng: random.Random) -> list[dict[str, Any]]:
    def instant() -> Any:
        return now_and_then(rng, INSTANTS, BEYOND_INSTANTS)

    made = [(rng.random() < 0.5, rng.choice(TINIES), instant(), instant(), rng.choice(AMOUNTS)) for _ in range(100)]
    return [
        dict(zip(("f", "t", "ts", "tz", "m", "v"), (*key, rng.choice([None, *TINIES])), strict=True))
        for key in dict.fromkeys(made)
    ]


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_pruned_answers_equal_duckdb_over_keys_of_other_types(seed: int) -> None:
    rng = random.Random(7_000_000 + seed)
    world = World()
    ddl = (
        "CREATE TABLE t (f BOOLEAN, t TINYINT, ts TIMESTAMP, tz TIMESTAMPTZ, m DECIMAL(6,2), v BIGINT,"
        f" PRIMARY KEY (f, t, ts, tz, m)) PARTITION BY {rng.choice(SCHEMES)}"
    )
    world.create(ddl, lambda table: _rows(rng))
    checked = 0
    for _ in range(STATEMENTS_PER_WORLD):
        predicates = KeyPredicates(rng)
        sql = f"SELECT * FROM t WHERE {predicates.predicate(rng.randint(0, 3))}"
        for _ in range(BINDINGS_PER_STATEMENT if predicates.makers else 1):
            checked += check(world, sql, [make() for make in predicates.makers], rng)
    assert checked >= STATEMENTS_PER_WORLD // 3, (
        f"seed {seed}: DuckDB refused too many statements for the test to mean anything"
    )

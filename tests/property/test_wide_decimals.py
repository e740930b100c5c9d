"""Decimals of up to 38 digits, written out, as text and as parameters: pruned == unpruned == DuckDB, to the last digit.

Values come with neighbours that differ in the last digit only, so that a value which is rounded somewhere finds another
row, or none.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import secateur
from secateur.partitioning.types import from_unscaled

PARTITIONINGS = ["HASH (k) PARTITIONS 7", "RANGE (k) SPLIT AT ({0}, {1}, {2})", "HASH (g) PARTITIONS 3"]
TYPES = [(38, 0), (38, 2), (38, 37), (30, 15), (18, 6), (5, 2)]
ROWS = 40
FACTOR = float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))
STATEMENTS = int(10 * FACTOR)
CHANGES = 6


class World:
    """A table and its oracle."""

    def __init__(
        self, rng: random.Random, conn: secateur.Connection, name: str, precision: int, scale: int, partitioning: str
    ) -> None:
        self.rng, self.conn, self.name, self.precision, self.scale = rng, conn, name, precision, scale
        self.failure: secateur.DatabaseError | None = None  # the last one, for messages
        largest = 10**precision - 1
        found = {largest, -largest, 0, 1, -1}
        while len(found) < ROWS:
            unit = rng.choice([-1, 1]) * rng.randrange(10 ** rng.randint(0, precision))
            found |= {unit, max(-largest, min(largest, unit + rng.choice([-1, 1]))), -unit}
        self.values = sorted(from_unscaled(unit, scale) for unit in found)
        splits = sorted(rng.sample(self.values[1:-1], 3))
        columns = f"k DECIMAL({precision}, {scale}), g INTEGER, v DECIMAL({precision}, {scale}), PRIMARY KEY (k, g)"
        self.oracle = duckdb.connect()
        self.oracle.execute(f"CREATE TABLE {name} ({columns})")
        conn.execute(
            f"CREATE TABLE {name} ({columns}) PARTITION BY {partitioning.format(*(f'({split:f})' for split in splits))}"
        )
        self.change(
            f"INSERT INTO {name} VALUES"
            f" {', '.join(f'({value:f}, {number % 4}, {value:f})' for number, value in enumerate(self.values))}",
            [],
        )

    def change(self, sql: str, params: Sequence[Any]) -> None:
        self.oracle.execute(sql, params)
        self.conn.execute(sql, params)

    def near(self) -> Decimal:
        """A value of the table, or one that differs from it in the last digit, with a digit more sometimes."""
        value = self.rng.choice(self.values)
        unit = int(f"{value:f}".replace(".", "")) if self.scale else int(value)
        return (
            from_unscaled(unit + self.rng.choice([-1, 0, 0, 0, 1]), self.scale)
            if abs(unit) < 10**self.precision - 1
            else value
        )

    def operand(self, params: list[Any]) -> str:
        value = self.near()
        match self.rng.randrange(5):
            case 0 | 1:
                return f"{value:f}"
            case 2:
                params.append(value)
                return "?"
            case 3:
                return f"CAST('{value:f}' AS DECIMAL({self.precision}, {self.scale}))"
            case _:
                return f"({value:f})"

    def predicate(self, params: list[Any], table: str = "") -> str:
        column = table + self.rng.choice(["k", "k", "v"])
        match self.rng.randrange(8):
            case 0 | 1:
                return f"{column} = {self.operand(params)}"
            case 2:
                return f"{column} <> {self.operand(params)}"
            case 3:
                return f"{column} {self.rng.choice(['<', '<=', '>', '>='])} {self.operand(params)}"
            case 4:
                return f"{column} IN ({', '.join(self.operand(params) for _ in range(self.rng.randint(1, 4)))})"
            case 5:
                return f"{column} BETWEEN {self.operand(params)} AND {self.operand(params)}"
            case 6:
                return f"NOT {column} {self.rng.choice(['<', '>='])} {self.operand(params)}"
            case _:
                return (
                    f"({self.predicate(params, table)} {self.rng.choice(['AND', 'OR'])}"
                    f" {self.predicate(params, table)})"
                )

    def answers(self, sql: str, params: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Pruned, unpruned, DuckDB's; a text for an error."""
        found = []
        for pruning in ("on", "off"):
            self.conn.execute(f"SET pruning = {pruning}")
            try:
                found.append(self.conn.execute(sql, params).fetchall())
            except secateur.DatabaseError as error:
                found.append(["error"])
                self.failure = error
        self.conn.execute("SET pruning = on")
        try:
            found.append(self.oracle.execute(sql, params).fetchall())
        except duckdb.Error:
            found.append(["error"])
        return found[0], found[1], found[2]

    def check(self, sql: str, params: Sequence[Any]) -> None:
        pruned, unpruned, expected = self.answers(sql, params)
        assert pruned == expected, f"pruned: {sql} {params} {self.failure}"
        assert unpruned == expected, f"unpruned: {sql} {params} {self.failure}"


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize(("precision", "scale"), TYPES)
@pytest.mark.sampled(one_in=8)
def test_no_digit_is_lost(
    conn: secateur.Connection, table_name: str, precision: int, scale: int, partitioning: str
) -> None:
    rng = random.Random(f"{precision} {scale} {partitioning}")
    world = World(rng, conn, table_name, precision, scale, partitioning)
    for _ in range(STATEMENTS):
        params: list[Any] = []
        world.check(f"SELECT k, g, v FROM {table_name} WHERE {world.predicate(params)} ORDER BY k, g", params)
    for _ in range(STATEMENTS // 5):
        params = []
        joined = f"{table_name} x JOIN {table_name} y ON x.k = y.v"
        world.check(f"SELECT x.k, y.g FROM {joined} WHERE {world.predicate(params, 'x.')} ORDER BY ALL", params)
    world.check(f"SELECT k FROM {table_name} ORDER BY v DESC, g", [])
    world.check(f"SELECT g, min(k), max(v) FROM {table_name} GROUP BY g ORDER BY g", [])
    for _ in range(CHANGES):
        params = []
        updates = rng.random() < 0.5
        change = f"UPDATE {table_name} SET v = {world.operand(params)}" if updates else f"DELETE FROM {table_name}"
        column = rng.choice(["k =", "v =", "k <"] if updates else ["k =", "v ="])
        world.change(f"{change} WHERE {column} {world.operand(params)}", params)
        world.check(f"SELECT * FROM {table_name} ORDER BY k, g", [])


def test_bounds_of_ranges_keep_every_digit(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (k DECIMAL(38, 2), PRIMARY KEY (k)) PARTITION BY RANGE (k) SPLIT AT"
        " (-123456789012345678901234567890.12)"
    )
    ((text,),) = conn.execute(f"SHOW CREATE TABLE {table_name}").fetchall()
    assert "VALUES < (-123456789012345678901234567890.12)" in text


def test_values_of_a_range_that_is_a_single_key_keep_every_digit(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (k DECIMAL(38, 0), PRIMARY KEY (k)) PARTITION BY RANGE (k) (PARTITION VALUE ="
        " (-12345678901234567890123456789012345678))"
    )
    conn.execute(f"INSERT INTO {table_name} VALUES (-12345678901234567890123456789012345678)")
    with pytest.raises(secateur.Error):
        conn.execute(f"INSERT INTO {table_name} VALUES (-12345678901234567890123456789012345677)")


def test_an_index_finds_a_wide_decimal(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (id INTEGER, v DECIMAL(38, 2), PRIMARY KEY (id)) PARTITION BY HASH (id)"
        " PARTITIONS 3"
    )
    conn.execute(
        f"INSERT INTO {table_name} VALUES (1, -123456789012345678901234567890.12), (2,"
        " -123456789012345678901234567900.00)"
    )
    conn.execute(f"CREATE INDEX {table_name}_v ON {table_name} (v)")
    assert conn.execute(f"SELECT id FROM {table_name} WHERE v = -123456789012345678901234567890.12").fetchall() == [
        (1,)
    ]


@pytest.mark.parametrize("group_by", ["", " GROUP BY g"])
def test_a_sum_past_38_digits_is_an_error_and_no_number(
    conn: secateur.Connection, table_name: str, group_by: str
) -> None:
    # Rounded to 28 digits each value is a little less than a third of 10^38, and their sum seems to fit.
    conn.execute(
        f"CREATE TABLE {table_name} (id INTEGER, g INTEGER, v DECIMAL(38, 0), PRIMARY KEY (id, g)) PARTITION BY HASH"
        " (g) PARTITIONS 3"
    )
    conn.execute(f"INSERT INTO {table_name} SELECT i, 1, 33333333333333333333333333333333333334 FROM range(3) r(i)")
    with pytest.raises(secateur.DataError):
        conn.execute(f"SELECT sum(v) FROM {table_name} WHERE g = 1{group_by}").fetchall()

"""Statements over a few keys give one answer: asked of each owner once, run as a job, unpruned, and in DuckDB.

``SECATEUR_SCATTER_STATEMENTS`` sets how many random statements are tried, ``SECATEUR_SEED`` the seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import secateur
from extremes import BEYOND_SPELLED, BEYOND_TEXTS, literal, now_and_then
from worlds import DAYS, rows_in_duckdb, rows_of

STATEMENTS = int(os.environ.get("SECATEUR_SCATTER_STATEMENTS", "10"))
SEED = int(os.environ.get("SECATEUR_SEED", "0"))

KEYS = 24
TABLES = {
    "f": (
        "(k BIGINT, n INT, i BIGINT, d DECIMAL(9, 2), x DOUBLE, s TEXT, t DATE, u UUID, b BOOL, PRIMARY KEY (k, n))",
        "PARTITION BY HASH (k) PARTITIONS 19",
    ),
    "m": ("(k BIGINT, name VARCHAR, w INTEGER, PRIMARY KEY (k))", "PARTITION BY HASH (k) PARTITIONS 19"),
    "r": ("(s VARCHAR, title VARCHAR, PRIMARY KEY (s))", "REPLICATED"),
}
AGGREGATES = (
    *("count(*)", "count(i)", "sum(i)", "avg(i)", "min(i)", "max(s)", "sum(d)", "avg(x)", "sum(x)", "max(t)"),
    *("bool_or(b)", "count(DISTINCT s)", "min(u)", "sum(DISTINCT n)", "max(x)", "sum(n) FILTER (WHERE b)"),
)
EXACT = ("count(*)", "count(i)", "sum(i)", "min(i)", "max(s)", "sum(d)", "max(t)", "min(d)", "sum(n)", "max(k)")
"""Aggregates that a client merges."""
GROUPS = ("s", "b", "k", "s, b", "t", "n % 2", "coalesce(s, 'none')")
FURTHER = ("i > 0", "s = 'b'", "b", "x < 1.5", "d BETWEEN 0 AND 3", "s IS NULL", "n <> 2", "t > DATE '2024-01-03'")


class Makes:
    """Makes statements with numbered parameters, and notes the values."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.params: list[Any] = []

    def statement(self) -> str:
        make = self.rng.choice(
            (self.rows, self.aggregate, self.groups, self.groups, self.joined, self.exact, self.exact)
        )
        return make()

    def rows(self) -> str:
        columns = ", ".join(self.rng.sample(["k", "n", "i", "d", "x", "s", "t", "u", "b", "i + n", "upper(s)"], 4))
        distinct = self.rng.choice(("", "", "DISTINCT "))
        sql = f"SELECT {distinct}{columns} FROM f WHERE {self.where()}"
        if distinct or self.rng.random() < 0.5:
            return sql
        first = self.rng.choice(("i DESC NULLS LAST", "s", "x NULLS FIRST", "d DESC", "k"))
        limit = self.rng.choice(("", "LIMIT 3", "LIMIT 0", "LIMIT 5 OFFSET 2", "LIMIT 50"))
        return f"{sql} ORDER BY {first}, k, n {limit}"

    def aggregate(self) -> str:
        return f"SELECT {self.aggregates()} FROM f WHERE {self.where()}"

    def groups(self) -> str:
        by = self.rng.choice(GROUPS)
        having = self.rng.choice(("", "", f"HAVING {self.rng.choice(('count(*) > 1', 'sum(i) IS NOT NULL'))}"))
        return f"SELECT {by}, {self.aggregates()} FROM f WHERE {self.where()} GROUP BY {by} {having}"

    def exact(self) -> str:
        """A statement in one of the forms that a client merges by itself."""
        aggregates = ", ".join(self.rng.sample(EXACT, self.rng.randint(1, 3)))
        by = self.rng.choice(("s", "b", "k", "s, b", "t", "d"))
        match self.rng.randrange(4):
            case 0:
                return f"SELECT {aggregates} FROM f WHERE {self.where()}"
            case 1:
                return f"SELECT {by}, {aggregates} FROM f WHERE {self.where()} GROUP BY {by}"
            case 2:
                order = ", ".join(
                    f"{column} {self.rng.choice(('', 'DESC'))} NULLS {self.rng.choice(('FIRST', 'LAST'))}"
                    for column in by.split(", ")
                )
                return f"SELECT {by}, {aggregates} FROM f WHERE {self.where()} GROUP BY {by} ORDER BY {order}"
            case _:
                return f"SELECT DISTINCT s, b FROM f WHERE {self.where()}"

    def joined(self) -> str:
        kind = self.rng.choice(("JOIN", "LEFT JOIN"))
        other = self.rng.choice(("r USING (s)", "m USING (k)"))
        column = "title" if other[0] == "r" else "name"
        if self.rng.random() < 0.5:
            return f"SELECT {column}, count(*), sum(i) FROM f {kind} {other} WHERE {self.where()} GROUP BY {column}"
        return f"SELECT k, n, {column} FROM f {kind} {other} WHERE {self.where()}"

    def aggregates(self) -> str:
        return ", ".join(self.rng.sample(AGGREGATES, self.rng.randint(1, 4)))

    def where(self) -> str:
        text = self.keys()
        if self.rng.random() < 0.2:
            text = f"({text} OR {self.keys()})"
        if self.rng.random() < 0.4:
            text = f"{text} AND {self.rng.choice(FURTHER)}"
        return text

    def keys(self) -> str:
        some = [self.rng.randrange(-2, KEYS + 3) for _ in range(self.rng.randint(1, 6))]
        match self.rng.randrange(4):
            case 0:
                return f"k BETWEEN {self.value(some[0])} AND {self.value(some[0] + 3)}"
            case 1:
                return f"(k = {self.value(some[0])} OR k = {self.value(some[-1])} AND n < 2)"
            case _:
                listed = [self.value(key) for key in some]
                return f"k IN ({', '.join([*listed, 'NULL'] if self.rng.random() < 0.1 else listed)})"

    def value(self, key: int) -> str:
        if self.rng.random() < 0.5:
            return str(key)
        self.params.append(None if self.rng.random() < 0.03 else key)
        return f"${len(self.params)}"


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[secateur.Connection, duckdb.DuckDBPyConnection]]:
    rng = random.Random(41_000 + SEED)
    with (
        secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as cluster,
        cluster.connect() as conn,
        duckdb.connect() as oracle,
    ):
        for name, (columns, spread) in TABLES.items():
            oracle.execute(f"CREATE TABLE {name} {columns}")
            conn.execute(f"CREATE TABLE {name} {columns} {spread}")
        for key in range(KEYS):
            for number in range(rng.randrange(6)):
                oracle.execute(f"INSERT INTO f VALUES ({_row(rng, key, number)})")
            if rng.random() < 0.6:
                oracle.execute("INSERT INTO m VALUES (?, ?, ?)", [key, rng.choice(["a", "b", None]), rng.randrange(5)])
        for text in ("a", "b"):
            oracle.execute("INSERT INTO r VALUES (?, ?)", [text, f"title {text}"])
        for name in TABLES:
            conn.table(name).load(oracle.sql(f"FROM {name}").to_arrow_table())
        yield conn, oracle


def _row(rng: random.Random, key: int, number: int) -> str:
    cells = (
        rng.choice([str(rng.randrange(-9, 9)), str(2**62 + key), "0"]),
        f"{rng.randrange(-400, 900) / 100}",
        f"{rng.randrange(-8, 9) / 4}",  # quarters: their sums are exact in any order
        literal(now_and_then(rng, ["a", "b", "c", ""], BEYOND_TEXTS)),
        f"DATE '{now_and_then(rng, list(map(str, DAYS)), BEYOND_SPELLED)}'",
        f"'00000000-0000-0000-0000-{rng.randrange(9):012}'::UUID",
        rng.choice(["true", "false"]),
    )
    return ", ".join([str(key), str(number), *("NULL" if rng.random() < 0.2 else cell for cell in cells)])


def test_every_way_to_run_a_statement_gives_duckdbs_rows(
    both: tuple[secateur.Connection, duckdb.DuckDBPyConnection],
) -> None:
    conn, oracle = both
    rng = random.Random(SEED)
    modes: Counter[str] = Counter()
    by_client = 0
    for _ in range(STATEMENTS):
        maker = Makes(rng)
        sql = maker.statement()
        expected = rows_in_duckdb(oracle, sql, maker.params)
        for setting in ("scatter_partitions_max = default", "scatter_partitions_max = 0", "pruning = off"):
            conn.execute(f"SET {setting}")
            cursor = conn.execute(sql, maker.params)
            found = rows_of(cursor)
            same = found == expected if "ORDER BY" in sql else Counter(found) == Counter(expected)
            assert same, f"seed {SEED}, SET {setting}: {sql} with {maker.params}: {found} instead of {expected}"
            assert cursor.stats is not None
            if "default" in setting:
                modes[cursor.stats.execution] += 1
                explained = conn.execute(f"EXPLAIN {sql}", maker.params).fetchall()
                by_client += any("the client combines" in line for (line,) in explained)
            else:
                assert cursor.stats.execution != "scatter"
        conn.execute("SET pruning = default")
    assert modes["scatter"] >= 0.5 * STATEMENTS, modes
    assert by_client >= 0.15 * STATEMENTS

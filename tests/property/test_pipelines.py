"""Random pipelines over columns of every kind answer what DuckDB answers to the same question.

``SECATEUR_SEED`` sets the first seed; a failure names its own. ``SECATEUR_PROPERTY_FACTOR`` multiplies the worlds.
"""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

import secateur
from secateur.connectors import collect
from secateur.processors import (
    AggregateExpression,
    count_distinct_of,
    count_of,
    count_rows,
    desc,
    max_of,
    min_of,
    sum_of,
)

FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
WORLDS = round(6 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
PIPELINES_PER_WORLD = 5

VALUES: dict[str, list[Any]] = {
    "INTEGER": [0, 1, -1, 7],
    "BIGINT": [0, 1, -1, 2**40],
    "UTINYINT": [0, 1, 255],
    "HUGEINT": [0, 1, -1, 2**100],
    "DOUBLE": [0.0, -0.0, math.nan, -math.nan, 1.0, 2.5, math.inf],
    "FLOAT": [0.0, -0.0, math.nan, 1.0, -2.5],
    "DECIMAL(9,2)": [Decimal("0.00"), Decimal("1.00"), Decimal("-2.50")],
    "DECIMAL(20,0)": [Decimal(0), Decimal(1), Decimal(10**19)],
    "BOOLEAN": [True, False],
    "VARCHAR": ["", "a", "A", "é", "a\0b", "a" * 40],
    "BLOB": [b"", b"\0", b"a"],
    "UUID": [UUID(int=1), UUID(int=2**127)],
    "DATE": [date(2020, 1, 1), date(1969, 12, 31)],
    "TIME": [time(0), time(1, 2, 3)],
    "TIMESTAMP": [datetime(2020, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "TIMESTAMPTZ": [datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)],
}
UNORDERED: dict[str, list[Any]] = {
    "INTERVAL": [timedelta(days=1), timedelta(0)],
    "INTEGER[]": [[], [1], [1, None]],
    "STRUCT(p INTEGER, q VARCHAR)": [{"p": 1, "q": "a"}, {"p": None, "q": None}],
}
"""Kinds that are no keys, and that have no order here."""
SUMMED = ("INTEGER", "BIGINT", "UTINYINT", "DECIMAL(9,2)")


@dataclass(frozen=True)
class Question:
    """Rows, as a stage of a pipeline and as a query.

    Attributes:
        stage: The stage.
        sql: The query.
        params: Its parameters.
        columns: The columns of both, in the order of the stage.
        is_ordered: Whether the order of the rows counts.
    """

    stage: secateur.pipeline.Stage
    sql: str
    params: Sequence[Any]
    columns: tuple[str, ...] = ("id", "k", "x", "y")
    is_ordered: bool = False


class Questions:
    """Draws questions about two tables: ``t (id BIGINT, k, x, y)`` and ``u`` with the same columns."""

    def __init__(self, rng: random.Random, conn: secateur.Connection) -> None:
        self.rng = rng
        self.key_type = rng.choice(list(VALUES))
        self.types = {"k": self.key_type, "x": rng.choice(list(VALUES)), "y": rng.choice([*VALUES, *UNORDERED])}
        self.conn = conn

    def fill(self, oracle: duckdb.DuckDBPyConnection) -> None:
        """Make the same tables in both."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.types.items())
        values = VALUES | UNORDERED
        for table in ("t", "u"):
            ddl = f"CREATE OR REPLACE TABLE {table} (id BIGINT, {columns}, PRIMARY KEY (id))"
            self.conn.execute(ddl + " PARTITION BY HASH (id) PARTITIONS 5")
            oracle.execute(ddl)
            rows = [
                (number, *(self.rng.choice([None, *values[kind]]) for kind in self.types.values()))
                for number in range(self.rng.choice([0, 1, 5, 60]))
            ]
            if rows:
                self.conn.cursor().executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
                oracle.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)

    def question(self) -> Question:
        found = self.read()
        if self.rng.random() < 0.5:
            found = self.rng.choice([self.joined, self.joined, self.united])(found)
        if set(found.columns) != {"id", "k", "x", "y"}:
            return found
        return self.rng.choice([self.aggregated, self.aggregated, self.distinct, self.sorted, lambda same: same])(found)

    def read(self) -> Question:
        """All rows of ``t``, or those with one of some values, looked up or by a condition."""
        column = self.rng.choice(["id", "k", "x"])
        kinds = {"id": "BIGINT", **self.types}
        wanted = self.rng.sample(VALUES[kinds[column]], self.rng.choice([1, 1, 2]))
        marks = ", ".join("?" * len(wanted))
        condition = f"{column} IN ({marks})"
        selected = "SELECT id, k, x, y FROM t"
        pipeline = secateur.Pipeline()
        match self.rng.choice(["all", "looked up", "condition"]):
            case "all":
                return Question(pipeline.read_table("t"), selected, ())
            case "looked up":
                value = wanted[0] if len(wanted) == 1 else wanted
                return Question(
                    pipeline.read_table("t", where={column: value}), f"{selected} WHERE {condition}", wanted
                )
            case _:
                return Question(
                    pipeline.read_table("t", where=condition, params=wanted), f"{selected} WHERE {condition}", wanted
                )

    def joined(self, left: Question) -> Question:
        how = self.rng.choice(["inner", "left", "right", "full", "semi", "anti"])
        on = self.rng.choice([["k"], ["id"], ["k", "x"]])
        schema = self.conn.execute("SELECT id, k, x, y FROM t LIMIT 0").fetch_arrow_table().schema
        stage = left.stage.hash_join(
            secateur.Pipeline().read_table("u"),
            on,
            how=how,
            partitioned=how in ("right", "full") or self.rng.random() < 0.5,
            build_schema=schema,
            probe_schema=schema,
        )
        using = f"({left.sql}) AS a {how} JOIN u AS b USING ({', '.join(on)})"
        if how in ("semi", "anti"):
            return replace(left, stage=stage, sql=f"SELECT a.* FROM {using}")
        own = [name if name in on else f"a.{name}" for name in left.columns]
        others = [name for name in left.columns if name not in on]
        selected = ", ".join([*own, *(f"b.{name}" for name in others)])
        columns = (*left.columns, *(f"{name}_build" for name in others))
        return replace(left, stage=stage, sql=f"SELECT {selected} FROM {using}", columns=columns)

    def united(self, first: Question) -> Question:
        return replace(
            first,
            stage=first.stage.union(secateur.Pipeline().read_table("u")),
            sql=f"{first.sql} UNION ALL SELECT id, k, x, y FROM u",
        )

    def aggregated(self, rows: Question) -> Question:
        by = self.rng.choice([["k"], ["x", "k"], ["id"], []])
        choices: dict[str, tuple[AggregateExpression, str]] = {
            "n": (count_rows(), "count(*)"),
            "c": (count_of("y"), "count(y)"),
            "d": (count_distinct_of("x"), "count(DISTINCT x)"),
            "lo": (min_of("x"), "min(x)"),
            "hi": (max_of("x"), "max(x)"),
        }
        if self.types["x"] in SUMMED:
            choices["s"] = (sum_of("x"), "sum(x)")
        chosen = {name: choices[name] for name in self.rng.sample(list(choices), self.rng.randint(1, 3))}
        computed = {name: aggregate for name, (aggregate, _) in chosen.items()}
        stage = rows.stage.key_by(*by).aggregate(**computed) if by else rows.stage.aggregate(**computed)
        selected = ", ".join([*by, *(sql for _, sql in chosen.values())])
        sql = f"SELECT {selected} FROM ({rows.sql})" + (f" GROUP BY {', '.join(by)}" if by else "")
        return replace(rows, stage=stage, sql=sql, columns=(*by, *chosen))

    def distinct(self, rows: Question) -> Question:
        """The different keys, of which any row may stand for the others."""
        return replace(
            rows, stage=rows.stage.key_by("k", "x").distinct(), sql=f"SELECT DISTINCT k, x FROM ({rows.sql})",
            columns=("k", "x"),
        )  # fmt: skip

    def sorted(self, rows: Question) -> Question:
        column, descends = self.rng.choice(["k", "x"]), self.rng.random() < 0.5
        limit = self.rng.choice([None, 3, 1000])
        by = desc(column) if descends else column
        ordered = (
            f"SELECT * FROM ({rows.sql}) ORDER BY {column} {'DESC' if descends else 'ASC'} NULLS LAST, id, y IS NULL"
        )
        stage = rows.stage.sort(by, "id", limit=limit, at_members=limit is None and self.rng.random() < 0.5)
        sql = ordered + ("" if limit is None else f" LIMIT {limit}")
        return replace(rows, stage=stage, sql=sql, is_ordered=not rows.sql.count("UNION"))


def canonical(value: Any) -> Any:
    """A value in a form that is equal where SQL calls the values equal."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else value + 0.0
        case dict():
            return tuple((name, canonical(part)) for name, part in value.items())
        case list():
            return tuple(map(canonical, value))
        case timedelta():
            return (value.days, value.seconds)
        case pa.MonthDayNano():
            return (value.days, value.nanoseconds // 10**9)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        case _:
            return value


@pytest.fixture(scope="module")
def conn() -> Iterator[secateur.Connection]:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connected:
        yield connected


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_a_pipeline_answers_what_duckdb_answers(conn: secateur.Connection, seed: int) -> None:
    questions = Questions(random.Random(seed), conn)
    with duckdb.connect() as oracle:
        oracle.execute("SET TimeZone = 'UTC'")
        questions.fill(oracle)
        for _ in range(PIPELINES_PER_WORLD):
            asked = questions.question()
            found = asked.stage.write_to(collect()).submit(conn).result()
            columns = [found[name].to_pylist() for name in asked.columns]
            answer = [tuple(map(canonical, row)) for row in zip(*columns, strict=True)]
            wanted = [tuple(map(canonical, row)) for row in oracle.execute(asked.sql, asked.params).fetchall()]
            said = f"seed {seed}, {questions.types}: {asked.sql} with {asked.params}"
            if asked.is_ordered:
                assert answer == wanted, said
            else:
                assert Counter(answer) == Counter(wanted), said

"""Queries over a table with secondary indexes answer as DuckDB does, whatever was written before, and the indexes are
used.

Every failure names its seed; ``SECATEUR_INDEX_WORLDS`` sets how many random worlds are tried.
"""

from __future__ import annotations

import os
import random

import duckdb
import pytest

import secateur
from extremes import BEYOND_SPELLED, BEYOND_TEXTS, literal, now_and_then
from secateur.cluster import Cluster
from worlds import rows_in_duckdb, rows_of, sorted_rows

WORLDS = int(os.environ.get("SECATEUR_INDEX_WORLDS", "1"))
COLUMNS = "(k INTEGER PRIMARY KEY, a INTEGER, b VARCHAR, c DATE, d DOUBLE, e BIGINT NOT NULL)"
INDEXES = ["a", "b", "c", "d", "a, e", "e, a", "b, e", "a, b", "c, a, b", "b, d"]


class World:
    """A table with random indexes, on the cluster and in DuckDB."""

    def __init__(self, rng: random.Random, conn: secateur.Connection, name: str) -> None:
        self.rng = rng
        self.conn = conn
        self.name = name
        self.duck = duckdb.connect()
        scheme = rng.choice(["PARTITION BY HASH (k) PARTITIONS 1", "PARTITION BY HASH (k) PARTITIONS 4", "REPLICATED"])
        conn.execute(f"CREATE TABLE {name} {COLUMNS} {scheme}")
        self.duck.execute(f"CREATE TABLE {name} {COLUMNS}")
        for number, columns in enumerate(rng.sample(INDEXES, 3)):
            conn.execute(f"CREATE INDEX {name}_{number} ON {name} ({columns})")

    def row(self, key: int) -> str:
        rng = self.rng
        day = rng.choice(["NULL", f"DATE '{self.day()}'"])
        text = rng.choice(["NULL", "''", "'x'", self.text()])
        number = rng.choice(["NULL", "'nan'", "'-infinity'", "-0.0", "0.0", str(rng.randrange(-3, 3) / 2)])
        return (
            f"({key}, {rng.choice(['NULL', *map(str, range(-5, 30))])}, {text}, {day}, {number}, {rng.randrange(40)})"
        )

    def day(self) -> str:
        return now_and_then(self.rng, [f"2024-01-{day:02}" for day in range(1, 31)], BEYOND_SPELLED)

    def text(self) -> str:
        return literal(now_and_then(self.rng, "abcdé", BEYOND_TEXTS))

    def write(self) -> str:
        rng = self.rng
        rows = ", ".join(self.row(key) for key in rng.sample(range(600), rng.choice([1, 3, 300])))
        return rng.choice(
            [
                f"INSERT OR REPLACE INTO {self.name} VALUES {rows}",
                f"INSERT OR REPLACE INTO {self.name} VALUES {rows}",
                f"UPDATE {self.name} SET a = a + 1, b = 'u' WHERE {self.predicate()}",
                f"DELETE FROM {self.name} WHERE {self.predicate()} AND k % 3 = 0",
            ]
        )

    def leaf(self) -> str:
        rng = self.rng
        column, value = rng.choice(
            [
                ("a", lambda: str(rng.randrange(-6, 31))),
                ("b", lambda: rng.choice(["''", "'x'", "'zz'", self.text(), self.text()])),
                ("c", lambda: f"DATE '{self.day()}'"),
                ("d", lambda: rng.choice(["0", "-0.5", "'nan'::DOUBLE", "1"])),
                ("e", lambda: str(rng.randrange(42))),
            ]
        )
        form = rng.choice(
            [
                "{c} = {v}",
                "{c} = {v}",
                "{c} IN ({v}, {w})",
                "{c} BETWEEN {v} AND {w}",
                "{c} > {v}",
                "{c} <= {v}",
                "{c} <> {v}",
                "{c} IS NULL",
            ]
        )
        form = rng.choice(
            [
                form,
                form,
                form,
                "NOT ({c} > {v})",
                "{c} IS NOT NULL",
                "{c} IS DISTINCT FROM {v}",
                "{c} IS NOT DISTINCT FROM NULL",
                "{c} = NULL",
            ]
        )
        return form.format(c=column, v=value(), w=value())

    def predicate(self) -> str:
        rng = self.rng
        both = f"{self.leaf()} AND {self.leaf()}"
        return rng.choice(
            [
                self.leaf(),
                self.leaf(),
                both,
                f"{both} AND {self.leaf()}",
                f"{self.leaf()} OR {self.leaf()}",
                f"a = e AND {self.leaf()}",
            ]
        )

    def query(self) -> str:
        shape = self.rng.choice(
            [
                "SELECT * FROM {t} WHERE {p}",
                "SELECT count(*), sum(e) FROM {t} WHERE {p}",
                "SELECT b, count(*) FROM {t} WHERE {p} GROUP BY b",
            ]
        )
        return shape.format(t=self.name, p=self.predicate())


@pytest.mark.parametrize("seed", range(WORLDS))
def test_answers_are_those_of_duckdb(cluster: Cluster, conn: secateur.Connection, table_name: str, seed: int) -> None:
    rng = random.Random(4000 + seed)
    world = World(rng, conn, table_name)
    searched = 0
    for _ in range(8):
        sql = world.write()
        world.duck.execute(sql)
        conn.execute(sql)
        for _ in range(3):
            sql = world.query()
            found = sorted_rows(rows_of(conn.execute(sql)))
            assert found == sorted_rows(rows_in_duckdb(world.duck, sql)), f"seed {seed}: {sql}"
            searched += "  index " in str(conn.explain(sql))
    assert searched > 2
    conn.execute(f"DROP TABLE {table_name}")

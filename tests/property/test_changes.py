"""Random INSERT, UPDATE, DELETE and INSERT OR REPLACE statements on a cluster leave the same rows as on DuckDB, and the
same on every copy.

Every failure names its seed; ``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from datetime import date
from typing import Any

import duckdb
import pytest

import secateur
from extremes import BEYOND_DAYS, BEYOND_TEXTS, now_and_then
from predicates import Predicates
from secateur.cluster import Cluster
from secateur.partitioning.tables import TableDef
from worlds import DAYS, INTEGERS, TEXTS, has_range, random_scheme, sorted_rows

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
STATEMENTS_PER_WORLD = 25
ASSIGNMENTS = [
    "v = v + 1",
    "v = NULL",
    "v = a * 10 + v",
    "n = b || coalesce(n, '?')",
    "v = length(b), n = v",
    "n = CASE WHEN v > 0 THEN 'x' END",
    "v = '7'",
    "v = 1.5, n = 2",
    "n = c",
    "v = CAST(n AS BIGINT)",
    "v = DEFAULT, n = 'd'",
]


class Pair:
    """A table on the cluster and its twin in DuckDB."""

    def __init__(self, rng: random.Random, conn: secateur.Connection, name: str) -> None:
        self.rng = rng
        self.conn = conn
        self.name = name
        columns = "(a INTEGER, b VARCHAR, c DATE, v BIGINT, n VARCHAR, PRIMARY KEY (a, b, c))"
        conn.execute(f"CREATE TABLE {name} {columns} PARTITION BY {random_scheme(rng)}")
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'")
        self.duck.execute(f"CREATE TABLE {name} {columns}")
        self.table: TableDef = conn.table(name).definition

    def statement(self) -> tuple[str, list[Any]]:
        rng = self.rng
        form = rng.choice(["insert", "insert", "replace", "update", "update", "update", "delete"])
        if form in ("insert", "replace"):
            rows = [row for row in (self.row() for _ in range(rng.choice([1, 1, 2, 9]))) if has_range(self.table, row)]
            rows = list({(row["a"], row["b"], row["c"]): row for row in rows}.values())
            if rows:
                marks = ", ".join("(?, ?, ?, ?, ?)" for _ in rows)
                words = "INSERT OR REPLACE" if form == "replace" else "INSERT"
                return f"{words} INTO {self.name} VALUES {marks}", [value for row in rows for value in row.values()]
        predicates = Predicates(rng)
        if form == "update":
            assigned = rng.choice(ASSIGNMENTS)
            if rng.random() < 0.3:
                predicates.makers.append(predicates.maker("v"))
                assigned = "v = $1"
        where = rng.choice(
            [
                predicates.predicate(),
                predicates.predicate(1),
                f"{whole_key(predicates)} AND {predicates.leaf()}",
                whole_key(predicates),
            ]
        )
        if form == "update":
            return f"UPDATE {self.name} SET {assigned} WHERE {where}", predicates.params()
        return f"DELETE FROM {self.name} WHERE {where}", predicates.params()

    def row(self) -> dict[str, Any]:
        rng = self.rng
        days = [day for day in BEYOND_DAYS if isinstance(day, date)]
        key = {
            "a": rng.choice(INTEGERS),
            "b": now_and_then(rng, TEXTS, BEYOND_TEXTS),
            "c": now_and_then(rng, DAYS, days),
        }
        return {**key, "v": rng.choice([None, *range(-3, 4)]), "n": rng.choice([None, "", "5", "é"])}

    def execute(self, sql: str, params: Sequence[Any]) -> bool:
        """Execute a statement on both; False when the two have gone apart since a pruned run was spared an error of
        DuckDB's.
        """
        try:
            counted = self.duck.execute(sql, list(params)).fetchone()
        except duckdb.Error:
            try:
                self.conn.execute(sql, params)
            except secateur.Error:
                return True
            return False
        assert counted is not None
        assert self.conn.execute(sql, params).rowcount == counted[0], sql
        return True

    def rows(self) -> list[str]:
        return sorted_rows(self.conn.execute(f"SELECT * FROM {self.name}").fetchall())

    def expected(self) -> list[str]:
        return sorted_rows(self.duck.execute(f"SELECT * FROM {self.name}").fetchall())


def whole_key(predicates: Predicates) -> str:
    return " AND ".join(f"{column} = {predicates.value(column)}" for column in "abc")


def copies_agree(cluster: Cluster, conn: secateur.Connection, table: TableDef) -> None:
    """Every holder of a partition has the same rows of it."""
    ownership = conn._session.topology.ownership(table.scheme.affinity_group())
    stores = {member_id: member._storage.store for member_id, member in cluster._runtime._members.items()}
    for partition in table.scheme.live_partitions().tolist():
        primary, *backups = (
            stores[member].partition(table.table_id, partition).snapshot().table
            for member in ownership.holders(partition)
        )
        assert all(primary.equals(backup) for backup in backups), f"partition {partition}"


@pytest.mark.parametrize("seed", range(WORLDS))
def test_changes_leave_the_same_rows_as_duckdb(
    cluster: Cluster, conn: secateur.Connection, table_name: str, seed: int
) -> None:
    rng = random.Random(7000 + seed)
    pair = Pair(rng, conn, table_name)
    for _ in range(STATEMENTS_PER_WORLD):
        conn.execute(f"SET pruning = {rng.choice(['on', 'on', 'on', 'verify', 'off'])}")
        sql, params = pair.statement()
        if not pair.execute(sql, params):
            break
        assert pair.rows() == pair.expected(), f"seed {seed}: {sql} with {params!r}"
    copies_agree(cluster, conn, pair.table)
    conn.execute(f"DROP TABLE {table_name}")

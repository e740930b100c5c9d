"""Random sequences of statements that change rows leave the same rows as on DuckDB, return the same, and count the
same, on one member and on three.

Every failure names its seed; ``SECATEUR_DML_WORLDS`` sets how many random worlds are tried.
"""

from __future__ import annotations

import os
import random

import duckdb
import pytest

import secateur
from dml import Statements
from secateur.cluster import Cluster
from test_changes import copies_agree

WORLDS = int(os.environ.get("SECATEUR_DML_WORLDS", "1"))
STATEMENTS_PER_WORLD = 25
SCHEMES = [
    "PARTITION BY HASH (k) PARTITIONS 3",
    "PARTITION BY HASH (k, j) PARTITIONS 5",
    "PARTITION BY RANGE (k) SPLIT AT (2, 5)",
    "REPLICATED",
]


class Twins:
    """Two tables on the cluster and in DuckDB."""

    def __init__(self, rng: random.Random, conn: secateur.Connection, name: str) -> None:
        self.conn = conn
        self.duck = duckdb.connect()
        self.t, self.u = name, f"{name}_u"
        # Without the one of s, NULL would be in rows that ON CONFLICT leaves out, and that DuckDB does not check.
        v, s, j = rng.choice(["", " DEFAULT 4"]), " DEFAULT 'made'", rng.choice(["", " DEFAULT 2"])
        check = rng.choice(["", "", ", CHECK (v < 8)", ", CHECK (v <> j OR s <> 'a')"])
        columns = f"(k BIGINT, j INTEGER{j}, v INTEGER{v}, s VARCHAR{s} NOT NULL, PRIMARY KEY (k, j){check})"
        others = f"(id BIGINT PRIMARY KEY, k BIGINT, w INTEGER{v})"
        for table, text, scheme in (
            (self.t, columns, rng.choice(SCHEMES)),
            (self.u, others, rng.choice(["", "REPLICATED"])),
        ):
            conn.execute(f"CREATE TABLE {table} {text} {scheme}")
            self.duck.execute(f"CREATE TABLE {table} {text}")
        for sql in (
            f"INSERT INTO {self.u} VALUES (1, 1, 5), (2, 2, NULL), (3, NULL, 1), (5, 2, -1)",
            f"INSERT INTO {self.t} VALUES (1, 1, 1, 'z'), (2, 1, NULL, 'b'), (2, 2, 3, 'c'), (4, 1, 0, 'd')",
        ):
            conn.execute(sql)
            self.duck.execute(sql)

    def execute(self, sql: str, params: list[object]) -> None:
        """Execute a statement on both, and compare what they say of it."""
        try:
            cursor = self.duck.execute(sql, params)
            columns = [description[0] for description in cursor.description]
            rows = cursor.fetchall()
        except duckdb.Error:
            with pytest.raises(secateur.Error):
                self.conn.execute(sql, params)
            return
        ours = self.conn.execute(sql, params)
        if " RETURNING " not in sql:
            assert ours.rowcount == rows[0][0]
        else:
            assert [description[0] for description in ours.description or ()] == columns
            assert sorted(ours.fetchall(), key=repr) == sorted(rows, key=repr)

    def compare(self) -> None:
        for table in (self.t, self.u):
            sql = f"SELECT * FROM {table} ORDER BY ALL"
            assert self.conn.execute(sql).fetchall() == self.duck.execute(sql).fetchall()

    def drop(self) -> None:
        for table in (self.t, self.u):
            self.conn.execute(f"DROP TABLE {table}")
        self.duck.close()


def run(conn: secateur.Connection, name: str, seed: int, cluster: Cluster | None) -> None:
    rng = random.Random(9000 + seed)
    twins = Twins(rng, conn, name)
    statements = Statements(rng, twins.t, twins.u)
    for number in range(STATEMENTS_PER_WORLD):
        conn.execute(f"SET pruning = {rng.choice(['on', 'on', 'on', 'off'])}")
        sql, params = statements.statement()
        try:
            twins.execute(sql, params)
            twins.compare()
        except (AssertionError, secateur.Error, pytest.fail.Exception) as error:
            raise AssertionError(f"seed {seed}, statement {number}: {sql} with {params!r}: {error}") from error
    if cluster is not None and not conn.table(twins.t).definition.replicated:
        copies_agree(cluster, conn, conn.table(twins.t).definition)
    twins.drop()


@pytest.mark.parametrize("seed", range(WORLDS))
def test_three_members(cluster: Cluster, conn: secateur.Connection, table_name: str, seed: int) -> None:
    run(conn, table_name, seed, cluster)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_one_member(lone_cluster: Cluster, table_name: str, seed: int) -> None:
    with lone_cluster.connect() as conn:
        run(conn, table_name, 500 + seed, None)

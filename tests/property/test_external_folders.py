"""Law: a folder of Parquet files in the folders of Hive answers as DuckDB's ``read_parquet(hive_partitioning=true)``
does, pruned and unpruned.

``SECATEUR_FOLDER_STATEMENTS`` sets how many statements are tried, ``SECATEUR_SEED`` where they begin; a failure names
its seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur
from predicates import Predicates
from worlds import DAYS, INTEGERS, TEXTS

STATEMENTS = int(os.environ.get("SECATEUR_FOLDER_STATEMENTS", "30"))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
NULL = "__HIVE_DEFAULT_PARTITION__"


def folder(rng: random.Random, root: Path) -> None:
    """Files of some combinations of ``a`` and ``b``, NULL among them; ``c`` and ``v`` are in the files."""
    for a in [*INTEGERS, None]:
        for b in [*TEXTS[1:], "x y/z=1", None]:
            if rng.random() < 0.4:
                continue
            where = root / f"a={NULL if a is None else a}" / f"b={NULL if b is None else quote(b, safe='')}"
            where.mkdir(parents=True)
            rows = rng.randrange(1, 12)
            table = pa.table(
                {
                    "c": pa.array([rng.choice([*DAYS, None]) for _ in range(rows)], pa.date32()),
                    "v": pa.array([rng.choice([*INTEGERS, None]) for _ in range(rows)], pa.int32()),
                }
            )
            pq.write_table(table, where / "part-0.parquet", row_group_size=rng.choice([2, 100]))


@pytest.fixture(scope="module")
def folders(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[secateur.Connection, duckdb.DuckDBPyConnection]]:
    root = tmp_path_factory.mktemp("folders")
    folder(random.Random(FIRST_SEED), root / "t")
    with (
        secateur.start(members=3, runtime="embedded", external_directories=[root]) as cluster,
        cluster.connect() as conn,
        duckdb.connect() as duck,
    ):
        conn.execute(
            "CREATE EXTERNAL TABLE t (c DATE, v INTEGER) STORED AS PARQUET PARTITIONED BY (a INTEGER, b VARCHAR)"
            f" LOCATION '{root / 't'}'"
        )
        duck.execute(
            "CREATE VIEW t AS SELECT c, v, a, b FROM"
            f" read_parquet('{root / 't'}/*/*/*.parquet', hive_partitioning = true,"
            " hive_types = {'a': INTEGER, 'b': VARCHAR})"
        )
        conn.execute("CREATE TABLE named (a INTEGER PRIMARY KEY, name VARCHAR)")
        duck.execute("CREATE TABLE named (a INTEGER PRIMARY KEY, name VARCHAR)")
        for database in (conn, duck):
            database.execute("INSERT INTO named VALUES (0, 'zero'), (1, 'one'), (2, 'two'), (7, 'seven')")
        yield conn, duck


SHAPES = [
    "SELECT * FROM t WHERE {p}",
    "SELECT count(*) FROM t WHERE {p}",
    "SELECT a, count(*), sum(v), min(c) FROM t WHERE {p} GROUP BY a",
    "SELECT b FROM t WHERE {p} GROUP BY b HAVING count(*) > 1",
    "SELECT b, count(DISTINCT v), avg(v), max(c), bool_or(v > 1) FROM t WHERE {p} GROUP BY b",
    "SELECT count(v), sum(v) FILTER (WHERE v > 0), min(b), count(DISTINCT a) FROM t WHERE {p}",
    "SELECT DISTINCT a, c FROM t WHERE {p}",
    "SELECT a, b, c, v FROM t WHERE {p} ORDER BY a, b, c, v LIMIT 5",
    "SELECT a + coalesce(v, 0) AS s FROM t WHERE {p} AND v > 0 ORDER BY s LIMIT 3 OFFSET 1",
    "SELECT t.a, name, v FROM t JOIN named ON t.a = named.a WHERE {q}",
    "SELECT t.a, name, v FROM named LEFT JOIN t ON t.a = named.a AND {q}",
    "SELECT name FROM named WHERE EXISTS (SELECT 1 FROM t WHERE t.a = named.a AND {q})",
    "WITH x AS (SELECT a, v FROM t WHERE {p}) SELECT x.a, count(*) FROM x JOIN x AS y ON x.v = y.v GROUP BY 1",
    "SELECT a FROM t WHERE {p} EXCEPT SELECT a FROM named",
]


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + STATEMENTS))
@pytest.mark.sampled(one_in=5)
def test_a_folder_answers_as_duckdb_does(
    folders: tuple[secateur.Connection, duckdb.DuckDBPyConnection], seed: int
) -> None:
    conn, duck = folders
    rng = random.Random(seed)
    made = Predicates(rng)
    predicate = made.predicate()
    qualified = Predicates(rng, "t.")
    other = qualified.predicate()
    shape = rng.choice(SHAPES)
    sql = shape.format(p=predicate, q=other)
    params = [maker() for maker in (made if "{p}" in shape else qualified).makers]
    try:
        expected = duck.execute(sql, params).fetchall()
    except duckdb.Error:
        return  # a pruned statement may be spared an error in a row that it does not read
    found = conn.execute(sql, params).fetchall()
    assert shown(found) == shown(expected), f"seed {seed}: {sql} {params}"
    conn.execute("SET pruning = off")
    try:
        assert shown(conn.execute(sql, params).fetchall()) == shown(expected), f"seed {seed}: {sql} {params}"
    finally:
        conn.execute("SET pruning = on")


def shown(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(map(repr, rows))


def test_partitions_are_left_out(folders: tuple[secateur.Connection, duckdb.DuckDBPyConnection]) -> None:
    conn, duck = folders
    for sql, params in [
        ("SELECT * FROM t WHERE a = 1 AND b = 'a'", []),
        ("SELECT * FROM t WHERE a IN (?, ?)", [1, 2]),
        ("SELECT * FROM t WHERE b IS NULL", []),
        ("SELECT * FROM t WHERE (a = 1 AND v > 2) OR (a = 3 AND c = DATE '2024-01-02')", []),
        ("SELECT * FROM t WHERE b LIKE 'x%'", []),
    ]:
        cursor = conn.execute(sql, params)
        stats = cursor.stats
        assert stats is not None
        needed = "SELECT DISTINCT a, b FROM t WHERE " + sql.partition(" WHERE ")[2].replace("AND v > 2", "").replace(
            "AND c = DATE '2024-01-02'", ""
        )
        assert stats.partitions_read == len(duck.execute(needed, params).fetchall()), sql
        assert shown(cursor.fetchall()) == shown(duck.execute(sql, params).fetchall())

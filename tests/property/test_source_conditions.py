"""Random predicates as the condition of a source: the rows of SQL, from the partitions that SQL keeps, whatever the
scheme, and whoever owns them.

``SECATEUR_SEED`` sets the first seed; a failure names its own.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest

import secateur
from predicates import Predicates
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.errors import DagError, DatabaseError
from worlds import DAYS, INTEGERS, TEXTS

FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
SCHEMES = [
    "HASH (a) PARTITIONS 5",
    "HASH (a, b) PARTITIONS 7",
    "HASH (a) PARTITIONS 3, HASH (b) PARTITIONS 4",
    "HASH (b) PARTITIONS 4, RANGE (c) SPLIT AT (DATE '2024-01-03', DATE '2024-01-06')",
    "RANGE (a, b) SPLIT AT ((0, 'a'), (3, ''))",
]
PREDICATES = int(2 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))


@pytest.fixture(scope="module")
def closed() -> Iterator[Cluster]:
    """A cluster that accepts no code."""
    with secateur.start(members=3, runtime="embedded", allow_code=False) as running:
        yield running


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 5))
def test_a_source_reads_the_rows_and_partitions_of_sql(closed: Cluster, seed: int) -> None:
    rng = random.Random(seed)
    checked = 0
    with closed.connect() as conn:
        key = rng.choice(["a, b, c", "c, b, a", "b, c, a"])
        conn.execute(
            f"CREATE OR REPLACE TABLE t (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY ({key}))"
            f" PARTITION BY {SCHEMES[seed % len(SCHEMES)]}"
        )
        rows = {(rng.choice(INTEGERS), rng.choice(TEXTS), rng.choice(DAYS)) for _ in range(150)}
        conn.cursor().executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?)", [(*row, rng.choice([None, *INTEGERS])) for row in sorted(rows)]
        )
        for _ in range(PREDICATES):
            predicates = Predicates(rng)
            where, params = predicates.predicate(), predicates.params()
            columns = rng.choice([["a", "b", "c", "v"], ["v"], ["c", "a"]])
            sql = f"SELECT {', '.join(columns)} FROM t WHERE ({where})"
            try:
                expected = conn.execute(sql, params).fetchall()
            except DatabaseError:
                continue
            job = secateur.Pipeline().read_table("t", where=where, params=params, columns=columns).write_to(collect())
            said = f"seed {seed}: {where} with {params}"
            try:
                found = job.submit(conn, light=rng.random() < 0.8).result()
            except DagError:
                assert "(SELECT" in where, said  # subqueries are refused
                continue
            assert Counter(tuple(row.values()) for row in found.to_pylist()) == Counter(expected), said
            assert found.schema.names == columns, said
            (scan,) = conn.explain(sql, params).to_dict()["pruning"]["scans"]
            plan = conn.plan(job).vertices[0]
            kept = sorted(id_ for placed in plan.placed for id_ in placed.partitions or ())
            assert plan.scan is not None
            if scan["partitions"] is None:
                assert plan.scan.reason is not None, said
                assert len(kept) == plan.scan.partitions_total, said
            else:
                assert kept == list(scan["partitions"]), said
            checked += 1
    assert checked >= PREDICATES // 4, f"seed {seed}: DuckDB refused too many predicates for the test to mean anything"


def test_pruning_off_of_a_session_reaches_the_sources_of_its_jobs(closed: Cluster) -> None:
    with closed.connect() as conn:
        conn.execute(
            "CREATE OR REPLACE TABLE t (a INTEGER, b VARCHAR, v BIGINT, PRIMARY KEY (a, b))"
            " PARTITION BY HASH (a) PARTITIONS 7"
        )
        conn.cursor().executemany("INSERT INTO t VALUES (?, ?, ?)", [(n, "x", n) for n in range(40)])
        job = (
            secateur.Pipeline().read_table("t", where="a = ? AND v < 9", params=[7], columns=["v"]).write_to(collect())
        )

        def read(config: secateur.JobConfig | None = None) -> tuple[int | None, bool]:
            assert job.submit(conn, config).result().to_pylist() == [{"v": 7}]
            scan = conn.plan(job, config).vertices[0].scan
            assert scan is not None
            return scan.partitions_read, scan.searches

        pruned, everything = (1, True), (7, False)
        assert read() == pruned
        assert read(secateur.JobConfig(pruning=False)) == everything
        conn.execute("SET pruning = off")
        assert read() == everything
        conn.execute("SET pruning = verify")
        assert read() == pruned

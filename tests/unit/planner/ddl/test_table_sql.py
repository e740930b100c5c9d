"""A table's own CREATE TABLE makes it again."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.planner.ddl import partition_by_sql, range_sql
from secateur.planner.ddl.table_sql import table_sql

TABLES = (
    "CREATE TABLE t (k INTEGER, n DECIMAL(10,2), l VARCHAR[], PRIMARY KEY (k))",
    (
        'CREATE TABLE "a ""b" ("c d" VARCHAR NOT NULL, "E" TIMESTAMPTZ, PRIMARY KEY ("c d")) PARTITION BY HASH ("c d")'
        " PARTITIONS 3 SEED -7 BACKUPS 0"
    ),
    "CREATE TABLE t (k INTEGER PRIMARY KEY, s VARCHAR) REPLICATED",
    (
        "CREATE TABLE t (a INTEGER, b VARCHAR, PRIMARY KEY (a, b)) PARTITION BY HASH (a) PARTITIONS 2, RANGE (b) SPLIT"
        " AT ('it''s', 'z')"
    ),
    (
        "CREATE TABLE t (a DATE, b BOOLEAN, PRIMARY KEY (a, b)) PARTITION BY RANGE (a, b) "
        "(PARTITION x (DATE '2024-01-01', FALSE) <= VALUES < (DATE '2024-02-01', TRUE))"
    ),
    (
        "CREATE TABLE t (a TIMESTAMP, k INTEGER, PRIMARY KEY (a, k)) PARTITION BY HASH (k) PARTITIONS 4, RANGE (a)"
        " (PARTITION VALUES < TIMESTAMP '2024-01-01 10:30:00' HASH (k) PARTITIONS 2 SEED 3, PARTITION TIMESTAMP"
        " '2025-01-01' <= VALUES NO HASH, DEFAULT PARTITION rest)"
    ),
    (
        "CREATE TABLE t (a DECIMAL(10,2) PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION -1.50 <= VALUES < 2.25,"
        " PARTITION one VALUE = 7)"
    ),
    "CREATE TABLE t (a BLOB PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (X'00ff')",
    "CREATE TABLE t (a UUID PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (UUID '00000000-0000-0000-0000-0000000000ff')",
    "CREATE TABLE t (a TIMESTAMPTZ PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (TIMESTAMPTZ '2024-01-01 00:00:00+00')",
    (
        "CREATE TABLE t (a DATE PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL 3 MONTH STARTING DATE '2024-01-01'"
        " (DEFAULT PARTITION rest)"
    ),
    "CREATE TABLE t (a BIGINT PRIMARY KEY) PARTITION BY RANGE (a) EVERY 1000",
    "CREATE TABLE t (a TIMESTAMP PRIMARY KEY) PARTITION BY RANGE (a) EVERY INTERVAL 1 HOUR",
)


@pytest.mark.parametrize("ddl", TABLES)
def test_it_is_made_again(context: Any, ddl: str) -> None:
    made = context.prepare(ddl).tdef
    again = context.prepare(table_sql(made)).tdef
    assert again == made


def test_as_it_is_written(context: Any) -> None:
    made = context.prepare(TABLES[3]).tdef
    assert (
        partition_by_sql(made.scheme)
        == "HASH (\"a\") PARTITIONS 2, RANGE (\"b\") (PARTITION VALUES < ('it''s'), PARTITION ('it''s') <= VALUES <"
        " ('z'), PARTITION ('z') <= VALUES)"
    )
    assert range_sql(made.scheme.range.ranges[0]) == "PARTITION VALUES < ('it''s')"

"""One world of small tables with awkward keys for every test of this folder: the planner and the kernels are real,
members are played.
"""

from __future__ import annotations

import pytest

from worlds import World

TABLES = {
    """
    CREATE TABLE t (a INTEGER, b VARCHAR, c DATE, v BIGINT, PRIMARY KEY (a, b, c))
    PARTITION BY HASH (a) PARTITIONS 7, HASH (b) PARTITIONS 5
    """: """
    SELECT x, y, DATE '2024-01-01' + CAST(x + 3 AS INTEGER) % 3, x * 10
    FROM range(-3, 8) r(x), (VALUES ('a'), ('A'), ('01'), ('1'), (''), ('é'), ('É'), ('b')) q(y)
    """,
    """
    CREATE TABLE u (a VARCHAR, b VARCHAR, d TIMESTAMP, PRIMARY KEY (a, d))
    PARTITION BY HASH (a) PARTITIONS 7, RANGE (d) SPLIT AT (TIMESTAMP '2024-01-02 00:00:00')
    """: """
    SELECT y, y, TIMESTAMP '2024-01-01' + i * INTERVAL 12 HOUR FROM (VALUES ('1'), ('01'), ('2'), ('+2')) q(y),
      range(4) r(i)
    """,
    "CREATE TABLE small (a INTEGER PRIMARY KEY, b VARCHAR) REPLICATED": "SELECT x, 'a' FROM range(4) q(x)",
    """
    CREATE TABLE numbers (s TINYINT, big BIGINT, unsigned UBIGINT, n DECIMAL(10,2), PRIMARY KEY (s, big, unsigned, n))
    PARTITION BY HASH (s) PARTITIONS 3, HASH (big) PARTITIONS 3, HASH (unsigned) PARTITIONS 3,
      RANGE (n) SPLIT AT (0, 0.5, 1)
    """: """
    SELECT i, 9007199254740992 + i, 9223372036854775807::UBIGINT + i::UBIGINT, i::DECIMAL(10,2) / 4 FROM range(12) q(i)
    """,
    """
    CREATE TABLE mixed (id UUID, f BOOLEAN, n DECIMAL(10,2), z TIMESTAMPTZ, x BLOB, PRIMARY KEY (id, f, n, z, x))
    PARTITION BY HASH (f) PARTITIONS 2, HASH (n) PARTITIONS 5,
      RANGE (id) SPLIT AT (UUID '80000000-0000-0000-0000-000000000000', UUID 'b0000000-0000-0000-0000-000000000000')
    """: """
    SELECT (y || '0000000-0000-0000-0000-000000000000')::UUID, i % 2 = 0, i / 4,
      TIMESTAMPTZ '2024-01-01 00:00:00+00' + i * INTERVAL 1 HOUR, encode(y)
    FROM (VALUES ('a'), ('c'), ('1'), ('9'), ('f')) q(y), range(6) r(i)
    """,
    """
    CREATE TABLE instants (x BLOB, ts TIMESTAMP, z TIMESTAMPTZ, PRIMARY KEY (x, ts, z))
    PARTITION BY HASH (x) PARTITIONS 4, HASH (z) PARTITIONS 3, RANGE (ts) SPLIT AT (TIMESTAMP '2024-01-01 00:00:00',
      TIMESTAMP '2024-01-02 00:00:00')
    """: """
    SELECT encode(y), TIMESTAMP '2023-12-31' + i * INTERVAL 7 HOUR,
      TIMESTAMPTZ '2023-12-31 00:00:00+00' + i * INTERVAL 7 HOUR
    FROM (VALUES ('a'), ('b'), (''), ('aa')) q(y), range(10) r(i)
    """,
}


@pytest.fixture(scope="session")
def world() -> World:
    world = World()
    for ddl, rows in TABLES.items():
        world.fill(ddl, rows)
    return world


@pytest.fixture(scope="session")
def awkward_tables() -> list[str]:
    """The statements that create the tables of ``world``."""
    return list(TABLES)

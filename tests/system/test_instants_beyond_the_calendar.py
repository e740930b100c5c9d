"""Parameters with a zone whose instant, in UTC, lies up to a day beyond the years 1 to 9999: as in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pytest

import secateur
from secateur import Pipeline
from secateur.connectors import collect
from secateur.errors import DataError
from secateur.http import HttpClient
from secateur.server import HttpServer

LAST_IN_NEW_YORK = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
FIRST_IN_KARACHI = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
LAST_OF_ALL = datetime.max.replace(tzinfo=timezone(timedelta(hours=-23, minutes=-59)))
SCHEMES = {
    "hashed": "z PARTITION BY HASH (z) PARTITIONS 5",
    "ranged": "z PARTITION BY RANGE (z) SPLIT AT ('2024-01-02', '2024-01-03')",
    "naive": "ts PARTITION BY RANGE (ts) SPLIT AT ('2024-01-02', '2024-01-03')",
}
ROWS = "SELECT i, TIMESTAMP '2024-01-01' + INTERVAL (i) HOUR, '2024-01-01'::TIMESTAMPTZ + INTERVAL (i) HOUR"


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name in SCHEMES:
            database.execute(f"CREATE TABLE {name} (k INTEGER, ts TIMESTAMP, z TIMESTAMPTZ)")
            database.execute(f"INSERT INTO {name} {ROWS} FROM range(60) r(i)")
        yield database


@pytest.fixture(scope="module", autouse=True)
def tables(cluster: secateur.Cluster) -> None:
    columns = "k INTEGER, ts TIMESTAMP, z TIMESTAMPTZ"
    with cluster.connect() as conn:
        for name, scheme in SCHEMES.items():
            key, partition_by = scheme.split(" ", 1)
            conn.execute(f"CREATE OR REPLACE TABLE {name} ({columns}, PRIMARY KEY ({key})) {partition_by}")
            conn.execute(f"INSERT INTO {name} {ROWS} FROM range(60) r(i)")


@pytest.mark.parametrize(
    "moment", [LAST_IN_NEW_YORK, FIRST_IN_KARACHI, LAST_OF_ALL, datetime.max.replace(tzinfo=UTC)], ids=str
)
@pytest.mark.parametrize(
    "sql",
    [
        *(f"SELECT count(*) FROM {name} WHERE z {sign} ?" for name in SCHEMES for sign in ("<", "=", ">=", "<>")),
        *(f"SELECT count(*) FROM {name} WHERE ts {sign} ?" for name in SCHEMES for sign in ("<", "=", ">=")),
        "SELECT count(*) FROM hashed WHERE z IN (?, NULL, '2024-01-01')",
        "SELECT count(*) FROM ranged WHERE z BETWEEN '2024-01-02' AND ?",
        "SELECT CAST(? AS VARCHAR)",
        "SELECT CAST(max(?) AS VARCHAR) FROM hashed",
        "SELECT CAST(? - INTERVAL 1 DAY AS VARCHAR)",
        "SELECT list_contains([?], z) FROM hashed WHERE k = 1",
    ],
)
def test_a_query_answers_as_duckdb(
    conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection, sql: str, moment: datetime
) -> None:
    assert conn.execute(sql, [moment]).fetchall() == oracle.execute(sql, [moment]).fetchall()


def test_it_is_stored_and_found(conn: secateur.Connection) -> None:
    conn.execute("INSERT INTO hashed (k, ts, z) VALUES (99, NULL, ?)", [LAST_IN_NEW_YORK])
    assert conn.execute("SELECT k, CAST(z AS VARCHAR) FROM hashed WHERE z = ?", [LAST_IN_NEW_YORK]).fetchall() == [
        (99, "10000-01-01 04:59:59.999999+00")
    ]
    assert conn.execute("DELETE FROM hashed WHERE z = ?", [LAST_IN_NEW_YORK]).rowcount == 1
    with pytest.raises(DataError, match=r"column z: .* in UTC it is outside of the years 1 to 9999"):
        conn.table("hashed").put((99, None, LAST_IN_NEW_YORK))


def test_jobs_and_http_take_it(cluster: secateur.Cluster, conn: secateur.Connection) -> None:
    read = Pipeline().read_table("ranged", where="z < ?", params=[LAST_IN_NEW_YORK])
    assert read.write_to(collect()).submit(conn).result().num_rows == 60
    with HttpServer(cluster.address, cluster.token) as server, HttpClient(server.url, cluster.token) as client:
        for moment, written in (
            (LAST_IN_NEW_YORK, "10000-01-01 04:59:59.999999+00"),
            (FIRST_IN_KARACHI, "0001-12-31 (BC) 19:00:00+00"),
        ):
            assert list(client.execute("SELECT CAST(? AS VARCHAR)", [moment])) == [(written,)]

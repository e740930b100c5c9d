"""Every type of a column comes back as it was, by every way in and out: one table of types, one test for each way.

A type that is new is one more line of :data:`TYPES`. A way gets a table with a column of each type, and fills another
table of the same columns; DuckDB, which has computed the values, says what is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pyarrow as pa
import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession

import secateur
from secateur.cluster import Cluster
from secateur.http import HttpClient
from secateur.partitioning.types import TypeKind, parse_type
from secateur.server import HttpServer

TYPES: dict[str, Sequence[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "HUGEINT": ["-99999999999999999999999999999999999999", "1701411834604692317316873"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["0", "65535"],
    "UINTEGER": ["0", "4294967295"],
    "UBIGINT": ["0", "18446744073709551615"],
    "FLOAT": ["'0.1'", "'-3.4028235e38'", "'-0.0'", "'inf'"],
    "DOUBLE": ["19.99", "'5e-324'", "'-0.0'", "'-inf'"],
    "DECIMAL(10,2)": ["0.10", "-99999999.99"],
    "DECIMAL(38,10)": ["'12345678901234567.01'", "'-0.0000000001'"],
    "VARCHAR": ["''", "' a\"b,c'", "'NULL'", "'ü' || chr(10) || '\\'"],
    "JSON": ['\'{"a":[1,"x,y",null]}\'', "'\"it''s\"'", "'12'"],
    "ENUM('b', 'a, \"c\"', 'it''s')": ["'it''s'", "'a, \"c\"'", "'b'"],
    "BLOB": ["''::BLOB", "'\\x00\\xFF\\x22,'::BLOB"],
    "DATE": ["'2024-02-29'", "'0001-01-01'"],
    "TIME": ["'00:00:00'", "'23:59:59.999999'"],
    "TIMESTAMP": ["'2024-01-02 03:04:05.678901'", "'1969-12-31 23:59:59.999999'"],
    "TIMESTAMP WITH TIME ZONE": ["'2024-01-02 03:04:05.678901+02:30'", "'1969-12-31 23:59:59-12'"],
    "TIMESTAMP_S": ["'2024-01-02 03:04:05'", "'1969-12-31 23:59:59'", "'9999-12-31 23:59:59'"],
    "TIMESTAMP_MS": ["'2024-01-02 03:04:05.678'", "'1969-12-31 23:59:59.999'"],
    "TIMESTAMP_NS": ["'2024-01-02 03:04:05.678901234'", "'1969-12-31 23:59:59.999999999'", "'2024-01-02'"],
    "INTERVAL": ["'3 days 04:05:06.789'", "'00:00:00'"],
    "UUID": ["'00000000-0000-0000-0000-00000000000a'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "INTEGER[]": ["[1, NULL, 3]", "[]"],
    "VARCHAR[][]": ["[['a', ''], NULL, [NULL]]"],
    "FLOAT[3]": ["[1, 2.5, 0.1]", "[NULL, -1, 'inf'::FLOAT]"],
    "VARCHAR[1]": ["['']", "['x, y']"],
    "INTEGER[2][2]": ["[[1, 2], [3, NULL]]", "[NULL, [5, 6]]"],
    "FLOAT[3][]": ["[[1, 2, 3], NULL, [4, 5, 6]]", "[]"],
    "TIMESTAMP_NS[]": ["[TIMESTAMP_NS '2024-01-02 03:04:05.678901234', NULL]"],
    "TIMESTAMP_S[2]": ["[TIMESTAMP_S '2024-01-02 03:04:05', NULL]"],
    "JSON[]": ["['[1]', NULL, '{\"a\":2}']", "[]"],
    "STRUCT(e ENUM('x', 'y'), j JSON)": ["{'e': 'y', 'j': '[2]'}", "{'e': NULL, 'j': NULL}"],
    'STRUCT(a VARCHAR, "B c" DECIMAL(20,2)[])': ["{'a': NULL, 'B c': [0.10]}", "{'a': '', 'B c': NULL}"],
    "STRUCT(v DOUBLE[2], t TIMESTAMP_MS)": ["{'v': [0.5, NULL], 't': '2024-01-02 03:04:05.678'}"],
    "MAP(VARCHAR, BIGINT)": ["MAP {'a': 1, '': NULL}", "MAP {}"],
    "MAP(INTEGER, FLOAT[2])": ["MAP {1: [1.5, 2], 2: NULL}"],
}
"""Types by their text, as a column's has it, with values of each in SQL. Each has a NULL as well."""

BEFORE: Sequence[str] = ()
"""Statements that make what the types need; the cluster and DuckDB run them."""

NANOSECONDS = "Python's datetime has microseconds, as in DuckDB's own client: Arrow, pandas and polars keep all"
IN_LISTS = "DuckDB writes JSON inside of a list as it is, and reads it as parts of the list"
NAN = "a NULL inside of a list of numbers is NaN in pandas"
LEFT_OUT: dict[str, Mapping[str, str]] = {
    "pandas": dict.fromkeys(("INTEGER[]", "FLOAT[3]", "INTEGER[2][2]", "STRUCT(v DOUBLE[2], t TIMESTAMP_MS)"), NAN),
    "parameters": dict.fromkeys(("TIMESTAMP_NS", "TIMESTAMP_NS[]"), NANOSECONDS),
    "rows by key": dict.fromkeys(("TIMESTAMP_NS", "TIMESTAMP_NS[]"), NANOSECONDS),
    "csv, COPY": {"JSON[]": IN_LISTS},
    "csv, load": {"JSON[]": IN_LISTS},
    "SQLAlchemy": {
        **dict.fromkeys(("TIMESTAMP_NS", "TIMESTAMP_NS[]"), NANOSECONDS),
        "JSON": "None is the null of JSON in SQLAlchemy, and NULL with none_as_null=True",
    },
    "Spark": dict.fromkeys(("TIMESTAMP_NS", "TIMESTAMP_NS[]"), "Spark's timestamps have microseconds"),
}
"""The types that a way cannot carry, with the reason."""

NAMES = {f"c{number}": text for number, text in enumerate(TYPES)}
ROWS = 1 + max(map(len, TYPES.values()))


@dataclass(frozen=True)
class Way:
    """What a way in and out has at hand.

    Attributes:
        conn: A connection.
        cluster: Its cluster.
        folder: Where files may be.
        columns: The types of the columns beside the key ``k``, by name.
        source: The table that is full.
        copy: One of the same columns, without rows.
    """

    conn: secateur.Connection
    cluster: Cluster
    folder: Path
    columns: Mapping[str, str]
    source: str
    copy: str
    request: pytest.FixtureRequest = field(repr=False)

    @property
    def ddl(self) -> str:
        listed = ", ".join(f"{name} {text}" for name, text in self.columns.items())
        return f"(k INTEGER PRIMARY KEY, {listed}) PARTITION BY HASH (k) PARTITIONS 3"

    @property
    def query(self) -> str:
        return f"SELECT k, {', '.join(self.columns)} FROM {self.source} ORDER BY k"

    def load(self, rows: Any) -> None:
        self.conn.table(self.copy).load(rows, mode="append")


def filled(columns: Mapping[str, str]) -> str:
    """A query for the rows: the first has NULLs alone."""
    rows = [
        ", ".join(
            f"CAST({TYPES[text][row - 1] if 0 < row <= len(TYPES[text]) else 'NULL'} AS {text}) AS {name}"
            for name, text in columns.items()
        )
        for row in range(ROWS)
    ]
    return " UNION ALL ".join(f"SELECT {row} AS k, {values}" for row, values in enumerate(rows))


def by_sql(way: Way) -> None:
    way.conn.execute(f"INSERT INTO {way.copy} {way.query}")


def by_create_table_as(way: Way) -> None:
    way.conn.execute(f"CREATE OR REPLACE TABLE {way.copy} PRIMARY KEY (k) AS {way.query}")


def by_parameters(way: Way) -> None:
    rows = way.conn.execute(way.query).fetchall()
    marks = ", ".join("?" * (1 + len(way.columns)))
    way.conn.executemany(f"INSERT INTO {way.copy} VALUES ({marks})", rows)


def by_key(way: Way) -> None:
    source, copy = way.conn.table(way.source), way.conn.table(way.copy)
    rows = [source.get({"k": 0}), *source.get_many([{"k": k} for k in range(1, ROWS)])]
    first, *others = [{name: row[name] for name in ("k", *way.columns)} for row in rows if row is not None]
    copy.put(first)
    copy.put_many(others)


def by_arrow(way: Way) -> None:
    way.load(way.conn.execute(way.query).fetch_arrow_table())


def by_like(way: Way) -> None:
    """A table made of a schema of Arrow has its types, but for those that Arrow has no type for."""
    rows = way.conn.execute(way.query).fetch_arrow_table()
    made = way.conn.create_table(f"{way.copy}_like", like=rows.schema, primary_key=["k"])
    given = {name: str(text) for name, text in way.columns.items() if not re.search("HUGEINT|JSON|ENUM", text)}
    described = {row[0]: row[1] for row in way.conn.execute(f"DESCRIBE {way.copy}_like").fetchall()}
    timestamps = {f"TIMESTAMP_{unit}": "TIMESTAMP" for unit in ("S", "MS", "NS")}
    for name, text in given.items():
        for finer, plain in timestamps.items():
            text = text.replace(f"{finer} ", f"{plain} ").replace(f"{finer})", f"{plain})")
            text = text.replace(f"{finer}[", f"{plain}[") if text != finer else plain
        assert described[name] == text
    assert made is not None
    way.load(rows)


def by_pandas(way: Way) -> None:
    way.load(way.conn.execute(way.query).fetch_df())


def by_polars(way: Way) -> None:
    way.load(way.conn.execute(way.query).pl())


def by_file(form: str, *, by_copy: bool) -> Callable[[Way], None]:
    def through(way: Way) -> None:
        path = way.folder / f"rows.{form}"
        way.conn.execute(f"COPY ({way.query}) TO '{path}' (FORMAT {form})")
        if by_copy:
            way.conn.execute(f"COPY {way.copy} FROM '{path}' (FORMAT {form})")
        else:
            way.load(path)

    return through


def by_http(way: Way) -> None:
    """JSON from the server, and the same JSON back as parameters of an INSERT that casts them."""
    server = way.request.getfixturevalue("http_server")
    types = ["INTEGER", *way.columns.values()]
    headers = {"Authorization": f"Bearer {way.cluster.token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=90) as http:
        answer = http.post("/api/v1/statements", json={"sql": way.query})
        answer.raise_for_status()
        for row in answer.json()["rows"]:
            given = [json_parameter(text, value) for text, value in zip(types, row, strict=True)]
            values = ", ".join(f"CAST(? AS {text})" for text in types)
            http.post(
                "/api/v1/statements", json={"sql": f"INSERT INTO {way.copy} SELECT {values}", "params": given}
            ).raise_for_status()


def json_parameter(text: str, value: Any) -> Any:
    """A value of an answer as a parameter: a type that JSON lacks is said beside it."""
    if value is None:
        return None
    if text == "BLOB" or text == "INTERVAL":
        return {"type": text, "value": value}
    if text.startswith("STRUCT("):
        return {"type": "STRUCT", "value": value}
    if text.startswith("MAP("):
        return {"type": "MAP", "value": value}
    return value


def by_http_client(way: Way) -> None:
    server = way.request.getfixturevalue("http_server")
    with HttpClient(server.url, token=way.cluster.token) as http:
        way.load(http.execute(way.query).arrow())


def by_spark(way: Way) -> None:
    spark: SparkSession = way.request.getfixturevalue("spark_session")(
        {"spark.sql.session.timeZone": "UTC", "spark.sql.timeType.enabled": "true"}
    )
    given = {"address": way.cluster.address, "token": way.cluster.token}
    frame = secateur.spark.read(spark, way.source, columns=["k", *way.columns], **given)
    secateur.spark.write(frame, way.copy, mode="append", **given)


def by_backup(way: Way) -> None:
    by_sql(way)
    way.conn.execute(f"BACKUP TABLE {way.copy} TO '{way.folder}/backup'")
    way.conn.execute(f"DROP TABLE {way.copy}")
    way.conn.execute(f"RESTORE FROM '{way.folder}/backup'")


def by_change_feed(way: Way) -> None:
    way.conn.execute(f"CREATE TABLE {way.copy}_fed {way.ddl} WITH (change_feed = true)")
    changes = way.conn.changes(f"{way.copy}_fed")
    assert list(changes) == []
    way.conn.execute(f"INSERT INTO {way.copy}_fed {way.query}")
    batches = list(changes)
    way.load(pa.Table.from_batches(batches).select(["k", *way.columns]))


def by_sqlalchemy(way: Way) -> None:
    engine = sa.create_engine(
        f"secateur://{way.cluster.address.removeprefix('secateur://')}/?token={way.cluster.token}"
    )
    try:
        source = sa.Table(way.source, sa.MetaData(), autoload_with=engine)
        made = sa.MetaData()
        copy = source.to_metadata(made, name=f"{way.copy}_made")
        made.create_all(engine)
        with engine.begin() as connection:
            rows = [dict(row._mapping) for row in connection.execute(sa.select(source))]
            connection.execute(copy.insert(), rows)
        way.conn.execute(f"INSERT INTO {way.copy} SELECT k, {', '.join(way.columns)} FROM {way.copy}_made")
    finally:
        engine.dispose()


WAYS: dict[str, Callable[[Way], None]] = {
    "SQL": by_sql,
    "CREATE TABLE AS": by_create_table_as,
    "parameters": by_parameters,
    "rows by key": by_key,
    "Arrow": by_arrow,
    "like": by_like,
    "pandas": by_pandas,
    "polars": by_polars,
    **{
        f"{form}, {'COPY' if by_copy else 'load'}": by_file(form, by_copy=by_copy)
        for form in ("parquet", "csv", "json")
        for by_copy in (True, False)
    },
    "JSON over HTTP": by_http,
    "Arrow over HTTP": by_http_client,
    "Spark": by_spark,
    "backup": by_backup,
    "change feed": by_change_feed,
    "SQLAlchemy": by_sqlalchemy,
}


@pytest.fixture(scope="module")
def http_server(cluster: Cluster) -> Iterator[HttpServer]:
    with HttpServer(cluster.address) as running:
        yield running


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in BEFORE:
            connection.execute(statement)
        connection.execute(f"CREATE TABLE expected AS {filled(NAMES)}")
        yield connection


@pytest.fixture(scope="module")
def full(cluster: Cluster) -> str:
    """The table that all ways read."""
    with cluster.connect() as conn:
        for statement in BEFORE:
            conn.execute(statement)
        fill(conn, "every_type")
    return "every_type"


def fill(conn: secateur.Connection, name: str) -> None:
    listed = ", ".join(f"{column} {text}" for column, text in NAMES.items())
    conn.execute(f"CREATE TABLE {name} (k INTEGER PRIMARY KEY, {listed}) PARTITION BY HASH (k) PARTITIONS 3")
    conn.execute(f"INSERT INTO {name} {filled(NAMES)}")


def texts(connection: Any, table: str, columns: Mapping[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """The values of each column as text, and its type, by the type that it should have."""
    listed = ", ".join(f"typeof({name}), CAST({name} AS VARCHAR)" for name in columns)
    rows = connection.execute(f"SELECT {listed} FROM {table} ORDER BY k").fetchall()
    return {text: [row[2 * at : 2 * at + 2] for row in rows] for at, text in enumerate(columns.values())}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.spark if name == "Spark" else ()) for name in WAYS]
)
def test_every_type_comes_back(
    name: str,
    cluster: Cluster,
    conn: secateur.Connection,
    full: str,
    oracle: duckdb.DuckDBPyConnection,
    table_name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    left_out = LEFT_OUT.get(name, {})
    columns = {column: text for column, text in NAMES.items() if text not in left_out}
    way = Way(conn, cluster, tmp_path, columns, full, table_name, request)
    conn.execute(f"CREATE TABLE {way.copy} {way.ddl}")
    WAYS[name](way)
    assert texts(conn, way.copy, columns) == texts(oracle, "expected", columns)


def test_every_type_comes_back_from_the_log(oracle: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for turn in range(3):
        with (
            secateur.start(members=2, runtime="embedded", data_directory=tmp_path) as cluster,
            cluster.connect() as conn,
        ):
            if not turn:
                for statement in BEFORE:
                    conn.execute(statement)
                fill(conn, "every_type")
            assert texts(conn, "every_type", NAMES) == texts(oracle, "expected", NAMES)


def test_every_type_has_defaults_for_rows_that_are_there_and_for_those_that_come(
    conn: secateur.Connection, oracle: duckdb.DuckDBPyConnection, table_name: str
) -> None:
    values = {f"c{at}_{row}": (text, value) for at, text in enumerate(TYPES) for row, value in enumerate(TYPES[text])}
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY)")
    conn.execute(f"INSERT INTO {table_name} VALUES (0)")
    added = (f"ADD COLUMN {name} {text} DEFAULT CAST({value} AS {text})" for name, (text, value) in values.items())
    conn.execute(f"ALTER TABLE {table_name} {', '.join(added)}")
    conn.execute(f"INSERT INTO {table_name} (k) VALUES (1)")
    listed = ", ".join(f"CAST({value} AS {text}) AS {name}" for name, (text, value) in values.items())
    oracle.execute(f"CREATE OR REPLACE TEMP TABLE defaults AS SELECT k, {listed} FROM range(2) AS r(k)")
    columns = {name: f"{text} DEFAULT {value}" for name, (text, value) in values.items()}
    assert texts(conn, table_name, columns) == texts(oracle, "defaults", columns)


def test_the_table_of_types_has_each_kind() -> None:
    found = {kind for kind in TypeKind if any(parse_type(text).contains((kind,)) for text in TYPES)}
    assert found == set(TypeKind)

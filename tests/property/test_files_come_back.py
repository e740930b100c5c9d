"""A file that secateur wrote comes back equal: every type, in every format, by every way in and out.

The values are those at the ends of types, and texts that mean something in a format. ``SECATEUR_SEED`` draws other
rows, ``SECATEUR_PROPERTY_FACTOR`` more.
"""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur.cli import OutputFormat, write_rows
from secateur.cluster import Cluster

SEED = int(os.environ.get("SECATEUR_SEED", "20261127"))
ROWS = 10 * int(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))
PLAIN_ROWS = 21_000
"""More than DuckDB looks at to find out how a file is written."""

TEXTS = [
    *("", " ", "  x ", "NULL", "null", "nan", "true", "1.10", "007", "01/02/2025", "a,b", "a;b", "a|b", "a\tb", "#x"),
    *(
        '"',
        '""',
        'q"r',
        "'",
        "it's",
        "\\",
        "\\n",
        "\\'",
        "\n",
        "\r",
        "\r\n",
        "a\nb",
        "\ufeff",
        "\ufeffk",
        "é\U0001f600",
    ),
    *("[", "]", "{", "}", "[NULL]", "{a=b}", "=", ":", "()", "\x00", "\u200b", "k", "k,v", '{"a": 1.50}', "-", "NA"),
]
INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
"""Those with a sign, and their bits."""


def text(value: str) -> str:
    """A text as SQL has it."""
    parts = [f"'{part}'" for part in value.replace("'", "''").split("\x00")]
    return f"({' || chr(0) || '.join(parts)})"


VALUES: dict[str, list[str]] = {
    **{name: [str(-(2 ** (bits - 1))), str(2 ** (bits - 1) - 1)] for name, bits in INTEGERS.items()},
    **{f"U{name}": ["0", str(2**bits - 1)] for name, bits in INTEGERS.items()},
    "BOOLEAN": ["true", "false"],
    "HUGEINT": ["-99999999999999999999999999999999999999", "1701411834604692317316873", "0"],
    "FLOAT": ["'0.1'", "'3.4028235e38'", "'1e-45'", "'inf'", "'-inf'", "'nan'", "'-0.0'"],
    "DOUBLE": ["'0.1'", "'1.7976931348623157e308'", "'5e-324'", "'inf'", "'-inf'", "'nan'", "'-0.0'", "19.99", "1"],
    "DECIMAL(10,2)": ["'0.10'", "'-99999999.99'", "'5'"],
    "DECIMAL(18,6)": ["'123456789012.000001'", "'-0.000001'"],
    "DECIMAL(38,0)": ["99999999999999999999999999999999999999", "-1"],
    "DECIMAL(38,10)": ["'12345678901234567.01'", "'-0.0000000001'"],
    "DECIMAL(38,38)": ["'0.12345678901234567890123456789012345678'"],
    "VARCHAR": list(map(text, TEXTS)),
    "BLOB": ["''::BLOB", "'\\x00\\xFF\\x22\\x0A,'::BLOB", "'abc'::BLOB", "'\\x5CxAA'::BLOB"],
    "DATE": ["'2024-02-29'", "'0044-03-15 (BC)'", "'10000-01-01'", "'infinity'", "'-infinity'", "'5881580-07-10'"],
    "TIME": ["'00:00:00'", "'23:59:59.999999'", "'01:02:03.5'"],
    "TIMESTAMP": [
        "'2024-01-02 03:04:05.678901'",
        "'infinity'",
        "'-infinity'",
        "'0044-03-15 (BC) 01:02:03'",
        "'294247-01-10 04:00:54.775806'",
    ],
    "TIMESTAMPTZ": [
        "'2024-01-02 03:04:05.678901+02:30'",
        "'infinity'",
        "'-infinity'",
        "'1969-12-31 23:59:59-12'",
        "'10000-01-01 00:00:00+00'",
    ],
    "TIMESTAMP_S": [
        "'2024-01-02 03:04:05'",
        "'infinity'",
        "'-infinity'",
        "'0044-03-15 (BC) 01:02:03'",
        "'294247-01-10'",
    ],
    "TIMESTAMP_MS": [
        "'2024-01-02 03:04:05.678'",
        "'infinity'",
        "'-infinity'",
        "'1969-12-31 23:59:59.999'",
        "'10000-01-01'",
    ],
    "TIMESTAMP_NS": [
        "'2024-01-02 03:04:05.678901234'",
        "'infinity'",
        "'-infinity'",
        "'1677-09-22 00:00:00.000000001'",
        "'2262-04-11 23:47:16.854775806'",
        "'1969-12-31 23:59:59.999999999'",
    ],
    "INTERVAL": [
        "'1 year 2 months 3 days 04:05:06.789'",
        "'0 days'",
        "'40 days'",
        "'2147483647 months'",
        "'-1 month -2 days -03:04:05.000001'",
        "'00:00:00.000001'",
    ],
    "UUID": ["'00000000-0000-0000-0000-00000000000a'", "'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'"],
    "VARCHAR[]": ["[]", "[NULL]", *(f"[{text(one)}, NULL, {text(one)}]" for one in TEXTS)],
    "DECIMAL(38,10)[]": ["[12345678901234567.01::DECIMAL(38,10), NULL]"],
    "HUGEINT[]": ["[1701411834604692317316873::HUGEINT, -1]"],
    "DOUBLE[]": ["['inf'::DOUBLE, 'nan'::DOUBLE, -0.0, 0.1, NULL]"],
    "BLOB[]": ["['\\xFF,'::BLOB, ''::BLOB, NULL]"],
    "INTERVAL[]": ["[INTERVAL '3 days 01:00:00', NULL]"],
    "TIMESTAMPTZ[]": ["['infinity'::TIMESTAMPTZ, '2024-01-02 03:04:05.6+02'::TIMESTAMPTZ]"],
    "TIMESTAMP_NS[]": ["['infinity'::TIMESTAMP_NS, '2024-01-02 03:04:05.678901234'::TIMESTAMP_NS, NULL]"],
    "TIMESTAMP_S[2]": ["['-infinity'::TIMESTAMP_S, '2024-01-02 03:04:05'::TIMESTAMP_S]"],
    "VARCHAR[2]": [f"[{text(one)}, NULL]" for one in TEXTS],
    "FLOAT[3]": ["['inf'::FLOAT, 'nan'::FLOAT, -0.0]", "[0.1, NULL, 3.4028235e38]"],
    "INTERVAL[1]": ["[INTERVAL '3 days 01:00:00']", "[NULL]"],
    "HUGEINT[2][]": ["[[1701411834604692317316873::HUGEINT, -1], NULL]", "[]"],
    "STRUCT(a VARCHAR[1], b BLOB[2][2])": [
        f"{{'a': [{text(one)}], 'b': [['\\xFF,'::BLOB, ''::BLOB], NULL]}}" for one in TEXTS
    ],
    "MAP(INTEGER[2], DOUBLE[1])": ["MAP {[1, 2]: ['inf'::DOUBLE], [2, 1]: NULL}"],
    "MAP(TIMESTAMP_NS, DATE[2])": ["MAP {'2024-01-02 03:04:05.678901234'::TIMESTAMP_NS: [DATE '2024-02-29', NULL]}"],
    "UUID[]": ["['00000000-0000-0000-0000-00000000000a'::UUID, NULL]"],
    "DATE[][]": ["[[DATE '2024-02-29', NULL], [], NULL]"],
    'STRUCT(a VARCHAR, "B c" DECIMAL(20,2)[])': [
        "{'a': NULL, 'B c': NULL}",
        "{'a': '', 'B c': [0.10]}",
        *(f"{{'a': {text(one)}, 'B c': []}}" for one in TEXTS),
    ],
    "MAP(VARCHAR, HUGEINT)": [
        "MAP {}",
        *(f"MAP {{{text(one)}: 1701411834604692317316873, 'other': NULL}}" for one in TEXTS),
    ],
    "MAP(DATE, VARCHAR)": ["MAP {DATE '2024-02-29': '', DATE '0044-03-15 (BC)': NULL, DATE 'infinity': 'x'}"],
    "MAP(INTEGER[], DOUBLE)": ["MAP {[1, 2]: 'inf'::DOUBLE}"],
    "MAP(VARCHAR[], INTEGER)": [f"MAP {{[{text(one)}, 'a, b']: 1}}" for one in TEXTS],
    "MAP(STRUCT(a VARCHAR, b DATE), INTEGER)": [
        f"MAP {{{{'a': {text(one)}, 'b': DATE '2024-02-29'}}: 1}}" for one in TEXTS
    ],
    "MAP(VARCHAR, VARCHAR)[]": [f"[MAP {{'k': {text(one)}}}, NULL, MAP {{}}]" for one in TEXTS],
}
"""Values of each type, as SQL."""


def copied(conn: secateur.Connection, table: str, path: Path) -> None:
    conn.execute(f"COPY {table} TO '{path}'")


def streamed(conn: secateur.Connection, table: str, path: Path) -> None:
    reader = conn.execute(f"FROM {table}").fetch_record_batch()
    with pa.ipc.new_stream(str(path), reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def printed(conn: secateur.Connection, table: str, path: Path) -> None:
    with io.TextIOWrapper(path.open("wb"), "utf-8", newline="") as stream:
        write_rows(conn.execute(f"FROM {table}"), OutputFormat.CSV, into=stream)


WAYS: list[Any] = [
    pytest.param(copied, "csv", id="COPY-csv"),
    pytest.param(copied, "csv.gz", id="COPY-csv.gz"),
    pytest.param(copied, "json", id="COPY-json"),
    pytest.param(copied, "parquet", id="COPY-parquet"),
    pytest.param(printed, "csv", id="sql-csv"),
    pytest.param(streamed, "arrows", id="arrow"),
]


@pytest.fixture(scope="module")
def filled(cluster: Cluster) -> Iterator[str]:
    """A table with a column of each type; that with ``_parquet`` behind its name has what Parquet can hold of it."""
    chance = random.Random(SEED)
    rows = (
        [some[row] if row < len(some) else chance.choice([*some, "NULL"]) for some in VALUES.values()]
        for row in range(max(map(len, VALUES.values())) + ROWS)
    )
    listed = ", ".join(f"({row}, {', '.join(cells)})" for row, cells in enumerate(rows))
    columns = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(VALUES))
    interval = f"c{list(VALUES).index('INTERVAL')}"
    is_in_parquet = f"{interval} >= INTERVAL '0 days' AND extract(microsecond FROM {interval}) % 1000 = 0"
    with cluster.connect() as conn:
        for ending in ("", "_parquet", "_back"):
            conn.execute(
                f"CREATE TABLE files{ending} (k INTEGER PRIMARY KEY, {columns}) PARTITION BY HASH (k) PARTITIONS 3"
            )
        conn.execute(f"INSERT INTO files VALUES {listed}")
        replaced = f"* REPLACE (CASE WHEN {is_in_parquet} THEN {interval} END AS {interval})"
        conn.execute(f"INSERT INTO files_parquet SELECT {replaced} FROM files")
        yield "files"
        for ending in ("", "_parquet", "_back"):
            conn.execute(f"DROP TABLE files{ending}")


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize(("write", "ending"), WAYS)
def test_every_type_comes_back_equal(
    conn: secateur.Connection,
    filled: str,
    tmp_path: Path,
    write: Callable[[secateur.Connection, str, Path], None],
    ending: str,
) -> None:
    table, back = f"{filled}_parquet" if ending == "parquet" else filled, f"{filled}_back"
    texts = ", ".join(f"c{number}::VARCHAR" for number in range(len(VALUES)))
    before = conn.execute(f"SELECT k, {texts} FROM {table} ORDER BY k").fetchall()
    path = tmp_path / f"a.{ending}"
    write(conn, table, path)

    def check() -> None:
        found = conn.execute(f"SELECT k, {texts} FROM {back} ORDER BY k").fetchall()
        assert [row[0] for row in found] == [row[0] for row in before]
        differing = [
            (type_, one[number + 1], other[number + 1])
            for one, other in zip(before, found, strict=True)
            for number, type_ in enumerate(VALUES)
            if one[number + 1] != other[number + 1]
        ]
        assert not differing

    conn.table(back).load(path, "overwrite")
    check()
    if ending != "arrows":
        conn.execute(f"TRUNCATE {back}")
        conn.execute(f"COPY {back} FROM '{path}'")
        check()


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_texts_behind_many_rows_come_back_equal(
    conn: secateur.Connection, table_name: str, tmp_path: Path, ending: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, v VARCHAR, d DOUBLE)")
    listed = ", ".join(f"({PLAIN_ROWS + number}, {text(one)}, 0.5)" for number, one in enumerate(TEXTS))
    conn.execute(f"INSERT INTO {table_name} SELECT i, 'x', i FROM range({PLAIN_ROWS}) r(i)")
    conn.execute(f"INSERT INTO {table_name} VALUES {listed}, (-1, NULL, NULL)")
    look = f"SELECT * FROM {table_name} ORDER BY k"
    before = conn.execute(look).fetchall()
    path = tmp_path / f"a.{ending}"
    conn.execute(f"COPY (FROM {table_name} ORDER BY k) TO '{path}'")
    for load in (
        lambda: conn.table(table_name).load(path, "overwrite"),
        lambda: conn.execute(f"TRUNCATE {table_name}") and conn.execute(f"COPY {table_name} FROM '{path}'"),
    ):
        load()
        assert conn.execute(look).fetchall() == before

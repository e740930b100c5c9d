"""Statements over few rows that are found by key answer what DuckDB answers, however the rows came there.

Random tables of all types that may be read as plain values, with NULLs, rows that were loaded and rows that were
written since; random choices of columns and aggregations under equalities and IN lists of the leading key columns.
``SECATEUR_SEED`` sets the seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

import secateur
from extremes import BEYOND_TEXTS, now_and_then
from other_types import in_turn

SEED = int(os.environ.get("SECATEUR_SEED", "20261125"))
STATEMENTS = int(4 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
"""Of each turn, between which rows change."""
INSTANTS_ENDS = [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]


def some_day(r: random.Random) -> date:
    return date(2024, 1, 1) + timedelta(r.randrange(-(10**5), 10**5))


def some_moment(r: random.Random) -> datetime:
    return datetime(2024, 1, 1) + timedelta(microseconds=r.randrange(10**15))


COLUMNS = {
    "tiny": ("TINYINT", lambda r: r.randrange(-128, 128)),
    "number": ("BIGINT", lambda r: r.choice([r.randrange(-9, 9), 2**63 - 1, -(2**63)])),
    "unsigned": ("UBIGINT", lambda r: r.choice([r.randrange(9), 2**64 - 1])),
    "huge": ("HUGEINT", lambda r: r.choice([r.randrange(-9, 9), 10**37])),
    "text": ("VARCHAR", lambda r: now_and_then(r, ["", "a", "é🌳", "x" * 300], BEYOND_TEXTS)),
    "price": ("DECIMAL(10, 2)", lambda r: Decimal(f"{r.randrange(-(10**4), 10**4)}e-2")),
    "wide": ("DECIMAL(38, 3)", lambda r: Decimal(f"{r.randrange(-(10**9), 10**9)}e-3")),
    "day": ("DATE", lambda r: now_and_then(r, [some_day(r)], [date.min, date.max])),
    "moment": ("TIMESTAMP", lambda r: now_and_then(r, [some_moment(r)], [datetime.min, datetime.max])),
    "instant": ("TIMESTAMPTZ", lambda r: now_and_then(r, [some_moment(r).replace(tzinfo=UTC)], INSTANTS_ENDS)),
    "flag": ("BOOLEAN", lambda r: r.random() < 0.5),
    "single": ("FLOAT", lambda r: now_and_then(r, [0.1, -0.25, 1 / 3], [float("inf"), -float("inf"), float("nan")])),
    "clock": ("TIME", lambda r: time(r.randrange(24), r.randrange(60), 1, 7)),
    "ratio": ("DOUBLE", lambda r: r.choice([0.5, -0.25, 2.0**996])),  # any order adds up to the same
    "id": ("UUID", lambda r: UUID(int=now_and_then(r, [r.randrange(2**128)], [0, 2**128 - 1]))),
    "bytes": ("BLOB", lambda r: r.choice([b"", b"\x00\xff"])),
}
KEYS = ("customer BIGINT", "line INTEGER")
PARTITIONS = ("HASH (customer) PARTITIONS 7", "HASH (customer, line) PARTITIONS 5", "RANGE (customer) SPLIT AT (5, 11)")
CUSTOMERS = 20
AGGREGATES = (
    "count(*)", "count({c})", "sum(price)", "sum(wide)", "sum(tiny)", "sum(number)", "min({c})", "max(text)",
    "avg(tiny)", "min(price)", "sum(ratio)", "count(DISTINCT {c})", "count(*) FILTER (WHERE tiny > 0)",
    "sum(tiny) FILTER (WHERE text = 'a' OR flag)",
)  # fmt: skip
CONDITIONS = (
    "text = 'a'", "text > ''", "text IN ('a', 'é🌳')", "text IS NULL", "text LIKE 'a%'", "tiny >= 0", "tiny <> 3",
    "tiny BETWEEN -50 AND 50", "number < 5", "number = 9223372036854775807", "unsigned > 3", "day < DATE '2024-01-01'",
    "day BETWEEN DATE '1900-01-01' AND DATE '2100-01-01'", "moment >= TIMESTAMP '2024-03-01'", "flag", "NOT flag",
    "flag IS NOT TRUE", "line < 5", "line BETWEEN 2 AND 4", "coalesce(tiny, 0) > 0", "(tiny > 0 OR text = 'a')",
    "(tiny > 0 AND number > 0)", "price > 1", "ratio < 0.3", "huge > 0", "tiny > NULL", "id IS NOT NULL", "tiny < line",
    "CASE WHEN flag THEN tiny ELSE line END > 2", "tiny = customer", "day < TIMESTAMP '2024-01-01 12:00:00'",
    "moment > DATE '2024-03-01'", "tiny = 3.0", "tiny > 2.5", "number = '5'", "flag = 1", "text < 5::VARCHAR",
    "instant > TIMESTAMPTZ '2024-06-01 00:00:00+00'", "moment < instant", "unsigned = -1", "tiny < 1000",
    "instant <= TIMESTAMPTZ 'infinity'", "moment > TIMESTAMP '-infinity'", "day = DATE '9999-12-31'",
    "day <> 'infinity'",    "single < 'infinity'::FLOAT", "instant = TIMESTAMPTZ '0001-01-01'", "text > chr(0)",
    "ratio = -0.0", "ratio <> 'nan'", "NOT ratio > 0",
    "number > 9223372036854775807", "text = 'é🌳' COLLATE NOCASE", "3 < line", "NOT (tiny > 0)", "(flag OR NULL)",
)  # fmt: skip
BOUND = (
    ("tiny > ?", lambda r: r.randrange(-128, 128)),
    ("? < number", lambda r: r.randrange(-9, 9)),
    ("text = ?", lambda r: r.choice(["", "a", "é🌳", None])),
    ("day <= ?", lambda r: now_and_then(r, [some_day(r)], [date.min, date.max, "infinity", "10000-01-01"])),
    ("moment > ?", lambda r: now_and_then(r, [some_moment(r)], [datetime.min, datetime.max, "-infinity"])),
    ("instant = ?", lambda r: r.choice([*INSTANTS_ENDS, "infinity"])),
    ("flag = ?", lambda r: r.random() < 0.5),
    ("price = ?", lambda r: Decimal(f"{r.randrange(-(10**4), 10**4)}e-2")),
    ("line <> ?", lambda r: r.choice([3, 3.5, "3"])),
    ("day > ?", lambda r: r.choice([datetime(2024, 1, 1, 12), "2024-02-01", date(2024, 3, 1)])),
    ("moment <= ?", lambda r: r.choice([date(2024, 6, 1), datetime(2024, 6, 1, tzinfo=UTC), "2024-06-01"])),
    ("tiny = ?", lambda r: r.choice([None, True, 3.0, Decimal("2.5"), "7", 500])),
    ("number < ?", lambda r: r.choice([2**63, -1.5, 2**70, float("inf"), float("nan")])),
    ("flag = ?", lambda r: r.choice([0, 1, "true", None])),
    ("ratio > ?", lambda r: r.choice([0, 1, -1, 0.25, -0.0, 2**53 + 1, True, Decimal("0.5"), "0.5", float("nan")])),
    ("ratio <= ?", lambda r: r.choice([0, 0.5, float("inf"), -float("inf"), float("nan"), None])),
    ("? = ratio", lambda r: r.choice([0, 0.0, -0.0, 1.5, float("nan"), 2**70])),
    ("text > ?", lambda r: r.choice(["\x00", "é", "\U0010ffff"])),
)
"""Conditions beside those on the key."""
SORTABLE = (
    "tiny", "number", "unsigned", "huge", "text", "price", "day", "moment", "instant", "ratio", "flag", "single"
)  # fmt: skip
GROUPABLE = ("tiny", "text", "flag", "line", "customer", "price")


def row_of(r: random.Random, customer: int, line: int) -> tuple[Any, ...]:
    return (customer, line, *(None if r.random() < 0.2 else make(r) for _, make in COLUMNS.values()))


def statement(r: random.Random) -> tuple[str, list[Any]]:
    """A statement over the rows of a few keys, and its parameters."""
    customers = [r.randrange(CUSTOMERS + 2) for _ in range(r.randrange(1, 6))]
    column = r.choice([*COLUMNS, "line"])
    params: list[Any] = list(customers)
    where = f"customer IN ({', '.join('?' * len(customers))})" if len(customers) > 1 else "customer = ?"
    if r.random() < 0.4:
        lines = [r.randrange(9) for _ in range(r.randrange(1, 4))]
        params += lines
        where += f" AND line IN ({', '.join('?' * len(lines))})" if len(lines) > 1 else " AND line = ?"
    while r.random() < 0.5:
        if r.random() < 0.6:
            where += f" AND {r.choice(CONDITIONS)}"
        else:
            condition, value = r.choice(BOUND)
            where += f" AND {condition}"
            params.append(value(r))
    match r.randrange(5):
        case 0:
            some = r.sample([*COLUMNS, "customer", "line"], 4)
            return f"SELECT {', '.join(some)} FROM t WHERE {where}", params
        case 4:
            some = r.sample([*COLUMNS, "customer", "line"], 4)
            terms = [f"{term} {r.choice(['', 'DESC', 'NULLS FIRST'])}" for term in r.sample(SORTABLE, r.randrange(3))]
            cut = r.choice(["", " LIMIT 3", " LIMIT 2 OFFSET 1", " LIMIT 0", " OFFSET 2"])
            order = ", ".join([*terms, "customer", f"line {r.choice(['', 'DESC'])}"])
            return f"SELECT {', '.join(some)} FROM t WHERE {where} ORDER BY {order}{cut}", params
        case 1:
            return f"SELECT * FROM t WHERE {where}", params
        case 2:
            some = [r.choice(AGGREGATES).format(c=column) for _ in range(3)]
            return f"SELECT {', '.join(some)} FROM t WHERE {where}", params
        case _:
            key = r.choice(GROUPABLE)
            some = [r.choice(AGGREGATES).format(c=column) for _ in range(2)]
            return f"SELECT {key}, {', '.join(some)} FROM t WHERE {where} GROUP BY {key}", params


@pytest.fixture(scope="module")
def cluster() -> Iterator[secateur.Connection]:
    with secateur.start(members=3, runtime="embedded") as running, running.connect() as connection:
        yield connection


@pytest.mark.parametrize("partitions", PARTITIONS)
def test_few_rows_are_those_of_duckdb(cluster: secateur.Connection, partitions: str) -> None:
    r = random.Random(f"{SEED} {partitions}")
    columns = ", ".join([*KEYS, *(f"{name} {type_}" for name, (type_, _) in COLUMNS.items())])
    cluster.execute("DROP TABLE IF EXISTS t")
    cluster.execute(f"CREATE TABLE t ({columns}, PRIMARY KEY (customer, line)) PARTITION BY {partitions}")
    keys = [(customer, line) for customer in range(CUSTOMERS) for line in range(r.randrange(1, 9))]
    rows = {key: row_of(r, *key) for key in keys}
    schema = cluster.table("t").schema
    cluster.table("t").load(table_of(list(rows.values()), schema))
    oracle = duckdb.connect()
    oracle.execute("SET TimeZone = 'UTC'")
    for turn in range(3):
        oracle.register("t", table_of(list(rows.values()), schema))
        for _ in range(STATEMENTS):
            sql, params = statement(r)
            try:
                expected = shown(oracle.execute(sql, params).fetchall(), sql)
            except duckdb.Error:
                with pytest.raises(secateur.Error):
                    cluster.execute(sql, params).fetchall()
                continue
            found = shown(cluster.execute(sql, params).fetchall(), sql)
            assert found == expected, f"SECATEUR_SEED={SEED}, turn {turn}: {sql} with {params}"
            for others in islice(in_turn(random.Random(turn), params), 1, None):
                try:
                    expected = shown(oracle.execute(sql, others).fetchall(), sql)
                except duckdb.Error:
                    continue
                found = shown(cluster.execute(sql, others).fetchall(), sql)
                assert found == expected, f"SECATEUR_SEED={SEED}, turn {turn}: {sql} with {others} after {params}"
        for _ in range(15):
            key = r.randrange(CUSTOMERS), r.randrange(9)
            if r.random() < 0.3:
                cluster.table("t").delete(key)
                rows.pop(key, None)
            else:
                rows[key] = row_of(r, *key)
                cluster.table("t").put(rows[key])


def shown(rows: list[tuple[Any, ...]], sql: str) -> list[str]:
    """Rows in the order of their statement, or in one of their own.

    A HUGEINT of the oracle comes from Arrow, which has only decimals for it.
    """

    def value(found: Any) -> str:
        match found:
            case datetime(tzinfo=zone) if zone is not None:
                return found.astimezone(UTC).isoformat()
            case Decimal() if found.as_tuple().exponent == 0:
                return repr(int(found))
            case _:
                return repr(found)

    texts = [", ".join(map(value, row)) for row in rows]
    return texts if "ORDER BY" in sql else sorted(texts)


def table_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    def array(values: tuple[Any, ...], field: pa.Field) -> pa.Array:
        if field.type == pa.uuid():
            storage = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
            return pa.ExtensionArray.from_storage(pa.uuid(), storage)
        return pa.array(values, field.type)

    return pa.Table.from_arrays(
        [array(values, field) for values, field in zip(zip(*rows, strict=True), schema, strict=True)], schema=schema
    )

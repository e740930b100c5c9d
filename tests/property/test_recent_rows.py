"""Rows that were just written are read as plain values exactly as Arrow gives them, whatever is written or read before.

Two stores get the same random writes: of one the rows are read as plain values, of the other as Arrow tables with all
changes merged. ``SECATEUR_SEED`` sets the seed.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.partitioning.types.coerce import coerce
from secateur.storage import ChangeOperation, MemberStore
from secateur.wire import ShortTable

SEED = int(os.environ.get("SECATEUR_SEED", "20261126"))
ZONE = timezone(timedelta(hours=5, minutes=30))
ENDS = [datetime.min, datetime.max]
COLUMNS = {
    "v": ("INTEGER", lambda r: r.choice([r.randrange(-9, 9), float(r.randrange(9)), "7"])),
    "a": ("SMALLINT", lambda r: r.randrange(4)),
    "huge": ("HUGEINT", lambda r: r.choice([r.randrange(-9, 9), 10**37, -(10**37)])),
    "single": ("FLOAT", lambda r: r.choice([0.1, -0.0, 1 / 3, 16_777_217.0, float("nan"), float("inf"), 3])),
    "ratio": ("DOUBLE", lambda r: r.choice([0.1, -0.0, 5, float("nan"), Decimal("0.25")])),
    "price": ("DECIMAL(10, 2)", lambda r: r.choice([Decimal("1.5"), Decimal("-0"), 7, 0.25, "1e2"])),
    "wide": ("DECIMAL(38, 3)", lambda r: r.choice([Decimal("1.500"), Decimal(10) ** 34, 3])),
    "b": ("VARCHAR", lambda r: r.choice(["", "a", "a\0", "é🌳", "\U0010ffff"])),
    "bytes": ("BLOB", lambda r: r.choice([b"", b"\x00\xff", bytearray(b"x")])),
    "day": ("DATE", lambda r: r.choice([date(2024, 2, 29), "1969-12-31", datetime(2024, 1, 1), date.min, date.max])),
    "at": ("TIME", lambda r: r.choice([time(1, 2, 3, 4), "23:59:59.999999", time(1, 2, fold=1)])),
    "moment": (
        "TIMESTAMP",
        lambda r: r.choice([datetime(1969, 1, 1, 0, 0, 0, 1), datetime(2024, 1, 1, tzinfo=ZONE), *ENDS]),
    ),
    "instant": (
        "TIMESTAMPTZ",
        lambda r: r.choice([datetime(2024, 1, 1, tzinfo=ZONE), datetime(2024, 6, 1, fold=1), *ENDS]),
    ),
    "flag": ("BOOLEAN", lambda r: r.choice([True, False, 1, "f"])),
    "id": (
        "UUID",
        lambda r: r.choice(
            [UUID(int=r.randrange(2**128)), UUID(int=0), UUID(int=2**128 - 1), str(UUID(int=7)), UUID(int=1).bytes]
        ),
    ),
}
KEY = ("a", "b")
TABLE = TableDef(
    name="t",
    table_id=1,
    columns=tuple(Column(name, parse_type(type_), nullable=name not in KEY) for name, (type_, _) in COLUMNS.items()),
    primary_key=KEY,
    scheme_or_reference=PartitionScheme(),
)
NAMES = list(COLUMNS)


def row_of(r: random.Random) -> list[Any]:
    return [None if name not in KEY and r.random() < 0.15 else make(r) for name, (_, make) in COLUMNS.items()]


def shown(value: Any) -> str:
    """A value with its type. Of a zone only its offset counts: Arrow has another object for UTC."""
    return repr(value.astimezone(UTC)) if isinstance(value, datetime) and value.tzinfo is not None else repr(value)


def given(some: list[list[Any]]) -> ShortTable:
    return ShortTable([list(column) for column in zip(*some, strict=True)], len(some))


def canonical(some: list[list[Any]]) -> pa.Table:
    """Rows as a client sends them in Arrow."""
    columns = [
        [coerce(value, column.type) for value in values]
        for column, values in zip(TABLE.columns, given(some).columns, strict=True)
    ]
    return ShortTable(columns, len(some)).in_schema([column.type for column in TABLE.columns], TABLE.arrow_schema)


@pytest.mark.parametrize("number", range(6))
def test_rows_are_read_as_arrow_gives_them(number: int) -> None:
    r = random.Random(f"{SEED} {number}")
    plain, merged = MemberStore(), MemberStore()
    for store in (plain, merged):
        store.create_table(TABLE, [0])
    for turn in range(150):
        some = [row_of(r) for _ in range(r.choice([1, 1, 1, 2, 5]))]
        match r.choice(["upsert", "upsert", "upsert", "arrow", "delete", "ignore", "fold", "snapshot"]):
            case "upsert":
                changes = [(ChangeOperation.UPSERT, given(some))]
            case "ignore":
                changes = [(ChangeOperation.IGNORE, given(some))]
            case "arrow":
                changes = [(ChangeOperation.UPSERT, canonical(some))]
            case "delete":
                keys = [[row[NAMES.index(name)] for name in KEY] for row in some]
                changes = [(ChangeOperation.DELETE, given(keys))]
            case "fold":
                changes = []
                plain.partition(1, 0).snapshot().fold()
            case _:
                changes = []
                plain.partition(1, 0).snapshot()
        for operation, rows in changes:
            for store in (plain, merged):
                store.apply(1, 0, operation, rows)
        whole = merged.partition(1, 0).snapshot().fold().table.to_pylist()
        prefix = (r.randrange(4), *([r.choice(["", "a", "a\0", "é🌳", "\U0010ffff"])] if r.random() < 0.5 else []))
        names = r.sample(NAMES, r.randrange(1, 5))
        expected = [
            [shown(row[name]) for name in names] for row in whole if (row["a"], row["b"])[: len(prefix)] == prefix
        ]
        rows_max = r.choice([0, 1, 3, 99])
        found = plain.few_finder(1, names)([0], [prefix], rows_max)
        where = f"SECATEUR_SEED={SEED}, number {number}, turn {turn}: {names} of {prefix}, at most {rows_max}"
        if found is None:
            assert len(expected) > rows_max or rows_max == 0 or len(whole) > 2 * rows_max, where
        else:
            assert len(expected) <= rows_max, where
            columns = [[shown(value) for value in column] for column in found.columns]
            assert sorted(map(list, zip(*columns, strict=True))) == sorted(expected), where
            assert found.num_rows == len(expected), where

"""A slice of a sorted partition by bounds on its key is what a filter would leave, for keys of every type, with recent
writes beside the sorted rows.
"""

from __future__ import annotations

import random
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine_limits import EngineLimits
from secateur.partitioning.pruning import KeyBoundary, KeyRange, unite_ranges
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import ChangeOperation, MemberStore

VALUES: dict[str, list[Any]] = {
    "TINYINT": [-128, -127, -1, 0, 1, 126, 127],
    "BIGINT": [-(2**63), -1, 0, 1, 2**63 - 2, 2**63 - 1],
    "UBIGINT": [0, 1, 2**63, 2**64 - 1],
    "HUGEINT": [-(2**100), -1, 0, 2**64, 2**100],
    "VARCHAR": ["", "\0", "a", "a\0", "ab", "b", "é", "\uffff", "\U0001f600", "\U0010ffff"],
    "BLOB": [b"", b"\0", b"\0\0", b"a", b"\xff", b"\xff\xff"],
    "BOOLEAN": [False, True],
    "DATE": [date.min, date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date.max],
    "TIME": [time(0), time(12, 30), time(23, 59, 59, 999999)],
    "TIMESTAMP": [datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime.max],
    "TIMESTAMPTZ": [datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)],
    "DECIMAL(5,2)": [Decimal("-999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("1.50"), Decimal("999.99")],
    "DECIMAL(38,2)": [
        Decimal("-1e35"),
        Decimal("-0.01"),
        Decimal("0.00"),
        Decimal("184467440737095516.16"),
        Decimal("1e35"),
    ],
    "UUID": [uuid.UUID(int=0), uuid.UUID(int=1), uuid.UUID(int=2**127), uuid.UUID(int=2**128 - 1)],
    "DOUBLE": [float("-inf"), -1.5, 0.0, 1e-300, float("inf")],
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("first", VALUES)
def test_slices_equal_filters(first: str, seed: int) -> None:
    rng = random.Random(f"{first} {seed}")
    second = rng.choice(list(VALUES))
    table = TableDef(
        "t",
        1,
        (Column("a", parse_type(first), nullable=False), Column("b", parse_type(second), nullable=False)),
        ("a", "b"),
        PartitionScheme(),
    )
    store, hulls = MemberStore(limits=EngineLimits(rows_per_search=0)), MemberStore()
    for one in (store, hulls):
        one.create_table(table, [0])

    def rows(found: list[tuple[Any, Any]]) -> pa.Table:
        columns = [[key[position] for key in found] for position in (0, 1)]
        arrays = [_array(values, field) for values, field in zip(columns, table.arrow_schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=table.arrow_schema)

    keys = [(a, b) for a in VALUES[first] for b in VALUES[second]]
    kept = rng.sample(keys, len(keys) // 2)
    recent = rng.sample(keys, len(keys) // 4)
    gone = rng.sample(keys, len(keys) // 5)
    for one in (store, hulls):
        one.apply(1, 0, ChangeOperation.OVERWRITE, rows(kept))
        one.apply(1, 0, ChangeOperation.UPSERT, rows(recent))
        one.apply(1, 0, ChangeOperation.DELETE, rows(gone))
    present = sorted((set(kept) | set(recent)) - set(gone))
    for _ in range(60):
        ranges = [KeyRange(_cut(rng, keys), _cut(rng, keys)) for _ in range(rng.choice([1, 1, 2, 4]))]
        expected = [key for key in present if any(_is_between(key, span) for span in ranges)]
        found = store.relation(1, [0], ["b", "a"], unite_ranges(ranges))
        assert _keys(found) == _keys(rows(expected)), ranges
        # Where a search for each does not pay, rows between the ranges come as well, and none is lost.
        assert set(_keys(hulls.relation(1, [0], None, unite_ranges(ranges)))) >= set(_keys(rows(expected)))


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    if isinstance(field.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(
            field.type, pa.array([value.bytes for value in values], field.type.storage_type)
        )
    return pa.array(values, field.type)


def _keys(table: pa.Table) -> list[tuple[Any, Any]]:
    return list(zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True))


def _cut(rng: random.Random, keys: list[tuple[Any, Any]]) -> KeyBoundary:
    return KeyBoundary(rng.choice(keys)[: rng.choice([0, 1, 1, 2, 2])], rng.random() < 0.5)


def _is_between(key: tuple[Any, ...], span: KeyRange) -> bool:
    low, high = key[: len(span.lower.values)], key[: len(span.upper.values)]
    return (low > span.lower.values or (low == span.lower.values and not span.lower.after)) and (
        high < span.upper.values or (high == span.upper.values and span.upper.after)
    )

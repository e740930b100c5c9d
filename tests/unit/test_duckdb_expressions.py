"""CHECKs of rows, without a member: few rows and many, from several threads, and what the error shows."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from secateur.duckdb_expressions import RowChecks
from secateur.errors import CheckFailedError, DataError
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import CheckDef, Column, TableDef
from secateur.partitioning.types import column_of, parse_type

TYPES = {"k": "INTEGER", "h": "HUGEINT", "u": "UUID", "s": "STRUCT(x INTEGER)", "t": "TIMESTAMPTZ", "text": "VARCHAR"}
CONDITIONS = {
    "small": ("k < 5000", ("k",)),
    "odd": ("h % 2 = 1", ("h",)),
    "known": ("u IS NOT NULL", ("u",)),
    "nested": ("s.x > k", ("k", "s")),
    "recent": ("t >= TIMESTAMPTZ '2020-01-01 00:00:00+00'", ("t",)),
    "length": ("length(text) < 1000000", ("text",)),
}
TABLE = TableDef(
    "t",
    1,
    tuple(Column(name, parse_type(kind), name != "k") for name, kind in TYPES.items()),
    ("k",),
    PartitionScheme(),
    checks=tuple(CheckDef(name, condition, columns) for name, (condition, columns) in CONDITIONS.items()),
)


def rows(count: int, **changed: object) -> pa.Table:
    """Rows that pass, whose last one has other values."""
    values = {
        "k": list(range(count)),
        "h": [Decimal(2 * number + 1) for number in range(count)],
        "u": [UUID(int=number) for number in range(count)],
        "s": [{"x": number + 1} for number in range(count)],
        "t": ["2024-01-01"] * count,
        "text": ["x"] * count,
    }
    for name, value in changed.items():
        values[name][-1] = value
    columns = [column_of(values[column.name], column.type, name=column.name) for column in TABLE.columns]
    return pa.Table.from_arrays(columns, schema=TABLE.arrow_schema)


@pytest.mark.parametrize("count", [1, 3000])
def test_null_passes_and_false_fails(count: int) -> None:
    checks = RowChecks(TABLE)
    for _ in range(2):
        checks.check(rows(0))
        checks.check(rows(count))
        checks.check(rows(count, h=None, s=None, t=None, text=None))
        for name, changed in {
            "small": {"k": 5000, "s": {"x": 9999}},
            "odd": {"h": 2},
            "known": {"u": None},
            "nested": {"s": {"x": -1}},
            "recent": {"t": "2019-12-31 23:59:59.999999"},
        }.items():
            with pytest.raises(CheckFailedError, match=f"fails CHECK {name}: ") as caught:
                checks.check(rows(count, **changed))
            assert caught.value.details == {
                "table": "t",
                "constraint": name,
                "condition": CONDITIONS[name][0],
            }


def test_the_error_shows_the_key_and_what_the_condition_reads_first_and_cuts_long_rows() -> None:
    with pytest.raises(CheckFailedError) as caught:
        RowChecks(TABLE).check(rows(1, s={"x": 0}, text="x" * 1000))
    assert "the row (k: 0, s: {'x': 0}, h: 1, u: 00000000-0000-0000-0000-000000000000, t:" in caught.value.message
    assert "xxx..." in caught.value.message
    assert len(caught.value.message) < 500


def test_what_cannot_be_evaluated_is_told_and_harms_no_later_check() -> None:
    table = TableDef(
        "t",
        1,
        TABLE.columns,
        ("k",),
        PartitionScheme(),
        checks=(CheckDef("c", "CAST(text AS INTEGER) > 0", ("text",)),),
    )
    checks = RowChecks(table)
    for _ in range(2):
        with pytest.raises(DataError, match=r"a CHECK of c cannot be evaluated for the new rows: .*'x'"):
            checks.check(rows(1))
        checks.check(rows(1, text="5"))


def test_several_threads_and_the_end_of_a_table() -> None:
    checks = RowChecks(TABLE)

    def check(number: int, checks: RowChecks = checks) -> int:
        try:
            checks.check(rows(1 if number % 3 else 3000, h=number))
        except CheckFailedError:
            return 1
        return 0

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(check, range(60))) == 30
    gone = weakref.ref(checks)
    del check, checks
    gc.collect()
    assert gone() is None

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, ColumnStatistics, TableDef, TableStatistics, TableSummary, total
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode
from secateur.storage import ChangeOperation, Partition, TableLayout, summarize, table_summary


def definition(**types: str) -> TableDef:
    columns = [
        Column("id", parse_type("BIGINT"), nullable=False),
        *(Column(name, parse_type(text)) for name, text in types.items()),
    ]
    return TableDef("t", 1, tuple(columns), ("id",), PartitionScheme())


def partitions(table: TableDef, *rows: dict[str, list[Any]]) -> list[Partition]:
    layout = TableLayout.of(table)
    made = []
    for number, columns in enumerate(rows):
        made.append(Partition(layout, number))
        made[-1].apply(ChangeOperation.APPEND, pa.table(columns, schema=table.arrow_schema))
    return made


def statistics(table: TableDef, *members: list[Partition]) -> TableStatistics:
    summaries = [summarize(table, [partition.snapshot() for partition in hosted]) for hosted in members]
    return total(table, [decode(encode(summary), TableSummary) for summary in summaries])


CASES: list[tuple[str, list[Any], int | None, Any, Any]] = [
    ("INTEGER", [3, None, 1, 3], 2, 1, 3),
    ("HUGEINT", [2**100, 1, None, 1], 2, Decimal(1), Decimal(2**100)),
    ("DOUBLE", [0.0, -0.0, 1.5, None], 2, -0.0, 1.5),
    ("FLOAT", [2.0, 2.0, None, 1.0], 2, 1.0, 2.0),
    ("DECIMAL(10,2)", [Decimal("1.50"), Decimal("2.00"), None, Decimal("1.50")], 2, Decimal("1.50"), Decimal("2.00")),
    ("VARCHAR", ["b", "a", None, "a"], 2, "a", "b"),
    ("VARCHAR", ["x" * 100, None, None, "y" * 100], 2, "x" * 64, None),
    ("BLOB", [b"b", b"a", None, b"a"], 2, b"a", b"b"),
    ("BOOLEAN", [True, False, None, True], 2, False, True),
    ("DATE", [date(2024, 1, 2), None, date(2024, 1, 1), date(2024, 1, 2)], 2, date(2024, 1, 1), date(2024, 1, 2)),
    ("TIME", [time(1), time(2), None, time(1)], 2, time(1), time(2)),
    (
        "TIMESTAMP",
        [datetime(2024, 1, 1), None, None, datetime(2024, 1, 1)],
        1,
        datetime(2024, 1, 1),
        datetime(2024, 1, 1),
    ),
    ("UUID", [UUID(int=1).bytes, UUID(int=2).bytes, None, UUID(int=1).bytes], 2, None, None),
    ("INTEGER[]", [[1], [2], None, [1]], None, None, None),
    ("INTERVAL", [pa.MonthDayNano([1, 0, 0]), None, None, None], None, None, None),
    ("INTEGER", [None, None, None, None], 0, None, None),
]


@pytest.mark.parametrize(
    ("type_", "values", "distinct", "minimum", "maximum"),
    CASES,
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_type(type_: str, values: list[Any], distinct: int | None, minimum: Any, maximum: Any) -> None:
    table = definition(v=type_)
    hosted = partitions(table, {"id": [1, 2], "v": values[:2]}, {"id": [3, 4], "v": values[2:]})
    for members in ([hosted], [hosted[:1], hosted[1:]]):
        found = statistics(table, *members)
        assert found.rows == 4
        column = found.columns["v"]
        assert (column.nulls, column.distinct, column.minimum, column.maximum) == (
            values.count(None),
            distinct,
            minimum,
            maximum,
        )
        assert column.nbytes > 0


def test_no_rows() -> None:
    table = definition(v="VARCHAR", w="INTERVAL")
    empty = ColumnStatistics(0, 0, 0)
    for members in ([], [[]], [partitions(table, {"id": [], "v": [], "w": []})]):
        found = statistics(table, *members)
        assert (found.rows, found.columns["id"], found.columns["v"]) == (0, empty, empty)


def test_rows_that_were_written_a_moment_ago_count() -> None:
    table = definition(v="INTEGER")
    hosted = partitions(table, {"id": list(range(100)), "v": [1] * 100})
    hosted[0].apply(ChangeOperation.UPSERT, pa.table({"id": [5, 1000], "v": [7, 8]}, schema=table.arrow_schema))
    hosted[0].apply(ChangeOperation.DELETE, pa.table({"id": pa.array([0], pa.int64())}))
    found = statistics(table, hosted)
    assert found.rows == 100
    assert (found.columns["id"].maximum, found.columns["v"].distinct) == (1000, 3)


def test_values_of_a_large_table_are_estimated_from_some_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_summary, "SAMPLED_ROWS_MAX", 10_000)
    table = definition(few="INTEGER", many="BIGINT")
    rng = np.random.default_rng(1)
    ids = np.arange(100_000)
    pieces = [
        {"id": part, "few": rng.integers(0, 50, len(part)), "many": rng.integers(0, 20_000, len(part))}
        for part in np.split(ids, 4)
    ]
    hosted = partitions(table, *({name: list(values) for name, values in piece.items()} for piece in pieces))
    found = statistics(table, hosted[:2], hosted[2:])
    assert found.rows == 100_000
    assert (found.columns["few"].distinct, found.columns["few"].maximum) == (50, 49)
    assert found.columns["many"].distinct == pytest.approx(20_000, rel=0.25)
    assert found.columns["id"].distinct == pytest.approx(100_000, rel=0.02)

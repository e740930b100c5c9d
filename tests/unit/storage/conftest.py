"""Tables small enough to write down, and the constructors around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pytest

from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import DuplicateKeys, Partition, SortedRows, TableLayout, sort_rows


class MakeTable(Protocol):
    def __call__(
        self, columns: dict[str, str], key: Sequence[str], *, partitions: int = 1, table_id: int = 1, name: str = "t"
    ) -> TableDef: ...


@pytest.fixture
def make_table() -> MakeTable:
    """Describe a table: columns by name and SQL type, hashed on the first key column when it has several partitions."""

    def make(
        columns: dict[str, str], key: Sequence[str], *, partitions: int = 1, table_id: int = 1, name: str = "t"
    ) -> TableDef:
        described = tuple(
            Column(column, parse_type(text), nullable=column not in key) for column, text in columns.items()
        )
        scheme = PartitionScheme()
        if partitions > 1:
            scheme = PartitionScheme(
                hashes=(HashComponent((key[0],), partitions),), types=((key[0], parse_type(columns[key[0]])),)
            )
        return TableDef(name, table_id, described, tuple(key), scheme)

    return make


@pytest.fixture
def pairs(make_table: MakeTable) -> TableDef:
    """``t(a BIGINT, b VARCHAR, v BIGINT, PRIMARY KEY (a, b))`` in one partition."""
    return make_table({"a": "BIGINT", "b": "VARCHAR", "v": "BIGINT"}, ["a", "b"])


@pytest.fixture
def layout(pairs: TableDef) -> TableLayout:
    return TableLayout.of(pairs)


@pytest.fixture
def rows(layout: TableLayout) -> Callable[..., pa.Table]:
    """Rows of ``pairs`` from tuples."""

    def make(*tuples: tuple[Any, ...]) -> pa.Table:
        columns = [list(column) for column in zip(*tuples, strict=True)] or [[], [], []]
        return pa.Table.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, layout.schema, strict=True)],
            schema=layout.schema,
        )

    return make


@pytest.fixture
def keys(layout: TableLayout) -> Callable[..., pa.Table]:
    """Keys of ``pairs`` from tuples."""

    def make(*tuples: tuple[Any, ...]) -> pa.Table:
        columns = [list(column) for column in zip(*tuples, strict=True)] or [[], []]
        return pa.Table.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, layout.key_schema, strict=True)],
            schema=layout.key_schema,
        )

    return make


@pytest.fixture
def sorted_of(layout: TableLayout) -> Callable[[pa.Table], SortedRows]:
    return lambda table: sort_rows(layout, [table], DuplicateKeys.REFUSED)


@pytest.fixture
def partition(layout: TableLayout) -> Partition:
    return Partition(layout, 0)


@pytest.fixture
def tuples() -> Callable[[pa.Table], list[tuple[Any, ...]]]:
    """The rows of a table as tuples, in its order."""
    return lambda table: (
        list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []
    )

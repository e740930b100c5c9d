from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from secateur.storage import DuplicateKeys, SortedRows, TableLayout, sort_rows

GRID = [(a, b) for a in (-3, 0, 0, 5) for b in ("", "m", "mm", "z")]


@pytest.fixture
def grid(rows: Any, layout: TableLayout) -> SortedRows:
    return sort_rows(layout, [rows(*[(a, b, 0) for a, b in set(GRID)])], DuplicateKeys.REFUSED)


PROBES = [(a,) for a in (-4, -3, -1, 0, 5, 6)] + [
    (a, b) for a in (-4, -3, 0, 5, 6) for b in ("", "a", "m", "ml", "mm", "z", "zz")
]


@pytest.mark.parametrize("probe", PROBES, ids=str)
def test_search_is_counting(grid: SortedRows, layout: TableLayout, probe: tuple[Any, ...]) -> None:
    cells = layout.order.cells(probe)
    assert cells is not None
    keys = layout.order.keys(grid.table)
    less = sum(key[: len(cells)] < cells for key in keys)
    equal = sum(key[: len(cells)] == cells for key in keys)
    assert grid.equal_range(cells) == (less, less + equal)
    assert grid.bound(cells, after=False) == less
    assert grid.bound(cells, after=True) == less + equal
    if len(cells) == len(layout.order.columns):
        assert grid.position(cells) == (less if equal else None)


@pytest.mark.parametrize("lengths", [(1,), (2,), (3,), (1, 1), (1, 2, 1), (7, 1, 30)], ids=str)
def test_runs_of_every_length_end_where_they_end(layout: TableLayout, rows: Any, lengths: tuple[int, ...]) -> None:
    table = rows(*[(run, f"{position:03}", 0) for run, length in enumerate(lengths) for position in range(length)])
    found = sort_rows(layout, [table], DuplicateKeys.REFUSED)
    ends = list(itertools.accumulate(lengths))
    assert [found.equal_range((run,)) for run in range(len(lengths))] == list(itertools.pairwise([0, *ends]))


def test_the_empty_prefix_is_everything(grid: SortedRows) -> None:
    assert grid.equal_range(()) == (0, grid.rows)


@pytest.mark.parametrize(
    ("key", "values"), [(["a"], [-7, 0, 3, 9]), (["b"], ["", "m", "mm"]), (["f"], [-1.5, 0.0, 2.0])]
)
def test_the_position_of_a_key_is_where_its_range_begins(make_table: Any, key: list[str], values: list[Any]) -> None:
    layout = TableLayout.of(make_table({"a": "BIGINT", "b": "VARCHAR", "f": "DOUBLE"}, key))
    columns = {"a": range(len(values)), "b": map(str, range(len(values))), "f": range(len(values)), key[0]: values}
    table = pa.table({name: list(column) for name, column in columns.items()}, schema=layout.schema)
    found = sort_rows(layout, [table], DuplicateKeys.REFUSED)
    probes = {"a": [-8, 1, 10], "b": ["a", "n", "zz"], "f": [-2.0, -0.0, 1.0, 3.0]}[key[0]]
    for value in [*values, *probes]:
        cells = layout.order.cells([value])
        assert cells is not None
        start, stop = found.equal_range(cells)
        assert found.position(cells) == (start if start < stop else None)


def test_no_rows(layout: TableLayout) -> None:
    nothing = SortedRows(layout.schema.empty_table(), layout.order)
    assert nothing.equal_range((1, b"x")) == (0, 0)
    assert nothing.position((1, b"x")) is None
    assert nothing.bound((1,), after=True) == 0
    assert nothing.nbytes < 100


def test_bytes_are_those_of_the_buffers(layout: TableLayout, rows: Any) -> None:
    table = sort_rows(layout, [rows(*[(n, "abcd", n) for n in range(1000)])], DuplicateKeys.REFUSED).table
    assert (
        1000 * (8 + 4 + 4 + 8) <= SortedRows(table, layout.order).nbytes <= 1000 * (8 + 4 + 4 + 8) + 1000 // 8 * 3 + 200
    )


def test_search_reads_the_key_columns_by_name_not_place(make_table: Any) -> None:
    layout = TableLayout.of(make_table({"v": "BIGINT", "b": "VARCHAR", "a": "BIGINT"}, ["a", "b"]))
    found = sort_rows(
        layout, [pa.table({"v": [9, 8], "b": ["x", "y"], "a": [2, 1]}).cast(layout.schema)], DuplicateKeys.REFUSED
    )
    assert found.table["v"].to_pylist() == [8, 9]
    assert found.equal_range((2, b"x")) == (1, 2)

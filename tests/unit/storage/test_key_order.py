from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from secateur.errors import DataError, NotSupportedError, ParameterError, SchemeError
from secateur.partitioning.pruning import KeyBoundary, KeyRange
from secateur.storage import KeyOrder, TableLayout


@pytest.mark.parametrize(
    ("prefix", "cells"),
    [
        pytest.param([], (), id="nothing"),
        pytest.param([7], (7,), id="one"),
        pytest.param([7, "é"], (7, b"\xc3\xa9"), id="both"),
        pytest.param([None], None, id="null"),
        pytest.param([7, None], None, id="null-behind"),
    ],
)
def test_cells(layout: TableLayout, prefix: list[Any], cells: Any) -> None:
    assert layout.order.cells(prefix) == cells


def test_more_values_than_key_columns(layout: TableLayout) -> None:
    with pytest.raises(ParameterError, match=r"t: 3 key values given, the primary key has 2 columns \(a, b\)"):
        layout.order.cells([1, "x", 2])


def test_a_bound_with_null_is_refused(layout: TableLayout) -> None:
    with pytest.raises(DataError, match=r"a bound on \(a, b\) holds NULL"):
        layout.order.window(KeyRange(KeyBoundary((1, None), after=False), KeyBoundary((), after=True)))


def test_a_table_needs_a_key(pairs: Any) -> None:
    with pytest.raises(SchemeError, match="table t has no primary key"):
        KeyOrder.of(structs.replace(pairs, primary_key=()))


def test_a_key_column_needs_an_order(make_table: Any) -> None:
    with pytest.raises(NotSupportedError, match=r"column k of type INTEGER\[\]"):
        KeyOrder.of(make_table({"k": "INTEGER[]"}, ["k"]))


def test_key_names_are_found_without_regard_to_case(make_table: Any) -> None:
    assert KeyOrder.of(structs.replace(make_table({"Day": "DATE"}, ["Day"]), primary_key=("DAY",))).names == ["Day"]


def test_keys_of_a_table_in_chunks(layout: TableLayout, rows: Any) -> None:
    table = pa.concat_tables([rows((2, "x", 0)), rows((1, "y", 0), (1, "é", 0)).slice(1)])
    assert layout.order.keys(table) == [(2, b"x"), (1, b"\xc3\xa9")]


def test_describe_names_columns_and_values(layout: TableLayout, rows: Any) -> None:
    assert layout.order.describe(rows((1, "N14228", 0)), 0) == "(a=1, b='N14228')"


def test_describe_a_date_that_python_cannot_hold(make_table: Any) -> None:
    layout = TableLayout.of(make_table({"day": "DATE"}, ["day"]))
    table = pa.Table.from_arrays([pa.array([2_000_000_000], pa.int32()).cast(pa.date32())], schema=layout.schema)
    assert layout.order.describe(table, 0).startswith("(day=")
    assert len(layout.order.plain(table, 0)) == 1


def test_plain_values_for_the_wire(layout: TableLayout, rows: Any) -> None:
    assert layout.order.plain(rows((1, "x", 0)), 0) == [1, "x"]

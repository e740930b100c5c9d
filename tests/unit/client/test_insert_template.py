from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.client.execution import filled_rows
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import InsertTemplate, Literal


def filled(column_type: str, values: list[list[Any]], *rows: tuple[int | Literal, ...]) -> pa.Table | None:
    """The rows of a template for a table of k and v, by default with both as parameters."""
    types = {"k": parse_type("BIGINT"), "v": parse_type(column_type)}
    scheme = PartitionScheme(hashes=(HashComponent(("k",), 4),), types=(("k", types["k"]),))
    table = TableDef("t", 1, (Column("k", types["k"], nullable=False), Column("v", types["v"])), ("k",), scheme)
    return filled_rows(table, InsertTemplate(("k", "v"), rows or ((0, 1),), 2, ()), values)


@pytest.mark.parametrize(
    ("column_type", "value"),
    [
        pytest.param("TINYINT", -128, id="an integer"),
        pytest.param("UBIGINT", 2**64 - 1, id="an unsigned integer"),
        pytest.param("DOUBLE", -0.0, id="a double"),
        pytest.param("VARCHAR", "é\0", id="a text"),
        pytest.param("BOOLEAN", True, id="a truth value"),
        pytest.param("BLOB", b"\xff", id="bytes"),
        pytest.param("DATE", date(2024, 2, 29), id="a date"),
        pytest.param("TIMESTAMP", datetime(2024, 2, 29, 1, 2, 3, 4), id="a timestamp"),
        pytest.param("DECIMAL(10,2)", Decimal("-1.50"), id="a decimal"),
        pytest.param("INTEGER", None, id="null"),
        pytest.param("UUID", None, id="null of any type"),
    ],
)
def test_a_value_of_its_columns_type_is_taken(column_type: str, value: Any) -> None:
    rows = filled(column_type, [[1, value], [2, None]])
    assert rows is not None
    assert rows.schema.types == [parse_type("BIGINT").arrow, parse_type(column_type).arrow]
    assert rows.to_pylist() == [{"k": 1, "v": value}, {"k": 2, "v": None}]


@pytest.mark.parametrize(
    ("column_type", "value"),
    [
        pytest.param("TINYINT", 128, id="out of range"),
        pytest.param("UINTEGER", -1, id="below range"),
        pytest.param("INTEGER", True, id="a truth value is no integer"),
        pytest.param("INTEGER", 1.0, id="a double is no integer"),
        pytest.param("INTEGER", "1", id="a text is no integer"),
        pytest.param("HUGEINT", 2**127, id="no hugeint"),
        pytest.param("DOUBLE", 2**53 + 1, id="an integer that no double is"),
        pytest.param("FLOAT", 1e39, id="a double that no float is near"),
        pytest.param("FLOAT", Decimal("0.5"), id="a decimal is no float"),
        pytest.param("VARCHAR", 1, id="an integer is no text"),
        pytest.param("VARCHAR", "\ud800", id="a text that is not UTF-8"),
        pytest.param("DATE", datetime(2024, 1, 1), id="a timestamp is no date"),
        pytest.param("DATE", "2024-1-1", id="a text of a day in another form"),
        pytest.param("TIMESTAMP", date(2024, 1, 1), id="a date is no timestamp"),
        pytest.param("TIMESTAMP", datetime(2024, 1, 1, tzinfo=UTC), id="an instant is no timestamp"),
        pytest.param("DECIMAL(4,2)", Decimal("1.005"), id="too many digits behind the point"),
        pytest.param("DECIMAL(4,2)", Decimal("100"), id="too many digits before the point"),
        pytest.param("DECIMAL(4,2)", Decimal("NaN"), id="not a number"),
        pytest.param("INTEGER[]", [1], id="a list"),
    ],
)
def test_a_value_that_needs_a_cast_is_left_to_the_controller(column_type: str, value: Any) -> None:
    assert filled(column_type, [[1, value]]) is None


def test_literals_and_several_rows_and_sets() -> None:
    rows = filled("VARCHAR", [[1, 2], [3, 4]], (0, Literal("a")), (1, Literal(None)))
    assert rows is not None
    assert rows.to_pylist() == [{"k": 1, "v": "a"}, {"k": 2, "v": None}, {"k": 3, "v": "a"}, {"k": 4, "v": None}]

"""Compares the rows of two tables and reports those that differ."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

import pyarrow as pa

_ROWS_SHOWN_MAX: Final = 5


def difference(actual: pa.Table, expected: pa.Table, *, ordered: bool) -> str | None:
    """Describe how a table differs from the expected one; None if it does not.

    Args:
        actual: The rows to check.
        expected: The rows wanted; names and types of columns have to agree too.
        ordered: Whether their order counts.
    """
    if actual.schema.names != expected.schema.names or actual.schema.types != expected.schema.types:
        return f"the columns are {_columns(actual.schema)}\n    expected     {_columns(expected.schema)}"
    rows, wanted = _rows(actual), _rows(expected)
    extra, missing = Counter(rows) - Counter(wanted), Counter(wanted) - Counter(rows)
    if extra or missing:
        lines = [f"{len(rows)} rows came, {len(wanted)} were expected"]
        lines += [f"    missing: {row}" for row in _first(missing)] + [f"    extra:   {row}" for row in _first(extra)]
        return "\n".join(lines)
    if ordered and rows != wanted:
        at = next(index for index, (row, other) in enumerate(zip(rows, wanted, strict=True)) if row != other)
        return f"the rows come in another order: row {at} is {rows[at]}\n    expected {wanted[at]}"
    return None


def _rows(table: pa.Table) -> list[str]:
    """Each row as text; NaN equals NaN, and 1 is not 1.0."""
    columns = [column.to_pylist() for column in table.columns]
    return (
        [repr(tuple(_value(value) for value in row)) for row in zip(*columns, strict=True)]
        if columns
        else ["()"] * table.num_rows
    )


def _value(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _first(rows: Counter[str]) -> list[str]:
    shown = [row if times == 1 else f"{row} ({times} times)" for row, times in list(rows.items())[:_ROWS_SHOWN_MAX]]
    return shown if len(rows) <= _ROWS_SHOWN_MAX else [*shown, f"... and {len(rows) - _ROWS_SHOWN_MAX} more"]


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema) or "none"

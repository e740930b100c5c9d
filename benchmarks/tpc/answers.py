"""Whether two answers to one query are the same answer."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

import duckdb

__all__ = ["DOUBLE_TOLERANCE", "difference", "sort_columns"]

#: Two sums of doubles in other orders differ by rounding: relative, of the larger.
DOUBLE_TOLERANCE: Final = 1e-9

Row = tuple[Any, ...]


def difference(sql: str, names: Sequence[str], got: Sequence[Row], expected: Sequence[Row]) -> str | None:
    """What tells two answers apart, or None.

    Rows are compared as multisets, doubles within :data:`DOUBLE_TOLERANCE`. Of the order, what the statement defines
    and the rows show is compared: the columns of its ORDER BY that are columns of the answer, row by row, up to the
    first that is not.

    Args:
        sql: The query.
        names: The names of its result columns.
        got: The rows in question, in their order.
        expected: Those they ought to be.
    """
    if len(got) != len(expected):
        return f"{len(got)} rows, {len(expected)} expected"
    for mine, theirs in zip(sorted(got, key=_total_order), sorted(expected, key=_total_order), strict=True):
        if not _equal(mine, theirs):
            return f"row {mine}, expected {theirs}"
    columns = sort_columns(sql, names)
    for index, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if not _equal([mine[column] for column in columns], [theirs[column] for column in columns]):
            return f"row {index + 1} in order is {mine}, expected {theirs}"
    return None


def sort_columns(sql: str, names: Sequence[str]) -> list[int]:
    """Return the result positions of the ORDER BY items, up to the first item that is not a result column."""
    ((tree,),) = duckdb.execute("SELECT json_serialize_sql($1)", [sql]).fetchall()
    modifiers = json.loads(tree)["statements"][0]["node"]["modifiers"]
    by_name = {name.casefold(): index for index, name in reversed(list(enumerate(names)))}
    found: list[int] = []
    for item in (item for modifier in modifiers for item in modifier.get("orders", ())):
        match item["expression"]:
            case {"class": "CONSTANT", "literal": {"kind": "INTEGER", "text": number}}:
                found.append(int(number) - 1)
            case {"class": "COLUMN_REF", "column_names": [*_, name]} if name.casefold() in by_name:
                found.append(by_name[name.casefold()])
            case _:
                break
    return found


def _total_order(row: Row) -> list[Any]:
    # Doubles come last and rounded, so that answers that differ by rounding are sorted alike.
    exact = [(value is None, str(type(value)), str(value)) for value in row if not isinstance(value, float)]
    return [exact, [float(f"{value:.6g}") for value in row if isinstance(value, float)]]


def _equal(mine: Sequence[Any], theirs: Sequence[Any]) -> bool:
    return len(mine) == len(theirs) and all(map(_equal_values, mine, theirs))


def _equal_values(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=DOUBLE_TOLERANCE) or (math.isnan(mine) and math.isnan(theirs))
    return type(mine) is type(theirs) and bool(mine == theirs)
